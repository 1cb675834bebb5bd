"""
What people say of definitions, and see of them: every field of every model, by introspection.
"""

from __future__ import annotations

import json

import pytest

from domain.definition_texts import (
    changes_of,
    definition_of,
    set_field,
    told_fields,
    unit_notices,
)
from domain.definitions import MODELS, fields_of
from domain.errors import Refused
from domain.queues import QueueSpec

SAID = {
    "queue": (
        "priority=40", "picker=fairshare", "limits.user_slots=10", "hosts=h1+2 others",
        "fairshare.shares=ann=10 staff=5(bob=1 eve=2)", "slot_reserve_us=1h30m",
        "job_limits_max.memory_kib=2GB", "thresholds=r1m=0.7/2 mem=2GB/500MB pg=/20",
        "run_windows=08:00-18:00", "exits.success=1 2", "resreq=select[mem>5]", "on_load=requeue",
        "users=all ~eve", "preemptible_by=urgent",
    ),
    "user": ("slots_max=20", "description=5"),
    "group": ("members=alice bob", "jobs_max=7"),
    "project": ("groups=g1 g2", "slots=5", "is_open=false"),
    "limit": ("users=each all ~root", "slots=8", "mem=2GB", "swp=50%", "tasks=1.5/processor"),
    "profile": ("resreq=rusage[mem=5]", "resreq_mark=fixed", "run_limit_us=1h"),
    "resource": ("scope=host", "is_consumable=true"),
    "host": ("thresholds=r1m=4/8", "dispatch_windows=18:00-08:00", "is_locked=true"),
    "cluster": (
        "name=c", "default_queue=q", "picker=easy", "allocators=parjob fill",
        "session_interval_us=0", "session_max_decisions=9", "clean_period_us=1h", "forget_batch=1",
        "key_retention_us=1d", "snapshot_every_events=5", "default_host_type=any",
        "memory_unit=MB", "reserve_per_task=false", "preemption.relation=either",
        "preemption.job_types=exclusive backfill",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", MODELS)
def test_every_field_of_every_kind_says_what_it_is_for(kind):
    """
    Help that leaves a field out, or leaves it unexplained, sends people to the source.
    """
    unexplained = [field.name for field in fields_of(kind) if not field.meaning]

    assert [] == unexplained


def test_a_new_field_of_a_queue_is_in_the_help_by_itself():
    """
    Fields are read off the model; only what is worked out from another one isn't said.
    """
    outer = {field.name.split(".")[0] for field in fields_of("queue")}

    assert {"requirement", "stop_when", "resume_when"} == set(QueueSpec.model_fields) - outer


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_shown_of_a_definition_can_be_said_again(kind):
    """
    The texts of `xce definitions` are those of `xce define`: shown and said, it is the same.
    """
    name = {"name": "n"} if kind == "resource" else {}
    said = definition_of(kind, name, SAID[kind])
    spec = MODELS[kind].model_validate_json(json.dumps(said))
    shown = [f"{field}={text}" for field, text in told_fields(spec) if text]

    again = definition_of(kind, name, tuple(shown))

    assert set(SAID[kind]) <= set(shown)
    assert spec == MODELS[kind].model_validate_json(json.dumps(again))


@pytest.mark.parametrize(
    ("text", "field"),
    [("slot_reserve_us=1x", "slot_reserve_us"), ("job_limits_max.memory_kib=2XB", "memory_kib"),
     ("run_windows=25:00-26:00", "run_windows"), ("hosts=!", "hosts"),
     ("thresholds=r1m", "thresholds")],
)  # fmt: skip
def test_a_value_that_isnt_understood_is_refused_by_its_field(text, field):
    """
    Before anybody is asked.
    """
    with pytest.raises(Refused) as caught:
        definition_of("queue", {}, (text,))

    assert caught.value.field.startswith(field)


@pytest.mark.parametrize(
    ("kind", "text", "hint"),
    [("queue", "prio=40", "Did you mean priority or "), ("user", "slot_max=4", "slots_max"),
     ("cluster", "pickr=easy", "Did you mean picker?"), ("queue", "fair=1", "fairshare."),
     ("queue", "prio=", "Did you mean priority or "),
     ("host", "zzz=1", "xce define host --help names them.")],
)  # fmt: skip
def test_a_field_that_isnt_there_is_refused_with_the_one_that_was_meant(kind, text, hint):
    """
    Whoever mistyped the priority of a new queue was told only that it must be given.
    """
    with pytest.raises(Refused) as caught:
        definition_of(kind, {}, (text,))

    told = caught.value.hint or ""
    assert text.partition("=")[0] == caught.value.field
    assert hint in told
    assert "requirement" not in told
    assert "stop_when" not in told


@pytest.mark.parametrize(
    ("text", "field"), [("users=each", "users"), ("hosts=each ", "hosts"), ("slots=-5", "slots"),
                        ("mem=much", "mem")],
)  # fmt: skip
def test_what_of_a_limit_isnt_understood_is_told_by_its_name(text, field):
    """
    A limit of "each" was one of a user of that name.
    """
    with pytest.raises(Refused) as caught:
        definition_of("limit", {}, (text,))

    assert field == caught.value.field


def test_windows_of_another_time_zone_are_shown_with_it():
    """
    Else they would be said again as those of UTC.
    """
    zoned = '{"windows": [{"begin_minute": 60, "end_minute": 90}], "zone": "Europe/Berlin"}'
    said = definition_of("queue", {"priority": 1}, (f"run_windows={zoned}",))
    spec = QueueSpec.model_validate_json(json.dumps(said))
    shown = dict(told_fields(spec))["run_windows"]

    again = definition_of("queue", {"priority": 1}, (f"run_windows={shown}",))

    assert spec == QueueSpec.model_validate_json(json.dumps(again))


def test_nothing_after_the_sign_takes_a_value_inside_another_away():
    """
    Else a bound of a queue could be set and never be taken away again.
    """
    spec = {"limits": {"slots": 5, "jobs": 3}}

    set_field(QueueSpec, spec, "limits.slots", "")

    assert {"limits": {"jobs": 3}} == spec


def test_a_number_is_taken_away_by_none_too():
    """
    None is what a definition shows of nothing.
    """
    spec = {"limits": {"slots": 5, "jobs": 3}, "run_limit_max_us": 60_000_000}

    set_field(QueueSpec, spec, "limits.slots", "none")
    set_field(QueueSpec, spec, "run_limit_max_us", "none")

    assert {"limits": {"jobs": 3}} == spec


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, field.name) for kind in MODELS for field in fields_of(kind)
        if not field.default and not field.is_needed and field.shape != "amounts"
    ],
)  # fmt: skip
def test_every_field_that_shows_none_takes_none(kind, name):
    """
    What is shown can be typed back; hosts=none was a list of one host of that name.
    """
    before = {"name": "n"} if kind == "resource" else {}
    before |= {"priority": 5} if kind == "queue" else {}

    after = definition_of(kind, before, (f"{name}=none",))

    if kind in ("cluster", "limit"):
        assert before == {key: value for key, value in after.items() if value}
    else:
        assert [] == changes_of(kind, before or {"description": ""}, after)


@pytest.mark.parametrize(
    ("kind", "said"),
    [("queue", "hosts=h1"), ("queue", "description=a b"), ("queue", "run_windows=8:00-9:00"),
     ("queue", "fairshare.shares=ann=1"), ("queue", "thresholds=r1m=1/2"), ("queue", "picker=easy"),
     ("limit", "slots=5"), ("limit", "users=each all"), ("profile", "resreq=mem"),
     ("queue", "limits.slots=4"), ("project", "users=ann bob")],
)  # fmt: skip
def test_none_takes_away_what_was_said(kind, said):
    """
    Of every shape: it is as if it had never been said.
    """
    before = definition_of(kind, {}, (said,))
    name = said.partition("=")[0]

    after = definition_of(kind, before, (f"{name}=none",))

    left = [value for value in after.values() if value not in (None, [], {}, {"shares": []})]
    assert before
    assert [] == left


def test_a_thing_called_none_is_told_apart_from_nothing():
    """
    Only older definitions name one; taking it away was a change from none to none.
    """
    before = {"priority": 5, "hosts": {"entries": [{"name": "none"}]}}
    after = definition_of("queue", before, ("hosts=none",))

    assert ['hosts: "none" -> none'] == [one.words() for one in changes_of("queue", before, after)]
    assert [] == changes_of("queue", after, definition_of("queue", after, ("hosts=none",)))


def test_a_name_that_must_be_there_may_be_none():
    """
    There is no absence that it could mean.
    """
    assert {"default_queue": "none"} == definition_of("cluster", {}, ("default_queue=none",))


@pytest.mark.parametrize(
    ("text", "words"),
    [("run_limit_max_us=90", "is in microseconds, so this is 90us"),
     ("queue.night.slot_reserve_us=3600000000", "so this is 1h"),
     ("job_limits_max.memory_kib=2048", "is in KiB, so this is 2MB")],
)  # fmt: skip
def test_a_number_without_a_unit_is_told_what_it_was_taken_for(text, words):
    """
    A run limit of 90 was one of 90 microseconds, and nobody said so.
    """
    (told,) = unit_notices([text]).values()

    assert words in told


@pytest.mark.parametrize("text", ["run_limit_max_us=90s", "run_limit_max_us=0", "priority=90",
                                  "run_limit_max_us=", "memory_kib=2GB"])  # fmt: skip
def test_a_number_that_leaves_nothing_open_is_not_told_of(text):
    """
    Else people would learn not to read it.
    """
    assert {} == unit_notices([text])


def test_what_of_a_definition_changes_is_told_as_it_was_and_is():
    """
    In the texts that define it; nothing is told of what stays.
    """
    before = {"priority": 5, "run_limit_max_us": 90, "limits": {"slots": 3, "jobs": 1}}
    texts = ("priority=5", "run_limit_max_us=1h30m", "limits.slots=", "hosts=h1")
    after = definition_of("queue", before, texts)

    assert [
        "run_limit_max_us: 90us -> 1h30m", "limits.slots: 3 -> none", "hosts: none -> h1",
    ] == [one.words() for one in changes_of("queue", before, after)]  # fmt: skip
    assert [] == changes_of("queue", after, after)


def test_of_a_new_definition_what_differs_from_the_defaults_is_told():
    """
    Its other fields are as nobody said them.
    """
    after = definition_of("queue", {}, ("priority=5", "on_preempt=suspend"))

    assert [("priority", "5")] == [(one.field, one.new) for one in changes_of("queue", {}, after)]

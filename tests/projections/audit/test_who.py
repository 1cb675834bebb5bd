"""
Who did what, to what, when, and what it changed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.arrays import ArraySpec
from domain.event import Value
from domain.events.groups import GroupDefined
from domain.events.jobs import JobHeld, JobKillRequested
from domain.events.projects import ProjectDefined
from domain.events.queues import QueueClosed, QueueDefined
from domain.events.refusals import AccessDenied, CommandRefused, ReportIgnored
from domain.events.workers import WorkerClosed
from domain.fairshare import Fairshare, parse_shares
from domain.groups import GroupSpec
from domain.jobs import ExitRules, JobLimits, JobSpec, Program
from domain.limits import Basis, LimitAmount
from domain.name_lists import parse_names
from domain.projects import ProjectSpec
from domain.queues import QueueSpec
from domain.thresholds import parse_thresholds
from domain.windows import parse_windows
from projections.audit import fields, job_words
from projections.audit.reading import Reading
from projections.audit.schema import tables
from projections.audit.who import Question, change_words, commands, is_removal, told_changes
from tests.projections.audit.logs import a_cluster
from tests.projections.audit.making import made

SLOTS_8 = {"resource": "slots", "milli": 8000, "basis": "absolute"}
JOBS_2 = {"resource": "jobs", "milli": 2000, "basis": "absolute"}


@pytest.fixture
def reading(tmp_path: Path):
    """
    Return the tables of what four people did.
    """
    log = a_cluster()
    job = log.job(1, user="ann")
    log.add(job, JobHeld(), "ann")
    log.add("queue:normal", QueueDefined(spec=QueueSpec(priority=40)), "zoe")
    log.add("queue:normal", QueueClosed(), "ben")
    log.add(
        "refusals",
        CommandRefused(command="KillJob", subject="1", field="job_id", rule="is ann's"),
        "ben",
    )
    log.add("refusals", AccessDenied(action="close worker", subject="h1"), "eve")
    log.add(
        "refusals", ReportIgnored(report="usage", worker="h1", incarnation=1, why="stale"), "root"
    )
    log.add("worker:h1", WorkerClosed(why="disk"), "ben")
    log.add(job, JobKillRequested(), "ann")
    with made(tmp_path / "a.db", log.envelopes) as opened:
        yield opened


def told(reading: Reading, **asked: object) -> list[tuple[str, str, str, str]]:
    """
    Return who, command, object and outcome of the commands asked for.
    """
    found = commands(reading, Question(**asked))
    return [(one["actor"], one["command"], one["object"], one["outcome"]) for one in found]


def test_by_user(reading: Reading) -> None:
    """
    Everything that one user did or tried.
    """
    assert [
        ("ben", "close queue", "normal", "done"),
        ("ben", "kill job", "1", "refused"),
        ("ben", "close worker", "h1", "done"),
    ] == told(reading, user="ben")


def test_by_object(reading: Reading) -> None:
    """
    Everything that was done to one thing, or tried.
    """
    assert [
        ("ann", "submit job", "1", "done"),
        ("ann", "hold job", "1", "done"),
        ("ben", "kill job", "1", "refused"),
        ("ann", "kill job", "1", "done"),
    ] == told(reading, about="1")


def test_refused_and_denied_alone(reading: Reading) -> None:
    """
    A worker's stale report is no command of a user.
    """
    assert [("ben", "kill job", "1", "refused"), ("eve", "close worker", "h1", "denied")] == told(
        reading, only_refused=True
    )


def test_submissions_are_left_out_on_request_and_the_latest_come_last(reading: Reading) -> None:
    """
    On most logs they are nearly everything.
    """
    found = told(reading, without_submissions=True)

    assert ("ann", "submit job", "1", "done") not in found
    assert [("ben", "close worker", "h1", "done"), ("ann", "kill job", "1", "done")] == told(
        reading, limit=2
    )


def test_a_command_comes_with_what_it_changed(reading: Reading) -> None:
    """
    Old and new, as values and in words.
    """
    found = commands(reading, Question(user="zoe"))[0]["changes"]

    assert [{"field": "priority", "old": 30, "new": 40}] == found
    assert "priority: 30 -> 40" == change_words(found[0])


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (QueueSpec(priority=1, hosts=parse_names("h1! h2+3 all ~h4")), "hosts = h1! h2+3 all ~h4"),
        (GroupSpec(members=("ann", "ben")), "members = ann ben"),
        (GroupSpec(members=("ann",), slots_max=3), "slots_max = 3"),
        (QueueSpec(priority=1, slot_reserve_us=5_400_000_000), "slot_reserve_us = 1h30m"),
        (
            QueueSpec(
                priority=1,
                fairshare=Fairshare(shares=tuple(parse_shares("ann=10 staff=5(bob=1 eve=2)"))),
            ),
            "fairshare.shares = ann=10 staff=5(bob=1 eve=2)",
        ),
        (QueueSpec(priority=1, exits=ExitRules(success=(1, 2))), "exits.success = 1 2"),
        (
            QueueSpec(priority=1, thresholds=parse_thresholds("mem=2GB/500MB r1m=4")),
            "thresholds = mem=2GB/500MB r1m=4",
        ),
        (
            QueueSpec(priority=1, run_windows=parse_windows("8:00-18:00")),
            "run_windows = 08:00-18:00",
        ),
        (
            ProjectSpec(quotas=(
                LimitAmount(resource="slots", milli=6000),
                LimitAmount(resource="mem", milli=50_000, basis=Basis.PERCENT),
                LimitAmount(resource="gpu", milli=500, basis=Basis.PER_PROCESSOR),
            )),
            "quotas = slots=6 mem=50% gpu=0.5/processor",
        ),
        (
            ProjectSpec(quotas=(
                LimitAmount(resource="swp", milli=2_097_152_000),
                LimitAmount(resource="mem", milli=1000, basis=Basis.PER_PROCESSOR),
            )),
            "quotas = swp=2GB mem=1/processor",
        ),
    ],
)  # fmt: skip
def test_a_definition_is_told_as_it_was_written(tmp_path: Path, spec: Value, words: str) -> None:
    """
    Nobody who defined a list of names reads its JSON.
    """
    defined = {QueueSpec: QueueDefined, GroupSpec: GroupDefined, ProjectSpec: ProjectDefined}
    log = a_cluster()
    log.add("queue:x", defined[type(spec)](spec=spec), "zoe")

    with made(tmp_path / "b.db", log.envelopes) as opened:
        found = commands(opened, Question(user="zoe"))[0]["changes"]

    assert words in [change_words(one) for one in found]


@pytest.mark.parametrize(
    ("kind", "changes", "is_new", "words"),
    [
        ("job", [("run_limit_us", None, 5_400_000_000)], False, ["run limit (-W): none -> 1h30m"]),
        ("job", [("resreq", [], ["rusage[mem=5]"])], False,
         ["requirement (-R): none -> rusage[mem=5]"]),
        ("job", [("needs", [], [{"resource": "mem"}]), ("requirement.x", 1, 2)], False, []),
        ("job", [("dependency", "", "done(1)")], False, ["dependency (-w): none -> done(1)"]),
        ("queue", [("hosts", None, "h1")], True, ["hosts = h1"]),
        ("queue", [("hosts", None, "h1")], False, ["hosts: none -> h1"]),
        ("queue", [("hosts", None, "h1"), ("priority", 30, 40)], False,
         ["hosts: none -> h1", "priority: 30 -> 40"]),
        ("queue", [("run_limit_max_us", 90, None)], False, ["run_limit_max_us: 90us -> none"]),
        ("queue", [("picker", None, ""), ("is_backfill", None, False)], True, []),
        ("queue", [("nice", None, 0), ("on_load", None, "suspend")], True, []),
        ("queue", [("nice", 5, 0)], False, ["nice: 5 -> 0"]),
        ("queue", [("limits.jobs", None, 0)], True, ["limits.jobs = 0"]),
        ("queue", [("resreq", [], ["a"]), ("requirement.x", None, 2)], False,
         ["resreq: none -> a"]),
        ("queue", [("fairshare.history_us", None, 18_000_000_000),
                   ("fairshare.cpu_time_factor_milli", None, 5)], True,
         ["fairshare.cpu_time_factor_milli = 5"]),
        ("limit", [("amounts", [SLOTS_8], [SLOTS_8, JOBS_2])], False, ["jobs: none -> 2"]),
        ("limit", [("amounts", None, [SLOTS_8, JOBS_2])], True, ["slots = 8", "jobs = 2"]),
        ("limit", [("users.is_each", None, True), ("users.names.entries", None, ["ann"])], True,
         ["users = each ann"]),
        ("limit", [("users.is_each", True, False), ("users.names.entries", ["ann"], ["eve"])],
         False, ["users: each ann -> eve"]),
        ("worker", [("settings.is_locked", None, True)], True, ["is_locked: none -> true"]),
        ("worker", [("resources.mem", None, 2_097_152_000), ("resources.gpu", None, 500)], True,
         ["mem = 2GB", "gpu = 0.5"]),
    ],
)  # fmt: skip
def test_changes_are_told_in_the_words_that_make_them(
    kind: str, changes: list[tuple[str, object, object]], words: list[str], *, is_new: bool
) -> None:
    """
    Options of jobs, fields of definitions; what is worked out from others isn't told, nor of what
    is new what holds when nobody says it.
    """
    told = [dict(zip(("field", "old", "new"), one, strict=True)) for one in changes]

    assert words == told_changes(told, kind, is_new=is_new)
    assert [] == told_changes(told, kind, is_new=False, is_removal=is_removal(f"remove {kind}"))


def test_a_field_that_was_empty_is_told_with_its_old_value(tmp_path: Path) -> None:
    """
    What is new has no old value; what had none is changed, from none to what it has.
    """
    log = a_cluster()
    log.add("queue:x", QueueDefined(spec=QueueSpec(priority=1)), "zoe")
    log.add("queue:x", QueueDefined(spec=QueueSpec(priority=1, tasks_max=4)), "zoe")

    with made(tmp_path / "b.db", log.envelopes) as opened:
        found = commands(opened, Question(user="zoe"))

    assert [["priority = 1"], ["tasks_max: none -> 4"]] == [
        told_changes(one["changes"], "queue", is_new=one["is_new"]) for one in found
    ]


def test_what_people_call_a_field_is_said_of_fields_that_there_are() -> None:
    """
    A field that was renamed, or is new, would be told by its raw name.
    """
    inner = {
        f"{name}.{part}"
        for name, model in (
            ("array", ArraySpec), ("exits", ExitRules), ("limits", JobLimits), ("program", Program),
        )
        for part in model.model_fields
    }  # fmt: skip
    columns = {column.name for column in tables()["jobs"].columns}
    words = set(job_words.job_fields())

    assert {*JobSpec.model_fields, *inner, "job_id", "place"} == words
    assert set() == set(fields._MADE) - words - columns
    assert set(job_words.aliases()) <= columns | {"started_max"}
    assert set(job_words.aliases().values()) <= words


def test_moments_of_a_job_are_told_as_such() -> None:
    """
    They end in the unit of durations, and were told as so many days.
    """
    change = {"field": "begin_us", "old": None, "new": 1_000_000}

    assert ["not before (-b): none -> 1970-01-01T00:00:01Z"] == told_changes(
        [change], "job", is_new=False
    )


def test_by_positions(reading: Reading) -> None:
    """
    A period is asked for by positions; times are turned into them.
    """
    everything = [one["position"] for one in commands(reading, Question())]

    some = commands(reading, Question(first_position=everything[2], last_position=everything[4]))

    assert everything[2:5] == [one["position"] for one in some]


def test_the_index_of_actors_is_used(reading: Reading) -> None:
    """
    On a log of millions of events, one user's commands must not take a scan of all of them.
    """
    plan = " ".join(
        str(row)
        for row in reading.table("EXPLAIN QUERY PLAN SELECT * FROM commands WHERE actor = 'ann'")[1]
    )

    assert "events_by_actor_position" in plan

"""
Definitions on the command line: how they are said, and a live cluster that keeps to them.
"""

from __future__ import annotations

import json

import pytest

from domain.definition_texts import definition_of
from domain.errors import Refused
from domain.limits import LimitSpec
from domain.projects import ProjectSpec
from domain.queues import QueueSpec
from domain.workers import HostSettings
from tests.tools import cli_harness as harness


def test_a_limit_is_said_by_scopes_and_resources():
    """
    What isn't a scope is a resource with its amount.
    """
    texts = ("users=each all ~root", "slots=8", "mem=2GB", "hosts=each all", "swp=50%",
             "tasks=1.5/processor", "windows=8:00-18:00")
    spec = LimitSpec.model_validate_json(json.dumps(definition_of("limit", {}, texts)))

    assert spec.users is not None
    assert (True, "all ~root") == (spec.users.is_each, spec.users.names.text())
    told = [(each.resource, each.milli, each.basis.value) for each in spec.amounts]
    assert [
        ("slots", 8_000, "absolute"),
        ("mem", 2 * 1024 * 1024 * 1000, "absolute"),
        ("swp", 50_000, "percent"),
        ("tasks", 1_500, "per_processor"),
    ] == told


def test_what_isnt_said_stays_and_nothing_takes_it_away():
    """
    A definition is changed field by field, amount by amount.
    """
    first = definition_of("limit", {}, ("users=u1", "slots=8", "jobs=2"))
    second = definition_of("limit", first, ("users=", "slots=", "jobs=3"))

    spec = LimitSpec.model_validate_json(json.dumps(second))
    assert spec.users is None
    assert [("jobs", 3_000)] == [(each.resource, each.milli) for each in spec.amounts]


def test_fields_of_other_kinds_are_values_or_texts():
    """
    A dot reaches inside.
    """
    queue = definition_of(
        "queue", {}, ("priority=40", "limits.user_slots=10", "hosts=h1+2 others", "project=7")
    )
    spec = QueueSpec.model_validate_json(json.dumps(queue))
    assert (40, "7", 10) == (spec.priority, spec.project, spec.limits.user_slots)

    project = definition_of("project", {}, ("groups=g1 g2", "slots=5", "is_open=false"))
    assert ("g1", "g2") == ProjectSpec.model_validate_json(json.dumps(project)).groups


def test_load_thresholds_are_said_as_lsf_says_them():
    """
    Where nothing starts, then where jobs are stopped; memory has units, aliases stay for whoever
    knows what they mean.
    """
    texts = ("thresholds=cpu=0.7/2.0 mem=2GB/500 pg=/20 it=5",)
    host = HostSettings.model_validate_json(json.dumps(definition_of("host", {}, texts)))
    mb_milli = 1024 * 1000

    assert [
        ("cpu", 700, 2_000),
        ("mem", 2 * 1024 * mb_milli, 500 * mb_milli),
        ("pg", None, 20_000),
        ("it", 5_000, None),
    ] == [(each.index, each.sched_milli, each.stop_milli) for each in host.thresholds]
    assert [] == definition_of("host", json.loads(host.model_dump_json()), ("thresholds=",)).get(
        "thresholds", []
    )


@pytest.mark.parametrize("text", ["r1m", "r1m=", "r1m=/", "r1m=much", "9=1", "mem=1XB"])
def test_a_load_threshold_that_isnt_understood_is_refused(text):
    """
    The error names the field.
    """
    with pytest.raises(Refused) as caught:
        definition_of("queue", {}, (f"thresholds={text}",))
    assert "thresholds" == caught.value.field


@pytest.mark.parametrize("levels", [51, 900, 20_000])
@pytest.mark.parametrize("end", [("[", "]"), ('{"a":', "}")])
def test_json_of_more_levels_than_any_value_is_refused(levels, end):
    """
    It ended as a fault of the program: in reading it, or wherever else a level costs a call.
    """
    text = end[0] * levels + "1" + end[1] * levels

    fields = (("resource", "totals"), ("queue", "thresholds"), ("host", "dispatch_windows"))
    for kind, field in fields:
        with pytest.raises(Refused) as caught:
            definition_of(kind, {}, (f"{field}={text}",))
        assert field == caught.value.field
        assert caught.value.rule.startswith("must be JSON of at most 50 levels")
    with pytest.raises(Refused):
        definition_of("resource", {}, ("totals=" + "[" * 20_000,))
    text = end[0] * 50 + "1" + end[1] * 50
    assert json.loads(text) == definition_of("resource", {}, (f"totals={text}",))["totals"]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("usres=ann", "usres is taken for a resource. Did you mean users?"),
        ("lic=many", "lic is taken for a resource; xce define limit --help names the fields."),
        ("slots=1/procesor", "An amount of slots is 4, 50% or 2/processor."),
        ("jobs=many", "An amount of jobs is 4, 50% or 2/processor."),
        ("mem=1/procesor", "An amount of mem is 4, 2GB, 50% or 2/processor."),
    ],
)
def test_a_mistyped_field_of_a_limit_is_told_from_an_amount(text, hint):
    """
    Whatever is no field is a resource, and only a number can be its amount.
    """
    with pytest.raises(Refused) as caught:
        definition_of("limit", {}, (text,))

    assert hint == caught.value.hint


@pytest.mark.parametrize("text", ["slots", "=3", "slots=many", "mem=5XB"])
def test_what_isnt_understood_is_refused(text):
    """
    One clear error, before anybody is asked.
    """
    with pytest.raises(Refused):
        definition_of("limit", {}, (text,))


@pytest.mark.slow
def test_a_live_cluster_keeps_to_a_limit_until_it_is_removed(tmp_path):
    """
    The second job waits, is told why, and starts without the limit.
    """
    with harness.cluster(tmp_path, "--workers", "1", "--slots", "2") as live:
        live.run("define", "limit", "l1", "users=each all", "jobs=1")
        live.run("define", "profile", "app", "resreq=rusage[mem=1]", "run_limit_us=60000000")
        first = live.submit("--app", "app", "--", harness.program("sleep"), "600")
        second = live.submit("--", harness.program("sleep"), "600")
        live.wait_state(first, "RUN")

        effective = live.job(first)["effective"]
        limits = json.loads(live.run("limits", "--json").stdout)["limits"]
        why = live.run("why", second).stdout
        refused = live.run("define", "limit", "l2", "licences=1")

        assert [{"resource": "mem", "milli": 1_024_000, "per": "host"}] == effective["reserves"]
        assert 60_000_000 == effective["run_limit_us"]
        assert effective["charged"][0].startswith("l1:jobs of ")
        assert [("l1", "jobs", 1_000, 1_000)] == [
            (each["limit"], each["resource"], each["used_milli"], each["most_milli"])
            for each in limits
        ]
        assert "limit of jobs is reached (l1)" in why
        assert 2 == refused.returncode
        assert "amounts" in refused.stderr

        assert "The limit l1 is changed.\n  jobs: 1 -> 2\n" == live.run(
            "define", "limit", "l1", "jobs=2"
        ).stdout
        assert "Nothing changed: the limit l1 is so already.\n" == live.run(
            "define", "limit", "l1", "jobs=2"
        ).stdout
        odd = live.run("define", "queue", "odd", "priority=1", "run_limit_max_us=90")
        assert "  priority = 1\n  run_limit_max_us = 90us\n" in odd.stdout
        assert "Note: run_limit_max_us: a number without a unit is in microseconds" in odd.stderr
        live.run("define", "limit", "l1", "jobs=1")

        live.run("remove", "limit", "l1")
        live.wait_state(second, "RUN")
        live.run("kill", first, second)
        empty = live.run("define", "limit", "l2")
        assert 2 == empty.returncode
        assert "xce define limit l2 slots=8." in empty.stderr
        host = json.loads(live.run("hosts", "--json").stdout)["hosts"][0]["host"]
        live.run("define", "host", host, "thresholds=mem=900TB")
        third = live.submit("--", harness.program("true"))
        assert "load index mem is beyond its threshold" in live.run("why", third).stdout
        shown = live.run("hosts").stdout
        assert "busy" in shown
        assert "load beyond its threshold: mem" in shown
        live.run("define", "host", host, "thresholds=")
        live.wait_state(third, "DONE")

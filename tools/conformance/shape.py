"""
Which fields a vector of each kind may have: one that nobody reads is an error of the file, told by
its name, because a vector that was run without a part of it would pass for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from domain.job_states import JobState
from tools.conformance.account import DURATIONS, TIMES
from tools.conformance.actions import check_steps
from tools.conformance.brief import FIELDS as BRIEF
from tools.conformance.core_setup import SAME_IN_JOB
from tools.conformance.names import KNOWN
from tools.conformance.record_types import TYPES
from tools.conformance.schedule import JOB_FIELDS
from tools.conformance.values import (
    Fields,
    Malformed,
    Vector,
    mapping_of,
    mappings_of,
    text_of,
)

ABOUT: Final = frozenset(
    {"id", "kind", "topic", "title", "note", "why", "source", "confidence", "expect", "comment"}
)
"""Fields that say what a vector is, and what is expected of it."""

_SETTING: Final = {"cluster", "queues", "users", "limits", "params", "jobs", "running", "suspended",
                   "ended", "app", "apps", "steps", "hosts", "user_groups", "groups",
                   "usergroups", "host_groups", "actions"}  # fmt: skip

FIELDS: Final[dict[str, frozenset[str]]] = {
    "parse": frozenset({"R", "n", "M", "C", "S", "J", "w", "of", "unit", "given", "params"}),
    "select": frozenset(
        {"R", "m", "cluster", "given", "job", "submit_type", "params", *SAME_IN_JOB}
    ),
    "merge": frozenset({"queue", "app", "job", "resrsv_limit", "RESRSV_LIMIT", "given"}),
    "schedule": frozenset({*_SETTING, *JOB_FIELDS, "clock", "causes", "free"}),
    "control": frozenset(
        {*_SETTING, *JOB_FIELDS, *BRIEF, "state", "from", "host", "given", "of",
         "expect_elements", "queue", "term", "exitInfo"}
    ),
    "account": frozenset(
        {"host", "reported", "jobs", "request", "R", *TIMES, *DURATIONS, "reserved", "mem",
         "rusage", "steps", "decay", "params", "shares", "cpu_h", "run_h", "hist_run_h",
         "committed_h", "slots", "usage_h", "age_h", "HIST_HOURS", "tolerance"}
    ),
    "format": frozenset(
        {*TYPES, "fields", "short_eventfile", "jStatus", "exitStatus", "exitInfo", "term", "given"}
    ),
}  # fmt: skip
"""What else the vectors and cases of each kind may have."""

EXPECTATIONS: Final[dict[str, frozenset[str]]] = {
    "select": frozenset({"selected", "reject"}),
    "merge": frozenset(
        {"rusage_alternatives", "rusage_phases", "effective", "tree", "operand_order_free",
         "reject", "select", "order", "rusage", "span", "same", "normal"}
    ),
}  # fmt: skip
"""What may be expected, where the code of the kind doesn't say so itself."""


TEXTS: Final = frozenset({"parse", "select", "merge", "control"})
"""Kinds in which nothing else is looked at when a refusal is expected."""

OF_REFUSALS: Final = frozenset(
    {"error", "reason", "why", "note", "message", "warning", "queue", "field", "rule", "states"}
)
"""What may be said of a refusal."""


def check_shape(vector: Vector) -> None:
    """
    Do nothing, or name what of a vector nobody would look at.

    Raises:
        Malformed: It has a field that isn't known.
    """
    known = FIELDS.get(vector.kind)
    if known is None:
        return
    fields = vector.fields
    _only({**fields, "cases": None, "input": None, KNOWN: None}, known | ABOUT, "vector")
    _only(mapping_of(fields.get("input")), known | ABOUT, "input")
    for number, case in enumerate(mappings_of(fields.get("cases")), 1):
        _only(case, known | ABOUT, f"case {number}")
    for holder in (fields, *mappings_of(fields.get("cases"))):
        check_steps(holder)
        if vector.kind in {"schedule", "control", "select"}:
            _check_names({**fields, **holder})
            _check_times(holder)
        expect = holder.get("expect")
        if isinstance(expect, dict) and vector.kind in EXPECTATIONS:
            _only(expect, EXPECTATIONS[vector.kind], "expect", is_strict=True)
        if isinstance(expect, dict) and expect.get("reject") is True and vector.kind in TEXTS:
            _only(expect, {"reject", *OF_REFUSALS}, "expect of a refusal", is_strict=True)


NAMED: Final = {
    "hosts": "name", "shared": "name", "queues": "name", "users": "name", "apps": "name",
    "limits": "NAME",
}  # fmt: skip
"""What may be told once by the same name, beside jobs."""

JOBS: Final = ("running", "suspended", "jobs")


def _check_names(case: Fields) -> None:
    """
    Do nothing, or name what a case tells twice: the first would be lost unseen.

    Raises:
        Malformed: There is something.
    """
    cluster = case.get("cluster")
    places = {**case, **(mapping_of(cluster) if isinstance(cluster, Mapping) else {})}
    told = [(field, _names_in(places.get(field), name)) for field, name in NAMED.items()]
    told.append(("jobs", [name for field in JOBS for name in _names_in(case.get(field), "id")]))
    for field, names in told:
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise Malformed(f"{', '.join(twice)} is there twice in {field}")


def _names_in(value: object, name: str) -> list[str]:
    listed = value if isinstance(value, list) else []
    found = [each.get(name) if isinstance(each, Mapping) else each for each in listed]
    return [text_of(each) for each in found if each is not None]


def _check_times(holder: Fields) -> None:
    """
    Do nothing, or name a step or action that goes back to an earlier minute.

    Raises:
        Malformed: There is one.
    """
    for field in ("steps", "actions"):
        last = 0
        for number, each in enumerate(mappings_of(holder.get(field)), 1):
            at = each.get("at")
            if isinstance(at, int) and at < last:
                raise Malformed(f"{field.rstrip('s')} {number} goes back to minute {at}")
            last = at if isinstance(at, int) else last


def check_claims(vector: Vector) -> None:
    """
    Do nothing, or say that a vector or one of its cases expects nothing: it would always pass.

    Raises:
        Malformed: There is one.
    """
    fields = vector.fields
    holders = mappings_of(fields.get("cases")) or [mapping_of(fields.get("input"))]
    for number, case in enumerate(holders, 1):
        merged = {**fields, **case}
        lists = (mappings_of(merged.get(name)) for name in ("steps", "actions"))
        places = [merged, *(each for found in lists for each in found)]
        expected = [each.get(name) for each in places for name in _EXPECTED]
        # The state that a job comes to, and amounts by minute, are expected where they stand.
        is_told = merged.get("to") in STATES or any(
            isinstance(merged.get(name), Mapping) for name in TIMES
        )
        if not is_told and all(each is None or each == {} for each in expected):
            label = f"case {number}" if fields.get("cases") else "the vector"
            raise Malformed(f"{label} expects nothing")


_EXPECTED: Final = ("expect", "expect_elements")
STATES: Final = frozenset(JobState)


def _only(fields: Fields, known: Iterable[str], what: str, *, is_strict: bool = False) -> None:
    # A title with a comma in it leaves keys without a value; they say nothing.
    unknown = sorted(
        str(name) for name in set(fields).difference(known) if is_strict or fields[name] is not None
    )
    if unknown:
        raise Malformed(f"nothing is known of {', '.join(unknown)} in a {what}")

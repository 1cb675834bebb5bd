"""
Many more vectors, derived from the rules and not from the shared cases; and the proof that what a
vector expects is looked at.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import pytest

from tools.conformance.names import names_used
from tools.conformance.values import Vector
from tools.conformance.vectors import KINDS, load, run_all, run_one

HERE = Path(__file__).parent
VECTORS = [vector for file in sorted(HERE.glob("more_*_vectors.yaml")) for vector in load(file)]
KNOWN = names_used(VECTORS)

BROKEN = 100
"""So many expectations are broken, each in a run of its own."""

NO_CLAIM = frozenset(
    {"any", "reject", "operand_order_free", "all_accept", "vendor", "alloc_vendor"}
)
"""Expectations that another value makes weaker or differently understood, not wrong."""


@pytest.mark.parametrize("outcome", list(run_all(VECTORS)), ids=lambda outcome: outcome.vector.id)
def test_the_rules_hold_beyond_the_shared_cases(outcome):
    """
    Other counts, names, units and sizes, and rules together: a core that only knows the shared
    cases fails here.
    """
    assert [] == outcome.differences
    assert not outcome.left_out


def test_each_kind_has_vectors():
    """
    A kind without one could be broken unseen.
    """
    assert set(KINDS) == {vector.kind for vector in VECTORS}


def test_a_vector_with_a_broken_expectation_fails():
    """
    None passes because nobody looks at what it expects: each single value, changed, is a failure.
    """
    places = [
        (vector, place)
        for vector in VECTORS
        for place in _expected_in(vector.fields)
        if not NO_CLAIM.intersection(place)
    ]
    unseen = []
    for vector, place in random.Random(1).sample(places, BROKEN):
        fields = deepcopy(dict(vector.fields))
        _break(fields, place)
        outcome = run_one(Vector(vector.id, vector.kind, vector.title, {**fields, **KNOWN}))
        if not outcome.differences:
            unseen.append((vector.id, place))

    assert [] == unseen


UNKNOWN = {
    "schedule": {"jobs": [{"id": "J", "colour": 1}], "expect": {"dispatch": {"J": {"h1": 1}}}},
    "control": {"jobs": [{"id": "J"}], "actions": [{"colour": "J"}], "expect": {"states": {}}},
    "format": {"exitStatus": 0, "colour": 1, "expect": {"code": 0}},
    "parse": {"R": "mem>1", "expect": {"colour": "red"}},
    "merge": {"job": "mem>1", "expect": {"colour": "red"}},
    "select": {"cluster": {"hosts": [{"name": "h1"}]}, "R": "mem>1", "expect": {"colour": "red"}},
    "account": {"host": {"maxmem": 9}, "reported": 5, "jobs": [], "expect": {"colour": "red"}},
    "dance": {"expect": {}},
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_what_is_not_known_is_told(kind):
    """
    A field or kind that the runner knows nothing of is a failure that names it, never a pass.
    """
    outcome = run_one(Vector("x", kind, "", UNKNOWN[kind]))

    word = "dance" if kind == "dance" else "colour"
    assert word in " ".join(outcome.differences)


HOSTS = {"hosts": [{"name": "h1"}]}
WITHIN = {
    "select, cluster": ("select", {"cluster": {**HOSTS, "colour": 1}, "R": "mem>1"}),
    "select, host": ("select", {"cluster": {"hosts": [{"name": "h1", "colour": 1}]}, "R": "1"}),
    "schedule, cluster": ("schedule", {"cluster": {**HOSTS, "colour": 1}}),
    "schedule, load": ("schedule", {"cluster": {"hosts": [{"name": "h1", "load": {"colour": 1}}]}}),
    "schedule, report": (
        "schedule",
        {"cluster": HOSTS, "steps": [{"load": {"h1": {"colour": 1}}}]},
    ),
    "schedule, params": ("schedule", {"cluster": HOSTS, "params": {"colour": 1}}),
    "schedule, group": ("schedule", {"cluster": HOSTS, "groups": {"g": {"colour": 1}}}),
    "schedule, app": ("schedule", {"cluster": HOSTS, "app": {"colour": 1}}),
    "control, action": ("control", {"jobs": [{"id": "J1"}], "actions": [{"colour": "J1"}]}),
    "control, params": ("control", {"given": {"A": "DONE"}, "w": "A", "params": {"colour": 1}}),
    "account, job": ("account", {"host": {"maxmem": 9}, "reported": 5, "jobs": [{"colour": 1}]}),
    "account, params": ("account", {"shares": 1, "params": {"colour": 1}}),
    "format, given": ("format", {"given": {"main": "JOB_NEW", "colour": 1}}),
}


@pytest.mark.parametrize("place", WITHIN)
def test_a_key_that_nobody_reads_is_told_wherever_it_stands(place):
    """
    Deep inside a vector too: what is left unread may be what it is about.
    """
    kind, fields = WITHIN[place]
    outcome = run_one(Vector("x", kind, "", {**fields, "expect": {"reject": False}}))

    assert "colour" in " ".join(outcome.differences)


@pytest.mark.parametrize("vector", VECTORS[::7], ids=lambda vector: vector.id)
def test_a_field_that_nobody_reads_is_told(vector):
    """
    In the vector, a case or a step: it may have been what the vector is about.
    """
    fields = deepcopy(dict(vector.fields))
    holders = [fields, *fields.get("cases", ()), *fields.get("steps", ())]
    holders[-1]["colour"] = 1

    outcome = run_one(Vector(vector.id, vector.kind, vector.title, {**fields, **KNOWN}))

    assert "colour" in " ".join(outcome.differences)


def _expected_in(value: object, place: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """
    Yield the places of all single values that a vector expects.
    """
    pairs = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in pairs:
        if key in {"expect", "expect_elements"}:
            yield from _values_in(inner, (*place, key))
        else:
            yield from _expected_in(inner, (*place, key))


def _values_in(value: object, place: tuple[object, ...]) -> Iterator[tuple[object, ...]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _values_in(inner, (*place, key))
    else:
        yield place


def _break(fields: dict, place: tuple[object, ...]) -> None:
    """
    Change the one value at a place into another of its kind.
    """
    *path, last = place
    holder = fields
    for key in path:
        holder = holder[key]
    value = holder[last]
    if isinstance(value, bool):
        holder[last] = not value
    elif isinstance(value, int | float):
        holder[last] = value + 1
    elif isinstance(value, str):
        holder[last] = "rusage[mem=77777]" if "rusage" in value else f"{value}x"
    elif isinstance(value, list):
        holder[last] = [*value, "zz"]
    else:
        holder[last] = {"zz": {"h1": 1}} if value == {} else "zz"

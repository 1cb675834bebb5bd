"""
Promise 4: whatever an entity is made of survives the event's bytes and the snapshot; perturb one
field, and it shows.

All by introspection: a new event, record or field takes part without being listed.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import domain.commands
from domain.envelope import Stamped
from domain.event import Event, event_classes
from domain.plain import from_json, to_json
from projections.scheduling.apply import APPLY
from projections.scheduling.handle import HANDLE
from projections.scheduling.records import StoredState
from store.codec import decode, encode_all
from tests.examples import examples
from tests.strategies import instances, perturbed

OURS = {code: cls for code, cls in event_classes().items() if cls.__module__.startswith("domain.")}
BIG = settings(max_examples=25, suppress_health_check=list(HealthCheck))


def through_bytes(stamped: Stamped) -> Stamped:
    """
    Encode an event as the log does, and decode it again.
    """
    rows = encode_all([stamped])
    row = next(iter(rows))
    return decode(1, *row).stamped()


@pytest.mark.parametrize("code", OURS)
def test_every_field_of_every_event_survives_its_bytes(code: str) -> None:
    """
    Event -> bytes -> event is the identity, envelope included.
    """

    @BIG
    @given(instances(OURS[code]), st.integers(0, 2**62), st.text(max_size=9), st.booleans())
    def check(event: Event, time_us: int, actor: str, ends_step: bool) -> None:
        stamped = Stamped("x:1", 1, time_us, actor, "session 1", event, ends_step)

        assert stamped == through_bytes(stamped)

    check()


@pytest.mark.parametrize("code", OURS)
def test_perturbing_any_field_of_an_event_shows_in_its_bytes(code: str) -> None:
    """
    The test of the test: no field is left out of the bytes that are compared.
    """

    @settings(BIG, max_examples=10)
    @given(instances(OURS[code]))
    def check(event: Event) -> None:
        plain = next(iter(encode_all([Stamped("x:1", 1, 1, "", "", event, ends_step=True)])))
        for path, other in perturbed(event):
            if other == event:
                continue
            try:
                changed = next(
                    iter(encode_all([Stamped("x:1", 1, 1, "", "", other, ends_step=True)]))
                )
            except Exception:  # noqa: BLE001 - a value of another type isn't encodable: it shows
                continue
            assert plain != changed, path

    check()


@settings(BIG, max_examples=examples(40))
@given(instances(StoredState))
def test_every_field_of_the_state_survives_a_snapshot(stored: StoredState) -> None:
    """
    Snapshot -> state is the identity, on every level.
    """
    assert stored == from_json(StoredState, to_json(stored))


@settings(BIG, max_examples=25)
@given(instances(StoredState))
def test_perturbing_any_field_of_the_state_shows_in_its_snapshot(stored: StoredState) -> None:
    """
    The test of the test: a field left out of a snapshot would go unseen here.
    """
    plain = to_json(stored)
    for path, other in perturbed(stored):
        if _same(stored, other):
            continue
        try:
            changed = to_json(other)
        except Exception:  # noqa: BLE001 - a value of another type: it shows
            continue
        assert plain != changed, path


def _same(first: Any, second: Any) -> bool:
    return bool(first == second)


def test_the_core_applies_every_event() -> None:
    """
    A new event without its place in the fold is a failing test.
    """
    assert set(OURS.values()) == {cls for cls in APPLY if cls.__module__.startswith("domain.")}


def test_the_core_handles_every_command() -> None:
    """
    A new command without a handler is a failing test.
    """
    commands = {getattr(domain.commands, name) for name in domain.commands.__all__}

    assert commands == set(HANDLE)

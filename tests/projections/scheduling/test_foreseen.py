"""
Slots that are foreseen are worked out by stretches of hosts, and give what host by host would.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from domain.reservations import KeptRun
from projections.scheduling.foreseen import SlotsAhead, kept_of
from tests.examples import examples

FREE = st.lists(st.integers(0, 4), min_size=1, max_size=40)
RUN = st.tuples(st.integers(0, 39), st.integers(1, 40), st.integers(1, 3))
RUNNING = st.lists(st.tuples(st.integers(0, 9), st.lists(RUN, max_size=3)), max_size=6)


def ahead_of(free: list[int], running: list[Any]) -> tuple[SlotsAhead, list[Any]]:
    """
    Return what is foreseen of hosts with so many free slots and of (end, runs), and the same runs
    as far as there are hosts.
    """
    capacity = SimpleNamespace(hosts=len(free), usable=np.array(free, np.int64))
    live, releases, kept = {}, [], []
    for number, (end_us, wished) in enumerate(sorted(running)):
        runs = [
            SimpleNamespace(first=first, hosts=min(hosts, len(free) - first), tasks=tasks)
            for first, hosts, tasks in wished
            if first < len(free)
        ]
        live[str(number)] = SimpleNamespace(allocation=SimpleNamespace(runs=runs))
        releases.append((end_us, number, 0, 0, str(number)))
        kept.append((end_us, runs))
    return SlotsAhead(cast("Any", capacity), cast("Any", live), releases), kept


def host_by_host(
    free: list[int], kept: list[Any], slots: int, start_us: int
) -> tuple[list[int], list[int]]:
    """
    Return what of each host is given back by then, and what of that and of its free slots is taken.
    """
    given_back = [0] * len(free)
    for end_us, runs in kept:
        for run in runs if end_us <= start_us else ():
            for host in range(run.first, run.first + run.hosts):
                given_back[host] += run.tasks
    soon, now = [0] * len(free), [0] * len(free)
    for host in range(len(free)):
        soon[host] = min(given_back[host], slots - sum(soon))
    for host in reversed(range(len(free))):
        now[host] = min(free[host], slots - sum(soon) - sum(now))
    return soon, now


def as_runs(counts: list[int]) -> tuple[KeptRun, ...]:
    """
    Return slots by host as runs.
    """
    return kept_of(np.array(counts, np.int64), {})


@settings(max_examples=examples(300), deadline=None)
@given(FREE, RUNNING, st.integers(1, 60), st.integers(0, 10))
@example([0] * 4, [(0, [(0, 2, 1), (2, 2, 3)])], 3, 0)
def test_promised_slots_are_those_given_back_first_and_free_ones_last(
    free: list[int], running: list[Any], slots: int, start_us: int
) -> None:
    """
    Hosts in use until then come first, in order; of free hosts the last ones.
    """
    ahead, kept = ahead_of(free, running)
    soon, now = host_by_host(free, kept, slots, start_us)

    assert as_runs([a + b for a, b in zip(soon, now, strict=True)]) == ahead.wanted(slots, start_us)
    assert as_runs(now) == ahead.kept(slots, start_us)


@settings(max_examples=examples(300), deadline=None)
@given(FREE, FREE, RUNNING, st.integers(1, 60), st.integers(0, 10))
def test_promised_slots_hold_while_each_host_will_have_them(
    free: list[int], later: list[int], running: list[Any], slots: int, start_us: int
) -> None:
    """
    Others may have taken some since.
    """
    promised = ahead_of(free, running)[0].wanted(slots, start_us)
    left = [later[host % len(later)] for host in range(len(free))]
    ahead, kept = ahead_of(left, running)
    given_back = [0] * len(free)
    for end_us, runs in kept:
        for run in runs if end_us <= start_us else ():
            for host in range(run.first, run.first + run.hosts):
                given_back[host] += run.tasks

    holds = all(
        left[host] + given_back[host] >= run.slots
        for run in promised
        for host in range(run.first, run.first + run.hosts)
    )
    assert holds == ahead.still_hold(promised, start_us)

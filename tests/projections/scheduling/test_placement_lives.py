"""
Long lives of busy clusters, chosen by seeds: where hosts are full, requests fail again and again,
and what is remembered of a failure must hold.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from domain.events.jobs import JobDispatched
from projections.scheduling.placement.runner import Pending, PlacementRunner
from tests.projections.scheduling.test_placement_props import cluster, play
from tests.scenario import Scenario

SHAPES = (
    "",
    "rusage[mem=60]",
    "rusage[mem=90/task]",
    "rusage[mem=40/task] select[fast]",
    "rusage[mem=80] order[mem]",
    "rusage[gpu=1] order[-slots]",
    "rusage[mem=50:lic=1] select[type==LINUX]",
    "select[maxslots>2]",
    "rusage[mem=30/job]",
    "rusage[bw=1] order[slots]",
    "span[ptile=2] rusage[mem=20]",
    "span[ptile=2] rusage[mem=110] select[fast]",
    "span[ptile=3]",
    "span[hosts=1] rusage[mem=40/task]",
    "span[hosts=1] rusage[gpu=2]",
    "span[hosts=1] rusage[gpu=0.6]",
    "rusage[gpu=0.4]",
    "select[slots<3]",
    "select[mem!=200 && !(slots>=4)] rusage[mem=10]",
    "same[type] rusage[mem=30/task]",
    "1*{rusage[mem=60]} + 1*{select[fast] rusage[gpu=1]}",
    "{rusage[mem=900]} || {rusage[mem=70/task]}",
)


def lives(seed: int, steps: int) -> tuple[dict[str, Any], list[dict[str, Any]], list[Any]]:
    """
    Return settings, hosts and steps of one life.
    """
    choose = random.Random(seed)
    chosen = {
        "allocators": choose.choice([("parjob", "fill"), ("fill",), ("parjob",)]),
        "default_host_type": "any",
        "reserve_per_task": False,
        "picker": choose.choice(["builtin_fcfs", "builtin_fcfs", "strict_fcfs"]),
    }
    hosts = [
        {
            "slots": choose.randint(1, 5),
            "mem_mb": choose.choice([120, 200, 300]),
            "gpus": choose.choice([0, 2]),
            "type": choose.choice(["LINUX", "SOL"]),
            "fast": choose.choice(["yes", ""]),
            "lic": choose.choice([None, 2]),
        }
        for _ in range(choose.randint(2, 6))
    ]
    return chosen, hosts, [_step(choose) for _ in range(steps)]


def _step(choose: random.Random) -> tuple[Any, ...]:
    kind = choose.choice(["submit"] * 5 + ["finish"] * 4 + ["load", "close", "open"])
    if kind == "submit":
        job = {
            "tasks": choose.randint(1, 6),
            "more": choose.choice([0, 0, 0, 2]),
            "resreq": choose.choice(SHAPES),
            "hosts": "",
            "exclusive": choose.random() < 0.06,
        }
        return "submit", job
    if kind == "load":
        return "load", choose.randint(0, 6), choose.randint(0, 300), 0
    return kind, choose.randint(0, 40)


class NoProofs:
    """
    Remember no failure.
    """

    def still_hold(self, request: object) -> bool:
        return False

    def note(self, *found: object) -> None:
        pass


class NoRepeats:
    """
    Know of no request that it fails again.
    """

    def still_fails(self, request: object) -> None:
        return None

    def note(self, *found: object) -> None:
        pass

    def could_never(self, request: object, find: Callable[[], bool]) -> bool:
        return find()


@pytest.mark.parametrize("seed", range(16))
def test_what_is_remembered_of_failures_changes_no_event(seed: int) -> None:
    """
    After every step a session, with proofs and without: the same events, byte for byte.
    """
    chosen, hosts, steps = lives(seed, 90)
    kept = cluster(hosts, chosen, plain=False)
    afresh = cluster(hosts, chosen, plain=False)
    afresh.core._runner._proofs = NoProofs()  # type: ignore[assignment]
    afresh.core._runner._repeats = NoRepeats()  # type: ignore[assignment]
    for step in steps:
        for scenario in (kept, afresh):
            play(scenario, step)
            scenario.session()
            scenario.pass_time(1)
        assert afresh.log == kept.log


@pytest.mark.parametrize("seed", range(16))
def test_a_request_that_is_known_to_fail_fails_when_it_is_placed_afresh(seed: int) -> None:
    """
    After every step each request that anybody ever had is placed, by the runner that remembers and
    by one that was just made: they fail alike, and for the same reasons, also where no job that
    waits would ask.
    """
    chosen, hosts, steps = lives(seed, 90)
    scenario = cluster(hosts, {**chosen, "picker": "builtin_fcfs"}, plain=False)
    known = PlacementRunner(scenario.state.capacity, scenario.core.plugins.allocators)
    for step in steps:
        play(scenario, step)
        scenario.session()
        scenario.pass_time(1)
        afresh = PlacementRunner(scenario.state.capacity, scenario.core.plugins.allocators)
        for request in scenario.state.requests.values():
            found, expected = (
                runner.place(request, chosen["allocators"]) for runner in (known, afresh)
            )
            assert type(expected) is type(found), request.fingerprint
            if isinstance(expected, Pending) and isinstance(found, Pending):
                assert expected.signature == found.signature, request.fingerprint
                assert expected.reasons() == found.reasons()
                never = afresh.never(request, chosen["allocators"])
                assert never == known.never(request, chosen["allocators"])


@pytest.mark.parametrize("seed", range(8))
def test_busy_clusters_are_decided_by_columns_as_literally(seed: int) -> None:
    """
    After every step a session, on the fast core and on the literal one, which remembers nothing in
    a session either: the same jobs start on the same hosts, and the same wait.
    """
    chosen, hosts, steps = lives(seed, 90)
    fast = cluster(hosts, chosen, plain=False)
    slow = cluster(hosts, chosen, plain=True)
    for step in steps:
        for scenario in (fast, slow):
            play(scenario, step)
            scenario.session()
            scenario.pass_time(1)
        assert slow.states() == fast.states()
        assert dispatches(slow) == dispatches(fast)


def dispatches(scenario: Scenario) -> list[tuple[str, object]]:
    """
    Return what started where, in order.
    """
    return [
        (stamped.stream, stamped.event.allocation)
        for stamped in scenario.log
        if isinstance(stamped.event, JobDispatched)
    ]

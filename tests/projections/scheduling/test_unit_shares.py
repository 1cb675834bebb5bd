"""
Shares of named units: GPUs of which jobs ask for a part.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.commands import DefineResource
from domain.name_lists import parse_names
from domain.preemption import OnPreempt
from domain.resources import ResourceDescriptor, ResourceLayer
from domain.resreq.syntax import Per
from projections.scheduling.core import Core
from projections.scheduling.derived import derived
from projections.scheduling.request import HostNeed
from projections.scheduling.unit_shares import UnitShares, shares_in, usable_milli
from tests.builders import a_host
from tests.examples import examples
from tests.projections.scheduling.preempting import again, queues, stops
from tests.scenario import Scenario


def scenario_of(*gpus: int, plain: bool = False) -> Scenario:
    """
    Return hosts of many slots with so many GPUs.
    """
    scenario = Scenario(plain=plain)
    for number, count in enumerate(gpus, 1):
        scenario.command(a_host(f"h{number}", 16, gpus=count), actor="")
    return scenario


def shares(scenario: Scenario, name: str) -> list[dict[str, int]]:
    """
    Return what a job has of each unit, host by host.
    """
    allocation = scenario.job(name).allocation
    assert allocation is not None
    return [
        {unit: milli for each in run.instances for unit, milli in shares_in(each)}
        for run in allocation.runs
    ]


@pytest.mark.parametrize("plain", [False, True])
def test_shares_never_add_up_to_more_than_their_unit(*, plain: bool) -> None:
    """
    Three jobs of 0.6 would fit two GPUs by their sum; the third must wait, a small one needn't.
    """
    scenario = scenario_of(2, plain=plain)
    for name, amount in (("A", 0.6), ("B", 0.6), ("C", 0.6), ("D", 0.4), ("E", 0.3)):
        scenario.submit(name, resreq=(f"rusage[gpu={amount}]",))
    scenario.session()

    assert {"A": "RUN", "B": "RUN", "C": "PEND", "D": "RUN", "E": "RUN"} == scenario.states()
    assert [{"0": 600}] == shares(scenario, "A")
    assert [{"1": 600}] == shares(scenario, "B")
    assert [{"0": 400}] == shares(scenario, "D")
    assert [{"1": 300}] == shares(scenario, "E")
    assert "gpu short on h1" == scenario.reasons("C")


def test_what_is_given_back_makes_a_unit_whole_again() -> None:
    """
    A whole GPU needs one that nobody has a share of.
    """
    scenario = scenario_of(1)
    scenario.submit("A", resreq=("rusage[gpu=0.5]",))
    scenario.submit("B", resreq=("rusage[gpu=0.5]",))
    scenario.submit("C", resreq=("rusage[gpu=1]",))
    scenario.session()
    scenario.finish("A")
    scenario.session()
    assert "PEND" == scenario.states()["C"]
    scenario.finish("B")
    scenario.session()

    assert [{"0": 1000}] == shares(scenario, "C")


def test_an_amount_for_each_task_is_a_share_of_its_own() -> None:
    """
    Two tasks of 0.6 on one host are two GPUs, one amount of 1.2 is a whole one and a fifth.
    """
    scenario = scenario_of(2, 2)
    tasks = {"tasks_min": 2, "tasks_max": 2}
    scenario.submit("A", resreq=("rusage[gpu=0.6/task] span[hosts=1]",), **tasks)
    scenario.submit("B", resreq=("rusage[gpu=1.2/host] span[hosts=1]",), **tasks)
    scenario.session()

    assert [{"0": 600, "1": 600}] == shares(scenario, "A")
    assert [{"0": 200, "1": 1000}] == shares(scenario, "B")


def test_members_of_a_compound_share_units_on_a_host_without_taking_one_twice() -> None:
    """
    What the first member claimed is gone for the second.
    """
    scenario = scenario_of(2)
    member = "1*{rusage[gpu=0.7]}"
    scenario.submit("A", resreq=(f"{member} + {member}",))
    scenario.submit("B", resreq=(f"{member} + 1*{{rusage[gpu=0.2]}}",))
    scenario.session()

    assert [{"0": 700, "1": 700}] == shares(scenario, "A")
    assert "PEND" == scenario.states()["B"]


def test_a_victim_that_ends_gives_back_its_units() -> None:
    """
    The trial sees them free, so a shortage of GPUs is curable too.
    """
    scenario = Scenario()
    queues(scenario, "hi 90 >all")
    queues(scenario, "lo 10 <all", on_preempt=OnPreempt.KILL)
    scenario.command(a_host("h1", 4, gpus=1), actor="")
    scenario.submit("A", queue="lo", resreq=("rusage[gpu=0.5]",))
    scenario.submit("B", queue="lo", resreq=("rusage[gpu=0.5]",))
    scenario.session()
    scenario.start("A", "B")
    scenario.pass_time(1)
    scenario.submit("J", queue="hi", resreq=("rusage[gpu=0.6]",))
    scenario.session()
    assert ["A", "B"] == sorted(
        words.split()[0] for words in scenario.decisions if "kill ordered" in words
    )
    scenario.finish("A")
    scenario.finish("B")
    scenario.session()

    assert [{"0": 600}] == shares(scenario, "J")
    assert parse_names("all")


AMOUNTS = st.sampled_from([100, 250, 300, 400, 500, 600, 700, 1000, 1100, 1500, 2000, 2400])
ROWS = st.lists(st.sampled_from([0, 100, 300, 400, 600, 1000, 1000]), min_size=1, max_size=4)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("release", [False, True])
def test_a_stopped_victim_gives_back_its_units_where_they_are_declared_so(
    release: bool, *, plain: bool
) -> None:
    """
    It goes on only when the very units that its process knows are free again.
    """
    scenario = scenario_of(2, plain=plain)
    descriptor = ResourceDescriptor(
        name="gpu", layer=ResourceLayer.INSTANCE, is_consumable=True, release_on_suspend=release
    )
    scenario.command(DefineResource(descriptor=descriptor))
    queues(scenario, "hi 90 >lo", "lo 10 <all")
    scenario.submit("V", queue="lo", resreq=("rusage[gpu=1]",))
    scenario.submit("W", queue="lo", resreq=("rusage[gpu=1]",))
    scenario.session()
    scenario.start("V", "W")
    scenario.pass_time(1)
    scenario.submit("A", queue="hi", resreq=("rusage[gpu=1]",))
    assert (["W"] if release else []) == stops(scenario)
    if not release:
        return
    scenario.suspended("W")
    scenario.core = again(scenario)
    scenario.session()
    assert shares(scenario, "W") == shares(scenario, "A")
    scenario.start("A")
    scenario.finish("V")
    # The other unit is free now, but W's process knows its own.
    assert [] == [words for words in scenario.session() if "resume" in words]
    scenario.finish("A")
    assert ["W resume ordered on h1"] == scenario.session()
    scenario.resumed("W")
    assert derived(again(scenario).state) == derived(scenario.state)


def most_tasks(row: list[int], milli: int) -> int:
    """
    Return how many tasks fit by trying every way to give each its units.
    """
    whole, share = divmod(milli, 1000)
    best = 0
    for opened in product([False, True], repeat=len(row)):
        units = sum(left == 1000 and not is_open for left, is_open in zip(row, opened, strict=True))
        room = sum(left // share for left, is_open in zip(row, opened, strict=True) if is_open) \
            if share else units
        best = max(best, min(units // whole, room) if whole else room)
    return best


@given(ROWS, AMOUNTS)
def test_safety_as_many_tasks_are_found_as_any_way_to_give_units_allows(
    row: list[int], milli: int
) -> None:
    """
    And just as many can be named.
    """
    need, units = HostNeed("gpu", milli, Per.TASK), UnitShares()
    units.set_host(0, {"gpu": tuple(map(str, range(len(row))))})
    free = np.array([row], np.int64)
    tasks = int(usable_milli(free, need)[0]) // milli

    assert most_tasks(row, milli) == tasks
    if tasks:
        assert units.named(0, need, tasks, free) is not None
    single = HostNeed("gpu", milli)
    if int(usable_milli(free, single)[0]) >= milli:
        assert units.named(0, single, 1, free) is not None


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("submit"),
            AMOUNTS,
            st.sampled_from(["/task", "/host"]),
            st.integers(1, 3),
            st.booleans(),
        ),
        st.tuples(st.just("finish"), st.integers(0, 30)),
        st.tuples(st.just("session")),
        st.tuples(st.just("join"), st.integers(0, 2), st.integers(1, 3)),
    ),
    max_size=30,
)


def play(scenario: Scenario, step: tuple[Any, ...]) -> None:
    """
    Play one step.
    """
    kind, values = step[0], step[1:]
    jobs = scenario.state.stored.jobs
    if kind == "session":
        scenario.session()
    elif kind == "submit":
        milli, per, tasks, is_compound = values
        part = f"rusage[gpu={milli / 1000:g}{per}]"
        text = f"1*{{{part}}} + {tasks}*{{{part}}}" if is_compound else part
        count = {} if is_compound else {"tasks_min": 1, "tasks_max": tasks}
        scenario.submit(f"J{len(jobs)}", resreq=(text,), **count)
    elif kind == "join":
        scenario.command(a_host(f"h{values[0] + 1}", 6, gpus=values[1]), actor="")
    elif scenario.state.live:
        names = sorted(job.spec.name for job in scenario.state.live.values())
        scenario.finish(names[values[0] % len(names)])


@settings(max_examples=examples(150))
@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), STEPS)
def test_safety_no_unit_is_given_twice_and_both_cores_agree(gpus: list[int], steps: Any) -> None:
    """
    Whatever is asked for and in whatever order it ends; a restored core knows each unit's rest.
    """
    fast, slow = scenario_of(*gpus), scenario_of(*gpus, plain=True)
    for step in [*steps, ("session",)]:
        play(fast, step)
        play(slow, step)
        assert slow.log == fast.log
        taken: dict[tuple[int, str], int] = {}
        for job in fast.state.live.values():
            for run in job.allocation.runs if job.allocation else ():
                for each in run.instances:
                    for unit, milli in shares_in(each):
                        key = (run.first, unit)
                        taken[key] = taken.get(key, 0) + milli
        if not any(kind == "join" for kind, *_ in steps):
            assert all(milli <= 1000 for milli in taken.values())
    restored = Core.restore(fast.core.snapshot())
    assert derived(fast.state) == derived(restored.state)

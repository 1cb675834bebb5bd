"""
What planning pickers remember from one session to the next changes nothing of what they decide, and
a profile finds the gaps that going through its moments finds.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.commands import KillJob
from domain.job_states import JobState
from projections.scheduling.core import Core
from projections.scheduling.pickers import wide_profile
from projections.scheduling.pickers.conservative import Conservative
from projections.scheduling.pickers.easy import Easy
from projections.scheduling.pickers.profile import FOREVER, Profile
from projections.scheduling.pickers.wide_profile import WideProfile
from projections.scheduling.plugins import Plugins
from tests.builders import SECOND_US
from tests.examples import examples
from tests.projections.scheduling.test_core_props import (
    CHAINS,
    HOSTS,
    LIMITS,
    STEPS,
    play,
    scenarios_of,
)
from tests.scenario import Scenario

PLANNED = st.tuples(
    st.just("life"),
    st.builds(
        lambda tasks, run_s: {
            "tasks_min": tasks, "tasks_max": tasks, "run_limit_us": run_s * SECOND_US,
        },
        st.integers(1, 5),
        st.sampled_from([10, 100, 1_000, 3_000]),
    ),
)  # fmt: skip
TIME = st.tuples(st.just("time"), st.sampled_from([1, 5, 50, 500]))
SESSION = st.just(("session",))
LEAVES = st.tuples(st.sampled_from(["ends", "ends", "killed"]), st.integers(0, 9))
STEP = st.one_of(PLANNED, PLANNED, SESSION, SESSION, TIME, LEAVES)
DENSE = st.tuples(
    st.just([(4, None), (1, None)]), st.just(("parjob", "fill")), st.sampled_from([2, 10_000]),
    st.lists(STEP, min_size=20, max_size=60),
)  # fmt: skip
MIXED = st.one_of(STEP, STEP, STEP, STEPS.map(lambda steps: steps[0]))


def forgetful_easy() -> Easy:
    """
    Return one that never finds everything as a session left it.
    """
    picker, numbers = Easy(), count()
    picker._mark = lambda: (-1, next(numbers))  # type: ignore[method-assign]
    return picker


def forgetful_conservative() -> Conservative:
    """
    Return one that works out every promise anew in each session.
    """
    picker = Conservative()
    picker._is_at_rest = lambda: False  # type: ignore[method-assign]
    return picker


FORGETFUL = Plugins(
    pickers={
        **Plugins().pickers, "easy": forgetful_easy, "conservative": forgetful_conservative,
    }
)  # fmt: skip


WILD = st.tuples(HOSTS, CHAINS, LIMITS, st.lists(MIXED, max_size=40))


def take(scenario: Scenario, step: tuple[Any, ...]) -> None:
    """
    Play one step: the n-th running job ends, or the n-th waiting one is killed.
    """
    kind, place = step[0], step[-1]
    if kind not in ("ends", "killed"):
        play(scenario, step)
        return
    state = scenario.state
    live = list(state.live.values())
    waiting = [job for job in state.stored.jobs.values() if job.state is JobState.PEND]
    if kind == "ends" and live:
        scenario.finish(live[place % len(live)].job_id)
    elif kind == "killed" and waiting:
        scenario.command(KillJob(job_id=waiting[place % len(waiting)].job_id))


@settings(max_examples=examples(150), deadline=None)
@given(st.one_of(DENSE, DENSE, WILD))
@pytest.mark.parametrize("picker", ["easy", "conservative"])
def test_a_picker_that_forgets_decides_alike(picker: str, drawn: tuple[Any, ...]) -> None:
    """
    The same commands give the same events, byte for byte.
    """
    hosts, chain, most, steps = drawn
    mindful = scenarios_of(hosts, chain, picker, most, None, plain=False)
    forgetful = scenarios_of(hosts, chain, picker, most, None, plain=False)
    forgetful.core = Core.restore(forgetful.core.snapshot(), FORGETFUL)
    for step in [*steps, ("session",), ("time", 1), ("session",)]:
        take(mindful, step)
        take(forgetful, step)
        assert forgetful.log == mindful.log


TAKEN = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 20), st.sampled_from([1, 3, 7, FOREVER])),
    max_size=8,
)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.integers(0, 4), st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3)), max_size=6), TAKEN,
    st.integers(1, 4), st.sampled_from([1, 2, 5, FOREVER]),
)  # fmt: skip
def test_gaps_are_those_that_every_moment_shows(
    free: int, releases: list[Any], taken: list[Any], slots: int, run_us: int
) -> None:
    """
    The first moment that will do, and whether there is one before a start that will.
    """
    kept: list[tuple[int, int, int]] = []
    for each in taken:
        if Profile(0, free, releases, [*kept, each]).holds_all():
            kept.append(each)
    profile = Profile(0, free, releases, kept)
    bit_by_bit = Profile(0, free, releases)
    for each in kept:
        bit_by_bit.take(*each)

    def will_do(moment: int) -> bool:
        later = [place for place, start in enumerate(profile.moments) if start > moment]
        now = (later[0] if later else len(profile.moments)) - 1
        ends = [now, *(place for place in later if profile.moments[place] < moment + run_us)]
        return all(profile.free[place] >= slots for place in ends)

    first = next((moment for moment in profile.moments if will_do(moment)), None)
    assert first == profile.first(slots, run_us) == bit_by_bit.first(slots, run_us)
    for own, start_us, long_us in kept:
        profile.take(-own, start_us, long_us)
        again = profile.first(own, long_us)
        profile.take(own, start_us, long_us)
        assert again is not None
        assert (again < start_us) is profile.has_earlier(own, start_us, long_us)


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["take", "take", "give", "advance", "first", "first", "earlier", "fits"]),
        st.integers(1, 4),
        st.integers(0, 20),
        st.sampled_from([1, 3, 7, FOREVER]),
    ),
    max_size=30,
)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.integers(0, 4), st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3)), max_size=6),
    CHANGES,
)  # fmt: skip
def test_a_profile_in_arrays_answers_as_one_in_lists(
    free: int, releases: list[Any], changes: list[Any]
) -> None:
    """
    Whatever is taken, given back or asked, even where more is taken than there is.
    """
    lists, now = Profile(0, free, releases), 0
    arrays = WideProfile(lists)
    for kind, slots, moment, run_us in changes:
        start_us = now + moment
        for profile in (lists, arrays) if kind in ("take", "give") else ():
            profile.take(slots if kind == "take" else -slots, start_us, run_us)
        if kind == "advance":
            now += moment // 4
            lists.advance(now)
            arrays.advance(now)
        elif kind == "first":
            assert lists.first(slots, run_us) == arrays.first(slots, run_us)
        elif kind == "earlier":
            expected = lists.has_earlier(slots, start_us, run_us)
            assert expected is arrays.has_earlier(slots, start_us, run_us)
        elif kind == "fits":
            assert lists.fits(slots, start_us, run_us) is arrays.fits(slots, start_us, run_us)
        assert (lists.moments, lists.free) == (arrays.moments, arrays.free)
    assert lists.holds_all() is arrays.holds_all()


@settings(max_examples=examples(60), deadline=None)
@given(DENSE)
def test_promises_in_arrays_are_those_in_lists(drawn: tuple[Any, ...]) -> None:
    """
    The same commands give the same events, byte for byte.
    """
    hosts, chain, most, steps = drawn
    with pytest.MonkeyPatch.context() as patch:
        logs = []
        for many in (0, 10**9):
            patch.setattr(wide_profile, "MANY", many)
            scenario = scenarios_of(hosts, chain, "conservative", most, None, plain=False)
            for step in [*steps, ("session",), ("time", 1), ("session",)]:
                take(scenario, step)
            logs.append(scenario.log)
    assert logs[0] == logs[1]

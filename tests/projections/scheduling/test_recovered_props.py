"""
A core that was restored or replayed goes on as the one that never stopped: the same decisions, the
same reasons, the same moments that are waited for.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from projections.scheduling.derived import derived
from tests.examples import examples
from tests.projections.scheduling.recovering import HAPPENINGS, OFTEN, Step, cores_of, play

NUMBERS = st.lists(st.integers(0, 59), max_size=14)
CLUSTERS = st.lists(st.integers(0, 59), max_size=30)
STEPS = st.lists(
    st.tuples(st.sampled_from([*OFTEN, *HAPPENINGS]), NUMBERS), min_size=8, max_size=40
)
LAST: Sequence[Step] = [("session", [1]), ("time", [1]), ("session", [1, 7])]


@pytest.mark.slow
@settings(max_examples=examples(250))
@example([2], [("submit", []), ("submit", [52])])
@given(CLUSTERS, STEPS)
def test_safety_restored_and_replayed_cores_decide_as_the_one_that_went_on(
    cluster: list[int], steps: list[Step]
) -> None:
    """
    The first promise of all: nothing outlives a session but by events. Whatever a core remembers
    beside its state may spare it work, never change what it decides.
    """
    cores = cores_of(cluster)
    for step in [*steps, *LAST]:
        play(cores, step)

    for core in cores.others.values():
        assert derived(cores.state) == derived(core.state)


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(CLUSTERS, STEPS)
def test_safety_the_literal_core_goes_along_with_all_that_may_happen(
    cluster: list[int], steps: list[Step]
) -> None:
    """
    Every shortcut at once, also of what came later than the literal core: each event is the same.
    """
    cores = cores_of(cluster)
    cores.decide_literally_too()
    for step in [*steps, *LAST]:
        play(cores, step)

    assert cores.kept.snapshot() == cores.others["literal"].snapshot()

"""
A core that was restored or replayed goes on as the one that never stopped: the same decisions, the
same reasons, the same moments that are waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from projections.scheduling.core import Core
from projections.scheduling.derived import derived
from tests.examples import examples
from tests.projections.scheduling.episodes import EPISODES, play
from tests.projections.scheduling.lives import CLUSTER, SELDOM, reached
from tests.projections.scheduling.recovering import HAPPENINGS, OFTEN, Cores, Step, cores_of

# Numbers that aren't drawn count as 0: short lists would pick the first of everything.
NUMBERS = st.lists(st.integers(0, 59), min_size=10, max_size=16)
CLUSTERS = st.lists(st.integers(0, 59), min_size=20, max_size=34)
STEPS = st.lists(
    st.tuples(st.sampled_from([*OFTEN, *HAPPENINGS, *EPISODES, *EPISODES]), NUMBERS),
    min_size=12,
    max_size=30,
)
LAST: Sequence[Step] = [("session", [1]), ("time", [1]), ("session", [1, 7])]


def note(cores: Cores) -> None:
    """
    Count what lives came to, for ``--hypothesis-show-statistics``.
    """
    found = reached(cores.log)
    for kind in SELDOM:
        if found[kind]:
            event(kind)


@pytest.mark.parametrize("kind", SELDOM)
def test_the_life_of_an_example_comes_to_what_it_is_for(kind: str) -> None:
    """
    What no life comes to is proved by none. Here cores are restored before each session, one is
    replayed from the beginning.
    """
    cores = cores_of(CLUSTER)
    cores.restores_always = True
    cores.replay()
    for step in [*SELDOM[kind], *LAST]:
        play(cores, step)

    assert reached(cores.log)[kind]
    for core in cores.others.values():
        assert derived(cores.state) == derived(core.state)


@pytest.mark.parametrize(
    ("kind", "index"),
    [
        ("job.resume_ordered", "victims"),
        ("job.preemption_ended", "keepers"),
        ("stopped: SUSP_QUEUE_WINDOW", "live"),
        ("stopped: SUSP_LOAD", "pressed"),
    ],
)
def test_sabotage_a_restored_core_that_lacks_an_index_is_caught(
    kind: str, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Cores that were never compared where it matters would agree whatever they forget.
    """
    whole = Core.restore

    def restore(data: bytes) -> Core:
        core = whole(data)
        getattr(core.state, index).clear()
        return core

    monkeypatch.setattr(Core, "restore", restore)

    with pytest.raises((AssertionError, KeyError)):
        test_the_life_of_an_example_comes_to_what_it_is_for(kind)


def with_examples(test: Callable[..., None]) -> Callable[..., None]:
    """
    Have a property look at the lives that come to what is seldom, beside those that are drawn.
    """
    for steps in SELDOM.values():
        test = example(list(CLUSTER), list(steps))(test)
    return test


@pytest.mark.slow
@with_examples
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

    note(cores)
    for core in cores.others.values():
        assert derived(cores.state) == derived(core.state)


@pytest.mark.slow
@with_examples
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

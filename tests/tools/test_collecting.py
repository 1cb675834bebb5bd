"""
Looking for garbage in cycles while somebody waits: never at everything.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tools.collecting import ALL_EVERY_NS, YOUNG_LIVE, Collector, uncollected


class Node:
    """
    Be in a cycle.
    """

    def __init__(self) -> None:
        self.other: object = self


@pytest.fixture
def looks() -> Iterator[list[int]]:
    """
    Give the generations that were looked at; afterwards all is as it was.
    """
    found: list[int] = []

    def note(phase: str, told: dict[str, int]) -> None:
        if phase == "start":
            found.append(told["generation"])

    gc.callbacks.append(note)
    yield found
    gc.callbacks.remove(note)


@pytest.fixture
def collector(looks: list[int]) -> Iterator[Collector]:
    made = Collector(0)
    looks.clear()
    yield made
    made.close()
    assert gc.isenabled()
    assert 0 == gc.get_freeze_count()


def test_what_lives_on_is_set_aside_and_never_looked_at_while_somebody_waits(
    collector: Collector, looks: list[int]
) -> None:
    """
    Python's own way visits all of it whenever it has grown by a quarter.
    """
    kept, before = [], gc.get_freeze_count()
    for turn in range(40):
        kept.append([[] for _ in range(YOUNG_LIVE)])
        collector.look(turn, is_quiet=False)

    assert {0, 1} == set(looks)
    assert gc.get_freeze_count() - before > len(kept) * YOUNG_LIVE // 2
    assert len(gc.get_objects(generation=2)) < YOUNG_LIVE


def test_young_cycles_go_at_the_next_look(collector: Collector) -> None:
    """
    Else memory would grow with every request that leaves one.
    """
    gone = weakref.ref(Node())
    kept = [[] for _ in range(YOUNG_LIVE)]
    collector.look(1, is_quiet=False)

    assert gone() is None
    del kept


@pytest.mark.parametrize(("now_ns", "is_quiet", "is_gone"), [
    (ALL_EVERY_NS, True, True), (ALL_EVERY_NS, False, False), (ALL_EVERY_NS - 1, True, False),
])  # fmt: skip
def test_old_cycles_go_once_a_day_when_it_is_quiet(
    collector: Collector, now_ns: int, *, is_quiet: bool, is_gone: bool
) -> None:
    """
    A connection that was served for long is one.
    """
    node = Node()
    gone = weakref.ref(node)
    gc.freeze()
    del node
    collector.look(now_ns, is_quiet=is_quiet)

    assert is_gone == (gone() is None)


def test_the_day_counts_from_the_last_look_at_everything(looks: list[int]) -> None:
    """
    A scheduler that was begun long after its machine's clock would look at everything whenever it
    is quiet, and so would any after its first day.
    """
    began_ns = 5 * ALL_EVERY_NS
    made = Collector(began_ns)
    moments = [began_ns + 1, began_ns + ALL_EVERY_NS, began_ns + ALL_EVERY_NS + 1,
               began_ns + 2 * ALL_EVERY_NS - 1, began_ns + 2 * ALL_EVERY_NS]  # fmt: skip
    found = []
    for now_ns in moments:
        looks.clear()
        made.look(now_ns, is_quiet=True)
        found.append(2 in looks)
    made.look_at_all(began_ns + 3 * ALL_EVERY_NS - 1)
    looks.clear()
    made.look(began_ns + 3 * ALL_EVERY_NS, is_quiet=True)
    made.close()

    assert [False, True, False, False, True] == found
    assert 2 not in looks


def test_work_that_makes_much_is_left_alone(looks: list[int]) -> None:
    """
    Restoring a state makes millions of objects, and all of them stay.
    """
    with uncollected():
        looks.clear()
        kept = [[] for _ in range(10 * YOUNG_LIVE)]
        meanwhile = list(looks)

    assert [] == meanwhile
    assert gc.isenabled()
    del kept


@pytest.mark.parametrize("is_enabled", [True, False])
def test_afterwards_it_is_as_it_was_also_after_an_error(*, is_enabled: bool) -> None:
    """
    A scheduler recovers at its start and, with its own way of looking, after a refused commit.
    """
    if not is_enabled:
        gc.disable()
    try:
        with suppress(KeyError), uncollected():
            raise KeyError
        assert is_enabled == gc.isenabled()
    finally:
        gc.enable()

"""
Decide a history again over the cores: each process takes a span, from the state at its beginning.

Spans begin where whole states are kept (the ladder beside a log, a scheduler's snapshots, states in
a recording); without any there is one span: to fold up to a beginning takes more than half the time
of deciding it again. The result is that of one process: spans meet at boundaries between steps, the
state at the end of each must be the one that the next begins with, and a difference in one doesn't
reach the next, since the log holds after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from tools.collecting import collect_rarely
from tools.pooling import pool_of

if TYPE_CHECKING:
    from replay.at import Ladder
    from replay.verify import VerifyResult

EVENTS_EACH: Final = 50_000
"""For fewer events a process more isn't worth its start."""

LOOK_S: Final = 0.2

_done: Any = None
"""In a process of the pool: how far each span is, shared with the process that asks."""


@final
@dataclass(frozen=True, slots=True)
class Span:
    """
    Hold what one process decides again: the whole steps after a position up to another.
    """

    history: Path
    number: int
    after: int
    upto: int
    has_next: bool = False


def spans_of(
    history: Path, after: int, upto: int, kept: Sequence[int], processes: int
) -> list[Span]:
    """
    Return spans of about the same length, no more than are worth it.

    Args:
        history: The log or recording.
        after: Where the first begins.
        upto: Where the last ends.
        kept: Positions of states that are kept.
        processes: So many at most.
    """
    events = upto - after
    count = max(1, min(processes, events // EVENTS_EACH))
    wanted = [after + events * number // count for number in range(1, count)]
    inside = [position for position in kept if after < position < upto]
    found = {_nearest(inside, place) for place in wanted} if inside else set()
    edges = [after, *sorted(found)]
    return [
        Span(history, number, first, last, has_next=last != upto)
        for number, (first, last) in enumerate(zip(edges, [*edges[1:], upto], strict=True))
    ]


def _nearest(positions: Sequence[int], place: int) -> int:
    return min(positions, key=lambda position: (abs(position - place), position))


@final
@dataclass(frozen=True, slots=True)
class _EndState:
    """
    Be the state that the next span begins with.
    """

    ladder: Ladder
    position: int

    @property
    def positions(self) -> tuple[int, ...]:
        """
        Return where it is.
        """
        return (self.position,)

    def at(self, position: int, schema: str) -> bytes | None:  # noqa: ARG002 - the ladder's own
        """
        Return it.
        """
        return self.ladder.kept_at(position)


def verify_span(span: Span, on_progress: Callable[[int], None] | None = None) -> VerifyResult:
    """
    Decide one span again.

    Raises:
        Corrupt: The history doesn't check.
    """
    from replay.at import ladder_of
    from replay.plugins import found_plugins
    from replay.recordings import Recording, open_history
    from replay.verify import verify

    plugins = found_plugins()
    with open_history(span.history) as opened:
        ladder = ladder_of(opened, may_write=False, plugins=plugins, on_progress=on_progress)
        collect_rarely()
        found = verify(
            opened,
            plugins=plugins,
            on_progress=on_progress,
            after=span.after,
            upto=span.upto,
            start=ladder.start if span.after else None,
            states=(
                opened.snapshots if isinstance(opened, Recording)
                else _EndState(ladder, span.upto) if span.has_next else None
            ),
        )  # fmt: skip
        if not isinstance(opened, Recording):
            # The one at the end is no recorded state.
            found.states = 0
        return found


def verify_spans(
    spans: list[Span], on_progress: Callable[[int], None] | None = None
) -> VerifyResult:
    """
    Decide spans again, each in a process of its own; return what one process would have found.

    Args:
        spans: As `spans_of` gives them.
        on_progress: Called with a position that stands for the work done so far.
    """
    if len(spans) == 1:
        return verify_span(spans[0], on_progress)
    done = get_context("spawn").Array("Q", len(spans))
    with pool_of(len(spans), _begin, done) as pool:
        waiting = [pool.submit(_verify_there, span) for span in spans]
        _wait(waiting, done, spans[0].after, on_progress)
    return _together([future.result() for future in waiting])


def _wait(
    waiting: list[Future[VerifyResult]], done: Any, after: int,
    on_progress: Callable[[int], None] | None,
) -> None:
    """
    Wait until all have ended, or one has failed.
    """
    while wait(waiting, LOOK_S, FIRST_EXCEPTION).not_done:
        if on_progress is not None:
            on_progress(after + sum(done))
        for future in waiting:
            if future.done():
                future.result()


def _begin(done: Any) -> None:
    """
    Take over what is shared, in a process of the pool.
    """
    global _done  # noqa: PLW0603 - the one way into a process of a pool
    _done = done


def _verify_there(span: Span) -> VerifyResult:
    def note(position: int) -> None:
        _done[span.number] = max(0, position - span.after)

    return verify_span(span, note)


def _together(results: list[VerifyResult]) -> VerifyResult:
    """
    Return one result of those of neighbouring spans.
    """
    from replay.verify import VerifyResult

    whole = VerifyResult()
    for each in results:
        whole.events += each.events
        whole.steps += each.steps
        whole.sessions += each.sessions
        whole.decisions += each.decisions
        whole.states += each.states
        for difference in each.differences:
            whole.add(difference)
        whole.difference_count += each.difference_count - len(each.differences)
    return whole

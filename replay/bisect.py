"""
Find the first moment at which a condition holds, and the events that made it so.

A condition may come and go, so every step is looked at in order; one that, once true, stays true
(`is_lasting`) is found by halving.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from domain.envelope import Envelope
from domain.errors import NotFound
from domain.ids import entity_of_stream
from replay.at import PROGRESS_EVENTS, Ladder, whole_steps
from replay.conditions import Condition, entities_in
from replay.moments import SearchableLog

CHAIN_MAX: Final = 20


@final
@dataclass(frozen=True, slots=True)
class Hit:
    """
    Say where a condition began to hold.

    Args:
        position: The boundary after which it holds.
        time_us: Its stamp.
        event: The event that made it so; the last of its step when none did by itself.
        before: Earlier events of the entities that the condition names, the last few.
        inputs: What came in after the session before, when a session made it so.
        step: The whole step, or its beginning.
        held_at_start: Whether it held already where the search began.
    """

    position: int
    time_us: int
    event: Envelope | None
    before: tuple[Envelope, ...]
    inputs: tuple[Envelope, ...]
    step: tuple[Envelope, ...]
    held_at_start: bool = False


def first_hold(
    log: SearchableLog,
    ladder: Ladder,
    condition: Condition,
    *,
    after: int = 0,
    upto: int | None = None,
    is_lasting: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> Hit | None:
    """
    Return where a condition holds first after a position, None when it nowhere does.

    Args:
        log: The log.
        ladder: Gives the state at any position of it.
        condition: What is looked for.
        after: Where the search begins; a condition that holds there already is found there.
        upto: Where it ends; the log's end when None.
        is_lasting: The condition stays true once it is: halve instead of looking at each step.
        on_progress: Called with a position now and then.
    """
    last = log.head() if upto is None else upto
    start = ladder.at(after)
    if condition.holds(start.core, start.position):
        return Hit(start.position, start.time_us, None, (), (), (), held_at_start=True)
    if is_lasting:
        low = _halved(ladder, condition, start.position, last)
        if low is None:
            return None
        start = ladder.at(low)
    said = start.position
    for step in whole_steps(log.read(start.position, last)):
        for envelope in step:
            start.core.apply(envelope.stamped())
        start.position = step[-1].position
        if _may_have_changed(condition, step) and condition.holds(start.core, start.position):
            return _hit(log, ladder, condition, step)
        if on_progress is not None and start.position - said >= PROGRESS_EVENTS:
            said = start.position
            on_progress(said)
    return None


def check_entities(
    log: SearchableLog, ladder: Ladder, condition: Condition, *, field: str = "condition"
) -> None:
    """
    Refuse a condition about what the log never knew: it would hold nowhere for no good reason.

    Raises:
        NotFound: A job, host or queue that it names occurs nowhere in the log.
    """
    for stream in entities_in(condition.tree):
        if next(iter(log.read_stream(stream)), None) is not None:
            continue
        # A recording of a part of a log begins with a state that knows what came before.
        if stream not in ladder.at(ladder.first_position - 1).core.state.stored.versions:
            kind, name = entity_of_stream(stream)
            kind = "host" if kind == "worker" else kind
            raise NotFound(field, f"must name a {kind} that the log knows", name)


def _may_have_changed(condition: Condition, step: list[Envelope]) -> bool:
    streams = condition.streams
    return streams is None or any(envelope.stream in streams for envelope in step)


def _halved(ladder: Ladder, condition: Condition, low: int, high: int) -> int | None:
    """
    Return a boundary at which the condition doesn't hold yet, near the first where it does.
    """
    end = ladder.at(high)
    if not condition.holds(end.core, end.position):
        return None
    while high - low > 1:
        middle = ladder.at((low + high) // 2)
        if middle.position <= low:
            break
        if condition.holds(middle.core, middle.position):
            high = middle.position
        else:
            low = middle.position
    return low


# -------------------------------------------------------------------------------------- the reason


def _hit(log: SearchableLog, ladder: Ladder, condition: Condition, step: list[Envelope]) -> Hit:
    """
    Tell the events that led to a condition becoming true at the end of a step.
    """
    first = step[0].position
    core = ladder.at(first - 1).core
    made_by = step[-1]
    for envelope in step:
        core.apply(envelope.stamped())
        if condition.holds(core, envelope.position):
            made_by = envelope
            break
    is_session = step[0].cause.startswith("session ")
    return Hit(
        step[-1].position,
        step[-1].time_us,
        made_by,
        tuple(_before(log, condition, first)),
        tuple(_inputs(log, first, ladder.first_position - 1)) if is_session else (),
        tuple(step[:CHAIN_MAX]),
    )


def _before(log: SearchableLog, condition: Condition, position: int) -> list[Envelope]:
    """
    Return the last events of the named entities before a position.
    """
    found = [
        envelope
        for stream in entities_in(condition.tree)
        for envelope in log.read_stream(stream)
        if envelope.position < position
    ]
    return sorted(found, key=lambda envelope: envelope.position)[-CHAIN_MAX:]


def _inputs(log: SearchableLog, position: int, after: int) -> list[Envelope]:
    """
    Return what came in between the session before and the one that begins at a position, as far as
    it is after another one.
    """
    span = CHAIN_MAX
    while True:
        begin = max(after, position - 1 - span)
        window = list(log.read(begin, position - 1))
        sessions = [one.position for one in window if one.cause.startswith("session ")]
        if sessions or begin == after or span > 10_000:
            last = sessions[-1] if sessions else 0
            return [one for one in window if one.position > last][-CHAIN_MAX:]
        span *= 4

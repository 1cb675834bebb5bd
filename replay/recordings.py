"""
Recordings made from histories: windows that replay by themselves; and a log or a recording opened
the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from projections.scheduling.core import SCHEMA
from replay.anonymise import Anonymiser, anonymous_id
from replay.at import Ladder, Moment, ladder_of, whole_steps
from store.log import EventLog
from store.recordings import (
    LogLines,
    Recording,
    SnapshotLine,
    is_recording,
    write_recording,
)
from store.transfer import RECORDING_FORMAT, RecordedEvent, RecordingHeader

History = EventLog | Recording
"""What can be replayed: a log in a directory, or a recording in a file."""

RECORDED_EVERY: Final = 50_000
"""A recording of a running scheduler has a state every so many events unless told otherwise."""


def open_history(path: Path) -> History:
    """
    Open the log in a directory, or a recording in a file, for reading; use it as a context manager.

    Raises:
        NotFound: There is neither.
        Corrupt: It doesn't check.
    """
    return Recording(path) if path.is_file() else EventLog.open(path, writable=False)


def first_of(history: History) -> int:
    """
    Return the first position that can be replayed by itself.
    """
    return history.first_position if isinstance(history, Recording) else 1


def record(
    history: History,
    target: Path,
    *,
    after: int = 0,
    upto: int | None = None,
    every: int | None = None,
    is_anonymous: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> RecordingHeader:
    """
    Write a window of a history to a file that replays by itself.

    It begins with the state at the boundary before the window, and ends at a boundary too. A whole
    log can be imported again, with states in it or without.

    Args:
        history: Where from.
        target: The new file.
        after: The last position before the window.
        upto: The last one in it; the end when None.
        every: A state is written every so many events; only the first one when None.
        is_anonymous: Whether names become aliases; such a recording has an id of its own, and no
            digest of a log.
        on_progress: Called with a position now and then.

    Raises:
        Refused: The file exists, or the history begins later.
        Corrupt: The history doesn't check.
    """
    ladder = ladder_of(history, may_write=False, on_progress=on_progress)
    moment = ladder.at(after)
    first, last = moment.position, _boundary(history, moment.position, upto)
    events, epoch = _events(history, first, last)
    is_whole = isinstance(history, EventLog) and (first, last) == (0, history.head())
    digest = history.digest_at(last).hex() if is_whole else ""
    header = RecordingHeader(
        RECORDING_FORMAT, history.log_id, first + 1, last - first, epoch, digest
    )
    states = _states(history, ladder, moment, last, every)
    if is_anonymous:
        header = replace(header, log_id=anonymous_id(history.log_id), head_digest="")
        anonymiser = Anonymiser(
            lambda: _events(history, first, last)[0],
            lambda: _states(history, ladder, ladder.at(after), last, None),
        )
        events, states = map(anonymiser.event, events), map(anonymiser.state, states)
    write_recording(target, header, events, states)
    return header


def _boundary(history: History, first: int, upto: int | None) -> int:
    """
    Return the last boundary between steps that isn't after a position.
    """
    last = history.head() if upto is None else min(upto, history.head())
    for back in range(last, first, -1):
        if next(history.read(back - 1, back)).ends_step:
            return back
    return first


def _events(history: History, first: int, last: int) -> tuple[Iterator[RecordedEvent], int]:
    """
    Return the events of a window, and the epoch of the history.
    """
    if isinstance(history, Recording):
        return history.events(first, last), history.header.epoch
    assert history.path is not None, "a log in a directory"
    return _events_of_log(history.path, first, last), history.epoch


def _events_of_log(path: Path, first: int, last: int) -> Iterator[RecordedEvent]:
    with LogLines(path) as lines:
        yield from lines.events(first, last)


def _states(
    history: History, ladder: Ladder, moment: Moment, last: int, every: int | None
) -> Iterator[SnapshotLine]:
    """
    Yield the state at the beginning of a window, and then every so many events.
    """
    if moment.position:
        yield snapshot_line(history, moment)
    while every is not None and moment.position < last:
        before = moment.position
        ladder.advance(moment, min(last, before + every))
        if moment.position == before:
            # The step in hand is longer than the distance.
            step = next(whole_steps(history.read(before, last)))
            ladder.advance(moment, step[-1].position)
        yield snapshot_line(history, moment)


def snapshot_line(history: History, moment: Moment) -> SnapshotLine:
    """
    Return the state at a moment as a line.
    """
    digest = "" if isinstance(history, Recording) else history.digest_at(moment.position).hex()
    return SnapshotLine(moment.position, moment.time_us, SCHEMA, digest, moment.core.snapshot())


__all__ = [
    "History", "Recording", "first_of", "is_recording", "open_history", "record", "snapshot_line",
]  # fmt: skip

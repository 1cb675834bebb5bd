"""
Archive old events into compressed segment files that every reader still reads, and prune them.

The index stays in the store, so a version or an id that was taken stays taken. Archiving first
makes the file durable, then moves the frames out in one transaction: a crash in between leaves a
file that nothing refers to, and the next archiving replaces it.
"""

from __future__ import annotations

from pathlib import Path

from domain.errors import Refused
from store.embedded.journal import Journal
from store.segments import Segment, write_segment

SEGMENT_EVENTS = 250_000
"""About how many events a segment holds."""


def archive(journal: Journal, upto: int, *, segment_events: int = SEGMENT_EVENTS) -> list[Segment]:
    """
    Move the frames of whole commits up to a position to segment files; return the new segments.

    The last commit always stays. The caller is the log's one writer.

    Raises:
        StoreUnavailable: There is no space for a segment; nothing is lost.
    """
    made = []
    while frames := journal.first_frames(upto, segment_events):
        segment = write_segment(journal.anchors.directory, frames)
        journal.move_out(segment)
        made.append(segment)
    return made


def prunable(journal: Journal, upto: int) -> list[Segment]:
    """
    Return the segments that end at or before a position and are still there.
    """
    there = [segment for segment in journal.anchors.segments() if not segment.is_pruned]
    return [segment for segment in there if segment.last_position <= upto]


def prune(journal: Journal, upto: int) -> list[Segment]:
    """
    Remove the segment files that end at or before a position; their anchors stay and say so.

    A file that was left by a pruning which was killed behind its anchor goes too.

    Raises:
        Refused: One can't be removed.
    """
    removed = prunable(journal, upto)
    for segment in removed:
        journal.anchors.mark_pruned(segment)
    for segment in journal.anchors.segments():
        if segment.is_pruned:
            _remove(journal.anchors.directory / segment.file)
    return removed


def _remove(path: Path) -> None:
    """
    Remove a segment file; one that is gone already is as good.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise Refused("segment", f"can't be removed: {error}", str(path)) from None

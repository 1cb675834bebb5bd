"""
Keep decision traces within a bound: one a job, the oldest go first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

from projections.scheduling.trace import DecisionTrace, Passed, SessionMark
from projections.scheduling.trace_plain import packed, unpacked

BYTES_MAX: Final = 64 * 1024 * 1024

ENTRY_BYTES: Final = 1_024
"""What a trace takes beside its text: its place, its name, and what says that a later session
passed the job over."""

DROPPED_BYTES: Final = 256
"""What the name of a dropped one takes."""

DROPPED_PART: Final = 8
"""One part in so many may be names of dropped ones."""


@dataclass(slots=True)
class _Entry:
    """
    Hold a stored trace; ``text`` is None where there is only what passed the job over.
    """

    session: SessionMark
    text: bytes
    passed: Passed | None = None


@final
class TraceStore:
    """
    Hold the newest trace of each job.

    Args:
        bytes_max: Bound of all that is kept. Only the newest trace may exceed it, alone.
    """

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._entries: dict[str, _Entry] = {}
        self._dropped: dict[str, int] = {}
        self._bytes = 0
        self.dropped_count = 0
        self.forgotten_count = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def bytes(self) -> int:
        """
        Return how much is kept, names of dropped ones among it.
        """
        return self._bytes + len(self._dropped) * DROPPED_BYTES

    def has_room_for(self, job_id: str) -> bool:
        """
        Say whether a short trace of a job can be kept without another being dropped, and none of
        the job was.
        """
        return job_id not in self._dropped and self.bytes + 2 * ENTRY_BYTES <= self._bytes_max

    def put(self, trace: DecisionTrace) -> None:
        """
        Keep a trace instead of the job's older one; the oldest ones go when there is no room.
        """
        self._remove(trace.job_id)
        self._dropped.pop(trace.job_id, None)
        entry = _Entry(trace.session, packed(trace), trace.passed)
        self._entries[trace.job_id] = entry
        self._bytes += _size(entry)
        while self.bytes > self._bytes_max and len(self._entries) > 1:
            self._drop(next(iter(self._entries)))

    def pass_over(self, job_id: str, passed: Passed) -> bool:
        """
        Note that a session didn't try a job, beside its trace.

        Returns:
            Whether there is a trace of it.
        """
        entry = self._entries.get(job_id)
        if entry is not None:
            entry.passed = passed
        return entry is not None

    def get(self, job_id: str) -> DecisionTrace | None:
        """
        Return a job's trace.
        """
        entry = self._entries.get(job_id)
        return None if entry is None else unpacked(entry.text, entry.session, entry.passed)

    def dropped_in(self, job_id: str) -> int | None:
        """
        Return the session of a job's trace that was dropped for want of room, None when none was,
        or so long ago that it isn't known any more (``forgotten_count`` tells of how many).
        """
        return self._dropped.get(job_id)

    def job_ids(self) -> Iterator[str]:
        """
        Yield the jobs that have a trace, the oldest first.
        """
        yield from self._entries

    def _drop(self, job_id: str) -> None:
        self._dropped[job_id] = self._entries[job_id].session.number
        self._remove(job_id)
        self.dropped_count += 1
        if len(self._dropped) * DROPPED_BYTES > self._bytes_max // DROPPED_PART:
            del self._dropped[next(iter(self._dropped))]
            self.forgotten_count += 1

    def _remove(self, job_id: str) -> None:
        entry = self._entries.pop(job_id, None)
        if entry is not None:
            self._bytes -= _size(entry)


def _size(entry: _Entry) -> int:
    return ENTRY_BYTES + len(entry.text)

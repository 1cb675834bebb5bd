"""
Keep the jobs that wait in the one order that all pickers have: queue priority (high first), job
priority (high first), place (as moved by top and bottom), queue time, job number, array index. A
job that its user moved stands beside another one of theirs instead.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Any, NamedTuple

from projections.scheduling.pickers.protocol import PickerView
from projections.scheduling.records import JobRecord

Key = tuple[int, ...]
Proof = tuple[str, str, int]
"""Of a job that couldn't be placed: its stream, what it asked for, and the epoch of that."""

NAMES = ("queue_priority", "job_priority", "place", "queue_us", "job", "index")
"""What the parts of a key are; of the first two the high ones come first."""
NAMES_BESIDE = (*NAMES[:3], "beside_queue_us", "beside_job", "beside_index", "rank", "job", "index")
"""The same of a job that was moved beside another of its user."""

UNKNOWN = -1
NO_PROOF: Proof = ("", "", -1)


def key_of(view: PickerView, job: JobRecord) -> Key:
    """
    Return what orders jobs; no two have the same.
    """
    queue = view.queue_of(job).spec
    return (-queue.priority, -queue.counted_priority(job.spec.user_priority), *job.position)


def named_keys(view: PickerView, job: JobRecord) -> list[tuple[str, int | str]]:
    """
    Return the same by name, as it is told to people.
    """
    priority, wish, *rest = key_of(view, job)
    if job.beside is None:
        return list(zip(NAMES, (-priority, -wish, *rest[:-1]), strict=True))
    return list(zip(NAMES_BESIDE, (-priority, -wish, *rest), strict=True))


def proof_of(view: PickerView, job: JobRecord) -> Proof:
    """
    Return what is proved when a job couldn't be placed: while it is the same, the job can't start.
    """
    fingerprint = view.fingerprint_of(job)
    return job.stream, fingerprint, view.epoch_of(fingerprint)


class Entry(NamedTuple):
    """
    Hold one job that waits. Entries sort by their keys, which differ.

    Args:
        slots: So many it takes at least.
        run_us: How long it is planned to run, UNKNOWN when nobody knows.
    """

    key: Key
    slots: int
    run_us: int
    job: JobRecord


def entry_of(view: PickerView, job: JobRecord) -> Entry:
    """
    Return what is known of a job that begins to wait.
    """
    run_us = view.planned_run_us(job)
    known_us = UNKNOWN if run_us is None else run_us
    return Entry(key_of(view, job), view.least_slots(job), known_us, job)


def index_of(entries: Sequence[Entry], entry: Entry) -> int:
    """
    Return where an entry is in a sorted list, or would be.
    """
    probe: Any = (entry.key,)
    return bisect_left(entries, probe)


class Waiting:
    """
    Hold the jobs that wait, in order.

    Args:
        view: What the core tells of jobs.
    """

    def __init__(self, view: PickerView) -> None:
        self._view = view
        self.entries: list[Entry] = []
        self.by_stream: dict[str, Entry] = {}

    def push(self, job: JobRecord) -> Entry:
        """
        Put a job at its place, where it isn't there already.
        """
        entries, stream = self.entries, job.stream
        if stream in self.by_stream:
            self.drop(job)
        entry = entry_of(self._view, job)
        self.by_stream[stream] = entry
        # Mostly who comes last stands last.
        if not entries or entries[-1].key < entry.key:
            entries.append(entry)
        else:
            insort(entries, entry)
        return entry

    def drop(self, job: JobRecord) -> None:
        """
        Take a job out, if it is there.
        """
        entry = self.by_stream.pop(job.stream, None)
        if entry is not None:
            is_first = self.entries[0] is entry
            del self.entries[0 if is_first else index_of(self.entries, entry)]

    def push_again(self, queue: str) -> list[Entry]:
        """
        Put every job of a queue at the place that it has now.
        """
        jobs = [entry.job for entry in self.entries if entry.job.spec.queue == queue]
        return [self.push(job) for job in jobs]

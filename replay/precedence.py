"""
Hold jobs of a workload back until those that they wait for have ended, as a workflow's user does.
"""

from __future__ import annotations

from collections import defaultdict

from replay.workloads.source import Jobs


class Precedence:
    """
    Know which jobs wait for which; jobs are told by their index in the workload.

    A job that isn't in the workload is waited for by nobody. How a job ended doesn't matter.
    """

    @classmethod
    def of(cls, jobs: Jobs) -> Precedence | None:
        """
        Return who waits for whom, None for a workload whose jobs wait for none.
        """
        details = jobs.details
        return cls(jobs) if details is not None and any(details.preceding_ids) else None

    def __init__(self, jobs: Jobs) -> None:
        preceding_ids = jobs.details.preceding_ids if jobs.details is not None else []
        index_of = {trace_id: index for index, trace_id in enumerate(jobs.trace_id)}
        self._waits: dict[int, int] = {}
        self._followers: dict[int, list[int]] = defaultdict(list)
        for index, ids in enumerate(preceding_ids):
            known = [index_of[trace_id] for trace_id in ids if trace_id in index_of]
            if known:
                self._waits[index] = len(known)
            for before in known:
                self._followers[before].append(index)
        self._arrived: set[int] = set()
        self._free: list[int] = []

    def arrive(self, index: int) -> bool:
        """
        Note that a job's own submit time has come; tell whether it may be submitted now.
        """
        if index not in self._waits:
            return True
        self._arrived.add(index)
        return False

    def end(self, index: int) -> None:
        """
        Note that a job has ended.
        """
        for follower in self._followers.pop(index, ()):
            self._waits[follower] -= 1
            if not self._waits[follower]:
                del self._waits[follower]
                if follower in self._arrived:
                    self._arrived.discard(follower)
                    self._free.append(follower)

    def take_free(self) -> list[int]:
        """
        Return the jobs that arrived before and may now be submitted, in order of the workload.
        """
        free, self._free = sorted(self._free), []
        return free

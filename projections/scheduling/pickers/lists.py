"""
Queues that name a picker of their own: each list of jobs is picked from by its own picker.

A list holds the queues of one priority under one picker; queues that share accounts of fairshare
are in one list. Lists come one after the other, those of high priority first, those of equal
priority in the order in which their first queues were defined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, final

from domain.errors import Refused
from domain.ids import CLUSTER, queue_stream
from domain.reservations import BackfillReservation, KeptRun
from projections.scheduling.pickers.protocol import (
    NO_TERMS,
    JobPicker,
    PickerView,
    Planner,
    Remembering,
    Terms,
)
from projections.scheduling.records import JobRecord, QueueRecord, StoredState

Factories = Mapping[str, Callable[[], JobPicker]]


class ListKey(NamedTuple):
    """
    Name a list.

    Args:
        rank: Orders lists: the priority of its queues, high first.
        picker: Who picks from it.
        queues: Names of its queues, in order of definition.
    """

    rank: int
    picker: str
    queues: tuple[str, ...]


class Picking(NamedTuple):
    """
    Say who picks: the cluster's picker, and the lists, none when it picks from all queues.
    """

    cluster: str
    lists: tuple[ListKey, ...]


def picking_of(stored: StoredState, *, otherwise: str) -> Picking:
    """
    Return who picks by what is configured.

    Args:
        stored: The settings and the queues.
        otherwise: The cluster's picker while there are no settings.
    """
    cluster = stored.cluster.picker if stored.cluster else otherwise
    found: dict[tuple[int, str], list[str]] = {}
    # Queues that share accounts are in the list of the highest of them, since who comes first among
    # their users is found over all.
    ranks: dict[tuple[str, str], int] = {}
    for queue in stored.queues.values():
        shared = (_family_of(stored, queue), queue.spec.picker)
        ranks[shared] = min(-queue.spec.priority, ranks.get(shared, 0))
    for name, queue in stored.queues.items():
        rank = ranks[_family_of(stored, queue), queue.spec.picker]
        key = (rank, queue.spec.picker or cluster)
        found.setdefault(key, []).append(name)
    if all(picker == cluster for _, picker in found):
        return Picking(cluster, ())
    keys = sorted(found, key=lambda key: key[0])
    return Picking(cluster, tuple(ListKey(*key, tuple(found[key])) for key in keys))


def _family_of(stored: StoredState, queue: QueueRecord) -> str:
    shared = None if queue.spec.fairshare is None else queue.spec.fairshare.accounts_of
    return shared if shared is not None and shared in stored.queues else queue.name


def picker_of(picking: Picking, factories: Factories) -> JobPicker:
    """
    Return a fresh picker: the cluster's, or one that goes through the lists.

    Raises:
        Refused: Nobody knows a picker of some name.
    """
    for name in (picking.cluster, *(key.picker for key in picking.lists)):
        if name not in factories:
            raise Refused("picker", f"must be one of {', '.join(sorted(factories))}", name)
    if not picking.lists:
        return factories[picking.cluster]()
    return PickerLists(picking, factories)


def held_back(picker: JobPicker) -> list[tuple[str, JobRecord]]:
    """
    Return (stream of a list, job) for each job that held back the rest of its list in the session
    that has just ended.
    """
    if isinstance(picker, PickerLists):
        return picker.held_back()
    blocker = picker.blocker()
    return [] if blocker is None else [(CLUSTER, blocker)]


class _Listed:
    """
    Hold a list with its picker, and the jobs that it knows.

    Args:
        streams: Where it is recorded who holds the list back.
        is_clusters: Whether it is the cluster's picker, which ends everything when it is blocked.
    """

    def __init__(self, key: ListKey, picker: JobPicker, *, is_clusters: bool) -> None:
        self.picker = picker
        self.planner = picker if isinstance(picker, Planner) else None
        self.is_clusters = is_clusters
        self.jobs: dict[str, JobRecord] = {}
        own = tuple(queue_stream(name) for name in key.queues)
        self.streams: Final = (CLUSTER,) if is_clusters else own

    def blocker(self) -> JobRecord | None:
        """
        Return the job that ended the list in this session, also one with nobody behind it there.
        """
        alone = getattr(self.picker, "blocked_by", None)
        blocker: JobRecord | None = self.picker.blocker() if alone is None else alone()
        return blocker

    def recorded(self) -> dict[str, BackfillReservation]:
        """
        Return what its picker has promised, as it is recorded.
        """
        return {
            stream: job.promise
            for stream, job in self.jobs.items()
            if job.promise is not None and job.promise.policy == self.picker.name
        }


@final
class PickerLists:
    """
    Go through lists, each with a picker of its own that begins its part of the session when the
    lists before it have ended: it sees the hosts as those left them.
    """

    version = 1

    def __init__(self, picking: Picking, factories: Factories) -> None:
        self.name = picking.cluster
        self._lists = [
            _Listed(key, factories[key.picker](), is_clusters=key.picker == picking.cluster)
            for key in picking.lists
        ]
        self._of_queue = {
            name: listed
            for key, listed in zip(picking.lists, self._lists, strict=True)
            for name in key.queues
        }
        self._of_job: dict[str, _Listed] = {}
        self._place = 0
        self._is_begun = False
        self._begun: list[_Listed] = []
        self._blocked: dict[int, JobRecord] = {}

    def init(self, view: PickerView) -> None:
        for listed in self._lists:
            listed.picker.init(view)

    def fini(self) -> None:
        for listed in self._lists:
            listed.picker.fini()

    # -- jobs come and go

    def on_queue_update(self, queue: QueueRecord) -> None:
        # A queue that begins or ceases to have a list of its own makes the core picked afresh.
        listed = self._of_queue.get(queue.name)
        if listed is not None:
            listed.picker.on_queue_update(queue)

    def on_job_push(self, job: JobRecord) -> None:
        listed = self._of_queue[job.spec.queue]
        before = self._of_job.get(job.stream)
        if before is not None and before is not listed:
            self._leave(before, job)
        self._of_job[job.stream] = listed
        listed.jobs[job.stream] = job
        listed.picker.on_job_push(job)

    def on_job_state_change(self, job: JobRecord) -> None:
        listed = self._of_job.pop(job.stream, None)
        if listed is not None:
            self._leave(listed, job)

    def _leave(self, listed: _Listed, job: JobRecord) -> None:
        listed.jobs.pop(job.stream, None)
        listed.picker.on_job_state_change(job)

    def on_job_update(self, job: JobRecord) -> None:
        listed = self._of_queue[job.spec.queue]
        if self._of_job.get(job.stream) is listed:
            listed.picker.on_job_update(job)
        else:
            self.on_job_push(job)

    # -- a session

    def begin_session(self) -> None:
        self._place = 0
        self._is_begun = False
        self._begun = []
        self._blocked = {}

    def next_job(self) -> JobRecord | None:
        while self._place < len(self._lists):
            picker = self._lists[self._place].picker
            if not self._is_begun:
                picker.begin_session()
                self._is_begun = True
                self._begun.append(self._lists[self._place])
            job = picker.next_job()
            if job is not None:
                return job
            self._end_list()
        return None

    def _end_list(self) -> None:
        """
        End a list; the cluster's picker, when a job holds it back, ends all, unless it promises
        that job a start: later lists then leave free what it needs.
        """
        place, listed = self._place, self._lists[self._place]
        listed.picker.end_session()
        self._is_begun = False
        blocker = listed.blocker()
        self._place += 1
        if blocker is not None:
            self._blocked[place] = blocker
            if listed.is_clusters and listed.planner is None:
                self._blocked |= dict.fromkeys(range(place, len(self._lists)), blocker)
                self._place = len(self._lists)

    def on_dispatch(self, job: JobRecord) -> None:
        self._lists[self._place].picker.on_dispatch(job)

    def on_pend(self, job: JobRecord) -> None:
        self._lists[self._place].picker.on_pend(job)

    def end_session(self) -> None:
        if self._is_begun:
            self._lists[self._place].picker.end_session()
            self._is_begun = False

    def on_run_end(self, job: JobRecord, now_us: int) -> None:
        """
        Tell the picker of the job's queue, if it remembers, that it leaves its hosts.
        """
        listed = self._of_queue.get(job.spec.queue)
        if listed is not None and isinstance(listed.picker, Remembering):
            listed.picker.on_run_end(job, now_us)

    # -- promises

    def terms_of(self, job: JobRecord) -> Terms:
        """
        Return the terms of the job's own list, and what the lists before it have promised.
        """
        own = self._lists[self._place].planner
        terms = NO_TERMS if own is None else own.terms_of(job)
        kept = terms.kept
        for listed in self._lists[: self._place]:
            kept += () if listed.planner is None else listed.planner.kept_from(job)
        return Terms(terms.ahead_of, kept)

    def kept_from(self, job: JobRecord) -> tuple[KeptRun, ...]:
        """
        Return what every list keeps from a job of none of them.
        """
        planners = (listed.planner for listed in self._begun)
        return tuple(run for each in planners if each is not None for run in each.kept_from(job))

    def is_stepwise(self) -> bool:
        """
        Say whether some list's promises depend on what it promised before.
        """
        planners = (listed.planner for listed in self._begun)
        return any(each.is_stepwise() for each in planners if each is not None)

    def promises(self) -> dict[str, BackfillReservation]:
        """
        Return what all lists promise; of those that weren't gone through in this session, what is
        recorded.
        """
        found: dict[str, BackfillReservation] = {}
        for listed in self._lists:
            if listed.planner is not None:
                promised = listed.planner.promises() if listed in self._begun else None
                found |= listed.recorded() if promised is None else promised
        return found

    def blocker(self) -> JobRecord | None:
        return next((job for _, job in self.held_back()), None)

    # -- what decision traces tell

    def picker_of(self, job: JobRecord) -> JobPicker:
        """
        Return who picks from the list that a job is in.
        """
        return self._of_queue[job.spec.queue].picker

    def blocker_of(self, job: JobRecord) -> JobRecord | None:
        """
        Return the job that held back the list that a job is in, None when none did.
        """
        place = self._lists.index(self._of_queue[job.spec.queue])
        return self._blocked.get(place)

    def held_back(self) -> list[tuple[str, JobRecord]]:
        """
        Return (stream of a list, job) for each job behind which others of its list, or lists after
        a blocked one of the cluster's picker, wait.
        """
        found: dict[str, JobRecord] = {}
        for place, blocker in self._blocked.items():
            listed = self._lists[place]
            if _others(listed.jobs, blocker):
                found |= dict.fromkeys(listed.streams, blocker)
        return list(found.items())


def _others(streams: Iterable[str], job: JobRecord) -> bool:
    return any(stream != job.stream for stream in streams)

"""
Greedy pickers whose order is fixed: jobs that ask for the same are one group, so that a session
looks at groups and not at every job that waits.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush

from projections.scheduling.pickers.protocol import PickerView
from projections.scheduling.pickers.waiting import Key, key_of, named_keys
from projections.scheduling.records import JobRecord, QueueRecord

Entry = tuple[Key, JobRecord]
Heap = list[Entry]


class Order:
    """
    Know which jobs wait, and each one's place in order. An entry of a heap that isn't known any
    more is passed over.

    Args:
        key_of: Returns what orders jobs; no two have the same.
    """

    def __init__(self, key_of: Callable[[JobRecord], Key]) -> None:
        self._key_of = key_of
        self.keys: dict[str, Key] = {}
        self._pushes = 0

    def push(self, heap: Heap, job: JobRecord) -> None:
        """
        Put a job into a heap; the count of pushes, last in its key, tells it from an old entry of
        the same job.
        """
        self._pushes += 1
        key = (*self._key_of(job), self._pushes)
        self.keys[job.stream] = key
        heappush(heap, (key, job))

    def first(self, heap: Heap) -> Entry | None:
        """
        Return the first entry of a heap that still waits, None when none does.
        """
        keys = self.keys
        while heap:
            entry = heap[0]
            if keys.get(entry[1].stream) == entry[0]:
                return entry
            heappop(heap)
        return None

    def sorted(self, heap: Heap) -> Heap:
        """
        Return the entries that still wait, in order, which is a heap too.
        """
        return sorted((entry for entry in heap if self._waits(entry)), key=lambda entry: entry[0])

    def _waits(self, entry: Entry) -> bool:
        return self.keys.get(entry[1].stream) == entry[0]

    def waiting(self, heap: Heap) -> list[JobRecord]:
        """
        Return the jobs of a heap that still wait.
        """
        return [entry[1] for entry in heap if self._waits(entry)]


class Group:
    """
    Hold the pending jobs of one request: ``fresh`` ones don't know their reasons yet, ``known``
    ones do.

    ``proved`` is the request's epoch when it last proved impossible; ``is_spent`` says that in this
    session only fresh jobs remain to be returned. ``round`` is the last session in which its first
    job was to be tried, ``failed`` the last in which one couldn't be placed, ``head`` the key of
    the job that is next to be returned.
    """

    __slots__ = ("failed", "fingerprint", "fresh", "head", "is_spent", "known", "proved", "round")

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint
        self.fresh: Heap = []
        self.known: Heap = []
        self.proved = -1
        self.is_spent = False
        self.round = -1
        self.failed = -1
        self.head: Key | None = None


class GroupedPicker:
    """
    Be greedy: a job that can't be placed holds nobody back. What comes of it says in which order.

    Equivalent to: return every ready job once, in order. Differs in: jobs that ask for the same are
    one group. Once a group's job couldn't be placed, its other members that know their reasons are
    passed over until something may have changed for their request (``epoch_of``); members that
    don't know theirs are still returned, so that they get them. What a dispatch may change for a
    request is looked at behind the dispatched job, in the same session.
    """

    def init(self, view: PickerView) -> None:
        self._view = view
        self._order = Order(self.key_of)
        self._groups: dict[str, Group] = {}
        self._heads: list[tuple[Key, JobRecord, Group]] = []
        self._current: Group | None = None
        self._current_key: Key | None = None
        self._woken_at = -1
        self._round = 0
        self._pushed: dict[str, Group] = {}
        self._began_at = -1
        self._settled_at = -1
        self._let_go_at = -1
        self._had_turn: list[tuple[Heap, Entry]] = []

    def fini(self) -> None:
        self._groups.clear()

    def key_of(self, job: JobRecord) -> Key:
        """
        Return what orders jobs; no two have the same.
        """
        return key_of(self._view, job)

    # -- jobs come and go

    def on_queue_update(self, queue: QueueRecord) -> None:
        for group in list(self._groups.values()):
            jobs = self._order.waiting([*group.fresh, *group.known])
            if jobs and jobs[0].spec.queue == queue.name:
                del self._groups[group.fingerprint]
                for job in jobs:
                    self.on_job_push(job)

    def on_job_push(self, job: JobRecord) -> None:
        fingerprint = self._view.fingerprint_of(job)
        group = self._groups.get(fingerprint)
        if group is None:
            group = self._groups[fingerprint] = Group(fingerprint)
        self._order.push(group.known if self._view.knows_reasons(job) else group.fresh, job)
        self._pushed[fingerprint] = group

    def on_job_state_change(self, job: JobRecord) -> None:
        self._order.keys.pop(job.stream, None)

    def on_job_update(self, job: JobRecord) -> None:
        self.on_job_push(job)

    # -- a session

    def begin_session(self) -> None:
        self._current = None
        self._heads = []
        self._round += 1
        self._woken_at = -1
        self._let_go_at = self._view.let_go()
        for group in self._candidates():
            # Fresh jobs get a copy of what the first one proves now, so that one is tried.
            is_proved = group.proved == self._view.epoch_of(group.fingerprint)
            group.is_spent = is_proved and self._first_fresh(group) is None
            if not group.is_spent:
                group.round = self._round
            self._add_head(group, heapify_later=True)
        heapify(self._heads)
        self._pushed = {}

    def _candidates(self) -> list[Group]:
        """
        Return the groups that may have something to try: all, or those with new jobs when nothing
        was freed or changed since a session that tried everything.
        """
        settled, self._settled_at = self._settled_at, -1
        self._began_at = self._view.changes()
        if settled == self._began_at:
            return list(self._pushed.values())
        empty = [
            name for name, group in self._groups.items() if not group.fresh and not group.known
        ]
        for name in empty:
            del self._groups[name]
        return list(self._groups.values())

    def next_job(self) -> JobRecord | None:
        while self._heads:
            key, job, group = heappop(self._heads)
            if group.head != key:
                continue
            group.head = None
            if self._view.is_ready(job):
                self._current, self._current_key = group, key
                return job
        return None

    def on_dispatch(self, job: JobRecord) -> None:
        self._note_changes()
        self._add_head(self._taken())

    def _note_changes(self) -> None:
        """
        Have those behind tried for whom what was decided for the job just returned may have changed
        something: a dispatch, or a plan to preempt.
        """
        first = self._woken_at < 0 and self._view.changes() != self._began_at
        if self._view.let_go() != self._let_go_at:
            self._try_again_behind()
        elif first or (self._woken_at >= 0 and self._woken_at != self._view.freed()):
            self._woken_at = self._view.freed()
            self._wake_behind()

    def _try_again_behind(self) -> None:
        """
        Have every job tried that comes behind the one just returned, also of requests that proved
        impossible before in this session: what was held for it is free. Others had their turn.
        """
        self._woken_at, self._let_go_at = self._view.freed(), self._view.let_go()
        assert self._current_key is not None, "on_dispatch and on_pend follow next_job"
        # Without the count of pushes: what the job just returned asks for may have changed.
        turn = self._current_key[:-1]
        for group in self._groups.values():
            for heap in (group.fresh, group.known):
                entries = self._order.sorted(heap)
                self._had_turn += [(heap, each) for each in entries if each[0][:-1] <= turn]
                heap[:] = [each for each in entries if each[0][:-1] > turn]
            group.is_spent, group.round = False, self._round
            if group is not self._current:
                self._add_head(group)

    def _wake_behind(self) -> None:
        """
        Have the groups tried whose first job comes behind the one just dispatched, and for whose
        request the dispatch may have changed something. Those before it had their turn.
        """
        for group in self._groups.values():
            if group is self._current or group.round == self._round:
                continue
            if group.proved == self._view.epoch_of(group.fingerprint):
                continue
            known = self._order.first(group.known)
            if known is not None and self._current_key is not None and known[0] > self._current_key:
                group.is_spent, group.round = False, self._round
                self._add_head(group)

    def on_pend(self, job: JobRecord) -> None:
        group = self._taken()
        self._note_changes()
        if self._view.fingerprint_of(job) != group.fingerprint:
            # It asks for something else now, so it has proved nothing for the others.
            self._add_head(group)
            return
        if group.failed != self._round:
            # Those behind get a copy of what the first one proved, whatever has changed since.
            group.failed = self._round
            group.proved = self._view.epoch_of(group.fingerprint)
        group.is_spent = True
        if group.fresh and group.fresh[0][1] is job:
            heappush(group.known, heappop(group.fresh))
        self._add_head(group)

    def end_session(self) -> None:
        if not self._heads:
            self._settled_at = self._began_at
        for heap, entry in self._had_turn:
            heappush(heap, entry)
        self._had_turn = []
        self._heads = []
        self._current = None

    def order_keys(self, job: JobRecord) -> list[tuple[str, int | str]]:
        """
        Return by name what gives a job its place in the order.
        """
        return named_keys(self._view, job)

    def blocker(self) -> JobRecord | None:
        return None

    def _taken(self) -> Group:
        assert self._current is not None, "on_dispatch and on_pend follow next_job"
        return self._current

    def _first_fresh(self, group: Group) -> Entry | None:
        """
        Return the first job of a group that doesn't know its reasons, None when all do. A core that
        is fed with what another one decided has jobs told theirs between its sessions.
        """
        while (entry := self._order.first(group.fresh)) is not None:
            if not self._view.knows_reasons(entry[1]):
                break
            heappush(group.known, heappop(group.fresh))
        return entry

    def _add_head(self, group: Group, *, heapify_later: bool = False) -> None:
        """
        Add the group's next job to try, if it has one.
        """
        entry = self._first_fresh(group)
        if not group.is_spent:
            known = self._order.first(group.known)
            if entry is None or (known is not None and known[0] < entry[0]):
                entry = known
        if entry is None:
            return
        group.head = entry[0]
        if heapify_later:
            self._heads.append((*entry, group))
        else:
            heappush(self._heads, (*entry, group))

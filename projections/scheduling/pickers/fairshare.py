"""
Fairshare (``fairshare``): whose user has used least for its shares comes first (LSF's formula).

Queues come by priority, those of equal priority one after the other in order of definition, queues
that count in the same accounts together. In a queue the tree of shares is walked from the top; a
user's jobs come in their usual order. After each dispatch accounts are looked at anew. A job that
can't be placed holds nobody back.

What is left of past use is a document for each account, changed when a job leaves its hosts; what
runs is counted from the jobs themselves.
"""

from __future__ import annotations

import json
from bisect import insort
from collections.abc import Iterable
from typing import final

from domain.fairshare import Fairshare, decayed
from projections.scheduling.pickers.protocol import PickerView
from projections.scheduling.pickers.sharing import NOBODY, Account, Path, Sharing, Used
from projections.scheduling.pickers.waiting import Entry, entry_of, index_of, named_keys
from projections.scheduling.records import JobRecord, QueueRecord

Leaf = tuple[str, Path]
"""An account that jobs count in: its family, and the way to it."""


@final
class FairsharePicker:
    """
    Pick by dynamic priority.

    Equivalent to: return every ready job once, that of the account with the highest priority next.
    Differs in: 1. a job that knows why it waits isn't returned when its request proved impossible
    in this session, and nothing can have changed for it since (``epoch_of``); 2. when nothing
    changed since a session that tried everything, new jobs alone are tried, and who comes first is
    worked out only when there are several, or when trying one changes something for those behind.
    """

    name = "fairshare"
    version = 1

    def init(self, view: PickerView) -> None:
        self._view = view
        self._sharing = Sharing(view)
        self._leaves: dict[Leaf, list[Entry]] = {}
        self._places: dict[str, tuple[Leaf, Entry]] = {}
        self._is_stale = False
        self._fresh: dict[str, Entry] = {}
        self._settled_at = self._began_at = -1
        self._is_over = True
        self._alone: Entry | None = None
        self._current: Entry | None = None
        self._roots: list[Account] | None = None
        self._gathered: list[tuple[JobRecord, int]] = []
        self._proved: dict[str, int] = {}
        self._ways: dict[Leaf, list[Account]] = {}
        self._read: dict[str, tuple[str, dict[str, int]]] = {}

    def fini(self) -> None:
        self._leaves, self._places, self._read = {}, {}, {}

    # -- jobs come and go

    def on_queue_update(self, queue: QueueRecord) -> None:
        self._sharing.define(queue)
        # Who counts where is worked out once, when it is needed, for all definitions that change.
        self._is_stale = True

    def _refresh(self) -> None:
        if self._is_stale:
            self._is_stale = False
            jobs = [entry.job for _, entry in self._places.values()]
            self._leaves, self._places = {}, {}
            for job in jobs:
                self.on_job_push(job)

    def on_job_push(self, job: JobRecord) -> None:
        self._refresh()
        self.on_job_state_change(job)
        entry, leaf = entry_of(self._view, job), self._leaf_of(job)
        insort(self._leaves.setdefault(leaf, []), entry)
        self._places[job.stream] = (leaf, entry)
        self._fresh[job.stream] = entry

    def on_job_state_change(self, job: JobRecord) -> None:
        self._fresh.pop(job.stream, None)
        found = self._places.pop(job.stream, None)
        if found is not None:
            leaf, entry = found
            entries = self._leaves[leaf]
            del entries[index_of(entries, entry)]
            if not entries:
                del self._leaves[leaf]

    def on_job_update(self, job: JobRecord) -> None:
        self.on_job_push(job)

    def _leaf_of(self, job: JobRecord) -> Leaf:
        family = self._sharing.family_of(job.spec.queue)
        return family, self._sharing.path_of(family, job.spec.user)

    def on_run_end(self, job: JobRecord, now_us: int) -> None:
        """
        Add what a run has used to its account's document.
        """
        family, path = self._leaf_of(job)
        if path == NOBODY:
            return
        rules, name = self._sharing.rules_of(family), document_of(family, path)
        cpu_us, run_us = self._past(name, rules, now_us)
        run_us += slots_of(job) * job.ran_us(now_us) if rules.counts_past_runs else 0
        kept = {"at_us": now_us, "cpu_us": cpu_us + job.cpu_us, "run_us": run_us}
        text = json.dumps(kept, sort_keys=True, separators=(",", ":"))
        self._view.remember(name, self.version, text)

    # -- a session

    def begin_session(self) -> None:
        self._refresh()
        # Nothing outlives a session but by events: one that decided nothing leaves no proof behind.
        self._proved = {}
        self._current, self._roots = None, None
        fresh, self._fresh = list(self._fresh.values()), {}
        settled, self._settled_at = self._settled_at, -1
        self._began_at = self._view.changes()
        is_calm = settled == self._began_at
        self._is_over = is_calm and not fresh
        self._alone = fresh[0] if is_calm and len(fresh) == 1 else None
        self._gathered = [
            (job, job.promise.slots())
            for job in self._view.promised_jobs()
            if job.promise is not None and job.promise.is_held
        ]

    def next_job(self) -> JobRecord | None:
        if self._alone is not None and not self._is_over:
            # Whether it is returned or not: it was the only one.
            self._is_over = True
            if self._view.is_ready(self._alone.job):
                self._current = self._alone
                return self._current.job
        if self._is_over:
            return None
        if self._roots is None:
            self._roots = self._grown()
        for root in self._roots:
            while (head := root.head()) is not None:
                if self._may_succeed(head.job):
                    self._current = head
                    return head.job
                root.take()
        self._is_over = True
        return None

    def _may_succeed(self, job: JobRecord) -> bool:
        """
        Say whether a job is to be tried: nothing is proved against it, or it has to learn that.
        """
        fingerprint = self._view.fingerprint_of(job)
        proved = self._proved.get(fingerprint)
        is_proved = proved is not None and proved == self._view.epoch_of(fingerprint)
        return not (is_proved and self._view.knows_reasons(job))

    def on_dispatch(self, job: JobRecord) -> None:
        if self._matters_to_others():
            root = self._root()
            use = self._use_of(job, root.rules)
            _add(root.path_to_head(), use)
            root.take()

    def on_pend(self, job: JobRecord) -> None:
        fingerprint = self._view.fingerprint_of(job)
        self._proved[fingerprint] = self._view.epoch_of(fingerprint)
        if self._matters_to_others():
            self._root().take()

    def _matters_to_others(self) -> bool:
        """
        Say whether others are tried behind the job just returned. It begins to be so when that one
        alone was to be tried, but something has changed.
        """
        if self._alone is None:
            return True
        if self._view.changes() == self._began_at:
            return False
        self._to_current()
        self._alone, self._is_over = None, False
        return True

    def _to_current(self) -> None:
        """
        Put all in order as it was when the session began; those before the job just returned had
        their turn.
        """
        assert self._current is not None, "on_dispatch and on_pend follow next_job"
        self._roots = self._grown(self._current)
        for root in self._roots:
            while (head := root.head()) is not None:
                if head.job is self._current.job:
                    return
                root.take()

    def _root(self) -> Account:
        assert self._roots is not None, "the order is known once it matters"
        return next(root for root in self._roots if root.head() is not None)

    def end_session(self) -> None:
        self._settled_at = self._began_at if self._is_over else -1
        self._roots, self._ways = None, {}

    # -- the accounts

    def _grown(self, current: Entry | None = None) -> list[Account]:
        """
        Return the trees of the families whose jobs may be tried, in order, with what was used.

        Args:
            current: A job that waits as far as these are concerned; None for no such.
        """
        self._current, self._ways = current, {}
        leaves = {leaf: list(entries) for leaf, entries in self._leaves.items()}
        if current is not None and current.job.stream not in self._places:
            insort(leaves.setdefault(self._leaf_of(current.job), []), current)
        trees: dict[str, Account] = {}
        for leaf, entries in leaves.items():
            if any(self._waits(entry.job) for entry in entries):
                root = trees.get(leaf[0])
                if root is None:
                    rules = self._sharing.rules_of(leaf[0])
                    root = trees[leaf[0]] = Account(1, rules, self._waits)
                self._along(root, leaf)[-1].entries = entries
        self._add_running(trees)
        found = [trees[family] for family in sorted(trees, key=self._sharing.rank)]
        for root in found:
            root.begin()
        return found

    def _waits(self, job: JobRecord) -> bool:
        """
        Say whether a job has its place in the order: it may be tried, or is just being tried.
        """
        current = self._current
        return (current is not None and job is current.job) or self._view.is_ready(job)

    def _along(self, root: Account, leaf: Leaf) -> list[Account]:
        """
        Return the accounts on the way to a leaf, with what it has used in the past.
        """
        found = self._ways.get(leaf)
        if found is None:
            family, path = leaf
            found = root.along(path, self._sharing.shares_along(family, path))
            self._ways[leaf] = found
            if path != NOBODY:
                name = document_of(family, path)
                cpu_us, run_us = self._past(name, root.rules, self._view.now_us())
                _add(found, (cpu_us, run_us, 0, 0))
        return found

    def _past(self, name: str, rules: Fairshare, now_us: int) -> tuple[int, int]:
        """
        Return what is left at a moment of what a document tells: processor and run time.
        """
        text = self._view.recall(name)
        if text is None:
            return 0, 0
        read, kept = self._read.get(name, ("", {}))
        if read is not text:
            kept = json.loads(text)
            self._read[name] = (text, kept)
        age_us = now_us - kept["at_us"]
        run_us = kept["run_us"]
        if rules.run_time_decays:
            run_us = decayed(run_us, age_us, rules.history_us)
        return decayed(kept["cpu_us"], age_us, rules.history_us), run_us

    def _add_running(self, trees: dict[str, Account]) -> None:
        """
        Add what running jobs use to their accounts, and what waiting ones had gathered when the
        session began.
        """
        current = None if self._current is None else self._current.job
        for job in self._view.live_jobs():
            root = trees.get(self._sharing.family_of(job.spec.queue))
            if root is not None and job is not current:
                self._add_use(root, job, self._use_of(job, root.rules))
        for job, slots in self._gathered:
            root = trees.get(self._sharing.family_of(job.spec.queue))
            if root is not None:
                self._add_use(root, job, (0, 0, 0, slots))

    def _add_use(self, root: Account, job: JobRecord, use: Used) -> None:
        leaf = self._leaf_of(job)
        if leaf[1] != NOBODY:
            _add(self._along(root, leaf), use)

    def _use_of(self, job: JobRecord, rules: Fairshare) -> Used:
        slots, run_us, left_us = slots_of(job), job.ran_us(self._view.now_us()), 0
        if rules.committed_run_time_factor_milli:
            planned_us = self._view.planned_run_us(job)
            left_us = 0 if planned_us is None else max(0, planned_us - run_us)
        return job.cpu_us, slots * run_us, slots * left_us, slots

    # -- what is told of it

    def blocker(self) -> JobRecord | None:
        return None

    def order_keys(self, job: JobRecord) -> list[tuple[str, int | str]]:
        """
        Return by name what gives the job that was just handed out its place: use over shares of
        each account on the way to its own, then the usual order.
        """
        priority, *usual = named_keys(self._view, job)
        accounts: list[tuple[str, int | str]] = []
        if self._current is not None and self._current.job is job:
            if self._roots is None:
                self._to_current()
            path = self._leaf_of(job)[1]
            below = list(self._root().path_to_head())[1:]
            accounts = [
                (f"use over shares of {name or 'nobody'}", str(account.key()))
                for name, account in zip(path, below, strict=True)
            ]
        return [priority, *accounts, *usual]


def _add(accounts: Iterable[Account], use: Used) -> None:
    for account in accounts:
        account.add(use)


def document_of(family: str, path: Path) -> str:
    """
    Return the name of an account's document.
    """
    return "/".join(("fairshare", family, *path))


def slots_of(job: JobRecord) -> int:
    """
    Return the slots that a job has.
    """
    return 0 if job.allocation is None else job.allocation.tasks()

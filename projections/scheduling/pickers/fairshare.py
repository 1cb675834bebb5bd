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
from typing import Final, final

from domain.fairshare import DEFAULT, Fairshare, ShareNode, Use, decayed
from domain.job_states import JobState
from projections.scheduling.pickers.ordered import GreedyPicker
from projections.scheduling.pickers.protocol import PickerView
from projections.scheduling.pickers.sharing import NOBODY, Account, Path, path_of, shares_of
from projections.scheduling.records import JobRecord, QueueRecord

EQUAL: Final = Fairshare(shares=(ShareNode(name=DEFAULT, shares=1),))
"""How queues are shared that don't say: each user alike."""


@final
class FairsharePicker(GreedyPicker):
    """
    Pick by dynamic priority.

    Equivalent to: return every ready job once, that of the account with the highest priority next.
    Differs in: a job that knows why it waits isn't returned when its request proved impossible in
    this session, and nothing can have changed for it since (``epoch_of``).
    """

    name = "fairshare"
    version = 1

    def init(self, view: PickerView) -> None:
        super().init(view)
        self._queues: dict[str, QueueRecord] = {}
        self._lists: list[Account] = []
        self._paths: dict[str, list[Account]] = {}
        self._current: JobRecord | None = None

    # -- jobs come and go

    def on_queue_update(self, queue: QueueRecord) -> None:
        self._queues[queue.name] = queue
        super().on_queue_update(queue)

    def on_run_end(self, job: JobRecord, now_us: int) -> None:
        """
        Add what a run has used to its account's document.
        """
        family = self._family_of(job.spec.queue)
        rules = self._rules_of(family)
        path = self._path_of(rules, job)
        if path == NOBODY:
            return
        name = document_of(family, path)
        use = self._past(name, rules, now_us)
        run_us = slots_of(job) * ran_us(job, now_us) if rules.counts_past_runs else 0
        kept = {"at_us": now_us, "cpu_us": use.cpu_us + job.cpu_us, "run_us": use.run_us + run_us}
        text = json.dumps(kept, sort_keys=True, separators=(",", ":"))
        self._view.remember(name, self.version, text)

    # -- a session

    def begin_session(self) -> None:
        super().begin_session()
        self._current = None
        trees: dict[str, Account] = {}
        self._paths = {}
        wanted = [entry for entry in self._waiting.entries if self._view.is_ready(entry.job)]
        for entry in wanted:
            family = self._family_of(entry.job.spec.queue)
            root = trees.get(family)
            if root is None:
                root = trees[family] = Account(1, self._rules_of(family))
            self._account(root, family, entry.job).entries.append(entry)
        if trees:
            self._add_running(trees)
        ranked = sorted(trees, key=self._rank)
        self._lists = [trees[family] for family in ranked]
        for root in self._lists:
            root.begin()

    def _rank(self, family: str) -> tuple[int, int]:
        """
        Return what orders lists: the highest priority of its queues, then their definition.
        """
        queues = [name for name in self._queues if self._family_of(name) == family]
        order = list(self._queues)
        highest = max(self._queues[name].spec.priority for name in queues)
        return (-highest, min(order.index(name) for name in queues))

    def _family_of(self, queue: str) -> str:
        """
        Return the queue in whose accounts the jobs of a queue count.
        """
        record = self._queues.get(queue)
        rules = None if record is None else record.spec.fairshare
        if rules is None or rules.accounts_of is None or rules.accounts_of not in self._queues:
            return queue
        return rules.accounts_of

    def _rules_of(self, family: str) -> Fairshare:
        record = self._queues.get(family)
        rules = None if record is None else record.spec.fairshare
        return EQUAL if rules is None else rules

    def _path_of(self, rules: Fairshare, job: JobRecord) -> Path:
        return path_of(rules.shares, job.spec.user, self._view.groups_of(job.spec.user))

    def _account(self, root: Account, family: str, job: JobRecord) -> Account:
        """
        Return the account of a job, made with what it has used in the past where it is new.
        """
        rules, account = root.rules, root
        path = self._path_of(rules, job)
        for place, shares in enumerate(shares_of(rules.shares, path)):
            below = account.below.get(path[place])
            if below is None:
                below = account.below[path[place]] = Account(shares, rules)
                if place == len(path) - 1 and path != NOBODY:
                    self._charge_past(root, family, path)
            account = below
        return account

    def _charge_past(self, root: Account, family: str, path: Path) -> None:
        use = self._past(document_of(family, path), root.rules, self._view.now_us())
        for account in _along(root, path):
            account.add(use)

    def _past(self, name: str, rules: Fairshare, now_us: int) -> Use:
        """
        Return what is left at a moment of what a document tells.
        """
        text = self._view.recall(name)
        if text is None:
            return Use()
        kept = json.loads(text)
        age_us = now_us - kept["at_us"]
        run_us = kept["run_us"]
        if rules.run_time_decays:
            run_us = decayed(run_us, age_us, rules.history_us)
        return Use(cpu_us=decayed(kept["cpu_us"], age_us, rules.history_us), run_us=run_us)

    def _add_running(self, trees: dict[str, Account]) -> None:
        """
        Add what running jobs use to the accounts of all lists, and what waiting ones have gathered.
        """
        now_us = self._view.now_us()
        for job in self._view.live_jobs():
            self._add_use(trees, job, self._use_of(job, now_us))
        for job in self._view.promised_jobs():
            if job.promise is not None and job.promise.is_held:
                self._add_use(trees, job, Use(slots=job.promise.slots()))

    def _add_use(self, trees: dict[str, Account], job: JobRecord, use: Use) -> None:
        family = self._family_of(job.spec.queue)
        root = trees.get(family)
        path = NOBODY if root is None else self._path_of(root.rules, job)
        if root is None or path == NOBODY:
            return
        self._account(root, family, job)
        for account in _along(root, path):
            account.add(use)

    def _use_of(self, job: JobRecord, now_us: int) -> Use:
        slots, run_us = slots_of(job), ran_us(job, now_us)
        planned_us = self._view.planned_run_us(job)
        left_us = 0 if planned_us is None else max(0, planned_us - run_us)
        return Use(
            cpu_us=job.cpu_us, run_us=slots * run_us, committed_us=slots * left_us, slots=slots
        )

    def next_job(self) -> JobRecord | None:
        for root in self._lists:
            while (head := root.head()) is not None:
                if self._may_succeed(head.job):
                    self._current = head.job
                    return head.job
                root.take()
        return None

    def on_dispatch(self, job: JobRecord) -> None:
        root = self._root()
        for account in list(root.path_to_head()):
            account.add(self._use_of(job, self._view.now_us()))
        root.take()

    def on_pend(self, job: JobRecord) -> None:
        super().on_pend(job)
        self._root().take()

    def _root(self) -> Account:
        return next(root for root in self._lists if root.head() is not None)

    def end_session(self) -> None:
        self._lists = []

    def order_keys(self, job: JobRecord) -> list[tuple[str, int | str]]:
        """
        Return by name what gives the job that was just handed out its place: use over shares of
        each account on the way to its own, then the usual order.
        """
        priority, *usual = super().order_keys(job)
        accounts: list[tuple[str, int | str]] = []
        if self._current is job:
            path = self._path_of(self._rules_of(self._family_of(job.spec.queue)), job)
            below = list(self._root().path_to_head())[1:]
            accounts = [
                (f"use over shares of {name or 'nobody'}", str(account.key()))
                for name, account in zip(path, below, strict=True)
            ]
        return [priority, *accounts, *usual]


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


def ran_us(job: JobRecord, now_us: int) -> int:
    """
    Return how long a job has run so far.
    """
    return job.run_us + (now_us - job.since_us if job.state is JobState.RUN else 0)


def _along(root: Account, path: Path) -> list[Account]:
    found = [root]
    for name in path:
        found.append(found[-1].below[name])
    return found

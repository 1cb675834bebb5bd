"""
The obvious fairshare: who comes next is worked out from the jobs and documents alone, for each job
anew.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from domain.fairshare import Use, decayed, weight
from domain.job_states import JobState
from projections.scheduling.pickers.fairshare import document_of
from projections.scheduling.pickers.sharing import EQUAL, NOBODY, Path, path_of, shares_of
from projections.scheduling.records import JobRecord, QueueRecord
from tests.literal import LiteralFcfs

NEVER = Fraction(10**40)


class LiteralFairshare(LiteralFcfs):
    """
    Return every ready job once, that of the account with the least use for its shares next.
    """

    name = "fairshare"

    def init(self, view: Any) -> None:
        super().init(view)
        self.queues: dict[str, QueueRecord] = {}

    def on_queue_update(self, queue: QueueRecord) -> None:
        self.queues[queue.name] = queue

    def family_of(self, job: JobRecord) -> str:
        queue = self.queues.get(job.spec.queue)
        rules = None if queue is None else queue.spec.fairshare
        named = None if rules is None else rules.accounts_of
        return named if named in self.queues and named is not None else job.spec.queue

    def rules_of(self, family: str) -> Any:
        queue = self.queues.get(family)
        return (None if queue is None else queue.spec.fairshare) or EQUAL

    def path(self, job: JobRecord) -> Path:
        rules = self.rules_of(self.family_of(job))
        return path_of(rules.shares, job.spec.user, self.view.groups_of(job.spec.user))

    # -- a session

    def begin_session(self) -> None:
        super().begin_session()
        self.began = list(self.todo)
        self.gathered = [
            (job, job.promise.slots())
            for job in self.view.promised_jobs()
            if job.promise is not None and job.promise.is_held
        ]

    def next_job(self) -> JobRecord | None:
        if not self.todo:
            return None
        order = list(self.queues)
        of: dict[str, list[str]] = {}
        for name in order:
            rules = self.queues[name].spec.fairshare
            named = None if rules is None else rules.accounts_of
            of.setdefault(named if named in self.queues and named else name, []).append(name)
        families = {self.family_of(job) for job in self.todo}
        family = min(
            families,
            key=lambda each: (
                -max(self.queues[name].spec.priority for name in of[each]),
                min(order.index(name) for name in of[each]),
            ),
        )
        self.uses = self.uses_in(family)
        job = self.head(family, (), [job for job in self.todo if self.family_of(job) == family])
        self.todo.remove(job)
        return job

    def head(self, family: str, above: Path, jobs: list[JobRecord]) -> JobRecord:
        below: dict[Path, list[JobRecord]] = {}
        for job in jobs:
            path = self.path(job)
            if path == above:
                return min(jobs, key=self._key)
            below.setdefault(path[: len(above) + 1], []).append(job)
        heads = [(path, self.head(family, path, some)) for path, some in below.items()]
        return min(
            heads,
            key=lambda each: (
                self.rank(family, each[0]),
                (each[1].queue_us, each[1].number, each[1].index),
            ),
        )[1]

    def rank(self, family: str, node: Path) -> Fraction:
        rules = self.rules_of(family)
        shares = shares_of(rules.shares, node)[-1]
        if not shares:
            return NEVER
        under = [use for path, use in self.uses if path[: len(node)] == node]
        total = Use(
            cpu_us=sum(use.cpu_us for use in under),
            run_us=sum(use.run_us for use in under),
            committed_us=sum(use.committed_us for use in under),
            slots=sum(use.slots for use in under),
        )
        return Fraction(weight(total, rules), shares)

    def uses_in(self, family: str) -> list[tuple[Path, Use]]:
        rules, now_us = self.rules_of(family), self.view.now_us()
        live = [job for job in self.view.live_jobs() if self.family_of(job) == family]
        gathered = [(job, n) for job, n in self.gathered if self.family_of(job) == family]
        began = [job for job in self.began if self.family_of(job) == family]
        concerned = [*began, *live, *(job for job, _ in gathered)]
        found = [(self.path(job), self.use_of(job, now_us)) for job in live]
        found += [(self.path(job), Use(slots=slots)) for job, slots in gathered]
        for path in dict.fromkeys(self.path(job) for job in concerned):
            text = self.view.recall(document_of(family, path))
            if text is not None and path != NOBODY:
                kept = json.loads(text)
                age_us, run_us = now_us - kept["at_us"], kept["run_us"]
                if rules.run_time_decays:
                    run_us = decayed(run_us, age_us, rules.history_us)
                cpu_us = decayed(kept["cpu_us"], age_us, rules.history_us)
                found.append((path, Use(cpu_us=cpu_us, run_us=run_us)))
        return found

    def use_of(self, job: JobRecord, now_us: int) -> Use:
        slots = 0 if job.allocation is None else job.allocation.tasks()
        lost = job.state is JobState.UNKWN and job.state_before_loss is JobState.RUN
        runs = job.state is JobState.RUN or lost
        ran_us = job.run_us + (now_us - job.since_us if runs else 0)
        planned_us = self.view.planned_run_us(job)
        left_us = 0 if planned_us is None else max(0, planned_us - ran_us)
        return Use(
            cpu_us=job.cpu_us, run_us=slots * ran_us, committed_us=slots * left_us, slots=slots
        )

    def on_run_end(self, job: JobRecord, now_us: int) -> None:
        family, path = self.family_of(job), self.path(job)
        rules = self.rules_of(family)
        if path == NOBODY:
            return
        use = Use()
        text = self.view.recall(document_of(family, path))
        if text is not None:
            kept = json.loads(text)
            age_us, run_us = now_us - kept["at_us"], kept["run_us"]
            if rules.run_time_decays:
                run_us = decayed(run_us, age_us, rules.history_us)
            use = Use(cpu_us=decayed(kept["cpu_us"], age_us, rules.history_us), run_us=run_us)
        now = self.use_of(job, now_us)
        run_us = use.run_us + (now.run_us if rules.counts_past_runs else 0)
        new = {"at_us": now_us, "cpu_us": use.cpu_us + job.cpu_us, "run_us": run_us}
        text = json.dumps(new, sort_keys=True, separators=(",", ":"))
        self.view.remember(document_of(family, path), self.version, text)

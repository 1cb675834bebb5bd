"""
Drive a core with somebody's plug-ins by commands that a seed chooses: equal seeds, equal commands.
"""

from __future__ import annotations

import random
from typing import Any, Final

from domain.amounts import MEM, HostResource
from domain.cluster import ClusterSettings, DefaultHostType
from domain.commands import (
    CloseWorker,
    DefineCluster,
    DefineQueue,
    HoldJob,
    JobFinishedReport,
    JoinWorker,
    LiftHold,
    OpenWorker,
    StartScheduler,
    SubmitJob,
)
from domain.envelope import Stamped
from domain.errors import Conflict, Refused
from domain.job_states import JobState
from domain.jobs import JobSpec
from domain.queues import QueueSpec
from domain.units import MemoryUnit
from projections.scheduling.core import Core
from projections.scheduling.plugins import Plugins
from projections.scheduling.records import JobRecord

SECOND_US: Final = 1_000_000
MB_MILLI: Final = 1_024_000
QUEUES: Final = {"normal": 30, "high": 40}
STEPS: Final = 40


class PluginTrial:
    """
    Be a small cluster whose life a seed decides.

    Args:
        plugins: The plug-ins under test, beside our own.
        picker: Name of the cluster's picker.
        allocators: The chain.
        queue_picker: Name of the own picker of the queue ``high``, "" for the cluster's.
        is_plain: Place literally by the specification.
    """

    def __init__(
        self,
        plugins: Plugins,
        *,
        picker: str = "builtin_fcfs",
        allocators: tuple[str, ...] = ("parjob", "fill"),
        queue_picker: str = "",
        seed: int = 0,
        is_plain: bool = False,
    ) -> None:
        self.plugins = plugins
        self.core = Core(plugins, plain=is_plain)
        self.random = random.Random(seed)  # noqa: S311 - a choice of commands, no secret
        self.now_us = SECOND_US
        self.log: list[Stamped] = []
        self._begin(picker, allocators, queue_picker)

    def _begin(self, picker: str, allocators: tuple[str, ...], queue_picker: str) -> None:
        self.command(
            StartScheduler(
                epoch=1,
                holder="conformance",
                code_version="",
                pickers=self.plugins.picker_versions(),
                allocators=self.plugins.allocator_versions(),
            )
        )
        settings = ClusterSettings(
            name="trial",
            default_queue="normal",
            picker=picker,
            allocators=allocators,
            session_interval_us=0,
            session_max_decisions=10_000,
            clean_period_us=3_600 * SECOND_US,
            forget_batch=1_000,
            key_retention_us=0,
            snapshot_every_events=1_000_000,
            default_host_type=DefaultHostType.ANY,
            memory_unit=MemoryUnit.MB,
            reserve_per_task=False,
        )
        self.command(DefineCluster(settings=settings))
        for name, priority in QUEUES.items():
            own = queue_picker if name == "high" else ""
            self.command(DefineQueue(queue=name, spec=QueueSpec(priority=priority, picker=own)))
        for number in range(self.random.randint(1, 5)):
            total = self.random.choice([200, 400, 800]) * MB_MILLI
            memory = HostResource(name=MEM, total_milli=total, is_real=True)
            slots = self.random.randint(0, 6)
            self.command(JoinWorker(worker=f"h{number}", slots=slots, resources=(memory,)))

    def command(self, command: Any) -> list[Stamped]:
        """
        Handle a command and apply its events; a refused one changes nothing.
        """
        try:
            found = self.core.handle(command, actor="ann", now_us=self.now_us)
        except (Refused, Conflict):
            return []
        made = self.core.take(found, actor="ann", cause="", now_us=self.now_us) if found else []
        self.log += made
        return made

    def session(self) -> list[Stamped]:
        """
        Hold a session.
        """
        made = self.core.session(self.now_us)
        self.log += made
        return made

    def jobs(self, *states: JobState) -> list[JobRecord]:
        """
        Return the jobs in some states, in order of submission.
        """
        return [job for job in self.core.state.stored.jobs.values() if job.state in states]

    def step(self) -> None:
        """
        Do what the seed says next.
        """
        kind = self.random.choice(["submit"] * 4 + ["end"] * 3 + ["hold", "lift", "close", "open"])
        self.now_us += self.random.randint(0, 3) * SECOND_US
        number = self.random.randrange(1 << 16)
        if kind == "submit":
            self.submit()
        elif kind == "end" and (live := self.jobs(JobState.RUN)):
            self.end(live[number % len(live)])
        elif kind == "hold" and (pending := self.jobs(JobState.PEND)):
            self.command(HoldJob(job_id=pending[number % len(pending)].job_id))
        elif kind == "lift" and (held := self.jobs(JobState.PSUSP)):
            self.command(LiftHold(job_id=held[number % len(held)].job_id))
        elif kind in ("close", "open"):
            workers = self.core.state.hosts
            worker = workers[number % len(workers)].name
            self.command(
                CloseWorker(worker=worker) if kind == "close" else OpenWorker(worker=worker)
            )

    def submit(self) -> None:
        """
        Submit a job of a shape that the seed chooses.
        """
        least = self.random.randint(1, 7)
        resreq = self.random.choice(["", "", "rusage[mem=100]", "rusage[mem=100/task]"])
        estimate_us = self.random.choice([None, SECOND_US, 5 * SECOND_US, 30 * SECOND_US])
        spec = JobSpec(
            user="ann",
            queue=self.random.choice(list(QUEUES)),
            tasks_min=least,
            tasks_max=least + self.random.choice([0, 0, 3]),
            resreq=(resreq,) if resreq else (),
            user_priority=self.random.choice([0, 0, 5]),
            run_estimate_us=estimate_us,
        )
        self.command(SubmitJob(spec=spec))

    def open(self, worker: str) -> None:
        """
        Open a host.
        """
        self.command(OpenWorker(worker=worker))

    def can_never_start(self, job: JobRecord) -> bool:
        """
        Say whether the job's recorded reasons tell that it can never start.
        """
        kept = self.core.state.stored.reason_sets.get(job.reason_set)
        return kept is not None and kept.never

    def end(self, job: JobRecord) -> None:
        """
        End a running job.
        """
        assert job.allocation is not None
        worker = self.core.state.hosts[job.allocation.runs[0].first]
        self.command(
            JobFinishedReport(
                worker=worker.name,
                incarnation=worker.incarnation,
                job_id=job.job_id,
                attempt=job.attempt,
                exit_code=0,
            )
        )

    def restore(self) -> None:
        """
        Go on with a core that is restored from this one's snapshot.
        """
        self.core = Core.restore(self.core.snapshot(), self.plugins)

"""
Measure placement in memory: one wide job over many hosts, and dispatches out of many pending jobs.

No log is written: what is measured is the core alone, deciding and applying its decisions. Times
are those of this process on its processor, so that neighbours on the machine don't count.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from domain.amounts import MEM, Attribute, HostResource
from domain.commands import (
    DefineCluster,
    DefineQueue,
    JobFinishedReport,
    JoinWorker,
    StartScheduler,
    SubmitJob,
)
from domain.jobs import JobSpec
from domain.queues import QueueSpec
from projections.scheduling.core import Core
from projections.scheduling.placement.runner import Placed, PlacementRunner
from replay.simulation_settings import QUEUE, simulation_settings
from tools.bench.frame import Figure, Reading

WIDE_HOSTS = 10_000
WIDE_TASKS = 64
WIDE_GOAL_WARM_S = 0.005
WIDE_GOAL_COLD_S = 0.060
WIDE_RESREQ = "select[type==LINUX && mem>2000 && !broken] order[mem:-slots]"

HOSTS = 1_000
PENDING = 50_000
SHAPES = 200
GOAL_DISPATCHES_PER_S = 5_000
STEADY_ROUNDS = 20
ENDS_A_ROUND = 200

GIB_MILLI = 1024 * 1024 * 1_000


class Bench:
    """
    Drive a core without a log.
    """

    def __init__(self) -> None:
        self.core = Core()
        self.now_us = 1_000_000
        plugins = self.core.plugins
        self.give(
            StartScheduler(
                epoch=1,
                holder="bench",
                code_version="bench",
                pickers=plugins.picker_versions(),
                allocators=plugins.allocator_versions(),
            )
        )
        settings = simulation_settings("builtin_fcfs", ("parjob", "fill"))
        self.give(DefineCluster(settings=settings))
        self.give(DefineQueue(queue=QUEUE, spec=QueueSpec(priority=30)))

    def give(self, command: Any) -> str:
        """
        Handle a command, apply its events, and return the first stream.
        """
        found = self.core.handle(command, actor="ann", now_us=self.now_us)
        self.core.take(found, actor="ann", cause="", now_us=self.now_us)
        return found[0][0]

    def join(self, hosts: int, slots: int) -> None:
        """
        Let hosts join that differ in memory, type and a boolean.
        """
        for number in range(hosts):
            attributes = [Attribute(name="type", value="SOL" if number % 10 == 0 else "LINUX")]
            if number % 97 == 0:
                attributes.append(Attribute(name="broken", value="true"))
            memory = HostResource(name=MEM, total_milli=(64 + number % 7) * GIB_MILLI, is_real=True)
            self.give(
                JoinWorker(
                    worker=f"h{number:05d}",
                    slots=slots,
                    resources=(memory,),
                    attributes=tuple(attributes),
                )
            )

    def session_s(self) -> tuple[int, float]:
        """
        Hold a session; return its dispatches and how long it took.
        """
        begin = time.process_time()
        made = self.core.session(self.now_us)
        spent_s = time.process_time() - begin
        return sum(stamped.event.TYPE_CODE == "job.dispatched" for stamped in made), spent_s

    def end(self, count: int) -> None:
        """
        End the oldest running jobs.
        """
        state = self.core.state
        for job in list(state.live.values())[:count]:
            assert job.allocation is not None
            worker = state.hosts[job.allocation.runs[0].first]
            self.give(
                JobFinishedReport(
                    worker=worker.name,
                    incarnation=worker.incarnation,
                    job_id=job.job_id,
                    attempt=job.attempt,
                    exit_code=0,
                )
            )


def wide() -> Iterator[Reading]:
    """
    Place one wide job with select and order over many hosts, first and again.
    """
    bench = Bench()
    bench.join(WIDE_HOSTS, 8)
    spec = JobSpec(
        user="ann",
        queue=QUEUE,
        tasks_min=WIDE_TASKS,
        tasks_max=WIDE_TASKS,
        resreq=(WIDE_RESREQ,),
    )
    stream = bench.give(SubmitJob(spec=spec))
    state = bench.core.state
    job = state.stored.jobs[stream]
    chain = state.settings().allocators
    runner = PlacementRunner(state.capacity, bench.core.plugins.allocators)
    spent = []
    for _ in range(6):
        begin = time.process_time()
        outcome = runner.place(state.request_of(job), chain)
        spent.append(time.process_time() - begin)
        assert isinstance(outcome, Placed)
    yield Reading(
        "64 tasks over 10,000 hosts, cold", spent[0], "s", goal=WIDE_GOAL_COLD_S,
        is_lower_better=True,
    )  # fmt: skip
    yield Reading(
        "64 tasks over 10,000 hosts, warm", min(spent[1:]), "s", goal=WIDE_GOAL_WARM_S,
        is_lower_better=True,
    )  # fmt: skip


def shape(number: int) -> dict[str, Any]:
    """
    Return one of the shapes of jobs: counts of tasks, memory, conditions, orders and spans.
    """
    tasks = 1 + number % 8
    sections = [f"rusage[mem={100 + number}]"]
    if number % 2:
        sections.append(f"select[type==LINUX && maxslots>{number % 5}]")
    if number % 4 == 3:
        sections.append("order[mem]")
    if number % 8 == 5:
        sections.append("span[ptile=2]")
    return {"tasks_min": tasks, "tasks_max": tasks, "resreq": (" ".join(sections),)}


def dispatches() -> Iterator[Reading]:
    """
    Dispatch out of many pending jobs as others end; before, in one session, fill an empty cluster
    and tell all others why they wait.
    """
    bench = Bench()
    bench.join(HOSTS, 16)
    for number in range(PENDING):
        bench.give(SubmitJob(spec=JobSpec(user="ann", queue=QUEUE, **shape(number % SHAPES))))
    _, first_s = bench.session_s()
    count, spent_s = 0, 0.0
    for _ in range(STEADY_ROUNDS):
        bench.now_us += 1_000_000
        bench.end(ENDS_A_ROUND)
        more, more_s = bench.session_s()
        count, spent_s = count + more, spent_s + more_s
    yield Reading("jobs placed or told why not, empty cluster", PENDING / first_s, "1/s")
    yield Reading("dispatches, as jobs end", count / spent_s, "1/s", goal=GOAL_DISPATCHES_PER_S)


def measure(folder: Path) -> list[Reading]:  # noqa: ARG001 - the frame's protocol
    """
    Take one round.
    """
    return [*wide(), *dispatches()]


FIGURE = Figure(
    "placing", "A wide job over 10,000 hosts; dispatches of 200 shapes out of 50,000.", measure
)

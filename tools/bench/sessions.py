"""
Measure sessions in which nothing can start, among many pending jobs and hosts, and what one
dispatch costs beside many jobs that wait.

No log is written: what is measured is the core alone. Times are those of this process on its
processor, so that neighbours on the machine don't count.
"""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

from domain.amounts import MEM, Amount
from domain.commands import SubmitJob, WorkerReport
from domain.jobs import JobSpec
from replay.simulation_settings import QUEUE
from tools.bench.frame import Figure, Reading
from tools.bench.placing import GIB_MILLI, SHAPES, Bench, shape

HOSTS = 10_000
SLOTS = 16
PENDING = 100_000
ROUNDS = 7
GOAL_SESSION_S = 0.020
GOAL_JOB_BYTES = 3 * 1024
GOAL_DEARER = 1.25
FEW = 1_000
DISPATCHES = 200


def _submit(bench: Bench, **asked: object) -> str:
    return bench.give(SubmitJob(spec=JobSpec(user="ann", queue=QUEUE, **asked)))  # type: ignore[arg-type]


def _full() -> Bench:
    """
    Return a cluster in which every slot is in use: one host's by jobs of one slot, which end first,
    each other's by one job.
    """
    bench = Bench()
    bench.join(HOSTS, SLOTS)
    for number in range(SLOTS + HOSTS - 1):
        tasks = 1 if number < SLOTS else SLOTS
        _submit(bench, tasks_min=tasks, tasks_max=tasks, resreq=(f"rusage[mem={8 + number % 5}]",))
    started, _ = bench.session_s()
    assert started == SLOTS + HOSTS - 1, started
    return bench


def _wide(number: int) -> dict[str, object]:
    """
    Return one of the shapes, each of more tasks than slots are freed.
    """
    asked = shape(number)
    tasks = SLOTS + 1 + int(asked["tasks_min"])
    return {**asked, "tasks_min": tasks, "tasks_max": tasks}


def idle_sessions() -> Iterator[Reading]:
    """
    Time a session that starts nothing after one submission, one report, and a freed slot that fits
    nobody.
    """
    bench = _full()
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(PENDING):
        _submit(bench, **_wide(number % SHAPES))
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    bench.session_s()

    def submit() -> None:
        _submit(bench, **_wide(7))

    def report() -> None:
        load = (Amount(resource=MEM, milli=GIB_MILLI),)
        bench.give(WorkerReport(worker="h00005", incarnation=1, load=load))

    def free() -> None:
        bench.end(1)

    for what, change in (("a submission", submit), ("a report", report), ("a job's end", free)):
        spent_s = statistics.median(_idle_s(bench, change) for _ in range(ROUNDS))
        label = f"session without a start after {what}"
        yield Reading(label, spent_s, "s", goal=GOAL_SESSION_S, is_lower_better=True)
    yield Reading(
        "state of one waiting job", (after - before) / PENDING, "B", goal=GOAL_JOB_BYTES,
        is_lower_better=True,
    )  # fmt: skip


def _idle_s(bench: Bench, change: Callable[[], None]) -> float:
    bench.now_us += 1_000_000
    change()
    started, spent_s = bench.session_s()
    assert not started, started
    return spent_s


def cost_of_one() -> Iterator[Reading]:
    """
    Compare what one dispatch costs beside a thousand and beside a hundred thousand waiting jobs.
    """
    cost = {pending: _dispatch_s(pending) for pending in (FEW, PENDING)}
    yield Reading("one dispatch, 100,000 pending", cost[PENDING], "s", is_lower_better=True)
    yield Reading(
        "one dispatch, 100,000 pending as against 1,000", cost[PENDING] / cost[FEW], "times",
        goal=GOAL_DEARER, is_lower_better=True,
    )  # fmt: skip


def _dispatch_s(pending: int) -> float:
    bench = Bench()
    bench.join(1_000, SLOTS)
    for _ in range(1_000):
        _submit(bench, tasks_min=SLOTS, tasks_max=SLOTS)
    bench.session_s()
    for number in range(pending):
        tasks = SLOTS if number % 2 else 1 + number % SLOTS
        _submit(bench, tasks_min=tasks, tasks_max=tasks)
    bench.session_s()
    count, spent_s = 0, 0.0
    for _ in range(DISPATCHES):
        bench.now_us += 1_000_000
        bench.end(1)
        begin = time.process_time()
        more, _ = bench.session_s()
        count, spent_s = count + more, spent_s + time.process_time() - begin
    return spent_s / count


def measure(folder: Path) -> list[Reading]:  # noqa: ARG001 - the frame's protocol
    """
    Take one round.
    """
    return [*idle_sessions(), *cost_of_one()]


FIGURE = Figure(
    "sessions", "Sessions over 10,000 hosts with 100,000 pending jobs of 200 shapes.", measure
)

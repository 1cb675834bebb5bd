"""
Measure sessions of the policies that order or plan, with 10,000 jobs waiting on 1,000 hosts: after
a submission, and after a job has ended before its time.

No log is written: what is measured is the core alone. Times are those of this process on its
processor, so that neighbours on the machine don't count.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from domain.commands import DefineCluster, SubmitJob
from domain.jobs import JobSpec
from domain.units import HOUR_US, SECOND_US
from replay.simulation_settings import QUEUE, simulation_settings
from tools.bench.frame import Figure, Reading
from tools.bench.placing import Bench

HOSTS = 1_000
SLOTS = 16
PENDING = 10_000
ROUNDS = 5
BENCHS_OWN = "builtin_fcfs"
POLICIES = (
    (BENCHS_OWN, False), ("shortest_first", False), ("fairshare", False), ("easy", False),
    ("easy", True), ("conservative", False), ("conservative", True),
)  # fmt: skip
"""Each with jobs that ask for slots alone, or for memory too."""


class _Full:
    """
    Hold a full cluster before which jobs of many sizes and run limits wait.
    """

    def __init__(self, picker: str, *, with_memory: bool) -> None:
        self.bench = Bench()
        self._with_memory = with_memory
        self._numbers = count()
        if picker != BENCHS_OWN:
            settings = simulation_settings(picker, ("parjob", "fill"))
            self.bench.give(DefineCluster(settings=settings))
        self.bench.join(HOSTS, SLOTS)
        for number in range(HOSTS):
            self._give(SLOTS, HOUR_US + number * 37 * SECOND_US)
        self.bench.session_s()
        for _ in range(PENDING):
            self.submit()
        self.settle()

    def _give(self, tasks: int, run_us: int) -> None:
        memory = ("rusage[mem=1000/host]",) if self._with_memory else ()
        spec = JobSpec(
            user="ann", queue=QUEUE, tasks_min=tasks, tasks_max=tasks, run_limit_us=run_us,
            resreq=memory,
        )  # fmt: skip
        self.bench.give(SubmitJob(spec=spec))

    def submit(self) -> None:
        """
        Submit one more job; no two are quite alike.
        """
        number = next(self._numbers)
        tasks = SLOTS + 1 + 7 * number % 48
        self._give(tasks, (1 + number * 31 % 200) * 600 * SECOND_US)

    def settle(self) -> None:
        """
        Hold sessions until one decides nothing.
        """
        while self.bench.core.session(self.bench.now_us):
            pass

    def free(self) -> None:
        """
        End the oldest job, early.
        """
        self.bench.end(1)


def measured(picker: str, *, with_memory: bool) -> Iterator[Reading]:
    """
    Time sessions of one policy.
    """
    full = _Full(picker, with_memory=with_memory)
    asked = "with memory" if with_memory else "slots alone"
    gc.collect()
    for what, change in (("a submission", full.submit), ("an end", full.free)):
        spent_s = statistics.median(_session_s(full.bench, change) for _ in range(ROUNDS))
        yield Reading(f"{picker}, {asked}: after {what}", spent_s, "s", is_lower_better=True)


def _session_s(bench: Bench, change: Callable[[], None]) -> float:
    bench.now_us += SECOND_US
    change()
    return bench.session_s()[1]


def measure(folder: Path) -> list[Reading]:  # noqa: ARG001 - the frame's protocol
    """
    Take one round.
    """
    return [
        reading
        for picker, with_memory in POLICIES
        for reading in measured(picker, with_memory=with_memory)
    ]


FIGURE = Figure("policies", "Sessions of each policy, 10,000 jobs waiting on 1,000 hosts.", measure)

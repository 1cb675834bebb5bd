"""
Measure the host and what its jobs use.
"""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from domain.amounts import MEM, Amount, Attribute, HostResource
from domain.events.workers import JobUsage
from tools.agent import logins, processes
from tools.agent.loads import LoadNews, has_changed, load_of_host, milli_kib
from tools.agent.messages import Attempt, Phase
from tools.agent.protocol import Usage
from tools.agent.rates import Rates

SWAP = "swp"


def slots() -> int:
    """
    Return how many processors this process may use.
    """
    return len(os.sched_getaffinity(0))


def resources() -> tuple[HostResource, ...]:
    """
    Return the consumable resources of the host.
    """
    return (
        HostResource(name=MEM, total_milli=milli_kib(psutil.virtual_memory().total), is_real=True),
    )


def attributes() -> tuple[Attribute, ...]:
    """
    Return what the host is: its type (the architecture, as LSF names it), model and number of
    processors.
    """
    return (
        Attribute(name="type", value=platform.machine().upper() or "UNKNOWN"),
        Attribute(name="model", value=_model()),
        Attribute(name="ncpus", value=str(os.cpu_count() or 1)),
    )


def _model() -> str:
    with suppress(OSError):
        for line in (
            Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        ):
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine() or "unknown"


class Meter:
    """
    Measure again and again, and tell only what changed beyond the thresholds.

    Args:
        worker_directory: As it stands in the environment of every job of this worker.
    """

    def __init__(self, worker_directory: str) -> None:
        self._worker_directory = worker_directory
        self._load_news = LoadNews()
        self._rates = Rates()
        self._is_blind = False
        self._told: dict[tuple[str, int], JobUsage] = {}

    def measure(self, attempts: list[Attempt]) -> Usage | None:
        """
        Return load and the use of the running attempts, or None when nothing is worth telling.
        """
        running = {attempt.pid: attempt for attempt in attempts if attempt.phase is Phase.RUNNING}
        try:
            used = _used(running, self._worker_directory)
            self._rates.look()
            load = {**load_of_host(), **self._rates.indices(), **logins.indices()}
        except (OSError, psutil.Error):
            return self._blind()
        if self._is_blind:
            self._is_blind = False
            self._load_news.forget()
        news = self._load_news.of(load)
        changed = tuple(usage for usage in used if self.is_news(usage))
        alive = {(usage.job_id, usage.attempt) for usage in used}
        self._told = {key: usage for key, usage in self._told.items() if key in alive}
        if not changed and not news:
            return None
        if changed and all(amount.resource != MEM for amount in news):
            # What jobs use and what is free were measured together, and are told so.
            news = (Amount(resource=MEM, milli=load[MEM]), *news)
        self._load_news.note(news)
        self.note(changed)
        return Usage(load=news, jobs=changed)

    def _blind(self) -> Usage | None:
        """
        Tell once that nothing can be measured; the next figures are news then.
        """
        was_blind, self._is_blind = self._is_blind, True
        return None if was_blind else Usage(is_blind=True)

    def note(self, told: tuple[JobUsage, ...]) -> None:
        """
        Remember what is told of attempts.
        """
        self._told.update(((usage.job_id, usage.attempt), usage) for usage in told)

    def is_news(self, usage: JobUsage) -> bool:
        """
        Say whether what an attempt uses wasn't told yet, or has changed beyond a threshold.
        """
        told = self._told.get((usage.job_id, usage.attempt))
        if told is None or (told.processes, told.threads) != (usage.processes, usage.threads):
            return True
        seen = {amount.resource: amount.milli for amount in usage.amounts}
        before = {amount.resource: amount.milli for amount in told.amounts}
        return any(
            has_changed(before.get(name, 0), seen.get(name, 0)) for name in {**before, **seen}
        )


@dataclass(slots=True)
class Total:
    """
    Add up what the processes of an attempt use; memory and swap space in bytes.
    """

    memory: int = 0
    cpu_us: int = 0
    processes: int = 0
    threads: int = 0
    swap: int = 0

    def usage_of(self, attempt: Attempt) -> JobUsage:
        """
        Return it as it is told; swap space only where there is some.
        """
        memory = Amount(resource=MEM, milli=milli_kib(self.memory))
        swap = Amount(resource=SWAP, milli=milli_kib(self.swap))
        return JobUsage(
            job_id=attempt.job_id,
            attempt=attempt.attempt,
            cpu_us=self.cpu_us,
            processes=self.processes,
            threads=self.threads,
            amounts=(memory, swap) if self.swap else (memory,),
        )


def _used(running: dict[int, Attempt], worker_directory: str) -> list[JobUsage]:
    """
    Add up memory, processor time, processes, threads and swap space of each running attempt, also
    of what left its process group.
    """
    totals = {leader: Total() for leader in running}
    members = _members(running, worker_directory) if running else {}
    # Mostly there is none in use, and each process would have one file more to read.
    is_swapping = bool(members) and psutil.swap_memory().used > 0
    for pid, leader in members.items():
        with suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            spent, total = process.cpu_times(), totals[leader]
            total.memory += process.memory_info().rss
            total.cpu_us += round((spent.user + spent.system) * 1e6)
            total.processes += 1
            total.threads += process.num_threads()
            total.swap += processes.swapped_bytes(pid) if is_swapping else 0
    return [
        totals[leader].usage_of(attempt)
        for leader, attempt in running.items()
        if totals[leader].processes
    ]


def _members(running: dict[int, Attempt], worker_directory: str) -> dict[int, int]:
    """
    Return the first process of its attempt for each process of one: known by its group, by its
    parents, or by its environment when it has lost those.
    """
    everyone = {one.pid: one for one in processes.living()}
    launchers = {everyone[leader].parent for leader in running if leader in everyone}
    leaders = {attempt.key: leader for leader, attempt in running.items()}
    found: dict[int, int | None] = {}

    def leader_of(pid: int) -> int | None:
        one = everyone.get(pid)
        if one is None or one.pid in launchers:
            return None
        if pid not in found:
            if one.group in running:
                found[pid] = one.group
            elif one.parent in launchers:
                owner = processes.owner_of(pid, worker_directory)
                found[pid] = None if owner is None else leaders.get(owner)
            else:
                found[pid] = leader_of(one.parent)
        return found[pid]

    return {pid: leader for pid in everyone if (leader := leader_of(pid)) is not None}

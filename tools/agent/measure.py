"""
Measure the host and what its jobs use.
"""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from pathlib import Path

import psutil

from domain.amounts import MEM, Amount, Attribute, HostResource
from domain.events.workers import JobUsage
from tools.agent import processes
from tools.agent.loads import LoadNews, has_changed, load_of_host, milli_kib
from tools.agent.messages import Attempt, Phase
from tools.agent.protocol import Usage


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
        self._is_blind = False
        self._told: dict[tuple[str, int], JobUsage] = {}

    def measure(self, attempts: list[Attempt]) -> Usage | None:
        """
        Return load and the use of the running attempts, or None when nothing is worth telling.
        """
        running = {attempt.pid: attempt for attempt in attempts if attempt.phase is Phase.RUNNING}
        try:
            used = _used(running, self._worker_directory)
            load = load_of_host()
        except (OSError, psutil.Error):
            return self._blind()
        if self._is_blind:
            self._is_blind = False
            self._load_news.forget()
        news = self._load_news.of(load)
        changed = tuple(usage for usage in used if self._is_news(usage))
        alive = {(usage.job_id, usage.attempt) for usage in used}
        self._told = {key: usage for key, usage in self._told.items() if key in alive}
        if not changed and not news:
            return None
        if changed and all(amount.resource != MEM for amount in news):
            # What jobs use and what is free were measured together, and are told so.
            news = (Amount(resource=MEM, milli=load[MEM]), *news)
        self._load_news.note(news)
        self._told.update(((usage.job_id, usage.attempt), usage) for usage in changed)
        return Usage(load=news, jobs=changed)

    def _blind(self) -> Usage | None:
        """
        Tell once that nothing can be measured; the next figures are news then.
        """
        was_blind, self._is_blind = self._is_blind, True
        return None if was_blind else Usage(is_blind=True)

    def _is_news(self, usage: JobUsage) -> bool:
        told = self._told.get((usage.job_id, usage.attempt))
        if told is None or (told.processes, told.threads) != (usage.processes, usage.threads):
            return True
        return has_changed(told.amounts[0].milli, usage.amounts[0].milli)


def _used(running: dict[int, Attempt], worker_directory: str) -> list[JobUsage]:
    """
    Add up memory, processor time, processes and threads of each running attempt, also of what left
    its process group.
    """
    totals = {leader: [0, 0, 0, 0] for leader in running}
    members = _members(running, worker_directory) if running else {}
    for pid, leader in members.items():
        with suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            spent, total = process.cpu_times(), totals[leader]
            total[0] += process.memory_info().rss
            total[1] += round((spent.user + spent.system) * 1e6)
            total[2] += 1
            total[3] += process.num_threads()
    return [
        JobUsage(
            job_id=attempt.job_id,
            attempt=attempt.attempt,
            cpu_us=totals[leader][1],
            processes=totals[leader][2],
            threads=totals[leader][3],
            amounts=(Amount(resource=MEM, milli=milli_kib(totals[leader][0])),),
        )
        for leader, attempt in running.items()
        if totals[leader][2]
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

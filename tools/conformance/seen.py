"""
What can be seen of a scheduler after a cycle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tools.conformance.values import Malformed

BRIEF: Final = "J"
"""The one job that brief cases are about."""

Shares = dict[str, int]
"""Tasks by host, in the order in which the hosts were claimed."""


@dataclass(slots=True)
class Waiting:
    """
    Hold why a job waits, as codes: ``RES_SHORT(lic)``, ``HOST_JOB_RUSAGE(mem)``,
    ``RES_LIMIT(name,what)``.

    Args:
        main: The reason of the whole job, "" when there is none.
        hosts: For each host the codes that hold there, the first cause first.
    """

    main: str = ""
    hosts: dict[str, list[str]] = field(default_factory=dict)


@dataclass(slots=True)
class Observed:
    """
    Hold what can be seen after a cycle. Jobs and hosts are called as the vector calls them.

    Args:
        shares: What each started job has.
        states: The state of every job.
        waiting: Why each pending job waits.
        rejected: Jobs whose submission was refused.
        rejected_lately: Those since it was last looked, None for all of them.
        victims: For each job, whom it made be suspended in this cycle.
        signals: The signal each job was sent in this cycle.
        kill_signals: What the last kill of this cycle sends, in order.
        used: What is taken of shared resources, in whole units.
        host_status: The status of each host.
        silent_hosts: Those that are down: nothing of them is heard.
        terms: Why each ended job ended (TERM_...).
        suspended_for: Why each suspended job is (SUSP_...).
        queues: The queue of each job.
        run_limits_min: The run limit of each job in minutes, None without one.
        term_numbers: The number of why each ended job ended, where there is one.
        exit_codes: The exit code of each ended job, None where a signal ended it.
        tasks: What each job asks for: a count, or the fewest and the most.
        dependencies: What each job waits for, as written, None for nothing.
        submitted_min: When each job was submitted, in minutes.
        queued_min: Since when each counts among its equals, in minutes.
        order: Jobs that wait or run, in the order in which they are considered.
        reserved: The slots that each pending job has gathered, by host; so its memory in MB.
        estimated_start: When each of these starts, in minutes, None when nobody knows.
        usage: What each limit is charged of each amount, in whole units (memory in MB).
        started: The jobs that were started in the last cycle, in order.
        denied: Whether the last action was denied to whoever tried it.
        error: Why the last action was refused, "" when it wasn't.
    """

    shares: dict[str, Shares] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, Waiting] = field(default_factory=dict)
    rejected: list[str] = field(default_factory=list)
    rejected_lately: list[str] | None = None
    victims: dict[str, list[str]] = field(default_factory=dict)
    signals: dict[str, str] = field(default_factory=dict)
    kill_signals: list[str] = field(default_factory=list)
    used: dict[str, int] = field(default_factory=dict)
    host_status: dict[str, str] = field(default_factory=dict)
    silent_hosts: set[str] = field(default_factory=set)
    terms: dict[str, str] = field(default_factory=dict)
    suspended_for: dict[str, str] = field(default_factory=dict)
    queues: dict[str, str] = field(default_factory=dict)
    run_limits_min: dict[str, int | None] = field(default_factory=dict)
    term_numbers: dict[str, int] = field(default_factory=dict)
    exit_codes: dict[str, int | None] = field(default_factory=dict)
    tasks: dict[str, int | list[int]] = field(default_factory=dict)
    dependencies: dict[str, str | None] = field(default_factory=dict)
    submitted_min: dict[str, int] = field(default_factory=dict)
    queued_min: dict[str, int] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    reserved: dict[str, Shares] = field(default_factory=dict)
    reserved_mem: dict[str, Shares] = field(default_factory=dict)
    estimated_start: dict[str, int | None] = field(default_factory=dict)
    usage: dict[str, dict[str, int]] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    denied: bool = False
    error: str = ""

    def only_job(self) -> str:
        """
        Return the one job that waits or was started in this cycle, for expectations that name none.
        """
        names = list(dict.fromkeys([*self.waiting, *self.shares, *self.states, *self.rejected]))
        if not names:
            raise Malformed("there is no job to look at")
        if BRIEF in self.states:
            return BRIEF
        return names[0] if len(names) == 1 else [*self.waiting, *self.shares, *names][0]

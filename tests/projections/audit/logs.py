"""
Short logs for the audit tests, written down event by event.
"""

from __future__ import annotations

from collections import Counter

from domain.allocations import Allocation, HostRun, HostSpan
from domain.amounts import Amount, HostResource
from domain.envelope import Envelope
from domain.event import Event
from domain.events.jobs import JobDispatched, JobPended, JobSubmitted
from domain.events.queues import QueueDefined
from domain.events.session import ReasonSetChanged, SessionHeld
from domain.events.workers import WorkerJoined
from domain.jobs import EnvironmentVariable, JobSpec, Program
from domain.queues import QueueSpec
from domain.reasons import PendReason, ReasonCode

SECOND_US = 1_000_000
MB_MILLI = 1_024_000


class Log:
    """
    Collect events with what surrounds them; each is a second after the one before.
    """

    def __init__(self) -> None:
        self.envelopes: list[Envelope] = []
        self.now_us = 1_000 * SECOND_US
        self._versions: Counter[str] = Counter()

    def add(
        self,
        stream: str,
        event: Event,
        actor: str = "",
        *,
        ends_step: bool = True,
        after_s: int = 1,
    ) -> int:
        """
        Add an event and return its position.
        """
        self.now_us += after_s * SECOND_US
        self._versions[stream] += 1
        position = len(self.envelopes) + 1
        self.envelopes.append(
            Envelope(
                position, stream, self._versions[stream], self.now_us, actor, "", event, ends_step
            )
        )
        return position

    def session(self, *decisions: tuple[str, Event]) -> None:
        """
        Add a session with its decisions, all at one moment.
        """
        number = 1 + sum(1 for one in self.envelopes if isinstance(one.event, SessionHeld))
        self.add("session", SessionHeld(number=number), ends_step=not decisions)
        for index, (stream, event) in enumerate(decisions, 1):
            self.add(stream, event, ends_step=index == len(decisions), after_s=0)

    def host(self, name: str, number: int, slots: int = 4) -> None:
        """
        Add the first join of a host.
        """
        memory = HostResource(name="mem", total_milli=1000 * MB_MILLI, is_real=True)
        self.add(
            f"worker:{name}",
            WorkerJoined(incarnation=1, host_number=number, slots=slots, resources=(memory,)),
            "root",
        )

    def job(self, number: int, **fields: object) -> str:
        """
        Add the submission of a job and return its stream.
        """
        values = {"user": "ann", "queue": "normal", "name": f"job {number}", **fields}
        stream = f"job:{number:010d}"
        self.add(stream, JobSubmitted(spec=JobSpec(**values)), str(values["user"]))
        return stream


def a_program(*argv: str) -> Program:
    """
    Return a program with a secret in its environment.
    """
    secret = EnvironmentVariable(name="TOKEN", value="S3CRET")
    return Program(argv=argv or ("sleep", "10"), cwd="/home/ann", env=(secret,))


def dispatched(attempt: int = 1, *runs: tuple[int, int, int], mem_mb: int = 100) -> JobDispatched:
    """
    Return the dispatch of a job to runs of (first host, hosts, tasks).
    """
    amounts = (Amount(resource="mem", milli=mem_mb * MB_MILLI),)
    made = tuple(
        HostRun(first=first, hosts=hosts, tasks=tasks, amounts=amounts)
        for first, hosts, tasks in (runs or ((0, 1, 1),))
    )
    return JobDispatched(attempt=attempt, allocation=Allocation(runs=made, allocator="parjob"))


def short_of_slots(
    number: int = 1, *, available: int = 1, never: bool = False, hosts: int = 2
) -> ReasonSetChanged:
    """
    Return that jobs of a set need two slots where fewer are.
    """
    span = HostSpan(first=0, hosts=hosts, available_milli=available * 1000)
    reason = PendReason(
        code=ReasonCode.HOST_SLOTS, resource="slots", requested_milli=2000, hosts=(span,)
    )
    return ReasonSetChanged(
        set_number=number, fingerprint=f"f{number}", never=never, reasons=(reason,)
    )


def short_of_memory(number: int = 1) -> ReasonSetChanged:
    """
    Return that jobs of a set need more memory than the second host has.
    """
    span = HostSpan(first=1, hosts=1, available_milli=60 * MB_MILLI)
    reason = PendReason(
        code=ReasonCode.HOST_JOB_RUSAGE,
        resource="mem",
        requested_milli=100 * MB_MILLI,
        hosts=(span,),
    )
    return ReasonSetChanged(set_number=number, fingerprint=f"f{number}", reasons=(reason,))


def pended(number: int = 1) -> JobPended:
    """
    Return that a job joins a set.
    """
    return JobPended(reason_set=number)


def a_cluster() -> Log:
    """
    Return a log with a queue and two hosts.
    """
    log = Log()
    log.add("queue:normal", QueueDefined(spec=QueueSpec(priority=30)), "root")
    log.host("h1", 0)
    log.host("h2", 1)
    return log

"""
What a worker still has to tell the scheduler: made from the launcher's attempts, kept until it is
answered.

The durable copy of every end is the launcher's journal; this is the agent's view of it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from domain.jobs import HostFault, PreExecOf
from tools.agent.messages import Attempt, AttemptKey, OrderOutcome, Phase
from tools.agent.protocol import (
    CouldNotStart,
    Finished,
    OrderDone,
    Report,
    Resumed,
    Started,
    Suspended,
    Usage,
)

BATCH_MAX = 500
OWNERS: dict[str, PreExecOf] = {"queue": "queue", "profile": "profile", "job": "job"}
"""Whose text before a command can fail: the launcher's plain words as the scheduler knows them."""
FAULTS: dict[str, HostFault] = {"memory": "memory", "host": "host"}
"""What of a host can be at fault, likewise."""


@dataclass(frozen=True, slots=True)
class Due:
    """
    A report and the attempt whose end it tells, None when it tells no end.
    """

    report: Report
    ends: AttemptKey | None = None


class Outbox:
    """
    Hold attempts with something untold, orders carried out, and the newest measure.

    A report about an attempt waits for its capability, which comes with the assignment.
    """

    def __init__(self) -> None:
        self.capabilities: dict[AttemptKey, str] = {}
        self._attempts: dict[AttemptKey, Attempt] = {}
        self._told_started: set[AttemptKey] = set()
        self._moves: deque[Suspended | Resumed] = deque()
        self._orders: deque[OrderOutcome] = deque()
        self._usage: Usage | None = None

    @property
    def is_urgent(self) -> bool:
        """
        Tell whether something waits that the scheduler can act on at once.
        """
        return bool(self._orders) or any(
            attempt.phase is Phase.ENDED and key in self.capabilities
            for key, attempt in self._attempts.items()
        )

    @property
    def is_empty(self) -> bool:
        """
        Tell whether nothing can be told now.
        """
        return (
            not self._orders
            and self._usage is None
            and not any(key in self.capabilities for key in self._attempts)
        )

    def add_attempt(self, attempt: Attempt) -> None:
        """
        Note the newest phase of an attempt.
        """
        if attempt.phase is Phase.ENDED or attempt.key not in self._told_started:
            self._attempts[attempt.key] = attempt

    def add_order(self, outcome: OrderOutcome, move: Suspended | Resumed | None = None) -> None:
        """
        Note that an order was carried out, and whether its attempt stopped or goes on by it.
        """
        self._orders.append(outcome)
        if move is not None:
            self._moves.append(move)

    def set_usage(self, usage: Usage) -> None:
        """
        Note a measure; an older one that wasn't told yet is dropped.
        """
        self._usage = usage

    def drop(self, key: AttemptKey) -> None:
        """
        Drop what is known of an attempt that the scheduler has done with.
        """
        self._attempts.pop(key, None)
        self._told_started.discard(key)
        self.capabilities.pop(key, None)

    def due(self) -> list[Due]:
        """
        Return what to tell now, in order: starts before ends, orders after them, the measure last.
        """
        found: list[Due] = []
        for key, attempt in self._attempts.items():
            if key in self.capabilities and len(found) < BATCH_MAX:
                found += self._about(attempt, self.capabilities[key])
        found += [Due(move) for move in self._moves]
        found += [
            Due(OrderDone(order_number=one.order_number, outcome=one.outcome))
            for one in self._orders
        ]
        if self._usage is not None:
            found.append(Due(self._usage))
        return found

    def _about(self, attempt: Attempt, capability: str) -> list[Due]:
        key = attempt.key
        if attempt.failed:
            return [
                Due(
                    CouldNotStart(
                        job_id=key.job_id,
                        attempt=key.attempt,
                        capability=capability,
                        why=attempt.failed,
                        pre_exec_of=OWNERS.get(attempt.pre_exec_of, ""),
                        pre_exec_exit=attempt.pre_exec_exit,
                        fault=FAULTS.get(attempt.fault, ""),
                    ),
                    ends=key,
                )
            ]
        told: list[Due] = []
        if attempt.pid and key not in self._told_started:
            told.append(
                Due(
                    Started(
                        job_id=key.job_id,
                        attempt=key.attempt,
                        capability=capability,
                        pid=attempt.pid,
                        process_group=attempt.pid,
                    )
                )
            )
        if attempt.phase is Phase.ENDED:
            told.append(
                Due(
                    Finished(
                        job_id=key.job_id,
                        attempt=key.attempt,
                        capability=capability,
                        exit_code=attempt.exit_code,
                        signal=attempt.signal,
                        cpu_us=attempt.cpu_us,
                        max_rss_kib=attempt.max_rss_kib,
                    ),
                    ends=key,
                )
            )
        return told

    def told(self, sent: list[Due]) -> list[AttemptKey]:
        """
        Note that reports were answered, and return the attempts that are done with.
        """
        ended: list[AttemptKey] = []
        for due in sent:
            if isinstance(due.report, Started):
                self._has_told_start(AttemptKey(due.report.job_id, due.report.attempt))
            elif isinstance(due.report, Suspended | Resumed):
                self._moves.popleft()
            elif isinstance(due.report, OrderDone):
                self._orders.popleft()
            elif due.report is self._usage:
                self._usage = None
            elif due.ends is not None:
                ended.append(due.ends)
                self.drop(due.ends)
        return ended

    def _has_told_start(self, key: AttemptKey) -> None:
        self._told_started.add(key)
        attempt = self._attempts.get(key)
        if attempt is not None and attempt.phase is not Phase.ENDED:
            del self._attempts[key]

"""
The outcomes of decision traces: the first hosts one by one, the others summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from domain.allocations import Allocation
from domain.reasons import PendReason, ReasonCode
from projections.scheduling.trace import HOSTS_SHOWN, Outcome, OutcomeHost, Rest, Verdict

SHORTAGES: Final = frozenset(
    {
        ReasonCode.HOST_SLOTS,
        ReasonCode.HOST_JOB_RUSAGE,
        ReasonCode.HOST_QUE_RUSAGE,
        ReasonCode.JOB_NO_SPAN,
        ReasonCode.RES_SHORT,
    }
)
"""Codes of too little of something; other codes of a resource are those of limits."""


def placed_outcome(
    allocation: Allocation,
    name_of: Callable[[int], str],
    verdict: Verdict = Verdict.DISPATCHED,
    *,
    is_forced: bool = False,
) -> Outcome:
    """
    Return the outcome of a job that got an allocation.
    """
    shares, hosts = allocation.shares(), []
    for number, tasks, amounts in shares:
        told = tuple((amount.resource, amount.milli) for amount in amounts)
        hosts.append(OutcomeHost(name_of(number), tasks=tasks, amounts=told))
        if len(hosts) == HOSTS_SHOWN:
            break
    count = sum(run.hosts for run in allocation.runs)
    rest: tuple[Rest, ...] = ()
    if count > len(hosts):
        left = allocation.tasks() - sum(host.tasks for host in hosts)
        rest = (Rest(hosts=count - len(hosts), tasks=left),)
    which = f", alternative {allocation.alternative}" if allocation.alternative else ""
    forced = ", on hosts that an operator named" if is_forced else ""
    return Outcome(
        verdict,
        why=f"by {allocation.allocator}{which}{forced}",
        tasks=allocation.tasks(),
        shared=tuple((each.resource, each.milli) for each in allocation.shared),
        host_count=count,
        hosts=tuple(hosts),
        rest=rest,
    )


def skipped_outcome(because_of: str, reason_set: int) -> Outcome:
    """
    Return the outcome of a job whose request another job had proved unsatisfiable.
    """
    return Outcome(
        Verdict.SKIPPED,
        why="same request as a job that proved unsatisfiable earlier this session",
        because_of=because_of,
        reason_set=reason_set,
    )


def pended_outcome(
    reasons: Sequence[PendReason], name_of: Callable[[int], str]
) -> Outcome:
    """
    Return the outcome of a job that waits, for these reasons.
    """
    outcome = Outcome(Verdict.PENDED)
    hosts: list[OutcomeHost] = []
    rest: dict[tuple[str, str, str], int] = {}
    for reason in reasons:
        key = (reason.code.value, reason.resource, reason.detail)
        count = sum(span.hosts for span in reason.hosts)
        if reason.code in SHORTAGES and not _is_limit(reason):
            outcome.shortfalls += count or 1
        elif _is_limit(reason):
            outcome.limits_reached += count or 1
        if not count:
            outcome.reasons = (*outcome.reasons, key)
            continue
        outcome.host_count += count
        told = _told(reason, name_of, HOSTS_SHOWN - len(hosts))
        hosts += told
        if count > len(told):
            rest[key] = rest.get(key, 0) + count - len(told)
    outcome.hosts = tuple(hosts)
    outcome.rest = tuple(
        Rest(hosts=count, code=code, resource=resource, detail=detail)
        for (code, resource, detail), count in rest.items()
    )
    return outcome


def _is_limit(reason: PendReason) -> bool:
    """
    Say whether a reason is about a limit: it names what is bound, and the limit.
    """
    return bool(reason.resource and reason.detail)


def _told(reason: PendReason, name_of: Callable[[int], str], most: int) -> list[OutcomeHost]:
    numbers = (
        (number, span.available_milli)
        for span in reason.hosts
        for number in range(span.first, span.first + span.hosts)
    )
    return [
        OutcomeHost(
            name_of(number),
            code=reason.code.value,
            resource=reason.resource,
            detail=reason.detail,
            requested_milli=reason.requested_milli or 0,
            available_milli=available,
        )
        for (number, available), _ in zip(numbers, range(most), strict=False)
    ]

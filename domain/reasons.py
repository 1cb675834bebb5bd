"""
Every pend reason: one enumeration of codes, one text each, and how reasons are grouped for people.

A reason set is recorded once for each distinct request; a waiting job only names the set that it is
in.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from domain.allocations import HostSpan
from domain.amounts import Milli
from domain.event import Value


class ReasonCode(StrEnum):
    """
    Name why a job waits; the codes are LSF's where LSF has one.
    """

    JOB_NEW = "JOB_NEW"
    USER_STOP = "USER_STOP"
    JOB_BEHIND = "JOB_BEHIND"
    QUE_INACT = "QUE_INACT"
    NO_ALLOCATOR = "NO_ALLOCATOR"
    NO_PLAN = "NO_PLAN"
    NO_HOSTS = "NO_HOSTS"
    PLUGIN_FAILED = "PLUGIN_FAILED"
    HOST_SLOTS = "HOST_SLOTS"
    HOST_JOB_RUSAGE = "HOST_JOB_RUSAGE"
    HOST_RES_REQ = "HOST_RES_REQ"
    HOST_DISABLED = "HOST_DISABLED"
    SBD_UNREACH = "SBD_UNREACH"
    LOAD_UNAVAIL = "LOAD_UNAVAIL"


TEXTS: Final[dict[ReasonCode, str]] = {
    ReasonCode.JOB_NEW: "new job, not yet considered",
    ReasonCode.USER_STOP: "held by its user or an administrator",
    ReasonCode.JOB_BEHIND: "an earlier job of the list can't start yet and holds this one back",
    ReasonCode.QUE_INACT: "the queue is inactive",
    ReasonCode.NO_ALLOCATOR: "no allocator accepts it",
    ReasonCode.NO_PLAN: "no plan generated",
    ReasonCode.NO_HOSTS: "the cluster has no host",
    ReasonCode.PLUGIN_FAILED: "a plug-in failed on it",
    ReasonCode.HOST_SLOTS: "not enough slots",
    ReasonCode.HOST_JOB_RUSAGE: "not enough {resource}",
    ReasonCode.HOST_RES_REQ: "the host doesn't match the job's select",
    ReasonCode.HOST_DISABLED: "closed by administrator",
    ReasonCode.SBD_UNREACH: "unreachable",
    ReasonCode.LOAD_UNAVAIL: "its worker has left",
}


class PendReason(Value):
    """
    Say one reason, and the hosts it holds for.

    Args:
        code: Which reason.
        resource: Name of the resource that is short, "" when none is.
        detail: The job, limit or plug-in concerned, "" when none is.
        requested_milli: The smallest amount that was tried on the host and didn't fit.
        hosts: Runs of hosts with what each has available; empty for a reason of the whole job.
    """

    code: ReasonCode
    resource: str = ""
    detail: str = ""
    requested_milli: Milli = 0
    hosts: tuple[HostSpan, ...] = ()

    def host_count(self) -> int:
        """
        Return for how many hosts the reason holds.
        """
        return sum(span.hosts for span in self.hosts)

    def text(self) -> str:
        """
        Return the reason in words, without its hosts.
        """
        words = TEXTS[self.code].format(resource=self.resource)
        return f"{words} ({self.detail})" if self.detail else words


def grouped(reasons: Iterable[PendReason]) -> list[tuple[str, int]]:
    """
    Return each reason's words and its count of hosts, most hosts first, ties by the words.

    A reason of the whole job has the count 0 and comes first.
    """
    counts: dict[str, int] = {}
    for reason in reasons:
        counts[reason.text()] = counts.get(reason.text(), 0) + reason.host_count()
    return sorted(counts.items(), key=lambda item: (item[1] > 0, -item[1], item[0]))


def show_grouped(reasons: Iterable[PendReason]) -> str:
    """
    Return the reasons as one line: "not enough mem: 12 hosts; closed by administrator: 3 hosts".
    """
    shown = []
    for words, count in grouped(reasons):
        hosts = "" if count == 0 else f": {count} host{'' if count == 1 else 's'}"
        shown.append(words + hosts)
    return "; ".join(shown)

"""
Every pend reason: one enumeration of codes, one text each, and how reasons are grouped for people.

A reason set is recorded once for each distinct request; a waiting job only names the set that it is
in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Final

from domain.allocations import HostSpan
from domain.amounts import Count, Milli
from domain.event import Value


class ReasonCode(StrEnum):
    """
    Name why a job waits; the codes are LSF's where LSF has one.
    """

    JOB_NEW = "JOB_NEW"
    USER_RESUME = "USER_RESUME"
    JOB_MODIFY = "JOB_MODIFY"
    JOB_SWITCH = "JOB_SWITCH"
    JOB_REQUEUED = "JOB_REQUEUED"
    JOB_PREEMPTED = "JOB_PREEMPTED"
    JOB_PRE_EXEC = "JOB_PRE_EXEC"
    QUE_PRE_FAIL = "QUE_PRE_FAIL"
    SBD_NO_MEM = "SBD_NO_MEM"
    JOB_START_FAIL = "JOB_START_FAIL"
    USER_STOP = "USER_STOP"
    ADMIN_STOP = "ADMIN_STOP"
    JOB_BEHIND = "JOB_BEHIND"
    JOB_START_TIME = "JOB_START_TIME"
    JOB_DEPEND = "JOB_DEPEND"
    JOB_DEP_INVALID = "JOB_DEP_INVALID"
    JOB_DELAY_SCHED = "JOB_DELAY_SCHED"
    JOB_ARRAY_JLIMIT = "JOB_ARRAY_JLIMIT"
    JOB_MISS_DEADLINE = "JOB_MISS_DEADLINE"
    QUE_INACT = "QUE_INACT"
    QUE_WINDOW = "QUE_WINDOW"
    QUE_WINDOW_WILL_CLOSE = "QUE_WINDOW_WILL_CLOSE"
    QUE_JOB_LIMIT = "QUE_JOB_LIMIT"
    QUE_PJOB_LIMIT = "QUE_PJOB_LIMIT"
    QUE_USR_JLIMIT = "QUE_USR_JLIMIT"
    QUE_USR_PJLIMIT = "QUE_USR_PJLIMIT"
    QUE_PROCLIMIT = "QUE_PROCLIMIT"
    QUE_NO_RIGHT = "QUE_NO_RIGHT"
    USER_JOB_LIMIT = "USER_JOB_LIMIT"
    USER_PJOB_LIMIT = "USER_PJOB_LIMIT"
    UGRP_JOB_LIMIT = "UGRP_JOB_LIMIT"
    UGRP_PJOB_LIMIT = "UGRP_PJOB_LIMIT"
    RES_LIMIT = "RES_LIMIT"
    PROJECT_NO_RIGHT = "PROJECT_NO_RIGHT"
    PROJECT_CLOSED = "PROJECT_CLOSED"
    JOB_NOT_ALLOWED = "JOB_NOT_ALLOWED"
    NO_ALLOCATOR = "NO_ALLOCATOR"
    NO_PLAN = "NO_PLAN"
    NO_HOSTS = "NO_HOSTS"
    PLUGIN_FAILED = "PLUGIN_FAILED"
    HOST_SLOTS = "HOST_SLOTS"
    HOST_JOB_LIMIT = "HOST_JOB_LIMIT"
    HOST_LESS_SLOTS = "HOST_LESS_SLOTS"
    HOST_JOB_RUSAGE = "HOST_JOB_RUSAGE"
    HOST_QUE_RUSAGE = "HOST_QUE_RUSAGE"
    HOST_RES_REQ = "HOST_RES_REQ"
    HOST_QUE_RESREQ = "HOST_QUE_RESREQ"
    HOST_SCHED_TYPE = "HOST_SCHED_TYPE"
    HOST_USR_SPEC = "HOST_USR_SPEC"
    HOST_QUE_MEMB = "HOST_QUE_MEMB"
    QUE_HOST_JLIMIT = "QUE_HOST_JLIMIT"
    QUE_PROC_JLIMIT = "QUE_PROC_JLIMIT"
    USER_PROC_JLIMIT = "USER_PROC_JLIMIT"
    HOST_USR_JLIMIT = "HOST_USR_JLIMIT"
    HOST_NONEXCLUSIVE = "HOST_NONEXCLUSIVE"
    HOST_EXCLUSIVE = "HOST_EXCLUSIVE"
    HOST_JOB_SSUSP = "HOST_JOB_SSUSP"
    SBD_JOB_REQUEUE = "SBD_JOB_REQUEUE"
    JOB_NO_SPAN = "JOB_NO_SPAN"
    JOB_SPREAD_TASK = "JOB_SPREAD_TASK"
    RES_SHORT = "RES_SHORT"
    MEMBER_NOT_TRIED = "MEMBER_NOT_TRIED"
    ALTERNATIVE_WAITS = "ALTERNATIVE_WAITS"
    HOST_WINDOW = "HOST_WINDOW"
    HOST_NO_LIM = "HOST_NO_LIM"
    HOST_LOCKED = "HOST_LOCKED"
    HOST_ACCPT_ONE = "HOST_ACCPT_ONE"
    HOST_LOAD = "HOST_LOAD"
    HOST_STOP_COND = "HOST_STOP_COND"
    HOST_DISABLED = "HOST_DISABLED"
    SBD_UNREACH = "SBD_UNREACH"
    LOAD_UNAVAIL = "LOAD_UNAVAIL"


TEXTS: Final[dict[ReasonCode, str]] = {
    ReasonCode.JOB_REQUEUED: "put back to pending, not considered since",
    ReasonCode.JOB_PREEMPTED: "put back to pending for another job, not considered since",
    ReasonCode.JOB_PRE_EXEC: "its pre-exec command failed, not considered since",
    ReasonCode.QUE_PRE_FAIL: "the queue's pre-exec command failed, not considered since",
    ReasonCode.SBD_NO_MEM: "its host had no memory to start it, not considered since",
    ReasonCode.JOB_START_FAIL: "its host couldn't start it, not considered since",
    ReasonCode.JOB_SWITCH: "switched to another queue, not considered since",
    ReasonCode.JOB_MODIFY: "changed, not considered since",
    ReasonCode.USER_RESUME: "its hold was lifted, not considered since",
    ReasonCode.JOB_NEW: "new job, not yet considered",
    ReasonCode.USER_STOP: "held by its user",
    ReasonCode.ADMIN_STOP: "held by an administrator, who must resume it",
    ReasonCode.JOB_BEHIND: "an earlier job of the list can't start yet and holds this one back",
    ReasonCode.JOB_START_TIME: "it has a start time in the future",
    ReasonCode.JOB_DEPEND: "its dependency isn't satisfied yet",
    ReasonCode.JOB_DEP_INVALID: "its dependency is invalid or can never be satisfied",
    ReasonCode.JOB_DELAY_SCHED: "its queue lets new jobs wait before they are considered",
    ReasonCode.JOB_ARRAY_JLIMIT: "the array has reached its limit of started elements",
    ReasonCode.JOB_MISS_DEADLINE: "it couldn't finish before its deadline",
    ReasonCode.QUE_INACT: "the queue is inactive",
    ReasonCode.QUE_WINDOW: "the queue is outside its windows",
    ReasonCode.QUE_WINDOW_WILL_CLOSE: "it couldn't finish before the queue's window closes",
    ReasonCode.QUE_JOB_LIMIT: "the queue has reached its limit of slots",
    ReasonCode.QUE_PJOB_LIMIT: "the queue has too few slots left for a parallel job",
    ReasonCode.QUE_USR_JLIMIT: "the user has reached the queue's limit of slots for each user",
    ReasonCode.QUE_USR_PJLIMIT: "the user has too few of the queue's slots left for a parallel job",
    ReasonCode.QUE_PROCLIMIT: "its count of tasks is outside the queue's range",
    ReasonCode.QUE_NO_RIGHT: "the queue no longer takes jobs of its user",
    ReasonCode.USER_JOB_LIMIT: "the user has reached the limit of slots",
    ReasonCode.USER_PJOB_LIMIT: "the user has too few slots left for a parallel job",
    ReasonCode.UGRP_JOB_LIMIT: "the user group has reached its limit of slots",
    ReasonCode.UGRP_PJOB_LIMIT: "the user group has too few slots left for a parallel job",
    ReasonCode.RES_LIMIT: "a limit of {resource} is reached",
    ReasonCode.PROJECT_NO_RIGHT: "its user is no longer a member of its project",
    ReasonCode.PROJECT_CLOSED: "its project is closed",
    ReasonCode.JOB_NOT_ALLOWED: "its profile or queue no longer allows what it asks for",
    ReasonCode.NO_ALLOCATOR: "no allocator accepts it",
    ReasonCode.NO_PLAN: "no plan generated",
    ReasonCode.NO_HOSTS: "the cluster has no host",
    ReasonCode.PLUGIN_FAILED: "its placement failed",
    ReasonCode.HOST_SLOTS: "not enough slots",
    ReasonCode.HOST_JOB_LIMIT: "all slots are taken",
    ReasonCode.HOST_LESS_SLOTS: "too few slots are free",
    ReasonCode.HOST_JOB_RUSAGE: "not enough {resource}",
    ReasonCode.HOST_RES_REQ: "the host doesn't match the job's select",
    ReasonCode.HOST_QUE_RUSAGE: "not enough {resource}, which the queue reserves",
    ReasonCode.HOST_QUE_RESREQ: "the host doesn't match the queue's select",
    ReasonCode.HOST_SCHED_TYPE: "not of the submission host's type",
    ReasonCode.HOST_USR_SPEC: "not among the hosts asked for",
    ReasonCode.HOST_JOB_SSUSP: "its free slots are kept for a suspended job that comes first",
    ReasonCode.HOST_QUE_MEMB: "not among the queue's hosts",
    ReasonCode.QUE_HOST_JLIMIT: "the queue's limit on the host is reached",
    ReasonCode.QUE_PROC_JLIMIT: "the queue's limit for each processor of the host is reached",
    ReasonCode.USER_PROC_JLIMIT: "the user's limit for each processor of the host is reached",
    ReasonCode.HOST_USR_JLIMIT: "the host's limit for each user is reached",
    ReasonCode.HOST_NONEXCLUSIVE: "an exclusive job needs a host without jobs",
    ReasonCode.HOST_EXCLUSIVE: "runs an exclusive job",
    ReasonCode.SBD_JOB_REQUEUE: "avoided, since the job failed there",
    ReasonCode.JOB_NO_SPAN: "can't hold the tasks that the job's span asks of a host",
    ReasonCode.JOB_SPREAD_TASK: "not enough hosts for the job's span",
    ReasonCode.RES_SHORT: "not enough {resource}, which hosts share",
    ReasonCode.MEMBER_NOT_TRIED: "not tried, since an earlier member can't be placed",
    ReasonCode.ALTERNATIVE_WAITS: "not tried yet",
    ReasonCode.HOST_WINDOW: "outside its dispatch window",
    ReasonCode.HOST_NO_LIM: "its worker can't measure its load",
    ReasonCode.HOST_LOCKED: "locked",
    ReasonCode.HOST_ACCPT_ONE: "has just started a job",
    ReasonCode.HOST_LOAD: "the load index {resource} is beyond its threshold",
    ReasonCode.HOST_STOP_COND: "the queue stops jobs where its load is such",
    ReasonCode.HOST_DISABLED: "closed by administrator",
    ReasonCode.SBD_UNREACH: "unreachable",
    ReasonCode.LOAD_UNAVAIL: "no load information",
}

NOTES: Final = frozenset({ReasonCode.MEMBER_NOT_TRIED, ReasonCode.ALTERNATIVE_WAITS})
"""Codes that say what wasn't tried; they are never the main reason."""


NO_CANDIDATES: Final = frozenset(
    {
        ReasonCode.HOST_RES_REQ,
        ReasonCode.HOST_QUE_RESREQ,
        ReasonCode.HOST_SCHED_TYPE,
        ReasonCode.HOST_USR_SPEC,
        ReasonCode.HOST_QUE_MEMB,
        ReasonCode.HOST_DISABLED,
        ReasonCode.HOST_LOCKED,
        ReasonCode.HOST_WINDOW,
        ReasonCode.SBD_UNREACH,
        ReasonCode.HOST_NO_LIM,
        ReasonCode.LOAD_UNAVAIL,
    }
)
"""Codes of hosts that are no candidates for a job: the request never suits them, or they take no
jobs. All other hosts could run it if nothing else ran there."""


class PendReason(Value):
    """
    Say one reason, and the hosts it holds for.

    Args:
        code: Which reason.
        resource: Name of the resource that is short, "" when none is.
        detail: The job, limit or plug-in concerned, "" when none is.
        requested_milli: The smallest amount that was tried on the host and didn't fit.
        hosts: Runs of hosts with what each has available; empty for a reason of the whole job.
        alternative: Which alternative of the requirement, or of its rusage, it belongs to, from 1;
            0 when there is only one.
        member: Which member of a compound, from 1; 0 when there is only one.
    """

    code: ReasonCode
    resource: str = ""
    detail: str = ""
    requested_milli: Milli = 0
    hosts: tuple[HostSpan, ...] = ()
    alternative: Count = 0
    member: Count = 0

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
        if self.code is ReasonCode.LOAD_UNAVAIL and self.detail:
            return f"its worker doesn't report the load index {self.detail}"
        return f"{words} ({self.detail})" if self.detail else words


def is_candidates(reason: PendReason) -> bool:
    """
    Say whether a reason is one of hosts that could run the job if nothing else ran there.
    """
    return bool(reason.hosts) and reason.code not in NO_CANDIDATES


def shown(
    reasons: Iterable[PendReason], free_milli: Callable[[int], int] | None = None
) -> list[PendReason]:
    """
    Return reasons as LSF's users know them: a host short of slots has either none or too few.

    Which of the two it is changes with every dispatch, so the recorded reason (HOST_SLOTS) doesn't
    say it; it is told when the reason is shown.

    Args:
        reasons: As they were recorded.
        free_milli: Host number -> its free slots in thousandths now; those recorded when None.
    """
    found: list[PendReason] = []
    for reason in reasons:
        if reason.code not in (ReasonCode.HOST_SLOTS, ReasonCode.JOB_NO_SPAN):
            found.append(reason)
            continue
        some = reason.code if reason.code is ReasonCode.JOB_NO_SPAN else ReasonCode.HOST_LESS_SLOTS
        hosts: dict[ReasonCode, list[HostSpan]] = {ReasonCode.HOST_JOB_LIMIT: [], some: []}
        for span in reason.hosts:
            for number in range(span.first, span.first + span.hosts):
                free = span.available_milli if free_milli is None else free_milli(number)
                code = some if free else ReasonCode.HOST_JOB_LIMIT
                hosts[code].append(HostSpan(first=number, available_milli=free))
        found += [
            reason.model_copy(update={"code": code, "hosts": tuple(hosts[code])})
            for code in hosts
            if hosts[code]
        ]
    return found


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

"""
How jobs of one queue may suspend those of another: the cluster's settings, and a queue's choices.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from domain.amounts import TimeUs
from domain.event import Value
from domain.ids import Name


class Relation(StrEnum):
    """
    Name who must agree that one queue preempts another: both of them, or either (LSF's rule).
    """

    BOTH = "both"
    EITHER = "either"


class Trigger(StrEnum):
    """
    Name which shortages lead to preemption: any that victims can cure, or of slots (LSF's rule).
    """

    ANY = "any"
    SLOTS = "slots"


class SuspendSignals(StrEnum):
    """
    Name how victims are stopped: SIGTSTP, and SIGSTOP if that doesn't; or as LSF does, SIGSTOP for
    serial and SIGTSTP for parallel jobs.
    """

    TSTP = "tstp"
    LSF = "lsf"


class PreemptPolicy(StrEnum):
    """
    Name which victims come first among those of equal preference: those of the lowest priority, or
    of the lowest queue those that have run least.
    """

    LOWEST_PRIORITY = "lowest_priority"
    LEAST_RUN_TIME = "least_run_time"


class OnPreempt(StrEnum):
    """
    Name what becomes of a job that the system stops: it is suspended, ended, or put back to
    pending.
    """

    SUSPEND = "suspend"
    KILL = "kill"
    REQUEUE = "requeue"


class JobType(StrEnum):
    """
    Name a kind of job that is no victim unless the cluster says so (LSF's PREEMPT_JOBTYPE): one
    that has its hosts alone, or one that started ahead of a job without delaying it.
    """

    EXCLUSIVE = "exclusive"
    BACKFILL = "backfill"


class Uncounted(StrEnum):
    """
    Name a bound of slots that jobs suspended for others needn't count for (keywords of LSF's
    PREEMPT_FOR): a user's on a host, a group's, or a user's for each processor of a host.
    """

    HOST_JLU = "host_jlu"
    GROUP_MAX = "group_max"
    USER_JLP = "user_jlp"


Percent = Annotated[int, Field(ge=0, le=100)]


class Preemption(Value):
    """
    Hold the cluster's settings of preemption. Times are microseconds, 0 for none.

    Args:
        relation: Whether both queues must agree that one preempts the other, or one is enough.
        trigger: Which shortages lead to preemption.
        signals: How victims are stopped.
        resources: What suspended victims give back beside slots and what is marked so; with the
            trigger ``slots`` a shortage of these leads to preemption too.
        delay_us: A job preempts only after it has waited so long.
        times_max: A job is preempted at most so often; None for any.
        no_finish_us: A job that reaches its run limit within this time is no victim.
        no_run_us: A job with a run limit that has run so long is no victim any more.
        no_finish_percent: So is one with no more than this share of its run limit left, 0 for none.
        no_run_percent: So is one that has run for this share of its run limit.
        no_interval_us: A job is no victim so long after it was started or resumed.
        job_types: The kinds of jobs that are victims all the same.
        uncounted: The bounds that suspended victims don't count for, beside a user's slots.
    """

    relation: Relation = Relation.BOTH
    trigger: Trigger = Trigger.ANY
    signals: SuspendSignals = SuspendSignals.TSTP
    resources: tuple[Name, ...] = ()
    delay_us: TimeUs = 0
    times_max: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    no_finish_us: TimeUs = 0
    no_run_us: TimeUs = 0
    no_interval_us: TimeUs = 0
    no_finish_percent: Percent = 0
    no_run_percent: Percent = 0
    job_types: tuple[JobType, ...] = ()
    uncounted: tuple[Uncounted, ...] = ()

    @property
    def opens_with_time(self) -> bool:
        """
        Say whether a job may become able to preempt just because time goes by.
        """
        return bool(self.delay_us or self.no_interval_us)


DEFAULT: Preemption = Preemption()

"""
What a queue is made of.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from domain.amounts import Count, Milli, TimeUs
from domain.errors import Refused
from domain.event import Value
from domain.fairshare import Fairshare, check_fairshare
from domain.ids import MaybeName, MaybePath
from domain.jobs import ExitRules, JobLimits, Shell, Tasks, Text
from domain.lines import Line
from domain.name_lists import NameList
from domain.preemption import OnPreempt, PreemptPolicy
from domain.resreq.merge import ReservationRange
from domain.resreq.syntax import Requirement
from domain.thresholds import LoadThreshold
from domain.units import show_duration
from domain.windows import Windows

QUEUE_PRIORITY_MAX = 1_000_000
TASKS_MAX = 1_000_000


class QueueLimits(Value):
    """
    Hold how many slots and jobs of a queue may be in use at a time; None where any may.

    Args:
        slots: Slots of the whole queue.
        user_slots: Slots of each user.
        host_slots: Slots on each host.
        processor_slots_milli: Slots on a host for each of its processors, in thousandths; the
            product is rounded up.
        jobs: Started jobs of the whole queue.
        user_jobs: Those of each user.
        host_jobs: Those on each host.
    """

    slots: Count | None = None
    user_slots: Count | None = None
    host_slots: Count | None = None
    processor_slots_milli: Milli | None = None
    jobs: Count | None = None
    user_jobs: Count | None = None
    host_jobs: Count | None = None


class QueueSpec(Value):
    """
    Hold a queue as its administrator defined it.

    Args:
        priority: Jobs of a queue of higher priority are considered first.
        is_open: Whether it takes submissions.
        is_active: Whether its jobs may start.
        picker: Name of a picker of its own, "" for the cluster's.
        description: A line for people.
        run_windows: Outside of them nothing starts and running jobs are suspended; None for always.
        dispatch_windows: Outside of them nothing starts; None for always.
        ignore_deadline: Start jobs that couldn't end before the run windows close.
        run_limit_max_us: A job that asks for a longer run limit is refused.
        run_limit_default_us: The run limit of a job that names none; else ``run_limit_max_us``.
        exits: What exit values mean for jobs without rules of their own.
        rerunnable: Whether jobs start anew when their host is lost, unless they say otherwise.
        limits: How many slots and jobs may be in use at a time.
        tasks_min: A job that asks for fewer tasks is refused.
        tasks_max: So is one that asks for more.
        tasks_default: The tasks of a job that names none; else ``tasks_min``.
        hosts_max: Most hosts of one job.
        job_limits_max: A job that asks for higher bounds of its own is refused.
        job_limits_default: The bounds of a job that names none.
        user_priority_max: What of a job's own priority counts, at most.
        hosts: The hosts it may use, None for all.
        users: Who may submit, None for everybody.
        project: The project of a job that names none, before the group's and the cluster's.
        resreq: LSF's requirement of the queue, as written; it counts where the cluster says so.
        requirement: The same parsed and checked.
        reservations: What jobs may reserve (LSF's RESRSV_LIMIT); counts with ``resreq``.
        allows_exclusive: Whether jobs may ask for hosts of their own.
        pre_exec: LSF's command before each job; profiles say it better.
        post_exec: The same after each job.
        nice: How much lower than usual the processes' priority is.
        preemptible_queues: The queues whose jobs its own may suspend; those of a higher preference
            come first. None when they may suspend nobody's.
        preemptible_by: The queues whose jobs may suspend its own, None when it isn't preemptible.
        preempt_policy: Which victims come first for its jobs.
        on_preempt: What becomes of its own jobs that are victims.
        slot_reserve_us: For so long a parallel job that can't start gathers the slots that become
            free (LSF's SLOT_RESERVE); then it gives them back. None for not at all.
        resource_reserve_us: The same for slots and amounts, and for amounts of serial jobs
            (RESOURCE_RESERVE).
        is_backfill: Whether jobs with a run limit may use what others have gathered, when they end
            before it is needed (LSF's BACKFILL).
        fairshare: Whose jobs come first, for the picker ``fairshare``.
        new_job_delay_us: So long after its submission no job is considered (LSF's
            NEW_JOB_SCHED_DELAY).
        on_window: What becomes of its running jobs when its run windows close.
        on_load: What becomes of them where the load of a host is too much; from each host one is
            put back once, then it is suspended there.
        stop_condition: A select of hosts where its running jobs are stopped, as written (LSF's
            STOP_COND), "" for none.
        resume_condition: A select of hosts where they go on, instead of ``thresholds``.
        stop_when: The first parsed and checked; so ``resume_when``.
        thresholds: From which load of a host on none of its jobs starts there, or goes on.
    """

    priority: Annotated[int, Field(ge=0, le=QUEUE_PRIORITY_MAX)]
    is_open: bool = True
    is_active: bool = True
    picker: MaybeName = ""
    description: Line = ""
    run_windows: Windows | None = None
    dispatch_windows: Windows | None = None
    ignore_deadline: bool = False
    run_limit_max_us: TimeUs | None = None
    run_limit_default_us: TimeUs | None = None
    exits: ExitRules | None = None
    rerunnable: bool = False
    limits: QueueLimits | None = None
    tasks_min: Tasks | None = None
    tasks_max: Tasks | None = None
    tasks_default: Tasks | None = None
    hosts_max: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    job_limits_max: JobLimits | None = None
    job_limits_default: JobLimits | None = None
    user_priority_max: Count | None = None
    hosts: NameList | None = None
    users: NameList | None = None
    project: MaybePath = ""
    resreq: tuple[Text, ...] = ()
    requirement: Requirement | None = None
    reservations: tuple[ReservationRange, ...] = ()
    allows_exclusive: bool = False
    pre_exec: Shell = ""
    post_exec: Shell = ""
    nice: Annotated[int, Field(ge=-20, le=19)] = 0
    preemptible_queues: NameList | None = None
    preemptible_by: NameList | None = None
    preempt_policy: PreemptPolicy = PreemptPolicy.LOWEST_PRIORITY
    on_preempt: OnPreempt = OnPreempt.SUSPEND
    slot_reserve_us: TimeUs | None = None
    resource_reserve_us: TimeUs | None = None
    is_backfill: bool = False
    fairshare: Fairshare | None = None
    new_job_delay_us: TimeUs = 0
    on_window: OnPreempt = OnPreempt.SUSPEND
    on_load: OnPreempt = OnPreempt.SUSPEND
    stop_condition: Text = ""
    resume_condition: Text = ""
    stop_when: Requirement | None = None
    resume_when: Requirement | None = None
    thresholds: tuple[LoadThreshold, ...] = ()

    @property
    def bounds_tasks(self) -> bool:
        """
        Say whether it has something to say of the count of tasks.
        """
        bounds = (self.tasks_min, self.tasks_max, self.tasks_default)
        return any(bound is not None for bound in bounds)

    @property
    def run_limit_usual_us(self) -> TimeUs | None:
        """
        Return the run limit of a job that names none: the default, else the longest there is, which
        nobody escapes by saying nothing.
        """
        default = self.run_limit_default_us
        return self.run_limit_max_us if default is None else default

    def counted_priority(self, wish: int) -> int:
        """
        Return what counts of a job's own priority.
        """
        return wish if self.user_priority_max is None else min(wish, self.user_priority_max)

    @property
    def has_ceilings(self) -> bool:
        """
        Say whether there is something that it never allows a job.
        """
        return (
            self.bounds_tasks
            or self.run_limit_max_us is not None
            or self.job_limits_max is not None
            or self.requirement is not None
            or bool(self.reservations)
        )

    @property
    def fills_in(self) -> bool:
        """
        Say whether jobs get values from it that they don't name themselves.
        """
        return (
            self.bounds_tasks
            or self.run_limit_usual_us is not None
            or self.exits is not None
            or self.rerunnable
            or self.job_limits_default is not None
            or self.job_limits_max is not None
        )


def check_queue(queue: QueueSpec) -> QueueSpec:
    """
    Return a queue's definition when its fields don't contradict each other.

    Raises:
        Refused: They do.
    """
    least, most = queue.tasks_min or 1, queue.tasks_max or TASKS_MAX
    if least > most:
        raise Refused("tasks_max", "must not be below tasks_min", most)
    if queue.tasks_default is not None and not least <= queue.tasks_default <= most:
        raise Refused("tasks_default", "must be within the range of tasks", queue.tasks_default)
    if queue.slot_reserve_us is not None and queue.resource_reserve_us is not None:
        rule = "must not be set beside resource_reserve_us, which gathers slots too"
        raise Refused("slot_reserve_us", rule, queue.slot_reserve_us)
    if queue.fairshare is not None:
        check_fairshare(queue.fairshare)
    longest, usual = queue.run_limit_max_us, queue.run_limit_default_us
    if longest is not None and usual is not None and usual > longest:
        rule = f"must not be above run_limit_max_us, {show_duration(longest)}"
        raise Refused("run_limit_default_us", rule, show_duration(usual))
    return queue

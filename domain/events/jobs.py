"""
Events of jobs (streams ``job:NUMBER``); the job's id is its stream's, so no payload repeats it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from domain.allocations import Allocation
from domain.amounts import Count, TimeUs
from domain.event import Event, Value
from domain.ids import Name
from domain.jobs import HostFault, HostTasks, JobSpec, PreExecOf
from domain.reservations import BackfillReservation
from domain.signals import SignalName
from domain.terminations import Termination

AttemptNumber = Annotated[int, Field(ge=1, le=2**31 - 1)]
PRE_EXEC_GIVES_UP: Final = 99
"""With this exit value a command before the job's own says that trying again is no use."""


class JobSubmitted(Event):
    """
    Say that a job came in.

    Args:
        spec: The job as its user asked for it.
        key: The client's own key of the submission, "" when none was given.
        digest: Digest of the keyed request, so that the same key with other content is told.
    """

    TYPE_CODE: ClassVar[str] = "job.submitted"
    spec: JobSpec
    key: str = ""
    digest: str = ""


class JobHeld(Event):
    """
    Say that a pending job is kept back.
    """

    TYPE_CODE: ClassVar[str] = "job.held"


class JobHoldLifted(Event):
    """
    Say that a held job may be considered again.
    """

    TYPE_CODE: ClassVar[str] = "job.hold_lifted"


class JobKillRequested(Event):
    """
    Say that somebody wants the job ended.

    Args:
        force: Whether without waiting for its worker to confirm it.
    """

    TYPE_CODE: ClassVar[str] = "job.kill_requested"
    force: bool = False


class JobSignalRequested(Event):
    """
    Say that somebody wants a signal sent to the processes of a started job.
    """

    TYPE_CODE: ClassVar[str] = "job.signal_requested"
    signal: SignalName


class JobSignalOrdered(Event):
    """
    Decide that a worker must send a signal to an attempt, once; what the program makes of it is its
    own affair.
    """

    TYPE_CODE: ClassVar[str] = "job.signal_ordered"
    IS_DECISION: ClassVar[bool] = True
    attempt: AttemptNumber
    worker: Name
    order_number: Annotated[int, Field(ge=1)]
    signal: SignalName


class JobRunRequested(Event):
    """
    Say that an operator wants a pending job started on these hosts, the first as its first one; the
    next session does it, and each one after it as long as it can't.

    Args:
        tells_never: Whether the job is told that it can never start when these hosts couldn't hold
            it were they empty. Of wishes before there was that it isn't told, so that old logs are
            decided as they were.
    """

    TYPE_CODE: ClassVar[str] = "job.run_requested"
    hosts: tuple[HostTasks, ...]
    tells_never: bool = False


class JobStarted(Event):
    """
    Say that a worker started an attempt.

    Args:
        attempt: Which execution.
        pid: Its first process, 0 in a simulation.
        process_group: Its process group, 0 in a simulation.
    """

    TYPE_CODE: ClassVar[str] = "job.started"
    attempt: AttemptNumber
    pid: Count = 0
    process_group: Count = 0


class JobCouldNotStart(Event):
    """
    Say that a worker tried to start an attempt and couldn't; the job has ended, unless a command
    that runs before it failed, or the host was at fault: then it goes back to pending, and that
    host is avoided. With 99 such a command says that there is no use in trying again.

    Args:
        why: What was wrong, in words.
        pre_exec_of: Whose command before the job's own failed: queue, profile or job; "" for none.
        pre_exec_exit: What it returned, 128 and the signal's number when one ended it.
        fault: What the host lacked (memory), or that it was at fault otherwise (host); "" when the
            job asked for what can't be.
    """

    TYPE_CODE: ClassVar[str] = "job.could_not_start"
    attempt: AttemptNumber
    why: str
    pre_exec_of: PreExecOf = ""
    pre_exec_exit: Count = 0
    fault: HostFault = ""

    @property
    def is_final(self) -> bool:
        """
        Say whether the job isn't tried again.
        """
        if self.fault:
            return False
        return not self.pre_exec_of or self.pre_exec_exit == PRE_EXEC_GIVES_UP

    @property
    def reason(self) -> str:
        """
        Return why the job ended.
        """
        return Termination.PRE_EXEC_FAIL.value if self.pre_exec_of else self.why


class JobFinished(Event):
    """
    Say that an attempt ended on its worker.

    Args:
        attempt: Which execution.
        exit_code: What the program returned, None when a signal ended it or nobody knows.
        signal: The signal that ended it, None when it returned.
        why: Termination reason where there is one (TERM_OWNER), "" otherwise.
        cpu_us: Processor time of the whole attempt.
        max_rss_kib: Greatest resident memory seen.
    """

    TYPE_CODE: ClassVar[str] = "job.finished"
    attempt: AttemptNumber
    exit_code: int | None = None
    signal: int | None = None
    why: str = ""
    cpu_us: TimeUs = 0
    max_rss_kib: TimeUs = 0


class JobPended(Event):
    """
    Decide that a job waits, for the reasons of a reason set; written when it joins or changes its
    set.
    """

    TYPE_CODE: ClassVar[str] = "job.pended"
    IS_DECISION: ClassVar[bool] = True
    reason_set: Annotated[int, Field(ge=1)]


class JobDispatched(Event):
    """
    Decide that a job starts: which attempt, and what it gets where.

    Args:
        attempt: Which execution this begins.
        index: Its place among the dispatches of its session, from 0; the session is the event's
            cause.
        ahead_of: Id of the job whose backfill reservation it was fitted around, "" when it
            overtakes nobody.
        is_forced: Whether an operator named its hosts: then it may exceed slots and limits, and
            isn't stopped for other jobs.
    """

    TYPE_CODE: ClassVar[str] = "job.dispatched"
    IS_DECISION: ClassVar[bool] = True
    attempt: AttemptNumber
    index: Count = 0
    allocation: Allocation
    ahead_of: str = ""
    is_forced: bool = False


class JobKillOrdered(Event):
    """
    Decide that a worker must end an attempt.

    Args:
        worker: Whose order it is: the job's first host.
        order_number: Rises by one with each order to that worker.
        why: Termination reason, such as TERM_OWNER.
        signals: What is sent, in order, until the attempt has ended.
        preemptor: Job id of the job that needs its hosts, "" when it isn't for one.
        requeue: Whether the job goes back to pending then.
    """

    TYPE_CODE: ClassVar[str] = "job.kill_ordered"
    IS_DECISION: ClassVar[bool] = True
    attempt: AttemptNumber
    worker: Name
    order_number: Annotated[int, Field(ge=1)]
    why: str
    signals: tuple[str, ...] = ("SIGTERM", "SIGKILL")
    preemptor: str = ""
    requeue: bool = False


class JobEnded(Event):
    """
    Decide that a job ends without a worker: killed while it was pending, lost, hung, or ended by
    force.
    """

    TYPE_CODE: ClassVar[str] = "job.ended"
    IS_DECISION: ClassVar[bool] = True
    why: str


class JobModified(Event):
    """
    Say what a pending job asks for from now on, or a started one may still change.

    Args:
        wishes_kept: Which operators' wishes to have pending jobs started on certain hosts outlive
            it: those of all jobs that it changes, or, where its own can't be met any more, of the
            other elements of its array. All others end.
    """

    TYPE_CODE: ClassVar[str] = "job.modified"
    spec: JobSpec
    wishes_kept: Literal["none", "others", "all"] = "none"


class JobSwitched(Event):
    """
    Say that a job moved to another queue; it keeps its age.

    Args:
        is_wish_kept: Whether an operator's wish to have it started on certain hosts outlives it.
    """

    TYPE_CODE: ClassVar[str] = "job.switched"
    queue: Name
    is_wish_kept: bool = False


RANK_MIDDLE: Final = 2**31
"""The first rank: as many jobs can be put before it as behind it."""


class Beside(Value):
    """
    Say where a job stands that was moved next to another of its user: right behind where a job of
    this queue time, number and index is or would be. Of several there the lower ``rank`` is first.
    """

    queue_us: int
    number: int
    index: int
    rank: Annotated[int, Field(ge=1)] = RANK_MIDDLE


class JobMoved(Event):
    """
    Say that a pending job was put before or behind its equals.

    Args:
        place: Its place among jobs of the same queue and priority; new jobs have 0, lower ones come
            first.
        beside: Where it stands among those of one place, None for where its queue time puts it.
    """

    TYPE_CODE: ClassVar[str] = "job.moved"
    place: int
    beside: Beside | None = None


class JobRequeueRequested(Event):
    """
    Say that somebody wants a started job to go back to pending.
    """

    TYPE_CODE: ClassVar[str] = "job.requeue_requested"
    hold: bool = False


class JobRequeued(Event):
    """
    Decide that a job goes back to pending; its next dispatch is the next attempt.

    Args:
        why: exit value, command, lost host, preempted, or the pre-exec that failed (queue pre-exec,
            job pre-exec).
        hold: Whether it is held at once.
        to_top: Whether it goes before its equals; otherwise its age counts from now.
    """

    TYPE_CODE: ClassVar[str] = "job.requeued"
    IS_DECISION: ClassVar[bool] = True
    why: str
    hold: bool = False
    to_top: bool = False


class JobStopRequested(Event):
    """
    Say that somebody wants a started job stopped.
    """

    TYPE_CODE: ClassVar[str] = "job.stop_requested"


class JobResumeRequested(Event):
    """
    Say that somebody wants a stopped job to go on; the next session that may orders it.
    """

    TYPE_CODE: ClassVar[str] = "job.resume_requested"


class JobSuspendOrdered(Event):
    """
    Decide that a worker must stop an attempt.

    Args:
        why: The suspend reason: SUSP_USER_STOP, SUSP_ADMIN_STOP, SUSP_QUEUE_WINDOW, SUSP_PREEMPT or
            SUSP_LOAD with the load index in parentheses.
        signal: The signal to begin with.
        preemptor: Job id of the job it is for, "" when it isn't for one.
    """

    TYPE_CODE: ClassVar[str] = "job.suspend_ordered"
    IS_DECISION: ClassVar[bool] = True
    attempt: AttemptNumber
    worker: Name
    order_number: Annotated[int, Field(ge=1)]
    why: str
    signal: str = "SIGTSTP"
    preemptor: str = ""


class JobSuspended(Event):
    """
    Say that a worker stopped an attempt, as it was ordered.
    """

    TYPE_CODE: ClassVar[str] = "job.suspended"
    attempt: AttemptNumber


class JobResumeOrdered(Event):
    """
    Decide that a worker must let a stopped attempt go on.
    """

    TYPE_CODE: ClassVar[str] = "job.resume_ordered"
    IS_DECISION: ClassVar[bool] = True
    attempt: AttemptNumber
    worker: Name
    order_number: Annotated[int, Field(ge=1)]


class JobResumed(Event):
    """
    Say that a worker let an attempt go on, as it was ordered.
    """

    TYPE_CODE: ClassVar[str] = "job.resumed"
    attempt: AttemptNumber


class JobPreemptionPlanned(Event):
    """
    Decide what is held for a pending job that suspends others, until it starts, ends, is changed or
    loses these hosts.

    Args:
        allocation: Where it fits once its victims have stopped.
        victims: Ids of the jobs that are ordered to stop for it now.
    """

    TYPE_CODE: ClassVar[str] = "job.preemption_planned"
    IS_DECISION: ClassVar[bool] = True
    allocation: Allocation
    victims: tuple[str, ...]


class JobPreemptionEnded(Event):
    """
    Decide that nothing is held any more for a pending job: it can't use it.
    """

    TYPE_CODE: ClassVar[str] = "job.preemption_ended"
    IS_DECISION: ClassVar[bool] = True


class JobStartPromised(Event):
    """
    Decide by when a pending job starts, or that this is no longer promised; written when the
    promise changes. It ends by itself when the job starts, ends, is held or changed.

    Args:
        reservation: What is promised; None when nothing is any more.
    """

    TYPE_CODE: ClassVar[str] = "job.start_promised"
    IS_DECISION: ClassVar[bool] = True
    reservation: BackfillReservation | None

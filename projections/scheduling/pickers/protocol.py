"""
What a job picker supplies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple, Protocol, runtime_checkable

from domain.reservations import BackfillReservation, KeptRun
from projections.scheduling.foreseen import Forecast, SlotsAhead, Wanted
from projections.scheduling.records import JobRecord, QueueRecord


class PickerView(Protocol):
    """
    Be what a picker may ask of the core: whether a job may be tried now, and the queue it is in.
    """

    def is_ready(self, job: JobRecord) -> bool:
        """
        Say whether the job may be tried in this session.
        """
        ...

    def queue_of(self, job: JobRecord) -> QueueRecord:
        """
        Return the job's queue.
        """
        ...

    def fingerprint_of(self, job: JobRecord) -> str:
        """
        Return the job's request in canonical words.
        """
        ...

    def knows_reasons(self, job: JobRecord) -> bool:
        """
        Say whether the job is in the reason set of its request, not in none or another one.
        """
        ...

    def changes(self) -> int:
        """
        Return a count that rises with everything that may change the outcome or the reasons of any
        request.
        """
        ...

    def freed(self) -> int:
        """
        Return a count that rises with everything that may let a waiting request start, or shut a
        host.
        """
        ...

    def let_go(self) -> int:
        """
        Return a count that rises with everything that was held for a job and no longer is: the one
        thing that may become free in the middle of a session.
        """
        ...

    def epoch_of(self, fingerprint: str) -> int:
        """
        Return a count that rises whenever a request proved impossible must be tried again.
        """
        ...

    def now_us(self) -> int:
        """
        Return the session's time.
        """
        ...

    def planned_run_us(self, job: JobRecord) -> int | None:
        """
        Return how long the job is planned to run, by its run limit or its user's guess.
        """
        ...

    def forecast(self, job: JobRecord, beside: tuple[KeptRun, ...] = ()) -> Forecast | None:
        """
        Return when a pending job could start at the latest, beside what must stay free at any time,
        if running jobs run as planned; None when something else than hosts keeps it from starting.
        """
        ...

    def kept_for(self, wanted: Wanted) -> tuple[KeptRun, ...] | None:
        """
        Return what of hosts that are wanted at some moments, all of them from then on, must stay
        free until then, because running jobs won't have given it back; None when they can't all be
        had.
        """
        ...

    def groups_of(self, user: str) -> Collection[str]:
        """
        Return the names of the groups that a user is in.
        """
        ...

    def live_jobs(self) -> Iterable[JobRecord]:
        """
        Return the jobs that have hosts, in the order in which they got them.
        """
        ...

    def promised_jobs(self) -> Iterable[JobRecord]:
        """
        Return the pending jobs with a backfill reservation.
        """
        ...

    def recall(self, name: str) -> str | None:
        """
        Return the document of a name, None when there is none.
        """
        ...

    def remember(self, name: str, version: int, text: str) -> None:
        """
        Keep a document, canonical JSON, in the core's state; only while an event is applied.
        """
        ...

    def hosts_changed(self) -> int:
        """
        Return a count that rises with every change of which hosts there are or take jobs.
        """
        ...

    def least_slots(self, job: JobRecord) -> int:
        """
        Return the fewest slots with which the job can start.
        """
        ...

    def runs_changed(self) -> int:
        """
        Return a count that rises whenever a job begins or stops to run, or its planned end moves.
        """
        ...

    def slots_ahead(self, job: JobRecord) -> SlotsAhead | None:
        """
        Return the free slots by time where they alone decide when a pending job can start; None
        where more does.
        """
        ...


class JobPicker(Protocol):
    """
    Say which job is next. A picker keeps indexes only; they are rebuilt by pushing every waiting
    job again.

    The simplest one keeps the jobs that were pushed until their state changes, sorts those that are
    ready when a session begins, and returns one after the other; all other hooks do nothing. One
    that does less in a session must decide alike. It may also have ``order_keys(job)``, which
    returns (name, value) of what gives a job its place; decision traces then tell it.

    ``version`` rises whenever the rules change, so that a replay can tell "the policy changed".

    A picker sees the jobs of its own queues alone: all, or those of one priority where some queue
    names a picker of its own. Optional: ``blocked_by()``, as ``blocker()``, but also when nobody
    waits behind that job; it matters where other lists do.
    """

    name: str
    version: int

    def init(self, view: PickerView) -> None:
        """
        Begin with no job.
        """
        ...

    def fini(self) -> None:
        """
        End.
        """
        ...

    def on_queue_update(self, queue: QueueRecord) -> None:
        """
        Learn that a queue was defined or changed.
        """
        ...

    def on_job_push(self, job: JobRecord) -> None:
        """
        Learn that a job is pending: submitted, its hold lifted, or requeued.
        """
        ...

    def on_job_state_change(self, job: JobRecord) -> None:
        """
        Learn that a job is no longer pending.
        """
        ...

    def on_job_update(self, job: JobRecord) -> None:
        """
        Learn that a pending job's request or place changed.
        """
        ...

    def begin_session(self) -> None:
        """
        Begin a session.
        """
        ...

    def next_job(self) -> JobRecord | None:
        """
        Return the next job to try, each at most once a session; None ends the session.
        """
        ...

    def on_dispatch(self, job: JobRecord) -> None:
        """
        Learn that the job just returned was placed.
        """
        ...

    def on_pend(self, job: JobRecord) -> None:
        """
        Learn that the job just returned couldn't be placed.
        """
        ...

    def end_session(self) -> None:
        """
        End the session.
        """
        ...

    def blocker(self) -> JobRecord | None:
        """
        Return the job that held back the rest of its list in this session, None when none did.
        """
        ...


class Terms(NamedTuple):
    """
    Say on which terms a picker lets a job start.

    Args:
        ahead_of: Id of the job of its list that this one must not delay, "" for none. A job that
            can't be placed on such terms waits behind that one, and has no reasons of its own.
        kept: What must stay free.
    """

    ahead_of: str = ""
    kept: tuple[KeptRun, ...] = ()


NO_TERMS: Final = Terms()


@runtime_checkable
class Planner(Protocol):
    """
    Be a picker that promises starts, besides all that a picker is.
    """

    def terms_of(self, job: JobRecord) -> Terms:
        """
        Return the terms on which the job just returned may start.
        """
        ...

    def kept_from(self, job: JobRecord) -> tuple[KeptRun, ...]:
        """
        Return what must stay free when a job of another list, behind this one, starts.
        """
        ...

    def promises(self) -> dict[str, BackfillReservation] | None:
        """
        Return what is promised at the end of a session, by stream, in the order of the jobs; None
        when all that is recorded stands as it is.
        """
        ...

    def is_stepwise(self) -> bool:
        """
        Say whether what it has just promised depends on what it had promised before: the session
        then begins again, until it promises nothing else.
        """
        ...


@runtime_checkable
class Remembering(Protocol):
    """
    Be a picker that remembers more than the waiting jobs say, in documents.
    """

    def on_run_end(self, job: JobRecord, now_us: int) -> None:
        """
        Learn that a job is about to leave its hosts, while the event is applied.
        """
        ...

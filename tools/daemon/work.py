"""
What each worker has to do: long polls that wait for it, and what is new since the last answer.

A revision is the log position at which a worker's work last changed, so one from before a restart
never passes for a current one. Owned by the engine thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic_core import to_json

from domain.commands import WorkerReport
from domain.envelope import Stamped
from domain.errors import Conflict, StoreUnavailable
from domain.events.jobs import (
    JobDispatched,
    JobEnded,
    JobKillOrdered,
    JobResumeOrdered,
    JobSignalOrdered,
    JobSuspendOrdered,
)
from replay.engine import Assignment, Engine, Work
from tools.daemon.capability import capability
from tools.daemon.requests import Reply, Request, error_reply

ORDERS = (JobKillOrdered, JobSuspendOrdered, JobResumeOrdered, JobSignalOrdered)
NO_WORK = Work((), ())
RECENT_MAX = 4096
"""So many dispatches of one worker are told as news; whoever lags further gets the whole."""


class Dispatch(NamedTuple):
    """
    Hold where in the log an attempt was given to a worker.
    """

    position: int
    stream: str
    attempt: int


@dataclass(slots=True)
class WorkerBook:
    """
    Hold what the driver remembers of one worker's work.

    Args:
        revision: When its work last changed.
        complete_since: *recent* holds every dispatch after this position.
        has_orders: Whether there may be orders that aren't carried out.
    """

    revision: int
    complete_since: int
    recent: deque[Dispatch] = field(default_factory=deque)
    has_orders: bool = True


class WorkPoll(Request):
    """
    Ask for a worker's work, and wait for it to change.

    Args:
        worker: Whose.
        incarnation: Which life of it.
        revision: What it knows; 0 for nothing.
        until_ns: How long it waits, on the monotonic clock.
    """

    __slots__ = ("incarnation", "revision", "until_ns", "worker")

    def __init__(self, worker: str, incarnation: int, revision: int, until_ns: int) -> None:
        super().__init__()
        self.worker = worker
        self.incarnation = incarnation
        self.revision = revision
        self.until_ns = until_ns

    def take(self, engine: Engine, now_us: int) -> None:
        """
        Let only the worker's newest life through; one that was thought silent is back.
        """
        current = engine.core.state.worker(self.worker).incarnation
        if current != self.incarnation:
            raise Conflict(
                "incarnation of the worker",
                self.incarnation,
                current,
                "Another agent has joined under this name.",
            )
        if engine.core.state.worker(self.worker).is_silent:
            # While it was away its attempts may have been given up: it must hear the whole.
            self.revision = 0
            back = WorkerReport(worker=self.worker, incarnation=self.incarnation)
            engine.accept(back, actor="", now_us=now_us)

    def answer(self, engine: Engine) -> Reply:
        """
        Never be called: polls are answered by the books.
        """
        raise NotImplementedError


class WorkBooks:
    """
    Keep the books of all workers and the polls that wait.

    Args:
        key: The cluster's secret key.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._books: dict[str, WorkerBook] = {}
        self._waiting: dict[str, WorkPoll] = {}

    def next_deadline_ns(self) -> int | None:
        """
        Return when the first waiting poll must be answered, None when none waits.
        """
        return min((poll.until_ns for poll in self._waiting.values()), default=None)

    def note(self, engine: Engine, made: Iterable[Stamped]) -> None:
        """
        Take in the decisions of a commit.
        """
        state = engine.core.state
        for stamped in made:
            event = stamped.event
            if isinstance(event, JobDispatched):
                book = self._book(state.hosts[event.allocation.runs[0].first].name, engine)
                book.recent.append(Dispatch(engine.position, stamped.stream, event.attempt))
                if len(book.recent) > RECENT_MAX:
                    book.complete_since = book.recent.popleft().position
                book.revision = engine.position
            elif isinstance(event, ORDERS):
                book = self._book(event.worker, engine)
                book.revision = engine.position
                book.has_orders = True
            elif isinstance(event, JobEnded):
                self._note_end(stamped.stream, engine)

    def _note_end(self, stream: str, engine: Engine) -> None:
        """
        Have the worker told the whole of its work when a job of its was ended without it: what it
        must no longer run is what isn't there.
        """
        job = engine.core.state.stored.jobs.get(stream)
        if job is None or job.allocation is None:
            return
        book = self._book(engine.core.state.hosts[job.allocation.runs[0].first].name, engine)
        book.recent.clear()
        book.revision = book.complete_since = engine.position

    def _book(self, worker: str, engine: Engine) -> WorkerBook:
        book = self._books.get(worker)
        if book is None:
            book = self._books[worker] = WorkerBook(engine.position, engine.position)
        return book

    def reset(self) -> None:
        """
        Forget the books: the engine was recovered. Whoever asks next gets the whole.
        """
        self._books.clear()

    def arrive(self, poll: WorkPoll) -> list[tuple[Request, Reply]]:
        """
        Let a poll wait; an older one of the same worker has been given up by its agent.
        """
        older = self._waiting.pop(poll.worker, None)
        self._waiting[poll.worker] = poll
        if older is None:
            return []
        return [(older, error_reply(StoreUnavailable("a later poll of this worker waits")))]

    def give_up(self) -> list[WorkPoll]:
        """
        Return the polls that wait, and wait for them no longer.
        """
        waiting = list(self._waiting.values())
        self._waiting.clear()
        return waiting

    def due(self, engine: Engine, now_ns: int, *, everybody: bool) -> list[tuple[Request, Reply]]:
        """
        Return the answers of polls that have something to hear, or have waited long enough.
        """
        found: list[tuple[Request, Reply]] = []
        for worker, poll in list(self._waiting.items()):
            book = self._book(worker, engine)
            if everybody or poll.revision != book.revision or poll.until_ns <= now_ns:
                del self._waiting[worker]
                found.append((poll, self._reply(engine, poll, book)))
        return found

    def _reply(self, engine: Engine, poll: WorkPoll, book: WorkerBook) -> Reply:
        """
        Give all that is new since the poll's revision, or the whole when that isn't known.
        """
        is_full = not book.complete_since <= poll.revision <= book.revision
        work = engine.work_of(poll.worker) if is_full or book.has_orders else NO_WORK
        book.has_orders = bool(work.orders)
        assignments = work.assignments if is_full else self._news(engine, poll.revision, book)
        return Reply(
            200,
            to_json(
                {
                    "revision": book.revision,
                    "position": engine.position,
                    "is_full": is_full,
                    "assignments": [self._told(one, poll.worker) for one in assignments],
                    "orders": work.orders,
                }
            ),
        )

    def _news(self, engine: Engine, revision: int, book: WorkerBook) -> list[Assignment]:
        """
        Return the assignments since a revision; what was told before need not be remembered.

        Equal to those of `Engine.work_of` that were dispatched after the revision.
        """
        while book.recent and book.recent[0].position <= revision:
            book.complete_since = book.recent.popleft().position
        live = engine.core.state.live
        found = []
        for one in book.recent:
            job = live.get(one.stream)
            if job is not None and job.attempt == one.attempt:
                found.append(engine.assignment_of(job))
        return found

    def _told(self, one: Assignment, worker: str) -> dict[str, object]:
        return {
            "job_id": one.job_id,
            "attempt": one.attempt,
            "capability": capability(self._key, one.job_id, one.attempt, worker),
            "program": one.program,
            "hosts": [{"host": host, "tasks": tasks} for host, tasks in one.hosts],
            "queue": one.queue,
            "user": one.user,
            "name": one.name,
            "pre_exec": one.around.pre_exec,
            "post_exec": one.around.post_exec,
            "nice": one.around.nice,
            "file_kib": one.file_kib,
        }

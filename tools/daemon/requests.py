"""
What the engine thread is asked: each request is taken in before the commit and answered after it.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, NamedTuple

from pydantic_core import to_json

from domain.commands import HoldJob, ModifyJob, StopJob, SubmitJob, SwitchJob
from domain.errors import NotFound, OutcomeUnknown, Refused, XceError
from domain.event import Value
from domain.events.jobs import JobModified
from domain.ids import job_of_stream, job_stream, split_job_id
from domain.jobs import HostTasks, JobSpec, hosts_text
from projections.scheduling.handle.requirements import notes_of
from projections.scheduling.records import JobRecord
from projections.scheduling.state import State
from replay.engine import Answer, Engine
from tools.daemon.access import Caller, check_owner
from tools.daemon.attempted import Attempted
from tools.daemon.bodies import ChosenJobs
from tools.daemon.chosen import jobs_chosen

TELL_OF_WISH: Final = (HoldJob, StopJob, ModifyJob, SwitchJob)
"""Commands that say what becomes of an operator's wish to start their job on certain hosts."""


class Reply(NamedTuple):
    """
    Hold what the caller gets: status and body.
    """

    status: int
    body: bytes


def error_reply(error: XceError) -> Reply:
    """
    Return the answer that tells an error: its fields, and its text for people.
    """
    told = {"text": error.text(), **error.fields()}
    answer: dict[str, object] = {"error": told}
    if error.http_status == OutcomeUnknown.http_status:
        answer["outcome"] = "unknown" if isinstance(error, OutcomeUnknown) else "none"
    return Reply(error.http_status, to_json(answer, serialize_unknown=True))


class Request(ABC):
    """
    Be one request on its way through the engine thread.
    """

    __slots__ = ("error", "future")

    changes = False
    """Whether it may change something; what only reads is answered without a commit."""

    def __init__(self) -> None:
        self.future: asyncio.Future[Reply] | None = None
        self.error: XceError | None = None

    def take(self, engine: Engine, now_us: int) -> None:  # noqa: B027 - reads take nothing in
        """
        Accept what is asked; nothing is synced yet, so nothing may be told yet.

        Raises:
            XceError: It is refused; nothing was changed.
        """

    @abstractmethod
    def answer(self, engine: Engine) -> Reply:
        """
        Return the answer, from synced state.
        """


class Command(Request):
    """
    Ask for one change.

    Args:
        command: What is asked.
        caller: Who asks.
    """

    __slots__ = ("_found", "caller", "command")

    changes = True

    def __init__(self, command: Value, caller: Caller) -> None:
        super().__init__()
        self.command = command
        self.caller = caller
        self._found: Answer | None = None

    def take(self, engine: Engine, now_us: int) -> None:
        """
        Accept the command on the state after those before it.
        """
        self._found = engine.accept(self.command, actor=self.caller.user, now_us=now_us)

    def answer(self, engine: Engine) -> Reply:
        """
        Say at which position it is, and whether it changed anything.
        """
        assert self._found is not None
        changed = bool(self._found.events)
        return Reply(200, to_json({"position": engine.position, "changed": changed}))


class JobChange(Command):
    """
    Ask for one change of a job, of each element of an array, or of all jobs that are chosen.

    Args:
        job_id: The job; an array's own id stands for all its elements.
        make: Returns the command for one job, given what it asks for now.
        caller: Who asks; the job must be theirs, or they an operator.
        what: What a refusal calls it.
        chosen: Which jobs job 0 stands for, None where it stands for none.
    """

    __slots__ = ("_chosen", "_job_id", "_make", "_taken", "_wished")

    def __init__(
        self,
        job_id: str,
        make: Callable[[str, JobSpec], Value],
        caller: Caller,
        what: str,
        chosen: ChosenJobs | None = None,
    ) -> None:
        super().__init__(Attempted(what=what, subject=job_id), caller)
        self._job_id = job_id
        self._chosen = chosen
        self._make = make
        self._taken: list[tuple[str, Answer]] = []
        self._wished: list[str] = []

    def take(self, engine: Engine, now_us: int) -> None:
        """
        Accept it for each job concerned; those of several that it doesn't fit are passed over.

        Raises:
            Refused: It fits none of them.
        """
        refused: Refused | None = None
        for job in self._concerned(engine.core.state):
            check_owner(self.caller, job.spec.user)
            wish = job.forced_on
            try:
                command = self._make(job.job_id, job.spec)
                if isinstance(command, ModifyJob) and command.spec.group != job.spec.group:
                    check_group(engine.core.state, job.spec.user, command.spec.group)
                found = engine.accept(command, actor=self.caller.user, now_us=now_us)
            except Refused as error:
                refused = refused or error
            else:
                self._taken.append((job.job_id, found))
                if wish and found.events and isinstance(command, TELL_OF_WISH):
                    self._wished.append(_note_on_wish(job, wish))
        if refused is not None and not self._taken:
            raise self._unfit(refused)

    def _unfit(self, refused: Refused) -> Refused:
        """
        Return what is told when it fits none: of several jobs that were chosen, why the first isn't
        one of them.
        """
        if self._chosen is None:
            return refused
        rule = "must stand for a job that this can be done to"
        return Refused("job_id", rule, self._job_id, f"The first: {refused.text()}")

    def _concerned(self, state: State) -> list[JobRecord]:
        if self._chosen is not None:
            return jobs_chosen(state, self._chosen, self.caller)
        return jobs_named(state, self._job_id)

    def answer(self, engine: Engine) -> Reply:
        """
        Say which jobs it changed and how they are now.
        """
        state = engine.core.state
        if self._chosen is not None:
            return Reply(200, to_json({**self._all_told(state), "position": engine.position}))
        told: dict[str, object] = {
            "job_id": self._job_id,
            "position": engine.position,
            "changed": any(found.events for _, found in self._taken),
            "state": state.job(self._taken[0][0]).state.value,
        }
        modified = [
            job_id
            for job_id, found in self._taken
            if any(isinstance(event, JobModified) for event in found.events)
        ]
        if notes := [*_notes_on(state, modified), *self._wished]:
            told["notes"] = notes
        if len(self._taken) > 1 or self._taken[0][0] != self._job_id:
            told["elements"] = [job_id for job_id, _ in self._taken]
        return Reply(200, to_json(told))

    def _all_told(self, state: State) -> dict[str, object]:
        """
        Return what became of each of the jobs that were chosen.
        """
        jobs = [
            {
                "job_id": job_id,
                "changed": bool(found.events),
                "state": state.job(job_id).state.value,
            }
            for job_id, found in self._taken
        ]
        told: dict[str, object] = {"job_id": self._job_id, "jobs": jobs}
        return told | ({"notes": self._wished} if self._wished else {})


def jobs_named(state: State, job_id: str) -> list[JobRecord]:
    """
    Return the job of an id, or all elements of an array that the state knows.

    Raises:
        NotFound: There is none.
    """
    number, index = split_job_id(job_id)
    array = None if index else state.stored.arrays.get(number)
    if array is None:
        return [state.job(job_id)]
    known = [state.stored.jobs[stream] for stream in array.elements if stream in state.stored.jobs]
    if not known:
        raise NotFound("job_id", "must name a job that is known", job_id)
    return known


def check_group(state: State, user: str, group: str) -> None:
    """
    Refuse a group that a job's user isn't in, by whatever way: it would count for another one's
    share, or for none, and so get round the limits of its own.
    """
    if group and group not in state.groups_of(user):
        raise Refused("group", f"must be a user group that has {user} among its members", group)


def _note_on_wish(job: JobRecord, wish: tuple[HostTasks, ...]) -> str:
    """
    Return what became of an operator's wish to start a pending job on certain hosts.
    """
    where = hosts_text(wish)
    if job.forced_on:
        return f"job {job.job_id} is still to start on {where}, as an operator wants"
    return f"job {job.job_id} is no longer to start on {where}, as an operator wanted"


def _notes_on(state: State, job_ids: list[str]) -> list[str]:
    """
    Return what of jobs' requirements is kept but not carried out yet, each note once; the elements
    of an array ask for the same.
    """
    found: dict[str, None] = {}
    for job_id in job_ids:
        number, index = split_job_id(job_id)
        streams = [job_stream(job_id)] if index else state.streams_of(number)[:1]
        for stream in streams:
            job = state.stored.jobs.get(stream)
            if job is not None and job.spec.requirement is not None:
                found |= dict.fromkeys(notes_of(job.spec.requirement))
    return list(found)


class Submission(Command):
    """
    Ask for a job.
    """

    __slots__ = ()

    def take(self, engine: Engine, now_us: int) -> None:
        """
        Accept the submission, unless it names a group that isn't its user's.
        """
        command = self.command
        assert isinstance(command, SubmitJob)
        if command.spec.group and command.key not in engine.core.state.stored.keys:
            check_group(engine.core.state, command.spec.user, command.spec.group)
        super().take(engine, now_us)

    def answer(self, engine: Engine) -> Reply:
        """
        Give the job's id; the same key gives the same one again, and says so.
        """
        assert self._found is not None
        job_id = job_of_stream(self._found.stream)
        notes = _notes_on(engine.core.state, [job_id])
        if notes:
            told: dict[str, object] = {"job_id": job_id, "position": engine.position}
            replayed = {"replayed": True} if self._found.replayed else {}
            status = 200 if self._found.replayed else 201
            return Reply(status, to_json({**told, **replayed, "notes": notes}))
        if self._found.replayed:
            return Reply(
                200,
                b'{"job_id":"%b","position":%d,"replayed":true}'
                % (job_id.encode(), engine.position),
            )
        return Reply(201, b'{"job_id":"%b","position":%d}' % (job_id.encode(), engine.position))


class Refusal(Command):
    """
    Record a refusal that was told before the engine was asked, and say it.

    Args:
        attempted: The command that the route stands for.
        caller: Who asked.
        refused: Why not.
    """

    __slots__ = ("_refused",)

    def __init__(self, attempted: Value, caller: Caller, refused: Refused) -> None:
        super().__init__(attempted, caller)
        self._refused = refused

    def take(self, engine: Engine, now_us: int) -> None:  # noqa: ARG002 - nothing is accepted
        """
        Refuse.
        """
        raise self._refused


class Read(Request):
    """
    Ask for something that is made from the state.

    Args:
        view: Makes the answer, without its position.
    """

    __slots__ = ("_view",)

    def __init__(self, view: Callable[[Engine], dict[str, object]]) -> None:
        super().__init__()
        self._view = view

    def answer(self, engine: Engine) -> Reply:
        """
        Make the answer and say which position it reflects.
        """
        return Reply(200, to_json({"position": engine.position, **self._view(engine)}))


class AtCommit(Request):
    """
    Ask for something that is done at a commit and changes no state.

    Args:
        act: Does it, and returns the answer.
    """

    __slots__ = ("_act",)

    def __init__(self, act: Callable[[Engine], dict[str, object]]) -> None:
        super().__init__()
        self._act = act

    def answer(self, engine: Engine) -> Reply:
        """
        Do it, and tell what came of it.
        """
        return Reply(200, to_json(self._act(engine)))

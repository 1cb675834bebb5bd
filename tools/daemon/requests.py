"""
What the engine thread is asked: each request is taken in before the commit and answered after it.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from pydantic_core import to_json

from domain.errors import OutcomeUnknown, Refused, XceError
from domain.event import Value
from domain.ids import job_of_stream
from projections.scheduling.handle.requirements import notes_of
from replay.engine import Answer, Engine
from tools.daemon.access import Caller, check_owner


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
        owned_job: The job that must be the caller's, "" when it isn't about one.
        after: Makes the rest of the answer once the change is synced, None when there is no more.
    """

    __slots__ = ("_after", "_found", "caller", "command", "owned_job")

    changes = True

    def __init__(
        self,
        command: Value,
        caller: Caller,
        *,
        owned_job: str = "",
        after: Callable[[Engine], dict[str, object]] | None = None,
    ) -> None:
        super().__init__()
        self.command = command
        self.caller = caller
        self.owned_job = owned_job
        self._after = after
        self._found: Answer | None = None

    def take(self, engine: Engine, now_us: int) -> None:
        """
        Accept the command on the state after those before it.
        """
        if self.owned_job:
            check_owner(self.caller, engine.core.state.job(self.owned_job).spec.user)
        self._found = engine.accept(self.command, actor=self.caller.user, now_us=now_us)

    def answer(self, engine: Engine) -> Reply:
        """
        Say at which position it is, and whether it changed anything.
        """
        assert self._found is not None
        told: dict[str, object] = {"position": engine.position, "changed": bool(self._found.events)}
        if self._after is not None:
            told |= self._after(engine)
        return Reply(200, to_json(told))


class Submission(Command):
    """
    Ask for a job.
    """

    __slots__ = ()

    def answer(self, engine: Engine) -> Reply:
        """
        Give the job's id; the same key gives the same one again, and says so.
        """
        assert self._found is not None
        job_id = job_of_stream(self._found.stream)
        job = engine.core.state.stored.jobs.get(self._found.stream)
        if job is not None and job.spec.resreq and (notes := notes_of(job.spec.requirement)):
            told = {"job_id": job_id, "position": engine.position, "notes": notes}
            return Reply(200 if self._found.replayed else 201, to_json(told))
        if self._found.replayed:
            return Reply(
                200,
                b'{"job_id":"%b","position":%d,"replayed":true}'
                % (job_id.encode(), engine.position),
            )
        return Reply(201, b'{"job_id":"%b","position":%d}' % (job_id.encode(), engine.position))


class Attempted(Value):
    """
    Name a command that was refused before it was one.
    """

    what: str


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

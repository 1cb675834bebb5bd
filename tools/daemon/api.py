"""
The HTTP API: every route, what it takes, and how it becomes a request of the engine thread.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from fastapi import FastAPI
from pydantic import ValidationError
from pydantic_core import to_json
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from domain.commands import (
    CloseWorker,
    HoldJob,
    JoinWorker,
    KillJob,
    LiftHold,
    ModifyJob,
    MoveJob,
    OpenWorker,
    RequeueJob,
    ResumeJob,
    SetQueue,
    StopJob,
    SwitchJob,
)
from domain.errors import Denied, NotFound, Refused, XceError
from domain.event import Value
from domain.ids import check_name, split_job_id
from domain.job_states import ENDED, JobState
from domain.jobs import ExitRules, JobSpec
from projections.scheduling.records import JobRecord
from projections.scheduling.state import State
from replay.engine import Engine
from replay.story import job_story
from store.log import EventLog
from tools.agent.protocol import LeaveRequest, ReportsRequest
from tools.daemon import forgotten, views
from tools.daemon.access import RIGHTS, Caller, caller_of, check_route, check_runs_jobs_of
from tools.daemon.bodies import (
    CloseRequest,
    ModifyRequest,
    RequeueRequest,
    SubmitRequest,
    SwitchRequest,
    refused_of,
    submit_command,
)
from tools.daemon.config import ClusterFiles, DaemonSettings
from tools.daemon.engine_thread import EngineThread
from tools.daemon.reports import Join, Leave, Reports
from tools.daemon.requests import (
    Attempted,
    Command,
    JobChange,
    Read,
    Refusal,
    Reply,
    Submission,
    error_reply,
)
from tools.daemon.work import WorkPoll

POLL_WAIT_MAX_S = 30.0
JOBS_MAX = 100_000

Body = TypeVar("Body", bound=Value)
Handler = Callable[["Api", HttpRequest, Caller], Awaitable[Reply]]


class Api:
    """
    Turn HTTP requests into requests of the engine thread.

    Args:
        engine: The engine thread.
        settings: How the process runs.
        files: The cluster's files.
        key: The cluster's secret key.
        shut_down: Ends the process in good order.
    """

    def __init__(
        self,
        engine: EngineThread,
        log: EventLog,
        settings: DaemonSettings,
        files: ClusterFiles,
        key: bytes,
        shut_down: Callable[[], None],
    ) -> None:
        self.engine = engine
        self.log = log
        self.files = files
        self.key = key
        self.shut_down = shut_down
        self.started_us = time.time_ns() // 1000
        # A worker that only waits must speak often enough not to pass for silent.
        self.poll_wait_max_s = settings.silent_after_s / 3
        self._settings = settings

    async def body(self, http: HttpRequest) -> bytes:
        """
        Return the request's body, no larger than allowed.

        Raises:
            Refused: It is larger.
        """
        parts: list[bytes] = []
        size = 0
        async for part in http.stream():
            parts.append(part)
            size += len(part)
            if size > self._settings.body_bytes_max:
                rule = f"must have at most {self._settings.body_bytes_max} bytes"
                raise Refused("body", rule)
        return b"".join(parts)

    async def parsed(self, http: HttpRequest, model: type[Body]) -> Body:
        """
        Return the request's body as a model; an empty one stands for an object without fields.

        Raises:
            Refused: A field breaks a rule.
        """
        try:
            return model.model_validate_json(await self.body(http) or b"{}")
        except ValidationError as error:
            raise refused_of(error) from None


# ------------------------------------------------------------------------------------------ jobs


async def submit(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Submit a job; it is answered once the job is safe on disk.
    """
    check_runs_jobs_of(caller)
    command = submit_command(
        await api.body(http), user=caller.user, default_queue=api.engine.default_queue
    )
    return await api.engine.ask(Submission(command, caller))


async def list_jobs(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    List jobs that haven't ended, or with all=1 also those that have, forgotten ones among them.
    """
    wanted = _filter(http)
    missing: list[int] = []

    def view(engine: Engine) -> dict[str, object]:
        found = views.jobs(engine.core.state, wanted)
        if wanted.everything and len(found) < wanted.limit:
            missing.extend(forgotten.numbers(engine.core.state))
        return {"jobs": found}

    reply = await api.engine.ask(Read(view))
    if not missing:
        return reply
    # Rare and long: read outside the engine thread, then shown with what is known.
    archive = await _archive(api)
    records = await asyncio.to_thread(archive.jobs, missing, wanted.fits, wanted.limit)

    def whole(engine: Engine) -> dict[str, object]:
        state = engine.core.state
        known = views.jobs(state, wanted)
        old = [
            views.job_row(state, job)
            for job in reversed(records)
            if job.stream not in state.stored.jobs
        ]
        rows = sorted([*old, *known], key=lambda row: split_job_id(str(row["job_id"])))
        return {"jobs": rows[-wanted.limit :]}

    return await api.engine.ask(Read(whole))


def _filter(http: HttpRequest) -> views.Filter:
    query = http.query_params
    state = query.get("state", "").upper()
    if state and state not in JobState.__members__:
        raise Refused("state", f"must be one of {', '.join(JobState.__members__)}", state)
    limit = _number(query.get("limit"), "limit", 1, JOBS_MAX, JOBS_MAX)
    everything = _number(query.get("all"), "all", 0, 1, 0) == 1 or state in ENDED
    return views.Filter(everything, state, query.get("queue", ""), query.get("user", ""), limit)


async def _archive(api: Api) -> forgotten.Archive:
    """
    Return what reads ended jobs from the log, by the rules for exit values that hold now.
    """
    rules: list[Callable[[JobRecord], ExitRules]] = []

    def view(engine: Engine) -> dict[str, object]:
        rules.append(engine.core.state.exit_rules)
        return {}

    await api.engine.ask(Read(view))
    return forgotten.Archive(api.log, rules[0])


async def _shown(
    api: Api, job_id: str, show: Callable[[State, JobRecord], dict[str, object]]
) -> Reply:
    """
    Show a job, from the log when the state has forgotten it.
    """

    def view(engine: Engine) -> dict[str, object]:
        return show(engine.core.state, engine.core.state.job(job_id))

    reply = await api.engine.ask(Read(view))
    if reply.status != NotFound.http_status:
        return reply
    old = await asyncio.to_thread((await _archive(api)).job, job_id)
    return await api.engine.ask(Read(lambda engine: show(engine.core.state, old)))


async def one_job(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Show one job.
    """
    cluster = api.files.directory
    return await _shown(
        api, _job_id(http), lambda state, job: views.job_detail(state, job, caller, cluster)
    )


async def why(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    Say why a job waits, or what became of it.
    """
    return await _shown(api, _job_id(http), views.why)


async def history(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    Tell a job's story from the log, also of a job that the state has forgotten.
    """
    job_id = _job_id(http)
    names: list[str] = []

    def view(engine: Engine) -> dict[str, object]:
        names.extend(host.name for host in engine.core.state.hosts)
        return {}

    await api.engine.ask(Read(view))
    position = api.log.head()
    story = await asyncio.to_thread(job_story, api.log, job_id, names.__getitem__)
    now_us = api.engine.clock.now_us()
    return Reply(200, to_json(story.plain(now_us=now_us, position=position)))


def _change_job(kind: type[KillJob | HoldJob | LiftHold | StopJob | ResumeJob]) -> Handler:
    """
    Return a handler of a command that names nothing but its job.
    """

    async def handler(api: Api, http: HttpRequest, caller: Caller) -> Reply:
        return await _changed(
            api, http, caller, kind.__name__, lambda job_id, _: kind(job_id=job_id)
        )

    handler.__doc__ = kind.__doc__
    return handler


async def _changed(
    api: Api, http: HttpRequest, caller: Caller, what: str, make: Callable[[str, JobSpec], Value]
) -> Reply:
    return await api.engine.ask(JobChange(_job_id(http), make, caller, what))


async def requeue(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Put a started job back to pending.
    """
    hold = (await api.parsed(http, RequeueRequest)).hold
    return await _changed(
        api, http, caller, "RequeueJob", lambda job_id, _: RequeueJob(job_id=job_id, hold=hold)
    )


async def switch(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Move a job to another queue.
    """
    queue = (await api.parsed(http, SwitchRequest)).queue
    return await _changed(
        api, http, caller, "SwitchJob", lambda job_id, _: SwitchJob(job_id=job_id, queue=queue)
    )


async def modify(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Change what a job asks for; what isn't given stays as it is.
    """
    asked = await api.parsed(http, ModifyRequest)
    return await _changed(
        api,
        http,
        caller,
        "ModifyJob",
        lambda job_id, spec: ModifyJob(job_id=job_id, spec=asked.changed(spec)),
    )


def _move_job(to: Literal["top", "bottom"]) -> Handler:
    async def handler(api: Api, http: HttpRequest, caller: Caller) -> Reply:
        return await _changed(
            api, http, caller, "MoveJob", lambda job_id, _: MoveJob(job_id=job_id, to=to)
        )

    handler.__doc__ = f"Put a pending job to the {to} of its equals."
    return handler


# -------------------------------------------------------------------------------- hosts and queues


async def list_hosts(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    List the hosts.
    """
    return await api.engine.ask(Read(lambda engine: {"hosts": views.hosts(engine.core.state)}))


async def close_host(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Close a host to new jobs.
    """
    asked = await api.parsed(http, CloseRequest)
    return await api.engine.ask(Command(CloseWorker(worker=_name(http), why=asked.why), caller))


async def open_host(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Open a host to new jobs again.
    """
    return await api.engine.ask(Command(OpenWorker(worker=_name(http)), caller))


async def list_queues(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    List the queues.
    """
    return await api.engine.ask(Read(lambda engine: {"queues": views.queues(engine.core.state)}))


def _set_queue(to: str) -> Handler:
    async def handler(api: Api, http: HttpRequest, caller: Caller) -> Reply:
        command = SetQueue.model_validate({"queue": _name(http), "to": to})
        return await api.engine.ask(Command(command, caller))

    handler.__doc__ = f"Make a queue {to}."
    return handler


# -------------------------------------------------------------------------------------- the cluster


async def status(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    Tell how the cluster is.
    """
    fixed = {"pid": os.getpid(), "started_us": api.started_us, "log_id": api.log.log_id}
    return await api.engine.ask(Read(lambda engine: {**fixed, **views.status(engine.core.state)}))


async def shutdown(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    End the scheduler in good order; workers and their jobs go on.
    """
    reply = await api.engine.ask(Read(lambda _: {"stopping": True}))
    api.shut_down()
    return reply


# ------------------------------------------------------------------------------------------ workers


async def join(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Let a worker join, or join again.
    """
    return await api.engine.ask(Join(await api.parsed(http, JoinWorker), caller))


async def reports(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Take reports of a worker; answered once they are safe on disk.
    """
    asked = await api.parsed(http, ReportsRequest)
    return await api.engine.ask(Reports(_name(http), asked, caller, api.key))


async def work(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    Give a worker its work, as soon as it differs from the revision that it knows.
    """
    query = http.query_params
    wait_s = _number(query.get("wait_s"), "wait_s", 0, int(POLL_WAIT_MAX_S), 0)
    wait_ns = round(min(wait_s, api.poll_wait_max_s) * 1e9)
    return await api.engine.ask(
        WorkPoll(
            _name(http),
            _number(query.get("incarnation"), "incarnation", 1, 2**31 - 1, 0),
            _number(query.get("revision"), "revision", 0, 2**62, 0),
            time.monotonic_ns() + wait_ns,
        )
    )


async def leave(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    Let a worker leave in good order.
    """
    asked = await api.parsed(http, LeaveRequest)
    return await api.engine.ask(Leave(_name(http), asked.incarnation))


# ------------------------------------------------------------------------------------------ the app


@dataclass(frozen=True, slots=True)
class Route:
    """
    Hold what stands behind one route of the table of rights.

    Args:
        handler: What it does.
        body: What its body must be, None when it has none.
    """

    handler: Handler
    body: type[Value] | None = None


ROUTES: dict[tuple[str, str], Route] = {
    ("GET", "/v1/status"): Route(status),
    ("POST", "/v1/jobs"): Route(submit, SubmitRequest),
    ("GET", "/v1/jobs"): Route(list_jobs),
    ("GET", "/v1/jobs/{job_id}"): Route(one_job),
    ("GET", "/v1/jobs/{job_id}/why"): Route(why),
    ("GET", "/v1/jobs/{job_id}/history"): Route(history),
    ("POST", "/v1/jobs/{job_id}/kill"): Route(_change_job(KillJob)),
    ("POST", "/v1/jobs/{job_id}/hold"): Route(_change_job(HoldJob)),
    ("POST", "/v1/jobs/{job_id}/lift"): Route(_change_job(LiftHold)),
    ("POST", "/v1/jobs/{job_id}/stop"): Route(_change_job(StopJob)),
    ("POST", "/v1/jobs/{job_id}/resume"): Route(_change_job(ResumeJob)),
    ("POST", "/v1/jobs/{job_id}/requeue"): Route(requeue, RequeueRequest),
    ("POST", "/v1/jobs/{job_id}/switch"): Route(switch, SwitchRequest),
    ("POST", "/v1/jobs/{job_id}/modify"): Route(modify, ModifyRequest),
    ("POST", "/v1/jobs/{job_id}/top"): Route(_move_job("top")),
    ("POST", "/v1/jobs/{job_id}/bottom"): Route(_move_job("bottom")),
    ("GET", "/v1/hosts"): Route(list_hosts),
    ("POST", "/v1/hosts/{name}/close"): Route(close_host, CloseRequest),
    ("POST", "/v1/hosts/{name}/open"): Route(open_host),
    ("GET", "/v1/queues"): Route(list_queues),
    ("POST", "/v1/queues/{name}/open"): Route(_set_queue("open")),
    ("POST", "/v1/queues/{name}/close"): Route(_set_queue("closed")),
    ("POST", "/v1/queues/{name}/activate"): Route(_set_queue("active")),
    ("POST", "/v1/queues/{name}/inactivate"): Route(_set_queue("inactive")),
    ("POST", "/v1/shutdown"): Route(shutdown),
    ("POST", "/v1/workers/join"): Route(join, JoinWorker),
    ("POST", "/v1/workers/{name}/reports"): Route(reports, ReportsRequest),
    ("GET", "/v1/workers/{name}/work"): Route(work),
    ("POST", "/v1/workers/{name}/leave"): Route(leave, LeaveRequest),
}


def build_app(api: Api) -> FastAPI:
    """
    Return the application: exactly the routes of the table of rights.
    """
    assert set(ROUTES) == set(RIGHTS), "every route has its right, and the other way round"
    app = FastAPI(
        title="XCE", version="1", openapi_url="/v1/openapi.json", docs_url=None, redoc_url=None
    )
    for (method, path), route in ROUTES.items():
        app.add_api_route(
            path,
            _endpoint(api, method, path, route.handler),
            methods=[method],
            summary=(route.handler.__doc__ or "").strip().partition("\n")[0],
            operation_id=f"{method.lower()} {path}",
            openapi_extra=_documented(route),
        )
    return app


def _documented(route: Route) -> dict[str, object] | None:
    if route.body is None:
        return None
    schema = route.body.model_json_schema(ref_template="#/components/schemas/{model}")
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _endpoint(
    api: Api, method: str, path: str, handler: Handler
) -> Callable[[HttpRequest], Awaitable[Response]]:
    async def endpoint(request: HttpRequest) -> Response:
        reply = await answered(api, method, path, handler, request)
        return Response(reply.body, reply.status, media_type="application/json")

    return endpoint


async def answered(
    api: Api, method: str, path: str, handler: Handler, request: HttpRequest
) -> Reply:
    """
    Return the answer of a route to a request: who asks and what they may comes first.
    """
    try:
        caller = caller_of(peer_uid(request))
        check_route(method, path, caller)
        return await handler(api, request, caller)
    except Refused as error:
        if method == "GET" and not isinstance(error, Denied):
            return error_reply(error)
        attempted = Attempted(what=f"{method} {path}")
        return await api.engine.ask(Refusal(attempted, maybe_caller(request), error))
    except XceError as error:
        return error_reply(error)


def peer_uid(request: HttpRequest) -> int:
    """
    Return the user id that the kernel told for the other end.

    Raises:
        Denied: It isn't known, so nobody may do anything.
    """
    uid = request.scope.get("state", {}).get("peer_uid")
    if uid is None:
        raise Denied("caller", "must be known by the socket")
    return int(uid)


def maybe_caller(request: HttpRequest) -> Caller:
    """
    Return who asked, as far as that is known, for the record of a refusal.
    """
    try:
        return caller_of(peer_uid(request))
    except Denied as unknown:
        return Caller(-1, f"uid {unknown.value}")


def _job_id(http: HttpRequest) -> str:
    job_id: str = http.path_params["job_id"]
    split_job_id(job_id)
    return job_id


def _name(http: HttpRequest) -> str:
    return check_name("name", http.path_params["name"])


def _number(text: str | None, field: str, least: int, most: int, default: int) -> int:
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or not least <= int(text[:20]) <= most:
        raise Refused(field, f"must be a whole number from {least} to {most}", text[:40])
    return int(text)

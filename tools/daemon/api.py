"""
The HTTP API: every route, what stands behind it, and who is let through.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fastapi import FastAPI
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from domain.commands import (
    HoldJob,
    JoinWorker,
    LiftHold,
    ResumeJob,
    StopJob,
)
from domain.errors import Denied, NotFound, Refused, XceError
from domain.event import Value
from tools.agent.protocol import LeaveRequest, ReportsRequest
from tools.daemon import cluster_routes, job_routes, policy_routes
from tools.daemon.access import RIGHTS, Caller, caller_of, check_route
from tools.daemon.attempted import attempted
from tools.daemon.bodies import (
    ChosenJobs,
    CloseRequest,
    KillRequest,
    ModifyRequest,
    RecordRequest,
    RequeueRequest,
    RunRequest,
    SignalRequest,
    SubmitRequest,
    SwitchRequest,
)
from tools.daemon.handlers import Api, Handler
from tools.daemon.requests import (
    Refusal,
    Reply,
    error_reply,
)


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


DESCRIBED = "/v1/openapi.json has them all."

ROUTES: dict[tuple[str, str], Route] = {
    ("GET", "/v1/status"): Route(cluster_routes.status),
    ("POST", "/v1/jobs"): Route(job_routes.submit, SubmitRequest),
    ("GET", "/v1/jobs"): Route(job_routes.list_jobs),
    ("GET", "/v1/jobs/{job_id}"): Route(job_routes.one_job),
    ("GET", "/v1/jobs/{job_id}/why"): Route(job_routes.why),
    ("GET", "/v1/jobs/{job_id}/trace"): Route(job_routes.trace),
    ("GET", "/v1/jobs/{job_id}/history"): Route(job_routes.history),
    ("POST", "/v1/jobs/{job_id}/kill"): Route(job_routes.kill, KillRequest),
    ("POST", "/v1/jobs/{job_id}/signal"): Route(job_routes.signal, SignalRequest),
    ("POST", "/v1/jobs/{job_id}/run"): Route(job_routes.run, RunRequest),
    ("POST", "/v1/jobs/{job_id}/hold"): Route(job_routes.change_job(HoldJob)),
    ("POST", "/v1/jobs/{job_id}/lift"): Route(job_routes.change_job(LiftHold)),
    ("POST", "/v1/jobs/{job_id}/stop"): Route(job_routes.change_jobs(StopJob), ChosenJobs),
    ("POST", "/v1/jobs/{job_id}/resume"): Route(job_routes.change_jobs(ResumeJob), ChosenJobs),
    ("POST", "/v1/jobs/{job_id}/requeue"): Route(job_routes.requeue, RequeueRequest),
    ("POST", "/v1/jobs/{job_id}/switch"): Route(job_routes.switch, SwitchRequest),
    ("POST", "/v1/jobs/{job_id}/modify"): Route(job_routes.modify, ModifyRequest),
    ("POST", "/v1/jobs/{job_id}/top"): Route(job_routes.move_job("top")),
    ("POST", "/v1/jobs/{job_id}/bottom"): Route(job_routes.move_job("bottom")),
    ("GET", "/v1/hosts"): Route(cluster_routes.list_hosts),
    ("POST", "/v1/hosts/{name}/close"): Route(cluster_routes.close_host, CloseRequest),
    ("POST", "/v1/hosts/{name}/drain"): Route(cluster_routes.drain_host, CloseRequest),
    ("POST", "/v1/hosts/{name}/open"): Route(cluster_routes.open_host),
    ("GET", "/v1/queues"): Route(cluster_routes.list_queues),
    ("POST", "/v1/queues/{name}/open"): Route(cluster_routes.set_queue("open")),
    ("POST", "/v1/queues/{name}/close"): Route(cluster_routes.set_queue("closed")),
    ("POST", "/v1/queues/{name}/activate"): Route(cluster_routes.set_queue("active")),
    ("POST", "/v1/queues/{name}/inactivate"): Route(cluster_routes.set_queue("inactive")),
    ("GET", "/v1/definitions"): Route(policy_routes.list_definitions),
    ("GET", "/v1/limits"): Route(policy_routes.list_limits),
    **{
        ("POST", f"/v1/define/{kind}"): Route(policy_routes.change(command, kind), command)
        for kind, command in policy_routes.DEFINE.items()
    },
    **{
        ("POST", f"/v1/remove/{kind}"): Route(policy_routes.change(command, kind), command)
        for kind, command in policy_routes.REMOVE.items()
    },
    ("POST", "/v1/snapshot"): Route(cluster_routes.take_snapshot),
    ("GET", "/v1/recording"): Route(cluster_routes.recording),
    ("POST", "/v1/recording/start"): Route(cluster_routes.start_recording, RecordRequest),
    ("POST", "/v1/recording/stop"): Route(cluster_routes.stop_recording),
    ("POST", "/v1/shutdown"): Route(cluster_routes.shutdown),
    ("POST", "/v1/workers/join"): Route(cluster_routes.join, JoinWorker),
    ("POST", "/v1/workers/{name}/reports"): Route(cluster_routes.reports, ReportsRequest),
    ("GET", "/v1/workers/{name}/work"): Route(cluster_routes.work),
    ("POST", "/v1/workers/{name}/leave"): Route(cluster_routes.leave, LeaveRequest),
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
    app.add_exception_handler(404, _no_such_path)
    app.add_exception_handler(405, _no_such_method)
    return app


async def _no_such_path(request: HttpRequest, _error: Exception) -> Response:
    unknown = NotFound("path", "must be a path of the API", request.url.path[:200], DESCRIBED)
    return _response(error_reply(unknown))


async def _no_such_method(request: HttpRequest, _error: Exception) -> Response:
    rule = "must be one that the path has"
    reply = error_reply(Refused("method", rule, request.method, DESCRIBED))
    return _response(Reply(405, reply.body))


def _response(reply: Reply) -> Response:
    return Response(reply.body, reply.status, media_type="application/json")


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
        return _response(reply)

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
        wanted = attempted(method, path, request.path_params)
        return await api.engine.ask(Refusal(wanted, maybe_caller(request), error))
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

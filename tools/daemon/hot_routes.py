"""
A short way for the few routes that take nearly all requests: submissions, reports, polls.

Equivalent to: the same routes of the FastAPI application, which documents them.
Differs in: no middleware, no dependency resolution, no response object. (It is what lets a
submission cost a tenth of a millisecond in the server; figure `submits` of tools.bench.)
"""

from __future__ import annotations

from starlette.requests import Request as HttpRequest
from starlette.types import ASGIApp, Receive, Scope, Send

from tools.daemon.api import ROUTES, answered
from tools.daemon.handlers import Api, Handler

SUBMIT = ("POST", "/v1/jobs")
OF_WORKERS = {
    ("POST", "reports"): ("POST", "/v1/workers/{name}/reports"),
    ("GET", "work"): ("GET", "/v1/workers/{name}/work"),
}


class HotRoutes:
    """
    Answer hot routes at once and hand everything else on.

    Args:
        app: The whole application.
        api: What answers.
    """

    def __init__(self, app: ASGIApp, api: Api) -> None:
        self._app = app
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """
        Be an ASGI application.
        """
        found = _find(scope) if scope["type"] == "http" else None
        if found is None:
            await self._app(scope, receive, send)
            return
        (method, path), name = found
        handler: Handler = ROUTES[method, path].handler
        scope["path_params"] = {"name": name}
        reply = await answered(self._api, method, path, handler, HttpRequest(scope, receive))
        length = str(len(reply.body)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", length)]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})


def _find(scope: Scope) -> tuple[tuple[str, str], str] | None:
    """
    Return the hot route of a request and the worker that it names, None when it is another one.
    """
    method, path = scope["method"], scope["path"]
    if (method, path) == SUBMIT:
        return SUBMIT, ""
    if not path.startswith("/v1/workers/"):
        return None
    name, _, what = path[len("/v1/workers/") :].partition("/")
    route = OF_WORKERS.get((method, what))
    return None if route is None else (route, name)

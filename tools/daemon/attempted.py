"""
What a request wanted that was refused before it became a command, for the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic_core import from_json

from domain.event import Value

NAMES: Final = {
    "POST /v1/jobs": "SubmitJob",
    "POST /v1/jobs/{job_id}/lift": "LiftHold",
    "POST /v1/jobs/{job_id}/top": "MoveJob",
    "POST /v1/jobs/{job_id}/bottom": "MoveJob",
    "POST /v1/snapshot": "TakeSnapshot",
    "POST /v1/shutdown": "StopScheduler",
    "POST /v1/recording/start": "StartRecording",
    "POST /v1/recording/stop": "StopRecording",
    "POST /v1/workers/join": "JoinWorker",
    "POST /v1/define/host": "ConfigureWorker",
}
"""Routes whose command's name doesn't follow from the path."""

KINDS: Final = {"jobs": "Job", "hosts": "Worker", "queues": "Queue", "workers": "Worker"}


class Attempted(Value):
    """
    Name a command that was refused before it was one.

    Args:
        what: The command's name.
        subject: The job, queue, host or other thing that it was about, "" when that isn't known.
    """

    what: str
    subject: str = ""


def attempted(method: str, path: str, parts: Mapping[str, str]) -> Attempted:
    """
    Return what a request to a route wanted.

    Args:
        method: The HTTP method.
        path: The route's path, with the names of its parts.
        parts: What stood in these places.
    """
    subject = next(iter(parts.values()), "")[:256]
    return Attempted(what=command_name(method, path), subject=subject)


def command_name(method: str, path: str) -> str:
    """
    Return the name of the command that a route stands for: "CloseQueue" for closing a queue.
    """
    known = NAMES.get(f"{method} {path}")
    if known is not None:
        return known
    first, *rest = path.removeprefix("/v1/").split("/")
    if first in ("define", "remove"):
        return first.capitalize() + rest[0].capitalize()
    if method == "GET":
        return "Read" + first.capitalize()
    return rest[-1].capitalize() + KINDS[first]


def subject_in(body: bytes, kind: str) -> str:
    """
    Return the name under which the body of a definition has its thing, as far as it can be read.
    """
    try:
        read = from_json(body)
    except ValueError:
        return ""
    if not isinstance(read, dict):
        return ""
    inner = read.get("descriptor") if kind == "resource" else None
    own = "worker" if kind == "host" else kind
    name = inner.get("name") if isinstance(inner, dict) else read.get(own)
    return name[:256] if isinstance(name, str) else ""

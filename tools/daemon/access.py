"""
Who asks, and what they may: the one table of routes and rights.

A caller is known by the user id that the kernel gives for the other end of the socket, and by
nothing in the request. What isn't in the table is denied.
"""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from domain.errors import Denied, Refused

ROOT = 0


class Right(StrEnum):
    """
    Name what a caller must be.
    """

    USER = "user"
    """Anybody whom the machine knows by name."""
    JOB_OWNER = "job owner"
    """The job's own user, or an operator."""
    OPERATOR = "operator"
    """The user that runs the scheduler, or root."""
    WORKER = "worker"
    """An agent of the user that runs the scheduler, or root's."""


@dataclass(frozen=True, slots=True)
class Caller:
    """
    Be whoever asks.
    """

    uid: int
    user: str

    @property
    def is_operator(self) -> bool:
        """
        Tell whether the cluster is theirs.
        """
        return self.uid in (ROOT, os.geteuid())


RIGHTS: dict[tuple[str, str], Right] = {
    ("GET", "/v1/status"): Right.USER,
    ("POST", "/v1/jobs"): Right.USER,
    ("GET", "/v1/jobs"): Right.USER,
    ("GET", "/v1/jobs/{job_id}"): Right.USER,
    ("GET", "/v1/jobs/{job_id}/why"): Right.USER,
    ("GET", "/v1/jobs/{job_id}/trace"): Right.USER,
    ("GET", "/v1/jobs/{job_id}/history"): Right.USER,
    ("POST", "/v1/jobs/{job_id}/kill"): Right.JOB_OWNER,
    ("POST", "/v1/jobs/{job_id}/signal"): Right.JOB_OWNER,
    ("POST", "/v1/jobs/{job_id}/run"): Right.OPERATOR,
    ("POST", "/v1/jobs/{job_id}/hold"): Right.JOB_OWNER,
    ("POST", "/v1/jobs/{job_id}/lift"): Right.JOB_OWNER,
    ("POST", "/v1/jobs/{job_id}/stop"): Right.JOB_OWNER,
    ("POST", "/v1/jobs/{job_id}/resume"): Right.JOB_OWNER,
    ("POST", "/v1/jobs/{job_id}/requeue"): Right.JOB_OWNER,
    ("POST", "/v1/jobs/{job_id}/switch"): Right.JOB_OWNER,
    ("POST", "/v1/jobs/{job_id}/modify"): Right.JOB_OWNER,
    ("POST", "/v1/jobs/{job_id}/top"): Right.JOB_OWNER,
    ("POST", "/v1/jobs/{job_id}/bottom"): Right.JOB_OWNER,
    ("GET", "/v1/hosts"): Right.USER,
    ("POST", "/v1/hosts/{name}/close"): Right.OPERATOR,
    ("POST", "/v1/hosts/{name}/drain"): Right.OPERATOR,
    ("POST", "/v1/hosts/{name}/open"): Right.OPERATOR,
    ("GET", "/v1/queues"): Right.USER,
    ("POST", "/v1/queues/{name}/open"): Right.OPERATOR,
    ("POST", "/v1/queues/{name}/close"): Right.OPERATOR,
    ("POST", "/v1/queues/{name}/activate"): Right.OPERATOR,
    ("POST", "/v1/queues/{name}/inactivate"): Right.OPERATOR,
    ("GET", "/v1/definitions"): Right.USER,
    ("GET", "/v1/limits"): Right.USER,
    ("POST", "/v1/define/cluster"): Right.OPERATOR,
    ("POST", "/v1/define/queue"): Right.OPERATOR,
    ("POST", "/v1/define/resource"): Right.OPERATOR,
    ("POST", "/v1/define/user"): Right.OPERATOR,
    ("POST", "/v1/define/group"): Right.OPERATOR,
    ("POST", "/v1/define/project"): Right.OPERATOR,
    ("POST", "/v1/define/limit"): Right.OPERATOR,
    ("POST", "/v1/define/profile"): Right.OPERATOR,
    ("POST", "/v1/define/host"): Right.OPERATOR,
    ("POST", "/v1/remove/queue"): Right.OPERATOR,
    ("POST", "/v1/remove/user"): Right.OPERATOR,
    ("POST", "/v1/remove/group"): Right.OPERATOR,
    ("POST", "/v1/remove/project"): Right.OPERATOR,
    ("POST", "/v1/remove/limit"): Right.OPERATOR,
    ("POST", "/v1/remove/profile"): Right.OPERATOR,
    ("POST", "/v1/shutdown"): Right.OPERATOR,
    ("POST", "/v1/snapshot"): Right.OPERATOR,
    ("GET", "/v1/recording"): Right.OPERATOR,
    ("POST", "/v1/recording/start"): Right.OPERATOR,
    ("POST", "/v1/recording/stop"): Right.OPERATOR,
    ("POST", "/v1/workers/join"): Right.WORKER,
    ("POST", "/v1/workers/{name}/reports"): Right.WORKER,
    ("GET", "/v1/workers/{name}/work"): Right.WORKER,
    ("POST", "/v1/workers/{name}/leave"): Right.WORKER,
}
"""Method and path of every route -> who may use it; a job's owner is checked where the job is."""


@lru_cache(maxsize=4096)
def caller_of(uid: int) -> Caller:
    """
    Return who a user id is.

    Raises:
        Denied: The machine knows no such user.
    """
    try:
        return Caller(uid, pwd.getpwuid(uid).pw_name)
    except KeyError:
        raise Denied("caller", "must be a user that this machine knows by name", uid) from None


def check_route(method: str, path: str, caller: Caller) -> None:
    """
    Let a caller through who may use a route.

    Raises:
        Denied: They may not.
    """
    right = RIGHTS[method, path]
    if right in (Right.OPERATOR, Right.WORKER) and not caller.is_operator:
        raise Denied("caller", f"must be {_ARTICLES[right]}", caller.user)


def check_runs_jobs_of(caller: Caller) -> None:
    """
    Let a submission through that a worker can run: workers run jobs of their own user only.

    Raises:
        Refused: They can't run this caller's.
    """
    if caller.uid != os.geteuid():
        own = caller_of(os.geteuid()).user
        rule = f"must be {own}: this cluster's workers run jobs of that user only"
        raise Refused("user", rule, caller.user)


def check_owner(caller: Caller, owner: str) -> None:
    """
    Let a caller through to a job of theirs.

    Raises:
        Denied: It is another user's.
    """
    if caller.user != owner and not caller.is_operator:
        raise Denied("caller", "must be the job's owner or an operator", caller.user)


_ARTICLES = {Right.OPERATOR: "an operator", Right.WORKER: "an agent of the cluster's owner"}

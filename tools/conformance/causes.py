"""
Build a job that waits for several causes at once, so that it shows which of them is told first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tools.conformance.values import Fields, Malformed, items_of, mapping_of, text_of

Parts = dict[str, dict[str, object]]
"""Fields of the job, its queue, its user, a limit, and jobs that ended before."""


PARTS: Final = ("job", "queue", "user", "limit", "ended", "group", "array", "shared", "running")


def with_causes(case: Fields) -> Fields:
    """
    Return a case with causes as one with a queue and a job that has them all.
    """
    if "causes" not in case:
        return case
    parts: Parts = {name: {} for name in PARTS}
    for cause in items_of(case["causes"]):
        add = CAUSES.get(text_of(cause))
        if add is None:
            raise Malformed(f"nothing is known of the cause {cause}")
        add(parts)
    filled = {name: value for name, value in case.items() if name != "causes"}
    filled["queues"] = [{"name": "normal", **parts["queue"]}]
    filled["jobs"] = [{"id": "J1", **parts["job"]}]
    waits = "J1"
    if parts["array"]:
        # The second element waits for the first.
        filled["jobs"] = [{"id": "J1", **parts["job"], **parts["array"]}]
        waits = "J1[2]"
        if parts["limit"]:
            parts["limit"] = {"SLOTS": 1}
    filled["expect"] = {"pend": {waits: {"main": case.get("expect")}}}
    if parts["running"]:
        filled["running"] = [parts["running"]]
    if parts["group"]:
        filled["user_groups"] = [{"name": "g1", **parts["group"]}]
    if parts["shared"]:
        cluster = mapping_of(case.get("cluster"))
        hosts = cluster.get("hosts", [{"name": "h1"}])
        filled["cluster"] = {**cluster, "hosts": hosts, "shared": [parts["shared"]]}
    if parts["user"]:
        filled["users"] = [{"name": "u1", **parts["user"]}]
    if parts["limit"]:
        filled["limits"] = [{"NAME": "l1", "USERS": "u1", **parts["limit"]}]
    if parts["ended"]:
        filled["ended"] = parts["ended"]
    return filled


def _set(part: str, **fields: object) -> Callable[[Parts], None]:
    return lambda parts: parts[part].update(fields)


def _dependency(parts: Parts) -> None:
    parts["ended"]["X"] = 1
    parts["job"]["w"] = "done(X)"


def _window_will_close(parts: Parts) -> None:
    parts["queue"].setdefault("RUN_WINDOW", "00:00-01:00")
    parts["job"]["W"] = 120


def _both(fields: Mapping[str, Mapping[str, object]]) -> Callable[[Parts], None]:
    def add(parts: Parts) -> None:
        for part, more in fields.items():
            parts[part].update(more)

    return add


ONE_RUNS: Final[Mapping[str, Mapping[str, object]]] = {"running": {"id": "B"}}
"""A bound that another job has left too little of: one below the job itself refuses it."""

CAUSES: Final[dict[str, Callable[[Parts], None]]] = {
    "PSUSP": _set("job", hold=True),
    "USER_STOP": _set("job", hold=True),
    "JOB_DEPEND": _both({**ONE_RUNS, "job": {"w": "done(B)"}}),
    "JOB_DELAY_SCHED": _set("queue", NEW_JOB_SCHED_DELAY=600),
    "QUE_PJOB_LIMIT": _both({**ONE_RUNS, "job": {"n": 2}, "queue": {"QJOB_LIMIT": 2}}),
    "QUE_USR_PJLIMIT": _both({**ONE_RUNS, "job": {"n": 2}, "queue": {"UJOB_LIMIT": 2}}),
    "USER_PJOB_LIMIT": _both({**ONE_RUNS, "job": {"n": 2}, "user": {"MAX_JOBS": 2}}),
    "UGRP_JOB_LIMIT": _set("group", members=["u1"], MAX_JOBS=0),
    "JOB_ARRAY_JLIMIT": _set("array", J="a[1-2]%1"),
    "RES_SHORT": _both({"job": {"R": "rusage[lic=2]"}, "shared": {"name": "lic", "total": 1}}),
    "QUE_INACT": _set("queue", status="Open:Inact_Adm"),
    "QUE_WINDOW": _set("queue", RUN_WINDOW="08:00-09:00"),
    "QUE_JOB_LIMIT": _set("queue", QJOB_LIMIT=0),
    "QUE_USR_JLIMIT": _set("queue", UJOB_LIMIT=0),
    "QUE_WINDOW_WILL_CLOSE": _window_will_close,
    "JOB_START_TIME": _set("job", b=600),
    "JOB_DEP_INVALID": _dependency,
    "USER_JOB_LIMIT": _set("user", MAX_JOBS=0),
    "RES_LIMIT": _set("limit", SLOTS=0),
}
"""How a job comes to have each cause."""

"""
Turn what a vector says of application profiles into our own.
"""

from __future__ import annotations

from typing import Final

from domain.profiles import ProfileSpec
from tools.conformance.core_setup import JOB_LIMITS, ONLY_APP, exits_of, job_limits_of, only
from tools.conformance.values import Fields, mapping_of, mappings_of, text_of, texts_of
from tools.conformance.written import SAME_IN_QUEUE, is_yes, minutes_us, named_alike

KNOWN_APP: Final = {
    "name", "REQUEUE_EXIT_VALUES", "SUCCESS_EXIT_VALUES", "MAX_JOB_REQUEUE", "RES_REQ",
    "RERUNNABLE", "RUNLIMIT", "TASKLIMIT", *JOB_LIMITS,
}  # fmt: skip


def profiles_of(case: Fields) -> dict[str, ProfileSpec]:
    """
    Return the profiles of a case by name: those in a list, and the one of all its jobs.
    """
    found = {text_of(app.get("name")): _profile(app) for app in mappings_of(case.get("apps"))}
    if case.get("app"):
        found[ONLY_APP] = _profile(mapping_of(case["app"]))
    return found


def _profile(app: Fields) -> ProfileSpec:
    only(app, KNOWN_APP, "app")
    return ProfileSpec(
        resreq=texts_of(app.get("RES_REQ")),
        run_limit_us=minutes_us(app.get("RUNLIMIT")),
        exits=exits_of(app),
        limits=job_limits_of(app),
        rerunnable=is_yes(app["RERUNNABLE"]) if "RERUNNABLE" in app else None,
    )


def queues_of(case: Fields) -> list[Fields]:
    """
    Return the queues of a case, the usual one first where it isn't there.

    The range of tasks that a profile allows is bound by the queues: with us a profile only has
    defaults.
    """
    queues = [named_alike(queue, SAME_IN_QUEUE) for queue in mappings_of(case.get("queues"))]
    if not any(queue.get("name") == "normal" for queue in queues):
        queues = [{"name": "normal"}, *queues]
    bound = mapping_of(case.get("app")).get("TASKLIMIT")
    if bound is not None:
        queues = [{"TASKLIMIT": bound, **queue} for queue in queues]
    shared = {
        child: text_of(queue["name"])
        for queue in queues
        for child in " ".join(texts_of(queue.get("FAIRSHARE_QUEUES"))).split()
        if child != text_of(queue["name"])
    }
    parents = [queue for queue in queues if text_of(queue["name"]) not in shared]
    children = [queue for queue in queues if text_of(queue["name"]) in shared]
    # Whose accounts are shared must be there first.
    return parents + [
        {**queue, "accounts_of": shared[text_of(queue["name"])]} for queue in children
    ]

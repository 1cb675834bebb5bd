"""
Turn what a vector says of queues, users and limits into our own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from domain.fairshare import HOUR_US, Fairshare, ShareNode
from domain.limits import JOBS, SLOTS, Basis, LimitAmount, LimitSpec, Scope
from domain.name_lists import NameList, parse_names
from domain.preemption import OnPreempt, PreemptPolicy
from domain.queues import QueueLimits, QueueSpec
from domain.units import MILLI, MINUTE_US, parse_milli
from domain.users import UserSpec
from domain.windows import Windows, parse_windows
from tools.conformance.core_setup import CYCLE_US, MB_MILLI, SECOND_US, exits_of, only
from tools.conformance.trial import NotYet
from tools.conformance.values import (
    NOTHING,
    Fields,
    Malformed,
    items_of,
    mapping_of,
    text_of,
    texts_of,
    whole_of,
)

KNOWN_QUEUE: Final = {
    "name", "PRIORITY", "status", "RUN_WINDOW", "DISPATCH_WINDOW", "IGNORE_DEADLINE", "RUNLIMIT",
    "REQUEUE_EXIT_VALUES", "SUCCESS_EXIT_VALUES", "RERUNNABLE", "QJOB_LIMIT", "UJOB_LIMIT",
    "HJOB_LIMIT", "PJOB_LIMIT", "TASKLIMIT", "HOSTS", "USERS", "EXCLUSIVE", "HOSTLIMIT_PER_JOB",
    "PREEMPTION", "TERMINATE_WHEN", "JOB_CONTROLS", "SLOT_RESERVE", "RESOURCE_RESERVE", "BACKFILL",
    "FAIRSHARE", "FAIRSHARE_QUEUES",
}  # fmt: skip
DIMENSIONS: Final = {
    "USER": "users", "QUEUE": "queues", "HOST": "hosts", "PROJECT": "projects", "APP": "profiles",
}  # fmt: skip
FACTORS: Final = {
    "CPU_TIME_FACTOR": "cpu_time_factor_milli",
    "RUN_TIME_FACTOR": "run_time_factor_milli",
    "COMMITTED_RUN_TIME_FACTOR": "committed_run_time_factor_milli",
    "RUN_JOB_FACTOR": "run_job_factor_milli",
}
SWITCHES: Final = {
    "ENABLE_HIST_RUN_TIME": "counts_past_runs",
    "RUN_TIME_DECAY": "run_time_decays",
}
MEMORY_AMOUNTS: Final = ("MEM", "SWP", "TMP")


def queue_of(queue: Fields, params: Fields = NOTHING) -> QueueSpec:
    """
    Return a queue.
    """
    only(queue, KNOWN_QUEUE, "queue")
    status = text_of(queue.get("status") or "Open:Active")
    run_limits = [whole_of(each) for each in items_of(queue.get("RUNLIMIT"))]
    least, default, most = _task_limits(queue.get("TASKLIMIT"))
    hosts_max = queue.get("HOSTLIMIT_PER_JOB")
    return QueueSpec(
        priority=whole_of(queue.get("PRIORITY", 30)),
        is_open=status.startswith("Open"),
        is_active=status.endswith(":Active"),
        run_windows=_windows(queue.get("RUN_WINDOW")),
        dispatch_windows=_windows(queue.get("DISPATCH_WINDOW")),
        ignore_deadline=bool(queue.get("IGNORE_DEADLINE")),
        run_limit_max_us=run_limits[-1] * MINUTE_US if run_limits else None,
        run_limit_default_us=run_limits[0] * MINUTE_US if run_limits else None,
        exits=exits_of(queue),
        rerunnable=bool(queue.get("RERUNNABLE")),
        limits=_queue_limits(queue),
        tasks_min=least,
        tasks_default=default,
        tasks_max=most,
        hosts_max=None if hosts_max is None else whole_of(hosts_max),
        hosts=_names(queue.get("HOSTS")),
        users=_names(queue.get("USERS")),
        allows_exclusive=bool(queue.get("EXCLUSIVE")),
        preemptible_queues=_preemption(queue, "PREEMPTIVE"),
        preemptible_by=_preemption(queue, "PREEMPTABLE"),
        preempt_policy=_policy(params),
        on_preempt=_on_preempt(queue),
        slot_reserve_us=_cycles_us(queue.get("SLOT_RESERVE"), params),
        resource_reserve_us=_cycles_us(queue.get("RESOURCE_RESERVE"), params),
        is_backfill=bool(queue.get("BACKFILL")),
        picker="fairshare" if "FAIRSHARE" in queue else "",
        fairshare=fairshare_of(queue, params),
    )


def _cycles_us(value: object, params: Fields) -> int | None:
    """
    Return a count of cycles as time.
    """
    if value is None or value is False:
        return None
    cycle_us = whole_of(params.get("cycle_seconds", CYCLE_US // SECOND_US)) * SECOND_US
    return whole_of(value) * cycle_us


def fairshare_of(queue: Fields, params: Fields) -> Fairshare | None:
    """
    Return how a queue is shared, by the cluster's factors where it has none of its own.
    """
    if "FAIRSHARE" not in queue:
        return None
    return rules_of({**params, **queue}, _nodes(mapping_of(queue["FAIRSHARE"])))


def _nodes(shares: Fields) -> tuple[ShareNode, ...]:
    found = []
    for name, value in shares.items():
        if isinstance(value, Mapping):
            fields = mapping_of(value)
            only(fields, {"share", "members"}, "share")
            members = _nodes(mapping_of(fields.get("members")))
            node = ShareNode(name=name, shares=whole_of(fields.get("share")), members=members)
        else:
            node = ShareNode(name=name, shares=whole_of(value))
        found.append(node)
    return tuple(found)


def rules_of(params: Fields, shares: tuple[ShareNode, ...] = ()) -> Fairshare:
    """
    Return the factors that parameters name, the usual ones for the others.
    """
    found: dict[str, object] = {
        ours: parse_milli(text_of(params[theirs]))
        for theirs, ours in FACTORS.items()
        if theirs in params
    }
    if "HIST_HOURS" in params:
        found["history_us"] = parse_milli(text_of(params["HIST_HOURS"])) * HOUR_US // MILLI
    for theirs, ours in SWITCHES.items():
        if theirs in params:
            found[ours] = bool(params[theirs])
    return Fairshare.model_validate({**found, "shares": shares})


def _preemption(queue: Fields, word: str) -> NameList | None:
    """
    Return the queues in brackets behind a word of PREEMPTION, all when it has none.
    """
    found = re.search(rf"\b{word}\b(?:\[([^]]*)\])?", text_of(queue.get("PREEMPTION")))
    return None if found is None else parse_names(found[1] or "all")


def _policy(params: Fields) -> PreemptPolicy:
    words = " ".join(texts_of(params.get("PREEMPT_FOR"))).split()
    unknown = sorted(set(words) - {"LEAST_RUN_TIME"})
    if unknown:
        raise NotYet(f"PREEMPT_FOR with {', '.join(unknown)}")
    return PreemptPolicy.LEAST_RUN_TIME if words else PreemptPolicy.LOWEST_PRIORITY


def _on_preempt(queue: Fields) -> OnPreempt:
    if "PREEMPT" in text_of(queue.get("TERMINATE_WHEN")).split():
        return OnPreempt.KILL
    controls = text_of(queue.get("JOB_CONTROLS"))
    if controls == "SUSPEND[brequeue]":
        return OnPreempt.REQUEUE
    if controls:
        raise NotYet(f"JOB_CONTROLS={controls}")
    return OnPreempt.SUSPEND


def _windows(text: object) -> Windows | None:
    return None if text is None else parse_windows(text_of(text))


def _names(value: object) -> NameList | None:
    return None if value is None else parse_names(" ".join(texts_of(value)))


def _task_limits(value: object) -> tuple[int | None, int | None, int | None]:
    """
    Return least, default and most of ``[[least [default]] most]``.
    """
    limits = [whole_of(each) for each in items_of(value)]
    if len(limits) > 3:
        raise Malformed(f"TASKLIMIT has at most three values, not {limits}")
    most = limits[-1] if limits else None
    least = limits[0] if len(limits) > 1 else None
    return least, limits[1] if len(limits) == 3 else None, most


def _queue_limits(queue: Fields) -> QueueLimits | None:
    names = {"QJOB_LIMIT": "slots", "UJOB_LIMIT": "user_slots", "HJOB_LIMIT": "host_slots"}
    found = {ours: whole_of(queue[theirs]) for theirs, ours in names.items() if theirs in queue}
    if "PJOB_LIMIT" in queue:
        found["processor_slots_milli"] = parse_milli(text_of(queue["PJOB_LIMIT"]))
    return QueueLimits.model_validate(found) if found else None


# ------------------------------------------------------------------------------- limits and users


def limit_of(limit: Fields) -> tuple[str, LimitSpec]:
    """
    Return the name and the definition of a limit.
    """
    scopes: dict[str, Scope] = {}
    amounts: list[LimitAmount] = []
    windows = None
    for field, value in limit.items():
        if field == "WINDOW":
            windows = _windows(value)
        elif field != "NAME" and not _take_scope(field, value, scopes):
            amounts += _amounts(field, value)
    spec = LimitSpec.model_validate(
        {**scopes, "amounts": tuple(amounts), "windows": windows}, strict=False
    )
    return text_of(limit.get("NAME")), spec


def _take_scope(field: str, value: object, scopes: dict[str, Scope]) -> bool:
    """
    Take a dimension: USERS lists those who share, PER_USER those who each have the budget.
    """
    word = field.removeprefix("PER_").removesuffix("S")
    if word not in DIMENSIONS:
        return False
    names = _names(value)
    assert names is not None
    scopes[DIMENSIONS[word]] = Scope(names=names, is_each=field.startswith("PER_"))
    return True


def _amounts(field: str, value: object) -> list[LimitAmount]:
    if field == "RESOURCE":
        resources = mapping_of(value).items()
        return [
            LimitAmount(resource=name, milli=parse_milli(text_of(each))) for name, each in resources
        ]
    if field in {"SLOTS", "JOBS"}:
        name = SLOTS if field == "SLOTS" else JOBS
        return [LimitAmount(resource=name, milli=whole_of(value) * MILLI)]
    if field == "SLOTS_PER_PROCESSOR":
        milli = parse_milli(text_of(value))
        return [LimitAmount(resource=SLOTS, milli=milli, basis=Basis.PER_PROCESSOR)]
    if field not in MEMORY_AMOUNTS:
        raise NotYet(f"limit with {field}")
    name = field.lower()
    if text_of(value).endswith("%"):
        milli = parse_milli(text_of(value).rstrip("%"))
        return [LimitAmount(resource=name, milli=milli, basis=Basis.PERCENT)]
    return [LimitAmount(resource=name, milli=whole_of(value) * MB_MILLI)]


def user_of(user: Fields) -> UserSpec:
    """
    Return a user.
    """
    only(user, {"name", "MAX_JOBS", "JL_P"}, "user")
    per_processor = user.get("JL_P")
    return UserSpec(
        slots_max=None if "MAX_JOBS" not in user else whole_of(user["MAX_JOBS"]),
        processor_slots_max_milli=None
        if per_processor is None
        else parse_milli(text_of(per_processor)),
    )

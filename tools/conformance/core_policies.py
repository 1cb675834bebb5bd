"""
Turn what a vector says of queues, users and limits into our own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from domain.fairshare import HOUR_US, Fairshare, ShareNode
from domain.name_lists import NameList, parse_names
from domain.preemption import OnPreempt, PreemptPolicy
from domain.queues import QueueLimits, QueueSpec
from domain.resreq.merge import ReservationRange
from domain.units import MILLI, MINUTE_US, MemoryUnit, parse_memory_milli, parse_milli
from domain.windows import Windows, parse_windows
from tools.conformance.core_setup import (
    CYCLE_US,
    JOB_LIMITS,
    LOADS,
    SECOND_US,
    SPACES,
    THRESHOLDS,
    UNCOUNTED,
    exits_of,
    job_limits_of,
    only,
    thresholds_of,
)
from tools.conformance.trial import NotYet
from tools.conformance.values import (
    NOTHING,
    Fields,
    Malformed,
    mapping_of,
    text_of,
    texts_of,
    whole_of,
)
from tools.conformance.written import (
    SAME_IN_QUEUE,
    is_yes,
    minutes_of,
    named_alike,
    ranges_of,
    reserve_cycles,
    shares_of,
    wholes_of,
)

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
KNOWN_QUEUE: Final = {
    "name", "PRIORITY", "status", "RUN_WINDOW", "DISPATCH_WINDOW", "IGNORE_DEADLINE", "RUNLIMIT",
    "REQUEUE_EXIT_VALUES", "SUCCESS_EXIT_VALUES", "RERUNNABLE", "QJOB_LIMIT", "UJOB_LIMIT",
    "HJOB_LIMIT", "PJOB_LIMIT", "TASKLIMIT", "HOSTS", "USERS", "EXCLUSIVE", "HOSTLIMIT_PER_JOB",
    "PREEMPTION", "TERMINATE_WHEN", "JOB_CONTROLS", "SLOT_RESERVE", "RESOURCE_RESERVE", "BACKFILL",
    "FAIRSHARE", "FAIRSHARE_QUEUES", "RES_REQ", "RESRSV_LIMIT", "MAX_JOB_REQUEUE", *JOB_LIMITS,
    *FACTORS, *SWITCHES, "HIST_HOURS", "accounts_of", *THRESHOLDS, *LOADS, *SPACES, "mem",
    "STOP_COND", "RESUME_COND", "NEW_JOB_SCHED_DELAY",
}  # fmt: skip
MEMORY_NAMES: Final = ("mem", "swp", "tmp")


def queue_of(written: Fields, params: Fields = NOTHING, *, groups: Fields = NOTHING) -> QueueSpec:
    """
    Return a queue.
    """
    queue = named_alike(written, SAME_IN_QUEUE)
    only(queue, KNOWN_QUEUE, "queue")
    status = text_of(queue.get("status") or "Open:Active")
    run_limits = _run_limits(queue.get("RUNLIMIT"))
    least, default, most = task_limits_of(queue.get("TASKLIMIT"))
    hosts_max = queue.get("HOSTLIMIT_PER_JOB")
    bounds = [job_limits_of(queue, which=each) for each in (-1, 0)]
    return QueueSpec(
        priority=whole_of(queue.get("PRIORITY", 30)),
        is_open=status.startswith("Open"),
        is_active=status.endswith(":Active"),
        run_windows=_windows(queue.get("RUN_WINDOW")),
        dispatch_windows=_windows(queue.get("DISPATCH_WINDOW")),
        ignore_deadline=is_yes(queue.get("IGNORE_DEADLINE")),
        run_limit_max_us=run_limits[-1] if run_limits else None,
        run_limit_default_us=run_limits[0] if run_limits else None,
        exits=exits_of({**params, **queue}),
        rerunnable=is_yes(queue.get("RERUNNABLE")),
        limits=_queue_limits(queue),
        tasks_min=least,
        tasks_default=default,
        tasks_max=most,
        hosts_max=None if hosts_max is None else whole_of(hosts_max),
        job_limits_max=bounds[0],
        job_limits_default=bounds[1],
        hosts=names_of(queue.get("HOSTS"), groups),
        users=names_of(queue.get("USERS")),
        resreq=texts_of(queue.get("RES_REQ")),
        reservations=reservations_of(queue.get("RESRSV_LIMIT")),
        allows_exclusive=is_yes(queue.get("EXCLUSIVE")),
        preemptible_queues=_preemption(queue, "PREEMPTIVE"),
        preemptible_by=_preemption(queue, "PREEMPTABLE"),
        preempt_policy=_policy(params),
        on_preempt=_on_stop(queue, "PREEMPT"),
        on_window=_on_stop(queue, "WINDOW"),
        on_load=_on_stop(queue, "LOAD"),
        new_job_delay_us=whole_of(queue.get("NEW_JOB_SCHED_DELAY", 0)) * SECOND_US,
        stop_condition=text_of(queue.get("STOP_COND") or ""),
        resume_condition=text_of(queue.get("RESUME_COND") or ""),
        thresholds=thresholds_of(queue, indices=(*LOADS, *SPACES, "mem")),
        slot_reserve_us=_cycles_us(queue.get("SLOT_RESERVE"), params),
        resource_reserve_us=_cycles_us(queue.get("RESOURCE_RESERVE"), params),
        is_backfill=is_yes(queue.get("BACKFILL")),
        picker="fairshare" if {"FAIRSHARE", "accounts_of"}.intersection(queue) else "",
        fairshare=fairshare_of(queue, params),
    )


def _run_limits(value: object) -> list[int]:
    """
    Return the default and the longest run limit in microseconds, or the one that is both.
    """
    if isinstance(value, str):
        value = value.replace("[", " ").replace("]", " ").split()
    elif not isinstance(value, list):
        value = [] if value is None else [value]
    return [minutes_of(each) * MINUTE_US for each in value]


def reservations_of(value: object) -> tuple[ReservationRange, ...]:
    """
    Return what jobs may reserve: memory in MB where no unit is told.
    """
    found = []
    for name, bounds in ranges_of(value).items():
        is_memory = name in MEMORY_NAMES
        least, most = (
            parse_memory_milli(text_of(bound), unit=MemoryUnit.MB)
            if is_memory
            else parse_milli(text_of(bound))
            for bound in bounds
        )
        found.append(ReservationRange(resource=name, least_milli=least, most_milli=most))
    return tuple(found)


def _cycles_us(value: object, params: Fields) -> int | None:
    """
    Return a count of cycles as time.
    """
    cycles = reserve_cycles(value)
    if cycles is None:
        return None
    cycle_us = whole_of(params.get("cycle_seconds", CYCLE_US // SECOND_US)) * SECOND_US
    return cycles * cycle_us


def fairshare_of(queue: Fields, params: Fields) -> Fairshare | None:
    """
    Return how a queue is shared, by the cluster's factors where it has none of its own.
    """
    if "accounts_of" in queue:
        return Fairshare(accounts_of=text_of(queue["accounts_of"]))
    if "FAIRSHARE" not in queue:
        return None
    return rules_of({**params, **queue}, _nodes(shares_of(queue["FAIRSHARE"])))


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
            found[ours] = is_yes(params[theirs])
    return Fairshare.model_validate({**found, "shares": shares})


def _preemption(queue: Fields, word: str) -> NameList | None:
    """
    Return the queues in brackets behind a word of PREEMPTION, all when it has none.
    """
    found = re.search(rf"\b{word}\b(?:\[([^]]*)\])?", text_of(queue.get("PREEMPTION")))
    return None if found is None else parse_names(found[1] or "all")


def _policy(params: Fields) -> PreemptPolicy:
    words = " ".join(texts_of(params.get("PREEMPT_FOR"))).split()
    unknown = sorted(set(words) - {"LEAST_RUN_TIME", *UNCOUNTED})
    if unknown:
        raise NotYet(f"PREEMPT_FOR with {', '.join(unknown)}")
    is_by_run_time = "LEAST_RUN_TIME" in words
    return PreemptPolicy.LEAST_RUN_TIME if is_by_run_time else PreemptPolicy.LOWEST_PRIORITY


def _on_stop(queue: Fields, cause: str) -> OnPreempt:
    """
    Return what becomes of a queue's jobs that the system stops for a cause.
    """
    ending = set(" ".join(texts_of(queue.get("TERMINATE_WHEN"))).split())
    if ending - {"PREEMPT", "WINDOW", "LOAD"}:
        raise NotYet(f"TERMINATE_WHEN={' '.join(sorted(ending))}")
    if cause in ending:
        return OnPreempt.KILL
    controls = text_of(queue.get("JOB_CONTROLS"))
    if controls == "SUSPEND[brequeue]":
        return OnPreempt.REQUEUE
    if controls:
        raise NotYet(f"JOB_CONTROLS={controls}")
    return OnPreempt.SUSPEND


def _windows(text: object) -> Windows | None:
    return None if text is None else parse_windows(" ".join(texts_of(text)))


def names_of(value: object, groups: Fields = NOTHING) -> NameList | None:
    """
    Return a list of names, groups of hosts told by their members.
    """
    if value is None:
        return None
    words = []
    for word in " ".join(texts_of(value)).split():
        name, plus, wish = word.lstrip("~").partition("+")
        members = _members(groups[name]) if name in groups else [name]
        words += [f"{'~' * word.startswith('~')}{each}{plus}{wish}" for each in members]
    return parse_names(" ".join(words))


def _members(value: object) -> list[str]:
    return " ".join(texts_of(value)).split()


def task_limits_of(value: object) -> tuple[int | None, int | None, int | None]:
    """
    Return least, default and most of ``[[least [default]] most]``.
    """
    limits = wholes_of(value)
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

"""
Read what `sacct --json` prints: one object with `jobs`, numbers plain or as {"set", "number"}.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from domain.errors import Refused
from replay.workloads.details import GPU, MEM, UNKNOWN, Ask, Details, TraceNeed
from replay.workloads.gathering import BadLineError, FoundJob, Gathering, open_lines
from replay.workloads.sacct import WAITING_OR_RUNNING, status_of
from replay.workloads.slurm_text import gpus_of, select_of
from replay.workloads.source import Header, Workload

Json = dict[str, object]
MINUTE_S = 60
KIB_PER_MIB = 1024
# Newer versions of the interface set this bit of a memory for "per CPU".
PER_CPU_BIT = 2**63


def read_sacct_json(path: Path) -> Workload:
    """
    Read the jobs of one object of sacct.

    A malformed job is named by its place in the list, from 1, as JSON has no lines.

    Raises:
        Refused: The file can't be read, isn't JSON, or has no list of jobs.
    """
    with open_lines(path) as lines:
        text = lines.read()
    try:
        content = json.loads(text)
    except ValueError as error:
        raise Refused("workload", f"is no JSON: {error}", str(path)) from error
    jobs = content.get("jobs") if isinstance(content, dict) else None
    if not isinstance(jobs, list):
        raise Refused("workload", "must have a list of jobs, as sacct --json prints", str(path))
    gathering = Gathering()
    for number, job in enumerate(jobs, 1):
        try:
            gathering.add(_job(job, gathering))
        except BadLineError as error:
            gathering.add_malformed(number, error.rule)
    return gathering.workload(path, _header(content))


def _header(content: Json) -> Header:
    release = _at(content, "meta", "Slurm", "release") or _at(content, "meta", "slurm", "release")
    return Header((("Slurm", release),)) if isinstance(release, str) else Header()


def _at(value: object, *names: str) -> object:
    """
    Return what is under a path of names, None where it isn't.
    """
    for name in names:
        if not isinstance(value, dict):
            return None
        value = cast(Json, value).get(name)
    return value


def _text(job: object, *names: str) -> str:
    value = _at(job, *names)
    if isinstance(value, list):
        value = value[0] if value else ""
    return value if isinstance(value, str) else ""


def _whole(job: object, *names: str) -> int:
    """
    Return a number, UNKNOWN where it isn't set.
    """
    value = _at(job, *names)
    if isinstance(value, dict):
        if value.get("set") is not True or value.get("infinite") is True:
            return UNKNOWN
        value = value.get("number")
    if value is None:
        return UNKNOWN
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadLineError(f"{'.'.join(names)} is no whole number: {value!r:.40}")
    return value


def _job(job: object, gathering: Gathering) -> FoundJob:
    if not isinstance(job, dict):
        raise BadLineError("is no object")
    tasks = _whole(job, "required", "CPUs")
    hosts = _whole(job, "allocation_nodes")
    limit = _whole(job, "time", "limit")
    kib_per_task, needs = _amounts(job, hosts)
    constraint = _text(job, "constraints")
    select = select_of(constraint)
    if select is None:
        gathering.note("constraint that can't be modelled")
    element = _whole(job, "array", "task_id")
    number = _whole(job, "job_id")
    return FoundJob(
        trace_id=number,
        submit_s=_whole(job, "time", "submission"),
        run_s=_run_s(job, gathering),
        tasks=tasks,
        requested_s=limit * MINUTE_S if limit > 0 else UNKNOWN,
        requested_kib=kib_per_task,
        status=status_of(_text(job, "state", "current")),
        details=Details(
            Ask(
                user_name=_text(job, "user") or _text(job, "association", "user"),
                group_name=_text(job, "group"),
                queue_name=_text(job, "partition"),
                project_name=_text(job, "account"),
                hosts=hosts if hosts > 0 else UNKNOWN,
                needs=needs,
                select=select or (),
                constraint=constraint,
            ),
            trace_name="" if element == UNKNOWN else f"{number}_{element}",
            job_name=_text(job, "name"),
        ),
    )


def _run_s(job: Json, gathering: Gathering) -> int:
    if _text(job, "state", "current") in WAITING_OR_RUNNING:
        gathering.note("job that hadn't ended")
        return UNKNOWN
    if _whole(job, "time", "start") <= 0 or _text(job, "nodes") == "None assigned":
        return UNKNOWN
    return _whole(job, "time", "elapsed")


def _amounts(job: Json, hosts: int) -> tuple[int, tuple[TraceNeed, ...]]:
    """
    Return the memory per task in KiB, and what is asked for on each host.
    """
    share = max(1, hosts)
    gpus = _gpus(job)
    needs = (TraceNeed(GPU, -(-gpus // share) * 1000),) if gpus else ()
    per_cpu = _whole(job, "required", "memory_per_cpu")
    per_node = _whole(job, "required", "memory_per_node")
    plain = _whole(job, "required", "memory")
    if plain >= PER_CPU_BIT:
        per_cpu, plain = plain - PER_CPU_BIT, UNKNOWN
    if per_cpu > 0:
        return per_cpu * KIB_PER_MIB, needs
    node = per_node if per_node > 0 else plain
    if node <= 0:
        return UNKNOWN, needs
    return UNKNOWN, (TraceNeed(MEM, node * KIB_PER_MIB * 1000), *needs)


def _gpus(job: Json) -> int:
    """
    Return the GPUs that were given, of all hosts together.
    """
    given = _at(job, "tres", "allocated")
    if isinstance(given, str):
        return gpus_of(given)
    entries = given if isinstance(given, list) else []
    return sum(
        max(0, _whole(entry, "count"))
        for entry in entries
        if _text(entry, "type") == "gres" and _text(entry, "name").split(":")[0] == "gpu"
    )

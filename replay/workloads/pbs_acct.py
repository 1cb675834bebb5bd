"""
Read accounting records of PBS (Torque and PBS Pro): `time;kind;job;key=value ...`.

A record of kind E tells of a job's end and is a job; the others are counted. What was asked for is
taken from the request for nodes (`4:ppn=8`), else the chunks of select (`5:ncpus=13`), else ncpus,
else from what was given. A slot is a processor.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import final

from replay.workloads.details import GPU, MEM, UNKNOWN, Ask, Details, TraceNeed
from replay.workloads.gathering import (
    COMPLETED,
    FAILED,
    BadLineError,
    FoundJob,
    Gathering,
    open_lines,
)
from replay.workloads.slurm_text import elapsed_s
from replay.workloads.source import Header, Workload

RECORD = re.compile(
    r"[0-9]{2}/[0-9]{2}/[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2};([A-Za-z]);([^;]*);(.*)"
)
ENDED = "E"
LIST = "Resource_List."
_size = re.compile(r"([0-9]{1,15})([kmgtp]?)([bw]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4, "p": 1024**5}
WORD_BYTES = 8


def read_pbs_acct(path: Path) -> Workload:
    """
    Read accounting records of PBS.

    Raises:
        Refused: The file can't be read, or none of its records is of a job's end.
    """
    gathering = Gathering()
    remarks: list[str] = []
    with open_lines(path) as lines:
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if text.startswith("#"):
                remarks.append(text.lstrip("#").strip())
            elif text:
                try:
                    _take(text, number, gathering)
                except BadLineError as error:
                    gathering.add_malformed(number, error.rule)
    return gathering.workload(path, Header(remarks=tuple(remarks)))


def _take(text: str, number: int, gathering: Gathering) -> None:
    match = RECORD.fullmatch(text)
    if match is None:
        raise BadLineError("must begin with MM/DD/YYYY HH:MM:SS;KIND;JOB;")
    if match[1] != ENDED:
        gathering.note(f"record of kind {match[1]}, which ends no job")
        return
    values = dict(word.split("=", 1) for word in match[3].split(" ") if "=" in word)
    gathering.add(_job(match[2], values, number, gathering))


@final
@dataclass(frozen=True, slots=True)
class Request:
    """
    Hold how many processors on how many hosts a job asks for, and GPUs on each.
    """

    tasks: int
    hosts: int = UNKNOWN
    gpus_per_host: int = 0


def _job(name: str, values: dict[str, str], number: int, gathering: Gathering) -> FoundJob:
    request = _request(values, gathering)
    start, end = _whole(values, "start"), _whole(values, "end")
    id_match = re.match(r"([0-9]{1,12})", name)
    submit = next((key for key in ("ctime", "qtime", "etime") if key in values), None)
    return FoundJob(
        trace_id=int(id_match[1]) if id_match else number,
        submit_s=UNKNOWN if submit is None else _whole(values, submit),
        run_s=end - start if start > 0 and end > 0 else UNKNOWN,
        tasks=request.tasks,
        requested_s=elapsed_s(values.get(f"{LIST}walltime", ""), "walltime"),
        status=COMPLETED if values.get("Exit_status") == "0" else FAILED,
        details=Details(
            Ask(
                user_name=values.get("user", ""),
                group_name=values.get("group", ""),
                queue_name=values.get("queue", ""),
                project_name=values.get("account", "") or values.get("project", ""),
                hosts=request.hosts,
                needs=_needs(values, request),
                constraint=values.get(f"{LIST}nodes", "") or values.get(f"{LIST}select", ""),
                is_exclusive="excl" in values.get(f"{LIST}place", ""),
            ),
            trace_name="" if name.isdecimal() else name,
            job_name=values.get("jobname", ""),
        ),
    )


def _whole(values: dict[str, str], key: str) -> int:
    text = values.get(key)
    if text is None:
        return UNKNOWN
    if not re.fullmatch(r"-?[0-9]{1,15}", text):
        raise BadLineError(f"{key} is no whole number: {text[:40]!r}")
    return int(text)


def _request(values: dict[str, str], gathering: Gathering) -> Request:
    """
    Return what the job asks for, from the first place that says it.
    """
    count = values.get(f"{LIST}nodect", "")
    # One dialect writes the request for nodes under the name of their count.
    nodes = values.get(f"{LIST}nodes") or (count if ":" in count else None)
    if nodes:
        return _chunks(nodes, "ppn", ("gpus", "gpu"))
    hosts = int(count) if count.isdecimal() else UNKNOWN
    select = values.get(f"{LIST}select")
    if select and "ncpus=" in select:
        return _chunks(select, "ncpus", ("ngpus",))
    processors = _whole(values, f"{LIST}ncpus")
    gpus = max(0, _whole(values, f"{LIST}ngpus"))
    if processors > 0:
        return Request(processors, hosts, -(-gpus // max(1, hosts)))
    given = values.get("exec_host", "")
    if given:
        gathering.note("size taken from the processors that were given")
    return Request(_given(given), hosts)


def _chunks(text: str, processors: str, gpu_words: tuple[str, ...]) -> Request:
    """
    Return the sum over chunks such as 4:ppn=8:gpus=1, joined by `+`; a chunk is a host.
    """
    tasks = hosts = gpus = 0
    for chunk in text.split("+"):
        first, *words = chunk.split(":")
        count = int(first) if first.isdecimal() else 1
        sizes = dict(word.split("=", 1) for word in words if "=" in word)
        per_host = sizes.get(processors, "1")
        gpu = next((sizes[word] for word in gpu_words if word in sizes), "0")
        if not per_host.isdecimal() or not gpu.isdecimal():
            raise BadLineError(f"the request for nodes can't be read: {text[:60]!r}")
        tasks += count * int(per_host)
        hosts += count
        gpus = max(gpus, int(gpu))
    return Request(tasks, hosts, gpus)


def _given(text: str) -> int:
    """
    Return the processors of a list such as n1/0+n1/1, c1/0*13, c1/0-3, joined by `+`.
    """
    total = 0
    for part in text.split("+") if text else ():
        where = part.rpartition("/")[2]
        match = re.fullmatch(r"([0-9]+)(?:-([0-9]+)|\*([0-9]+))?", where)
        if match is None:
            raise BadLineError(f"exec_host can't be read: {part[:40]!r}")
        span = int(match[2]) - int(match[1]) + 1 if match[2] else 1
        total += int(match[3]) if match[3] else span
    return total


def _needs(values: dict[str, str], request: Request) -> tuple[TraceNeed, ...]:
    """
    Return what is asked for on each host; the job's memory is shared evenly among its hosts.
    """
    text = values.get(f"{LIST}mem", "")
    match = _size.fullmatch(text)
    if text and match is None:
        raise BadLineError(f"mem is no size such as 1993mb: {text[:40]!r}")
    size = 0
    if match is not None:
        word = WORD_BYTES if match[3].lower() == "w" else 1
        size = int(match[1]) * _UNITS[match[2].lower()] * word
    share = max(1, request.hosts)
    total_gpus = max(0, _whole(values, f"{LIST}gpu"))
    gpus = max(request.gpus_per_host, -(-total_gpus // share))
    kib = -(-size // (1024 * share))
    pairs = ((MEM, kib * 1000), (GPU, gpus * 1000))
    return tuple(TraceNeed(resource, milli) for resource, milli in pairs if milli)

"""
Read the Standard Workload Format with fields added by the simulator Alea: 20 or 21 of them.

20 fields: the 18, then the name of a workflow and of the task in it, all times from second 0,
memory in KiB for the whole job; the preceding job may be several, joined by `&`. 21 fields: the 18
with submit in Unix seconds and memory in bytes for each host, then a brace list with an integer for
each allocated processor, the queue's name, and the request for hosts
(`1:ppn=64:x86_64:cl_zewura#excl`, parts joined by `+`); there the preceding job is a filler (1 on
every line of the published trace) and not used. A first line of column names is a remark of the
header.
"""

from __future__ import annotations

import re
from pathlib import Path

from replay.workloads.details import MEM as MEMORY
from replay.workloads.details import UNKNOWN, Ask, Details, TraceNeed
from replay.workloads.gathering import BadLineError, FoundJob, Gathering, open_lines
from replay.workloads.source import Header, Workload

WITH_WORKFLOW, WITH_REQUEST = 20, 21
COLUMN_NAMES = ("id", "submit", "wait", "runtime")
KIB = 1024

_whole = re.compile(r"([+-]?[0-9]{1,18})(?:\.0*)?")
_part = re.compile(r"([0-9]{1,6}|[A-Za-z][\w.-]*)((?::[^:]+)*)")


def read_extended_swf(path: Path) -> Workload:
    """
    Read a workload in extended SWF, compressed by gzip or not.

    Raises:
        Refused: The file can't be read, or none of its lines is a job.
    """
    gathering = Gathering()
    remarks: list[str] = []
    with open_lines(path) as lines:
        for number, line in enumerate(lines, 1):
            texts = line.split()
            if not texts:
                continue
            if texts[0].startswith(";") or (number == 1 and tuple(texts[:4]) == COLUMN_NAMES):
                remarks.append(line.strip().removeprefix(";").strip())
                continue
            try:
                gathering.add(_job(texts, gathering))
            except BadLineError as error:
                gathering.add_malformed(number, error.rule)
    return gathering.workload(path, Header(remarks=tuple(remarks)))


def _job(texts: list[str], gathering: Gathering) -> FoundJob:
    if len(texts) not in (WITH_WORKFLOW, WITH_REQUEST):
        raise BadLineError(f"has {len(texts)} fields, not {WITH_WORKFLOW} or {WITH_REQUEST}")
    allocated, requested = _number(texts, 4), _number(texts, 7)
    tasks = requested if requested > 0 else allocated
    memory = _number(texts, 9)
    preceding: tuple[int, ...] = ()
    if len(texts) == WITH_WORKFLOW:
        preceding = tuple(_preceding(texts[16]))
        ask = Ask(project_name=texts[18])
        kib_per_task = -(-memory // tasks) if memory > 0 and tasks > 0 else UNKNOWN
    else:
        _check_processors(texts[18], allocated)
        ask = _request(texts[19], texts[20], memory, gathering)
        kib_per_task = UNKNOWN
    return FoundJob(
        trace_id=_number(texts, 0),
        submit_s=_number(texts, 1),
        run_s=_number(texts, 3),
        tasks=tasks,
        requested_s=_number(texts, 8),
        requested_kib=kib_per_task,
        status=_number(texts, 10),
        user=_number(texts, 11),
        group=_number(texts, 12),
        executable=_number(texts, 13),
        queue=_number(texts, 14),
        partition=_number(texts, 15),
        preceding_id=preceding[0] if len(preceding) == 1 else UNKNOWN,
        think_s=_number(texts, 17),
        details=Details(ask, preceding_ids=preceding),
    )


def _number(texts: list[str], index: int) -> int:
    match = _whole.fullmatch(texts[index])
    if match is None:
        raise BadLineError(f"field {index + 1} is no whole number: {texts[index][:40]!r}")
    return int(match[1])


def _preceding(text: str) -> list[int]:
    """
    Return the ids of the jobs that must end first, in order, each once.
    """
    if text == "-1":
        return []
    parts = text.split("&")
    if not all(re.fullmatch(r"[0-9]{1,12}", part) for part in parts):
        raise BadLineError(f"field 17 (preceding job) is no list such as 1&2: {text[:40]!r}")
    return list(dict.fromkeys(map(int, parts)))


def _check_processors(text: str, allocated: int) -> None:
    """
    Check the brace list: one integer for each allocated processor.
    """
    if not re.fullmatch(r"\{-?[0-9]+(?:,-?[0-9]+)*\}", text):
        raise BadLineError(f"field 19 is no list in braces: {text[:40]!r}")
    count = text.count(",") + 1
    if count != allocated:
        raise BadLineError(f"field 19 has {count} processors, field 5 says {allocated}")


def _request(queue: str, text: str, memory_bytes: int, gathering: Gathering) -> Ask:
    """
    Return what the request for hosts asks; properties of hosts are kept as written.
    """
    body, _, flags = text.partition("#")
    hosts = 0
    for part in body.split("+"):
        match = _part.fullmatch(part)
        if match is None:
            raise BadLineError(f"field 21 is no request such as 1:ppn=8: {text[:40]!r}")
        hosts += int(match[1]) if match[1].isdecimal() else 1
        if any(not word.startswith("ppn=") for word in match[2].split(":")[1:]):
            gathering.note("property of a host asked for, which isn't modelled")
    kib = -(-memory_bytes // KIB)
    needs = (TraceNeed(MEMORY, kib * 1000),) if memory_bytes > 0 else ()
    return Ask(
        queue_name=queue, hosts=hosts, needs=needs, constraint=text, is_exclusive="excl" in flags
    )

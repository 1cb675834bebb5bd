"""
Read what Slurm's `sacct` prints: parsable or parsable2, with a header or in a known order.

Rows of job steps are no jobs and only counted. A row for several elements of an array
(`4103947_[9-11,13]`) gives a job for each, as it means that many. Times are taken as UTC. A slot is
a CPU. Lines that begin with `#` are remarks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from domain.errors import Refused
from replay.workloads.details import GPU, MEM, UNKNOWN, Ask, Details, TraceNeed
from replay.workloads.gathering import (
    CANCELLED,
    COMPLETED,
    FAILED,
    BadLineError,
    FoundJob,
    Gathering,
    open_lines,
)
from replay.workloads.sacct_rows import BadRow, Row, header_columns, layout_of, rows_of
from replay.workloads.slurm_text import (
    elapsed_s,
    gpus_of,
    index_numbers,
    is_unknown,
    memory_kib,
    select_of,
    stamp_s,
)
from replay.workloads.source import Header, Workload

WAITING_OR_RUNNING = frozenset(
    "PENDING RUNNING SUSPENDED CONFIGURING COMPLETING REQUEUED RESIZING".split()
)
NO_HOSTS = "none assigned"


def read_sacct(path: Path) -> Workload:
    """
    Read the rows of sacct.

    Raises:
        Refused: The file can't be read, or none of its rows is a job.
    """
    gathering = Gathering()
    remarks: list[str] = []
    with open_lines(path) as lines:
        numbered = _without_remarks(lines, remarks)
        first = next(numbered, None)
        if first is None:
            raise Refused("workload", "holds no rows of sacct", str(path))
        columns = header_columns(first[1])
        rest = numbered if columns is not None else _chained(first, numbered)
        columns_of = layout_of if columns is None else lambda _cells: columns
        for row in rows_of(rest, columns_of):
            _take(row, gathering)
    return gathering.workload(path, Header(remarks=tuple(remarks)))


def _without_remarks(lines: Iterable[str], remarks: list[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        if text.startswith("#"):
            remarks.append(text.lstrip("#").strip())
        elif text.strip():
            yield number, text


def _chained(
    first: tuple[int, str], rest: Iterator[tuple[int, str]]
) -> Iterator[tuple[int, str]]:
    yield first
    yield from rest


def _take(row: Row | BadRow, gathering: Gathering) -> None:
    """
    Add the jobs of a row.
    """
    if isinstance(row, BadRow):
        gathering.add_malformed(row.line_number, row.rule)
        return
    if "." in row.cells.get("jobid", ""):
        gathering.note("row of a job's step")
        return
    if row.is_repaired:
        gathering.note("row put right after '|' or a line break in free text")
    try:
        for job in _jobs(row, gathering):
            gathering.add(job)
    except BadLineError as error:
        gathering.add_malformed(row.line_number, error.rule)


def _jobs(row: Row, gathering: Gathering) -> Iterator[FoundJob]:
    cells = row.cells
    tasks = _count(cells, "reqcpus", "ncpus", "alloccpus")
    hosts = _count(cells, "nnodes", "reqnodes", "allocnodes")
    requested_s = elapsed_s(cells.get("timelimit", ""), "Timelimit")
    kib_per_task, needs = _amounts(cells, hosts)
    ask = Ask(
        user_name=cells.get("user", ""),
        group_name=cells.get("group", ""),
        queue_name=cells.get("partition", ""),
        project_name=cells.get("account", ""),
        hosts=hosts,
        needs=needs,
        select=_select(cells.get("constraints", ""), gathering),
        constraint=cells.get("constraints", ""),
    )
    for trace_id, name in _ids(row, gathering):
        yield FoundJob(
            trace_id=trace_id,
            submit_s=stamp_s(cells["submit"], "Submit"),
            run_s=_run_s(cells, tasks, requested_s, gathering),
            tasks=tasks,
            requested_s=requested_s,
            requested_kib=kib_per_task,
            status=status_of(cells["state"]),
            details=Details(ask, trace_name=name, job_name=cells.get("jobname", "")),
        )


def _count(cells: dict[str, str], *names: str) -> int:
    """
    Return the first of several columns that holds a number above 0.
    """
    for name in names:
        text = cells.get(name, "")
        if text.isdecimal() and int(text) > 0:
            return int(text)
    return UNKNOWN


def _ids(row: Row, gathering: Gathering) -> list[tuple[int, str]]:
    """
    Return the number and the name of each job that a row stands for; the line's where it has none.
    """
    text = row.cells.get("jobid", "")
    if not text:
        return [(row.line_number, "")]
    if text.isdecimal():
        return [(int(text), "")]
    base, _, element = text.partition("_")
    raw = row.cells.get("jobidraw", "")
    if element.startswith("["):
        numbers = index_numbers(element.strip("[]"), "JobID")
        gathering.note("row of several array elements")
        gathering.note("array element of such a row", len(numbers))
        return [(int(base), f"{base}_{number}") for number in numbers]
    number = raw if raw.isdecimal() else base.partition("+")[0]
    return [(int(number), text)]


def _run_s(
    cells: dict[str, str], tasks: int, requested_s: int, gathering: Gathering
) -> int:
    """
    Return how long a job ran; UNKNOWN when it never did, or hasn't ended yet.
    """
    if cells["state"] in WAITING_OR_RUNNING:
        gathering.note("job that hadn't ended")
        return UNKNOWN
    if cells.get("nodelist", "").lower() == NO_HOSTS:
        return UNKNOWN
    if "start" not in cells and "elapsed" not in cells and "elapsedraw" not in cells:
        return _derived_run_s(cells, tasks, requested_s, gathering)
    if "start" in cells and is_unknown(cells["start"]):
        return UNKNOWN
    if cells.get("elapsedraw", ""):
        return int(cells["elapsedraw"])
    if cells.get("elapsed", ""):
        return elapsed_s(cells["elapsed"], "Elapsed")
    start, end = stamp_s(cells["start"], "Start"), stamp_s(cells.get("end", ""), "End")
    return end - start if UNKNOWN not in (start, end) else UNKNOWN


def _derived_run_s(
    cells: dict[str, str], tasks: int, requested_s: int, gathering: Gathering
) -> int:
    """
    Return the run time that processor time says, where neither times nor a duration are printed.

    CPUTimeRAW is the run time of each CPU that was given, which may be more than were asked for
    (whole hosts): the time limit bounds it, as Slurm ends a job there.
    """
    text = cells.get("cputimeraw", "")
    if not text or tasks <= 0:
        return UNKNOWN
    derived = int(text) // tasks
    gathering.note("run time taken from CPUTimeRAW / ReqCPUS")
    if 0 < requested_s < derived:
        gathering.note("such a run time cut at the time limit")
        return requested_s
    return derived


def status_of(state: str) -> int:
    """
    Return the SWF status of a state of Slurm.
    """
    word = state.partition(" ")[0].rstrip("+")
    if word == "COMPLETED":
        return COMPLETED
    if word in WAITING_OR_RUNNING or not word:
        return UNKNOWN
    return CANCELLED if word in ("CANCELLED", "REVOKED") else FAILED


def _amounts(cells: dict[str, str], hosts: int) -> tuple[int, tuple[TraceNeed, ...]]:
    """
    Return the memory per task in KiB, and what is asked for on each host.

    Old versions say per CPU or per node; newer ones give the whole job's memory.
    """
    kib, per = memory_kib(cells.get("reqmem", ""), "ReqMem")
    gpus = gpus_of(cells.get("alloctres", "")) or gpus_of(cells.get("reqtres", ""))
    share = max(1, hosts)
    needs = (TraceNeed(GPU, -(-gpus // share) * 1000),) if gpus else ()
    if kib == UNKNOWN or per == "c":
        return kib, needs
    if per == "":
        kib = -(-kib // share)
    return UNKNOWN, (TraceNeed(MEM, kib * 1000), *needs)


def _select(constraint: str, gathering: Gathering) -> tuple[tuple[tuple[str, str], ...], ...]:
    select = select_of(constraint)
    if select is None:
        gathering.note("constraint that can't be modelled")
        return ()
    return select

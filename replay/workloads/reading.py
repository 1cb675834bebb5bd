"""
Read a recorded workload of any known format, told apart by its content alone.

A format is known by what its first lines must look like; names of files mean nothing, as mirrors
rename them. This is the one place that knows all formats.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import final

from domain.errors import Refused
from replay.workloads.adjusting import Adjustments, adjusted
from replay.workloads.circles import without_circles
from replay.workloads.extended_swf import (
    COLUMN_NAMES,
    WITH_REQUEST,
    WITH_WORKFLOW,
    read_extended_swf,
)
from replay.workloads.gathering import open_lines
from replay.workloads.history import is_history, read_history
from replay.workloads.lsf_acct import JOB_FINISH, read_lsf_acct
from replay.workloads.lsf_cursor import type_of
from replay.workloads.lsf_events import read_lsf_events
from replay.workloads.openb import SHORT_HEADER, read_openb_pods
from replay.workloads.pbs_acct import RECORD, read_pbs_acct
from replay.workloads.sacct import read_sacct
from replay.workloads.sacct_json import read_sacct_json
from replay.workloads.sacct_rows import SEPARATOR, header_columns, layout_of
from replay.workloads.sim_events import read_sim_events
from replay.workloads.source import Workload
from replay.workloads.swf import FIELD_COUNT, read_swf

# So many lines that aren't blank or comments are looked at.
LINES_LOOKED_AT = 20
# A binary file may hold no line break at all.
LINE_BYTES = 1 << 16

_number = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?")
# The names that sacct's object may begin with.
_sacct_json = re.compile(r'\s*\{\s*"(?:meta|jobs|errors|warnings)"\s*:')


@final
@dataclass(frozen=True, slots=True)
class Format:
    """
    Describe a format.

    Args:
        name: What people call it.
        is_line: Whether a line can be one of it; the first that can, from the top, decides.
        read: Its reader.
        spans_lines: Whether what follows the line must be seen too.
    """

    name: str
    is_line: Callable[[str], bool]
    read: Callable[[Path], Workload]
    spans_lines: bool = False


def _has_numbers(line: str, counts: Iterable[int], numbers: int) -> bool:
    texts = line.split()
    return len(texts) in counts and all(map(_number.fullmatch, texts[:numbers]))


def _is_extended(line: str) -> bool:
    begins = tuple(line.split()[:4]) == COLUMN_NAMES
    return begins or _has_numbers(line, (WITH_WORKFLOW, WITH_REQUEST), 16)


def _is_lsf_events(line: str) -> bool:
    return type_of(line) is not None or re.match(r"#[0-9]+\s*$", line) is not None


def _is_sacct(line: str) -> bool:
    if SEPARATOR not in line or line.startswith("#"):
        return False
    return header_columns(line) is not None or layout_of(line.split(SEPARATOR)) is not None


def _is_pods(line: str) -> bool:
    return tuple(line.strip().split(",")[: len(SHORT_HEADER)]) == SHORT_HEADER


FORMATS = (
    Format("SWF", lambda line: line.lstrip().startswith(";")
           or _has_numbers(line, (FIELD_COUNT,), FIELD_COUNT), read_swf),
    Format("extended SWF (Alea)", _is_extended, read_extended_swf),
    Format("Slurm sacct --json", lambda text: _sacct_json.match(text) is not None,
           read_sacct_json, spans_lines=True),
    Format("Slurm sacct --parsable", _is_sacct, read_sacct),
    Format("events of a Slurm simulator",
           lambda line: re.match(r"\s*-dt\s+\S+\s+-e\s+\w+\s*\|", line) is not None,
           read_sim_events),
    Format("LSF lsb.acct", lambda line: type_of(line) == JOB_FINISH, read_lsf_acct),
    Format("LSF lsb.events", _is_lsf_events, read_lsf_events),
    Format("PBS accounting", lambda line: RECORD.match(line) is not None, read_pbs_acct),
    Format("openb pods", _is_pods, read_openb_pods),
)  # fmt: skip


def read_workload(
    path: Path, adjustments: Adjustments | None = None, *, unrecorded_run_s: int | None = None
) -> Workload:
    """
    Read a recorded workload.

    Args:
        path: The file, compressed by gzip or not; or a log's directory.
        adjustments: How it is changed before it is simulated; None for not at all.
        unrecorded_run_s: The run time of jobs in a table that records no times (openb).

    Raises:
        Refused: The file can't be read, is of no known format, or holds no job.
    """
    if is_history(path):
        # Jobs that really ran can't have waited for each other in a circle.
        workload = read_history(path)
        return workload if adjustments is None else adjusted(workload, adjustments)
    found = format_of(path)
    if found.read is read_openb_pods:
        workload = read_openb_pods(path, unrecorded_run_s=unrecorded_run_s)
    else:
        workload = found.read(path)
    workload = without_circles(workload)
    return workload if adjustments is None else adjusted(workload, adjustments)


def format_of(path: Path) -> Format:
    """
    Return the format of a file.

    Raises:
        Refused: The file can't be read, or no line at its beginning is of a known format.
    """
    with open_lines(path) as lines:
        first_lines = list(islice(iter(lambda: lines.readline(LINE_BYTES), ""), LINES_LOOKED_AT))
    for index, line in enumerate(first_lines):
        for known in FORMATS if line.strip() else ():
            if known.is_line("".join(first_lines[index:]) if known.spans_lines else line):
                return known
    what = "is empty" if not any(map(str.strip, first_lines)) else "is of no known format"
    names = ", ".join(("log or recording", *(known.name for known in FORMATS)))
    raise Refused("workload", what, str(path), f"Known: {names}.")

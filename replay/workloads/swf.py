"""
Read the Standard Workload Format: 18 blank-separated numbers a line, header lines begin with `;`.

Which jobs are left out, and under which name, are rules of the simulation and stand here once:
no size, then submit < 0, then run time < 0 (larger than the cluster: `Workload.fitting`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import final

from domain.errors import Refused
from replay.workloads.gathering import MALFORMED_NAMED_MAX, VALUE_MAX, open_lines
from replay.workloads.source import Header, Jobs, LeftOut, MalformedLine, Workload

FIELD_COUNT = 18
DIGITS_MAX = 4000
# Rows are gathered before they go into the columns: one call a column and batch.
BATCH_ROWS = 4096

# The fields that are read, by their number in the format less 1, in the order of _row.
_NAMES = {
    0: "job id", 1: "submit time", 3: "run time", 4: "allocated processors",
    7: "requested processors", 8: "requested time", 9: "requested memory", 10: "status",
    11: "user", 12: "group", 13: "executable", 14: "queue", 15: "partition",
    16: "preceding job", 17: "think time",
}  # fmt: skip
_wanted = itemgetter(*_NAMES)
# A key is one word before a colon and a blank: "http://..." in a continuation line is none.
_key_line = re.compile(r"\s*([A-Za-z]\w*):(?:\s+(.*))?$")


def read_swf(path: Path) -> Workload:
    """
    Read a workload in the Standard Workload Format, compressed by gzip or not (told by content).

    Args:
        path: The file.

    Returns:
        Its jobs in file order, what was left out, and its header.

    Raises:
        Refused: The file can't be read, or none of its lines is a job.
    """
    reading = _Reading()
    with open_lines(path) as lines:
        _read_lines(lines, reading)
    if reading.malformed and not reading.seen:
        first = reading.malformed[0]
        rule = f"holds no job line; line {first.line_number} {first.rule}"
        raise Refused("workload", rule, str(path), "It must be in the Standard Workload Format.")
    header = _header(reading.header_lines)
    return Workload(
        name=path.name,
        header=header,
        start_unix_s=_start_unix_s(header),
        jobs=reading.jobs,
        left_out=reading.left_out(),
        malformed_lines=tuple(reading.malformed),
    )


@final
@dataclass(slots=True)
class _Reading:
    """
    Hold what has been read so far.
    """

    jobs: Jobs = field(default_factory=Jobs.empty)
    header_lines: list[str] = field(default_factory=list)
    seen: int = 0
    no_size: int = 0
    submit_negative: int = 0
    run_time_negative: int = 0
    malformed_count: int = 0
    malformed: list[MalformedLine] = field(default_factory=list)

    def add_malformed(self, line_number: int, rule: str) -> None:
        """
        Count a line that is no job, and name it while there is room.
        """
        self.malformed_count += 1
        if len(self.malformed) < MALFORMED_NAMED_MAX:
            self.malformed.append(MalformedLine(line_number, rule))

    def left_out(self) -> LeftOut:
        """
        Return the counts of what can't be simulated.
        """
        return LeftOut(
            no_size=self.no_size,
            submit_negative=self.submit_negative,
            run_time_negative=self.run_time_negative,
            malformed=self.malformed_count,
        )


def _read_lines(lines: Iterable[str], reading: _Reading) -> None:
    """
    Sort lines into header, malformed, left out and jobs.
    """
    # hot: 450,000 lines of the largest trace; `make bench` shows lines per second.
    batch: list[tuple[int, ...]] = []
    for number, line in enumerate(lines, 1):
        texts = line.split()
        if len(texts) != FIELD_COUNT or texts[0].startswith(";"):
            _read_other(line, texts, number, reading)
            continue
        try:
            values = tuple(map(int, _wanted(texts)))
        except ValueError:
            values = ()
        if not values or max(values) > VALUE_MAX or min(values) < -VALUE_MAX or "_" in line:
            values = _values_or_malformed(texts, number, reading)
            if not values:
                continue
        reading.seen += 1
        row = _row(values, reading)
        if row:
            batch.append(row)
            if len(batch) == BATCH_ROWS:
                reading.jobs.extend(batch)
                batch.clear()
    reading.jobs.extend(batch)


def _row(values: tuple[int, ...], reading: _Reading) -> tuple[int, ...]:
    """
    Return a job's row in the order of TraceJob, or () when a rule leaves it out.
    """
    trace_id, submit_s, run_s, allocated, requested, *rest = values
    tasks = requested if requested > 0 else allocated
    if tasks <= 0:
        reading.no_size += 1
    elif submit_s < 0:
        reading.submit_negative += 1
    elif run_s < 0:
        reading.run_time_negative += 1
    else:
        return (trace_id, submit_s, run_s, tasks, *rest)
    return ()


def _read_other(line: str, texts: list[str], number: int, reading: _Reading) -> None:
    """
    Take a line that isn't a plain job line: header, blank, or malformed.
    """
    if not texts:
        return
    if texts[0].startswith(";"):
        reading.header_lines.append(line.strip().removeprefix(";").rstrip())
    else:
        reading.add_malformed(number, f"has {len(texts)} fields, not {FIELD_COUNT}")


def _values_or_malformed(texts: list[str], number: int, reading: _Reading) -> tuple[int, ...]:
    """
    Return a line's values where some are written as decimals, or () after counting it malformed.
    """
    values = []
    for index, name in _NAMES.items():
        value = _whole(texts[index])
        if value is None:
            rule = f"field {index + 1} ({name}) is no whole number: {texts[index][:40]!r}"
            reading.add_malformed(number, rule)
            return ()
        if abs(value) > VALUE_MAX:
            rule = f"field {index + 1} ({name}) is beyond {VALUE_MAX}"
            reading.add_malformed(number, rule)
            return ()
        values.append(value)
    return tuple(values)


def _whole(text: str) -> int | None:
    """
    Return a whole number that may be written with a fraction of zeros ("489.00"), else None.
    """
    match = re.fullmatch(r"([+-]?[0-9]+)(?:\.0*)?", text)
    if match is None:
        return None
    # Python reads no more than 4,300 digits; so many are beyond any bound anyway.
    return int(match[1]) if len(match[1]) <= DIGITS_MAX else VALUE_MAX + 1


# ------------------------------------------------------------------------------------ the header


def _header(lines: list[str]) -> Header:
    """
    Return keys with values, and remarks.

    A line without a key continues the value above it until a blank line; what has no value above
    it is a remark.
    """
    entries: list[tuple[str, str]] = []
    remarks: list[str] = []
    is_continuing = False
    for line in lines:
        match = _key_line.match(line)
        if match:
            entries.append((match[1], (match[2] or "").strip()))
            is_continuing = True
        elif not line.strip():
            is_continuing = False
        elif is_continuing:
            key, value = entries[-1]
            entries[-1] = (key, f"{value} {line.strip()}".strip())
        else:
            remarks.append(line.strip())
    return Header(tuple(entries), tuple(remarks))


def header_number(header: Header, key: str) -> int | None:
    """
    Return the whole number that begins the first value of a key, or None without the key.

    Raises:
        Refused: The value doesn't begin with a whole number.
    """
    text = header.first(key)
    if text is None:
        return None
    match = re.match(r"([0-9]{1,12})(?=\s|$)", text)
    if match is None:
        raise Refused(key, "must be a whole number in the workload's header", text)
    return int(match[1])


def _start_unix_s(header: Header) -> int:
    return header_number(header, "UnixStartTime") or 0

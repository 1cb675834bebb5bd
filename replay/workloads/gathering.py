"""
Gather what a reader finds: jobs, what is left out and under which rule, malformed lines, notes.

Which jobs are left out, and under which name, are rules of the simulation and the same for every
format: no size, then submit < 0, then run time < 0 (it never ran, or hadn't ended when the trace
did).
"""

from __future__ import annotations

import gzip
import io
import zlib
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from domain.errors import Refused
from domain.given_files import unreadable
from replay.workloads.details import NO_DETAILS, UNKNOWN, DetailColumns, Details
from replay.workloads.source import Header, Jobs, LeftOut, MalformedLine, Workload

GZIP_MAGIC = b"\x1f\x8b"
# A trace of 30,000 years in seconds, a petabyte in KiB: beyond it a number is a slip.
VALUE_MAX = 10**12
# A job of more tasks than this can't be submitted; no machine of any trace has as many.
TASKS_MAX = 1_000_000
# So many malformed lines are named one by one; all are counted.
MALFORMED_NAMED_MAX = 20

FAILED, COMPLETED, CANCELLED = 0, 1, 5


class BadLineError(Exception):
    """
    Say which rule a line breaks; it stays inside the readers, which count and name the line.
    """

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule


@contextmanager
def open_lines(path: Path) -> Iterator[io.TextIOWrapper]:
    """
    Give the lines of a file, unpacked when its first bytes are gzip's; ends of lines as written.

    Raises:
        NotFound: There is no such file.
        Refused: The file can't be read, or its packed bytes are damaged.
    """
    try:
        with path.open("rb") as raw:
            is_packed = raw.peek(2).startswith(GZIP_MAGIC)
            source = gzip.GzipFile(fileobj=raw) if is_packed else raw
            # Publishers' names come in any encoding; what is computed with is plain ASCII.
            with io.TextIOWrapper(source, encoding="utf-8", errors="replace") as lines:
                yield lines
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable("workload", path, error) from error


@final
@dataclass(frozen=True, slots=True)
class FoundJob:
    """
    Hold one job as a reader found it; UNKNOWN where its format doesn't say.

    Args:
        trace_id: A number that tells it apart in messages.
        submit_s: When it was submitted, in the trace's own seconds; below 0 when unknown.
        run_s: How long it ran; below 0 when it never ran.
        tasks: How many tasks it asks for; 0 or less when unknown.
        submit_part_us: What the submit time has beyond whole seconds.
        run_part_us: What the run time has beyond whole seconds.
    """

    trace_id: int
    submit_s: int
    run_s: int
    tasks: int
    requested_s: int = UNKNOWN
    requested_kib: int = UNKNOWN
    status: int = UNKNOWN
    user: int = UNKNOWN
    group: int = UNKNOWN
    executable: int = UNKNOWN
    queue: int = UNKNOWN
    partition: int = UNKNOWN
    preceding_id: int = UNKNOWN
    think_s: int = UNKNOWN
    submit_part_us: int = 0
    run_part_us: int = 0
    details: Details = NO_DETAILS

    def row(self) -> tuple[int, ...]:
        """
        Return the values in the order of TraceJob's fields.
        """
        return (
            self.trace_id, self.submit_s, self.run_s, self.tasks, self.requested_s,
            self.requested_kib, self.status, self.user, self.group, self.executable, self.queue,
            self.partition, self.preceding_id, self.think_s,
        )  # fmt: skip


@final
@dataclass(slots=True)
class Gathering:
    """
    Hold what a reader has found so far.
    """

    rows: list[tuple[int, ...]] = field(default_factory=list)
    details: DetailColumns = field(default_factory=DetailColumns)
    parts_us: array[int] = field(default_factory=lambda: array("q"))
    run_parts_us: array[int] = field(default_factory=lambda: array("q"))
    notes: dict[str, int] = field(default_factory=dict)
    malformed: list[MalformedLine] = field(default_factory=list)
    malformed_count: int = 0
    seen: int = 0
    no_size: int = 0
    submit_negative: int = 0
    run_time_negative: int = 0

    def add(self, job: FoundJob) -> None:
        """
        Keep a job, or count it under the first rule that leaves it out.

        Raises:
            BadLineError: A number of it is beyond what any trace holds.
        """
        row = job.row()
        if max(row) > VALUE_MAX or min(row) < -VALUE_MAX or job.tasks > TASKS_MAX:
            raise BadLineError(f"holds a number beyond {VALUE_MAX}, or more than {TASKS_MAX} tasks")
        self.seen += 1
        if job.tasks <= 0:
            self.no_size += 1
        elif job.submit_s < 0:
            self.submit_negative += 1
        elif job.run_s < 0:
            self.run_time_negative += 1
        else:
            self.rows.append(row)
            self.details.append(job.details)
            self.parts_us.append(job.submit_part_us)
            self.run_parts_us.append(job.run_part_us)

    def add_malformed(self, line_number: int, rule: str) -> None:
        """
        Count a line that is no job, and name it while there is room.
        """
        self.malformed_count += 1
        if len(self.malformed) < MALFORMED_NAMED_MAX:
            self.malformed.append(MalformedLine(line_number, rule))

    def note(self, what: str, count: int = 1) -> None:
        """
        Count something that its user should know and that leaves no job out.
        """
        self.notes[what] = self.notes.get(what, 0) + count

    def workload(self, path: Path, header: Header, *, begins_s: int | None = None) -> Workload:
        """
        Return the workload that was found.

        Args:
            path: The file, for its name.
            header: What it says about itself.
            begins_s: When it begins; at the first submission unless given.

        Raises:
            Refused: Nothing in the file was a job, and something was malformed.
        """
        if self.malformed and not self.seen:
            first = self.malformed[0]
            rule = f"holds no job; line {first.line_number} {first.rule}"
            raise Refused("workload", rule, str(path))
        jobs = Jobs.empty()
        if self.rows:
            jobs.extend(self.rows)
        parts = self.parts_us if any(self.parts_us) else None
        run_parts = self.run_parts_us if any(self.run_parts_us) else None
        columns = jobs.columns()
        return Workload(
            name=path.name,
            header=header,
            start_unix_s=0,
            jobs=Jobs(
                *columns, details=self.details, submit_part_us=parts, run_part_us=run_parts
            ),
            left_out=LeftOut(
                no_size=self.no_size,
                submit_negative=self.submit_negative,
                run_time_negative=self.run_time_negative,
                malformed=self.malformed_count,
            ),
            malformed_lines=tuple(self.malformed),
            notes=tuple(self.notes.items()),
            begins_s=min(jobs.submit_s, default=0) if begins_s is None else begins_s,
        )

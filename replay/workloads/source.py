"""
Say what every reader of recorded workloads gives: jobs as columns, a header, and what was left out.

A trace has hundreds of thousands of jobs and each is looked at a few times, so jobs are columns of
machine integers (110 bytes a job); `Jobs.job` makes a row of one when a row is wanted.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from itertools import compress
from pathlib import Path
from typing import Protocol, final

from replay.cluster_spec import ClusterSpec
from replay.workloads.details import NO_DETAILS, DetailColumns, Details
from replay.workloads.details import UNKNOWN as UNKNOWN  # noqa: PLC0414 - whoever reads jobs needs it

SECOND_US = 1_000_000


@final
@dataclass(frozen=True, slots=True)
class TraceJob:
    """
    Hold one job of a workload; UNKNOWN (-1) where the trace doesn't say.

    Args:
        trace_id: The job's id in the trace.
        submit_s: Submit time in the trace's own seconds, not negative.
        run_s: How long it ran, not negative; holds even beyond the requested time.
        tasks: How many tasks it asks for, at least 1.
        requested_s: The run time that its user asked for.
        requested_kib: The memory that its user asked for, per task.
        preceding_id: Trace id of the job that it waits for.
        think_s: Seconds between the end of that one and this submission.
        details: What richer formats say besides: names, amounts, constraints.
    """

    trace_id: int
    submit_s: int
    run_s: int
    tasks: int
    requested_s: int
    requested_kib: int
    status: int
    user: int
    group: int
    executable: int
    queue: int
    partition: int
    preceding_id: int
    think_s: int
    details: Details = field(default=NO_DETAILS, kw_only=True)


JOB_FIELDS = tuple(each.name for each in fields(TraceJob) if each.name != "details")


@final
@dataclass(frozen=True, slots=True)
class Jobs:
    """
    Hold the jobs of a workload as columns of equal length, in file order; names as in TraceJob.

    Args:
        details: Names, amounts and constraints, None for a format without any.
        submit_part_us: What the submit times have beyond whole seconds, None for nothing.
        run_part_us: What the run times have beyond whole seconds, None for nothing.
        estimate_s: Run times that the scheduler is told, for planning; None for none.
    """

    trace_id: array[int]
    submit_s: array[int]
    run_s: array[int]
    tasks: array[int]
    requested_s: array[int]
    requested_kib: array[int]
    status: array[int]
    user: array[int]
    group: array[int]
    executable: array[int]
    queue: array[int]
    partition: array[int]
    preceding_id: array[int]
    think_s: array[int]
    details: DetailColumns | None = field(default=None, kw_only=True)
    submit_part_us: array[int] | None = field(default=None, kw_only=True)
    run_part_us: array[int] | None = field(default=None, kw_only=True)
    estimate_s: array[int] | None = field(default=None, kw_only=True)

    @staticmethod
    def empty() -> Jobs:
        """
        Return columns without jobs, to be extended.
        """
        return Jobs(*(array("q") for _ in JOB_FIELDS))

    def columns(self) -> tuple[array[int], ...]:
        """
        Return the columns in the order of TraceJob's fields.
        """
        return tuple(getattr(self, name) for name in JOB_FIELDS)

    def extend(self, rows: list[tuple[int, ...]]) -> None:
        """
        Append rows, each with its values in the order of TraceJob's fields.
        """
        for column, values in zip(self.columns(), zip(*rows, strict=True), strict=False):
            column.extend(values)

    def job(self, index: int) -> TraceJob:
        """
        Return the job at an index of the file order, from 0.
        """
        row = (column[index] for column in self.columns())
        if self.details is None:
            return TraceJob(*row)
        return TraceJob(*row, details=self.details.job(index))

    def run_us(self, index: int) -> int:
        """
        Return how long the job at an index ran, in microseconds.
        """
        part_us = 0 if self.run_part_us is None else self.run_part_us[index]
        return self.run_s[index] * SECOND_US + part_us

    def kept(self, is_kept: list[bool]) -> Jobs:
        """
        Return the jobs that are kept, one boolean for each job.
        """
        columns = (array("q", compress(column, is_kept)) for column in self.columns())
        return Jobs(
            *columns,
            details=self.details and self.details.kept(is_kept),
            submit_part_us=_compressed(self.submit_part_us, is_kept),
            run_part_us=_compressed(self.run_part_us, is_kept),
            estimate_s=_compressed(self.estimate_s, is_kept),
        )

    def __len__(self) -> int:
        return len(self.trace_id)

    def __iter__(self) -> Iterator[TraceJob]:
        return map(self.job, range(len(self)))


def _compressed(column: array[int] | None, is_kept: list[bool]) -> array[int] | None:
    return None if column is None else array("q", compress(column, is_kept))


@final
@dataclass(frozen=True, slots=True)
class LeftOut:
    """
    Count the jobs that can't be simulated, each under the first rule that it breaks, in this order.

    Args:
        no_size: Neither requested nor allocated processors are known.
        submit_negative: Submitted before the trace begins.
        run_time_negative: Never ran.
        larger_than_cluster: Asks for more tasks than the cluster has slots.
        malformed: Lines that aren't jobs at all.
        in_a_circle: Waits for its own end, through jobs that it waits for.
        fits_no_hosts: Asks for what no hosts of the empty cluster have, though not for more slots.
    """

    no_size: int = 0
    submit_negative: int = 0
    run_time_negative: int = 0
    larger_than_cluster: int = 0
    malformed: int = 0
    in_a_circle: int = 0
    fits_no_hosts: int = 0

    def by_name(self) -> tuple[tuple[str, int], ...]:
        """
        Return each rule's name, as people see it, with its count.

        The last two, which only richer formats can break, are there only where they were broken.
        """
        names = (
            ("no size", self.no_size),
            ("submit < 0", self.submit_negative),
            ("run time < 0", self.run_time_negative),
            ("larger than the cluster", self.larger_than_cluster),
            ("malformed line", self.malformed),
        )
        others = (("in a circle", self.in_a_circle), ("fits no hosts", self.fits_no_hosts))
        return (*names, *(pair for pair in others if pair[1]))

    @property
    def total(self) -> int:
        """
        Return how many jobs and lines were left out in all.
        """
        return sum(count for _, count in self.by_name())


@final
@dataclass(frozen=True, slots=True)
class MalformedLine:
    """
    Name a line that is no job, and the rule that it breaks.
    """

    line_number: int
    rule: str


@final
@dataclass(frozen=True, slots=True)
class Header:
    """
    Hold what a workload file says about itself.

    Args:
        entries: Key and value in file order; a key may come again, a continued value is one text.
        remarks: Header lines without a key, such as drawings.
    """

    entries: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()

    def values(self, key: str) -> tuple[str, ...]:
        """
        Return every value of a key, in file order.
        """
        return tuple(value for name, value in self.entries if name == key)

    def first(self, key: str) -> str | None:
        """
        Return the first value of a key, or None when the header doesn't have it.
        """
        return next(iter(self.values(key)), None)


@final
@dataclass(frozen=True, slots=True)
class Workload:
    """
    Hold a workload as it was read.

    Args:
        name: The file's name, without folders.
        header: What the file says about itself.
        start_unix_s: What the trace's second 0 is in Unix time; 0 when unknown.
        jobs: The jobs that can be simulated, in file order.
        left_out: The counts of all others.
        malformed_lines: The first malformed lines, for a message; left_out has the exact count.
        notes: What else its reader has to say, each with a count: lines that are no jobs by their
            nature, values that had to be derived, requests that aren't modelled.
        begins_s: When the recording begins, in the trace's own seconds; the cluster is set up then.
        cluster: The cluster that it ran on, None where the trace doesn't hold it.
    """

    name: str
    header: Header
    start_unix_s: int
    jobs: Jobs
    left_out: LeftOut
    malformed_lines: tuple[MalformedLine, ...] = ()
    notes: tuple[tuple[str, int], ...] = ()
    begins_s: int = 0
    cluster: ClusterSpec | None = None

    def on(self, cluster: ClusterSpec) -> Workload:
        """
        Return the workload with the cluster that it ran on.
        """
        return replace(self, cluster=cluster)

    def with_jobs(self, jobs: Jobs) -> Workload:
        """
        Return the workload with other jobs.
        """
        return replace(self, jobs=jobs)

    def submits_us(self) -> array[int]:
        """
        Return when each job was submitted, in microseconds of Unix time.
        """
        origin_us = self.start_unix_s * SECOND_US
        parts = self.jobs.submit_part_us
        if parts is None:
            return array("q", (origin_us + value * SECOND_US for value in self.jobs.submit_s))
        pairs = zip(self.jobs.submit_s, parts, strict=True)
        return array("q", (origin_us + value * SECOND_US + part for value, part in pairs))

    def arrival_order(self) -> list[int]:
        """
        Return the indexes of the jobs by submit time, ties in file order.
        """
        parts = self.jobs.submit_part_us
        key = self.jobs.submit_s if parts is None else self.submits_us()
        return sorted(range(len(self.jobs)), key=key.__getitem__)

    def fitting(self, slots: int) -> Workload:
        """
        Return the workload without the jobs that ask for more tasks than the cluster has slots.
        """
        fits = [tasks <= slots for tasks in self.jobs.tasks]
        larger = fits.count(False)
        if not larger:
            return self
        counted = replace(
            self.left_out, larger_than_cluster=self.left_out.larger_than_cluster + larger
        )
        return replace(self, jobs=self.jobs.kept(fits), left_out=counted)


class WorkloadReader(Protocol):
    """
    Read a workload file; refuse one that is none, naming what is wrong.
    """

    def __call__(self, path: Path) -> Workload:
        """
        Return the workload in the file.

        Raises:
            Refused: The file can't be read, or holds no job of this format at all.
        """

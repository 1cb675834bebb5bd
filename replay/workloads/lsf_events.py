"""
Read LSF's `lsb.events` by folding its records: each job's last start, its end, how it ended.

Status words are bits: 1 pending, 4 running, 32 EXIT, 64 DONE, 128 post-processing done. A job that
is forwarded, comes back and is started again counts from its last start.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from replay.workloads.details import UNKNOWN, Ask, Details
from replay.workloads.gathering import (
    CANCELLED,
    COMPLETED,
    FAILED,
    BadLineError,
    FoundJob,
    Gathering,
    open_lines,
)
from replay.workloads.lsf_cursor import Record, records_of, run_limit_of
from replay.workloads.source import Header, Workload

PENDING_BIT, EXIT_BIT, DONE_BIT = 1, 32, 64
LIMIT_COUNT = 11
USAGE_FIELDS = 19
MODELLED = frozenset(
    "JOB_NEW JOB_START JOB_STATUS JOB_SWITCH JOB_REQUEUE JOB_START_ACCEPT JOB_EXECUTE JOB_CLEAN"
    .split()
)
# They say nothing about a job's size, times or end.
OF_NO_CONSEQUENCE = frozenset(
    "MBD_START MBD_DIE LOAD_INDEX LOG_SWITCH JOB_FORWARD JOB_ACCEPTACK".split()
)

Key = tuple[int, int]


@final
@dataclass(slots=True)
class FoldedJob:
    """
    Hold what the records so far say about one job.
    """

    job_id: int
    index: int
    tasks: int
    submit_s: int
    user: str
    queue: str
    resreq: str
    run_limit_s: int
    project: str = ""
    name: str = ""
    start_s: int = UNKNOWN
    end_s: int = UNKNOWN
    status: int = UNKNOWN
    has_elements: bool = False


@final
@dataclass(slots=True)
class Fold:
    """
    Hold the jobs by id and index, in order of submission, and those whose id came again.
    """

    jobs: dict[Key, FoldedJob] = field(default_factory=dict)
    ended: list[FoldedJob] = field(default_factory=list)

    def all_jobs(self) -> list[FoldedJob]:
        """
        Return every job.
        """
        return [*self.ended, *self.jobs.values()]


def read_lsf_events(path: Path) -> Workload:
    """
    Read an event log of LSF.

    Raises:
        Refused: The file can't be read, or none of its records is of a job.
    """
    gathering = Gathering()
    remarks: list[str] = []
    fold = Fold()
    with open_lines(path) as lines:
        for record in records_of(lines, remarks):
            if isinstance(record, tuple):
                gathering.add_malformed(*record)
                continue
            try:
                _apply(record, fold, gathering)
            except BadLineError as error:
                gathering.add_malformed(record.line_number, error.rule)
    for job in fold.all_jobs():
        if job.has_elements:
            gathering.note("array as a whole, whose elements are jobs")
        else:
            gathering.add(_found(job, gathering))
    return gathering.workload(path, Header(remarks=tuple(remarks)))


def _apply(record: Record, fold: Fold, gathering: Gathering) -> None:
    """
    Fold one record in.
    """
    kind = record.type_name
    if kind == "JOB_NEW":
        job = _new(record)
        key = (job.job_id, job.index)
        if key in fold.jobs:
            fold.ended.append(fold.jobs.pop(key))
        fold.jobs[key] = job
    elif kind == "JOB_START":
        _start(record, fold, gathering)
    elif kind == "JOB_STATUS":
        _status(record, fold, gathering)
    elif kind == "JOB_SWITCH":
        record.skip("userId")
        job_id, queue, index = record.whole("jobId"), record.text("queue"), record.whole("idx")
        for switched in _known(fold, (job_id, index), gathering):
            switched.queue = queue
    elif kind == "JOB_REQUEUE":
        key = (record.whole("jobId"), record.whole("idx"))
        for requeued in _known(fold, key, gathering):
            requeued.start_s = requeued.end_s = requeued.status = UNKNOWN
    elif kind not in MODELLED and kind not in OF_NO_CONSEQUENCE:
        gathering.note(f"record {kind}, which isn't modelled")


def _known(fold: Fold, key: Key, gathering: Gathering) -> list[FoldedJob]:
    """
    Return the job of an id and index, none when its JOB_NEW is in an older log.
    """
    job = fold.jobs.get(key) or _element(fold, key)
    if job is None:
        gathering.note("record of a job whose submission isn't in this log")
        return []
    return [job]


def _element(fold: Fold, key: Key) -> FoldedJob | None:
    """
    Return a new element of an array at its first record: an array is submitted as one.
    """
    whole = fold.jobs.get((key[0], 0))
    if whole is None or key[1] <= 0:
        return None
    element = FoldedJob(
        whole.job_id, key[1], whole.tasks, whole.submit_s, whole.user, whole.queue, whole.resreq,
        whole.run_limit_s, whole.project, whole.name,
    )  # fmt: skip
    whole.has_elements = True
    fold.jobs[key] = element
    return element


def _new(record: Record) -> FoldedJob:
    job_id = record.whole("jobId")
    record.skip("userId options")
    tasks, submit_s = record.whole("numProcessors"), record.whole("submitTime")
    record.skip("beginTime termTime sigValue chkpntPeriod restartPid")
    user = record.text("userName")
    limits = [record.text("rLimits") for _ in range(LIMIT_COUNT)]
    record.skip("hostSpec hostFactor umask")
    queue, resreq = record.text("queue"), record.text("resReq")
    record.skip("fromHost cwd chkpntDir inFile outFile errFile subHomeDir jobFile")
    record.part_zero()
    record.texts("askedHosts")
    record.skip("dependCond preExecCmd")
    name = record.text("jobName")
    record.skip("command")
    # Of each file to be copied: what, to where, how.
    for _ in range(record.whole("nxf")):
        record.skip("subFn execFn options")
    record.skip("mailUser")
    project = record.text("projectName")
    limit = run_limit_of(limits)
    return FoldedJob(
        job_id, 0, tasks, submit_s, user, queue, resreq, limit, project=project, name=name
    )


def _start(record: Record, fold: Fold, gathering: Gathering) -> None:
    job_id = record.whole("jobId")
    record.skip("jStatus jobPid jobPGid hostFactor")
    record.texts("execHosts")
    record.skip("queuePreCmd queuePostCmd jFlags userGroup")
    key = (job_id, record.whole("idx"))
    for job in _known(fold, key, gathering):
        job.start_s, job.end_s, job.status = record.time_s, UNKNOWN, UNKNOWN


def _status(record: Record, fold: Fold, gathering: Gathering) -> None:
    job_id, status = record.whole("jobId"), record.whole("jStatus")
    record.skip("reason subreasons cpuTime")
    end_s = record.whole("endTime")
    if record.whole("ru"):
        record.skip("lsfRusage " * USAGE_FIELDS)
    record.skip("exitStatus")
    key = (job_id, record.whole("idx"))
    for job in _known(fold, key, gathering):
        if status & (EXIT_BIT | DONE_BIT):
            job.status = status
            job.end_s = end_s if end_s > 0 else record.time_s
        elif status & PENDING_BIT:
            job.start_s = job.end_s = job.status = UNKNOWN


def _found(job: FoldedJob, gathering: Gathering) -> FoundJob:
    has_ended = job.status != UNKNOWN
    if not has_ended:
        gathering.note("job that hadn't ended")
    has_run = has_ended and job.start_s != UNKNOWN
    if has_ended and not job.status & DONE_BIT:
        status = FAILED if has_run else CANCELLED
    else:
        status = COMPLETED if has_ended else UNKNOWN
    return FoundJob(
        trace_id=job.job_id,
        submit_s=job.submit_s,
        run_s=job.end_s - job.start_s if has_run else UNKNOWN,
        tasks=job.tasks,
        requested_s=job.run_limit_s,
        status=status,
        details=Details(
            Ask(
                user_name=job.user, queue_name=job.queue, project_name=job.project,
                constraint=job.resreq,
            ),
            trace_name=f"{job.job_id}[{job.index}]" if job.index else "",
            job_name=job.name,
        ),
    )  # fmt: skip

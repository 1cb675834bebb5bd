"""
Read LSF's `lsb.acct`: one JOB_FINISH record for each job that ended.

A record is read by position up to the job's description; what comes after it is optional, and one
cut off there is whole. A slot is a processor asked for; the run time is from the start to the
event.
"""

from __future__ import annotations

from pathlib import Path

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

JOB_FINISH = "JOB_FINISH"
DONE_BIT = 64
LIMITS_KEY = "1086"
USAGE_FIELDS = 19
TO_DESCRIPTION = (
    "maxRMem maxRSwap inFileSpool commandSpool rsvId sla exceptMask additionalInfo exitInfo "
    "warningAction warningTimePeriod chargedSAAP licenseProject app postExecCmd "
    "runtimeEstimation jobGroupName requeueEvalues options2 resizeNotifyCmd lastResizeTime rsvId2 "
    "jobDescription"
)


def read_lsf_acct(path: Path) -> Workload:
    """
    Read an accounting log of LSF.

    Raises:
        Refused: The file can't be read, or none of its records is of a job.
    """
    gathering = Gathering()
    remarks: list[str] = []
    with open_lines(path) as lines:
        for record in records_of(lines, remarks):
            if isinstance(record, tuple):
                gathering.add_malformed(*record)
            elif record.type_name != JOB_FINISH:
                gathering.note(f"record {record.type_name}, which ends no job")
            else:
                try:
                    gathering.add(_job(record, gathering))
                except BadLineError as error:
                    gathering.add_malformed(record.line_number, error.rule)
    return gathering.workload(path, Header(remarks=tuple(remarks)))


def _job(record: Record, gathering: Gathering) -> FoundJob:
    job_id = record.whole("jobId")
    record.skip("userId options")
    tasks, submit_s = record.whole("numProcessors"), record.whole("submitTime")
    record.skip("beginTime termTime")
    start_s = record.whole("startTime")
    user, queue, resreq = (record.text(name) for name in ("userName", "queue", "resReq"))
    record.skip("dependCond preExecCmd fromHost cwd inFile outFile errFile jobFile")
    record.part_zero()
    record.texts("askedHosts")
    record.texts("execHosts")
    status = record.whole("jStatus")
    record.skip("hostFactor")
    name = record.text("jobName")
    record.skip("command")
    record.skip("usage " * USAGE_FIELDS)
    record.skip("mailUser")
    project = record.text("projectName")
    record.skip("exitStatus maxNumProcessors loginShell timeEvent")
    index = record.whole("idx")
    record.skip(TO_DESCRIPTION)
    if record.is_repaired:
        gathering.note("record with two fields glued together, parted")
    if index < 0 and start_s == 0:
        gathering.note("array as a whole, which never runs itself")
    run_limit_s, effective = _optional(record)
    return FoundJob(
        trace_id=job_id,
        submit_s=submit_s,
        run_s=record.time_s - start_s if start_s > 0 else UNKNOWN,
        tasks=tasks,
        requested_s=run_limit_s,
        status=_status(status, start_s),
        details=Details(
            Ask(
                user_name=user, queue_name=queue, project_name=project,
                constraint=resreq or effective,
            ),
            trace_name=f"{job_id}[{index}]" if index > 0 else "",
            job_name=name,
        ),
    )  # fmt: skip


def _status(status: int, start_s: int) -> int:
    if status & DONE_BIT:
        return COMPLETED
    return FAILED if start_s > 0 else CANCELLED


def _optional(record: Record) -> tuple[int, str]:
    """
    Return the run limit and the effective requirement, as far as the record has them.

    The run limit stands before options3, unlike in some published tables: real files have days in
    seconds (2419200) there.
    """
    run_limit_s, effective = UNKNOWN, ""
    try:
        for _ in range(record.whole("extensions")):
            key, value = record.text("key"), record.text("value")
            if key == LIMITS_KEY:
                run_limit_s = run_limit_of(value.split())
        for _ in range(record.whole("numHostRusage")):
            record.skip("host mem swap utime stime")
            record.texts("extended usage of the host")
        limit = record.whole("runLimit")
        run_limit_s = limit if limit > 0 else run_limit_s
        record.skip("options3 avgMem")
        effective = record.text("effectiveResReq")
    except BadLineError:
        # Each release has appended fields: an older record ends somewhere here.
        pass
    return run_limit_s, effective

"""
Tables of jobs: what was asked, their states as intervals, attempts, allocations, usage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from projections.audit.schema import Index, table

# Only a modification changes these, which writes the whole row again.
_ASKED = (
    "job_id number array_index user user_group queue project profile name command uses_shell cwd "
    "stdin stdout stderr pre_exec post_exec transfers umask env_count tasks_min tasks_max resreq "
    "needs hosts_asked is_exclusive dependency begin_us deadline_us user_priority run_limit_us "
    "run_estimate_us submission_key request_digest more submitted_by submit_position submit_us"
)


@table(
    "jobs",
    key="job_key",
    fixed=_ASKED,
    indexes=(
        Index(("job_id",)),
        Index(("user", "submit_us")),
        Index(("queue", "submit_us")),
        Index(("project", "submit_us"), where="project <> ''"),
        Index(("state", "queue"), where="state NOT IN ('DONE', 'EXIT')"),
        Index(("finish_us",), where="finish_us IS NOT NULL"),
        Index(("submission_key",), where="submission_key <> ''"),
    ),
)
@dataclass(slots=True)
class JobRow:
    """
    One job, or one element of an array: what its user asked for, and where it is now.
    """

    job_key: Annotated[int, "number * 1000000 + array index: sorts jobs in order of creation"]
    job_id: Annotated[str, "What users call it: 4711, or 4711[3] for an array element"]
    number: Annotated[int, "Job number, shared by the elements of an array"]
    array_index: Annotated[int, "Index in its array, 0 for a job that is no element"]
    user: Annotated[str, "Whose job it is"]
    user_group: Annotated[str, "User group, empty when none"]
    queue: Annotated[str, "Queue"]
    project: Annotated[str, "Project, empty when none"]
    profile: Annotated[str, "Application profile, empty when none"]
    name: Annotated[str, "Name that the user gave it"]
    command: Annotated[
        str, "Command line, arguments quoted as a shell would want them; private to its user"
    ]
    uses_shell: Annotated[int, "1 when the command is a text for a shell"]
    cwd: Annotated[str, "Working directory; private to its user"]
    stdin: Annotated[str, "Standard input; private to its user"]
    stdout: Annotated[str, "Standard output; private to its user"]
    stderr: Annotated[str, "Standard error; private to its user"]
    pre_exec: Annotated[str, "Shell text that runs before the command; private to its user"]
    post_exec: Annotated[str, "Shell text that runs after it; private to its user"]
    transfers: Annotated[str, "Files to copy, one a line; private to its user"]
    umask: Annotated[int | None, "File mode creation mask"]
    env_count: Annotated[
        int, "How many environment variables it was given; they themselves stay in the log"
    ]
    tasks_min: Annotated[int, "Fewest tasks it starts with"]
    tasks_max: Annotated[int, "Most tasks it can use"]
    resreq: Annotated[str, "Resource requirement as written, one line an option"]
    needs: Annotated[
        str, "Amounts it reserves on each host, JSON: resource, thousandths, per task or per host"
    ]
    hosts_asked: Annotated[str, "Hosts that it asks for, as -m takes them; empty for any"]
    is_exclusive: Annotated[int, "1 when its hosts may run nothing else"]
    dependency: Annotated[str, "Which jobs it waits for, as written; empty for none"]
    begin_us: Annotated[int | None, "It doesn't start before this moment"]
    deadline_us: Annotated[int | None, "It is ended at this moment"]
    user_priority: Annotated[int, "Priority that the user gave it"]
    run_limit_us: Annotated[int | None, "Wall-clock run limit, NULL without one"]
    run_estimate_us: Annotated[int | None, "User's guess of the run time"]
    submission_key: Annotated[str, "Client's own key of the submission, empty when none"]
    request_digest: Annotated[str, "Digest of the keyed request"]
    more: Annotated[str, "Whatever else was asked for, as a JSON object"]
    submitted_by: Annotated[str, "Who submitted it"]
    submit_position: Annotated[int, "Position of its submission"]
    submit_us: Annotated[int, "When it was submitted"]
    state: Annotated[str, "PEND PSUSP WAIT RUN USUSP SSUSP UNKWN DONE EXIT"]
    state_since_us: Annotated[int, "Since when it is in that state"]
    last_position: Annotated[int, "Position of its last event"]
    attempt: Annotated[int, "Number of its latest execution, 0 before the first"] = 0
    first_dispatch_us: Annotated[int | None, "When it was first dispatched"] = None
    dispatch_us: Annotated[int | None, "When its latest execution was dispatched"] = None
    start_us: Annotated[int | None, "When a worker started its latest execution"] = None
    finish_us: Annotated[int | None, "When it ended for good"] = None
    tasks: Annotated[int | None, "Tasks of its latest execution"] = None
    host_count: Annotated[int | None, "Hosts of its latest execution"] = None
    hosts: Annotated[str | None, "Those hosts with their tasks: 4*h1 2*h2..h9"] = None
    exit_code: Annotated[int | None, "What its program returned"] = None
    signal: Annotated[int | None, "Signal that ended it"] = None
    end_reason: Annotated[str, "Termination reason, such as TERM_OWNER"] = ""
    cpu_us: Annotated[int | None, "Processor time of its latest execution"] = None
    max_rss_kib: Annotated[int | None, "Greatest resident memory of its latest execution, KiB"] = (
        None
    )
    kill_requested_by: Annotated[str | None, "Who last asked to end it"] = None
    kill_requested_us: Annotated[int | None, "When that was"] = None
    signal_requested: Annotated[str, "Signal last asked for, such as SIGUSR1; empty for none"] = ""
    signal_requested_by: Annotated[str | None, "Who asked for that signal"] = None
    run_requested_on: Annotated[str, "Where an operator last wanted it started: 2*h1 h2"] = ""
    run_requested_by: Annotated[str | None, "Who that was"] = None
    reason_set: Annotated[int | None, "Reason set that it is in, or was last in"] = None
    requeue_requested_by: Annotated[str | None, "Who wants it back to pending"] = None
    place: Annotated[int, "Its place among its equals, 0 unless it was moved; lower ones first"] = 0
    requeues: Annotated[int, "How often it went back to pending"] = 0
    preemptions: Annotated[int, "How often it was ordered to stop for another job"] = 0
    stop_requested_by: Annotated[str | None, "Who wants it stopped"] = None
    suspend_reason: Annotated[str, "Why it is, or is to be, suspended, such as SUSP_PREEMPT"] = ""
    suspend_order: Annotated[int | None, "Number of an order to stop that isn't carried out"] = None
    preempted_for: Annotated[str, "Job that it is suspended for; empty when for none"] = ""


@table("arrays", key="number")
class ArrayRow(NamedTuple):
    """
    One job array; its elements are in jobs, one row each.
    """

    number: Annotated[int, "Job number, shared by its elements"]
    position: Annotated[int, "Position of its submission"]
    time_us: Annotated[int, "When it was submitted"]
    user: Annotated[str, "Whose it is"]
    name: Annotated[str, "Its name"]
    indices: Annotated[str, "Its indices, as written"]
    size: Annotated[int, "How many elements it has"]
    started_max: Annotated[int | None, "So many at a time, as it is now; NULL without a bound"]


@table(
    "job_states",
    key="job_id from_position",
    fixed="from_us state attempt",
    indexes=(Index(("state", "from_us")),),
)
@dataclass(slots=True)
class JobStateRow:
    """
    One interval in which a job was in one state; a job's intervals cover its life without gap or
    overlap.
    """

    job_id: Annotated[str, "Job"]
    from_position: Annotated[int, "Position of the event that began it"]
    from_us: Annotated[int, "Begin"]
    state: Annotated[str, "State"]
    attempt: Annotated[int, "Execution that it belongs to, 0 before the first"]
    to_position: Annotated[
        int | None, "Position of the event that ended it; NULL while it lasts"
    ] = None
    to_us: Annotated[int | None, "End; NULL while it lasts"] = None


@table(
    "attempts",
    key="job_id attempt",
    fixed="dispatch_position dispatch_us session session_index tasks "
    "host_count hosts first_host allocator alternative is_exclusive shared ahead_of is_forced",
    indexes=(Index(("dispatch_position",)),),
)
@dataclass(slots=True)
class AttemptRow:
    """
    One execution of a job, from its dispatch.
    """

    job_id: Annotated[str, "Job"]
    attempt: Annotated[int, "Number of the execution, from 1"]
    dispatch_position: Annotated[int, "Position of job.dispatched"]
    dispatch_us: Annotated[int, "When it was dispatched"]
    session: Annotated[int | None, "Session that dispatched it"]
    session_index: Annotated[int, "Its place among the dispatches of that session, from 0"]
    tasks: Annotated[int, "Tasks over all hosts"]
    host_count: Annotated[int, "Hosts"]
    hosts: Annotated[str, "Hosts with their tasks: 4*h1 2*h2..h9"]
    first_host: Annotated[str, "Where the program itself runs"]
    allocator: Annotated[str, "Allocator that found the place"]
    alternative: Annotated[int, "Alternative of the requirement that was taken, 0 when only one"]
    is_exclusive: Annotated[int, "1 when its hosts take nothing else meanwhile"]
    shared: Annotated[str, "Amounts that count for the whole cluster, as a JSON object"]
    ahead_of: Annotated[str, "Job with a promised start that it overtook; empty when none"]
    is_forced: Annotated[int, "1 when an operator had it started on hosts that they named"]
    start_us: Annotated[int | None, "When a worker started it"] = None
    pid: Annotated[int | None, "Its first process"] = None
    process_group: Annotated[int | None, "Its process group"] = None
    end_position: Annotated[
        int | None, "Position of the event that ended it; NULL while it lasts"
    ] = None
    end_us: Annotated[int | None, "When it ended"] = None
    outcome: Annotated[str | None, "Type of the event that ended it, such as job.finished"] = None
    exit_code: Annotated[int | None, "What the program returned"] = None
    signal: Annotated[int | None, "Signal that ended it"] = None
    why: Annotated[str | None, "Termination reason, or why it couldn't start"] = None
    cpu_us: Annotated[int | None, "Processor time"] = None
    max_rss_kib: Annotated[int | None, "Greatest resident memory, KiB"] = None


@table(
    "allocations",
    key="job_id attempt run_index",
    fixed="first_number host_count first_host tasks_per_host amounts mem_milli "
    "instances from_position from_us",
    indexes=(Index(("first_number", "from_us")),),
)
@dataclass(slots=True)
class AllocationRow:
    """
    What one execution holds on a run of neighbouring hosts: the same on each. See the view
    allocation_hosts.
    """

    job_id: Annotated[str, "Job"]
    attempt: Annotated[int, "Execution"]
    run_index: Annotated[int, "Place of the run in claim order, from 0"]
    first_number: Annotated[int, "Host number of its first host"]
    host_count: Annotated[int, "How many hosts, with rising numbers"]
    first_host: Annotated[str, "Name of its first host"]
    tasks_per_host: Annotated[int, "Tasks on each host"]
    amounts: Annotated[str, "Amounts reserved on each host, JSON object of resource to thousandths"]
    mem_milli: Annotated[int | None, "Memory reserved on each host, thousandths of a KiB"]
    instances: Annotated[str, "Named units, such as GPUs, JSON object of resource to their names"]
    from_position: Annotated[int, "Position of job.dispatched"]
    from_us: Annotated[int, "Since when it is held"]
    to_position: Annotated[
        int | None, "Position of the event that gave it back; NULL while it is held"
    ] = None
    to_us: Annotated[int | None, "When it was given back"] = None


@table(
    "rusage",
    key="position job_id attempt ordinal",
    grows=True,
    indexes=(Index(("job_id", "time_us")),),
)
class UsageRow(NamedTuple):
    """
    What one execution was seen to use on one host, as its worker reported it.
    """

    position: Annotated[int, "Position of worker.reported"]
    job_id: Annotated[str, "Job"]
    attempt: Annotated[int, "Execution"]
    ordinal: Annotated[int, "Place in the report, from 0"]
    host: Annotated[str, "Reporting host"]
    time_us: Annotated[int, "When it was reported"]
    mem_milli: Annotated[
        int | None, "Memory, thousandths of a KiB; NULL when the report doesn't name it"
    ]
    cpu_us: Annotated[int, "Processor time so far"]
    processes: Annotated[int, "Processes"]
    threads: Annotated[int, "Threads that they have together"]
    amounts: Annotated[str, "Every amount reported, JSON object of resource to thousandths"]

"""
Make small events and logs for the harnesses and for the tests of the store.
"""

from __future__ import annotations

from domain.allocations import Allocation, HostRun
from domain.envelope import Stamped
from domain.event import Event
from domain.events.jobs import JobDispatched, JobFinished, JobStarted, JobSubmitted
from domain.ids import job_stream_of
from domain.jobs import JobSpec
from store.log import EventLog

EPOCH_US = 1_000_000_000_000_000


def stamped(
    stream: str,
    version: int,
    event: Event,
    *,
    at_s: int = 0,
    actor: str = "",
    cause: str = "",
    ends_step: bool = True,
) -> Stamped:
    """
    Return a stamped event some seconds after a fixed time.
    """
    return Stamped(stream, version, EPOCH_US + at_s * 1_000_000, actor, cause, event, ends_step)


def job_events(number: int) -> list[Stamped]:
    """
    Return the four events of a job's life, one step each.
    """
    stream = job_stream_of(number)
    spec = JobSpec(
        user=f"u{number % 7}",
        queue="normal",
        tasks_min=1 + number % 4,
        tasks_max=4,
        run_limit_us=60_000_000,
    )
    allocation = Allocation(runs=(HostRun(first=number % 16, tasks=2),), allocator="parjob")
    return [
        stamped(
            stream, 1, JobSubmitted(spec=spec), at_s=number, actor=spec.user, cause=f"swf:{number}"
        ),
        stamped(
            stream,
            2,
            JobDispatched(attempt=1, index=0, allocation=allocation),
            at_s=number,
            cause=f"s{number}",
        ),
        stamped(stream, 3, JobStarted(attempt=1, pid=number), at_s=number + 1),
        stamped(
            stream, 4, JobFinished(attempt=1, exit_code=0, cpu_us=number * 1000), at_s=number + 9
        ),
    ]


def jobs_events(first: int, count: int) -> list[Stamped]:
    """
    Return the events of some jobs, the jobs' lives one after the other.
    """
    return [event for number in range(first, first + count) for event in job_events(number)]


def fill(log: EventLog, *, commits: int, jobs: int = 10) -> list[Stamped]:
    """
    Append some commits of some jobs each; return all that was appended.
    """
    appended: list[Stamped] = []
    for commit in range(commits):
        events = jobs_events(1 + commit * jobs, jobs)
        log.append(events)
        appended.extend(events)
    return appended

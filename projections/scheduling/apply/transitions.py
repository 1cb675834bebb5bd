"""
Move a job from one state to another, and book the time it spent.
"""

from __future__ import annotations

from domain.job_states import STOPPED, WAITING, JobState
from projections.scheduling.records import JobRecord


def move(job: JobRecord, after: JobState, now_us: int) -> None:
    """
    Put the job into its next state and add the time in the last one to the job's totals.
    """
    spent = now_us - job.since_us
    before = job.state
    if before is JobState.PSUSP:
        job.held_us += spent
    elif before in WAITING:
        job.pend_us += spent
    elif before is JobState.RUN:
        job.run_us += spent
    elif before is JobState.UNKWN:
        job.unknown_us += spent
    else:
        assert before in STOPPED, before
    job.state = after
    job.since_us = now_us

"""
Move a job from one state to another, and book the time it spent.
"""

from __future__ import annotations

from domain.job_states import WAITING, JobState
from projections.scheduling.records import JobRecord
from projections.scheduling.state import State


def move(state: State, job: JobRecord, after: JobState, now_us: int) -> None:
    """
    Put the job into its next state, add the time in the last one to the job's totals, and have
    those looked at that depend on it.
    """
    spent = now_us - job.since_us
    before = job.state
    if before is JobState.PSUSP:
        job.held_us += spent
    elif before in WAITING:
        job.pend_us += spent
    elif before is JobState.RUN:
        job.run_us += spent
        state.note_run_over(job)
    elif before is JobState.UNKWN:
        job.unknown_us += spent
        if job.state_before_loss is JobState.RUN:
            # It ran on while nobody heard of it.
            job.run_us += spent
    elif before is JobState.USUSP:
        job.user_stopped_us += spent
    elif before is JobState.SSUSP:
        job.system_suspended_us += spent
    job.state = after
    job.since_us = now_us
    if JobState.SSUSP in (before, after):
        state.note_suspensions()
    if after is JobState.RUN and job.allocation is not None:
        state.note_run(job)
    if state.children:
        state.look_at_dependants(job)

"""
What beside its request decides whether a job can start, in canonical words: jobs that differ in it
don't share what a placement finds out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from projections.scheduling.records import JobRecord
from projections.scheduling.rights import right_lost

if TYPE_CHECKING:
    from projections.scheduling.state import State


# hot: once a job.
def own_words(state: State, job: JobRecord, *, asks_more: bool) -> str:
    """
    Return a job's own words, "" for most.

    Args:
        state: The core's state.
        job: Which job.
        asks_more: Whether its queue has anything to say of this.
    """
    spec, stored = job.spec, state.stored
    words = ""
    if job.index and stored.arrays[job.number].started_max is not None:
        words = f" array={job.number}"
    if asks_more or spec.deadline_us is not None or stored.projects:
        words += _words_of_queue(state, job)
    if job.keeps is not None or (state.victims and state.has_victims(job)):
        words += f" keeps={job.job_id}"
    if job.stream in state.gatherers or job.stream in state.gave_up:
        # One that gave up lets its turn pass, which proves nothing for its like.
        words += f" gathers={job.job_id}"
    if asks_more and stored.queues[spec.queue].spec.is_backfill:
        words += f" within={state.run_limit_us(job)}"
    if job.has_spared:
        words += f" spares={job.job_id}"
    if state.opens_with_time:
        has_to_wait = state.settings().preemption.delay_us and state.preys_of(spec.queue)
        words += f" since={job.queue_us}" if has_to_wait else ""
    if job.excluded_hosts:
        words += f" excluded={','.join(map(str, job.excluded_hosts))}"
    return words


def _words_of_queue(state: State, job: JobRecord) -> str:
    """
    Return what the job's queue, its deadline and its project have to say.
    """
    spec, words = job.spec, ""
    queue = state.stored.queues[spec.queue].spec
    if queue.run_windows is not None or spec.deadline_us is not None:
        limit_us = state.longest_run_us(job)
        words += f" run_limit={limit_us} deadline={spec.deadline_us}"
        if spec.deadline_us is not None and limit_us is not None:
            now_us = max(state.session_us, state.stored.time_us, job.submit_us)
            words += " late" * (now_us + limit_us > spec.deadline_us)
    if queue.requirement is not None:
        words += state.queue_share(spec).text()
    lost = right_lost(state, spec)
    if lost is not None:
        words += f" {lost.code.value}={lost.detail}"
    return words

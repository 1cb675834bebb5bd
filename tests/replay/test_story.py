"""
A job's story: everything that happened to it, in order, and the time in each state.
"""

from __future__ import annotations

import pytest

from domain.allocations import Allocation, HostRun, HostSpan
from domain.envelope import Envelope
from domain.errors import NotFound
from domain.events import jobs, session, workers
from domain.jobs import EnvironmentVariable, JobSpec, Program
from domain.reasons import PendReason, ReasonCode
from replay.story import job_story

S = 1_000_000
JOB = "job:0000000007"


class ListLog:
    """
    Hold events in a plain list: the smallest log that a story can be told from.
    """

    def __init__(self):
        self.envelopes = []

    def add(self, stream, time_s, event, actor=""):
        version = 1 + sum(one.stream == stream for one in self.envelopes)
        position = len(self.envelopes) + 1
        self.envelopes.append(
            Envelope(position, stream, version, time_s * S, actor, "", event, ends_step=True)
        )

    def read_stream(self, stream, after_version=0):
        return (
            one for one in self.envelopes if one.stream == stream and one.version > after_version
        )


def _name(number):
    return ("alpha", "beta")[number]


def _spec(**changes):
    variables = (EnvironmentVariable(name="TOKEN", value="secret"),)
    program = Program(argv=("sleep", "5"), env=variables)
    return JobSpec(user="ann", queue="normal", program=program, **changes)


def _reasons(*hosts):
    spans = tuple(HostSpan(first=number) for number in hosts)
    return (PendReason(code=ReasonCode.HOST_SLOTS, requested_milli=1000, hosts=spans),)


def _dispatched(attempt=1):
    runs = (HostRun(first=0, tasks=2), HostRun(first=1))
    return jobs.JobDispatched(attempt=attempt, allocation=Allocation(runs=runs, allocator="parjob"))


@pytest.fixture
def log():
    """
    Return a log with a job that was held, waited, ran and failed, between other things.
    """
    log = ListLog()
    log.add(JOB, 10, jobs.JobSubmitted(spec=_spec(hold=True)), "ann")
    log.add("reasons", 11, session.ReasonSetChanged(
        set_number=3, fingerprint="1 task", reasons=_reasons(0)))
    log.add(JOB, 15, jobs.JobHoldLifted(), "ann")
    log.add(JOB, 15, jobs.JobPended(reason_set=3))
    log.add("reasons", 18, session.ReasonSetChanged(
        set_number=3, fingerprint="1 task", reasons=_reasons(0, 1)))
    log.add("reasons", 18, session.ReasonSetChanged(
        set_number=4, fingerprint="9 tasks", never=True, reasons=_reasons(0)))
    log.add(JOB, 20, _dispatched())
    log.add("reasons", 21, session.ReasonSetChanged(
        set_number=3, fingerprint="1 task", reasons=_reasons(1)))
    log.add(JOB, 22, jobs.JobStarted(attempt=1, pid=99))
    log.add("worker:alpha", 30, workers.WorkerBecameUnreachable(silent_us=8 * S))
    log.add("worker:beta", 31, workers.WorkerBecameUnreachable(silent_us=8 * S))
    log.add("worker:alpha", 33, workers.WorkerCameBack(incarnation=1))
    log.add(JOB, 40, jobs.JobFinished(attempt=1, exit_code=3, cpu_us=1_500_000))
    log.add("worker:alpha", 50, workers.WorkerBecameUnreachable(silent_us=8 * S))
    return log


def test_a_story_has_every_event_of_the_job_in_order_and_no_other(log):
    """
    Reasons count from joining a set to leaving it, contact on its first host while it is there.
    """
    story = job_story(log, "7", _name)

    assert [
        (1, "submitted to queue normal, command sleep 5, held"),
        (3, "hold lifted"),
        (4, "waits: not enough slots: 1 host"),
        (5, "waits: not enough slots: 2 hosts"),
        (7, "dispatched to 2*alpha:beta, attempt 1"),
        (9, "started as process 99, attempt 1"),
        (10, "contact with its host lost (silent for 8 s)"),
        (12, "contact with its host is back"),
        (13, "finished with exit code 3; CPU 1.50 s"),
    ] == [(line.position, line.text) for line in story.lines]


def test_the_states_partition_the_life_of_the_job(log):
    """
    Each span begins where the one before ends, so that the times add up to the whole.
    """
    story = job_story(log, "7", _name)

    assert [
        ("PSUSP", 10, 15), ("PEND", 15, 20), ("RUN", 20, 30), ("UNKWN", 30, 33), ("RUN", 33, 40),
        ("EXIT", 40, None),
    ] == [
        (span.state, span.since_us // S, span.until_us and span.until_us // S)
        for span in story.spans
    ]
    expected = {"PSUSP": 5 * S, "PEND": 5 * S, "RUN": 17 * S, "UNKWN": 3 * S}
    assert expected == story.in_state_us(99 * S)


def test_a_state_that_lasts_counts_up_to_now(log):
    """
    The story of a job that still runs is as true as that of one that has ended.
    """
    log.envelopes = log.envelopes[:9]

    assert 4 * S == job_story(log, "7", _name).in_state_us(24 * S)["RUN"]


def test_a_story_never_tells_the_environment(log):
    """
    Whoever may read a story may not read the secrets of the job's user.
    """
    story = job_story(log, "7", _name).plain(now_us=0, position=14)

    assert "secret" not in repr(story)


def test_a_story_tells_the_command_to_whom_it_may_be_told_only(log):
    """
    Secrets stand in commands too; whoever may see a user's jobs may not see all of them.
    """
    own = job_story(log, "7", _name, may_see="ann".__eq__).lines[0].text
    others = job_story(log, "7", _name, may_see="ben".__eq__).lines[0].text

    assert "sleep 5" in own
    assert "command private" in others
    assert "sleep" not in others


def test_a_job_that_the_log_does_not_know_is_not_found(log):
    """
    An empty story would look like a job to which nothing happened.
    """
    with pytest.raises(NotFound) as missing:
        job_story(log, "8", _name)

    assert ("job_id", "8") == (missing.value.field, missing.value.value)

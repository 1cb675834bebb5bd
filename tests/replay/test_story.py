"""
A job's story from the log alone is the one that the audit tables tell.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.arrays import ArraySpec, IndexRange
from domain.errors import NotFound, Refused
from domain.events.jobs import JobFinished, JobSubmitted
from domain.events.workers import WorkerReported
from domain.jobs import EnvironmentVariable, JobSpec, Program
from projections.audit.history import story
from projections.audit.privacy import Viewer
from replay.story import job_story
from tests.examples import examples
from tests.projections.audit.driving import driven, some_actions
from tests.projections.audit.logs import a_cluster, a_program, dispatched
from tests.projections.audit.making import made

ACTIONS = st.builds(some_actions, st.integers(0, 2**32), st.integers(1, 120))
PICKERS = st.sampled_from(["builtin_fcfs", "strict_fcfs"])


class ListLog:
    """
    Hold events in a plain list: the smallest log that a story can be told from.
    """

    def __init__(self, envelopes):
        self.envelopes = envelopes
        self.read = 0

    def read_stream(self, stream, after_version=0):
        for one in self.envelopes:
            if one.stream == stream and one.version > after_version:
                self.read += 1
                yield one


def told(log, job_id="1", **more):
    return job_story(ListLog(log.envelopes), job_id, lambda number: f"h{number + 1}", **more)


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(ACTIONS, PICKERS)
def test_safety_it_is_the_story_that_the_tables_tell(actions, picker):
    """
    Whoever may not read the log hears from the scheduler what others read in the tables.
    """
    history = driven(actions, picker)
    names = {host.number: host.name for host in history.core.state.stored.workers.values()}
    log = ListLog(history.envelopes)
    with (
        tempfile.TemporaryDirectory() as folder,
        made(Path(folder, "a.db"), history.envelopes) as reading,
    ):
        for row in reading.rows("SELECT job_id FROM jobs"):
            expected = story(reading, row["job_id"], now_us=history.now_us)
            found = job_story(log, row["job_id"], names.__getitem__, now_us=history.now_us)

            assert (expected.lines, expected.spans) == (found.lines, found.spans)
            assert expected.in_state_us == found.in_state_us


def test_a_story_never_tells_the_environment():
    """
    Whoever may read a story may not read the secrets of the job's user.
    """
    log = a_cluster()
    variables = (EnvironmentVariable(name="TOKEN", value="secret"),)
    log.job(1, program=Program(argv=("sleep",), env=variables))

    assert "secret" not in repr(told(log).plain())


def test_a_story_tells_the_command_to_whom_it_may_be_told_only():
    """
    Secrets stand in commands too; whoever may see a user's jobs may not see all of them.
    """
    log = a_cluster()
    log.job(1, user="ann", program=a_program("sleep", "5"))

    own, others = (told(log, viewer=Viewer(user)).lines[0].text for user in ("ann", "ben"))
    assert "sleep 5" in own
    assert "command private" in others
    assert "sleep" not in others


def test_an_element_has_a_story_and_its_array_names_one():
    """
    An array of a million elements would take the scheduler's time; the tables tell it.
    """
    log = a_cluster()
    array = ArraySpec(ranges=(IndexRange(start=2, end=9),))
    spec = JobSpec(user="ann", queue="normal", array=array)
    log.add("job:0000000001", JobSubmitted(spec=spec), "ann")

    assert ["job.submitted"] == [line.type_code for line in told(log, "1[3]").lines]
    with pytest.raises(Refused, match=r"1\[2\]"):
        told(log)
    with pytest.raises(NotFound):
        told(log, "1[1]")


def test_a_job_that_the_log_does_not_know_is_not_found():
    """
    An empty story would look like a job to which nothing happened.
    """
    with pytest.raises(NotFound):
        told(a_cluster(), "8")


def test_of_a_long_life_of_a_host_only_what_belongs_to_the_job_is_read():
    """
    A host that has reported for a year would keep the answer waiting.
    """
    log = a_cluster()
    for _ in range(3000):
        log.add("worker:h1", WorkerReported(incarnation=1))
    job = log.job(1)
    log.session((job, dispatched(1)))
    log.add(job, JobFinished(attempt=1, exit_code=0))
    for _ in range(3000):
        log.add("worker:h1", WorkerReported(incarnation=1))
    counted = ListLog(log.envelopes)

    job_story(counted, "1", lambda number: f"h{number + 1}")

    assert counted.read < 200

"""
Stories of jobs, hosts and queues: everything that happened, in order, in words.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.amounts import Amount
from domain.arrays import ArraySpec, IndexRange
from domain.errors import NotFound, Refused
from domain.events.jobs import (
    JobFinished,
    JobHeld,
    JobHoldLifted,
    JobKillOrdered,
    JobKillRequested,
    JobModified,
    JobStarted,
    JobSubmitted,
)
from domain.events.queues import QueueClosed, QueueDefined
from domain.events.refusals import CommandRefused, ReportIgnored
from domain.events.workers import (
    WorkerBecameUnreachable,
    WorkerClosed,
    WorkerOrderDone,
    WorkerReported,
)
from domain.jobs import JobSpec
from domain.queues import QueueSpec
from projections.audit.history import find_object, story
from projections.audit.privacy import Viewer
from projections.audit.reading import Reading
from tests.projections.audit.logs import (
    SECOND_US,
    a_cluster,
    a_program,
    dispatched,
    pended,
    short_of_memory,
    short_of_slots,
)
from tests.projections.audit.making import made


@pytest.fixture
def reading(tmp_path: Path):
    """
    Return the tables of a history in which much happens to job 1.
    """
    log = a_cluster()
    job = log.job(1, program=a_program("grep", "secret word"), user="ann")
    log.add(job, JobHeld(), "ann")
    log.add(
        "refusals",
        CommandRefused(command="LiftHold", subject="1", field="actor", rule="may not"),
        "ben",
    )
    log.add(job, JobHoldLifted(), "ann")
    log.session(("reasons", short_of_slots()), (job, pended()))
    log.session(("reasons", short_of_memory()))
    log.session((job, dispatched(1, (0, 1, 2))))
    log.add(job, JobStarted(attempt=1, pid=7))
    load = (("r1m", 1_500), ("mem", 2_500_000_000))
    amounts = tuple(Amount(resource=name, milli=milli) for name, milli in load)
    log.add("worker:h1", WorkerReported(incarnation=1, load=amounts))
    log.add("worker:h1", WorkerBecameUnreachable(silent_us=60 * SECOND_US))
    log.add(job, JobKillOrdered(attempt=1, worker="h1", order_number=1, why="TERM_ADMIN"))
    log.add("worker:h1", WorkerOrderDone(incarnation=1, order_number=1, outcome="signalled"))
    log.add(job, JobFinished(attempt=1, signal=9, why="TERM_ADMIN"))
    log.add(
        "refusals",
        ReportIgnored(report="finished", worker="h1", incarnation=1, job_id="1", why="over"),
    )
    log.add("queue:normal", QueueDefined(spec=QueueSpec(priority=40)), "zoe")
    log.add("queue:normal", QueueClosed(), "ben")
    log.add("worker:h2", WorkerClosed(why="disk"), "ben")
    log.job(2, user="ben", program=a_program("ls"))
    with made(tmp_path / "a.db", log.envelopes) as opened:
        yield opened


def test_a_jobs_story_has_everything_in_order_each_gap_explained(reading: Reading) -> None:
    """
    One ordered timeline with reasons, orders, contact, refusals (B26), not scattered records.
    """
    told = story(reading, "1")

    assert [
        "submitted for ann: queue normal, 1 task, name job 1, command: grep 'secret word'",
        "held",
        "refused: lift hold 1: actor may not",
        "hold lifted",
        "waits: not enough slots: 2 hosts",
        "waits: not enough mem: 1 host",
        "dispatched, attempt 1: 2*h1 (mem 100MB each)",
        "attempt 1 started as process 7",
        "host h1: unreachable: silent for 1m",
        (
            "worker h1 ordered to end attempt 1 (order 1): killed by an administrator "
            "(TERM_ADMIN)"
        ),
        "host h1: order 1 carried out: signalled",
        "attempt 1 ended by signal 9 (SIGKILL): killed by an administrator (TERM_ADMIN)",
        "ignored: finished of h1 about 1: over",
    ] == [line.text for line in told.lines]
    positions = [line.position for line in told.lines]
    assert sorted(positions) == positions


def test_seconds_per_state_sum_to_the_jobs_life(reading: Reading) -> None:
    """
    The table at the end, as bhist -l has it.
    """
    told = story(reading, "1")

    assert {"PEND": 4, "PSUSP": 2, "RUN": 3, "UNKWN": 3, "USUSP": 0, "SSUSP": 0} == {
        state: us // SECOND_US for state, us in told.in_state_us.items()
    }
    assert told.spans[-1].since_us - told.spans[0].since_us == sum(told.in_state_us.values())


def test_a_hosts_story_tells_its_jobs_and_leaves_reports_out_unless_asked(reading: Reading) -> None:
    """
    Reports come every ten seconds: they would bury everything else.
    """
    told = [line.text for line in story(reading, "h1").lines]
    full = [line.text for line in story(reading, "h1", with_reports=True).lines]

    assert [
        "job 1 of ann, attempt 1: takes 2 tasks",
        "unreachable: silent for 1m",
        "order 1 carried out: signalled",
        "job 1 of ann, attempt 1: gives 2 tasks back",
    ] == told[1:]
    assert len(told) + 1 == len(full)
    assert "reported: free mem 2.3GB, load r1m 1.5; usage of 0 jobs" in full


def test_a_queues_story_says_who_changed_what_from_what_to_what(reading: Reading) -> None:
    """
    "Nobody could tell who changed a server setting or when" (K08).
    """
    told = [
        (line.actor, line.text, [change for change in line.changes if change[1] is not None])
        for line in story(reading, "normal").lines
    ]

    assert [
        ("zoe", "changed", [("priority", "30", "40")]),
        ("ben", "closed", [("is_open", "true", "false")]),
    ] == told[1:]


def test_a_period_leaves_out_what_lies_outside_and_says_so(reading: Reading) -> None:
    """
    Every history output states the period it covers (B23).
    """
    lines = story(reading, "1").lines

    told = story(reading, "1", from_us=lines[3].time_us, to_us=lines[5].time_us)

    assert lines[3:6] == told.lines
    assert (lines[3].time_us, lines[5].time_us) == (told.from_us, told.to_us)


def test_another_users_command_is_private(reading: Reading) -> None:
    """
    Whoever isn't privileged sees their own jobs' commands only.
    """
    own = story(reading, "1", viewer=Viewer("ann")).lines[0].text
    others = story(reading, "1", viewer=Viewer("ben")).lines[0].text
    admins = story(reading, "1", viewer=Viewer("root", is_privileged=True)).lines[0].text

    assert ("secret word" in own, "secret word" in others, "secret word" in admins) == (
        True,
        False,
        True,
    )
    assert others.endswith("command private")


def test_plain_data_has_values_not_texts(reading: Reading) -> None:
    """
    Programs get numbers and names, never a sentence to take apart.
    """
    told = story(reading, "normal").plain()

    change = told["events"][1]["changes"][0]
    assert {"field": "priority", "old": 30, "new": 40} == change
    assert ("queue", "normal") == (told["kind"], told["name"])


def test_a_name_of_two_kinds_must_be_told_apart(tmp_path: Path) -> None:
    """
    A queue and a host may have one name.
    """
    log = a_cluster()
    log.add("queue:h1", QueueDefined(spec=QueueSpec(priority=1)))
    with made(tmp_path / "b.db", log.envelopes) as reading:
        with pytest.raises(Refused, match="queue:h1 or worker:h1"):
            find_object(reading, "h1")
        assert [("queue", "h1"), ("worker", "h1")] == [
            find_object(reading, "queue:h1"),
            find_object(reading, "host:h1"),
        ]
        for unknown in ("nobody", "host:h9", "77"):
            with pytest.raises(NotFound):
                find_object(reading, unknown)


def test_an_array_is_told_as_a_whole_with_its_elements(tmp_path: Path) -> None:
    """
    Whoever submitted one thing asks for one thing; how far each element is stands below.
    """
    log = a_cluster()
    array = ArraySpec(ranges=(IndexRange(start=1, end=3),))
    spec = JobSpec(user="ann", queue="normal", array=array)
    log.add("job:0000000001", JobSubmitted(spec=spec), "ann")
    log.session(("job:0000000001[000002]", dispatched(1)))
    with made(tmp_path / "b.db", log.envelopes) as reading:
        whole, element = story(reading, "1"), story(reading, "1[2]")

    assert ["1[1]", "1[2]", "1[3]"] == [one.job_id for one in whole.elements]
    assert ["PEND", "RUN", "PEND"] == [one.state for one in whole.elements]
    assert whole.in_state_us["PEND"] == sum(one.in_state_us["PEND"] for one in whole.elements)
    assert ["job.submitted", "job.dispatched"] == [line.type_code for line in element.lines]
    assert element.lines[0] == whole.lines[0]
    assert "host" not in element.lines[0].text


def test_a_job_that_waits_for_the_same_as_before_is_told_once(tmp_path: Path) -> None:
    """
    Considered anew it joins the same reason set again: its number says nothing to people.
    """
    log = a_cluster()
    job = log.job(1)
    log.session(("reasons", short_of_slots()), (job, pended()))
    log.session(("reasons", short_of_memory()), (job, pended()))
    with made(tmp_path / "b.db", log.envelopes) as reading:
        whole = [line.text for line in story(reading, "1").lines]
        late = story(reading, "1", from_us=log.now_us)

    assert ["waits: not enough slots: 2 hosts", "waits: not enough mem: 1 host"] == whole[1:]
    assert ["waits: not enough mem: 1 host"] == [line.text for line in late.lines]


def test_an_arrays_commands_are_told_once_and_its_bound_to_each_element(tmp_path: Path) -> None:
    """
    What was asked of all elements stands in the stream of each, their bound in that of one.
    """
    log = a_cluster()
    ranges = (IndexRange(start=1, end=3),)
    spec = JobSpec(user="ann", queue="normal", array=ArraySpec(ranges=ranges, started_max=2))
    bound = ArraySpec(ranges=ranges, started_max=1)
    streams = [f"job:0000000001[00000{index}]" for index in (1, 2, 3)]
    log.add("job:0000000001", JobSubmitted(spec=spec), "ann")
    log.add(streams[0], JobModified(spec=spec.model_copy(update={"array": bound})), "ann")
    for number, stream in enumerate(streams):
        log.add(stream, JobKillRequested(), "ann", ends_step=number == 2, after_s=number == 0)
    log.add(streams[1], JobHeld(), "eve")
    with made(tmp_path / "b.db", log.envelopes) as reading:
        whole, element = story(reading, "1"), story(reading, "1[3]")
        bounds = list(reading.table("SELECT started_max FROM arrays")[1])

    told = [(line.actor, line.text, line.changes) for line in whole.lines[1:]]
    modified = ("ann", "modified", (("array.started_max", "2", "1"),))
    assert [
        modified,
        ("ann", "3 elements from 1[1] on: asked to end", ()),
        ("eve", "1[2]: held", ()),
    ] == told
    assert [modified, ("ann", "asked to end", ())] == [
        (line.actor, line.text, line.changes) for line in element.lines[1:]
    ]
    assert [(1,)] == bounds

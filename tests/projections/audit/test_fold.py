"""
What single events do to the tables.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.arrays import ArraySpec, IndexRange
from domain.events.jobs import (
    JobEnded,
    JobFinished,
    JobHeld,
    JobModified,
    JobRequeued,
    JobResumed,
    JobResumeOrdered,
    JobResumeRequested,
    JobStarted,
    JobStopRequested,
    JobSuspended,
    JobSuspendOrdered,
    JobSwitched,
)
from domain.events.queues import QueueClosed, QueueDefined
from domain.events.refusals import AccessDenied, CommandRefused
from domain.events.session import ListHeldBack
from domain.events.workers import (
    WorkerBecameUnreachable,
    WorkerCameBack,
    WorkerClosed,
    WorkerOrderDone,
)
from domain.jobs import ExitRules, JobSpec
from domain.queues import QueueSpec
from domain.reasons import TEXTS, ReasonCode
from projections.audit.pending import reason_history, why_at
from projections.audit.reading import Reading
from projections.audit.report.figures import report_of
from projections.audit.schema import tables
from projections.audit.wording import words
from tests.projections.audit.logs import (
    SECOND_US,
    Log,
    a_cluster,
    a_program,
    dispatched,
    pended,
    short_of_memory,
    short_of_slots,
)
from tests.projections.audit.making import made


@pytest.fixture
def tell(tmp_path: Path):
    """
    Return the function that makes tables of a log.
    """
    opened: list[Reading] = []

    def telling(log: Log) -> Reading:
        opened.append(made(tmp_path / f"{len(opened)}.db", log.envelopes))
        return opened[-1]

    yield telling
    for one in opened:
        one.close()


def states(reading: Reading, job_id: str) -> list[str]:
    """
    Return the states of a job in order.
    """
    query = "SELECT state FROM job_states WHERE job_id = ? ORDER BY from_position"
    return [row["state"] for row in reading.rows(query, (job_id,))]


def reasons(reading: Reading, job_id: str) -> list[tuple[str, int | None]]:
    """
    Return code and length in seconds of each interval of a job's waiting; None while it lasts.
    """
    return [
        (one.code, None if one.to_us is None else (one.to_us - one.from_us) // SECOND_US)
        for one in reason_history(reading, job_id)
    ]


def test_a_job_is_one_row_with_what_was_asked_and_what_it_got(tell) -> None:
    """
    The columns of a whole life: asked, dispatched, started, ended.
    """
    log = a_cluster()
    job = log.job(
        7, tasks_min=3, tasks_max=3, program=a_program("echo", "a b"), resreq=("rusage[mem=5]",)
    )
    log.session((job, dispatched(1, (0, 1, 2), (1, 1, 1))))
    log.add(job, JobStarted(attempt=1, pid=77))
    log.add(job, JobFinished(attempt=1, exit_code=3, cpu_us=5, max_rss_kib=9))

    row = tell(log).one("SELECT * FROM jobs")

    assert ("7", "ann", "echo 'a b'", 1, "rusage[mem=5]") == (
        row["job_id"],
        row["user"],
        row["command"],
        row["env_count"],
        row["resreq"],
    )
    assert ("EXIT", 3, 3, 2, "2*h1 1*h2", 5, 9) == (
        row["state"],
        row["exit_code"],
        row["tasks"],
        row["host_count"],
        row["hosts"],
        row["cpu_us"],
        row["max_rss_kib"],
    )
    assert [SECOND_US, SECOND_US, SECOND_US] == [
        row["dispatch_us"] - row["submit_us"],
        row["start_us"] - row["dispatch_us"],
        row["finish_us"] - row["start_us"],
    ]


def test_an_environment_never_reaches_the_tables(tell) -> None:
    """
    Environments hold secrets, and the tables are read by more people than the log.
    """
    log = a_cluster()
    job = log.job(7, program=a_program())
    log.add(job, JobModified(spec=JobSpec(user="ann", queue="normal", program=a_program("true"))))

    reading = tell(log)
    everything = [row for name in tables() for row in reading.table(f"SELECT * FROM {name}")[1]]

    assert "S3CRET" not in repr(everything)
    assert b"S3CRET" not in Path(reading.path).read_bytes()


def test_each_element_of_an_array_is_a_job(tell) -> None:
    """
    People ask for element 3 by its own id, although it was submitted with the others.
    """
    log = a_cluster()
    log.job(9, array=ArraySpec(ranges=(IndexRange(start=1, end=5, step=2),), started_max=2))
    log.session(("job:0000000009[000003]", dispatched(1)))

    reading = tell(log)

    assert [("9[1]", "PEND"), ("9[3]", "RUN"), ("9[5]", "PEND")] == list(
        reading.table("SELECT job_id, state FROM jobs ORDER BY job_key")[1]
    )
    assert [(9, "1-5:2", 3, 2)] == list(
        reading.table("SELECT number, indices, size, started_max FROM arrays")[1]
    )


def test_a_requeued_job_keeps_every_attempt(tell) -> None:
    """
    A second execution doesn't overwrite the first one, whatever the job's state was between.
    """
    log = a_cluster()
    job = log.job(7)
    log.session((job, dispatched(1)))
    log.add(job, JobFinished(attempt=1, exit_code=99))
    log.session((job, JobRequeued(why="exit value")))
    log.session((job, dispatched(2, (1, 1, 1))))
    log.add(job, JobFinished(attempt=2, exit_code=0))

    reading = tell(log)

    assert ["PEND", "RUN", "EXIT", "PEND", "RUN", "DONE"] == states(reading, "7")
    assert [(1, "h1", 99), (2, "h2", 0)] == list(
        reading.table("SELECT attempt, first_host, exit_code FROM attempts ORDER BY attempt")[1]
    )
    assert (1, 0) == tuple(reading.one("SELECT requeues, exit_code FROM jobs").values())


def test_a_victim_is_told_with_the_job_it_stopped_for(tell) -> None:
    """
    "Why was my job stopped at 03:10?" needs the other job's name.
    """
    log = a_cluster()
    job = log.job(7)
    log.session((job, dispatched(1)))
    order = JobSuspendOrdered(
        attempt=1, worker="h1", order_number=1, why="SUSP_PREEMPT", preemptor="8"
    )
    log.session((job, order))
    log.add(job, JobSuspended(attempt=1))
    log.add("worker:h1", WorkerOrderDone(incarnation=1, order_number=1))
    log.add(job, JobResumed(attempt=1))

    reading = tell(log)
    row = reading.one("SELECT * FROM preemptions")

    assert ("7", "8", SECOND_US, 2 * SECOND_US) == (
        row["victim"],
        row["preemptor"],
        row["suspended_us"] - row["ordered_us"],
        row["resumed_us"] - row["suspended_us"],
    )
    assert ["PEND", "RUN", "SSUSP", "RUN"] == states(reading, "7")
    assert ("suspend", "7") == tuple(
        reading.one("SELECT kind, job_id FROM orders WHERE done_us IS NOT NULL").values()
    )


def test_a_stopped_job_is_stopped_again_when_its_host_comes_back(tell) -> None:
    """
    UNKWN says nothing of what the job was before; the suspension does.
    """
    log = a_cluster()
    job = log.job(7)
    log.session((job, dispatched(1)))
    log.session(
        (job, JobSuspendOrdered(attempt=1, worker="h1", order_number=1, why="SUSP_PREEMPT"))
    )
    log.add(job, JobSuspended(attempt=1))
    log.add("worker:h1", WorkerBecameUnreachable(silent_us=5))
    log.add("worker:h1", WorkerCameBack(incarnation=1))

    reading = tell(log)
    assert ["PEND", "RUN", "SSUSP", "UNKWN", "SSUSP"] == states(reading, "7")
    assert 1 == report_of(reading).preemptions


def test_what_a_user_stops_and_lets_go_on_is_no_suspension_by_the_scheduler(tell) -> None:
    """
    Until the worker has let it go on the job is SSUSP, as in LSF.
    """
    log = a_cluster()
    job = log.job(7)
    log.session((job, dispatched(1)))
    log.add(job, JobStopRequested())
    log.add(job, JobSuspendOrdered(attempt=1, worker="h1", order_number=1, why="SUSP_USER_STOP"))
    log.add(job, JobSuspended(attempt=1))
    log.add(job, JobResumeRequested())
    log.add(job, JobResumeOrdered(attempt=1, worker="h1", order_number=2))
    log.add(job, JobResumed(attempt=1))

    reading = tell(log)
    assert ["PEND", "RUN", "USUSP", "SSUSP", "RUN"] == states(reading, "7")
    assert 0 == report_of(reading).preemptions


def test_a_wait_is_cut_where_its_reason_set_changes(tell) -> None:
    """
    The job itself has no event then, and still its reason was another one from there on.
    """
    log = a_cluster()
    job = log.job(7)
    log.session(("reasons", short_of_slots()), (job, pended()))
    log.session(("reasons", short_of_memory()))
    log.session((job, dispatched(1)))

    assert [("JOB_NEW", 1), ("HOST_SLOTS", 1), ("HOST_JOB_RUSAGE", 1)] == reasons(tell(log), "7")


def test_a_set_that_changes_after_the_job_left_it_is_not_its_reason(tell) -> None:
    """
    Sets outlive the jobs that are in them.
    """
    log = a_cluster()
    job = log.job(7)
    log.session(("reasons", short_of_slots()), (job, pended()))
    log.session((job, dispatched(1)))
    log.session(("reasons", short_of_memory()))

    assert [("JOB_NEW", 1), ("HOST_SLOTS", 1)] == reasons(tell(log), "7")


def test_jobs_behind_a_blocker_wait_for_it_until_it_is_gone(tell) -> None:
    """
    In a strict order the jobs behind have no event of their own: the list's blocker is their
    reason.
    """
    log = a_cluster()
    first, second = log.job(7), log.job(8)
    log.session(
        ("reasons", short_of_slots()), (first, pended()), ("cluster", ListHeldBack(blocker="7"))
    )
    log.session((first, JobEnded(why="TERM_OWNER")))
    log.session((second, dispatched(1)))

    reading = tell(log)

    assert [("JOB_NEW", 2), ("HOST_SLOTS", 1)] == reasons(reading, "7")
    assert [("JOB_NEW", 1), ("JOB_BEHIND", 1), ("JOB_NEW", 1)] == reasons(reading, "8")
    assert ["", "7", ""] == [
        row["blocker"]
        for row in reading.rows("SELECT blocker FROM list_blockers ORDER BY from_position")
    ]


def test_a_held_job_waits_for_nobody_else(tell) -> None:
    """
    What its user keeps back isn't behind another job, whoever blocks the list.
    """
    log = a_cluster()
    first, second = log.job(7), log.job(8)
    log.add(second, JobHeld(), "ann")
    log.session(("cluster", ListHeldBack(blocker="7")))
    del first

    assert [("JOB_NEW", 1), ("USER_STOP", None)] == reasons(tell(log), "8")


def test_who_held_a_job_is_told_as_of_live_jobs(tell) -> None:
    """
    Its user can resume it, or an administrator only, who may also take over what its user held;
    such a job isn't behind another one either.
    """
    log = a_cluster()
    log.job(7)
    second = log.job(8)
    log.add(second, JobHeld(), "ann")
    log.add(second, JobHeld(), "root")
    log.session(("cluster", ListHeldBack(blocker="7")))
    reading = tell(log)

    assert [("USER_STOP", 1), ("ADMIN_STOP", None)] == reasons(reading, "8")[-2:]
    words = {
        row["code"]: (row["main_reason"], row["reasons"])
        for row in reading.rows("SELECT * FROM pend_reasons WHERE job_id = '8'")
    }
    by_user, by_other = TEXTS[ReasonCode.USER_STOP], TEXTS[ReasonCode.ADMIN_STOP]
    assert (by_user, by_user) == words["USER_STOP"]
    assert (by_other, by_other) == words["ADMIN_STOP"]
    assert ("held", "ADMIN_STOP") == (why_at(reading, "8").verdict, why_at(reading, "8").code)


def test_a_queue_with_a_list_of_its_own_is_blocked_by_its_own_jobs_only(tell) -> None:
    """
    A queue that names its own picker isn't held back by the cluster's list.
    """
    log = a_cluster()
    log.job(7)
    log.job(8, queue="night")
    log.job(9, queue="night")
    log.session(("cluster", ListHeldBack(blocker="7")), ("queue:night", ListHeldBack(blocker="8")))

    reading = tell(log)

    assert ("JOB_NEW", None) == reasons(reading, "8")[-1]
    assert ("JOB_BEHIND", None) == reasons(reading, "9")[-1]


@pytest.mark.parametrize(("own", "state"), [(None, "DONE"), (ExitRules(success=(5,)), "EXIT")])
def test_the_queues_exit_values_hold_for_jobs_without_rules_of_their_own(tell, own, state) -> None:
    """
    3 means success in the queue; a job that has its own rules means what they say.
    """
    log = a_cluster()
    log.add("queue:normal", QueueDefined(spec=QueueSpec(priority=3, exits=ExitRules(success=(3,)))))
    job = log.job(7, exits=own)
    log.session((job, dispatched(1)))
    log.add(job, JobFinished(attempt=1, exit_code=3))

    assert state == states(tell(log), "7")[-1]


def test_changes_say_old_new_and_who(tell) -> None:
    """
    Nobody could tell who changed a server setting or when: each changed field is a row.
    """
    log = a_cluster()
    log.add("queue:normal", QueueDefined(spec=QueueSpec(priority=40)), "zoe")
    log.add("queue:normal", QueueClosed(), "ben")
    log.add("worker:h1", WorkerClosed(why="disk"), "ben")

    changed = tell(log).table(
        "SELECT kind, name, field, old, new, actor FROM changes WHERE old IS NOT NULL ORDER BY "
        "position"
    )[1]

    assert [
        ("queue", "normal", "priority", "30", "40", "zoe"),
        ("queue", "normal", "is_open", "true", "false", "ben"),
        ("worker", "h1", "status", '"ok"', '"closed"', "ben"),
    ] == list(changed)


def test_a_modified_or_switched_job_says_what_changed_and_is_found_by_its_new_name(tell) -> None:
    """
    The index of words must not keep the old name, nor miss the new one.
    """
    log = a_cluster()
    job = log.job(7, name="apple")
    log.add(job, JobModified(spec=JobSpec(user="ann", queue="normal", name="pear")), "ann")
    log.add(job, JobSwitched(queue="night"), "root")

    reading = tell(log)
    found = [
        reading.value("SELECT count(*) FROM jobs_fts WHERE jobs_fts MATCH ?", (word,))
        for word in ("apple", "pear")
    ]

    assert [0, 1] == found
    assert [("name", '"apple"', '"pear"', "ann"), ("queue", '"normal"', '"night"', "root")] == list(
        reading.table(
            "SELECT field, old, new, actor FROM changes WHERE kind = 'job' ORDER BY position"
        )[1]
    )
    assert "night" == reading.value("SELECT queue FROM jobs")


def test_a_refused_command_is_told_in_the_words_of_one_that_was_carried_out(tell) -> None:
    """
    Whoever looks for "hold job" must find the refused ones too.
    """
    log = a_cluster()
    log.add(log.job(7), JobHeld(), "ann")
    log.add(
        "refusals",
        CommandRefused(command="HoldJob", subject="7", field="job_id", rule="is held"),
        "ben",
    )
    log.add("refusals", AccessDenied(action="HoldJob", subject="7"), "zoe")
    denied = AccessDenied(action="HoldJob", subject="7", field="caller", rule="must be its owner")
    log.add("refusals", denied, "eve")

    told = tell(log).table(
        "SELECT actor, command, object, outcome, rule FROM commands WHERE command = 'hold job' "
        "ORDER BY position"
    )[1]

    assert [
        ("ann", "hold job", "7", "done", ""),
        ("ben", "hold job", "7", "refused", "is held"),
        ("zoe", "hold job", "7", "denied", "access denied"),
        ("eve", "hold job", "7", "denied", "must be its owner"),
    ] == list(told)


def test_a_refusal_that_was_recorded_by_its_route_keeps_its_spelling(tell) -> None:
    """
    Older logs have some: spelled letter by letter nobody could read them.
    """
    log = a_cluster()
    route = "POST /v1/define/queue"
    by_route = CommandRefused(command=route, field="priority", rule="is missing")
    log.add("refusals", by_route, "ben")
    refused = CommandRefused(command="CloseQueue", subject="q1", field="queue", rule="is none")
    log.add("refusals", refused, "ben")

    told = tell(log).table(
        "SELECT command, object_kind, object FROM commands WHERE outcome = 'refused' "
        "ORDER BY position"
    )[1]

    assert [(route, "", ""), ("close queue", "queue", "q1")] == list(told)
    assert f"refused: {route}: priority is missing" == words(by_route, str)
    denied = AccessDenied(action="CloseQueue", subject="q1", field="actor", rule="may not")
    assert "denied: close queue q1: actor may not" == words(denied, str)


def test_what_happened_in_a_session_is_counted_for_it(tell) -> None:
    """
    A step that is cut by a batch still belongs to its session.
    """
    log = a_cluster()
    job, other = log.job(7), log.job(8)
    log.session(("reasons", short_of_slots()), (other, pended()), (job, dispatched(1)))
    log.add(job, JobFinished(attempt=1, exit_code=0))

    row = tell(log).one("SELECT * FROM sessions")

    assert (1, 1, 1, 1, 0, 0) == (
        row["number"],
        row["dispatched"],
        row["pended"],
        row["reason_sets"],
        row["orders"],
        row["others"],
    )

"""
Every event type leaves its trace: a new one without rows of its own fails here.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

import domain.events  # noqa: F401 - defining the events fills the registry
from domain.amounts import Amount
from domain.event import Event, event_class, event_classes
from domain.events import jobs, log, queues, refusals, resources, scheduler, session, workers
from domain.events.workers import JobUsage
from domain.jobs import HostTasks, JobSpec
from domain.limits import LimitAmount
from domain.queues import QueueSpec
from domain.reservations import BackfillReservation, KeptRun
from domain.resources import ResourceDescriptor
from domain.signals import SignalName
from domain.workers import HostSettings
from projections.audit.fold import HANDLERS, Fold
from projections.audit.projection import AuditProjection
from projections.audit.read_model import ReadModel
from projections.audit.reading import Reading
from projections.audit.schema import tables
from projections.audit.wording import event_of, words
from tests.builders import some_settings
from tests.projections.audit.logs import (
    Log,
    a_cluster,
    dispatched,
    pended,
    short_of_slots,
)
from tests.projections.audit.making import made
from tests.strategies import instances

WAITS, RUNS, HELD, STOPPED = (f"job:{number:010d}" for number in (1, 2, 3, 4))
RUN_1 = {"attempt": 1}
ORDER = {"attempt": 1, "worker": "h1", "order_number": 2}
MEM = (Amount(resource="mem", milli=5),)

# Type code -> stream and event that does something after the history below.
EXAMPLES: dict[str, tuple[str, Event]] = {
    one[1].TYPE_CODE: one
    for one in (
        ("job:0000000009", jobs.JobSubmitted(spec=JobSpec(user="ann", queue="normal"))),
        (WAITS, jobs.JobHeld()),
        (HELD, jobs.JobHoldLifted()),
        (RUNS, jobs.JobKillRequested()),
        (RUNS, jobs.JobStarted(**RUN_1)),
        (RUNS, jobs.JobCouldNotStart(attempt=1, why="gone")),
        (RUNS, jobs.JobFinished(attempt=1, exit_code=1)),
        (WAITS, pended(1)),
        (WAITS, dispatched(1)),
        (RUNS, jobs.JobKillOrdered(**ORDER, why="TERM_OWNER")),
        (WAITS, jobs.JobRunRequested(hosts=(HostTasks(host="h1", tasks=2),))),
        (RUNS, jobs.JobSignalRequested(signal=SignalName.USR1)),
        (RUNS, jobs.JobSignalOrdered(**ORDER, signal=SignalName.USR1)),
        (WAITS, jobs.JobEnded(why="TERM_OWNER")),
        (WAITS, jobs.JobModified(spec=JobSpec(user="ann", queue="normal", name="other"))),
        (WAITS, jobs.JobSwitched(queue="night")),
        (WAITS, jobs.JobMoved(place=-1)),
        (RUNS, jobs.JobRequeueRequested()),
        (RUNS, jobs.JobRequeued(why="command")),
        (RUNS, jobs.JobStopRequested()),
        (STOPPED, jobs.JobResumeRequested()),
        (RUNS, jobs.JobSuspendOrdered(**ORDER, why="SUSP_USER_STOP")),
        (RUNS, jobs.JobSuspended(**RUN_1)),
        (STOPPED, jobs.JobResumeOrdered(**ORDER)),
        (STOPPED, jobs.JobResumed(**RUN_1)),
        ("queue:normal", queues.QueueDefined(spec=QueueSpec(priority=1))),
        ("queue:shut", queues.QueueOpened()),
        ("queue:normal", queues.QueueClosed()),
        ("queue:shut", queues.QueueActivated()),
        ("queue:normal", queues.QueueInactivated()),
        ("refusals", refusals.CommandRefused(command="KillJob", field="job_id", rule="is gone")),
        ("refusals", refusals.AccessDenied(action="kill job")),
        (
            "refusals",
            refusals.ReportIgnored(report="usage", worker="h1", incarnation=1, why="stale"),
        ),
        (
            "scheduler",
            scheduler.SchedulerStarted(
                epoch=2, holder="x", code_version="1", pickers=(), allocators=()
            ),
        ),
        ("scheduler", scheduler.SchedulerStopped()),
        ("scheduler", scheduler.ClockCorrected(forward_us=5)),
        ("cluster", scheduler.ClusterDefined(settings=some_settings(name="other"))),
        ("session", session.SessionHeld(number=99)),
        ("reasons", short_of_slots(1, never=True)),
        (
            "log",
            log.LogBranched(
                parent_log_id="p", parent_position=3, parent_digest="d", changes=("x",)
            ),
        ),
        (
            "log",
            log.LogArchived(
                first_position=1, last_position=9, digest="d", file="f", sha256="s", wall_time_us=7
            ),
        ),
        (
            "log",
            log.LogPruned(first_position=1, last_position=9, digest="d", files=1, wall_time_us=7),
        ),
        ("resource:lic", resources.ResourceDefined(descriptor=ResourceDescriptor(name="lic"))),
        ("cluster", session.ListHeldBack(blocker="1")),
        ("session", session.JobsForgotten(ranges=(session.IdRange(first=1, last=2),))),
        ("worker:h9", workers.WorkerJoined(incarnation=1, host_number=9, slots=1)),
        (
            "worker:h1",
            workers.WorkerReported(
                incarnation=1, load=MEM, jobs=(JobUsage(job_id="2", attempt=1, amounts=MEM),)
            ),
        ),
        ("worker:h1", workers.WorkerClosed(why="disk")),
        ("worker:h1", workers.WorkerDrained(why="disk")),
        ("worker:h2", workers.WorkerOpened()),
        (WAITS, jobs.JobPreemptionPlanned(allocation=dispatched(1).allocation, victims=("2",))),
        ("job:0000000005", jobs.JobPreemptionEnded()),
        (
            WAITS,
            jobs.JobStartPromised(
                reservation=BackfillReservation(
                    policy="easy", start_us=9_000_000, runs=(KeptRun(first=1, hosts=2, slots=4),)
                )
            ),
        ),
        ("worker:h1", workers.WorkerConfigured(settings=HostSettings(is_locked=True))),
        ("worker:h1", workers.WorkerBecameUnreachable(silent_us=5)),
        ("worker:h3", workers.WorkerCameBack(incarnation=1)),
        ("worker:h1", workers.WorkerLeft(incarnation=1)),
        ("worker:h1", workers.WorkerOrderDone(incarnation=1, order_number=1)),
    )
}


# Fields without a default of what can be defined.
REQUIRED: dict[str, dict[str, object]] = {
    "queue": {"priority": 1},
    "limit": {"amounts": (LimitAmount(resource="slots", milli=1000),)},
}


def defines(code: str, name: str) -> tuple[str, Event]:
    """
    Return stream and event of the plainest definition of a kind.
    """
    kind = code.partition(".")[0]
    event_type = event_class(f"{kind}.defined")
    spec_type = event_type.model_fields["spec"].annotation
    return f"{kind}:{name}", event_type(spec=spec_type(**REQUIRED.get(kind, {})))


def example(code: str) -> tuple[str, Event]:
    """
    Return stream and event of an example; what is defined or removed needs none of its own.
    """
    if code in EXAMPLES:
        return EXAMPLES[code]
    if code.endswith(".removed"):
        return f"{code.partition('.')[0]}:known", event_class(code)()
    return defines(code, "new")


REMOVABLE = [code for code in event_classes() if code.endswith(".removed")]
COMMON = {code for code in event_classes() if code.endswith((".defined", ".removed"))}


def a_history() -> Log:
    """
    Return a log in which each example has something to do.
    """
    history = a_cluster()
    history.host("h3", 2)
    history.add("cluster", scheduler.ClusterDefined(settings=some_settings()))
    history.add(
        "queue:shut",
        queues.QueueDefined(spec=QueueSpec(priority=1, is_open=False, is_active=False)),
    )
    started = scheduler.SchedulerStarted(
        epoch=1, holder="x", code_version="1", pickers=(), allocators=()
    )
    history.add("scheduler", started)
    for code in REMOVABLE:
        history.add(*defines(code, "known"))
    for number in (1, 2, 3, 4, 5):
        history.job(number, hold=number == 3)
    held = jobs.JobPreemptionPlanned(allocation=dispatched(1).allocation, victims=("2",))
    history.add("job:0000000005", held)
    history.session(("reasons", short_of_slots(1)), (RUNS, dispatched(1)), (STOPPED, dispatched(1)))
    history.add(STOPPED, jobs.JobStopRequested(), "ann")
    history.add(
        STOPPED,
        jobs.JobSuspendOrdered(attempt=1, worker="h1", order_number=1, why="SUSP_USER_STOP"),
    )
    history.add(STOPPED, jobs.JobSuspended(attempt=1))
    history.add("worker:h2", workers.WorkerClosed())
    history.add("worker:h3", workers.WorkerBecameUnreachable(silent_us=5))
    return history


def test_every_event_type_has_rows_and_an_example_here() -> None:
    """
    A new event needs a function that writes its rows (projections/audit/fold_*.py), and an example
    above.
    """
    codes = set(event_classes())

    assert (codes, codes) == (set(HANDLERS), {*EXAMPLES, *COMMON})


def told(reading: Reading) -> dict[str, list[tuple[object, ...]]]:
    """
    Return all rows but the bare record of the event and of how far the tables have got.
    """
    content = {}
    for table in tables().values():
        if table.name != "events":
            names = [name for name in table.names if name != "last_position"]
            content[table.name] = list(
                reading.table(f"SELECT {', '.join(names)} FROM {table.name}")[1]
            )
    return content


@pytest.mark.parametrize("code", sorted(event_classes()))
def test_an_event_changes_a_table_besides_the_list_of_events(tmp_path: Path, code: str) -> None:
    """
    The bare record isn't a trace that people can ask in SQL.
    """
    before, after = a_history(), a_history()
    stream, event = example(code)
    after.add(stream, event, "ann")

    with (
        made(tmp_path / "a.db", before.envelopes) as first,
        made(tmp_path / "b.db", after.envelopes) as second,
    ):
        assert told(first) != told(second)


@pytest.mark.parametrize("code", sorted(event_classes()))
def test_every_event_type_has_words_of_its_own(code: str) -> None:
    """
    A story that shows JSON isn't in plain words.
    """
    text = words(example(code)[1], lambda number: f"h{number}")

    assert text
    assert "{" not in text


@pytest.mark.slow
@pytest.mark.parametrize("code", sorted(event_classes()))
def test_safety_whatever_an_event_says_the_tables_take_it(code: str) -> None:
    """
    The largest numbers, empty texts, control characters, every optional field there or not.
    """
    stream, _ = example(code)
    history = a_history()
    model = ReadModel.create(":memory:", log_id="x")
    AuditProjection(model).take(history.envelopes)
    last = history.envelopes[-1]
    execute = model.database.conn.execute

    @settings(max_examples=20)
    @given(instances(event_class(code)))
    def take(event: Event) -> None:
        fold = Fold(model)
        fold.take(
            last._replace(position=last.position + 1, stream=stream, version=99, event=short(event))
        )
        execute("BEGIN")
        try:
            for statement, rows in fold.drain():
                model.database.conn.executemany(statement, rows)
            latest = execute("SELECT payload FROM events ORDER BY position DESC LIMIT 1")
            assert words(event_of(code, latest.fetchone()[0]), str)
        finally:
            execute("ROLLBACK")

    take()
    model.close()


def short(event: Event) -> Event:
    """
    Return an event without an array of up to a million elements, each of which would be a row.
    """
    spec = getattr(event, "spec", None)
    if getattr(spec, "array", None) is None:
        return event
    return event.model_copy(update={"spec": spec.model_copy(update={"array": None})})

"""
The amounts of a trace's rows: what there is, what jobs are charged, what they asked for.
"""

from __future__ import annotations

from domain.amounts import Amount
from domain.commands import DefineQueue, WorkerReport
from domain.events.workers import JobUsage
from domain.queues import QueueSpec
from projections.scheduling.trace import Kind, TraceSettings
from projections.scheduling.trace_session import Tracing
from projections.scheduling.trace_store import TraceStore
from replay.debugger.show import Units
from replay.trace_words import line_text
from tests.builders import MB_MILLI, SECOND_US
from tests.scenario import Scenario


def rows_of(scenario, job_id, kind=Kind.HOST):
    store = TraceStore()
    scenario.core.tracing = Tracing(TraceSettings(), store)
    scenario.session()
    trace = store.get(job_id)
    assert trace is not None
    return [row for line in trace.lines if line.kind is kind for row in line.rows]


def test_use_beyond_what_was_asked_for_is_told_apart():
    """
    In use is what jobs are charged, reserved what of it they asked for; available is less than the
    rest of the total where the operating system says so.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=4 mem_mb=1000")
    scenario.submit("A", resreq=("rusage[mem=300]",))
    scenario.session()
    usage = JobUsage(
        job_id=scenario.ids["A"], attempt=1, amounts=(Amount(resource="mem", milli=500 * MB_MILLI),)
    )
    load = (Amount(resource="mem", milli=450 * MB_MILLI),)
    report = WorkerReport(worker="h1", incarnation=1, load=load, jobs=(usage,))
    scenario.command(report, actor="")
    scenario.submit("B", resreq=("rusage[mem=600]",))

    (row,) = rows_of(scenario, "2")

    assert ("mem", 1_000, 500, 300, 450, 600, 150) == (
        row.name,
        *(milli // MB_MILLI for milli in (
            row.total_milli, row.in_use_milli, row.reserved_milli, row.available_milli,
            row.requested_milli, row.missing_milli,
        )),
    )  # fmt: skip
    assert not row.is_met
    assert {"real", "consumable"} <= set(row.flags)


def test_a_bucket_asks_for_its_tasks_share():
    """
    Per task, per host and per job differ in what a bucket of two tasks of three asks for.
    """
    asked = []
    for per in ("task", "host", "job"):
        scenario = Scenario()
        scenario.hosts("h1 slots=2 mem_mb=10", "h2 slots=2 mem_mb=10")
        text = f"rusage[mem=300/{per}]"
        scenario.submit("A", tasks_min=3, tasks_max=3, resreq=(text,))
        rows = [row for row in rows_of(scenario, "1") if row.name == "mem"]
        asked.append({row.requested_milli // MB_MILLI for row in rows})

    assert [{300, 600, 900}, {300}, {100, 200, 300}] == asked


def test_what_is_gathered_and_who_borrows_of_it_is_told():
    """
    The wide job says what it has so far; a short one that runs on its slots, whose they are.
    """
    scenario = Scenario()
    for name, spec in {
        "par": QueueSpec(priority=50, slot_reserve_us=300 * SECOND_US),
        "bf": QueueSpec(priority=40, is_backfill=True),
    }.items():
        scenario.command(DefineQueue(queue=name, spec=spec))
    scenario.hosts("h1 slots=4")
    scenario.submit("A", tasks_min=2, tasks_max=2, run_limit_us=100 * SECOND_US)
    scenario.session()
    scenario.start("A")
    scenario.jobs("BIG tasks=4 queue=par")
    scenario.submit("SHORT", queue="bf", run_limit_us=100 * SECOND_US)
    store = TraceStore()
    scenario.core.tracing = Tracing(TraceSettings(), store)

    scenario.session()

    told = [
        [line_text(line, Units()) for line in trace.lines if line.kind is Kind.READINESS]
        for trace in map(store.get, ("2", "3")) if trace is not None
    ]  # fmt: skip
    assert [
        ["may start", "gathered for it so far: 2 slots, 1 host: gathers"],
        ["may start", "it may borrow what is gathered for job 2: on terms"],
    ] == told

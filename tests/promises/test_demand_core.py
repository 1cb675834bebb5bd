"""
What users of other schedulers reported, as tests of the core: each is named by its row of the list
of demands (B why it waits, G placement and limits, H memory, I time).
"""

from __future__ import annotations

import pytest

from domain.amounts import MEM, Amount
from domain.arrays import ArraySpec, IndexRange
from domain.commands import WorkerReport
from domain.commands import reports as commands_of_reports
from domain.errors import InvariantBroken, Refused
from domain.event import Value
from domain.events.jobs import JobDispatched
from domain.events.workers import JobUsage
from domain.jobs import ExitRules
from domain.reasons import ReasonCode
from projections.scheduling.core import Core
from projections.scheduling.status import why_waiting
from tests.builders import MB_MILLI, SECOND_US, some_settings
from tests.projections.scheduling.policies import limit, queue
from tests.projections.scheduling.preempting import queues, running
from tests.projections.scheduling.test_placement import shared
from tests.scenario import Scenario

HOUR_S = 3_600


def codes(scenario: Scenario, name: str) -> list[ReasonCode]:
    """
    Return why a job waits.
    """
    return [reason.code for reason in why_waiting(scenario.state, scenario.job(name))[1]]


def an_array(count: int) -> ArraySpec:
    """
    Return an array of so many elements.
    """
    return ArraySpec(ranges=(IndexRange(start=1, end=count),))


# ---------------------------------------------------------------------------------- B, why it waits


def test_b09_a_job_that_fits_nowhere_is_told_never(scenario: Scenario) -> None:
    """
    The outcome is that it pends, with a flag that it can never start as things are.
    """
    scenario.hosts("h1 slots=4")
    scenario.jobs("A tasks=9")
    scenario.session()

    assert scenario.states() == {"A": "PEND"}
    assert why_waiting(scenario.state, scenario.job("A"))[0]


def test_b13_kinds_of_waiting_have_codes_of_their_own(scenario: Scenario) -> None:
    """
    A missing and a closed queue refuse, by different rules; a request above a bound and plain
    waiting are told apart.
    """
    scenario.hosts("h1 slots=1")
    queue(scenario, "shut", is_open=False)
    limit(scenario, "few", users="alice", slots=3)
    rules = []
    for name in ("nowhere", "shut", "normal"):
        with pytest.raises(Refused) as refused:
            scenario.submit("X", queue=name, user="alice", tasks_min=4, tasks_max=4)
        rules.append(refused.value.rule)
    scenario.jobs("A", "B")
    scenario.session()

    assert len(set(rules)) == len(rules)
    assert codes(scenario, "B") == [ReasonCode.HOST_SLOTS]


def test_b17_a_new_job_says_that_it_was_not_considered_yet(scenario: Scenario) -> None:
    """
    Before the first session there is no other reason.
    """
    scenario.jobs("A")

    assert codes(scenario, "A") == [ReasonCode.JOB_NEW]


def test_b21_a_limit_is_told_by_name_with_what_was_asked(scenario: Scenario) -> None:
    """
    The known cause isn't dropped on the way.
    """
    scenario.hosts("h1 slots=9")
    limit(scenario, "few", users="alice", slots=3)
    scenario.jobs("A tasks=2", "B tasks=2")
    scenario.session()
    reason = why_waiting(scenario.state, scenario.job("B"))[1][0]

    assert (reason.detail, reason.resource, reason.requested_milli) == ("few", "slots", 2_000)


# ----------------------------------------------------------------- G, placement, limits, preemption


def test_g01_strict_order_is_kept(scenario: Scenario) -> None:
    """
    A later job that would fit waits behind the blocked first one, and says so.
    """
    strict = Scenario(some_settings(picker="strict_fcfs"), plain=scenario.state.is_plain)
    strict.hosts("h1 slots=4")
    strict.jobs("A tasks=9", "B tasks=1")
    strict.session()

    assert strict.states() == {"A": "PEND", "B": "PEND"}
    reason = why_waiting(strict.state, strict.job("B"))[1][0]
    assert (reason.code, reason.detail) == (ReasonCode.JOB_BEHIND, f"job {strict.ids['A']}")


def test_g05_one_request_written_two_ways_gets_the_same(scenario: Scenario) -> None:
    """
    One task on each of four hosts.
    """
    hosts = [f"h{number} slots=2" for number in range(1, 6)]
    got = []
    for resreq in ("span[ptile=1]", "span[stripe=1]", "1*{span[ptile=1]}+3*{span[ptile=1]}"):
        fresh = Scenario(plain=scenario.state.is_plain)
        fresh.hosts(*hosts)
        fresh.submit("A", resreq=(resreq,), tasks_min=4, tasks_max=4)
        got.append(fresh.session())

    assert got[0] == got[1] == ["A dispatched: h1*1 h2*1 h3*1 h4*1"]


def test_g07_one_host_for_all_tasks_says_what_the_hosts_have(scenario: Scenario) -> None:
    """
    It needs eight slots on one host, and the best one has four.
    """
    scenario.hosts("h1 slots=4", "h2 slots=4")
    scenario.submit("A", resreq=("span[hosts=1]",), tasks_min=8, tasks_max=8)
    scenario.session()
    reason = why_waiting(scenario.state, scenario.job("A"))[1][0]

    assert (reason.code, reason.requested_milli) == (ReasonCode.JOB_NO_SPAN, 8_000)
    assert {span.available_milli for span in reason.hosts} == {4_000}


@pytest.mark.parametrize(("free", "expected"), [(1, 0), (2, 2), (3, 3), (6, 5)])
def test_g08_a_range_starts_with_what_is_there(
    scenario: Scenario, free: int, expected: int
) -> None:
    """
    At least the minimum, at most the maximum.
    """
    scenario.hosts(f"h1 slots={free}")
    scenario.jobs("A tasks=2 tasks_max=5")

    assert scenario.session()[0].endswith(f"h1*{expected}" if expected else "short on h1")


def test_g10_equal_victims_are_chosen_alike_every_time(scenario: Scenario) -> None:
    """
    The latest start, then the highest number; as few as can be.
    """
    for _ in range(20):
        fresh = Scenario(plain=scenario.state.is_plain)
        queues(fresh, "hi 90 >all", "lo 10 <all")
        fresh.hosts("h1 slots=2")
        fresh.jobs("A queue=lo", "B queue=lo")
        fresh.session()
        fresh.jobs("C queue=hi")
        fresh.session()
        told = [words.split()[0] for words in fresh.decisions if "stop ordered" in words]
        assert ["B"] == told


def test_g12_nobody_fills_the_slots_of_a_suspended_job(scenario: Scenario) -> None:
    """
    A long small job of another queue would delay its resumption: it waits.
    """
    queues(scenario, "hi 90 >all", "mid 50", "lo 10 <all")
    scenario.hosts("h1 slots=4")
    running(scenario, "A queue=lo tasks=4")
    scenario.jobs("B queue=hi")
    scenario.session()
    scenario.suspended("A")
    scenario.session()
    scenario.jobs("C queue=mid")
    scenario.session()

    assert scenario.states() == {"A": "SSUSP", "B": "RUN", "C": "PEND"}
    scenario.finish("B")
    scenario.session()
    scenario.resumed("A")
    assert scenario.states()["A"] == "RUN"


def test_g14_an_array_never_holds_more_than_there_is(scenario: Scenario) -> None:
    """
    Two slots, forty short elements: at every position of the log at most two are charged.
    """
    scenario.hosts("h1 slots=2")
    scenario.submit("A", array=an_array(40))
    for _ in range(25):
        scenario.session()
        for job in list(scenario.state.live.values()):
            scenario.finish(f"A[{job.index}]")
    folded = Core()
    for stamped in scenario.log:
        folded.apply(stamped)
        assert sum(folded.state.capacity.used) <= 2
    started = [one for one in scenario.log if isinstance(one.event, JobDispatched)]

    assert len(started) == 40


def test_g16_an_element_that_never_ran_ends_alone(scenario: Scenario) -> None:
    """
    Killing one of ten that wait leaves nine that wait.
    """
    scenario.submit("A", array=an_array(10))
    scenario.kill("A[3]")
    scenario.session()
    found = [state for name, state in scenario.states().items() if name != "A"]

    assert (found.count("PEND"), scenario.states()["A[3]"]) == (9, "EXIT")


def test_g19_deciding_changes_nothing_of_what_was_asked(scenario: Scenario) -> None:
    """
    A run limit of an hour stays one, whatever is decided.
    """
    scenario.hosts("h1 slots=1")
    scenario.submit("A", run_limit_us=HOUR_S * SECOND_US)
    before = scenario.job("A").spec
    scenario.session()

    assert before == scenario.job("A").spec


def test_g20_a_bound_of_requeues_holds_across_failed_placements(scenario: Scenario) -> None:
    """
    One requeue, a time without room, the second failure: no third run.
    """
    scenario.hosts("h1 slots=1")
    scenario.submit("A", exits=ExitRules(requeue=(9,), requeue_max=1))
    scenario.session()
    scenario.finish("A", exit_code=9)
    scenario.close("h1")
    scenario.session()
    assert scenario.states()["A"] == "PEND"
    scenario.open("h1")
    scenario.session()
    scenario.finish("A", exit_code=9)
    scenario.session()

    assert (scenario.states()["A"], scenario.job("A").attempt) == ("EXIT", 2)


def test_g22_a_shared_resource_is_never_overdrawn(scenario: Scenario) -> None:
    """
    Four licences, ten jobs of one each: four run, and the others say which resource is short.
    """
    scenario.hosts("h1 slots=20")
    shared(scenario, "lic", 4)
    for number in range(10):
        scenario.submit(f"J{number}", resreq=("rusage[lic=1]",))
    scenario.session()

    assert list(scenario.states().values()).count("RUN") == 4
    assert codes(scenario, "J9") == [ReasonCode.RES_SHORT]


def test_g25_a_code_of_a_job_that_never_ran_satisfies_nobody(scenario: Scenario) -> None:
    """
    Killed while it waited, it has no exit code below ten, nor has a child of it that never ran.
    """
    scenario.jobs("J1 hold=1")
    scenario.submit("J2", dependency_text="exit(J1,<10)")
    scenario.submit("J3", dependency_text="exit(J2,<10)")
    scenario.kill("J1")
    scenario.session()
    assert codes(scenario, "J2") == [ReasonCode.JOB_DEP_INVALID]
    scenario.kill("J2")
    scenario.session()
    scenario.session()

    assert codes(scenario, "J3") == [ReasonCode.JOB_DEP_INVALID]


# ---------------------------------------------------------------------------------------- H, memory


def test_h01_charged_is_the_greater_of_reserved_and_used(scenario: Scenario) -> None:
    """
    8 GB reserved on a host of 16: using 2 leaves 8 to others, using 10 leaves 6.
    """
    scenario.hosts("h1 slots=4 mem_mb=16000")
    scenario.jobs("A mem_mb=8000")
    scenario.session()
    column = scenario.state.capacity.resources[MEM]
    seen = [(int(column.charged[0]), int(column.available[0]))]
    for used in (2_000, 10_000):
        report(scenario, "h1", 16_000 - used, {"A": used})
        seen.append((int(column.charged[0]), int(column.available[0])))

    expected = [(8_000, 8_000), (8_000, 8_000), (10_000, 6_000)]
    assert seen == [(charged * MB_MILLI, left * MB_MILLI) for charged, left in expected]


def report(scenario: Scenario, host: str, free_mb: int, used_mb: dict[str, int]) -> None:
    """
    Report a host's free memory and what jobs use there.
    """
    jobs = tuple(
        JobUsage(
            job_id=scenario.ids[name],
            attempt=1,
            amounts=(Amount(resource=MEM, milli=used * MB_MILLI),),
        )
        for name, used in used_mb.items()
    )
    load = (Amount(resource=MEM, milli=free_mb * MB_MILLI),)
    scenario.command(WorkerReport(worker=host, incarnation=1, load=load, jobs=jobs), actor="")


def test_h06_each_host_is_reconciled_by_its_own_report(scenario: Scenario) -> None:
    """
    A job over two hosts uses more than it reserved on one of them: the other one is as it was.
    """
    scenario.hosts("h1 slots=1 mem_mb=1000", "h2 slots=1 mem_mb=1000")
    scenario.jobs("A tasks=2 mem_mb=100")
    scenario.session()
    report(scenario, "h2", 700, {"A": 300})
    charged = scenario.state.capacity.resources[MEM].charged

    assert [100 * MB_MILLI, 300 * MB_MILLI] == charged.tolist()


# ------------------------------------------------------------------------------------------ I, time


def test_i06_no_time_that_is_booked_is_negative(scenario: Scenario) -> None:
    """
    Reports that come at the same stamp as what they report leave zero, never less.
    """
    scenario.hosts("h1 slots=1")
    scenario.jobs("A")
    scenario.session()
    scenario.start("A")
    scenario.finish("A")
    job = scenario.job("A")

    booked = (job.pend_us, job.held_us, job.run_us, job.unknown_us, job.system_suspended_us)
    assert min(booked) >= 0


def test_i09_a_begin_time_outlives_a_restart(scenario: Scenario) -> None:
    """
    A start in 24 hours, a restart after 23: it starts after 24, not after 47.
    """
    scenario.hosts("h1 slots=1")
    begin_us = scenario.now_us + 24 * HOUR_S * SECOND_US
    scenario.submit("A", begin_us=begin_us)
    scenario.session()
    scenario.pass_time(23 * HOUR_S)
    scenario.core = Core.restore(
        scenario.core.snapshot(), scenario.core.plugins, plain=scenario.state.is_plain
    )
    assert scenario.session() == []
    assert begin_us == scenario.core.next_wakeup(scenario.now_us)

    scenario.now_us = begin_us

    assert ["A dispatched: h1*1"] == scenario.session()


MOMENTLESS = {"silent_us", "cpu_us"}
"""Lengths of time that reports tell; none is a moment of the worker's clock."""


def test_i03_no_report_tells_a_moment_of_the_workers_clock() -> None:
    """
    A clock that is two minutes behind or a day ahead can't decide anything: nobody tells it.
    """
    reports = [each for each in vars(commands_of_reports).values() if isinstance(each, type)]
    fields = {
        name
        for each in reports
        if issubclass(each, Value) and each.__module__ == commands_of_reports.__name__
        for name in each.model_fields
        if name.endswith(("_us", "_ns", "_ms", "_s", "time"))
    }

    assert fields == MOMENTLESS


@pytest.mark.parametrize("late_s", [0, 120])
def test_i03_elapsed_time_is_told_by_stamps(scenario: Scenario, late_s: int) -> None:
    """
    How long a job ran is what lies between the stamps of what was told of it, in that order.
    """
    scenario.hosts("h1 slots=1")
    scenario.submit("A", run_limit_us=300 * SECOND_US)
    scenario.session()
    scenario.pass_time(late_s)
    scenario.start("A")
    scenario.pass_time(60)
    scenario.finish("A")

    job = scenario.job("A")
    assert (late_s + 60) * SECOND_US == job.run_us
    assert job.start_us == job.finish_us - 60 * SECOND_US


def test_i05_a_clock_that_was_hours_ahead_keeps_nothing_waiting(scenario: Scenario) -> None:
    """
    The scheduler was started while the clock was eight hours ahead: log time goes on from there,
    and what comes after the clock was put right is as if it had always been right.
    """
    scenario.hosts("h1 slots=1")
    scenario.session()
    scenario.pass_time(8 * HOUR_S)
    scenario.submit("A", run_limit_us=60 * SECOND_US)
    assert ["A dispatched: h1*1"] == scenario.session()
    before = scenario.core.snapshot()

    with pytest.raises(InvariantBroken, match="stamps never fall"):
        scenario.core.session(scenario.now_us - 8 * HOUR_S * SECOND_US)

    assert before == scenario.core.snapshot()
    scenario.submit("B", begin_us=scenario.now_us + 10 * SECOND_US)
    scenario.pass_time(60)
    assert "A kill ordered on h1: TERM_RUNLIMIT" == scenario.session()[0]
    scenario.finish("A")
    assert ["B dispatched: h1*1"] == scenario.session()


def test_h05_use_beyond_the_request_leaves_nothing_negative(scenario: Scenario) -> None:
    """
    Recorded jobs used more than they asked for, also more than there was: it is counted as
    overage, and others get nothing until it ends.
    """
    scenario.hosts("h1 slots=2 mem_mb=1000")
    scenario.submit("A", resreq=("rusage[mem=100]",))
    scenario.session()
    report(scenario, "h1", 0, {"A": 5_000})
    column = scenario.state.capacity.resources[MEM]

    assert (5_000 * MB_MILLI, 0) == (column.charged[0], column.available[0])
    scenario.submit("B", resreq=("rusage[mem=1]",))
    scenario.session()
    assert [ReasonCode.HOST_JOB_RUSAGE] == codes(scenario, "B")
    scenario.finish("A")
    report(scenario, "h1", 1_000, {})
    assert ["B dispatched: h1*1"] == scenario.session()

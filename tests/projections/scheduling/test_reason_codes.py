"""
Every reason code is provoked by one test: a code that nothing can bring about would be a word
without a meaning.
"""

# long: one small function for each reason code.

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from domain.amounts import MEM, Amount
from domain.arrays import ArraySpec, IndexRange
from domain.cluster import DefaultHostType
from domain.commands import (
    ConfigureWorker,
    DefineUser,
    LeaveWorker,
    MarkUnreachable,
    ModifyJob,
    RequeueJob,
    SetQueue,
    StopJob,
    SwitchJob,
    WorkerReport,
)
from domain.jobs import ExitRules, HostChoice, HostFault
from domain.preemption import OnPreempt
from domain.reasons import TEXTS, ReasonCode, shown
from domain.resreq.merge import QueueResreq
from domain.thresholds import LoadThreshold
from domain.users import UserSpec
from domain.windows import parse_windows
from domain.workers import HostSettings
from projections.scheduling.placement.plugins import Plan, View
from projections.scheduling.plugins import Plugins
from projections.scheduling.status import why_waiting
from tests.builders import SECOND_US, a_host, some_settings
from tests.literal import literal_plugins
from tests.projections.scheduling.policies import group, limit, project, queue
from tests.projections.scheduling.preempting import queues, running
from tests.projections.scheduling.test_placement import shared
from tests.scenario import Scenario

Provoke = Callable[[bool], Scenario]
PROVOKERS: dict[str, Provoke] = {}
"""Code -> what makes the job ``A`` of the scenario that it returns wait for that reason."""


def provokes(code: str) -> Callable[[Provoke], Provoke]:
    """
    Name the code that a function brings about.
    """

    def note(provoke: Provoke) -> Provoke:
        assert code not in PROVOKERS, code
        PROVOKERS[code] = provoke
        return provoke

    return note


def begun(plain: bool, *hosts: str, **settings: Any) -> Scenario:
    """
    Return a cluster of hosts.
    """
    scenario = Scenario(some_settings(**settings), plain=plain)
    scenario.hosts(*hosts)
    return scenario


class Odd:
    """
    Be an allocator that accepts nothing, has no plan, or fails.
    """

    name = "odd"
    version = 1

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def accepts(self, tasks: int) -> bool:
        return self.kind != "declines"

    def plans(self, tasks: int, view: View) -> Iterator[Plan] | None:
        if self.kind == "fails":
            raise RuntimeError("it is broken")
        return None


def odd(plain: bool, kind: str) -> Scenario:
    """
    Return a scenario with a parallel job for such an allocator.
    """
    plugins = literal_plugins() if plain else Plugins()
    plugins.allocators["odd"] = Odd(kind)
    scenario = Scenario(some_settings(allocators=("odd",)), plugins=plugins, plain=plain)
    scenario.hosts("h1 slots=4")
    scenario.jobs("A tasks=2")
    return scenario


# ------------------------------------------------------------------- what has happened to the job


@provokes("JOB_NEW")
def not_considered_yet(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    scenario.set_queue("normal", "inactive")
    scenario.jobs("A")
    scenario.session()
    scenario.set_queue("normal", "active")
    return scenario


def blocked_and(plain: bool, change: Callable[[Scenario], object]) -> Scenario:
    """
    Return a scenario in which a job was just changed while it waits.
    """
    scenario = begun(plain, "h1 slots=1")
    scenario.jobs("A tasks=2")
    change(scenario)
    return scenario


@provokes("USER_RESUME")
def its_hold_was_lifted(plain: bool) -> Scenario:
    return blocked_and(plain, lambda scenario: [scenario.hold("A"), scenario.lift("A")])


@provokes("JOB_MODIFY")
def it_was_modified(plain: bool) -> Scenario:
    def change(scenario: Scenario) -> None:
        spec = scenario.job("A").spec.model_copy(update={"user_priority": 3})
        scenario.command(ModifyJob(job_id=scenario.ids["A"], spec=spec))

    return blocked_and(plain, change)


@provokes("JOB_SWITCH")
def it_was_switched(plain: bool) -> Scenario:
    def change(scenario: Scenario) -> None:
        queue(scenario, "other")
        scenario.command(SwitchJob(job_id=scenario.ids["A"], queue="other"))

    return blocked_and(plain, change)


@provokes("USER_STOP")
def it_is_held(plain: bool) -> Scenario:
    return blocked_and(plain, lambda scenario: scenario.hold("A"))


@provokes("ADMIN_STOP")
def an_administrator_holds_it(plain: bool) -> Scenario:
    return blocked_and(
        plain,
        lambda scenario: scenario.command(StopJob(job_id=scenario.ids["A"]), actor="root"),
    )


@provokes("JOB_REQUEUED")
def it_was_requeued_by_command(plain: bool) -> Scenario:
    scenario = begun(plain, "h1 slots=1")
    scenario.jobs("A")
    scenario.session()
    scenario.command(RequeueJob(job_id=scenario.ids["A"]))
    scenario.session()
    scenario.finish("A")
    scenario.set_queue("normal", "inactive")
    scenario.session()
    scenario.set_queue("normal", "active")
    return scenario


@provokes("JOB_PREEMPTED")
def it_was_put_back_for_another(plain: bool) -> Scenario:
    scenario = begun(plain, "h1 slots=1")
    queues(scenario, "lo 10 <all", on_preempt=OnPreempt.REQUEUE)
    queues(scenario, "hi 90 >lo")
    running(scenario, "A queue=lo")
    scenario.jobs("B queue=hi")
    scenario.session()
    scenario.finish("A", exit_code=143)
    scenario.set_queue("lo", "inactive")
    scenario.session()
    scenario.set_queue("lo", "active")
    return scenario


def not_started(plain: bool, fault: HostFault) -> Scenario:
    """
    Return a scenario whose host couldn't start the job, and that has another one by now.
    """
    scenario = begun(plain, "h1 slots=1")
    scenario.jobs("A")
    scenario.session()
    scenario.could_not_start("A", fault=fault)
    scenario.set_queue("normal", "inactive")
    scenario.session()
    scenario.set_queue("normal", "active")
    return scenario


@provokes("SBD_NO_MEM")
def its_host_had_no_memory_to_start_it(plain: bool) -> Scenario:
    return not_started(plain, "memory")


@provokes("JOB_START_FAIL")
def its_host_could_not_start_it(plain: bool) -> Scenario:
    return not_started(plain, "host")


@provokes("SBD_JOB_REQUEUE")
def it_failed_on_the_only_host(plain: bool) -> Scenario:
    scenario = begun(plain, "h1 slots=1")
    scenario.submit("A", exits=ExitRules(exclude=(20,)))
    scenario.session()
    scenario.finish("A", exit_code=20)
    scenario.session()
    return scenario


@provokes("JOB_BEHIND")
def another_job_holds_it_back(plain: bool) -> Scenario:
    scenario = begun(plain, "h1 slots=1", picker="strict_fcfs")
    scenario.jobs("B tasks=2", "A")
    return scenario


@provokes("JOB_START_TIME")
def its_time_has_not_come(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    scenario.submit("A", begin_us=100 * SECOND_US)
    return scenario


@provokes("JOB_DEPEND")
def its_parent_waits(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    scenario.jobs("P hold=1")
    scenario.submit("A", dependency_text="done(P)")
    return scenario


@provokes("JOB_DEP_INVALID")
def its_parent_can_never_be_done(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    scenario.jobs("P hold=1")
    scenario.submit("A", dependency_text="done(P)")
    scenario.kill("P")
    return scenario


@provokes("JOB_DELAY_SCHED")
def its_queue_lets_new_jobs_wait(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    queue(scenario, new_job_delay_us=5 * SECOND_US)
    scenario.jobs("A")
    return scenario


@provokes("JOB_ARRAY_JLIMIT")
def its_array_has_started_enough(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    array = ArraySpec(ranges=(IndexRange(start=1, end=2),), started_max=1)
    scenario.submit("X", array=array)
    scenario.ids["A"] = scenario.ids["X[2]"]
    return scenario


@provokes("JOB_MISS_DEADLINE")
def it_would_end_too_late(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    scenario.submit("A", run_limit_us=50 * SECOND_US, deadline_us=20 * SECOND_US)
    return scenario


# ---------------------------------------------------------------------- its queue, user and project


@provokes("QUE_INACT")
def its_queue_is_inactive(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    scenario.command(SetQueue(queue="normal", to="inactive"))
    scenario.jobs("A")
    return scenario


@provokes("QUE_WINDOW")
def its_queue_is_outside_its_windows(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    queue(scenario, dispatch_windows=parse_windows("8:00-9:00"))
    scenario.jobs("A")
    return scenario


@provokes("QUE_WINDOW_WILL_CLOSE")
def the_window_closes_too_soon(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    queue(scenario, run_windows=parse_windows("0:00-1:00"))
    scenario.submit("A", run_limit_us=7_200 * SECOND_US)
    return scenario


def over(plain: bool, *jobs: str, **bounds: int) -> Scenario:
    """
    Return a scenario with bounds of the queue that earlier jobs have reached.
    """
    scenario = begun(plain, "h1 slots=4")
    queue(scenario, **bounds)
    scenario.jobs(*jobs)
    return scenario


@provokes("QUE_JOB_LIMIT")
def its_queue_has_no_slot_left(plain: bool) -> Scenario:
    return over(plain, "B", "A", slots=1)


@provokes("QUE_PJOB_LIMIT")
def its_queue_has_too_few_slots_left(plain: bool) -> Scenario:
    return over(plain, "B", "A tasks=2", slots=2)


@provokes("QUE_USR_JLIMIT")
def its_user_has_no_slot_left_in_the_queue(plain: bool) -> Scenario:
    return over(plain, "B", "A", user_slots=1)


@provokes("QUE_USR_PJLIMIT")
def its_user_has_too_few_slots_left_in_the_queue(plain: bool) -> Scenario:
    return over(plain, "B", "A tasks=2", user_slots=2)


@provokes("QUE_HOST_JLIMIT")
def its_queue_has_its_slots_of_the_host(plain: bool) -> Scenario:
    return over(plain, "B", "A", host_slots=1)


@provokes("QUE_PROC_JLIMIT")
def its_queue_has_its_slots_by_processors(plain: bool) -> Scenario:
    return over(plain, "B", "A", processor_slots_milli=250)


@provokes("QUE_PROCLIMIT")
def its_queue_takes_fewer_tasks_by_now(plain: bool) -> Scenario:
    scenario = begun(plain, "h1 slots=4")
    scenario.jobs("A tasks=4")
    queue(scenario, tasks_max=2)
    return scenario


@provokes("QUE_NO_RIGHT")
def its_queue_takes_others_by_now(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    scenario.jobs("A")
    queue(scenario, users="bob")
    return scenario


@provokes("JOB_NOT_ALLOWED")
def its_queue_allows_less_by_now(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    scenario.submit("A", run_limit_us=50 * SECOND_US)
    queue(scenario, run_limit_max_us=20 * SECOND_US)
    return scenario


def with_user(plain: bool, *jobs: str, **bounds: int) -> Scenario:
    """
    Return a scenario with bounds of a user that earlier jobs have reached.
    """
    scenario = begun(plain, "h1 slots=4")
    scenario.command(DefineUser(user="alice", spec=UserSpec(**bounds)))
    scenario.jobs(*jobs)
    return scenario


@provokes("USER_JOB_LIMIT")
def its_user_has_no_slot_left(plain: bool) -> Scenario:
    return with_user(plain, "B", "A", slots_max=1)


@provokes("USER_PJOB_LIMIT")
def its_user_has_too_few_slots_left(plain: bool) -> Scenario:
    return with_user(plain, "B", "A tasks=2", slots_max=2)


@provokes("USER_PROC_JLIMIT")
def its_user_has_the_slots_by_processors(plain: bool) -> Scenario:
    return with_user(plain, "B", "A", processor_slots_max_milli=250)


@provokes("HOST_USR_JLIMIT")
def its_user_has_the_slots_of_the_host(plain: bool) -> Scenario:
    scenario = begun(plain, "h1 slots=4")
    scenario.command(ConfigureWorker(worker="h1", settings=HostSettings(user_slots_max=1)))
    scenario.jobs("B", "A")
    return scenario


@provokes("UGRP_JOB_LIMIT")
def its_group_has_no_slot_left(plain: bool) -> Scenario:
    scenario = begun(plain, "h1 slots=4")
    group(scenario, "g", "alice", slots_max=1)
    scenario.jobs("B", "A")
    return scenario


@provokes("UGRP_PJOB_LIMIT")
def its_group_has_too_few_slots_left(plain: bool) -> Scenario:
    scenario = begun(plain, "h1 slots=4")
    group(scenario, "g", "alice", slots_max=2)
    scenario.jobs("B", "A tasks=2")
    return scenario


@provokes("RES_LIMIT")
def a_limit_is_reached(plain: bool) -> Scenario:
    scenario = begun(plain, "h1 slots=4")
    limit(scenario, "few", users="alice", jobs=1)
    scenario.jobs("B", "A")
    return scenario


@provokes("PROJECT_NO_RIGHT")
def its_user_has_left_the_project(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    project(scenario, "p", "alice")
    scenario.submit("A", user="alice", project="p")
    project(scenario, "p", "bob")
    return scenario


@provokes("PROJECT_CLOSED")
def its_project_was_closed(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    project(scenario, "p", "alice")
    scenario.submit("A", user="alice", project="p")
    project(scenario, "p", "alice", is_open=False)
    return scenario


# ------------------------------------------------------------------------------------ its placement


@provokes("NO_ALLOCATOR")
def no_allocator_accepts_it(plain: bool) -> Scenario:
    return odd(plain, "declines")


@provokes("NO_PLAN")
def no_plan_is_generated(plain: bool) -> Scenario:
    return odd(plain, "plans nothing")


@provokes("PLUGIN_FAILED")
def its_allocator_fails(plain: bool) -> Scenario:
    return odd(plain, "fails")


@provokes("NO_HOSTS")
def there_is_no_host(plain: bool) -> Scenario:
    scenario = begun(plain)
    scenario.jobs("A")
    return scenario


@provokes("HOST_SLOTS")
def the_host_is_short_of_slots(plain: bool) -> Scenario:
    scenario = begun(plain, "h1 slots=2")
    scenario.jobs("A tasks=3")
    return scenario


@provokes("HOST_LESS_SLOTS")
def the_host_has_too_few_slots_left(plain: bool) -> Scenario:
    return the_host_is_short_of_slots(plain)


@provokes("HOST_JOB_LIMIT")
def the_host_is_full(plain: bool) -> Scenario:
    scenario = begun(plain, "h1 slots=1")
    scenario.jobs("B", "A")
    return scenario


@provokes("HOST_JOB_RUSAGE")
def the_host_is_short_of_memory(plain: bool) -> Scenario:
    scenario = begun(plain, "h1 mem_mb=100")
    scenario.jobs("A mem_mb=200")
    return scenario


def asking(plain: bool, resreq: str, tasks: int = 1, **host: Any) -> Scenario:
    """
    Return one host and a job with a requirement.
    """
    scenario = begun(plain)
    scenario.command(a_host("h1", **host), actor="")
    scenario.submit("A", resreq=(resreq,), tasks_min=tasks, tasks_max=tasks)
    return scenario


@provokes("HOST_RES_REQ")
def the_host_does_not_match(plain: bool) -> Scenario:
    return asking(plain, "select[maxslots>9]")


@provokes("HOST_QUE_RESREQ")
def the_host_does_not_meet_the_queues_select(plain: bool) -> Scenario:
    return of_queue(plain, "select[maxslots>9]", "select[maxslots>0]")


@provokes("HOST_QUE_RUSAGE")
def the_host_lacks_what_the_queue_reserves(plain: bool) -> Scenario:
    return of_queue(plain, "rusage[mem=2000]", "rusage[tmp=0]")


def of_queue(plain: bool, resreq: str, own: str) -> Scenario:
    """
    Return a scenario whose queue has a requirement beside the job's own.
    """
    scenario = begun(plain, "h1 mem_mb=1000", queue_resreq=QueueResreq.MERGE)
    queue(scenario, resreq=(resreq,))
    scenario.submit("A", resreq=(own,))
    return scenario


@provokes("LOAD_UNAVAIL")
def the_host_does_not_report_the_index(plain: bool) -> Scenario:
    return asking(plain, "select[r1m<3]")


@provokes("JOB_NO_SPAN")
def the_host_can_not_hold_the_tile(plain: bool) -> Scenario:
    return asking(plain, "span[hosts=1]", tasks=6)


@provokes("JOB_SPREAD_TASK")
def there_are_too_few_hosts_for_the_span(plain: bool) -> Scenario:
    return asking(plain, "span[ptile=2]", tasks=4)


@provokes("MEMBER_NOT_TRIED")
def an_earlier_member_failed(plain: bool) -> Scenario:
    return asking(plain, "1*{select[maxslots>9]}+1*{select[slots>0]}", tasks=2)


@provokes("ALTERNATIVE_WAITS")
def an_alternative_opens_later(plain: bool) -> Scenario:
    return asking(plain, "{select[maxslots>9]}||{select[slots>0]}@5")


@provokes("HOST_SCHED_TYPE")
def the_host_is_of_another_type(plain: bool) -> Scenario:
    scenario = begun(plain, default_host_type=DefaultHostType.LOCAL)
    scenario.command(a_host("h1", type="SOL"), actor="")
    scenario.submit("A", submit_type="LINUX")
    return scenario


@provokes("HOST_USR_SPEC")
def another_host_was_asked_for(plain: bool) -> Scenario:
    scenario = begun(plain, "h1", "h2")
    scenario.close("h2")
    scenario.submit("A", hosts=(HostChoice(host="h2"),))
    return scenario


@provokes("HOST_QUE_MEMB")
def the_queue_has_other_hosts(plain: bool) -> Scenario:
    scenario = begun(plain, "h1", "h2")
    scenario.close("h2")
    queue(scenario, hosts="h2")
    scenario.jobs("A")
    return scenario


@provokes("RES_SHORT")
def a_shared_resource_is_short(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    shared(scenario, "lic", 1)
    scenario.submit("A", resreq=("rusage[lic=2]",))
    return scenario


@provokes("HOST_NONEXCLUSIVE")
def an_exclusive_job_finds_no_empty_host(plain: bool) -> Scenario:
    scenario = begun(plain, "h1 slots=4")
    queue(scenario, allows_exclusive=True)
    scenario.jobs("B")
    scenario.submit("A", is_exclusive=True)
    return scenario


@provokes("HOST_EXCLUSIVE")
def the_host_runs_an_exclusive_job(plain: bool) -> Scenario:
    scenario = begun(plain, "h1 slots=4")
    queue(scenario, allows_exclusive=True)
    scenario.submit("B", is_exclusive=True)
    scenario.jobs("A")
    return scenario


# ---------------------------------------------------------------------------- the state of the host


@provokes("HOST_WINDOW")
def the_host_is_outside_its_window(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    windows = parse_windows("8:00-9:00")
    scenario.command(ConfigureWorker(worker="h1", settings=HostSettings(dispatch_windows=windows)))
    scenario.jobs("A")
    return scenario


@provokes("HOST_NO_LIM")
def the_worker_can_not_measure_its_load(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    scenario.command(WorkerReport(worker="h1", incarnation=1, is_blind=True), actor="")
    scenario.jobs("A")
    return scenario


@provokes("HOST_LOCKED")
def the_host_is_locked(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    scenario.command(ConfigureWorker(worker="h1", settings=HostSettings(is_locked=True)))
    scenario.jobs("A")
    return scenario


@provokes("HOST_ACCPT_ONE")
def the_host_has_just_started_a_job(plain: bool) -> Scenario:
    scenario = begun(plain, "h1", accept_interval_us=60 * SECOND_US)
    scenario.jobs("B", "A")
    return scenario


@provokes("HOST_LOAD")
def the_hosts_load_is_beyond_its_threshold(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    thresholds = (LoadThreshold(index="r1m", sched_milli=2_000),)
    scenario.command(ConfigureWorker(worker="h1", settings=HostSettings(thresholds=thresholds)))
    load = (Amount(resource="r1m", milli=2_001),)
    scenario.command(WorkerReport(worker="h1", incarnation=1, load=load), actor="")
    scenario.jobs("A")
    return scenario


@provokes("HOST_STOP_COND")
def jobs_of_the_queue_are_stopped_on_the_host(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    queue(scenario, "normal", stop_condition="r1m > 2")
    load = (Amount(resource="r1m", milli=2_001),)
    scenario.command(WorkerReport(worker="h1", incarnation=1, load=load), actor="")
    scenario.jobs("A")
    return scenario


@provokes("HOST_DISABLED")
def the_host_is_closed(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    scenario.close("h1")
    scenario.jobs("A")
    return scenario


@provokes("HOST_JOB_SSUSP")
def the_free_slots_are_a_suspended_jobs(plain: bool) -> Scenario:
    scenario = begun(plain, "h1 slots=4")
    queues(scenario, "hi 90 >lo", "lo 10 <all")
    running(scenario, "V queue=lo tasks=3")
    scenario.jobs("J queue=hi tasks=3", "A queue=lo tasks=2")
    scenario.session()
    scenario.suspended("V")
    scenario.session()
    scenario.start("J")
    return scenario


@provokes("SBD_UNREACH")
def the_host_is_silent(plain: bool) -> Scenario:
    scenario = begun(plain, "h1")
    silent = MarkUnreachable(worker="h1", incarnation=1, silent_us=SECOND_US)
    scenario.command(silent, actor="")
    scenario.jobs("A")
    return scenario


# ---------------------------------------------------------------------------------------- the tests


def codes_of(scenario: Scenario, name: str) -> set[ReasonCode]:
    """
    Return the codes that a waiting job has, as recorded and as shown.
    """
    state = scenario.state
    reasons = why_waiting(state, scenario.job(name))[1]
    free = state.capacity.usable
    told = shown(reasons, lambda number: int(free[number]) * 1_000)
    return {reason.code for reason in (*reasons, *told)}


FRESH = {
    "JOB_NEW", "USER_RESUME", "JOB_MODIFY", "JOB_SWITCH", "JOB_REQUEUED", "JOB_PREEMPTED",
    "SBD_NO_MEM", "JOB_START_FAIL",
}  # fmt: skip
"""Reasons of jobs that weren't considered yet: they end with the next session."""


@pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
@pytest.mark.parametrize(
    "code", [pytest.param(each, marks=pytest.mark.provokes(each)) for each in PROVOKERS]
)
def test_a_code_is_provoked(code: str, plain: bool) -> None:
    """
    The smallest cluster and job that bring it about; and its text can be told.
    """
    scenario = PROVOKERS[code](plain)
    if code not in FRESH:
        scenario.session()

    assert ReasonCode(code) in codes_of(scenario, "A")
    assert scenario.states()["A"] in ("PEND", "PSUSP")


@pytest.mark.parametrize("code", sorted(FRESH))
def test_a_job_that_was_not_considered_is_told_so_until_it_is(code: str) -> None:
    """
    The next session gives it a reason of its own, or starts it.
    """
    scenario = PROVOKERS[code](False)
    scenario.session()

    if scenario.states()["A"] == "PEND":
        assert ReasonCode(code) not in codes_of(scenario, "A")


def test_every_code_is_provoked_by_a_test() -> None:
    """
    A new code without its provoking test, here or in another file, is a failing test; so is one
    without a text.
    """
    sources = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py")]
    marked = {code for text in sources for code in re.findall(r'provokes\("([A-Z_]+)"\)', text)}

    assert {code.value for code in ReasonCode} == marked
    assert set(ReasonCode) == set(TEXTS)


def test_a_host_that_has_left_has_no_load_information() -> None:
    """
    It is told apart from one that is silent.
    """
    scenario = begun(False, "h1 mem_mb=100")
    report = WorkerReport(
        worker="h1", incarnation=1, load=(Amount(resource=MEM, milli=1_000),)
    )
    scenario.command(report, actor="")
    scenario.command(LeaveWorker(worker="h1", incarnation=1), actor="")
    scenario.jobs("A")
    scenario.session()

    assert {ReasonCode.LOAD_UNAVAIL} == codes_of(scenario, "A")

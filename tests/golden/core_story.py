"""
A story that makes every decision of the core once, for golden logs.

It is told by commands alone; what the core decides is what the golden log holds. Made into a golden
log by ``python -m tests.golden.make_core``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from domain.amounts import MEM, Amount
from domain.arrays import ArraySpec, IndexRange
from domain.commands import (
    DefineCluster,
    DefineQueue,
    DefineUser,
    LeaveWorker,
    MarkUnreachable,
    ModifyJob,
    MoveJob,
    RequeueJob,
    ResumeJob,
    StopJob,
    SwitchJob,
    WorkerReport,
)
from domain.commands.reports import JobUsage
from domain.envelope import Stamped
from domain.jobs import ExitRules, JobLimits
from domain.name_lists import parse_names
from domain.preemption import OnPreempt
from domain.queues import QueueSpec
from domain.signals import SignalName
from domain.users import UserSpec
from domain.windows import parse_windows
from store.codec import encode
from tests.builders import MB_MILLI, SECOND_US, a_host, some_settings
from tests.projections.scheduling.policies import group, limit, profile, project
from tests.scenario import Scenario

MINUTE_US = 60 * SECOND_US


def tell() -> Scenario:
    """
    Tell the whole story; the log and the core at its end are the scenario's.
    """
    scenario = Scenario(
        some_settings(
            clean_period_us=600 * SECOND_US,
            forget_batch=1,
            lost_grace_us=60 * SECOND_US,
            end_orphans=True,
        )
    )
    _policies(scenario)
    for chapter in (
        _requests, _order, _arrays_and_dependencies, _limits_and_projects, _preemption,
        _given_up, _control, _time, _lost_hosts, _forced, _hung, _wished,
    ):  # fmt: skip
        chapter(scenario)
        _end_all(scenario)
    scenario.pass_time(3_600)
    scenario.jobs("Last tasks=1")
    scenario.session()
    return scenario


def _policies(scenario: Scenario) -> None:
    every = parse_names("all")
    group(scenario, "staff", "alice bob", user_slots_max=6)
    project(scenario, "/all", users="alice bob carol dora emma fred")
    settings = scenario.state.settings().model_copy(update={"default_project": "/all"})
    scenario.command(DefineCluster(settings=settings), actor="root")
    project(scenario, "/p", users="alice bob carol", slots=6)
    project(scenario, "/p/inner", users="alice", slots=2)
    scenario.command(DefineUser(user="carol", spec=UserSpec(slots_max=1)), actor="root")
    limit(scenario, "busy", users="each all", jobs=6)
    limit(scenario, "night", queues="normal", slots=8, windows=parse_windows("22:00-23:00"))
    profile(scenario, "big", run_limit_us=MINUTE_US)
    for name, spec in {
        "hi": QueueSpec(priority=90, preemptible_queues=every),
        "lo": QueueSpec(priority=10, preemptible_by=every, rerunnable=True),
        "gone": QueueSpec(priority=9, preemptible_by=every, on_preempt=OnPreempt.KILL),
        "strict": QueueSpec(priority=50, picker="strict_fcfs"),
        "gather": QueueSpec(priority=95, slot_reserve_us=600 * SECOND_US),
        "day": QueueSpec(priority=20, run_windows=parse_windows("0:00-1:00 2:00-3:00")),
    }.items():
        scenario.command(DefineQueue(queue=name, spec=spec), actor="root")
    for number in (1, 2):
        scenario.command(a_host(f"h{number}", 4, 1_000, gpus=2), actor="")
    scenario.command(a_host("h3", 2, 4_000), actor="")


def _end_all(scenario: Scenario) -> None:
    """
    End what runs and kill what waits, so that each chapter begins with free hosts.
    """
    for _ in range(4):
        for name, job_id in list(scenario.ids.items()):
            stream = f"{name}"
            state = scenario.states().get(stream)
            if state in ("PEND", "PSUSP"):
                scenario.kill(name)
            elif state in ("RUN", "SSUSP", "USUSP") and job_id:
                scenario.finish(name)
        scenario.session()
        scenario.pass_time(1)


def _ordered(scenario: Scenario, order: str) -> list[str]:
    """
    Return the jobs for which an order stands.
    """
    return [name for name in scenario.states() if getattr(scenario.job(name), order)]


def _requests(scenario: Scenario) -> None:
    texts = {
        "Share": "rusage[gpu=0.6]",
        "Third": "rusage[gpu=0.6/task] span[ptile=1]",
        "Pair": "1*{select[mem>2000]} + 2*{rusage[mem=100]}",
        "Either": "{select[mem>9000]} || {select[mem>100] order[-mem]}",
        "Never": "select[mem>9000]",
        "Wide": "rusage[mem=700] span[ptile=2]",
    }
    for name, text in texts.items():
        count = {"Third": 3, "Wide": 4}.get(name)
        tasks = {} if count is None else {"tasks_min": count, "tasks_max": count}
        scenario.submit(name, resreq=(text,), user="dora", **tasks)
    scenario.submit("Range", tasks_min=2, tasks_max=9, user="emma")
    scenario.session()
    scenario.start("Share", "Range")


def _order(scenario: Scenario) -> None:
    """
    Have more wait than there is room for, so that it shows who comes first.
    """
    contest = (
        ("Late", 1, "lo"), ("Soon", 9, "normal"), ("First", 1, "hi"), ("Sooner", 10, "normal"),
    )
    tasks = {"tasks_min": 3, "tasks_max": 3}
    for name, wish, queue in contest:
        scenario.submit(name, user_priority=wish, queue=queue, user="fred", **tasks)
    scenario.session()


def _arrays_and_dependencies(scenario: Scenario) -> None:
    array = ArraySpec(ranges=(IndexRange(start=1, end=4),), started_max=2)
    scenario.submit("Array", array=array, user="dora")
    scenario.submit("After", dependency_text=f"done({scenario.ids['Array']})", user="dora")
    scenario.submit("Orphan", dependency_text=f"exit({scenario.ids['Array']}, >9)", user="dora")
    scenario.session()
    for element in ("Array[1]", "Array[2]"):
        scenario.start(element)
        scenario.finish(element)
    scenario.session()
    for element in ("Array[3]", "Array[4]"):
        scenario.finish(element)
    scenario.session()


def _limits_and_projects(scenario: Scenario) -> None:
    for number in range(3):
        scenario.submit(f"Inner{number}", user="alice", project="/p/inner")
    for number in range(6):
        scenario.submit(f"Outer{number}", user="bob", project="/p")
    scenario.submit("One", user="carol", project="/p", profile="big")
    scenario.submit("Two", user="carol", project="/p")
    scenario.submit("Head", queue="strict", tasks_min=12, tasks_max=12, user="dora")
    scenario.submit("Behind", queue="strict", user="dora")
    scenario.session()


def _preemption(scenario: Scenario) -> None:
    for number in range(5):
        scenario.submit(f"Low{number}", queue="lo", user="dora")
    for number in range(5):
        scenario.submit(f"Gone{number}", queue="gone", user="emma")
    scenario.session()
    scenario.start(*(f"Low{number}" for number in range(5)))
    scenario.start(*(f"Gone{number}" for number in range(5)))
    scenario.pass_time(10)
    scenario.submit("High", queue="hi", tasks_min=7, tasks_max=7, user="fred")
    scenario.session()
    for name in _ordered(scenario, "suspend_order"):
        scenario.suspended(name)
    for name in _ordered(scenario, "kill_order"):
        scenario.finish(name)
    scenario.session()
    scenario.start("High")
    scenario.pass_time(10)
    scenario.finish("High")
    scenario.session()
    for name in _ordered(scenario, "resume_order"):
        scenario.resumed(name)
    scenario.session()


def _given_up(scenario: Scenario) -> None:
    """
    Plan a preemption that its hosts are closed for, and gather slots for a wide job.
    """
    for number in range(6):
        scenario.submit(f"Small{number}", queue="lo", user="dora")
    for number in range(3):
        scenario.submit(f"Other{number}", queue="lo", user="emma")
    scenario.session()
    scenario.pass_time(10)
    scenario.submit("Given", queue="hi", tasks_min=2, tasks_max=2, user="fred")
    scenario.session()
    for host in ("h1", "h2", "h3"):
        scenario.close(host)
    scenario.session()
    for host in ("h1", "h2", "h3"):
        scenario.open(host)
    scenario.kill("Given")
    scenario.submit("Gathers", queue="gather", tasks_min=10, tasks_max=10, user="fred")
    scenario.session()


def _control(scenario: Scenario) -> None:
    scenario.submit("Again", exits=ExitRules(requeue=(99,)), user="dora")
    scenario.submit("Alone", is_exclusive=True, user="dora")
    scenario.submit("Held", hold=True, user="dora")
    scenario.submit("Moved", tasks_min=12, tasks_max=12, user="dora")
    scenario.submit("Switched", tasks_min=12, tasks_max=12, user="dora")
    scenario.submit("Stopped", user="emma")
    scenario.session()
    scenario.start("Again", "Stopped")
    scenario.finish("Again", exit_code=99)
    scenario.command(StopJob(job_id=scenario.ids["Stopped"]), actor="emma")
    scenario.command(MoveJob(job_id=scenario.ids["Switched"], to="top"), actor="root")
    scenario.command(SwitchJob(job_id=scenario.ids["Moved"], queue="lo"), actor="root")
    spec = scenario.job("Switched").spec.model_copy(update={"tasks_min": 1, "tasks_max": 1})
    scenario.command(ModifyJob(job_id=scenario.ids["Switched"], spec=spec), actor="dora")
    scenario.lift("Held")
    scenario.close("h3")
    scenario.session()
    scenario.suspended("Stopped")
    scenario.command(ResumeJob(job_id=scenario.ids["Stopped"]), actor="emma")
    scenario.open("h3")
    scenario.session()
    scenario.resumed("Stopped")
    scenario.command(RequeueJob(job_id=scenario.ids["Stopped"]), actor="emma")
    scenario.session()


def _time(scenario: Scenario) -> None:
    now_us = scenario.now_us
    scenario.submit("Later", begin_us=now_us + 30 * SECOND_US, user="dora")
    scenario.submit(
        "Missed", tasks_min=12, tasks_max=12, deadline_us=now_us + MINUTE_US, user="dora"
    )
    scenario.submit("Long", run_limit_us=MINUTE_US, user="dora")
    scenario.submit("Day", queue="day", user="dora")
    scenario.submit("Fat", limits=JobLimits(memory_kib=1_024), user="emma")
    scenario.session()
    scenario.start("Long", "Day", "Fat")
    scenario.pass_time(30)
    fat = scenario.job("Fat")
    worker = scenario.state.hosts[fat.allocation.runs[0].first] if fat.allocation else None
    assert worker is not None
    use = (Amount(resource=MEM, milli=2 * MB_MILLI),)
    scenario.command(
        WorkerReport(
            worker=worker.name,
            incarnation=worker.incarnation,
            load=(Amount(resource=MEM, milli=900 * MB_MILLI),),
            jobs=(JobUsage(job_id=fat.job_id, attempt=1, amounts=use),),
        ),
        actor="",
    )
    scenario.session()
    scenario.pass_time(30)
    scenario.session()
    scenario.pass_time(3_600)
    scenario.session()
    scenario.suspended("Day")


def _lost_hosts(scenario: Scenario) -> None:
    scenario.submit("Rerun", queue="lo", hosts=(), user="dora")
    scenario.submit("Lost", user="emma")
    scenario.session()
    scenario.start("Rerun", "Lost")
    for name in ("h1", "h2", "h3"):
        worker = scenario.state.worker(name)
        lost = MarkUnreachable(
            worker=name, incarnation=worker.incarnation, silent_us=30 * SECOND_US
        )
        scenario.command(lost, actor="")
    scenario.pass_time(120)
    scenario.session()
    for number in (1, 2):
        scenario.command(a_host(f"h{number}", 4, 1_000, gpus=2), actor="")
    worker = scenario.state.worker("h3")
    left = LeaveWorker(worker="h3", incarnation=worker.incarnation)
    scenario.command(left, actor="")
    scenario.session()
    scenario.session()


def _forced(scenario: Scenario) -> None:
    """
    Signals, ends by force, jobs that operators start, and a host at fault.
    """
    scenario.jobs("Told user=dora tasks=4", "Stuck user=emma tasks=4", "Wide user=fred tasks=4")
    scenario.session()
    scenario.start("Told", "Stuck")
    scenario.signal("Told", SignalName.USR1, actor="dora")
    scenario.signal("Told", SignalName.INT, actor="root")
    scenario.kill("Stuck", actor="emma")
    scenario.run("Wide", "h1*3", "h2")
    scenario.session()
    scenario.start("Wide")
    scenario.kill("Stuck", actor="emma", force=True)
    scenario.end_by("Told", 2)
    scenario.submit("Short", resreq=("rusage[mem=9000]",), user="dora")
    scenario.run("Short", "h2")
    scenario.session()
    scenario.jobs("Faulty user=carol")
    scenario.session()
    scenario.could_not_start("Faulty", fault="memory")
    scenario.session()


def _hung(scenario: Scenario) -> None:
    """
    Orphans that are spared for a time, and a job that doesn't end as ordered.
    """
    settings = scenario.state.settings().model_copy(
        update={"orphan_grace_us": 30 * SECOND_US, "hung_after_us": 60 * SECOND_US}
    )
    scenario.command(DefineCluster(settings=settings), actor="root")
    scenario.jobs("Hangs user=dora", "Parent user=dora")
    scenario.submit("Orphan", user="dora", dependency_text='done("Parent")')
    scenario.session()
    scenario.start("Hangs", "Parent")
    scenario.finish("Parent", exit_code=1)
    scenario.kill("Hangs", actor="dora")
    scenario.session()
    for _ in range(2):
        scenario.pass_time(30)
        scenario.session()


def _wished(scenario: Scenario) -> None:
    """
    Wishes of operators that outlive a modification or a switch, or don't; one that no wait grants.
    """
    array = ArraySpec(ranges=(IndexRange(start=1, end=3),), started_max=1)
    scenario.submit("Large", resreq=("rusage[mem=9000]",), user="dora")
    scenario.submit("Many", array=array, resreq=("rusage[mem=9000]",), user="emma")
    scenario.jobs("Fills user=fred tasks=2 mem_mb=900 queue=lo")
    scenario.run("Large", "h2")
    scenario.run("Many[1]", "h1")
    scenario.run("Many[2]", "h2")
    scenario.session()
    wider = array.model_copy(update={"started_max": 2})
    _modify(scenario, "Many[3]", array=wider)
    _modify(scenario, "Many[2]", array=array, tasks_min=2, tasks_max=2)
    scenario.command(SwitchJob(job_id=scenario.ids["Large"], queue="lo"))
    scenario.session()
    _modify(scenario, "Large", resreq=("rusage[mem=500]",))
    _modify(scenario, "Many[1]", resreq=("rusage[mem=100]",), user_priority=1)
    scenario.session()
    scenario.finish("Fills")
    scenario.session()


def _modify(scenario: Scenario, name: str, **changes: object) -> None:
    spec = scenario.job(name).spec.model_copy(update=changes)
    scenario.command(ModifyJob(job_id=scenario.ids[name], spec=spec), actor=spec.user)


def decision_digest(events: Iterable[Stamped]) -> str:
    """
    Return the digest of all decisions among events: stream, version and stored bytes of each.
    """
    digest = hashlib.sha256()
    for each in events:
        if each.event.IS_DECISION:
            stream, version, code, state = encode(each)
            digest.update(f"{stream} {version} {code} ".encode() + state + b"\n")
    return digest.hexdigest()

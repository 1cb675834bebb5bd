"""
Longer happenings of the lives that are drawn: several steps that fit together, with sessions
between them, where cores may be restored or replayed. Steps alone hardly ever come to a preemption,
and never to the end of an orphan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from domain.amounts import Amount
from domain.commands import (
    ConfigureWorker,
    DefineQueue,
    JobFinishedReport,
    JobResumedReport,
    JobStartedReport,
    JobSuspendedReport,
    KillJob,
    MarkUnreachable,
    OpenWorker,
    RequeueJob,
    RunJob,
    SubmitJob,
    WorkerReport,
)
from domain.errors import Refused
from domain.job_states import LIVE
from domain.jobs import ExitRules, JobSpec, WantedHost
from domain.name_lists import parse_names
from domain.preemption import OnPreempt
from domain.thresholds import LoadThreshold
from domain.windows import parse_windows
from domain.workers import HostSettings
from tests.builders import SECOND_US
from tests.projections.scheduling.recovering import HAPPENINGS, Cores, Dice, Step, session

HOUR_US: Final = 3_600 * SECOND_US


def ask(cores: Cores, **values: Any) -> Any:
    """
    Submit a job and return it.

    Raises:
        Refused: It wasn't taken, which ends the episode.
    """
    spec = JobSpec(**{"user": "alice", "queue": "normal", **values})
    before = len(cores.log)
    cores.tell(SubmitJob(spec=spec), spec.user)
    if len(cores.log) == before or cores.log[before].stream not in cores.state.stored.jobs:
        raise Refused("job", "wasn't taken")
    return cores.state.stored.jobs[cores.log[before].stream]


def ready(cores: Cores) -> None:
    """
    Have all hosts reached and open, so that something can start.
    """
    for worker in cores.state.hosts:
        if worker.closed:
            cores.tell(OpenWorker(worker=worker.name))
        if worker.unreachable_us is not None:
            cores.tell(WorkerReport(worker=worker.name, incarnation=worker.incarnation), "")


def live(cores: Cores, *states: str) -> list[Any]:
    """
    Return the started jobs whose worker can report.
    """
    found = cores.jobs(*(states or tuple(state.value for state in LIVE)))
    hosts = cores.state.hosts
    return [
        job
        for job in found
        if job.allocation is not None and not hosts[job.allocation.runs[0].first].left
    ]


def obey(cores: Cores, dice: Dice) -> None:
    """
    Have workers carry out what they were ordered.
    """
    for job in live(cores):
        names = cores.report_of(job)
        if job.kill_order and not dice.seldom(6):
            cores.tell(JobFinishedReport(**names, signal=9), "")
        elif job.suspend_order and not dice.seldom(6):
            cores.tell(JobSuspendedReport(**names), "")
        elif job.resume_order:
            cores.tell(JobResumedReport(**names), "")


def preempt(cores: Cores, dice: Dice) -> None:
    """
    Fill the hosts and have a job of the higher queue; its victims stop, it ends, they go on.
    """
    ready(cores)
    way = dice.pick(tuple(OnPreempt))
    for name, changes in (
        ("normal", {"on_preempt": way, "priority": 30}),
        ("other", {"preemptible_queues": parse_names("all"), "priority": 40, "is_active": True}),
    ):
        spec = cores.state.stored.queues[name].spec
        cores.tell(DefineQueue(queue=name, spec=spec.model_copy(update=changes)))
    slots = sum(worker.slots for worker in cores.state.hosts)
    for _ in range(min(8, slots)):
        ask(cores, resreq=dice.pick(((), (), ("rusage[mem=50]",), ("rusage[lic=1]",))))
    session(cores, dice)
    cores.now_us += dice.pick((0, 1, 200)) * SECOND_US
    tasks = dice.pick((1, 2, 3))
    wanted = ask(cores, user="bob", queue="other", tasks_min=tasks, tasks_max=tasks)
    session(cores, dice)
    if dice.seldom(3):
        return
    obey(cores, dice)
    session(cores, dice)
    wanted = cores.state.stored.jobs[wanted.stream]
    if wanted.allocation is not None and not dice.seldom(3):
        cores.tell(JobFinishedReport(**cores.report_of(wanted), exit_code=0), "")
    session(cores, dice)
    obey(cores, dice)


def come_back(cores: Cores, dice: Dice) -> None:
    """
    Have a job end with an exit value that puts it back, or its user put it back.
    """
    ready(cores)
    rules = ExitRules(requeue=(99,), exclude=(98,), success=(7,), requeue_max=2)
    job = ask(cores, exits=rules, tasks_min=dice.pick((1, 1, 2)), tasks_max=3)
    session(cores, dice)
    job = cores.state.stored.jobs[job.stream]
    if job.allocation is None:
        return
    names = cores.report_of(job)
    cores.tell(JobStartedReport(**names, pid=1, process_group=1), "")
    if dice.seldom(3):
        cores.tell(RequeueJob(job_id=job.job_id, hold=dice.seldom(3)), "alice")
        session(cores, dice)
        obey(cores, dice)
    else:
        code = dice.pick((99, 98, 7))
        cores.tell(JobFinishedReport(**names, exit_code=code), "")
    session(cores, dice)


def lose(cores: Cores, dice: Dice) -> None:
    """
    Lose contact to the host of a job for some time, or for good.
    """
    ready(cores)
    ask(cores, rerunnable=dice.pick((True, True, False)))
    session(cores, dice)
    jobs = live(cores)
    if not jobs:
        return
    worker = cores.state.hosts[dice.pick(jobs).allocation.runs[0].first]
    names = {"worker": worker.name, "incarnation": worker.incarnation}
    cores.tell(MarkUnreachable(**names, silent_us=SECOND_US), "")
    session(cores, dice)
    cores.now_us += dice.pick((120, 120, 50)) * SECOND_US
    session(cores, dice)
    if dice.seldom(2):
        cores.tell(WorkerReport(**names), "")
        session(cores, dice)


def orphan(cores: Cores, dice: Dice) -> None:
    """
    Have a job wait for one that fails, alone or beside another.
    """
    parent = ask(cores, hold=True)
    for _ in range(dice.pick((1, 2))):
        text = dice.pick((f"done({parent.job_id})", f"done({parent.job_id}) && done(1)"))
        ask(cores, dependency_text=text, ends_as_orphan=dice.pick((True, None)))
    session(cores, dice)
    cores.tell(KillJob(job_id=parent.job_id), "alice")
    session(cores, dice)
    cores.now_us += dice.pick((40, 10, 0)) * SECOND_US
    session(cores, dice)


def hang(cores: Cores, dice: Dice) -> None:
    """
    Have a job killed whose worker never says that it has ended.
    """
    ready(cores)
    ask(cores)
    session(cores, dice)
    jobs = live(cores, "RUN", "SSUSP", "USUSP")
    if not jobs:
        return
    cores.tell(KillJob(job_id=dice.pick(jobs).job_id), dice.pick(("alice", "root")))
    session(cores, dice)
    cores.now_us += dice.pick((60, 61, 30)) * SECOND_US
    session(cores, dice)


def force(cores: Cores, dice: Dice) -> None:
    """
    End a job by force, whatever its worker does.
    """
    ready(cores)
    ask(cores)
    session(cores, dice)
    jobs = live(cores)
    if jobs:
        job = dice.pick(jobs)
        if dice.seldom(2):
            cores.tell(KillJob(job_id=job.job_id), job.spec.user)
            session(cores, dice)
        cores.tell(KillJob(job_id=job.job_id, force=True), dice.pick((job.spec.user, "root")))
    session(cores, dice)


def run(cores: Cores, dice: Dice) -> None:
    """
    Have a waiting job started on a host that an operator names, busy or not.
    """
    if not cores.state.hosts:
        return
    ready(cores)
    for _ in range(dice.pick((0, 3))):
        ask(cores)
    session(cores, dice)
    job = ask(cores, resreq=dice.pick(((), ("rusage[mem=50]",), ("rusage[gpu=1]",))))
    hosts = (WantedHost(host=dice.pick(cores.state.hosts).name),)
    cores.tell(RunJob(job_id=job.job_id, hosts=hosts), "root")
    session(cores, dice)


def forget(cores: Cores, dice: Dice) -> None:
    """
    Have enough jobs end, and time go by.
    """
    for _ in range(3):
        job = ask(cores, hold=True)
        cores.tell(KillJob(job_id=job.job_id), "alice")
    session(cores, dice)
    cores.now_us += dice.pick((1, 2)) * HOUR_US
    ask(cores)  # Jobs are forgotten in sessions that are held anyway.
    session(cores, dice)


def press(cores: Cores, dice: Dice) -> None:
    """
    Put a host under load until its jobs stop, and relieve it.
    """
    ready(cores)
    on_load = dice.pick(tuple(OnPreempt))
    spec = cores.state.stored.queues["normal"].spec
    cores.tell(DefineQueue(queue="normal", spec=spec.model_copy(update={"on_load": on_load})))
    ask(cores)
    session(cores, dice)
    jobs = live(cores, "RUN")
    if not jobs:
        return
    worker = cores.state.hosts[dice.pick(jobs).allocation.runs[0].first]
    bound = LoadThreshold(index="r1m", sched_milli=500, stop_milli=1_000)
    settings = HostSettings(thresholds=(bound,))
    cores.tell(ConfigureWorker(worker=worker.name, settings=settings))
    for load_milli in (3_000, dice.pick((3_000, 700)), 0):
        cores.now_us += 10 * SECOND_US
        load = (Amount(resource="r1m", milli=load_milli),)
        names = {"worker": worker.name, "incarnation": worker.incarnation}
        cores.tell(WorkerReport(**names, load=load), "")
        session(cores, dice)
        obey(cores, dice)


def shut(cores: Cores, dice: Dice) -> None:
    """
    Close the run window of a queue, and open it again.
    """
    ready(cores)
    ask(cores)
    session(cores, dice)
    spec = cores.state.stored.queues["normal"].spec
    for windows in (parse_windows("23:58-23:59"), None):
        on_window = dice.pick((OnPreempt.SUSPEND, *OnPreempt))
        changes = {"run_windows": windows, "on_window": on_window}
        cores.tell(DefineQueue(queue="normal", spec=spec.model_copy(update=changes)))
        session(cores, dice)
        obey(cores, dice)
    session(cores, dice)


EPISODES: Final[dict[str, Callable[[Cores, Dice], None]]] = {
    "preempt": preempt,
    "come_back": come_back,
    "lose": lose,
    "orphan": orphan,
    "hang": hang,
    "force": force,
    "run": run,
    "forget": forget,
    "press": press,
    "shut": shut,
}


def play(cores: Cores, step: Step) -> None:
    """
    Let one thing happen, or an episode.
    """
    try:
        {**HAPPENINGS, **EPISODES}[step[0]](cores, Dice(step[1]))
    except Refused:
        return

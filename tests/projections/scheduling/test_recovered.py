"""
What comparing restored and replayed cores with one that never stopped has found, each in its
smallest form.
"""

from __future__ import annotations

from typing import Any

from domain.commands import (
    DefineQueue,
    HoldJob,
    JobFinishedReport,
    ModifyJob,
    RunJob,
    SetQueue,
    SubmitJob,
)
from domain.events.jobs import JobDispatched, JobEnded, JobPended, JobStartPromised
from domain.events.session import ReasonSetChanged
from domain.jobs import ExitRules, HostChoice, JobSpec, WantedHost
from domain.queues import QueueSpec
from projections.scheduling.derived import derived
from tests.builders import SECOND_US, a_host, some_settings
from tests.projections.scheduling.recovering import Cores
from tests.scenario import Scenario


def cores_with(*hosts: str, **settings: Any) -> Cores:
    """
    Return a cluster of hosts of two slots each.
    """
    cores = Cores(some_settings(**settings))
    for host in hosts:
        cores.tell(a_host(host, 2), "")
    return cores


def submit(cores: Cores, **values: Any) -> None:
    """
    Submit a job of alice's.
    """
    spec = JobSpec(**{"user": "alice", "queue": "normal"} | values)
    cores.tell(SubmitJob(spec=spec), "alice")


def modify(cores: Cores, job_id: str, **values: Any) -> None:
    """
    Give a job another content.
    """
    spec = JobSpec(**{"user": "alice", "queue": "normal"} | values)
    cores.tell(ModifyJob(job_id=job_id, spec=spec), "alice")


def finish(cores: Cores, number: int) -> None:
    """
    Have a job finished.
    """
    job = cores.jobs()[number]
    cores.tell(JobFinishedReport(**cores.report_of(job), exit_code=0), "")


def told(cores: Cores, kind: type) -> list[object]:
    """
    Hold a session, and return what it decided of a kind.
    """
    return [stamped.event for stamped in cores.session() if isinstance(stamped.event, kind)]


def test_a_new_job_gets_the_reasons_that_the_first_of_its_request_has_now() -> None:
    """
    The first one comes before the dispatch that changes them, the new one after it: it gets a copy,
    as if nothing were remembered from the session before.
    """
    logs = []
    for plain in (False, True):
        scenario = Scenario(plain=plain)
        scenario.command(a_host("h1", 16, gpus=2), "")
        pair = ("1*{rusage[gpu=2/task]} + 1*{rusage[gpu=2/task]}",)
        scenario.submit("A", resreq=pair)
        scenario.session()
        scenario.submit("B", resreq=("rusage[gpu=0.1]",))
        scenario.submit("C", resreq=pair)
        scenario.session()
        scenario.session()
        logs.append(scenario.log)

    assert logs[0] == logs[1]


def test_a_core_is_restored_though_a_host_joined_again_without_what_runs_there() -> None:
    """
    Jobs keep amounts and units of a host that doesn't count them any more.
    """
    cores = cores_with()
    cores.tell(a_host("h1", 2, gpus=2, scratch=5), "")
    submit(cores, resreq=("rusage[gpu=1]",))
    submit(cores, resreq=("rusage[scratch=2]",))
    cores.session()
    cores.tell(a_host("h1", 2), "")

    cores.restore()

    submit(cores, resreq=("rusage[scratch=2]",))
    cores.session()
    finish(cores, 0)
    cores.session()
    assert ["DONE", "RUN"] == [job.state.value for job in cores.jobs()]


def test_nobody_is_woken_for_a_moment_that_no_job_waits_for_any_more() -> None:
    """
    A restored core doesn't know that there once was a begin time, so it wouldn't wake then.
    """
    cores = cores_with("h1")
    submit(cores, begin_us=50 * SECOND_US)
    cores.session()
    assert 50 * SECOND_US == cores.wakeup(cores.kept)

    modify(cores, "1")
    cores.session()

    assert cores.wakeup(cores.kept) is None


def test_nobody_is_woken_for_the_run_limit_of_a_job_that_has_ended() -> None:
    """
    Else a session would be held at a moment at which nothing is due.
    """
    cores = cores_with("h1")
    submit(cores, run_limit_us=50 * SECOND_US)
    cores.session()
    assert 51 * SECOND_US == cores.wakeup(cores.kept)

    finish(cores, 0)

    assert cores.wakeup(cores.kept) is None


def test_a_deadline_that_a_held_job_gets_ends_it() -> None:
    """
    It may be held for good, and still must end then.
    """
    cores = cores_with("h1")
    submit(cores)
    cores.tell(HoldJob(job_id="1"), "alice")
    modify(cores, "1", deadline_us=50 * SECOND_US)
    cores.session()
    cores.now_us = cores.wakeup(cores.kept) or 0

    assert 50 * SECOND_US == cores.now_us
    assert [JobEnded(why="TERM_DEADLINE")] == told(cores, JobEnded)


def test_a_replayed_core_knows_who_was_kept_back() -> None:
    """
    When the dependency is met and the queue is inactive, the job must be told that it waits for
    something else now.
    """
    cores = cores_with("h1")
    submit(cores)
    submit(cores, dependency_text="done(1)")
    cores.session()
    cores.tell(SetQueue(queue="normal", to="inactive"))
    finish(cores, 0)

    cores.replay()

    assert 1 == len(told(cores, JobPended))


def test_the_first_job_is_told_what_those_behind_it_took() -> None:
    """
    One that started behind it shut the host for a time; nothing was freed since, so nobody could
    start, but reasons are others.
    """
    cores = cores_with("h2", picker="easy", accept_interval_us=20 * SECOND_US)
    cores.tell(a_host("h1", 2, 100), "")
    submit(cores, tasks_min=2, tasks_max=2, hosts=(HostChoice(host="h1"),))
    submit(cores, resreq=("rusage[mem=50]",))
    cores.session()
    cores.now_us += 30 * SECOND_US
    submit(cores)
    assert 1 == len(told(cores, JobDispatched))

    cores.restore()

    assert 1 == len(told(cores, ReasonSetChanged))


def test_a_job_without_a_promise_is_told_what_those_behind_it_took() -> None:
    """
    It is passed over, since no host could ever hold it; what it is short of may change.
    """
    cores = cores_with("h1", "h2", picker="easy")
    submit(cores, tasks_min=2, tasks_max=2, run_limit_us=900 * SECOND_US)
    submit(cores, resreq=("rusage[mem=50]",))
    submit(cores, tasks_min=3, tasks_max=3)
    submit(cores, tasks_min=2, tasks_max=2, run_limit_us=SECOND_US)
    assert 2 == len(told(cores, JobDispatched))

    cores.restore()

    assert 1 == len(told(cores, ReasonSetChanged))


def test_who_gave_up_gathering_gathers_again_though_another_one_started() -> None:
    """
    Both gave back what they had kept at the same moment, and one of them could start then.
    """
    cores = cores_with("h1")
    for host in ("h2", "h3"):
        cores.tell(a_host(host, 2, 100), "")
    keeps = QueueSpec(priority=30, resource_reserve_us=60 * SECOND_US)
    cores.tell(DefineQueue(queue="normal", spec=keeps))
    submit(cores, tasks_min=4, tasks_max=4)
    submit(cores, tasks_min=2, tasks_max=2, resreq=("rusage[mem=100/task]",))
    submit(cores, resreq=("rusage[mem=50]",))
    assert 2 == len(told(cores, JobStartPromised))
    cores.now_us += 60 * SECOND_US
    assert 1 == len(told(cores, JobDispatched))

    assert cores.now_us + 1 == cores.wakeup(cores.kept)
    cores.session()
    assert cores.now_us + 1 == cores.wakeup(cores.kept)


def test_a_list_that_is_not_reached_keeps_what_it_has_promised() -> None:
    """
    The cluster's picker is blocked and ends the session before that list: nobody knows better.
    """
    cores = cores_with("h1", picker="strict_fcfs")
    cores.tell(DefineQueue(queue="normal", spec=QueueSpec(priority=30, picker="easy")))
    cores.tell(DefineQueue(queue="high", spec=QueueSpec(priority=40)))
    submit(cores, tasks_min=2, tasks_max=2)
    submit(cores)
    assert 1 == len(told(cores, JobStartPromised))
    submit(cores, queue="high")
    cores.restore()

    assert [] == told(cores, JobStartPromised)


def test_nobody_is_promised_to_start_now_who_can_not() -> None:
    """
    A range of tasks is planned with the fewest and takes more: who comes behind it waits, and the
    same session finds until when.
    """
    cores = cores_with(picker="conservative")
    cores.tell(a_host("h1", 6), "")
    submit(cores, tasks_min=3, tasks_max=5)
    submit(cores, tasks_min=2, tasks_max=2)

    assert [] == told(cores, JobStartPromised)
    assert [] == cores.session()


def test_who_gave_up_in_a_session_that_was_cut_short_is_waited_for_after_a_restart() -> None:
    """
    Another one had given up long before: its turn has passed, that of the new one has not.
    """
    cores = cores_with("h1", session_max_decisions=1)
    keeps = QueueSpec(priority=30, slot_reserve_us=60 * SECOND_US)
    cores.tell(DefineQueue(queue="normal", spec=keeps))
    submit(cores, tasks_min=3, tasks_max=3)
    cores.session()
    submit(cores, tasks_min=6, tasks_max=6, user_priority=1)
    cores.now_us += 60 * SECOND_US
    assert [JobStartPromised(reservation=None)] == told(cores, JobStartPromised)
    cores.session()
    cores.now_us += 60 * SECOND_US
    assert [JobStartPromised(reservation=None)] == told(cores, JobStartPromised)

    cores.restore()
    cores.session()

    assert cores.now_us + 1 == cores.wakeup(cores.others["restored"])


def test_who_gave_up_and_is_wanted_on_hosts_since_is_not_waited_for_after_a_restart() -> None:
    """
    An operator's wish takes the job out of what waits for its turn to gather again.
    """
    cores = cores_with("h1")
    keeps = QueueSpec(priority=30, slot_reserve_us=60 * SECOND_US)
    cores.tell(DefineQueue(queue="normal", spec=keeps))
    submit(cores, tasks_min=3, tasks_max=3)
    cores.session()
    cores.now_us += 60 * SECOND_US
    assert JobStartPromised(reservation=None) in told(cores, JobStartPromised)
    cores.tell(RunJob(job_id="1", hosts=(WantedHost(host="h1"),)))

    cores.restore()

    assert cores.wakeup(cores.kept) == cores.wakeup(cores.others["restored"])


def test_a_replayed_core_drops_what_was_forgotten() -> None:
    """
    Also where a job that ended before is still known, since another one waits for it.
    """
    cores = cores_with("h1", clean_period_us=SECOND_US, forget_batch=1)
    submit(cores)
    submit(cores, dependency_text="exit(1)", ends_as_orphan=False)
    cores.session()
    finish(cores, 0)
    for _ in range(3):
        submit(cores)
        cores.session()
        cores.now_us += 5 * SECOND_US
        finish(cores, -1)
        cores.session()
    assert len(cores.jobs()) < 5

    cores.replay()

    assert derived(cores.state) == derived(cores.others["replayed"].state)


def test_a_job_that_is_about_to_be_put_back_still_hears_of_its_parents() -> None:
    """
    Its program has ended, and the session that puts it back is to come: it is no ended job yet. It
    was started by an operator, so its parent may be at work.
    """
    cores = cores_with("h1")
    submit(cores)
    submit(cores, dependency_text="done(1)", exits=ExitRules(requeue=(99,)))
    cores.tell(RunJob(job_id="2", hosts=(WantedHost(host="h1"),)))
    cores.session()
    child = cores.jobs()[1]
    cores.tell(JobFinishedReport(**cores.report_of(child), exit_code=99), "")

    cores.restore()
    assert derived(cores.state) == derived(cores.others["restored"].state)
    cores.session()
    finish(cores, 0)

    assert [2] == [event.attempt for event in told(cores, JobDispatched)]


def test_jobs_that_another_core_has_told_their_reasons_are_passed_over() -> None:
    """
    A core that is fed with decisions hears of reasons between its sessions. It took such a job for
    one that has none, and tried it behind a dispatch that had changed them.
    """
    cores = cores_with("h1", accept_interval_us=20 * SECOND_US)
    submit(cores, tasks_min=3, tasks_max=3)
    submit(cores)
    cores.session()
    submit(cores)
    submit(cores, tasks_min=3, tasks_max=3)
    cores.session()
    cores.replay()
    cores.now_us += 20 * SECOND_US

    assert ["1"] == [event.proved_by for event in told(cores, ReasonSetChanged)]

"""
Who comes and goes: schedulers killed and started again, agents, launchers, whole clusters.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.events.scheduler import SchedulerStarted, SchedulerStopped
from store.log import EventLog
from tests.tools import live_cluster, other_settings
from tests.tools.live_cluster import Cluster, until
from tools.agent.agent import POLL_WAIT_S
from tools.agent.files import WorkerFiles
from tools.agent.locks import holder, is_locked
from tools.agent.processes import born_ticks
from tools.daemon import local_workers
from tools.daemon.config import ClusterFiles
from tools.daemon.process import stop_all

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """
    Give a cluster of two workers of two slots.
    """
    with live_cluster.running(tmp_path_factory.mktemp("cluster")) as found:
        yield found


def output(job: dict) -> str:
    return Path(job["stdout"]).read_text()


# ---------------------------------------------------------------------------------- who goes away


def test_a_second_start_says_that_one_runs_and_adds_only_missing_workers(
    cluster: Cluster,
) -> None:
    """
    Living workers are adopted; nothing is started twice.
    """
    agents = [
        (cluster.directory / "workers" / name / "agent.lock").read_text()
        for name in ("local1", "local2")
    ]
    second = Cluster(cluster.directory, workers=3, slots=1)
    ready = second.start()
    second._reap()
    cluster.wait_hosts(3)
    after = [
        (cluster.directory / "workers" / name / "agent.lock").read_text()
        for name in ("local1", "local2")
    ]
    os.kill(int((cluster.directory / "workers/local3/agent.lock").read_text()), signal.SIGTERM)
    until(lambda: cluster.get("/v1/hosts")["hosts"][2]["status"] == "left", "it has left")

    assert (True, ["local3"]) == (ready["already_running"], ready["workers_added"])
    assert agents == after


def test_ends_that_come_while_the_scheduler_is_down_arrive(
    cluster: Cluster, tmp_path: Path
) -> None:
    """
    Killed with jobs running: they go on, once; what ended meanwhile is reported; the others end
    later.
    """
    go = tmp_path / "go"
    waits = (
        f"echo ran >> {tmp_path}/$XCE_JOB_ID; while [ ! -e {go}$0 ]; do sleep 0.01; done; exit 5"
    )
    first, second = (cluster.submit("sh", "-c", waits, number) for number in "12")
    jobs = [
        until(lambda one=one: found if (found := cluster.job(one))["pid"] else None, "it runs")
        for one in (first, second)
    ]
    cluster.kill()
    Path(f"{go}1").touch()
    until(lambda: born_ticks(jobs[0]["pid"]) == 0, "the first has ended")
    cluster.start()

    ended = cluster.wait_ended(first)
    still = cluster.job(second)
    Path(f"{go}2").touch()
    later = cluster.wait_ended(second)

    assert ("EXIT", 5, "RUN") == (ended["state"], ended["exit_code"], still["state"])
    assert (jobs[1]["pid"], 5) == (later["pid"], later["exit_code"])
    assert ["ran\n", "ran\n"] == [(tmp_path / one).read_text() for one in (first, second)]


def test_an_agent_that_is_killed_finds_its_jobs_again(cluster: Cluster, tmp_path: Path) -> None:
    """
    The launcher waits meanwhile; the next agent reports in a new incarnation.
    """
    go = tmp_path / "go"
    script = f"echo ran >> {tmp_path}/ran; while [ ! -e {go} ]; do sleep 0.01; done; exit 6"
    job_id = cluster.shell(script)
    job = until(lambda: found if (found := cluster.job(job_id))["pid"] else None, "it runs")
    name = job["hosts"][0]["host"]
    cluster.kill_agent(name)
    go.touch()
    until(lambda: born_ticks(job["pid"]) == 0, "it has ended")
    second = Cluster(cluster.directory, workers=2)
    second.start()
    second._reap()

    ended = cluster.wait_ended(job_id)

    assert (6, "ran\n") == (ended["exit_code"], (tmp_path / "ran").read_text())
    host = next(one for one in cluster.get("/v1/hosts")["hosts"] if one["host"] == name)
    assert host["incarnation"] >= 2


def test_a_launcher_that_is_killed_is_replaced_and_what_it_ran_is_still_known(
    cluster: Cluster,
) -> None:
    """
    Its jobs run on and are watched; only their exit codes can't be known any more. What comes next
    runs as ever, and without a wait.
    """
    job_id = cluster.submit("sleep", "1000")
    job = until(lambda: found if (found := cluster.job(job_id))["pid"] else None, "it runs")
    files = WorkerFiles(cluster.directory, job["hosts"][0]["host"])
    killed = holder(files.launcher_lock)
    os.kill(killed, signal.SIGKILL)
    until(lambda: holder(files.launcher_lock) not in (0, killed), "another one lives")
    began = time.monotonic()
    others = [cluster.submit("true") for _ in range(3)]
    ended = [cluster.wait_ended(one) for one in others]
    took_s = time.monotonic() - began
    still = cluster.job(job_id)
    os.kill(job["pid"], signal.SIGKILL)

    lost = cluster.wait_ended(job_id)

    assert [0, 0, 0] == [one["exit_code"] for one in ended]
    assert took_s < POLL_WAIT_S
    assert ("RUN", "EXIT", None, None) == (
        still["state"],
        lost["state"],
        lost["exit_code"],
        lost["signal"],
    )


def test_each_start_and_each_good_end_is_in_the_log(cluster: Cluster) -> None:
    """
    The log says who had it when; a good end also leaves a snapshot of the last state.
    """
    assert 0 == cluster.stop()
    cluster.start()
    with EventLog.open(cluster.directory, writable=False) as log:
        events = [one.event for one in log.read()]
    cluster.wait_hosts()

    epochs = [event.epoch for event in events if isinstance(event, SchedulerStarted)]
    assert epochs == sorted(set(epochs))
    assert 1 <= len([event for event in events if isinstance(event, SchedulerStopped)])
    assert list((cluster.directory / "snapshots").rglob("*.snapshot"))


# ---------------------------------------------------------------------------- clusters of their own


def test_a_silent_worker_becomes_unreachable_and_comes_back(tmp_path: Path) -> None:
    """
    A stopped agent says nothing: its host takes no jobs, its job's state is unknown; both come back
    with its next word.
    """
    with live_cluster.running(tmp_path, workers=1, options=("--silent-after-s", "1")) as cluster:
        job_id = cluster.submit("sleep", "1000")
        until(lambda: cluster.job(job_id)["pid"], "it runs")
        agent = holder(WorkerFiles(tmp_path, "local1").agent_lock)
        os.kill(agent, signal.SIGSTOP)
        cluster.wait_state(job_id, "UNKWN")
        silent = cluster.get("/v1/hosts")["hosts"][0]["status"]
        os.kill(agent, signal.SIGCONT)
        cluster.wait_state(job_id, "RUN")

        assert ("unreachable", "ok") == (silent, cluster.get("/v1/hosts")["hosts"][0]["status"])


def test_a_job_on_a_lost_host_runs_elsewhere_and_its_former_copy_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    One attempt counts: when the lost host is back, what it still runs of the job is ended, and what
    it tells about it changes nothing.
    """
    monkeypatch.setenv(other_settings.VARIABLE, json.dumps({"lost_grace_us": 500_000}))
    settings = {"program": [other_settings.__file__], "options": ("--silent-after-s", "1")}
    with live_cluster.running(tmp_path, slots=1, **settings) as cluster:
        job_id = cluster.submit("sleep", "1000", rerunnable=True)
        first = until(lambda: found if (found := cluster.job(job_id))["pid"] else None, "it runs")
        lost = first["hosts"][0]["host"]
        agent = holder(WorkerFiles(tmp_path, lost).agent_lock)
        os.kill(agent, signal.SIGSTOP)
        second = until(
            lambda: found if (found := cluster.job(job_id))["attempt"] == 2 and found["pid"] else 0,
            "it runs again",
        )
        os.kill(agent, signal.SIGCONT)
        until(lambda: born_ticks(first["pid"]) == 0, "the former copy is ended")
        cluster.wait_hosts(2)

        assert second["hosts"][0]["host"] != lost
        assert (2, "RUN", second["pid"]) == tuple(
            cluster.job(job_id)[name] for name in ("attempt", "state", "pid")
        )


def test_taking_a_cluster_down_leaves_nothing_running(tmp_path: Path) -> None:
    """
    Scheduler, agents, launchers and jobs are gone; the next start hears how the jobs ended.
    """
    cluster = Cluster(tmp_path)
    cluster.start()
    cluster.wait_hosts()
    job_id = cluster.submit("sleep", "1000")
    pid = until(lambda: cluster.job(job_id)["pid"], "it runs")

    ended = stop_all(tmp_path)
    cluster._reap()

    workers = [WorkerFiles(tmp_path, name) for name in ("local1", "local2")]
    locks = [path for one in workers for path in (one.agent_lock, one.launcher_lock)]
    assert {"schedulers": 1, "agents": 2, "launchers": 2} == ended
    assert [False] * 4 == [is_locked(path) for path in locks]
    assert 0 == born_ticks(pid)
    assert {"schedulers": 0, "agents": 0, "launchers": 0} == stop_all(tmp_path)
    with live_cluster.running(tmp_path) as again:
        assert signal.SIGKILL == again.wait_ended(job_id)["signal"]


def test_no_job_is_given_to_a_host_whose_agent_went_down(tmp_path: Path) -> None:
    """
    After down and up without workers the log still knows the hosts; a job waits until one is there
    again, instead of being given to nobody.
    """
    cluster = Cluster(tmp_path, workers=1)
    cluster.start()
    cluster.wait_hosts()
    stop_all(tmp_path)
    cluster._reap()
    alone = Cluster(tmp_path, workers=0)
    alone.start()
    try:
        job_id = alone.submit("true")
        reason = until(lambda: alone.job(job_id)["pend_reason"], "it was considered")
        (host,) = alone.get("/v1/hosts")["hosts"]
        state = alone.job(job_id)["state"]
        local_workers.start_missing(ClusterFiles(tmp_path), 1, None)

        assert "DONE" == alone.wait_ended(job_id)["state"]
        assert ("unreachable", "not heard since the scheduler's start") == (
            host["status"],
            host["why"],
        )
        assert "PEND" == state, reason
    finally:
        alone.end()


def test_a_running_job_is_untouched_by_a_start_of_the_scheduler_alone(cluster: Cluster) -> None:
    """
    Its host is awaited, not lost: the job is RUN all the time, and runs on as the same process.
    """
    job_id = cluster.submit("sleep", "1000")
    before = until(lambda: found if (found := cluster.job(job_id))["pid"] else None, "it runs")
    cluster.kill()
    cluster.start()
    at_once = cluster.job(job_id)["state"]
    cluster.wait_hosts()

    assert "RUN" == at_once
    assert [before[name] for name in ("pid", "state", "since_us", "attempt")] == [
        cluster.job(job_id)[name] for name in ("pid", "state", "since_us", "attempt")
    ]
    cluster.post(f"/v1/jobs/{job_id}/kill")
    cluster.wait_ended(job_id)


def test_a_cluster_is_taken_down_whole_while_it_is_still_starting(tmp_path: Path) -> None:
    """
    A process that has only just been started is seen by its lock before it can do anything itself.
    """
    cluster = Cluster(tmp_path)
    for _ in range(3):
        cluster.start()
        cluster.kill()

        assert 2 == stop_all(tmp_path)["agents"]
        workers = [WorkerFiles(tmp_path, name) for name in ("local1", "local2")]
        assert [] == [one.worker for one in workers if is_locked(one.agent_lock)]
        assert [] == [one.worker for one in workers if is_locked(one.launcher_lock)]


def test_a_worker_belongs_to_one_log(tmp_path: Path) -> None:
    """
    Where a cluster begins anew in the same directory, its first job must not be taken for the
    former cluster's first job, which the launcher knows already.
    """
    with live_cluster.running(tmp_path, workers=1) as cluster:
        cluster.wait_ended(cluster.shell("exit 3"))
        cluster.stop()
        for name in ("log", "snapshots"):
            (tmp_path / name).rename(tmp_path / f"former-{name}")
        with pytest.raises(AssertionError, match="ended with 1"):
            cluster.start()
        (tmp_path / "cluster.json").unlink()
        cluster.start()
        cluster.wait_hosts()

        job_id = cluster.shell("exit 4")

        assert ("1", 4) == (job_id, cluster.wait_ended(job_id)["exit_code"])


def test_a_cluster_may_lie_deeper_than_a_socket_address_is_long(tmp_path: Path) -> None:
    """
    A socket's path has 107 bytes at most; nobody chooses directories by that.
    """
    with live_cluster.running(tmp_path / ("d" * 100) / ("e" * 100), workers=1) as cluster:
        assert 0 == cluster.wait_ended(cluster.submit("true"))["exit_code"]


def test_a_directory_that_others_can_write_is_refused(tmp_path: Path) -> None:
    """
    Whoever can write there can put a socket of their own in the scheduler's place.
    """
    tmp_path.chmod(0o777)
    cluster = Cluster(tmp_path)

    refused = subprocess.run(cluster._arguments, capture_output=True, text=True, check=False)

    assert (2, "") == (refused.returncode, refused.stdout)
    assert "must not be writable by others" in refused.stderr


def test_the_journal_is_json_lines(cluster: Cluster) -> None:
    """
    What the process notes about itself can be read by programs.
    """
    lines = (cluster.directory / "scheduler.log").read_text().splitlines()

    assert {"ready", "engine recovered"} <= {json.loads(line)["what"] for line in lines}


def test_forgotten_jobs_are_read_from_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The state forgets what ended long ago; nobody who asks for it should notice.
    """
    forgetful = {"clean_period_us": 1000, "forget_batch": 1}
    monkeypatch.setenv(other_settings.VARIABLE, json.dumps(forgetful))
    program = [other_settings.__file__]
    with live_cluster.running(tmp_path, workers=1, program=program) as cluster:
        ended = [cluster.wait_ended(cluster.shell(f"exit {code}")) for code in (0, 3)]
        array = cluster.shell("exit 1", array={"ranges": [{"start": 2, "end": 3}]})
        ended += [cluster.wait_ended(f"{array}[{index}]") for index in (2, 3)]
        killed = cluster.submit("true", hold=True)
        cluster.post(f"/v1/jobs/{killed}/kill")
        ended.append(cluster.wait_ended(killed))
        last = cluster.submit("sleep", "1000")
        until(lambda: cluster.get("/v1/status")["jobs"] == {"RUN": 1}, "the others are forgotten")

        rows = cluster.get("/v1/jobs?all=1")["jobs"]
        again = [cluster.job(job["job_id"]) for job in ended]
        failed = cluster.get("/v1/jobs?all=1&state=EXIT&limit=1")["jobs"]

    assert [*(job["job_id"] for job in ended), last] == [job["job_id"] for job in rows]
    for before, after in zip(ended, again, strict=True):
        assert before == {**after, "position": before["position"]}
    assert [killed] == [job["job_id"] for job in failed]

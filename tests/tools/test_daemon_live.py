"""
A real cluster at work: programs run, are stopped, changed and ended; stale reports count nothing.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.events.refusals import AccessDenied, ReportIgnored
from store.log import EventLog
from tests.tools import live_cluster
from tests.tools.live_cluster import Cluster, until
from tools.agent import processes
from tools.agent.processes import born_ticks
from tools.daemon.capability import capability

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


# ------------------------------------------------------------------------------------ jobs that run


def test_exit_codes_signals_and_output_arrive(cluster: Cluster) -> None:
    """
    What a program does is what its job says.
    """
    good = cluster.shell("echo well; echo ill >&2")
    bad = cluster.shell("exit 42")
    killed = cluster.shell("kill -SEGV $$")
    missing = cluster.submit("no-such-program")

    done, failed, signalled, unstarted = map(cluster.wait_ended, (good, bad, killed, missing))

    assert ("DONE", 0, "well\n") == (done["state"], done["exit_code"], output(done))
    assert "ill\n" == Path(done["stderr"]).read_text()
    assert ("EXIT", 42, None) == (failed["state"], failed["exit_code"], failed["signal"])
    assert (None, signal.SIGSEGV) == (signalled["exit_code"], signalled["signal"])
    assert "not found" in unstarted["why"]


def test_a_parallel_job_runs_once_and_knows_its_hosts(cluster: Cluster) -> None:
    """
    The command runs on the first host; the others hold their slots and are named to it.
    """
    script = 'echo "$XCE_JOB_ID $XCE_ATTEMPT $XCE_QUEUE $LSB_JOBID $LSB_JOBINDEX"; '
    names = 'echo "$XCE_HOSTS"; echo "$LSB_HOSTS"; echo "$LSB_MCPU_HOSTS"'
    job_id = cluster.shell(script + names, tasks_min=4)

    ids, hosts, lsf, counted = output(cluster.wait_ended(job_id)).splitlines()

    assert f"{job_id} 1 normal {job_id} 0" == ids
    assert {"local1*2", "local2*2"} == set(hosts.split())
    assert ["local1", "local1", "local2", "local2"] == sorted(lsf.split())
    assert {"local1", "local2", "2"} == set(counted.split())


def test_a_shell_runs_only_when_the_job_asked_for_one(cluster: Cluster) -> None:
    """
    An argument is an argument, whatever characters it holds.
    """
    plain = cluster.submit("echo", "$HOME;", "`id`", "*")
    body = {"program": {"shell": "echo $((6 * 7)) $1", "argv": ["given"]}}
    shelled = cluster.post("/v1/jobs", body)["job_id"]

    assert "$HOME; `id` *\n" == output(cluster.wait_ended(plain))
    assert "42 given\n" == output(cluster.wait_ended(shelled))


def test_a_running_job_is_killed_with_all_its_processes(cluster: Cluster) -> None:
    """
    The order reaches the whole process group, and the job says by whom it ended.
    """
    job_id = cluster.shell("sleep 1000 & echo $!; wait")
    path = until(lambda: found if (found := cluster.job(job_id))["pid"] else None, "it runs")
    child = int(until(lambda: Path(path["stdout"]).read_text(), "its child runs"))
    cluster.post(f"/v1/jobs/{job_id}/kill")

    ended = cluster.wait_ended(job_id)

    assert ("EXIT", signal.SIGTERM, "TERM_OWNER") == (ended["state"], ended["signal"], ended["why"])
    until(lambda: born_ticks(child) == 0, "the child is gone")
    names = {event["type_code"] for event in cluster.get(f"/v1/jobs/{job_id}/history")["events"]}
    assert {"job.kill_requested", "job.kill_ordered", "job.finished"} <= names


def test_more_jobs_than_slots_wait_and_run_in_their_turn(cluster: Cluster) -> None:
    """
    Four slots, ten jobs: the rest waits with a reason, and each gets its turn.
    """
    jobs = [cluster.submit("sleep", "0.1") for _ in range(10)]
    waiting = [job for job in cluster.get("/v1/jobs")["jobs"] if job["state"] == "PEND"]

    ended = [cluster.wait_ended(job_id) for job_id in jobs]

    assert ["DONE"] * 10 == [job["state"] for job in ended]
    assert all("slots" in job["pend_reason"] for job in waiting)
    starts = [job["dispatch_us"] for job in ended]
    assert starts == sorted(starts)


def test_memory_is_reserved_and_given_back(cluster: Cluster) -> None:
    """
    A job that reserves more than a host has can never start there; what fits is counted.
    """
    host = cluster.get("/v1/hosts")["hosts"][0]
    total_milli = next(one["total_milli"] for one in host["resources"] if one["name"] == "mem")
    too_much = total_milli // 1_024_000 + 1000
    job_id = cluster.submit("true", resreq=[f"rusage[mem={too_much}]"])
    fits = cluster.submit("true", resreq=["rusage[mem=10]"])

    ended = cluster.wait_ended(fits)
    why = cluster.get(f"/v1/jobs/{job_id}/why")
    cluster.post(f"/v1/jobs/{job_id}/kill")

    assert ("DONE", True) == (ended["state"], why["never"])
    assert {"mem"} == {reason["resource"] for reason in why["reasons"]}


def test_a_running_scheduler_traces_the_session_that_placed_a_job(cluster: Cluster) -> None:
    """
    As it was recorded, with the hosts that were looked at; who asks need not read the log.
    """
    job_id = cluster.submit("true", tasks_min=2, tasks_max=2)
    cluster.wait_ended(job_id)

    told = cluster.get(f"/v1/jobs/{job_id}/trace?level=summary&lines=40")

    assert (True, "") == (told["is_recorded"], told["difference"])
    assert (job_id, "summary") == (told["traces"][0]["job_id"], told["traces"][0]["level"])
    assert "as recorded" in told["words"][0]


def test_a_closed_host_takes_no_jobs(cluster: Cluster) -> None:
    """
    Its running jobs go on; new ones go elsewhere.
    """
    cluster.post("/v1/hosts/local1/close", {"why": "new disk"})
    jobs = [cluster.submit("true") for _ in range(3)]
    ended = [cluster.wait_ended(job_id) for job_id in jobs]
    shown = next(one for one in cluster.get("/v1/hosts")["hosts"] if one["host"] == "local1")
    cluster.post("/v1/hosts/local1/open")

    assert {"local2"} == {job["hosts"][0]["host"] for job in ended}
    assert ("closed", "new disk") == (shown["status"], shown["why"])


# ----------------------------------------------------------------------- stopping, changing, arrays


def is_stopped(job: dict) -> bool:
    return processes.is_stopped(job["pid"])


def test_a_running_job_is_stopped_and_goes_on(cluster: Cluster) -> None:
    """
    It keeps its place and its processes; stopped time is no run time.
    """
    job_id = cluster.submit("sleep", "1000")
    job = until(lambda: found if (found := cluster.job(job_id))["pid"] else None, "it runs")
    cluster.post(f"/v1/jobs/{job_id}/stop")
    stopped = cluster.wait_state(job_id, "USUSP")
    was_stopped = is_stopped(job)
    cluster.post(f"/v1/jobs/{job_id}/resume")
    running = cluster.wait_state(job_id, "RUN")
    until(lambda: not is_stopped(job), "it goes on")
    cluster.post(f"/v1/jobs/{job_id}/kill")

    assert (True, "SUSP_USER_STOP", job["pid"]) == (
        was_stopped,
        stopped["suspend_reason"],
        running["pid"],
    )
    assert "EXIT" == cluster.wait_ended(job_id)["state"]


def test_a_requeued_job_runs_again_as_its_next_attempt(cluster: Cluster, tmp_path: Path) -> None:
    """
    The former attempt is ended, and its late reports count no more.
    """
    script = f"echo $XCE_ATTEMPT >> {tmp_path}/ran; [ $XCE_ATTEMPT = 2 ] || sleep 1000"
    job_id = cluster.shell(script)
    until((tmp_path / "ran").exists, "it runs")
    cluster.post(f"/v1/jobs/{job_id}/requeue")

    ended = cluster.wait_state(job_id, "DONE")

    assert (2, 1, "1\n2\n") == (ended["attempt"], ended["requeues"], (tmp_path / "ran").read_text())


def test_exit_values_can_requeue_and_can_be_success(cluster: Cluster, tmp_path: Path) -> None:
    """
    What an exit value means is the job's to say.
    """
    script = f"echo x >> {tmp_path}/runs; [ $(wc -l < {tmp_path}/runs) = 3 ] && exit 7; exit 99"
    job_id = cluster.shell(script, exits={"requeue": [99], "success": [7]})

    ended = cluster.wait_state(job_id, "DONE")

    assert (7, 3, 2) == (ended["exit_code"], ended["attempt"], ended["requeues"])


def of_program(script: str, **texts: str) -> dict[str, object]:
    env = [{"name": "PATH", "value": "/usr/bin:/bin"}]
    return {"program": {"argv": ["sh", "-c", script], "env": env, **texts}}


def submitted(cluster: Cluster, script: str, **texts: str) -> str:
    job_id: str = cluster.post("/v1/jobs", of_program(script, **texts))["job_id"]
    return job_id


def test_a_job_whose_pre_exec_fails_on_one_host_runs_on_the_other(
    cluster: Cluster, tmp_path: Path
) -> None:
    """
    The host isn't fit for it; another one is. What runs around it is told where.
    """
    first = f"echo $XCE_HOSTS >> {tmp_path}/tried; [ $(wc -l < {tmp_path}/tried) = 2 ]"
    after = f"echo $LSB_JOBEXIT_STAT > {tmp_path}/status"
    job_id = submitted(cluster, "exit 5", pre_exec=first, post_exec=after)

    ended = cluster.wait_ended(job_id)
    until((tmp_path / "status").exists, "what follows has run")

    tried = (tmp_path / "tried").read_text().split()
    assert (5, 2, 2) == (ended["exit_code"], ended["attempt"], len(set(tried)))
    assert tried[1] == f"{ended['hosts'][0]['host']}*1"
    assert f"{5 << 8}" == until((tmp_path / "status").read_text().strip, "it is written")
    history = cluster.get(f"/v1/jobs/{job_id}/history")["events"]
    assert [text for one in history if "pre-exec of the job" in (text := one["text"])]


def test_a_pre_exec_that_ends_with_99_ends_its_job(cluster: Cluster, tmp_path: Path) -> None:
    """
    There is no use in trying it anywhere else.
    """
    job_id = submitted(cluster, f"touch {tmp_path}/ran", pre_exec="exit 99")

    ended = cluster.wait_ended(job_id)

    assert ("EXIT", "TERM_PRE_EXEC_FAIL", 1) == (ended["state"], ended["why"], ended["attempt"])
    assert not (tmp_path / "ran").exists()


def test_a_queue_runs_its_commands_around_those_of_its_jobs(
    cluster: Cluster, tmp_path: Path
) -> None:
    """
    Whoever runs the cluster sets a host up before anything of the job's, and clears up after it.
    """
    note = f"echo %s >> {tmp_path}/order"
    spec = {"priority": 40, "pre_exec": note % "queue", "post_exec": note % "over"}
    cluster.post("/v1/define/queue", {"queue": "around", "spec": spec})
    texts = {"pre_exec": note % "job", "post_exec": note % "after"}
    body = of_program(note % "command", **texts)
    job_id = cluster.post("/v1/jobs", {**body, "queue": "around"})["job_id"]
    assert "DONE" == cluster.wait_ended(job_id)["state"]

    expected = ["queue", "job", "command", "after", "over"]
    until(lambda: len((tmp_path / "order").read_text().split()) == 5, "all have run")
    assert expected == (tmp_path / "order").read_text().split()


def test_a_run_limit_ends_a_job(cluster: Cluster) -> None:
    """
    A limit that nobody carries out would be worse than none.
    """
    ended = cluster.wait_ended(cluster.submit("sleep", "1000", run_limit_us=300_000))

    assert ("EXIT", "TERM_RUNLIMIT") == (ended["state"], ended["why"])


def test_an_array_runs_each_element_and_is_killed_as_a_whole(
    cluster: Cluster, tmp_path: Path
) -> None:
    """
    One submission, many jobs, each with its own index.
    """
    ranges = [{"start": 1, "end": 3}]
    array = cluster.shell(f"touch {tmp_path}/$LSB_JOBINDEX", array={"ranges": ranges})
    for index in (1, 2, 3):
        cluster.wait_state(f"{array}[{index}]", "DONE")
    sleeping = cluster.submit("sleep", "1000", array={"ranges": ranges})
    until(lambda: cluster.job(f"{sleeping}[3]")["pid"], "all run")
    killed = cluster.post(f"/v1/jobs/{sleeping}/kill")

    ended = [cluster.wait_ended(f"{sleeping}[{index}]")["state"] for index in (1, 2, 3)]

    assert ["1", "2", "3"] == sorted(path.name for path in tmp_path.iterdir())
    assert [f"{sleeping}[{index}]" for index in (1, 2, 3)] == killed["elements"]
    assert ["EXIT"] * 3 == ended


def test_elements_of_an_array_write_files_named_by_their_index(
    cluster: Cluster, tmp_path: Path
) -> None:
    """
    One path for all would mix what they write; what was submitted stays as it was typed.
    """
    program = {
        "argv": ["sh", "-c", "echo $LSB_JOBINDEX"],
        "cwd": str(tmp_path),
        "stdout": f"{tmp_path}/o.%J.%I",
    }
    array = cluster.submit("sh", program=program, array={"ranges": [{"start": 1, "end": 2}]})

    done = [cluster.wait_ended(f"{array}[{index}]") for index in (1, 2)]

    assert {f"o.{array}.1": "1\n", f"o.{array}.2": "2\n"} == {
        path.name: path.read_text() for path in tmp_path.iterdir()
    }
    assert ["1\n", "2\n"] == [output(job) for job in done]
    assert {program["stdout"]} == {job["program"]["stdout"] for job in done}


def test_a_job_waits_for_another_and_until_its_moment(cluster: Cluster) -> None:
    """
    The engine wakes by itself when a moment has come.
    """
    first = cluster.shell("sleep 0.2")
    after = cluster.submit("true", dependency_text=f"done({first})")
    soon_us = time.time_ns() // 1000 + 1_000_000
    later = cluster.submit("true", begin_us=soon_us)

    ended = [cluster.wait_ended(job_id) for job_id in (first, after, later)]

    assert ended[1]["dispatch_us"] >= ended[0]["finish_us"]
    assert soon_us <= ended[2]["dispatch_us"] < soon_us + 5_000_000


def test_a_pending_job_is_changed_moved_and_switched(cluster: Cluster) -> None:
    """
    What isn't given stays, what can't be honoured is refused, and nothing is half-done.
    """
    held = cluster.submit("true", hold=True, name="before")
    changed = cluster.post(f"/v1/jobs/{held}/modify", {"name": "after", "tasks_max": 4})
    job = cluster.job(held)
    wrong = cluster.ask("POST", f"/v1/jobs/{held}/modify", {"tasks_min": 9})
    cleared = cluster.ask("POST", f"/v1/jobs/{held}/modify", {"program": None})
    nowhere = cluster.ask("POST", f"/v1/jobs/{held}/switch", {"queue": "nosuch"})
    moved = cluster.ask("POST", f"/v1/jobs/{held}/top", {})
    cluster.post(f"/v1/jobs/{held}/kill")

    assert (True, "after", 1, 4) == (
        changed["changed"],
        job["name"],
        job["tasks_min"],
        job["tasks_max"],
    )
    assert [(422, "tasks_max"), (422, "program"), (404, "queue"), (422, "job_id")] == [
        (status, answer["error"]["field"]) for status, answer in (wrong, cleared, nowhere, moved)
    ]


# -------------------------------------------------------------------------------- what is stale


def report(cluster: Cluster, worker: str, incarnation: int, **fields: object) -> tuple[int, dict]:
    body = {"incarnation": incarnation, "reports": [fields]}
    return cluster.ask("POST", f"/v1/workers/{worker}/reports", body)


def finished(cluster: Cluster, job_id: str, attempt: int, worker: str = "local1") -> dict:
    key = (cluster.directory / "cluster.key").read_bytes()
    return {
        "kind": "finished",
        "job_id": job_id,
        "attempt": attempt,
        "exit_code": 0,
        "capability": capability(key, job_id, attempt, worker),
    }


def test_stale_and_forged_reports_change_nothing_and_are_recorded(cluster: Cluster) -> None:
    """
    Only the current attempt's own worker, in its current life, with the attempt's capability,
    counts.
    """
    job_id = cluster.submit("sleep", "1000")
    job = until(lambda: found if (found := cluster.job(job_id))["pid"] else None, "it runs")
    worker = job["hosts"][0]["host"]
    other = "local2" if worker == "local1" else "local1"

    old_life = report(cluster, worker, 77, **finished(cluster, job_id, 1, worker))
    old_attempt = report(cluster, worker, 1, **finished(cluster, job_id, 2, worker))
    elsewhere = report(cluster, other, 1, **finished(cluster, job_id, 1, other))
    forged = report(
        cluster, worker, 1, **{**finished(cluster, job_id, 1, worker), "capability": "0" * 32}
    )
    borrowed = report(cluster, other, 1, **finished(cluster, job_id, 1, worker))

    assert "RUN" == cluster.job(job_id)["state"]
    assert 409 == old_life[0]
    for status, answer in (old_attempt, elsewhere, forged, borrowed):
        assert (200, False) == (status, answer["results"][0]["ok"])
    cluster.post(f"/v1/jobs/{job_id}/kill")
    cluster.wait_ended(job_id)
    with EventLog.open(cluster.directory, writable=False) as log:
        events = [one.event for one in log.read()]
    ignored = [event.why for event in events if isinstance(event, ReportIgnored)]
    assert 3 <= len(
        [
            why
            for why in ignored
            if "incarnation" in why or "attempt" in why or "isn't on this worker" in why
        ]
    )
    denied = [event for event in events if isinstance(event, AccessDenied)]
    assert [("JobFinishedReport", job_id)] * 2 == [(one.action, one.subject) for one in denied]

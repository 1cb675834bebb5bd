"""
Stopping, resuming, requeueing, switching, modifying and moving jobs, with real programs.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.tools import cli_harness as harness

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """
    Return one cluster for all tests of this module: one local worker with one slot, and a queue
    whose jobs may suspend those of another.
    """
    options = ("--workers", "1", "--slots", "1")
    with harness.cluster(tmp_path_factory.mktemp("changes"), *options) as one:
        low = ("define", "queue", "low", "priority=10", "preemptible_by=all")
        high = ("define", "queue", "high", "priority=90", "preemptible_queues=low")
        for command in (low, high):
            done = one.run(*command)
            assert 0 == done.returncode, done.stderr
        yield one


def ticking(path: Path) -> str:
    """
    Return a program that counts up in a file for ever.
    """
    count = f"n=$((n+1)); echo $n > {path}.new; mv {path}.new {path}; sleep 0.02"
    return f"n=0; while :; do {count}; done"


def stands_still(path: Path) -> bool:
    """
    Say whether a ticking program doesn't tick: its shell may be stopped itself, or wait for a child
    that was stopped before it could begin.
    """
    before = path.read_text()
    time.sleep(0.3)
    return path.read_text() == before


def test_a_running_program_is_stopped_and_goes_on(live, tmp_path):
    """
    USUSP is a stopped process, RUN again a running one.
    """
    job_id = live.submit("--shell", ticking(tmp_path / "count"))
    live.wait_state(job_id, "RUN")
    harness.wait_until((tmp_path / "count").exists)

    assert 0 == live.run("stop", job_id).returncode
    live.wait_state(job_id, "USUSP")
    harness.wait_until(lambda: stands_still(tmp_path / "count"))

    assert 0 == live.run("resume", job_id).returncode
    live.wait_state(job_id, "RUN")
    before = (tmp_path / "count").read_text()
    harness.wait_until(lambda: (tmp_path / "count").read_text() != before)
    live.run("kill", job_id)
    live.wait_state(job_id, "EXIT")


def test_a_program_gets_the_signal_that_its_user_sends(live, tmp_path):
    """
    Each once, by name or number; what it makes of it is its own affair, and what ended it is told.
    """
    told, ready = tmp_path / "told", tmp_path / "ready"
    traps = f"trap 'echo usr1 >> {told}' USR1; trap 'echo hup >> {told}' HUP"
    job_id = live.submit("--shell", f"{traps}; touch {ready}; while :; do sleep 0.02; done")
    harness.wait_until(ready.exists)

    assert 0 == live.run("kill", "-s", "USR1", job_id).returncode
    harness.wait_until(lambda: told.exists() and told.read_text() == "usr1\n")
    done = live.run("kill", "--signal", "1", job_id)
    assert (0, f"Job {job_id} is being sent SIGHUP.\n") == (done.returncode, done.stdout)
    harness.wait_until(lambda: told.read_text() == "usr1\nhup\n")
    assert "RUN" == live.job(job_id)["state"]

    assert "xce stop" in live.run("kill", "-s", "STOP", job_id).stderr
    assert 2 == live.run("kill", "-r", "-s", "USR1", job_id).returncode
    assert 0 == live.run("kill", "-s", "INT", job_id).returncode
    ended = live.wait_state(job_id, "EXIT")

    assert (2, "TERM_OWNER") == (ended["signal"], ended["why"])
    story = live.run("history", job_id).stdout
    assert "asked to get SIGUSR1" in story
    assert "ordered to send SIGHUP to attempt 1" in story
    assert 2 == live.run("kill", "-s", "USR1", job_id).returncode


def test_an_operator_starts_a_job_where_no_slot_is_free(live):
    """
    It runs beside the one that has the slot; what is wrong with the hosts is named.
    """
    first = live.submit("--shell", "exec sleep 60")
    live.wait_state(first, "RUN")
    job_id = live.submit("--shell", "exec sleep 60")
    host = live.ask("hosts")["hosts"][0]["host"]

    assert "must get 1 tasks together" in live.run("run", "-m", f"{host}*2", job_id).stderr
    assert "-m" in live.run("run", "-m", f"{host}*x", job_id).stderr
    done = live.run("run", "-m", f"1*{host}", job_id)

    assert (0, f"Job {job_id} is to start at once.\n") == (done.returncode, done.stdout)
    live.wait_state(job_id, "RUN")
    assert "as an operator asked" in live.run("history", job_id).stdout
    assert "RUN" == live.job(first)["state"]
    live.run("kill", first, job_id)
    live.wait_state(job_id, "EXIT")


def test_a_job_that_will_not_end_is_ended_by_force(live, tmp_path):
    """
    It is over at once and the next one runs; its processes are ended when that is possible.
    """
    ready, pid = tmp_path / "ready", tmp_path / "pid"
    text = f"trap '' TERM; echo $$ > {pid}; touch {ready}; while :; do sleep 0.02; done"
    job_id = live.submit("--shell", text)
    harness.wait_until(ready.exists)
    after = live.submit("--shell", "true")
    assert 0 == live.run("kill", job_id).returncode
    assert "RUN" == live.job(job_id)["state"]

    assert 0 == live.run("kill", "-r", job_id).returncode

    assert "TERM_FORCE_OWNER" == live.wait_state(job_id, "EXIT")["why"]
    live.wait_state(after, "DONE")
    harness.wait_until(lambda: not Path(f"/proc/{pid.read_text().strip()}").exists())


def test_a_running_program_is_suspended_for_a_more_important_one(live, tmp_path):
    """
    The whole story of preemption with real processes: SSUSP while the other runs, then on.
    """
    victim = live.submit("-q", "low", "--shell", ticking(tmp_path / "count"))
    live.wait_state(victim, "RUN")
    harness.wait_until((tmp_path / "count").exists)
    go = tmp_path / "go"
    text = f"while [ ! -e {go} ]; do sleep 0.05; done"
    preemptor = live.submit("-q", "high", "--shell", text)

    live.wait_state(preemptor, "RUN")
    assert "SSUSP" == live.job(victim)["state"]
    words = f"it makes room for job {preemptor} (SUSP_PREEMPT)"
    assert words in live.run("jobs").stdout
    assert f"Stopped        {words}" in live.run("job", victim).stdout
    assert f"is stopped: {words}." in live.run("why", victim).stdout
    assert stands_still(tmp_path / "count")
    go.touch()
    live.wait_state(preemptor, "DONE")
    live.wait_state(victim, "RUN")

    before = (tmp_path / "count").read_text()
    harness.wait_until(lambda: (tmp_path / "count").read_text() != before)
    live.run("kill", victim)
    live.wait_state(victim, "EXIT")


def test_a_running_job_is_put_back_and_held(live):
    """
    Its program ends, the next attempt waits until it is resumed.
    """
    job_id = live.submit("--shell", "exec sleep 60")
    live.wait_state(job_id, "RUN")

    assert 0 == live.run("requeue", "-H", job_id).returncode
    live.wait_state(job_id, "PSUSP")
    assert 0 == live.run("resume", job_id).returncode
    live.wait_state(job_id, "RUN")

    assert 2 == live.job(job_id)["attempt"]
    live.run("kill", job_id)
    live.wait_state(job_id, "EXIT")


def test_a_pending_job_is_changed_switched_and_moved(live):
    """
    What isn't named stays; none takes away; what is wrong is refused by name.
    """
    job_id, other = live.submit("-n", "99", "--shell", "true"), live.submit("-n", "99", "true")

    for arguments in (
        ("modify", "-n", "98", "-R", "rusage[mem=5]", "-W", "1:00", "-J", "name", job_id),
        ("modify", "-R", "none", job_id),
        ("switch", "low", job_id),
        ("top", job_id),
        ("bottom", job_id),
    ):
        done = live.run(*arguments)
        assert 0 == done.returncode, (arguments, done.stderr)

    job = live.job(job_id)
    assert ("low", "name", 98, 3_600_000_000, []) == (
        job["queue"], job["name"], job["tasks_min"], job["run_limit_us"], list(job["resreq"])
    )  # fmt: skip
    again = live.run("modify", "-J", "name", job_id)
    assert f"Job {job_id} is as asked already: nothing changed.\n" == again.stdout
    assert 2 == live.run("modify", job_id).returncode
    assert "queue" in live.run("switch", "nowhere", job_id).stderr
    assert 2 == live.run("requeue", job_id).returncode
    live.run("kill", job_id, other)


def test_how_many_elements_of_an_array_are_started_is_changed_by_name(live):
    """
    As LSF's ``bmod -J %k``; a job that is no array has none.
    """
    array = live.submit("-H", "-J", "many[1-3]%1", "--", "true")
    job_id = live.submit("-H", "--", "true")

    for is_changed in (True, False):
        done = live.run("modify", "--json", "-J", "%2", array)
        assert is_changed == json.loads(done.stdout)["jobs"][0]["changed"], done.stdout
    assert "many" == live.job(f"{array}[3]")["name"]
    assert "arrays" in live.run("modify", "-J", "%2", job_id).stderr
    assert "arrays" in live.run("modify", "-J", "new%2", job_id).stderr
    assert 0 == live.run("modify", "-J", "new%3", f"{array}[*]").returncode
    assert "new" == live.job(f"{array}[3]")["name"]
    assert "" == live.job(job_id)["name"]
    for elements in ("[1]", "[1-3]", ".1-2"):
        done = live.run("modify", "-J", "%1", f"{array}{elements}")
        assert (2, 1) == (done.returncode, done.stderr.count("-J: ")), done.stderr
        assert f"Name the array: {array}." in done.stderr
    done = live.run("modify", "-J", "new[1-9]%3", array)
    assert "an array keeps its indices" in done.stderr
    live.run("kill", array, job_id)


def test_files_are_copied_before_and_after_a_command(live, tmp_path):
    """
    LSF's -f: there, back, appended; the same file isn't copied onto itself.
    """
    (tmp_path / "it's in").write_text("one\n")
    (tmp_path / "log").write_text("first\n")
    there, out = tmp_path / "there", tmp_path / "out"
    job_id = live.submit(
        "--cwd", str(tmp_path), "-f", f"it's in > {there}", "-f", f"{out} < result",
        "-f", "log << result", "-f", "log <>",
        "--shell", f"cat {there} > result; echo two >> result",
    )  # fmt: skip

    live.wait_state(job_id, "DONE")

    harness.wait_until(lambda: (tmp_path / "log").read_text() == "first\none\ntwo\n")
    assert "one\ntwo\n" == out.read_text()
    assert [f"it's in > {there}", f"{out} < result", "log << result", "log <> log"] == (
        live.job(job_id)["program"]["transfers"]
    )
    assert "-f" in live.run("submit", "-f", "nothing", "true").stderr


def test_texts_run_before_and_after_a_command(live, tmp_path):
    """
    As LSF's options name them; the first that fails is told with what it returned.
    """
    order = tmp_path / "order"
    note = f"echo %s >> {order}"
    runs = live.submit("-E", note % "before", "-Ep", note % "after", "--shell", note % "command")
    fails = live.submit("-E", "exit 99", "--", "true")

    ended = live.wait_state(fails, "EXIT")
    live.wait_state(runs, "DONE")
    harness.wait_until(lambda: len(order.read_text().split()) == 3)

    assert ["before", "command", "after"] == order.read_text().split()
    assert "TERM_PRE_EXEC_FAIL" == ended["why"]
    assert "exit 99" == live.job(fails)["program"]["pre_exec"]
    assert "pre-exec of the job: it ended with 99" in live.run("history", fails).stdout


def test_what_becomes_of_an_operator_s_wish_is_told(live):
    """
    Whoever changes a job that waits for named hosts learns whether it still does.
    """
    job_id = live.submit("-R", "rusage[mem=90TB]", "--shell", "exit 0")
    host = live.ask("hosts")["hosts"][0]["host"]
    assert 0 == live.run("run", "-m", host, job_id).returncode

    kept = live.run("modify", "--sp", "1", job_id)
    assert f"job {job_id} is still to start on 1*{host}, as an operator wants" in kept.stderr
    assert "still to start" in live.run("history", job_id).stdout
    ended = live.run("modify", "-n", "2", "--json", job_id)
    notes = json.loads(ended.stdout)["jobs"][0]["notes"]
    assert f"job {job_id} is no longer to start on 1*{host}, as an operator wanted" in notes
    assert "as an operator" not in live.run("stop", job_id).stderr
    live.run("kill", job_id)


def test_job_0_stands_for_all_that_are_chosen(live):
    """
    LSF's bkill 0: what hasn't ended and fits; each has its own event, and one answer lists them.
    """
    first = live.submit("-J", "sim-1", "--shell", "exec sleep 60")
    live.wait_state(first, "RUN")
    others = [live.submit("-q", "low", "-J", name, "--", "true") for name in ("sim-2", "else")]
    array = live.submit("-q", "low", "-J", "sim-3[1-2]", "--", "true")
    elements = [f"{array}[1]", f"{array}[2]"]

    stopped = json.loads(live.run("stop", "--json", "0", "-J", "sim*", "-q", "low").stdout)
    assert [others[0], *elements] == [job["job_id"] for job in stopped["jobs"]]
    assert {"PSUSP"} == {job["state"] for job in stopped["jobs"]}
    assert "PEND" == live.job(others[1])["state"]
    again = live.run("stop", "0", "-J", "sim-2").stdout
    assert f"Job {others[0]} is as asked already: nothing changed.\n" == again
    done = live.run("resume", "0")
    assert [f"Job {one} may go on." for one in (others[0], *elements)] == done.stdout.splitlines()
    for command, words in {
        ("resume", "0"): "job_id: must stand for a job that this can be done to",
        ("kill", "0", "-q", "none"): "-q: must be one that is known",
        ("kill", "0", "-J", "none"): "no job of yours that fits hasn't ended yet",
        ("kill", "0", first): "must be alone",
        ("kill", first, "-q", "low"): "must be given with job 0",
        ("requeue", "0"): "must be a job number",
    }.items():
        done = live.run(*command)
        assert done.returncode in (1, 2), command
        assert words in done.stderr.replace("JOB:", "job_id:").replace("--queue:", "-q:"), command
    assert 0 == live.run("kill", "-u", "all", "-q", "low", "0").returncode
    host = live.ask("hosts")["hosts"][0]["host"]
    killed = json.loads(live.run("kill", "--json", "0", "-m", host).stdout)
    assert [first] == [job["job_id"] for job in killed["jobs"]]
    for job_id in (first, *others, *elements):
        live.wait_state(job_id, "EXIT")
    assert 1 == live.run("kill", "0").returncode

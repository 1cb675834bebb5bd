"""
The command line against a real scheduler with a real worker that starts real programs.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.tools import cli_harness as harness
from tools.cli import client

pytestmark = pytest.mark.slow

SLOTS = 2
DOCUMENT = Path(client.__file__).parent / "README.md"


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """
    Return one cluster for all tests of this module: one local worker with two slots.
    """
    options = ("--workers", "1", "--slots", str(SLOTS))
    with harness.cluster(tmp_path_factory.mktemp("live"), *options) as one:
        yield one


# ------------------------------------------------------------------------------------- running


def test_a_program_runs_with_its_arguments_directory_and_environment(live, tmp_path):
    """
    The command runs as typed, where it was typed, with the caller's environment.
    """
    out = tmp_path / "out.txt"
    done = live.run(
        "submit", "--json", "--cwd", str(tmp_path), "-o", str(out), "--",
        harness.program("sh"), "-c", 'printf "%s|%s|%s" "$PWD" "$FLAVOUR" "$1"', "sh", "a  b*",
        FLAVOUR="sweet",
    )
    job_id = json.loads(done.stdout)["job_id"]

    ended = live.wait_state(job_id, "DONE", "EXIT")

    assert ("DONE", 0) == (ended["state"], ended["exit_code"])
    assert f"{tmp_path}|sweet|a  b*" == out.read_text()


def test_what_isn_t_carried_out_yet_is_said_when_it_is_submitted(live):
    """
    A duration is kept; whoever asks for it knows that the memory stays theirs to the end.
    """
    done = live.run("submit", "-R", "rusage[mem=1:duration=1h]", "--", harness.program("true"))

    assert "mem is held until the job ends: duration and decay" in done.stderr


def test_an_empty_environment_and_a_shell_text_are_honoured(live, tmp_path):
    """
    --env NONE passes nothing of the caller on; --shell asks for a shell.
    """
    out = tmp_path / "out.txt"
    job_id = live.submit(
        "--env", "NONE", "--env", "A=1", "-o", str(out), "--shell",
        'echo "$A$XCE_DIR" | tr 1 2')

    assert 0 == live.wait_state(job_id, "DONE", "EXIT")["exit_code"]

    assert "2\n" == out.read_text()


def test_files_named_relatively_lie_in_the_directory_of_the_job(live, tmp_path):
    """
    As in LSF; the worker's own directory would be nobody's guess.
    """
    (tmp_path / "in.txt").write_text("from the input")
    job_id = live.submit(
        "--cwd", str(tmp_path), "-i", "in.txt", "-o", "out.txt", "-e", "err.txt", "--shell",
        "cat; echo wrong >&2")

    assert 0 == live.wait_state(job_id, "DONE", "EXIT")["exit_code"]

    assert "from the input" == (tmp_path / "out.txt").read_text()
    assert "wrong\n" == (tmp_path / "err.txt").read_text()


def test_a_failing_program_ends_exit_with_its_code(live):
    """
    What the program returned is what everybody sees: job, jobs -a, and its table.
    """
    job_id = live.submit("--shell", "exit 7")

    ended = live.wait_state(job_id, "EXIT")

    assert 7 == ended["exit_code"]
    row = next(one for one in live.ask("jobs", "-a")["jobs"] if one["job_id"] == job_id)
    assert {"job_id", "state", "queue", "user", "hosts", "exit_code"} <= set(row)
    assert ("EXIT", 7) == (row["state"], row["exit_code"])
    shown = live.run("jobs", "-a", "--columns", "job,state,exit").stdout.splitlines()
    assert [job_id, "EXIT", "7"] in [line.split() for line in shown]


def test_waiting_for_the_end_gives_the_exit_code(live):
    """
    A script can go on by it: the job's own code, or 128 + the signal.
    """
    assert 5 == live.run("submit", "-K", "--shell", "exit 5").returncode
    assert 0 == live.run("submit", "-K", "--", harness.program("true")).returncode
    assert 128 + 9 == live.run("submit", "-K", "--shell", "kill -9 $$").returncode


def test_waiting_for_the_end_of_a_job_that_never_ran_gives_1(live):
    """
    A job that was never placed must not look like a success.
    """
    waiting = live.begin("submit", "-K", "-J", "never-ran", "-n", "999", "--shell", "true")
    harness.wait_until(lambda: _ids_named(live, "never-ran") != [])

    (job_id,) = _ids_named(live, "never-ran")
    live.run("kill", job_id)

    _, err = waiting.communicate(timeout=harness.DEADLINE_S)
    assert 1 == waiting.returncode
    assert f"xce why {job_id}" in err


def _ids_named(live, name):
    return [one["job_id"] for one in live.ask("jobs", "-a")["jobs"] if one["name"] == name]


def test_the_same_key_gives_the_same_job_and_never_two(live):
    """
    A retry after a lost answer must not submit twice; other content under the key is told.
    """
    first = live.ask("submit", "--key", "k1", "--shell", "true")
    again = live.ask("submit", "--key", "k1", "--shell", "true")
    other = live.run("submit", "--key", "k1", "--shell", "false")

    assert first["job_id"] == again["job_id"]
    assert again["replayed"] is True
    assert 3 == other.returncode
    assert "conflict" in other.stderr


# ----------------------------------------------------------------------------- waiting, and why


def test_a_job_that_never_fits_is_told_from_one_that_waits(live):
    """
    "Never" is a reason to change the job, "not now" one to wait.
    """
    never = live.submit("-n", "999", "--shell", "true")
    harness.wait_until(lambda: live.ask("why", never)["never"] is True)

    told = live.ask("why", never)
    shown = live.run("why", never)

    assert "PEND" == told["state"]
    assert told["reasons"]
    assert 0 == shown.returncode
    assert "can never start" in shown.stdout
    live.run("kill", never)


def test_a_job_that_waits_for_slots_says_how_many_it_lacks(live):
    """
    The reason has the resource, the hosts, and amounts on both sides.
    """
    blocking = [live.submit("--shell", "exec sleep 60") for _ in range(SLOTS)]
    for job_id in blocking:
        live.wait_state(job_id, "RUN")
    waiting = live.submit("--shell", "true")
    harness.wait_until(lambda: live.ask("why", waiting)["reasons"][0]["code"] != "JOB_NEW")

    shown = live.run("why", waiting).stdout

    assert live.ask("why", waiting)["never"] is False
    assert "not enough slots: 1 host" in shown
    live.run("kill", *blocking)
    live.wait_state(waiting, "DONE")


def test_a_held_job_waits_until_it_is_resumed(live):
    """
    PSUSP says that a person holds it back, and who may let it go on.
    """
    job_id = live.submit("-H", "--shell", "true")
    assert "PSUSP" == live.job(job_id)["state"]
    assert "held" in live.run("why", job_id).stdout

    assert 0 == live.run("resume", job_id).returncode

    live.wait_state(job_id, "DONE")


def test_a_pending_job_can_be_stopped(live):
    """
    It is the hold of a job that is there already.
    """
    job_id = live.submit("-n", "999", "--shell", "true")

    assert 0 == live.run("stop", job_id).returncode
    assert "PSUSP" == live.job(job_id)["state"]

    live.run("kill", job_id)


def test_a_running_job_is_killed(live):
    """
    Its end names how: by signal, at its user's wish.
    """
    job_id = live.submit("--shell", "exec sleep 60")
    live.wait_state(job_id, "RUN")

    assert 0 == live.run("kill", job_id).returncode

    ended = live.wait_state(job_id, "EXIT")
    assert signal.SIGTERM == ended["signal"]


def test_history_tells_the_whole_life(live):
    """
    Submitted, dispatched, started, finished, each with its position; the times add up.
    """
    job_id = live.submit("-J", "story", "--shell", "true")
    live.wait_state(job_id, "DONE")

    told = live.ask("history", job_id)
    shown = live.run("history", job_id).stdout

    kinds = [event["type_code"] for event in told["events"]]
    assert ["job.submitted", "job.dispatched", "job.started", "job.finished"] == [
        kind for kind in kinds if kind != "job.pended"
    ]
    positions = [event["position"] for event in told["events"]]
    assert sorted(positions) == positions
    life_us = told["events"][-1]["time_us"] - told["events"][0]["time_us"]
    assert life_us == sum(told["in_state_us"].values())
    assert "attempt 1 done" in shown
    assert "TOTAL" in shown


# ------------------------------------------------------------------------------ hosts and queues


@pytest.mark.parametrize(("verb", "status"), [("close", "closed"), ("drain", "drained")])
def test_a_closed_host_takes_no_jobs_until_it_is_opened(live, verb, status):
    """
    The list says closed, or drained, and why; a job waits for that very reason.
    """
    (host,) = live.ask("hosts")["hosts"]
    assert 0 == live.run("hosts", verb, host["host"], "--why", "new disk").returncode
    harness.wait_until(lambda: status in live.run("hosts").stdout)
    job_id = live.submit("--shell", "true")
    harness.wait_until(lambda: "closed" in live.run("why", job_id).stdout)

    assert "new disk" in live.run("hosts").stdout
    assert 0 == live.run("hosts", "open", host["host"]).returncode

    live.wait_state(job_id, "DONE")


def test_an_inactive_queue_starts_nothing_and_a_closed_one_takes_nothing(live):
    """
    The two switches of a queue are told apart.
    """
    assert 0 == live.run("queues", "inactivate", "normal").returncode
    job_id = live.submit("--shell", "true")
    assert "inactive" in live.run("why", job_id).stdout
    assert 0 == live.run("queues", "close", "normal").returncode
    refused = live.run("submit", "--shell", "true")
    assert 2 == refused.returncode
    assert "queue" in refused.stderr

    assert "closed:inactive" in live.run("queues").stdout
    assert 0 == live.run("queues", "activate", "normal").returncode
    assert 0 == live.run("queues", "open", "normal").returncode

    live.wait_state(job_id, "DONE")


# ---------------------------------------------------------------------------- what programs rely on


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (("jobs", "-a"), ("jobs", 0)),
        (("hosts",), ("hosts", 0)),
        (("queues",), ("queues", 0)),
        (("kill", "HELD"), ()),
        (("kill", "HELD"), ("jobs", 0)),
        (("kill", "999999"), ("failed", 0)),
        (("job", "1"), ("effective",)),
        (("job", "1"), ("program",)),
        (("limits",), ()),
        (("why", "1"), ()),
        (("history", "1"), ()),
        (("history", "1"), ("events", 0)),
    ],
)
def test_every_field_that_is_printed_is_documented(live, arguments, path):
    """
    The document is the promise to scripts: a field that was forgotten there fails here.
    """
    live.wait_state(live.submit("--shell", "true"), "DONE")
    section = DOCUMENT.read_text().split(f"\n## xce {arguments[0]}\n")[1].partition("\n## ")[0]

    if "HELD" in arguments:
        held = live.submit("-H", "--shell", "true")
        arguments = tuple(held if one == "HELD" else one for one in arguments)
    found = json.loads(live.run(*arguments, "--json").stdout)
    for step in path:
        found = found[step]

    assert set() == {name for name in found if not re.search(f'["`]{name}["`]', section)}


def test_killing_several_does_what_it_can_and_says_what_it_could_not(live):
    """
    One wrong number must not keep the others alive.
    """
    job_id = live.submit("-n", "999", "--shell", "true")

    done = live.run("kill", "999999", job_id)

    assert 1 == done.returncode
    assert "999999" in done.stderr
    live.wait_state(job_id, "EXIT")


def test_a_name_with_controls_and_marks_is_shown_escaped_on_one_line(live):
    """
    A user's text must not drive an operator's terminal; JSON gives it back unchanged.
    """
    name = "a\x1bc\u202eb\nc"  # A bracket would make it an array.
    job_id = live.submit("-H", "-J", name, "--shell", "true")

    shown = live.run("jobs").stdout
    told = live.job(job_id)

    assert r"a\x1bc\u202eb\nc" in shown
    assert name == told["name"]
    live.run("kill", job_id)


def test_watching_shows_the_list_again_and_ends_quietly(live):
    """
    --watch repeats until Ctrl-C, which is no error worth a word.
    """
    watching = live.begin("queues", "--watch", "0.1")
    seen = 0
    while seen < 3:
        seen += watching.stdout.readline().startswith("normal")

    watching.send_signal(signal.SIGINT)

    _, err = watching.communicate(timeout=harness.DEADLINE_S)
    assert (130, "") == (watching.returncode, err.strip())


# -------------------------------------------------------------------- coming, going, coming back


def test_a_submission_made_while_the_scheduler_is_away_arrives_once(tmp_path):
    """
    The client waits and sends the same key again; history can be read meanwhile, from the log.
    """
    with harness.cluster(tmp_path, "--workers", "1") as live:
        done_id = live.submit("--shell", "true")
        live.wait_state(done_id, "DONE")
        live.kill_scheduler()

        offline = live.run("history", done_id, "--json")
        late = live.begin("submit", "--wait", "30", "-J", "late", "--shell", "true")
        live.start()

        assert 0 == offline.returncode
        assert "job.finished" == json.loads(offline.stdout)["events"][-1]["type_code"]
        late.communicate(timeout=harness.DEADLINE_S)
        assert 0 == late.returncode
        assert 1 == len(_ids_named(live, "late"))
        assert live.ask("history", done_id)["events"] == json.loads(offline.stdout)["events"]


def test_down_ends_the_scheduler_the_workers_and_says_so(tmp_path):
    """
    Nothing is left running, and the next up begins where this one ended.
    """
    with harness.cluster(tmp_path, "--workers", "2") as live:
        job_id = live.submit("--shell", "true")
        live.wait_state(job_id, "DONE")

        down = live.run("down")

        assert 0 == down.returncode
        assert 0 == live.scheduler.wait(timeout=harness.DEADLINE_S)
        assert [] == _processes_of(live.directory)
        assert 3 == live.run("jobs").returncode
        live.start()
        assert "DONE" == live.job(job_id)["state"]


def test_down_without_a_scheduler_still_ends_the_workers(tmp_path):
    """
    Agents outlive a crashed scheduler; down is the way to be rid of all of it.
    """
    with harness.cluster(tmp_path, "--workers", "1") as live:
        live.kill_scheduler()
        assert [] != _processes_of(live.directory)

        assert 0 == live.run("down").returncode

        assert [] == _processes_of(live.directory)


def test_down_leaves_no_sockets_and_no_locks_of_work_that_ended(tmp_path):
    """
    What looks as if something still ran would mislead whoever looks into the directory.
    """
    with harness.cluster(tmp_path, "--workers", "1") as live:
        live.wait_state(live.submit("--shell", "true"), "DONE")
        harness.wait_until((live.directory / "audit.db").exists)
        live.kill_scheduler()

        assert 0 == live.run("down").returncode

        harness.wait_until(lambda: not (live.directory / "audit.db.lock").exists())
        left = {path.name for path in live.directory.rglob("*") if path.is_socket()}
        assert set() == left
        assert not (live.directory / "audit.db.making").exists()


def test_a_second_up_adopts_what_runs_and_adds_only_missing_workers(tmp_path):
    """
    One writer: the second says who is there, adds the worker that is missing, and ends.
    """
    with harness.cluster(tmp_path, "--workers", "1") as live:
        second = live.run("up", "--workers", "2")

        assert 0 == second.returncode
        assert "runs already" in second.stdout
        assert "1 worker started: local2" in second.stdout
        harness.wait_until(lambda: 2 == len(live.ask("hosts")["hosts"]))


def _processes_of(directory: Path) -> list[str]:
    """
    Return the command lines of all processes with the cluster's directory in them.
    """
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if str(directory) in line:
                found.append(line)
    return found


def test_the_installed_command_is_the_same(live):
    """
    The entry point that pip makes runs this very command line.
    """
    import shutil
    import sys

    installed = shutil.which("xce", path=str(Path(sys.executable).parent))
    if installed is None:
        pytest.fail("the package isn't installed: make setup")

    done = subprocess.run(
        [installed, "jobs", "--json", "--dir", str(live.directory)],
        capture_output=True, text=True, check=False,
    )

    assert (0, "") == (done.returncode, done.stderr)
    assert "jobs" in json.loads(done.stdout)

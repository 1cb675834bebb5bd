"""
xce replay state, check, bisect, branch, diff and debug: what they print, and how they end.
"""

from __future__ import annotations

import io
import json
import os
import select
import subprocess
import sys
import time

import pytest

from store.log import EventLog
from tools.cli import main

LINES = """\
; MaxNodes: 1
; MaxProcs: 2
1 0 -1 100 2 -1 -1 2 -1 -1 1 1 1 1 1 1 -1 -1
2 10 -1 20 1 -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1
3 20 -1 20 1 -1 -1 1 -1 -1 1 2 1 1 1 1 -1 -1
"""


@pytest.fixture
def log(tmp_path, capfd):
    """
    Return the log of a small simulation.
    """
    workload, place = tmp_path / "small.swf", tmp_path / "log"
    workload.write_text(LINES)
    assert 0 == main.run(["simulate", str(workload), "--log", str(place), "--no-progress"])
    capfd.readouterr()
    return place


def run(capfd, *arguments, status=0):
    """
    Run a command; return what it printed.
    """
    assert status == main.run(["replay", *map(str, arguments)])
    return capfd.readouterr().out


def run_json(capfd, *arguments, status=0):
    return json.loads(run(capfd, *arguments, "--json", status=status))


def test_state_shows_the_whole_an_entity_a_digest_and_what_differs(capfd, log):
    """
    The same moment in each of its forms; a difference ends with 1, as diff does.
    """
    whole = run_json(capfd, "state", log)
    assert 3 == len(whole["state"]["jobs"])
    job = run_json(capfd, "state", log, "job:2")["state"]
    assert ("DONE", 100_000_000) == (job["state"], job["dispatch_us"])
    assert whole["hash"] in run(capfd, "state", log, "--hash")
    assert "3 DONE" in run(capfd, "state", log)

    first = run_json(capfd, "state", log, "job:1", "--at", "@50")
    assert "RUN" == first["state"]["state"]
    found = run_json(capfd, "state", log, "job:1", "--at", "@50", "--diff", "end", status=1)
    assert ('"RUN"', '"DONE"') == next(
        (one["before"], one["after"]) for one in found["changes"] if one["path"] == "state"
    )
    assert [] == run_json(capfd, "state", log, "--at", "end", "--diff", "end")["changes"]
    told = run(capfd, "state", log, "--at", "@50", "--diff", "end", status=1)
    came = run(capfd, "state", log, "--at", "1", "--diff", "@50", status=1)
    assert 'state: "RUN" -> "DONE"' in told
    assert "jobs.job:0000000001: came" in came
    # A job has some fifty fields; on one line they are no answer for people.
    assert 130 > max(map(len, (told + came).splitlines()))


def test_state_refuses_moments_and_entities_that_are_not_there(capfd, log):
    """
    2 for what is no moment or beyond the log, 1 for what isn't known.
    """
    for arguments, status in ((["--at", "soon"], 2), (["--at", "999"], 2), (["job:77"], 1)):
        assert status == main.run(["replay", "state", str(log), *arguments])
        assert capfd.readouterr().err.startswith("xce: ")


def test_check_passes_a_sound_log(capfd, log):
    """
    It says what it looked at, and ends with 0.
    """
    told = run_json(capfd, "check", log, "--every", "1")

    assert told["is_good"]
    assert 3 == told["dispatches"]
    assert "Every invariant holds." in run(capfd, "check", log)


def without_causes(log, place):
    """
    Write a copy of a log in which no decision about a job names its session; return how many.
    """
    with EventLog.open(log, writable=False) as opened:
        stamped = [one.stamped() for one in opened.read()]
    wrong = [one for one in stamped if one.cause and one.stream.startswith("job:")]
    with EventLog.create(place, log_id="tampered") as written:
        written.append([one._replace(cause="") if one in wrong else one for one in stamped])
    return len(wrong)


def test_check_tells_every_finding(capfd, log, tmp_path):
    """
    Also a second one of the same rule about the same job, with its own position.
    """
    count = without_causes(log, tmp_path / "wrong")
    told = run_json(capfd, "check", tmp_path / "wrong", status=1)
    shown = run(capfd, "check", tmp_path / "wrong", status=1)

    assert count == told["finding_count"] == len(told["findings"])
    assert len({one["subject"] for one in told["findings"]}) < count
    for one in told["findings"]:
        assert f"Position {one['position']}, {one['subject']}: {one['rule']}" in shown
    assert "more, which" not in shown


def test_check_says_how_many_findings_it_does_not_tell(capfd, log, tmp_path, monkeypatch):
    """
    What is wrong in every step doesn't fill the screen.
    """
    monkeypatch.setattr("replay.check.REPEATS_KEPT", 1)
    count = without_causes(log, tmp_path / "wrong")
    told = run_json(capfd, "check", tmp_path / "wrong", status=1)

    assert f"and {count - len(told['findings'])} more, which" in run(
        capfd, "check", tmp_path / "wrong", status=1
    )
    assert len(told["findings"]) < count == told["finding_count"]


def test_bisect_finds_a_position_or_says_that_there_is_none(capfd, log):
    """
    0 with the event that made it so, 1 when it nowhere holds.
    """
    hit = run_json(capfd, "bisect", log, "job(2).state = RUN")
    assert "job.dispatched" == hit["event"]["type"]
    assert ["job.finished"] == [one["type"] for one in hit["inputs"]][-1:]
    assert {"holds": False} == run_json(capfd, "bisect", log, "jobs.RUN = 9", status=1)
    assert 2 == main.run(["replay", "bisect", str(log), "jobs.RUN ="])


def test_branch_and_diff_tell_two_futures_apart(capfd, log, tmp_path):
    """
    With more hosts both jobs start at once; without a change nothing differs; both logs verify.
    """
    at = str(run_json(capfd, "bisect", log, "job(1).state = RUN")["position"])
    same, other = tmp_path / "same", tmp_path / "other"
    told = run(capfd, "branch", log, "--at", at, "--log", same)
    assert "Every decision is the parent's" in told
    # What to type next can be typed as it stands there.
    assert f"xce replay diff {log} {same}\n" in told
    assert run_json(capfd, "diff", log, same)["is_same"]

    told = run_json(capfd, "branch", log, "--at", at, "--log", other, "--add-hosts", "1x2")
    assert ["add host added0001 with 2 slots"] == told["changes"]
    found = run_json(capfd, "diff", log, other, status=1)
    assert [("2", -90_000_000), ("3", -80_000_000)] == [
        (one["job_id"], one["later_us"]) for one in found["moved"]
    ]
    assert "earlier" in run(capfd, "diff", log, other, "--by", "size", status=1)
    run(capfd, "verify", other)
    with EventLog.open(other, writable=False) as child, EventLog.open(log, writable=False) as own:
        assert child.log_id == told["log_id"] != own.log_id


def test_branch_and_diff_say_what_they_mean(capfd, log, tmp_path):
    """
    Why another position than the one asked for is branched at, what isn't compared, and which
    number is a job.
    """
    inside = run_json(capfd, "bisect", log, "job(1).state = RUN")["event"]["position"] - 1
    same, other = tmp_path / "same", tmp_path / "other"
    told = run(capfd, "branch", log, "--at", inside, "--log", same)
    assert f"position {inside} lies inside a step; this is the boundary before it\n" in told
    assert "isn't compared" not in told
    told = run(capfd, "branch", log, "--at", "end", "--log", other, "--add-hosts", "1x2")
    assert "inside a step" not in told
    assert "Why jobs wait isn't compared" in told

    early = tmp_path / "early"
    run(capfd, "branch", log, "--at", inside, "--log", early, "--until", "@50")
    told = run(capfd, "diff", log, early, status=1)
    assert "started in A only: jobs 2, 3\n" in told
    assert ["JOBS_A", "JOBS_B"] == told.splitlines()[0].split()[1:3]


def test_branch_tells_what_is_left_out_after_its_result_in_words(capfd, log, tmp_path):
    """
    What an input was is said as it was asked for, and paths so that they can be pasted.
    """
    position = run_json(capfd, "bisect", log, "job(2) != none")["position"]
    place = tmp_path / "a branch"
    begin = ["replay", "branch", str(log), "--at", "5", "--log", str(place)]
    options = ["--drop-event", str(position), "--set", "cluster.session_interval_us=500"]

    assert 0 == main.run([*begin, *options])

    told = capfd.readouterr()
    assert told.out.endswith(f": xce replay diff {log} '{place}'\n")
    assert told.err.splitlines() == [
        "Left out of the branch: 1 input.",
        f"  position {position}: submit job 2: it was to be dropped.",
        (
            "Note: cluster.session_interval_us: a number without a unit is in microseconds, so "
            "this is 500us; say 90s, 30m, 1h30m or the like."
        ),
    ]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("queue(nope).priority = 1", "queue that the log knows (given: 'nope')"),
        ("jobs.RUN > 0 and job(99) = none", "job that the log knows (given: '99')"),
        ("host(elsewhere).closed", "host that the log knows (given: 'elsewhere')"),
    ],
)
def test_bisect_refuses_what_the_log_never_knew(capfd, log, text, named):
    """
    With the status of what isn't found; what comes later in the log is known.
    """
    assert 1 == main.run(["replay", "bisect", str(log), text])
    told = capfd.readouterr()
    assert named in told.err
    assert "" == told.out
    run(capfd, "bisect", log, "job(3) != none and queue(normal).priority >= 0")


def test_bisect_tells_an_event_once(capfd, log):
    """
    A step of one event is that event; only a longer one is shown as a whole.
    """
    told = run(capfd, "bisect", log, "job(1) != none")
    assert "The whole step:" not in told
    assert 1 == told.count("job.submitted")
    assert "The whole step:" in run(capfd, "bisect", log, "job(1).state = RUN")


def test_a_refused_branch_leaves_nothing_behind(capfd, log, tmp_path):
    """
    A mistake in an option is found before the new log is begun.
    """
    place = tmp_path / "none"

    for option in (["--set", "queue.colour=red"], ["--set", "queue.nope.priority=1"],
                   ["--picker", "none"], ["--drop-event", "1"],
                   ["--add-hosts", "0x1"], ["--until", "soon"]):  # fmt: skip
        begin = ["replay", "branch", str(log), "--at", "5", "--log", str(place)]
        assert 2 == main.run([*begin, *option])
        assert f"xce: {option[0]}" in capfd.readouterr().err

    assert not place.exists()


def test_a_script_is_piped_into_the_debugger(capfd, log, monkeypatch):
    """
    0 when every command was understood, 2 when one wasn't; the others are carried out anyway.
    """
    def piped(text, status):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        return run(capfd, "debug", log, status=status)

    assert "job.dispatched" in piped("break decision job.dis*\ncontinue\n", 0)
    shown = piped("nonsense\ninfo position\n", 2)
    assert shown.startswith("error: command")
    assert "position 0 of" in shown


PROMPT = b"(xce) "


def read_until(handle, text, deadline_s=60):
    """
    Return what a terminal shows until a text stands in it.
    """
    shown, deadline = b"", time.monotonic() + deadline_s
    while text not in shown and time.monotonic() < deadline:
        ready, _, _ = select.select([handle], [], [], 0.1)
        if ready:
            try:
                shown += os.read(handle, 4096)
            except OSError:
                break
    return shown


def typed(handle, keys):
    """
    Type some keys at the prompt; return what is shown up to the next prompt.
    """
    os.write(handle, keys)
    return read_until(handle, PROMPT)


@pytest.mark.slow
def test_on_a_terminal_words_complete_and_lines_are_remembered(log):
    """
    Tab completes a word, the arrow up brings the last line back, Ctrl-D ends.
    """
    person, program = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tools.cli", "replay", "debug", str(log)],
        stdin=program, stdout=program, stderr=program, env={**os.environ, "TERM": "vt100"},
    )  # fmt: skip
    os.close(program)
    try:
        read_until(person, PROMPT)
        first = typed(person, b"inf\tposi\t\n")
        typed(person, b"goto 5\n")
        second = typed(person, b"\x1b[A\x1b[A\n")
        os.write(person, b"\x04")

        assert b"info position" in first
        assert b"position 0 of" in first
        assert b"info position" in second
        assert b"position 5 of" in second
        assert 0 == process.wait(timeout=60)
    finally:
        process.kill()
        process.wait()
        os.close(person)

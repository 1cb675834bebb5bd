"""
The debugger: golden transcripts, the same state whichever way one came, breakpoints of every kind.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from domain.events.jobs import JobDispatched, JobFinished
from domain.events.session import SessionHeld
from domain.jobs import EnvironmentVariable, Program
from projections.scheduling.core import Core
from replay.at import Ladder
from replay.debugger.cursor import Cursor
from replay.debugger.shell import Shell
from replay.entities import digest_of
from store.log import EventLog
from tests.replay.logs import ListLog
from tests.scenario import Scenario

GOLDEN = Path(__file__).with_name("golden")


def walk():
    """
    Return the log of the walk: five jobs on two hosts of two slots, most of them waiting a while.
    """
    scenario = Scenario()
    scenario.hosts("host0001 slots=2", "host0002 slots=2")
    jobs = {1: "1 tasks=4", 10: "2 tasks=3", 15: "3 tasks=1", 20: "4 tasks=4", 150: "5 tasks=1"}
    ends = {100: ("1",), 120: ("2",), 150: ("3",), 180: ("4",), 190: ("5",)}
    for now_s in sorted({*jobs, *ends}):
        scenario.now_us = now_s * 1_000_000
        scenario.finish(*ends.get(now_s, ()))
        scenario.jobs(*([jobs[now_s]] if now_s in jobs else []))
        scenario.session()
        scenario.start(*(name for name in scenario.ids if is_unstarted(scenario, name)))
    return ListLog(scenario.log)


def is_unstarted(scenario, name):
    job = scenario.job(name)
    return job.state.value == "RUN" and job.start_us is None


def transcript(script):
    """
    Run a script on the log of the walk; return everything that was shown.
    """
    driven = Driven(walk())
    driven.shell.run(script.splitlines())
    return "".join(f"{line}\n" for line in driven.lines)


def test_a_script_gives_the_golden_transcript_each_time():
    """
    The same script, the same bytes: here, twice in a row, and as it was reviewed. After an intended
    change run the script by hand and read the difference before it is taken over.
    """
    script = (GOLDEN / "debugger.script").read_text()

    shown = transcript(script)

    assert transcript(script) == shown
    assert (GOLDEN / "debugger.transcript").read_text() == shown


@pytest.fixture
def log():
    """
    Return the log of two hosts, three jobs and some waiting.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=2", "h2 slots=1")
    scenario.jobs("A tasks=2", "B tasks=1", "C tasks=3")
    scenario.session()
    scenario.start("A", "B")
    scenario.pass_time(30)
    scenario.finish("A", "B")
    scenario.session()
    scenario.start("C")
    return ListLog(scenario.log)


class Driven:
    """
    Hold a shell and the lines that it showed since one last looked.
    """

    def __init__(self, log, log_path=None):
        self.lines = []
        self.cursor = Cursor(log, Ladder(log))
        self.shell = Shell(self.cursor, self.lines.append, log_path=log_path)

    def take(self, *commands):
        self.lines.clear()
        for command in commands:
            self.shell.take(command)
        return list(self.lines)


@pytest.fixture
def driven(log):
    return Driven(log)


def folded(log, position):
    """
    Return the digest of the state right after an event.
    """
    core = Core()
    for envelope in log.read(0, position):
        core.apply(envelope.stamped())
    return digest_of(core)


@pytest.mark.needs_traces
@pytest.mark.slow
def test_the_state_is_the_same_whichever_way_one_came(kth_log):
    """
    Steps, jumps and steps back in any order: the state at a position is a function of the position.
    """
    chance = random.Random(7)
    with EventLog.open(kth_log, writable=False) as log:
        driven = Driven(log)
        for _ in range(25):
            driven.take(chance.choice([
                f"goto {chance.randint(0, log.head())}", f"back {chance.randint(1, 400)}",
                f"step {chance.randint(1, 400)}", "back session 3", "step decision 4",
            ]))  # fmt: skip

            assert folded(log, driven.cursor.position) == digest_of(driven.cursor.core)


@pytest.mark.parametrize(
    ("stop", "kind", "numbers"),
    [
        ("job 2", None, None),
        ("event job.finished", JobFinished, (1, 2)),
        ("decision job.dis*", JobDispatched, (1, 2, 3)),
        ("session", SessionHeld, (1, 2)),
        ("when job(3).state = RUN", JobDispatched, (3,)),
        ("when jobs.RUN = 2", JobDispatched, (2,)),
        ("time 1970-01-01T00:00:31", JobFinished, (1,)),
        ("position 9", None, (9,)),
    ],
)
def test_a_breakpoint_stops_right_after_each_event_that_it_means(log, driven, stop, kind, numbers):
    """
    All of them and no other, whatever the kind of breakpoint.
    """
    if kind is not None:
        expected = [log.where(kind, number) for number in numbers]
    elif numbers:
        expected = list(numbers)
    else:
        expected = [one.position for one in log.events if one.stream == "job:0000000002"]
    driven.take(f"break {stop}")

    found = []
    while driven.take("continue")[0].startswith("breakpoint"):
        found.append(driven.cursor.position)

    assert expected == found


def test_a_breakpoint_on_a_host_stops_at_its_own_events_and_those_of_jobs_on_it(log, driven):
    """
    h2 joins, B comes and goes, C (on both hosts) comes.
    """
    driven.take("break host h2")

    kinds = []
    while driven.take("continue")[0].startswith("breakpoint"):
        kinds.append(driven.cursor.last.event.TYPE_CODE)

    assert [
        "worker.joined", "job.dispatched", "job.started", "job.finished", "job.dispatched",
        "job.started",
    ] == kinds  # fmt: skip


def test_steps_forwards_and_backwards_count_events_decisions_and_sessions(log, driven):
    """
    A decision is what a session decided; a session ends with its last decision.
    """
    driven.take("step decision 2")
    assert log.where(JobDispatched, 2) == driven.cursor.position

    driven.take("step session")
    second = log.events[log.where(SessionHeld, 2) - 2].position
    assert driven.cursor.position < second
    assert log.events[driven.cursor.position - 1].ends_step

    driven.take("goto end", "back decision")
    assert log.where(JobDispatched, 3) == driven.cursor.position

    driven.take("back decision 99")
    assert 0 == driven.cursor.position


def test_a_breakpoint_on_decisions_passes_inputs_and_sessions_over(log, driven):
    """
    With * it stops at every decision, and at nothing that came from outside.
    """
    expected = [one.position for one in log.events
                if one.cause and not isinstance(one.event, SessionHeld)]  # fmt: skip
    driven.take("break decision *")

    found = []
    while driven.take("continue")[0].startswith("breakpoint"):
        found.append(driven.cursor.position)

    assert expected == found


@pytest.mark.needs_traces
def test_many_decisions_back_are_counted_over_the_whole_way(kth_log):
    """
    However far back it is: the log is read backwards in pieces, and no decision is lost between.
    """
    with EventLog.open(kth_log, writable=False) as log:
        decisions = [one.position for one in log.read()
                     if one.cause and not isinstance(one.event, SessionHeld)]  # fmt: skip
        driven = Driven(log)
        for count in (1, 100, 300, len(decisions)):
            driven.take("goto end", f"back decision {count}")

            assert decisions[-count] == driven.cursor.position


def test_elements_of_an_array_are_selected_together():
    """
    12[*] means every element, and neither the job 12 nor 120[1].
    """
    from replay.debugger.breakpoints import parse_selector

    streams = ["job:0000000012[000001]", "job:0000000012[000030]", "job:0000000012",
               "job:0000000120[000001]"]  # fmt: skip

    assert [True, True, False, False] == list(map(parse_selector("12[*]").has, streams))
    assert [False, True, False, False] == list(map(parse_selector("12[30]").has, streams))


@pytest.mark.parametrize(
    "command",
    ["units times moons", "units weight kg", "rows 0", "rows many", "echo maybe", "break job",
     "break job 1[*", "break when 1 +", "break session now",
     "break event nothing", "watch slots.fre", "delete 7",
     "goto 99999", "step sideways", "step 1 2", "continue now", "output", "nonsense", "quit now",
     "h e l p", "info host", "info jobs NOSTATE", "print", "unwatch 1", "history 0"],
)  # fmt: skip
def test_a_refused_command_is_named_and_changes_nothing(driven, command):
    """
    One line that begins with error, and the next commands answer as if it hadn't been given.
    """
    look = ("units", "info breakpoints", "info watches", "info position", "info jobs")
    driven.take("step 5", "rows 2", "units times us", "break session")
    before = driven.take(*look)

    answer = driven.take(command)

    assert 1 == len(answer)
    assert answer[0].startswith("error: ")
    assert before == driven.take(*look)
    assert 1 == driven.shell.refused


def test_output_is_copied_into_a_file_until_it_is_turned_off(driven, tmp_path):
    """
    The file has what was shown in between, line for line.
    """
    file = tmp_path / "out.txt"

    shown = driven.take(f"output {file}", "step", "info position", "output off", "hash")

    assert file.read_text().splitlines() == shown[:-2]


def test_output_never_goes_where_it_would_destroy_something(log, tmp_path):
    """
    Not into the log, not over the file that is open, not over what is no plain file.
    """
    place = tmp_path / "log"
    place.mkdir()
    (place / "data.mdb").write_bytes(b"log")
    driven = Driven(log, log_path=place)
    driven.take(f"output {tmp_path}/a")

    for path in (place / "data.mdb", place / "new", tmp_path / "a", tmp_path, "/dev/null",
                 tmp_path / "no" / "such"):  # fmt: skip
        assert driven.take(f"output {path}")[0].startswith("error: output: ")

    assert b"log" == (place / "data.mdb").read_bytes()
    assert not (place / "new").exists()
    driven.take("units")
    driven.shell.run([])
    assert 8 == len((tmp_path / "a").read_text().splitlines())


def test_a_watch_is_shown_when_its_value_is_another(driven):
    """
    Once where it is set, then only at stops where it changed.
    """
    assert ["watch 1, jobs.RUN: 0"] == driven.take("watch jobs.RUN")
    assert not any("watch" in line for line in driven.take("step 3"))
    assert ["watch 1, jobs.RUN: 2"] == driven.take("step session", "step")[1:2]


def test_words_complete_by_what_is_there(driven):
    """
    Commands, topics, and the names of the state where one stands.
    """
    complete = driven.shell.complete
    assert ["step"] == complete("st")
    assert ["jobs", "job"] == sorted(complete("info jo"), reverse=True)
    assert [] == complete("info host h")
    driven.take("goto end")
    assert ["h1", "h2"] == complete("info host h")
    assert ["1", "2", "3"] == complete("break job ")
    assert ["job.dispatched"] == complete("b event job.disp")
    assert ["delete", "diff", "disable"] == sorted(complete("help d"))


def test_names_can_not_drive_the_terminal(tmp_path):
    """
    A job's name may hold anything; what is shown can always be printed.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=1")
    scenario.jobs("A\x1b[2J\u202e tasks=1")
    driven = Driven(ListLog(scenario.log))

    shown = driven.take("goto end", "info job 1", "info events 1", "print job(1).name")

    assert any("\\x1b[2J\\u202e" in line for line in shown)
    assert all(line.isprintable() for line in shown)


def test_environments_are_counted_not_shown():
    """
    They hold passwords, and nobody finds the rest of a line behind sixty variables.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=2")
    variables = (
        EnvironmentVariable(name="HOME", value="/home/ann"),
        EnvironmentVariable(name="TOKEN", value="swordfish"),
    )
    scenario.submit("secret", program=Program(argv=("true",), env=variables))
    scenario.session()
    driven = Driven(ListLog(scenario.log))

    shown = driven.take(
        "break event job.submitted", "continue", "info event", "info job 1", "info events 1",
        "print job(1).spec", "diff 0", "diff 0 queue:normal", "back 1", "list 9",
    )  # fmt: skip

    text = "\n".join(shown)
    assert 5 <= text.count("2 variables")
    assert "swordfish" not in text
    assert "TOKEN" not in text


def test_output_never_goes_over_the_recording_under_whatever_name(log, tmp_path):
    """
    A recording is one file; its other names are told by what they lead to.
    """
    file = tmp_path / "evening.jsonl"
    file.write_bytes(b"recording")
    (tmp_path / "hard").hardlink_to(file)
    (tmp_path / "soft").symlink_to(file)
    driven = Driven(log, log_path=file)

    for name in ("evening.jsonl", "hard", "soft"):
        for command in ("output", "trace on all file"):
            assert "must not be a part of the log" in driven.take(f"{command} {tmp_path / name}")[0]

    assert b"recording" == file.read_bytes()


def test_help_fits_a_terminal_and_has_every_command_whole():
    """
    The longest usage is no reason to push all explanations off the screen.
    """
    lines = transcript("help").splitlines()

    assert 100 >= max(map(len, lines))
    words = " ".join(" ".join(lines).split())
    for usage in ("step [event|decision|session] [COUNT]", "time TIME, when CONDITION", "quit"):
        assert usage in words

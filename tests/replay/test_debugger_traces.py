"""
Decision traces in the debugger: golden transcripts, what is refused, and that nothing changes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.arrays import ArraySpec, IndexRange
from domain.commands import DefineResource
from domain.resources import ResourceDescriptor, ResourceScope, SharedTotal
from replay.at import Ladder
from replay.debugger.cursor import Cursor
from replay.debugger.shell import Shell
from replay.entities import digest_of
from tests.projections.scheduling.policies import limit
from tests.replay.logs import ListLog
from tests.scenario import Scenario

GOLDEN = Path(__file__).with_name("golden")


def day():
    """
    Return a log with what makes decisions hard: a licence, a limit, a closed host, alternatives, an
    array, and jobs that ask for the same.
    """
    scenario = Scenario()
    descriptor = ResourceDescriptor(
        name="lic", scope=ResourceScope.SHARED, is_consumable=True,
        totals=(SharedTotal(total_milli=2_000),),
    )  # fmt: skip
    scenario.command(DefineResource(descriptor=descriptor))
    scenario.hosts("h1 slots=4 mem_mb=1000", "h2 slots=2 mem_mb=200", "h3 slots=4 mem_mb=1000")
    limit(scenario, "few", users="each all", slots=6)
    scenario.close("h3")
    scenario.submit("wide", tasks_min=3, tasks_max=3, resreq=("rusage[mem=100]",))
    scenario.submit("big", resreq=("rusage[mem=900] select[mem>100]",))
    either = "{2*{rusage[lic=2]}+3*{select[slots>0]}} || {rusage[lic=1]}"
    scenario.submit("either", resreq=(either,))
    scenario.submit("licence", resreq=("rusage[lic=2]",))
    scenario.submit("again", resreq=("rusage[lic=2]",))
    scenario.session()
    scenario.pass_time(60)
    scenario.open("h3")
    scenario.jobs("more tasks=5")
    elements = ArraySpec(ranges=(IndexRange(start=1, end=3),), started_max=1)
    scenario.submit("array", array=elements)
    scenario.submit("waits", dependency_text="done(6)")
    scenario.session()
    scenario.pass_time(60)
    scenario.finish("either", "wide")
    scenario.session()
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
def driven():
    return Driven(day())


def transcript(script):
    """
    Run a script; return everything that was shown.
    """
    made = Driven(day())
    made.shell.run(script.splitlines())
    return "".join(f"{line}\n" for line in made.lines)


def test_a_script_with_traces_gives_the_golden_transcript_each_time():
    """
    The same script, the same bytes. After an intended change run it by hand and read the difference
    before it is taken over.
    """
    script = (GOLDEN / "traces.script").read_text()

    shown = transcript(script)

    assert transcript(script) == shown
    assert (GOLDEN / "traces.transcript").read_text() == shown


@pytest.mark.parametrize(
    "command",
    [
        "trace", "trace on", "trace on some", "trace on job", "trace on job full", "trace on job 0",
        "trace on job 1[*", "trace on all job 1", "trace on all full summary", "trace on all lines",
        "trace on all lines 0", "trace on all lines 1000001", "trace on all lines 1e3",
        "trace on all lines 5 lines 6", "trace on all file", "trace on all file / lines 3",
        "trace on all file /no/such/place", "trace off x", "trace status now", "info trace x",
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_trace_command_is_named_and_nothing_is_set(driven, command):
    """
    One line that begins with error; settings and traces are as before.
    """
    driven.take("trace on job 2 4 summary lines 77", "step session")
    before = driven.take("trace status", "info trace")

    answer = driven.take(command)

    assert 1 == len(answer)
    assert answer[0].startswith("error: ")
    assert before == driven.take("trace status", "info trace")


def test_traces_are_written_into_a_file_as_they_are_made(driven, tmp_path):
    """
    The file has what info shows, one trace after the other, until it is turned off.
    """
    file = tmp_path / "traces"

    driven.take(f"trace on job 1 4 file {file}", "step session", "trace off", "goto end")
    shown = driven.take("goto 21", "info trace 1", "info trace 4")

    assert shown[1:] == file.read_text().splitlines()


def test_a_trace_file_never_goes_where_it_would_destroy_something(tmp_path):
    """
    Not into the log, whatever name it is given; not over the output or the file that is open; and
    output not over the traces.
    """
    place = tmp_path / "log"
    place.mkdir()
    (place / "data.mdb").write_bytes(b"log")
    (tmp_path / "soft").symlink_to(place / "data.mdb")
    (tmp_path / "hard").hardlink_to(place / "data.mdb")
    driven = Driven(day(), log_path=place)
    driven.take(f"output {tmp_path}/out", f"trace on all file {tmp_path}/traces")
    (tmp_path / "other").hardlink_to(tmp_path / "out")
    before = driven.take("trace status")

    for name in ("log/data.mdb", "log/new", "soft", "hard", "out", "other", "traces", "log"):
        (answer,) = driven.take(f"trace on job 1 file {tmp_path}/{name}")
        assert answer.startswith("error: trace file: "), name
    for name in ("traces", "hard"):
        assert driven.take(f"output {tmp_path}/{name}")[0].startswith("error: output: ")

    assert before == driven.take("trace status")
    driven.shell.run([])
    assert b"log" == (place / "data.mdb").read_bytes()
    assert not (place / "new").exists()


def test_a_file_that_can_not_be_written_any_more_is_said_and_stops_nothing(driven):
    """
    A full disk costs the file, not the session.
    """
    driven.take("trace on all")
    full = Path("/dev/full")
    driven.shell._files._open["trace file"] = (full, full.open("w"))

    driven.take("step session")

    assert any("No space left" in line for line in driven.take("trace status"))
    assert driven.take("info trace 1")[0].startswith("job 1: session 1")


def test_tracing_changes_nothing_of_where_one_stands(driven):
    """
    Forwards with the trace on, off, or on from half-way: the same events and states.
    """
    plain = Driven(day())
    for command in ("step session", "step 2", "back session", "step decision 3", "goto 9",
                    "continue"):  # fmt: skip
        assert plain.take(command) == driven.take("trace on all full", command)[2:]
        assert digest_of(plain.cursor.core) == digest_of(driven.cursor.core)


def test_traces_are_the_same_whichever_way_one_came(driven):
    """
    In one go, event by event, and after going back and forth.
    """
    look = ("info trace 4", "info trace 6", "info trace 7[2]")
    driven.take("trace on all", "continue")
    expected = driven.take(*look)

    single = Driven(day())
    single.take("trace on all", *["step"] * 60)
    assert expected == single.take(*look)
    driven.take("goto 0", "continue", "goto 22", "step 30")
    assert expected == driven.take(*look)


def test_going_to_a_position_traces_what_lies_between(driven):
    """
    It is a way forwards like any other.
    """
    head = driven.cursor.head
    driven.take("trace on all", f"goto {head}")
    shown = driven.take("info trace", "info trace 6")

    others = Driven(day())
    others.take("trace on all", "continue")
    assert others.take("info trace", "info trace 6") == shown
    assert len(shown) > 10


def test_a_session_that_was_recorded_otherwise_is_said_to_be():
    """
    The trace is of what is decided now; it doesn't pretend that the log has it.
    """
    log = day()
    place = next(
        place for place, one in enumerate(log.events)
        if one.event.TYPE_CODE == "job.dispatched" and one.stream.endswith("2")
    )  # fmt: skip
    old = log.events[place]
    run = old.event.allocation.runs[0].model_copy(update={"first": 1})
    allocation = old.event.allocation.model_copy(update={"runs": (run,)})
    event = old.event.model_copy(update={"allocation": allocation})
    log.events[place] = old._replace(event=event)
    driven = Driven(log)

    driven.take("trace on all", "step session")

    shown = driven.take("info trace 2")
    assert "not as it was recorded: the session decides otherwise now than was recorded" in shown
    assert "    h1: 1 task, mem 900MB" in shown
    driven.take("continue")
    assert driven.take("info trace 6")[0].startswith("job 6: session 3")


def test_words_of_trace_commands_complete(driven):
    """
    Ways, whose, options, and jobs that are known where one stands.
    """
    complete = driven.shell.complete
    assert ["on", "off", "status"] == complete("trace ")
    assert ["all"] == complete("trace on a")
    assert ["summary"] == complete("trace on all s")
    driven.take("goto end")
    assert ["1"] == complete("trace on job 1")
    assert ["7[1]", "7[2]", "7[3]"] == complete("info trace 7")

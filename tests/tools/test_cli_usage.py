"""
What the command refuses before it asks anyone, and how each error ends it.
"""

from __future__ import annotations

import re
import socket
import threading
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from domain.errors import Conflict, Corrupt, Denied, NotFound, Refused, StoreUnavailable
from store.heads import head_of
from store.log import EventLog
from tests.replay.conftest import SMALL
from tools.cli import job_changes, job_texts, main, submit
from tools.cli.client import SOCKET_NAME, Client, NoScheduler, error_of
from tools.cli.job_texts import parse_run_limit

DOCUMENT = Path(main.__file__).parent / "README.md"
EVERY_COMMAND = sorted(main.COMMANDS)


def _run(capfd, *arguments):
    status = main.run(list(arguments))
    captured = capfd.readouterr()
    return status, captured.out, captured.err


def _all_commands(command, path=()):
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from _all_commands(command.get_command(context, name), (*path, name))


ALL = dict(_all_commands(main.cli))


@pytest.mark.parametrize("path", [path for path in ALL if path], ids=" ".join)
def test_every_help_text_has_an_example(path):
    """
    Help answers the next question, which is how it's typed.
    """
    done = CliRunner().invoke(main.cli, [*path, "--help"], prog_name="xce")

    assert 0 == done.exit_code
    assert f"xce {' '.join(path)}" in done.output.split("xample", 1)[1]


@pytest.mark.parametrize("path", ALL, ids=lambda path: " ".join(path) or "xce")
def test_no_help_text_shows_the_marks_that_lay_it_out(path):
    """
    A mark that click doesn't know as one is printed, and the lines under it run together.
    """
    done = CliRunner().invoke(main.cli, [*path, "--help"], prog_name="xce")

    assert "\\b" not in done.output
    assert "\\n" not in done.output.replace("tr ';' '\\n'", "")
    assert "\b" not in done.output


@pytest.mark.parametrize("name", ["why", "history", "jobs", "submit", "hosts"])
def test_who_may_only_pass_through_the_clusters_folder_can_ask(name):
    """
    The scheduler answers at the socket in it; that the folder can't be listed is no matter.
    """
    (place,) = (one.type for one in ALL[name,].params if one.name == "directory")

    assert not place.readable


NOWHERE = "nowhere/to-be-found"


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        f"simulate {NOWHERE}", f"simulate small.swf --cluster {NOWHERE}",
        f"replay sweep {NOWHERE} --picker easy", f"replay sweep small.swf --cluster {NOWHERE}",
        f"replay verify {NOWHERE}", f"replay check {NOWHERE}", f"replay state {NOWHERE}",
        f"replay bisect {NOWHERE} jobs.RUN=1", f"replay debug {NOWHERE}",
        f"replay branch {NOWHERE} --at 9 --log b", f"replay diff {NOWHERE} run1",
        f"replay branch run1 --at 9 --log b --events {NOWHERE}",
        f"replay branch run1 --at 9 --log b --add-hosts {NOWHERE}", f"replay diff run1 {NOWHERE}",
        f"log info {NOWHERE}", f"log verify {NOWHERE}", f"log export {NOWHERE} out.jsonl",
        f"log export run1 {NOWHERE}", f"log import {NOWHERE} new", f"log repair {NOWHERE} new",
        f"log backup {NOWHERE} new", f"log compact {NOWHERE}", f"log head {NOWHERE}",
        f"log archive {NOWHERE} --keep 5", f"log prune {NOWHERE} --upto 5 --yes",
        f"log check-head run1 {NOWHERE}", f"log check-head {NOWHERE} head.json",
        f"log head run1 --sign {NOWHERE}", f"snapshot list {NOWHERE}",
        f"audit who --dir {NOWHERE}", f"audit figures --dir {NOWHERE}",
    ],
)  # fmt: skip
def test_what_is_named_and_not_there_is_not_found_in_every_command(
    arguments, tmp_path, monkeypatch, capfd
):
    """
    One exit status for it, one line, and nothing is written.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.swf").write_text(SMALL)
    assert 0 == main.run(["simulate", "small.swf", "--log", "run1"])
    with EventLog.open(tmp_path / "run1", writable=False) as log:
        (tmp_path / "head.json").write_text(head_of(log).as_json())
    before = sorted(tmp_path.iterdir())
    capfd.readouterr()

    status, out, err = _run(capfd, *arguments.split())

    assert (1, "") == (status, out), err
    assert 1 == err.count("\n")
    assert NOWHERE in err
    assert before == sorted(tmp_path.iterdir())


@pytest.mark.parametrize("name", EVERY_COMMAND)
def test_the_list_of_commands_says_what_each_says_of_itself(name):
    """
    The list is written down so that nothing is imported for it; it must not drift.
    """
    command = ALL[name,]

    assert command.name == name
    assert command.help


@pytest.mark.parametrize("name", EVERY_COMMAND)
def test_every_command_is_documented_for_programs(name):
    """
    What scripts may rely on is written down, under a heading for each command.
    """
    assert f"\n## xce {name}\n" in DOCUMENT.read_text()


WITHOUT_JSON = {
    ("worker",): "runs until it is ended, and writes lines of JSON anyway",
    ("audit", "follow"): "runs until it is ended",
    ("replay", "debug"): "is a conversation; its scripts have their own output",
}


def test_every_command_answers_programs_or_says_why_not():
    """
    Who writes a script must not look up which commands have --json.
    """
    is_asked = {
        path: command for path, command in ALL.items()
        if not isinstance(command, click.Group) or command.invoke_without_command
    }  # fmt: skip
    without = {
        path for path, command in is_asked.items()
        if not any("--json" in one.opts for one in command.params)
    }  # fmt: skip

    assert set(WITHOUT_JSON) == without


def test_help_imports_no_heavy_module():
    """
    People wait for every command; pydantic, HTTP and the store are imported where they are used.
    """
    import subprocess
    import sys

    code = (
        "import sys; from tools.cli.main import run; run(['--help']);"
        "heavy = {'pydantic', 'fastapi', 'lmdb', 'numpy', 'rich', 'http.client', 'asyncio'};"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]" == done.stderr.strip()


# ------------------------------------------------------------------------------------------- submit


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-n", "0", "--", "true"], "-n: must ask for at least 1 task (given: '0')."),
        (["-n", "4,2", "--", "true"], "-n: must not have a MAX below its MIN (given: '4,2')."),
        (["-n", "two", "true"], "-n: must be MIN or MIN,MAX in whole numbers (given: 'two')."),
        (["-n", "2,", "true"], "-n: must be MIN or MIN,MAX in whole numbers (given: '2,')."),
        (["-n", "-1", "true"], "-n: must be MIN or MIN,MAX in whole numbers (given: '-1')."),
        (["-W", "1:x", "--", "true"], "-W: must be MINUTES or HOURS:MINUTES, or have units"),
        (["-W", "0", "--", "true"], "-W: must be more than 0 (given: '0')."),
        (["--env", "NO_SUCH", "--", "true"], "--env: must be ALL, NONE, NAME=VALUE, ~NAME or"),
        ([], "COMMAND: must be given after --, or else by --shell."),
        (["--shell", "a", "--", "b"], "COMMAND: must be given after --, or else by --shell."),
        (["--frob"], "No such option '--frob'."),
    ],
)
def test_a_wrong_submission_is_refused_in_one_line_naming_field_and_rule(capfd, arguments, message):
    """
    Nothing is sent: the rules that can be told here are told here, with exit status 2.
    """
    status, out, err = _run(capfd, "submit", *arguments)

    assert (2, "") == (status, out)
    assert 1 == err.count("\n")
    assert message in err


def test_run_limits_are_minutes_or_hours_and_minutes():
    """
    The form is LSF's -W.
    """
    assert 90 * 60_000_000 == parse_run_limit("90") == parse_run_limit("1:30")
    assert 90 * 60_000_000 == parse_run_limit("1h30m") == parse_run_limit("90m")


def test_the_environment_is_changed_option_by_option():
    """
    Everything is passed on by default as in LSF; each option changes what the one before left.
    """
    current = {"A": "1", "B": "2"}

    assert current == job_texts.environment((), current)
    assert {} == job_texts.environment(("NONE",), current)
    assert {"A": "1", "C": "x=y"} == job_texts.environment(("NONE", "A", "C=x=y"), current)
    assert {"B": "2"} == job_texts.environment(("~A",), current)
    assert {"A": "", "B": "2"} == job_texts.environment(("A=",), current)


def test_an_environment_that_is_too_large_is_refused_with_its_size():
    """
    What a job carries lies in the log for ever, so it is bounded; it is never cut.
    """
    with pytest.raises(Refused) as refused:
        job_texts.environment((), {"BIG": "x" * 600_000})

    assert "--env" == refused.value.field
    assert "585 KiB" in refused.value.value


def test_a_variable_that_is_no_utf8_is_refused_by_name():
    """
    It could not be stored as it is, and storing something else would be a silent change.
    """
    with pytest.raises(Refused) as refused:
        job_texts.environment((), {"BAD": "\udcff"})

    assert "--env BAD" == refused.value.field


def test_options_end_where_the_command_begins():
    """
    "xce submit ls -l" is meant as it is in LSF: -l belongs to ls.
    """
    context = submit.submit.make_context("submit", ["-n", "2", "ls", "-n", "-l"])

    assert ("ls", "-n", "-l") == context.params["command"]
    assert "2" == context.params["tasks"]


# ------------------------------------------------------------------------------------ no scheduler


@pytest.mark.parametrize("arguments", [["jobs"], ["hosts"], ["queues"], ["job", "1"]])
def test_without_a_scheduler_the_socket_and_what_to_type_are_named(capfd, tmp_path, arguments):
    """
    Exit status 3, one line; nobody should have to guess which cluster was asked.
    """
    status, out, err = _run(capfd, *arguments, "--dir", str(tmp_path))

    assert (3, "") == (status, out)
    assert str(tmp_path / SOCKET_NAME) in err
    assert f"xce up --dir {tmp_path}" in err
    assert 1 == err.count("\n")


def test_a_socket_whose_path_is_too_long_for_an_address_is_reached(tmp_path):
    """
    An address of a Unix socket holds 107 bytes; directories may be deeper.
    """
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    short = tmp_path / "s"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(short))
    listener.listen()
    short.rename(deep / SOCKET_NAME)
    answering = threading.Thread(target=_answer_one, args=(listener, b'{"jobs": []}'))
    answering.start()

    with Client(deep) as client:
        answer = client.get("/v1/jobs")

    answering.join()
    listener.close()
    assert {"jobs": []} == answer


def _answer_one(listener, content):
    connection, _ = listener.accept()
    with connection:
        _read_request(connection)
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\n\r\n".encode()
        connection.sendall(head + content)


def _read_request(connection):
    """
    Read a whole request: an answer before its end would look like a lost connection.
    """
    content = b""
    while b"\r\n\r\n" not in content:
        content += connection.recv(65536)
    head, _, body = content.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    while length and len(body) < int(length[1]):
        body += connection.recv(65536)


def test_a_request_is_sent_again_until_somebody_listens(tmp_path):
    """
    A submission made while the scheduler restarts must arrive, under the key that it had.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def begin_to_listen():
        listener.bind(str(tmp_path / SOCKET_NAME))
        listener.listen()
        # The first connection is lost before it is answered: it may or may not have counted.
        connection, _ = listener.accept()
        _read_request(connection)
        connection.close()
        _answer_one(listener, b'{"job_id": "7"}')

    told = []
    answering = threading.Thread(target=begin_to_listen)

    def begin():
        told.append(1)
        answering.start()

    with Client(tmp_path, wait_s=20, waiting=begin) as client:
        answer = client.post("/v1/jobs", {"key": "k"})

    answering.join()
    listener.close()
    assert {"job_id": "7"} == answer
    assert [1] == told


def test_a_read_over_a_connection_that_was_closed_meanwhile_is_asked_again(tmp_path):
    """
    Servers close idle connections; a list that is watched must not call that "no scheduler".
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(tmp_path / SOCKET_NAME))
    listener.listen()

    def answer_each_on_its_own_connection():
        for number in (b"1", b"2"):
            _answer_one(listener, b'{"position": ' + number + b"}")

    answering = threading.Thread(target=answer_each_on_its_own_connection, daemon=True)
    answering.start()

    with Client(tmp_path) as client:
        answers = [client.get("/v1/jobs"), client.get("/v1/jobs")]

    answering.join()
    listener.close()
    assert [{"position": 1}, {"position": 2}] == answers


def test_the_last_try_says_that_nobody_answered(tmp_path):
    """
    Waiting ends in the same error as not waiting.
    """
    with pytest.raises(NoScheduler):
        Client(tmp_path, wait_s=0.15).post("/v1/jobs", {})


# -------------------------------------------------------------------------------- errors come back


@pytest.mark.parametrize(
    ("status", "answer", "family", "exit_status"),
    [
        (422, {"error": {"field": "queue", "rule": "must exist"}}, Refused, 2),
        (404, {"error": {"field": "job_id", "rule": "must exist"}}, NotFound, 1),
        (403, {"error": {"field": "user", "rule": "must be you"}}, Denied, 2),
        (409, {"error": {"what": "key", "expected": "a", "found": "b"}}, Conflict, 3),
        (503, {"error": {"resource": "disk is full"}}, StoreUnavailable, 3),
        (500, {"error": {"kind": "checksum", "position": 9}}, Corrupt, 4),
        (422, {"detail": [{"loc": ["body", "queue"], "msg": "too long"}]}, Refused, 2),
    ],
)
def test_an_error_of_the_scheduler_comes_back_as_its_family(status, answer, family, exit_status):
    """
    The exit status and the words are the same as if the rule had been checked here.
    """
    error = error_of(status, answer)

    assert type(error) is family
    assert exit_status == error.exit_status


def test_a_worker_with_an_impossible_name_is_refused_before_it_says_anything(capfd, tmp_path):
    """
    One line says what is wrong; nothing is announced that won't be.
    """
    status, out, err = _run(capfd, "worker", "--dir", str(tmp_path), "--name", "a b")

    assert (2, "", 1) == (status, out, err.count("\n"))
    assert err.startswith("xce: --name: must begin with a letter or digit")


def test_an_unexpected_error_is_one_line_and_says_how_to_see_more(capfd, monkeypatch):
    """
    A traceback is no answer for a person at a terminal.
    """
    monkeypatch.setattr(main.cli, "main", lambda *_a, **_k: 1 / 0)

    status, out, err = _run(capfd, "jobs")

    assert (70, "") == (status, out)
    assert "XCE_TRACEBACK=1" in err
    assert "Traceback" not in err


def test_interruption_is_quiet(capfd, monkeypatch):
    """
    Who presses Ctrl-C knows it.
    """

    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(main.cli, "main", interrupted)

    assert (130, "", "") == _run(capfd, "jobs")


def test_a_caret_stands_under_what_isnt_understood(capfd):
    """
    A caret behind its text on the same line points at nothing.
    """
    status, _, told = _run(capfd, "submit", "-J", "a[5-1]", "--", "true")

    rule = "xce: -J: a range must not end before it starts at column 3."
    assert (2, [rule, "  a[5-1]", "    ^"]) == (status, told.splitlines())


def test_the_schedulers_carets_are_shown_too_and_nothing_else_makes_lines(capfd):
    """
    What the scheduler answers has the column apart; a text can't forge a line of its own.
    """
    told = {"field": "resreq", "rule": "bad\nword", "value": "mem[\nx", "column": 4}
    error = error_of(422, {"error": told})
    main.complain(error)

    lines = capfd.readouterr().err.splitlines()
    assert ["xce: resreq: bad\\nword at column 4.", "  mem[ x", "     ^"] == lines


def test_an_array_that_is_too_large_is_told_the_largest_index(capfd):
    """
    A number with many digits is a number all the same.
    """
    for name in ("a[1-1000000000]", "a[1-1000000000000000000000]"):
        status, _, told = _run(capfd, "submit", "-J", name, "--", "true")
        assert 2 == status
        assert "an index must be at most 999999" in told


def test_hosts_are_named_with_their_tasks() -> None:
    """
    As LSF writes an allocation, as it takes one, and as people do.
    """
    assert [
        {"host": "h1", "tasks": 2}, {"host": "h2", "tasks": 3}, {"host": "3", "tasks": 4},
        {"host": "h-4.x"}, {"host": "5"},
    ] == job_changes.parse_host_tasks("h1*2 h2#3 4*3 h-4.x 5")  # fmt: skip


@pytest.mark.parametrize("text", ["", "h1*", "*2", "h1*x", "h1*2*3", "h1#-1", "h1*2#3", "#"])
def test_hosts_that_are_none_are_refused(text: str) -> None:
    """
    The word that is wrong is named.
    """
    with pytest.raises(Refused, match="-m"):
        job_changes.parse_host_tasks(text)

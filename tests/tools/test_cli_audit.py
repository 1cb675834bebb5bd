"""
The command xce audit: what it prints, in words and as JSON, and its exit statuses.
"""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from pathlib import Path

import pytest

from domain.event import event_classes
from domain.events.jobs import JobFinished, JobHeld
from domain.events.queues import QueueDefined
from domain.events.refusals import CommandRefused
from domain.events.workers import WorkerClosed
from domain.queues import QueueSpec
from store.log import EventLog
from tests.projections.audit.logs import (
    a_cluster,
    a_program,
    dispatched,
    pended,
    short_of_memory,
    short_of_slots,
)
from tools.cli.audit_asking import viewer_of
from tools.cli.main import run
from tools.follower.place import place_of

FORGED = 'a" user="root\n#99  2026: forged line\u202e'


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """
    Return a cluster's directory with a log in which things happened.
    """
    log = a_cluster()
    job = log.job(1, name=FORGED, program=a_program("grep", "needle"))
    log.session(("reasons", short_of_slots()), (job, pended()))
    log.session(("reasons", short_of_memory()))
    log.session((job, dispatched(1)))
    log.add("queue:normal", QueueDefined(spec=QueueSpec(priority=40)), "zoe")
    log.add(
        "refusals",
        CommandRefused(command="KillJob", subject="1", field="job_id", rule="not yours"),
        "ben",
    )
    log.add(job, JobFinished(attempt=1, exit_code=0))
    log.add("worker:h2", WorkerClosed(why="disk"), "zoe")
    log.add(log.job(2, user="ben", name="=1+1"), JobHeld(), "ben")
    with EventLog.create(tmp_path / "c" / "log", log_id="one", durability="none") as opened:
        opened.append([one.stamped() for one in log.envelopes])
    return tmp_path / "c"


@pytest.fixture
def xce(cluster: Path, capsys: pytest.CaptureFixture[str]):
    """
    Return the function that runs xce audit, or xce history, and gives exit status, output and
    complaints.
    """

    def ask(*arguments: str) -> tuple[int, str, str]:
        group = [] if arguments[0] == "history" else ["audit"]
        status = run([*group, arguments[0], "--dir", str(cluster), *arguments[1:]])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return ask


def told(result: tuple[int, str, str]) -> object:
    """
    Return the JSON object of a command that went well.
    """
    status, output, complaints = result
    assert (0, "") == (status, complaints)
    return json.loads(output)


def test_history_is_one_line_an_event_whatever_a_name_holds(xce) -> None:
    """
    A job's name can't forge a line, turn the text around or hide (K01).
    """
    status, output, _ = xce("history", "1")
    lines = output.splitlines()

    assert 0 == status
    assert 6 == sum(line.lstrip().startswith("#") and ":" in line for line in lines)
    assert not any(line.startswith("#99") for line in lines)
    assert "\u202e" not in output
    assert r"\n#99" in output
    assert "PEND" in lines[-3]


def test_history_as_json_and_as_lines_say_the_same(xce) -> None:
    """
    One object, or one object an event, for programs.
    """
    whole = told(xce("history", "1", "--json"))
    status, output, _ = xce("history", "1", "--jsonl")

    assert 0 == status
    assert whole["events"] == [json.loads(line) for line in output.splitlines()]
    assert {event["type_code"] for event in whole["events"]} <= set(event_classes())
    assert {"job_id", "position", "events", "states", "in_state_us", "now_us"} <= set(whole)


def test_a_host_tells_which_jobs_it_had(xce) -> None:
    """
    By its bare name; a name that nothing has is not found.
    """
    assert "job 1 of ann, attempt 1: takes 1 task" in xce("history", "h1")[1]


def test_who_closed_a_host_is_asked_as_people_say_it(xce) -> None:
    """
    Inside it is a worker; the help's own example found nothing.
    """
    _, output, _ = xce("who", "--command", "close host")

    assert "zoe  close host  h2" in output
    assert "close worker" == told(xce("who", "--command", "close host", "--json"))["commands"][0][
        "command"
    ]


def test_history_of_a_queue_shows_old_and_new(xce) -> None:
    """
    Who changed it, and from what to what.
    """
    _, output, _ = xce("history", "normal")

    assert "by zoe: changed" in output
    assert "priority: 30 -> 40" in output


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("history", "nobody"), 1),
        (("history", "99"), 1),
        (("history", "1", "--json", "--jsonl"), 2),
        (("history", "1", "--from", "yesterday"), 2),
        (("sql", "DROP TABLE jobs"), 2),
        (("sql", "SELECT nothing FROM jobs"), 2),
        (("export", "secrets"), 2),
        (("sql", "SELECT 1"), 0),
        (("check",), 0),
    ],
)
def test_exit_statuses_tell_not_found_from_refused(xce, arguments, status: int) -> None:
    """
    And every refusal is one line that names what is wrong.
    """
    found, _, complaints = xce(*arguments)

    assert status == found
    assert (status == 0) == (complaints == "")
    assert complaints.count("\n") <= 1


def test_who_did_what(xce) -> None:
    """
    Changed, held, refused; submissions only on request.
    """
    _, output, _ = xce("who")
    plain = told(xce("who", "--user", "ben", "--json"))

    assert "submit job" not in output
    assert "priority: 30 -> 40" in output
    assert ["kill job", "submit job", "hold job"] == [one["command"] for one in plain["commands"]]
    assert "not yours" in xce("who", "--refused")[1]
    assert "submit job" in xce("who", "--all")[1]


def test_sql_gives_a_table_json_json_lines_or_csv(xce) -> None:
    """
    The same rows in four forms; --json is one object as in every other command.
    """
    query = "SELECT job_id, name FROM jobs ORDER BY job_key"
    _, as_csv, _ = xce("sql", query, "--csv")
    as_json = told(xce("sql", query, "--json"))
    _, as_jsonl, _ = xce("sql", query, "--jsonl")
    _, table, _ = xce("sql", query)

    rows = list(csv.reader(io.StringIO(as_csv)))
    assert ["job_id", "name"] == rows[0]
    assert ["2", "'=1+1"] == rows[2]
    assert [FORGED, "=1+1"] == [json.loads(line)["name"] for line in as_jsonl.splitlines()]
    assert ["job_id", "name"] == as_json["columns"]
    assert [FORGED, "=1+1"] == [row["name"] for row in as_json["rows"]]
    assert [] == told(xce("sql", query.replace("ORDER", "WHERE 0 ORDER"), "--json"))["rows"]
    assert 2 == xce("sql", query, "--json", "--csv")[0]
    assert 3 == len(table.splitlines())


def test_tables_check_rebuild_report_and_export_answer_programs(
    xce, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    One JSON object each, like every other command.
    """
    assert 0 == run(["audit", "tables", "jobs", "--json"])
    tables = json.loads(capsys.readouterr().out)["tables"]
    page = told(xce("report", str(tmp_path / "page.html"), "--json"))
    anew = told(xce("rebuild", "--json"))
    rows = told(xce("export", "jobs", "--json"))["rows"]

    assert "job_id" in [column["column"] for column in tables[0]["columns"]]
    assert (tmp_path / "page.html").stat().st_size == page["bytes"]
    assert page["position"] == anew["position"]
    assert 2 == len(rows)
    assert {"position": page["position"], "is_same": True, "differences": []} == told(
        xce("check", "--json")
    )


def test_tables_that_differ_from_the_log_say_where_as_json_too(xce, cluster: Path) -> None:
    """
    With the exit status of a difference, and no complaint beside the answer.
    """
    assert 0 == xce("catch-up")[0]
    with sqlite3.connect(place_of(cluster).current()) as tables:
        tables.execute("UPDATE jobs SET name = 'another' WHERE job_id = '2'")

    status, output, complaints = xce("check", "--json")

    answer = json.loads(output)
    assert (1, "", False) == (status, complaints, answer["is_same"])
    assert "another" in answer["differences"][0]["kept"]


def test_export_is_safe_for_spreadsheets(xce) -> None:
    """
    No cell of any table begins as a formula.
    """
    for name in ("jobs", "events", "commands"):
        status, output, _ = xce("export", name)
        cells = [cell for row in csv.reader(io.StringIO(output)) for cell in row]
        assert 0 == status
        assert not [cell for cell in cells if cell[:1] in "=+@" and cell]


def test_the_report_is_written_once_and_replaced_on_request(xce, tmp_path: Path) -> None:
    """
    Nobody's file is overwritten by a slip.
    """
    file = tmp_path / "report.html"

    first, again, forced = (
        xce("report", str(file)),
        xce("report", str(file)),
        xce("report", str(file), "--force"),
    )

    assert (0, 2, 0) == (first[0], again[0], forced[0])
    assert file.read_text().startswith("<!doctype html>")


def test_status_says_how_far_behind_the_tables_are(xce, cluster: Path) -> None:
    """
    And catching up brings them to the head.
    """
    assert 1 == xce("status")[0]
    taken = told(xce("catch-up", "--json"))
    plain = told(xce("status", "--json"))

    assert (taken["position"], 0) == (plain["position"], plain["behind"])
    assert plain["bytes_per_job"] > 0
    assert place_of(cluster).link.with_name("audit.db.metadata.json").exists()


def test_a_question_is_answered_while_another_process_fills_the_tables(
    xce, cluster: Path, monkeypatch
) -> None:
    """
    It waits a little for the other one, and then answers from what is there.
    """
    import tools.cli.audit as command

    xce("catch-up")
    monkeypatch.setattr(command, "OTHERS_S", 0.1)
    with place_of(cluster).filling():
        status, output, complaints = xce("sql", "SELECT count(*) FROM jobs")

    assert (0, "") == (status, complaints)
    assert "2" in output


def test_a_log_that_cannot_be_opened_leaves_the_tables_readable(xce, cluster: Path) -> None:
    """
    History is usable without the log too, with a word about it.
    """
    xce("catch-up")
    marker = next((cluster / "log").glob("STORE*"))
    marker.chmod(0o600)

    status, output, _ = xce("history", "1", "--no-catch-up")

    assert 0 == status
    assert "submitted for ann" in output


def test_tables_are_described_without_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    """
    Whoever writes SQL looks up a column first.
    """
    assert 0 == run(["audit", "tables"])
    assert 0 == run(["audit", "tables", "jobs"])
    output = capsys.readouterr().out
    assert "pend_reasons" in output
    assert "What users call it" in output
    assert 2 == run(["audit", "tables", "nothing"])


def test_only_root_and_the_owner_of_the_tables_see_everything(cluster: Path, monkeypatch) -> None:
    """
    Whoever may read the file by its group sees what is theirs.
    """
    import os

    file = cluster / "log"
    assert viewer_of(file).is_privileged
    monkeypatch.setattr(os, "geteuid", lambda: 65_534)

    viewer = viewer_of(file)

    assert (False, True, False) == (
        viewer.is_privileged,
        viewer.may_see(viewer.user),
        viewer.may_see("ann"),
    )


@pytest.mark.parametrize(
    ("arguments", "others"),
    [
        (("history", "1"), "command private"),
        (("sql", "SELECT job_id, command FROM jobs"), "-"),
        (("export", "jobs"), "ann"),
    ],
)
def test_another_users_command_is_shown_by_no_question(
    xce, monkeypatch, arguments: tuple[str, ...], others: str
) -> None:
    """
    Who may read the tables by their group's right still sees what is theirs only.
    """
    import os

    assert "needle" in xce(*arguments)[1]
    monkeypatch.setattr(os, "geteuid", lambda: 65_534)

    status, output, _ = xce(*arguments, "--no-catch-up")

    assert 0 == status
    assert "needle" not in output
    assert others in output


def test_a_story_begins_and_ends_where_it_is_asked_to(
    cluster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    A part of a job's story, one JSON object an event.
    """
    assert 0 == run(["history", "1", "--dir", str(cluster), "--jsonl"])
    whole = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    first = str(whole[2]["position"])

    assert 0 == run(["history", "1", "--dir", str(cluster), "--jsonl", "--from", first])
    part = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert whole[-len(part) :] == part
    assert 0 < len(part) < len(whole)


def test_of_a_pruned_log_what_is_left_is_told_with_the_period_that_it_covers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Tables of before the pruning know everything; tables made after it say where they begin.
    """
    log = a_cluster()
    log.job(1)
    first_left = len(log.envelopes) + 1
    log.job(2, user="ben")
    directory = tmp_path / "pruned"
    with EventLog.create(directory / "log", log_id="one", durability="none") as opened:
        for one in log.envelopes:
            opened.append([one.stamped()])
    place, upto = str(directory / "log"), ["--upto", str(first_left - 1)]
    assert 0 == run(["audit", "catch-up", "--dir", str(directory)])
    assert 0 == run(["log", "archive", place, *upto])
    assert 0 == run(["log", "prune", place, *upto, "--yes", "--force"])
    capsys.readouterr()

    assert 0 == run(["history", "1", "--dir", str(directory)])
    assert "the log's beginning" in capsys.readouterr().out
    assert 2 == run(["audit", "check", "--dir", str(directory)])
    assert 0 == run(["audit", "rebuild", "--dir", str(directory)])
    assert 0 == run(["audit", "check", "--dir", str(directory)])
    capsys.readouterr()

    assert 1 == run(["history", "1", "--dir", str(directory)])
    assert 0 == run(["history", "2", "--dir", str(directory)])
    shown = capsys.readouterr().out
    assert f"position {first_left} (what came before was pruned)" in shown
    assert 0 == run(["history", "2", "--dir", str(directory), "--json"])
    assert first_left == json.loads(capsys.readouterr().out)["first_position"]

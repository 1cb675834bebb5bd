"""
Windows of logs as files: exported, replayed and refused, with the exit status for each.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.replay.conftest import SMALL
from tools.cli.main import run

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path: Path, monkeypatch, capsys) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.swf").write_text(SMALL)
    assert 0 == run(["simulate", "small.swf", "--log", "run1"])
    capsys.readouterr()
    return tmp_path


def told(capsys) -> dict[str, object]:
    return json.loads(capsys.readouterr().out)


def test_a_window_is_exported_and_replayed(place, capsys):
    """
    With the states asked for; verify says how many it compared.
    """
    window = ["--from", "12", "--to", "30", "--states-every", "6"]
    assert 0 == run(["log", "export", "run1", "w.jsonl.gz", *window, "--json"])
    header = told(capsys)
    assert 11 == header["first_position"], "the boundary before"
    assert 0 == run(["replay", "verify", "w.jsonl.gz", "--json"])
    result = told(capsys)
    assert (header["events"], True) == (result["events"], result["is_same"])
    assert result["states"] > 1
    assert 0 == run(["replay", "verify", "w.jsonl.gz"])
    assert "recorded states compared" in capsys.readouterr().out


def test_a_window_of_a_window_has_the_same_state(place, capsys):
    """
    LOG may be a recording wherever a state is asked for.
    """
    assert 0 == run(["log", "export", "run1", "a.jsonl", "--from", "12"])
    assert 0 == run(["log", "export", "a.jsonl", "b.jsonl", "--from", "20"])
    capsys.readouterr()
    found = set()
    for log in ("run1", "a.jsonl", "b.jsonl"):
        assert 0 == run(["replay", "state", log, "--at", "25", "--hash"])
        found.add(capsys.readouterr().out)
        assert 0 == run(["replay", "bisect", log, "slots.used = 4", "--json"])
        assert told(capsys)["holds"]
    assert 1 == len(found)


def test_what_a_part_of_a_log_cannot_do_is_refused(place, capsys):
    """
    Import and check need what came before; nothing is written.
    """
    assert 0 == run(["log", "export", "run1", "w.jsonl", "--from", "12"])
    assert 2 == run(["log", "import", "w.jsonl", "again"])
    said = capsys.readouterr().err
    assert "a part of one" in said
    assert "xce replay verify w.jsonl; xce simulate w.jsonl." in said
    assert 2 == run(["replay", "check", "w.jsonl"])
    assert "whole log" in capsys.readouterr().err
    assert 2 == run(["log", "export", "run1", "w.jsonl", "--from", "12"])
    assert 2 == run(["log", "export", "run1", "v.jsonl", "--from", "20", "--to", "12"])
    assert 2 == run(["log", "export", "run1", "v.jsonl", "--to", "99999"])
    assert 4 == run(["replay", "verify", "small.swf"])
    assert {"run1", "small.swf", "w.jsonl"} == {one.name for one in place.iterdir()}


def test_the_schema_is_printed(capsys):
    """
    For other programs.
    """
    assert 0 == run(["log", "schema"])
    assert "DECISION" in json.dumps(told(capsys)["oneOf"])


def test_an_anonymised_recording_verifies_and_is_another_log(place, capsys):
    """
    The trace's users are gone; what is left replays, and simulates to the same figures.
    """
    assert 0 == run(["log", "export", "run1", "given.jsonl", "--anonymise", "--json"])
    assert told(capsys)["log_id"].startswith("anonymised-")
    assert '"u1"' in json.dumps(json.loads(_exported(place, capsys)))
    assert '"u1"' not in (place / "given.jsonl").read_text()
    assert 0 == run(["replay", "verify", "given.jsonl"])
    capsys.readouterr()
    figures = []
    for name in ("run1", "given.jsonl"):
        assert 0 == run(["simulate", name, "--json"])
        told_now = told(capsys)
        figures.append({key: told_now[key] for key in ("jobs", "mean_wait_s", "makespan_s")})
    assert figures[0] == figures[1]


def _exported(place: Path, capsys) -> str:
    assert 0 == run(["log", "export", "run1", "plain.jsonl"])
    capsys.readouterr()
    lines = (place / "plain.jsonl").read_text().splitlines()
    return next(line for line in lines if "job.submitted" in line)

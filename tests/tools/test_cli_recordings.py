"""
Windows of logs as files: exported, replayed and refused, with the exit status for each.
"""

from __future__ import annotations

import io
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


def test_standard_output_is_no_file_to_export_to(place, capsys):
    """
    Elsewhere - means a standard stream, so a file of that name would be nobody's wish.
    """
    assert 2 == run(["log", "export", "run1", "-"])
    assert "xce: FILE: must be a file" in capsys.readouterr().err
    assert not (place / "-").exists()


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
    Import and branches need what came before; nothing is written.
    """
    assert 0 == run(["log", "export", "run1", "w.jsonl", "--from", "12"])
    assert 2 == run(["log", "import", "w.jsonl", "again"])
    said = capsys.readouterr().err
    assert "a part of one" in said
    assert "xce replay verify w.jsonl; xce simulate w.jsonl." in said
    assert 2 == run(["replay", "branch", "w.jsonl", "--at", "20", "--log", "b"])
    assert "window from position 11 on" in capsys.readouterr().err
    assert 2 == run(["log", "export", "run1", "w.jsonl", "--from", "12"])
    assert 2 == run(["log", "export", "run1", "v.jsonl", "--from", "20", "--to", "12"])
    assert 2 == run(["log", "export", "run1", "v.jsonl", "--to", "99999"])
    assert 4 == run(["replay", "verify", "small.swf"])
    assert {"run1", "small.swf", "w.jsonl"} == {one.name for one in place.iterdir()}


def test_a_window_holds_its_invariants(place, capsys):
    """
    From every position: the accounts are taken over from the state with which the window begins.
    """
    events = json.loads(_run(capsys, "replay", "check", "run1", "--json"))["events"]
    for first in range(2, events):
        name = f"{first}.jsonl"
        exported = json.loads(
            _run(capsys, "log", "export", "run1", name, "--from", str(first), "--json")
        )
        found = json.loads(_run(capsys, "replay", "check", name, "--every", "1", "--json"))
        assert found["is_good"], found["findings"]
        assert found["events"] == exported["events"]


def test_a_recording_of_a_whole_log_is_branched_as_the_log_is(place, capsys):
    """
    The same future comes out, under an id of its own, with its parent in it.
    """
    for name in ("one.jsonl.gz", "given.jsonl"):
        more = ["--anonymise"] if name == "given.jsonl" else []
        assert 0 == run(["log", "export", "run1", name, *more])
        assert 0 == run(["replay", "branch", name, "--at", "20", "--log", f"of-{name}", "--json"])
        told_now = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert told_now["differs_at"] is None
        assert 0 == run(["replay", "diff", "run1", f"of-{name}"])
        assert 0 == run(["replay", "verify", f"of-{name}"])
        capsys.readouterr()


def test_a_recording_is_debugged_as_the_log_is(place, capsys, monkeypatch):
    """
    A whole one gives the same transcript; a window begins with its state, and none goes before it.
    """
    script = "info jobs\nbreak decision *\ncontinue\nback 3\nstep session\ngoto end\nhash\n"
    assert 0 == run(["log", "export", "run1", "one.jsonl"])
    assert 0 == run(["log", "export", "run1", "w.jsonl", "--from", "20"])
    capsys.readouterr()
    shown = [_debugged(capsys, monkeypatch, name, script) for name in ("run1", "one.jsonl")]
    assert shown[0] == shown[1]

    window = _debugged(capsys, monkeypatch, "w.jsonl", "hash\nback 9\nstep\ngoto end\nhash\n")
    at_19 = _run(capsys, "replay", "state", "run1", "--at", "19", "--hash")
    assert window.splitlines()[0] in at_19
    assert window.splitlines()[-1] == shown[0].splitlines()[-1]
    refused = _debugged(capsys, monkeypatch, "w.jsonl", "goto 5\noutput w.jsonl\n", status=2)
    assert "position: must not be before position" in refused
    assert "output: must not be a part of the log" in refused
    assert (place / "w.jsonl").stat().st_size > 1000


def _run(capsys, *arguments: str) -> str:
    assert 0 == run(list(arguments))
    return capsys.readouterr().out


def _debugged(capsys, monkeypatch, name: str, script: str, status: int = 0) -> str:
    monkeypatch.setattr("sys.stdin", io.StringIO(script))
    assert status == run(["replay", "debug", name])
    return capsys.readouterr().out


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
    assert 0 == run(["log", "import", "given.jsonl", "given"])
    assert 0 == run(["log", "verify", "given"])
    assert 0 == run(["replay", "verify", "given"])
    assert 0 == run(["log", "export", "given", "again.jsonl"])
    lines = [(place / name).read_text().splitlines()[1:] for name in ("given.jsonl", "again.jsonl")]
    assert lines[0] == lines[1]
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

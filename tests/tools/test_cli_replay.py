"""
xce replay verify: 0 only without a difference, 1 with the first one's position, 4 for a bad log.
"""

from __future__ import annotations

import json

import pytest

from projections.scheduling import core as core_module
from tools.cli import main

LINES = """\
; MaxNodes: 1
; MaxProcs: 2
1 0 -1 100 2 -1 -1 2 -1 -1 1 1 1 1 1 1 -1 -1
2 10 -1 20 1 -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1
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


def test_a_sound_log_is_decided_the_same_again(capfd, log):
    """
    Exit status 0 says: every recorded decision was reproduced, and there were some.
    """
    assert 0 == main.run(["replay", "verify", str(log), "--json"])

    told = json.loads(capfd.readouterr().out)
    assert told["is_same"] is True
    assert 0 == told["difference_count"]
    assert told["decisions"] >= 3


def test_a_changed_rule_is_reported_with_its_position(capfd, log, monkeypatch):
    """
    A core that decides otherwise must never pass: the first difference is named, exit status 1.
    """
    decided = core_module.Core.session
    monkeypatch.setattr(core_module.Core, "session", lambda core, now: decided(core, now)[:-1])

    assert 1 == main.run(["replay", "verify", str(log), "--json"])
    told = json.loads(capfd.readouterr().out)
    assert told["is_same"] is False
    assert told["differences"][0]["position"] > 0

    assert 1 == main.run(["replay", "verify", str(log)])
    shown = capfd.readouterr().out
    assert f"the first at position {told['differences'][0]['position']}." in shown


def test_a_log_that_is_not_there_is_not_found(capfd, tmp_path):
    """
    An empty place must not pass for a log without differences.
    """
    assert 1 == main.run(["replay", "verify", str(tmp_path)])

    assert str(tmp_path) in capfd.readouterr().err

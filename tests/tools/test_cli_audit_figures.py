"""
xce audit figures: the same figures of the same schedule, whoever sums them up.
"""

from __future__ import annotations

import json

import pytest

from tools.cli import main

# Jobs 2 and 3 start at 100 s and job 4 at 120 s; it is short, so that the slowdown's bound matters.
LINES = """\
; MaxNodes: 1
; MaxProcs: 2
1 0 -1 100 2 -1 -1 2 -1 -1 1 1 1 1 1 1 -1 -1
2 10 -1 20 1 -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1
3 20 -1 20 1 -1 -1 1 -1 -1 1 2 1 1 1 1 -1 -1
4 30 -1 1 2 -1 -1 2 -1 -1 1 2 1 1 1 1 -1 -1
"""
FIGURES = ("jobs", "mean_wait_s", "mean_bounded_slowdown", "makespan_s", "utilisation")


@pytest.fixture
def simulated(tmp_path, capfd):
    """
    Return what a simulation printed, and the directory of its log.
    """
    workload, place = tmp_path / "small.swf", tmp_path / "run"
    workload.write_text(LINES)
    arguments = ["simulate", str(workload), "--log", str(place), "--no-progress", "--json"]
    assert 0 == main.run(arguments)
    return json.loads(capfd.readouterr().out), place


def asked(capfd, place, *arguments):
    """
    Return the object that xce audit figures prints.
    """
    assert 0 == main.run(["audit", "figures", "--dir", str(place), *arguments, "--json"])
    return json.loads(capfd.readouterr().out)


def test_the_audit_of_a_simulation_gives_its_own_figures(simulated, capfd):
    """
    There is one definition of each figure, so there are no two answers.
    """
    result, place = simulated

    found = asked(capfd, place)["all"]

    assert {name: result[name] for name in FIGURES} == {name: found[name] for name in FIGURES}
    assert (4, 65) == (found["jobs"], found["mean_wait_s"])
    assert 242_000_000 == found["used_slot_us"]


def test_groups_divide_the_whole(simulated, capfd):
    """
    Every job is in one group of each kind; who waited how long is by hand.
    """
    found = asked(capfd, simulated[1])

    for kind in ("queues", "users", "projects"):
        assert found["all"]["jobs"] == sum(one["jobs"] for one in found[kind])
        assert found["all"]["used_slot_us"] == sum(one["used_slot_us"] for one in found[kind])
    told = {
        one["user"]: (one["jobs"], one["mean_wait_s"], one["longest_wait_us"])
        for one in found["users"]
    }
    assert {"u1": (2, 45, 90_000_000), "u2": (2, 85, 90_000_000)} == told
    assert 90_000_000 == found["all"]["longest_wait_us"]


def test_a_period_takes_jobs_by_their_end(simulated, capfd):
    """
    Accounts of a month hold what ended in it, each job in one month.
    """
    _, place = simulated
    first = asked(capfd, place, "--to", "1970-01-01T00:01:45Z", "--by", "user")
    rest = asked(capfd, place, "--from", "1970-01-01T00:01:45.000001Z", "--by", "user")

    assert (1, 3) == (first["all"]["jobs"], rest["all"]["jobs"])
    assert "queues" not in first


def test_people_get_a_table(simulated, capfd):
    """
    One line a group, under heads with units.
    """
    assert 0 == main.run(["audit", "figures", "--dir", str(simulated[1])])
    lines = capfd.readouterr().out.splitlines()

    assert lines[0].split()[:3] == ["GROUP", "JOBS", "WAIT_S"]
    assert lines[1].split()[:4] == ["all", "4", "65.0", "90.0"]
    assert any(line.startswith("user u2") for line in lines)

"""
What is read from the log of a live cluster, beside what its scheduler says.
"""

from __future__ import annotations

import json

import pytest

from tests.tools import cli_harness as harness
from tools.cli import audit_asking, main

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """
    Return one cluster for all tests of this module: one local worker with two slots.
    """
    options = ("--workers", "1", "--slots", "2")
    with harness.cluster(tmp_path_factory.mktemp("live"), *options) as one:
        yield one


@pytest.mark.parametrize("options", [(), ("--at", "end")], ids=["now", "at"])
def test_what_is_recorded_says_what_the_scheduler_says(live, monkeypatch, capfd, options):
    """
    Whoever can't read the log gets the scheduler's own answer; the recorded one only adds to it.
    """
    job_id = live.submit("-n", "999", "--shell", "true")
    harness.wait_until(lambda: live.ask("why", job_id)["never"] is True)
    at = [str(live.ask("why", job_id)["position"])] if options else []
    recorded = live.ask("why", job_id, *options[:1], *at)

    monkeypatch.setattr(audit_asking, "FAR_EVENTS", -1)
    assert 0 == main.run(["why", job_id, "--dir", str(live.directory), "--json"])
    output, complaints = capfd.readouterr()
    told = json.loads(output)
    assert 0 == main.run(["why", job_id, "--dir", str(live.directory)])
    live.run("kill", job_id)

    assert "far behind" in complaints
    assert "can never start" in capfd.readouterr().out
    told.pop("position")
    assert told == {name: recorded[name] for name in told}


def test_the_scheduler_tells_the_story_that_the_log_tells(live, monkeypatch, capfd):
    """
    Whoever can't read the log misses nothing, of an element and of a job that was stopped.
    """
    job_id = live.submit("-J", "pair[1-2]", "--shell", "exec sleep 60")
    element = f"{job_id}[2]"
    live.wait_state(element, "RUN")
    live.run("stop", element)
    live.wait_state(element, "USUSP")
    live.run("kill", element)
    live.wait_state(element, "EXIT")
    recorded = live.ask("history", element)

    monkeypatch.setattr(audit_asking, "FAR_EVENTS", -1)
    assert 0 == main.run(["history", element, "--dir", str(live.directory), "--json"])
    told = json.loads(capfd.readouterr().out)
    live.run("kill", f"{job_id}[1]")

    own = {"position", "now_us"}
    assert {one: recorded[one] for one in recorded if one not in own} == {
        one: told[one] for one in told if one not in own
    }
    assert 0 < recorded["in_state_us"]["USUSP"]

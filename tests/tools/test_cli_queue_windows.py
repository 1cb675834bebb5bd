"""
What is told of a queue that is outside its windows, and of the jobs that wait in it.
"""

from __future__ import annotations

import json
import time

import pytest

from domain.commands import DefineQueue
from domain.queues import QueueSpec
from domain.units import DAY_US, HOUR_US
from domain.windows import parse_windows
from projections.scheduling.core import Core
from projections.scheduling.status import why_waiting
from store.log import EventLog
from tests.scenario import Scenario
from tests.tools import cli_harness as harness
from tools.cli.main import run
from tools.daemon import views

WORDS = "the queue is outside its windows (night)"


@pytest.fixture(params=["run_windows", "dispatch_windows"])
def night(request):
    """
    Return a scenario of the first minute of a day: job "late" is in a queue of the evening.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=4")
    spec = QueueSpec(priority=1, **{request.param: parse_windows("20:00-21:00")})
    scenario.command(DefineQueue(queue="night", spec=spec))
    scenario.jobs("late queue=night")
    scenario.session()
    return scenario


@pytest.fixture
def xce(night, tmp_path, capsys):
    """
    Return the function that asks the log of the scenario and gives what is printed.
    """
    directory = str(tmp_path / "c")
    with EventLog.create(tmp_path / "c" / "log", log_id="windows", durability="none") as log:
        log.append(night.log)

    def asked(*arguments):
        place = [] if arguments[0] == "replay" else ["--dir"]
        assert 0 == run([*arguments, *place, directory])
        return capsys.readouterr().out

    return asked


def test_closed_windows_are_the_reason_whatever_is_asked_first(night, xce):
    """
    No decision is recorded of such a job; a state that was folded from events, in which no session
    was, must know by itself that the windows are closed.
    """
    job_id = night.ids["late"]

    shown = xce("why", job_id)
    found = [json.loads(xce("why", job_id, "--json", *more)) for more in ((), ("--ahead",))]
    state = xce("replay", "state")

    assert f"Main reason  QUE_WINDOW: {WORDS}" in shown
    assert f"What helps   another queue: xce switch QUEUE {job_id}" in shown
    assert [("QUE_WINDOW", WORDS)] * 2 == [(one["code"], one["summary"]) for one in found]
    assert WORDS in state


def test_queues_are_told_with_their_next_opening(night):
    """
    An active queue outside its windows starts nothing, and one that is inside has no opening.
    """
    told = {
        row["queue"]: (row["is_in_windows"], row["opens_us"]) for row in views.queues(night.state)
    }

    assert {"normal": (True, None), "night": (False, 20 * HOUR_US)} == told


@pytest.mark.parametrize("hour", [0, 20])
def test_a_folded_state_tells_what_the_scheduler_told(hour):
    """
    That a window closes too soon is told before a begin time, but not of a closed window; at the
    first moment of all both would be told otherwise than now.
    """
    scenario = Scenario()
    scenario.pass_time(hour * 3600 + 1200)
    spec = QueueSpec(priority=1, run_windows=parse_windows("20:00-21:00"))
    scenario.command(DefineQueue(queue="night", spec=spec))
    later_us = scenario.now_us + HOUR_US
    for limit_us in (HOUR_US * 3 // 4, HOUR_US * 22):
        scenario.submit(str(limit_us), queue="night", run_limit_us=limit_us, begin_us=later_us)
    scenario.session()
    folded = Core()
    for stamped in scenario.log:
        folded.apply(stamped)

    told, again = (
        [why_waiting(state, one)[1][0].code for one in state.stored.jobs.values()]
        for state in (scenario.state, folded.state)
    )

    assert ["QUE_WINDOW_WILL_CLOSE" if hour else "QUE_WINDOW"] * 2 == told
    assert told == again


@pytest.mark.slow
def test_a_live_cluster_says_of_a_queue_that_its_windows_are_closed(tmp_path):
    """
    "its jobs may start" is no answer to whoever wonders why none does. In some days is closed now,
    whatever the zone.
    """
    day = (time.gmtime().tm_wday + 4) % 7
    with harness.cluster(tmp_path, "--workers", "1", "--slots", "1") as live:
        window = f"dispatch_windows={day}:10:00-{day}:11:00"
        assert 0 == live.run("define", "queue", "night", "priority=1", window).returncode
        job_id = live.submit("-q", "night", "--shell", "true")
        listed, shown = live.run("queues").stdout, live.run("queues", "night").stdout
        found, why = live.ask("queues", "night"), live.run("why", job_id).stdout

    assert "open:inact_win" in listed
    assert "open:active" in listed
    assert "outside its windows, so none of its jobs starts; next opening: 2" in shown
    assert (True, False) == (found["is_active"], found["is_in_windows"])
    assert DAY_US < found["opens_us"] - time.time_ns() // 1000 < 5 * DAY_US
    assert f"QUE_WINDOW: {WORDS}" in why

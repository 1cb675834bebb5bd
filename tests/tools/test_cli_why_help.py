"""
What xce why says of a job's slots, of what ran instead of it, and what would help it.
"""

from __future__ import annotations

import pytest

from domain.commands import CloseWorker
from domain.reasons import TEXTS
from domain.resreq.parser import parse
from tests.scenario import Scenario
from tests.tools.test_cli_why import ask, life, told, written
from tools.cli import why_live
from tools.cli.why_help import HELP, NEVER, PASSES, helps
from tools.cli.why_slots import tile_of

__all__ = ["ask", "life"]


def test_a_job_of_several_tasks_says_where_slots_are_free_that_suit_it(ask, tmp_path):
    """
    The parts it was tried in say nothing of what is asked for in all; hosts that it may not run on
    don't count.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=4", "h2 slots=4", "h3 slots=4", "h4 slots=4")
    scenario.command(CloseWorker(worker="h3", why="new disk"))
    scenario.jobs("A tasks=3", "B tasks=12")
    scenario.session()
    scenario.start("A")

    shown = ask(written(scenario, tmp_path), scenario.ids["B"])
    found = told(ask, tmp_path / "c", scenario.ids["B"])

    free = "12 slots asked for, 9 free (of 12) on 3 hosts that suit it: 4 on h2, 4 on h4, 1 on h1"
    assert free in shown
    assert "closed by administrator: 1 host" in shown
    assert [True, True] == [words in shown for words in found["helps"]]
    assert "xce hosts open NAME" in found["helps"][1]


def test_the_scheduler_itself_is_asked_for_slots_in_all_too(capsys):
    """
    Whoever may not read the log hears neither of parts that nobody asked for.
    """
    hosts = [{"host": "h1", "available_milli": 1000}, {"host": "h2", "available_milli": 2000}]
    reasons = [
        {"code": "HOST_SLOTS", "text": "not enough slots", "host_count": 1, "resource": "slots",
         "requested_milli": requested, "hosts": [host]}
        for requested, host in zip((2000, 3000), hosts, strict=True)
    ]  # fmt: skip
    answer = {
        "state": "PEND", "never": True, "since_us": 0, "reasons": reasons, "proved_by": "",
        "blocker": "", "promise": None, "overtaken_by": [], "beside": [], "position": 9,
    }  # fmt: skip
    asks = {"tasks_min": 6, "tasks_max": 6, "resreq": [], "queue": "normal"}

    why_live._show("7", answer, asks, all_hosts=True)

    shown = capsys.readouterr().out
    assert "not enough slots: 2 hosts; 6 slots asked for, 3 free there\n" in shown
    assert "h1: 1 slot available\n" in shown
    assert "what helps: fewer tasks (xce modify -n N 7), or more hosts" in shown


def test_a_span_over_several_hosts_is_short_of_hosts_not_of_slots_on_one(ask, tmp_path):
    """
    One task on a host can't be made fewer; of the hosts that suit it also those count that aren't
    short.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=2", "h2 slots=2")
    scenario.jobs("A tasks=2", "B tasks=1", "C tasks=3 resreq=span[ptile=1]")
    scenario.session()
    scenario.start("A", "B")

    shown = ask(written(scenario, tmp_path), scenario.ids["C"])

    slots = "3 slots asked for, 1 on each of 3 hosts; 1 free (of 4) on 2 hosts that suit it: 1 on"
    assert f"\n             {slots} h2\n" in shown
    assert "asked for there at least" not in shown
    fewer = f"fewer tasks (xce modify -n 2 {scenario.ids['C']})\n"
    assert f"What helps   more hosts with free slots (xce worker), or {fewer}" in shown


@pytest.mark.parametrize(("span", "wanted", "tile"), [
    ("span[ptile=2]", 3, 2), ("span[ptile=2]", 2, 0), ("span[ptile=2]", 1, 0),
    ("span[block=2]", 3, 0), ("span[hosts=1]", 3, 0), ("rusage[mem=1]", 3, 0),
])  # fmt: skip
def test_only_a_span_that_needs_a_second_host_is_short_of_hosts(
    span: str, wanted: int, tile: int
) -> None:
    """
    As many tasks as go to one host are short of slots there, which fewer tasks help.
    """
    assert tile == tile_of(parse(span), wanted)


def test_more_slots_than_the_named_hosts_have_is_said_first(ask, tmp_path):
    """
    That other hosts weren't asked for is no help to whoever named one.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=2", "h2 slots=2")
    scenario.jobs("C tasks=4 hosts=h1")
    scenario.session()

    shown = ask(written(scenario, tmp_path), scenario.ids["C"])

    fewer = f"fewer tasks (xce modify -n 2 {scenario.ids['C']})"
    assert f"What helps   {fewer}: 4 slots are asked for, and h1 has 2\n" in shown
    assert 1 == shown.count("fewer tasks")
    assert "4 slots asked for, 2 free (of 2) on 1 host that suits it: 2 on h1\n" in shown


def test_the_scheduler_itself_advises_no_fewer_tasks_on_a_host_than_one(capsys):
    """
    Whoever may not read the log is told so as well.
    """
    reasons = [
        {"code": "JOB_NO_SPAN", "text": "no room", "host_count": 1, "resource": "slots",
         "requested_milli": 1000, "hosts": [{"host": "h1", "available_milli": 0}]}
    ]  # fmt: skip
    answer = {
        "state": "PEND", "never": True, "since_us": 0, "reasons": reasons, "proved_by": "",
        "blocker": "", "promise": None, "overtaken_by": [], "beside": [], "position": 9,
    }  # fmt: skip
    asks = {"tasks_min": 3, "tasks_max": 3, "resreq": ["span[ptile=1]"], "queue": "normal"}

    why_live._show("7", answer, asks, all_hosts=True)

    shown = capsys.readouterr().out
    assert "what helps: more hosts with free slots (xce worker), or fewer tasks (xce" in shown


def test_what_starts_after_its_end_did_not_run_instead_of_a_job(life, ask, tmp_path):
    """
    A job that was ended before it ever started waits no longer.
    """
    life.kill("low")
    life.session()
    life.finish("A")
    life.session()
    life.start("urgent")

    assert "EXIT" == life.job("low").state.value
    assert "Ran instead" not in ask(written(life, tmp_path), life.ids["low"])


def test_every_reason_says_what_helps_or_passes_by_itself():
    """
    A new reason must not leave people with nothing to do without anybody having thought of it.
    """
    assert {code.value for code in TEXTS} == {*HELP, *PASSES}
    assert not set(HELP) & PASSES
    assert set(NEVER) <= set(HELP)


@pytest.mark.parametrize("code", [*HELP, *NEVER])
def test_what_helps_names_the_job_its_array_and_its_queue(code):
    """
    What is to be typed can be typed as it stands.
    """
    for never in (True, False):
        (words,) = helps([code, code], "7[3]", "night", never=never, slots=4)

        assert "{" not in words
    assert ["more elements at a time: xce modify -J %K 7"] == helps(
        ["JOB_ARRAY_JLIMIT"], "7[3]", "night", never=False
    )


def test_never_is_told_from_not_now(life, ask, tmp_path):
    """
    One is a reason to change the job, the other to wait.
    """
    directory = written(life, tmp_path)

    shown = ask(directory, life.ids["huge"])
    assert "can never start on the cluster as it is" in shown
    assert "9 slots asked for, 0 free (of 4) on 1 host that suits it" in shown
    assert f"What helps   fewer tasks (xce modify -n 4 {life.ids['huge']}), or more hosts" in shown
    assert "all hosts together" not in ask(directory, life.ids["low"])
    huge, low = (told(ask, directory, life.ids[name]) for name in ("huge", "low"))
    assert ("never", "later") == (huge["satisfiable"], low["satisfiable"])


def test_one_shortage_is_said_once(ask, tmp_path):
    """
    The second line has the amounts; the reason stands above it.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=1", "h2 slots=1")
    scenario.jobs("A tasks=2", "B")
    scenario.session()
    scenario.start("A")

    shown = ask(written(scenario, tmp_path), scenario.ids["B"])

    assert 1 == shown.count("not enough slots")
    assert "\n             1 slot asked for there at least, 0 free on h1, which has most" in shown


def test_those_taken_before_it_fit_beside_each_other(ask, tmp_path):
    """
    Of ten rows of eight columns nobody reads the moments to the microsecond.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=1")
    scenario.jobs("A", "B", "C")
    scenario.session()
    scenario.start("A")

    shown = ask(written(scenario, tmp_path), scenario.ids["C"], "--ahead")

    (row,) = [line for line in shown.splitlines() if line.startswith("    1  ")]
    assert len(row) <= 90
    assert "1970-01-01T" in row
    assert "." not in row

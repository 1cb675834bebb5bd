"""
What xce why tells of promises: to whom, who overtook, and what a job must keep clear of.
"""

from __future__ import annotations

from domain.commands import DefineQueue
from domain.queues import QueueSpec
from tests.builders import SECOND_US, some_settings
from tests.scenario import Scenario
from tools.cli.why_live import promise_lines
from tools.daemon.views import why


def told(scenario: Scenario, name: str) -> list[str]:
    """
    Return the lines about promises for a job.
    """
    return promise_lines(why(scenario.state, scenario.job(name)))


def test_easy_tells_whom_it_promised_what_and_why_others_wait() -> None:
    """
    The first job knows its start and who overtook it, the others why they don't fit in.
    """
    scenario = Scenario(some_settings(picker="easy"))
    scenario.hosts("h1 slots=2", "h2 slots=1")
    scenario.submit("A", tasks_min=2, tasks_max=2, run_estimate_us=100 * SECOND_US)
    scenario.submit("B", tasks_min=3, tasks_max=3, run_estimate_us=100 * SECOND_US)
    scenario.submit("C", run_estimate_us=100 * SECOND_US)
    scenario.submit("D", run_estimate_us=101 * SECOND_US)
    scenario.submit("E")

    assert [
        "A dispatched: h1*2",
        "B pended: slots short on h1, h2",
        "C dispatched: h2*1",
        "B promised 101: h1*2 h2*1",
        "B holds back its list",
    ] == scenario.session()
    assert [
        "reserved from 1970-01-01T00:01:41Z at the latest on hosts 2*h1 1*h2 (easy)",
        "1 job started ahead of it and still runs, the latest: 3",
    ] == told(scenario, "B")
    starts = "job 2 starts by 1970-01-01T00:01:41Z"
    assert [f"{starts}, and this one would end 1s later"] == told(scenario, "D")
    lacks = "and this one has neither run limit nor estimate"
    assert [f"{starts}, {lacks}"] == told(scenario, "E")
    assert [] == told(scenario, "A")


def test_gathered_slots_are_told_with_why_they_cant_be_borrowed() -> None:
    """
    Backfill doesn't happen without a run limit, and users don't guess that.
    """
    scenario = Scenario()
    wide = QueueSpec(priority=50, slot_reserve_us=300 * SECOND_US)
    scenario.command(DefineQueue(queue="par", spec=wide))
    scenario.command(DefineQueue(queue="bf", spec=QueueSpec(priority=40, is_backfill=True)))
    scenario.hosts("h1 slots=2")
    scenario.submit("A", run_limit_us=100 * SECOND_US)
    scenario.session()
    scenario.jobs("B tasks=2 queue=par", "C queue=bf", "D")
    scenario.session()

    until = "until 1970-01-01T00:05:01Z at most"
    start = "from 1970-01-01T00:01:41Z at the latest"
    assert [f"gathers on hosts 1*h1 {until}; reserved {start}"] == told(scenario, "B")
    starts = "job 2 starts by 1970-01-01T00:01:41Z"
    assert [f"{starts}, and this one has no run limit"] == told(scenario, "C")
    assert [f"{starts}, and queue normal doesn't backfill"] == told(scenario, "D")

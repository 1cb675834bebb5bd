"""
``-m h1!``: which host runs a job's command.
"""

from __future__ import annotations

import pytest

from domain.jobs import HostChoice
from tests.builders import some_settings
from tests.scenario import Scenario

FIRST = (HostChoice(host="h2", is_first=True), HostChoice(host="h1"))


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("chain", [("fill",), ("parjob", "fill")])
def test_the_first_host_is_filled_first_wherever_it_is_in_order(
    chain: tuple[str, ...], *, plain: bool
) -> None:
    """
    Three slots are free and one of them is on the host that is wanted first: it would wait for
    ever if hosts were only filled in order.
    """
    scenario = Scenario(some_settings(allocators=chain), plain=plain)
    scenario.hosts("h1 slots=2", "h2 slots=1")
    scenario.submit("A", tasks_min=3, tasks_max=3, hosts=FIRST)

    assert ["A dispatched: h2*1 h1*2"] == scenario.session()


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    ("span", "words"),
    [
        ("block=2", "h2*2 h1*2"),
        ("stripe", "h2*2 h1*2"),
        ("stripe=2", "h2*2 h1*2"),
        ("ptile='!'", "h2*2 h1*2"),
        ("ptile=2", "h2*2 h1*2"),
    ],
)
def test_spans_begin_with_a_first_host(span: str, words: str, *, plain: bool) -> None:
    """
    They cut their plan for certain hosts, in whose order that one comes last.
    """
    scenario = Scenario(plain=plain)
    scenario.hosts("h1 slots=2", "h2 slots=2")
    scenario.submit("A", tasks_min=4, tasks_max=4, resreq=(f"span[{span}]",), hosts=FIRST)

    assert [f"A dispatched: {words}"] == scenario.session()


def test_only_the_first_member_of_a_compound_has_the_first_host(scenario: Scenario) -> None:
    """
    The others run where they fit: their hosts don't run the job's command.
    """
    scenario.hosts("h1 slots=1", "h2 slots=1")
    scenario.submit("A", resreq=("1*{} + 1*{}",), hosts=FIRST)

    assert ["A dispatched: h2*1 h1*1"] == scenario.session()


def test_without_room_on_a_first_host_the_job_waits(scenario: Scenario) -> None:
    """
    However much is free elsewhere.
    """
    scenario.hosts("h1 slots=9", "h2 slots=1")
    scenario.submit("R", hosts=(HostChoice(host="h2"),))
    scenario.session()
    scenario.submit("A", tasks_min=2, tasks_max=2, hosts=FIRST)

    assert ["A pended: slots short on h2"] == scenario.session()

"""
What a job is told that waits for the hosts which an operator named: what each lacks for the tasks
that it is to have, in the alternatives that are for so many tasks.
"""

from __future__ import annotations

from typing import Any

from domain.commands import MarkUnreachable
from tests.projections.scheduling.preempting import licence
from tests.scenario import Scenario


def wanted(scenario: Scenario, resreq: str, *hosts: str, **more: Any) -> list[str]:
    """
    Submit A, want it on hosts, and return what a session decides.
    """
    scenario.submit("A", resreq=(resreq,), **more)
    scenario.run("A", *hosts)
    return scenario.session()


def test_a_host_is_short_for_all_the_tasks_that_it_is_to_have(scenario: Scenario) -> None:
    """
    One task alone would fit on h1.
    """
    scenario.hosts("h1 mem_mb=100", "h2 mem_mb=100")

    told = wanted(scenario, "rusage[mem=60/task]", "h1*2", "h2*1", tasks_min=3, tasks_max=3)

    assert ["A pended: never: mem short on h1"] == told


def test_what_all_hosts_share_is_short_for_all_tasks_together(scenario: Scenario) -> None:
    """
    Each host by itself could have its task.
    """
    scenario.hosts("h1", "h2")
    licence(scenario, total=1, release=False)

    told = wanted(scenario, "rusage[lic=1/task]", "h1", "h2", tasks_min=2, tasks_max=2)

    assert ["A pended: never: RES_SHORT lic"] == told


def test_alternatives_for_other_counts_of_tasks_are_not_told(scenario: Scenario) -> None:
    """
    The second lacks memory too, but isn't what the operator wants.
    """
    scenario.hosts("h1 mem_mb=100")
    text = "{1*{rusage[mem=300]}} || {3*{rusage[mem=400]}}"

    told = wanted(scenario, text, "h1*1", names_tasks=False)

    assert ["A pended: never: alternative 1 mem short on h1"] == told


def test_each_alternative_is_told_by_itself(scenario: Scenario) -> None:
    """
    The first lacks what all hosts share, the second memory.
    """
    scenario.hosts("h1 mem_mb=100", "h2 mem_mb=500")
    licence(scenario, total=1, release=False)
    text = "{2*{rusage[lic=1/task]}} || {2*{rusage[mem=300]}}"

    told = wanted(scenario, text, "h1", "h2", names_tasks=False)

    words = "alternative 1 RES_SHORT lic; alternative 2 mem short on h1"
    assert [f"A pended: never: {words}"] == told


def test_the_alternative_that_opens_later_is_told_if_it_is_for_so_many(scenario: Scenario) -> None:
    """
    The first is for one task, the second for two.
    """
    scenario.hosts("h1")
    text = "{1*{}} || {2*{}}@5 || {3*{}}@10"

    told = wanted(scenario, text, "h1*3", names_tasks=False)

    words = "alternative 3 ALTERNATIVE_WAITS (opens 10m after submission)"
    assert [f"A pended: {words}"] == told


def test_hosts_lack_what_a_member_needs_not_slots(scenario: Scenario) -> None:
    """
    The first member took h1, and the operator said so; for the second h2 has too little memory.
    """
    scenario.hosts("h1 mem_mb=400", "h2 mem_mb=100")
    text = "1*{rusage[mem=50]} + 1*{rusage[mem=300]}"

    told = wanted(scenario, text, "h1", "h2", names_tasks=False)

    assert ["A pended: never: member 2 mem short on h2"] == told


def test_either_use_is_told_where_no_host_lacks_both(scenario: Scenario) -> None:
    """
    Each host could have its task by one of them, but all tasks use the same.
    """
    scenario.hosts("h1 mem_mb=100", "h2 scratch=1")

    told = wanted(scenario, "rusage[mem=50 || scratch=1]", "h1", "h2", tasks_min=2, tasks_max=2)

    words = "alternative 1 mem short on h2; alternative 2 scratch short on h1"
    assert [f"A pended: never: {words}"] == told


def test_another_shortage_is_told_anew(scenario: Scenario) -> None:
    """
    One host has room by now, the other hasn't.
    """
    scenario.hosts("h1 mem_mb=100", "h2 mem_mb=100")
    scenario.submit("X", resreq=("rusage[mem=50]",))
    scenario.submit("Y", resreq=("rusage[mem=60]",))
    scenario.session()
    told = wanted(scenario, "rusage[mem=80]", "h1", "h2", tasks_min=2, tasks_max=2)
    assert ["A pended: mem short on h1, h2"] == told

    scenario.finish("X")
    scenario.session()

    assert "mem short on h2" == scenario.reasons("A")


def test_never_is_told_anew_when_a_host_comes_back_larger(scenario: Scenario) -> None:
    """
    h1 is short of memory as before, but now another job has it.
    """
    scenario.hosts("h1 mem_mb=100", "h2 mem_mb=900")
    scenario.submit("X", resreq=("rusage[mem=200]",))
    scenario.run("X", "h1")
    told = wanted(scenario, "rusage[mem=150]", "h1", "h2", tasks_min=2, tasks_max=2)
    assert "A pended: never: mem short on h1" in told

    scenario.command(MarkUnreachable(worker="h1", incarnation=1, silent_us=1), actor="")
    scenario.hosts("h1 mem_mb=300")

    assert ["X dispatched: h1*1"] == scenario.session()
    assert "mem short on h1" == scenario.reasons("A")

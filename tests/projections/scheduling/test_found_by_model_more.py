"""
What the comparison with the obvious slow scheduler has found of operators' wishes, of what hosts
have together, of spans and of shares, each in its smallest form.
"""

from __future__ import annotations

import pytest

from domain.commands import DefineResource, MarkUnreachable, RequeueJob
from domain.errors import Refused
from domain.jobs import HostChoice
from domain.resources import ResourceDescriptor, ResourceScope, SharedTotal
from tests.builders import MB_MILLI, SECOND_US, some_settings
from tests.projections.scheduling.policies import limit
from tests.projections.scheduling.preempting import running
from tests.projections.scheduling.test_found_by_model import is_never
from tests.projections.scheduling.test_loads import report
from tests.scenario import Scenario


def test_hosts_that_an_operator_named_are_short_of_what_they_lack_alone(scenario: Scenario) -> None:
    """
    Two tasks fit on h1: it isn't short of memory for all three, nor any of them of slots.
    """
    scenario.hosts("h1 mem_mb=250", "h2 mem_mb=150")
    scenario.submit("X", resreq=("rusage[mem=100]",), hosts=(HostChoice(host="h2"),))
    scenario.session()
    scenario.submit("A", tasks_min=3, tasks_max=3, resreq=("rusage[mem=100/task]",))

    scenario.run("A", "h1*2", "h2*1")

    assert ["A pended: mem short on h2"] == scenario.session()
    scenario.finish("X")
    assert ["A dispatched: h1*2 h2*1"] == scenario.session()


def test_another_total_is_looked_for_where_some_hosts_share_too_little(scenario: Scenario) -> None:
    """
    h1 and h2 could take two tasks each, but not together; h3 has licences of its own.
    """
    scenario.hosts("h1 slots=2", "h2 slots=2", "h3 slots=2")
    totals = (
        SharedTotal(total_milli=2_000, hosts=("h1", "h2")),
        SharedTotal(total_milli=2_000, hosts=("h3",)),
    )
    lic = ResourceDescriptor(
        name="lic", scope=ResourceScope.SHARED, totals=totals, is_consumable=True
    )
    scenario.command(DefineResource(descriptor=lic))
    scenario.submit("A", tasks_min=4, tasks_max=4, resreq=("rusage[lic=1/task]",))

    assert ["A dispatched: h1*2 h3*2"] == scenario.session()


def test_what_hosts_have_together_is_taken_by_one_task_on_each(scenario: Scenario) -> None:
    """
    The limit of three hosts is dealt by what is claimed, not to the first of them alone, which
    can't use it for one task a host.
    """
    scenario.hosts("h1 slots=2", "h2 slots=2", "h3 slots=2", "h4 slots=2")
    limit(scenario, "few", hosts="h1 h2 h3", slots=2)
    scenario.submit("A", tasks_min=3, tasks_max=3, resreq=("span[ptile=1]",))

    assert ["A dispatched: h1*1 h2*1 h4*1"] == scenario.session()


@pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
def test_a_job_of_which_nobody_hears_uses_its_users_share(*, plain: bool) -> None:
    """
    It runs on as far as anybody knows: when it is heard of again all of that time counts.
    """
    scenario = Scenario(some_settings(picker="fairshare"), plain=plain)
    scenario.hosts("h1 slots=1")
    running(scenario, "A user=ann")
    silent = MarkUnreachable(worker="h1", incarnation=1, silent_us=SECOND_US)
    scenario.command(silent, actor="")
    scenario.pass_time(100)
    scenario.hosts("h2 slots=1")
    running(scenario, "B user=bob")
    scenario.pass_time(50)
    scenario.jobs("C user=ann", "D user=bob")
    scenario.hosts("h3 slots=1")

    assert "D dispatched: h3*1" in scenario.session()


def test_an_operator_gets_an_alternative_that_is_for_so_many_tasks(scenario: Scenario) -> None:
    """
    The second one wants three tasks: with a single one a program that counts on them can't work.
    """
    text = "{1*{rusage[mem=300]}} || {3*{rusage[mem=10]}}"
    scenario.hosts("h1 slots=4 mem_mb=100")
    scenario.submit("A", tasks_min=1, tasks_max=1, names_tasks=False, resreq=(text,))

    scenario.run("A", "h1*1")
    assert ["A pended: never: alternative 1 mem short on h1"] == scenario.session()
    with pytest.raises(Refused, match="must get 1 or 3 tasks together"):
        scenario.run("A", "h1*2")
    scenario.run("A", "h1*3")

    assert ["A dispatched: h1*3"] == scenario.session()


def test_a_range_without_its_least_count_in_whole_blocks_is_told_never(scenario: Scenario) -> None:
    """
    Of two to four tasks in blocks of three only three are ever tried.
    """
    scenario.hosts("h1 slots=2")
    scenario.submit("A", tasks_min=2, tasks_max=4, resreq=("span[block=3]",))

    scenario.session()

    assert is_never(scenario, "A")


BY_REPORTS = "{2*{order[-mem]} + 2*{rusage[mem=50/task]}}"
"""The first two tasks take h1's slots away from the others, unless h2 reports less memory."""


@pytest.mark.parametrize("is_reported", [False, True])
def test_in_what_order_hosts_report_themselves_is_nothing_for_ever(
    scenario: Scenario, *, is_reported: bool
) -> None:
    """
    It isn't told never before a report that lets it start, and a report changes nothing of that.
    """
    scenario.hosts("h1 slots=3 mem_mb=400", "h2 slots=4")
    scenario.submit("X", is_exclusive=True)
    scenario.session()
    if is_reported:
        report(scenario, "h2", mem=200 * MB_MILLI)
    scenario.submit("A", resreq=(BY_REPORTS,), names_tasks=False)

    waits = "HOST_EXCLUSIVE on h1; member 2 mem short on h2"
    assert [f"A pended: {waits}"] == scenario.session()
    report(scenario, "h2", mem=200 * MB_MILLI)
    assert [] == scenario.session()
    assert waits == scenario.reasons("A")
    scenario.finish("X")
    assert ["A dispatched: h2*2 h1*2"] == scenario.session()


def test_a_member_that_fits_nowhere_is_never_in_whatever_order(scenario: Scenario) -> None:
    """
    No report gives h1 more memory in all than it counts.
    """
    scenario.hosts("h1 slots=3 mem_mb=90", "h2 slots=4")
    scenario.submit("A", resreq=(BY_REPORTS,), names_tasks=False)

    scenario.session()

    assert is_never(scenario, "A")


def test_hosts_that_count_what_orders_them_are_known_when_empty(scenario: Scenario) -> None:
    """
    So are those that have none of what others count: only a load index may be reported instead.
    """
    text = "{2*{order[-gas]} + 2*{rusage[mem=50/task]}}"
    scenario.command(DefineResource(descriptor=ResourceDescriptor(name="gas", is_consumable=True)))
    scenario.hosts("h1 slots=3 mem_mb=400 gas=1", "h2 slots=4")
    scenario.submit("A", resreq=(text,), names_tasks=False)

    assert ["A pended: never: member 2 slots short on h1; member 2 mem short on h2"] == (
        scenario.session()
    )


def test_a_job_that_is_to_be_held_is_held_though_its_host_is_lost(scenario: Scenario) -> None:
    """
    Its user put it back and wants it held: that its host is given up meanwhile starts it nowhere.
    """
    scenario.hosts("h1 slots=1", "h2 slots=1")
    scenario.submit("A", rerunnable=True)
    scenario.session()
    scenario.start("A")
    scenario.command(RequeueJob(job_id=scenario.ids["A"], hold=True))
    silent = MarkUnreachable(worker="h1", incarnation=1, silent_us=SECOND_US)
    scenario.command(silent, actor="")
    scenario.session()
    scenario.pass_time(100_000)

    assert ["A requeued: lost host"] == scenario.session()
    assert {"A": "PSUSP"} == scenario.states()

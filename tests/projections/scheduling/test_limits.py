"""
Limits: who is bound together, by how much, what is charged, and what waiting jobs are told.
"""

from __future__ import annotations

import pytest

from domain.commands import DefineLimit, RemoveLimit, StopJob, SwitchJob
from domain.errors import NotFound, Refused
from domain.limits import Basis, LimitAmount, LimitSpec
from domain.windows import parse_windows
from tests.projections.scheduling.policies import group, limit, queue, scope
from tests.scenario import Scenario


def decided(scenario: Scenario) -> list[str]:
    """
    Hold a session and return what it decided, without what isn't shown.
    """
    return [words for words in scenario.session() if words]


def test_users_listed_together_share_one_budget(scenario: Scenario) -> None:
    """
    The list form is one sum for all who are in it; nobody else is bound.
    """
    scenario.hosts("h1 slots=8")
    limit(scenario, "l1", users="u1 u2", slots=2)
    scenario.jobs("A user=u1", "B user=u2", "C user=u1", "D user=u3")

    assert decided(scenario) == [
        "A dispatched: h1*1",
        "B dispatched: h1*1",
        "C pended: RES_LIMIT(l1,slots)",
        "D dispatched: h1*1",
    ]


def test_each_user_has_the_budget_and_exclusions_have_none(scenario: Scenario) -> None:
    """
    "each all ~u3": a budget for every user but u3, who isn't bound.
    """
    scenario.hosts("h1 slots=8")
    limit(scenario, "l1", users="each all ~u3", slots=1)
    scenario.jobs("A user=u1", "B user=u2", "C user=u1", "D user=u3", "E user=u3")

    assert decided(scenario) == [
        "A dispatched: h1*1",
        "B dispatched: h1*1",
        "C pended: RES_LIMIT(l1,slots)",
        "D dispatched: h1*1",
        "E dispatched: h1*1",
    ]


def test_two_dimensions_of_each_multiply(scenario: Scenario) -> None:
    """
    Each user in each queue has a budget.
    """
    scenario.hosts("h1 slots=8")
    scenario.queue("other", 30)
    limit(scenario, "l1", users="each all", queues="each all", slots=1)
    scenario.jobs("A user=u1", "B user=u1 queue=other", "C user=u1", "D user=u2")

    assert decided(scenario) == [
        "A dispatched: h1*1",
        "B dispatched: h1*1",
        "C pended: RES_LIMIT(l1,slots)",
        "D dispatched: h1*1",
    ]


def test_groups_are_bound_through_their_members(scenario: Scenario) -> None:
    """
    A list of users may name groups, also groups of groups.
    """
    scenario.hosts("h1 slots=8")
    group(scenario, "inner", "u1 u2")
    group(scenario, "outer", "inner")
    limit(scenario, "l1", users="outer", jobs=1)
    scenario.jobs("A user=u1", "B user=u2", "C user=u3")

    assert decided(scenario) == [
        "A dispatched: h1*1",
        "B pended: RES_LIMIT(l1,jobs)",
        "C dispatched: h1*1",
    ]


def test_each_group_has_a_budget_that_its_members_share(scenario: Scenario) -> None:
    """
    The dimension of groups: a job counts for its own group, else for all of its user's.
    """
    scenario.hosts("h1 slots=8")
    group(scenario, "g1", "u1 u2")
    group(scenario, "g2", "u3")
    limit(scenario, "l1", groups="each all", slots=1)
    scenario.jobs("A user=u1", "B user=u2", "C user=u3", "D user=u4")

    assert decided(scenario) == [
        "A dispatched: h1*1",
        "B pended: RES_LIMIT(l1,slots)",
        "C dispatched: h1*1",
        "D dispatched: h1*1",
    ]


def test_jobs_count_jobs_whatever_their_size(scenario: Scenario) -> None:
    """
    An amount of jobs is no amount of slots.
    """
    scenario.hosts("h1 slots=8")
    limit(scenario, "l1", users="all", jobs=1)
    scenario.jobs("A tasks=4", "B")

    assert decided(scenario) == ["A dispatched: h1*4", "B pended: RES_LIMIT(l1,jobs)"]


def test_a_resource_binds_only_jobs_that_reserve_it(scenario: Scenario) -> None:
    """
    A job that names no memory is charged none and bound by none.
    """
    scenario.hosts("h1 slots=8 mem_mb=9000")
    limit(scenario, "l1", users="all", mem=4000 * 1024)
    scenario.jobs("A mem_mb=3000", "B mem_mb=3000", "C")

    assert decided(scenario) == [
        "A dispatched: h1*1",
        "B pended: RES_LIMIT(l1,mem)",
        "C dispatched: h1*1",
    ]


def test_a_limit_of_each_host_is_a_reason_of_that_host(scenario: Scenario) -> None:
    """
    Where a limit is about hosts it is looked at for each candidate.
    """
    scenario.hosts("h1 slots=4", "h2 slots=4")
    limit(scenario, "l1", hosts="each all", slots=1)
    scenario.jobs("A", "B", "C")

    assert decided(scenario) == [
        "A dispatched: h1*1",
        "B dispatched: h2*1",
        "C pended: RES_LIMIT(l1,slots) on h1, h2",
    ]


def test_a_limit_of_a_host_leaves_other_hosts_alone(scenario: Scenario) -> None:
    """
    A job goes where the limit isn't.
    """
    scenario.hosts("h1 slots=4", "h2 slots=4")
    limit(scenario, "l1", users="alice", hosts="h1", slots=1)
    scenario.jobs("A", "B", "C hosts=h1")

    assert decided(scenario) == [
        "A dispatched: h1*1",
        "B dispatched: h2*1",
        "C pended: HOST_USR_SPEC on h2; RES_LIMIT(l1,slots) on h1",
    ]


def test_hosts_listed_together_share_one_budget(scenario: Scenario) -> None:
    """
    What is taken on all of them together stays within it, also by one job over several.
    """
    scenario.hosts("h1 slots=2", "h2 slots=2", "h3 slots=2")
    limit(scenario, "l1", hosts="h1 h2", slots=3)
    scenario.jobs("A tasks=5", "B")

    assert decided(scenario) == [
        "A dispatched: h1*2 h3*2 h2*1",
        "B pended: RES_LIMIT(l1,slots) on h1, h2; slots short on h1, h3",
    ]


def test_one_host_may_have_all_that_several_have_together(scenario: Scenario) -> None:
    """
    Dealing it out is tried only where no choice of hosts keeps within it by itself.
    """
    scenario.hosts("h1 slots=1", "h2 slots=2")
    limit(scenario, "l1", hosts="h1 h2", slots=2)
    scenario.jobs("A tasks=2 resreq=span[hosts=1]")

    assert decided(scenario) == ["A dispatched: h2*2"]


def test_jobs_on_each_host_are_counted_once_for_each(scenario: Scenario) -> None:
    """
    A job over two hosts counts on both.
    """
    scenario.hosts("h1 slots=2", "h2 slots=2")
    limit(scenario, "l1", hosts="each all", jobs=1)
    scenario.jobs("A tasks=3", "B")

    assert decided(scenario) == [
        "A dispatched: h1*2 h2*1",
        "B pended: RES_LIMIT(l1,jobs) on h1, h2; slots short on h1",
    ]


def test_memory_of_a_host_may_be_bound_in_percent(scenario: Scenario) -> None:
    """
    Half of what the host has.
    """
    scenario.hosts("h1 slots=4 mem_mb=1000")
    half = LimitAmount(resource="mem", milli=50_000, basis=Basis.PERCENT)
    spec = LimitSpec(hosts=scope("each all"), amounts=(half,))
    scenario.command(DefineLimit(limit="l1", spec=spec))
    scenario.jobs("A mem_mb=400", "B mem_mb=400")

    assert decided(scenario) == [
        "A dispatched: h1*1",
        "B pended: RES_LIMIT(l1,mem) on h1",
    ]


def test_slots_for_each_processor_are_rounded_up(scenario: Scenario) -> None:
    """
    Half a slot for each of three processors is two slots, as LSF has it.
    """
    scenario.hosts("h1 slots=6 ncpus=~3")
    each = LimitAmount(resource="slots", milli=500, basis=Basis.PER_PROCESSOR)
    spec = LimitSpec(hosts=scope("each all"), amounts=(each,))
    scenario.command(DefineLimit(limit="l1", spec=spec))
    scenario.jobs("A", "B", "C")

    assert decided(scenario) == [
        "A dispatched: h1*1",
        "B dispatched: h1*1",
        "C pended: RES_LIMIT(l1,slots) on h1",
    ]


def test_a_range_of_tasks_is_clipped_to_what_is_left(scenario: Scenario) -> None:
    """
    A limit doesn't make a range wait while its least still fits.
    """
    scenario.hosts("h1 slots=8")
    limit(scenario, "l1", users="all", slots=5)
    scenario.jobs("A tasks=2", "B tasks=1 tasks_max=8")

    assert decided(scenario) == ["A dispatched: h1*2", "B dispatched: h1*3"]


def test_the_members_of_a_compound_share_the_budget(scenario: Scenario) -> None:
    """
    Each member leaves the next what it doesn't take.
    """
    scenario.hosts("h1 slots=8", "h2 slots=8")
    limit(scenario, "l1", hosts="each all", slots=2)
    text = "2*{select[slots>0]}+2*{select[slots>0]}"
    scenario.submit("A", resreq=(text,), tasks_min=4, tasks_max=4)

    assert decided(scenario) == ["A dispatched: h1*2 h2*2"]


def test_what_is_taken_is_given_back_at_the_end(scenario: Scenario) -> None:
    """
    A job that ends makes room for the next one of its budget.
    """
    scenario.hosts("h1 slots=8")
    limit(scenario, "l1", users="all", slots=1)
    scenario.jobs("A", "B")
    decided(scenario)
    scenario.finish("A")

    assert decided(scenario) == ["B dispatched: h1*1"]


def test_stopped_jobs_stay_charged(scenario: Scenario) -> None:
    """
    A suspended job holds what it has.
    """
    scenario.hosts("h1 slots=8")
    limit(scenario, "l1", users="all", jobs=1)
    scenario.jobs("A", "B")
    decided(scenario)
    scenario.command(StopJob(job_id=scenario.ids["A"]))
    decided(scenario)
    scenario.suspended("A")

    assert decided(scenario) == []
    assert scenario.states() == {"A": "USUSP", "B": "PEND"}


def test_the_allocation_says_what_was_charged(scenario: Scenario) -> None:
    """
    The decision names each budget and the amount, so that history knows.
    """
    scenario.hosts("h1 slots=8")
    limit(scenario, "l1", users="each all", slots=4, jobs=2)
    scenario.jobs("A tasks=3")
    decided(scenario)

    allocation = scenario.job("A").allocation
    assert allocation is not None
    charges = allocation.charges
    assert [(each.limit, each.budget, each.resource, each.milli) for each in charges] == [
        ("l1", "alice", "slots", 3000),
        ("l1", "alice", "jobs", 1000),
    ]


def test_a_new_limit_counts_the_jobs_that_run_already(scenario: Scenario) -> None:
    """
    Charges are worked out anew from what live jobs hold.
    """
    scenario.hosts("h1 slots=8")
    scenario.jobs("A tasks=2")
    decided(scenario)
    limit(scenario, "l1", users="all", slots=2)
    scenario.jobs("B")

    assert decided(scenario) == ["B pended: RES_LIMIT(l1,slots)"]


def test_jobs_that_asked_for_the_same_part_when_a_limit_tells_them_apart(
    scenario: Scenario,
) -> None:
    """
    They waited as one request, and are two from then on.
    """
    scenario.hosts("h1 slots=1")
    scenario.jobs("X", "A user=u1", "B user=u2")
    decided(scenario)
    limit(scenario, "l1", users="u1", slots=0)
    scenario.finish("X")

    assert decided(scenario) == ["A pended: RES_LIMIT(l1,slots)", "B dispatched: h1*1"]


def test_a_job_short_of_slots_is_told_of_the_limit_that_others_fill_meanwhile(
    scenario: Scenario,
) -> None:
    """
    Nothing was freed, and yet its reason is another one.
    """
    scenario.hosts("h1 slots=2")
    limit(scenario, "l1", users="all ~root", slots=2)
    scenario.jobs("X user=root", "A tasks=2", "B")
    decided(scenario)
    assert scenario.reasons("A") == "slots short on h1"
    scenario.session()

    assert scenario.reasons("A") == "RES_LIMIT(l1,slots)"


def test_without_its_limit_a_waiting_job_starts(scenario: Scenario) -> None:
    """
    Removing a limit is as good as freeing it.
    """
    scenario.hosts("h1 slots=8")
    limit(scenario, "l1", users="all", slots=1)
    scenario.jobs("A", "B")
    decided(scenario)
    scenario.command(RemoveLimit(limit="l1"))

    assert decided(scenario) == ["B dispatched: h1*1"]


def test_a_moved_job_is_charged_to_its_new_queue(scenario: Scenario) -> None:
    """
    Switching a started job moves its charge.
    """
    scenario.hosts("h1 slots=8")
    scenario.queue("other", 30)
    limit(scenario, "l1", queues="each all", jobs=1)
    scenario.jobs("A", "B")
    decided(scenario)
    scenario.command(SwitchJob(job_id=scenario.ids["A"], queue="other"))
    scenario.jobs("C queue=other")

    assert decided(scenario) == [
        "B dispatched: h1*1",
        "C pended: RES_LIMIT(l1,jobs)",
    ]


def test_a_limit_may_hold_at_times_only(scenario: Scenario) -> None:
    """
    Outside of its windows it binds nobody; a session is due when that changes.
    """
    scenario.hosts("h1 slots=8")
    limit(scenario, "l1", users="all", slots=1, windows=parse_windows("0:00-1:00"))
    scenario.jobs("A", "B")

    assert decided(scenario) == ["A dispatched: h1*1", "B pended: RES_LIMIT(l1,slots)"]

    wakeup_us = scenario.core.next_wakeup(scenario.now_us)
    assert wakeup_us == 3_600_000_000
    scenario.now_us = wakeup_us
    assert decided(scenario) == ["B dispatched: h1*1"]


def test_the_limit_with_least_left_is_named(scenario: Scenario) -> None:
    """
    All must hold; the most restrictive one is told.
    """
    scenario.hosts("h1 slots=8")
    limit(scenario, "l1", users="all", slots=3)
    limit(scenario, "l2", users="all", slots=2)
    scenario.jobs("A tasks=2", "B tasks=2")

    assert decided(scenario) == ["A dispatched: h1*2", "B pended: RES_LIMIT(l2,slots)"]


def test_more_than_a_limit_ever_allows_is_refused_and_names_it(scenario: Scenario) -> None:
    """
    Full now pends, never is refused.
    """
    limit(scenario, "l1", users="alice", slots=2)

    with pytest.raises(Refused) as refused:
        scenario.jobs("A tasks=4")

    assert refused.value.field == "tasks"
    assert "l1 ever allows of slots" in refused.value.rule


def test_memory_that_a_limit_never_allows_is_told_with_its_unit(scenario: Scenario) -> None:
    """
    Nobody asks for memory in thousandths of a KiB.
    """
    limit(scenario, "l1", users="alice", mem=1024)

    with pytest.raises(Refused) as refused:
        scenario.submit("A", resreq=("rusage[mem=2000]",))

    assert ("resreq", "2000MB") == (refused.value.field, refused.value.value)


def test_a_limit_of_nothing_is_a_brake_and_refuses_nobody(scenario: Scenario) -> None:
    """
    An administrator who sets 0 wants jobs to wait.
    """
    scenario.hosts("h1 slots=4")
    queue(scenario, slots=0)
    scenario.jobs("A")

    assert decided(scenario) == ["A pended: QUE_JOB_LIMIT(queue normal,slots)"]


def test_a_waiting_job_that_a_new_limit_can_never_hold_is_told_never(scenario: Scenario) -> None:
    """
    It was allowed when it was submitted, so it isn't refused any more.
    """
    scenario.hosts("h1 slots=2")
    scenario.jobs("A tasks=2", "B tasks=2")
    decided(scenario)
    limit(scenario, "l1", users="all", slots=1)

    assert decided(scenario) == ["B pended: never: RES_LIMIT(l1,slots)"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"users": "u1", "licences": 2}, "amounts"),
        ({"queues": "nowhere", "slots": 2}, "queues"),
        ({"groups": "nobody", "slots": 2}, "groups"),
        ({"profiles": "none", "slots": 2}, "profiles"),
    ],
)
def test_a_limit_of_what_nobody_knows_is_refused(
    scenario: Scenario, spec: dict[str, object], field: str
) -> None:
    """
    A misspelt limit would bind nobody and say nothing.
    """
    with pytest.raises(Refused) as refused:
        limit(scenario, "l1", **spec)

    assert refused.value.field == field


def test_removing_what_isnt_there_is_refused(scenario: Scenario) -> None:
    """
    One clear error.
    """
    with pytest.raises(NotFound):
        scenario.command(RemoveLimit(limit="l1"))

"""
Whole outcomes of placements with requirements, on the fast and on the literal core: spans, orders,
groups, shared resources, named units, compounds and alternatives.
"""

# long: one test for each rule of placement.

from __future__ import annotations

from typing import Any

import pytest

from domain.cluster import ClusterSettings, DefaultHostType
from domain.commands import ConfigureWorker, DefineResource
from domain.errors import Refused
from domain.resources import ResourceDescriptor, ResourceScope, SharedTotal
from domain.windows import parse_windows
from domain.workers import HostSettings
from projections.scheduling.placement.ground import Ground
from projections.scheduling.placement.relief import Relief
from tests.builders import a_host, a_job, some_settings
from tests.scenario import Scenario

BOTH = pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])


def cluster(plain: bool, *hosts: dict[str, Any], **settings: Any) -> Scenario:
    """
    Return a cluster that fills hosts in order, as LSF does.
    """
    chosen: ClusterSettings = some_settings(**{"allocators": ("fill",), **settings})
    scenario = Scenario(chosen, plain=plain)
    for host in hosts:
        scenario.command(a_host(**host), actor="")
    return scenario


def ask(scenario: Scenario, name: str, resreq: str = "", tasks: int = 1, **more: Any) -> None:
    """
    Submit a job with a requirement.
    """
    made = scenario.command(a_job(tasks, name=name, resreq=resreq or (), **more))
    scenario.ids[name] = scenario.state.stored.jobs[made[0].stream].job_id


def placed(
    plain: bool, free: dict[str, int], tasks: int, resreq: str, most: int | None = None
) -> str:
    """
    Return what one job gets on hosts with so many free slots, "" when it waits.
    """
    scenario = cluster(plain, *({"name": name, "slots": slots} for name, slots in free.items()))
    ask(scenario, "A", resreq, tasks, tasks_max=most)
    said = scenario.session()[0]
    return said.removeprefix("A dispatched: ") if "dispatched" in said else ""


def shared(scenario: Scenario, name: str, total: int, *hosts: str) -> None:
    """
    Define a shared resource: one total for all hosts, or for those named.
    """
    scenario.command(
        DefineResource(
            descriptor=ResourceDescriptor(
                name=name,
                scope=ResourceScope.SHARED,
                is_consumable=True,
                totals=(SharedTotal(total_milli=total * 1_000, hosts=hosts),),
            )
        )
    )


FREE = {"h1": 4, "h2": 3, "h3": 1}


@BOTH
@pytest.mark.parametrize(
    ("free", "tasks", "most", "resreq", "expected"),
    [
        (FREE, 6, None, "", "h1*4 h2*2"),
        (FREE, 4, None, "span[hosts=1]", "h1*4"),
        (FREE, 4, None, "span[ptile=2]", "h1*2 h2*2"),
        (FREE, 5, None, "span[ptile=2]", "h1*2 h2*2 h3*1"),
        (FREE, 3, None, "span[ptile=1]", "h1*1 h2*1 h3*1"),
        (FREE, 8, None, "span[hosts=-1]", "h1*4 h2*3 h3*1"),
        (FREE, 2, 8, "", "h1*4 h2*3 h3*1"),
        (FREE, 2, 6, "", "h1*4 h2*2"),
        (FREE, 9, 12, "", ""),
        (FREE, 3, 8, "span[ptile=2]", "h1*2 h2*2 h3*1"),
        (FREE, 3, 4, "span[ptile=2]", "h1*2 h2*2"),
        (FREE, 3, 8, "span[hosts=1]", "h1*4"),
        ({"h1": 2, "h2": 4}, 2, 4, "span[hosts=1]", "h2*4"),
        ({"h1": 9, "h2": 5}, 8, None, "span[block=4]", "h1*8"),
        ({"h1": 9, "h2": 5}, 12, None, "span[block=4]", "h1*8 h2*4"),
        ({"h1": 6, "h2": 6, "h3": 6}, 12, None, "span[block=4]", "h1*4 h2*4 h3*4"),
        ({"h1": 3, "h2": 8}, 8, None, "span[block=4]", "h2*8"),
        ({"h1": 3, "h2": 3, "h3": 3}, 8, None, "span[block=4]", ""),
        ({"h1": 9, "h2": 5}, 10, None, "span[block=4]", "h1*8 h2*2"),
        ({"h1": 9, "h2": 5}, 3, 11, "span[block=4]", "h1*8"),
        ({f"h{n}": 8 for n in range(1, 6)}, 32, None, "span[stripe]", "h1*7 h2*7 h3*6 h4*6 h5*6"),
        ({"h1": 4}, 4, None, "span[stripe]", "h1*4"),
        ({"h1": 4, "h2": 4, "h3": 4}, 4, None, "span[stripe]", "h1*2 h2*1 h3*1"),
        ({"h1": 1, "h2": 4, "h3": 4}, 6, None, "span[stripe]", "h1*1 h2*3 h3*2"),
        ({"h1": 4, "h2": 4, "h3": 4}, 5, None, "span[stripe=2]", "h1*2 h2*2 h3*1"),
        ({"h1": 4, "h2": 2, "h3": 4}, 8, None, "span[ptile='!']", "h1*4 h2*2 h3*2"),
    ],
)
def test_spans_lay_tasks_over_hosts_as_lsf_does(
    plain: bool, free: dict[str, int], tasks: int, most: int | None, resreq: str, expected: str
) -> None:
    """
    Each form of span, with counts and ranges; nothing means that the job waits.
    """
    assert expected == placed(plain, free, tasks, resreq, most)


@BOTH
def test_a_tile_that_no_host_holds_is_named_on_each_host(plain: bool) -> None:
    """
    With a span, a host with free slots but too few for the tile is short of span, not of slots.
    """
    scenario = cluster(plain, {"name": "h1", "slots": 4}, {"name": "h2", "slots": 3})
    ask(scenario, "A", "span[hosts=1]", 6)
    ask(scenario, "B", "span[ptile=3]", 9)

    assert [
        "A pended: never: JOB_NO_SPAN slots short on h1, h2",
        "B pended: never: JOB_SPREAD_TASK",
    ] == scenario.session()


@BOTH
@pytest.mark.parametrize(
    ("resreq", "expected"),
    [
        ("order[slots]", "h1*1"),
        ("order[-slots]", "h2*1"),
        ("order[mem]", "h2*1"),
        ("order[-mem]", "h1*1"),
        ("order[mem:slots]", "h2*1"),
    ],
)
def test_hosts_are_tried_best_first(plain: bool, resreq: str, expected: str) -> None:
    """
    More is better for slots and memory; a minus turns that round.
    """
    scenario = cluster(
        plain,
        {"name": "h1", "slots": 4, "mem_mb": 1000},
        {"name": "h2", "slots": 1, "mem_mb": 9000},
        {"name": "h3", "slots": 2, "mem_mb": 5000},
    )
    ask(scenario, "A", resreq)

    assert [f"A dispatched: {expected}"] == scenario.session()


@BOTH
def test_order_goes_key_by_key(plain: bool) -> None:
    """
    The whole sequence shows in a job that takes every host.
    """
    scenario = cluster(
        plain,
        {"name": "h1", "slots": 4, "mem_mb": 1000},
        {"name": "h2", "slots": 1, "mem_mb": 9000},
        {"name": "h3", "slots": 2, "mem_mb": 5000},
    )
    ask(scenario, "A", "order[mem:slots]", 7)

    assert ["A dispatched: h2*1 h3*2 h1*4"] == scenario.session()


@BOTH
def test_hosts_asked_for_come_by_preference_and_the_others_are_named(plain: bool) -> None:
    """
    -m restricts the hosts, orders them, and may say which must be first.
    """
    hosts = [{"name": f"h{n}", "slots": 2} for n in range(1, 5)]
    scenario = cluster(plain, *hosts)
    ask(scenario, "A", tasks=3, hosts="h3,h2+1")
    ask(scenario, "B", tasks=2, hosts="h1,h4!")
    ask(scenario, "C", tasks=1, hosts="h2")

    assert [
        "A dispatched: h2*2 h3*1",
        "B dispatched: h4*2",
        "C pended: HOST_USR_SPEC on h1, h3, h4; slots short on h2",
    ] == scenario.session()
    with pytest.raises(Refused, match="must name workers"):
        ask(scenario, "D", hosts="nowhere")


@BOTH
def test_select_names_the_condition_that_fails(plain: bool) -> None:
    """
    A host that isn't selected says which condition it fails, the first in the order written.
    """
    scenario = cluster(
        plain,
        {"name": "h1", "mem_mb": 1000, "type": "LINUX", "gpu_ok": "yes"},
        {"name": "h2", "mem_mb": 9000, "type": "SOL"},
    )
    ask(scenario, "A", "type==LINUX && mem>5000")
    ask(scenario, "B", "gpu_ok")
    ask(scenario, "C", "!gpu_ok && maxslots > 2")

    assert [
        "A pended: never: HOST_RES_REQ (type == LINUX) on h2; HOST_RES_REQ (mem > 5000) on h1",
        "B dispatched: h1*1",
        "C dispatched: h2*1",
    ] == scenario.session()


@BOTH
def test_free_slots_are_compared_and_configured_ones_remembered(plain: bool) -> None:
    """
    Slots are those free now; maxslots what the host has.
    """
    scenario = cluster(plain, {"name": "h1", "slots": 4}, {"name": "h2", "slots": 4})
    ask(scenario, "X", tasks=3, hosts="h1")
    scenario.session()
    ask(scenario, "A", "select[slots>2]")
    ask(scenario, "B", "select[maxslots>4]")

    assert [
        "A dispatched: h2*1",
        "B pended: never: HOST_RES_REQ (maxslots > 4) on h1, h2",
    ] == scenario.session()


@BOTH
def test_the_default_host_type_has_a_reason_of_its_own(plain: bool) -> None:
    """
    Without a requirement the host isn't of the submission host's type; with one it isn't selected.
    """
    scenario = cluster(
        plain, {"name": "hS", "type": "SOL"}, default_host_type=DefaultHostType.LOCAL
    )
    ask(scenario, "A", submit_type="LINUX")
    ask(scenario, "B", "maxslots>1", submit_type="LINUX")

    assert [
        "A pended: never: HOST_SCHED_TYPE on hS",
        "B pended: never: HOST_RES_REQ (type == local) on hS",
    ] == scenario.session()


@BOTH
def test_a_load_index_that_is_not_reported_leaves_the_host_out(plain: bool) -> None:
    """
    A host without the figure is not selected, whatever the comparison.
    """
    scenario = cluster(plain, {"name": "h1"})
    ask(scenario, "A", "mem<10")

    assert ["A pended: LOAD_UNAVAIL (mem) on h1"] == scenario.session()


@BOTH
def test_hosts_of_one_job_are_alike_where_it_asks(plain: bool) -> None:
    """
    Partial mixing never: a group that holds the whole job is used.
    """
    hosts = (
        {"name": "L1", "slots": 2, "type": "LINUX"},
        {"name": "S1", "slots": 3, "type": "SOL"},
        {"name": "L2", "slots": 2, "type": "LINUX"},
    )
    scenario = cluster(plain, *hosts)
    ask(scenario, "A", "same[type]", 5)
    ask(scenario, "B", "same[type]", 4)
    ask(scenario, "C", "same[type] select[type==SOL]", 3)

    assert [
        "A pended: never: slots short on L1, L2, S1",
        "B dispatched: L1*2 L2*2",
        "C dispatched: S1*3",
    ] == scenario.session()

    ranged = cluster(plain, *hosts)
    ask(ranged, "D", "same[type]", 1, tasks_max=9)

    assert ["D dispatched: L1*2 L2*2"] == ranged.session()


@BOTH
@pytest.mark.parametrize(
    ("tasks", "resreq", "per_task", "expected"),
    [
        (4, "rusage[mem=500]", False, "h1*4"),
        (4, "rusage[mem=500]", True, ""),
        (2, "rusage[mem=500]", True, "h1*1 h2*1"),
        (4, "rusage[mem=500/task]", False, ""),
        (4, "rusage[mem=500/host]", True, "h1*4"),
        (4, "rusage[mem=500/job]", False, "h1*4"),
        (8, "rusage[mem=1200/job]", False, "h1*4 h2*4"),
        (8, "rusage[mem=1201/job]", False, ""),
    ],
)
def test_memory_counts_per_host_task_or_job(
    plain: bool, tasks: int, resreq: str, per_task: bool, expected: str
) -> None:
    """
    Half of all workflow engines' trouble is about this switch: a suffix wins over the setting.
    """
    scenario = cluster(
        plain,
        {"name": "h1", "mem_mb": 600},
        {"name": "h2", "mem_mb": 600},
        reserve_per_task=per_task,
    )
    ask(scenario, "A", resreq, tasks)

    said = scenario.session()[0]
    assert (f"A dispatched: {expected}" if expected else "pended") in said


@BOTH
@pytest.mark.parametrize(
    ("tasks", "resreq", "by_slot", "expected"),
    [
        (6, "", True, "h1*6"),
        (6, "", False, "h1*2 h2*4"),
        (1, "", False, "h1*1"),
        (7, "", False, ""),
        (3, "span[hosts=1]", False, "h2*3"),
        (4, "2*{ncpus>1} + 2*{ncpus>1}", False, "h1*2 h2*2"),
    ],
)
def test_by_processors_a_parallel_job_has_no_more_tasks_than_processors(
    plain: bool, tasks: int, resreq: str, by_slot: bool, expected: str
) -> None:
    """
    The members of a compound are one job; a job of one task isn't bound.
    """
    scenario = cluster(
        plain,
        {"name": "h1", "slots": 8, "ncpus": "2"},
        {"name": "h2", "slots": 8, "ncpus": "4"},
        parallel_sched_by_slot=by_slot,
        allocators=("fill",),
    )
    ask(scenario, "A", resreq, tasks)

    said = scenario.session()[0]
    assert (f"A dispatched: {expected}" if expected else "pended") in said


@BOTH
def test_alternatives_of_rusage_are_tried_from_the_left(plain: bool) -> None:
    """
    The first that can be satisfied is the reservation; the reasons of each are kept apart.
    """
    scenario = cluster(plain, {"name": "h1", "mem_mb": 300}, {"name": "h2", "lic": 2})
    ask(scenario, "A", "rusage[mem=500||lic=2]")
    ask(scenario, "B", "rusage[mem=500||lic=1]")

    assert [
        "A dispatched: h2*1",
        "B pended: alternative 1 mem short on h1, h2; alternative 2 lic short on h1, h2",
    ] == scenario.session()
    allocation = scenario.job("A").allocation
    assert allocation is not None
    assert [("lic", 2_000)] == [(a.resource, a.milli) for a in allocation.runs[0].amounts]


@BOTH
def test_a_threshold_is_a_floor(plain: bool) -> None:
    """
    Nothing starts unless so much is there, however little it reserves; of what all hosts share that
    is told once.
    """
    scenario = cluster(plain, {"name": "h1"})
    shared(scenario, "bw", 5)
    ask(scenario, "A", "rusage[bw=1:threshold=6]")
    ask(scenario, "B", "rusage[bw=1:threshold=5]")
    ask(scenario, "C", "rusage[bw=1:threshold=5]")

    assert [
        "A pended: never: RES_SHORT bw",
        "B dispatched: h1*1",
        "C pended: RES_SHORT bw",
    ] == scenario.session()


# -------------------------------------------------------------------------------- shared resources


@BOTH
def test_a_resource_that_all_hosts_share_gives_one_reason_of_the_job(plain: bool) -> None:
    """
    The licence is the job's trouble, not a host's; others pass it.
    """
    scenario = cluster(plain, {"name": "h1"})
    shared(scenario, "lic", 2)
    for name in "ABC":
        ask(scenario, name, "rusage[lic=1]")
    ask(scenario, "D")

    assert [
        "A dispatched: h1*1",
        "B dispatched: h1*1",
        "C pended: RES_SHORT lic",
        "D dispatched: h1*1",
    ] == scenario.session()

    scenario.finish("A")

    assert ["C dispatched: h1*1"] == scenario.session()


@BOTH
@pytest.mark.parametrize(
    ("tasks", "resreq", "most", "expected"),
    [
        (4, "rusage[lic=1]", None, 1),
        (4, "rusage[lic=1/task]", None, None),
        (2, "rusage[lic=1/task]", None, 2),
        (1, "rusage[lic=1/task]", 4, 2),
        (4, "rusage[lic=1/host]", None, 2),
        (6, "rusage[lic=1/host]", None, None),
    ],
)
def test_a_parallel_job_takes_a_shared_resource_as_it_says(
    plain: bool, tasks: int, resreq: str, most: int | None, expected: int | None
) -> None:
    """
    Once by default; per task it clips a range, per host it bounds the hosts.
    """
    scenario = cluster(plain, *({"name": f"h{n}", "slots": 2} for n in range(3)))
    shared(scenario, "lic", 2)
    ask(scenario, "A", resreq, tasks, tasks_max=most)
    scenario.session()

    allocation = scenario.job("A").allocation
    used = None if allocation is None else sum(each.milli for each in allocation.shared) // 1_000
    assert expected == used
    assert (expected or 0) * 1_000 == scenario.state.capacity.pools.by_name["lic"][0].charged


@BOTH
def test_a_resource_of_some_hosts_is_short_on_each_host(plain: bool) -> None:
    """
    Hosts outside of it have none; those inside share one total.
    """
    scenario = cluster(plain, {"name": "h1", "slots": 1}, {"name": "h2"})
    shared(scenario, "nodelic", 1, "h1")
    ask(scenario, "A", "rusage[nodelic=1]")
    ask(scenario, "B", "rusage[nodelic=1]")

    assert [
        "A dispatched: h1*1",
        "B pended: slots short on h1; nodelic short on h1, h2",
    ] == scenario.session()


@BOTH
def test_hosts_that_share_a_total_cannot_exceed_it_together(plain: bool) -> None:
    """
    Each host alone would do; the plan as a whole takes more than there is.
    """
    scenario = cluster(plain, {"name": "h1", "slots": 2}, {"name": "h2", "slots": 2})
    shared(scenario, "lic", 3, "h1", "h2")
    ask(scenario, "A", "rusage[lic=1/task]", 4)
    ask(scenario, "B", "rusage[lic=1/task]", 3)

    assert [
        "A pended: never: RES_SHORT lic",
        "B dispatched: h1*2 h2*1",
    ] == scenario.session()


# ------------------------------------------------------------------------------------- named units


@BOTH
def test_named_units_are_handed_out_and_given_back(plain: bool) -> None:
    """
    A job learns which GPUs are its own: the first free ones in the host's order.
    """
    scenario = cluster(plain, {"name": "h1", "gpus": 3})
    ask(scenario, "A", "rusage[gpu=2]")
    ask(scenario, "B", "rusage[gpu=1]")
    ask(scenario, "C", "rusage[gpu=1]")

    assert [
        "A dispatched: h1*1",
        "B dispatched: h1*1",
        "C pended: gpu short on h1",
    ] == scenario.session()
    assert ("0", "1") == units(scenario, "A")
    assert ("2",) == units(scenario, "B")

    scenario.finish("A")
    scenario.session()

    assert ("0",) == units(scenario, "C")
    with pytest.raises(Refused, match="units with names, for each task or host"):
        ask(scenario, "D", "rusage[gpu=1/job]")


def units(scenario: Scenario, name: str) -> tuple[str, ...]:
    """
    Return the units that a job has on its first host.
    """
    allocation = scenario.job(name).allocation
    assert allocation is not None
    return allocation.runs[0].instances[0].units


# ---------------------------------------------------------------------- compounds and alternatives


@BOTH
def test_members_of_a_compound_are_placed_in_order_without_going_back(plain: bool) -> None:
    """
    The scarce term first works; the other way round the first term takes its host.
    """
    hosts = (
        {"name": "big", "slots": 1, "mem_mb": 8000},
        {"name": "s1", "slots": 4, "mem_mb": 2000},
    )
    scenario = cluster(plain, *hosts)
    ask(scenario, "A", "1*{select[mem>1000]} + 1*{select[mem>5000]}")
    ask(scenario, "B", "1*{select[mem>5000]} + 3*{select[mem>1000]}")

    assert [
        "A pended: never: member 2 HOST_RES_REQ (mem > 5000) on s1; member 2 slots short on big",
        "B dispatched: big*1 s1*3",
    ] == scenario.session()


@BOTH
def test_one_host_may_serve_several_members_and_their_amounts_add_up(plain: bool) -> None:
    """
    Members merge per host, as long as it can carry them all.
    """
    scenario = cluster(plain, {"name": "big", "slots": 4, "mem_mb": 8000})
    ask(scenario, "A", "1*{select[mem>5000] rusage[mem=4000]} + 3*{rusage[mem=3000]}")
    scenario.session()

    allocation = scenario.job("A").allocation
    assert allocation is not None
    assert [(0, 4)] == [(run.first, run.tasks) for run in allocation.runs]
    assert 7_000 * 1_024_000 == allocation.runs[0].amounts[0].milli


@BOTH
def test_a_member_that_fails_gives_up_the_earlier_ones_and_names_the_later(plain: bool) -> None:
    """
    Nothing stays claimed, and what wasn't tried is said.
    """
    scenario = cluster(plain, {"name": "h1", "slots": 4, "mem_mb": 1000})
    ask(scenario, "A", "2*{rusage[mem=100]} + 1*{rusage[mem=5000]} + 1*{select[slots>0]}")
    ask(scenario, "B", tasks=4)

    assert [
        "A pended: never: member 2 mem short on h1; member 3 MEMBER_NOT_TRIED",
        "B dispatched: h1*4",
    ] == scenario.session()


@BOTH
def test_members_share_what_hosts_share(plain: bool) -> None:
    """
    One licence isn't enough for two members that take one each.
    """
    scenario = cluster(plain, {"name": "h1"})
    shared(scenario, "lic", 1)
    ask(scenario, "A", "1*{rusage[lic=1]} + 1*{rusage[lic=1]}")

    assert ["A pended: never: member 2 RES_SHORT lic"] == scenario.session()


@BOTH
def test_a_compound_may_want_all_its_hosts_alike(plain: bool) -> None:
    """
    A same outside the braces binds all members together.
    """
    scenario = cluster(
        plain,
        {"name": "L1", "slots": 1, "type": "LINUX"},
        {"name": "S1", "slots": 4, "type": "SOL"},
    )
    ask(scenario, "A", "{1*{select[slots>0]} + 1*{select[maxslots>0]}} same[type]")
    ask(scenario, "B", "1*{select[slots>0]} + 1*{select[maxslots>0]}")

    assert [
        "A dispatched: S1*2",
        "B dispatched: L1*1 S1*1",
    ] == scenario.session()


@BOTH
def test_the_first_alternative_that_fits_is_taken_and_recorded(plain: bool) -> None:
    """
    Each alternative may mean another count of tasks; the decision says which it was.
    """
    scenario = cluster(
        plain,
        {"name": "L1", "slots": 4, "type": "LINUX"},
        {"name": "S1", "slots": 4, "type": "SOL"},
    )
    ask(scenario, "A", "{8*{type==LINUX}} || {4*{type==SOL}}")

    assert ["A dispatched: S1*4"] == scenario.session()
    allocation = scenario.job("A").allocation
    assert allocation is not None
    assert 2 == allocation.alternative


@BOTH
def test_a_delayed_alternative_opens_so_long_after_submission(plain: bool) -> None:
    """
    Until then it is named as not tried; the core wakes up when it opens.
    """
    scenario = cluster(plain, {"name": "h1", "slots": 2, "mem_mb": 1000})
    ask(scenario, "A", "{select[mem>5000]} || {select[mem>500]}")
    ask(scenario, "B", "{select[mem>5000]} || {select[mem>500]}@5")

    waits = "alternative 2 ALTERNATIVE_WAITS (opens 5m after submission)"
    assert [
        "A dispatched: h1*1",
        f"B pended: alternative 1 HOST_RES_REQ (mem > 5000) on h1; {waits}",
    ] == scenario.session()
    wakeup_us = scenario.core.next_wakeup(scenario.now_us)
    assert scenario.now_us + 300 * 1_000_000 == wakeup_us

    scenario.pass_time(299)
    assert [] == scenario.session()
    scenario.pass_time(1)
    assert ["B dispatched: h1*1"] == scenario.session()


@BOTH
def test_a_delayed_alternative_that_does_not_fit_gives_the_job_new_reasons(plain: bool) -> None:
    """
    The request is another one once an alternative opens, for each job at its own moment.
    """
    scenario = cluster(plain, {"name": "h1", "slots": 2, "mem_mb": 1000})
    ask(scenario, "A", "{select[mem>5000]} || {select[mem>4000]}@5")
    scenario.session()
    scenario.pass_time(60)
    ask(scenario, "B", "{select[mem>5000]} || {select[mem>4000]}@5")
    scenario.session()
    scenario.pass_time(240)

    never = "never: alternative 1 HOST_RES_REQ (mem > 5000) on h1"
    assert [
        f"A pended: {never}; alternative 2 HOST_RES_REQ (mem > 4000) on h1",
    ] == scenario.session()


# --------------------------------------------------------------------------------------- exclusive


@BOTH
def test_an_exclusive_job_needs_an_idle_host_and_closes_it(plain: bool) -> None:
    """
    Nothing shares its hosts, not before and not after.
    """
    scenario = cluster(plain, {"name": "h1", "slots": 4}, {"name": "h2", "slots": 4})
    ask(scenario, "A", hosts="h1")
    scenario.session()
    ask(scenario, "B", exclusive=True)
    ask(scenario, "C", exclusive=True)
    ask(scenario, "D", hosts="h2")

    assert [
        "B dispatched: h2*1",
        "C pended: HOST_EXCLUSIVE on h2; HOST_NONEXCLUSIVE on h1",
        "D pended: HOST_EXCLUSIVE on h2; HOST_USR_SPEC on h1",
    ] == scenario.session()

    scenario.finish("B")

    assert ["C dispatched: h2*1"] == [words for words in scenario.session() if "C" in words]


def test_hosts_are_open_behind_an_exclusive_job_only_as_far_as_they_take_jobs() -> None:
    """
    As if A and B had ended: the host of A is open; that of B was closed meanwhile, and C goes on.
    What is only looked at changes nothing.
    """
    scenario = cluster(False, *({"name": f"h{number}", "slots": 4} for number in range(1, 5)))
    for name, host in (("A", "h1"), ("B", "h2"), ("C", "h3")):
        ask(scenario, name, hosts=host, exclusive=True)
    ask(scenario, "D", hosts="h4")
    scenario.session()
    scenario.close("h2")
    capacity = scenario.state.capacity
    relief, ground = Relief(capacity), Ground(capacity)
    relief.end(scenario.job("A"))
    relief.end(scenario.job("B"))

    ground.differ(relief)

    assert [True, False, False, True] == ground.takes.tolist()
    assert [4, 0, 0, 3] == ground.usable.tolist()
    assert [False, False, False, True] == capacity.takes_jobs.tolist()


# -------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("resreq", "rule"),
    [
        ("rusage[nothing=1]", "no resource nothing"),
        ("select[nothing > 1]", "no resource nothing"),
        ("rusage[r1m=1]", "less of it is better"),
        ("affinity[core(2)]", "counts cores"),
        ("2*{mem>1}", "unlike"),
        ("cu[type=rack]", "cu"),
    ],
)
def test_what_cannot_be_carried_out_is_refused(resreq: str, rule: str) -> None:
    """
    A requirement that would be ignored silently is worse than none.
    """
    scenario = cluster(False, {"name": "h1"})
    if rule == "unlike":
        with pytest.raises(Refused, match="sum of the requirement"):
            ask(scenario, "A", resreq, 3)
        return
    with pytest.raises(Refused, match=rule):
        ask(scenario, "A", resreq)


def test_several_options_are_one_requirement() -> None:
    """
    -R may be given several times; what is stored is parsed once, beside the texts.
    """
    scenario = cluster(False, {"name": "h1", "mem_mb": 4000})
    made = scenario.command(a_job(resreq=("mem>100", "rusage[mem=1GB]")))
    spec = scenario.state.stored.jobs[made[0].stream].spec

    assert ("mem>100", "rusage[mem=1GB]") == spec.resreq
    assert [1024 * 1_024_000] == [need.milli for need in spec.needs]


# ---------------------------------------------------------------------------- hosts shut for a time


def configure(scenario: Scenario, host: str, **values: Any) -> None:
    """
    Set what holds for a host.
    """
    scenario.command(ConfigureWorker(worker=host, settings=HostSettings(**values)))


@BOTH
def test_each_cause_for_which_a_host_takes_no_jobs_has_its_reason(plain: bool) -> None:
    """
    The first cause in LSF's order is the reason: a host outside its window isn't also locked.
    """
    scenario = cluster(plain, *({"name": name} for name in ("h1", "h2", "h3", "h4")))
    shut = parse_windows("8:00-9:00")
    configure(scenario, "h1", is_locked=True)
    configure(scenario, "h2", dispatch_windows=shut)
    configure(scenario, "h3", dispatch_windows=shut, is_locked=True)
    scenario.close("h4")
    ask(scenario, "A")

    assert [
        "A pended: HOST_WINDOW on h2, h3; HOST_DISABLED on h4; HOST_LOCKED on h1",
    ] == scenario.session()
    eight_us = 8 * 3_600 * 1_000_000
    assert eight_us == scenario.core.next_wakeup(scenario.now_us)

    scenario.now_us = eight_us

    assert ["A dispatched: h2*1"] == scenario.session()


@BOTH
def test_a_host_may_bound_the_slots_of_each_user(plain: bool) -> None:
    """
    The host has room, for others.
    """
    scenario = cluster(plain, {"name": "h1", "slots": 4}, {"name": "h2", "slots": 1})
    configure(scenario, "h1", user_slots_max=1)
    for name, user in (("A", "ann"), ("B", "ann"), ("C", "ann"), ("D", "bob")):
        ask(scenario, name, user=user)

    assert [
        "A dispatched: h1*1",
        "B dispatched: h2*1",
        "C pended: slots short on h2; HOST_USR_JLIMIT(host h1 by user,slots) on h1",
        "D dispatched: h1*1",
    ] == scenario.session()


@BOTH
def test_starts_on_a_host_may_be_paced(plain: bool) -> None:
    """
    After a start a host takes no other job for a time, and the core wakes up when that is over.
    """
    scenario = cluster(plain, {"name": "h1", "slots": 4}, accept_interval_us=60_000_000)
    ask(scenario, "A")
    ask(scenario, "B")

    assert ["A dispatched: h1*1", "B pended: HOST_ACCPT_ONE on h1"] == scenario.session()
    assert scenario.now_us + 60_000_000 == scenario.core.next_wakeup(scenario.now_us)

    scenario.pass_time(60)

    assert ["B dispatched: h1*1"] == scenario.session()

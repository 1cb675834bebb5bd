"""
Properties of placement: by columns as literally, for requirements of every kind.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.allocations import Allocation
from domain.amounts import Amount
from domain.commands import DefineResource, WorkerReport
from domain.errors import XceError
from domain.resources import ResourceDescriptor, ResourceScope, SharedTotal
from projections.scheduling.capacity import Capacity
from projections.scheduling.derived import derived
from projections.scheduling.placement.allocators import BUILT_IN
from projections.scheduling.placement.assembly import NUMBERS, stretches
from projections.scheduling.placement.plugins import View
from projections.scheduling.placement.runner import Pending, Placed, PlacementRunner
from projections.scheduling.plugins import Plugins
from projections.scheduling.request import Part
from tests.builders import MB_MILLI, a_host, a_job, some_settings
from tests.examples import examples
from tests.scenario import Scenario

HOSTS = st.lists(
    st.fixed_dictionaries(
        {
            "slots": st.integers(0, 5),
            "ncpus": st.sampled_from(["1", "2", "4"]),
            "mem_mb": st.sampled_from([None, 100, 250, 400]),
            "gpus": st.sampled_from([0, 0, 2]),
            "type": st.sampled_from(["LINUX", "SOL"]),
            "os": st.sampled_from(["rhel7", "rhel8", ""]),
            "fast": st.sampled_from(["yes", ""]),
            "lic": st.sampled_from([None, 1, 3]),
        }
    ),
    max_size=6,
)
CONDITIONS = st.sampled_from(
    [
        "mem>150",
        "mem<=250",
        "slots>1",
        "slots+maxslots>=6",
        "2*slots > maxslots",
        "maxslots>2",
        "fast",
        "!fast",
        "os==rhel8",
        "os!=rhel8",
        "type==LINUX",
        "type!=local",
        "defined(lic)",
        "lic>=1",
        "bw>1",
        "r1m<2",
        "hname!=h1",
        "gpu>0 || fast",
        "!(slots>2 && mem>200)",
    ]
)
SELECTS = st.lists(CONDITIONS, min_size=1, max_size=2).map(
    lambda parts: f"select[{' && '.join(f'({part})' for part in parts)}]"
)
TERMS = st.sampled_from(
    [
        "mem=50",
        "mem=120/task",
        "mem=300/job",
        "mem=80/host",
        "lic=1",
        "lic=1/task",
        "gpu=1",
        "gpu=1/task",
        "bw=1",
        "bw=1/task",
        "bw=1/host",
        "local_bw=1",
        "local_bw=1/task",
        "local_bw=1/host",
        "mem=10:threshold=200",
        "bw=1:threshold=3",
    ]
)
USAGES = st.lists(TERMS, min_size=1, max_size=2, unique_by=lambda term: term.split("=")[0]).map(
    ",".join
)
RUSAGES = st.one_of(
    USAGES.map(lambda usage: f"rusage[{usage}]"),
    st.tuples(USAGES, USAGES).map(lambda both: f"rusage[{both[0]}||{both[1]}]"),
)
SPANS = st.sampled_from(
    [f"span[{form}]" for form in ("hosts=1", "ptile=1", "ptile=2", "ptile=3", "ptile='!'")]
    + [f"span[{form}]" for form in ("block=2", "block=3", "stripe", "stripe=2", "hosts=-1")]
)
ORDERS = st.sampled_from(
    [f"order[{keys}]" for keys in ("slots", "-slots", "mem:slots", "-mem", "r1m:-lic", "maxslots")]
)
SAMES = st.sampled_from(["same[type]", "same[os]", "same[type:os]", "same[maxslots]"])


def simple(*, rusage: Any = RUSAGES) -> st.SearchStrategy[str]:
    """
    Return simple requirements, each section as it comes.
    """
    sections = [st.just("") | section for section in (SELECTS, rusage, SPANS, ORDERS, SAMES)]
    return st.tuples(*sections).map(lambda texts: " ".join(filter(None, texts)))


MEMBERS = st.tuples(
    st.integers(1, 3), simple(rusage=USAGES.map(lambda usage: f"rusage[{usage}]"))
).map(lambda member: f"{member[0]}*{{{member[1]}}}")
COMPOUNDS = st.lists(MEMBERS, min_size=2, max_size=3).map(" + ".join)
BOUND = st.tuples(COMPOUNDS, SAMES).map(lambda both: f"{{{both[0]}}} {both[1]}")
ALTERNATIVES = st.lists(
    st.one_of(simple(rusage=USAGES.map(lambda usage: f"rusage[{usage}]")), COMPOUNDS),
    min_size=2,
    max_size=3,
).map(lambda branches: " || ".join(f"{{{branch}}}" for branch in branches))
REQUIREMENTS = st.one_of(simple(), simple(), COMPOUNDS, BOUND, ALTERNATIVES)
JOBS = st.fixed_dictionaries(
    {
        "tasks": st.integers(1, 8),
        "more": st.integers(0, 5),
        "resreq": REQUIREMENTS,
        "hosts": st.sampled_from(["", "", "", "h0,h1+2", "h1!,h0", "h2,h0!+1"]),
        "exclusive": st.sampled_from([False, False, False, True]),
        "submit_type": st.sampled_from(["", "LINUX"]),
    }
)
CHAINS = st.sampled_from([("parjob", "fill"), ("fill",), ("parjob",)])
SETTINGS = st.fixed_dictionaries(
    {
        "allocators": CHAINS,
        "default_host_type": st.sampled_from(["any", "local"]),
        "reserve_per_task": st.booleans(),
        "parallel_sched_by_slot": st.booleans(),
        "picker": st.sampled_from(["builtin_fcfs", "strict_fcfs"]),
    }
)


def cluster(hosts: list[dict[str, Any]], chosen: dict[str, Any], *, plain: bool) -> Scenario:
    """
    Return a cluster of such hosts with two shared resources.
    """
    values = dict(chosen)
    kind = type(some_settings().default_host_type)
    values["default_host_type"] = kind(values["default_host_type"])
    scenario = Scenario(some_settings(**values), plain=plain)
    known = {"lic": 0, "gpus": 2, "type": "LINUX", "os": "x", "fast": "yes", "mem_mb": 1}
    scenario.command(a_host("known", 0, **known), actor="")
    for name, places in (("bw", ()), ("local_bw", ("h0", "h2"))):
        descriptor = ResourceDescriptor(
            name=name,
            scope=ResourceScope.SHARED,
            is_consumable=True,
            totals=(SharedTotal(total_milli=4_000, hosts=places),),
        )
        scenario.command(DefineResource(descriptor=descriptor))
    for number, host in enumerate(hosts):
        join(scenario, f"h{number}", host)
    return scenario


def join(scenario: Scenario, name: str, host: dict[str, Any]) -> None:
    """
    Let a host join; what is empty is left out.
    """
    values = {key: value for key, value in host.items() if value not in (None, "")}
    scenario.command(a_host(name, **values), actor="")


def submit(scenario: Scenario, job: dict[str, Any]) -> None:
    """
    Submit a job.
    """
    values = {key: value for key, value in job.items() if key not in ("tasks", "more", "resreq")}
    known = scenario.state.stored.workers
    values["hosts"] = ",".join(
        text for text in job["hosts"].split(",") if text.rstrip("!+12") in known
    )
    command = a_job(
        job["tasks"], tasks_max=job["tasks"] + job["more"], resreq=job["resreq"] or (), **values
    )
    made = scenario.command(command)
    job_id = scenario.state.stored.jobs[made[0].stream].job_id
    scenario.ids[job_id] = job_id


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), JOBS),
        st.tuples(st.just("submit"), JOBS),
        st.tuples(st.just("finish"), st.integers(0, 20)),
        st.tuples(st.just("close"), st.integers(0, 5)),
        st.tuples(st.just("open"), st.integers(0, 5)),
        st.tuples(st.just("host"), st.integers(0, 6), HOSTS),
        st.tuples(st.just("load"), st.integers(0, 5), st.integers(0, 300), st.integers(0, 3)),
        st.tuples(st.just("session")),
    ),
    min_size=8,
    max_size=20,
)


def play(scenario: Scenario, step: tuple[Any, ...]) -> None:
    """
    Play one step; what is refused changes nothing.
    """
    try:
        _play(scenario, step)
    except XceError:
        return


def _play(scenario: Scenario, step: tuple[Any, ...]) -> None:
    kind, values = step[0], step[1:]
    workers = scenario.state.hosts
    if kind == "submit":
        submit(scenario, values[0])
    elif kind == "session":
        scenario.session()
    elif kind == "finish":
        live = [job.job_id for job in scenario.state.live.values()]
        if live:
            scenario.finish(live[values[0] % len(live)])
    elif kind == "host" and values[1]:
        join(scenario, f"h{values[0] % (len(workers) + 1)}", values[1][0])
    elif kind in ("close", "open"):
        name = workers[values[0] % len(workers)].name
        (scenario.close if kind == "close" else scenario.open)(name)
    elif kind == "load":
        worker = workers[values[0] % len(workers)]
        load = (
            Amount(resource="mem", milli=values[1] * MB_MILLI),
            Amount(resource="r1m", milli=values[2] * 1_000),
        )
        scenario.command(
            WorkerReport(worker=worker.name, incarnation=worker.incarnation, load=load), actor=""
        )


@settings(max_examples=examples(150), deadline=None)
@given(HOSTS, SETTINGS, STEPS)
def test_requirements_are_decided_by_columns_as_literally(
    hosts: list[dict[str, Any]], chosen: dict[str, Any], steps: list[Any]
) -> None:
    """
    Safety of every short cut: the same commands give the same events, byte for byte.
    """
    fast = cluster(hosts, chosen, plain=False)
    slow = cluster(hosts, chosen, plain=True)
    for step in [*steps, ("session",), ("session",)]:
        play(fast, step)
        play(slow, step)
        assert slow.log == fast.log

    assert slow.core.snapshot() == fast.core.snapshot()


@settings(max_examples=examples(150), deadline=None)
@given(HOSTS, SETTINGS, STEPS, st.lists(JOBS, min_size=1, max_size=4))
def test_a_placement_gives_what_it_says_and_changes_nothing(
    hosts: list[dict[str, Any]], chosen: dict[str, Any], steps: list[Any], jobs: list[Any]
) -> None:
    """
    Both ways give the same outcome, within what hosts have; no counter is touched by trying.
    """
    scenario = cluster(hosts, chosen, plain=False)
    for step in steps:
        play(scenario, step)
    state = scenario.state
    chain = state.settings().allocators
    allocators = Plugins().allocators
    for job in jobs:
        play(scenario, ("submit", job))
    before = everything(scenario)
    for record in [job for job in state.stored.jobs.values() if state.is_ready(job)]:
        request = state.request_of(record)
        fast = PlacementRunner(state.capacity, allocators).place(request, chain)
        slow = PlacementRunner(state.capacity, allocators, plain=True).place(request, chain)
        if isinstance(fast, Placed):
            assert slow == fast
            fits(scenario, fast.allocation)
        else:
            assert isinstance(slow, Pending)
            assert slow.reasons() == fast.reasons()

    assert before == everything(scenario)


def fits(scenario: Scenario, allocation: Allocation) -> None:
    """
    Check that an allocation takes no more than there is.
    """
    capacity = scenario.state.capacity
    numbers = [number for number, _, _ in allocation.shares()]
    assert len(set(numbers)) == len(numbers)
    for number, tasks, amounts in allocation.shares():
        assert tasks <= capacity.usable[number]
        for amount in amounts:
            assert amount.milli <= capacity.resources[amount.resource].available[number]
    for each in allocation.shared:
        assert each.milli <= capacity.pools.by_name[each.resource][each.pool].left


def everything(scenario: Scenario) -> tuple[object, ...]:
    """
    Return every counter of what hosts have left, then those of changes and the whole state.
    """
    capacity = scenario.state.capacity
    counts = (capacity.freed, capacity.changed, capacity.status)
    left = {
        name: value
        for name, value in derived(scenario.state).items()
        if name.startswith("capacity.")
    }
    return left, counts, scenario.core.snapshot()


@settings(max_examples=examples(80), deadline=None)
@given(HOSTS, SETTINGS, STEPS)
def test_what_hosts_have_left_is_the_same_when_it_is_derived_afresh(
    hosts: list[dict[str, Any]], chosen: dict[str, Any], steps: list[Any]
) -> None:
    """
    Incremental = re-derived, for shared resources, units and exclusive hosts too; and a restored
    core decides what the kept one does.
    """
    kept = cluster(hosts, chosen, plain=False)
    for step in steps:
        play(kept, step)
    restored = cluster([], chosen, plain=False)
    restored.core = type(kept.core).restore(kept.core.snapshot())
    restored.now_us, restored.ids = kept.now_us, dict(kept.ids)

    assert everything(kept)[0] == everything(restored)[0]

    mark, begun = len(kept.log), len(restored.log)
    for step in [("session",), *steps, ("session",)]:
        play(kept, step)
        play(restored, step)

    assert kept.log[mark:] == restored.log[begun:]


def _one_by_one(hosts: list[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for host in hosts:
        first, count = found[-1] if found else (-1, 0)
        if count and host == first + count:
            found[-1] = (first, count + 1)
        else:
            found.append((host, 1))
    return found


@settings(max_examples=examples(300))
@given(
    hosts=st.lists(st.integers(0, 60), min_size=1, unique=True)
    | st.integers(0, len(NUMBERS) + 9).flatmap(
        lambda first: st.integers(1, 40).map(lambda size: list(range(first, first + size)))
    )
)
def test_stretches_are_those_found_one_by_one(hosts: list[int]) -> None:
    """
    Comparing bytes, and cutting where numbers don't follow, must give what reading them gives, also
    of hosts in no order and beyond the numbers that are kept.
    """
    assert _one_by_one(hosts) == stretches(np.array(hosts))


@settings(max_examples=examples(300))
@given(
    tasks=st.integers(1, 12),
    fits=st.lists(st.integers(0, 5), min_size=1, max_size=12)
    | st.lists(st.integers(0, 1), min_size=1, max_size=12).map(lambda some: some * 40),
)
def test_built_in_allocators_find_what_their_plans_give(tasks: int, fits: list[int]) -> None:
    """
    The short cuts read columns; the plans, each bucket on the first free host that holds it, are
    what they must agree with.
    """
    view = View(Part(tasks, tasks), Capacity(), np.array(fits), None)
    for member in BUILT_IN:
        if not member.accepts(tasks):
            continue
        picked = member.find(tasks, view, sum(fits))
        found = None if picked is None else [
            (int(host), each) for hosts, each in picked for host in hosts
        ]
        plans = member.plans(tasks, view) or ()
        tried = (_bucket_by_bucket(list(plan.buckets()), fits) for plan in plans)

        assert next((one for one in tried if one is not None), None) == found, member.name


def _bucket_by_bucket(buckets: list[int], fits: list[int]) -> list[tuple[int, int]] | None:
    claimed: list[tuple[int, int]] = []
    for tasks in buckets:
        taken = {host for host, _ in claimed}
        free = (host for host, most in enumerate(fits) if most >= tasks and host not in taken)
        host = next(free, None)
        if host is None:
            return None
        claimed.append((host, tasks))
    return claimed

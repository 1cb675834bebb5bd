"""
Slot reservation: what waits gathers, what it lends comes back in time, and when it gives up.
"""

from __future__ import annotations

import pytest

from domain.amounts import MEM, Amount
from domain.commands import DefineQueue, SetQueue
from domain.errors import Refused
from domain.jobs import HostChoice
from domain.queues import QueueSpec
from domain.reservations import KeptRun
from projections.scheduling.core import Core
from projections.scheduling.derived import derived
from tests.builders import MB_MILLI, SECOND_US, some_settings
from tests.projections.scheduling.policies import limit
from tests.projections.scheduling.preempting import licence
from tests.projections.scheduling.test_modified import change
from tests.scenario import Scenario


@pytest.fixture
def scenario() -> Scenario:
    """
    Return a cluster of one host of four slots, two of them in use until second 101.
    """
    found = Scenario()
    queues = {
        "par": QueueSpec(priority=50, slot_reserve_us=300 * SECOND_US),
        "bf": QueueSpec(priority=40, is_backfill=True),
    }
    for name, spec in queues.items():
        found.command(DefineQueue(queue=name, spec=spec))
    found.hosts("h1 slots=4")
    found.submit("A", tasks_min=2, tasks_max=2, run_limit_us=100 * SECOND_US)
    found.session()
    found.start("A")
    return found


def test_what_is_gathered_is_kept_from_others_and_lent_to_those_that_end_in_time(
    scenario: Scenario,
) -> None:
    """
    B-001, B-002: the wide job is promised second 101; a job of 100 s may run on its slots.
    """
    scenario.jobs("BIG tasks=4 queue=par", "J")
    scenario.submit("SHORT", queue="bf", run_limit_us=100 * SECOND_US)
    scenario.submit("LONG", queue="bf", run_limit_us=101 * SECOND_US)

    assert [
        "BIG gathers h1*2 till 301: 101",
        "BIG pended: slots short on h1",
        "SHORT dispatched: h1*1",
        "LONG pended: slots short on h1",
        "J pended: slots short on h1",
    ] == scenario.session()
    assert scenario.job("BIG").job_id == scenario.job("SHORT").ahead_of
    assert [] == scenario.session(), "what is lent is still promised"

    restored = Core.restore(scenario.core.snapshot())
    assert derived(scenario.state) == derived(restored.state)
    scenario.start("SHORT")
    scenario.pass_time(100)
    scenario.finish("A", "SHORT")
    assert ["BIG dispatched: h1*4"] == scenario.session()


def test_when_time_is_over_everything_is_given_back_for_one_turn(scenario: Scenario) -> None:
    """
    B-003: the next session at a later moment gathers anew.
    """
    scenario.jobs("BIG tasks=4 queue=par", "J tasks=1", "K tasks=2")
    scenario.session()
    assert 301 * SECOND_US >= (scenario.core.next_wakeup(scenario.now_us) or 0)

    scenario.pass_time(300)
    decisions = scenario.session()
    assert "BIG no longer promised" == decisions[1], "behind the run limit of A"
    assert "J dispatched: h1*1" in decisions
    scenario.pass_time(1)
    assert "BIG gathers h1*1 till 602: unknown" == scenario.session()[0]


def test_a_job_that_is_held_gives_everything_back(scenario: Scenario) -> None:
    """
    A promise ends with the waiting.
    """
    scenario.jobs("BIG tasks=4 queue=par", "J tasks=2")
    scenario.session()
    scenario.hold("BIG")

    assert ["J dispatched: h1*2"] == scenario.session()
    assert scenario.job("BIG").promise is None


@pytest.mark.parametrize("why", ["queue", "delay"])
def test_a_job_that_may_not_be_tried_gives_everything_back(scenario: Scenario, why: str) -> None:
    """
    Whether its queue is inactive, or lets its jobs wait for so long before they are tried.
    """
    scenario.jobs("BIG tasks=4 queue=par", "J tasks=2")
    scenario.session()
    if why == "queue":
        scenario.command(SetQueue.model_validate({"queue": "par", "to": "inactive"}))
    else:
        held = {"slot_reserve_us": 300 * SECOND_US, "new_job_delay_us": 1_000 * SECOND_US}
        scenario.command(DefineQueue(queue="par", spec=QueueSpec(priority=50, **held)))

    assert "J dispatched: h1*2" in scenario.session()
    assert scenario.job("BIG").promise is None


def test_a_queue_gathers_slots_or_resources() -> None:
    """
    LSF refuses both at once.
    """
    spec = QueueSpec(priority=1, slot_reserve_us=1, resource_reserve_us=1)
    with pytest.raises(Refused, match="slot_reserve_us"):
        Scenario().command(DefineQueue(queue="x", spec=spec))


@pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
def test_what_a_job_keeps_is_no_limit_to_itself(*, plain: bool) -> None:
    """
    It counts for the limit as soon as it is kept, but slots are what the job waits for.
    """
    scenario = Scenario(plain=plain)
    keeps = QueueSpec(priority=50, slot_reserve_us=300 * SECOND_US)
    scenario.command(DefineQueue(queue="par", spec=keeps))
    scenario.hosts("h1 slots=3", "h2 slots=2")
    scenario.close("h2")
    limit(scenario, "five", users="each all", slots=5)
    scenario.jobs("BIG tasks=5 queue=par")

    assert [
        "BIG gathers h1*3 till 301: unknown",
        "BIG pended: HOST_DISABLED on h2; slots short on h1",
    ] == scenario.session()
    assert [] == scenario.session()
    scenario.open("h2")
    assert ["BIG dispatched: h1*3 h2*2"] == scenario.session()


@pytest.mark.parametrize("picker", ["builtin_fcfs", "fairshare", "shortest_first"])
@pytest.mark.parametrize("plain", [False, True])
def test_what_a_job_gives_back_the_next_like_it_gathers(picker: str, *, plain: bool) -> None:
    """
    That the first one lets its turn pass proves nothing for those that ask for the same: they were
    passed over until something else happened.
    """
    scenario = Scenario(some_settings(picker=picker), plain=plain)
    par = QueueSpec(priority=50, slot_reserve_us=300 * SECOND_US)
    scenario.command(DefineQueue(queue="par", spec=par))
    scenario.hosts("h1 slots=4")
    scenario.jobs("A tasks=2")
    scenario.session()
    scenario.jobs("BIG tasks=4 queue=par", "WIDE tasks=4 queue=par")
    scenario.session()
    assert set(scenario.state.gatherers) == {scenario.job("BIG").stream}
    scenario.pass_time(300)
    scenario.session()

    assert set(scenario.state.gatherers) == {scenario.job("WIDE").stream}
    scenario.core = Core.restore(scenario.core.snapshot(), scenario.core.plugins, plain=plain)
    assert [] == scenario.session()


def test_a_job_whose_turn_has_passed_asks_as_its_like_again(scenario: Scenario) -> None:
    """
    Else it would ask otherwise than in a core that was restored, share no proof with its like, and
    have reasons of its own written down.
    """
    scenario.jobs("BIG tasks=4 queue=par", "J tasks=2")
    scenario.session()
    scenario.pass_time(300)
    assert "J dispatched: h1*2" in scenario.session(), "nothing is left to be gathered"
    scenario.jobs("WIDE tasks=4 queue=par")

    def request(name: str) -> str:
        return scenario.state.request_of(scenario.job(name)).fingerprint

    has_own = request("BIG") != request("WIDE")
    scenario.pass_time(1)
    scenario.session()

    assert has_own
    assert request("WIDE") == request("BIG")


def test_who_plans_plans_anew_when_a_turn_has_passed(scenario: Scenario) -> None:
    """
    Nothing was freed, but the job competes again: promises that were made around it may move, and
    logs hold them decided then.
    """
    scenario.jobs("BIG tasks=4 queue=par", "J tasks=2")
    scenario.session()
    scenario.pass_time(300)
    scenario.session()
    before = scenario.state.freed()
    scenario.pass_time(1)
    scenario.session()

    assert before < scenario.state.freed()


@pytest.mark.parametrize("free", [0, 1])
def test_a_serial_job_gathers_what_is_there_of_what_it_will_need(
    scenario: Scenario, free: int
) -> None:
    """
    Of memory and of what hosts share, where it fits first; no slots, and no more than is free.
    """
    keeps = QueueSpec(priority=50, resource_reserve_us=300 * SECOND_US)
    scenario.command(DefineQueue(queue="res", spec=keeps))
    scenario.hosts("h2 slots=4 mem_mb=100", "h3 slots=4 mem_mb=100")
    licence(scenario, total=2 + free, release=False)
    for name, mem_mb, run_s in (("M", 60, 200), ("N", 70, 300)):
        scenario.submit(
            name, resreq=(f"rusage[mem={mem_mb}:lic=1]",), run_limit_us=run_s * SECOND_US
        )
    scenario.session()
    scenario.submit("WIDE", queue="res", resreq=("rusage[mem=90:lic=2]",))
    scenario.session()
    promise = scenario.job("WIDE").promise

    assert promise is not None
    mem = Amount(resource=MEM, milli=40 * MB_MILLI)
    assert (KeptRun(first=1, hosts=1, slots=0, amounts=(mem,)),) == promise.runs
    assert [("lic", 1000)] * free == [(each.resource, each.milli) for each in promise.shared]
    assert (301, 201)[free] * SECOND_US == promise.start_us


def test_it_starts_when_those_on_its_own_hosts_have_ended() -> None:
    """
    It waits for no other hosts, though those are free earlier: what it keeps is kept to the end.
    """
    scenario = Scenario()
    keeps = QueueSpec(priority=50, slot_reserve_us=300 * SECOND_US)
    scenario.command(DefineQueue(queue="par", spec=keeps))
    scenario.hosts("h2 slots=2", "h1 slots=2")
    scenario.submit("A", run_limit_us=100 * SECOND_US, hosts=(HostChoice(host="h1"),))
    for name in ("B", "C"):
        scenario.submit(name, run_limit_us=50 * SECOND_US, hosts=(HostChoice(host="h2"),))
    scenario.session()
    scenario.jobs("BIG tasks=2 queue=par")

    assert "BIG gathers h1*1 till 301: 101" == scenario.session()[0]


def test_a_job_that_was_promised_its_start_gathers_for_the_whole_time_from_now() -> None:
    """
    The picker's promise has no end; one that goes on gathering keeps the end that it has.
    """
    scenario = Scenario(some_settings(picker="conservative"))
    scenario.command(DefineQueue(queue="par", spec=QueueSpec(priority=50)))
    scenario.hosts("h1 slots=4")
    scenario.submit("A", tasks_min=2, tasks_max=2, run_limit_us=1_000 * SECOND_US)
    scenario.session()
    scenario.jobs("BIG tasks=4 queue=par")
    scenario.session()
    promise = scenario.job("BIG").promise
    assert promise is not None
    assert not promise.is_held
    scenario.pass_time(10)
    keeps = QueueSpec(priority=50, slot_reserve_us=300 * SECOND_US)
    scenario.command(DefineQueue(queue="par", spec=keeps))

    assert "BIG gathers h1*2 till 311: 1001" in scenario.session()


def test_a_request_of_several_parts_gathers_no_slots(scenario: Scenario) -> None:
    """
    Which of its parts would need them is open until all of them fit.
    """
    both = ("2*{span[hosts=1]}+2*{span[hosts=1]}",)
    scenario.submit("BIG", queue="par", tasks_min=4, tasks_max=4, resreq=both)
    scenario.jobs("J tasks=2")

    assert "J dispatched: h1*2" in scenario.session()
    assert scenario.job("BIG").promise is None


@pytest.mark.parametrize("asked", [2, 3])
def test_a_job_gathers_what_hosts_share_alone_and_nothing_where_it_never_fits(
    scenario: Scenario, asked: int
) -> None:
    """
    More than there is of it is kept for nobody, and no fault of the job's.
    """
    keeps = QueueSpec(priority=50, resource_reserve_us=300 * SECOND_US)
    scenario.command(DefineQueue(queue="res", spec=keeps))
    licence(scenario, total=2, release=False)
    scenario.submit("M", resreq=("rusage[lic=1]",), run_limit_us=200 * SECOND_US)
    scenario.session()
    scenario.submit("WIDE", queue="res", resreq=(f"rusage[lic={asked}]",))
    scenario.session()
    promise = scenario.job("WIDE").promise

    assert ("never: " if asked == 3 else "") + "RES_SHORT lic" == scenario.reasons("WIDE")
    if asked == 2:
        assert promise is not None
        assert ((), [1000]) == (promise.runs, [each.milli for each in promise.shared])
    else:
        assert promise is None


@pytest.mark.parametrize(("slots", "decided"), [
    (6, "J pended: RES_LIMIT(some,slots)"), (7, "J dispatched: h2*3"),
])  # fmt: skip
def test_what_a_job_keeps_counts_for_its_users_other_jobs(slots: int, decided: str) -> None:
    """
    As if it had started: two slots are in use, two are kept, and three more are asked for.
    """
    scenario = Scenario()
    keeps = QueueSpec(priority=50, slot_reserve_us=300 * SECOND_US)
    scenario.command(DefineQueue(queue="par", spec=keeps))
    scenario.hosts("h1 slots=4", "h2 slots=4")
    limit(scenario, "some", users="each all", slots=slots)
    scenario.jobs("A tasks=2")
    scenario.session()
    scenario.jobs("BIG tasks=4 queue=par hosts=h1", "J tasks=3")
    decisions = scenario.session()

    assert [True, True] == ["BIG gathers h1*2 till 301: unknown" in decisions, decided in decisions]
    folded = Core()
    for stamped in scenario.log:
        folded.apply(stamped)
    assert scenario.state.limits.in_use() == folded.state.limits.in_use()


def test_a_promise_that_moves_is_no_giving_up() -> None:
    """
    Only who has kept something gives it back, and lets others have their turn.
    """
    scenario = Scenario(some_settings(picker="conservative"))
    scenario.hosts("h1 slots=4")
    scenario.submit("A", tasks_min=4, tasks_max=4, run_limit_us=100 * SECOND_US)
    scenario.session()
    scenario.start("A")
    scenario.jobs("BIG tasks=4")
    scenario.session()
    first = scenario.job("BIG").promise
    change(scenario, "A", run_limit_us=200 * SECOND_US)
    scenario.session()

    assert first is not None
    assert scenario.job("BIG").promise not in (None, first)
    assert {} == scenario.state.gave_up


@pytest.mark.parametrize(("queue", "run_s"), [("normal", 10), ("bf", None), ("bf", 101)])
def test_nothing_is_lent_to_a_job_that_may_not_end_in_time(
    scenario: Scenario, queue: str, run_s: int | None
) -> None:
    """
    Its queue must let it, and its run limit tell when it ends.
    """
    scenario.jobs("BIG tasks=4 queue=par")
    scenario.submit("J", queue=queue, run_limit_us=run_s and run_s * SECOND_US)

    assert "J pended: slots short on h1" in scenario.session()


def test_nothing_is_lent_by_a_job_whose_start_nobody_knows() -> None:
    """
    What runs on its hosts may end at any moment.
    """
    scenario = Scenario()
    keeps = QueueSpec(priority=50, slot_reserve_us=300 * SECOND_US)
    scenario.command(DefineQueue(queue="par", spec=keeps))
    scenario.command(DefineQueue(queue="bf", spec=QueueSpec(priority=40, is_backfill=True)))
    scenario.hosts("h1 slots=4")
    scenario.jobs("A tasks=2")
    scenario.session()
    scenario.jobs("BIG tasks=4 queue=par")
    scenario.submit("J", queue="bf", run_limit_us=SECOND_US)

    assert "J pended: slots short on h1" in scenario.session()


def test_what_is_gathered_of_what_hosts_share_is_kept_from_others(scenario: Scenario) -> None:
    """
    Of three licences two are in use, and the third is kept.
    """
    keeps = QueueSpec(priority=50, resource_reserve_us=300 * SECOND_US)
    scenario.command(DefineQueue(queue="res", spec=keeps))
    licence(scenario, total=3, release=False)
    scenario.submit("M", resreq=("rusage[lic=2]",), run_limit_us=200 * SECOND_US)
    scenario.session()
    scenario.submit("WIDE", queue="res", resreq=("rusage[lic=2]",))
    scenario.submit("J", resreq=("rusage[lic=1]",))
    told = scenario.session()

    assert scenario.job("WIDE").stream in scenario.state.gatherers
    assert "J pended: RES_SHORT lic" in told

"""
Fairshare: what is remembered of past use, and what follows from it.
"""

from __future__ import annotations

import json

import pytest

from domain.commands import DefineQueue, MarkUnreachable
from domain.commands.policies import DefineGroup
from domain.errors import InvariantBroken, Refused
from domain.fairshare import HOUR_US, Fairshare, ShareNode, decayed, parse_shares
from domain.groups import GroupSpec
from domain.queues import QueueSpec
from projections.scheduling.core import Core
from projections.scheduling.snapshot import load_state
from tests.builders import SECOND_US, some_settings
from tests.scenario import Scenario

EQUAL = (ShareNode(name="default", shares=1),)


def shared(**changes: object) -> Scenario:
    """
    Return a cluster with one slot and a shared queue.
    """
    scenario = Scenario(some_settings(picker="fairshare"))
    rules = Fairshare.model_validate({"shares": EQUAL, **changes})
    scenario.command(DefineQueue(queue="normal", spec=QueueSpec(priority=30, fairshare=rules)))
    scenario.hosts("h1 slots=1")
    return scenario


def ran(scenario: Scenario, name: str, user: str, seconds: int) -> None:
    """
    Let a job of a user run.
    """
    scenario.jobs(f"{name} user={user}")
    scenario.session()
    scenario.start(name)
    scenario.pass_time(seconds)
    scenario.finish(name)


def test_past_runs_are_remembered_where_they_count() -> None:
    """
    The document changes with the event that ends the run, and decides who comes next.
    """
    scenario = shared(counts_past_runs=True)
    ran(scenario, "A", "ann", 100)

    kept = scenario.state.stored.documents["fairshare/normal/default/ann"]
    expected = {"at_us": scenario.now_us, "cpu_us": 0, "run_us": 100 * SECOND_US}
    assert (1, expected) == (kept.version, json.loads(kept.text))
    assert kept.text == json.dumps(expected, sort_keys=True, separators=(",", ":"))

    scenario.jobs("B user=ann", "C user=bob")
    assert ["C dispatched: h1*1"] == scenario.session()[:1]


@pytest.mark.parametrize("shares", ["ann=1 default=1", "ann=1 staff@=1"])
def test_each_user_of_default_and_of_a_group_stands_beside_those_named(shares: str) -> None:
    """
    LSF's ``default`` and ``g@`` give shares to each user, not one account to all of them.
    """
    scenario = Scenario(some_settings(picker="fairshare"))
    scenario.command(DefineGroup(group="staff", spec=GroupSpec(members=("bob", "eve"))))
    rules = Fairshare(shares=parse_shares(shares))
    scenario.command(DefineQueue(queue="normal", spec=QueueSpec(priority=30, fairshare=rules)))
    scenario.hosts("h1 slots=3")
    scenario.jobs("B user=bob", "E user=eve", "A user=ann", "B2 user=bob")

    started = scenario.session()[:3]
    assert ["B dispatched: h1*1", "E dispatched: h1*1", "A dispatched: h1*1"] == started


def test_past_runs_are_forgotten_where_they_dont_count() -> None:
    """
    LSF's default: only what runs counts, and processor time.
    """
    scenario = shared()
    ran(scenario, "A", "ann", 100)

    scenario.jobs("B user=ann", "C user=bob")
    assert ["B dispatched: h1*1"] == scenario.session()[:1]


def test_a_restored_core_goes_on_with_the_same_documents() -> None:
    """
    Use outlives a session and a restart.
    """
    scenario = shared(counts_past_runs=True, run_time_decays=True)
    ran(scenario, "A", "ann", 100)
    ran(scenario, "A2", "ann", 5_000)
    restored = Core.restore(scenario.core.snapshot())

    assert restored.state.stored.documents == scenario.state.stored.documents
    assert restored.snapshot() == scenario.core.snapshot()


def test_a_session_can_not_change_a_document() -> None:
    """
    A session without a decision changes nothing, so what outlives it changes by events only.
    """
    scenario = shared()

    with pytest.raises(InvariantBroken, match="while events are applied"):
        scenario.state.remember("x", 1, "{}")


@pytest.mark.parametrize(
    ("amount", "age_us", "expected"),
    [
        (HOUR_US, 5 * HOUR_US, 360_000_000),
        (HOUR_US, 0, HOUR_US),
        (HOUR_US, 400 * HOUR_US, 0),
        (0, 5, 0),
    ],
)
def test_a_tenth_is_left_after_the_time_of_history(
    amount: int, age_us: int, expected: int
) -> None:
    """
    Whole numbers throughout: the same on every machine.
    """
    assert abs(decayed(amount, age_us, 5 * HOUR_US) - expected) <= 1


def test_what_is_left_never_grows_with_age() -> None:
    """
    Fixed-point roots are rounded down, always in the same way.
    """
    left = [decayed(HOUR_US, minutes * 60 * SECOND_US, 5 * HOUR_US) for minutes in range(900)]

    assert left == sorted(left, reverse=True)
    assert left[0] > left[300] > left[-1] > 0


def test_shares_that_name_somebody_twice_are_refused() -> None:
    """
    One clear error, nothing taken over.
    """
    scenario = shared()
    twice = (ShareNode(name="ann", shares=1), ShareNode(name="ann", shares=2))

    with pytest.raises(Refused, match="once a level"):
        scenario.command(
            DefineQueue(queue="x", spec=QueueSpec(priority=1, fairshare=Fairshare(shares=twice)))
        )
    assert "x" not in scenario.state.stored.queues


def test_queues_that_share_accounts_are_one_list() -> None:
    """
    FAIRSHARE_QUEUES: what a user has in one queue counts in the other.
    """
    scenario = shared()
    scenario.hosts("h2 slots=1")
    child = QueueSpec(priority=30, fairshare=Fairshare(accounts_of="normal"))
    scenario.command(DefineQueue(queue="child", spec=child))
    scenario.jobs("A user=ann", "B user=ann queue=child", "C user=bob queue=child")

    assert ["A dispatched: h1*1", "C dispatched: h2*1"] == scenario.session()[:2]


def test_queues_of_several_priorities_that_share_accounts_are_one_list() -> None:
    """
    Though lists are made by priority where the cluster's picker is another one.
    """
    scenario = Scenario(some_settings())
    scenario.hosts("h1 slots=3")
    shares = (ShareNode(name="ann", shares=1), ShareNode(name="bob", shares=1))
    parent = QueueSpec(priority=50, picker="fairshare", fairshare=Fairshare(shares=shares))
    rules = Fairshare(accounts_of="parent")
    child = QueueSpec(priority=20, picker="fairshare", fairshare=rules)
    scenario.command(DefineQueue(queue="parent", spec=parent))
    scenario.command(DefineQueue(queue="child", spec=child))
    scenario.jobs("A user=ann queue=child")
    assert ["A dispatched: h1*1"] == scenario.session()

    scenario.jobs("B user=ann queue=parent", "C user=bob queue=child", "D user=bob queue=parent")

    assert ["D dispatched: h1*1", "B dispatched: h1*1"] == scenario.session()[:2]


def test_a_job_that_begins_to_gather_as_it_is_tried_keeps_its_turn() -> None:
    """
    What it gathers is recorded while it is being tried: it is another entry then, but the same job.
    """
    scenario = Scenario(some_settings(picker="strict_fcfs", allocators=("fill",)))
    scenario.hosts("h0 slots=1", "h1 slots=1")
    scenario.command(MarkUnreachable(worker="h0", silent_us=5, incarnation=1))
    gathers = QueueSpec(priority=40, picker="fairshare", slot_reserve_us=60 * SECOND_US)
    scenario.command(DefineQueue(queue="other", spec=gathers))
    scenario.jobs("A tasks=2")
    scenario.session()
    scenario.jobs("B tasks=6 queue=other")

    said = scenario.session()

    assert [words for words in said if words.startswith("B gathers h1*1")]
    assert [words for words in said if words.startswith("B pended: never")]


def test_shares_are_written_as_names_with_counts() -> None:
    """
    Groups have their members in brackets; ``g@`` means each of its members.
    """
    assert (
        ShareNode(name="ann", shares=10),
        ShareNode(name="staff@", shares=5),
        ShareNode(
            name="g",
            shares=3,
            members=(ShareNode(name="bob", shares=1), ShareNode(name="eve", shares=2)),
        ),
        ShareNode(name="default", shares=1),
    ) == parse_shares("ann=10 staff@=5 g=3(bob=1 eve=2) default=1")


@pytest.mark.parametrize("text", ["ann", "ann=0", "(ann=1)", "g=1(ann=1", "ann=1)", "a=1 b"])
def test_shares_that_arent_understood_are_refused(text: str) -> None:
    """
    One clear error, whatever is wrong.
    """
    with pytest.raises(Refused, match=r"fairshare\.shares"):
        parse_shares(text)


@pytest.mark.parametrize(
    "text",
    ["root=10,default=1", "root=10 ,default=1", "a=1;b=2", "a=1/b=2", "/a=1", "g=1[b=1]",
     "g=1(b=1,c=1)", "a=1b=2", "a=1,", "a,b=1", f"{'a' * 129}=1"],
)  # fmt: skip
def test_shares_that_blanks_dont_separate_are_refused_with_an_example(text: str) -> None:
    """
    A comma was the beginning of a user's name, whom nobody ever is.
    """
    with pytest.raises(Refused, match=r"separated by blanks.* such as ann=10"):
        parse_shares(text)


def test_shares_of_too_many_levels_are_refused() -> None:
    """
    They were taken and recorded, and then no snapshot that held them could be read.
    """
    for levels in (21, 20_000):
        with pytest.raises(Refused, match=r"fairshare\.shares: must have at most 20 levels"):
            parse_shares("g=1(" * (levels - 1) + "a=1" + ")" * (levels - 1))
    most = parse_shares("g=1(" * 19 + "a=1" + ")" * 19)
    scenario = shared()
    for queue, shares in (("y", most), ("x", (ShareNode(name="h", shares=1, members=most),))):
        spec = QueueSpec(priority=1, fairshare=Fairshare(shares=shares))
        if queue == "y":
            scenario.command(DefineQueue(queue=queue, spec=spec))
            continue
        with pytest.raises(Refused, match=r"fairshare\.shares: must have at most 20 levels"):
            scenario.command(DefineQueue(queue=queue, spec=spec))

    assert load_state(scenario.core.snapshot()).queues["y"].spec.fairshare is not None
    assert "x" not in scenario.state.stored.queues


def test_shares_that_name_what_nobody_can_be_called_are_refused() -> None:
    """
    Also when they come as JSON.
    """
    scenario = shared()
    odd = Fairshare(shares=(ShareNode(name=",default", shares=1),))

    with pytest.raises(Refused, match=r"fairshare\.shares"):
        scenario.command(DefineQueue(queue="x", spec=QueueSpec(priority=1, fairshare=odd)))
    assert "x" not in scenario.state.stored.queues

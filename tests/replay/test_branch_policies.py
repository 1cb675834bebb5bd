"""
Limits, groups, projects and profiles in a branch: definitions are taken in again as commands.
"""

from __future__ import annotations

from domain.commands import DefineResource, RemoveLimit, RemoveQueue
from domain.events.jobs import JobDispatched
from domain.events.limits import LimitDefined
from domain.resources import ResourceDescriptor
from domain.thresholds import LoadThreshold
from replay.branch import Branch
from replay.branch_changes import Changes
from tests.projections.scheduling.policies import group, limit, profile, project, queue
from tests.replay.logs import ListLog
from tests.replay.test_branch import is_the_parent
from tests.scenario import Scenario


def a_parent() -> ListLog:
    """
    Return the log of jobs that wait for a limit until it is removed, and for a project's member.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=4")
    scenario.queue("spare", 10)
    group(scenario, "g1", "alice bob")
    profile(scenario, "app", tasks_min=2)
    project(scenario, "p", groups="g1", slots=4)
    limit(scenario, "l1", users="each all", slots=2)
    for name, user in (("A", "alice"), ("B", "alice"), ("C", "bob")):
        scenario.submit(name, user=user, project="p", profile="app")
    for name, seconds in (("A", 10), ("C", 5)):
        scenario.session()
        scenario.pass_time(1)
        scenario.start(name)
        scenario.pass_time(seconds)
    scenario.command(RemoveLimit(limit="l1"), actor="root")
    scenario.command(RemoveQueue(queue="spare"), actor="root")
    queue(scenario, "normal", slots=4)
    scenario.session()
    for name in ("A", "C", "B"):
        scenario.pass_time(2)
        if name == "B":
            scenario.start(name)
            scenario.pass_time(1)
        scenario.finish(name)
        scenario.session()
    return ListLog(scenario.log)


def test_a_branch_without_a_change_is_its_parent_at_every_position() -> None:
    """
    Whatever is defined and removed meanwhile.
    """
    parent = a_parent()

    every = range(4, parent.head())
    assert [] == [position for position in every if not is_the_parent(parent, position)]


def test_without_the_limit_a_branch_starts_its_job_at_once() -> None:
    """
    Dropping the definition drops what it did; its removal then finds nothing, and is told so.
    """
    parent = a_parent()
    defined = parent.where(LimitDefined, 1)
    branch = Branch(parent, defined - 1, changes=Changes(dropped=frozenset({defined})))
    child = ListLog([], branch.log_id)

    result = branch.run(child)

    first = next(one for one in child.events if isinstance(one.event, JobDispatched))
    started = [
        one.stream
        for one in child.events
        if isinstance(one.event, JobDispatched) and one.time_us == first.time_us
    ]
    assert ["job:0000000001", "job:0000000002"] == started
    assert "limit.removed" in {each.what for each in result.not_taken}


def test_a_queue_that_is_not_changed_is_not_checked_again() -> None:
    """
    What its conditions name may have become something else since; that is no fault of the branch.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=4")
    foo = ResourceDescriptor(name="foo")
    scenario.command(DefineResource(descriptor=foo), actor="root")
    threshold = LoadThreshold(index="foo", sched_milli=2_000, stop_milli=1_000)
    queue(scenario, "careful", thresholds=(threshold,))
    turned = foo.model_copy(update={"lower_is_better": True})
    scenario.command(DefineResource(descriptor=turned), actor="root")
    scenario.jobs("A")
    scenario.session()
    parent = ListLog(scenario.log)

    assert is_the_parent(parent, parent.head(), is_over=False)

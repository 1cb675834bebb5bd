"""
Projects and user groups: who may submit, what counts for whom, and what a change takes away.
"""

from __future__ import annotations

import pytest

from domain.commands import (
    DefineCluster,
    DefineGroup,
    DefineProject,
    RemoveGroup,
    RemoveProject,
)
from domain.errors import Denied, Refused
from domain.groups import GroupSpec
from domain.projects import ProjectSpec
from tests.builders import some_settings
from tests.projections.scheduling.policies import group, limit, project, queue
from tests.projections.scheduling.test_limits import decided
from tests.scenario import Scenario


def submit(scenario: Scenario, name: str, user: str, path: str = "", **more: object) -> None:
    """
    Submit a job for a project.
    """
    scenario.submit(name, user=user, project=path, **more)


def test_without_projects_everything_is_allowed(scenario: Scenario) -> None:
    """
    A project is only a label then.
    """
    scenario.hosts("h1 slots=4")
    submit(scenario, "A", "u1", "whatever")

    assert decided(scenario) == ["A dispatched: h1*1"]


def test_submission_needs_membership_of_that_very_project(scenario: Scenario) -> None:
    """
    Neither a part nor the whole gives a right to the other.
    """
    project(scenario, "/a", "u1")
    project(scenario, "/a/b", "u2")
    submit(scenario, "A", "u1", "/a")
    submit(scenario, "B", "u2", "/a/b")

    for user, path in (("u1", "/a/b"), ("u2", "/a"), ("u3", "/a"), ("u1", "/nowhere"), ("u1", "")):
        with pytest.raises(Denied) as denied:
            submit(scenario, "C", user, path)
        assert denied.value.field == "project"


def test_a_refusal_says_which_membership_is_missing_and_what_helps(scenario: Scenario) -> None:
    """
    Who named no project hears which one was meant; who has another one, or none, hears that too.
    """
    group(scenario, "staff", "u9")
    project(scenario, "/a", "u1", groups="staff")
    project(scenario, "/b", "u2")
    scenario.command(DefineCluster(settings=some_settings(default_project="/a")))

    def hint(user: str, path: str = "") -> str:
        with pytest.raises(Denied) as denied:
            submit(scenario, "C", user, path)
        return denied.value.hint or ""

    why = "isn't among its users (u1) nor in one of its groups (staff)."
    assert (
        f"Nothing named a project, and /a is the default. u2 {why} u2 is a member of /b: name one. "
        'An administrator makes u2 one: xce define project /a users="u1 u2".'
    ) == hint("u2")
    assert hint("u3", "/a").startswith(f"u3 {why} An administrator")
    assert "No such project is defined. u2 is a member of /b: name one." == hint("u2", "/c")
    assert "No such project is defined. u3 is a member of none." == hint("u3", "/c")


def test_of_many_members_a_refusal_names_some(scenario: Scenario) -> None:
    """
    What it advises must not drop those that aren't named.
    """
    project(scenario, "/a", " ".join(f"u{number}" for number in range(20)))

    with pytest.raises(Denied) as denied:
        submit(scenario, "C", "eve", "/a")

    assert "u7 and 12 more)" in str(denied.value.hint)
    assert str(denied.value.hint).endswith("xce definitions project /a shows them.")


def test_a_name_that_nothing_has_is_refused_with_those_that_there_are(scenario: Scenario) -> None:
    """
    A mistyped group would keep its members out in silence.
    """
    group(scenario, "staff", "u1")

    with pytest.raises(Refused) as refused:
        project(scenario, "/a", groups="stuff")

    assert ("groups", "stuff") == (refused.value.field, refused.value.value)
    assert "There are: staff." == refused.value.hint


def test_members_may_come_through_groups(scenario: Scenario) -> None:
    """
    Also through groups of groups.
    """
    group(scenario, "inner", "u1")
    group(scenario, "outer", "inner")
    project(scenario, "p1", groups="outer")

    submit(scenario, "A", "u1", "p1")
    with pytest.raises(Denied):
        submit(scenario, "B", "u2", "p1")


def test_a_job_without_a_project_gets_the_groups_then_the_clusters(scenario: Scenario) -> None:
    """
    The queue's goes before both.
    """
    scenario.hosts("h1 slots=9")
    for path in ("pq", "pg", "pc"):
        project(scenario, path, "u1 u2", jobs=1)
    scenario.queue("other", 30)
    queue(scenario, "other", project="pq")
    group(scenario, "g1", "u1", default_project="pg")
    scenario.command(DefineCluster(settings=some_settings(default_project="pc")))
    submit(scenario, "A", "u1")
    submit(scenario, "B", "u2")
    submit(scenario, "C", "u2", queue="other")
    decided(scenario)

    assert sorted(name for name, _, _ in scenario.state.limits.in_use()) == [
        "project pc",
        "project pg",
        "project pq",
    ]


def test_quotas_count_for_every_project_above(scenario: Scenario) -> None:
    """
    The parts of a project take from its quota; one part's own quota doesn't bind another.
    """
    scenario.hosts("h1 slots=9")
    project(scenario, "/a", "u1", slots=3)
    project(scenario, "/a/b", "u1", slots=2)
    project(scenario, "/a/c", "u1")
    submit(scenario, "A", "u1", "/a/b", tasks_min=2, tasks_max=2)
    submit(scenario, "B", "u1", "/a/b")
    submit(scenario, "C", "u1", "/a/c")
    submit(scenario, "D", "u1", "/a")

    assert decided(scenario) == [
        "A dispatched: h1*2",
        "B pended: RES_LIMIT(project /a/b,slots)",
        "C dispatched: h1*1",
        "D pended: RES_LIMIT(project /a,slots)",
    ]


def test_more_than_a_quota_above_ever_allows_is_refused(scenario: Scenario) -> None:
    """
    The ceiling is named.
    """
    project(scenario, "/a", "u1", slots=3)
    project(scenario, "/a/b", "u1")

    with pytest.raises(Refused, match="project /a ever allows"):
        submit(scenario, "A", "u1", "/a/b", tasks_min=4, tasks_max=4)


def test_a_waiting_job_whose_right_was_taken_away_is_held_with_a_reason(
    scenario: Scenario,
) -> None:
    """
    It starts when the right is given back.
    """
    scenario.hosts("h1 slots=1")
    project(scenario, "p1", "u1 u2")
    submit(scenario, "A", "u1", "p1")
    submit(scenario, "B", "u2", "p1")
    decided(scenario)
    scenario.finish("A")
    project(scenario, "p1", "u1")

    assert decided(scenario) == ["B pended: PROJECT_NO_RIGHT"]

    project(scenario, "p1", "u1 u2")
    assert decided(scenario) == ["B dispatched: h1*1"]


def test_a_right_through_a_group_is_lost_with_the_group(scenario: Scenario) -> None:
    """
    Changing a group is changing the rights of its members.
    """
    scenario.hosts("h1 slots=4")
    group(scenario, "g1", "u1")
    project(scenario, "p1", groups="g1")
    submit(scenario, "A", "u1", "p1")
    group(scenario, "g1", "u2")

    assert decided(scenario) == ["A pended: PROJECT_NO_RIGHT"]


def test_a_closed_project_takes_no_jobs_and_starts_none(scenario: Scenario) -> None:
    """
    Its running jobs go on.
    """
    scenario.hosts("h1 slots=1")
    project(scenario, "p1", "u1")
    submit(scenario, "A", "u1", "p1")
    submit(scenario, "B", "u1", "p1")
    decided(scenario)
    project(scenario, "p1", "u1", is_open=False)

    with pytest.raises(Denied):
        submit(scenario, "C", "u1", "p1")
    assert decided(scenario) == ["B pended: PROJECT_CLOSED"]
    assert scenario.states()["A"] == "RUN"


def test_the_first_project_holds_back_jobs_that_name_none(scenario: Scenario) -> None:
    """
    From then on rights are needed.
    """
    scenario.hosts("h1 slots=4")
    scenario.jobs("A")
    project(scenario, "p1", "u1")

    assert decided(scenario) == ["A pended: PROJECT_NO_RIGHT"]

    scenario.command(RemoveProject(project="p1"))
    assert decided(scenario) == ["A dispatched: h1*1"]


def test_a_project_needs_the_one_above_it(scenario: Scenario) -> None:
    """
    And one with parts can't be removed.
    """
    with pytest.raises(Refused):
        project(scenario, "/a/b", "u1")
    project(scenario, "/a", "u1")
    project(scenario, "/a/b", "u1")

    with pytest.raises(Refused, match="no parts"):
        scenario.command(RemoveProject(project="/a"))


def test_a_project_names_groups_that_exist(scenario: Scenario) -> None:
    """
    A misspelt one would give a right to nobody.
    """
    with pytest.raises(Refused):
        scenario.command(DefineProject(project="p1", spec=ProjectSpec(groups=("g9",))))


def test_a_group_cant_be_in_itself(scenario: Scenario) -> None:
    """
    Not through others either.
    """
    group(scenario, "g1", "g2")

    with pytest.raises(Refused, match="itself"):
        scenario.command(DefineGroup(group="g2", spec=GroupSpec(members=("g1",))))


def test_a_group_that_a_project_names_stays(scenario: Scenario) -> None:
    """
    Removing it would take rights away silently.
    """
    group(scenario, "g1", "u1")
    project(scenario, "p1", groups="g1")

    with pytest.raises(Refused):
        scenario.command(RemoveGroup(group="g1"))


def test_a_limit_of_projects_means_those_named(scenario: Scenario) -> None:
    """
    Without definitions they are labels.
    """
    scenario.hosts("h1 slots=9")
    limit(scenario, "l1", projects="p1", jobs=1)
    submit(scenario, "A", "u1", "p1")
    submit(scenario, "B", "u2", "p1")
    submit(scenario, "C", "u1", "p2")

    assert decided(scenario) == [
        "A dispatched: h1*1",
        "B pended: RES_LIMIT(l1,jobs)",
        "C dispatched: h1*1",
    ]


def test_a_queue_takes_jobs_of_its_users_only(scenario: Scenario) -> None:
    """
    Named, or through a group; others are refused.
    """
    group(scenario, "g1", "u2")
    queue(scenario, users="u1 g1")
    scenario.jobs("A user=u1", "B user=u2")

    with pytest.raises(Denied, match="doesn't take jobs of this user"):
        scenario.jobs("C user=u3")


def test_a_waiting_job_whose_queue_no_longer_takes_its_user_is_held(scenario: Scenario) -> None:
    """
    As with projects.
    """
    scenario.hosts("h1 slots=4")
    scenario.jobs("A user=u1", "B user=u2")
    queue(scenario, users="all ~u1")

    assert decided(scenario) == ["A pended: QUE_NO_RIGHT", "B dispatched: h1*1"]

"""
Slots of queues, users and groups: LSF's older limits, with reasons of their own.
"""

from __future__ import annotations

import pytest

from domain.commands import DefineUser
from domain.users import UserSpec
from tests.projections.scheduling.policies import group, queue
from tests.projections.scheduling.test_limits import decided
from tests.scenario import Scenario


@pytest.mark.parametrize(
    ("fields", "jobs", "told"),
    [
        ({"slots": 2}, ("A", "B tasks=2", "C", "D"), ("QUE_PJOB_LIMIT", "QUE_JOB_LIMIT")),
        (
            {"user_slots": 2},
            ("A", "B tasks=2", "C", "D"),
            ("QUE_USR_PJLIMIT", "QUE_USR_JLIMIT"),
        ),
    ],
)
def test_slots_of_a_queue_have_lsfs_own_reasons(
    scenario: Scenario, fields: dict[str, int], jobs: tuple[str, ...], told: tuple[str, str]
) -> None:
    """
    One for jobs of one task, another for parallel ones.
    """
    scenario.hosts("h1 slots=8")
    queue(scenario, **fields)
    scenario.jobs(*jobs)
    name = "queue normal by user" if "user_slots" in fields else "queue normal"

    assert decided(scenario) == [
        "A dispatched: h1*1",
        f"B pended: {told[0]}({name},slots)",
        "C dispatched: h1*1",
        f"D pended: {told[1]}({name},slots)",
    ]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"host_slots": 1}, "QUE_HOST_JLIMIT(queue normal by host,slots)"),
        ({"processor_slots_milli": 250}, "QUE_PROC_JLIMIT(queue normal by processor,slots)"),
        ({"host_jobs": 1}, "RES_LIMIT(queue normal by host,jobs)"),
    ],
)
def test_what_a_queue_may_have_on_a_host_is_a_reason_of_the_host(
    scenario: Scenario, fields: dict[str, int], told: str
) -> None:
    """
    Other queues' jobs don't count.
    """
    scenario.hosts("h1 slots=4", "h2 slots=4")
    scenario.queue("other", 40)
    queue(scenario, **fields)
    scenario.jobs("O queue=other", "A", "B", "C")

    assert decided(scenario) == [
        "O dispatched: h1*1",
        "A dispatched: h1*1",
        "B dispatched: h2*1",
        f"C pended: {told} on h1, h2",
    ]


def test_slots_of_a_user_count_in_all_queues(scenario: Scenario) -> None:
    """
    LSF's MAX_JOBS of a user.
    """
    scenario.hosts("h1 slots=8")
    scenario.command(DefineUser(user="u1", spec=UserSpec(slots_max=2)))
    scenario.jobs("A user=u1", "B user=u1 tasks=2", "C user=u1", "D user=u1", "E user=u2")

    assert decided(scenario) == [
        "A dispatched: h1*1",
        "B pended: USER_PJOB_LIMIT(user u1,slots)",
        "C dispatched: h1*1",
        "D pended: USER_JOB_LIMIT(user u1,slots)",
        "E dispatched: h1*1",
    ]


def test_slots_of_a_user_for_each_processor(scenario: Scenario) -> None:
    """
    LSF's JL/P of a user.
    """
    scenario.hosts("h1 slots=2", "h2 slots=2")
    each = UserSpec(processor_slots_max_milli=500)
    scenario.command(DefineUser(user="u1", spec=each))
    scenario.jobs("A user=u1", "B user=u1", "C user=u1")

    assert decided(scenario) == [
        "A dispatched: h1*1",
        "B dispatched: h2*1",
        "C pended: USER_PROC_JLIMIT(user u1 by processor,slots) on h1, h2",
    ]


def test_slots_of_a_group_are_shared_by_its_members(scenario: Scenario) -> None:
    """
    Whatever group their jobs name.
    """
    scenario.hosts("h1 slots=8")
    group(scenario, "g1", "u1 u2", slots_max=2)
    scenario.jobs("A user=u1", "B user=u2 tasks=2", "C user=u2", "D user=u1")

    assert decided(scenario) == [
        "A dispatched: h1*1",
        "B pended: UGRP_PJOB_LIMIT(group g1,slots)",
        "C dispatched: h1*1",
        "D pended: UGRP_JOB_LIMIT(group g1,slots)",
    ]

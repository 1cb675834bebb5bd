"""
Definitions that nest: whatever is taken can be read again from a snapshot.
"""

from __future__ import annotations

import pytest

from domain.errors import Refused
from domain.resreq.syntax import Expr, Name, Not, Primary, Requirement, simple_requirement
from projections.scheduling.snapshot import load_state
from tests.projections.scheduling.policies import profile, queue
from tests.scenario import Scenario


def nested(depth: int) -> Requirement:
    """
    Return a requirement as a request has it that was parsed elsewhere.
    """
    expr: Expr = Name(kind="name", name="mem", unit="MB")
    for _ in range(depth - 1):
        expr = Not(kind="not", of=expr)
    return simple_requirement(Primary(select=expr))


def test_a_requirement_given_parsed_is_nested_no_deeper_than_a_parsed_one(
    scenario: Scenario,
) -> None:
    """
    One 191 deep was taken by a request's reader, and no snapshot that held it could be read.
    """
    queue(scenario, "most", priority=5, requirement=nested(50))
    for depth in (51, 192):
        with pytest.raises(Refused, match="requirement: must not have expressions nested more"):
            queue(scenario, "more", priority=5, requirement=nested(depth))
        with pytest.raises(Refused, match="requirement: must not have expressions nested more"):
            profile(scenario, "more", requirement=nested(depth))

    stored = load_state(scenario.core.snapshot())
    assert nested(50) == stored.queues["most"].spec.requirement
    assert "more" not in stored.queues
    assert "more" not in stored.profiles

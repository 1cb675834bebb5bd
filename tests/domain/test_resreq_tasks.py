"""
The counts of a compound and the job's -n.
"""

from __future__ import annotations

import pytest

from domain.errors import Refused
from domain.resreq import parse
from domain.resreq.tasks import TaskRange, check_tasks, task_counts


def counts(text, asked=None):
    return task_counts(parse(text).compounds[0], None if asked is None else TaskRange(*asked))


def test_a_simple_requirement_is_for_all_tasks():
    """
    One without -n.
    """
    assert (TaskRange(2, 8),) == counts("mem>1", (2, 8))
    assert (TaskRange(1, 1),) == counts("mem>1")


def test_the_task_count_is_the_sum_of_the_counts():
    """
    An equal -n, or a range around it, is no contradiction.
    """
    compound = "1*{a} + 3*{b}"

    assert (TaskRange(1, 1), TaskRange(3, 3)) == counts(compound) == counts(compound, (4, 4))
    assert (TaskRange(1, 1), TaskRange(3, 3)) == counts(compound, (2, 8))
    for asked in ((3, 3), (5, 5), (5, 9), (1, 3)):
        with pytest.raises(Refused, match="must be 4"):
            counts(compound, asked)


def test_a_missing_last_count_takes_the_remainder():
    """
    Of a range, a range is left.
    """
    compound = "1*{a} + 2*{b} + {c}"

    assert TaskRange(5, 5) == counts(compound, (8, 8))[-1]
    assert TaskRange(1, 5) == counts(compound, (2, 8))[-1]
    assert TaskRange(1, 1) == counts(compound)[-1]
    with pytest.raises(Refused, match="more than 3"):
        counts(compound, (3, 3))


def test_each_alternative_has_its_own_count():
    """
    -n must suit all of them.
    """
    requirement = parse("{8*{a}} || {4*{b}} || {c}")

    assert (TaskRange(8, 8), TaskRange(4, 4), TaskRange(1, 1)) == check_tasks(requirement, None)
    with pytest.raises(Refused):
        check_tasks(requirement, TaskRange(8, 8))

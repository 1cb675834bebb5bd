"""
User groups and projects: who is in which.
"""

from __future__ import annotations

import pytest

from domain.errors import Refused
from domain.groups import GroupSpec, Membership, check_group
from domain.projects import parent_of, with_ancestors


def test_members_of_members_are_members() -> None:
    """
    The nearest group comes first.
    """
    groups = {
        "outer": GroupSpec(members=("middle",)),
        "middle": GroupSpec(members=("inner", "u2")),
        "inner": GroupSpec(members=("u1",)),
    }
    membership = Membership(groups)

    assert ("inner", "middle", "outer") == membership.groups_of("u1")
    assert ("u2", "middle", "outer") == membership.names_of("u2")
    assert () == membership.groups_of("u3")


def test_a_circle_of_groups_is_refused_and_could_be_walked() -> None:
    """
    A log of other rules may hold one: membership comes to an end all the same.
    """
    groups = {"a": GroupSpec(members=("b",)), "b": GroupSpec(members=("a", "u1"))}

    with pytest.raises(Refused):
        check_group("b", groups["b"], groups)
    assert ("b", "a") == Membership(groups).groups_of("u1")


def test_a_member_is_named_once() -> None:
    """
    A list with a name twice is a slip.
    """
    with pytest.raises(Refused):
        check_group("a", GroupSpec(members=("u1", "u1")), {})


def test_projects_lie_in_each_other() -> None:
    """
    The nearest comes first.
    """
    assert ["/a/b/c", "/a/b", "/a"] == list(with_ancestors("/a/b/c"))
    assert ["p1"] == list(with_ancestors("p1"))
    assert ["/a", ""] == [parent_of("/a/b"), parent_of("/a")]

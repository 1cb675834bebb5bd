"""
Lists of names as LSF writes them.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import Refused
from domain.name_lists import NameList, parse_names
from tests.strategies import instances


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("h1 h2", ["h1", "h2"], ["h3"]),
        ("all", ["h1"], []),
        ("all ~h1", ["h2"], ["h1"]),
        ("~h1", ["h2"], ["h1"]),
        ("others h1+3", ["h1", "h9"], []),
        ("h1 ~h2", ["h1"], ["h2", "h3"]),
    ],
)
def test_who_is_in_a_list(text: str, inside: list[str], outside: list[str]) -> None:
    """
    A list that only excludes means everybody else.
    """
    names = parse_names(text)

    assert [True] * len(inside) == [names.holds([name]) for name in inside]
    assert [False] * len(outside) == [names.holds([name]) for name in outside]


def test_a_group_lets_its_members_in_and_keeps_them_out() -> None:
    """
    Somebody goes by all of the names of their groups; out goes before in.
    """
    names = parse_names("g1 ~g2")

    assert names.holds(["alice", "g1"])
    assert not names.holds(["alice", "g1", "g2"])


def test_preference_is_the_names_own_then_that_of_the_others() -> None:
    """
    ``h1+2 others+1``; the rest has none.
    """
    names = parse_names("h1+2 h2 others+1")

    assert [2, 0, 1] == [names.preference_of(host) for host in ("h1", "h2", "h3")]


def test_marked_hosts_are_the_possible_first_ones() -> None:
    """
    ``h1!``.
    """
    assert ("h1", "h3") == parse_names("h1! h2 h3!+2").firsts()


@pytest.mark.parametrize("text", ["", "  ", "a,b", "~", "h1+", "+2", "h1!!", "ä"])
def test_what_isnt_understood_is_refused(text: str) -> None:
    """
    One clear error.
    """
    with pytest.raises(Refused):
        parse_names(text)


@given(instances(NameList))
def test_safety_reading_what_is_shown_gives_the_same_names(names: NameList) -> None:
    """
    parse(text(x)) == x, but for names with a plus sign, which a list can't tell from a preference.
    """
    if not names.entries or any("+" in entry.name for entry in names.entries):
        return

    assert names == parse_names(names.text())


@given(st.lists(st.sampled_from(["a", "b", "~a", "all", "others"]), min_size=1, max_size=4))
def test_safety_who_is_excluded_is_never_in(words: list[str]) -> None:
    """
    Whatever else the list says.
    """
    names = parse_names(" ".join(words))

    assert not ("~a" in words and names.holds(["a"]))

"""
Fairshare: who of a queue's users comes next (LSF's formula, in whole numbers).

Shares are a tree: a node is a user, or a group whose members share what the group gets. The account
with the highest dynamic priority comes first; priority = shares / usage, and usage grows with
processor time, run time and slots.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from math import isqrt
from typing import Annotated, Final

from pydantic import Field

from domain.amounts import Milli, TimeUs
from domain.errors import Refused
from domain.event import Value
from domain.ids import NAME_PATTERN, Name

HOUR_US: Final = 3_600_000_000
DEFAULT: Final = "default"
OTHERS: Final = "others"
EACH: Final = "@"
LEVELS_MAX: Final = 20
"""Trees of about a hundred can be written into a snapshot, and not be read any more."""
BITS: Final = 96
"""A share of what decays is held in so many binary places."""


class ShareNode(Value):
    """
    Give a user or a group shares of what its parent gets.

    Args:
        name: A user; a group with its own members; ``g@`` for each member of the group g;
            ``default`` for each user that isn't named; ``others`` for all of these together.
        shares: How many.
        members: Who shares what a group gets; empty for a user.
    """

    name: Annotated[str, Field(min_length=1, max_length=128)]
    shares: Annotated[int, Field(ge=1, le=2**31 - 1)]
    members: tuple[ShareNode, ...] = ()


class Fairshare(Value):
    """
    Hold how a queue is shared. The factors are in thousandths.

    Args:
        shares: The tree's first level.
        accounts_of: Another queue whose shares and accounts these jobs count in, "" for its own.
        cpu_time_factor_milli: What an hour of processor time weighs.
        run_time_factor_milli: What an hour that a slot was in use weighs.
        committed_run_time_factor_milli: The same of the hours that running jobs may still take.
        run_job_factor_milli: What a slot weighs that is in use now.
        history_us: After so long a tenth of an old use is left; 0 for no decay.
        counts_past_runs: Whether run time of jobs that have ended counts too.
        run_time_decays: Whether that decays.
    """

    shares: tuple[ShareNode, ...] = ()
    accounts_of: Name | None = None
    cpu_time_factor_milli: Milli = 700
    run_time_factor_milli: Milli = 700
    committed_run_time_factor_milli: Milli = 0
    run_job_factor_milli: Milli = 3_000
    history_us: TimeUs = 5 * HOUR_US
    counts_past_runs: bool = False
    run_time_decays: bool = False


class Use(Value):
    """
    Hold what an account has used, in microseconds of one slot or processor, and what it uses.

    Args:
        cpu_us: Processor time, decayed.
        run_us: Run time of running jobs, and of ended ones where that counts.
        committed_us: What running jobs may still take.
        slots: Slots in use now, or gathered.
    """

    cpu_us: int = 0
    run_us: int = 0
    committed_us: int = 0
    slots: int = 0


def weight(use: Use, rules: Fairshare) -> int:
    """
    Return by what an account's shares are divided, in thousandths of a microsecond of an hour.
    """
    return (
        use.cpu_us * rules.cpu_time_factor_milli
        + use.run_us * rules.run_time_factor_milli
        + use.committed_us * rules.committed_run_time_factor_milli
        + (1 + use.slots) * rules.run_job_factor_milli * HOUR_US
    )


def dynamic_priority(shares: int, use: Use, rules: Fairshare) -> Fraction:
    """
    Return an account's priority: its shares over its use, in LSF's units of hours.
    """
    divisor = weight(use, rules)
    return Fraction(shares * 1_000 * HOUR_US, divisor) if divisor else Fraction(shares * 10**12)


@cache
def _roots() -> tuple[int, ...]:
    """
    Return a tenth to the power of 1/2, 1/4, 1/8 ..., in binary places.
    """
    found = []
    root = (1 << BITS) // 10
    for _ in range(40):
        root = isqrt(root << BITS)
        found.append(root)
    return tuple(found)


def decayed(amount: int, age_us: int, history_us: int) -> int:
    """
    Return what is left of an amount after a time: a tenth to the power of age / history, rounded
    down.
    """
    if not history_us or age_us <= 0 or not amount:
        return amount
    whole, rest = divmod(age_us, history_us)
    factor = (1 << BITS) // 10**whole if whole < 60 else 0
    for root in _roots():
        rest *= 2
        if rest >= history_us:
            rest -= history_us
            factor = factor * root >> BITS
    return amount * factor >> BITS


_TOKEN: Final = re.compile(r"\s*(?:([^\s=()]+)=([0-9]{1,15})(?![^\s()])|([()]))")
_NAME: Final = re.compile(NAME_PATTERN)
_WRITTEN: Final = (
    "must be NAME=SHARES separated by blanks, members in brackets after a group, "
    "such as ann=10 staff=5(bob=1 eve=2)"
)


def parse_shares(text: str) -> tuple[ShareNode, ...]:
    """
    Return shares as they are written: ``ann=10 staff@=5 g=3(bob=1 eve=2) default=1``.

    Raises:
        Refused: They aren't understood.
    """
    levels: list[list[ShareNode]] = [[]]
    place = 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None or (match[1] and not _NAME.fullmatch(match[1])):
            raise Refused("fairshare.shares", _WRITTEN, text[place:].strip())
        place = match.end()
        if match[3] == "(" and levels[-1]:
            if len(levels) == LEVELS_MAX:
                raise _too_deep()
            levels.append([])
        elif match[3] == ")" and len(levels) > 1:
            members = tuple(levels.pop())
            levels[-1][-1] = levels[-1][-1].but(members=members)
        elif match[1] and 1 <= int(match[2]) < 2**31:
            levels[-1].append(ShareNode(name=match[1], shares=int(match[2])))
        else:
            raise Refused("fairshare.shares", "must have brackets in pairs, and shares", match[0])
    if len(levels) > 1:
        raise Refused("fairshare.shares", "must close every bracket", text)
    return tuple(levels[0])


def check_fairshare(rules: Fairshare) -> None:
    """
    Do nothing, or refuse shares that name somebody twice, or nobody, or what can be no name, or
    that have too many levels.

    Raises:
        Refused: They do.
    """
    if bool(rules.shares) == (rules.accounts_of is not None):
        rule = "must name shares, or the queue whose accounts it shares"
        hint = "fairshare=none takes it away as a whole."
        raise Refused("fairshare", rule, rules.accounts_of or "", hint)
    level = rules.shares
    for _ in range(LEVELS_MAX):
        level = tuple(member for node in level for member in node.members)
    if level:
        raise _too_deep()
    _check_level(rules.shares)


def _too_deep() -> Refused:
    return Refused("fairshare.shares", f"must have at most {LEVELS_MAX} levels")


def _check_level(nodes: tuple[ShareNode, ...]) -> None:
    names = [node.name for node in nodes]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise Refused("fairshare.shares", "must name each user or group once a level", twice)
    for node in nodes:
        if not _NAME.fullmatch(node.name):
            rule = "must name users and groups by letters, digits and _.@+-, such as ann"
            raise Refused("fairshare.shares", rule, node.name)
        is_special = node.name in (DEFAULT, OTHERS) or node.name.endswith(EACH)
        if is_special and node.members:
            raise Refused("fairshare.members", "must belong to a group", node.name)
        _check_level(node.members)

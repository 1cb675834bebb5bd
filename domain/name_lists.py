"""
Lists of users or hosts as LSF writes them: ``all ~u3``, ``h1+2 h2 others``, ``h1!``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Final

from pydantic import StringConstraints

from domain.amounts import Count
from domain.errors import Refused
from domain.event import Value

ALL: Final = "all"
OTHERS: Final = "others"
PREFERENCE_MAX: Final = 2**31 - 1

EVERYBODY: Final = (ALL, OTHERS)
"""Words that stand for every name: ``others`` for those that the list doesn't name itself."""

LISTED_PATTERN: Final = r"^/?[A-Za-z0-9][A-Za-z0-9_.@/+-]{0,1023}$"
"""Names of users, hosts, queues and groups, and paths of projects."""

_ENTRY: Final = re.compile(r"(~?)(/?[A-Za-z0-9][A-Za-z0-9_.@/-]*)(!?)(?:\+([0-9]{1,10}))?")


class ListedName(Value):
    """
    Hold one entry of a list: a name, or the name of a group of names.

    Args:
        preference: Hosts of a higher one come first.
        is_first: Whether the host may be the one that runs a job's command; where some hosts are
            marked so, one of them must be.
        is_excluded: Whether the name is taken out of the list.
    """

    name: Annotated[str, StringConstraints(pattern=LISTED_PATTERN)]
    preference: Count = 0
    is_first: bool = False
    is_excluded: bool = False

    def text(self) -> str:
        """
        Return it as written.
        """
        wish = f"+{self.preference}" if self.preference else ""
        return f"{'~' * self.is_excluded}{self.name}{'!' * self.is_first}{wish}"


class NameList(Value):
    """
    Hold a list of names. One that only excludes means everybody else.
    """

    entries: tuple[ListedName, ...] = ()

    def text(self) -> str:
        """
        Return it as written.
        """
        return " ".join(entry.text() for entry in self.entries)

    def holds(self, names: Iterable[str]) -> bool:
        """
        Say whether somebody is in the list who goes by any of these names: their own, and those of
        their groups.
        """
        known = set(names)
        wanted = [entry.name for entry in self.entries if not entry.is_excluded]
        if any(entry.is_excluded and entry.name in known for entry in self.entries):
            return False
        return not wanted or any(name in EVERYBODY or name in known for name in wanted)

    def preference_of(self, name: str) -> int:
        """
        Return the preference of a host that is in the list: its own, else that of the others.
        """
        found = {entry.name: entry.preference for entry in self.entries if not entry.is_excluded}
        return found.get(name, found.get(OTHERS, found.get(ALL, 0)))

    def firsts(self) -> tuple[str, ...]:
        """
        Return the hosts of which one must be a job's first, none when any may.
        """
        return tuple(entry.name for entry in self.entries if entry.is_first)


def parse_names(text: str, *, field: str = "names") -> NameList:
    """
    Read a list of names, separated by blanks.

    Raises:
        Refused: An entry isn't understood, or there is none.
    """
    entries = [_entry(word, field) for word in text.split()]
    if not entries:
        raise Refused(field, "must name somebody, or be left out")
    return NameList(entries=tuple(entries))


def _entry(word: str, field: str) -> ListedName:
    found = _ENTRY.fullmatch(word)
    if found is None or int(found[4] or 0) > PREFERENCE_MAX:
        raise Refused(field, "must be names such as h1, h1+2, h1!, ~h1, all or others", word)
    return ListedName(
        name=found[2],
        preference=int(found[4] or 0),
        is_first=bool(found[3]),
        is_excluded=bool(found[1]),
    )

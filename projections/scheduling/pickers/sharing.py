"""
The tree of accounts that a fairshare queue is: who comes next, and what each has used.

A node's key is its use over its shares; the child with the lowest key comes first, ties by the job
that came in earlier. A group's use is the sum of its members'.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from heapq import heapify, heappop, heappush
from typing import Final

from domain.fairshare import DEFAULT, EACH, OTHERS, Fairshare, ShareNode, Use, weight
from projections.scheduling.pickers.waiting import Entry, Key

Path = tuple[str, ...]
LAST: Final = Fraction(10**40)
NOBODY: Path = ("",)
"""The account of users that have no shares; they come last, and aren't charged."""


def path_of(nodes: Sequence[ShareNode], user: str, groups: Collection[str]) -> Path:
    """
    Return the names of the nodes that lead to a user's account.

    A user's own name goes before groups, these before ``default``, and that before ``others``.
    """
    found = _named(nodes, user)
    if found:
        return found
    for node in nodes:
        name = node.name.removesuffix(EACH)
        if not node.members and name in groups:
            return (node.name, user) if node.name.endswith(EACH) else (node.name,)
    names = {node.name for node in nodes}
    if DEFAULT in names:
        return (DEFAULT, user)
    return (OTHERS,) if OTHERS in names else NOBODY


def _named(nodes: Sequence[ShareNode], user: str) -> Path:
    for node in nodes:
        if node.name == user and not node.members:
            return (user,)
        below = _named(node.members, user)
        if below:
            return (node.name, *below)
    return ()


def shares_of(nodes: Sequence[ShareNode], path: Path) -> list[int]:
    """
    Return the shares of the nodes on a path; each member of ``g@`` and ``default`` has the same.
    """
    found: list[int] = []
    if path == NOBODY:
        return [0]
    for name in path:
        node = next((node for node in nodes if node.name == name), None)
        if node is None:
            found.append(found[-1] if found else 1)
        else:
            found.append(node.shares)
            nodes = node.members
    return found


class Account:
    """
    Hold one node: what it has used, and the jobs or the accounts below it.
    """

    __slots__ = ("_heap", "_place", "below", "entries", "rules", "shares", "use")

    def __init__(self, shares: int, rules: Fairshare) -> None:
        self.shares = shares  # 0 for those who have none: they come last
        self.rules = rules
        self.use = [0, 0, 0, 0]
        self.below: dict[str, Account] = {}
        self.entries: list[Entry] = []
        self._place = 0
        self._heap: list[tuple[Fraction, Key, str]] = []

    def add(self, use: Use) -> None:
        """
        Add what was used.
        """
        for place, more in enumerate((use.cpu_us, use.run_us, use.committed_us, use.slots)):
            self.use[place] += more

    def key(self) -> Fraction:
        """
        Return what ranks it among its like: low comes first.
        """
        if not self.shares:
            return LAST
        cpu_us, run_us, committed_us, slots = self.use
        used = Use(cpu_us=cpu_us, run_us=run_us, committed_us=committed_us, slots=slots)
        return Fraction(weight(used, self.rules), self.shares)

    def begin(self) -> None:
        """
        Put what is below in order.
        """
        self.entries.sort()
        for child in self.below.values():
            child.begin()
        heads = ((name, child.head()) for name, child in self.below.items())
        self._heap = [
            (self.below[name].key(), _age(head), name)
            for name, head in heads
            if head is not None
        ]
        heapify(self._heap)

    def head(self) -> Entry | None:
        """
        Return the job that comes next, None when there is none left.
        """
        if self._heap:
            return self.below[self._heap[0][2]].head()
        return self.entries[self._place] if self._place < len(self.entries) else None

    def path_to_head(self) -> Iterator[Account]:
        """
        Yield the accounts that lead to the job that comes next, this one first.
        """
        yield self
        if self._heap:
            yield from self.below[self._heap[0][2]].path_to_head()

    def take(self) -> None:
        """
        Take out the job that comes next, whatever came of it.
        """
        if not self._heap:
            self._place += 1
            return
        name = heappop(self._heap)[2]
        child = self.below[name]
        child.take()
        head = child.head()
        if head is not None:
            heappush(self._heap, (child.key(), _age(head), name))


def _age(entry: Entry) -> Key:
    return (entry.job.queue_us, entry.job.number, entry.job.index)

"""
The tree of accounts that a fairshare queue is: who comes next, and what each has used.

A node's key is its use over its shares; the child with the lowest key comes first, ties by the job
that came in earlier. A group's use is the sum of its members'.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from fractions import Fraction
from heapq import heapify, heappop, heapreplace
from math import lcm
from typing import Final

from domain.event import sure
from domain.fairshare import DEFAULT, EACH, OTHERS, Fairshare, ShareNode, Use, weight
from projections.scheduling.pickers.protocol import PickerView
from projections.scheduling.pickers.waiting import Entry, Key
from projections.scheduling.records import JobRecord, QueueRecord

Path = tuple[str, ...]
Used = tuple[int, int, int, int]
"""What was used, in the order of ``Use``: cpu_us, run_us, committed_us, slots."""

LAST: Final = Fraction(10**40)
NOBODY: Path = ("",)
"""The account of users that have no shares; they come last, and aren't charged."""

EQUAL: Final = Fairshare(shares=(ShareNode(name=DEFAULT, shares=1),))
"""How queues are shared that don't say: each user alike."""


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
            return (_each(node.name, user) if node.name.endswith(EACH) else node.name,)
    names = {node.name for node in nodes}
    if DEFAULT in names:
        return (_each(DEFAULT, user),)
    return (OTHERS,) if OTHERS in names else NOBODY


def _each(name: str, user: str) -> str:
    """
    Return the name of one user's account among those that share alike: they stand beside the
    accounts that are named, each with the shares that are told once for all of them.
    """
    return f"{name}/{user}"


def _is_of(node: ShareNode, name: str) -> bool:
    if node.name == DEFAULT or node.name.endswith(EACH):
        return name.startswith(_each(node.name, ""))
    return node.name == name


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
        node = next(node for node in nodes if _is_of(node, name))
        found.append(node.shares)
        nodes = node.members
    return found


class Sharing:
    """
    Say in whose accounts jobs count, by the queues as they are defined; worked out once for each
    user.

    Args:
        view: What the core tells of groups.
    """

    def __init__(self, view: PickerView) -> None:
        self._view = view
        self._queues: dict[str, QueueRecord] = {}
        self._families: dict[str, str] = {}
        self._paths: dict[tuple[str, str], Path] = {}
        self._shares: dict[tuple[str, Path], list[int]] = {}

    def define(self, queue: QueueRecord) -> None:
        """
        Take over a queue; groups may have changed too.
        """
        self._queues[queue.name] = queue
        self._families, self._paths, self._shares = {}, {}, {}

    def family_of(self, queue: str) -> str:
        """
        Return the queue in whose accounts the jobs of a queue count.
        """
        found = self._families.get(queue)
        if found is None:
            record = self._queues.get(queue)
            rules = None if record is None else record.spec.fairshare
            named = None if rules is None else rules.accounts_of
            found = self._families[queue] = named if named in self._queues and named else queue
        return found

    def rules_of(self, family: str) -> Fairshare:
        """
        Return how the jobs of a family share.
        """
        record = self._queues.get(family)
        rules = None if record is None else record.spec.fairshare
        return EQUAL if rules is None else rules

    def path_of(self, family: str, user: str) -> Path:
        """
        Return the names of the nodes that lead to a user's account.
        """
        found = self._paths.get((family, user))
        if found is None:
            shares = self.rules_of(family).shares
            found = self._paths[family, user] = path_of(shares, user, self._view.groups_of(user))
        return found

    def shares_along(self, family: str, path: Path) -> list[int]:
        """
        Return the shares of the nodes on a path.
        """
        found = self._shares.get((family, path))
        if found is None:
            found = shares_of(self.rules_of(family).shares, path)
            self._shares[family, path] = found
        return found

    def rank(self, family: str) -> tuple[int, int]:
        """
        Return what orders families: the highest priority of their queues, then their definition.
        """
        order = list(self._queues)
        own = [name for name in order if self.family_of(name) == family]
        highest = max(self._queues[name].spec.priority for name in own)
        return (-highest, order.index(own[0]))


class Account:
    """
    Hold one node: what it has used, and the jobs or the accounts below it.

    Args:
        shares: Its own; 0 for those who have none: they come last.
        rules: How its family shares.
        is_ready: Says whether a job may be tried now; others are passed over.

    Ranks among its children are whole numbers: their keys, times what all their shares divide.
    """

    __slots__ = (
        "_heap", "_is_ready", "_known", "_place", "_scale", "below", "entries", "rules", "shares",
        "use",
    )  # fmt: skip

    def __init__(
        self, shares: int, rules: Fairshare, is_ready: Callable[[JobRecord], bool]
    ) -> None:
        self.shares = shares
        self.rules = rules
        self.use = [0, 0, 0, 0]
        self.below: dict[str, Account] = {}
        self.entries: list[Entry] = []
        self._is_ready = is_ready
        self._known: int | None = None
        self._place = 0
        self._scale = 1
        self._heap: list[tuple[int, Key, str]] = []

    def add(self, use: Used) -> None:
        """
        Add what was used.
        """
        self.use = [mine + more for mine, more in zip(self.use, use, strict=True)]
        self._known = None

    def _weight(self) -> int:
        if self._known is None:
            cpu_us, run_us, committed_us, slots = self.use
            used = sure(Use, cpu_us=cpu_us, run_us=run_us, committed_us=committed_us, slots=slots)
            self._known = weight(used, self.rules)
        return self._known

    def key(self) -> Fraction:
        """
        Return what ranks it among its like: low comes first.
        """
        return Fraction(self._weight(), self.shares) if self.shares else LAST

    def _rank(self, child: Account) -> int:
        if not child.shares:
            return LAST.numerator * self._scale
        return child._weight() * (self._scale // child.shares)

    def begin(self) -> None:
        """
        Put what is below in order.
        """
        self._scale = lcm(*(child.shares for child in self.below.values() if child.shares))
        for name, child in self.below.items():
            child.begin()
            head = child.head()
            if head is not None:
                self._heap.append((self._rank(child), _age(head), name))
        heapify(self._heap)

    def head(self) -> Entry | None:
        """
        Return the job that comes next, None when there is none left.
        """
        if self._heap:
            return self.below[self._heap[0][2]].head()
        entries, place = self.entries, self._place
        while place < len(entries) and not self._is_ready(entries[place].job):
            place += 1
        self._place = place
        return entries[place] if place < len(entries) else None

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
        name = self._heap[0][2]
        child = self.below[name]
        child.take()
        head = child.head()
        if head is None:
            heappop(self._heap)
        else:
            heapreplace(self._heap, (self._rank(child), _age(head), name))

    def along(self, path: Path, shares: Sequence[int]) -> list[Account]:
        """
        Return this account and those on the way to another, made where they are new.
        """
        found = [self]
        for name, own in zip(path, shares, strict=True):
            below = found[-1].below
            if name not in below:
                below[name] = Account(own, self.rules, self._is_ready)
            found.append(below[name])
        return found


def _age(entry: Entry) -> Key:
    return (entry.job.queue_us, entry.job.number, entry.job.index)

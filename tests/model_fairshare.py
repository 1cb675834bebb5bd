"""
Say whose job comes next where users share a queue: a part of the obvious slow scheduler,
``model.py``.

An account's dynamic priority is its shares over what it has used and uses, in hours of one slot::

    shares / (past and present run time * 0.7 + what runs may still take * 0 + (1 + slots) * 3)

with factors that the queue may set. The account with the highest priority comes first; in a tree of
groups the best is taken on each level, and a group has used what its members have.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction

from tests.model import Job, Model

HOUR_US = 3_600_000_000
Path = tuple[str, ...]


@dataclass
class Sharing:
    """
    Hold how a queue is shared: a tree of names with shares and members, and what use weighs, in
    thousandths. ``default`` is each user that isn't named, ``others`` are all these together.
    ``of`` is the queue whose tree and accounts these jobs count in.
    """

    tree: dict[str, tuple[int, dict[str, int]]] = field(
        default_factory=lambda: {"default": (1, {})}
    )
    of: str = ""
    run_factor: int = 700
    committed_factor: int = 0
    job_factor: int = 3_000
    counts_past: bool = False
    past_decays: bool = False
    history_us: int = 5 * HOUR_US


def family_of(model: Model, queue: str) -> str:
    """
    Return the queue in whose accounts the jobs of a queue count.
    """
    return sharing_of(model, queue).of or queue


def sharing_of(model: Model, queue: str) -> Sharing:
    """
    Return how a queue is shared: equally when it doesn't say.
    """
    return model.queues[queue].sharing or Sharing()


def path_of(sharing: Sharing, user: str) -> Path:
    """
    Return a user's account: the names from the tree's top to it, () for none.
    """
    for name, (_, members) in sharing.tree.items():
        if user in members:
            return (name, user)
        if user == name:
            return (name,)
    if "default" in sharing.tree:
        return (user,)
    return ("others",) if "others" in sharing.tree else ()


def shares_of(sharing: Sharing, path: Path) -> int:
    """
    Return the shares of the last of some names.
    """
    if len(path) == 2:
        return sharing.tree[path[0]][1][path[1]]
    return sharing.tree[path[0] if path[0] in sharing.tree else "default"][0]


def next_job(model: Model, todo: list[Job]) -> Job:
    """
    Return whose turn it is: of the queues with the highest one those defined first, in these the
    job at the head of the best account.
    """
    names = list(model.queues)
    families: dict[str, list[str]] = {}
    for name in names:
        families.setdefault(family_of(model, name), []).append(name)
    first = min(
        {family_of(model, job.queue) for job in todo},
        key=lambda family: (
            -max(model.queues[name].priority for name in families[family]),
            min(names.index(name) for name in families[family]),
        ),
    )
    return _head(model, first, [job for job in todo if family_of(model, job.queue) == first], 0)


def _head(model: Model, family: str, jobs: list[Job], depth: int) -> Job:
    """
    Return the head of the best account on one level; the earlier head of two that are equal.
    """
    sharing = sharing_of(model, family)
    below: dict[Path, list[Job]] = {}
    for job in jobs:
        path = path_of(sharing, job.ask.user)
        if len(path) == depth and depth:
            return min(jobs, key=model.order_key)
        below.setdefault(path[: depth + 1], []).append(job)
    heads = {
        path: _head(model, family, some, depth + 1) if path else min(some, key=model.order_key)
        for path, some in below.items()
    }
    best = min(
        heads,
        key=lambda path: (*_rank(model, family, path), heads[path].queue_us, heads[path].number),
    )
    return heads[best]


def _rank(model: Model, family: str, path: Path) -> tuple[bool, Fraction]:
    """
    Return what is the less the higher the priority: use for each share; who has none comes last.
    """
    sharing = sharing_of(model, family)
    if not path:
        return True, Fraction(0)
    run = Fraction(0)
    committed = slots = 0
    for job in model.live():
        own = path_of(sharing, job.ask.user)
        if job.got is None or family_of(model, job.queue) != family or own[: len(path)] != path:
            continue
        tasks, has_run, limit = (
            sum(job.got.tasks.values()), model.has_run_us(job), model.run_limit_of(job)
        )  # fmt: skip
        slots, run = slots + tasks, run + tasks * has_run
        committed += tasks * max(0, limit - has_run) if limit is not None else 0
    for (of, account), runs in model.past.items():
        if of == family and account[: len(path)] == path:
            run += sum(_left(sharing, each, model.now_us) for each in runs)
    weight = (
        run * sharing.run_factor
        + committed * sharing.committed_factor
        + (1 + slots) * sharing.job_factor * HOUR_US
    )
    return False, Fraction(weight) / shares_of(sharing, path)


def _left(sharing: Sharing, run: tuple[int, int], now_us: int) -> Fraction:
    """
    Return what is left of the time of a run after its end: a tenth after each ``history_us``.
    """
    ended_us, used_us = run
    if not sharing.past_decays or not sharing.history_us:
        return Fraction(used_us)
    with localcontext(prec=60):
        age = Decimal(now_us - ended_us) / sharing.history_us
        return Fraction(Decimal(10) ** -age * used_us)


def note_end(model: Model, job: Job) -> None:
    """
    Remember the time of a run that ends, where that counts.
    """
    family = family_of(model, job.queue)
    sharing = sharing_of(model, family)
    path = path_of(sharing, job.ask.user)
    if job.got is not None and sharing.counts_past and path:
        used_us = sum(job.got.tasks.values()) * model.has_run_us(job)
        model.past.setdefault((family, path), []).append((model.now_us, used_us))

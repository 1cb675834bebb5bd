"""
Say how a dependency stands: true now, not yet, or never.

A condition is judged on the states at the time: ``!done(P)`` is true while P waits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, Protocol

from domain.arrays import indices_of
from domain.dependency.syntax import (
    COUNTED,
    AllOf,
    Condition,
    Dependency,
    JobRef,
    Not,
    Predicate,
)
from domain.job_states import ENDED, LIVE, JobState

_COMPARE: Final[dict[str, Callable[[int, int], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Verdict(StrEnum):
    """
    Name how a dependency stands.
    """

    TRUE = "true"
    WAIT = "wait"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class ParentElement:
    """
    Hold what a condition can ask of one job or element.

    Args:
        index: Its array index, 0 for a job that is no element.
        exit_code: Set once it has ended, None when it never ran.
        post: How its post-processing ended: "done", "err", or "" while it hasn't.
        message: The latest external message.
    """

    state: JobState
    index: int = 0
    exit_code: int | None = None
    post: Literal["", "done", "err"] = ""
    message: str = ""


class ParentJobs(Protocol):
    """
    Be what evaluation needs to know of parents.
    """

    def elements(self, number: int) -> Sequence[ParentElement]:
        """
        Return the elements of an array in order of index, or the one job; nothing when it is
        unknown.
        """


@dataclass(frozen=True, slots=True)
class Truth:
    """
    Hold whether something is true now, and whether it may be true, or false, now or later.
    """

    is_true: bool
    may_be_true: bool
    may_be_false: bool


_NEVER: Final = Truth(is_true=False, may_be_true=False, may_be_false=True)
_CERTAIN: Final = Truth(is_true=True, may_be_true=True, may_be_false=False)
_NOT_YET: Final = Truth(is_true=False, may_be_true=True, may_be_false=True)
_FOR_NOW: Final = Truth(is_true=True, may_be_true=True, may_be_false=True)


def evaluate(dependency: Dependency, jobs: ParentJobs, *, own_rank: int = 0) -> Verdict:
    """
    Return how a bound dependency stands.

    Args:
        dependency: With its parents bound.
        jobs: The parents' states.
        own_rank: Which element of its array the dependent job is, from 0 in order of index (for
            ``A[*]``).
    """
    truth = _truth(dependency, jobs, own_rank)
    if truth.is_true:
        return Verdict.TRUE
    return Verdict.WAIT if truth.may_be_true else Verdict.NEVER


def _truth(dependency: Dependency, jobs: ParentJobs, own_rank: int) -> Truth:
    if isinstance(dependency, Condition):
        return _every(
            _of_parent(dependency, jobs.elements(n), own_rank) for n in dependency.parents
        )
    if isinstance(dependency, Not):
        inner = _truth(dependency.of, jobs, own_rank)
        return Truth(not inner.is_true, inner.may_be_false, inner.may_be_true)
    parts = [_truth(part, jobs, own_rank) for part in dependency.parts]
    return _every(parts) if isinstance(dependency, AllOf) else _some(parts)


def _every(parts: Iterable[Truth]) -> Truth:
    found = tuple(parts)
    return Truth(
        all(part.is_true for part in found),
        all(part.may_be_true for part in found),
        any(part.may_be_false for part in found),
    )


def _some(parts: Iterable[Truth]) -> Truth:
    found = tuple(parts)
    return Truth(
        any(part.is_true for part in found),
        any(part.may_be_true for part in found),
        all(part.may_be_false for part in found),
    )


def _of_parent(condition: Condition, elements: Sequence[ParentElement], own_rank: int) -> Truth:
    chosen = _chosen(condition.ref, elements, own_rank)
    if not chosen:
        return _NEVER
    states = COUNTED.get(condition.predicate)
    if states is not None:
        return _counted(condition, states, chosen)
    return _every(_of_element(condition, element) for element in chosen)


def _chosen(
    ref: JobRef, elements: Sequence[ParentElement], own_rank: int
) -> Sequence[ParentElement]:
    if ref.is_each:
        return elements[own_rank : own_rank + 1]
    if not ref.ranges:
        return elements
    wanted = set(indices_of(ref.ranges))
    return [element for element in elements if element.index in wanted]


def _of_element(condition: Condition, element: ParentElement) -> Truth:
    has_ended = element.state in ENDED
    if condition.predicate is Predicate.EXTERNAL:
        word = element.message.split(maxsplit=1)[:1]
        return _FOR_NOW if word == [condition.message] else _NOT_YET
    if condition.predicate in {Predicate.POST_DONE, Predicate.POST_ERR}:
        if not element.post:
            return _NOT_YET
        return _CERTAIN if condition.predicate.value == f"post_{element.post}" else _NEVER
    if condition.predicate is Predicate.STARTED:
        if has_ended:
            return _CERTAIN
        # A requeue takes a started job back to the queue.
        return _FOR_NOW if element.state in LIVE else _NOT_YET
    if not has_ended:
        return _NOT_YET
    return _CERTAIN if _has_ended_so(condition, element) else _NEVER


def _has_ended_so(condition: Condition, element: ParentElement) -> bool:
    if condition.predicate is Predicate.ENDED:
        return True
    if condition.predicate is Predicate.DONE:
        return element.state is JobState.DONE
    if element.state is not JobState.EXIT:
        return False
    compare = _COMPARE.get(condition.op)
    if compare is None:
        return True
    # What never ran has no code, so no comparison holds for it.
    return element.exit_code is not None and compare(element.exit_code, condition.number)


def _counted(
    condition: Condition, states: frozenset[JobState], elements: Sequence[ParentElement]
) -> Truth:
    """
    Return the truth of a count: what it is now, and what it can still become.

    An element that has ended stays as it is, one that hasn't can still come into or leave any of
    the states.
    """
    now = sum(element.state in states for element in elements)
    settled = sum(element.state in states for element in elements if element.state in ENDED)
    open_count = sum(element.state not in ENDED for element in elements)
    compare, number = _COMPARE[condition.op or "=="], condition.number
    if condition.is_all:
        number = len(elements)
    possible = [compare(count, number) for count in range(settled, settled + open_count + 1)]
    return Truth(compare(now, number), any(possible), not all(possible))

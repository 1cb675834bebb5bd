"""
Dependencies between jobs (-w): nodes, and their evaluation against the states of the parents.

A condition is judged on the states at the time: ``!done(P)`` is true while P waits. Three answers:
true now; not now, but it could become true; never.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, Literal, Protocol

from pydantic import Field

from domain.arrays import IndexRange, indices_of, show_ranges
from domain.errors import Refused
from domain.event import Value
from domain.job_states import ENDED, LIVE, JobState

FIELD: Final = "dependency"


class Predicate(StrEnum):
    """
    Name what a condition asks of its parents; those from NUM_DONE on count elements.
    """

    DONE = "done"
    EXIT = "exit"
    ENDED = "ended"
    STARTED = "started"
    POST_DONE = "post_done"
    POST_ERR = "post_err"
    EXTERNAL = "external"
    NUM_DONE = "numdone"
    NUM_ENDED = "numended"
    NUM_EXIT = "numexit"
    NUM_HOLD = "numhold"
    NUM_PEND = "numpend"
    NUM_RUN = "numrun"
    NUM_START = "numstart"


COUNTED: Final[dict[Predicate, frozenset[JobState]]] = {
    Predicate.NUM_DONE: frozenset({JobState.DONE}),
    Predicate.NUM_ENDED: ENDED,
    Predicate.NUM_EXIT: frozenset({JobState.EXIT}),
    Predicate.NUM_HOLD: frozenset({JobState.PSUSP}),
    Predicate.NUM_PEND: frozenset({JobState.PEND}),
    Predicate.NUM_RUN: frozenset({JobState.RUN}),
    Predicate.NUM_START: LIVE,
}
"""The states that each counting predicate counts."""

Op = Literal["==", "!=", "<", "<=", ">", ">="]

_COMPARE: Final[dict[str, Callable[[int, int], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class JobRef(Value):
    """
    Name parents: a job by its number, or the user's own jobs by their name.

    Args:
        number: The job id, 0 when a name is given.
        name: A name, with * at its end for all names that begin so.
        ranges: Elements of an array; empty for all.
        is_each: Whether each element of the dependent array waits for its own counterpart
            (``A[*]``).
    """

    number: Annotated[int, Field(ge=0)] = 0
    name: str = ""
    ranges: tuple[IndexRange, ...] = ()
    is_each: bool = False

    def text(self) -> str:
        """
        Return the reference as it is written.
        """
        which = str(self.number) if self.number else f'"{self.name}"'
        if self.is_each:
            return f"{which}[*]"
        return f"{which}[{show_ranges(self.ranges)}]" if self.ranges else which


class Condition(Value):
    """
    Ask one thing of the parents that a reference names.

    Args:
        op: How the exit code, or the count, compares with *number*; "" where nothing is compared.
        is_all: Whether all elements must be counted (``*``).
        message: What the first word of the parent's message must be (external only).
        parents: Numbers of the parents, bound when the job was submitted.
    """

    kind: Literal["job"]
    predicate: Predicate
    ref: JobRef
    op: Op | Literal[""] = ""
    number: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    is_all: bool = False
    message: str = ""
    parents: tuple[int, ...] = ()


class Not(Value):
    """
    Be true where the operand isn't.
    """

    kind: Literal["not"]
    of: Dependency


class AllOf(Value):
    """
    Be true where every part is.
    """

    kind: Literal["and"]
    parts: tuple[Dependency, ...]


class AnyOf(Value):
    """
    Be true where some part is.
    """

    kind: Literal["or"]
    parts: tuple[Dependency, ...]


Dependency = Annotated[Condition | Not | AllOf | AnyOf, Field(discriminator="kind")]

for _node in (Not, AllOf, AnyOf):
    _node.model_rebuild()


def conditions_of(dependency: Dependency) -> tuple[Condition, ...]:
    """
    Return every condition, from left to right.
    """
    if isinstance(dependency, Condition):
        return (dependency,)
    parts = (dependency.of,) if isinstance(dependency, Not) else dependency.parts
    return tuple(found for part in parts for found in conditions_of(part))


def parents_of(dependency: Dependency) -> tuple[int, ...]:
    """
    Return the numbers of all parents, each once: they must stay known while the job waits.
    """
    found = (number for each in conditions_of(dependency) for number in each.parents)
    return tuple(dict.fromkeys(found))


# ------------------------------------------------------------------------------------- rendering


def show_dependency(dependency: Dependency) -> str:
    """
    Return a dependency as text; parsing it again gives an equal one, but for the bound parents.
    """
    if isinstance(dependency, Condition):
        return _show_condition(dependency)
    if isinstance(dependency, Not):
        return f"!{_enclosed(dependency.of, AllOf | AnyOf)}"
    if isinstance(dependency, AllOf):
        return " && ".join(_enclosed(part, AnyOf) for part in dependency.parts)
    return " || ".join(show_dependency(part) for part in dependency.parts)


def _enclosed(dependency: Dependency, kinds: object) -> str:
    text = show_dependency(dependency)
    return f"({text})" if isinstance(dependency, kinds) else text  # type: ignore[arg-type]


def _show_condition(condition: Condition) -> str:
    more = ""
    if condition.is_all:
        more = ",*"
    elif condition.op:
        more = f",{condition.op}{condition.number}"
    elif condition.predicate is Predicate.EXTERNAL:
        more = f',"{condition.message}"'
    return f"{condition.predicate.value}({condition.ref.text()}{more})"


# --------------------------------------------------------------------------------------- binding


class OwnJobs(Protocol):
    """
    Be what binding needs to know of the user's jobs.
    """

    def numbers(self, ref: JobRef) -> Sequence[int]:
        """
        Return the numbers of the jobs that a reference names, oldest first; its elements don't
        matter here.
        """

    def indices(self, number: int) -> Sequence[int] | None:
        """
        Return the indices of an array, rising, None for a job that is none.
        """


def bind(
    dependency: Dependency,
    jobs: OwnJobs,
    *,
    own_indices: Sequence[int] | None = None,
    last_only: bool = False,
) -> Dependency:
    """
    Return a dependency whose conditions know their parents.

    Args:
        dependency: As parsed.
        jobs: What is known of the user's jobs.
        own_indices: Indices of the dependent job, when it is an array.
        last_only: Whether a name means the latest job of that name only (JOB_DEP_LAST_SUB).

    Raises:
        Refused: A parent or one of its elements isn't known, or the sizes of arrays don't match.
    """
    if isinstance(dependency, Condition):
        return _bind_condition(dependency, jobs, own_indices, last_only=last_only)

    def bound(part: Dependency) -> Dependency:
        return bind(part, jobs, own_indices=own_indices, last_only=last_only)

    if isinstance(dependency, Not):
        return Not(kind="not", of=bound(dependency.of))
    return dependency.model_copy(update={"parts": tuple(bound(part) for part in dependency.parts)})


def _bind_condition(
    condition: Condition, jobs: OwnJobs, own_indices: Sequence[int] | None, *, last_only: bool
) -> Condition:
    ref = condition.ref
    numbers = tuple(jobs.numbers(ref))
    if not numbers:
        raise Refused(FIELD, "must name jobs that exist", ref.text())
    if last_only and ref.name and not ref.name.endswith("*"):
        numbers = numbers[-1:]
    for number in numbers:
        _check_elements(condition, jobs.indices(number), own_indices)
    return condition.model_copy(update={"parents": numbers})


def _check_elements(
    condition: Condition, indices: Sequence[int] | None, own_indices: Sequence[int] | None
) -> None:
    ref = condition.ref
    needs_array = ref.is_each or ref.ranges or condition.predicate in COUNTED
    if needs_array and indices is None:
        raise Refused(FIELD, "must name an array here", ref.text())
    if indices is None:
        return
    missing = [index for index in indices_of(ref.ranges) if index not in set(indices)]
    if missing:
        raise Refused(
            FIELD, f"names element {missing[0]}, which the array doesn't have", ref.text()
        )
    if ref.is_each and (own_indices is None or len(own_indices) != len(indices)):
        raise Refused(FIELD, "[*] needs an array of as many elements as its parent", ref.text())


# ------------------------------------------------------------------------------------ evaluation


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
        exit_code: Set once it has ended.
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
    return compare is None or compare(element.exit_code or 0, condition.number)


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

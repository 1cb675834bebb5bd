"""
The nodes of a dependency (-w), and how it is shown.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from domain.arrays import IndexRange, show_ranges
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

"""
The nodes of a parsed resource requirement: frozen values that are stored inside events.

Three levels: a Requirement is any-of Compounds (the first that allocates wins), a Compound all-of
Primaries, a Primary one simple requirement. Amounts are whole thousandths, memory in thousandths of
a KiB; nothing in here depends on a setting that could change later.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from domain.event import Value
from domain.units import AMOUNT_MAX_MILLI, DURATION_MAX_US

Milli = Annotated[int, Field(ge=0, le=AMOUNT_MAX_MILLI)]
DurationUs = Annotated[int, Field(ge=0, le=DURATION_MAX_US)]
TaskCount = Annotated[int, Field(ge=1, le=1_000_000)]

# --------------------------------------------------------------------------------- expressions


class Number(Value):
    """
    Hold a number of an expression, in thousandths.

    Args:
        unit: The unit of memory that was written after it, "" for a plain number.
        base: The cluster's unit of memory when it was written, "" for a plain number; its value is
            in this unit.
    """

    kind: Literal["number"]
    milli: Milli
    unit: str = ""
    base: str = ""


class Name(Value):
    """
    Hold the value of a resource or a boolean attribute on the host.

    Args:
        unit: For memory, the cluster's unit when it was written: the value is taken in this unit.
    """

    kind: Literal["name"]
    name: str
    unit: str = ""


class Text(Value):
    """
    Compare a string attribute with a literal, in the order of characters.
    """

    kind: Literal["text"]
    name: str
    op: Literal["==", "!=", "<", "<=", ">", ">="]
    value: str


class Defined(Value):
    """
    Ask whether the host has a boolean, or any instance of a resource.
    """

    kind: Literal["defined"]
    name: str


class Not(Value):
    """
    Be 1 where the operand is 0, and 0 elsewhere.
    """

    kind: Literal["not"]
    of: Expr


class Minus(Value):
    """
    Change the sign of the operand.
    """

    kind: Literal["minus"]
    of: Expr


class Binary(Value):
    """
    Compute or compare two operands; a comparison is 1 or 0.
    """

    kind: Literal["binary"]
    op: Literal["*", "/", "+", "-", "==", "!=", "<", "<=", ">", ">="]
    left: Expr
    right: Expr


class AllOf(Value):
    """
    Be 1 where every part differs from 0; no part is an AllOf itself.
    """

    kind: Literal["and"]
    parts: tuple[Expr, ...]


class AnyOf(Value):
    """
    Be 1 where some part differs from 0; no part is an AnyOf itself.
    """

    kind: Literal["or"]
    parts: tuple[Expr, ...]


Expr = Annotated[
    Number | Name | Text | Defined | Not | Minus | Binary | AllOf | AnyOf,
    Field(discriminator="kind"),
]

for _node in (Not, Minus, Binary, AllOf, AnyOf):
    _node.model_rebuild()

# ------------------------------------------------------------------------------------ sections


class Per(StrEnum):
    """
    Name what an amount counts for; DEFAULT leaves it to the cluster's settings.
    """

    DEFAULT = ""
    HOST = "host"
    TASK = "task"
    JOB = "job"


class Phase(Value):
    """
    Hold one later phase of a reservation that becomes smaller.

    Args:
        duration_us: How long it lasts, None for the rest of the job.
        is_decaying: Whether it falls linearly to the next phase (to zero in the last one).
    """

    milli: Milli
    duration_us: DurationUs | None = None
    is_decaying: bool = False


class RusageTerm(Value):
    """
    Reserve an amount of one resource.

    Args:
        milli: The amount; with phases, that of the first one, which is the largest.
        duration_us: After so much run time the amount is given back, None at the end of the job.
        is_decaying: Whether the amount falls linearly to zero over its duration; None where the
            text doesn't say, which means no but can be inherited.
        threshold_milli: Don't start unless the host has at least so much (at most, where less is
            better).
        phases: The later phases, each no larger than the one before.
    """

    resource: str
    milli: Milli
    per: Per = Per.DEFAULT
    duration_us: DurationUs | None = None
    is_decaying: bool | None = None
    threshold_milli: Milli | None = None
    phases: tuple[Phase, ...] = ()


class SpanForm(StrEnum):
    """
    Name how the tasks may lie over hosts.
    """

    ONE_HOST = "one_host"
    PTILE = "ptile"
    PTILE_SLOTS = "ptile_slots"
    BLOCK = "block"
    STRIPE = "stripe"
    CANCELLED = "cancelled"


class KindCount(Value):
    """
    Give hosts of one type or model a tile of their own.
    """

    kind: str
    count: TaskCount


class Span(Value):
    """
    Bind how the tasks lie over hosts.

    Args:
        count: Tasks of a tile or block, or the most of a stripe; 0 where the form has none.
        kinds: Tiles by host type or model, for PTILE_SLOTS only.
    """

    form: SpanForm
    count: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    kinds: tuple[KindCount, ...] = ()


class OrderKey(Value):
    """
    Order hosts by one resource, best first, or worst first when reversed.
    """

    name: str
    is_reversed: bool = False


class Affinity(Value):
    """
    Count cores or threads for each task.

    Args:
        distribute: "pack" or "balance" as written; kept, but cores are only counted.
    """

    unit: Literal["core", "thread"]
    count: TaskCount = 1
    distribute: Literal["", "pack", "balance"] = ""


DEFAULT_ORDER: Final = (OrderKey(name="r15s"), OrderKey(name="pg"))
"""The order of hosts where a requirement names none."""

# -------------------------------------------------------------------------------------- levels


class Primary(Value):
    """
    Hold one simple requirement.

    Args:
        tasks: How many tasks it is for; None for all of them, or the rest of a compound.
        rusage: The alternatives, the first satisfiable one is reserved; each is a tuple of terms.
        order_again: Whether the hosts are sorted once more after every other policy
            (``order[!...]``).
    """

    tasks: TaskCount | None = None
    select: Expr | None = None
    rusage: tuple[tuple[RusageTerm, ...], ...] = ()
    span: Span | None = None
    order: tuple[OrderKey, ...] = ()
    order_again: bool = False
    same: tuple[str, ...] = ()
    affinity: Affinity | None = None


class Compound(Value):
    """
    Hold primaries that must all be allocated, in the order written.

    Args:
        same: What all hosts of all primaries have in common.
        delay_us: So long after submission it isn't considered.
    """

    primaries: Annotated[tuple[Primary, ...], Field(min_length=1)]
    same: tuple[str, ...] = ()
    delay_us: DurationUs = 0


class Requirement(Value):
    """
    Hold a whole resource requirement: any of its compounds will do, the first that can be allocated
    is taken.
    """

    compounds: Annotated[tuple[Compound, ...], Field(min_length=1)]

    @property
    def is_simple(self) -> bool:
        """
        Say whether it is one simple requirement for all tasks.
        """
        first = self.compounds[0]
        return (
            len(self.compounds) == 1
            and len(first.primaries) == 1
            and first.primaries[0].tasks is None
            and not first.same
        )

    @property
    def only(self) -> Primary:
        """
        Return the one primary of a simple requirement.
        """
        assert self.is_simple
        return self.compounds[0].primaries[0]


EMPTY: Final = Requirement(compounds=(Compound(primaries=(Primary(),)),))
"""The requirement that asks for nothing."""


def simple_requirement(primary: Primary) -> Requirement:
    """
    Return the requirement that is one primary.
    """
    return Requirement(compounds=(Compound(primaries=(primary,)),))


def all_of(parts: tuple[Expr, ...]) -> Expr:
    """
    Return the conjunction of at least one part, without a conjunction inside it.
    """
    flat: list[Expr] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, AllOf) else (part,))
    return flat[0] if len(flat) == 1 else AllOf(kind="and", parts=tuple(flat))


def any_of(parts: tuple[Expr, ...]) -> Expr:
    """
    Return the disjunction of at least one part, without a disjunction inside it.
    """
    flat: list[Expr] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, AnyOf) else (part,))
    return flat[0] if len(flat) == 1 else AnyOf(kind="or", parts=tuple(flat))


def conjuncts(expr: Expr | None) -> tuple[Expr, ...]:
    """
    Return the parts that must all hold.
    """
    if expr is None:
        return ()
    return expr.parts if isinstance(expr, AllOf) else (expr,)


def children(expr: Expr) -> tuple[Expr, ...]:
    """
    Return the operands of a node, in order.
    """
    if isinstance(expr, AllOf | AnyOf):
        return expr.parts
    if isinstance(expr, Binary):
        return (expr.left, expr.right)
    return (expr.of,) if isinstance(expr, Not | Minus) else ()


def depth(expr: Expr) -> int:
    """
    Return how deeply an expression is nested, 1 for a leaf.
    """
    level: tuple[Expr, ...] = (expr,)
    count = 0
    while level:
        count += 1
        level = tuple(child for node in level for child in children(node))
    return count

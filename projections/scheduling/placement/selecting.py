"""
Which hosts meet a condition, in what order they come, and which are alike: in columns.

What depends on descriptions alone is remembered per expression, and only hosts that were described
anew are looked at again. What depends on free amounts and load is compared each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from domain.amounts import SLOTS
from domain.name_lists import NameList
from domain.resources import BUILT_IN_ONLY, Catalogue, ValueType
from domain.resreq.check import COMPARISONS
from domain.resreq.evaluate import Compiler, HostView, SubmissionHost, number_value
from domain.resreq.syntax import AllOf, AnyOf, Binary, Expr, Name, Not, Number, OrderKey
from domain.resreq.verdicts import is_static
from domain.units import AMOUNT_MAX_MILLI, MILLI, MemoryUnit
from projections.scheduling.request import Condition

if TYPE_CHECKING:
    from projections.scheduling.capacity import Capacity
    from projections.scheduling.placement.ground import Ground

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

REMEMBERED_MAX: Final = 4_096
"""So many expressions are remembered; more than a cluster's users write at a time."""

MISSING: Final = -1

_MIRRORED: Final = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(slots=True)
class _Remembered:
    """
    Hold a column over hosts, right for every host that was described up to ``stamp``.
    """

    values: npt.NDArray[Any]
    stamp: int
    test: Callable[[Any], Any]


class Selector:
    """
    Answer for all hosts of one capacity at once.
    """

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self.catalogue: Catalogue = BUILT_IN_ONLY
        self._compiler: dict[tuple[str, str], Compiler] = {}
        self._known: dict[object, _Remembered] = {}
        self._tests: dict[object, Callable[[HostView], bool]] = {}
        self._codes: dict[tuple[str, ...], dict[tuple[object, ...], int]] = {}
        self._all: dict[tuple[tuple[str, str, str], ...], tuple[int, Mask]] = {}

    def forget(self, catalogue: Catalogue) -> None:
        """
        Forget everything: names mean something else from now on.
        """
        self.catalogue = catalogue
        for memory in (self._compiler, self._known, self._tests, self._codes, self._all):
            memory.clear()

    # -- conditions

    def mask(self, condition: Condition, ground: Ground) -> Mask:
        """
        Return which hosts meet a condition now.
        """
        if condition.is_static:
            return self._static(condition.key, condition.expr)
        return self._dynamic(condition.key, condition.expr, ground)

    def static(self, conditions: tuple[Condition, ...]) -> Mask:
        """
        Return which hosts meet all of some static conditions.
        """
        if len(conditions) == 1:
            return self._static(conditions[0].key, conditions[0].expr)
        key = tuple(condition.key for condition in conditions)
        known = self._all.get(key)
        if known is None or known[0] != self._capacity.described:
            if len(self._all) >= REMEMBERED_MAX:
                self._all.clear()
            masks = [self._static(condition.key, condition.expr) for condition in conditions]
            known = self._all[key] = (self._capacity.described, np.logical_and.reduce(masks))
        return known[1]

    def _static(self, key: tuple[str, str, str], expr: Expr) -> Mask:
        found: Mask = self._remember(key, lambda: self._test(key, expr), np.bool_)
        return found

    def _test(self, key: tuple[str, str, str], expr: Expr) -> Callable[[HostView], bool]:
        place = key[1:]
        compiler = self._compiler.get(place)
        if compiler is None:
            compiler = Compiler(self.catalogue, SubmissionHost(*place))
            self._compiler[place] = compiler
        return compiler.test(expr)

    def _remember(self, key: object, make: Callable[[], Callable[[Any], Any]], kind: Any) -> Any:
        """
        Return a remembered column, after looking again at the hosts that were described since.
        """
        capacity = self._capacity
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= REMEMBERED_MAX:
                self._known.clear()
            known = self._known[key] = _Remembered(np.zeros(0, kind), 0, make())
        if known.stamp != capacity.described:
            values = np.zeros(capacity.hosts, kind)
            values[: len(known.values)] = known.values
            test, facts = known.test, capacity.facts
            for number in np.flatnonzero(capacity.revision > known.stamp).tolist():
                values[number] = test(facts[number])
            known.values, known.stamp = values, capacity.described
        return known.values

    # -- conditions over what is free

    def _dynamic(self, key: tuple[str, str, str], expr: Expr, ground: Ground) -> Mask:
        """
        Compare columns where the expression allows it, else ask each host.

        Equivalent to: the compiled test of each host. Differs in: ``name OP number`` and what is
        made of such comparisons by && || ! is compared in arrays.
        """
        if isinstance(expr, AllOf | AnyOf):
            masks = [self._dynamic(_inner(key, part), part, ground) for part in expr.parts]
            every: Mask = (np.logical_and if isinstance(expr, AllOf) else np.logical_or).reduce(
                masks
            )
            return every
        if isinstance(expr, Not):
            return ~self._dynamic(_inner(key, expr.of), expr.of, ground)
        if is_static(expr, self.catalogue):
            return self._static(key, expr)
        simple = self._compared(expr, ground)
        return self._each(key, expr, ground) if simple is None else simple

    def _compared(self, expr: Expr, ground: Ground) -> Mask | None:
        found = self.comparison(expr)
        if found is None:
            return None
        name, op, bound = found
        values = np.maximum(self.amounts(name, ground), 0)
        return _compare(values, op, bound)

    def comparison(self, expr: Expr) -> tuple[str, str, Fraction] | None:
        """
        Return name, operator and bound in thousandths of a comparison of a number with a literal,
        None for any other expression.
        """
        if not isinstance(expr, Binary) or expr.op not in COMPARISONS:
            return None
        left, right, op = expr.left, expr.right, str(expr.op)
        if isinstance(left, Number) and isinstance(right, Name):
            left, right, op = right, left, _MIRRORED[op]
        if not isinstance(left, Name) or not isinstance(right, Number):
            return None
        found = self.catalogue.get(left.name)
        if found is not None and found.value_type is not ValueType.NUMBER:
            return None
        scale = MILLI * (MemoryUnit(left.unit).kib if left.unit else 1)
        return left.name, op, Fraction(number_value(right)) * scale

    def _each(self, key: tuple[str, str, str], expr: Expr, ground: Ground) -> Mask:
        test = self._tests.get(key)
        if test is None:
            if len(self._tests) >= REMEMBERED_MAX:
                self._tests.clear()
            test = self._tests[key] = self._test(key, expr)
        mask = np.zeros(self._capacity.hosts, np.bool_)
        for number in np.flatnonzero(ground.takes).tolist():
            mask[number] = test(ground.host(number))
        return mask

    # -- amounts

    def amounts(self, name: str, ground: Ground) -> Column:
        """
        Return a number of every host in thousandths, MISSING where a host has none. An empty
        cluster has no load: what hosts report of it now says nothing of what they could hold.
        """
        name_or_alias = self.catalogue.get(name)
        name = name if name_or_alias is None else name_or_alias.name
        if name == SLOTS:
            return ground.usable * MILLI
        capacity = self._capacity
        if name in capacity.pools.by_name:
            return np.where(ground.present(name), ground.available(name), MISSING)
        column, rest = capacity.resources.get(name), self._static_amounts(name)
        loads = None if ground.is_empty else capacity.loads.get(name)
        if loads is not None:
            rest = np.where(loads == MISSING, rest, loads)
        return rest if column is None else np.where(column.present, ground.available(name), rest)

    def _static_amounts(self, name: str) -> Column:
        def amount(host: HostView) -> int:
            found = host.amount_milli(name)
            return MISSING if found is None else min(found, AMOUNT_MAX_MILLI)

        values: Column = self._remember(("amount", name), lambda: amount, np.int64)
        return values

    def is_total(self, name: str) -> bool:
        """
        Say whether what hosts have of it at most is known: slots, and whatever workers count.
        """
        capacity = self._capacity
        return name == SLOTS or capacity.counts(name) or name in capacity.pools.by_name

    def may_report(self, name: str, ground: Ground) -> Mask:
        """
        Return which hosts of an empty cluster may report a number that nobody knows of them: of a
        load index those that don't count it, and all where nobody counts what changes. Who doesn't
        count anything else that others do has none of it.
        """
        found = self.catalogue.get(name)
        if found is not None:
            name = found.name
        is_described = found is not None and found.is_static
        if is_described or name == SLOTS or name in self._capacity.pools.by_name:
            return np.zeros(self._capacity.hosts, np.bool_)
        if self._capacity.counts(name) and not (found is not None and found.is_load):
            return np.zeros(self._capacity.hosts, np.bool_)
        return ground.takes & self.unreported(name, ground)

    def unreported(self, name: str, ground: Ground) -> Mask:
        """
        Return which hosts don't report a load index.
        """
        missing: Mask = self.amounts(name, ground) == MISSING
        return missing

    # -- order and likeness

    def order_keys(self, keys: Iterable[OrderKey], ground: Ground, hosts: Column) -> list[Column]:
        """
        Return columns that order hosts best first, the most significant first; a host without the
        value comes last.
        """
        found = []
        for key in keys:
            values = self.amounts(key.name, ground)[hosts]
            descriptor = self.catalogue.get(key.name)
            rising = (descriptor is not None and descriptor.lower_is_better) != key.is_reversed
            missing = values == MISSING
            if missing.any():
                found.append(missing.astype(np.int64))
            found.append(values if rising else -values)
        return found

    def alike(self, names: tuple[str, ...]) -> Column:
        """
        Return a code for every host: hosts of equal values of all names have equal codes. Hosts
        that lack a value are alike in that.
        """
        kinds = [(name, self._is_text(name)) for name in names]

        def code(host: HostView) -> int:
            values = tuple(
                host.text(name) if text else host.amount_milli(name) for name, text in kinds
            )
            codes = self._codes.setdefault(names, {})
            return codes.setdefault(values, len(codes))

        found: Column = self._remember(("alike", names), lambda: code, np.int64)
        return found

    def tiles(self, kinds: tuple[tuple[str, int], ...]) -> Column:
        """
        Return each host's own tile, by its type or model; 0 where none is meant for it.
        """
        known = dict(kinds)

        def tile(host: HostView) -> int:
            own = (host.text("type") or "", host.text("model") or "")
            return next((known[kind] for kind in own if kind in known), 0)

        found: Column = self._remember(("tiles", kinds), lambda: tile, np.int64)
        return found

    def listed(self, names: NameList) -> Mask:
        """
        Return which hosts a list of names holds.
        """
        found: Mask = self._remember(
            ("listed", names), lambda: lambda host: names.holds([host.name]), np.bool_
        )
        return found

    def preferences(self, names: NameList) -> Column:
        """
        Return the preference that a list of names has for each host.
        """
        found: Column = self._remember(
            ("preferences", names), lambda: lambda host: names.preference_of(host.name), np.int64
        )
        return found

    def _is_text(self, name: str) -> bool:
        found = self.catalogue.get(name)
        return found is not None and found.value_type is ValueType.STRING


def _inner(key: tuple[str, str, str], part: Expr) -> tuple[str, str, str]:
    """
    Return the key of a part of an expression; its nodes' text is as good as its rendering.
    """
    return (f"{part!r}", key[1], key[2])


def _compare(values: Column, op: str, bound: Fraction) -> Mask:
    """
    Compare whole thousandths with an exact bound.
    """
    low = max(-AMOUNT_MAX_MILLI, min(AMOUNT_MAX_MILLI, floor(bound)))
    high = max(-AMOUNT_MAX_MILLI, min(AMOUNT_MAX_MILLI, ceil(bound)))
    if op == ">":
        return values > low
    if op == ">=":
        return values >= high
    if op == "<":
        return values < high
    if op == "<=":
        return values <= low
    equal: Mask = (values == low) if bound.denominator == 1 else np.zeros(len(values), np.bool_)
    return equal if op == "==" else ~equal

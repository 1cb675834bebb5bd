"""
Load thresholds of queues and hosts: from which load on nothing starts there, and jobs are stopped.
"""

from __future__ import annotations

from collections.abc import Iterable

from domain.amounts import SLOTS, Milli
from domain.errors import Refused
from domain.event import Value
from domain.resources import Catalogue, ResourceDescriptor, ResourceName, ResourceScope, ValueType
from domain.resreq.settings import ALIASES
from domain.units import MEMORY_NAMES, MemoryUnit, parse_memory_milli, parse_milli


class LoadThreshold(Value):
    """
    Bound one load index of hosts, in thousandths of its base unit.

    Whether a load is beyond a bound by being above or below it is the index's own affair: below
    where more is better, such as free memory.

    Args:
        index: The name of the load index.
        sched_milli: Beyond it no job starts on the host (LSF's loadSched), None for no bound.
        stop_milli: Beyond it running jobs are stopped, one for each report of the load, until it is
            no longer beyond ``sched_milli`` (loadStop); nothing starts beyond it either.
    """

    index: ResourceName
    sched_milli: Milli | None = None
    stop_milli: Milli | None = None

    def stricter(self, *, is_ceiling: bool) -> int | None:
        """
        Return the bound beyond which nothing starts, None when there is none.
        """
        bounds = [each for each in (self.sched_milli, self.stop_milli) if each is not None]
        if not bounds:
            return None
        return min(bounds) if is_ceiling else max(bounds)


def check_thresholds(
    thresholds: Iterable[LoadThreshold], catalogue: Catalogue
) -> tuple[LoadThreshold, ...]:
    """
    Return thresholds with LSF's own names of their indices, when they make sense.

    Raises:
        Refused: An index is bounded twice, isn't a number that hosts report, or jobs would be
            stopped by a load at which they may start.
    """
    found: dict[str, LoadThreshold] = {}
    for each in thresholds:
        descriptor = catalogue.get(each.index)
        if descriptor is None or not _is_index(descriptor):
            rule = "must name a load index, a number that changes on each host"
            known = ", ".join(name for name in catalogue.names() if _names_index(name, catalogue))
            raise Refused("thresholds", rule, each.index, f"There are: {known}.")
        if descriptor.name in found:
            raise Refused("thresholds", "must bound each index once", each.index)
        sched, stop = each.sched_milli, each.stop_milli
        if sched is None and stop is None:
            raise Refused("thresholds", "must have sched_milli, stop_milli or both", each.index)
        if sched is not None and stop is not None:
            ceiling = descriptor.lower_is_better
            if stop < sched if ceiling else stop > sched:
                rule = "must not stop jobs by a load at which they may start"
                raise Refused("thresholds", rule, each.index)
        found[descriptor.name] = each.model_copy(update={"index": descriptor.name})
    return tuple(found.values())


def parse_thresholds(text: str, *, field: str = "thresholds") -> tuple[LoadThreshold, ...]:
    """
    Return thresholds said as LSF says them: "r1m=0.7/2.0 mem=500MB/100MB pg=/20", first where
    nothing starts, then where jobs are stopped; either may be left out.

    Raises:
        Refused: One isn't understood.
    """
    return tuple(_parsed(word, field) for word in text.split())


def _parsed(word: str, field: str) -> LoadThreshold:
    index, is_told, both = word.partition("=")
    sched, _, stop = both.partition("/")
    if not is_told or not (sched or stop):
        raise Refused(field, "must be INDEX=SCHED/STOP, one of the two at least", word)
    try:
        return LoadThreshold(
            index=index,
            sched_milli=_amount(index, sched, field) if sched else None,
            stop_milli=_amount(index, stop, field) if stop else None,
        )
    except ValueError as error:
        raise Refused(field, "must begin with the name of a load index", word) from error


def _amount(index: str, text: str, field: str) -> int:
    if ALIASES.get(index, index) in MEMORY_NAMES:
        return parse_memory_milli(text, unit=MemoryUnit.MB, field=field)
    return parse_milli(text, field=field)


def _is_index(descriptor: ResourceDescriptor) -> bool:
    is_number = descriptor.value_type is ValueType.NUMBER and descriptor.name != SLOTS
    return is_number and descriptor.scope is ResourceScope.HOST and not descriptor.is_static


def _names_index(name: str, catalogue: Catalogue) -> bool:
    found = catalogue.get(name)
    return found is not None and _is_index(found)


def is_beyond(load_milli: int, bound_milli: int, *, is_ceiling: bool) -> bool:
    """
    Say whether a load is beyond a bound; the bound itself isn't.
    """
    return load_milli > bound_milli if is_ceiling else load_milli < bound_milli

"""
Values as LSF's files and commands write them: ``Y``, ``5 10``, ``[5] 10``, ``1:30``,
``MAX_RESERVE_TIME[5]``, and the names of settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from domain.units import MINUTE_US
from tools.conformance.values import (
    Fields,
    Malformed,
    items_of,
    known_only,
    mapping_of,
    text_of,
    texts_of,
    whole_of,
)

YES: Final = frozenset({"y", "yes", "true", "1"})
NO: Final = frozenset({"n", "no", "false", "0", ""})

DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_CLOCK: Final = re.compile(
    r"(?:([0-6]|(?i:sun|mon|tue|wed|thu|fri|sat)[a-z]*)[ :])?(\d{1,2})(?::(\d{2}))?"
)
_NUMBER: Final = re.compile(r"\d+")
_NUMBERS: Final = re.compile(r"[\d\s\[\],]+")
_SHARE: Final = re.compile(r"\[\s*([\w@./-]+)\s*,\s*(\d+)\s*\]")
_RANGE: Final = re.compile(r"\[?\s*(\w+)\s*=\s*([\w.]+)\s*,\s*([\w.]+)\s*\]?")
_RESERVE: Final = re.compile(r"(?:MAX_RESERVE_TIME)?\s*\[?\s*(\d+)\s*\]?")
_PLACE: Final = re.compile(r"(?:(\d+(?:\.\d+)?)@)?\[([^\]]*)\]")
_RUN: Final = re.compile(r"(?:(\d+):)?(\d+)(?:/[\w.-]+)?")

SAME_PARAMS: Final[Fields] = {
    "RESOURCE_RESERVE_PER_TASK": "reserve_per_task",
    "RESOURCE_RESERVE_PER_SLOT": "reserve_per_task",
    "PARALLEL_SCHED_BY_SLOT": "parallel_sched_by_slot",
    "JOB_ACCEPT_INTERVAL": "accept_interval",
}
"""LSF's names of what the vectors call otherwise."""

SAME_IN_QUEUE: Final[Fields] = {
    "PROCLIMIT": "TASKLIMIT",
    "priority": "PRIORITY",
    "QUEUE_NAME": "name",
}


def named_alike(fields: Fields, same: Fields) -> Fields:
    """
    Return fields under the names that the runner uses.
    """
    return {text_of(same.get(name, name)): value for name, value in fields.items()}


def is_yes(value: object) -> bool:
    """
    Say whether a switch is on.
    """
    word = text_of(value).strip().lower()
    if word in YES | NO:
        return word in YES
    raise Malformed(f"expected yes or no, found {value!r}")


def wholes_of(value: object) -> list[int]:
    """
    Return whole numbers: one, a list, or a text of some in which brackets mean nothing.
    """
    if value is None:
        return []
    if isinstance(value, int) and not isinstance(value, bool):
        return [value]
    if isinstance(value, str):
        if not _NUMBERS.fullmatch(value):
            raise Malformed(f"expected whole numbers, found {value!r}")
        return [int(each) for each in _NUMBER.findall(value)]
    return [whole_of(each) for each in items_of(value)]


def minutes_of(value: object) -> int:
    """
    Return the minutes of a run limit: 90, ``90`` or ``1:30``.
    """
    if isinstance(value, str):
        found = _RUN.fullmatch(value.strip())
        if found is None:
            raise Malformed(f"expected MINUTES or HOURS:MINUTES, found {value!r}")
        return int(found[1] or 0) * 60 + int(found[2])
    return whole_of(value)


def clock_minutes(value: object) -> int:
    """
    Return the minutes from the vectors' beginning, the midnight before a Tuesday, to the next time
    of a clock: ``18:00``, ``Mon 18:00`` or ``1:18:00`` (Sunday is 0).
    """
    if isinstance(value, int) and not isinstance(value, bool):
        # What YAML makes of an unquoted 18:00.
        return value
    found = _CLOCK.fullmatch(text_of(value).strip())
    if found is None:
        raise Malformed(f"expected [DAY ]HOURS:MINUTES, found {value!r}")
    day, hours, minutes = found.groups()
    days = 0
    if day is not None:
        number = int(day) if day.isdecimal() else DAYS.index(day[:3].lower())
        days = (number - DAYS.index("tue")) % 7
    return (days * 24 + int(hours)) * 60 + int(minutes or 0)


def minutes_us(value: object) -> int | None:
    """
    Return the microseconds of a run limit, None for none.
    """
    return None if value is None else minutes_of(value) * MINUTE_US


def reserve_cycles(value: object) -> int | None:
    """
    Return for how many cycles slots are gathered, None for not at all.
    """
    if value is None or value is False:
        return None
    if isinstance(value, str):
        found = _RESERVE.fullmatch(value.strip())
        if found is None:
            raise Malformed(f"expected MAX_RESERVE_TIME[n], found {value!r}")
        return int(found[1])
    return whole_of(value)


def shares_of(value: object) -> Fields:
    """
    Return shares by account from a mapping or from ``USER_SHARES[[u1,10] [default,1]]``.
    """
    if isinstance(value, Mapping):
        return value
    found = _SHARE.findall(text_of(value))
    if not found:
        raise Malformed(f"expected USER_SHARES[[name,shares] ...], found {value!r}")
    return {name: int(shares) for name, shares in found}


def ranges_of(value: object) -> dict[str, list[object]]:
    """
    Return the least and the most of each resource, from a mapping or from ``[mem=100,500] [...]``.
    """
    if isinstance(value, Mapping):
        return {name: list(items_of(bounds)) for name, bounds in value.items()}
    found = _RANGE.findall(text_of(value))
    if value and not found:
        raise Malformed(f"expected [name=least,most], found {value!r}")
    return {name: [least, most] for name, least, most in found}


def places_of(
    location: object, total: object, hosts: Sequence[str]
) -> list[tuple[object, tuple[str, ...]]]:
    """
    Return the places of a shared resource: the total of each, and its hosts, none for all of them.

    Args:
        location: ``{h1: 1, "h2 h3": 2}``, ``5@[h1 h2] 1@[others]``, a list of mappings with hosts
            and a total; None for the whole cluster. ``all``, ``default`` (one for each host that
            isn't named) and ``others`` (one for all of those) stand for hosts.
        total: Of places that tell none.
        hosts: Those of the cluster.

    Raises:
        Malformed: It names a host that isn't there.
    """
    if location is None:
        return [(total, ())]
    told = [(amount, names.split()) for names, amount in _places(location, total)]
    named = {name for _, names in told for name in names} - {"all", "default", "others"}
    unknown = sorted(named - set(hosts))
    if unknown:
        raise Malformed(f"there is no host {', '.join(unknown)} to share a resource")
    rest = [name for name in hosts if name not in named]
    found: list[tuple[object, tuple[str, ...]]] = []
    for amount, names in told:
        if names == ["default"]:
            found += [(amount, (name,)) for name in rest]
        elif names == ["others"]:
            found += [(amount, tuple(rest))] if rest else []
        else:
            found.append((amount, () if names == ["all"] else tuple(names)))
    if len(found) == 1 and len(hosts) > 1 and set(found[0][1]) == set(hosts):
        # What all hosts share is the cluster's, also where they are told one by one.
        return [(found[0][0], ())]
    return found


def _places(location: object, total: object) -> list[tuple[str, object]]:
    """
    Return the hosts of each place, and what it has.
    """
    if isinstance(location, Mapping):
        return [(text_of(names), amount) for names, amount in location.items()]
    if isinstance(location, str):
        found = _PLACE.findall(location)
        if not found or _PLACE.sub("", location).strip():
            raise Malformed(f"expected TOTAL@[HOSTS] ..., found {location!r}")
        return [(names, amount or total) for amount, names in found]
    items = items_of(location)
    if all(isinstance(each, str) for each in items):
        return [(" ".join(texts_of(items)), total)]
    found = []
    for each in map(mapping_of, items):
        known_only(each, ("hosts", "total", "amount"), "a place of a shared resource")
        amount = each.get("total", each.get("amount", total))
        found.append((" ".join(texts_of(each["hosts"])), amount))
    return found

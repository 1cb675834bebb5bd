"""
Turn what a vector says of limits, users and groups into our own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from domain.groups import GroupSpec
from domain.limits import JOBS, SLOTS, TASKS, Basis, LimitAmount, LimitSpec, Scope
from domain.units import MILLI, MemoryUnit, parse_memory_milli, parse_milli
from domain.users import UserSpec
from domain.windows import Windows, parse_windows
from tools.conformance.core_policies import MEMORY_NAMES, names_of
from tools.conformance.core_setup import only
from tools.conformance.trial import NotYet
from tools.conformance.values import (
    NOTHING,
    Fields,
    Malformed,
    items_of,
    known_only,
    mapping_of,
    mappings_of,
    text_of,
    texts_of,
    whole_of,
)

DIMENSIONS: Final = {
    "USER": "users", "QUEUE": "queues", "HOST": "hosts", "PROJECT": "projects", "APP": "profiles",
    "GROUP": "groups",
}  # fmt: skip
COUNTED: Final = {"SLOTS": SLOTS, "JOBS": JOBS, "TASKS": TASKS}
WHEN: Final = frozenset({"WINDOW", "WINDOWS", "TIME_WINDOW", "TIME", "window", "windows", "time"})
"""Names of when a limit holds."""

OTHERWISE: Final = "_otherwise"
"""Ends the name of what a limit allows outside of its windows."""

_TIMED: Final = re.compile(r"(?:\d:)?\d{1,2}(?::\d{2})?-(?:\d:)?\d{1,2}:\d{2}")
_AMOUNT: Final = re.compile(r"\d+(?:\.\d+)?\s*[A-Za-z%]*")
_RESOURCE: Final = re.compile(r"\[?\s*(\w+)\s*,\s*([\d.]+)\s*\]?")


def limits_of(limit: Fields, *, groups: Fields = NOTHING) -> list[tuple[str, LimitSpec]]:
    """
    Return the limits that one of a vector is, by name: two where it has other amounts outside of
    its windows.

    Args:
        limit: As the vector says it.
        groups: Groups of hosts, each with its members.
    """
    name = text_of(limit.get("NAME", limit.get("name")))
    scopes: dict[str, Scope] = {}
    amounts: list[LimitAmount] = []
    others: list[LimitAmount] = []
    times: list[str] = []
    for field, value in limit.items():
        if field in WHEN:
            times += [" ".join(texts_of(value))]
        elif field not in {"NAME", "name"} and not _take_scope(field, value, scopes, groups):
            inside, outside, windows = _timed(value)
            amounts += _amounts(field, inside)
            others += _amounts(field, outside) if outside is not None else []
            times += windows
    if len(set(times)) > 1:
        raise NotYet(f"a limit with several windows: {', '.join(times)}")
    found = [(name, _spec(scopes, amounts, parse_windows(times[0]) if times else None))]
    if others:
        found.append((f"{name}{OTHERWISE}", _spec(scopes, others, _outside(times[0]))))
    return found


def _spec(
    scopes: Mapping[str, Scope], amounts: list[LimitAmount], windows: Windows | None
) -> LimitSpec:
    return LimitSpec.model_validate(
        {**scopes, "amounts": tuple(amounts), "windows": windows}, strict=False
    )


def _outside(window: str) -> Windows:
    """
    Return when a window is closed.
    """
    if len(window.split()) > 1:
        raise NotYet(f"amounts outside of several windows: {window}")
    begin, _, end = window.partition("-")
    return parse_windows(f"{end}-{begin}")


def _timed(value: object) -> tuple[object, object, list[str]]:
    """
    Return an amount, what holds outside of its window (None for nothing), and the window, for
    ``1 [08:00-18:00]`` and ``{"08:00-18:00": 1, default: 3}``.
    """
    if isinstance(value, Mapping) and "if" in value:
        known_only(mapping_of(value), ("if", "then", "else"), "a timed limit")
        return value["then"], value.get("else"), [text_of(value["if"])]
    if isinstance(value, Mapping):
        windows = [each for each in map(text_of, value) if _TIMED.fullmatch(each)]
        if len(windows) != 1:
            return value, None, []
        others = [each for name, each in value.items() if name != windows[0]]
        return value[windows[0]], next(iter(others), None), windows
    if not isinstance(value, str) or not (found := _TIMED.search(value)):
        return value, None, []
    rest = _AMOUNT.findall(value.replace(found[0], " "))
    if not rest:
        raise Malformed(f"there is no amount in {value!r}")
    return rest[0].strip(), rest[1].strip() if len(rest) > 1 else None, [found[0]]


def _take_scope(field: str, value: object, scopes: dict[str, Scope], groups: Fields) -> bool:
    """
    Take a dimension: USERS lists those who share, PER_USER those who each have the budget.
    """
    word = field.removeprefix("PER_").removesuffix("S")
    if word not in DIMENSIONS:
        return False
    names = names_of(value, groups if word == "HOST" else NOTHING)
    if names is None:
        raise Malformed(f"{field} of a limit must name somebody")
    if DIMENSIONS[word] in scopes:
        raise Malformed(f"a limit has {word}S or PER_{word}, not both")
    scopes[DIMENSIONS[word]] = Scope(names=names, is_each=field.startswith("PER_"))
    return True


def _amounts(field: str, value: object) -> list[LimitAmount]:
    if field == "RESOURCE":
        return [
            LimitAmount(resource=name, milli=parse_milli(text_of(each)))
            for name, each in _resources(value).items()
        ]
    if field in COUNTED:
        milli = int(text_of(value)) if isinstance(value, str) else whole_of(value)
        return [LimitAmount(resource=COUNTED[field], milli=milli * MILLI)]
    if field == "SLOTS_PER_PROCESSOR":
        milli = parse_milli(text_of(value))
        return [LimitAmount(resource=SLOTS, milli=milli, basis=Basis.PER_PROCESSOR)]
    name = field.lower()
    if name not in MEMORY_NAMES:
        raise NotYet(f"limit with {field}")
    if text_of(value).endswith("%"):
        milli = parse_milli(text_of(value).rstrip("%"))
        return [LimitAmount(resource=name, milli=milli, basis=Basis.PERCENT)]
    milli = parse_memory_milli(text_of(value), unit=MemoryUnit.MB)
    return [LimitAmount(resource=name, milli=milli)]


def _resources(value: object) -> Fields:
    """
    Return amounts by resource, from a mapping or from ``[lic,1]``.
    """
    if isinstance(value, str):
        return dict(_RESOURCE.findall(value))
    if isinstance(value, list):
        pairs = [value] if len(value) == 2 and isinstance(value[0], str) else value
        return {text_of(name): amount for name, amount in map(items_of, pairs)}
    return mapping_of(value)


def user_of(user: Fields) -> UserSpec:
    """
    Return a user.
    """
    only(user, {"name", "MAX_JOBS", "JL_P"}, "user")
    per_processor = user.get("JL_P")
    return UserSpec(
        slots_max=None if "MAX_JOBS" not in user else whole_of(user["MAX_JOBS"]),
        processor_slots_max_milli=None
        if per_processor is None
        else parse_milli(text_of(per_processor)),
    )


def groups_of(case: Fields) -> dict[str, GroupSpec]:
    """
    Return the user groups of a case: from a mapping of members, or from a list of groups or users
    that have members.
    """
    found: dict[str, GroupSpec] = {}
    for place in ("user_groups", "groups", "usergroups"):
        value = case.get(place)
        if isinstance(value, Mapping):
            value = [
                {"name": name, **(each if isinstance(each, Mapping) else {"members": each})}
                for name, each in value.items()
            ]
        found |= {text_of(group["name"]): _group(group) for group in mappings_of(value)}
    among_users = filter(is_group, mappings_of(case.get("users")))
    return {**found, **{text_of(group["name"]): _group(group) for group in among_users}}


def _group(group: Fields) -> GroupSpec:
    only(group, {"name", "members", "MAX_JOBS", "JL_U"}, "group")
    members = " ".join(texts_of(group.get("members"))).split()
    return GroupSpec(
        members=tuple(members),
        slots_max=None if "MAX_JOBS" not in group else whole_of(group["MAX_JOBS"]),
        user_slots_max=None if "JL_U" not in group else whole_of(group["JL_U"]),
    )


def is_group(user: Fields) -> bool:
    """
    Say whether what stands among users is a group: it has members.
    """
    return "members" in user


def host_groups_of(case: Fields) -> Fields:
    """
    Return the groups of hosts of a case, each with its members.
    """
    cluster = mapping_of(case.get("cluster"))
    places = (case.get("host_groups"),
              *(cluster.get(name) for name in ("host_groups", "hostgroups", "groups")))  # fmt: skip
    found: dict[str, object] = {}
    for value in places:
        if isinstance(value, list):
            found |= {text_of(each["name"]): each.get("members") for each in mappings_of(value)}
        else:
            found |= mapping_of(value)
    return found

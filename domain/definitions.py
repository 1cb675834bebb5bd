"""
What can be defined, and which fields each kind has: read off the models, so that no list of fields
can be behind them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import chain
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from domain.cluster import ClusterSettings
from domain.event import Value
from domain.fairshare import ShareNode
from domain.groups import GroupSpec
from domain.jobs import Text
from domain.limits import LimitAmount, LimitSpec, Scope
from domain.name_lists import NameList
from domain.profiles import ProfileSpec
from domain.projects import ProjectSpec
from domain.queues import QueueSpec
from domain.resources import ResourceDescriptor
from domain.resreq.syntax import Requirement
from domain.thresholds import LoadThreshold
from domain.users import UserSpec
from domain.windows import Windows
from domain.workers import HostSettings

MODELS: Final[dict[str, type[Value]]] = {
    "queue": QueueSpec,
    "resource": ResourceDescriptor,
    "user": UserSpec,
    "group": GroupSpec,
    "project": ProjectSpec,
    "limit": LimitSpec,
    "profile": ProfileSpec,
    "host": HostSettings,
    "cluster": ClusterSettings,
}
"""Kind of what is defined -> the model of its definition."""

AMOUNTS: Final = {"limit": "amounts", "project": "quotas"}
"""Kinds whose amounts are said by the resource's name, and the field that holds them."""

_MARK: Final = "Whether that is a default, can't be said otherwise, or is ANDed to the job's own."
_NAMED: Final = {"resource": "name"}
"""Kinds whose name is a field of the definition itself, and said before the others."""

_PLAIN_WORDS: Final = {
    "bool": "true or false",
    "names": 'names: "a b", "all ~c", "h1+2 others"',
    "scope": '"a b" together, or "each all ~c"',
    "windows": '"8:00-18:00 5:19:00-1:8:30"',
    "thresholds": '"INDEX=SCHED/STOP ..."',
    "amounts": "RESOURCE=4, 2GB, 50% or 2/processor",
    "shares": '"ann=10 staff=5(bob=1 eve=2)"',
    "words": "names, separated by blanks",
    "numbers": "numbers, separated by blanks",
    "text": "text",
    "requirement": "resource requirement",
    "json": "JSON",
}
_UNITS: Final = {
    "_us": "duration: 90s, 30m, 1h30m, or microseconds",
    "_kib": "memory: 500MB, 2GB, or KiB",
    "_milli": "number of thousandths",
}
"""Ends of the names of numbers, and what they are said in."""


_ANYTHING: Final[TypeAdapter[Any]] = TypeAdapter(Any)


@dataclass(frozen=True, slots=True)
class DefinedField:
    """
    Describe one field as people say it.

    Args:
        name: With a dot where it lies in another.
        shape: What kind of value it has: a key of the words above, number or enum.
        words: The same for people, with the unit.
        default: As people would say it, "" for nothing.
        is_needed: Whether a new definition must have it.
        meaning: What it is for.
    """

    name: str
    shape: str
    words: str
    default: str
    is_needed: bool
    meaning: str


def fields_of(kind: str) -> list[DefinedField]:
    """
    Return every field that people can say of one kind, in order.
    """
    return [each for each in _fields(MODELS[kind], "") if each.name != _NAMED.get(kind)]


def _fields(model: type[Value], before: str) -> Iterator[DefinedField]:
    meanings = meanings_of(model)
    for name, field in model.model_fields.items():
        shape = shape_of(field)
        if shape == "made":
            continue
        inner = model_inside(field) if shape == "inside" else None
        if inner is not None:
            yield from _fields(inner, f"{before}{name}.")
            continue
        yield DefinedField(
            name=before + name,
            shape=shape,
            words=_words(name, shape, field),
            default=_default(name, field),
            is_needed=field.is_required(),
            meaning=meanings.get(name, "") or _MARK * name.endswith("_mark"),
        )


def _words(name: str, shape: str, field: FieldInfo) -> str:
    if shape == "enum":
        return " or ".join(choices_of(field))
    if shape == "words" and choices_of(field):
        return f"some of {' '.join(choices_of(field))}"
    if shape == "json":
        inner = model_inside(field)
        return f"JSON: [{{{', '.join(inner.model_fields)}}}, ...]" if inner else _PLAIN_WORDS[shape]
    if shape != "number":
        return _PLAIN_WORDS[shape]
    end = next((words for end, words in _UNITS.items() if name.endswith(end)), None)
    return end or "whole number"


def _default(name: str, field: FieldInfo) -> str:
    from domain.definition_texts import show_value

    return "" if field.is_required() else show_value(name, field.get_default())


@cache
def usual_values(kind: str) -> dict[str, Any]:
    """
    Return what the fields of a definition are when nobody says them, as JSON has it; nothing of a
    kind that nobody defines.
    """
    model = MODELS.get(kind)
    return {} if model is None else dict(_usual_values(model, ""))


def _usual_values(model: type[Value], before: str) -> Iterator[tuple[str, Any]]:
    for name, field in model.model_fields.items():
        if not field.is_required():
            default = field.get_default(call_default_factory=True)
            yield before + name, _ANYTHING.dump_python(default, mode="json")
        inner = model_inside(field) if shape_of(field) == "inside" else None
        if inner is not None:
            yield from _usual_values(inner, f"{before}{name}.")


# ------------------------------------------------------------------------------------------ shapes


def shape_of(field: FieldInfo) -> str:
    """
    Return what kind of value a field has: "made" when nobody says it, since it is worked out from
    another.
    """
    first = next(part for part in _parts(field.annotation) if part is not type(None))
    if first == tuple[Text, ...]:
        return "requirement"
    if get_origin(first) is tuple:
        return _shape_of_tuple(next(iter(_parts(get_args(first)[0]))))
    known: dict[Any, str] = {
        Requirement: "made", NameList: "names", Scope: "scope", Windows: "windows", bool: "bool",
        int: "number", str: "text",
    }  # fmt: skip
    if first in known:
        return known[first]
    if get_origin(first) is Literal or issubclass(first, Enum):
        return "enum"
    return "inside" if issubclass(first, Value) else "json"


def _shape_of_tuple(inner: Any) -> str:
    by_model = {LoadThreshold: "thresholds", LimitAmount: "amounts", ShareNode: "shares"}
    if inner in by_model:
        return by_model[inner]
    if inner is int:
        return "numbers"
    if inner is str:
        return "words"
    return "words" if isinstance(inner, type) and issubclass(inner, Enum) else "json"


def _parts(annotation: Any) -> Iterator[Any]:
    """
    Yield what an annotation allows, without the bounds that go with it.
    """
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _parts(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for one in get_args(annotation):
            yield from _parts(one)
    else:
        yield annotation


def model_inside(field: FieldInfo) -> type[Value] | None:
    """
    Return the model that a field holds, None when it holds another kind of value.
    """
    return next((part for part in _inside(field) if issubclass(part, Value)), None)


def choices_of(field: FieldInfo) -> list[str]:
    """
    Return the values that a field of an enum or a literal may have.
    """
    words = [get_args(part) for part in _parts(field.annotation) if get_origin(part) is Literal]
    enums = [part for part in _inside(field) if issubclass(part, Enum)]
    return [*map(str, chain(*words)), *(str(one.value) for part in enums for one in part)]


def _inside(field: FieldInfo) -> Iterator[type]:
    """
    Yield the classes that a field may hold, also those of the entries of a list.
    """
    for part in _parts(field.annotation):
        entries = get_args(part) if get_origin(part) is tuple else (part,)
        for entry in entries:
            yield from (one for one in _parts(entry) if isinstance(one, type))


# ---------------------------------------------------------------------------------------- meanings

_ARGUMENT: Final = re.compile(r"^    ([a-z_]+): (.*)$")


def meanings_of(model: type[Value]) -> dict[str, str]:
    """
    Return what the docstring of a model says of its fields.
    """
    _, _, told = (inspect.getdoc(model) or "").partition("Args:\n")
    found: dict[str, list[str]] = {}
    name = ""
    for line in told.splitlines():
        match = _ARGUMENT.match(line)
        if match is not None:
            name = match[1]
            found[name] = [match[2]]
        elif line.startswith("        ") and name:
            found[name].append(line.strip())
        elif line.strip():
            break
    return {name: " ".join(lines).replace("``", "") for name, lines in found.items()}

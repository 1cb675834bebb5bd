"""
Hypothesis strategies for every event, command and record, found by introspection of their fields.

A new field gets values without anyone listing it.
"""

from __future__ import annotations

import enum
import types
import typing
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic.types import StringConstraints

INT_BOUND = 2**62
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=12
) | st.sampled_from(["", "é", "\u202e", "\n", '"', "\\", "\x00", "\x7f", "\U0001f600"])

ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"])
"""Time zones are looked up when windows are used: any text would be refused before."""


# Kept, since what a strategy can draw is worked out at its first use, which takes seconds here.
@cache
def instances(cls: type[Any]) -> st.SearchStrategy[Any]:
    """
    Return instances of a model or dataclass with every field varied.
    """
    if issubclass(cls, BaseModel):
        return st.deferred(
            lambda: st.fixed_dictionaries(_model_fields(cls)).map(lambda v: cls(**v))
        )
    assert is_dataclass(cls), cls
    hints = typing.get_type_hints(cls, include_extras=True)
    parts = {field.name: values_of(hints[field.name]) for field in fields(cls)}
    return st.fixed_dictionaries(parts).map(lambda v: cls(**v))


def _model_fields(cls: type[BaseModel]) -> dict[str, st.SearchStrategy[Any]]:
    return {
        name: ZONES if name == "zone" else _field(field) for name, field in cls.model_fields.items()
    }


def _field(field: FieldInfo) -> st.SearchStrategy[Any]:
    return _bounded(field.annotation, tuple(field.metadata))


def values_of(annotation: Any) -> st.SearchStrategy[Any]:
    """
    Return values of a type annotation.
    """
    return _bounded(annotation, ())


def _bounded(annotation: Any, metadata: tuple[Any, ...]) -> st.SearchStrategy[Any]:  # noqa: C901, PLR0912
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner: tuple[Any, ...] = ()
        for item in args[1:]:
            inner += tuple(item.metadata) if isinstance(item, FieldInfo) else (item,)
        return _bounded(args[0], (*inner, *metadata))
    if origin in (Union, types.UnionType):
        return st.one_of(*(values_of(arg) for arg in args))
    if origin is Literal:
        return st.sampled_from(args)
    if origin is tuple:
        if len(args) == 2 and args[1] is Ellipsis:
            low = max((m.min_length for m in metadata if isinstance(m, MinLen)), default=0)
            return st.lists(values_of(args[0]), min_size=low, max_size=low + 2).map(tuple)
        return st.tuples(*(values_of(arg) for arg in args))
    if origin is dict:
        return st.dictionaries(values_of(args[0]), values_of(args[1]), max_size=3)
    if origin is list:
        return st.lists(values_of(args[0]), max_size=2)
    if annotation is type(None):
        return st.none()
    if annotation is bool:
        return st.booleans()
    if annotation is int:
        return _ints(metadata)
    if annotation is str:
        return _texts(metadata)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return st.sampled_from(list(annotation))
    if isinstance(annotation, type) and (
        issubclass(annotation, BaseModel) or is_dataclass(annotation)
    ):
        return instances(annotation)
    message = f"no strategy for {annotation!r}: add one"
    raise TypeError(message)


def _ints(metadata: tuple[Any, ...]) -> st.SearchStrategy[int]:
    low, high = -INT_BOUND, INT_BOUND
    for item in metadata:
        if isinstance(item, Ge):
            low = int(item.ge)  # type: ignore[arg-type]
        elif isinstance(item, Gt):
            low = int(item.gt) + 1  # type: ignore[arg-type]
        elif isinstance(item, Le):
            high = int(item.le)  # type: ignore[arg-type]
        elif isinstance(item, Lt):
            high = int(item.lt) - 1  # type: ignore[arg-type]
    return st.integers(low, high) | st.sampled_from([low, high])


def _texts(metadata: tuple[Any, ...]) -> st.SearchStrategy[str]:
    pattern, low, high = None, 0, 12
    for item in metadata:
        if isinstance(item, StringConstraints):
            pattern = item.pattern or pattern
            low = item.min_length or low
        elif isinstance(item, MinLen):
            low = item.min_length
        elif isinstance(item, MaxLen):
            high = min(high, item.max_length)
        elif getattr(item, "pattern", None):
            pattern = item.pattern
    if pattern is not None:
        return st.from_regex(pattern, fullmatch=True).filter(lambda text: "\n" not in text)
    return TEXTS.filter(lambda text: low <= len(text)) if low else TEXTS


def perturbed(value: Any) -> list[tuple[str, Any]]:
    """
    Return (path of a field, the value with that one field changed), for every field on every level.
    """
    if isinstance(value, BaseModel):
        names = type(value).model_fields
        return [
            (f"{name}{path}", value.model_copy(update={name: other}))
            for name in names
            for path, other in _others(getattr(value, name))
        ]
    if is_dataclass(value) and not isinstance(value, type):
        kept = {field.name: getattr(value, field.name) for field in fields(value)}
        return [
            (f"{name}{path}", type(value)(**{**kept, name: other}))
            for name, old in kept.items()
            for path, other in _others(old)
        ]
    return []


def _others(value: Any) -> list[tuple[str, Any]]:
    """
    Return changed values, each with the path inside.
    """
    if isinstance(value, bool):
        return [("", not value)]
    if isinstance(value, enum.Enum):
        return [("", next(member for member in type(value) if member is not value))]
    if isinstance(value, int):
        return [("", value + 1)]
    if isinstance(value, str):
        return [("", value + "x")]
    if value is None:
        return [("", 7)]
    if isinstance(value, tuple | list):
        changed = [("[-]", type(value)(list(value)[:-1]))] if value else [("[+]", None)]
        if value:
            changed += [
                (f"[0].{path}", type(value)([other, *list(value)[1:]]))
                for path, other in perturbed(value[0])
            ]
        return changed
    if isinstance(value, dict):
        if not value:
            return [("{+}", {"x": 1})]
        return [("{-}", dict(list(value.items())[:-1]))]
    return [(f".{path}", other) for path, other in perturbed(value)]

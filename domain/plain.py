"""
Values and records to canonical JSON and back, complete by introspection.

Whatever fields a dataclass or model has are written and read; nobody lists them, so none can be forgotten.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")


@cache
def _adapter(cls: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(cls)


def to_json(value: object) -> bytes:
    """
    Return a record or value as JSON, in order of its fields.
    """
    return _adapter(type(value)).dump_json(value)


def from_json(cls: type[T], data: bytes) -> T:
    """
    Return a record or value from its JSON.

    Raises:
        pydantic.ValidationError: The JSON isn't such a record.
    """
    made: T = _adapter(cls).validate_json(data)
    return made

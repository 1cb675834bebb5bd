"""
Values and records to canonical JSON and back, complete by introspection.

Whatever fields a dataclass or model has are written and read; nobody lists them, so none can be
forgotten.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")


_adapters: Final[dict[type[Any], TypeAdapter[Any]]] = {}


def _adapter(cls: type[Any]) -> TypeAdapter[Any]:
    """
    Return the adapter of a class, made once.
    """
    adapter = _adapters.get(cls)
    if adapter is None:
        adapter = _adapters[cls] = TypeAdapter(cls)
    return adapter


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

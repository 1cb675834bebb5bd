"""
State <-> bytes. The schema's name changes with the shape of the records, so an old snapshot is
dropped, never misread.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from typing import Any, Final

from domain.plain import from_json, to_json
from projections.scheduling import records
from projections.scheduling.records import StoredState


def dump_state(stored: StoredState) -> bytes:
    """
    Return the stored state as JSON.
    """
    return to_json(stored)


def load_state(data: bytes) -> StoredState:
    """
    Return a stored state from its JSON.
    """
    return from_json(StoredState, data)


def _shape() -> str:
    """
    Return names and types of every field of every record.
    """
    found: list[str] = []
    for name in sorted(vars(records)):
        record: Any = getattr(records, name)
        if is_dataclass(record) and isinstance(record, type):
            found += [f"{name}.{field.name}: {field.type}" for field in fields(record)]
    return "\n".join(found)


SCHEMA: Final = f"core-{hashlib.sha256(_shape().encode()).hexdigest()[:16]}"
"""Names the shape of the state; a snapshot of another shape is not used."""

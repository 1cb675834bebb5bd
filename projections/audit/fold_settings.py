"""
Definitions to rows: every changed field, old and new, and what holds now.

An event that carries a definition carries it in a field named ``spec`` or ``settings``; so a kind
of
entity that is new in the vocabulary needs a line in the table below and nothing else.
"""

from __future__ import annotations

import json
from typing import Any

from domain.envelope import Envelope
from domain.event import Event
from domain.events.queues import (
    QueueActivated,
    QueueClosed,
    QueueDefined,
    QueueInactivated,
    QueueOpened,
)
from domain.events.scheduler import ClusterDefined
from domain.ids import entity_of_stream
from projections.audit.fold_state import FoldState
from projections.audit.rows.settings import ChangeRow, DefinitionRow

Json = dict[str, Any]


def _flat(content: Json, prefix: str = "") -> Json:
    """
    Return the leaves of nested objects by their joined names; lists are leaves.
    """
    leaves: Json = {}
    for name, value in content.items():
        if isinstance(value, dict) and value:
            leaves |= _flat(value, f"{prefix}{name}.")
        else:
            leaves[prefix + name] = value
    return leaves


def _text(leaves: Json, name: str) -> str | None:
    return json.dumps(leaves[name], ensure_ascii=False) if name in leaves else None


def define(state: FoldState, e: Envelope, kind: str, name: str, content: Json) -> None:
    """
    Take a definition as what holds now, and note each field that it changes.
    """
    before = state.definitions.get((kind, name))
    old = {} if before is None else _flat(json.loads(before.content))
    new = _flat(content)
    added = state.written.added["changes"]
    for field in sorted(old.keys() | new.keys()):
        was, becomes = _text(old, field), _text(new, field)
        if was != becomes:
            added.append(
                ChangeRow(e.position, field, e.time_us, e.actor, e.cause, kind, name, was, becomes)
            )
    text = json.dumps(content, ensure_ascii=False)
    row = DefinitionRow(kind, name, e.position, e.time_us, e.actor, text)
    state.definitions[kind, name] = row
    state.written.changed["definitions"][kind, name] = row


def redefine(state: FoldState, e: Envelope, kind: str, name: str, **fields: object) -> None:
    """
    Take some fields of a definition as changed.
    """
    before = state.definitions.get((kind, name))
    content = {} if before is None else json.loads(before.content)
    define(state, e, kind, name, content | fields)


def defined(state: FoldState, e: Envelope, event: Event) -> None:
    """
    Take the definition that an event carries.
    """
    kind, name = entity_of_stream(e.stream)
    content = getattr(event, "spec", None) or getattr(event, "settings", None)
    if content is not None:
        define(state, e, kind, name, content.model_dump(mode="json"))


def _sets(**fields: object) -> Any:
    def handle(state: FoldState, e: Envelope, event: Event) -> None:
        del event
        kind, name = entity_of_stream(e.stream)
        redefine(state, e, kind, name, **fields)

    return handle


HANDLERS: dict[str, Any] = {
    ClusterDefined.TYPE_CODE: defined,
    QueueDefined.TYPE_CODE: defined,
    QueueOpened.TYPE_CODE: _sets(is_open=True),
    QueueClosed.TYPE_CODE: _sets(is_open=False),
    QueueActivated.TYPE_CODE: _sets(is_active=True),
    QueueInactivated.TYPE_CODE: _sets(is_active=False),
}

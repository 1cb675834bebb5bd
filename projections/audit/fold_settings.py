"""
Definitions to rows: every changed field, old and new, and what holds now.

An event whose code ends in ``.defined`` carries a definition, one that ends in ``.removed`` takes
it away, so that a kind of entity that is new in the vocabulary needs nothing here.
"""

from __future__ import annotations

import json
from typing import Any

import domain.events  # noqa: F401 - defining the events fills the registry
from domain.envelope import Envelope
from domain.event import Event, event_classes
from domain.events.queues import QueueActivated, QueueClosed, QueueInactivated, QueueOpened
from domain.ids import entity_of_stream
from projections.audit.fold_spec import flat
from projections.audit.fold_state import FoldState
from projections.audit.rows.settings import ChangeRow, DefinitionRow

Json = dict[str, Any]


def _text(leaves: Json, name: str) -> str | None:
    return json.dumps(leaves[name], ensure_ascii=False) if name in leaves else None


def define(
    state: FoldState,
    e: Envelope,
    kind: str,
    name: str,
    content: Json,
    *,
    is_removed: bool = False,
) -> None:
    """
    Take a definition as what holds now, and note each field that it changes.
    """
    before = state.definitions.get((kind, name))
    old = {} if before is None else flat(json.loads(before.content))
    new = flat(content)
    added = state.written.added["changes"]
    for field in sorted(old.keys() | new.keys()):
        was, becomes = _text(old, field), _text(new, field)
        if was != becomes:
            added.append(
                ChangeRow(e.position, field, e.time_us, e.actor, e.cause, kind, name, was, becomes)
            )
    text = json.dumps(content, ensure_ascii=False)
    row = DefinitionRow(kind, name, e.position, e.time_us, e.actor, int(is_removed), text)
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
    Take the definition that an event carries: its one field.
    """
    kind, name = entity_of_stream(e.stream)
    content = event.model_dump(mode="json")
    values = [value for value in content.values() if isinstance(value, dict)]
    define(state, e, kind, name, values[0] if len(content) == len(values) == 1 else content)


def removed(state: FoldState, e: Envelope, event: Event) -> None:
    """
    Take a definition away: each of its fields had a value and has none now.
    """
    del event
    kind, name = entity_of_stream(e.stream)
    define(state, e, kind, name, {}, is_removed=True)


def _sets(**fields: object) -> Any:
    def handle(state: FoldState, e: Envelope, event: Event) -> None:
        del event
        kind, name = entity_of_stream(e.stream)
        redefine(state, e, kind, name, **fields)

    return handle


HANDLERS: dict[str, Any] = {
    **{code: defined for code in event_classes() if code.endswith(".defined")},
    **{code: removed for code in event_classes() if code.endswith(".removed")},
    QueueOpened.TYPE_CODE: _sets(is_open=True),
    QueueClosed.TYPE_CODE: _sets(is_open=False),
    QueueActivated.TYPE_CODE: _sets(is_active=True),
    QueueInactivated.TYPE_CODE: _sets(is_active=False),
}

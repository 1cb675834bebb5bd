"""
The JSON Schema of the lines of a recording: made from the registry of events, so that it can't lag
behind.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic.json_schema import models_json_schema

from domain.event import Event, event_classes
from store.transfer import RECORDING_FORMAT

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
TEMPLATE: Final = "#/$defs/{model}"
_POSITION: Final = {"type": "integer", "minimum": 1}
_HEX: Final = {"type": "string", "pattern": "^[0-9a-f]*$"}


def recording_schema() -> dict[str, Any]:
    """
    Return the schema of one line, as plain data.

    An event's payload is described for the newest version of its class; fields equal to their
    default are left out of it. A payload of an older version is any object.
    """
    classes = event_classes()
    mode: Literal["validation"] = "validation"
    models = [(cls, mode) for cls in classes.values()]
    references, definitions = models_json_schema(models, ref_template=TEMPLATE)
    payloads = {code: references[cls, mode] for code, cls in classes.items()}
    kinds = {"HEADER": _header(), "SNAPSHOT": _snapshot()}
    kinds |= {
        kind: _event({code: payloads[code] for code, cls in classes.items()
                      if cls.IS_DECISION is is_decision}, classes)
        for kind, is_decision in (("EVENT", False), ("DECISION", True))
    }  # fmt: skip
    return {
        "$schema": DIALECT,
        "$id": "urn:xce:recording:1",
        "title": f"One line of an XCE recording, format {RECORDING_FORMAT}",
        "description": (
            "A recording is JSON lines in UTF-8: one HEADER first; EVENT and DECISION lines by "
            "rising position without gaps; a SNAPSHOT before the event that follows its state, and "
            "always one before the first event unless that has position 1."
        ),
        "oneOf": [
            {
                "title": kind, "type": "object", "required": [kind],
                "properties": {kind: schema}, "additionalProperties": False,
            }
            for kind, schema in kinds.items()
        ],
        "$defs": definitions["$defs"],
    }  # fmt: skip


def _closed(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """
    Return the schema of an object with exactly these fields.
    """
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _header() -> dict[str, Any]:
    return _closed({
        "format": {"const": RECORDING_FORMAT},
        "log_id": {"type": "string"},
        "first_position": _POSITION,
        "events": {
            "type": ["integer", "null"], "minimum": 0,
            "description": "How many EVENT and DECISION lines follow; null: all to the file's end.",
        },
        "epoch": {"type": "integer", "minimum": 0},
        "head_digest": {
            **_HEX, "description": "The log's digest at the last line; empty for a part of a log.",
        },
    })  # fmt: skip


def _snapshot() -> dict[str, Any]:
    return _closed({
        "position": {"type": "integer", "minimum": 0},
        "time_us": {"type": "integer"},
        "schema": {"type": "string", "description": "Names the shape of the state."},
        "chain_digest": _HEX,
        "sha256": {**_HEX, "description": "Of the bytes of the state as they stand in the line."},
        "state": {"type": "object", "description": "The whole state of the core."},
    })  # fmt: skip


def _event(payloads: dict[str, Any], classes: dict[str, type[Event]]) -> dict[str, Any]:
    """
    Return the schema of an EVENT or DECISION line with one of these types.
    """
    optional = ("time_us", "actor", "cause", "schema", "ends_step", "payload", "state")
    described = _closed({
        "position": _POSITION,
        "stream": {"type": "string"},
        "version": {"type": "integer", "minimum": 1},
        "type": {"enum": list(payloads)},
        "epoch": {"type": "integer", "minimum": 0},
        "ends_commit": {"type": "boolean"},
        "time_us": {"type": "integer", "description": "Microseconds since 1970, UTC."},
        "actor": {"type": "string"},
        "cause": {"type": "string"},
        "schema": {"type": "integer", "minimum": 1},
        "ends_step": {"type": "boolean"},
        "payload": {"type": "object"},
        "state": {"type": "string", "description": "Base64, instead of the last six."},
    }, optional)  # fmt: skip
    described["allOf"] = [
        {
            "if": {"properties": {
                "type": {"const": code}, "schema": {"const": classes[code].CLASS_VERSION},
            }, "required": ["schema"]},
            "then": {"properties": {"payload": payload}},
        }
        for code, payload in payloads.items()
    ]  # fmt: skip
    return described

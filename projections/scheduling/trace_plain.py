"""
Decision traces as plain data and back: what is stored of them, and what programs get.

A field with its usual value is left out; reading puts it back.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, Field, fields
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final

from projections.scheduling.trace import (
    DecisionTrace,
    Key,
    Kind,
    Level,
    Line,
    Outcome,
    OutcomeHost,
    Passed,
    Rest,
    Row,
    SessionMark,
    Verdict,
)

_PARTS: Final[dict[type, dict[str, type]]] = {
    Line: {"kind": Kind, "rows": Row},
    Outcome: {"verdict": Verdict, "hosts": OutcomeHost, "rest": Rest},
    DecisionTrace: {
        "level": Level,
        "keys": Key,
        "lines": Line,
        "outcome": Outcome,
        "session": SessionMark,
        "passed": Passed,
    },
    Passed: {"session": SessionMark, "outcome": Outcome},
}
"""Which fields hold more than words and numbers."""

_NOTHING: Final = object()
_LEAVES: Final = frozenset({int, str, bool})


def _usual(one: Field[Any]) -> object:
    if one.default is not MISSING:
        return one.default
    return [] if one.default_factory is list else _NOTHING


_FIELDS: Final[dict[type, tuple[tuple[str, object], ...]]] = {
    kind: tuple((one.name, _usual(one)) for one in fields(kind))
    for kind in (
        Line, Row, Outcome, OutcomeHost, Rest, Key, DecisionTrace, SessionMark, Passed,
    )
}  # fmt: skip


_line_values = attrgetter(*(one.name for one in fields(Line) if one.name != "rows"))
_row_values = attrgetter(*(one.name for one in fields(Row)))


def plain(value: Any) -> Any:
    """
    Return a trace, or a part of one, as plain data.
    """
    known = _FIELDS.get(type(value))
    if known is not None:
        found = {}
        for name, usual in known:
            own = getattr(value, name)
            if own != usual:
                # hot: most are words and numbers, and a trace has thousands of them.
                found[name] = own if type(own) in _LEAVES else plain(own)
        return found
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value.value if isinstance(value, StrEnum) else value


def trace_of(value: dict[str, Any]) -> DecisionTrace:
    """
    Return the trace that plain data tell.
    """
    found: DecisionTrace = _built(DecisionTrace, value)
    return found


def _built(kind: type, value: Any) -> Any:
    if kind not in _FIELDS:
        return kind(value)
    parts = _PARTS.get(kind, {})
    told = {name: _part(parts.get(name), own) for name, own in value.items()}
    if "lines" in told:
        told["lines"] = list(told["lines"])
    return kind(**told)


def _part(kind: type | None, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_part(kind, one) for one in value)
    return value if kind is None else _built(kind, value)


def packed(trace: DecisionTrace) -> bytes:
    """
    Return a trace as bytes, without its session and what came after it.
    """
    told = {
        name: plain(getattr(trace, name))
        for name, usual in _FIELDS[DecisionTrace]
        if name not in ("lines", "session", "passed") and getattr(trace, name) != usual
    }
    # Lines by their place alone: there are thousands of them, and names would be most of it.
    lines = [
        (*_line_values(line), [_row_values(row) for row in line.rows]) for line in trace.lines
    ]
    return json.dumps([told, lines], separators=(",", ":")).encode()


def unpacked(data: bytes, session: SessionMark, passed: Passed | None) -> DecisionTrace:
    """
    Return the trace that bytes tell.
    """
    told, lines = json.loads(data)
    trace = trace_of({**told, "session": {"number": 0, "time_us": 0}})
    trace.session, trace.passed = session, passed
    trace.lines = [_line_of(*values) for values in lines]
    return trace


def _line_of(kind: str, *values: Any) -> Line:
    told = [*values[:-1], tuple(_row_of(*row) for row in values[-1])]
    return Line(Kind(kind), *told)


def _row_of(name: str, flags: list[str], *values: Any) -> Row:
    return Row(name, tuple(flags), *values)

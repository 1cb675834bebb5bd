"""
What a story is: lines in order of position, states as intervals, and what period it covers.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """
    Hold one thing that happened.

    Args:
        position: Its place in the log.
        time_us: When.
        actor: Who did it, "" for the scheduler itself.
        cause: Command or session that it follows from.
        type_code: Which kind of event it is.
        text: What happened, in words.
        changes: Field, old and new value (JSON texts or None) of each thing it changed.
        is_new: Whether all of what it changed wasn't there before: it defined something.
    """

    position: int
    time_us: int
    actor: str
    cause: str
    type_code: str
    text: str
    changes: tuple[tuple[str, str | None, str | None], ...] = ()
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """
    Hold one state with its begin and end; until_us is None while it lasts.
    """

    state: str
    since_us: int
    until_us: int | None


@dataclass(frozen=True, slots=True)
class Element:
    """
    Hold one element of an array with its state, and how long it was in each.
    """

    job_id: str
    state: str
    in_state_us: dict[str, int]


@dataclass(frozen=True, slots=True)
class Story:
    """
    Hold what is told: lines in order of position, states in order of time, and what period it
    covers.

    Args:
        kind: job, array, worker, queue and so on.
        name: Of the entity.
        lines: What happened.
        spans: States as intervals.
        in_state_us: How long in each state, up to now_us.
        position: Last position of the log that is covered.
        now_us: Time of that position.
        from_us: Begin of the period told, None for the log's beginning.
        to_us: Its end, None for the log's end.
        elements: Of an array, each of its elements.
        first_position: Where the recorded history begins; what came before was pruned.
    """

    kind: str
    name: str
    lines: tuple[Line, ...]
    spans: tuple[Span, ...]
    in_state_us: dict[str, int]
    position: int
    now_us: int
    from_us: int | None = None
    to_us: int | None = None
    elements: tuple[Element, ...] = ()
    first_position: int = 1

    def plain(self) -> dict[str, object]:
        """
        Return the story as plain data.
        """
        named: dict[str, object] = {"job_id": self.name} if self.kind == "job" else {}
        if self.kind == "array":
            named = {"elements": [asdict(one) for one in self.elements]}
        return {
            "kind": self.kind,
            "name": self.name,
            **named,
            "first_position": self.first_position,
            "position": self.position,
            "now_us": self.now_us,
            "from_us": self.from_us,
            "to_us": self.to_us,
            "events": [_plain_line(line) for line in self.lines],
            "states": [asdict(span) for span in self.spans],
            "in_state_us": self.in_state_us,
        }


def _plain_line(line: Line) -> dict[str, object]:
    plain = asdict(line)
    plain["changes"] = [
        {"field": field, "old": _value(old), "new": _value(new)} for field, old, new in line.changes
    ]
    return plain


def _value(text: str | None) -> object:
    return None if text is None else json.loads(text)

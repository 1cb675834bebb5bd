"""
Typed access to what a vector file says: YAML gives anything, a vector has a shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

Fields = Mapping[str, object]

NOTHING: Final[Fields] = {}


class Malformed(Exception):  # noqa: N818 - it tells of a vector, not of an error of the code
    """
    Say that a vector hasn't the shape that its kind needs.
    """


class LeftOut(Exception):  # noqa: N818 - as above
    """
    Say that a vector asks for a feature that isn't part of this program, and why.
    """


@dataclass(frozen=True, slots=True)
class Vector:
    """
    Hold one vector of a file.

    Args:
        fields: All of it, as the file says it.
        problem: Why it is no vector, "" for one.
    """

    id: str
    kind: str
    title: str
    fields: Fields
    problem: str = ""

    @property
    def topic(self) -> str:
        """
        Return the topic, "" without one.
        """
        return text_of(self.fields.get("topic"))


def mapping_of(value: object) -> Fields:
    """
    Return a mapping, an empty one for nothing.
    """
    if value is None:
        return NOTHING
    if not isinstance(value, Mapping):
        raise Malformed(f"expected a mapping, found {value!r}")
    return cast(Fields, value)


def items_of(value: object) -> Sequence[object]:
    """
    Return a list, an empty one for nothing.
    """
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise Malformed(f"expected a list, found {value!r}")
    return cast(Sequence[object], value)


def mappings_of(value: object) -> list[Fields]:
    """
    Return a list of mappings.
    """
    return [mapping_of(item) for item in items_of(value)]


def texts_of(value: object) -> tuple[str, ...]:
    """
    Return one text or several as several.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    return tuple(text_of(item) for item in items_of(value))


def text_of(value: object) -> str:
    """
    Return a text; a number or truth value as it would be written.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def whole_of(value: object) -> int:
    """
    Return a whole number.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise Malformed(f"expected a whole number, found {value!r}")
    return value


def known_only(fields: Fields, known: Iterable[str], what: str) -> None:
    """
    Do nothing, or name what of a mapping nobody would look at.

    Raises:
        Malformed: There is something.
    """
    unknown = sorted(set(map(str, fields)).difference(known))
    if unknown:
        raise Malformed(f"nothing is known of {', '.join(unknown)} in {what}")


def cases_of(fields: Fields) -> list[tuple[str, Fields]]:
    """
    Return the cases of a vector, each merged over the vector's own fields, with a label for
    messages.

    A vector without cases is one case: itself, with what stands under ``input``.
    """
    shared = {name: value for name, value in fields.items() if name not in {"cases", "input"}}
    shared.update(mapping_of(fields.get("input")))
    cases = mappings_of(fields.get("cases"))
    if not cases:
        return [("", shared)]
    return [(f"case {number}", {**shared, **case}) for number, case in enumerate(cases, 1)]


def differing(what: str, expected: object, found: object) -> list[str]:
    """
    Return a line when two values differ.
    """
    return [] if expected == found else [f"{what}: expected {expected!r}, found {found!r}"]

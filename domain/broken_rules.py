"""
What pydantic finds wrong with a value, said as field and rule in our own words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError

from domain.errors import Refused
from domain.ids import NAME_PATTERN
from domain.projects import PATH_PATTERN
from domain.texts import PRINTABLE_PATTERN

SHOWN_MAX: Final = 200
DIGITS_MAX: Final = 4300
"""Python and pydantic read no longer numbers."""

_WORDS: Final = {
    "missing": "must be given",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_type": "must be true or false",
    "string_type": "must be a text",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "model_type": "must be an object of fields",
    "model_attributes_type": "must be an object of fields",
    "dict_type": "must be an object of fields",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must have at least {min_length} characters",
    "too_long": "must have at most {max_length} entries",
    "too_short": "must have at least {min_length} entries",
    "literal_error": "must be one of {expected}",
    "enum": "must be one of {expected}",
    "json_invalid": "must be JSON: {error}",
    "value_error": "{error}",
}
"""Kind of error -> the rule, with what pydantic tells of it."""

_PATTERN_WORDS: Final = {
    NAME_PATTERN: "must be a name: up to 128 letters, digits and _ . @ + -, no sign first",
    PATH_PATTERN: "must be a path such as /physics/lasers: up to 16 names of up to 64 letters, "
    "digits and _ . @ + -",
    PRINTABLE_PATTERN: "must be of printable ASCII characters, without blanks",
}
"""What a text must look like, where people meet the rule; others are told as they are."""


def refused_of(
    error: ValidationError, model: type[BaseModel], *, inside: str = "", where: str = ""
) -> Refused:
    """
    Return what is wrong first, as field and rule.

    Args:
        error: What pydantic found.
        model: What the value should have been.
        inside: A field that everything else is in and that people don't name, "" for none.
        where: What the value was given by, such as an option; told before its field.
    """
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid" and (field := _too_long(first)) is not None:
        return Refused(f"{where} {field}".strip(), f"must have at most {DIGITS_MAX} digits")
    place = first["loc"]
    rule = _rule(first["type"], first["msg"], first.get("ctx") or {})
    if first["type"] == "extra_forbidden":
        rule = _known_fields(model, place[:-1])
    value = first.get("input")
    # A body that is no JSON isn't repeated: the message says where it goes wrong.
    is_plain = not isinstance(value, dict | list | bytes)
    shown = str(value)[:SHOWN_MAX] if is_plain and value is not None else None
    named = place[1:] if inside and place[:1] == (inside,) and len(place) > 1 else place
    field = ".".join(map(str, named))
    return Refused(f"{where} {field}".strip() or "body", rule, shown)


_NAMED: Final = re.compile(r'"([A-Za-z_]{1,64})"\s*:')
_LONG_NUMBER: Final = re.compile(rf"[0-9]{{{DIGITS_MAX + 1}}}")


def _too_long(told: Mapping[str, Any]) -> str | None:
    """
    Return the field of a number that is too long to be read at all, None when that isn't what is
    wrong: the nearest name before it.
    """
    body = told["input"]
    text = body.decode(errors="replace") if isinstance(body, bytes) else str(body)
    found = _LONG_NUMBER.search(text)
    if found is None:
        return None
    names = _NAMED.findall(text, 0, found.start())
    return str(names[-1]) if names else "body"


def _rule(kind: str, message: str, told: Mapping[str, Any]) -> str:
    if kind == "string_pattern_mismatch":
        pattern = str(told["pattern"])
        words = _PATTERN_WORDS.get(pattern.removeprefix("^$|"), f"must match {pattern}")
        return words[:SHOWN_MAX]
    found = _WORDS.get(kind)
    return message[:SHOWN_MAX] if found is None else found.format_map(told)[:SHOWN_MAX]


def _known_fields(model: type[BaseModel], place: tuple[int | str, ...]) -> str:
    """
    Return the rule for a field that isn't there: it names those that are.
    """
    found: type[BaseModel] | None = model
    for part in place:
        if isinstance(part, str) and found is not None:
            field = found.model_fields.get(part)
            found = None if field is None else _model_in(field.annotation)
    if found is None:
        return "must be a known field"
    return f"must be a known field, one of {', '.join(found.model_fields)}"


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """
    Return the model that an annotation holds, also in a tuple or beside None.
    """
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = map(_model_in, get_args(annotation))
    return next((one for one in inner if one is not None), None)

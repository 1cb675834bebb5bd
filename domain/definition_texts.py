"""
How definitions are said, FIELD=VALUE by FIELD=VALUE, and how they are shown: the same texts both
ways, wherever people give them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import Any, Final

from pydantic.fields import FieldInfo

from domain.definitions import AMOUNTS, MODELS, fields_of, model_inside, shape_of
from domain.errors import Refused
from domain.event import Value
from domain.fairshare import ShareNode, parse_shares
from domain.limits import COUNTED, Basis, LimitAmount, Scope
from domain.name_lists import NameList, parse_names
from domain.resources import BUILT_IN
from domain.resreq.settings import ALIASES
from domain.thresholds import LoadThreshold, parse_thresholds
from domain.units import (
    MEMORY_NAMES,
    MILLI,
    MemoryUnit,
    parse_duration_us,
    parse_memory_milli,
    parse_milli,
    show_by_name,
    show_memory,
    show_milli,
    whole_number,
)
from domain.windows import Window, Windows, parse_windows, show_windows
from domain.zones import UTC_NAME

Json = dict[str, Any]

SUGGESTED_MAX: Final = 3
LEVELS_MAX: Final = 50
NONE: Final = "none"
"""What takes a value away, as nothing after the = does, and what is shown of nothing."""

_PLAIN_NUMBER: Final = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")
_DURATIONS: Final = "say 90s, 30m, 1h30m or the like"


def definition_of(kind: str, current: Json, texts: tuple[str, ...]) -> Json:
    """
    Return a definition with fields changed.

    Args:
        kind: Of what; limits and projects have amounts of resources.
        current: The definition now, empty for a new one.
        texts: FIELD=VALUE; a dot reaches into a field; nothing or none after = takes a value away.

    Raises:
        Refused: One isn't understood, or there is no such field.
    """
    spec: Json = json.loads(json.dumps(current))
    for text in texts:
        name, is_told, value = text.partition("=")
        if not is_told or not name:
            raise Refused("definition", "must be said as FIELD=VALUE", text)
        if kind in AMOUNTS and name not in MODELS[kind].model_fields:
            try:
                _set_amount(spec, AMOUNTS[kind], name, value)
            except Refused as error:
                error.hint = _meant_instead(kind, name)
                raise
        else:
            _check_known(kind, name)
            set_field(MODELS[kind], spec, name, value)
    return spec


def _check_known(kind: str, name: str) -> None:
    """
    Do nothing, or refuse a field that a kind doesn't have, with those that were likely meant.

    It comes before what is missing is looked for: a mistyped field is often the missing one.
    """
    outer, _, _ = name.partition(".")
    if outer in MODELS[kind].model_fields:
        return
    names = [field.name for field in fields_of(kind)]
    close = [*get_close_matches(name, names), *(each for each in names if name in each)]
    meant = list(dict.fromkeys(close))[:SUGGESTED_MAX]
    hint = f"xce define {kind} --help names them."
    if meant:
        hint = f"Did you mean {' or '.join(meant)}? {hint}"
    article = "the" if kind == "cluster" else "a"
    raise Refused(name, f"must be a field of {article} {kind}", hint=hint)


def _meant_instead(kind: str, name: str) -> str:
    """
    Return what to say of an amount that isn't one: a mistyped field is taken for a resource,
    unless it names what everybody has.
    """
    if name in COUNTED or name in BUILT_IN:
        alone = "4, 2GB" if name in MEMORY_NAMES else "4"
        return f"An amount of {name} is {alone}, 50% or 2/processor."
    close = get_close_matches(name, [field.name for field in fields_of(kind)])
    if close:
        return f"{name} is taken for a resource. Did you mean {' or '.join(close)}?"
    return f"{name} is taken for a resource; xce define {kind} --help names the fields."


def _set_amount(spec: Json, field: str, resource: str, text: str) -> None:
    """
    Set the amount of one resource: 4, 2GB, 50%, 1.5/processor; take it away for none or an
    empty text.
    """
    kept = [each for each in spec.get(field) or [] if each["resource"] != resource]
    if text not in ("", NONE):
        number, basis = text, Basis.ABSOLUTE
        if text.endswith("%"):
            number, basis = text[:-1], Basis.PERCENT
        elif text.endswith("/processor"):
            number, basis = text.removesuffix("/processor"), Basis.PER_PROCESSOR
        is_memory = resource in MEMORY_NAMES and basis is Basis.ABSOLUTE
        milli = (
            parse_memory_milli(number, unit=MemoryUnit.MB, field=resource)
            if is_memory
            else parse_milli(number, field=resource)
        )
        kept.append({"resource": resource, "milli": milli, "basis": basis.value})
    spec[field] = kept


def set_field(model: type[Value], spec: Json, name: str, text: str) -> None:
    """
    Set one field of a definition, given as people say it; a dot reaches into a field.

    Args:
        model: Of the definition; a field that it doesn't have is set as JSON, for the check that
            names those it has.
        spec: The definition as JSON; changed in place.
        name: The field.
        text: Its value, "" or none to take it away.

    Raises:
        Refused: The text isn't understood.
    """
    outer, _, rest = name.partition(".")
    field = model.model_fields.get(outer)
    if rest:
        inner = model_inside(field) if field is not None else None
        inside = dict(spec.get(outer) or {})
        set_field(inner or Value, inside, rest, text)
        # What isn't there has nothing that could be taken away.
        if inside or spec.get(outer) is not None:
            spec[outer] = inside
        return
    shape = "json" if field is None else shape_of(field)
    if text == NONE and field is not None and _may_be_none(shape, field):
        text = ""
    if shape == "requirement":
        # What was parsed of the old text must not stay.
        spec[outer] = [text] if text else []
        spec["requirement"] = None
        return
    is_needed_text = shape == "text" and field is not None and field.is_required()
    if text or is_needed_text:
        spec[outer] = parse_value(outer, field, text)
    else:
        spec.pop(outer, None)


def _may_be_none(shape: str, field: FieldInfo) -> bool:
    """
    Say whether none takes a field's value away, rather than being a name or a text itself: any
    number's, and what is shown as none by default.
    """
    if shape == "number":
        return True
    if field.is_required():
        return False
    default = field.get_default(call_default_factory=True)
    if shape == "inside" and default is not None:
        return not any(text for _, text in told_fields(default))
    return not show_value("", default)


def parse_value(name: str, field: FieldInfo | None, text: str) -> Any:
    """
    Return a field's value as JSON has it, from how people say it; JSON itself is taken too.

    Args:
        name: Of the field; its end is the unit of a number.
        field: None for one that isn't known.
        text: What was given.

    Raises:
        Refused: The text isn't understood.
    """
    shape = "json" if field is None else shape_of(field)
    if shape in ("text", "enum"):
        return text
    if text[:1] in ("[", "{"):
        return _json(name, text)
    match shape:
        case "names":
            return parse_names(text, field=name).model_dump(mode="json")
        case "scope":
            each, _, rest = text.strip().partition(" ")
            if each == "each" and not rest.strip():
                raise Refused(name, "must name whom after each, such as each all", text)
            names = parse_names(rest if each == "each" else text, field=name)
            return {"names": names.model_dump(mode="json"), "is_each": each == "each"}
        case "windows":
            return parse_windows(text, field=name).model_dump(mode="json")
        case "thresholds":
            return [each.model_dump(mode="json") for each in parse_thresholds(text, field=name)]
        case "shares":
            return [each.model_dump(mode="json") for each in parse_shares(text)]
        case "words":
            return text.split()
        case "numbers":
            return [_json(name, word) for word in text.split()]
        case "number":
            return _number(name, text)
    return _json(name, text)


def _json(field: str, text: str) -> Any:
    """
    Return a value as JSON has it; what is no JSON is a text.

    Raises:
        Refused: It has more levels than any value, which would only fail later, and as a fault.
    """
    try:
        found = json.loads(text)
    except ValueError:
        return text
    except RecursionError:
        raise _too_deep(field, text) from None
    level = [found]
    for _ in range(LEVELS_MAX):
        level = [inner for each in level for inner in _inside(each)]
    if any(isinstance(each, dict | list) for each in level):
        raise _too_deep(field, text)
    return found


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _too_deep(field: str, text: str) -> Refused:
    return Refused(field, f"must be JSON of at most {LEVELS_MAX} levels of [ and {{", text)


def _number(name: str, text: str) -> Any:
    """
    Return a number with or without a unit; one without is in the unit of the field's name.
    """
    if _PLAIN_NUMBER.fullmatch(text.strip()):
        return _json(name, text)
    if name.endswith("_us"):
        return parse_duration_us(text, field=name, alone="a number of microseconds")
    if name.endswith("_kib"):
        return parse_memory_milli(text, unit=MemoryUnit.KB, field=name) // MILLI
    return text


def unit_notices(texts: Iterable[str]) -> dict[str, str]:
    """
    Return by field what numbers without a unit were taken for, where a unit may stand.

    LSF's bare durations are minutes, so whoever writes 90 rarely means microseconds.

    Args:
        texts: FIELD=VALUE, as they were given.
    """
    said = (text.partition("=") for text in texts)
    return {name: words for name, _, value in said if (words := _unit_words(name, value.strip()))}


def _unit_words(name: str, number: str) -> str:
    alone = whole_number(number)
    if not alone:
        return ""
    shown = show_by_name(name, alone)
    if name.endswith("_us"):
        return f"a number without a unit is in microseconds, so this is {shown}; {_DURATIONS}"
    if name.endswith("_kib"):
        return f"a number without a unit is in KiB, so this is {shown}; say 2GB, 500MB or the like"
    return ""


# -------------------------------------------------------------------------------------------- show


@dataclass(frozen=True, slots=True)
class FieldChange:
    """
    Hold what a field was and is, as people would say it; "" for nothing.
    """

    field: str
    old: str
    new: str

    def words(self) -> str:
        """
        Return it in words; something that is called none stands in quotes.
        """
        old, new = (f'"{text}"' if text == NONE else text or NONE for text in (self.old, self.new))
        return f"{self.field}: {old} -> {new}"


def changes_of(kind: str, before: Json, after: Json) -> list[FieldChange]:
    """
    Return what differs between two definitions of a kind; all that differs from the defaults when
    the first is empty, for a new one.
    """
    new = dict(told_fields(MODELS[kind].model_validate_json(json.dumps(after))))
    if before:
        old = dict(told_fields(MODELS[kind].model_validate_json(json.dumps(before))))
    else:
        old = {field.name: field.default for field in fields_of(kind) if field.name in new}
    return [
        FieldChange(name, old.get(name, ""), new.get(name, ""))
        for name in dict.fromkeys((*new, *old))
        if old.get(name, "") != new.get(name, "")
    ]


def told_fields(spec: Value, before: str = "") -> Iterator[tuple[str, str]]:
    """
    Yield each field of a definition with its value as people would say it, "" for none.

    Amounts stand by their resources; of a field with fields inside those are told, or the one when
    there is nothing in it. What is worked out from another field isn't told.
    """
    for name, field in type(spec).model_fields.items():
        value = getattr(spec, name)
        shape = shape_of(field)
        if shape == "made":
            continue
        if shape == "inside" and value is not None:
            yield from told_fields(value, f"{before}{name}.")
        elif shape == "amounts":
            for amount in value:
                yield amount.resource, show_amount(amount)
        else:
            yield before + name, show_value(name, value)


def show_value(name: str, value: Any) -> str:
    """
    Return a value as people would say it, "" for none.
    """
    if value is None or value == ():
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return show_by_name(name, value)
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, NameList):
        return value.text()
    if isinstance(value, Scope):
        return f"{'each ' * value.is_each}{value.names.text()}"
    if isinstance(value, Windows) and value.zone == UTC_NAME:
        return show_windows(value)
    if isinstance(value, tuple):
        return _show_many(value)
    return value.model_dump_json() if isinstance(value, Value) else str(value)


def _show_many(values: tuple[Any, ...]) -> str:
    first = values[0]
    if isinstance(first, LoadThreshold):
        return " ".join(map(_show_threshold, values))
    if isinstance(first, ShareNode):
        return " ".join(map(_show_share, values))
    if isinstance(first, Window):
        return show_windows(Windows(windows=values))
    if isinstance(first, Value):
        return json.dumps([each.model_dump(mode="json") for each in values])
    return " ".join(show_value("", each) for each in values)


def show_amount(amount: LimitAmount) -> str:
    """
    Return an amount as people say it: 4, 2GB, 50%, 1.5/processor.
    """
    if amount.basis is Basis.PERCENT:
        return f"{show_milli(amount.milli)}%"
    if amount.basis is Basis.PER_PROCESSOR:
        return f"{show_milli(amount.milli)}/processor"
    return _show_of(amount.resource, amount.milli)


def _show_threshold(threshold: LoadThreshold) -> str:
    bounds = (threshold.sched_milli, threshold.stop_milli)
    sched, stop = ("" if each is None else _show_of(threshold.index, each) for each in bounds)
    return f"{threshold.index}={sched}{'/' if stop else ''}{stop}"


def _show_of(resource: str, milli: int) -> str:
    is_memory = ALIASES.get(resource, resource) in MEMORY_NAMES and milli
    return show_memory(milli) if is_memory else show_milli(milli)


def _show_share(node: ShareNode) -> str:
    members = f"({' '.join(map(_show_share, node.members))})" if node.members else ""
    return f"{node.name}={node.shares}{members}"

"""
Who did what: commands, also refused and denied ones, with what they changed, old and new.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from domain.definition_texts import NONE, show_amount, show_value
from domain.definitions import AMOUNTS, usual_values
from domain.fairshare import ShareNode
from domain.limits import LimitAmount
from domain.thresholds import LoadThreshold
from domain.units import show_amount_rounded, show_time
from domain.windows import Window
from projections.audit.fields import JOB, field_words, is_made
from projections.audit.privacy import EVERYTHING, Viewer, is_shown
from projections.audit.reading import Reading, Row
from projections.audit.views import COMMANDS

# What lists of names and amounts are made of, and how the field that holds one ends.
LISTED_NAME = {"name", "preference", "is_first", "is_excluded"}
RESOURCES = "resources."
SETTINGS = "settings."
WORKER = "worker"
OF_HOSTS = (RESOURCES, SETTINGS, "attributes.")
LIST_ENDINGS = (".entries", ".names", ".windows")
MOMENTS = ("begin_us", "deadline_us")
SCOPE_NAMES = ".names.entries"
IS_EACH = ".is_each"


@dataclass(frozen=True, slots=True)
class Question:
    """
    Say which commands are asked for; what is None doesn't matter.

    Args:
        user: Who did it.
        about: Job id, queue, host or other name that it was about.
        command: Words of the command, such as "close host".
        first_position: From there on.
        last_position: Up to there.
        only_refused: Only what was refused or denied.
        without_submissions: Leave submissions out; on most logs they are nearly everything.
        limit: So many at most, the latest.
    """

    user: str | None = None
    about: str | None = None
    command: str | None = None
    first_position: int | None = None
    last_position: int | None = None
    only_refused: bool = False
    without_submissions: bool = False
    limit: int = 1000


def commands(reading: Reading, question: Question, viewer: Viewer = EVERYTHING) -> list[Row]:
    """
    Return the commands asked for, in order of position, each with its changes.

    A change is an object of field, old and new, as JSON values; old is None for what is new. What
    other users' jobs run, or were to run, is left out unless the viewer may see it.
    """
    conditions, values = _conditions(question)
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    rows = reading.rows(
        f"SELECT * FROM commands {where} ORDER BY position DESC LIMIT ?", (*values, question.limit)
    )
    return [_as_seen(row, viewer) | _changes(reading, row, viewer) for row in reversed(rows)]


def _as_seen(row: Row, viewer: Viewer) -> Row:
    """
    Return a command without what it was given when it was refused to somebody else: that may be
    what a job was to run.
    """
    return row if viewer.may_see(row["actor"]) else row | {"value": ""}


def _conditions(question: Question) -> tuple[list[str], list[object]]:
    chosen: list[tuple[str, object]] = []
    if question.user is not None:
        chosen.append(("actor = ?", question.user))
    if question.about is not None:
        chosen.append(("object = ?", question.about))
    if question.command is not None:
        chosen.append(("command = ?", question.command))
    if question.first_position is not None:
        chosen.append(("position >= ?", question.first_position))
    if question.last_position is not None:
        chosen.append(("position <= ?", question.last_position))
    conditions = [condition for condition, _ in chosen]
    if question.only_refused:
        conditions.append("outcome <> 'done'")
    if question.without_submissions:
        conditions.append(f"(command <> '{COMMANDS['job.submitted']}' OR outcome <> 'done')")
    return conditions, [value for _, value in chosen]


def _changes(reading: Reading, command: Row, viewer: Viewer) -> Row:
    """
    Return what a command changed, and whether none of it was there before.
    """
    rows = reading.rows(
        "SELECT field, old, new FROM changes WHERE position = ? ORDER BY field",
        (command["position"],),
    )
    is_private = not viewer.is_privileged and _is_others(reading, command, viewer)
    changes = [
        {"field": row["field"], "old": _value(row["old"]), "new": _value(row["new"])}
        for row in rows
        if is_shown(row["field"], is_private=is_private)
    ]
    return {"changes": changes, "is_new": all(row["old"] is None for row in rows)}


def _is_others(reading: Reading, command: Row, viewer: Viewer) -> bool:
    if command["object_kind"] != "job":
        return False
    owner = reading.value("SELECT user FROM jobs WHERE job_id = ?", (command["object"],))
    return owner is None or not viewer.may_see(str(owner))


def _value(text: str | None) -> object:
    return None if text is None else json.loads(text)


def told_changes(
    changes: Iterable[Mapping[str, object]], kind: str, *, is_new: bool, is_removal: bool = False
) -> list[str]:
    """
    Return changes in words, those that tell people something: neither the empty fields of what is
    new, nor what is worked out from another field, nor what a removed thing had.

    Args:
        changes: Of one event: field, old and new, as JSON values.
        kind: Of what they are.
        is_new: Whether none of it was there before.
        is_removal: Whether the thing is gone.
    """
    if is_removal:
        return []
    usual = usual_values(kind) if is_new else {}
    plain = _amounts_apart(_scopes_joined(changes), kind)
    told = [one for one in plain if _tells(one, kind, usual)]
    return [change_words(one, kind, is_new=is_new and kind != JOB) for one in told]


def _scopes_joined(changes: Iterable[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """
    Return changes with whom a limit is for, which is names and whether for each of them, as one.
    """
    by_field = {str(one["field"]): one for one in changes}
    for field in [field for field in by_field if field.endswith(SCOPE_NAMES)]:
        scope = field.removesuffix(SCOPE_NAMES)
        each = by_field.pop(scope + IS_EACH, None)
        if each is not None:
            shown: dict[str, object] = {"field": field}
            for side in ("old", "new"):
                names = by_field[field][side]
                shown[side] = None if names is None else _each(each[side]) + _shown(field, names)
            by_field[field] = shown
    return list(by_field.values())


def _each(is_each: object) -> str:
    return "each " if is_each else ""


def _amounts_apart(
    changes: Iterable[Mapping[str, object]], kind: str
) -> Iterator[Mapping[str, object]]:
    """
    Yield changes with each resource's amount by itself, as it is said.
    """
    for one in changes:
        if one["field"] != AMOUNTS.get(kind):
            yield one
            continue
        old, new = _by_resource(one["old"]), _by_resource(one["new"])
        for resource in dict.fromkeys((*old, *new)):
            was, becomes = old.get(resource), new.get(resource)
            if was != becomes:
                yield {"field": resource, "old": was, "new": becomes}


def _by_resource(amounts: object) -> dict[str, str]:
    entries = amounts if isinstance(amounts, list) else []
    found = [LimitAmount.model_validate_json(json.dumps(entry)) for entry in entries]
    return {one.resource: show_amount(one) for one in found}


def is_removal(command: str) -> bool:
    """
    Say whether a command, or the type code of an event, takes something away as a whole.
    """
    return command.startswith("remove ") or command.endswith(".removed")


def _tells(change: Mapping[str, object], kind: str, usual: Mapping[str, object]) -> bool:
    field, new = str(change["field"]), change["new"]
    if is_made(field, kind) or (field in usual and usual[field] == new):
        return False
    # 0 says something, though it equals False.
    return change["old"] is not None or not (new is False or new in (None, "", [], {}))


def change_words(change: Mapping[str, object], kind: str = "", *, is_new: bool = True) -> str:
    """
    Return a change in words: "priority: 30 -> 40", or of what is new "users = all ~ann".
    """
    field = str(change["field"])
    for ending in LIST_ENDINGS:
        field = field.removesuffix(ending)
    # What a host reports stands beside what administrators say of it, which may come later.
    is_new = is_new and not field.startswith(SETTINGS)
    new, called = _shown(field, change["new"]), _called(field, kind)
    if change["old"] is None and is_new:
        return f"{called} = {new}"
    return f"{called}: {_shown(field, change['old'])} -> {new}"


def _called(field: str, kind: str) -> str:
    """
    Return what people call a field: those of a host without the part of its entity they lie in.
    """
    for part in OF_HOSTS if kind == WORKER else ():
        field = field.removeprefix(part)
    return field_words(field, kind)


def _shown(field: str, value: object) -> str:
    """
    Return a value as whoever defined it wrote it, as far as it has such a form.
    """
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and field.startswith(RESOURCES):
        return show_amount_rounded(field.removeprefix(RESOURCES), value)
    if isinstance(value, int) and not isinstance(value, bool) and field in MOMENTS:
        return show_time(value)
    if isinstance(value, int):
        return show_value(field, value)
    if value in (None, "", [], {}):
        return NONE
    parts = [_part(one) for one in value] if isinstance(value, list) else []
    if not parts or None in parts:
        return json.dumps(value, ensure_ascii=False)
    return " ".join(map(str, parts))


def _part(entry: object) -> str | None:
    """
    Return one of a list: a text, a listed name, or an amount; None for anything else.
    """
    if (isinstance(entry, str) and entry) or isinstance(entry, int):
        return str(entry)
    if not isinstance(entry, dict):
        return None
    if entry.keys() == LISTED_NAME:
        wish = f"+{entry['preference']}" if entry["preference"] else ""
        before, after = "~" * bool(entry["is_excluded"]), "!" * bool(entry["is_first"])
        return f"{before}{entry['name']}{after}{wish}"
    if entry.keys() == LimitAmount.model_fields.keys():
        amount = LimitAmount.model_validate_json(json.dumps(entry))
        return f"{amount.resource}={show_amount(amount)}"
    for model in (LoadThreshold, Window, ShareNode):
        if entry.keys() == model.model_fields.keys():
            return show_value("", (model.model_validate_json(json.dumps(entry)),))
    return None

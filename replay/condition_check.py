"""
Refuse conditions that no state can ever make true or false: a typing mistake must not become a
condition that never holds.

Without a log one can't know which jobs, hosts, queues and resources there are; what is known of
every log are the names of the whole state, the fields of an entity, and the states of a job.
"""

from __future__ import annotations

from dataclasses import fields
from difflib import get_close_matches
from typing import Final

from domain.cluster import ClusterSettings
from domain.errors import Refused
from domain.ids import split_job_id
from domain.job_states import JobState
from domain.jobs import JobSpec
from domain.queues import QueueSpec
from projections.scheduling.records import JobRecord, QueueRecord, WorkerRecord
from replay.condition_syntax import Binary, Entity, Fold, Literal, Moment, Name, Node, Unary
from replay.moments import parse_moment

STATES: Final = tuple(state.value for state in JobState)
WHOLE: Final[dict[str, tuple[str, ...]]] = {
    "position": (),
    "time": (),
    "session": (),
    "jobs": ("known", *STATES),
    "hosts": ("known",),
    "slots": ("total", "used", "free"),
    "cluster": tuple(ClusterSettings.model_fields),
}
"""Each name of the whole state, and what may stand behind its dot."""
CONSTANTS: Final = ("none", "true", "false")
JOB_EXTRAS: Final = ("wait", "hosts", "reasons", "id", "user", "queue", "name", "tasks")
"""What can be asked of a job besides the fields of its record."""
HOST_EXTRAS: Final = ("slots_used", "slots_usable")
RESOURCE_FIELDS: Final = ("total_milli", "charged_milli", "available_milli")
FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "job": (*(one.name for one in fields(JobRecord)), *JOB_EXTRAS),
    "host": (*(one.name for one in fields(WorkerRecord)), *HOST_EXTRAS),
    "queue": (*(one.name for one in fields(QueueRecord)), *QueueSpec.model_fields, *STATES),
}
"""By kind of entity, what may stand behind its dot; of hosts the resources too, unknown here."""
SPECS: Final = {"job": tuple(JobSpec.model_fields), "queue": tuple(QueueSpec.model_fields)}
KINDS: Final = {"jobs": "job", "hosts": "host", "queues": "queue"}


def check_condition(node: Node, field: str, *, is_truth: bool = False, kind: str = "") -> None:
    """
    Refuse a tree that means nothing.

    Args:
        node: The tree, or a part of it.
        field: Whose text it is, for errors.
        is_truth: It stands where only true or false makes sense, so a text means nothing.
        kind: The kind of the entities that the fold around it looks at, "" outside of folds.

    Raises:
        Refused: A job id, a time, a name, a field or a state of a job is none.
    """
    match node:
        case Entity():
            _check_entity(node, field)
        case Moment():
            if parse_moment(field, node.text).time_us is None:
                raise Refused(field, "time() must be given a time, not a position", node.text)
        case Name():
            _check_name(node.parts, field, kind)
            if is_truth and _is_text(node, kind):
                raise _unknown(node.parts[0], field, kind)
        case Binary():
            _check_binary(node, field, kind)
        case Unary():
            check_condition(node.inner, field, is_truth=True, kind=kind)
        case Fold():
            check_condition(node.inner, field, is_truth=True, kind=KINDS[node.collection])
        case Literal():
            pass


def _check_binary(node: Binary, field: str, kind: str) -> None:
    is_truth = node.sign in ("and", "or")
    sides = (node.left, node.right)
    for one in sides:
        check_condition(one, field, is_truth=is_truth, kind=kind)
    if is_truth:
        return
    for one, other in (sides, sides[::-1]):
        if isinstance(one, Name) and _is_text(one, kind) and _is_constant(other, kind):
            raise _unknown(one.parts[0], field, kind)
        if node.sign in ("=", "!=") and _is_state(one, kind):
            _check_state(other, field, kind)


def _check_state(node: Node, field: str, kind: str) -> None:
    """
    Refuse what a job's state is compared with, when it is a text that is no state.
    """
    text = ""
    if isinstance(node, Name) and _is_text(node, kind):
        text = node.parts[0]
    elif isinstance(node, Literal):
        text = str(node.value)
    if text and text not in STATES:
        raise Refused(field, f"a job's state must be one of {', '.join(STATES)}, none", text)


def _check_entity(node: Entity, field: str) -> None:
    if node.kind == "job":
        split_job_id(node.name)
    if node.parts:
        _check_field(node.kind, node.parts, field)


def _check_name(parts: tuple[str, ...], field: str, kind: str) -> None:
    if kind and _is_field(kind, parts):
        _check_field(kind, parts, field)
        return
    inner = WHOLE.get(parts[0])
    if inner is None:
        if len(parts) > 1:
            raise _unknown(".".join(parts), field, kind)
        return
    given = ".".join(parts[1:])
    if parts[0] == "jobs" and given != "known":
        given = given.upper()
    needs_one = parts[0] in ("slots", "cluster")
    if (given and given not in inner) or (needs_one and not given):
        known = f"one of {', '.join(inner)}" if inner else "nothing"
        raise Refused(field, f"{parts[0]} must be followed by {known}", ".".join(parts))


def _check_field(kind: str, parts: tuple[str, ...], field: str) -> None:
    given = ".".join(parts)
    if not _is_field(kind, parts):
        more = f", or RESOURCE.{'|'.join(RESOURCE_FIELDS)}" if kind == "host" else ""
        hint = _near(parts[0], FIELDS[kind])
        raise Refused(field, f"must name a field of a {kind}{more}", given, hint)
    specs = SPECS.get(kind, ())
    if parts[0] == "spec" and len(parts) > 1 and specs and parts[1] not in specs:
        hint = _near(parts[1], specs)
        raise Refused(field, f"must name a field of a {kind}'s spec", given, hint)


def _near(name: str, known: tuple[str, ...]) -> str:
    near = get_close_matches(name, sorted(set(known)), n=3)
    all_of_them = "xce replay state LOG job:ID, host:NAME or queue:NAME shows them."
    return f"Is it {' or '.join(near)}? {all_of_them}" if near else all_of_them


def _is_field(kind: str, parts: tuple[str, ...]) -> bool:
    if kind == "host" and len(parts) == len(("mem", "total_milli")):
        return parts[0] in FIELDS[kind] or parts[1] in RESOURCE_FIELDS
    is_count = kind == "queue" and parts[0].upper() in STATES
    return is_count or parts[0] in FIELDS[kind]


def _is_text(node: Name, kind: str) -> bool:
    """
    Say whether a name means nothing where it stands, and so is a text.
    """
    parts = node.parts
    is_known = parts[0] in WHOLE or (kind != "" and _is_field(kind, parts))
    return len(parts) == 1 and not is_known and parts[0] not in CONSTANTS


def _is_constant(node: Node, kind: str) -> bool:
    """
    Say whether no state has a part in what something comes to.
    """
    if isinstance(node, Name):
        return node.parts[0] in CONSTANTS or _is_text(node, kind)
    return isinstance(node, Literal)


def _is_state(node: Node, kind: str) -> bool:
    if isinstance(node, Entity):
        return node.kind == "job" and node.parts == ("state",)
    return kind == "job" and isinstance(node, Name) and node.parts == ("state",)


def _unknown(name: str, field: str, kind: str) -> Refused:
    fields_too = f", or a {kind}'s field" if kind else ""
    return Refused(field, f"must begin with one of {', '.join(WHOLE)}{fields_too}", name)

"""
What a branch changes: settings, hosts, inputs left out, inputs added.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar, final

from pydantic import Field, StringConstraints, ValidationError

import domain.commands
from domain.broken_rules import refused_of
from domain.cluster import ClusterSettings
from domain.commands import JoinWorker
from domain.definition_texts import NONE, set_field
from domain.definitions import model_inside
from domain.errors import Refused
from domain.event import Value
from domain.given_files import unreadable
from domain.ids import check_name
from domain.queues import QueueSpec
from projections.scheduling.plugins import Plugins
from replay.cluster_file import cluster_of_size, read_cluster_file
from replay.cluster_spec import OPTION
from replay.joining import joining

SET: Final = "--set"
ADD_HOSTS: Final = "--add-hosts"
_HOW_HOSTS: Final = "Give HOSTSxSLOTS (for example 10x8), or a cluster file."
_HOW: Final = (
    "For example queue.night.priority=50, queue.priority=50 (all queues), cluster.picker=NAME."
)
_MODELS: Final[dict[str, type[Value]]] = {"queue": QueueSpec, "cluster": ClusterSettings}
T = TypeVar("T", bound=Value)
_size = re.compile(r"([0-9]{1,15})x([0-9]{1,15})")


@final
@dataclass(frozen=True, slots=True)
class Setting:
    """
    Hold one setting to change: a field of the cluster, of one queue, or of all queues (name "").

    Args:
        field: With a dot where it lies in another.
        value: As it was given.
    """

    kind: str
    name: str
    field: str
    value: str

    def text(self) -> str:
        """
        Return it as it was written.
        """
        middle = f".{self.name}" if self.name else ""
        return f"{self.kind}{middle}.{self.field}={self.value}"


@final
@dataclass(frozen=True, slots=True)
class AddedInput:
    """
    Hold a command that isn't in the parent.
    """

    time_us: int
    actor: str
    command: Any


@final
@dataclass(frozen=True, slots=True)
class Changes:
    """
    Hold everything that is different in the branch; nothing by default.

    Args:
        settings: In the order in which they were given.
        hosts: Hosts that join at the beginning.
        dropped: Positions of the parent's inputs that are left out.
        added: Inputs by time.
    """

    settings: tuple[Setting, ...] = ()
    hosts: tuple[JoinWorker, ...] = ()
    dropped: frozenset[int] = frozenset()
    added: tuple[AddedInput, ...] = field(default=())

    def __bool__(self) -> bool:
        return bool(self.settings or self.hosts or self.dropped or self.added)

    def texts(self) -> tuple[str, ...]:
        """
        Return each change in words.
        """
        return (
            *(f"set {setting.text()}" for setting in self.settings),
            *(f"add host {host.worker} with {host.slots} slots" for host in self.hosts),
            *(f"drop event {position}" for position in sorted(self.dropped)),
            *(f"add {type(one.command).__name__} at {one.time_us}" for one in self.added),
        )

    def cluster(self, settings: ClusterSettings) -> ClusterSettings:
        """
        Return the cluster's settings with the changes.
        """
        return _with(settings, [one for one in self.settings if one.kind == "cluster"])

    def queue(self, name: str, spec: QueueSpec) -> QueueSpec:
        """
        Return a queue's definition with the changes.
        """
        return _with(spec, [one for one in self.settings
                            if one.kind == "queue" and one.name in ("", name)])  # fmt: skip

    def check_pickers(self, plugins: Plugins) -> None:
        """
        Refuse a picker that nobody knows, before it is written to a log.
        """
        for setting in self.settings:
            is_clusters = setting.kind == "queue" and setting.value in ("", NONE)
            if setting.field == "picker" and not is_clusters:
                check_picker(f"{SET} picker", setting.value, plugins)


def check_picker(field: str, name: object, plugins: Plugins) -> None:
    """
    Refuse a picker that nobody knows.

    Args:
        field: What named it.
        name: What was given.
        plugins: All there are.
    """
    if name not in plugins.pickers:
        raise Refused(field, f"must be one of {', '.join(sorted(plugins.pickers))}", name)


def _with(value: T, settings: list[Setting]) -> T:
    """
    Return a value with some fields changed, checked as strictly as any other.
    """
    if not settings:
        return value
    fields = json.loads(value.model_dump_json())
    for setting in settings:
        set_field(type(value), fields, setting.field, setting.value)
    try:
        return type(value).model_validate_json(json.dumps(fields))
    except ValidationError as error:
        raise refused_of(error, type(value), where=SET) from None


# ----------------------------------------------------------------------------------------- parsing


def parse_setting(text: str) -> Setting:
    """
    Return the setting that a text names: queue.NAME.FIELD=VALUE, queue.FIELD=VALUE, or
    cluster.FIELD=VALUE; values are said as in definitions.

    Raises:
        Refused: It isn't of that form, there is no such field, or its value isn't understood.
    """
    path, mark, value = text.partition("=")
    kind, *inner = path.split(".")
    model = _MODELS.get(kind)
    if not mark or model is None or not inner:
        raise Refused(SET, "must be queue.NAME.FIELD=VALUE or cluster.FIELD=VALUE", text, _HOW)
    name, field = _split(model, inner)
    if not field or (kind == "cluster" and name):
        raise Refused(SET, f"must name a field: {', '.join(model.model_fields)}", path, _HOW)
    if len(inner) > field.count(".") + 1:
        check_name(f"{SET} {kind} name", name)
    try:
        set_field(model, {}, field, value)
    except Refused as error:
        error.field = f"{SET} {error.field}"
        raise
    return Setting(kind, name, field, value)


def _split(model: type[Value], inner: list[str]) -> tuple[str, str]:
    """
    Return the name and the field, which may lie in another; no field when the model has none so.
    """
    *before, last = inner
    if last in model.model_fields:
        return ".".join(before), last
    outer = model.model_fields.get(before[-1]) if before else None
    inside = None if outer is None else model_inside(outer)
    if inside is None or last not in inside.model_fields:
        return "", ""
    return ".".join(before[:-1]), f"{before[-1]}.{last}"


def parse_hosts(text: str, taken: frozenset[str]) -> tuple[JoinWorker, ...]:
    """
    Return hosts to add: a size (10x8: ten hosts of eight slots, added0001 and so on) or a cluster
    file.

    Args:
        text: What was asked for.
        taken: Names of hosts that are there.

    Raises:
        Refused: It is neither, or a host of that name is there.
    """
    size = _size.fullmatch(text)
    try:
        if size:
            hosts = cluster_of_size(int(size[1]), int(size[2])).hosts
            named = [(f"added{host.name.removeprefix('host')}", host) for host in hosts]
        else:
            named = [(host.name, host) for host in read_cluster_file(Path(text)).hosts]
    except Refused as error:
        # The readers of clusters speak of the option that they were made for.
        field = error.field.replace(OPTION, ADD_HOSTS)
        raise type(error)(field, error.rule, error.value, _HOW_HOSTS) from None
    for name, _ in named:
        if name in taken:
            raise Refused(ADD_HOSTS, "must name hosts that aren't there yet", name)
    return tuple(joining(host, name) for name, host in named)


class InputLine(Value):
    """
    Describe one line of a file of inputs.

    Args:
        time_us: When, in microseconds UTC; not before the branch begins.
        actor: The user on whose behalf, "" for the scheduler itself.
        command: Name of the command: SubmitJob, KillJob, CloseWorker, ...
        fields: Its fields, as JSON.
    """

    time_us: Annotated[int, Field(ge=0, le=2**62)]
    actor: Annotated[str, StringConstraints(max_length=256)] = ""
    command: str
    fields: dict[str, Any]


def read_inputs(path: Path) -> tuple[AddedInput, ...]:
    """
    Read a file of inputs, one JSON object a line, by time; blank lines are passed over.

    Raises:
        Refused: The file can't be read, or a line isn't such an object; its number is told.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable("--events", path, error) from None
    return tuple(sorted(_inputs(lines), key=lambda one: one.time_us))


def _inputs(lines: list[str]) -> Iterator[AddedInput]:
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        where = f"--events line {number}"
        line = _read(InputLine, text, where)
        kind = _command(where, line.command)
        yield AddedInput(line.time_us, line.actor, _read(kind, json.dumps(line.fields), where))


def _read(model: type[T], text: str, where: str) -> T:
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise refused_of(error, model, where=where) from None


def _command(where: str, name: str) -> type[Value]:
    if name not in domain.commands.__all__:
        raise Refused(where, f"must be one of {', '.join(domain.commands.__all__)}", name)
    found: type[Value] = getattr(domain.commands, name)
    return found

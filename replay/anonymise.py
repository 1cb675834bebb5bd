"""
Take people out of a recording: the same name becomes the same alias everywhere in it, and every
decision stays what it was.

Users, groups, projects, limits, profiles, names of jobs, commands, paths and keys become aliases;
environments, descriptions, messages and other free text are dropped. Hosts, queues, resources,
requirements, times and amounts stay. Aliases are in the order of the names that they stand for, so
that whatever is decided by the order of names is decided alike. Words of the program with names in
them, such as the charges in a fingerprint, have each name replaced; one that is also the name of a
queue, host or resource can't be told apart there, and stays in such words.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, final

from pydantic import BaseModel

from domain.envelope import Envelope, Stamped
from domain.event import Event
from domain.ids import entity_of_stream
from domain.plain import to_json
from projections.scheduling.records import StoredState
from projections.scheduling.snapshot import load_state
from replay.anonymise_rules import KEYS, RULES, Kind
from store.codec import decode, encode
from store.recordings import SnapshotLine
from store.transfer import ANONYMISED, RecordedEvent

RESERVED: Final = frozenset(("", "all", "others", "default"))
"""What lists of names mean by themselves."""

STREAM_KINDS: Final = {
    "user": Kind.PERSON, "group": Kind.PERSON, "project": Kind.PROJECT, "limit": Kind.LIMIT,
    "profile": Kind.PROFILE,
}  # fmt: skip
PREFIXES: Final = {
    Kind.PERSON: "user", Kind.PROJECT: "project", Kind.LIMIT: "limit", Kind.PROFILE: "profile",
    Kind.JOB: "job", Kind.COMMAND: "command", Kind.PATH: "path", Kind.KEY: "key",
}  # fmt: skip
NAMED: Final = (Kind.PERSON, Kind.PROJECT, Kind.LIMIT, Kind.PROFILE)
"""Kinds that the program's own words name."""

PROGRAM_WORDS: Final = frozenset(
    "user group queue project limit profile host hosts jobs slots tasks mem of charged".split()
)
_token = re.compile(r"/?[A-Za-z0-9][A-Za-z0-9_.@+/-]*")
_code = re.compile(r"[A-Z][A-Z0-9_]*|[1-9][0-9]*(\[[0-9]+\])?|")
Mapper = Callable[[Kind, str], str]


@final
class Aliases:
    """
    Know the alias of every name: first all names are seen, then aliases are given.
    """

    def __init__(self) -> None:
        self._seen: dict[Kind, set[str]] = {kind: set() for kind in PREFIXES}
        self._public: set[str] = set()
        self._given: dict[Kind, dict[str, str]] = {}

    # -- seeing

    def see(self, kind: Kind, name: str) -> str:
        """
        Note a name; it stays as it is.
        """
        if kind is Kind.STREAM:
            entity, name_in_it = entity_of_stream(name)
            if entity in STREAM_KINDS:
                self.see(STREAM_KINDS[entity], name_in_it)
            elif entity in ("queue", "worker", "resource"):
                self._public.add(name_in_it)
        elif kind in self._seen:
            self._seen[kind] |= set(_parts(kind, name))
        return name

    def settle(self) -> None:
        """
        Give every name that was seen its alias, in the order of the names.
        """
        everything = {name for names in self._seen.values() for name in names}
        for kind, names in self._seen.items():
            prefix = PREFIXES[kind]
            while any(name.startswith(f"{prefix}-") for name in everything):
                prefix = f"x{prefix}"
            width = len(str(len(names)))
            self._given[kind] = {
                name: f"{prefix}-{number:0{width}}" for number, name in enumerate(sorted(names), 1)
            }
        self._words = {
            name: alias
            for kind in NAMED
            for name, alias in self._given[kind].items()
            if name not in self._public and name not in PROGRAM_WORDS
        }

    # -- replacing

    def alias(self, kind: Kind, name: str) -> str:
        """
        Return what stands for a text.
        """
        if kind is Kind.DROPPED:
            return ""
        if kind is Kind.WORDS:
            return name if _code.fullmatch(name) else "(left out)"
        if kind is Kind.STREAM:
            entity, named = entity_of_stream(name)
            known = STREAM_KINDS.get(entity)
            return name if known is None else f"{entity}:{self.alias(known, named)}"
        if kind is Kind.MIXED:
            return _token.sub(self._word, name)
        given = self._given[kind]
        if kind is Kind.PROJECT:
            return "/".join(given.get(part, part) for part in name.split("/"))
        for ending in ("*", "@"):
            if name.endswith(ending) and name[:-1] in given:
                return given[name[:-1]] + ending
        return given.get(name, name)

    def _word(self, found: re.Match[str]) -> str:
        return "/".join(self._words.get(part, part) for part in found[0].split("/"))


def _parts(kind: Kind, name: str) -> Iterator[str]:
    """
    Yield the names in a text: the parts of a path, a name without what follows it.
    """
    if kind is Kind.PROJECT:
        yield from (part for part in name.split("/") if part not in RESERVED)
    elif name not in RESERVED:
        yield name[:-1] if name[-1] in "*@" and len(name) > 1 else name


# ---------------------------------------------------------------------------------------- the walk


def walked(value: Any, map_text: Mapper, kind: Kind | None = None) -> Any:
    """
    Return a value, record or event with every text that the rules name mapped.

    Args:
        value: Frozen models, dataclasses and plain containers of them.
        map_text: Given what a text is, returns what stands there instead.
        kind: What the names in lists are that don't say it themselves.
    """
    if isinstance(value, BaseModel):
        fields = ((name, getattr(value, name)) for name in type(value).model_fields)
        changed = _changed(type(value).__name__, fields, map_text, kind)
        return value.model_copy(update=changed) if changed else value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((each.name, getattr(value, each.name)) for each in dataclasses.fields(value))
        changed = _changed(type(value).__name__, fields, map_text, kind)
        return dataclasses.replace(value, **changed) if changed else value
    if isinstance(value, tuple):
        parts = tuple(walked(each, map_text, kind) for each in value)
        return value if all(map(_is, parts, value)) else parts
    if isinstance(value, dict):
        return {key: walked(each, map_text, kind) for key, each in value.items()}
    return value


def _is(one: object, other: object) -> bool:
    return one is other


def _changed(
    owner: str, fields: Iterable[tuple[str, Any]], map_text: Mapper, kind: Kind | None
) -> dict[str, Any]:
    """
    Return the fields that become something else.
    """
    found = {}
    for name, value in fields:
        if value is None or isinstance(value, int):
            continue
        rule = RULES.get((owner, name))
        if rule is Kind.INHERITED:
            rule = kind
        if (owner, name) in KEYS:
            keys = KEYS[owner, name]
            value = {map_text(keys, key): each for key, each in value.items()}  # noqa: PLW2901
        new = walked(value, map_text, kind) if rule is None else _mapped(value, rule, map_text)
        if new is not value or (owner, name) in KEYS:
            found[name] = new
    return found


def _mapped(value: Any, rule: Kind, map_text: Mapper) -> Any:
    if isinstance(value, str):
        return map_text(rule, value)
    if rule is Kind.DROPPED:
        return ()
    if rule is Kind.COMMAND and isinstance(value, tuple):
        # The whole argument list is one command.
        return (map_text(rule, "\0".join(value)),) if value else value
    if isinstance(value, tuple):
        return tuple(_mapped(each, rule, map_text) for each in value)
    return walked(value, map_text, rule)


# -------------------------------------------------------------------------------------- recordings


@final
class Anonymiser:
    """
    Anonymise the lines of one recording; what they hold is looked at once before.

    Args:
        events: Gives the events anew each time it is called.
        states: So the states.
    """

    def __init__(
        self,
        events: Callable[[], Iterable[RecordedEvent]],
        states: Callable[[], Iterable[SnapshotLine]],
    ) -> None:
        self._aliases = Aliases()
        for event in events():
            _stamped(_envelope(event).stamped(), self._aliases.see)
        for state in states():
            walked(load_state(state.state), self._aliases.see)
        self._aliases.settle()

    def event(self, recorded: RecordedEvent) -> RecordedEvent:
        """
        Return an event without names.
        """
        stamped = _stamped(_envelope(recorded).stamped(), self._aliases.alias)
        return RecordedEvent(
            recorded.position, encode(stamped), recorded.epoch, recorded.ends_commit
        )

    def state(self, line: SnapshotLine) -> SnapshotLine:
        """
        Return a state without names.
        """
        stored: StoredState = walked(load_state(line.state), self._aliases.alias)
        return dataclasses.replace(line, chain_digest="", state=to_json(stored))


def anonymous_id(log_id: str) -> str:
    """
    Return what an anonymised recording is called.
    """
    return f"{ANONYMISED}{hashlib.sha256(log_id.encode()).hexdigest()[:16]}"


def _envelope(recorded: RecordedEvent) -> Envelope:
    return decode(recorded.position, *recorded.row)  # type: ignore[arg-type]


def _stamped(stamped: Stamped, map_text: Mapper) -> Stamped:
    """
    Return an event with its surroundings mapped.
    """
    cause = stamped.cause
    event: Event = walked(stamped.event, map_text)
    return stamped._replace(
        stream=map_text(Kind.STREAM, stamped.stream),
        actor=map_text(Kind.PERSON, stamped.actor),
        cause=cause if cause.startswith("session ") else map_text(Kind.KEY, cause),
        event=event,
    )


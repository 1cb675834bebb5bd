"""
What `info` shows: every part of the state where one stands, and what the debugger itself holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, final

from domain.errors import NotFound, Refused
from domain.job_states import JobState
from replay.debugger.breakpoints import Streams, parse_selector
from replay.debugger.show import (
    breakpoint_lines,
    columns,
    event_line,
    host_lines,
    job_lines,
    plain_lines,
    queue_lines,
    reason_lines,
    state_lines,
)
from replay.entities import entity, plain

if TYPE_CHECKING:
    from replay.debugger.commands import Commands

Lines = Iterator[str]
RECORDS: Final = {
    "array": "arrays",
    "group": "groups",
    "limit": "limits",
    "profile": "profiles",
    "project": "projects",
    "resource": "resources",
    "user": "users",
}
"""Definitions: one by its name, or all of them."""

NAMED: Final = frozenset({"queue", *RECORDS})
"""Topics that take a name of a table of the state."""

TOPICS: Final = tuple(
    sorted(
        {
            "accounts", "breakpoints", "cluster", "documents", "event", "events", "host", "hosts",
            "job", "jobs", "keys", "position", "queue", "queues", "reasons", "trace", "watches",
            *RECORDS, *RECORDS.values(),
        }
    )
)  # fmt: skip
WITH_NAME: Final = frozenset(
    {"host", "job", "queue", "jobs", "events", "accounts", "trace", *RECORDS}
)


@final
class Topics:
    """
    Show topics.

    Args:
        commands: Whose cursor, units, breakpoints, watches and traces.
    """

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._cursor = commands.cursor

    def show(self, rest: str) -> Lines:
        """
        Yield what a topic shows.

        Raises:
            Refused: There is no such topic, or it takes no name, or needs one.
            NotFound: Nothing has that name here.
        """
        topic, _, name = rest.partition(" ")
        name = name.strip()
        if topic not in TOPICS:
            raise Refused("info", f"must be one of {', '.join(TOPICS)}", topic)
        if name and topic not in WITH_NAME:
            raise Refused(f"info {topic}", "takes no argument", name)
        return self._topics(topic, name)[topic]()

    def names(self, topic: str) -> list[str]:
        """
        Return what a topic can be asked for by name.
        """
        stored = self._cursor.core.state.stored
        table: dict[object, object] = getattr(stored, RECORDS.get(topic, f"{topic}s"))
        return [str(name) for name in table]

    def _topics(self, topic: str, name: str) -> dict[str, Callable[[], Lines]]:
        """
        Return what shows each topic.
        """
        commands, cursor = self._commands, self._cursor
        core, units, rows = cursor.core, commands.units, commands.rows
        one = {kind: lambda: self._entity(topic, _needed(topic, name))
               for kind in ("host", "job", "queue")}  # fmt: skip
        all_of = {kind: lambda: plain_lines(entity(core, topic), units)
                  for kind in ("cluster", "documents", "keys")}  # fmt: skip
        records = {kind: lambda: self._record(topic, _needed(topic, name)) for kind in RECORDS}
        tables = {kind: lambda: self._records(topic) for kind in RECORDS.values()}
        return {
            **one,
            **all_of,
            **records,
            **tables,
            "accounts": lambda: self._accounts(name),
            "breakpoints": lambda: breakpoint_lines(commands.breakpoints.values()),
            "event": self._event,
            "events": lambda: self._events(_needed("events", name)),
            "hosts": lambda: host_lines(core, rows, units),
            "jobs": lambda: self._jobs(name),
            "position": lambda: state_lines(core, cursor.position, cursor.head, units),
            "queues": lambda: queue_lines(core),
            "reasons": lambda: reason_lines(core, rows),
            "trace": lambda: self._trace(name),
            "watches": self._watch_lines,
        }

    def _trace(self, name: str) -> Lines:
        traces = self._commands.traces
        traces.units = self._commands.units
        yield from traces.info(name, self._commands.rows)

    # -- the state

    def _jobs(self, name: str) -> Lines:
        """
        Yield jobs: all, those in a state, or those that a selector names.
        """
        known = list(self._cursor.core.state.stored.jobs.values())
        if name.upper() in JobState.__members__:
            known = [job for job in known if job.state.value == name.upper()]
        elif name:
            selected = parse_selector(name)
            known = [job for job in known if selected.has(job.stream)]
        commands = self._commands
        yield from job_lines(self._cursor.core, known, commands.rows, commands.units)

    def _entity(self, kind: str, name: str) -> Lines:
        if kind == "job" and name.endswith("[*]"):
            yield from self._jobs(name)
            return
        found = entity(self._cursor.core, f"{kind}:{name}")
        yield from plain_lines(found, self._commands.units)

    def _table(self, topic: str) -> dict[str, Any]:
        table = getattr(self._cursor.core.state.stored, topic)
        return {str(name): record for name, record in table.items()}

    def _record(self, kind: str, name: str) -> Lines:
        table = self._table(RECORDS[kind])
        if name not in table:
            raise NotFound(f"info {kind}", "must be known here", name)
        yield from plain_lines(plain(table[name]), self._commands.units)

    def _records(self, topic: str) -> Lines:
        table, rows = self._table(topic), self._commands.rows
        if not table:
            yield f"no {topic}"
        for name, record in list(table.items())[:rows]:
            yield from plain_lines({name: plain(record)}, self._commands.units)
        if len(table) > rows:
            yield f"and {len(table) - rows} more"

    def _accounts(self, name: str) -> Lines:
        """
        Yield what is charged on a host, or on all of them.
        """
        commands = self._commands
        if name:
            found = entity(self._cursor.core, f"host:{name}")
            told = {"accounts": found["accounts"], "jobs": found["jobs"]}
            yield from plain_lines(told, commands.units)
            return
        yield from host_lines(self._cursor.core, commands.rows, commands.units)

    # -- events

    def _event(self) -> Lines:
        last = self._cursor.last
        if last is None:
            yield "before the first event"
            return
        fields = {
            "position": last.position, "time_us": last.time_us, "stream": last.stream,
            "version": last.version, "kind": last.event.TYPE_CODE, "actor": last.actor,
            "cause": last.cause, "ends_step": last.ends_step, "event": plain(last.event),
        }  # fmt: skip
        yield from plain_lines(fields, self._commands.units)

    def _events(self, name: str) -> Lines:
        """
        Yield the events of some jobs so far, the last few.
        """
        cursor, rows = self._cursor, self._commands.rows
        selected: Streams = parse_selector(name)
        jobs = [job for job in cursor.core.state.stored.jobs if selected.has(job)]
        found = [
            one
            for stream in jobs
            for one in cursor.log.read_stream(stream)
            if one.position <= cursor.position
        ]
        found.sort(key=lambda one: one.position)
        if len(found) > rows:
            yield f"{len(found) - rows} earlier ones are left out"
        for envelope in found[-rows:]:
            yield event_line(envelope, self._commands.units)

    # -- the debugger itself

    def _watch_lines(self) -> Lines:
        commands = self._commands
        rows = [(number, one.text, commands.value(one)) for number, one in commands.watches.items()]
        yield from columns(("NUMBER", "EXPRESSION", "VALUE"), rows)


def _needed(topic: str, name: str) -> str:
    if not name:
        raise Refused(f"info {topic}", "needs an argument")
    return name

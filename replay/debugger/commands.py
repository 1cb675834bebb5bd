"""
What the debugger can do. Each command takes the rest of its line and yields lines of an answer.

A command that is refused changes nothing: arguments are read completely before anything is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, final

from domain.envelope import Envelope
from domain.errors import NotFound, Refused
from domain.event import event_classes
from domain.ids import job_of_stream
from domain.job_states import JobState
from domain.units import whole_number
from replay.conditions import Condition
from replay.debugger.breakpoints import KINDS, Breakpoint, When, parse_stop
from replay.debugger.cursor import Cursor, ends_session, is_decision
from replay.debugger.files import OpenFiles
from replay.debugger.show import AMOUNTS, TIMES, Units, event_line, printable
from replay.debugger.topics import NAMED, TOPICS, Topics
from replay.debugger.tracing import OPTIONS, Traces
from replay.debugger.tracing import WAYS as TRACE_WAYS
from replay.entities import (
    change_lines,
    changes,
    digest_of,
    entity,
    for_people,
    plain,
    whole,
)
from replay.moments import parse_moment, position_of

Lines = Iterator[str]
COUNT_MAX: Final = 10**12
ROWS: Final = 20
WAYS: Final = ("event", "decision", "session")


@final
@dataclass(frozen=True, slots=True)
class Command:
    """
    Describe a command.

    Args:
        usage: How it is written.
        summary: What it does, in one line.
        run: Carries it out.
    """

    usage: str
    summary: str
    run: Callable[[str], Lines]


@final
class Commands:
    """
    Carry commands out on a cursor; holds breakpoints, watches, units and traces.

    Args:
        cursor: Where it stands.
        files: Opens the file that traces may go to.
    """

    def __init__(self, cursor: Cursor, files: OpenFiles) -> None:
        self.cursor = cursor
        self.traces = Traces(cursor, files)
        self.topics = Topics(self)
        self.units = Units()
        self.rows = ROWS
        self.breakpoints: dict[int, Breakpoint] = {}
        self.watches: dict[int, Condition] = {}
        self._watched: dict[int, object] = {}
        self._numbers = 0
        self.table: dict[str, Command] = {
            "step": Command("step [event|decision|session] [COUNT]", "go on by so many",
                            self._step),
            "continue": Command("continue", "go on to the next breakpoint", self._continue),
            "until": Command("until CONDITION", "go on until a condition holds", self._until),
            "back": Command("back [event|decision|session] [COUNT]", "go back by so many",
                            self._back),
            "goto": Command("goto POSITION|TIME|end", "go anywhere", self._goto),
            "break": Command(
                "break job ID|ID[*], host NAME, event KIND, decision KIND, session, position N, "
                "time TIME, when CONDITION", "set a breakpoint; * in a kind means anything",
                self._break,
            ),
            "delete": Command("delete NUMBER|all", "remove breakpoints", self._delete),
            "enable": Command("enable NUMBER|all", "let breakpoints stop again", self._enable),
            "disable": Command("disable NUMBER|all", "keep breakpoints without stopping",
                               self._disable),
            "watch": Command("watch EXPRESSION", "show a value at each stop where it is another",
                             self._watch),
            "unwatch": Command("unwatch NUMBER|all", "remove watches", self._unwatch),
            "print": Command("print EXPRESSION", "show what an expression comes to", self._print),
            "info": Command("info TOPIC [NAME]", f"show {', '.join(TOPICS)}", self._info),
            "list": Command("list [COUNT]", "show the next events, without going there",
                            self._list),
            "diff": Command("diff POSITION|TIME [ENTITY]", "show what differs there from here",
                            self._diff),
            "hash": Command("hash", "show the digest of the state", self._hash),
            "units": Command(
                f"units times {'|'.join(TIMES)}, units amounts {'|'.join(AMOUNTS)}",
                "say how times and amounts are shown", self._units,
            ),
            "trace": Command(
                "trace on all|job ID|ID[*]... [summary|full] [lines COUNT] [file PATH], "
                "trace off|status", "write down how the sessions on the way forwards decide",
                self._trace,
            ),
            "rows": Command("rows COUNT", "say how many rows a table has at most", self._set_rows),
        }  # fmt: skip

    # -- going

    def _step(self, rest: str) -> Lines:
        way, count = _way(rest, "step")
        test = _tests(way)
        left = count
        for envelope in self.cursor.forward():
            left -= test(envelope)
            if not left:
                yield from self._stopped()
                return
        yield from self._at_the_end()

    def _continue(self, rest: str) -> Lines:
        _nothing("continue", rest)
        self._begin_conditions()
        before_us = self.cursor.core.state.stored.time_us
        active = [one for one in self.breakpoints.values() if one.is_enabled]
        for envelope in self.cursor.forward():
            core = self.cursor.core
            hit = [one for one in active if one.stop.is_hit(envelope, core, before_us)]
            before_us = envelope.time_us
            if hit:
                for one in hit:
                    one.hits += 1
                    yield f"breakpoint {one.number}, {one.stop.text()}"
                yield from self._stopped()
                return
        yield from self._at_the_end()

    def _until(self, rest: str) -> Lines:
        condition = Condition(_needed("until", rest), is_truth=True)
        if condition.holds(self.cursor.core, self.cursor.position):
            yield "it holds here already"
            return
        for envelope in self.cursor.forward():
            streams = condition.streams
            if (streams is None or envelope.stream in streams) and condition.holds(
                self.cursor.core, envelope.position
            ):
                yield from self._stopped()
                return
        yield from self._at_the_end()

    def _back(self, rest: str) -> Lines:
        way, count = _way(rest, "back")
        cursor = self.cursor
        if way == "event":
            position = max(cursor.first, cursor.position - count)
        else:
            position = cursor.before(count, _tests(way))
        cursor.goto(position)
        self._begin_conditions()
        yield from self._stopped()

    def _goto(self, rest: str) -> Lines:
        moment = parse_moment("goto", _needed("goto", rest))
        position = min(position_of(self.cursor.log, moment, field="goto"), self.cursor.head)
        if self.traces.asked is None or position <= self.cursor.position:
            self.cursor.goto(position)
        else:
            # Only on the way are sessions held again.
            self._pass_up_to(position)
        self._begin_conditions()
        yield from self._stopped()

    def _pass_up_to(self, position: int) -> None:
        for envelope in self.cursor.forward():
            if envelope.position == position:
                return

    def _begin_conditions(self) -> None:
        """
        Let conditions count as they hold here, wherever they were looked at last.
        """
        for one in self.breakpoints.values():
            if isinstance(one.stop, When):
                one.stop.begin(self.cursor)

    def _stopped(self) -> Lines:
        """
        Yield the event where we stand, and every watch whose value is another.
        """
        last = self.cursor.last
        yield "before the first event" if last is None else event_line(last, self.units)
        for number, condition in self.watches.items():
            value = self.value(condition)
            if value != self._watched.get(number):
                self._watched[number] = value
                yield f"watch {number}, {condition.text}: {value}"

    def _at_the_end(self) -> Lines:
        yield f"end of the log, position {self.cursor.position}"
        yield from self._stopped()

    def value(self, condition: Condition) -> str:
        """
        Return what an expression comes to here, in words.
        """
        value = condition.value(self.cursor.core, self.cursor.position)
        if isinstance(value, bool) or value is None:
            return "none" if value is None else str(value).lower()
        if isinstance(value, str | int):
            return printable(str(value))
        if isinstance(value, list | tuple):
            return printable(", ".join(map(str, value))) or "none"
        return printable(str(for_people(plain(value))))

    # -- where to stop and what to watch

    def _break(self, rest: str) -> Lines:
        kind, _, argument = _needed("break", rest).partition(" ")
        stop = parse_stop(kind, argument.strip(), self.cursor)
        self._numbers += 1
        self.breakpoints[self._numbers] = Breakpoint(self._numbers, stop)
        yield f"breakpoint {self._numbers}, {stop.text()}"

    def _chosen(self, command: str, rest: str) -> list[Breakpoint]:
        if rest == "all":
            return list(self.breakpoints.values())
        number = _count(command, _needed(command, rest))
        if number not in self.breakpoints:
            raise NotFound(command, "must name a breakpoint", rest)
        return [self.breakpoints[number]]

    def _delete(self, rest: str) -> Lines:
        for one in self._chosen("delete", rest):
            del self.breakpoints[one.number]
            yield f"removed breakpoint {one.number}"

    def _enable(self, rest: str) -> Lines:
        for one in self._chosen("enable", rest):
            one.is_enabled = True
            yield f"breakpoint {one.number} is on"

    def _disable(self, rest: str) -> Lines:
        for one in self._chosen("disable", rest):
            one.is_enabled = False
            yield f"breakpoint {one.number} is off"

    def _watch(self, rest: str) -> Lines:
        condition = Condition(_needed("watch", rest), field="watch")
        self._numbers += 1
        self.watches[self._numbers] = condition
        self._watched[self._numbers] = value = self.value(condition)
        yield f"watch {self._numbers}, {condition.text}: {value}"

    def _unwatch(self, rest: str) -> Lines:
        numbers = list(self.watches)
        if rest != "all":
            number = _count("unwatch", _needed("unwatch", rest))
            if number not in self.watches:
                raise NotFound("unwatch", "must name a watch", rest)
            numbers = [number]
        for number in numbers:
            del self.watches[number]
            yield f"removed watch {number}"

    # -- values and states

    def _print(self, rest: str) -> Lines:
        yield self.value(Condition(_needed("print", rest), field="print"))

    def _list(self, rest: str) -> Lines:
        count = _count("list", rest) if rest else self.rows
        ahead = self.cursor.ahead(count)
        for envelope in ahead:
            yield event_line(envelope, self.units)
        if not ahead:
            yield "end of the log"

    def _hash(self, rest: str) -> Lines:
        _nothing("hash", rest)
        yield f"{digest_of(self.cursor.core)}  position {self.cursor.position}"

    def _diff(self, rest: str) -> Lines:
        text, _, name = _needed("diff", rest).partition(" ")
        position = position_of(self.cursor.log, parse_moment("diff", text), field="diff")
        cores = (self.cursor.core, self.cursor.state_at(position))
        name = name.strip()
        here, there = [entity(core, name) if name else whole(core) for core in cores]
        found = list(changes(here, there))
        yield f"position {self.cursor.position} -> {position}: {len(found)} values differ"
        for one in found[: self.rows]:
            yield from map(printable, change_lines(one))
        if len(found) > self.rows:
            yield f"and {len(found) - self.rows} more"

    def _units(self, rest: str) -> Lines:
        what, _, how = rest.partition(" ")
        choices = {"times": TIMES, "amounts": AMOUNTS}
        if what and what not in choices:
            raise Refused("units", f"must be one of {', '.join(choices)}", what)
        if what:
            if how.strip() not in choices[what]:
                rule = f"must be one of {', '.join(choices[what])}"
                raise Refused(f"units {what}", rule, how.strip())
            self.units = replace(self.units, **{what: how.strip()})
        yield f"times in {self.units.times}, amounts {self.units.amounts}"

    def _set_rows(self, rest: str) -> Lines:
        self.rows = _count("rows", _needed("rows", rest))
        yield f"at most {self.rows} rows"

    def _info(self, rest: str) -> Lines:
        return self.topics.show(_needed("info", rest))

    def _trace(self, rest: str) -> Lines:
        self.traces.units = self.units
        return self.traces.run(rest)

    # -- completion

    def words(self, before: list[str]) -> list[str]:
        """
        Return what may stand behind some words of a line.
        """
        fixed = _WORDS.get(tuple(before))
        if fixed is not None:
            return list(fixed)
        stored = self.cursor.core.state.stored
        match before:
            case []:
                return list(self.table)
            case ["trace", "on", "job", *_]:
                return [*(job_of_stream(stream) for stream in stored.jobs), *OPTIONS]
            case ["trace", "on", _, *_]:
                return list(OPTIONS)
            case ["info" | "break", "job"] | ["info", "events" | "trace"]:
                return [job_of_stream(stream) for stream in stored.jobs]
            case ["info" | "break", "host"] | ["info", "accounts"]:
                return list(stored.workers)
            case ["info", topic] if topic in NAMED:
                return self.topics.names(topic)
            case ["break", "event" | "decision"]:
                return list(event_classes())
            case ["delete" | "enable" | "disable"]:
                return ["all", *map(str, self.breakpoints)]
            case _:
                return []


_WORDS: Final[dict[tuple[str, ...], tuple[str, ...]]] = {
    ("info",): TOPICS,
    ("trace",): TRACE_WAYS,
    ("trace", "on"): ("all", "job"),
    ("break",): KINDS,
    ("step",): WAYS,
    ("back",): WAYS,
    ("units",): ("times", "amounts"),
    ("units", "times"): TIMES,
    ("units", "amounts"): AMOUNTS,
    ("info", "jobs"): tuple(JobState),
}
"""What may stand behind words whatever the state is."""


def _tests(way: str) -> Callable[[Envelope], bool]:
    """
    Return what counts as one on a way.
    """
    tests: dict[str, Callable[[Envelope], bool]] = {
        "event": lambda _: True, "decision": is_decision, "session": ends_session
    }  # fmt: skip
    return tests[way]


def _way(rest: str, command: str) -> tuple[str, int]:
    """
    Return the way and the count of a step forwards or backwards.
    """
    words = rest.split()
    way = "event"
    if words and not words[0].isdigit():
        way = words.pop(0)
    if way not in WAYS:
        raise Refused(command, f"must be {', '.join(WAYS)} or a count", way)
    if len(words) > 1:
        raise Refused(command, "takes a way and a count", " ".join(words))
    return way, _count(command, words[0]) if words else 1


def _count(command: str, text: str) -> int:
    count = whole_number(text)
    if count is None or not 1 <= count <= COUNT_MAX:
        raise Refused(command, f"must be a whole number from 1 to {COUNT_MAX}", text)
    return count


def _needed(command: str, rest: str) -> str:
    if not rest:
        raise Refused(command, "needs an argument")
    return rest


def _nothing(command: str, rest: str) -> None:
    if rest:
        raise Refused(command, "takes no argument", rest)

"""
Decision traces in the debugger: on the way forwards each recorded session is held again on a core
of its own, with the trace on.

A core in step with the log is kept for that: it takes inputs as they come, and decides where the
log has a session. Where it decides otherwise than was recorded, the trace says so, and the next
session begins from the recorded state again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

from domain.envelope import Envelope
from domain.errors import Refused
from domain.events.jobs import JobDispatched
from domain.events.session import SessionHeld
from domain.ids import job_of_stream, job_stream
from domain.units import whole_number
from projections.scheduling.core import Core
from projections.scheduling.trace import (
    LINES_MAX,
    DecisionTrace,
    Level,
    TraceSettings,
)
from projections.scheduling.trace_rebuilt import rebuilt_trace
from projections.scheduling.trace_session import Tracing
from projections.scheduling.trace_store import TraceStore
from replay.debugger.breakpoints import Streams, array_of, parse_selector
from replay.debugger.cursor import Cursor
from replay.debugger.files import OpenFiles
from replay.debugger.show import Units, columns
from replay.retrace import hold_again, step_at
from replay.trace_words import outcome_text, trace_lines

Lines = Iterator[str]
FIELD: Final = "trace"
FILE: Final = "trace file"
BOUND_MAX: Final = 1_000_000
OPTIONS: Final = ("summary", "full", "lines", "file")
WAYS: Final = ("on", "off", "status")


@final
@dataclass(frozen=True, slots=True)
class Asked:
    """
    Hold what a command asks for.

    Args:
        selectors: Of which jobs, none for all.
        path: Where traces are written too, "" for nowhere.
    """

    selectors: tuple[Streams, ...] = ()
    level: Level = Level.FULL
    lines_max: int = LINES_MAX
    path: str = ""

    def settings(self) -> TraceSettings:
        """
        Return the same for the core.
        """
        if not self.selectors:
            return TraceSettings(level=self.level, lines_max=self.lines_max)
        arrays = [array_of(one.selector) for one in self.selectors]
        single = [
            job_stream(one.selector)
            for one, array in zip(self.selectors, arrays, strict=True)
            if array is None
        ]
        return TraceSettings(
            streams=frozenset(single),
            arrays=frozenset(array for array in arrays if array is not None),
            level=self.level,
            lines_max=self.lines_max,
        )

    def text(self) -> str:
        """
        Return it in words.
        """
        names = " ".join(one.selector for one in self.selectors)
        whose = f"job {names}" if names else "all"
        where = f", also written to {self.path}" if self.path else ""
        return f"{whose}, {self.level.value}, at most {self.lines_max} lines{where}"


@final
class Traces:
    """
    Trace what a cursor passes on its way forwards.

    Args:
        cursor: Whose way.
        files: Opens the file that traces may go to.
    """

    def __init__(self, cursor: Cursor, files: OpenFiles) -> None:
        self._cursor = cursor
        self._files = files
        self.units = Units()
        self.asked: Asked | None = None
        self.store = TraceStore()
        self._tracing = Tracing(TraceSettings(), self.store, self._write, is_replay=True)
        self._core: Core | None = None
        self._position = 0
        self._held = 0
        self._differs: dict[int, str] = {}
        self._failed = ""
        cursor.on_event = self._before

    # -- on the way

    def _before(self, envelope: Envelope) -> None:
        """
        Take in an event before the cursor applies it.
        """
        if self.asked is None:
            return
        if self._position != envelope.position - 1:
            self._core = None
        self._position = envelope.position
        if type(envelope.event) is SessionHeld:
            self._hold(envelope)
        elif self._core is not None and envelope.position > self._held:
            self._core.apply(envelope.stamped())

    def _hold(self, envelope: Envelope) -> None:
        """
        Hold a session that was recorded again; when it decides as it was, the core is ahead of the
        cursor then, right behind the whole step.
        """
        cursor = self._cursor
        core = self._core or Core.restore(cursor.core.snapshot(), cursor.plugins)
        number = cursor.core.state.stored.session_number + 1
        step = step_at(cursor.log, envelope.position, cursor.head)
        difference = hold_again(core, step, self._tracing)
        self._core, self._held = (None if difference else core), step[-1].position
        self._differs.pop(number, None)
        if difference:
            self._differs[number] = difference

    def _write(self, trace: DecisionTrace) -> None:
        file = self._files.get(FILE)
        if file is None:
            return
        try:
            for line in trace_lines(trace, self.units):
                file.write(f"{line}\n")
            file.flush()
        except OSError as error:
            self._failed = f"can't be written: {error.strerror}"
            self._files.close(FILE)

    # -- commands

    def run(self, rest: str) -> Lines:
        """
        Carry out a trace command.
        """
        words = rest.split()
        way = words[0] if words else ""
        if way not in WAYS:
            raise Refused(FIELD, f"must be {', '.join(WAYS)}", way or None)
        if way != "on" and len(words) > 1:
            raise Refused(f"{FIELD} {way}", "takes no argument", " ".join(words[1:]))
        if way == "on":
            self._turn_on(parse_asked(words[1:]))
        elif way == "off":
            self._turn_off()
        yield from self._status()

    def _turn_on(self, asked: Asked) -> None:
        if asked.path:
            self._files.open(FILE, asked.path)
        else:
            self._files.close(FILE)
        self.asked = asked
        self._failed = ""
        self._tracing.settings = asked.settings()

    def _turn_off(self) -> None:
        self.asked, self._core = None, None
        self._files.close(FILE)

    def _status(self) -> Lines:
        if self.asked is None:
            yield "trace is off"
        else:
            yield f"trace is on for {self.asked.text()}, from the next session on"
        if self._failed:
            yield f"its file {self._failed}"
        dropped = f", {self.store.dropped_count} dropped" if self.store.dropped_count else ""
        yield f"{len(self.store)} jobs have a trace{dropped}, {self.store.bytes} bytes"

    # -- what was traced

    def info(self, name: str, rows: int) -> Lines:
        """
        Yield the trace of a job, or which jobs have one.
        """
        if name and not array_of(name):
            job_stream(name)
            yield from self._one(name)
            return
        known = list(self.store.job_ids())
        if name:
            selected = parse_selector(name)
            known = [job_id for job_id in known if selected.has(job_stream(job_id))]
        if not known:
            yield from self._status()
            return
        table = []
        for job_id in known[-rows:]:
            trace = self.store.get(job_id)
            assert trace is not None
            when = self.units.time(trace.session.time_us)
            lines = len(trace.lines) + trace.left_out
            table.append(
                (job_id, trace.session.number, when, lines, outcome_text(trace.outcome))
            )
        if len(known) > rows:
            yield f"{len(known) - rows} earlier ones are left out"
        yield from columns(("JOB", "SESSION", "TIME", "LINES", "OUTCOME"), table)

    def _one(self, job_id: str) -> Lines:
        trace, rebuilt = self.store.get(job_id), self._rebuilt(job_id)
        here = self._cursor.core.state.stored.session_number
        if rebuilt is not None and (trace is None or trace.session.number < rebuilt.session.number):
            yield from trace_lines(rebuilt, self.units)
            yield "how it came about wasn't traced: go back behind it and trace on the way again"
        if trace is None:
            session = self.store.dropped_in(job_id)
            if session is not None:
                yield f"its trace of session {session} was dropped for want of room"
            elif rebuilt is None:
                yield f"job {job_id} has no trace: no session was traced that looked at it"
                if self.store.forgotten_count:
                    yield f"or it is among {self.store.forgotten_count} dropped long ago"
            return
        if trace.session.number > here:
            yield f"from a session ahead of this position, where session {here} is the last"
        if trace.session.number in self._differs:
            yield f"not as it was recorded: {self._differs[trace.session.number]}"
        yield from trace_lines(trace, self.units)

    def _rebuilt(self, job_id: str) -> DecisionTrace | None:
        """
        Return what the log tells of a job's last dispatch up to here, None without one.
        """
        last: Envelope | None = None
        for envelope in self._cursor.log.read_stream(job_stream(job_id)):
            if envelope.position > self._cursor.position:
                break
            if isinstance(envelope.event, JobDispatched):
                last = envelope
        if last is None or not isinstance(last.event, JobDispatched):
            return None
        hosts = self._cursor.core.state.hosts
        return rebuilt_trace(
            job_of_stream(last.stream),
            last.event.allocation,
            session_number=int(last.cause.removeprefix("session ")),
            time_us=last.time_us,
            name_of=lambda number: hosts[number].name,
            is_forced=last.event.is_forced,
        )


def parse_asked(words: list[str]) -> Asked:
    """
    Return what the words behind ``trace on`` ask for.

    Raises:
        Refused: One of them is malformed; it is named.
    """
    if not words:
        raise Refused(f"{FIELD} on", "needs all, or job and whose")
    whose, *rest = words
    selectors: list[Streams] = []
    if whose == "job":
        while rest and rest[0] not in OPTIONS:
            selectors.append(parse_selector(rest.pop(0)))
        if not selectors:
            raise Refused(f"{FIELD} on job", "needs a job: 12, 12[3] or 12[*]")
    elif whose != "all":
        raise Refused(f"{FIELD} on", "must be all or job", whose)
    return _with_options(tuple(selectors), rest)


def _with_options(selectors: tuple[Streams, ...], rest: list[str]) -> Asked:
    told: dict[str, str] = {}
    while rest:
        word = rest.pop(0)
        name = "level" if word in tuple(Level) else word
        if word not in OPTIONS:
            raise Refused(f"{FIELD} on", f"must be one of {', '.join(OPTIONS)}", word)
        if name in told:
            raise Refused(f"{FIELD} on", "must be given once", word)
        if name != "level" and not rest:
            raise Refused(f"{FIELD} on {name}", "needs an argument")
        told[name] = word if name == "level" else rest.pop(0)
    return Asked(
        selectors=selectors,
        level=Level(told.get("level", Level.FULL)),
        lines_max=_bound(told["lines"]) if "lines" in told else LINES_MAX,
        path=told.get("file", ""),
    )


def _bound(text: str) -> int:
    lines = whole_number(text)
    if lines is None or not 1 <= lines <= BOUND_MAX:
        rule = f"must be a whole number from 1 to {BOUND_MAX}"
        raise Refused(f"{FIELD} on lines", rule, text)
    return lines

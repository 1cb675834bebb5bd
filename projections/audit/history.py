"""
The story of a job, a host, a queue or any other entity, as queries over the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from domain.errors import NotFound, Refused
from domain.events.refusals import AccessDenied, CommandRefused
from domain.ids import job_of_stream, job_stream, job_stream_of, split_job_id
from domain.units import whole_number
from projections.audit.job_words import STARTED_MAX
from projections.audit.privacy import EVERYTHING, Viewer, is_shown
from projections.audit.reading import Reading, Row
from projections.audit.told import Element, Line, Span, Story
from projections.audit.views import COMMANDS
from projections.audit.wording import DEFINED, PENDED, event_of, words

STATES = ("PEND", "PSUSP", "RUN", "USUSP", "SSUSP", "UNKWN")
HOST_STATES = ("ok", "locked", "closed", "unreachable", "left")
FOREVER_POSITION = 2**63 - 1
# Reports come every few seconds; a host's story is told without them unless somebody wants them.
REPORT = "worker.reported"


def find_object(reading: Reading, name: str) -> tuple[str, str]:
    """
    Return kind and name of what somebody calls by a name: 4711, alpha, or kind:name when that is
    unclear.

    Raises:
        NotFound: There is no such thing in this log.
        Refused: Several kinds have one of that name.
    """
    if reading.value("SELECT 1 FROM jobs WHERE job_id = ?", (name,)):
        return "job", name
    number = whole_number(name)
    if number and reading.value("SELECT 1 FROM arrays WHERE number = ?", (number,)):
        return "array", name
    if name == "cluster":
        return "cluster", ""
    if ":" in name:
        kind, _, rest = name.partition(":")
        kind = "worker" if kind == "host" else kind
        found = [(kind, rest)] if _is_known(reading, kind, rest) else []
    else:
        kinds = [row["kind"] for row in reading.rows("SELECT DISTINCT kind FROM definitions")]
        found = [
            (kind, name) for kind in sorted({*kinds, "worker"}) if _is_known(reading, kind, name)
        ]
    if not found:
        raise NotFound("object", "must be a job, host, queue or other entity of this log", name)
    if len(found) > 1:
        kinds = [f"{kind}:{name}" for kind, name in found]
        raise Refused("object", "must name one thing", name, f"Say which: {' or '.join(kinds)}.")
    return found[0]


def _is_known(reading: Reading, kind: str, name: str) -> bool:
    if kind == "job":
        return bool(reading.value("SELECT 1 FROM jobs WHERE job_id = ?", (name,)))
    stream = f"{kind}:{name}" if name else kind
    return bool(reading.value("SELECT 1 FROM events WHERE stream = ? LIMIT 1", (stream,)))


def story(
    reading: Reading,
    name: str,
    *,
    viewer: Viewer = EVERYTHING,
    from_us: int | None = None,
    to_us: int | None = None,
    now_us: int | None = None,
    with_reports: bool = False,
) -> Story:
    """
    Return the story of whatever has a name.

    Args:
        reading: The tables.
        name: A job id, a host, a queue, or kind:name.
        viewer: Who looks.
        from_us: Tell nothing before.
        to_us: Tell nothing after.
        now_us: Up to when a state counts that lasts; the time of the last event when None.
        with_reports: Tell a host's load reports too.

    Raises:
        NotFound: There is no such thing in this log.
        Refused: Several things have that name.
    """
    kind, found = find_object(reading, name)
    period = Period(reading, from_us, to_us)
    teller = Teller(reading, viewer, period, reading.last_time_us() if now_us is None else now_us)
    if kind == "job":
        return _job_story(teller, found)
    if kind == "array":
        return _array_story(teller, found)
    if kind == "worker":
        return _host_story(teller, found, with_reports=with_reports)
    return teller.story(kind, found, teller.stream_lines(f"{kind}:{found}" if found else kind), [])


class Period:
    """
    Hold which part of the log is told, as positions.
    """

    def __init__(self, reading: Reading, from_us: int | None, to_us: int | None) -> None:
        self.from_us, self.to_us = from_us, to_us
        self.first = 0 if from_us is None else reading.position_at(from_us - 1) + 1
        self.last = FOREVER_POSITION if to_us is None else reading.position_at(to_us)

    def holds(self, position: int) -> bool:
        """
        Say whether a position is told.
        """
        return self.first <= position <= self.last


class Teller:
    """
    Turn rows into lines.
    """

    def __init__(self, reading: Reading, viewer: Viewer, period: Period, now_us: int) -> None:
        self.reading = reading
        self.viewer = viewer
        self.period = period
        self.now_us = now_us
        self._names: dict[int, str] = {}

    def host_name(self, number: int) -> str:
        """
        Return the name of a host of a number.
        """
        if number not in self._names:
            found = self.reading.value("SELECT host FROM hosts WHERE host_number = ?", (number,))
            self._names[number] = found or f"#{number}"
        return self._names[number]

    def line(self, row: Row, *, is_private: bool = False) -> Line:
        """
        Return the line of an event.
        """
        event = event_of(row["type"], row["payload"])
        if isinstance(event, CommandRefused | AccessDenied):
            is_private = not self.viewer.may_see(row["actor"])
        text = words(event, self.host_name, is_private=is_private)
        changes = self.reading.rows(
            "SELECT field, old, new FROM changes WHERE position = ? ORDER BY field",
            (row["position"],),
        )
        # A field that was empty has an old value, null; one of a thing that is new has none.
        is_new = all(one["old"] is None for one in changes)
        if text == DEFINED and not is_new:
            text = "changed"
        return Line(
            row["position"],
            row["time_us"],
            row["actor"],
            row["cause"],
            row["type"],
            text,
            tuple(
                (one["field"], one["old"], one["new"])
                for one in changes
                if is_shown(one["field"], is_private=is_private)
            ),
            is_new,
        )

    def stream_lines(
        self, stream: str, *, is_private: bool = False, without: str = ""
    ) -> list[Line]:
        """
        Return the lines of one stream's events within the period.
        """
        rows = self.reading.rows(
            "SELECT * FROM events WHERE stream = ? AND position BETWEEN ? AND ? AND type <> ? "
            "ORDER BY position",
            (stream, self.period.first, self.period.last, without),
        )
        return [self.line(row, is_private=is_private) for row in rows]

    def at(self, positions: Iterable[int], told: Callable[[Row], Line | None]) -> list[Line]:
        """
        Return the lines of the events at some positions within the period.
        """
        lines = []
        for position in positions:
            if self.period.holds(position):
                row = self.reading.one("SELECT * FROM events WHERE position = ?", (position,))
                line = None if row is None else told(row)
                lines += [] if line is None else [line]
        return lines

    def refusals(self, subject: str) -> list[Line]:
        """
        Return the lines of what was refused, denied or ignored about a subject.
        """
        rows = self.reading.rows("SELECT position FROM refusals WHERE subject = ?", (subject,))
        return self.at((row["position"] for row in rows), self.line)

    def in_state_us(self, spans: Iterable[Span], states: tuple[str, ...]) -> dict[str, int]:
        """
        Return how long each state lasted; the end of a job isn't counted.
        """
        totals = dict.fromkeys(states, 0)
        for span in spans:
            if span.state not in ("DONE", "EXIT"):
                end_us = self.now_us if span.until_us is None else span.until_us
                totals[span.state] = totals.get(span.state, 0) + max(0, end_us - span.since_us)
        return totals

    def story(self, kind: str, name: str, lines: list[Line], spans: list[Span]) -> Story:
        """
        Return lines and states as a story.
        """
        states = STATES if kind == "job" else HOST_STATES
        totals = self.in_state_us(spans, states) if spans else {}
        unique = {(line.position, line.text): line for line in lines}
        ordered = tuple(sorted(unique.values(), key=lambda line: line.position))
        return Story(
            kind,
            name,
            ordered,
            tuple(spans),
            totals,
            self.reading.position(),
            self.now_us,
            self.period.from_us,
            self.period.to_us,
            first_position=self.reading.first_position(),
        )


def _spans(reading: Reading, query: str, name: str) -> list[Span]:
    return [
        Span(row["state"], row["from_us"], row["to_us"]) for row in reading.rows(query, (name,))
    ]


# -------------------------------------------------------------------------------------------- jobs


def _job_story(teller: Teller, job_id: str) -> Story:
    reading = teller.reading
    owner = reading.value("SELECT user FROM jobs WHERE job_id = ?", (job_id,))
    is_private = not teller.viewer.may_see(owner)
    own = [
        line
        for stream in _own_streams(job_id)
        for line in teller.stream_lines(stream, is_private=is_private)
    ]
    own += _bounds_of_array(teller, job_id, is_private=is_private)
    reasons = _reason_lines(teller, job_id)
    told = {line.position: line for line in [*own, *_elsewhere(teller, job_id)]}
    for line in reasons:
        first = told.get(line.position)
        text = (
            line.text
            if first is None or first.type_code == "job.pended"
            else f"{first.text}; {line.text}"
        )
        told[line.position] = line if first is None else _with_text(first, text)
    for position, repeated in list(told.items()):
        # Considered anew and waiting for the same: the line before says for what.
        if repeated.text == PENDED and any(line.position < position for line in reasons):
            del told[position]
    spans = _spans(
        reading,
        "SELECT state, from_us, to_us FROM job_states WHERE job_id = ? ORDER BY from_position",
        job_id,
    )
    return teller.story("job", job_id, [*told.values(), *teller.refusals(job_id)], spans)


def _bounds_of_array(teller: Teller, job_id: str, *, is_private: bool) -> list[Line]:
    """
    Return a line for each time that an element's array got another bound of started elements: that
    stands in the stream of one of them.
    """
    number, index = split_job_id(job_id)
    if not index:
        return []
    found = teller.reading.rows(
        "SELECT position FROM changes WHERE kind = 'job' AND name > ? AND name < ? AND field = ?",
        (f"{number}[", f"{number}\\", STARTED_MAX),
    )
    told = partial(teller.line, is_private=is_private)
    return teller.at((row["position"] for row in found), told)


def _own_streams(job_id: str) -> tuple[str, ...]:
    """
    Return the streams that are a job's own: an element shares that of its array.
    """
    number, index = split_job_id(job_id)
    return (job_stream_of(number), job_stream(job_id)) if index else (job_stream(job_id),)


def _array_story(teller: Teller, number: str) -> Story:
    """
    Return the story of an array: what happened to it as a whole, and how far each element is.
    """
    reading, numbered = teller.reading, (int(number),)
    owner = reading.value("SELECT user FROM arrays WHERE number = ?", numbered)
    is_private = not teller.viewer.may_see(owner)
    lines = teller.stream_lines(job_stream(number), is_private=is_private)
    lines += _asked_of_elements(teller, number, is_private=is_private)
    rows = reading.rows(
        "SELECT s.job_id, s.state, s.from_us, s.to_us FROM jobs j JOIN job_states s USING (job_id) "
        "WHERE j.number = ? ORDER BY j.job_key, s.from_position",
        numbered,
    )
    spans: dict[str, list[Span]] = {}
    for row in rows:
        span = Span(row["state"], row["from_us"], row["to_us"])
        spans.setdefault(row["job_id"], []).append(span)
    elements = [
        Element(job_id, own[-1].state, teller.in_state_us(own, STATES))
        for job_id, own in spans.items()
    ]
    told = teller.story("array", number, [*lines, *teller.refusals(number)], [])
    totals = {state: sum(one.in_state_us[state] for one in elements) for state in STATES}
    return replace(told, in_state_us=totals, elements=tuple(elements))


def _asked_of_elements(teller: Teller, number: str, *, is_private: bool) -> list[Line]:
    """
    Return a line for each command about elements of an array, however many of them it was about.
    """
    first, end = f"{job_stream_of(int(number))}[", f"{job_stream_of(int(number))}\\"
    rows = teller.reading.rows(
        "SELECT * FROM events WHERE stream > ? AND stream < ? AND position BETWEEN ? AND ? "
        "AND actor <> '' ORDER BY position",
        (first, end, teller.period.first, teller.period.last),
    )
    asked: dict[tuple[object, ...], list[tuple[str, Line]]] = {}
    for row in rows:
        if row["type"] in COMMANDS:
            line = teller.line(row, is_private=is_private)
            alike = (line.time_us, line.actor, line.cause, line.text, line.changes)
            asked.setdefault(alike, []).append((job_of_stream(row["stream"]), line))
    return [_of_elements(alike) for alike in asked.values()]


def _of_elements(alike: list[tuple[str, Line]]) -> Line:
    first, line = alike[0]
    if len(alike) == 1 and [field for field, _, _ in line.changes] == [STARTED_MAX]:
        # It stands in the stream of one element, and is about all.
        return line
    elements = first if len(alike) == 1 else f"{len(alike)} elements from {first} on"
    return _with_text(line, f"{elements}: {line.text}")


def _with_text(line: Line, text: str) -> Line:
    return replace(line, text=text)


def _reason_lines(teller: Teller, job_id: str) -> list[Line]:
    """
    Return a line for each time that the reasons of a waiting job became others.
    """
    rows = teller.reading.rows(
        "SELECT r.*, e.type, e.cause FROM pend_reasons r JOIN events e ON e.position = "
        "r.from_position "
        "WHERE r.job_id = ? AND r.code NOT IN ('JOB_NEW', 'USER_STOP', 'ADMIN_STOP') "
        "ORDER BY r.from_position",
        (job_id,),
    )
    lines = []
    before: tuple[object, ...] = ()
    for row in rows:
        says = row["reasons"], row["never"]
        is_new = before != (*says, row["from_position"])
        before = (*says, row["to_position"])
        if is_new and teller.period.holds(row["from_position"]):
            begin = "can never start on the cluster as it is: " if row["never"] else "waits: "
            lines.append(
                Line(
                    row["from_position"],
                    row["from_us"],
                    "",
                    row["cause"],
                    row["type"],
                    begin + row["reasons"],
                )
            )
    return lines


def _elsewhere(teller: Teller, job_id: str) -> list[Line]:
    """
    Return what happened to a job in other streams: contact with its host, orders carried out.
    """

    def told(row: Row) -> Line | None:
        if row["stream"] in _own_streams(job_id):
            return None
        line = teller.line(row)
        host = row["stream"].partition(":")[2]
        return replace(line, text=f"host {host}: {line.text}", changes=())

    reading = teller.reading
    positions = [
        row["position"]
        for row in reading.rows(
            "SELECT from_position AS position FROM job_states WHERE job_id = ? "
            "UNION SELECT done_position FROM orders WHERE job_id = ? AND done_position IS NOT NULL",
            (job_id, job_id),
        )
    ]
    return teller.at(positions, told)


# ------------------------------------------------------------------------------------------- hosts


def _host_story(teller: Teller, host: str, *, with_reports: bool) -> Story:
    reading = teller.reading
    lines = teller.stream_lines(f"worker:{host}", without="" if with_reports else REPORT)
    number = reading.value("SELECT host_number FROM hosts WHERE host = ?", (host,))
    rows = reading.rows(
        "SELECT a.*, j.user FROM allocations a JOIN jobs j ON j.job_id = a.job_id "
        "WHERE ? BETWEEN a.first_number AND a.first_number + a.host_count - 1 ORDER BY "
        "a.from_position",
        (-1 if number is None else number,),
    )
    for row in rows:
        tasks = f"{row['tasks_per_host']} task{'' if row['tasks_per_host'] == 1 else 's'}"
        who = f"job {row['job_id']} of {row['user']}, attempt {row['attempt']}"
        begun = (row["from_position"], f"{who}: takes {tasks}")
        ended = (row["to_position"], f"{who}: gives {tasks} back")
        for position, text in (begun, ended):
            if position is not None:
                lines += teller.at([position], partial(_job_line, text=text))
    spans = _spans(
        reading,
        "SELECT status AS state, from_us, to_us FROM host_states WHERE host = ? ORDER BY "
        "from_position",
        host,
    )
    return teller.story("worker", host, [*lines, *teller.refusals(host)], spans)


def _job_line(row: Row, text: str) -> Line:
    return Line(row["position"], row["time_us"], row["actor"], row["cause"], row["type"], text)

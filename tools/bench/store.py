"""
Measure the store: durable appends, reading back as typed events, verifying; beside bare LMDB and
beside the library's own SQLite recorder fed through its own mapper.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

import lmdb
from eventsourcing.domain import DomainEvent
from eventsourcing.persistence import (
    DatetimeAsISO,
    InfrastructureFactory,
    JSONTranscoder,
    Mapper,
    Transcoding,
    UUIDAsHex,
)
from eventsourcing.utils import Environment as Variables

from domain.envelope import Stamped
from domain.event import Event
from domain.events.jobs import JobDispatched, JobFinished, JobStarted, JobSubmitted
from store.log import EventLog
from store.verify import verify_here
from tools.bench.frame import Figure, Reading
from tools.torture.workload import job_events, jobs_events

SINGLE_COMMITS = 2_000
TURN_COMMITS = 50
EVENTS = 40_000
LIBRARY_EVENTS = 8_000
LIBRARY_EVENTS_OF = (JobSubmitted, JobDispatched, JobStarted, JobFinished)
COMMIT_EVENTS = 100
LOG_DATABASES = (b"events.log", b"events.index")
Entry = tuple[bytes, bytes]
GOAL_APPENDED_PER_S = 40_000
GOAL_READ_PER_S = 200_000
GOAL_VERIFIED_PER_S = 500_000
GOAL_DECODED_PER_S = 150_000


@dataclass(frozen=True)
class LibraryEvent(DomainEvent):
    """
    Be an event as the library likes it, with one of ours in it.
    """

    actor: str
    cause: str
    payload: Event


class EventTranscoding(Transcoding):
    """
    Let the library's own transcoder take one of our typed events, and give it back as one.
    """

    def __init__(self, cls: type[Event]) -> None:
        self.type = self._cls = cls
        self.name = cls.TYPE_CODE

    def encode(self, obj: Event) -> dict[str, Any]:
        """
        Return its fields as plain data.
        """
        return obj.model_dump(mode="json", exclude_defaults=True)

    def decode(self, data: dict[str, Any]) -> Event:
        """
        Return the event, validated.
        """
        # Lists stand for tuples here.
        return self._cls.model_validate(data, strict=False)


def _timed(work: Callable[[], object]) -> float:
    """
    Return how many seconds some work takes.
    """
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def singles_per_s(folder: Path) -> tuple[float, float]:
    """
    Return synced commits a second of bare py-lmdb and of ours, one typed event each.

    Both put the same keys and values in the same order, and take turns, so that they find the disk
    in the same mood. A turn's events are made before it, as a scheduler makes what it commits.
    """
    puts = _puts(folder / "puts", _submissions(range(1, SINGLE_COMMITS + 1)))
    bare_s = single_s = 0.0
    with (
        lmdb.open(str(folder / "bare"), map_size=1 << 40, max_dbs=4) as environment,
        EventLog.create(folder / "singles", log_id="bench") as log,
    ):
        databases = environment.open_db(b"frames"), environment.open_db(b"index")
        for at in range(0, SINGLE_COMMITS, TURN_COMMITS):
            turn = puts[at : at + TURN_COMMITS]
            bare_s += _timed(lambda: _put(environment, databases, turn))  # noqa: B023
            events = _submissions(range(at + 1, at + 1 + TURN_COMMITS))
            single_s += _timed(lambda: [log.append([event]) for event in events])  # noqa: B023
    return SINGLE_COMMITS / bare_s, SINGLE_COMMITS / single_s


def _submissions(numbers: range) -> list[Stamped]:
    """
    Return the first events of jobs with such numbers.
    """
    return [job_events(number)[0] for number in numbers]


def _put(
    environment: lmdb.Environment,
    databases: tuple[lmdb._Database, lmdb._Database],
    puts: Sequence[tuple[Entry, Entry]],
) -> None:
    """
    Put frames and index rows, a commit each.
    """
    log, index = databases
    for frame, row in puts:
        with environment.begin(write=True) as transaction:
            transaction.put(*row, db=index)
            transaction.put(*frame, db=log, append=True)


def _puts(directory: Path, events: Sequence[Stamped]) -> list[tuple[Entry, Entry]]:
    """
    Return what a log puts when the first events of as many streams are appended one by one: keys
    and values of a frame and of an index row each.
    """
    with EventLog.create(directory, log_id="bench", durability="none") as log:
        for event in events:
            log.append([event])
    with lmdb.open(str(directory), max_dbs=16, readonly=True) as environment:
        databases = [environment.open_db(name, create=False) for name in LOG_DATABASES]
        with environment.begin() as transaction:
            frames, rows = (list(transaction.cursor(database)) for database in databases)
    return list(zip(frames, rows, strict=True))


def appended_per_s(folder: Path, events: Sequence[Stamped]) -> float:
    """
    Return durably appended events a second, from pydantic objects, a hundred a commit.
    """
    parts = [events[at : at + COMMIT_EVENTS] for at in range(0, len(events), COMMIT_EVENTS)]
    with EventLog.create(folder / "log", log_id="bench") as log:
        return len(events) / _timed(lambda: [log.append(part) for part in parts])


def read_per_s(folder: Path) -> float:
    """
    Return events a second read back as typed, validated events.
    """
    with EventLog.open(folder / "log", writable=False) as log:

        def read() -> None:
            for _ in log.read():
                pass

        return log.head() / _timed(read)


def verified_per_s(folder: Path, *, decoded: bool) -> float:
    """
    Return events a second that a walk over the log takes, structure and index included.
    """
    return EVENTS / _timed(lambda: verify_here(folder / "log", decoded=decoded))


def library_per_s(folder: Path) -> tuple[float, float]:
    """
    Return what the library's SQLite recorder appends and reads a second through its own mapper.
    """
    settings = {"PERSISTENCE_MODULE": "eventsourcing.sqlite"}
    variables = Variables("bench", {**settings, "SQLITE_DBNAME": str(folder / "sqlite")})
    factory = InfrastructureFactory.construct(variables)
    recorder = factory.application_recorder()
    transcoder = JSONTranscoder()
    transcoder.register(UUIDAsHex())
    transcoder.register(DatetimeAsISO())
    for cls in LIBRARY_EVENTS_OF:
        transcoder.register(EventTranscoding(cls))
    mapper: Mapper[UUID] = Mapper(transcoder=transcoder)
    events = [_as_library_event(stamped) for stamped in jobs_events(1, LIBRARY_EVENTS // 4)]
    parts = [events[at : at + COMMIT_EVENTS] for at in range(0, LIBRARY_EVENTS, COMMIT_EVENTS)]

    def append() -> None:
        for part in parts:
            recorder.insert_events([mapper.to_stored_event(event) for event in part])

    def read() -> None:
        after = 0
        while page := recorder.select_notifications(after, 1000, inclusive_of_start=False):
            for found in page:
                mapper.to_domain_event(found)
            after = page[-1].id

    appended, was_read = LIBRARY_EVENTS / _timed(append), LIBRARY_EVENTS / _timed(read)
    factory.close()
    return appended, was_read


def _as_library_event(stamped: Stamped) -> LibraryEvent:
    """
    Return one of our events as the library likes it.
    """
    stream, version, time_us, actor, cause, event, _ = stamped
    when = datetime.fromtimestamp(time_us / 1e6, tz=UTC)
    return LibraryEvent(uuid5(NAMESPACE_OID, stream), version, when, actor, cause, event)


def measure(folder: Path) -> list[Reading]:
    """
    Take one round.
    """
    events = jobs_events(1, EVENTS // 4)
    bare, single = singles_per_s(folder)
    library_appended, library_read = library_per_s(folder)
    appended, was_read = appended_per_s(folder, events), read_per_s(folder)
    used = (folder / "log" / "data.mdb").stat().st_size / EVENTS
    return [
        Reading("bare LMDB, the same puts", bare, "1/s"),
        Reading("append, one event a commit", single, "1/s", per="bare LMDB, the same puts"),
        Reading("SQLite recorder and its mapper, append", library_appended, "events/s"),
        Reading("append, 100 events a commit", appended, "events/s", goal=GOAL_APPENDED_PER_S,
                per="SQLite recorder and its mapper, append"),
        Reading("SQLite recorder and its mapper, read", library_read, "events/s"),
        Reading("read as typed events", was_read, "events/s", goal=GOAL_READ_PER_S,
                per="SQLite recorder and its mapper, read"),
        Reading("verify", verified_per_s(folder, decoded=False), "events/s",
                goal=GOAL_VERIFIED_PER_S),
        Reading("verify, decoded", verified_per_s(folder, decoded=True), "events/s",
                goal=GOAL_DECODED_PER_S),
        Reading("space at 100 events a commit", used, "B/event", goal=60, is_lower_better=True),
    ]  # fmt: skip


FIGURE = Figure("store", "Durable appends, typed reads and verifying, with ratios.", measure)

"""
The event log as the engine sees it: append commits of whole steps, read envelopes back, follow.

`EventLog` works over the embedded store, where frames carry checksums, chain and epoch, and over
any application recorder of the eventsourcing library (`EventLog.from_recorder`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from eventsourcing.persistence import (
    ApplicationRecorder,
    PersistenceError,
    Subscription,
)

from domain.envelope import Envelope, Stamped
from domain.errors import (
    InvariantBroken,
    OutcomeUnknown,
    Refused,
)
from domain.event import Event
from store.archive import SEGMENT_EVENTS, archive, prunable, prune
from store.codec import PlacedRow, decode, decode_all, encode_all, encode_checked, time_us_of
from store.embedded.environment import acquire
from store.embedded.journal import Journal
from store.embedded.marker import MARKER_FILE
from store.embedded.settings import MAP_SIZE, Settings
from store.engines import EmbeddedEngine, Engine
from store.info import LogInfo, found_log
from store.lock import WriterLock, read_holder, take_over
from store.os_errors import unavailable
from store.recorded import RecorderEngine
from store.segments import Segment
from store.space import Space
from store.translation import translated, translated_error
from store.upkeep import archived, pruned, stamped, unrecorded

STREAM_CHUNK = 500
"""How many events of one stream are fetched at a time."""


class EventLog:
    """
    One log, open for reading or, by one process at a time, for writing.

    Made by `create`, `open` or `from_recorder`; close it, or use it as a context manager.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        path: Path | None,
        lock: WriterLock | None,
        epoch: int | None,
        is_writable: bool,
        is_checked: bool,
    ) -> None:
        self._engine = engine
        self._lock = lock
        self._epoch = epoch
        self._is_writable = is_writable
        self._is_checked = is_checked
        self._failure: OutcomeUnknown | None = None
        self._is_closed = False
        self.path = path
        self.log_id = engine.log_id

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        log_id: str | None = None,
        durability: str = "full",
        map_size: int = MAP_SIZE,
        checked: bool = False,
        allow_network: bool = False,
    ) -> Self:
        """
        Begin a new log in a directory and open it for writing.

        Args:
            path: The directory; made if need be.
            log_id: Its identity; a random one when None.
            durability: full, relaxed or none, as in `store.embedded`.
            map_size: Upper bound of the file in bytes.
            checked: Decode and compare every event before it is committed.
            allow_network: Don't refuse a network file system.

        Raises:
            Refused: There is a log already.
            StoreUnavailable: The directory can't be used.
        """
        directory = Path(path).resolve()
        if (directory / MARKER_FILE).exists():
            raise Refused("log", "must not exist yet", str(directory))
        settings = Settings(
            directory, map_size=map_size, durability=durability, allow_network=allow_network
        )
        return cls._open_writable(settings, log_id=log_id, create=True, checked=checked)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        writable: bool,
        durability: str = "full",
        map_size: int = MAP_SIZE,
        checked: bool = False,
        allow_network: bool = False,
        takes_over: bool = False,
    ) -> Self:
        """
        Open an existing log; a cluster directory with a log in it will do.

        Args:
            path: The directory.
            writable: As its one writer; otherwise as one of any number of readers.
            durability: As in `create`.
            map_size: As in `create`.
            checked: As in `create`.
            allow_network: As in `create`.
            takes_over: Kill the process that has the log, instead of being refused.

        Raises:
            NotFound: There is no log.
            Conflict: It has a writer already.
            Corrupt: Its files mustn't be opened.
            StoreUnavailable: They can't be.
        """
        directory = found_log(path)
        settings = Settings(
            directory,
            map_size=map_size,
            durability=durability,
            allow_network=allow_network,
            readonly=not writable,
        )
        if writable:
            if takes_over:
                take_over(directory)
            return cls._open_writable(settings, log_id=None, create=False, checked=checked)
        with translated():
            environment = acquire(settings, create=False)
            try:
                engine = EmbeddedEngine(environment)
            except BaseException:
                # Else this process would go on seeing the damaged file after it was replaced.
                environment.release()
                raise
        return cls(
            engine, path=directory, lock=None, epoch=None, is_writable=False, is_checked=False
        )

    @classmethod
    def _open_writable(
        cls, settings: Settings, *, log_id: str | None, create: bool, checked: bool
    ) -> Self:
        """
        Take the lock, open the store and raise its epoch.
        """
        if create:
            _make_directory(settings.path)
        lock = WriterLock(settings.path)
        try:
            with translated():
                environment = acquire(
                    settings, create=create, log_id=log_id, thorough=lock.is_after_crash_of_machine
                )
            try:
                with translated():
                    epoch = environment.raise_epoch()
                    environment.check_readers()
                    engine = EmbeddedEngine(environment)
            except BaseException:
                environment.release()
                raise
        except BaseException:
            lock.release()
            raise
        return cls(
            engine, path=settings.path, lock=lock, epoch=epoch, is_writable=True, is_checked=checked
        )

    @classmethod
    def from_recorder(
        cls,
        recorder: ApplicationRecorder,
        *,
        log_id: str,
        checked: bool = False,
        writable: bool = True,
    ) -> Self:
        """
        Use an application recorder of the eventsourcing library as the log.

        Args:
            recorder: As its factory made it, with ids as text.
            log_id: The log's identity, which such a recorder doesn't keep.
            checked: Decode and compare every event before it is committed.
            writable: Whether this process appends.
        """
        with translated():
            engine = RecorderEngine(recorder, log_id=log_id)
        return cls(
            engine, path=None, lock=None, epoch=None, is_writable=writable, is_checked=checked
        )

    @property
    def epoch(self) -> int:
        """
        Return the epoch: our own as the writer, otherwise the log's present one.
        """
        return self._engine.epoch() if self._epoch is None else self._epoch

    def head(self) -> int:
        """
        Return the last position, 0 when the log is empty.
        """
        with translated():
            return self._engine.head()

    def append(self, events: Sequence[Stamped]) -> int:
        """
        Append whole steps as one commit, synced, all or nothing; return the last position.

        Raises:
            Conflict: A stream has such a version already, or another writer took over.
            StoreUnavailable: There is no room; nothing was recorded, and it may be tried again.
            OutcomeUnknown: The disk failed; this log takes nothing more until it is opened anew.
        """
        if self._failure is not None:
            raise self._failure
        if not self._is_writable:
            raise Refused(
                "log", "is open for reading only", None if self.path is None else str(self.path)
            )
        if not events:
            return self.head()
        if not events[-1].ends_step:
            raise InvariantBroken("a commit holds whole steps", repr(events[-1])[:200])
        rows = encode_checked(events) if self._is_checked else encode_all(events)
        # `translated` would be three calls, and each durable answer waits for them.
        try:
            return self._engine.append(rows, self._epoch)
        except PersistenceError as error:
            ours = translated_error(error)
            if isinstance(ours, OutcomeUnknown):
                self._failure = ours
            raise ours from error

    def read(self, after: int = 0, upto: int | None = None) -> Iterator[Envelope]:
        """
        Yield the envelopes after a position, up to and with another one, in order, checked.

        Args:
            after: 0 for the beginning.
            upto: None for all that is there when the reading comes to it.
        """
        with translated():
            for columns in self._engine.columns(after, upto):
                yield from decode_all(*columns)

    def rows(self, after: int = 0, upto: int | None = None) -> Iterator[PlacedRow]:
        """
        Yield the same as rows: position, stream, version, type code and state, not decoded.
        """
        with translated():
            for columns in self._engine.columns(after, upto):
                yield from zip(*columns, strict=True)

    def read_stream(self, stream: str, after_version: int = 0) -> Iterator[Envelope]:
        """
        Yield the envelopes of one stream after a version.
        """
        with translated():
            while rows := self._engine.stream_rows(stream, after_version, STREAM_CHUNK):
                for row in rows:
                    yield decode(*row)
                after_version = rows[-1][2]

    def last_time_us(self) -> int:
        """
        Return the time of the last event, 0 when the log is empty.
        """
        return self.time_at(self.head())

    def time_at(self, position: int) -> int:
        """
        Return the time of an event, 0 for position 0.
        """
        if position == 0:
            return 0
        with translated():
            return time_us_of(self._engine.row_at(position)[4])

    def digest_at(self, position: int) -> bytes:
        """
        Return the digest of the history up to a position.

        Raises:
            Corrupt: There is no such position.
        """
        with translated():
            return self._engine.digest_at(position)

    def head_digest(self) -> bytes:
        """
        Return the digest of the whole history.
        """
        return self.digest_at(self.head())

    def info(self) -> LogInfo:
        """
        Describe the log.
        """
        head = self.head()
        holder = None if self.path is None else read_holder(self.path)
        with translated():
            readers, lag = self._engine.readers()
            segments = self._engine.segments()
            pruned = [segment.last_position for segment in segments if segment.is_pruned]
            first = max(pruned, default=0) + 1
            return LogInfo(
                path="" if self.path is None else str(self.path),
                engine=self._engine.name,
                log_id=self.log_id,
                epoch=self._engine.epoch(),
                events=head,
                frames=self._engine.frame_count(),
                bytes=self._engine.used_bytes(),
                archived_events=sum(s.last_position - s.first_position + 1 for s in segments),
                archived_bytes=sum(segment.bytes for segment in segments if not segment.is_pruned),
                first_position=first,
                head_digest=self._engine.digest_at(head).hex(),
                first_time_us=self.time_at(first) if head else None,
                last_time_us=self.time_at(head) if head else None,
                writer="" if holder is None else holder.text(),
                readers=readers,
                oldest_reader_lag=lag,
            )

    def space(self) -> Space | None:
        """
        Measure the room that is left, None when the log isn't embedded.
        """
        if not isinstance(self._engine, EmbeddedEngine):
            return None
        with translated():
            return self._engine.space()

    def archive(
        self, upto: int, *, segment_events: int = SEGMENT_EVENTS, actor: str | None = None
    ) -> list[Segment]:
        """
        Move whole commits up to a position to compressed segment files that are read as before.

        Args:
            upto: The position.
            segment_events: About how many events a segment holds.
            actor: Who asks; each segment is recorded as an event, and so are those of an archiving
                that was cut short. Without one nothing is.

        Raises:
            Refused: The log is open for reading only, or isn't embedded.
            StoreUnavailable: There is no space for a segment; nothing is lost.
        """
        with translated():
            made = archive(self._own_journal(), upto, segment_events=segment_events)
        if actor is not None:
            self._record_archived(actor)
        return made

    def prunable(self, upto: int) -> list[Segment]:
        """
        Return what `prune` would remove.
        """
        with translated():
            return prunable(self._own_journal(), upto)

    def prune(self, upto: int, *, actor: str) -> list[Segment]:
        """
        Remove the segment files that end at or before a position, for ever; recorded before.

        Raises:
            Refused: The log is open for reading only, or isn't embedded.
        """
        self._record_archived(actor)
        going = self.prunable(upto)
        self._record(pruned(going, time.time_ns() // 1000), actor)
        with translated():
            return prune(self._own_journal(), upto)

    def _record_archived(self, actor: str) -> None:
        """
        Record the segments that no event names yet.
        """
        with translated():
            missing = unrecorded(self._own_journal())
        self._record(archived(missing, time.time_ns() // 1000), actor)

    def _record(self, events: list[Event], actor: str) -> None:
        """
        Append what was done to the log itself, if anything was.
        """
        self.append(stamped(self._own_journal(), events, actor=actor, time_us=self.last_time_us()))

    def _own_journal(self) -> Journal:
        """
        Return the journal of an embedded log that this process writes.
        """
        if not isinstance(self._engine, EmbeddedEngine):
            raise Refused("log", "must be an embedded one", self._engine.name)
        if not self._is_writable:
            raise Refused("log", "is open for reading only", self.path)
        return self._engine.journal

    def follow(self, after: int = 0) -> Follower:
        """
        Return an iterator over the envelopes after a position that waits for new ones, of any
        process.
        """
        return Follower(self._engine.follow(after))

    def close(self) -> None:
        """
        Close the log and give the writer's lock back; harmless when called again.
        """
        if not self._is_closed:
            self._is_closed = True
            self._engine.close()
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Follower:
    """
    Iterate over new envelopes until `stop` is called, by any thread.
    """

    def __init__(self, subscription: Subscription[ApplicationRecorder]) -> None:
        self._subscription = subscription

    def __iter__(self) -> Iterator[Envelope]:
        with self._subscription as notifications:
            for found in notifications:
                yield decode(
                    found.id,
                    str(found.originator_id),
                    found.originator_version,
                    found.topic,
                    found.state,
                )

    def stop(self) -> None:
        """
        End the iteration.
        """
        self._subscription.stop()


def _make_directory(directory: Path) -> None:
    """
    Make a log's directory, for its owner alone.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise unavailable(directory, error) from None

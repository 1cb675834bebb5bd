"""
An event log on any application recorder of the library: SQLite, PostgreSQL.

Such a recorder has neither checksums nor a chain, so each commit ends with a *log digest*: a row of
ours in a stream of its own, which chains over all rows appended so far. Who reads events doesn't
see it; positions have a gap there. Its version is the count of commits, so that a writer that
somebody passed can't append any more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from eventsourcing.persistence import (
    ApplicationRecorder,
    IntegrityError,
    Notification,
    ProgrammingError,
    StoredEvent,
    Subscription,
)

from domain.errors import Corrupt
from store.chain import digest_within, genesis
from store.codec import PlacedRow, Row, time_us_of
from store.embedded.errors import EpochPassedError
from store.engines import Columns
from store.polling import PollingSubscription
from store.segments import Segment

DIGESTS = "log-digest"
"""The stream of the digests; no event of the domain has such an id."""
TOPIC = "log.digest"
PAGE = 1000
"""How many notifications are read at a time."""


class LogDigest(NamedTuple):
    """
    What stands at the end of a commit.

    Args:
        commit: Its number, from 1: the version of the row.
        events: How many events it has.
        digest: Digest of the whole history, up to its end.
    """

    commit: int
    events: int
    digest: bytes

    def row(self, time_us: int) -> Row:
        """
        Return it as it is stored; the state is shaped as an event's is.
        """
        payload = f'{{"events":{self.events},"digest":"{self.digest.hex()}"}}'
        state = f'{{"t":{time_us},"e":{payload}}}'.encode()
        return DIGESTS, self.commit, TOPIC, state


def read_digest(version: int, state: bytes, *, position: int | None = None) -> LogDigest:
    """
    Read what `LogDigest.row` wrote.

    Raises:
        Corrupt: It is something else.
    """
    try:
        fields = json.loads(state)["e"]
        return LogDigest(version, int(fields["events"]), bytes.fromhex(fields["digest"]))
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt("schema", position, "a log digest", f"{error!r}"[:80]) from None


class RecorderEngine:
    """
    Stand on a recorder of the library: positions have gaps, and there is no epoch or size.
    """

    def __init__(self, recorder: ApplicationRecorder, *, log_id: str) -> None:
        if getattr(getattr(recorder, "datastore", None), "enable_db_functions", False):
            # Seen in 9.5.6: without a table lock, readers skip positions; and tracking is dropped.
            message = "POSTGRES_ENABLE_DB_FUNCTIONS must not be set: it loses the order of commits"
            raise ProgrammingError(message)
        self.name = type(recorder).__module__
        self.log_id = log_id
        self._recorder = recorder
        self._last: LogDigest | None = None

    def head(self) -> int:
        """
        Return the last position, 0 when empty.
        """
        return self._recorder.max_notification_id() or 0

    def append(self, rows: Sequence[Row], epoch: int | None) -> int:  # noqa: ARG002 - no epoch here
        """
        Append rows and their digest as one commit; return the last position.
        """
        before = self._last or self._newest_digest()
        after = LogDigest(before.commit + 1, len(rows), digest_within(before.digest, list(rows)))
        events = [StoredEvent(*row) for row in (*rows, after.row(time_us_of(rows[-1][3])))]
        try:
            positions = self._recorder.insert_events(events)
        except IntegrityError as error:
            found = self._newest_digest().commit
            if found != before.commit:
                # What we know is out of date, and stays so: we aren't the writer any more.
                self._last = before
                raise EpochPassedError(before.commit, found) from error
            raise
        self._last = after
        return self.head() if not positions else positions[-1]

    def _newest_digest(self) -> LogDigest:
        """
        Return the digest of the last commit, or where a log begins.
        """
        found = self._recorder.select_events(DIGESTS, desc=True, limit=1)
        if not found:
            return LogDigest(0, 0, genesis(self.log_id, b"recorder"))
        return read_digest(found[0].originator_version, bytes(found[0].state))

    def columns(self, after: int, upto: int | None) -> Iterator[Columns]:
        """
        Yield the rows after a position, up to and with another, column by column.
        """
        for rows in self._pages(after, upto):
            if events := [row for row in rows if row[1] != DIGESTS]:
                yield tuple(zip(*events, strict=True))  # type: ignore[misc]

    def all_rows(self) -> Iterator[PlacedRow]:
        """
        Yield every row, digests too.
        """
        for rows in self._pages(0, None):
            yield from rows

    def _pages(self, after: int, upto: int | None) -> Iterator[list[PlacedRow]]:
        """
        Yield the rows after a position, up to and with another, in pages.
        """
        while page := self._page(after, upto, PAGE):
            yield [_placed(found) for found in page]
            after = page[-1].id

    def _page(self, after: int, upto: int | None, limit: int) -> Sequence[Notification]:
        """
        Read some notifications after a position.
        """
        return self._recorder.select_notifications(
            after, limit, stop=upto, inclusive_of_start=False
        )

    def stream_rows(self, stream: str, after_version: int, limit: int) -> list[PlacedRow]:
        """
        Return at most *limit* rows of a stream after a version.
        """
        # A stored event of the library doesn't know its position: the log is scanned for it.
        wanted = self._recorder.select_events(stream, gt=after_version, limit=limit)
        missing = {event.originator_version for event in wanted}
        rows, after = [], 0
        while missing and (page := self._page(after, None, PAGE)):
            for found in page:
                if found.originator_id == stream and found.originator_version in missing:
                    missing.discard(found.originator_version)
                    rows.append(_placed(found))
            after = page[-1].id
        return rows

    def row_at(self, position: int) -> PlacedRow:
        """
        Return the row at a position.
        """
        page = self._recorder.select_notifications(position, 1, stop=position)
        if not page:
            raise Corrupt("gap", position, f"position {position}", "nothing")
        return _placed(page[0])

    def digest_at(self, position: int) -> bytes:
        """
        Return the digest of the history up to a position: the recorded one of the commit before,
        and what its own commit has up to there.
        """
        origin = genesis(self.log_id, b"recorder")
        if position == 0:
            return origin
        _, stream, version, _, state = self.row_at(position)
        if stream == DIGESTS:
            return read_digest(version, state, position=position).digest
        rows: list[Row] = []
        for found in self._backwards(position):
            if found[1] == DIGESTS:
                origin = read_digest(found[2], found[4], position=found[0]).digest
                break
            rows.append(found[1:])
        return digest_within(origin, rows[::-1])

    def _backwards(self, position: int) -> Iterator[PlacedRow]:
        """
        Yield the rows from a position back to the first one.
        """
        while position > 0:
            first = max(1, position - PAGE + 1)
            page = self._page(first - 1, position, PAGE)
            yield from (_placed(found) for found in reversed(page))
            position = first - 1

    def epoch(self) -> int:
        """
        Return the count of writers so far, 0 when it isn't kept.
        """
        return 0

    def frame_count(self) -> int:
        """
        Return how many records the rows take.
        """
        return 0

    def used_bytes(self) -> int:
        """
        Return how many bytes the log takes, 0 when that can't be told.
        """
        return 0

    def readers(self) -> tuple[int, int]:
        """
        Return how many read transactions are open, and how many commits ago the oldest began.
        """
        return 0, 0

    def segments(self) -> list[Segment]:
        """
        Return the archived segments.
        """
        return []

    def follow(self, after: int) -> Subscription[ApplicationRecorder]:
        """
        Return a subscription to the notifications after a position.
        """
        return PollingSubscription(self._recorder, gt=after, without=DIGESTS)

    def close(self) -> None:
        """
        Do nothing: the recorder is its factory's.
        """


def _placed(found: Notification) -> PlacedRow:
    """
    Return a notification as a plain row.
    """
    return (
        found.id,
        str(found.originator_id),
        found.originator_version,
        found.topic,
        bytes(found.state),
    )

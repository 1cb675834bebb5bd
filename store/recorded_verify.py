"""
Verify a log on a recorder of the library against its log digests.
"""

from __future__ import annotations

from eventsourcing.persistence import ApplicationRecorder

from domain.errors import Corrupt
from store.chain import digest_within, genesis
from store.codec import PlacedRow, Row, decode
from store.recorded import DIGESTS, RecorderEngine, read_digest
from store.translation import translated
from store.verify import VerifyReport


def verify_recorded(
    recorder: ApplicationRecorder, *, log_id: str, decoded: bool = True
) -> VerifyReport:
    """
    Walk a whole log, hold each commit against its digest and name what is wrong.

    A changed, removed, inserted, doubled or moved event is found, and so is a changed digest. That
    the last commits are gone is only shown by a head kept elsewhere (`store.heads`).

    Args:
        recorder: As its factory made it, with ids as text.
        log_id: The log's identity, which such a recorder doesn't keep.
        decoded: Also decode every event.
    """
    report = VerifyReport(type(recorder).__module__, log_id=log_id, is_decoded=decoded)
    walk = _Walk(report, genesis(log_id, b"recorder"), decoded=decoded)
    with translated():
        for row in RecorderEngine(recorder, log_id=log_id).all_rows():
            walk.see(row)
    walk.end()
    return report


class _Walk:
    """
    Go over all rows.
    """

    def __init__(self, report: VerifyReport, digest: bytes, *, decoded: bool) -> None:
        self._report = report
        self._is_decoded = decoded
        self._digest = digest
        self._commit = 0
        self._rows: list[Row] = []
        self._first = 0
        self._versions: dict[str, int] = {}

    def see(self, row: PlacedRow) -> None:
        """
        Take the next row.
        """
        self._report.last_position = row[0]
        if row[1] == DIGESTS:
            try:
                self._end_commit(row)
            except Corrupt as error:
                self._report.add(error, position=row[0])
            self._rows = []
            return
        if not self._rows:
            self._first = row[0]
        self._rows.append(row[1:])
        self._event(row)

    def _event(self, row: PlacedRow) -> None:
        """
        Verify one event by itself, and its version.
        """
        position, stream, version, _, _ = row
        try:
            if self._is_decoded:
                decode(*row)
            self._report.events += 1
        except Corrupt as error:
            self._report.add(error, position=position, stream=stream)
        expected = self._versions.get(stream, 0) + 1
        self._versions[stream] = version
        if version != expected:
            wrong = Corrupt("order", position, f"version {expected}", f"version {version}")
            self._report.add(wrong, stream=stream)

    def _end_commit(self, row: PlacedRow) -> None:
        """
        Hold a commit against its digest, and go on from what is recorded.
        """
        position, _, version, _, state = row
        recorded = read_digest(version, state, position=position)
        before, self._digest = self._digest, recorded.digest
        commit, self._commit = self._commit + 1, recorded.commit
        self._report.commits += 1
        self._report.head_digest = recorded.digest.hex()
        if recorded.commit != commit:
            found = f"commit {recorded.commit}"
            raise Corrupt("gap", self._first or position, f"commit {commit}", found)
        found = digest_within(before, self._rows).hex()
        if found != recorded.digest.hex():
            raise Corrupt("chain", self._first or position, recorded.digest.hex(), found)

    def end(self) -> None:
        """
        See that the last event is covered by a digest.
        """
        if self._rows:
            self._report.add(
                Corrupt("truncated", self._first, "the digest of the commit", "the end of the log")
            )

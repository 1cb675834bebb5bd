"""
Walk a log and name what is wrong with it: structure, checksum, chain, gap, order, schema,
truncated.

The walk runs in a child process, because a damaged structure can abort the engine; what kills the
child is a finding, not the end of the caller. One bad record never stops the rest from being read.
"""

from __future__ import annotations

import json
import subprocess
import sys
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from itertools import count, repeat
from pathlib import Path

from eventsourcing.persistence import PersistenceError

from domain.errors import Corrupt, XceError
from store.codec import PlacedRow, decode, decode_all
from store.embedded.environment import acquire
from store.embedded.frames import (
    Columns,
    Header,
    check_crc,
    check_follows,
    decode_columns,
    raw_payload,
    read_header,
    topic_mask,
)
from store.embedded.index import index_runs
from store.embedded.journal import Journal
from store.embedded.kept import dictionary_of, kept
from store.embedded.layout import id_bytes
from store.embedded.marker import read_marker
from store.embedded.metas import newest_meta
from store.embedded.preflight import (
    DATA_FILE,
    check_data_file,
    structure_problems,
)
from store.embedded.rows import streams_of
from store.embedded.settings import Settings
from store.info import found_log
from store.lock import is_held
from store.segments import check_file

PROBLEMS_MAX = 100
"""More than these are counted, not listed."""


@dataclass(frozen=True, slots=True)
class Problem:
    """
    One thing that is wrong.

    Args:
        kind: structure, checksum, chain, gap, order, schema, truncated, foreign, newer or empty.
        position: Where in the log, None when it isn't a matter of one position.
        expected: What should be there.
        found: What is there.
        stream: Whose event it is, "" when that can't be told.
    """

    kind: str
    position: int | None
    expected: str
    found: str
    stream: str = ""

    def text(self) -> str:
        """
        Return it as one line for people.
        """
        where = "" if self.position is None else f" at position {self.position}"
        whose = f" of {self.stream}" if self.stream else ""
        return f"{self.kind}{where}{whose}: expected {self.expected}, found {self.found}"


@dataclass(slots=True)
class VerifyReport:
    """
    Say what a walk over a log found.

    Args:
        path: The log's directory.
        log_id: Its identity, "" when it couldn't be opened.
        events: How many events were read and good.
        frames: How many frames.
        commits: How many commits.
        first_position: Where the log begins: behind what was pruned.
        last_position: The last position of the log, good or not.
        head_digest: Digest at the last good frame, in hexadecimal.
        is_decoded: Whether every event was decoded too.
        problem_count: How many problems there are.
        problems: The first of them, in order.
    """

    path: str
    log_id: str = ""
    events: int = 0
    frames: int = 0
    commits: int = 0
    first_position: int = 1
    last_position: int = 0
    head_digest: str = ""
    is_decoded: bool = False
    problem_count: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """
        Say whether nothing is wrong.
        """
        return self.problem_count == 0

    @property
    def first_problem(self) -> Problem | None:
        """
        Return what is wrong first, None when nothing is.
        """
        return self.problems[0] if self.problems else None

    def add(self, error: Corrupt, *, position: int | None = None, stream: str = "") -> None:
        """
        Enter a problem.
        """
        self.problem_count += 1
        if len(self.problems) < PROBLEMS_MAX:
            place = error.position if error.position is not None else position
            self.problems.append(
                Problem(error.kind, place, str(error.expected), str(error.found), stream)
            )

    def as_json(self) -> str:
        """
        Return it as one JSON object.
        """
        return json.dumps({**asdict(self), "is_good": self.is_good})


def report_from_json(text: str) -> VerifyReport:
    """
    Return what `VerifyReport.as_json` wrote.
    """
    fields = json.loads(text)
    del fields["is_good"]
    problems = [Problem(**problem) for problem in fields.pop("problems")]
    return VerifyReport(**fields, problems=problems)


def verify(
    path: str | Path, *, decoded: bool = True, timeout_s: float | None = None
) -> VerifyReport:
    """
    Verify a log in a child process.

    Args:
        path: The log's directory, or a cluster directory around it.
        decoded: Also decode every event.
        timeout_s: How long it may take, None for as long as it takes.

    Raises:
        NotFound: There is no log.
        XceError: It can't be read at all (permission, address space).
    """
    directory = found_log(path)
    arguments = [
        sys.executable,
        "-m",
        "store.verify",
        str(directory),
        *([] if decoded else ["--fast"]),
    ]
    root = str(Path(__file__).resolve().parent.parent)
    done = subprocess.run(
        arguments, capture_output=True, text=True, check=False, cwd=root, timeout=timeout_s
    )
    try:
        return report_from_json(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError, KeyError, TypeError):
        report = VerifyReport(str(directory))
        last = done.stderr.strip().splitlines()[-1:] or [""]
        found = (
            f"the engine ended the verifying process (status {done.returncode}) {last[0]}".strip()
        )
        report.add(Corrupt("structure", None, "a sound data file", found))
        return report


def verify_here(directory: Path, *, decoded: bool = True) -> VerifyReport:
    """
    Verify a log in this process; damaged structure may abort it.
    """
    report = VerifyReport(str(directory), is_decoded=decoded)
    try:
        check_data_file(directory, log_id=read_marker(directory))
        if not _is_structure_sound(directory, report):
            return report
        environment = acquire(Settings(directory.resolve(), readonly=True), create=False)
    except Corrupt as error:
        report.add(error)
        return report
    try:
        report.log_id = environment.log_id
        _Walk(Journal(environment), report, decoded=decoded).run()
    except PersistenceError as error:
        report.add(Corrupt("structure", None, "a sound data file", str(error)))
    finally:
        environment.release()
    return report


def _is_structure_sound(directory: Path, report: VerifyReport) -> bool:
    """
    Walk the structure in pure Python, unless somebody is writing meanwhile.
    """
    if is_held(directory):
        # The walk would see pages of two moments; a writer's file was checked at its opening.
        return True
    before = newest_meta(directory / DATA_FILE)
    problems = structure_problems(directory / DATA_FILE)
    if not problems or is_held(directory) or newest_meta(directory / DATA_FILE) != before:
        return True
    report.add(Corrupt("structure", None, "a sound data file", problems[0]))
    return False


class _Walk:
    """
    Go over all frames, then over the index.
    """

    def __init__(self, journal: Journal, report: VerifyReport, *, decoded: bool) -> None:
        self._journal = journal
        self._report = report
        self._is_decoded = decoded
        self._first = self._next = 1
        self._digest = journal.digest_at(0)
        self._epoch = 0
        self._is_commit_open = False
        self._rows_hash = 0
        self._versions: dict[str, int] = {}
        self._kept: dict[int, bool] = {}

    def run(self) -> None:
        """
        Verify everything.
        """
        self._anchors()
        self._dictionaries()
        for key, stored in self._journal.stored_frames():
            try:
                self._frame(key, stored)
            except Corrupt as error:
                self._report.add(error, position=key)
                self._resume(key, stored)
        if self._is_commit_open:
            self._report.add(
                Corrupt("truncated", self._next, "the rest of the commit", "the end of the log")
            )
        self._report.head_digest = self._digest.hex()
        if not self._report.problems:
            self._index()

    def _anchors(self) -> None:
        """
        Hold the archived segments against their anchors, and begin behind what was pruned.
        """
        for segment in self._journal.anchors.segments():
            if segment.is_pruned:
                self._next = self._first = segment.last_position + 1
                self._digest = bytes.fromhex(segment.digest)
                continue
            try:
                check_file(self._journal.anchors.directory / segment.file, segment)
            except Corrupt as error:
                self._report.add(error, position=segment.first_position)
        self._report.first_position = self._first

    def _dictionaries(self) -> None:
        """
        See that the dictionaries in the log are those that their numbers say.
        """
        self._kept = kept(self._journal.environment)
        for number, is_right in self._kept.items():
            if not is_right:
                expected = f"dictionary {number:08x}"
                self._report.add(Corrupt("checksum", None, expected, "another content"))

    def _frame(self, key: int, stored: bytes) -> None:
        """
        Verify one frame against the one before it.
        """
        if (number := dictionary_of(stored)) and number not in self._kept:
            self._kept[number] = True
            expected = f"dictionary {number:08x} in the log"
            self._report.add(Corrupt("gap", None, expected, "none"), position=key)
        header = read_header(stored, position=key)
        raw = raw_payload(stored, header)
        if header.first_position != key:
            raise Corrupt("order", key, key, header.first_position)
        check_follows(header, raw, self._next - 1, self._digest)
        if header.epoch < self._epoch:
            raise Corrupt("order", key, f"at least epoch {self._epoch}", f"epoch {header.epoch}")
        self._rows(header, raw)
        self._report.frames += 1
        self._report.events += header.events
        self._report.commits += header.is_last_of_commit
        self._is_commit_open = not header.is_last_of_commit
        self._next = header.last_position + 1
        self._digest = header.digest
        self._epoch = header.epoch
        self._report.last_position = header.last_position

    def _rows(self, header: Header, raw: bytes) -> None:
        """
        Verify the rows of a frame: topics, versions, and each event when it is to be decoded.
        """
        position = header.first_position
        columns = decode_columns(raw, header.events, position=position)
        if topic_mask(columns.topic_names) != header.topic_mask:
            expected = f"topics {topic_mask(columns.topic_names):x}"
            raise Corrupt("order", position, expected, f"{header.topic_mask:x}")
        ids = map(columns.ids.__getitem__, columns.id_indexes)
        positions = range(position, header.last_position + 1)
        self._rows_hash += sum(map(hash, zip(ids, columns.versions, positions, strict=True)))
        if self._is_decoded:
            self._decode(columns, positions)

    # hot: the bench of verifying with decoding needs it.
    def _decode(self, columns: Columns, positions: range) -> None:
        """
        Decode the events of a frame, and compare their versions with their streams' last.
        """
        streams = list(map(str, streams_of(columns.ids, positions[0])))
        names = list(map(streams.__getitem__, columns.id_indexes))
        topics = list(map(columns.topic_names.__getitem__, columns.topics))
        rows = (positions, names, columns.versions, topics, columns.states)
        try:
            # Every envelope is let go at once.
            deque(decode_all(*rows), maxlen=0)
        except Corrupt:
            self._name_undecodable(zip(*rows, strict=True))
        versions, is_whole = self._versions, self._first == 1
        for position, stream, version in zip(positions, names, columns.versions, strict=True):
            # Behind a pruned beginning a stream's first version here may be any.
            expected = versions.get(stream, 0 if is_whole else version - 1) + 1
            versions[stream] = version
            if version != expected:
                wrong = Corrupt("order", position, f"version {expected}", f"version {version}")
                self._report.add(wrong, stream=stream)

    def _name_undecodable(self, rows: Iterable[PlacedRow]) -> None:
        """
        Enter every event of a frame that can't be decoded.
        """
        for row in rows:
            try:
                decode(*row)
            except Corrupt as error:
                self._report.add(error, position=row[0], stream=row[1])

    def _resume(self, key: int, stored: bytes) -> None:
        """
        Take up the thread behind a bad frame, by what can still be believed of it.
        """
        try:
            header = read_header(stored, position=key)
            check_crc(stored, position=key)
        except Corrupt:
            self._next, self._digest = self._journal.frame_after(key)
            return
        self._next, self._digest = header.last_position + 1, header.digest

    def _index(self) -> None:
        """
        Compare the index with the rows: the same entries, no more and no fewer.
        """
        for what, key in self._journal.unfound_keys():
            expected = f"{what} that is found under its key"
            self._report.add(Corrupt("structure", None, expected, key[:60].hex()))
        try:
            index_hash = 0
            for encoded, first, positions in self._journal.read_index(index_runs):
                # What was pruned keeps its entries.
                pruned = bisect_left(positions, self._first) if positions[0] < self._first else 0
                unpruned = positions[pruned:] if pruned else positions
                entries = zip(repeat(encoded), count(first + pruned), unpruned, strict=False)
                index_hash += sum(map(hash, entries))
            if index_hash != self._rows_hash:
                self._find_index_problem()
        except Corrupt as error:
            self._report.add(error)

    def _find_index_problem(self) -> None:
        """
        Name the first event that the index doesn't lead to, or an entry that leads nowhere.
        """
        entries = {
            (encoded, version, position)
            for encoded, first, positions in self._journal.read_index(index_runs)
            for version, position in enumerate(positions, first)
            if position >= self._first
        }
        for position, stream, version, _, _ in self._journal.iter_rows():
            entry = (id_bytes(stream), version, position)
            if entry not in entries:
                self._report.add(
                    Corrupt("order", position, "an index entry", "none"), stream=str(stream)
                )
                return
            entries.discard(entry)
        for encoded, version, position in sorted(entries, key=lambda entry: entry[2])[:1]:
            found = f"an index entry for version {version}"
            (stream,) = streams_of([encoded], position)
            self._report.add(
                Corrupt("order", position, "no index entry", found), stream=str(stream)
            )


def main(arguments: list[str], write: Callable[[str], object]) -> int:
    """
    Verify the log named by the first argument and write the report; ``--fast`` leaves decoding out.
    """
    directory = Path(arguments[0])
    try:
        report = verify_here(directory, decoded="--fast" not in arguments)
    except XceError as error:
        report = VerifyReport(str(directory))
        report.add(Corrupt("structure", None, "a log that can be read", error.text()))
    write(report.as_json() + "\n")
    return 0 if report.is_good else 4


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], sys.stdout.write))

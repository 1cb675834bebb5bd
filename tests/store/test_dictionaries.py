"""
Small frames are compressed with a trained dictionary that lives in the log.
"""

from __future__ import annotations

import shutil
import zlib
from pathlib import Path
from typing import Any

import lmdb
import pytest

from domain.errors import Corrupt, StoreUnavailable
from store import dictionaries
from store.archive import SEGMENT_EVENTS
from store.backup import backup, compact
from store.embedded.frames import (
    DICTIONARY_MAX,
    ZSTD,
    ZSTD_DICTIONARY,
    raw_payload,
    read_header,
)
from store.embedded.kept import keep
from store.embedded.layout import KEY_DICTIONARY
from store.log import EventLog
from store.repair import repair
from store.transfer import export_log, import_log
from store.verify import verify_here
from tools.dev.dictionary import commits, submission
from tools.torture.workload import job_events, jobs_events


def small_commits(log: EventLog, count: int = 40) -> None:
    """
    Append commits of one event each.
    """
    for number in range(1, count + 1):
        for event in job_events(number):
            log.append([event])


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with EventLog.create(tmp_path / "log", log_id="the-log") as log:
        small_commits(log)
        log.append(jobs_events(1000, 300))
    return tmp_path / "log"


def stored_frames(directory: Path) -> list[bytes]:
    with lmdb.open(str(directory), max_dbs=16, readonly=True, lock=False) as environment:
        database = environment.open_db(b"events.log")
        with environment.begin(db=database) as transaction:
            return [bytes(frame) for _, frame in transaction.cursor()]


def change_dictionary(directory: Path, content: bytes | None) -> None:
    """
    Put something else, or nothing, in the place of the log's copy.
    """
    number, _ = dictionaries.current()
    with (
        lmdb.open(str(directory), max_dbs=16, map_size=1 << 30) as environment,
        environment.begin(write=True) as transaction,
    ):
        meta = environment.open_db(b"meta", txn=transaction)
        key = KEY_DICTIONARY + b"%08x" % number
        assert transaction.get(key, db=meta)
        if content is None:
            transaction.delete(key, db=meta)
        else:
            transaction.put(key, content, db=meta)


def test_small_frames_take_less_than_two_thirds_of_their_room(directory: Path) -> None:
    """
    Else the dictionary would not be worth its keep; large frames do without.
    """
    frames = stored_frames(directory)
    headers = [read_header(frame) for frame in frames]
    small = [each for each in headers if each.events == 1]

    assert {ZSTD_DICTIONARY} == {each.codec for each in small}
    assert ZSTD == headers[-1].codec
    assert headers[-1].raw_length > DICTIONARY_MAX
    plain = [len(zlib.compress(raw_payload(frame, read_header(frame)))) for frame in frames[:-1]]
    assert sum(each.stored_length for each in small) < 0.67 * sum(plain)


def test_the_log_keeps_the_dictionary_and_is_good(directory: Path) -> None:
    """
    A program with other dictionaries must be able to read it.
    """
    report = verify_here(directory)

    assert report.is_good, report.first_problem
    with EventLog.open(directory, writable=False) as log:
        assert 40 * 4 + 300 * 4 == len(list(log.read()))


def test_a_log_is_asked_for_its_dictionary_by_the_first_commit_alone(
    tmp_path: Path, monkeypatch
) -> None:
    """
    Each commit of a new log looked it up again; a durable answer waits for that.
    """
    asked = []

    def watched(*given: Any) -> bool:
        asked.append(given)
        return keep(*given)

    monkeypatch.setattr("store.embedded.journal.keep", watched)
    with EventLog.create(tmp_path / "new", log_id="the-log") as log:
        for event in job_events(1):
            log.append([event])

    assert 1 == len(asked)


def test_no_error_behind_a_commit_denies_it(tmp_path: Path, monkeypatch) -> None:
    """
    The log looked for its new dictionary behind the commit that brought it: a failing read there
    told that nothing had been recorded.
    """

    def failing(*_given: object) -> None:
        raise StoreUnavailable("descriptors", "data.mdb", "none left")

    first, second, *_ = job_events(1)
    with EventLog.create(tmp_path / "new", log_id="the-log") as log:
        with monkeypatch.context() as broken:
            broken.setattr("store.embedded.reader.kept", failing)
            assert 1 == log.append([first])
            with pytest.raises(StoreUnavailable):
                log.append([second])
        assert 1 == log.head()
        assert 2 == log.append([second])


@pytest.mark.parametrize("content", [None, b"not this one"])
def test_a_damaged_copy_is_named_and_the_programs_own_stands_in(
    directory: Path, content: bytes | None
) -> None:
    """
    One bad record must not take all small commits with it.
    """
    change_dictionary(directory, content)
    with EventLog.open(directory, writable=False) as log:
        assert job_events(1)[0] == next(log.read()).stamped()
    problem = verify_here(directory).first_problem

    assert problem is not None
    assert "dictionary" in problem.expected
    assert ("gap" if content is None else "checksum") == problem.kind


def test_a_frame_of_an_unknown_dictionary_is_refused_by_name_and_the_rest_is_read(
    directory: Path, monkeypatch
) -> None:
    """
    It is of a newer program whose log lost its copy.
    """
    change_dictionary(directory, None)
    monkeypatch.setattr(dictionaries, "known", lambda _: None)
    monkeypatch.setattr("store.embedded.frames.known", lambda _: None)
    number, _ = dictionaries.current()
    with EventLog.open(directory, writable=False) as log, pytest.raises(Corrupt) as caught:
        next(log.read())
    assert ("newer", f"dictionary {number:08x}") == (caught.value.kind, caught.value.found)


def test_a_dictionary_of_another_program_is_learnt_from_the_log(
    directory: Path, tmp_path: Path, monkeypatch
) -> None:
    """
    Its number is the beginning of its digest, so it can't be taken for another.
    """
    other = tmp_path / "trained" / "other.zdict"
    other.parent.mkdir()
    shutil.copy(dictionaries.CURRENT, other)
    other.write_bytes(other.read_bytes()[:-4] + b"more")
    number = dictionaries.number_of_dictionary(other.read_bytes())
    monkeypatch.setattr("store.embedded.frames.current", lambda: (number, other.read_bytes()))
    monkeypatch.setattr(dictionaries, "_learned", {number: other.read_bytes()})
    with EventLog.open(directory, writable=True) as log:
        log.append([job_events(3000)[0]])
    monkeypatch.setattr(dictionaries, "_learned", {})
    assert dictionaries.known(number) is None

    with EventLog.open(directory, writable=False) as log:
        assert job_events(3000)[0] == next(log.read(after=log.head() - 1)).stamped()
    assert verify_here(directory).is_good


def test_whatever_is_done_to_a_log_its_small_frames_stay_readable(
    directory: Path, tmp_path: Path
) -> None:
    """
    Backup, compacting, archive, repair, export and import: the same digest everywhere.
    """
    with EventLog.open(directory, writable=False) as log:
        truth, digest = [each.stamped() for each in log.read()], log.head_digest()
    backup(directory, tmp_path / "backup")
    repair(directory, tmp_path / "repaired")
    export_log(directory, tmp_path / "lines")
    import_log(tmp_path / "lines", tmp_path / "imported")
    compact(directory)
    with EventLog.open(directory, writable=True) as log:
        log.archive(100, segment_events=SEGMENT_EVENTS)

    for place in (directory, tmp_path / "backup", tmp_path / "repaired", tmp_path / "imported"):
        assert verify_here(place).is_good, place
        with EventLog.open(place, writable=False) as log:
            assert truth == [each.stamped() for each in log.read()]
            assert digest == log.head_digest()


def test_the_dictionary_is_of_events_that_it_was_not_trained_on_too() -> None:
    """
    What it was trained on proves nothing.
    """
    import random

    from store.codec import encode
    from store.compression import compress
    from store.embedded.frames import Columns, encode_columns
    from store.embedded.layout import id_bytes

    _, content = dictionaries.current()
    plain = trained = 0
    for event in list(commits(random.Random(77)))[:400]:
        stream, version, topic, state = encode(event)
        columns = Columns([topic], [id_bytes(stream)], [0], [0], [version], [state])
        raw = encode_columns(columns)
        plain += len(compress(raw))
        trained += len(compress(raw, dictionary=content))

    assert submission(random.Random(1)).spec.user
    assert trained < 0.4 * plain

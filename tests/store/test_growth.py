"""
Growth: archived events are read as before, backups are whole, nothing deletes by itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from domain.errors import Conflict, Corrupt, NotFound, Refused
from store.archive import archive, prune
from store.backup import backup, compact
from store.embedded.environment import acquire
from store.embedded.journal import Journal
from store.embedded.settings import Settings
from store.log import EventLog
from store.repair import repair
from store.snapshots import SnapshotStore
from store.transfer import export_log, import_log
from store.verify import verify_here
from tools.torture.workload import fill, job_events, jobs_events


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with EventLog.create(tmp_path / "log", log_id="the-log") as log:
        fill(log, commits=12, jobs=25)
    return tmp_path / "log"


def archived(directory: Path, upto: int, segment_events: int = 250) -> int:
    environment = acquire(Settings(directory.resolve()))
    made = archive(Journal(environment), upto, segment_events=segment_events)
    environment.release()
    return len(made)


def test_archived_events_are_read_as_before(directory: Path) -> None:
    """
    Every reader goes on reading every position, stream and digest.
    """
    with EventLog.open(directory, writable=False) as log:
        before = list(log.read())
        digests = [log.digest_at(position) for position in range(0, 1201, 37)]
        head = log.head_digest()

    assert 3 == archived(directory, 950)

    with EventLog.open(directory, writable=False) as log:
        assert before == list(log.read())
        assert before[333:950] == list(log.read(333, 950))
        assert digests == [log.digest_at(position) for position in range(0, 1201, 37)]
        assert head == log.head_digest()
        assert job_events(3) == [each.stamped() for each in log.read_stream("job:0000000003")]
    report = verify_here(directory)
    assert (True, 1200, 12) == (report.is_good, report.events, report.commits)


def test_an_id_is_never_used_again_after_archiving(directory: Path) -> None:
    """
    The index stays when the frames go.
    """
    archived(directory, 1100)
    with EventLog.open(directory, writable=True) as log:
        with pytest.raises(Conflict):
            log.append(job_events(3))
        assert 1204 == log.append(job_events(5000))


def test_the_last_commit_stays_and_the_log_goes_on(directory: Path) -> None:
    """
    The chain goes on from it.
    """
    archived(directory, 10_000)
    with EventLog.open(directory, writable=True) as log:
        log.append(job_events(5000))
        assert 1204 == len(list(log.read()))
    assert archived(directory, 10_000) == 1
    assert verify_here(directory).is_good


def test_a_reader_that_is_in_the_middle_goes_on_through_an_archiving(directory: Path) -> None:
    """
    Frames move, positions don't.
    """
    environment = acquire(Settings(directory.resolve()))
    journal = Journal(environment)
    rows = journal.iter_rows()
    seen = [next(rows)[0] for _ in range(3)]
    archive(journal, 950, segment_events=100)
    seen.extend(row[0] for row in rows)
    environment.release()

    assert list(range(1, 1201)) == seen


@pytest.mark.parametrize("damage", ["missing", "flipped", "swapped"])
def test_a_damaged_segment_is_named(directory: Path, damage: str) -> None:
    """
    The anchor knows the file's digest, and every frame in it its own.
    """
    archived(directory, 950)
    first, second, _ = sorted((directory / "archive").iterdir())
    if damage == "missing":
        first.unlink()
    elif damage == "flipped":
        content = bytearray(first.read_bytes())
        content[-20] ^= 1
        first.write_bytes(content)
    else:
        first.write_bytes(second.read_bytes())
    report = verify_here(directory)

    assert not report.is_good
    assert report.first_problem is not None
    assert 1 == report.first_problem.position
    with EventLog.open(directory, writable=False) as log, pytest.raises(Corrupt):
        list(log.read())


def test_pruning_removes_files_and_says_so(directory: Path) -> None:
    """
    Verify then begins at the anchor; what is gone is refused by name, never silently left out.
    """
    archived(directory, 950)
    environment = acquire(Settings(directory.resolve()))
    removed = prune(Journal(environment), 700)
    environment.release()

    assert [300, 600] == [segment.last_position for segment in removed]
    report = verify_here(directory)
    assert (True, 601, 600) == (report.is_good, report.first_position, report.events)
    with EventLog.open(directory, writable=False) as log:
        assert list(range(651, 1201)) == [envelope.position for envelope in log.read(650)]
        with pytest.raises(NotFound):
            list(log.read())
    with EventLog.open(directory, writable=True) as log, pytest.raises(Conflict):
        log.append(job_events(3))


def test_what_a_pruning_that_was_killed_left_goes_with_the_next(directory: Path) -> None:
    """
    The anchor says that the file is gone; nobody else would ever look for it.
    """
    archived(directory, 950)
    files = sorted((directory / "archive").iterdir())
    environment = acquire(Settings(directory.resolve()))
    journal = Journal(environment)
    journal.anchors.mark_pruned(journal.anchors.segments()[0])
    assert files == sorted((directory / "archive").iterdir())

    removed = prune(journal, 700)
    environment.release()

    assert [600] == [segment.last_position for segment in removed]
    assert files[2:] == sorted((directory / "archive").iterdir())


def test_a_backup_while_it_is_written_is_one_moment_of_the_log(tmp_path: Path, directory) -> None:
    """
    A plain copy of a live data file is no backup.
    """
    archived(directory, 500)
    stop = threading.Event()

    def write() -> None:
        number = 1000
        while not stop.is_set():
            log.append(jobs_events(number, 5))
            number += 5

    with EventLog.open(directory, writable=True) as log:
        thread = threading.Thread(target=write)
        thread.start()
        try:
            reports = [backup(directory, tmp_path / f"backup{number}") for number in range(2)]
        finally:
            stop.set()
            thread.join()
        whole = list(log.read())
        for number, report in enumerate(reports):
            assert 0 == report.events % 20
            assert log.digest_at(report.events).hex() == report.head_digest
            with EventLog.open(tmp_path / f"backup{number}", writable=False) as copy:
                assert whole[: report.events] == list(copy.read())
    with pytest.raises(Refused):
        backup(directory, tmp_path / "backup0")


def test_a_damaged_log_gives_no_backup(tmp_path: Path, directory: Path) -> None:
    """
    Nobody looks at a backup before it is needed.
    """
    whole = (directory / "data.mdb").read_bytes()
    data, at = bytearray(whole), whole.find(b"XF\x01")
    while verify_here(directory).is_good:  # Pages that are free have old frames too.
        data = bytearray(whole)
        data[at + 100] ^= 4
        (directory / "data.mdb").write_bytes(data)
        at = whole.index(b"XF\x01", at + 1)

    for make in (lambda: backup(directory, tmp_path / "copy"), lambda: compact(directory)):
        with pytest.raises(Corrupt):
            make()
    assert {"log"} == {path.name for path in tmp_path.iterdir()}
    assert data == (directory / "data.mdb").read_bytes()


KILLED_WHILE_ARCHIVING = (
    "import os, signal, sys\n"
    "from store import log, segments\n"
    "from store.log import EventLog\n"
    "def die(*_, **__):\n"
    "    os.kill(os.getpid(), signal.SIGKILL)\n"
    "if sys.argv[2] == 'before the record':\n"
    "    EventLog._record_archived = die\n"
    "else:\n"
    "    log.Journal.move_out = die\n"
    "with EventLog.open(sys.argv[1], writable=True) as log:\n"
    "    log.archive(950, segment_events=250, actor='ann')\n"
)


@pytest.mark.parametrize("when", ["before the move", "before the record"])
def test_an_archiving_that_was_killed_is_finished_by_the_next(directory: Path, when: str) -> None:
    """
    Frames are moved out and recorded in two commits; a file without anchor is written again.
    """
    with EventLog.open(directory, writable=False) as log:
        before = list(log.read())
    done = subprocess.run(
        [sys.executable, "-c", KILLED_WHILE_ARCHIVING, str(directory), when],
        cwd=Path(__file__).resolve().parent.parent.parent, check=False,
    )  # fmt: skip
    assert -9 == done.returncode
    assert verify_here(directory).is_good

    with EventLog.open(directory, writable=True) as log:
        assert before == list(log.read())
        log.archive(950, segment_events=250, actor="ben")
        told = [envelope.event for envelope in log.read_stream("log")]
        log.archive(950, segment_events=250, actor="ben")
        log.prune(300, actor="cid")
        log.archive(950, segment_events=250, actor="ben")
        again = [envelope.event.TYPE_CODE for envelope in log.read(after=1200)]

    assert [1, 301, 601] == [event.first_position for event in told]
    assert [300, 600, 900] == [event.last_position for event in told]
    assert [*["log.archived"] * 3, "log.pruned"] == again
    assert verify_here(directory).is_good


def test_compacting_gives_the_free_pages_back(directory: Path) -> None:
    """
    The engine's files never shrink by themselves.
    """
    with EventLog.open(directory, writable=True) as log:
        log.append(jobs_events(10_000, 1500))
        log.append(job_events(20_000))
        before = list(log.read())
    archived(directory, 7_200, segment_events=100_000)
    report = compact(directory)

    assert report.bytes_after < report.bytes_before * 0.6
    with EventLog.open(directory, writable=True) as log:
        assert before == list(log.read())
        log.append(job_events(30_000))
    assert verify_here(directory).is_good


def test_compacting_is_refused_while_somebody_writes(directory: Path) -> None:
    """
    The writer would go on with the old file.
    """
    with EventLog.open(directory, writable=True), pytest.raises(Conflict):
        compact(directory)


def test_compacting_is_refused_while_another_process_has_it_open(directory: Path) -> None:
    """
    It would read the old file for ever, and never see a new event.
    """
    code = (
        "import sys\nfrom store.log import EventLog\n"
        "log = EventLog.open(sys.argv[1], writable=False)\n"
        "print(log.head(), flush=True)\nsys.stdin.read()\n"
    )
    reader = subprocess.Popen(
        [sys.executable, "-c", code, str(directory)], text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, cwd=Path(__file__).resolve().parent.parent.parent,
    )  # fmt: skip
    assert reader.stdout is not None
    assert "1200\n" == reader.stdout.readline()
    try:
        with pytest.raises(Conflict):
            compact(directory)
    finally:
        reader.communicate(timeout=30)

    assert 1200 == compact(directory).events


def test_an_archived_log_is_exported_and_repaired_whole(tmp_path: Path, directory: Path) -> None:
    """
    The archive is part of the log for every tool.
    """
    archived(directory, 950)
    export_log(directory, tmp_path / "lines")
    import_log(tmp_path / "lines", tmp_path / "imported")
    repair(directory, tmp_path / "repaired")
    heads = []
    for name in ("log", "imported", "repaired"):
        with EventLog.open(tmp_path / name, writable=False) as log:
            heads.append((log.head(), log.head_digest()))

    assert heads[0] == heads[1] == heads[2]


def test_whatever_the_store_makes_is_its_owners_alone(tmp_path: Path) -> None:
    """
    A log holds scripts and environments of all users; the mask of whoever starts a scheduler
    mustn't decide who reads them.
    """
    before = os.umask(0)
    try:
        with EventLog.create(tmp_path / "cluster" / "log", log_id="the-log") as log:
            fill(log, commits=12, jobs=25)
            log.archive(500, segment_events=250)
            snapshots = SnapshotStore(tmp_path / "cluster" / "snapshots", log_id=log.log_id)
            snapshots.put(
                position=log.head(), schema="s", state=b"{}", chain_digest=log.head_digest(),
                time_us=0,
            )  # fmt: skip
        backup(tmp_path / "cluster" / "log", tmp_path / "backup")
        compact(tmp_path / "cluster" / "log")
    finally:
        os.umask(before)

    made = [*(tmp_path / "cluster" / "log").rglob("*"), *(tmp_path / "backup").rglob("*")]
    made += [tmp_path / "backup", *(tmp_path / "cluster").glob("*/*"), tmp_path / "cluster" / "log"]
    assert len(made) > 12
    assert [] == [path for path in made if path.stat().st_mode & 0o077]

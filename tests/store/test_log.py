"""
The log: what went in comes out, once, in order; a second writer stays out; nobody is misled.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import store.engines
from domain.errors import Conflict, Corrupt, InvariantBroken, NotFound, Refused
from store.embedded.marker import MARKER_FILE
from store.lock import LOCK_FILE, read_holder
from store.log import EventLog
from tools.torture.workload import fill, job_events, jobs_events

REPO = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def log(tmp_path: Path):
    with EventLog.create(tmp_path / "log", log_id="the-log") as made:
        yield made


def run_child(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_what_is_appended_is_read_back_in_order(log: EventLog) -> None:
    """
    The log is a list of envelopes with positions from 1.
    """
    appended = fill(log, commits=3)

    assert len(appended) == log.head()
    assert appended == [envelope.stamped() for envelope in log.read()]
    assert list(range(1, log.head() + 1)) == [envelope.position for envelope in log.read()]


@pytest.mark.parametrize(
    ("after", "upto"), [(0, 1), (5, 5), (39, 41), (40, 80), (119, None), (120, None), (7, 999)]
)
def test_a_part_is_read_exactly(log: EventLog, after: int, upto: int | None) -> None:
    """
    Parts begin and end inside frames, at their borders and beyond the end.
    """
    appended = fill(log, commits=3)

    assert appended[after:upto] == [envelope.stamped() for envelope in log.read(after, upto)]


def test_a_stream_is_read_from_a_version_on(log: EventLog) -> None:
    """
    The history of one job must not need the whole log.
    """
    fill(log, commits=3)

    assert job_events(17) == [envelope.stamped() for envelope in log.read_stream("job:0000000017")]
    assert job_events(17)[2:] == [
        envelope.stamped() for envelope in log.read_stream("job:0000000017", 2)
    ]
    assert [] == list(log.read_stream("job:0000000099"))


def test_a_commit_of_many_frames_is_one_commit(log: EventLog) -> None:
    """
    A commit may be larger than a frame.
    """
    appended = jobs_events(1, 2500)
    assert 10_000 == log.append(appended)

    assert appended == [envelope.stamped() for envelope in log.read()]
    assert 3 == log.info().frames


def test_a_version_that_is_there_is_refused_and_nothing_of_the_commit_remains(
    log: EventLog,
) -> None:
    """
    Optimistic concurrency: who comes second must decide again.
    """
    appended = fill(log, commits=1)
    with pytest.raises(Conflict) as caught:
        log.append([*job_events(50), *job_events(3)])

    assert "job:0000000003 version 1" in str(caught.value.found)
    assert len(appended) == log.head()
    log.append(job_events(50))
    assert job_events(50) == [envelope.stamped() for envelope in log.read(after=len(appended))]


def test_half_a_step_is_no_commit(log: EventLog) -> None:
    """
    Recovery must never see a step without its end.
    """
    with pytest.raises(InvariantBroken):
        log.append([job_events(1)[0]._replace(ends_step=False)])


def test_a_log_survives_closing(tmp_path: Path) -> None:
    """
    Identity, head, times and digest are the file's, not the process's.
    """
    with EventLog.create(tmp_path / "log", log_id="the-log") as log:
        appended = fill(log, commits=2)
        before = log.info()
    with EventLog.open(tmp_path / "log", writable=False) as log:
        after = log.info()

        assert appended == [envelope.stamped() for envelope in log.read()]
    assert ("the-log", len(appended), 1) == (after.log_id, after.events, after.epoch)
    assert before.head_digest == after.head_digest
    assert (appended[0].time_us, appended[-1].time_us) == (after.first_time_us, after.last_time_us)


def test_the_bytes_depend_on_nothing_but_the_input(tmp_path: Path) -> None:
    """
    Two simulations of one trace with one log id must give the same chain.
    """
    digests = []
    for name in ("a", "b"):
        with EventLog.create(tmp_path / name, log_id="the-log") as log:
            fill(log, commits=3)
            digests.append(log.head_digest())

    assert digests[0] == digests[1]


def test_every_position_has_its_own_digest(log: EventLog) -> None:
    """
    A snapshot names its history by position and digest; it may lie within a commit.
    """
    fill(log, commits=2, jobs=3)
    digests = [log.digest_at(position) for position in range(log.head() + 1)]

    assert len(digests) == len(set(digests))
    assert digests[-1] == log.head_digest()
    with pytest.raises(Corrupt):
        log.digest_at(log.head() + 1)


def test_a_second_writer_is_refused_naming_the_first(log: EventLog) -> None:
    """
    LMDB itself stops neither another process nor another part of this one.
    """
    assert log.path is not None
    with pytest.raises(Conflict):
        EventLog.open(log.path, writable=True)
    done = run_child(
        "import sys\nfrom store.log import EventLog\nfrom domain.errors import Conflict\n"
        "try: EventLog.open(sys.argv[1], writable=True)\nexcept Conflict as error: print(error)\n",
        str(log.path),
    )

    holder = read_holder(log.path)
    assert holder is not None
    assert f"process {holder.pid} on {holder.host}" in done.stdout


def test_any_number_of_other_processes_read_while_it_is_written(log: EventLog) -> None:
    """
    Followers and people look at the live log.
    """
    fill(log, commits=2)
    code = (
        "import sys\nfrom store.log import EventLog\n"
        "log = EventLog.open(sys.argv[1], writable=False)\n"
        "print(sum(1 for _ in log.read()))\n"
    )
    assert "80" == run_child(code, str(log.path)).stdout.strip()
    fill_more = jobs_events(100, 5)
    log.append(fill_more)
    assert "100" == run_child(code, str(log.path)).stdout.strip()


def test_each_writer_raises_the_epoch_and_one_that_was_passed_cannot_write(tmp_path: Path) -> None:
    """
    A lock alone isn't safe: a stopped writer may wake up after somebody took over.
    """
    log = EventLog.create(tmp_path / "log", log_id="the-log")
    fill(log, commits=1)
    (tmp_path / "log" / LOCK_FILE).unlink()  # As if the file lock had been broken by hand.
    done = run_child(
        "import sys\nfrom store.log import EventLog\n"
        "with EventLog.open(sys.argv[1], writable=True) as log: print(log.epoch)\n",
        str(log.path),
    )
    assert "2" == done.stdout.strip(), done.stderr
    with pytest.raises(Conflict) as caught:
        log.append(job_events(90))
    log.close()

    assert ("epoch 1", "epoch 2") == (caught.value.expected, caught.value.found)


def test_an_existing_log_is_not_begun_anew(log: EventLog) -> None:
    """
    ``create`` on a log would be a way to lose it.
    """
    assert log.path is not None
    with pytest.raises(Refused):
        EventLog.create(log.path)


def test_a_missing_log_is_not_found(tmp_path: Path) -> None:
    """
    A wrong directory must not silently become a log.
    """
    with pytest.raises(NotFound):
        EventLog.open(tmp_path, writable=False)
    assert [] == list(tmp_path.iterdir())


def test_a_cluster_directory_stands_for_its_log(tmp_path: Path) -> None:
    """
    People name the cluster.
    """
    EventLog.create(tmp_path / "log", log_id="the-log").close()

    with EventLog.open(tmp_path, writable=False) as log:
        assert "the-log" == log.log_id


@pytest.mark.parametrize("damage", ["empty", "missing", "foreign", "zeros", "swapped", "newer"])
def test_a_data_file_that_is_not_the_logs_is_refused_by_name(tmp_path: Path, damage: str) -> None:
    """
    LMDB takes an emptied file for a new log.
    """
    directory = tmp_path / "log"
    with EventLog.create(directory, log_id="the-log") as log:
        fill(log, commits=1)
    data = directory / "data.mdb"
    size = data.stat().st_size
    if damage == "empty":
        data.write_bytes(b"")
    elif damage == "missing":
        data.unlink()
    elif damage == "foreign":
        data.write_bytes(b"SQLite format 3\0" * 1000)
    elif damage == "zeros":
        data.write_bytes(bytes(size))
    elif damage == "swapped":
        EventLog.create(tmp_path / "other", log_id="other").close()
        data.write_bytes((tmp_path / "other" / "data.mdb").read_bytes())
    else:
        marker = json.loads((directory / MARKER_FILE).read_text())
        (directory / MARKER_FILE).write_text(json.dumps({**marker, "format": 99}))
    kind = {"missing": "empty", "zeros": "foreign", "swapped": "foreign"}.get(damage, damage)

    for writable in (False, True):
        with pytest.raises(Corrupt) as caught:
            EventLog.open(directory, writable=writable)
        assert kind == caught.value.kind


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_truncated_file_is_refused_and_never_kills_the_process(
    tmp_path: Path, share: float
) -> None:
    """
    The engine would be ended by SIGBUS on the first page that isn't there.
    """
    directory = tmp_path / "log"
    with EventLog.create(directory, log_id="the-log") as log:
        fill(log, commits=3, jobs=100)
    data = directory / "data.mdb"
    data.write_bytes(data.read_bytes()[: int(data.stat().st_size * share)])

    with pytest.raises(Corrupt) as caught:
        EventLog.open(directory, writable=False)
    assert "truncated" == caught.value.kind


def test_following_yields_what_comes_and_ends_when_stopped(log: EventLog) -> None:
    """
    The follower reads in its own thread and misses nothing.
    """
    appended = jobs_events(1, 5)
    log.append(appended)
    follower = log.follow(after=4)
    seen = []

    def consume() -> None:
        for envelope in follower:
            seen.append(envelope.stamped())
            if len(seen) == 36:
                follower.stop()

    thread = threading.Thread(target=consume)
    thread.start()
    for number in range(10, 15):
        log.append(job_events(number))
    thread.join(timeout=10)

    assert not thread.is_alive()
    assert [*appended[4:], *jobs_events(10, 5)] == seen


def test_an_old_fork_cannot_use_the_parents_log(tmp_path: Path) -> None:
    """
    The engine notices neither a fork nor what the child writes through the parent's environment.
    """
    code = (
        "import multiprocessing, sys\nfrom store.log import EventLog\n"
        "from domain.errors import XceError\n"
        "def child(log, path):\n"
        "    try: log.head()\n"
        "    except XceError as error: print('dead', flush=True)\n"
        "    try: EventLog.open(path, writable=True)\n"
        "    except XceError as error: print('locked', flush=True)\n"
        "    with EventLog.open(path, writable=False) as again: print(again.log_id, flush=True)\n"
        "log = EventLog.create(sys.argv[1], log_id='the-log')\n"
        "context = multiprocessing.get_context('fork')\n"
        "process = context.Process(target=child, args=(log, sys.argv[1]))\n"
        "process.start(); process.join(); print(log.head())\n"
    )
    done = run_child(code, str(tmp_path / "log"))

    assert ["dead", "locked", "the-log", "0"] == done.stdout.split(), done.stderr


def test_a_reader_that_died_holds_nothing_back(log: EventLog, monkeypatch) -> None:
    """
    Its slot would keep every page that it could still see from being used again.
    """
    monkeypatch.setattr(store.engines, "EVENTS_PER_UPKEEP", 6)
    code = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from store.embedded.environment import acquire\n"
        "from store.embedded.settings import Settings\n"
        "environment = acquire(Settings(Path(sys.argv[1]), readonly=True), create=False)\n"
        "with environment.read() as transaction: os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    log.append(job_events(1))
    assert -9 == run_child(code, str(log.path)).returncode
    log.append(job_events(2)[:1])
    assert (1, 1) == (log.info().readers, log.info().oldest_reader_lag)
    for number in range(3, 8):
        log.append(job_events(number))

    assert (0, 0) == (log.info().readers, log.info().oldest_reader_lag)

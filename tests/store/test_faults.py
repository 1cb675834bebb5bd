"""
Faults by real means: what fails says what is missing, nothing acknowledged is lost, and the log
serves again when the cause is gone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from domain.errors import StoreUnavailable, XceError
from store.info import may_begin
from store.log import EventLog
from store.snapshots import SnapshotStore
from store.space import Room
from store.verify import verify_here
from tools.torture.workload import job_events, jobs_events

REPO = Path(__file__).resolve().parent.parent.parent


@contextmanager
def small_disk(mount_point: Path, size: str) -> Iterator[Path]:
    """
    Mount a file system in memory of a given size.
    """
    mount_point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", mount_point], check=True)
    try:
        yield mount_point
    finally:
        subprocess.run(["umount", "--lazy", mount_point], check=True)


def append_until_refused(log: EventLog, first: int) -> tuple[int, XceError]:
    """
    Append commits of 40 jobs until one is refused; return the next job and the error.
    """
    for number in range(first, first + 40_000, 40):
        try:
            log.append(jobs_events(number, 40))
        except XceError as error:
            return number, error
    raise AssertionError(first)


def run_limited(code: str, directory: Path, *arguments: str) -> str:
    """
    Run code in a process of its own, which may lower its own limits.
    """
    head = (
        "import os, resource, sys\nfrom domain.errors import XceError\n"
        "from store.log import EventLog\nfrom tools.torture.workload import *\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", head + code, str(directory), *arguments], cwd=REPO, text=True,
        capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    return done.stdout


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with EventLog.create(tmp_path / "log", log_id="the-log") as log:
        log.append(job_events(1))
    return tmp_path / "log"


@pytest.mark.needs_root
@pytest.mark.slow
def test_a_full_disk_refuses_and_serves_again_when_there_is_space(tmp_path: Path) -> None:
    """
    Promise 7; the commit that didn't fit leaves no trace.
    """
    with small_disk(tmp_path / "disk", "512k") as disk:
        log = EventLog.create(disk / "log", log_id="the-log")
        number, error = append_until_refused(log, 1)
        before = log.head()
        assert isinstance(error, StoreUnavailable)
        assert ("disk full", (number - 1) * 4) == (error.resource, before)
        assert before == sum(1 for _ in log.read())

        subprocess.run(["mount", "-o", "remount,size=4M", disk], check=True)
        assert before + 160 == log.append(jobs_events(number, 40))
        log.close()
        assert verify_here(disk / "log").is_good


@pytest.mark.needs_root
def test_room_gets_low_and_critical_before_it_is_gone(tmp_path: Path) -> None:
    """
    Submissions are refused first, so that the ends of running jobs are still accepted.
    """
    rooms = []
    with (
        small_disk(tmp_path / "disk", "1M") as disk,
        EventLog.create(disk / "log", log_id="the-log") as log,
    ):
        for number in range(1, 40_000, 40):
            space = log.space()
            assert space is not None
            rooms.append(space.room)
            try:
                log.append(jobs_events(number, 40))
            except StoreUnavailable:
                break

    assert [Room.PLENTY, Room.LOW, Room.CRITICAL] == sorted(set(rooms), reverse=True)
    assert rooms == sorted(rooms, reverse=True)
    assert rooms.count(Room.LOW) > 3


def test_a_small_map_counts_as_well_as_the_disk(tmp_path: Path) -> None:
    """
    Whichever ends first.
    """
    with EventLog.create(tmp_path / "log", log_id="the-log", map_size=256 << 10) as log:
        append_until_refused(log, 1)
        space = log.space()
    assert space is not None
    assert space.room < Room.PLENTY


@pytest.mark.needs_root
def test_a_snapshot_that_does_not_fit_leaves_the_others_good(tmp_path: Path) -> None:
    """
    Half a file must not be taken for one.
    """
    with small_disk(tmp_path / "disk", "256k") as disk:
        store = SnapshotStore(disk / "snapshots", log_id="the-log")

        def put(position: int, size: int) -> None:
            store.put(
                position=position, schema="s", state=os.urandom(size), chain_digest=b"", time_us=0
            )

        put(1, 1000)
        with pytest.raises(StoreUnavailable) as caught:
            put(2, 500_000)
        assert "disk full" == caught.value.resource
        found = store.newest_good(schema="s", head=9, digest_at=lambda _: b"")
        assert found is not None
        assert 1 == found.position
        assert [found.path] == list(store.directory.iterdir())


def test_a_full_map_refuses_and_serves_again_after_reopening_with_a_larger_one(
    tmp_path: Path,
) -> None:
    """
    The map's size is a setting, not a property of the log.
    """
    with EventLog.create(tmp_path / "log", log_id="the-log", map_size=256 << 10) as log:
        number, error = append_until_refused(log, 1)
        assert isinstance(error, StoreUnavailable)
        assert "map full" == error.resource
        assert (number - 1) * 4 == log.head()
    with EventLog.open(tmp_path / "log", writable=True) as log:
        assert (number - 1) * 4 + 160 == log.append(jobs_events(number, 40))
    assert verify_here(tmp_path / "log").is_good


def test_a_reader_follows_when_a_writer_has_a_larger_map(tmp_path: Path) -> None:
    """
    The engine says so at the next transaction, and the map is adopted then.
    """
    with EventLog.create(tmp_path / "log", log_id="the-log", map_size=128 << 10) as log:
        log.append(job_events(1))
    code = (
        "log = EventLog.open(sys.argv[1], writable=False, map_size=128 << 10)\n"
        "print(log.head(), flush=True)\nsys.stdin.readline()\n"
        "print(sum(1 for _ in log.read()), flush=True)\n"
    )
    head = "import sys\nfrom store.log import EventLog\n"
    reader = subprocess.Popen(
        [sys.executable, "-c", head + code, str(tmp_path / "log")], cwd=REPO, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert reader.stdin is not None
    assert reader.stdout is not None
    assert "4\n" == reader.stdout.readline()
    with EventLog.open(tmp_path / "log", writable=True) as log:
        log.append(jobs_events(10, 5000))
    answer, _ = reader.communicate("\n", timeout=30)

    assert "20004\n" == answer


def test_a_file_size_limit_is_named(directory: Path) -> None:
    """
    Ulimit -f, as batch systems like to set it.
    """
    told = run_limited(
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200 << 10, resource.RLIM_INFINITY))\n"
        "log = EventLog.open(sys.argv[1], writable=True)\n"
        "try:\n    for n in range(2, 9000, 50): log.append(jobs_events(n, 50))\n"
        "except XceError as error: print(type(error).__name__, error.resource, error.detail)\n"
        "head = log.head()\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)\n"
        "print(log.append(jobs_events(9999, 1)) - head)\n",
        directory,
    )

    assert told.startswith("StoreUnavailable ")
    assert "limit of a file's size" in told
    assert told.endswith("\n4\n")
    assert verify_here(directory).is_good


def test_too_many_open_files_is_named(directory: Path) -> None:
    """
    A daemon with many connections may run out of them.
    """
    told = run_limited(
        "count = len(os.listdir('/proc/self/fd'))\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (count, 4096))\n"
        "try: EventLog.open(sys.argv[1], writable=True)\n"
        "except XceError as error: print(type(error).__name__, error.resource)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 4096))\n"
        "print(EventLog.open(sys.argv[1], writable=True).head())\n",
        directory,
    )

    assert ["StoreUnavailable too many open files", "4"] == told.splitlines()


def test_too_little_address_space_names_the_setting(directory: Path) -> None:
    """
    A huge map and ``ulimit -v`` don't go together.
    """
    told = run_limited(
        "resource.setrlimit(resource.RLIMIT_AS, (4 << 30, resource.RLIM_INFINITY))\n"
        "try: EventLog.open(sys.argv[1], writable=True)\n"
        "except XceError as error: print(error)\n"
        "print(EventLog.open(sys.argv[1], writable=True, map_size=1 << 30).head())\n",
        directory,
    )

    assert "LMDB_MAP_SIZE" in told
    assert told.endswith("4\n")


@pytest.mark.needs_root
def test_no_permission_is_named(directory: Path) -> None:
    """
    The files are their owner's alone.
    """
    os.chmod(directory.parent, 0o755)  # noqa: PTH101
    told = run_limited(
        "os.setegid(65534); os.seteuid(65534)\n"
        "for writable in (True, False):\n"
        "    try: EventLog.open(sys.argv[1], writable=writable)\n"
        "    except XceError as error: print(type(error).__name__, error.resource)\n",
        directory,
    )

    assert ["StoreUnavailable permission"] * 2 == told.splitlines()


def test_a_directory_in_which_everybody_may_write_is_refused(directory: Path) -> None:
    """
    Anybody could put another history there.
    """
    directory.chmod(0o777)
    with pytest.raises(StoreUnavailable) as caught:
        EventLog.open(directory, writable=True)
    directory.chmod(0o700)

    assert "permission" == caught.value.resource
    EventLog.open(directory, writable=True).close()


@pytest.mark.needs_root
def test_a_log_on_a_read_only_file_system_is_read_and_not_written(tmp_path: Path) -> None:
    """
    A mounted backup has no place for a lock file.
    """
    with small_disk(tmp_path / "disk", "4M") as disk:
        with EventLog.create(disk / "log", log_id="the-log") as log:
            log.append(job_events(1))
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        with EventLog.open(disk / "log", writable=False) as log:
            assert 4 == sum(1 for _ in log.read())
        with pytest.raises(StoreUnavailable) as caught:
            EventLog.open(disk / "log", writable=True)
    assert "file system is read-only" == caught.value.resource


# Appends one job a line and says what came of it; exits non-zero when the outcome is unknown.
APPENDER = (
    "log = EventLog.open(sys.argv[1], writable=True)\n"
    "for n in range(2, 12):\n"
    "    try: print('position', log.append(job_events(n)), flush=True)\n"
    "    except XceError as error: print(type(error).__name__, flush=True)\n"
)


# Says instead how many milliseconds each took.
TIMER = (
    "import time\nlog = EventLog.open(sys.argv[1], writable=True)\n"
    "for n in range(2, 12):\n"
    "    began = time.monotonic_ns()\n"
    "    print(log.append(job_events(n)), (time.monotonic_ns() - began) // 10**6, flush=True)\n"
)


def under_strace(directory: Path, inject: str, code: str = APPENDER) -> list[str]:
    """
    Run the appender with an error put into a system call on the data file.
    """
    head = (
        "import sys\nfrom domain.errors import XceError\nfrom store.log import EventLog\n"
        "from tools.torture.workload import job_events\n"
    )
    call = inject.partition(":")[0]
    done = subprocess.run(
        ["strace", "-f", "-qq", "-o", "/dev/null", "-P", str(directory / "data.mdb"),
         "-e", f"trace={call}", "-e", f"inject={inject}",
         sys.executable, "-c", head + code, str(directory)],
        cwd=REPO, text=True, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    return done.stdout.splitlines()


@pytest.mark.needs_program("strace")
@pytest.mark.slow
@pytest.mark.parametrize("inject", ["fdatasync:error=EIO:when=4", "pwrite64:error=EIO:when=7"])
def test_an_io_error_at_commit_is_an_unknown_outcome_and_nothing_is_taken_after_it(
    directory: Path, inject: str
) -> None:
    """
    Promise 6: a sync is never tried again and called success; a new start tells what happened.
    """
    told = under_strace(directory, inject)
    failed = told.index("OutcomeUnknown")

    assert 10 == len(told)
    assert {"OutcomeUnknown"} == set(told[failed:])
    acknowledged = int(told[failed - 1].split()[1]) if failed else 4
    with EventLog.open(directory, writable=True) as log:
        # The failed commit is there as a whole or not at all; all that was acknowledged is.
        assert log.head() in (acknowledged, acknowledged + 4)
        head = log.head()
        assert head + 4 == log.append(job_events(500))
    assert verify_here(directory).is_good


@pytest.mark.needs_program("strace")
@pytest.mark.slow
def test_no_space_at_a_write_is_a_clean_refusal(directory: Path) -> None:
    """
    The commit is undone, the next one goes through.
    """
    told = under_strace(directory, "pwrite64:error=ENOSPC:when=6")

    assert 1 == told.count("StoreUnavailable")
    assert 9 == sum(line.startswith("position") for line in told)
    assert verify_here(directory).events == int(told[-1].split()[1])


@pytest.mark.needs_program("strace")
@pytest.mark.slow
def test_no_space_at_a_meta_page_asks_for_a_new_start(directory: Path) -> None:
    """
    The engine takes nothing after it; the file is sound, so nothing may call it damaged.
    """
    told = under_strace(directory, "pwrite64:error=ENOSPC:when=7")
    failed = told.index("StoreUnavailable")

    assert ["OutcomeUnknown"] * (9 - failed) == told[failed + 1 :]
    with EventLog.open(directory, writable=True) as log:
        assert (4 + 4 * failed) == log.head()
        assert log.head() + 4 == log.append(job_events(500))
    assert verify_here(directory).is_good


@pytest.mark.needs_program("strace")
@pytest.mark.slow
def test_a_slow_disk_only_takes_longer(directory: Path) -> None:
    """
    Every commit waits for its sync.
    """
    told = under_strace(directory, "fdatasync:delay_enter=20000", TIMER)

    assert [str(4 * number) for number in range(2, 12)] == [line.split()[0] for line in told]
    assert min(int(line.split()[1]) for line in told) >= 20


@pytest.mark.needs_root
def test_a_log_begun_on_a_full_disk_is_refused_and_can_be_begun_when_there_is_space(
    tmp_path: Path,
) -> None:
    """
    The engine would be killed by SIGBUS when it touches a lock file that has no blocks; in a
    process of its own, so that this would be seen.
    """
    code = (
        "try: log = EventLog.create(sys.argv[1], log_id='the-log')\n"
        "except XceError as error: print(error.text())\n"
        "else: print(log.append(job_events(1)))\n"
    )
    with small_disk(tmp_path / "disk", "256k") as disk:
        for free in (0, 17, 33):
            (disk / "fill").write_bytes(bytes((64 - free) * 4096))

            told = run_limited(code, disk / "log")

            assert told.startswith(f"disk full at {disk}/log/lock.mdb"), (free, told)
            assert may_begin(disk / "log")
            (disk / "fill").unlink()

        assert "4\n" == run_limited(code, disk / "log")
        assert verify_here(disk / "log").is_good


@pytest.mark.needs_root
def test_a_log_whose_lock_file_is_gone_is_not_opened_on_a_full_disk(tmp_path: Path) -> None:
    """
    As after a copy or a backup, which leave that file out: neither by the writer nor by a reader.
    """
    code = (
        "for writable in (True, False):\n"
        "    try: EventLog.open(sys.argv[1], writable=writable)\n"
        "    except XceError as error: print(error.resource)\n"
    )
    with small_disk(tmp_path / "disk", "256k") as disk:
        with EventLog.create(disk / "log", log_id="the-log") as log:
            log.append(job_events(1))
        (disk / "log" / "lock.mdb").unlink()
        room = os.statvfs(disk)
        (disk / "fill").write_bytes(bytes(room.f_bfree * room.f_bsize))

        assert run_limited(code, disk / "log") == "disk full\n" * 2

        (disk / "fill").unlink()
        assert run_limited(code, disk / "log") == ""

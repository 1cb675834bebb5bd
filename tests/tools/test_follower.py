"""
The follower keeps the audit tables up with a log that somebody else writes, whatever befalls
either.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from domain.envelope import Stamped
from domain.errors import Conflict, NotFound, Refused, StoreUnavailable
from domain.events.jobs import JobSubmitted
from domain.jobs import JobSpec
from projections.audit.compare import differences
from projections.audit.read_model import ReadModel
from projections.audit.reading import Reading
from store.log import EventLog
from tests.conftest import REPO
from tests.projections.audit.driving import driven, some_actions
from tools.follower.feed import catch_up, follow, make_anew, open_checked
from tools.follower.place import Place, place_of

DEADLINE_S = 30.0


def steps(seed: int, count: int) -> list[list[Stamped]]:
    """
    Return the steps of a history of the real core.
    """
    found: list[list[Stamped]] = [[]]
    for one in driven(some_actions(seed, count)).stamped:
        found[-1].append(one)
        if one.ends_step:
            found.append([])
    return [step for step in found if step]


@pytest.fixture
def log(tmp_path: Path):
    """
    Return a log in a cluster's directory, with some history, open for writing.
    """
    with EventLog.create(tmp_path / "cluster" / "log", log_id="one", durability="none") as opened:
        for step in steps(1, 60):
            opened.append(step)
        yield opened


def directory_of(log: EventLog) -> Path:
    """
    Return the cluster directory around a log.
    """
    assert log.path is not None
    return log.path.parent


def wait_until(is_so: Callable[[], bool]) -> None:
    """
    Wait until something is so, and fail when it isn't in time.
    """
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.01)


def position_of(place: Place) -> int:
    """
    Return how far the tables of a place are, 0 when there are none.
    """
    try:
        with Reading(place.link) as reading:
            return reading.position()
    except NotFound:
        return 0


def follower(directory: Path) -> subprocess.Popen[str]:
    """
    Start a follower in a process of its own.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "tools.follower", str(directory)],
        cwd=REPO,
        text=True,
        stderr=subprocess.PIPE,
    )


def end(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> tuple[int, str]:
    """
    Send a signal to a process and return exit status and what it complained of.
    """
    if process.poll() is None:
        os.kill(process.pid, number)
    _, complaints = process.communicate(timeout=DEADLINE_S)
    return process.returncode, complaints


def assert_equal_to_fresh(log: EventLog, place: Place, folder: Path) -> None:
    """
    Assert that the tables equal those of a fresh rebuild, row for row.
    """
    fresh = Place(folder / "fresh.db")
    make_anew(log, fresh)
    with Reading(place.link) as kept, Reading(fresh.link) as anew:
        assert [] == list(differences(kept, anew))


# ------------------------------------------------------------------------------------------- place


def test_the_tables_are_in_the_cluster_or_beside_a_log_of_its_own(
    log: EventLog, tmp_path: Path
) -> None:
    """
    The cluster's directory and its log's name one place.
    """
    cluster = directory_of(log)
    with EventLog.create(tmp_path / "run1", durability="none"):
        places = [place_of(path).link for path in (cluster, cluster / "log", tmp_path / "run1")]

    assert [cluster / "audit.db", cluster / "audit.db", tmp_path / "run1.audit.db"] == places
    with pytest.raises(NotFound):
        place_of(tmp_path / "nothing")


def test_a_new_file_takes_the_old_ones_place_and_readers_of_the_old_one_read_on(
    log: EventLog,
) -> None:
    """
    What SQLite keeps beside a database must never be taken for another one's.
    """
    place = place_of(directory_of(log))
    catch_up(log, place)
    old = Reading(place.link)
    before = old.position()
    writer = ReadModel.open(place.link.resolve(), log_id="one")
    writer.database.execute("DELETE FROM refusals")  # stays in the old file's -wal

    make_anew(log, place)

    with Reading(place.link) as new:
        assert before == new.position() == old.position()
        assert new.value("SELECT count(*) FROM refusals") > 0
        assert [] == new.problems()
    assert old.value("SELECT count(*) FROM jobs") > 0
    assert ["audit.db.2"] == [path.name for _, path in place.files()]
    old.close()
    writer.close()


def test_a_file_that_is_no_link_of_ours_is_never_replaced(log: EventLog) -> None:
    """
    Somebody put a database of their own there.
    """
    place = place_of(directory_of(log))
    place.link.write_text("mine")

    with pytest.raises(Refused):
        make_anew(log, place)
    assert "mine" == place.link.read_text()


def test_only_one_process_fills_a_read_model(log: EventLog) -> None:
    """
    The second is told at once.
    """
    place = place_of(directory_of(log))
    with place.filling(), pytest.raises(Conflict, match="another process fills"):
        catch_up(log, place)


# ------------------------------------------------------------------------------------------- feed


def test_catching_up_takes_only_what_is_new(log: EventLog, tmp_path: Path) -> None:
    """
    And a second time there is nothing.
    """
    place = place_of(directory_of(log))
    before = log.head()
    taken = [catch_up(log, place)]
    log.append([driven([]).stamped[0]._replace(stream="scheduler", version=log.head() + 1)])
    taken += [catch_up(log, place), catch_up(log, place)]

    assert [before, 1, 0] == taken
    assert_equal_to_fresh(log, place, tmp_path)


@pytest.mark.parametrize("harm", ["deleted", "rubbish", "torn", "old version"])
def test_what_cannot_be_carried_on_is_made_anew(log: EventLog, tmp_path: Path, harm: str) -> None:
    """
    The tables are disposable: the log has it all.
    """
    place = place_of(directory_of(log))
    catch_up(log, place)
    file = place.link.resolve()
    if harm == "deleted":
        file.unlink()
    elif harm == "rubbish":
        file.write_bytes(b"rubbish" * 10_000)
    elif harm == "torn":
        file.write_bytes(file.read_bytes()[: 4096 * 3 + 100])
    else:
        with sqlite3.connect(file) as database:
            database.execute("UPDATE about SET value = 'x' WHERE key = 'schema_version'")
        database.close()

    catch_up(log, place)

    assert_equal_to_fresh(log, place, tmp_path)


def test_tables_of_another_log_or_ahead_of_this_one_are_left_alone(
    log: EventLog, tmp_path: Path
) -> None:
    """
    Made anew, they would lose the only trace of what a restored log has lost.
    """
    place = place_of(directory_of(log))
    catch_up(log, place)
    before = place.link.resolve().read_bytes()
    with (
        EventLog.create(tmp_path / "other", log_id="two", durability="none") as other,
        pytest.raises(Conflict, match="another log"),
    ):
        catch_up(other, place)
    with (
        EventLog.create(tmp_path / "short", log_id="one", durability="none") as short,
        pytest.raises(Conflict, match="ahead of the log"),
    ):
        catch_up(short, place)
    with EventLog.create(tmp_path / "changed", log_id="one", durability="none") as changed:
        for step in steps(3, 90):
            changed.append(step)
        with pytest.raises(Conflict, match="history"):
            open_checked(changed, place)

    assert before == place.link.resolve().read_bytes()


@pytest.mark.slow
def test_killed_again_and_again_while_the_log_grows_the_tables_are_whole(
    log: EventLog, tmp_path: Path
) -> None:
    """
    A kill -9 of the follower at random moments; the writer never waits for it.
    """
    place, chance = place_of(directory_of(log)), Random(5)
    more = iter(steps(1, 400)[len(steps(1, 60)) - 1 :])
    versions: dict[str, int] = {}
    for one in log.read():
        versions[one.stream] = one.version
    for _ in range(5):
        process = follower(directory_of(log))
        until = time.monotonic() + 0.3 + chance.random()
        while time.monotonic() < until:
            step = next(more, None)
            if step is None:
                break
            renewed = []
            for one in step:
                versions[one.stream] = versions.get(one.stream, 0) + 1
                renewed.append(one._replace(version=versions[one.stream], time_us=10**10))
            log.append(renewed)
        end(process, signal.SIGKILL)
    process = follower(directory_of(log))
    wait_until(lambda: position_of(place) == log.head())
    status, complaints = end(process)

    assert (0, "") == (status, complaints)
    assert_equal_to_fresh(log, place, tmp_path)


@pytest.mark.slow
def test_a_follower_whose_tables_are_swapped_goes_on_in_the_new_ones(
    log: EventLog, tmp_path: Path
) -> None:
    """
    Somebody rebuilds by hand while nobody fills, then the follower starts again: no old rows come
    back.
    """
    place = place_of(directory_of(log))
    process = follower(directory_of(log))
    wait_until(lambda: position_of(place) == log.head())
    status, _ = end(process)
    with place.filling():
        make_anew(log, place)
    log.append([driven([]).stamped[0]._replace(version=10_000)])
    process = follower(directory_of(log))
    wait_until(lambda: position_of(place) == log.head())
    end(process)

    assert 0 == status
    assert_equal_to_fresh(log, place, tmp_path)


@pytest.mark.slow
def test_a_follower_of_the_wrong_log_ends_with_a_reason(log: EventLog) -> None:
    """
    Exit status 3 and one line that names both logs.
    """
    cluster = directory_of(log)
    catch_up(log, place_of(cluster))
    log.close()
    shutil.rmtree(cluster / "log")
    with EventLog.create(cluster / "log", log_id="other", durability="none"):
        status, complaints = _ended(follower(cluster))

    assert 3 == status
    assert "another log" in complaints


def _ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, complaints = process.communicate(timeout=DEADLINE_S)
    return process.returncode, complaints


def followed(log: EventLog, place: Place, stop: threading.Event, troubles: list[Exception]) -> Any:
    """
    Return a thread that follows a log with a short patience.
    """
    thread = threading.Thread(
        target=follow, args=(log, place, stop), kwargs={"trouble": troubles.append}
    )
    thread.start()
    return thread


@pytest.mark.slow
@pytest.mark.needs_root
def test_a_full_disk_is_waited_out_and_the_log_goes_on(log: EventLog, tmp_path: Path) -> None:
    """
    The tables' own small file system is full; when there is room again, nothing is missing (T29).
    """
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], check=True)
    stop, troubles, place = threading.Event(), [], Place(folder / "audit.db")
    try:
        catch_up(log, place)
        (folder / "filler").write_bytes(b"x" * (3 * 2**20 - used_bytes(folder) - 65_536))
        thread = followed(log, place, stop, troubles)
        for number in range(1, 60):
            log.append([a_wordy_job(900_000 + number)])
        wait_until(lambda: bool(troubles))
        appended_while_full = log.head()
        (folder / "filler").unlink()
        wait_until(lambda: position_of(place) == log.head())
        stop.set()
        thread.join()

        assert isinstance(troubles[0], StoreUnavailable)
        assert appended_while_full == log.head()
        assert_equal_to_fresh(log, place, tmp_path)
    finally:
        stop.set()
        subprocess.run(["umount", "-l", str(folder)], check=True)


def used_bytes(folder: Path) -> int:
    """
    Return how many bytes of a file system are taken.
    """
    found = os.statvfs(folder)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def a_wordy_job(number: int) -> Stamped:
    """
    Return the submission of a job with a long name.
    """
    spec = JobSpec(user="ann", queue="normal", name="x" * 4_000)
    return Stamped(
        f"job:{number:010d}", 1, 10**12, "ann", "", JobSubmitted(spec=spec), ends_step=True
    )


@pytest.mark.slow
def test_a_locked_file_is_waited_out(log: EventLog, tmp_path: Path) -> None:
    """
    Somebody's SQLite tool holds the write lock for a while; the log isn't held up by it.
    """
    place, stop, troubles = place_of(directory_of(log)), threading.Event(), []
    catch_up(log, place)
    other = sqlite3.connect(place.link.resolve(), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    thread = followed(log, place, stop, troubles)
    log.append([a_wordy_job(900_000)])
    wait_until(lambda: position_of(place) < log.head())
    other.execute("ROLLBACK")
    other.close()
    wait_until(lambda: position_of(place) == log.head())
    stop.set()
    thread.join()

    assert_equal_to_fresh(log, place, tmp_path)

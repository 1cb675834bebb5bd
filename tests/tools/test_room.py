"""
A scheduler whose disk or map is nearly full: new work is refused, running work still ends.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from domain.commands import CloseWorker, KillJob, RemoveUser, SubmitJob
from domain.envelope import Envelope, Stamped
from domain.errors import Denied, InvariantBroken, StoreUnavailable
from domain.events.jobs import JobFinished
from domain.jobs import JobSpec, Program
from replay.engine import Engine
from store.log import EventLog
from store.space import Room, Space
from tests.tools import live_cluster
from tests.tools.live_cluster import until
from tools.daemon import process
from tools.daemon.access import Caller
from tools.daemon.attempted import Attempted
from tools.daemon.config import ClusterFiles
from tools.daemon.journal import Journal
from tools.daemon.reports import WorkerRequest
from tools.daemon.requests import Command, Read, Refusal, Reply, Request, Submission
from tools.daemon.room import RoomKeeper

USER = Caller(0, "root")
PLENTY = Space(90, 100, 90, 100)
DISK_LOW, DISK_CRITICAL = PLENTY._replace(disk_free=10), PLENTY._replace(disk_free=1)
MAP_LOW = PLENTY._replace(map_free=10)

SUBMISSION = Submission(
    SubmitJob(spec=JobSpec(user="root", queue="normal", program=Program(argv=("true",))), key="k"),
    USER,
)


class Report(WorkerRequest):
    """
    Be what an agent tells.
    """

    def answer(self, engine: Engine) -> Reply:
        return Reply(200, b"")


ENDING = (
    Report("h1"),
    Command(KillJob(job_id="1"), USER),
    Command(Attempted(what="KillJob", subject="1"), USER),
    Command(CloseWorker(worker="h1"), USER),
    Refusal(Attempted(what="x"), USER, Denied("caller", "must be an operator")),
    Read(lambda _: {}),
)
CHANGE = Command(RemoveUser(user="ann"), USER)


def test_the_schedulers_own_log_takes_nothing_that_would_not_come_back(tmp_path: Path) -> None:
    """
    One accepted event that can't be decoded would brick every later recovery.
    """
    bad = Stamped("job:0000000001", 1, 1, "", "", JobFinished.model_construct(attempt=-1), True)
    files = ClusterFiles(tmp_path)
    for _ in ("made anew", "opened again"):
        log = process._open_log(files)
        with log, pytest.raises(InvariantBroken):
            log.append([bad])
        assert [] == read_all(files)


def read_all(files: ClusterFiles) -> list[Envelope]:
    with EventLog.open(files.log, writable=False) as log:
        return list(log.read())


class Keeper:
    """
    Be a keeper of room whose measure a test sets.
    """

    def __init__(self, folder: Path) -> None:
        self.journal = Journal(folder / "journal")
        self.log = EventLog.create(folder / "log")
        self.engine = Engine.recover(self.log)
        self.space: Space | None = PLENTY
        self.keeper = RoomKeeper(lambda: self.space, "/there", self.journal)

    def takes(self, request: Request, space: Space | None) -> bool:
        self.space = space
        self.keeper.look()
        try:
            self.keeper.check(request, self.engine)
        except StoreUnavailable:
            return False
        return True


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    found = Keeper(tmp_path)
    yield found
    found.log.close()
    found.journal.close()


@pytest.mark.parametrize(
    ("space", "new", "change"),
    [
        (PLENTY, True, True),
        (None, True, True),
        (DISK_LOW, False, True),
        (MAP_LOW, False, True),
        (DISK_CRITICAL, False, False),
    ],
)
def test_what_can_wait_is_refused_first(
    keeper: Keeper, space: Space | None, new: bool, change: bool
) -> None:
    """
    Low: no new work. Critical: only what ends work, and what changes nothing.
    """
    assert (new, change) == (keeper.takes(SUBMISSION, space), keeper.takes(CHANGE, space))
    assert all(keeper.takes(request, space) for request in ENDING)


def test_service_comes_back_with_the_room_and_both_are_noted(
    keeper: Keeper, tmp_path: Path
) -> None:
    """
    Nobody has to do anything but make room; the journal tells what happened when.
    """
    taken = [keeper.takes(SUBMISSION, one) for one in (PLENTY, DISK_LOW, DISK_LOW, PLENTY)]

    assert [True, False, False, True] == taken
    lines = (tmp_path / "journal").read_text().splitlines()
    assert ['"room": "LOW"' in line for line in lines] == [True, False]


@pytest.mark.parametrize(("space", "short"), [(DISK_LOW, "disk"), (MAP_LOW, "map")])
def test_the_answer_names_what_is_short_and_where(keeper: Keeper, space: Space, short: str) -> None:
    """
    Whoever reads it must know what to make room in.
    """
    keeper.takes(SUBMISSION, space)

    with pytest.raises(StoreUnavailable) as found:
        keeper.keeper.check(SUBMISSION, keeper.engine)

    assert (f"{short} nearly full", "/there") == (found.value.resource, found.value.path)
    assert space.text() == found.value.detail


def test_a_log_with_a_small_map_counts_as_low_before_a_commit_fails(tmp_path: Path) -> None:
    """
    The same holds for the map that a log was opened with; a larger one brings service back.
    """
    log_path = tmp_path / "log"
    with EventLog.create(log_path, map_size=256 << 10) as log:
        engine, journal = Engine.recover(log), Journal(tmp_path / "journal")
        keeper = RoomKeeper(log.space, str(log_path), journal)
        number = 0
        keeper.look()
        while keeper.room is Room.PLENTY:
            number += 1
            denied = Denied("caller", "must be an operator " * 40)
            for one in range(20):
                command = Attempted(what=f"POST /{number}/{one}" * 20)
                engine.refuse(command, denied, actor=f"u{number}", now_us=number)
            engine.commit()
            keeper.look()
        with pytest.raises(StoreUnavailable, match="map nearly full"):
            keeper.check(SUBMISSION, engine)

    with EventLog.open(log_path, writable=True) as log:
        keeper = RoomKeeper(log.space, str(log_path), journal)
        keeper.look()
        keeper.check(SUBMISSION, engine)
    journal.close()


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


@pytest.mark.needs_root
@pytest.mark.slow
def test_running_jobs_end_and_are_killed_on_a_disk_that_is_nearly_full(tmp_path: Path) -> None:
    """
    A real scheduler on a small disk: submissions are refused by name, completions and kills are
    taken, and it serves again as soon as something else is deleted.
    """
    with (
        small_disk(tmp_path / "disk", "64M") as disk,
        live_cluster.running(disk / "cluster", workers=1) as cluster,
    ):
        go_on, filler = tmp_path / "go-on", disk / "filler"
        ending = cluster.shell(f"until test -e {go_on}; do sleep 0.02; done")
        endless = cluster.submit("sleep", "1000")
        cluster.wait_state(ending, "RUN")
        cluster.wait_state(endless, "RUN")
        filler.write_bytes(bytes(56 << 20))

        body = {"program": {"argv": ["true"]}}
        status, refused = cluster.ask("POST", "/v1/jobs", body)
        go_on.touch()
        cluster.post(f"/v1/jobs/{endless}/kill")
        ended = [cluster.wait_ended(one)["state"] for one in (ending, endless)]
        filler.unlink()
        again = cluster.submit("true")

        assert (503, "none") == (status, refused["outcome"])
        assert "disk nearly full" == refused["error"]["resource"]
        assert str(disk / "cluster" / "log") == refused["error"]["path"]
        assert ["DONE", "EXIT"] == ended
        assert "DONE" == cluster.wait_ended(again)["state"]
        assert str(int(endless) + 1) == again
        until(lambda: cluster.get("/v1/status"), "it serves")


@pytest.mark.needs_root
@pytest.mark.slow
def test_nothing_is_started_in_the_last_room_and_what_runs_can_end(tmp_path: Path) -> None:
    """
    A backlog could use it up, and then a completion would find none.
    """
    with (
        small_disk(tmp_path / "disk", "64M") as disk,
        live_cluster.running(disk / "cluster", workers=1) as cluster,
    ):
        assert "plenty" == cluster.get("/v1/status")["room"]["level"]
        go_on, filler = tmp_path / "go-on", disk / "filler"
        slots = cluster.get("/v1/status")["slots"]
        running = cluster.shell(
            f"until test -e {go_on}; do sleep 0.02; done", tasks_min=slots, tasks_max=slots
        )
        waiting = cluster.submit("true", tasks_min=slots, tasks_max=slots)
        cluster.wait_state(running, "RUN")
        free = shutil.disk_usage(disk).free
        filler.write_bytes(bytes(free - (1 << 20)))

        go_on.touch()
        ended = cluster.wait_ended(running)
        room = cluster.get("/v1/status")["room"]
        # More than one look later, and after changes that would hold a session otherwise.
        cluster.post("/v1/hosts/" + cluster.get("/v1/hosts")["hosts"][0]["host"] + "/close")
        still = cluster.job(waiting)["state"]
        cluster_used = cluster.get("/v1/status")["slots_used"]
        filler.unlink()
        cluster.post("/v1/hosts/" + cluster.get("/v1/hosts")["hosts"][0]["host"] + "/open")

        assert "DONE" == ended["state"]
        assert "critical" == room["level"]
        assert 0 < room["disk_free_bytes"] < room["disk_bytes"] // 20
        assert ("PEND", 0) == (still, cluster_used)
        assert "DONE" == cluster.wait_ended(waiting)["state"]
        assert "plenty" == cluster.get("/v1/status")["room"]["level"]

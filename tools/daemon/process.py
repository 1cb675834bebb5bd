"""
The scheduler process: take the log over, serve, end in good order; and stop what runs elsewhere.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import uvloop

from domain.commands import StartScheduler
from domain.errors import Conflict, NotFound, StoreUnavailable
from replay.engine import Engine
from replay.plugins import found_plugins
from store.embedded.marker import sync_directory
from store.info import is_log
from store.lock import LOCK_FILE, read_holder, this_process
from store.log import EventLog
from tools.agent import sockets
from tools.agent.processes import boot_id, born_ticks
from tools.collecting import uncollected
from tools.daemon import local_workers
from tools.daemon.access import caller_of
from tools.daemon.api import build_app
from tools.daemon.audit_follower import AuditFollower
from tools.daemon.capability import cluster_key
from tools.daemon.cluster_directory import prepare
from tools.daemon.config import ClusterFiles, DaemonSettings, first_commands
from tools.daemon.engine_thread import EngineThread
from tools.daemon.handlers import Api
from tools.daemon.hot_routes import HotRoutes
from tools.daemon.journal import Journal
from tools.daemon.recorder import Recorder
from tools.daemon.server import serve, server_of
from tools.daemon.snapshot_process import store_of
from tools.daemon.snapshotter import Snapshotter

BACKLOG = 512
STOP_S = 30.0
LOOK_S = 0.02
# A thread that wants the interpreter gets it within this time: the engine thread must not wait
# long for the loop's thread, nor the other way round.
SWITCH_S = 0.0005


def run_scheduler(
    directory: Path,
    *,
    workers: int = 0,
    worker_slots: int | None = None,
    settings: DaemonSettings | None = None,
    on_ready: Callable[[dict[str, object]], None] | None = None,
    with_audit: bool = False,
) -> int:
    """
    Run the scheduler of a cluster until it is told to end; return the exit status.

    Where one runs already, only the local workers that are missing are added.

    Args:
        directory: The cluster's directory; made when it isn't there.
        workers: How many local workers there are to be.
        worker_slots: Slots of each that is added; None for one a processor.
        settings: How the process runs.
        on_ready: Called once it serves, with what a ready line says; prints that line when None.
        with_audit: Keep the audit tables up meanwhile, in a process of its own.

    Raises:
        Refused: The directory is no cluster's, or is somebody else's.
        Conflict: Another process has the log, and it doesn't serve.
        StoreUnavailable, Corrupt: The log can't be used.
    """
    files = ClusterFiles(directory.resolve())
    chosen = settings or DaemonSettings()
    caller_of(os.geteuid())
    prepare(files)
    try:
        log = _open_log(files)
    except Conflict:
        if not is_serving(files):
            raise
        added = local_workers.start_missing(files, workers, worker_slots)
        ready = {"already_running": True, "dir": str(files.directory), "workers_added": added}
        (on_ready or _ready_line)(ready)
        return 0
    journal = Journal(files.journal)
    follower = AuditFollower(files, journal)

    def tell_ready(line: dict[str, object]) -> None:
        (on_ready or _ready_line)(line)
        if with_audit:
            follower.start()

    try:
        return _Scheduler(files, chosen, log, journal).run(workers, worker_slots, tell_ready)
    finally:
        log.close()
        follower.end()
        journal.close()


def _open_log(files: ClusterFiles) -> EventLog:
    """
    Open the cluster's log, or begin one; a log that was there and is gone is never begun anew.
    """
    if is_log(files.log):
        log = EventLog.open(files.log, writable=True, checked=True)
    elif files.identity.exists():
        raise NotFound(
            "log",
            "is missing, though this cluster had one",
            str(files.log),
            f"Put it back; or remove {files.identity} too, to begin anew.",
        )
    else:
        log = EventLog.create(files.log, checked=True)
    _check_identity(files, log)
    return log


def _check_identity(files: ClusterFiles, log: EventLog) -> None:
    if not files.identity.exists():
        aside = files.identity.with_suffix(".new")
        with aside.open("w", encoding="utf-8") as out:
            json.dump({"log_id": log.log_id}, out)
            out.flush()
            os.fsync(out.fileno())
        aside.rename(files.identity)
        sync_directory(files.directory)
        return
    expected = json.loads(files.identity.read_text(encoding="utf-8"))["log_id"]
    if expected != log.log_id:
        log.close()
        raise Conflict(
            "log of this cluster",
            expected,
            log.log_id,
            f"{files.identity} says which log belongs here.",
        )


class _Scheduler:
    """
    Hold the parts of one scheduler process.
    """

    def __init__(
        self, files: ClusterFiles, settings: DaemonSettings, log: EventLog, journal: Journal
    ) -> None:
        self._files = files
        self._settings = settings
        self._plugins = found_plugins()
        self._log = log
        self._journal = journal
        self._status = 0
        self._snapshots = store_of(files, log.log_id)
        key = cluster_key(files.key)
        self._engine = EngineThread(
            self._recover, settings, key, journal, self._engine_ended, log.space
        )
        self._begin()
        self._recorder = Recorder(files, log, journal)
        self._snapshotter = Snapshotter(files, journal, settings.snapshot_limit_s)
        self._engine.begin_snapshot = self._snapshotter.begin
        self._api = Api(
            self._engine,
            log,
            settings,
            files,
            key,
            self._engine.stop,
            self._recorder,
            self._snapshotter,
        )
        self._server = server_of(HotRoutes(build_app(self._api), self._api), settings)

    def _recover(self) -> Engine:
        began_ns = time.monotonic_ns()
        with uncollected():
            engine = Engine.recover(self._log, plugins=self._plugins, snapshots=self._snapshots)
        self._journal.info(
            "engine recovered",
            position=engine.position,
            took_us=(time.monotonic_ns() - began_ns) // 1000,
        )
        return engine

    def _begin(self) -> None:
        """
        Write that this process has the log now; a new cluster also gets its settings.
        """
        engine, plugins, me = self._engine.engine, self._plugins, this_process()
        started = StartScheduler(
            epoch=self._log.epoch,
            holder=f"{me.host}:{me.pid}",
            boot_id=boot_id(),
            code_version=code_version(),
            pickers=plugins.picker_versions(),
            allocators=plugins.allocator_versions(),
            awaits_workers=True,
        )
        first = () if engine.core.state.stored.cluster else first_commands(self._settings)
        for command in (started, *first):
            engine.accept(command, actor="", now_us=self._engine.clock.now_us())
        engine.commit()

    def run(
        self,
        workers: int,
        worker_slots: int | None,
        on_ready: Callable[[dict[str, object]], None],
    ) -> int:
        """
        Serve until told to end; return the exit status.
        """
        sys.setswitchinterval(SWITCH_S)
        listener = sockets.listen(self._files.socket, backlog=BACKLOG, mode=0o666)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve(listener, workers, worker_slots, on_ready))
        with suppress(FileNotFoundError):
            self._files.socket.unlink()
        self._recorder.close(self._log.head())
        self._journal.info("ended", status=self._status, position=self._log.head())
        return self._status

    async def _serve(
        self,
        listener: object,
        workers: int,
        worker_slots: int | None,
        on_ready: Callable[[dict[str, object]], None],
    ) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._engine.stop)
        self._loop = loop
        self._engine.start(loop)
        serving = asyncio.create_task(serve(self._server, listener))  # type: ignore[arg-type]
        await self._server.has_started.wait()
        added = local_workers.start_missing(self._files, workers, worker_slots)
        ready = {
            "ready": True,
            "dir": str(self._files.directory),
            "pid": os.getpid(),
            "position": self._engine.engine.position,
            "workers_added": added,
        }
        self._journal.info("ready", **ready)
        on_ready(ready)
        await serving
        self._engine.join()

    def _engine_ended(self, status: int) -> None:
        """
        End the server, from the engine's thread: its answers are on their way before it.
        """
        self._status = status
        self._snapshotter.end()
        self._recorder.end()
        self._loop.call_soon_threadsafe(self._stop_serving)

    def _stop_serving(self) -> None:
        self._server.should_exit = True


def _ready_line(ready: dict[str, object]) -> None:
    print(json.dumps(ready), flush=True)  # noqa: T201 - the one line on standard output


def code_version() -> str:
    """
    Return the version of the program.
    """
    try:
        return version("xce")
    except PackageNotFoundError:
        return "unknown"


def is_serving(files: ClusterFiles) -> bool:
    """
    Tell whether somebody listens at the cluster's socket.
    """
    try:
        sockets.connect(files.socket, timeout_s=1.0).close()
    except OSError:
        return False
    return True


# ----------------------------------------------------------------------------------------- stopping


def stop_all(directory: Path) -> dict[str, int]:
    """
    End the scheduler, its local agents, their launchers and all their jobs; return how many of each
    were ended.

    Raises:
        StoreUnavailable: Something is still alive after `STOP_S`.
    """
    files = ClusterFiles(directory.resolve())
    ended = {"schedulers": int(_stop_scheduler(files))}
    _clear_socket(files)
    return ended | local_workers.stop_all(files)


def _clear_socket(files: ClusterFiles) -> None:
    """
    Remove the socket that a killed scheduler left, unless a new one has the log.
    """
    with suppress(OSError), (files.log / LOCK_FILE).open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        files.socket.unlink()


def _stop_scheduler(files: ClusterFiles) -> bool:
    """
    Ask the log's writer to end in good order and wait for it; tell whether there was one.
    """
    holder = read_holder(files.log) if is_log(files.log) else None
    if holder is None or holder.is_clean or born_ticks(holder.pid) != holder.start:
        return False
    os.kill(holder.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_S
    while born_ticks(holder.pid) == holder.start:
        if time.monotonic() > deadline:
            raise StoreUnavailable(
                "scheduler",
                str(files.directory),
                f"process {holder.pid} doesn't end",
                "Kill it: kill -9.",
            )
        time.sleep(LOOK_S)
    return True

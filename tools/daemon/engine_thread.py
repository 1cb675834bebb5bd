"""
The one thread that owns engine and log: it takes all requests that wait, commits them once, and
answers them together.

    wait -> take each request in -> hold a session -> commit (synced) -> answer all

Nothing is answered before the commit. A commit that recorded nothing is answered 503, and the
engine is recovered from the log; one whose outcome nobody knows ends the process.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress

from domain.commands import StopScheduler
from domain.envelope import Stamped
from domain.errors import (
    Conflict,
    InvariantBroken,
    OutcomeUnknown,
    StoreUnavailable,
    XceError,
)
from replay.engine import Engine
from store.space import Room, Space
from tools.collecting import Collector
from tools.daemon.clock import LogClock
from tools.daemon.config import DaemonSettings
from tools.daemon.journal import Journal
from tools.daemon.liveness import Liveness
from tools.daemon.refusals import RefusalRecorder
from tools.daemon.reports import WorkerRequest
from tools.daemon.requests import Command, Reply, Request, error_reply
from tools.daemon.room import RoomKeeper
from tools.daemon.work import WorkBooks, WorkPoll

IDLE_NS = 1_000_000_000
GONE = StoreUnavailable("the scheduler is ending")
STATUS_FINE = 0
STATUS_UNAVAILABLE = 3
STATUS_FAULT = 70


class EngineThread:
    """
    Run the engine.

    Args:
        recover: Returns the engine, recovered from the log.
        settings: How the process runs.
        key: The cluster's secret key.
        journal: Where to write what happens to the process.
        on_end: Called in the thread when it ends, with the exit status.
        space: Measures the room that the log has left, None when it knows of none.

    ``begin_snapshot`` is called in the thread when a snapshot is due, with the position: it must
    return at once, and tells whether one was begun. Whoever sets it does so before `start`.
    """

    def __init__(
        self,
        recover: Callable[[], Engine],
        settings: DaemonSettings,
        key: bytes,
        journal: Journal,
        on_end: Callable[[int], None],
        space: Callable[[], Space | None] = lambda: None,
    ) -> None:
        self._recover = recover
        self._settings = settings
        self._journal = journal
        self._on_end = on_end
        self._queue: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._engine = recover()
        self._clock = LogClock(self._engine.core.state.stored.time_us)
        now_ns = time.monotonic_ns()
        self._liveness = Liveness(settings.silent_after_s, now_ns)
        self._refusals = RefusalRecorder(now_ns)
        self._books = WorkBooks(key)
        self._room = RoomKeeper(space, str(getattr(self._engine.log, "path", "")), journal)
        self._look_ns = now_ns
        self._wakeup_us: int | None = None
        self._session_us = 0
        self.default_queue = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._batch: list[Request] = []
        self._is_stopping = False
        self._has_ended = False
        self.begin_snapshot: Callable[[int], bool] = lambda _: False
        self._thread = threading.Thread(target=self._run, name="engine")

    @property
    def engine(self) -> Engine:
        """
        Return the engine; before `start` it may be used by the caller, afterwards by nobody else.
        """
        return self._engine

    @property
    def clock(self) -> LogClock:
        """
        Return the clock that gives the stamps.
        """
        return self._clock

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """
        Begin to serve; answers are given in the loop.
        """
        self._loop = loop
        self._publish()
        self._thread.start()

    def join(self) -> None:
        """
        Wait until the thread has ended.
        """
        if self._thread.ident is not None:
            self._thread.join()

    async def ask(self, request: Request) -> Reply:
        """
        Hand a request over and wait for its answer.
        """
        assert self._loop is not None
        if self._has_ended:
            return error_reply(GONE)
        request.future = self._loop.create_future()
        self._queue.put(request)
        return await request.future

    def stop(self) -> None:
        """
        End in good order after what waits.
        """
        self._queue.put(None)

    # ------------------------------------------------------------------------------------ the loop

    def _run(self) -> None:
        status = STATUS_FAULT
        collector = Collector(time.monotonic_ns())
        try:
            status = self._serve(collector)
        except BaseException as error:  # noqa: BLE001 - whatever it was, the process must end
            self._journal.error("engine failed", why=repr(error), story=traceback.format_exc())
            failed = error_reply(InvariantBroken("the engine goes on", repr(error)))
            self._give([(request, failed) for request in self._batch])
        finally:
            collector.close()
            self._has_ended = True
            self._turn_away()
            self._on_end(status)

    def _turn_away(self) -> None:
        """
        Tell whoever still waits that nothing of theirs was done.
        """
        waiting: list[Request] = [*self._books.give_up()]
        with suppress(queue.Empty):
            while True:
                request = self._queue.get_nowait()
                waiting += [] if request is None else [request]
        self._give([(request, error_reply(GONE)) for request in waiting])

    def _serve(self, collector: Collector) -> int:
        """
        Serve until told to stop, or until a commit's outcome is unknown.
        """
        while not self._is_stopping:
            self._batch = batch = self._wait_batch()
            collector.look(time.monotonic_ns(), is_quiet=not batch)
            try:
                self._handle(batch)
            except OutcomeUnknown as error:
                self._fail(batch, error)
                return STATUS_UNAVAILABLE
            except Conflict as error:
                self._fail(
                    batch, StoreUnavailable("another writer has the log", detail=error.text())
                )
                return STATUS_UNAVAILABLE
            except StoreUnavailable as error:
                self._fail(batch, error)
                self._start_over()
            else:
                continue
            # The dropped core is in cycles and set aside: no look at the young would find it.
            collector.look_at_all(time.monotonic_ns())
        return STATUS_FINE

    def _wait_batch(self) -> list[Request]:
        """
        Return all requests that wait, as many as share a commit; none when something else is due.
        """
        batch: list[Request] = []
        timeout_s: float | None = self._wait_s()
        while len(batch) < self._settings.batch_max:
            try:
                request = (
                    self._queue.get(timeout=timeout_s) if timeout_s else self._queue.get_nowait()
                )
            except queue.Empty:
                break
            timeout_s = None
            if request is None:
                self._is_stopping = True
                break
            batch.append(request)
        return batch

    def _wait_s(self) -> float:
        """
        Return how long nothing is due: no poll's end, no wakeup, no look for silent workers.
        """
        if self._engine.core.is_cut_short and self._room.room > Room.CRITICAL:
            return 0.0
        now_ns = time.monotonic_ns()
        until_ns = min(now_ns + IDLE_NS, self._look_ns)
        poll_ns = self._books.next_deadline_ns()
        if poll_ns is not None:
            until_ns = min(until_ns, poll_ns)
        if self._wakeup_us is not None:
            until_ns = min(until_ns, now_ns + (self._wakeup_us - self._clock.now_us()) * 1000)
        return max(0.0, (until_ns - now_ns) / 1e9)

    # ------------------------------------------------------------------------------------ one batch

    def _handle(self, batch: list[Request]) -> None:
        """
        Take in, decide, commit, answer.
        """
        engine, now_us, now_ns = self._engine, self._clock.now_us(), time.monotonic_ns()
        broken = self._take_all(batch, now_us, now_ns)
        if broken is not None:
            raise StoreUnavailable("a request failed", detail=broken)
        self._look_around(now_us, now_ns)
        made = self._decide(now_us)
        if self._is_stopping:
            engine.accept(StopScheduler(why="told to stop"), actor="", now_us=now_us)
        engine.commit()
        self._publish()
        self._books.note(engine, made)
        self._answer(batch, now_ns)
        # A snapshot isn't worth the room that the ends of jobs need.
        if self._room.room is not Room.PLENTY:
            return
        if self._is_stopping:
            self._snapshot()
        elif engine.snapshot_is_due() and self.begin_snapshot(engine.position):
            engine.note_snapshot()

    def _publish(self) -> None:
        """
        Show what the loop's thread may know without asking: only what is synced.
        """
        self.default_queue = self._engine.core.state.settings().default_queue

    def _take_all(self, batch: list[Request], now_us: int, now_ns: int) -> str | None:
        """
        Take each request in; return what broke when one failed in a way that nobody foresaw.
        """
        self._room.look()
        for request in batch:
            try:
                self._room.check(request, self._engine)
                request.take(self._engine, now_us)
            except XceError as error:
                request.error = error
                if isinstance(error, InvariantBroken):
                    return error.text()
                if isinstance(request, Command) and self._is_worth_recording(error):
                    self._refusals.record(
                        self._engine,
                        request.command,
                        error,
                        actor=request.caller.user,
                        now_us=now_us,
                        now_ns=now_ns,
                    )
            except Exception as error:  # noqa: BLE001 - one bad request must not take others along
                request.error = InvariantBroken("a request is taken in or refused", repr(error))
                self._journal.error("request failed", why=repr(error), story=traceback.format_exc())
                return repr(error)
            if isinstance(request, WorkerRequest | WorkPoll):
                self._liveness.hear(request.worker, now_ns)
        return None

    def _is_worth_recording(self, error: XceError) -> bool:
        """
        Tell whether a refusal belongs into the log: not what asks for the last room there is.
        """
        return self._room.room > Room.CRITICAL and not isinstance(error, StoreUnavailable)

    def _look_around(self, now_us: int, now_ns: int) -> None:
        """
        Now and then look for silent workers.
        """
        if now_ns < self._look_ns:
            return
        self._look_ns = now_ns + self._liveness.every_ns
        for command in self._liveness.silent(self._engine, now_ns):
            self._journal.info(
                "worker is silent", worker=command.worker, silent_us=command.silent_us
            )
            self._engine.accept(command, actor="", now_us=now_us)

    def _decide(self, now_us: int) -> list[Stamped]:
        """
        Hold a session where something may have changed what can start.
        """
        engine = self._engine
        is_due = self._wakeup_us is not None and self._wakeup_us <= now_us
        if not (engine.pending or engine.core.is_cut_short or is_due):
            return []
        if self._room.room is Room.CRITICAL:
            # What waits could use the last room up, which belongs to the ends of what runs.
            self._wakeup_us = now_us + IDLE_NS // 1000
            return []
        earliest_us = self._session_us + engine.core.state.settings().session_interval_us
        if now_us < earliest_us and not engine.core.is_cut_short:
            self._wakeup_us = min(earliest_us, self._wakeup_us or earliest_us)
            return []
        made = engine.hold_session(now_us)
        self._session_us = now_us
        self._wakeup_us = engine.core.next_wakeup(now_us)
        return made

    def _answer(self, batch: list[Request], now_ns: int) -> None:
        """
        Give all answers that can be given now, in one call to the loop.
        """
        engine = self._engine
        given: list[tuple[Request, Reply]] = []
        for request in batch:
            if request.error is not None:
                given.append((request, error_reply(request.error)))
            elif isinstance(request, WorkPoll):
                given += self._books.arrive(request)
            else:
                given.append((request, self._one_answer(request)))
        given += self._books.due(engine, now_ns, everybody=self._is_stopping)
        self._give(given)

    def _one_answer(self, request: Request) -> Reply:
        try:
            return request.answer(self._engine)
        except XceError as error:
            return error_reply(error)
        except Exception as error:  # noqa: BLE001 - a view that fails changes nothing
            self._journal.error("answer failed", why=repr(error), story=traceback.format_exc())
            return error_reply(InvariantBroken("an answer can be made", repr(error)))

    def _give(self, given: list[tuple[Request, Reply]]) -> None:
        if given and self._loop is not None:
            self._loop.call_soon_threadsafe(_resolve, given)

    # --------------------------------------------------------------------------- when it goes wrong

    def _fail(self, batch: list[Request], error: StoreUnavailable) -> None:
        """
        Tell everybody of a batch that it isn't recorded, or that nobody knows.
        """
        self._journal.error("commit failed", why=error.text(), requests=len(batch))
        self._give([(request, error_reply(request.error or error)) for request in batch])

    def _start_over(self) -> None:
        """
        Drop the core, which holds what was never recorded, and recover from the log.
        """
        self._engine = self._recover()
        self._books.reset()
        self._journal.info("recovered", position=self._engine.position)

    def _snapshot(self) -> None:
        """
        Keep the last snapshot, here: nobody waits for this thread any more. One that can't be
        written is no harm.
        """
        began_ns = time.monotonic_ns()
        try:
            self._engine.take_snapshot()
        except (XceError, OSError) as error:
            self._journal.error("snapshot failed", why=str(error))
            return
        self._journal.info(
            "snapshot",
            position=self._engine.position,
            took_us=(time.monotonic_ns() - began_ns) // 1000,
        )


def _resolve(given: list[tuple[Request, Reply]]) -> None:
    """
    Hand answers over, in the loop; whoever has gone doesn't get one.
    """
    for request, reply in given:
        if request.future is not None and not request.future.done():
            request.future.set_result(reply)

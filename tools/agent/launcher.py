"""
The launcher: one small single-threaded program for each worker, which starts, signals and waits for
its programs.

It outlives the agent. Each attempt is started once: the wish is in the journal, synced, before the
program starts, and a repeated wish starts nothing. An end is in the journal, synced, before anybody
is told. What comes together is synced together.

When it has no programs and its agent is gone for good, it ends: the journal has all that a later
one needs.
"""

from __future__ import annotations

import argparse
import os
import resource
import selectors
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path

from tools.agent import endings, families, locks, processes, spawn
from tools.agent.connections import AgentConnections, log
from tools.agent.courses import LOST, Afterwards, Course, failed_before
from tools.agent.files import WorkerFiles
from tools.agent.messages import (
    Attempt,
    AttemptKey,
    FromLauncher,
    OrderKind,
    OrderOutcome,
    OrderRequest,
    Phase,
    StartRequest,
    ToLauncher,
    line_of,
)
from tools.agent.spool import Spool

IDLE_S = 5.0
"""How often it looks whether anybody still needs it."""
LONELY_S = 30.0
"""So long it waits without programs for another agent: longer than one takes to be restarted."""
SWEEP_S = 0.5
"""
So long after an attempt's end it looks for what that left behind: one look, at every process there
is (2 to 3 ms), serves all the ends of that time.
"""
QUIT_S = 5.0
"""So long it tries to end what is left behind when it is told to quit."""
DEFAULT_KILL = ("SIGTERM", "SIGKILL")


class Launcher:
    """
    Carry out what the agent asks, and tell every agent that said hello what happens.

    Args:
        files: Where the worker's files are; its lock is held by the caller.
        lonely_s: How long it waits without programs and without an agent before it ends.
    """

    def __init__(self, files: WorkerFiles, lonely_s: float = LONELY_S) -> None:
        self._files = files
        self._lonely_ns = round(lonely_s * 1e9)
        self._idle_s = min(IDLE_S, lonely_s / 4)
        self._alone_since_ns: int | None = None
        self._spool = Spool(files.spool)
        self._selector = selectors.DefaultSelector()
        self._agents = AgentConnections(files.launcher_socket, self._selector)
        self._children: dict[int, AttemptKey] = {}
        self._courses: dict[AttemptKey, Course] = {}  # of attempts that aren't at their command yet
        self._afterwards = Afterwards()
        self._adopted: dict[int, AttemptKey] = {}  # by the descriptor that tells of the end
        # When the next signal follows (monotonic nanoseconds), and which ones are left.
        self._last_resorts: dict[AttemptKey, int] = {}
        self._kills: dict[AttemptKey, tuple[list[signal.Signals], int]] = {}
        self._stopping: dict[AttemptKey, OrderRequest] = {}
        self._news = FromLauncher()
        self._families = families.Families(str(files.directory))
        self._sweep_due_ns: int | None = None
        self._quit_until_ns: int | None = None
        self._has_no_future = False
        self._wake_on_child()

    # ------------------------------------------------------------------------------------- the loop

    def run(self) -> None:
        """
        Serve until told to quit, or until nothing is left to do and the directory is gone.
        """
        self._take_up()
        while not self._has_quit():
            ready = self._selector.select(self._wait_s())
            self._families.look_again()
            asked = [message for key, _ in ready for message in self._read(key)]
            self._carry_out(asked)
            self._reap()
            self._look_at_stopping()
            self._press_on()
            self._sweep()
            self._tell()
            if not ready and self._is_abandoned():
                break
        # An agent that comes now finds nobody here, and starts another.
        self._selector.close()
        self._agents.close()
        self._spool.close()
        if self._has_no_future:
            self._files.spool.unlink()

    def _wait_s(self) -> float:
        due_ns = list(self._last_resorts.values())
        if self._sweep_due_ns is not None:
            due_ns.append(self._sweep_due_ns)
        if not due_ns:
            return self._idle_s
        return min(self._idle_s, max(0.0, (min(due_ns) - time.monotonic_ns()) / 1e9))

    def _has_quit(self) -> bool:
        if self._quit_until_ns is None or self._runs_something():
            return False
        return self._sweep_due_ns is None or time.monotonic_ns() > self._quit_until_ns

    def _runs_something(self) -> bool:
        return bool(self._children or self._adopted or self._afterwards.leaders)

    def _is_abandoned(self) -> bool:
        """
        Tell whether nobody needs it: nothing runs, and its directory is gone, or its agent has been
        away for the time of grace.
        """
        if self._runs_something():
            return False
        if not self._files.directory.is_dir():
            return True
        if self._agents or locks.is_locked(self._files.agent_lock):
            self._alone_since_ns = None
            return False
        now_ns = time.monotonic_ns()
        self._alone_since_ns = self._alone_since_ns or now_ns
        return now_ns - self._alone_since_ns >= self._lonely_ns

    def _wake_on_child(self) -> None:
        """
        Make the end of a child wake the selector: the signal itself does nothing more.
        """
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self._wakeups = reader
        self._selector.register(reader, selectors.EVENT_READ, None)

    # -------------------------------------------------------------------------------- after a crash

    def _take_up(self) -> None:
        """
        Find out what became of the attempts that an earlier launcher left open.
        """
        now = processes.boot_id()
        is_same_boot = self._spool.boot_id == now
        for attempt in [
            one for one in self._spool.attempts.values() if one.phase is not Phase.ENDED
        ]:
            if attempt.phase is Phase.PREPARING:
                # Its command never ran, and what was to run isn't known: the sweep ends the rest.
                self._spool.put(failed_before(attempt.key, attempt.pre_exec_of, LOST))
            elif not is_same_boot or not self._adopt(attempt):
                log(f"the exit status of {attempt.job_id}, attempt {attempt.attempt}, is lost")
                self._spool.put(endings.lost(attempt))
        if not is_same_boot:
            self._spool.booted(now)
        # Orphans of an earlier launcher aren't this one's children: they are found by environment.
        self._families.has_heritage = is_same_boot
        self._sweep_soon()
        self._spool.sync()

    def _adopt(self, attempt: Attempt) -> bool:
        """
        Watch a process that an earlier launcher started; its exit status will never be known.
        """
        pid = attempt.pid or processes.find_attempt(
            attempt.job_id, attempt.attempt, str(self._files.directory)
        )
        try:
            watched = os.pidfd_open(pid) if pid else -1
        except OSError:
            return False
        born = processes.born_ticks(pid)
        if watched < 0 or born == 0 or attempt.born_ticks not in (0, born):
            with suppress(OSError):
                os.close(watched)
            return False
        self._spool.put(endings.running(attempt.key, pid, born))
        self._adopted[watched] = attempt.key
        self._selector.register(watched, selectors.EVENT_READ, None)
        return True

    # ------------------------------------------------------------------------------------- requests

    def _read(self, key: selectors.SelectorKey) -> list[tuple[socket.socket, ToLauncher]]:
        """
        Take what came on one descriptor, and return the whole messages among it.
        """
        if isinstance(key.fileobj, socket.socket):
            return self._agents.read(key.fileobj)
        if key.fileobj == self._wakeups:
            with suppress(BlockingIOError):
                os.read(self._wakeups, 4096)
        return []

    def _carry_out(self, asked: list[tuple[socket.socket, ToLauncher]]) -> None:
        """
        Do all that was asked, in order; starts wait for each other, so that one sync serves many.
        """
        starts: list[StartRequest] = []
        for connection, message in asked:
            starts += message.start
            if message.order or message.hello or message.quit:
                self._start(self._intend(starts))
                starts = []
            for order in message.order:
                self._take_order(order)
            self._spool.forget(message.forget)
            if message.hello:
                self._agents.listen(connection)
                self._greet(connection)
            if message.quit:
                self._has_no_future = message.reset
                self._end_all()
        self._start(self._intend(starts))

    def _intend(self, requests: list[StartRequest]) -> list[StartRequest]:
        """
        Put the wish to start into the journal and return the requests that are new.
        """
        if not requests:
            return []
        fresh: dict[AttemptKey, StartRequest] = {}
        for request in requests:
            if not self._spool.knows(request.key):
                fresh.setdefault(request.key, request)
        self._spool.put(*(Attempt(key.job_id, key.attempt, Phase.INTENDED) for key in fresh))
        self._spool.sync()
        return list(fresh.values())

    def _start(self, requests: list[StartRequest]) -> None:
        for request in requests:
            self._go_on(Course(request))

    def _go_on(self, course: Course) -> None:
        """
        Start what comes next for an attempt: what runs before its command, or that.
        """
        request = course.request
        if course.is_at_command and course.done:
            # A crash between here and its record must find the command itself, as for any other.
            self._spool.put(Attempt(*request.key, Phase.INTENDED))
            self._spool.sync()
        try:
            pid = course.start()
        except spawn.CannotStart as error:
            failed, fault = str(error)[:1000], error.fault
            self._has_ended(Attempt(*request.key, Phase.ENDED, failed=failed, fault=fault))
            return
        self._children[pid] = request.key
        born = processes.born_ticks(pid)
        if course.is_at_command:
            self._afterwards.expect(request)
            self._note(endings.running(request.key, pid, born))
            return
        self._courses[request.key] = course
        self._note(endings.preparing(request.key, course.owner, pid, born))

    def _program_ended(
        self, key: AttemptKey, pid: int, status: int, usage: resource.struct_rusage
    ) -> None:
        """
        Go on with an attempt one of whose programs has ended.
        """
        course = self._courses.pop(key, None)
        is_before = self._spool.attempts[key].phase is Phase.PREPARING
        if course is None:
            # It was killed before its command, or this was its command.
            end = endings.finished(key, 0 if is_before else pid, status, usage)
            self._has_ended(end)
            self._afterwards.begin(key, status)
        elif status != 0:
            self._has_ended(course.failed(status))
        else:
            self._go_on(course.next())

    def _note(self, attempt: Attempt) -> None:
        self._spool.put(attempt)
        self._news.attempts.append(attempt)

    def _greet(self, connection: socket.socket) -> None:
        self._spool.sync()
        greeting = FromLauncher(
            list(self._spool.attempts.values()), [], True, self._spool.last_order
        )
        self._agents.send(connection, line_of(greeting))

    # -------------------------------------------------------------------------------- signals, ends

    def _take_order(self, order: OrderRequest) -> None:
        """
        Carry out one order, each once; an attempt that never came here is barred from ever
        starting.

        Number 0 is the agent's own wish to end an attempt that nobody wants any more.
        """
        if 0 < order.order_number <= self._spool.last_order:
            self._news.orders.append(OrderOutcome(order.order_number, "carried out before"))
            return
        attempt = self._spool.attempts.get(order.key)
        if attempt is None:
            if order.kind is OrderKind.KILL and not self._spool.knows(order.key):
                self._note(Attempt(*order.key, Phase.ENDED, failed="killed before it started"))
            self._order_done(order, "not running")
        elif attempt.phase is Phase.ENDED:
            self._order_done(order, "had ended")
        else:
            self._carry_out_order(order, attempt)

    def _carry_out_order(self, order: OrderRequest, attempt: Attempt) -> None:
        if order.kind is OrderKind.SIGNAL:
            self._families.signal(attempt, signal.Signals[order.signal])
            self._order_done(order, "signalled")
            return
        stopping = self._stopping.pop(order.key, None)
        if stopping is not None:
            self._order_done(stopping, "overtaken")
        due_ns = time.monotonic_ns() + order.grace_ms * 1_000_000
        if order.kind is OrderKind.SUSPEND:
            self._families.signal(attempt, signal.Signals[order.signal or "SIGTSTP"])
            self._stopping[order.key] = order
            self._last_resorts[order.key] = due_ns
            return
        if order.kind is OrderKind.KILL:
            self._courses.pop(order.key, None)  # Nothing comes after what runs now.
            first, *later = (signal.Signals[name] for name in order.signals or DEFAULT_KILL)
            self._families.signal(attempt, first)
            self._last_resorts[order.key] = due_ns
            self._kills[order.key] = (later, order.grace_ms)
        else:
            self._last_resorts.pop(order.key, None)
        self._families.signal(attempt, signal.SIGCONT)
        self._order_done(order, "signalled")

    def _order_done(self, order: OrderRequest, outcome: str) -> None:
        if order.order_number:
            self._news.orders.append(OrderOutcome(order.order_number, outcome))
            self._spool.order_done(order.order_number)

    def _look_at_stopping(self) -> None:
        """
        Stop the rest of a group whose first process has stopped as it was asked to.
        """
        for key in list(self._stopping):
            if processes.is_stopped(self._spool.attempts[key].pid):
                self._stop(key)

    def _stop(self, key: AttemptKey) -> None:
        self._last_resorts.pop(key, None)
        self._families.signal(self._spool.attempts[key], signal.SIGSTOP)
        self._order_done(self._stopping.pop(key), "stopped")

    def _press_on(self) -> None:
        """
        Send the signal that can't be caught where the grace time is over.
        """
        now_ns = time.monotonic_ns()
        for key in [key for key, due_ns in self._last_resorts.items() if due_ns <= now_ns]:
            del self._last_resorts[key]
            if key in self._stopping:
                self._stop(key)
                continue
            attempt = self._spool.attempts.get(key)
            if attempt is not None and attempt.is_alive:
                self._kill_harder(key, attempt, now_ns)

    def _kill_harder(self, key: AttemptKey, attempt: Attempt, now_ns: int) -> None:
        """
        Send the next signal of a kill; the last one is always the one that can't be caught.
        """
        later, grace_ms = self._kills.pop(key, ([], 0))
        number, *later = later or [signal.SIGKILL]
        self._families.signal(attempt, number)
        if number is not signal.SIGKILL:
            self._kills[key] = (later, grace_ms)
            self._last_resorts[key] = now_ns + grace_ms * 1_000_000

    def _end_all(self) -> None:
        self._quit_until_ns = time.monotonic_ns() + round(QUIT_S * 1e9)
        self._courses.clear()
        for attempt in self._running().values():
            self._families.signal(attempt, signal.SIGKILL)
        self._afterwards.kill()
        self._sweep_soon()

    def _running(self) -> dict[AttemptKey, Attempt]:
        attempts = self._spool.attempts
        return {key: one for key, one in attempts.items() if one.is_alive}

    def _reap(self) -> None:
        """
        Take the exit status of every program that has ended; orphans are only waited for.
        """
        while (pid := processes.ended_child()) is not None:
            if pid in self._children:
                # What its leader leaves behind in the group ends with it; until it is waited for
                # the group is its own.
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
            key = self._children.pop(pid, None)
            if key is not None:
                self._program_ended(key, pid, status, usage)
            elif self._afterwards.has_ended(pid):
                self._sweep_soon()
        for watched in [one for one in self._adopted if processes.is_over(one)]:
            key = self._adopted.pop(watched)
            self._selector.unregister(watched)
            os.close(watched)
            self._has_ended(endings.lost(self._spool.attempts[key]))

    def _has_ended(self, attempt: Attempt) -> None:
        self._last_resorts.pop(attempt.key, None)
        stopping = self._stopping.pop(attempt.key, None)
        if stopping is not None:
            self._order_done(stopping, "had ended")
        self._note(attempt)
        self._sweep_soon()

    def _sweep_soon(self) -> None:
        if self._sweep_due_ns is None:
            delay_s = SWEEP_S if self._quit_until_ns is None else SWEEP_S / 10
            self._sweep_due_ns = time.monotonic_ns() + round(delay_s * 1e9)

    def _sweep(self) -> None:
        """
        End what ended attempts left behind outside their group, until nothing of it is left.
        """
        if self._sweep_due_ns is None or time.monotonic_ns() < self._sweep_due_ns:
            return
        self._sweep_due_ns = None
        if not self._families.has_heritage and not processes.has_children():
            return
        self._families.look_again()
        wanted = self._running() | self._afterwards.attempts
        leaders = self._children.keys() | self._afterwards.leaders
        found = self._families.sweep(wanted, leaders)
        if found:
            self._sweep_soon()
        elif not self._adopted:
            self._families.has_heritage = False

    # -------------------------------------------------------------------------------------- telling

    def _tell(self) -> None:
        """
        Tell the agents what happened since the last time, once it is on the disk.
        """
        if not self._news.attempts and not self._news.orders:
            return
        if self._news.orders or any(one.phase is Phase.ENDED for one in self._news.attempts):
            self._spool.sync()
        line = line_of(self._news)
        self._news = FromLauncher()
        self._agents.tell(line)


def main() -> int:
    """
    Run the launcher of one worker until it is told to end; a second one for the same worker ends at
    once.
    """
    parser = argparse.ArgumentParser(prog="python -m tools.agent.launcher")
    parser.add_argument("--dir", required=True, type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--lock", type=int, help="the open lock, from whoever starts it")
    parser.add_argument("--lonely-s", type=float, default=LONELY_S)
    asked = parser.parse_args()
    files = WorkerFiles(asked.dir.resolve(), asked.name)
    if locks.adopt(files.launcher_lock, asked.lock) is None:
        return 0
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.chdir(spawn.REST_DIRECTORY)
    families.become_subreaper()
    Launcher(files, asked.lonely_s).run()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

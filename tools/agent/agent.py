"""
The worker agent: joins its cluster, fetches its work, has it started, and tells what happens.

It holds nothing that it couldn't find again: what runs and what ended is in the launcher's journal,
what to do is in the scheduler's state. So it may end at any moment, and the scheduler may be away
for as long as it likes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from pydantic import ValidationError

from domain.commands import JoinWorker
from domain.ids import check_name
from tools.agent import locks, measure
from tools.agent.assignments import CannotRun, start_request
from tools.agent.files import WorkerFiles
from tools.agent.http import HttpClient, Unreachable
from tools.agent.launcher_link import LauncherLink
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
)
from tools.agent.protocol import (
    Assignment,
    JoinAnswer,
    LeaveRequest,
    Order,
    ReportsAnswer,
    ReportsRequest,
    Resumed,
    Suspended,
    WorkAnswer,
)
from tools.agent.reports import Outbox

POLL_WAIT_S = 10
ANSWER_S = 30.0
RETRY_MIN_S = 0.1
RETRY_MAX_S = 2.0
KILL_GRACE_S = 10.0
STOP_GRACE_S = 1.0
MEASURE_EVERY_S = 10.0
MOVES = ("suspend", "resume")
"""Orders that stop an attempt or let it go on."""
MOVED = ("stopped", "signalled", "carried out before")
"""Outcomes of an order that did something to its attempt."""
START_DELAY_S = 0.01
"""
A start waits so long for company: a program that ends at once then costs one request, not two.
"""


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """
    Hold what an agent can be told when it is started.

    Args:
        slots: How many tasks it takes; None for one a processor.
        kill_grace_s: How long a job may take to end after SIGTERM before SIGKILL follows.
        measure_every_s: How often it measures; the scheduler hears no more often than that.
    """

    slots: int | None = None
    kill_grace_s: float = KILL_GRACE_S
    measure_every_s: float = MEASURE_EVERY_S


class Superseded(Exception):  # noqa: N818 - it says what happened
    """
    Say that another agent joined under this worker's name.
    """


class Agent:
    """
    Be one worker's agent.

    Args:
        files: The worker's files; the caller holds the lock on them.
        settings: How it was told to work.
    """

    def __init__(self, files: WorkerFiles, settings: AgentSettings) -> None:
        self._files = files
        self._settings = settings
        self._link = LauncherLink(files)
        self._work = HttpClient(files.scheduler_socket)
        self._telling = HttpClient(files.scheduler_socket)
        self._outbox = Outbox()
        self._meter = measure.Meter(str(files.directory))
        self._attempts: dict[AttemptKey, Attempt] = {}
        self._done_with: dict[
            AttemptKey, int
        ] = {}  # the position at which the scheduler took the end
        self._strays: set[AttemptKey] = set()  # running, but no longer wanted
        self._orders: dict[int, Order] = {}  # those that the launcher has
        self._incarnation = 0
        self._revision = 0
        self._news = asyncio.Event()
        self._has_greeted = asyncio.Event()
        self._has_joined = asyncio.Event()

    async def run(self) -> int:
        """
        Work until told to end; return the exit status.
        """
        ending = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, ending.set)
        jobs = [
            self._keep_launcher(),
            self._keep_working(),
            self._keep_telling(),
            self._keep_measuring(),
        ]
        tasks = [asyncio.create_task(job) for job in jobs] + [asyncio.create_task(ending.wait())]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        if ending.is_set():
            await self._leave()
            return 0
        failure = done.pop().exception()
        log("agent ended", why=repr(failure))
        return 1

    # --------------------------------------------------------------------------------- the launcher

    async def _keep_launcher(self) -> None:
        """
        Hear the launcher, and start another when it is gone.
        """
        while True:
            await self._link.connect()
            async for message in self._link.messages():
                self._hear(message)
            log("launcher is gone; starting another")

    def _hear(self, message: FromLauncher) -> None:
        if message.hello:
            self._begin_anew()
        for attempt in message.attempts:
            if attempt.phase is Phase.ENDED and attempt.key in self._strays:
                self._forget([attempt.key])
                continue
            self._attempts[attempt.key] = attempt
            if attempt.phase is not Phase.PREPARING:  # It hasn't started yet.
                self._outbox.add_attempt(attempt)
        for outcome in message.orders:
            self._outbox.add_order(outcome, self._move_by(outcome))
        self._news.set()

    def _move_by(self, outcome: OrderOutcome) -> Suspended | Resumed | None:
        """
        Return what became of an attempt by an order that stops it or lets it go on.
        """
        order = self._orders.get(outcome.order_number)
        if order is None or order.kind not in MOVES or outcome.outcome not in MOVED:
            return None
        capability = self._outbox.capabilities.get(AttemptKey(order.job_id, order.attempt))
        if capability is None:
            return None
        kind = Suspended if order.kind == "suspend" else Resumed
        return kind(job_id=order.job_id, attempt=order.attempt, capability=capability)

    def _begin_anew(self) -> None:
        """
        Drop what was known before the launcher's greeting, and ask for the whole work again.
        """
        self._attempts.clear()
        self._orders.clear()
        self._revision = 0
        self._work.interrupt()
        self._has_greeted.set()

    # -------------------------------------------------------------------------------------- working

    async def _keep_working(self) -> None:
        """
        Join, then ask for work again and again.
        """
        await self._has_greeted.wait()
        retry_s = RETRY_MIN_S
        while True:
            try:
                await (self._fetch() if self._incarnation else self._join())
                retry_s = RETRY_MIN_S
            except Unreachable as error:
                if retry_s == RETRY_MIN_S:
                    log("scheduler is away", why=str(error))
                await asyncio.sleep(retry_s)
                retry_s = min(RETRY_MAX_S, retry_s * 2)

    async def _join(self) -> None:
        slots = self._settings.slots
        body = JoinWorker(
            worker=self._files.worker,
            slots=measure.slots() if slots is None else slots,
            resources=measure.resources(),
            attributes=measure.attributes(),
        )
        status, answer = await self._work.ask(
            "POST", "/v1/workers/join", body.model_dump_json().encode(), timeout_s=ANSWER_S
        )
        if status not in (200, 201):
            raise Unreachable(f"join: status {status}: {_shown(answer)}")
        joined = JoinAnswer.model_validate_json(answer)
        await self._belong_to(joined.log_id)
        self._incarnation, self._revision = joined.incarnation, 0
        self._has_joined.set()
        self._news.set()
        log("joined", incarnation=joined.incarnation, log_id=joined.log_id)

    async def _belong_to(self, log_id: str) -> None:
        """
        Begin anew when the cluster's log isn't the one that the launcher's attempts come from.
        """
        known = self._files.directory / "log_id"
        if known.exists() and known.read_text(encoding="ascii") != log_id:
            log("another cluster: what ran for the former one is ended", log_id=log_id)
            self._has_greeted.clear()
            self._link.send(ToLauncher(quit=True, reset=True))
            await self._has_greeted.wait()
        known.write_text(log_id, encoding="ascii")

    async def _fetch(self) -> None:
        """
        Ask for work and take what there is.
        """
        target = (
            f"{self._route('work')}?incarnation={self._incarnation}&revision={self._revision}"
            f"&wait_s={POLL_WAIT_S}"
        )
        status, answer = await self._work.ask("GET", target, timeout_s=POLL_WAIT_S + ANSWER_S)
        if status == 200:
            self._take(WorkAnswer.model_validate_json(answer))
        else:
            self._refused(status, answer)

    def _route(self, what: str) -> str:
        return f"/v1/workers/{quote(self._files.worker, safe='')}/{what}"

    def _refused(self, status: int, answer: bytes) -> None:
        """
        Act on an answer that isn't work: join again where the worker isn't known, end where another
        took its place.
        """
        if status == 409:
            raise Superseded(f"{self._files.worker}: {_shown(answer)}")
        if status == 404:
            self._incarnation = 0
            self._has_joined.clear()
            return
        raise Unreachable(f"status {status}: {_shown(answer)}")

    def _take(self, work: WorkAnswer) -> None:
        """
        Hand on what is new, once, and end what nobody wants any more.
        """
        self._revision = work.revision
        starts = [
            request for one in work.assignments for request in self._to_start(one, work.position)
        ]
        orders = [self._request(one) for one in work.orders if one.order_number not in self._orders]
        self._orders = {one.order_number: one for one in work.orders}
        if work.is_full:
            wanted = {AttemptKey(one.job_id, one.attempt) for one in work.assignments}
            orders += self._unwanted(wanted)
        self._done_with = {
            key: position for key, position in self._done_with.items() if position > work.position
        }
        if starts or orders:
            self._link.send(ToLauncher(start=starts, order=orders))
        self._news.set()

    def _request(self, order: Order) -> OrderRequest:
        is_stop = order.kind == "suspend"
        grace_s = STOP_GRACE_S if is_stop else self._settings.kill_grace_s
        return OrderRequest(
            order.order_number,
            OrderKind(order.kind),
            order.job_id,
            order.attempt,
            round(grace_s * 1000),
            order.signal,
            order.signals,
        )

    def _to_start(self, assignment: Assignment, position: int) -> list[StartRequest]:
        """
        Return the start of an assignment that is new here; an answer older than its end doesn't
        bring it back.
        """
        key = AttemptKey(assignment.job_id, assignment.attempt)
        if self._done_with.get(key, 0) > position:
            return []
        self._outbox.capabilities[key] = assignment.capability
        if key in self._attempts:
            return []
        try:
            request = start_request(assignment, self._files)
        except CannotRun as error:
            failed = Attempt(key.job_id, key.attempt, Phase.ENDED, failed=str(error)[:1000])
            self._attempts[key] = failed
            self._outbox.add_attempt(failed)
            return []
        self._attempts[key] = Attempt(key.job_id, key.attempt, Phase.INTENDED)
        return [request]

    def _unwanted(self, wanted: set[AttemptKey]) -> list[OrderRequest]:
        """
        Return the ends of attempts that the scheduler no longer knows, and drop those that have
        ended.
        """
        strange = [attempt for key, attempt in self._attempts.items() if key not in wanted]
        ended = [attempt.key for attempt in strange if attempt.phase is Phase.ENDED]
        self._forget(ended)
        running = [attempt for attempt in strange if attempt.is_alive]
        self._strays = {attempt.key for attempt in running}
        grace_ms = round(self._settings.kill_grace_s * 1000)
        return [
            OrderRequest(0, OrderKind.KILL, one.job_id, one.attempt, grace_ms) for one in running
        ]

    def _forget(self, keys: list[AttemptKey]) -> None:
        for key in keys:
            self._attempts.pop(key, None)
            self._outbox.drop(key)
        if keys:
            self._link.send(ToLauncher(forget=keys))

    # -------------------------------------------------------------------------------------- telling

    async def _keep_telling(self) -> None:
        """
        Tell what happened as soon as it can be told, all of it in one request.
        """
        retry_s = RETRY_MIN_S
        while True:
            await self._news.wait()
            await self._has_joined.wait()
            await self._wait_company()
            try:
                await self._tell()
                retry_s = RETRY_MIN_S
            except Unreachable as error:
                if retry_s == RETRY_MIN_S:
                    log("reports wait", why=str(error))
                await asyncio.sleep(retry_s)
                retry_s = min(RETRY_MAX_S, retry_s * 2)
                self._news.set()

    async def _wait_company(self) -> None:
        """
        Wait a moment for more to tell, unless the scheduler can act on what there is.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(START_DELAY_S):
                while not self._outbox.is_urgent:
                    self._news.clear()
                    await self._news.wait()
        self._news.clear()

    async def _tell(self) -> None:
        due = self._outbox.due()
        if not due:
            return
        body = ReportsRequest(
            incarnation=self._incarnation, reports=tuple(one.report for one in due)
        )
        status, answer = await self._telling.ask(
            "POST", self._route("reports"), body.model_dump_json().encode(), timeout_s=ANSWER_S
        )
        if status != 200:
            self._refused(status, answer)
            return
        taken = ReportsAnswer.model_validate_json(answer)
        for one, result in zip(due, taken.results, strict=True):
            if not result.ok:
                log("report ignored", report=one.report.kind, why=result.ignored)
        ended = self._outbox.told(due)
        self._done_with.update(dict.fromkeys(ended, taken.position))
        self._forget(ended)
        if not self._outbox.is_empty:
            self._news.set()

    async def _keep_measuring(self) -> None:
        """
        Measure again and again; only what changed is told.
        """
        await self._has_joined.wait()
        while True:
            usage = self._meter.measure(list(self._attempts.values()))
            if usage is not None:
                self._outbox.set_usage(usage)
                self._news.set()
            await asyncio.sleep(self._settings.measure_every_s)

    async def _leave(self) -> None:
        with suppress(Unreachable):
            if self._incarnation:
                body = LeaveRequest(incarnation=self._incarnation).model_dump_json().encode()
                await self._telling.ask("POST", self._route("leave"), body, timeout_s=2.0)


def _shown(answer: bytes) -> str:
    return answer[:300].decode(errors="replace")


def log(what: str, **fields: object) -> None:
    """
    Write one line of JSON to the agent's log, which is its standard error.
    """
    line = {"time_us": time.time_ns() // 1000, "what": what, **fields}
    print(json.dumps(line), file=sys.stderr, flush=True)  # noqa: T201 - standard error is the log


def run_agent(
    directory: Path,
    name: str,
    slots: int | None = None,
    *,
    lock: int | None = None,
    **settings: float,
) -> int:
    """
    Be the agent of a worker until told to end; return the exit status.

    Args:
        directory: The cluster's directory.
        name: The worker's name.
        slots: How many tasks it takes; None for one a processor.
        lock: The open lock of the worker, when whoever starts the agent holds it already.
        settings: kill_grace_s and measure_every_s.
    """
    files = WorkerFiles(directory.resolve(), check_name("name", name))
    files.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    held = locks.adopt(files.agent_lock, lock)
    if held is None:
        log("another agent of this worker is alive", worker=name)
        return 3
    try:
        return asyncio.run(Agent(files, AgentSettings(slots, **settings)).run())
    except ValidationError as error:
        log("the scheduler's answer isn't understood", why=str(error)[:500])
        return 1
    finally:
        os.close(held)


def main(arguments: list[str] | None = None) -> int:
    """
    Run the agent with arguments of the command line.
    """
    parser = argparse.ArgumentParser(prog="python -m tools.agent")
    parser.add_argument("--dir", required=True, type=Path, help="the cluster's directory")
    parser.add_argument("--name", required=True, help="the worker's name")
    parser.add_argument("--slots", type=int, help="how many tasks it takes (one a processor)")
    parser.add_argument("--kill-grace-s", type=float, default=KILL_GRACE_S)
    parser.add_argument("--measure-every-s", type=float, default=MEASURE_EVERY_S)
    parser.add_argument("--lock", type=int, help="the open lock, from whoever starts it")
    asked = parser.parse_args(arguments)
    return run_agent(
        asked.dir,
        asked.name,
        asked.slots,
        lock=asked.lock,
        kill_grace_s=asked.kill_grace_s,
        measure_every_s=asked.measure_every_s,
    )

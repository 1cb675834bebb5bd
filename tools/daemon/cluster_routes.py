"""
Routes of hosts, queues, the cluster itself, and of its workers.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from pydantic_core import from_json, to_json
from starlette.requests import Request as HttpRequest

from domain.commands import (
    CloseWorker,
    DrainWorker,
    JoinWorker,
    OpenWorker,
    SetQueue,
)
from replay.engine import Engine
from tools.agent.protocol import LeaveRequest, ReportsRequest
from tools.daemon import views
from tools.daemon.access import Caller
from tools.daemon.bodies import (
    CloseRequest,
    RecordRequest,
)
from tools.daemon.handlers import (
    POLL_WAIT_MAX_S,
    Api,
    Handler,
    name_of,
    number_of,
)
from tools.daemon.reports import Join, Leave, Reports
from tools.daemon.requests import (
    AtCommit,
    Command,
    Read,
    Reply,
)
from tools.daemon.room import room_view
from tools.daemon.work import WorkPoll

# -------------------------------------------------------------------------------- hosts and queues


async def list_hosts(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    List the hosts.
    """
    return await api.engine.ask(Read(lambda engine: {"hosts": views.hosts(engine.core.state)}))


async def close_host(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Close a host to new jobs.
    """
    asked = await api.parsed(http, CloseRequest)
    return await api.engine.ask(Command(CloseWorker(worker=name_of(http), why=asked.why), caller))


async def drain_host(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Let a host run dry.
    """
    asked = await api.parsed(http, CloseRequest)
    return await api.engine.ask(Command(DrainWorker(worker=name_of(http), why=asked.why), caller))


async def open_host(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Open a host to new jobs again.
    """
    return await api.engine.ask(Command(OpenWorker(worker=name_of(http)), caller))


async def list_queues(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    List the queues.
    """
    return await api.engine.ask(Read(lambda engine: {"queues": views.queues(engine.core.state)}))


def set_queue(to: str) -> Handler:
    """
    Return a handler that turns a switch of a queue.
    """

    async def handler(api: Api, http: HttpRequest, caller: Caller) -> Reply:
        command = SetQueue.model_validate({"queue": name_of(http), "to": to})
        return await api.engine.ask(Command(command, caller))

    handler.__doc__ = f"Make a queue {to}."
    return handler


# -------------------------------------------------------------------------------------- the cluster


async def status(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    Tell how the cluster is.
    """
    fixed = {
        "pid": os.getpid(),
        "started_us": api.started_us,
        "log_id": api.log.log_id,
        "room": room_view(api.log.space()),
        "snapshots": api.snapshotter.status(),
    }
    return await api.engine.ask(Read(lambda engine: {**fixed, **views.status(engine.core.state)}))


async def take_snapshot(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    Keep a snapshot of the whole state as it is now; the scheduler goes on meanwhile.
    """
    reply = await api.engine.ask(AtCommit(lambda engine: {"position": engine.note_snapshot()}))
    if reply.status != 200:
        return reply
    told = from_json(reply.body)
    path = await asyncio.wrap_future(api.snapshotter.asked(told["position"]))
    return Reply(200, to_json({**told, "file": str(path)}))


async def recording(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    Tell of the recording that is going on, or of the last one.
    """
    return await api.engine.ask(AtCommit(lambda _: api.recorder.status()))


async def start_recording(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    Begin to record what is committed from now on into a file; answered once the state as it is now
    is in it.
    """
    asked = await api.parsed(http, RecordRequest)
    reply = await api.engine.ask(AtCommit(lambda engine: {"position": engine.position}))
    if reply.status != 200:
        return reply
    position, file = from_json(reply.body)["position"], Path(asked.file)
    told = await asyncio.to_thread(api.recorder.start, position, file, asked.states_every)
    return Reply(200, to_json(told))


async def stop_recording(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    End the recording; answered once the file is whole.
    """

    def stop(engine: Engine) -> dict[str, object]:
        api.recorder.stop(engine.position)
        return {}

    reply = await api.engine.ask(AtCommit(stop))
    if reply.status != 200:
        return reply
    told = await asyncio.to_thread(api.recorder.wait_end)
    return Reply(200, to_json(told))


async def shutdown(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    End the scheduler in good order; workers and their jobs go on.
    """
    reply = await api.engine.ask(Read(lambda _: {"stopping": True}))
    api.shut_down()
    return reply


# ------------------------------------------------------------------------------------------ workers


async def join(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Let a worker join, or join again.
    """
    return await api.engine.ask(Join(await api.parsed(http, JoinWorker), caller))


async def reports(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Take reports of a worker; answered once they are safe on disk.
    """
    asked = await api.parsed(http, ReportsRequest)
    return await api.engine.ask(Reports(name_of(http), asked, caller, api.key))


async def work(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    Give a worker its work, as soon as it differs from the revision that it knows.
    """
    query = http.query_params
    wait_s = number_of(query.get("wait_s"), "wait_s", 0, int(POLL_WAIT_MAX_S), 0)
    wait_ns = round(min(wait_s, api.poll_wait_max_s) * 1e9)
    return await api.engine.ask(
        WorkPoll(
            name_of(http),
            number_of(query.get("incarnation"), "incarnation", 1, 2**31 - 1, 0),
            number_of(query.get("revision"), "revision", 0, 2**62, 0),
            time.monotonic_ns() + wait_ns,
        )
    )


async def leave(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    Let a worker leave in good order.
    """
    asked = await api.parsed(http, LeaveRequest)
    return await api.engine.ask(Leave(name_of(http), asked.incarnation))

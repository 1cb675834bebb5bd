"""
Routes of jobs: submitting, showing, changing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

from pydantic_core import to_json
from starlette.requests import Request as HttpRequest

from domain.commands import (
    HoldJob,
    KillJob,
    LiftHold,
    ModifyJob,
    MoveJob,
    RequeueJob,
    ResumeJob,
    RunJob,
    SignalJob,
    StopJob,
    SwitchJob,
)
from domain.errors import NotFound, Refused
from domain.event import Value
from domain.ids import job_of_stream, split_job_id
from domain.job_states import ENDED, JobState
from domain.jobs import ExitRules, JobSpec
from domain.signals import parse_signal
from projections.scheduling.records import JobRecord
from projections.scheduling.state import State
from projections.scheduling.trace import LINES_MAX, Level
from replay.engine import Engine
from tools.daemon import forgotten, views
from tools.daemon.access import Caller, check_runs_jobs_of
from tools.daemon.bodies import (
    ChosenJobs,
    KillRequest,
    ModifyRequest,
    RequeueRequest,
    RunRequest,
    SignalRequest,
    SwitchRequest,
    submit_command,
)
from tools.daemon.chosen import ALL_JOBS, EVERYBODY, check_chosen
from tools.daemon.handlers import (
    JOBS_MAX,
    Api,
    Handler,
    job_id_of,
    number_of,
)
from tools.daemon.job_filter import Filter
from tools.daemon.requests import (
    JobChange,
    Read,
    Reply,
    Submission,
)
from tools.tracing import LINES_CAP


async def submit(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Submit a job; it is answered once the job is safe on disk.
    """
    check_runs_jobs_of(caller)
    command = submit_command(
        await api.body(http), user=caller.user, default_queue=api.engine.default_queue
    )
    return await api.engine.ask(Submission(command, caller))


async def list_jobs(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    List jobs that haven't ended, or with all=1 also those that have, forgotten ones among them.
    """
    wanted = _filter(http)
    missing: list[int] = []

    fits: list[Callable[[JobRecord], bool]] = []

    def view(engine: Engine) -> dict[str, object]:
        state = engine.core.state
        found = views.jobs(state, wanted)
        if wanted.everything and len(found) < wanted.limit:
            old = forgotten.numbers(state)
            missing.extend(each for each in old if wanted.number in (0, each))
            fits.append(wanted.fits(state))
        if not found and not missing:
            wanted.check_names(state)
        return {"jobs": found}

    reply = await api.engine.ask(Read(view))
    if not missing:
        return reply
    # Rare and long: read outside the engine thread, then shown with what is known.
    archive = await _archive(api)
    records = await asyncio.to_thread(archive.jobs, missing, fits[0], wanted.limit)

    def whole(engine: Engine) -> dict[str, object]:
        state = engine.core.state
        known = views.jobs(state, wanted)
        old = [
            views.job_row(state, job)
            for job in reversed(records)
            if job.stream not in state.stored.jobs
        ]
        if not (old or known):
            wanted.check_names(state)
        rows = sorted([*old, *known], key=lambda row: split_job_id(str(row["job_id"])))
        return {"jobs": rows[-wanted.limit :]}

    return await api.engine.ask(Read(whole))


def _filter(http: HttpRequest) -> Filter:
    query = http.query_params
    states = tuple(filter(None, query.get("state", "").upper().split(",")))
    unknown = next((state for state in states if state not in JobState.__members__), None)
    if unknown is not None:
        raise Refused("state", f"must be one of {', '.join(JobState.__members__)}", unknown)
    limit = number_of(query.get("limit"), "limit", 1, JOBS_MAX, JOBS_MAX)
    everything = number_of(query.get("all"), "all", 0, 1, 0) == 1 or bool(ENDED & set(states))
    queue, user, host = (query.get(name, "") for name in ("queue", "user", "host"))
    whose = "" if user == EVERYBODY else user
    number = number_of(query.get("job"), "job", 1, 2**31 - 1, 0)
    name = query.get("name", "")
    return Filter(everything, states, queue, whose, host, number, limit, name)


async def _archive(api: Api) -> forgotten.Archive:
    """
    Return what reads ended jobs from the log, by the rules for exit values that hold now.
    """
    rules: list[Callable[[JobRecord], ExitRules]] = []

    def view(engine: Engine) -> dict[str, object]:
        rules.append(engine.core.state.exit_rules)
        return {}

    await api.engine.ask(Read(view))
    return forgotten.Archive(api.log, rules[0])


async def _shown(
    api: Api, job_id: str, show: Callable[[State, JobRecord], dict[str, object]]
) -> Reply:
    """
    Show a job, from the log when the state has forgotten it.
    """

    def view(engine: Engine) -> dict[str, object]:
        state = engine.core.state
        array = state.stored.arrays.get(split_job_id(job_id)[0])
        if array is not None and "[" not in job_id:
            raise Refused(
                "job_id",
                "is an array: name one of its elements",
                job_id,
                f"The first is {job_of_stream(array.elements[0])}.",
            )
        return show(state, state.job(job_id))

    reply = await api.engine.ask(Read(view))
    if reply.status != NotFound.http_status:
        return reply
    old = await asyncio.to_thread((await _archive(api)).job, job_id)
    return await api.engine.ask(Read(lambda engine: show(engine.core.state, old)))


async def one_job(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Show one job.
    """
    cluster = api.files.directory
    return await _shown(
        api, job_id_of(http), lambda state, job: views.job_detail(state, job, caller, cluster)
    )


async def why(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    Say why a job waits, or what became of it.
    """
    return await _shown(api, job_id_of(http), views.why)


async def trace(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Tell how a job was decided last, step by step.
    """
    query = http.query_params
    level = query.get("level", Level.FULL)
    if level not in tuple(Level):
        raise Refused("level", f"must be one of {', '.join(Level)}", level[:40])
    lines_max = number_of(query.get("lines"), "lines", 1, LINES_CAP, LINES_MAX)
    return await api.tracer.trace(job_id_of(http), level, lines_max, caller.user)


async def history(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Tell a job's story from the log, also of a job that the state has forgotten; the command only to
    whom it belongs.
    """
    # Imported when first asked for: SQLite and its tables are nothing to wait for at the start.
    from projections.audit.privacy import Viewer
    from replay.story import job_story

    job_id = job_id_of(http)
    names: list[str] = []

    def view(engine: Engine) -> dict[str, object]:
        names.extend(host.name for host in engine.core.state.hosts)
        return {}

    await api.engine.ask(Read(view))
    position = api.log.head()
    story = await asyncio.to_thread(
        job_story,
        api.log,
        job_id,
        names.__getitem__,
        viewer=Viewer(caller.user, is_privileged=caller.is_operator),
        now_us=api.engine.clock.now_us(),
    )
    return Reply(200, to_json(story.plain() | {"position": position}))


def change_job(kind: type[HoldJob | LiftHold]) -> Handler:
    """
    Return a handler of a command that names nothing but its job.
    """

    async def handler(api: Api, http: HttpRequest, caller: Caller) -> Reply:
        return await _changed(
            api, http, caller, kind.__name__, lambda job_id, _: kind(job_id=job_id)
        )

    handler.__doc__ = kind.__doc__
    return handler


def change_jobs(kind: type[StopJob | ResumeJob]) -> Handler:
    """
    Return the same of a command that job 0 may be given to.
    """

    async def handler(api: Api, http: HttpRequest, caller: Caller) -> Reply:
        chosen = await api.parsed(http, ChosenJobs)
        return await _all_changed(
            api, http, caller, chosen, (kind.__name__, lambda job_id, _: kind(job_id=job_id))
        )

    handler.__doc__ = kind.__doc__
    return handler


Make = Callable[[str, JobSpec], Value]


async def _changed(
    api: Api, http: HttpRequest, caller: Caller, what: str, make: Make
) -> Reply:
    return await api.engine.ask(JobChange(job_id_of(http), make, caller, what))


async def _all_changed(
    api: Api, http: HttpRequest, caller: Caller, chosen: ChosenJobs, change: tuple[str, Make]
) -> Reply:
    """
    Change one job, or where job 0 is named all that are chosen.
    """
    what, make = change
    job_id = str(http.path_params["job_id"])
    check_chosen(job_id, chosen)
    if job_id != ALL_JOBS:
        return await _changed(api, http, caller, what, make)
    return await api.engine.ask(JobChange(job_id, make, caller, what, chosen))


async def kill(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    End a job, pending or running; by force without waiting for its worker.
    """
    asked = await api.parsed(http, KillRequest)
    return await _all_changed(
        api, http, caller, asked,
        ("KillJob", lambda job_id, _: KillJob(job_id=job_id, force=asked.force)),
    )  # fmt: skip


async def signal(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Send a signal to the processes of a started job.
    """
    asked = await api.parsed(http, SignalRequest)
    name = parse_signal(asked.signal)
    return await _all_changed(
        api, http, caller, asked,
        ("SignalJob", lambda job_id, _: SignalJob(job_id=job_id, signal=name)),
    )  # fmt: skip


async def run(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Start a pending job on the hosts named, whatever else is against it.
    """
    hosts = (await api.parsed(http, RunRequest)).hosts
    return await _changed(
        api, http, caller, "RunJob", lambda job_id, _: RunJob(job_id=job_id, hosts=hosts)
    )


async def requeue(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Put a started job back to pending.
    """
    hold = (await api.parsed(http, RequeueRequest)).hold
    return await _changed(
        api, http, caller, "RequeueJob", lambda job_id, _: RequeueJob(job_id=job_id, hold=hold)
    )


async def switch(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Move a job to another queue.
    """
    queue = (await api.parsed(http, SwitchRequest)).queue
    return await _changed(
        api, http, caller, "SwitchJob", lambda job_id, _: SwitchJob(job_id=job_id, queue=queue)
    )


async def modify(api: Api, http: HttpRequest, caller: Caller) -> Reply:
    """
    Change what a job asks for; what isn't given stays as it is.
    """
    asked, named = await api.parsed(http, ModifyRequest), job_id_of(http)
    usual = api.engine.default_queue
    return await _changed(
        api,
        http,
        caller,
        "ModifyJob",
        lambda job_id, spec: ModifyJob(job_id=job_id, spec=asked.changed(spec, named, usual)),
    )


def move_job(to: Literal["top", "bottom"]) -> Handler:
    """
    Return a handler that puts a pending job before or behind its equals: an operator's all of its
    queue and priority, a user's those of their own.
    """

    async def handler(api: Api, http: HttpRequest, caller: Caller) -> Reply:
        return await _changed(
            api,
            http,
            caller,
            "MoveJob",
            lambda job_id, _: MoveJob(
                job_id=job_id, to=to, among="all" if caller.is_operator else "own"
            ),
        )

    handler.__doc__ = f"Put a pending job to the {to} of its equals."
    return handler

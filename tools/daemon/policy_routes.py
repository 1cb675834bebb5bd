"""
Routes of what is defined: queues, users, groups, projects, limits, profiles, resources and the
cluster's own settings; and of what of each limit is in use.
"""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request as HttpRequest

from domain.commands import (
    ConfigureWorker,
    DefineCluster,
    DefineGroup,
    DefineLimit,
    DefineProfile,
    DefineProject,
    DefineQueue,
    DefineResource,
    DefineUser,
    RemoveGroup,
    RemoveLimit,
    RemoveProfile,
    RemoveProject,
    RemoveQueue,
    RemoveUser,
)
from domain.errors import Refused
from domain.event import Value
from projections.scheduling.budgets import PLENTY
from projections.scheduling.state import State
from replay.engine import Engine
from tools.daemon.access import Caller
from tools.daemon.attempted import Attempted, subject_in
from tools.daemon.handlers import Api, Handler, parsed
from tools.daemon.requests import Command, Read, Refusal, Reply

DEFINE: Final[dict[str, type[Value]]] = {
    "cluster": DefineCluster,
    "queue": DefineQueue,
    "resource": DefineResource,
    "user": DefineUser,
    "group": DefineGroup,
    "project": DefineProject,
    "limit": DefineLimit,
    "profile": DefineProfile,
    "host": ConfigureWorker,
}
REMOVE: Final[dict[str, type[Value]]] = {
    "queue": RemoveQueue,
    "user": RemoveUser,
    "group": RemoveGroup,
    "project": RemoveProject,
    "limit": RemoveLimit,
    "profile": RemoveProfile,
}
"""Kind of what is defined -> the command that is the body."""


_INSIDE: Final = ("spec", "descriptor", "settings")
"""Fields of commands that hold a whole definition."""


def change(command: type[Value], kind: str) -> Handler:
    """
    Return a handler that carries out the command in the body.
    """
    # People say "priority", as the scheduler's own refusals do, not "spec.priority".
    inside = next((name for name in _INSIDE if name in command.model_fields), "")

    async def handler(api: Api, http: HttpRequest, caller: Caller) -> Reply:
        body = await api.body(http)
        try:
            asked = parsed(body, command, inside=inside)
        except Refused as error:
            wanted = Attempted(what=command.__name__, subject=subject_in(body, kind))
            return await api.engine.ask(Refusal(wanted, caller, error))
        return await api.engine.ask(Command(asked, caller))

    handler.__doc__ = (command.__doc__ or "").strip().partition("\n")[0]
    return handler


async def list_definitions(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    Give everything that is defined, as it was said.
    """
    return await api.engine.ask(Read(lambda engine: definitions(engine.core.state)))


def definitions(state: State) -> dict[str, object]:
    """
    Return every definition, by kind and name.
    """
    stored = state.stored
    found: dict[str, dict[str, Any]] = {
        "queue": {name: queue.spec for name, queue in stored.queues.items()},
        "resource": dict(stored.resources),
        "user": dict(stored.users),
        "group": dict(stored.groups),
        "project": dict(stored.projects),
        "limit": dict(stored.limits),
        "profile": dict(stored.profiles),
        "host": {name: worker.settings for name, worker in stored.workers.items()},
    }
    plain: dict[str, object] = {
        kind: {name: spec.model_dump(mode="json") for name, spec in specs.items()}
        for kind, specs in found.items()
    }
    plain["cluster"] = stored.cluster.model_dump(mode="json") if stored.cluster else None
    return {"definitions": plain}


async def list_limits(api: Api, http: HttpRequest, caller: Caller) -> Reply:  # noqa: ARG001
    """
    List what of each limit is in use, of queues, users, groups and projects too.
    """

    def view(engine: Engine) -> dict[str, object]:
        state = engine.core.state
        rows = limit_rows(state)
        return {"limits": rows, "unused": unused_rows(state, rows)}

    return await api.engine.ask(Read(view))


def unused_rows(state: State, used: list[dict[str, object]]) -> list[dict[str, object]]:
    """
    Return each bound of which nothing is in use, in order of the names: whose budgets it has, and
    how much may be in use.
    """
    known = {(row["limit"], row["resource"]) for row in used}
    rules = [rule for rule in state.limits.rules.every if (rule.name, rule.resource) not in known]
    return [
        {
            "limit": rule.name,
            "resource": rule.resource,
            "each": [name for name, scope in rule.scopes if scope.is_each],
            "is_by_host": rule.hosts is not None,
            "most_milli": rule.most_milli,
            "basis": rule.basis.value,
        }
        for rule in sorted(rules, key=lambda rule: (rule.name, rule.resource))
    ]


def limit_rows(state: State) -> list[dict[str, object]]:
    """
    Return each budget of which something is in use, on each host where each has its own.
    """
    budgets = {
        budget.key: budget
        for job in state.live.values()
        for budget in state.limits.budgets_of(job.spec)
    }
    rows: list[dict[str, object]] = []
    for key, used in state.limits.in_use().items():
        budget = budgets.get(key)
        if budget is None:
            continue
        most = state.limits.headroom(budget, is_empty=True)
        for number, milli in enumerate(used):
            is_whole = isinstance(most, int)
            bound = most if isinstance(most, int) else int(most[number])
            if milli:
                rows.append(
                    {
                        "limit": key[0],
                        "resource": key[1],
                        "budget": key[2],
                        "host": "" if is_whole else state.hosts[number].name,
                        "used_milli": milli,
                        "most_milli": None if bound == PLENTY else bound,
                    }
                )
    return rows

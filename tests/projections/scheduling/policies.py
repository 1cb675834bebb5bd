"""
Define limits, groups, users, projects and profiles in few words.
"""

from __future__ import annotations

from typing import Any

from domain.commands import DefineGroup, DefineLimit, DefineProfile, DefineProject, DefineQueue
from domain.groups import GroupSpec
from domain.job_states import JobState
from domain.limits import DIMENSIONS, LimitAmount, LimitSpec, Scope
from domain.name_lists import parse_names
from domain.profiles import ProfileSpec
from domain.projects import ProjectSpec
from domain.queues import QueueLimits, QueueSpec
from projections.scheduling.state import State
from tests.scenario import Scenario


def scope(text: str) -> Scope:
    """
    Return a scope: "u1 u2", or "each all ~u3".
    """
    is_each = text.startswith("each ")
    return Scope(names=parse_names(text.removeprefix("each ")), is_each=is_each)


def a_limit(**fields: Any) -> LimitSpec:
    """
    Return a limit: users="each all", hosts="h1", slots=2, mem=4000 (whole units of anything).
    """
    scopes = {name: scope(fields.pop(name)) for name in DIMENSIONS if name in fields}
    rest = {name: fields.pop(name) for name in ("windows",) if name in fields}
    amounts = tuple(
        LimitAmount(resource=name, milli=number * 1000) for name, number in fields.items()
    )
    return LimitSpec(amounts=amounts, **scopes, **rest)


def limit(scenario: Scenario, name: str, **fields: Any) -> None:
    """
    Define a limit.
    """
    scenario.command(DefineLimit(limit=name, spec=a_limit(**fields)), actor="root")


def group(scenario: Scenario, name: str, members: str, **fields: Any) -> None:
    """
    Define a user group: "alice bob".
    """
    spec = GroupSpec(members=tuple(members.split()), **fields)
    scenario.command(DefineGroup(group=name, spec=spec), actor="root")


def project(scenario: Scenario, path: str, users: str = "", groups: str = "", **more: Any) -> None:
    """
    Define a project; whole numbers are quotas: slots=4.
    """
    quotas = tuple(
        LimitAmount(resource=name, milli=more.pop(name) * 1000)
        for name in ("jobs", "slots", "mem", "lic")
        if name in more
    )
    spec = ProjectSpec(
        users=tuple(users.split()), groups=tuple(groups.split()), quotas=quotas, **more
    )
    scenario.command(DefineProject(project=path, spec=spec), actor="root")


def profile(scenario: Scenario, name: str, **fields: Any) -> None:
    """
    Define an application profile.
    """
    scenario.command(DefineProfile(profile=name, spec=ProfileSpec(**fields)), actor="root")


def queue(scenario: Scenario, name: str = "normal", **fields: Any) -> None:
    """
    Define a queue; fields of its limits may be given as they are.
    """
    limits = {each: fields.pop(each) for each in QueueLimits.model_fields if each in fields}
    for each in ("hosts", "users"):
        if each in fields:
            fields[each] = parse_names(fields[each])
    spec = QueueSpec(**{"priority": 30, **fields}, limits=QueueLimits(**limits) if limits else None)
    scenario.command(DefineQueue(queue=name, spec=spec), actor="root")


def asked_for(state: State) -> dict[str, str]:
    """
    Return what each pending job asks for, in canonical words, as the core has it in mind.
    """
    pending = (job for job in state.stored.jobs.values() if job.state is JobState.PEND)
    return {job.stream: state.fingerprint_of(job) for job in pending}

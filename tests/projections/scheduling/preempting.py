"""
Define queues that preempt, and see who is stopped.
"""

from __future__ import annotations

from typing import Any

from domain.commands import (
    DefineQueue,
    DefineResource,
)
from domain.name_lists import parse_names
from domain.queues import QueueSpec
from domain.resources import ResourceDescriptor, ResourceScope, SharedTotal
from projections.scheduling.core import Core
from tests.builders import some_settings
from tests.projections.scheduling.policies import limit
from tests.scenario import Scenario


def queues(scenario: Scenario, *texts: str, **fields: Any) -> None:
    """
    Define queues: "hi 90 >lo mid" preempts lo and mid, "lo 10 <all" is preemptible by all.
    """
    for text in texts:
        name, priority, *rest = text.split()
        hunted = " ".join(rest).partition("<")[0].strip().removeprefix(">")
        by = " ".join(rest).partition("<")[2].strip()
        spec = QueueSpec(
            priority=int(priority),
            preemptible_queues=parse_names(hunted) if hunted else None,
            preemptible_by=parse_names(by) if by else None,
            **fields,
        )
        scenario.command(DefineQueue(queue=name, spec=spec))


def running(scenario: Scenario, *texts: str) -> None:
    """
    Submit jobs, each in a session of its own, and have them started.
    """
    for text in texts:
        scenario.jobs(text)
        scenario.session()
        name = text.split()[0]
        assert scenario.states()[name] == "RUN", text
        scenario.start(name)
        scenario.pass_time(1)


def stops(scenario: Scenario) -> list[str]:
    """
    Hold a session; return whose stop it orders.
    """
    return [words.split()[0] for words in scenario.session() if "stop ordered" in words]


def licence(scenario: Scenario, *, total: int, release: bool) -> None:
    """
    Define a licence that all hosts share.
    """
    scenario.command(
        DefineResource(
            descriptor=ResourceDescriptor(
                name="lic",
                scope=ResourceScope.SHARED,
                totals=(SharedTotal(total_milli=total * 1000),),
                is_consumable=True,
                release_on_suspend=release,
            )
        )
    )


def again(scenario: Scenario) -> Core:
    """
    Return a core restored from a scenario's snapshot.
    """
    core = scenario.core
    return Core.restore(core.snapshot(), core.plugins, plain=scenario.state.is_plain)


def crowded() -> Scenario:
    """
    Return a full cluster whose jobs may be stopped for those of a better queue.
    """
    scenario = Scenario(some_settings())
    queues(scenario, "hi 90 >lo", "lo 10 <hi")
    scenario.hosts("h1 slots=2 mem_mb=400", "h2 slots=2 mem_mb=400")
    licence(scenario, total=2, release=True)
    limit(scenario, "many", slots=9)
    running(scenario, "X queue=lo mem_mb=50", "Y queue=lo mem_mb=50", "Z queue=lo mem_mb=50")
    running(scenario, "V queue=lo mem_mb=50")
    return scenario

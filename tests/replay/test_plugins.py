"""
Plug-ins of other packages are found by their entry points, and refused by name when they don't fit.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from domain.errors import Refused
from projections.scheduling.placement.allocators import Fill
from replay.plugins import ALLOCATORS, PICKERS, found_plugins
from tests.builders import a_job, some_settings
from tests.literal import LiteralFcfs
from tests.scenario import Scenario


class ByEstimate(LiteralFcfs):
    """
    Take jobs by their run time estimate.
    """

    name = "by_estimate"

    def _key(self, job: object) -> tuple[int, ...]:
        estimate = job.spec.run_estimate_us or 0  # type: ignore[attr-defined]
        return (estimate, *super()._key(job))  # type: ignore[arg-type]


def point(name: str, value: str, group: str = PICKERS) -> EntryPoint:
    return EntryPoint(name, value, group)


def test_a_picker_of_another_package_decides_once_the_cluster_names_it() -> None:
    """
    It is chosen by name in the cluster's settings like any other.
    """
    mine = point("by_estimate", f"{__name__}:ByEstimate")
    plugins = found_plugins([mine], [])
    scenario = Scenario(some_settings(picker="by_estimate"), plugins=plugins)
    scenario.hosts("h1 slots=1")
    for name, estimate_us in (("long", 9_000_000), ("short", 1_000_000)):
        spec = a_job(name=name).spec.model_copy(update={"run_estimate_us": estimate_us})
        scenario.submit(name, run_estimate_us=spec.run_estimate_us)

    assert "short dispatched: h1*1" == scenario.session()[0]


def test_an_unknown_picker_is_refused_when_it_is_configured() -> None:
    """
    Not when it is first used.
    """
    with pytest.raises(Refused) as refused:
        Scenario(some_settings(picker="by_estimate"))

    assert refused.value.field == "picker"


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        (point("builtin_fcfs", f"{__name__}:ByEstimate"), "each name once"),
        (point("other", f"{__name__}:ByEstimate"), "its own name"),
        (point("gone", "no_such_package:Picker"), "loadable"),
    ],
)
def test_a_plugin_that_does_not_fit_is_refused_by_name(wrong: EntryPoint, rule: str) -> None:
    """
    One clear error that names the plug-in and the rule.
    """
    with pytest.raises(Refused) as refused:
        found_plugins([wrong], [])

    assert rule in refused.value.rule
    assert wrong.name in str(refused.value.value)


def test_an_allocator_may_be_a_class_or_an_instance() -> None:
    """
    Either way it is found under its own name.
    """
    with pytest.raises(Refused):
        found_plugins([], [EntryPoint("fill", f"{Fill.__module__}:Fill", ALLOCATORS)])

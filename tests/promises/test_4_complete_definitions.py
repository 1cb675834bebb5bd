"""
Promise 4: whatever is defined or submitted is in the state with every field, and in the lines of an
export; found by introspection, so that a new field takes part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.allocations import Allocation
from domain.envelope import Stamped
from domain.event import Event, event_classes
from domain.events.groups import GroupDefined
from domain.events.jobs import JobDispatched, JobModified, JobSubmitted
from domain.events.limits import LimitDefined
from domain.events.profiles import ProfileDefined
from domain.events.projects import ProjectDefined
from domain.events.queues import QueueDefined
from domain.events.resources import ResourceDefined
from domain.events.scheduler import ClusterDefined
from domain.events.users import UserDefined
from domain.events.workers import WorkerConfigured, WorkerJoined
from domain.jobs import JobSpec
from projections.scheduling.apply import APPLY
from projections.scheduling.records import StoredState
from store.codec import encode_all
from store.transfer import event_line, read_event_line
from tests.scenario import Scenario
from tests.strategies import instances

BIG = settings(max_examples=10, suppress_health_check=list(HealthCheck))
OURS = {code: cls for code, cls in event_classes().items() if cls.__module__.startswith("domain.")}

pytestmark = pytest.mark.slow

Stored = Callable[[StoredState, Any], Any]
DEFINED: dict[type[Event], tuple[str, str, Stored]] = {
    QueueDefined: ("queue:x", "spec", lambda stored, _: stored.queues["x"].spec),
    UserDefined: ("user:x", "spec", lambda stored, _: stored.users["x"]),
    GroupDefined: ("group:x", "spec", lambda stored, _: stored.groups["x"]),
    ProjectDefined: ("project:x", "spec", lambda stored, _: stored.projects["x"]),
    LimitDefined: ("limit:x", "spec", lambda stored, _: stored.limits["x"]),
    ProfileDefined: ("profile:x", "spec", lambda stored, _: stored.profiles["x"]),
    ResourceDefined: (
        "resource:x",
        "descriptor",
        lambda stored, event: stored.resources[event.descriptor.name],
    ),
    ClusterDefined: ("cluster", "settings", lambda stored, _: stored.cluster),
    WorkerConfigured: ("worker:h1", "settings", lambda stored, _: stored.workers["h1"].settings),
}
"""Event -> its stream, the field that it brings, and where the state has it."""

FAMILIES = {"spec", "settings", "descriptor"}


def begun() -> Scenario:
    """
    Return a scenario with a host and a waiting job.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=4")
    scenario.jobs("A")
    return scenario


def applied(scenario: Scenario, stream: str, event: Event) -> StoredState:
    """
    Have one event folded, as it comes out of a log.
    """
    stamped = Stamped(stream, 1, scenario.now_us, "root", "", event, ends_step=True)
    APPLY[type(event)](scenario.state, stamped, event)
    return scenario.state.stored


@pytest.mark.parametrize("kind", DEFINED)
def test_a_definition_is_in_the_state_with_every_field(kind: type[Event]) -> None:
    """
    What an administrator defines is what is stored, whatever else the core works out from it.
    """
    stream, field, stored_of = DEFINED[kind]

    @BIG
    @given(instances(kind))
    def check(event: Any) -> None:
        stored = applied(begun(), stream, event)

        assert getattr(event, field) == stored_of(stored, event)

    check()


def test_every_event_that_brings_a_definition_takes_part() -> None:
    """
    A new kind of entity without its place above is a failing test.
    """
    bring = {cls for cls in OURS.values() if FAMILIES & set(cls.model_fields)}

    assert bring == {*DEFINED, JobSubmitted, JobModified}


@BIG
@given(instances(WorkerJoined))
def test_a_worker_that_joins_is_in_the_state_with_every_field(event: WorkerJoined) -> None:
    """
    But for its number, under which it is found.
    """
    event = event.model_copy(update={"host_number": 1})
    record = applied(begun(), "worker:h2", event).workers["h2"]
    names = {"host_number": "number"}

    for name in type(event).model_fields:
        assert getattr(event, name) == getattr(record, names.get(name, name)), name


def that_can_be(spec: JobSpec) -> JobSpec:
    """
    Return a drawn job as one that a submission could bring.
    """
    asked = spec.requirement
    if asked is not None:
        one = asked.compounds[0].primaries[0].model_copy(update={"tasks": None})
        compound = asked.compounds[0].model_copy(update={"primaries": (one,)})
        asked = asked.model_copy(update={"compounds": (compound,)})
    given = {"queue": "normal", "array": None, "profile": "", "requirement": asked}
    return spec.model_copy(update=given)


@BIG
@given(st.data())
def test_a_job_is_in_the_state_with_every_field(data: st.DataObject) -> None:
    """
    Submitted or modified: queue and array are given, since they must be there; a requirement that
    is drawn has one primary without a count, since others would contradict the tasks.
    """
    scenario = begun()
    event = data.draw(instances(JobSubmitted))
    spec = that_can_be(event.spec)
    submitted = event.model_copy(update={"spec": spec})
    job = applied(scenario, "job:0000000007", submitted).jobs["job:0000000007"]

    assert (spec, event.key) == (job.spec, job.key)
    if event.key:
        assert event.digest == scenario.state.stored.keys[event.key].digest

    other = that_can_be(data.draw(instances(JobModified)).spec)
    applied(scenario, "job:0000000007", JobModified(spec=other))

    assert other == job.spec


@pytest.mark.parametrize("field", [*Allocation.model_fields])
def test_an_allocation_is_in_the_state_with_every_field(field: str) -> None:
    """
    What a decision gave is what the job has.
    """
    scenario = begun()
    scenario.session()
    decided = [one.event for one in scenario.log if isinstance(one.event, JobDispatched)]

    assert getattr(decided[0].allocation, field) == getattr(scenario.job("A").allocation, field)


@pytest.mark.parametrize("code", OURS)
def test_every_field_of_every_event_survives_an_export(code: str) -> None:
    """
    Row -> line -> row is the identity, byte for byte, for every event with any values.
    """

    @BIG
    @given(instances(OURS[code]), st.integers(0, 2**62), st.text(max_size=9), st.booleans())
    def check(event: Event, time_us: int, actor: str, ends_step: bool) -> None:
        stamped = Stamped("x:1", 1, time_us, actor, "session 1", event, ends_step)
        stream, version, topic, state = next(iter(encode_all([stamped])))
        line = event_line((1, stream, version, topic, state), epoch=1, ends_commit=True)

        recorded = read_event_line(line, position=1)

        assert (stream, version, topic, state) == tuple(recorded.row)

    check()

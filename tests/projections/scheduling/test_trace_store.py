"""
Where traces are kept: within a bound, the newest always, what was dropped is known.
"""

from __future__ import annotations

import sys

import pytest

from projections.scheduling.trace import TraceSettings
from projections.scheduling.trace_plain import packed, plain
from projections.scheduling.trace_session import Tracing
from projections.scheduling.trace_store import (
    BYTES_MAX,
    DROPPED_BYTES,
    ENTRY_BYTES,
    TraceStore,
)
from tests.builders import a_host
from tests.projections.scheduling.policies import queue
from tests.scenario import Scenario


@pytest.fixture
def scenario():
    return Scenario()


def stored(scenario, names):
    scenario.hosts("h1 slots=99")
    store = TraceStore()
    scenario.core.tracing = Tracing(TraceSettings(), store)
    scenario.jobs(*(f"{name} tasks=1" for name in names))
    scenario.session()
    return [store.get(scenario.ids[name]) for name in names]


def test_the_oldest_traces_go_first_and_are_said_to_be_dropped(scenario):
    """
    Within the bound as many as fit; the newest stays whatever its size.
    """
    traces = stored(scenario, "ABCDEF")
    size = len(packed(traces[0])) + ENTRY_BYTES
    bound = size * 5
    store = TraceStore(bound)
    for trace in traces:
        store.put(trace)
        assert store.bytes <= bound

    kept = list(store.job_ids())
    assert ["3", "4", "5", "6"] == kept
    assert [1, 1, None] == [store.dropped_in(str(number)) for number in (1, 2, 6)]
    assert store.get("1") is None

    tiny = TraceStore(10)
    for trace in traces[:2]:
        tiny.put(trace)
    assert ["2"] == list(tiny.job_ids())
    assert traces[1] == tiny.get("2")


def test_names_of_dropped_ones_are_bounded_too(scenario):
    """
    They may fill an eighth; of those that are forgotten the count stays.
    """
    trace = stored(scenario, "A")[0]
    store = TraceStore(64 * DROPPED_BYTES)
    for number in range(200):
        trace.job_id = str(number)
        store.put(trace)

    assert store.bytes <= 64 * DROPPED_BYTES
    assert 200 == len(store) + store.dropped_count
    assert store.dropped_count - store.forgotten_count <= 8


def test_a_trace_reads_as_it_was_written(scenario):
    """
    Every part of it, with what is left out of the text put back.
    """
    queue(scenario, "other", slots=1)
    (trace,) = stored(scenario, "A")
    told_of_it = plain(trace)

    assert {"job_id", "session", "level", "picker", "place", "keys", "request", "lines",
            "outcome"} == set(told_of_it)  # fmt: skip
    assert {"kind": "host", "outcome": "taken", "host": "h1", "hosts": 1} in told_of_it["lines"]


@pytest.mark.slow
def test_ten_thousand_decisions_of_a_thousand_hosts_stay_within_the_bound(scenario):
    """
    Jobs that differ, each tried on every host: what is kept never exceeds 64 MiB, measured on the
    objects themselves, and the newest is always there.
    """
    for number in range(1_000):
        memory_mb = 1_000 + number // 25
        scenario.command(a_host(f"h{number:04}", 2, memory_mb), actor="")
    store = TraceStore()
    scenario.core.tracing = Tracing(TraceSettings(), store)
    for begin in range(0, 10_000, 1_000):
        for number in range(begin, begin + 1_000):
            scenario.submit(f"J{number}", resreq=(f"rusage[mem={1_101 + number}]",))
        scenario.session()

        newest = store.get(str(begin + 1_000))
        assert newest is not None
        assert newest.outcome.host_count == 1_000
        assert held(store) <= store.bytes <= BYTES_MAX

    assert 10_000 == len(store) + store.dropped_count
    assert store.dropped_count > 1_000
    oldest = next(store.job_ids())
    assert [str(number) for number in range(int(oldest), 10_001)] == list(store.job_ids())
    assert store.dropped_in(str(int(oldest) - 1)) is not None


def held(store):
    """
    Return how many bytes the objects of a store take.
    """
    return sum(
        sys.getsizeof(name) + sys.getsizeof(entry) + sys.getsizeof(entry.text)
        for name, entry in store._entries.items()
    ) + sum(map(sys.getsizeof, store._dropped))

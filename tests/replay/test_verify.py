"""
Re-deciding a log finds nothing in a sound one, and the first wrong decision in any other.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.event import Event
from projections.scheduling.core import Core
from projections.scheduling.placement.allocators import BUILT_IN, ParJob
from projections.scheduling.placement.plugins import Picked, View
from projections.scheduling.plugins import Plugins
from replay.at import Ladder
from replay.cluster_file import cluster_of_size
from replay.simulation import Simulation
from replay.simulation_settings import simulation_settings
from replay.verify import verify
from replay.workloads.swf import read_swf
from store.log import EventLog
from tests.literal import LiteralFcfs
from tests.replay.logs import ListLog

TRACE = "".join(
    f"{number} {number} -1 {20 + number % 7} {1 + number % 5} -1 -1 {1 + number % 5}"
    " 100 -1 1 1 1 -1 1 -1 -1 -1\n"
    for number in range(1, 60)
)


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    """
    Return the log of a small simulation with plenty of waiting.
    """
    (tmp_path / "trace.swf").write_text(TRACE)
    workload = read_swf(tmp_path / "trace.swf")
    settings = simulation_settings("builtin_fcfs", ("parjob", "fill"))
    with EventLog.create(tmp_path / "log", log_id="sim-test") as written:
        Simulation(workload, cluster_of_size(3, 2), written, settings=settings).run()
    return EventLog.open(tmp_path / "log", writable=False)


def test_a_sound_log_gives_no_difference(log: EventLog) -> None:
    """
    Same log, same decisions.
    """
    with log:
        result = verify(log)

        assert log.head() == result.events
    assert result.is_same
    assert result.sessions > 20
    assert result.decisions > 59


class _LargestFirstIsForgotten(ParJob):  # type: ignore[misc] - a sabotage of a final class
    """
    Take the last hosts instead of the first.
    """

    def find(self, tasks: int, view: View, total: int) -> Picked | None:
        picked = super().find(tasks, view, total)
        return None if picked is None else [(hosts[::-1].copy(), each) for hosts, each in picked]


def sabotaged(allocator: bool) -> Plugins:
    """
    Return plug-ins with one rule flipped.
    """
    if allocator:
        kept = {plugin.name: plugin for plugin in BUILT_IN}
        return Plugins(allocators={**kept, "parjob": _LargestFirstIsForgotten()})

    class LastComeFirst(LiteralFcfs):
        def _key(self, job: object) -> tuple[int, ...]:
            return tuple(-part for part in super()._key(job))  # type: ignore[arg-type]

    return Plugins(pickers={"builtin_fcfs": LastComeFirst, "strict_fcfs": LastComeFirst})


@pytest.mark.parametrize("allocator", [True, False])
def test_a_core_with_one_rule_flipped_is_caught(log: EventLog, allocator: bool) -> None:
    """
    The harness's sabotage: another order of jobs, or of hosts, is found at a position with both
    decisions.
    """
    with log:
        result = verify(log, plugins=sabotaged(allocator))
        first = result.differences[0]
        recorded = next(iter(log.read(first.position - 1, first.position)))

    assert not result.is_same
    assert first.recorded != first.re_decided
    assert first.stream == recorded.stream
    assert recorded.event.TYPE_CODE in first.recorded


def test_a_decision_that_was_altered_is_found_at_its_position(log: EventLog) -> None:
    """
    Of a log whose checksums are right but in which one dispatch names another host, the position is
    told.
    """
    with log:
        envelopes = list(log.read())
    place = next(
        index for index, found in enumerate(envelopes) if found.event.TYPE_CODE == "job.dispatched"
    )
    event: Event = envelopes[place].event
    allocation = event.allocation  # type: ignore[attr-defined]
    run = allocation.runs[0].model_copy(update={"first": 2})
    moved = event.model_copy(update={"allocation": allocation.model_copy(update={"runs": (run,)})})
    envelopes[place] = envelopes[place]._replace(event=moved)

    result = verify(ListLog(envelope.stamped() for envelope in envelopes))

    assert envelopes[place].position == result.differences[0].position


def test_verify_goes_on_from_the_recorded_decisions(log: EventLog) -> None:
    """
    One wrong decision isn't reported as thousands: after it the log holds.
    """
    calls = 0

    class OnceWrong(Core):
        def session(self, now_us: int) -> list[object]:  # type: ignore[override]
            nonlocal calls
            calls += 1
            made = super().session(now_us)
            return made[:-1] if calls == 5 else made

    with log:
        result = verify(log, make_core=OnceWrong)  # type: ignore[arg-type]

    assert result.difference_count == 1


def test_a_span_is_decided_again_by_itself(log: EventLog) -> None:
    """
    From a snapshot in the middle the same decisions follow, and only the span's are counted.
    """
    with log:
        head = log.head()
        whole = verify(log)
        middle = next(one.position for one in log.read(head // 2) if one.ends_step)
        first = verify(log, upto=middle)
        start = Ladder(log).start
        second = verify(log, after=middle, start=start)
        without_start = verify(log, after=middle)

        assert first.is_same
        assert second.is_same
        assert second == without_start
        assert (middle, head - middle) == (first.events, second.events)
        assert whole.decisions == first.decisions + second.decisions


def test_a_difference_outside_the_span_is_not_its_business(log: EventLog) -> None:
    """
    Where to look can be narrowed to where something is wrong.
    """
    with log:
        plugins = sabotaged(allocator=True)
        everywhere = verify(log, plugins=plugins)
        position = everywhere.differences[0].position

        assert verify(log, plugins=plugins, upto=position - 1).is_same
        found = verify(
            log, plugins=plugins, after=position - 1, start=Ladder(log, plugins=plugins).start
        )
        assert everywhere.differences == found.differences


def _where_several_were_made(log: EventLog) -> int:
    """
    Return the index of the last event of a session with two decisions or more.
    """
    envelopes = list(log.read())
    return next(
        place
        for place, one in enumerate(envelopes)
        if one.ends_step and place > 1
        and envelopes[place - 2].cause == envelopes[place - 1].cause == one.cause != ""
    )  # fmt: skip


def test_a_decision_that_was_not_recorded_is_named(log: EventLog) -> None:
    """
    The last decision of a session is taken out of the log: it is told, and not the one before it,
    which only ends its step now.
    """
    with log:
        place = _where_several_were_made(log)
        stamped = [one.stamped() for one in log.read()][: place + 1]
    gone = stamped.pop()
    stamped[-1] = stamped[-1]._replace(ends_step=True)

    first = verify(ListLog(stamped)).differences[0]

    assert (place, gone.stream, "") == (first.position, first.stream, first.recorded)
    assert first.re_decided.startswith(f"{gone.event.TYPE_CODE} in {gone.stream}")


def test_a_decision_that_is_no_longer_made_is_named(log: EventLog) -> None:
    """
    The core makes the last decision of a session no more.
    """
    with log:
        place = _where_several_were_made(log)
        stamped = [one.stamped() for one in log.read()][: place + 1]
    lost = stamped[-1]

    class Lacks(Core):
        def session(self, now_us: int) -> list[object]:  # type: ignore[override]
            made = super().session(now_us)
            if made[-1] == lost:
                made = [*made[:-2], made[-2]._replace(ends_step=True)]
            return made  # type: ignore[return-value]

    first = verify(ListLog(stamped), make_core=Lacks).differences[0]  # type: ignore[arg-type]

    assert (place + 1, lost.stream, "") == (first.position, first.stream, first.re_decided)
    assert first.recorded.startswith(f"{lost.event.TYPE_CODE} in {lost.stream}")


def test_what_differs_in_a_stamp_alone_is_said(log: EventLog) -> None:
    """
    Two sides that read the same would say nothing.
    """
    with log:
        place = _where_several_were_made(log)
        stamped = [one.stamped() for one in log.read()][: place + 1]
    stamped[-1] = stamped[-1]._replace(actor="mallory")

    first = verify(ListLog(stamped)).differences[0]

    assert first.recorded.endswith(", actor 'mallory'")
    assert first.re_decided.endswith(", actor ''")

"""
Why a job got the hosts that it got: the recorded decision, taken again by the same core in the
state of that very moment.

What is told besides the record (which hosts were looked at, in which order, what room they had) is
told only when the decision comes out the same: else it would be a guess.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

from domain.allocations import Allocation
from domain.envelope import Envelope
from domain.events.jobs import JobDispatched
from domain.ids import job_of_stream, job_stream
from domain.reasons import PendReason
from projections.scheduling.core import Core
from projections.scheduling.forcing import place_forced
from projections.scheduling.own_view import ground_of, is_as_all_see_it, relief_for
from projections.scheduling.placement.eligible import Eligible, eligible_of
from projections.scheduling.placement.ground import Ground
from projections.scheduling.placement.runner import Placed, PlacementRunner
from projections.scheduling.placement.shortages import Check, checks_of
from projections.scheduling.records import JobRecord
from projections.scheduling.request import Part, Request
from projections.scheduling.state import State
from replay.at import Ladder

AS_JOINED: Final = "in the order in which they joined"
BY_WISH: Final = "those it prefers first"


@final
@dataclass(frozen=True, slots=True)
class Considered:
    """
    Hold one host that was looked at: for how many tasks it had room, how many it got, and why it
    had room for none ("" when it had).
    """

    host: str
    room_tasks: int
    taken_tasks: int
    short_of: str


@final
@dataclass(frozen=True, slots=True)
class Unmatched:
    """
    Hold how many hosts weren't looked at for one cause.
    """

    code: str
    text: str
    host_count: int


@final
@dataclass(frozen=True, slots=True)
class Why:
    """
    Say why these hosts.

    Args:
        order: By what the hosts were ordered.
        considered_count: How many hosts might have been taken.
        with_room_count: How many of them had room for a task.
        considered: Them, in order, as far as they were looked at and to the next one with room.
        next_host: The first host with room after those that were taken, "" when there is none.
        unmatched: Why the others weren't looked at.
    """

    order: str
    considered_count: int
    with_room_count: int
    considered: tuple[Considered, ...]
    next_host: str
    unmatched: tuple[Unmatched, ...]


@final
@dataclass(frozen=True, slots=True)
class Placement:
    """
    Hold where a job was placed.

    Args:
        attempt: Which execution.
        position: Of the decision in the log.
        time_us: When.
        hosts: (host, tasks) in the order in which they were claimed.
        allocator: Who found the place.
        alternative: Which alternative of the requirement was taken, 0 when there is only one.
        is_forced: Whether an operator named these hosts.
        is_same: Whether the decision came out the same when it was taken again.
        why: Why there; None when it came out otherwise, an operator said so, or the requirement has
            several parts, each with hosts of its own.
    """

    attempt: int
    position: int
    time_us: int
    hosts: tuple[tuple[str, int], ...]
    allocator: str
    alternative: int
    is_forced: bool
    is_same: bool
    why: Why | None


def placement_at(ladder: Ladder, step: Iterator[Envelope] | list[Envelope]) -> Placement:
    """
    Return why a job was placed as it was.

    Args:
        ladder: Gives the state before the step.
        step: The events of the step from its first up to and with the dispatch.
    """
    *before, decided = step
    core = ladder.at((before[0] if before else decided).position - 1).core
    for envelope in before:
        core.apply(envelope.stamped())
    event = decided.event
    assert isinstance(event, JobDispatched)
    job = core.state.job(job_of_stream(decided.stream))
    hosts = tuple(core.state.host_names(event.allocation))
    again, ground = _decide_again(core, job, event)
    is_same = again is not None and again.runs == event.allocation.runs
    is_told = is_same and not event.is_forced
    return Placement(
        event.attempt,
        decided.position,
        decided.time_us,
        hosts,
        event.allocation.allocator,
        event.allocation.alternative,
        event.is_forced,
        is_same,
        _why(core.state, job, ground, event.allocation) if is_told else None,
    )


def _decide_again(
    core: Core, job: JobRecord, event: JobDispatched
) -> tuple[Allocation | None, Ground]:
    state, ahead_of = core.state, event.ahead_of
    runner = PlacementRunner(state.capacity, core.plugins.allocators)
    request, chain = state.request_of(job), state.settings().allocators
    if event.is_forced:
        outcome = place_forced(state, runner, job)
        ground = Ground(state.capacity)
    elif is_as_all_see_it(state, job):
        outcome = runner.place(request, chain)
        ground = Ground(state.capacity)
    else:
        lenders = (job_stream(ahead_of),) if ahead_of else ()
        ground = ground_of(state, relief_for(state, job, lenders=lenders))
        outcome = runner.place_on(ground, request, chain)
    return outcome.allocation if isinstance(outcome, Placed) else None, ground


def _why(state: State, job: JobRecord, ground: Ground, allocation: Allocation) -> Why | None:
    request = state.request_of(job)
    branch = request.branches[max(0, allocation.alternative - 1)]
    if len(branch.parts) != 1:
        return None
    (part,) = branch.parts
    eligible = eligible_of(part, request, ground, None)
    checks = checks_of(part, part.usages[0], ground, allocation.tasks())
    limits = [check.limit(part.tasks_max).tolist() for check in checks]
    room = [min(each) for each in zip(*limits, strict=True)]
    taken = {number: tasks for number, tasks, _ in allocation.shares()}
    looked_at, following = _looked_at(eligible, room, taken)
    return Why(
        _order_words(part, request),
        len(eligible.hosts),
        sum(room[number] > 0 for number in eligible.hosts.tolist()),
        tuple(
            Considered(
                state.hosts[number].name,
                room[number],
                taken.get(number, 0),
                "" if room[number] else _short_of(checks, number),
            )
            for number in looked_at
        ),
        "" if following is None else state.hosts[following].name,
        tuple(
            Unmatched(str(one.code), one.text(), one.host_count()) for one in eligible.reasons()
        ),
    )


def _looked_at(
    eligible: Eligible, room: list[int], taken: dict[int, int]
) -> tuple[list[int], int | None]:
    """
    Return the hosts up to the last one that was taken, and the next one with room.
    """
    hosts = eligible.hosts.tolist()
    last = max(place for place, number in enumerate(hosts) if number in taken)
    following = next((number for number in hosts[last + 1 :] if room[number]), None)
    return hosts[: last + 1], following


def _short_of(checks: list[Check], number: int) -> str:
    """
    Return in words what leaves a host no room for a task.
    """
    check = next(check for check in checks if not check.limit(1)[number])
    return PendReason(code=check.code, resource=check.resource, detail=check.detail).text()


def _order_words(part: Part, request: Request) -> str:
    """
    Return by what the hosts of a primary are ordered, the most significant first.
    """
    words = []
    if any(one.preference for one in request.asked) or (
        not request.asked and request.queue_hosts is not None
    ):
        words.append(BY_WISH)
    if part.order:
        keys = ":".join(("-" if key.is_reversed else "") + key.name for key in part.order)
        words.append(f"order[{keys}]")
    return ", then ".join([*words, AS_JOINED])

"""
Tell the story of one job from the log: what happened when, by whom, how long it was in each state.

It reads the job's own stream, the reason sets that the job was in, and what its first host said
about contact; nothing is guessed, and nothing of the job's environment is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Protocol, final

from domain.allocations import Allocation
from domain.envelope import Envelope
from domain.errors import NotFound
from domain.event import Event
from domain.events import jobs, session, workers
from domain.ids import REASONS, job_stream, worker_stream
from domain.job_states import ENDED, JobState, state_after
from domain.jobs import Program
from domain.reasons import show_grouped

PRIVATE = "private"
NEVER = "can never start on the cluster as it is: "


class Log(Protocol):
    """
    What a story needs of a log.
    """

    def read_stream(self, stream: str, after_version: int = 0) -> Iterator[Envelope]:
        """
        Yield the events of one stream, in order.
        """
        ...


@final
@dataclass(frozen=True, slots=True)
class Line:
    """
    Hold one thing that happened.

    Args:
        position: Its place in the log.
        time_us: When it was stamped.
        actor: On whose behalf, "" for the scheduler itself.
        cause: Command or session that it follows from.
        type_code: Which kind of event it is.
        text: What happened, in words.
    """

    position: int
    time_us: int
    actor: str
    cause: str
    type_code: str
    text: str


@final
@dataclass(frozen=True, slots=True)
class Span:
    """
    Hold how long the job was in one state; until_us is None while it still is.
    """

    state: JobState
    since_us: int
    until_us: int | None


@final
@dataclass(frozen=True, slots=True)
class Story:
    """
    Hold all lines in order of position, and the states in order of time.
    """

    job_id: str
    lines: tuple[Line, ...]
    spans: tuple[Span, ...]

    def plain(self, *, now_us: int, position: int) -> dict[str, object]:
        """
        Return the story as plain data: the object that ``xce history --json`` prints.
        """
        return {
            "job_id": self.job_id,
            "position": position,
            "events": [asdict(line) for line in self.lines],
            "states": [asdict(span) for span in self.spans],
            "in_state_us": self.in_state_us(now_us),
        }

    def in_state_us(self, now_us: int) -> dict[str, int]:
        """
        Return how long the job was in each state, by now, in order of first entry.
        """
        totals: dict[str, int] = {}
        for span in self.spans:
            if span.state not in ENDED:
                until_us = now_us if span.until_us is None else span.until_us
                totals[span.state] = totals.get(span.state, 0) + max(0, until_us - span.since_us)
        return totals


def job_story(
    log: Log,
    job_id: str,
    host_name: Callable[[int], str],
    *,
    may_see: Callable[[str], bool] = lambda _: True,
) -> Story:
    """
    Return the story of a job.

    Args:
        log: Where it happened.
        job_id: Which job.
        host_name: Returns the name of a host of a number.
        may_see: Says whether the commands of a user may be told.

    Raises:
        NotFound: The log knows no such job.
    """
    own = list(log.read_stream(job_stream(job_id)))
    if not own:
        raise NotFound("job_id", "must name a job of this log", job_id, "List them: xce jobs -a.")
    joined = _joined(log, own)
    others = [*_contact(log, own, host_name), *_reason_changes(log, own)]
    events = sorted([*own, *others], key=lambda one: one.position)
    lines = tuple(
        _line(one, _shown(joined.get(one.position, one.event), may_see), host_name)
        for one in events
    )
    return Story(job_id, lines, tuple(_spans(events)))


def _contact(
    log: Log, own: list[Envelope], host_name: Callable[[int], str]
) -> Iterator[Envelope]:
    """
    Yield when contact with the job's first host was lost and found while the job was there.
    """
    for index, envelope in enumerate(own):
        event = envelope.event
        if isinstance(event, jobs.JobDispatched):
            last = next((one.position for one in own[index:] if _ends(one.event)), None)
            first = host_name(event.allocation.runs[0].first)
            for other in log.read_stream(worker_stream(first)):
                there = envelope.position < other.position < (last or other.position + 1)
                if there and isinstance(
                    other.event, workers.WorkerBecameUnreachable | workers.WorkerCameBack
                ):
                    yield other


def _ends(event: Event) -> bool:
    return isinstance(event, jobs.JobFinished | jobs.JobCouldNotStart | jobs.JobEnded)


def _joined(log: Log, own: list[Envelope]) -> dict[int, Event]:
    """
    Return what each reason set said when the job joined it, by the position of joining.
    """
    return {
        joined.position: earlier[-1].event
        for changes, joined, _ in _sets(log, own)
        if (earlier := [one for one in changes if one.position < joined.position])
    }


def _reason_changes(log: Log, own: list[Envelope]) -> Iterator[Envelope]:
    """
    Yield the changes of the reason sets that the job was in, while it was in them.
    """
    for changes, joined, left in _sets(log, own):
        for one in changes:
            if joined.position < one.position and (left is None or one.position < left):
                yield one


def _sets(log: Log, own: list[Envelope]) -> Iterator[tuple[list[Envelope], Envelope, int | None]]:
    """
    Yield, for each stay in a reason set, its changes, the joining event, and where the job left.
    """
    stays = list(_stays(own))
    changes = [
        one
        for one in (log.read_stream(REASONS) if stays else ())
        if isinstance(one.event, session.ReasonSetChanged)
    ]
    for set_number, joined, left in stays:
        yield [one for one in changes if _number(one) == set_number], joined, left


def _number(envelope: Envelope) -> int:
    assert isinstance(envelope.event, session.ReasonSetChanged)
    return envelope.event.set_number


def _stays(own: list[Envelope]) -> Iterator[tuple[int, Envelope, int | None]]:
    """
    Yield each reason set that the job joined, the joining event, and the position where it left.
    """
    leaving = (
        jobs.JobPended, jobs.JobDispatched, jobs.JobHeld, jobs.JobEnded,
    )
    for index, envelope in enumerate(own):
        if isinstance(envelope.event, jobs.JobPended):
            left = next(
                (one.position for one in own[index + 1 :] if isinstance(one.event, leaving)), None
            )
            yield envelope.event.reason_set, envelope, left


# ------------------------------------------------------------------------------------------ states


def _spans(events: list[Envelope]) -> Iterator[Span]:
    state, since_us = None, 0
    for envelope in events:
        after = _state_after(envelope.event, state)
        if after is not None and after != state:
            if state is not None:
                yield Span(state, since_us, envelope.time_us)
            state, since_us = after, envelope.time_us
    if state is not None:
        yield Span(state, since_us, None)


def _state_after(event: Event, state: JobState | None) -> JobState | None:
    if isinstance(event, jobs.JobSubmitted):
        return JobState.PSUSP if event.spec.hold else JobState.PEND
    happening = _happening(event)
    return None if happening is None or state is None else state_after(happening, state)


def _happening(event: Event) -> str | None:
    if isinstance(event, jobs.JobFinished):
        return "finished well" if event.exit_code == 0 else "finished badly"
    names: dict[type[Event], str] = {
        jobs.JobHeld: "held",
        jobs.JobHoldLifted: "hold lifted",
        jobs.JobDispatched: "dispatched",
        jobs.JobCouldNotStart: "finished badly",
        jobs.JobEnded: "ended unstarted",
        workers.WorkerBecameUnreachable: "contact lost",
        workers.WorkerCameBack: "contact back",
    }
    return names.get(type(event))


# ------------------------------------------------------------------------------------------- words


def _shown(event: Event, may_see: Callable[[str], bool]) -> Event:
    """
    Return an event as it may be told: without its command when that is private.
    """
    if isinstance(event, jobs.JobSubmitted) and event.spec.program and not may_see(event.spec.user):
        program = Program(argv=(PRIVATE,))
        return event.model_copy(update={"spec": event.spec.model_copy(update={"program": program})})
    return event


def _line(envelope: Envelope, told: Event, host_name: Callable[[int], str]) -> Line:
    return Line(
        envelope.position, envelope.time_us, envelope.actor, envelope.cause,
        type(envelope.event).TYPE_CODE, _words(told, host_name),
    )


def show_allocation(allocation: Allocation, host_name: Callable[[int], str]) -> str:
    """
    Return the hosts of an allocation as LSF writes them: "4*alpha:beta".
    """
    return ":".join(
        f"{tasks}*{host_name(number)}" if tasks > 1 else host_name(number)
        for number, tasks, _ in allocation.shares()
    )


def _words(event: Event, host_name: Callable[[int], str]) -> str:
    match event:
        case jobs.JobSubmitted():
            return _submitted(event)
        case jobs.JobDispatched():
            where = show_allocation(event.allocation, host_name)
            return f"dispatched to {where}, attempt {event.attempt}"
        case jobs.JobStarted():
            return f"started as process {event.pid}, attempt {event.attempt}"
        case jobs.JobCouldNotStart():
            return f"could not start, attempt {event.attempt}: {event.why}"
        case jobs.JobFinished():
            return _finished(event)
        case jobs.JobKillOrdered():
            return f"worker {event.worker} is told to end attempt {event.attempt}: {event.why}"
        case jobs.JobEnded():
            return f"ended without running: {event.why}"
        case session.ReasonSetChanged():
            return (NEVER if event.never else "waits: ") + show_grouped(event.reasons)
        case workers.WorkerBecameUnreachable():
            return f"contact with its host lost (silent for {event.silent_us // 1_000_000} s)"
        case _:
            return _PLAIN.get(type(event), type(event).TYPE_CODE)


_PLAIN: dict[type[Event], str] = {
    jobs.JobHeld: "held",
    jobs.JobHoldLifted: "hold lifted",
    jobs.JobKillRequested: "asked to end",
    jobs.JobPended: "considered, and has to wait",
    workers.WorkerCameBack: "contact with its host is back",
}


def _submitted(event: jobs.JobSubmitted) -> str:
    spec = event.spec
    parts = [f"submitted to queue {spec.queue}"]
    if spec.name:
        parts.append(f"name {spec.name}")
    if spec.tasks_max > 1:
        tasks = f"{spec.tasks_min} to {spec.tasks_max}"
        parts.append(f"{spec.tasks_min if spec.tasks_min == spec.tasks_max else tasks} tasks")
    if spec.resreq:
        parts.append(f"requirement {' '.join(spec.resreq)}")
    if spec.program is not None:
        words = spec.program.shell or " ".join(spec.program.argv)
        parts.append(f"command {words}")
    if spec.hold:
        parts.append("held")
    return ", ".join(parts)


def _finished(event: jobs.JobFinished) -> str:
    if event.signal is not None:
        end = f"ended by signal {event.signal}"
    elif event.exit_code is None:
        end = "ended, nobody knows how"
    else:
        end = f"finished with exit code {event.exit_code}"
    why = f" ({event.why})" if event.why else ""
    tenths = event.cpu_us // 10_000
    used = f"; CPU {tenths // 100}.{tenths % 100:02d} s" if event.cpu_us else ""
    memory = f", memory peak {event.max_rss_kib} KiB" if event.max_rss_kib else ""
    return f"{end}{why}{used}{memory}"

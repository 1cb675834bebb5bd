"""
Hold a session again with the trace on: how its decisions came about isn't in the log, but the state
before it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from domain.envelope import Envelope
from domain.errors import NotFound
from domain.events.jobs import JobDispatched
from domain.events.session import SessionHeld
from domain.ids import job_stream
from domain.job_states import WAITING
from projections.scheduling.core import Core
from projections.scheduling.trace import LINES_MAX, DecisionTrace, Level, TraceSettings
from projections.scheduling.trace_session import Tracing
from projections.scheduling.trace_store import TraceStore
from replay.at import Ladder
from replay.moments import SearchableLog

OTHERWISE: Final = "the session decides otherwise now than was recorded"
BACK: Final = 512
"""So many events are read at a time on the way back to the beginning of a session."""


@final
@dataclass(frozen=True, slots=True)
class Retraced:
    """
    Hold how a job was decided.

    Args:
        traces: The job's; then that of the job that proved its request unsatisfiable, if one did.
        position: The state that was decided on: that after this event.
        first: Position of the session in the log; 0 when it was held only to answer.
        last: The last position of its step.
        difference: How the session decides otherwise now than was recorded, "" when it doesn't.
    """

    traces: tuple[DecisionTrace, ...]
    position: int
    first: int
    last: int
    difference: str


@final
class Retracer:
    """
    Trace decisions of a log.

    Args:
        log: The log.
        ladder: Gives its states, with the plug-ins that decide.
        level: How much is written down.
        lines_max: The most lines of a trace.
    """

    def __init__(
        self,
        log: SearchableLog,
        ladder: Ladder,
        *,
        level: Level = Level.FULL,
        lines_max: int = LINES_MAX,
    ) -> None:
        self._log = log
        self._ladder = ladder
        self._level = level
        self._lines_max = lines_max

    def retrace(self, job_id: str, position: int) -> Retraced:
        """
        Return how a job was decided as of a position: one that waited, in the session there, or
        that would have been held there; any other in the session that dispatched it.

        Raises:
            NotFound: There was no such job then, or nothing was ever decided of it.
        """
        stream, head = job_stream(job_id), self._log.head()
        position = min(position, head)
        core = self._ladder.at(position).core
        job = core.state.stored.jobs.get(stream)
        if job is None and job_id.isdecimal() and int(job_id) in core.state.stored.arrays:
            rule, how = "must name an element of the array", f"Such as {job_id}[1]."
            raise NotFound("job_id", rule, job_id, how)
        if job is None or job.state not in WAITING:
            first = self._session_of(self._dispatch_of(stream, job_id, position))
        else:
            first = self._session_of(position) or self._session_behind(position)
        if first:
            return self._again(stream, job_id, first)
        return self._for_this_question(stream, job_id, position)

    # -- which session

    def _dispatch_of(self, stream: str, job_id: str, position: int) -> int:
        """
        Return the position of a job's last dispatch up to another position.
        """
        found = [one for one in self._log.read_stream(stream) if one.position <= position]
        if not found:
            raise NotFound("job_id", "must name a job that is known at that moment", job_id)
        placed = [one.position for one in found if isinstance(one.event, JobDispatched)]
        if not placed:
            raise NotFound(
                "job_id", "must name a job that waited then, or was dispatched before", job_id,
                "Give --at a moment at which it waited.",
            )  # fmt: skip
        return placed[-1]

    def _session_of(self, position: int) -> int:
        """
        Return where the session begins that an event belongs to, 0 when it belongs to none.
        """
        stop = position
        while stop > 0:
            begin = max(0, stop - BACK)
            for envelope in reversed(list(self._log.read(begin, stop))):
                if isinstance(envelope.event, SessionHeld):
                    return envelope.position
                if not envelope.cause.startswith("session ") or (
                    envelope.ends_step and envelope.position != position
                ):
                    return 0
            stop = begin
        return 0

    def _session_behind(self, position: int) -> int:
        """
        Return the position of the session that was held right behind a position, 0 when none was.
        """
        following = next(iter(self._log.read(position, position + 1)), None)
        is_session = following is not None and isinstance(following.event, SessionHeld)
        return position + 1 if is_session else 0

    # -- again

    def _again(self, stream: str, job_id: str, first: int) -> Retraced:
        """
        Hold a recorded session again.
        """
        step = step_at(self._log, first, self._log.head())

        def hold(tracing: Tracing) -> str:
            return hold_again(self._ladder.at(first - 1).core, step, tracing)

        store = TraceStore()
        difference = hold(self._tracing(store, stream, is_replay=True))
        prover = _prover(store, job_id)
        if prover:
            hold(self._tracing(store, stream, job_stream(prover), is_replay=True))
        traces = _of(store, job_id, prover)
        return Retraced(traces, first - 1, first, step[-1].position, difference)

    def _for_this_question(self, stream: str, job_id: str, position: int) -> Retraced:
        """
        Hold a session that nobody held, at the moment of the last event.
        """
        moment = self._ladder.at(position)

        def hold(core: Core, tracing: Tracing) -> None:
            core.tracing = tracing
            core.session(core.state.stored.time_us)

        store = TraceStore()
        hold(moment.core, self._tracing(store, stream))
        prover = _prover(store, job_id)
        if prover:
            core = self._ladder.at(position).core
            hold(core, self._tracing(store, stream, job_stream(prover)))
        traces = _of(store, job_id, prover)
        for trace in traces:
            trace.session.is_recorded = False
        return Retraced(traces, moment.position, 0, 0, "")

    def _tracing(self, store: TraceStore, *streams: str, is_replay: bool = False) -> Tracing:
        settings = TraceSettings(
            streams=frozenset(streams), level=self._level, lines_max=self._lines_max
        )
        return Tracing(settings, store, is_replay=is_replay)


def _prover(store: TraceStore, job_id: str) -> str:
    """
    Return the job that a job's trace refers to, "" when it tells all itself.
    """
    trace = store.get(job_id)
    return "" if trace is None else trace.outcome.because_of


def _of(store: TraceStore, *job_ids: str) -> tuple[DecisionTrace, ...]:
    found = (store.get(job_id) for job_id in job_ids if job_id)
    return tuple(trace for trace in found if trace is not None)


def step_at(log: SearchableLog, first: int, upto: int) -> list[Envelope]:
    """
    Return the whole step that begins at a position; what there is of it when it is cut short.
    """
    step: list[Envelope] = []
    for envelope in log.read(first - 1, upto):
        step.append(envelope)
        if envelope.ends_step:
            break
    return step


def hold_again(core: Core, step: list[Envelope], tracing: Tracing) -> str:
    """
    Hold a recorded session again on the state before it.

    Args:
        core: Right before the step; afterwards right behind it, and of no more use if the session
            decided otherwise.
        step: The session and its decisions, as they were recorded.
        tracing: Where traces go.

    Returns:
        "" when it decided as it was recorded, else what happened.
    """
    core.tracing = tracing
    try:
        made = core.session(step[0].time_us)
    except Exception as error:  # noqa: BLE001 - an altered log, or somebody's plug-in; it is told
        return f"the session fails now: {type(error).__name__}: {error}"
    finally:
        core.tracing = None
    return "" if made == [envelope.stamped() for envelope in step] else OTHERWISE

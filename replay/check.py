"""
Hold the invariants of a log at every step: a second, plainer judge beside the core.

Held for each event: positions and versions without gaps, stamps that never fall, known transitions
of jobs, one live attempt a job, claims within what its hosts have left. For each step: one time,
the session's decisions under its number, and the accounts of every host it touched, worked out
again from the jobs on it. At sampled steps the whole state is rebuilt from its own snapshot, and
every index and column must be as it was kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, final

from domain.envelope import Envelope
from domain.errors import XceError
from domain.events.jobs import JobDispatched
from domain.events.session import SessionHeld
from domain.events.workers import WorkerReported
from domain.ids import job_stream
from domain.job_states import LIVE, TRANSITIONS, JobState
from projections.scheduling.core import Core
from projections.scheduling.derived import derived
from projections.scheduling.plugins import Plugins
from projections.scheduling.records import JobRecord
from projections.scheduling.resource_column import NOTHING_REPORTED
from projections.scheduling.state import State
from replay.at import PROGRESS_EVENTS, Moment
from replay.ledger import Ledger
from replay.moments import ReadableLog

FINDINGS_KEPT: Final = 100
REPEATS_KEPT: Final = 5
"""Of the same rule about the same subject: what is wrong once often stays so in every step."""
SAMPLE_EVENTS: Final = 5_000

MOVES: Final = frozenset(
    (before, after) for table in TRANSITIONS.values() for before, after in table.items()
)
FIRST_STATES: Final = frozenset({JobState.PEND, JobState.PSUSP, JobState.WAIT})


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """
    Say where an invariant doesn't hold.

    Args:
        position: The event, or the last one of the step.
        rule: The invariant, as a sentence.
        subject: Which job, host, stream or part of the state.
        expected: What it should be.
        found: What it is.
    """

    position: int
    rule: str
    subject: str
    expected: str
    found: str


@final
@dataclass(slots=True)
class CheckResult:
    """
    Hold the outcome: what was looked at, and the first findings in order of position.
    """

    events: int = 0
    steps: int = 0
    sessions: int = 0
    dispatches: int = 0
    accounts: int = 0
    rebuilds: int = 0
    finding_count: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """
        Say whether every invariant held everywhere.
        """
        return self.finding_count == 0


def check(
    log: ReadableLog,
    *,
    plugins: Plugins | None = None,
    begin: Moment | None = None,
    make_core: Callable[[Plugins | None], Core] = Core,
    sample_events: int = SAMPLE_EVENTS,
    on_progress: Callable[[int], None] | None = None,
) -> CheckResult:
    """
    Check a whole log, or a window of one from the state with which it begins.

    Args:
        log: The log, live or simulated, or a recording.
        plugins: Pickers and allocators; the built-in ones when None.
        begin: The state before the first event; the beginning of everything when None.
        make_core: Builds an empty core; tests hand in one that is broken.
        sample_events: The whole state is rebuilt after so many events; 1 for after each step.
        on_progress: Called with the position now and then.

    Raises:
        Corrupt: The log doesn't check.
    """
    core = make_core(plugins) if begin is None else begin.core
    judge = _Check(core, plugins, sample_events, on_progress)
    if begin is not None:
        judge.begin(begin.position)
    return judge.run(log)


@final
class _Check:
    def __init__(
        self,
        core: Core,
        plugins: Plugins | None,
        sample_events: int,
        on_progress: Callable[[int], None] | None,
    ) -> None:
        self._core = core
        self._plugins = plugins
        self._sample_events = sample_events
        self._on_progress = on_progress
        self._ledger = Ledger()
        self._result = CheckResult()
        self._versions: dict[str, int] = {}
        self._attempts: dict[str, int] = {}
        self._position = 0
        self._time_us = 0
        self._session = 0
        self._sampled = 0
        self._is_window = False
        self._said: dict[tuple[str, str], int] = {}

    def begin(self, position: int) -> None:
        """
        Take over what the state says with which a window begins, and hold its accounts as well.

        Versions of streams aren't in it: they are counted from the first that is seen.
        """
        stored = self._core.state.stored
        self._is_window = True
        self._position, self._time_us = position, stored.time_us
        self._session = stored.session_number
        for stream, job in stored.jobs.items():
            self._attempts[stream] = job.attempt
            if job.state in LIVE:
                self._ledger.settle(stream, job.allocation)
                for number, actual in job.actual.items():
                    self._ledger.see(stream, number, dict(actual))
        self._check_accounts(position)

    def run(self, log: ReadableLog) -> CheckResult:
        step: list[Envelope] = []
        for envelope in log.read(self._position):
            self._check_place(envelope)
            step.append(envelope)
            if envelope.ends_step:
                if not self._take_step(step):
                    return self._result
                step = []
        if step:
            self._found(step[-1].position, "a log ends with the end of a step", step[-1].stream)
        self._rebuild()
        return self._result

    def _found(
        self, position: int, rule: str, subject: str, expected: object = "", found: object = ""
    ) -> None:
        """
        Note a finding; the same rule about the same subject is told a few times, counted always.
        """
        result = self._result
        result.finding_count += 1
        key = (rule, subject)
        self._said[key] = self._said.get(key, 0) + 1
        if self._said[key] > REPEATS_KEPT or len(result.findings) >= FINDINGS_KEPT:
            return
        result.findings.append(Finding(position, rule, subject, str(expected), str(found)))

    # -- events

    def _check_place(self, envelope: Envelope) -> None:
        """
        Check position, version and stamp against what came before.
        """
        position, stream = envelope.position, envelope.stream
        if position != self._position + 1:
            self._found(position, "positions have no gaps", "log", self._position + 1, position)
        unseen = envelope.version - 1 if self._is_window else 0
        version = self._versions.get(stream, unseen) + 1
        if envelope.version != version:
            self._found(position, "versions of a stream have no gaps", stream, version,
                        envelope.version)  # fmt: skip
        if envelope.time_us < self._time_us:
            self._found(position, "stamps never fall", stream, f"at least {self._time_us}",
                        envelope.time_us)  # fmt: skip
        self._position, self._time_us = position, envelope.time_us
        self._versions[stream] = envelope.version
        self._result.events += 1

    def _take_step(self, step: list[Envelope]) -> bool:
        """
        Check and apply one step; False when the core can't go on.
        """
        self._result.steps += 1
        self._check_step(step)
        try:
            for envelope in step:
                self._take_event(envelope)
        except (XceError, AssertionError, KeyError, IndexError) as error:
            rule = "the core can apply every event"
            self._found(envelope.position, rule, envelope.stream, "", repr(error))
            return False
        self._check_accounts(step[-1].position)
        if self._result.events - self._sampled >= self._sample_events:
            self._rebuild()
        self._say_progress(step[-1].position)
        return True

    def _say_progress(self, position: int) -> None:
        if self._on_progress is not None and position % PROGRESS_EVENTS < 2:
            self._on_progress(position)

    def _check_step(self, step: list[Envelope]) -> None:
        """
        Check that a step has one time, and that decisions stand in the step of their session.
        """
        first = step[0]
        is_session = type(first.event) is SessionHeld
        if isinstance(first.event, SessionHeld):
            self._result.sessions += 1
            if first.event.number != self._session + 1:
                self._found(first.position, "session numbers have no gaps", "session",
                            self._session + 1, first.event.number)  # fmt: skip
            self._session = first.event.number
        cause = f"session {self._session}"
        for envelope in step:
            if envelope.time_us != first.time_us:
                self._found(envelope.position, "a step has one stamp", envelope.stream,
                            first.time_us, envelope.time_us)  # fmt: skip
            is_caused = envelope.cause == cause if is_session else True
            if not is_caused or (not is_session and envelope.cause.startswith("session ")):
                self._found(envelope.position, "decisions stand in the step of their session",
                            envelope.stream, cause if is_session else "no session",
                            envelope.cause)  # fmt: skip

    def _take_event(self, envelope: Envelope) -> None:
        """
        Check one event against the state before it, apply it, and check the state after it.
        """
        stream, event = envelope.stream, envelope.event
        if not stream.startswith("job:"):
            self._core.apply(envelope.stamped())
            if isinstance(event, WorkerReported):
                self._see_usage(stream, event)
            return
        before = self._core.state.stored.jobs.get(stream)
        state_before = None if before is None else before.state
        self._check_attempt(envelope)
        if isinstance(event, JobDispatched):
            self._check_claims(envelope.position, stream, event)
        self._core.apply(envelope.stamped())
        job = self._core.state.stored.jobs.get(stream)
        if job is not None:
            self._check_job(envelope.position, state_before, job)
        is_live = job is not None and job.state in LIVE
        self._ledger.settle(stream, job.allocation if job is not None and is_live else None)

    def _check_attempt(self, envelope: Envelope) -> None:
        """
        Check that attempts are counted by one, and that nothing is told of any but the last.
        """
        attempt = getattr(envelope.event, "attempt", None)
        if attempt is None:
            return
        stream, last = envelope.stream, self._attempts.get(envelope.stream, 0)
        is_new = isinstance(envelope.event, JobDispatched)
        if is_new and self._ledger.holds(stream):
            rule = "a job has one live attempt"
            self._found(envelope.position, rule, stream, f"the end of attempt {last}", attempt)
        expected = last + 1 if is_new else last
        if attempt != expected:
            self._found(envelope.position, "attempts are counted by one", stream, expected, attempt)
        self._attempts[stream] = max(last, attempt)

    def _check_claims(self, position: int, stream: str, event: JobDispatched) -> None:
        """
        Check that every claim fits what its host has left, by the ledger and by the columns.
        """
        self._result.dispatches += 1
        state, used = self._core.state, self._ledger.used
        for number, tasks, amounts in event.allocation.shares():
            host = state.hosts[number]
            left = host.slots - used.get(number, 0) + self._open_to(stream, number)
            takes = host.takes_jobs or (event.is_forced and not host.is_silent and not host.left)
            if not takes or self._ledger.exclusive.get(number, 0):
                self._found(position, "tasks go to hosts that take jobs", stream, "", host.name)
            if tasks > left and not event.is_forced:
                self._found(position, "slots are never given twice", stream,
                            f"at most {left} on {host.name}", tasks)  # fmt: skip
            for amount in amounts:
                there = int(state.capacity.resources[amount.resource].available[number])
                if amount.milli > there:
                    self._found(position, "amounts are never given twice", stream,
                                f"at most {there} of {amount.resource} on {host.name}",
                                amount.milli)  # fmt: skip

    def _open_to(self, stream: str, number: int) -> int:
        """
        Return the slots on a host that suspended victims have left to this job: those that stopped
        for it, and those that its queue may preempt while nothing is held for their preemptor.
        """
        state = self._core.state
        jobs = state.stored.jobs
        job = jobs.get(stream)
        if job is None or not state.victims:
            return 0
        preys, slots = state.preys_of(job.spec.queue), 0
        for other, tasks in self._ledger.tasks_on(number).items():
            victim = jobs[other]
            if not victim.is_aside or not victim.preemptor:
                continue
            holder = jobs.get(job_stream(victim.preemptor))
            is_held = holder is not None and holder.keeps is not None
            if holder is job if is_held else victim.spec.queue in preys:
                slots += tasks
        return slots

    def _check_job(self, position: int, before: JobState | None, job: JobRecord) -> None:
        """
        Check a job's transition, and that its times sum up to its age.
        """
        if before is None:
            is_known = job.state in FIRST_STATES
        else:
            is_known = before is job.state or (before, job.state) in MOVES
            # Put back and held at once, which the table has as two moves.
            is_held_at_once = job.state is JobState.PSUSP and (before, JobState.PEND) in MOVES
            is_known = is_known or is_held_at_once
        if not is_known:
            self._found(position, "jobs move as the table of transitions says", job.stream,
                        f"a move from {before}", job.state)  # fmt: skip
        if job.requeues:
            # The time of earlier attempts is no longer told.
            return
        spent = (
            job.pend_us + job.held_us + job.run_us + job.unknown_us + job.user_stopped_us
            + job.system_suspended_us
        )  # fmt: skip
        age_us = job.since_us - job.submit_us
        # Of a job that ran when its contact was lost that time is in both.
        if not age_us <= spent <= age_us + job.unknown_us:
            self._found(position, "the times in each state sum up to a job's age", job.stream,
                        age_us, spent)  # fmt: skip

    def _see_usage(self, stream: str, event: WorkerReported) -> None:
        number = self._core.state.stored.workers[stream.partition(":")[2]].number
        for usage in event.jobs:
            seen = job_stream(usage.job_id)
            if self._attempts.get(seen) == usage.attempt:
                actual = {amount.resource: amount.milli for amount in usage.amounts}
                self._ledger.see(seen, number, actual)
        self._ledger.touched[number] = None

    # -- steps

    def _check_accounts(self, position: int) -> None:
        """
        Hold the columns of every host that the step touched against the ledger.
        """
        touched, self._ledger.touched = self._ledger.touched, {}
        for number in touched:
            self._result.accounts += 1
            for what, expected, found in self._accounts(number):
                if expected != found:
                    host = self._core.state.hosts[number].name
                    self._found(position, f"kept accounts are as worked out again: {what}", host,
                                expected, found)  # fmt: skip

    def _accounts(self, number: int) -> Iterator[tuple[str, int, int]]:
        """
        Yield what, as worked out again, as kept; for each column of one host.
        """
        capacity, ledger = self._core.state.capacity, self._ledger
        host = self._core.state.hosts[number]
        used = ledger.used.get(number, 0)
        yield "slots used", used, int(capacity.used[number])
        takes_jobs = host.takes_jobs and not ledger.exclusive.get(number, 0)
        usable = max(0, host.slots - used) if takes_jobs else 0
        yield "slots usable", usable, int(capacity.usable[number])
        for resource in host.resources:
            name, column = resource.name, capacity.resources[resource.name]
            gone = self._given_back(number, name)
            charged = ledger.charged(number, name, gone)
            unused = ledger.unused(number, name, gone)
            yield f"{name} charged", charged, int(column.charged[number])
            left = resource.total_milli - charged
            reported = host.load.get(name, NOTHING_REPORTED)
            if resource.is_real and reported != NOTHING_REPORTED:
                left = min(left, reported - unused)
            yield f"{name} available", max(0, left), int(column.available[number])

    def _given_back(self, number: int, name: str) -> list[str]:
        """
        Return the stopped jobs on a host that have given a resource back; named units they keep.
        """
        capacity, jobs = self._core.state.capacity, self._core.state.stored.jobs
        if name not in capacity.released or capacity.facts[number].units.get(name):
            return []
        return [stream for stream in self._ledger.tasks_on(number) if jobs[stream].is_aside]

    def _rebuild(self) -> None:
        """
        Rebuild the whole state from its snapshot, and compare every part of it.
        """
        self._sampled = self._result.events
        self._result.rebuilds += 1
        core, position = self._core, self._position
        data = core.snapshot()
        rebuilt = Core.restore(data, self._plugins)
        if rebuilt.snapshot() != data:
            self._found(position, "a restored state is the same state", "state")
        for name, kept, again in differing(core.state, rebuilt.state):
            self._found(position, "kept indexes are as rebuilt", name, again, kept)
        live = {job.stream for job in core.state.stored.jobs.values() if job.state in LIVE}
        if live != set(self._ledger.streams()):
            wrong = sorted(live ^ set(self._ledger.streams()))
            self._found(position, "live jobs are those that hold hosts", wrong[0])


def differing(kept: State, rebuilt: State) -> Iterator[tuple[str, str, str]]:
    """
    Yield name and both values of every index and column that differs.
    """
    again = derived(rebuilt)
    for name, value in derived(kept).items():
        if name not in again or again[name] != value:
            yield name, _short(value), _short(again.get(name, "missing"))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."

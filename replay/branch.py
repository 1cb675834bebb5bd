"""
Another future from a real past: the parent's log up to a moment, then a simulation.

The branch is a log of its own, under its own id; the parent is only read. Inputs come at their
recorded times (`replay.branch_inputs`), jobs run as long as they did (`replay.branch_agents`), and
sessions are held where the parent held them, and after every moment once the branch has left it.
Without a change every event is the parent's again; after the first decision that differs, whatever
is no longer so is left out and counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop
from typing import Any, Final, final

from domain.commands import DefineCluster, DefineQueue, StartScheduler
from domain.envelope import Envelope, Stamped
from domain.errors import Refused
from domain.event import Event
from domain.events.jobs import (
    JobDispatched,
    JobKillOrdered,
    JobPended,
    JobResumeOrdered,
    JobSignalOrdered,
    JobSuspendOrdered,
)
from domain.events.log import LogBranched
from domain.events.session import ReasonSetChanged, SessionHeld
from domain.ids import LOG
from projections.scheduling.core import Core
from projections.scheduling.plugins import Plugins
from replay.at import PROGRESS_EVENTS, Ladder, whole_steps
from replay.branch_agents import FIRST, Agents
from replay.branch_changes import Changes
from replay.branch_inputs import BranchEngine, Inputs, NotTaken
from replay.engine import Log
from replay.parent import (
    JOB_REPORTS,
    Future,
    ParentLog,
    Recorded,
    check_is_whole,
    is_session,
    parent_digest,
)
from replay.simulation_settings import CODE_VERSION

COMMIT_EVENTS: Final = 8_192
HOLDER: Final = "branch"
EXPLAINING: Final = (SessionHeld, ReasonSetChanged, JobPended)
"""Decisions that do nothing to a job or a host, but say why one waits, and number sessions."""
DROP: Final = "--drop-event"
INPUTS_LOOKED_FOR: Final = 1_000
"""So many events behind one that can't be left out are looked at for one that can."""
WAKEUPS_MAX: Final = 200
"""
So many wakeups after the parent's end may start no job: windows open and close for ever, also over
jobs that never end.
"""


@final
@dataclass(slots=True)
class BranchResult:
    """
    Hold what became of a branch.

    Args:
        log_id: The branch's own.
        parent_log_id: The log that it came from.
        parent_position: The boundary up to which it is the parent.
        events: Its last position.
        sessions: Sessions of the branch that decided something.
        differs_at: The parent's position of the first decision that is different, None when the
            branch is the parent again; with ``differs`` in words. With a change it is one about
            jobs, not about why they wait.
        run_time_unknown: Attempts whose run time isn't known from the parent.
        without_end: Attempts among them that run to the end of the branch.
        not_taken: The first inputs that weren't taken; ``not_taken_count`` has all.
        end_us: Stamp of the last event.
    """

    log_id: str
    parent_log_id: str
    parent_position: int
    events: int = 0
    sessions: int = 0
    differs_at: int | None = None
    differs: str = ""
    run_time_unknown: int = 0
    without_end: int = 0
    not_taken_count: int = 0
    not_taken: list[NotTaken] = field(default_factory=list)
    end_us: int = 0


def branch_log_id(parent: ParentLog, position: int, changes: Changes, until_us: int | None) -> str:
    """
    Return the id of a branch: a function of the parent's history and of what is changed.
    """
    known = (parent.log_id, position, parent.digest_at(position).hex(), changes.texts(), until_us)
    return f"branch-{hashlib.sha256(repr(known).encode()).hexdigest()[:32]}"


def copy_prefix(parent: ParentLog, child: Log, position: int) -> None:
    """
    Copy the whole steps up to a boundary, positions and all.
    """
    pending: list[Stamped] = []
    for step in whole_steps(parent.read(0, position)):
        pending += [envelope.stamped() for envelope in step]
        if len(pending) >= COMMIT_EVENTS:
            child.append(pending)
            pending = []
    if pending:
        child.append(pending)


@final
class Branch:
    """
    Run one branch. Made by hand in two steps, so that a refused one leaves no log behind: made, it
    is checked; run, it writes.

    Args:
        parent: The log to begin from, or a recording of all of it; only read.
        position: Where the branch begins; one inside a step means the boundary before it.
        changes: What is different.
        until_us: The last moment to simulate; None for the last end.
        ladder: Gives the state at a position of the parent; made for the purpose when None.
        plugins: Pickers and allocators; the built-in ones when None.
        on_progress: Called with the branch's position now and then.

    Raises:
        Refused: A change can't be made, or the parent is a window.
    """

    def __init__(
        self,
        parent: ParentLog,
        position: int,
        *,
        changes: Changes | None = None,
        until_us: int | None = None,
        ladder: Ladder | None = None,
        plugins: Plugins | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> None:
        check_is_whole(parent)
        self._parent = parent
        self._changes = changes or Changes()
        self._until_us = until_us
        self._plugins = plugins or Plugins()
        self._on_progress = on_progress
        moment = (ladder or Ladder(parent, plugins=plugins)).at(position)
        self.position = moment.position
        self._core: Core = moment.core
        self._wakeup_us: int | None = None
        self._now_us = moment.time_us
        self._wakeups = 0
        self._said = 0
        self._has_its_policy = True
        self._check_changes()
        self.log_id = branch_log_id(parent, self.position, self._changes, until_us)

    # -- changes

    def _check_changes(self) -> None:
        """
        Refuse what can't be changed before anything is written.
        """
        state, changes = self._core.state, self._changes
        for setting in changes.settings:
            if setting.kind == "queue" and setting.name and setting.name not in state.stored.queues:
                known = ", ".join(state.stored.queues) or "none"
                rule = f"must name a queue that there is at position {self.position}: {known}"
                raise Refused("--set", rule, setting.name)
        changes.check_pickers(self._plugins)
        if state.stored.cluster is not None:
            changes.cluster(state.stored.cluster)
        for queue in state.stored.queues.values():
            spec = changes.queue(queue.name, queue.spec)
            if spec != queue.spec:
                # Its picker may be one that the branch alone knows; that was checked above.
                spec = spec.model_copy(update={"picker": ""})
                command = DefineQueue(queue=queue.name, spec=spec)
                self._core.handle(command, actor="", now_us=self._now_us)
        for one in changes.added:
            if one.time_us < self._now_us:
                rule = f"must not be before the branch begins ({self._now_us})"
                raise Refused("--events time_us", rule, one.time_us)
        for position in sorted(changes.dropped):
            self._check_dropped(position)

    def _check_dropped(self, position: int) -> None:
        if not self.position < position <= self._parent.head():
            rule = f"must be after the branch begins ({self.position}) and in the log"
            raise Refused(DROP, rule, position)
        envelope = next(iter(self._parent.read(position - 1, position)))
        if not _is_input(envelope):
            rule = "must be an input: decisions and the reports of jobs are made anew"
            later = self._parent.read(position, position + INPUTS_LOOKED_FOR)
            following = next((one for one in later if _is_input(one)), None)
            hint = None
            if following is not None:
                code = following.event.TYPE_CODE
                hint = f"The next one is {following.position}, {code} of {following.stream}."
            raise Refused(DROP, rule, f"{position} ({envelope.event.TYPE_CODE})", hint)

    def run(self, child: Log) -> BranchResult:
        """
        Copy the past into an empty log, make the changes, and simulate the future.
        """
        self._result = BranchResult(child.log_id, self._parent.log_id, self.position)
        copy_prefix(self._parent, child, self.position)
        future = Future(self._parent, self.position)
        stored = self._core.state.stored
        self._engine = BranchEngine(child, self._core, position=self.position)
        self._recorded = Recorded(self._parent, self.position)
        self._agents = Agents(self._engine, future)
        highest = max(stored.highest_job, future.highest_job)
        self._inputs = Inputs(self._engine, self._changes, highest)
        sessions_before = stored.session_number
        self._begin()
        self._simulate()
        self._engine.commit()
        return self._told(sessions_before)

    def _told(self, sessions_before: int) -> BranchResult:
        result, stored = self._result, self._core.state.stored
        result.events = self._engine.position
        result.sessions = stored.session_number - sessions_before
        result.end_us = stored.time_us
        result.run_time_unknown = self._agents.run_time_unknown
        result.without_end = self._agents.without_end
        result.not_taken = self._inputs.not_taken
        result.not_taken_count = self._inputs.not_taken_count
        return result

    def _begin(self) -> None:
        """
        Record where the branch comes from, make the changes, and plan what live jobs do.
        """
        event = LogBranched(
            parent_log_id=self._parent.log_id,
            parent_position=self.position,
            parent_digest=parent_digest(self._parent, self.position),
            changes=self._changes.texts(),
        )
        self._engine.take([(LOG, event)], actor="", cause="", now_us=self._now_us)
        self._make_changes()
        for job in list(self._core.state.live.values()):
            self._agents.plan_live(job)
        for one in self._changes.added:
            self._agents.plan(one.time_us, FIRST, "added", added=one)

    def _make_changes(self) -> None:
        changes, stored, plugins = self._changes, self._core.state.stored, self._plugins
        if stored.cluster is not None:
            now = (plugins.picker_versions(), plugins.allocator_versions())
            if now != (stored.pickers, stored.allocators):
                self._has_its_policy = False
                self._accept(
                    StartScheduler(
                        epoch=stored.epoch, holder=HOLDER, code_version=CODE_VERSION,
                        pickers=now[0], allocators=now[1],
                    )
                )  # fmt: skip
            self._accept(DefineCluster(settings=changes.cluster(stored.cluster)))
        for queue in list(stored.queues.values()):
            spec = changes.queue(queue.name, queue.spec)
            if spec != queue.spec:
                self._accept(DefineQueue(queue=queue.name, spec=spec))
        for host in changes.hosts:
            self._accept(host)

    def _accept(self, command: Any) -> None:
        self._engine.accept(command, actor="", now_us=self._now_us)

    # -- time

    def _simulate(self) -> None:
        now_us = self._now_us if self._inputs.is_dirty else self._next_moment()
        while now_us is not None and (self._until_us is None or now_us <= self._until_us):
            self._now_us = now_us
            if self._recorded.next is None and now_us == self._wakeup_us:
                self._wakeups += 1
                if self._wakeups > WAKEUPS_MAX:
                    return
            self._live_through(now_us)
            if self._engine.pending >= COMMIT_EVENTS:
                self._engine.commit()
                self._say_progress()
            now_us = self._next_moment()

    def _say_progress(self) -> None:
        if self._on_progress and self._engine.position - self._said >= PROGRESS_EVENTS:
            self._said = self._engine.position
            self._on_progress(self._said)

    def _next_moment(self) -> int | None:
        """
        Return when something happens next; None when nothing does any more.

        A wakeup counts only where the branch has left the parent, or outlived it: before, the
        parent's own sessions say when one was held.
        """
        plans = self._agents.plans
        times = [self._recorded.time_us, plans[0].time_us if plans else None]
        if self._inputs.has_left or self._recorded.next is None:
            self._wakeup_us = self._core.next_wakeup(self._now_us)
            times.append(self._wakeup_us)
        return min((time_us for time_us in times if time_us is not None), default=None)

    def _live_through(self, now_us: int) -> None:
        """
        Take everything of one moment, with sessions where the parent held them and at the end.
        """
        is_due = self._wakeup_us == now_us
        is_over = False
        while not is_over:
            while self._take_one(now_us):
                pass
            is_wanted = self._inputs.is_dirty or self._core.is_cut_short or is_due
            is_over = not is_wanted or self._is_followed()
            is_due = False
            if not is_over:
                self._hold_session(now_us, None)

    def _is_followed(self) -> bool:
        """
        Say whether the parent tells when sessions are held: one more than it held may tell other
        reasons for what waits, though it starts nothing.
        """
        is_past = self._recorded.next is None
        return self._has_its_policy and not self._inputs.has_left and not is_past

    def _take_one(self, now_us: int) -> bool:
        """
        Take the next thing of a moment; False when there is none.
        """
        plans = self._agents.plans
        step = self._recorded.next if self._recorded.time_us == now_us else None
        is_planned = bool(plans) and plans[0].time_us == now_us
        if is_planned and (step is None or plans[0].rank <= step[-1].position):
            self._carry_out()
        elif step is None:
            return False
        elif is_session(self._recorded.take()):
            self._hold_session(now_us, step)
        else:
            self._inputs.take_step(step, now_us)
        return True

    def _carry_out(self) -> None:
        plan = heappop(self._agents.plans)
        if plan.added is not None:
            self._inputs.add(plan.added, plan.time_us)
        else:
            self._agents.carry_out(plan, plan.time_us)
        self._inputs.is_dirty = True

    # -- sessions

    def _hold_session(self, now_us: int, recorded: list[Envelope] | None) -> None:
        """
        Hold a session, plan what follows from it, and hold it against the parent's.
        """
        self._inputs.is_dirty = False
        made = self._engine.hold_session(now_us)
        for stamped in made:
            if isinstance(stamped.event, JobDispatched):
                self._wakeups = 0
                self._agents.plan_start(stamped.stream, stamped.event.attempt, now_us)
            elif isinstance(stamped.event, JobKillOrdered):
                self._agents.plan_kill(stamped, stamped.event)
            elif isinstance(stamped.event, JobSignalOrdered):
                self._agents.plan_signal(stamped, stamped.event)
            elif isinstance(stamped.event, JobSuspendOrdered | JobResumeOrdered):
                self._agents.plan_order(stamped, stamped.event)
        if self._result.differs_at is None:
            self._compare(made, recorded or [])

    def _compare(self, made: list[Stamped], there: list[Envelope]) -> None:
        """
        Note the first decision that isn't the parent's; what comes after its end is no difference.

        A changed branch has other figures of hosts than its parent (what was measured isn't carried
        over), and they stand in the reasons why jobs wait: there, what explains isn't compared.
        """
        if not there and self._recorded.next is None:
            return
        if self._inputs.has_left:
            made = [one for one in made if not isinstance(one.event, EXPLAINING)]
            there = [one for one in there if not isinstance(one.event, EXPLAINING)]
        for old, new in zip(there, made, strict=False):
            if _decision(old) != _decision(new):
                became = _words(new)
                if became == _words(old):
                    became = "the same with other values"
                self._note_difference(old.position, f"{_words(old)} became {became}")
                return
        if len(made) > len(there):
            position = there[-1].position if there else self._last_position()
            self._note_difference(position, f"{_words(made[len(there)])} is new")
        elif len(there) > len(made):
            missing = there[len(made)]
            self._note_difference(missing.position, f"{_words(missing)} is missing")

    def _last_position(self) -> int:
        """
        Return the last position of the parent that was taken.
        """
        step = self._recorded.next
        return self._parent.head() if step is None else step[0].position - 1

    def _note_difference(self, position: int, words: str) -> None:
        self._result.differs_at = position
        self._result.differs = words
        self._inputs.has_left = True


def _is_input(envelope: Envelope) -> bool:
    is_decision = envelope.cause.startswith("session ")
    return not is_decision and not isinstance(envelope.event, JOB_REPORTS)


def _decision(stamped: Stamped | Envelope) -> tuple[str, int, Event]:
    return stamped.stream, stamped.time_us, stamped.event


def _words(stamped: Stamped | Envelope) -> str:
    return f"{stamped.event.TYPE_CODE} in {stamped.stream}"

"""
A picker that raises, at whatever hook, and a command whose handling does: what was committed is all
there is, the rest is dropped with the core, and what is recovered from the log is as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pytest

from domain.commands import (
    DefineQueue,
    HoldJob,
    JoinWorker,
    KillJob,
    ModifyJob,
    MoveJob,
    RequeueJob,
    StopJob,
    SubmitJob,
    SwitchJob,
    WorkerReport,
)
from domain.jobs import JobSpec
from domain.queues import QueueSpec
from projections.scheduling.core import Core
from projections.scheduling.derived import derived
from projections.scheduling.pickers.fcfs import BuiltinFcfs
from projections.scheduling.plugins import Plugins
from replay.engine import Engine
from tests.builders import SECOND_US, beginning, some_settings
from tests.projections.scheduling.faults import out_of_memory_at
from tests.replay.logs import ListLog

NOW_US = SECOND_US


class Faulty:
    """
    Be the built-in picker, but for a hook that raises at its n-th call.
    """

    name = "faulty"
    version = 1

    def __init__(self, fault: Fault) -> None:
        self._picker = BuiltinFcfs()
        self._fault = fault

    def __getattr__(self, hook: str) -> Any:
        found = getattr(self._picker, hook)
        if hook != self._fault.hook:
            return found

        def raising(*arguments: Any) -> Any:
            self._fault.calls_left -= 1
            if self._fault.calls_left < 0:
                raise RuntimeError(hook)
            return found(*arguments)

        return raising


class Fault:
    """
    Say at which hook a picker raises, "" for none, and how many calls of it go well.
    """

    def __init__(self) -> None:
        self.hook = ""
        self.calls_left = 0


class Trial:
    """
    Hold an engine in use, and what was committed.
    """

    def __init__(self) -> None:
        self.fault = Fault()
        self.plugins = Plugins()
        self.plugins.pickers["faulty"] = lambda: Faulty(self.fault)  # type: ignore[assignment,return-value]
        self.log = ListLog([])
        self.engine = Engine(self.log, Core(plugins=self.plugins))
        for command in beginning(some_settings(picker="faulty"), self.plugins):
            self.tell(command)
        self.tell(JoinWorker(worker="h1", slots=4))
        self.submit(1)
        self.engine.hold_session(NOW_US)
        self.submit(1)
        self.submit(2)
        self.submit(5)
        self.engine.commit()
        self.before = self.all_of(self.engine)

    def tell(self, command: Any) -> None:
        self.engine.accept(command, actor="alice", now_us=NOW_US)

    def submit(self, tasks: int) -> None:
        spec = JobSpec(user="alice", queue="normal", tasks_min=tasks, tasks_max=tasks)
        self.tell(SubmitJob(spec=spec))

    def all_of(self, engine: Engine) -> tuple[object, ...]:
        return engine.core.snapshot(), derived(engine.core.state)

    def recovered(self) -> Engine:
        self.fault.hook = ""
        return Engine.recover(self.log, plugins=self.plugins)


STEPS: dict[str, Callable[[Trial], Any]] = {
    "session": lambda trial: trial.engine.hold_session(NOW_US),
    "submission": lambda trial: trial.submit(1),
    "hold": lambda trial: trial.tell(HoldJob(job_id="2")),
    "queue": lambda trial: trial.tell(DefineQueue(queue="normal", spec=QueueSpec(priority=9))),
}
HOOKS = [
    ("session", "begin_session", 0),
    ("session", "next_job", 0),
    ("session", "next_job", 2),
    ("session", "on_dispatch", 0),
    ("session", "on_dispatch", 1),
    ("session", "on_pend", 0),
    ("session", "on_job_state_change", 1),
    ("session", "end_session", 0),
    ("submission", "on_job_push", 0),
    ("hold", "on_job_state_change", 0),
    ("queue", "on_queue_update", 0),
]


def check_fault(
    step: str,
    hook: str,
    calls: int,
    around: Callable[[Trial], AbstractContextManager[None]] = lambda _: nullcontext(),
) -> None:
    """
    Have a hook raise, and see that what is recovered is as it was, and decides as it would have.
    """
    trial, other = Trial(), Trial()
    expected = other.engine.hold_session(NOW_US)
    trial.fault.hook, trial.fault.calls_left = hook, calls
    with around(trial), pytest.raises(RuntimeError, match=hook):
        STEPS[step](trial)

    again = trial.recovered()

    assert trial.before == trial.all_of(again)
    assert expected == again.hold_session(NOW_US)


@pytest.mark.parametrize(("step", "hook", "calls"), HOOKS)
def test_a_fault_in_a_hook_of_a_picker_leaves_what_was_committed(
    step: str, hook: str, calls: int
) -> None:
    """
    The core in memory is of no more use; nothing of the step is in the log.
    """
    check_fault(step, hook, calls)


@contextmanager
def half_steps_kept(trial: Trial) -> Iterator[None]:
    """
    Append each event as soon as it is folded.
    """
    kept = Core._fold

    def fold(self: Core, stamped: Any) -> None:
        kept(self, stamped)
        trial.log.append([stamped])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Core, "_fold", fold)
        yield


def test_sabotage_an_engine_that_keeps_half_a_step_is_caught() -> None:
    """
    A comparison that such an engine passes would prove nothing.
    """
    with pytest.raises(AssertionError):
        check_fault("session", "on_dispatch", 0, half_steps_kept)


# ------------------------------------------------------------------------------------- commands


def modified(trial: Trial) -> ModifyJob:
    """
    Return a change of a waiting job.
    """
    spec = trial.engine.core.state.job("3").spec
    return ModifyJob(job_id="3", spec=spec.model_copy(update={"resreq": ("rusage[mem=5]",)}))


COMMANDS: dict[str, Callable[[Trial], Any]] = {
    "submit": lambda _: SubmitJob(
        spec=JobSpec(
            user="alice",
            queue="normal",
            resreq=("1*{rusage[mem=5]} + 1*{order[mem]}",),
            dependency_text="done(1)",
        )
    ),
    "modify": modified,
    "hold": lambda _: HoldJob(job_id="2"),
    "kill": lambda _: KillJob(job_id="1"),
    "stop": lambda _: StopJob(job_id="1"),
    "requeue": lambda _: RequeueJob(job_id="1"),
    "switch": lambda _: SwitchJob(job_id="2", queue="other"),
    "move": lambda _: MoveJob(job_id="2", to="top"),
    "queue": lambda _: DefineQueue(queue="normal", spec=QueueSpec(priority=9)),
    "report": lambda _: WorkerReport(worker="h1", incarnation=1),
}


def check_handling(name: str) -> None:
    """
    Have each step of handling a command raise, and see that the state is as it was, and that the
    command is handled as if nothing had been.
    """
    trial = Trial()
    trial.tell(DefineQueue(queue="other", spec=QueueSpec(priority=5)))
    command, core, before = COMMANDS[name](trial), trial.engine.core, trial.all_of(trial.engine)
    other = Core.restore(core.snapshot(), trial.plugins)
    with out_of_memory_at(0, "projections/scheduling/", "domain/") as count:
        expected = other.handle(command, actor="alice", now_us=NOW_US)
    assert count[0] > 3
    for step in range(1, count[0] + 1):
        try:
            with out_of_memory_at(step, "projections/scheduling/", "domain/"):
                core.handle(command, actor="alice", now_us=NOW_US)
        except MemoryError:
            pass
        assert before == trial.all_of(trial.engine), step
    assert expected == core.handle(command, actor="alice", now_us=NOW_US)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_fault_at_any_step_of_handling_a_command_changes_nothing(name: str) -> None:
    """
    To handle is to look: what it memoises on the way is the same the next time.
    """
    check_handling(name)


def test_sabotage_handling_that_takes_a_number_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A comparison that handling passes which changes something would prove nothing.
    """
    kept = Core.handle

    def handle(self: Core, *arguments: Any, **more: Any) -> Any:
        self.state.stored.events += 1
        return kept(self, *arguments, **more)

    monkeypatch.setattr(Core, "handle", handle)

    with pytest.raises(AssertionError):
        check_handling("submit")

"""
The engine thread when the disk says no: what is told, what is kept, when the process must end.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import weakref
from collections.abc import Awaitable, Callable, Sequence
from itertools import zip_longest
from pathlib import Path

import pytest

from domain.commands import DefineCluster, StartScheduler, SubmitJob
from domain.envelope import Stamped
from domain.errors import OutcomeUnknown, StoreUnavailable
from domain.jobs import JobSpec, Program
from projections.scheduling.plugins import Plugins
from projections.scheduling.state import State
from replay.engine import Engine
from store.log import EventLog
from store.snapshots import SnapshotStore
from tools import collecting
from tools.daemon.access import Caller
from tools.daemon.config import DaemonSettings, first_commands
from tools.daemon.engine_thread import EngineThread
from tools.daemon.journal import Journal
from tools.daemon.requests import Read, Reply, Request, Submission

USER = Caller(1000, "user")
REPO = Path(__file__).resolve().parent.parent.parent


class FailingLog:
    """
    Be a real log whose append can be made to fail, before or after it has written.
    """

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.log_id = log.log_id
        self.failures: list[tuple[bool, Exception]] = []
        self.commits = 0
        self.after_append: Callable[[], None] = lambda: None

    def append(self, events: Sequence[Stamped]) -> int:
        self.commits += 1
        if self.failures:
            is_written, failure = self.failures.pop(0)
            if is_written:
                self._log.append(events)
            raise failure
        position = self._log.append(events)
        self.after_append()
        return position

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)


class Harness:
    """
    Run an engine thread over a real log in a loop of the test's own.
    """

    def __init__(self, folder: Path, settings: DaemonSettings | None = None) -> None:
        settings = settings or DaemonSettings()
        self.log = FailingLog(EventLog.create(folder / "log"))
        self.snapshots = SnapshotStore(folder / "snapshots", log_id=self.log.log_id)
        self.journal = Journal(folder / "journal")
        self.status: int | None = None
        self.recoveries = 0
        self.thread = EngineThread(self._recover, settings, bytes(32), self.journal, self._ended)
        engine, plugins = self.thread.engine, Plugins()
        started = StartScheduler(
            epoch=1,
            holder="test",
            code_version="0",
            pickers=plugins.picker_versions(),
            allocators=plugins.allocator_versions(),
        )
        for command in (started, *first_commands(settings)):
            engine.accept(command, actor="", now_us=self.thread.clock.now_us())
        engine.commit()

    def _recover(self) -> Engine:
        self.recoveries += 1
        return Engine.recover(self.log, snapshots=self.snapshots)

    def _ended(self, status: int) -> None:
        self.status = status

    def run(
        self,
        *steps: Callable[[], list[Request]],
        pauses: Sequence[Callable[[], Awaitable[None]] | None] = (),
    ) -> list[list[Reply]]:
        """
        Ask the requests of each step at once, step after step, each after its pause; then stop.
        """

        async def script() -> list[list[Reply]]:
            self.thread.start(asyncio.get_running_loop())
            answers = []
            for step, pause in zip_longest(steps, pauses):
                if pause is not None:
                    await pause()
                asked = [asyncio.ensure_future(self.thread.ask(one)) for one in step()]
                answers.append(list(await asyncio.wait_for(asyncio.gather(*asked), 20)))
            self.thread.stop()
            return answers

        try:
            return asyncio.run(script())
        finally:
            self.thread.join()

    def close(self) -> None:
        self.log.close()
        self.journal.close()


@pytest.fixture
def harness(tmp_path: Path):
    found = Harness(tmp_path)
    yield found
    found.close()


def submission(key: str) -> Request:
    spec = JobSpec(user="user", queue="normal", program=Program(argv=("true",)))
    return Submission(SubmitJob(spec=spec, key=key, digest="same"), USER)


def count_jobs() -> Request:
    return Read(lambda engine: {"jobs": len(engine.core.state.stored.jobs)})


def jobs_of(reply: Reply) -> int:
    return json.loads(reply.body)["jobs"]


def test_requests_that_wait_together_share_one_commit(harness: Harness) -> None:
    """
    Group commit: a synced write for each request would be what limits a busy scheduler.
    """
    before = harness.log.commits

    (answers,) = harness.run(lambda: [submission(f"k{number}") for number in range(40)])

    assert [201] * 40 == [reply.status for reply in answers]
    assert [str(number) for number in range(1, 41)] == [
        json.loads(one.body)["job_id"] for one in answers
    ]
    # All, or one and then the rest; and the last commit is that of the stop.
    assert harness.log.commits - before <= 3


def test_sessions_keep_their_distance_and_none_is_left_out(harness: Harness) -> None:
    """
    With a least distance a job waits for the next session, not for the next request.
    """
    settings = harness.thread.engine.core.state.settings()
    slower = settings.model_copy(update={"session_interval_us": 300_000})
    harness.thread.engine.accept(
        DefineCluster(settings=slower), actor="", now_us=harness.thread.clock.now_us()
    )
    harness.thread.engine.commit()

    def sessions() -> Request:
        return Read(lambda engine: {"jobs": engine.core.state.stored.session_number})

    async def pause() -> None:
        await asyncio.sleep(0.5)

    first, second, third = harness.run(
        lambda: [submission("a"), sessions()],
        lambda: [submission("b"), sessions()],
        lambda: [sessions()],
        pauses=[None, None, pause],
    )

    assert [1, 1, 2] == [jobs_of(one[-1]) for one in (first, second, third)]


def test_a_full_disk_is_told_and_nothing_of_the_batch_stays(harness: Harness) -> None:
    """
    What couldn't be recorded must leave no trace in memory; with room again all goes on.
    """
    full = StoreUnavailable("disk full", "/there")
    harness.log.failures = []

    def fail() -> list[Request]:
        harness.log.failures = [(False, full)]
        return [submission("lost")]

    good, lost, seen, again = harness.run(
        lambda: [submission("first")], fail, lambda: [count_jobs()], lambda: [submission("lost")]
    )

    assert [201, 503, 201] == [good[0].status, lost[0].status, again[0].status]
    assert ("disk full", "none") == (
        json.loads(lost[0].body)["error"]["resource"],
        json.loads(lost[0].body)["outcome"],
    )
    assert (1, 2, 0) == (jobs_of(seen[0]), harness.recoveries, harness.status)
    assert "2" == json.loads(again[0].body)["job_id"]


@pytest.mark.parametrize("is_written", [True, False])
def test_an_unknown_outcome_ends_the_process_and_the_key_tells_the_truth_later(
    harness: Harness, tmp_path: Path, is_written: bool
) -> None:
    """
    A sync that failed is never tried again and called a success; only a restart can tell.
    """
    harness.log.failures = [(is_written, OutcomeUnknown("sync failed"))]

    ((unknown, read),) = harness.run(lambda: [submission("k"), count_jobs()])

    assert (503, "unknown") == (unknown.status, json.loads(unknown.body)["outcome"])
    assert (503, 3) == (read.status, harness.status)
    recovered = Engine.recover(harness.log)
    again = recovered.accept(submission("k").command, actor="user", now_us=2**52)
    assert is_written == again.replayed


def test_a_request_that_breaks_something_takes_no_other_with_it(harness: Harness) -> None:
    """
    An unforeseen failure answers 500 to whoever caused it; others may ask again.
    """

    class Broken(Submission):
        def take(self, engine: Engine, now_us: int) -> None:
            super().take(engine, now_us)
            raise ZeroDivisionError

    broken = Broken(submission("b").command, USER)
    hurt, seen, good = harness.run(
        lambda: [broken], lambda: [count_jobs()], lambda: [submission("g")]
    )

    assert [500, 200, 201] == [hurt[0].status, seen[0].status, good[0].status]
    assert (0, 0) == (jobs_of(seen[0]), harness.status)


def test_a_fault_in_a_session_ends_the_process_and_leaves_nobody_waiting(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """
    A broken core must not go on; who asked hears of it at once, and the journal has the story.
    """
    monkeypatch.setattr(Engine, "hold_session", lambda *_: 1 / 0)

    hurt, late = harness.run(lambda: [submission("a")], lambda: [count_jobs()])

    assert [500, 503, 70] == [hurt[0].status, late[0].status, harness.status]
    assert "ZeroDivisionError" in (tmp_path / "journal").read_text()


def most_cores_alive(folder: Path) -> int:
    """
    Return how many cores live at once while thirty commits fail; for a process of its own.
    """
    # As if the state were large, so that it is set aside at once.
    collecting.YOUNG_LIVE = 1
    alive: weakref.WeakSet[State] = weakref.WeakSet()
    made = State.__init__

    def note(self: State, *args: object, **options: object) -> None:
        alive.add(self)
        made(self, *args, **options)  # type: ignore[arg-type]

    State.__init__ = note  # type: ignore[method-assign]
    harness = Harness(folder)
    counts = []

    def fail() -> list[Request]:
        harness.log.failures = [(False, StoreUnavailable("disk full", "/there"))]
        counts.append(len(alive))
        return [submission("x")]

    harness.run(*[fail] * 30)
    harness.close()
    assert harness.recoveries > 30
    return max(counts)


def test_a_core_that_was_dropped_for_a_failed_commit_is_let_go(tmp_path: Path) -> None:
    """
    It is in cycles, and what lives on is set aside: on a full disk a large cluster would grow by a
    whole state every few batches.
    """
    script = (
        "import sys; from pathlib import Path;"
        "from tests.tools.test_engine_thread import most_cores_alive;"
        "print(most_cores_alive(Path(sys.argv[1])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path], cwd=REPO, check=True, stdout=subprocess.PIPE
    )

    assert int(done.stdout) <= 3


def test_whoever_asks_after_the_end_is_turned_away(harness: Harness) -> None:
    """
    A request that nobody will ever answer must not hang.
    """

    async def late() -> Reply:
        harness.thread.start(asyncio.get_running_loop())
        harness.thread.stop()
        await asyncio.to_thread(harness.thread.join)
        return await asyncio.wait_for(harness.thread.ask(count_jobs()), 5)

    reply = asyncio.run(late())
    harness.thread.join()

    assert 503 == reply.status

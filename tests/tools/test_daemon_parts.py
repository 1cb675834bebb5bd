"""
The small parts of the live driver: clock, key, silence, refusals, and what each worker is told.
"""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path

import pytest

from domain.arrays import ArraySpec, IndexRange
from domain.commands import (
    JobFinishedReport,
    JoinWorker,
    KillJob,
    LeaveWorker,
    MarkUnreachable,
    StartScheduler,
    SubmitJob,
)
from domain.errors import Conflict, Denied, Refused
from domain.events.refusals import AccessDenied, CommandRefused
from domain.jobs import JobSpec, Program
from projections.scheduling.plugins import Plugins
from replay.at import LADDER
from replay.engine import Engine
from store.log import EventLog
from tools.daemon.bodies import ModifyRequest
from tools.daemon.capability import capability, cluster_key, is_capability
from tools.daemon.clock import LogClock
from tools.daemon.config import ClusterFiles, DaemonSettings, first_commands
from tools.daemon.liveness import Liveness
from tools.daemon.refusals import BURST, RefusalRecorder
from tools.daemon.requests import Reply
from tools.daemon.work import WorkBooks, WorkPoll

S = 1_000_000_000


@pytest.fixture
def engine(tmp_path: Path):
    """
    Give an engine of a cluster with two hosts of ten slots.
    """
    log = EventLog.create(tmp_path / "log")
    engine = Engine.recover(log)
    plugins = Plugins()
    started = StartScheduler(
        epoch=1,
        holder="test",
        code_version="0",
        pickers=plugins.picker_versions(),
        allocators=plugins.allocator_versions(),
    )
    joins = [JoinWorker(worker=name, slots=10) for name in ("w1", "w2")]
    for command in (started, *first_commands(DaemonSettings()), *joins):
        engine.accept(command, actor="", now_us=1)
    engine.commit()
    yield engine
    log.close()


# -------------------------------------------------------------------------------------------- clock


def test_stamps_begin_at_the_later_of_last_stamp_and_wall_and_never_fall() -> None:
    """
    A wall clock that was set back must not bring time in the log back with it.
    """
    future_us = time.time_ns() // 1000 + 3_600_000_000
    ahead = LogClock(future_us)
    present = LogClock(5)
    stamps = [ahead.now_us() for _ in range(1000)]

    assert stamps[0] >= future_us
    assert all(one <= other for one, other in pairwise(stamps))
    assert abs(present.now_us() - time.time_ns() // 1000) < 5_000_000


# ---------------------------------------------------------------------------------------------- key


def test_a_capability_fits_one_attempt_of_one_job_on_one_worker(tmp_path: Path) -> None:
    """
    It is the same after a restart, and no other one passes for it.
    """
    key = cluster_key(tmp_path / "key")
    given = capability(key, "1", 1, "w")

    assert key == cluster_key(tmp_path / "key")
    assert is_capability(key, given, "1", 1, "w")
    others = [("2", 1, "w"), ("1", 2, "w"), ("1", 1, "v"), ("11", 1, "w")]
    assert [] == [one for one in others if is_capability(key, given, *one)]
    assert not is_capability(bytes(32), given, "1", 1, "w")


def test_a_key_that_others_can_read_or_that_is_none_is_refused(tmp_path: Path) -> None:
    """
    Slurm only complains; a key that was readable is no key any more.
    """
    cluster_key(tmp_path / "key")
    (tmp_path / "key").chmod(0o640)
    with pytest.raises(Refused, match="readable by its owner alone"):
        cluster_key(tmp_path / "key")
    (tmp_path / "short").write_bytes(b"x")
    (tmp_path / "short").chmod(0o600)
    with pytest.raises(Refused, match="must hold 32 bytes"):
        cluster_key(tmp_path / "short")


# ------------------------------------------------------------------------------------------ silence


def silent(liveness: Liveness, engine: Engine, *moments_s: float) -> list[str]:
    """
    Return who is silent at the last of some moments, each of them looked at.
    """
    found: list[MarkUnreachable] = []
    for moment_s in moments_s:
        found = liveness.silent(engine, round(moment_s * S))
    return [command.worker for command in found]


def test_a_worker_is_silent_after_the_time_and_heard_again(engine: Engine) -> None:
    """
    Each worker by itself, counted from its last word or our own beginning.
    """
    liveness = Liveness(10.0, 0)
    liveness.hear("w1", 5 * S)

    assert [] == silent(liveness, engine, 4, 8, 10)
    assert ["w2"] == silent(liveness, engine, 11)
    assert ["w1", "w2"] == silent(liveness, engine, 15.5)
    liveness.hear("w1", 16 * S)
    assert ["w2"] == silent(liveness, engine, 17)


def test_nobody_is_silent_because_we_were_away(engine: Engine) -> None:
    """
    A scheduler that was stopped for a minute hasn't read yet what was said meanwhile.
    """
    liveness = Liveness(10.0, 0)

    assert [] == silent(liveness, engine, 1, 60)
    assert ["w1", "w2"] == silent(liveness, engine, 64, 68, 71)


def test_who_has_left_or_is_marked_is_not_expected(engine: Engine) -> None:
    """
    Marking twice would fill the log.
    """
    engine.accept(LeaveWorker(worker="w1", incarnation=1), actor="", now_us=2)
    liveness = Liveness(10.0, 0)
    marked = [liveness.silent(engine, round(moment * S)) for moment in (4, 8, 11)][-1]
    for command in marked:
        engine.accept(command, actor="", now_us=3)

    assert ["w2"] == [command.worker for command in marked]
    assert [] == silent(liveness, engine, 12)


# ----------------------------------------------------------------------------------------- refusals


def test_refusals_beyond_the_rate_are_counted_and_the_count_is_recorded(engine: Engine) -> None:
    """
    Nothing is silently dropped: what isn't recorded one by one is recorded as a number.
    """
    recorder = RefusalRecorder(0)
    refused = Refused("field", "rule")
    before = engine.pending

    def record(now_ns: int) -> None:
        recorder.record(engine, KillJob(job_id="1"), refused, actor="u", now_us=2, now_ns=now_ns)

    for _ in range(BURST + 30):
        record(0)
    flood = engine.pending - before
    record(10 * S)
    engine.commit()

    assert BURST == flood
    events = [one.event for one in engine.log.read()]
    rules = [event.rule for event in events if isinstance(event, CommandRefused)]
    assert ["30 refusals before this one were counted, not recorded", "rule"] == rules[-2:]


def test_a_denied_access_is_recorded_with_the_rule_that_it_broke(engine: Engine) -> None:
    """
    Whoever asks later wants to know why, not only that.
    """
    denied = Denied("project", "must be one whose member the user is", "/secret")

    engine.refuse(KillJob(job_id="1"), denied, actor="eve", now_us=2)
    engine.commit()

    last = [one.event for one in engine.log.read()][-1]
    assert isinstance(last, AccessDenied)
    assert ("project", "must be one whose member the user is") == (last.field, last.rule)
    assert ("1", "/secret") == (last.subject, last.value)


# -------------------------------------------------------------------------------- what workers hear


class Books:
    """
    Drive the books as the engine thread does, and be both workers' agents.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.books = WorkBooks(bytes(32))
        self.now_us = 10

    def commit(self, *commands: object) -> None:
        self.now_us += 1
        for command in commands:
            self.engine.accept(command, actor="user", now_us=self.now_us)
        made = self.engine.hold_session(self.now_us)
        self.engine.commit()
        self.books.note(self.engine, made)

    def submit(self, count: int = 1, tasks: int = 1) -> None:
        spec = JobSpec(
            user="user",
            queue="normal",
            program=Program(argv=("true",)),
            tasks_min=tasks,
            tasks_max=tasks,
        )
        self.commit(*[SubmitJob(spec=spec)] * count)

    def finish(self, job_id: str, worker: str) -> None:
        self.commit(
            JobFinishedReport(worker=worker, incarnation=1, job_id=job_id, attempt=1, exit_code=0)
        )

    def ask(self, worker: str, revision: int) -> dict | None:
        """
        Return the answer to a poll, None when it waits (and is given up then).
        """
        poll = WorkPoll(worker, 1, revision, until_ns=10**18)
        self.books.arrive(poll)
        given: list[tuple[object, Reply]] = self.books.due(self.engine, 0, everybody=False)
        return json.loads(given[0][1].body) if given else None


@pytest.fixture
def books(engine: Engine) -> Books:
    return Books(engine)


def ids(answer: dict) -> list[str]:
    return [one["job_id"] for one in answer["assignments"]]


def test_a_worker_hears_the_whole_first_and_then_what_is_new(books: Books) -> None:
    """
    With thousands of running jobs each change would otherwise send them all again.
    """
    books.submit(2)
    whole = books.ask("w1", 0)
    waits = books.ask("w1", whole["revision"])
    books.submit(1)
    news = books.ask("w1", whole["revision"])

    assert (True, ["1", "2"]) == (whole["is_full"], ids(whole))
    assert waits is None
    assert (False, ["3"]) == (news["is_full"], ids(news))
    assert capability(bytes(32), "3", 1, "w1") == news["assignments"][0]["capability"]


def test_news_that_ended_meanwhile_is_no_news(books: Books) -> None:
    """
    An agent that lags must not start what has ended already.
    """
    first = books.ask("w1", 0)
    books.submit(2)
    books.finish("1", "w1")

    assert ["2"] == ids(books.ask("w1", first["revision"]))


def test_another_workers_work_wakes_nobody_else(books: Books) -> None:
    """
    A long poll is answered for a reason.
    """
    books.submit(1, tasks=10)
    revision = books.ask("w1", 0)["revision"]
    other = books.ask("w2", 0)["revision"]
    books.submit(1)

    assert books.ask("w1", revision) is None
    assert ["2"] == ids(books.ask("w2", other))


def test_a_kill_order_stands_until_it_is_done(books: Books) -> None:
    """
    An answer that was lost must not lose the order.
    """
    books.submit(1)
    revision = books.ask("w1", 0)["revision"]
    books.commit(KillJob(job_id="1"))
    told = books.ask("w1", revision)
    again = books.ask("w1", revision)
    books.finish("1", "w1")

    assert [(1, "kill", "1", 1)] == [
        (one["order_number"], one["kind"], one["job_id"], one["attempt"]) for one in told["orders"]
    ]
    assert told["orders"] == again["orders"]
    assert [] == books.ask("w1", 0)["orders"]


def test_after_a_recovery_everybody_gets_the_whole(books: Books) -> None:
    """
    The books aren't kept: what an agent knows from before is no reason to leave anything out.
    """
    books.submit(2)
    revision = books.ask("w1", 0)["revision"]
    books.submit(1)
    books.books.reset()

    answer = books.ask("w1", revision)

    assert (True, ["1", "2", "3"]) == (answer["is_full"], ids(answer))


def test_whoever_lags_behind_what_is_remembered_gets_the_whole(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The memory of news is bounded.
    """
    monkeypatch.setattr("tools.daemon.work.RECENT_MAX", 3)
    first = books.ask("w1", 0)
    for _ in range(5):
        books.submit(1)

    answer = books.ask("w1", first["revision"])

    assert (True, ["1", "2", "3", "4", "5"]) == (answer["is_full"], ids(answer))


def test_a_former_life_of_a_worker_gets_no_work(books: Books) -> None:
    """
    Two agents under one name would run everything twice.
    """
    books.commit(JoinWorker(worker="w1", slots=10))

    with pytest.raises(Conflict):
        WorkPoll("w1", 1, 0, 0).take(books.engine, 99)


def test_the_architecture_names_every_file_of_a_cluster_directory() -> None:
    """
    Whoever finds one there looks up what it is, and whether it may be deleted.
    """
    files = ClusterFiles(Path("DIR"))
    names = [getattr(files, name) for name, kind in vars(ClusterFiles).items()
             if isinstance(kind, property)]  # fmt: skip
    text = (Path(__file__).resolve().parents[2] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    told = text.partition("## A cluster directory\n")[2].partition("\n## ")[0]

    assert len(names) >= 8
    assert [] == [str(one) for one in (*names, Path("DIR") / LADDER) if f"    {one}" not in told]


def test_how_many_elements_are_started_is_a_whole_array_s() -> None:
    """
    Named for one element it would change for all of them.
    """
    array = ArraySpec(ranges=(IndexRange(start=1, end=2),))
    spec, asked = JobSpec(user="alice", queue="normal"), ModifyRequest(started_max=1)

    whole = asked.changed(spec.model_copy(update={"array": array}), "8", "normal")
    assert 1 == (whole.array and whole.array.started_max)
    for named, one in (("8[1]", whole), ("9", spec)):
        with pytest.raises(Refused) as refused:
            asked.changed(one, named, "normal")
        assert ("started_max", named) == (refused.value.field, refused.value.value)

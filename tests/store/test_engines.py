"""
The same log on every engine: ours on LMDB, and the library's SQLite and PostgreSQL modules.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from eventsourcing.persistence import InfrastructureFactory
from eventsourcing.utils import Environment as Variables

from domain.errors import Conflict, StoreUnavailable
from store.log import EventLog
from tests.store import postgres
from tools.torture.workload import fill, job_events, jobs_events

POSTGRES = pytest.param(
    "eventsourcing.postgres",
    marks=[pytest.mark.needs_program("pg_ctlcluster", "postgresql"), pytest.mark.slow],
)
MODULES = ["store.embedded", "eventsourcing.sqlite", POSTGRES]


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, str]]:
    with postgres.server() as settings:
        yield settings


@pytest.fixture(params=MODULES)
def make_log(request, tmp_path: Path) -> Iterator[Callable[[], EventLog]]:
    """
    Give a function that opens one log, each time through a factory of its own.
    """
    settings = {"PERSISTENCE_MODULE": request.param, "ORIGINATOR_ID_TYPE": "text"}
    settings |= {"LMDB_PATH": str(tmp_path / "log"), "SQLITE_DBNAME": str(tmp_path / "db")}
    if "postgres" in request.param:
        settings |= request.getfixturevalue("server")
    factories = []

    def make() -> EventLog:
        # A table of its own for each test: the library prefixes it with the application's name.
        name = "t" + str(abs(hash(str(tmp_path))))[:12]
        factories.append(InfrastructureFactory.construct(Variables(name, settings)))
        return EventLog.from_recorder(factories[-1].application_recorder(), log_id="the-log")

    yield make
    for factory in factories:
        factory.close()


def test_what_went_in_comes_out(make_log) -> None:
    """
    The engine above must not see a difference.
    """
    log = make_log()
    appended = fill(log, commits=3)

    assert appended == [envelope.stamped() for envelope in log.read()]
    assert appended[7:99] == [envelope.stamped() for envelope in log.read(7, 99)]
    assert job_events(17)[1:] == [each.stamped() for each in log.read_stream("job:0000000017", 1)]
    assert (len(appended), appended[-1].time_us) == (log.head(), log.last_time_us())


def test_a_taken_version_undoes_the_whole_commit(make_log) -> None:
    """
    Positions above must be increasing, not consecutive: PostgreSQL leaves a gap here.
    """
    log = make_log()
    appended = fill(log, commits=1)
    with pytest.raises(Conflict):
        log.append([*job_events(50), *job_events(3)])
    log.append(job_events(50))

    assert [*appended, *job_events(50)] == [envelope.stamped() for envelope in log.read()]
    positions = [envelope.position for envelope in log.read()]
    assert sorted(set(positions)) == positions
    assert log.head() == positions[-1]


def test_a_digest_names_a_position(make_log) -> None:
    """
    A snapshot of another history must not be taken.
    """
    log = make_log()
    fill(log, commits=1)

    assert 41 == len({log.digest_at(position) for position in range(41)})


def test_another_opener_reads_the_same_and_follows(make_log) -> None:
    """
    Followers are other processes.
    """
    log = make_log()
    appended = fill(log, commits=1)
    other = make_log()
    assert appended == [envelope.stamped() for envelope in other.read()]
    follower = other.follow(after=log.head())
    seen = []

    def consume() -> None:
        for envelope in follower:
            seen.append(envelope.stamped())
            if len(seen) == 8:
                follower.stop()

    thread = threading.Thread(target=consume)
    thread.start()
    log.append(job_events(70))
    log.append(job_events(71))
    thread.join(timeout=20)

    assert not thread.is_alive()
    assert jobs_events(70, 2) == seen


@pytest.mark.needs_program("pg_ctlcluster", "postgresql")
@pytest.mark.slow
def test_the_database_functions_of_the_library_are_refused(server: dict[str, str]) -> None:
    """
    With them a reader skips positions, and tracking is dropped without a word.
    """
    settings = {
        "PERSISTENCE_MODULE": "eventsourcing.postgres",
        "POSTGRES_ENABLE_DB_FUNCTIONS": "y",
        **server,
    }
    factory = InfrastructureFactory.construct(Variables("functions", settings))
    try:
        with pytest.raises(StoreUnavailable) as caught:
            EventLog.from_recorder(factory.application_recorder(), log_id="the-log")
        assert "POSTGRES_ENABLE_DB_FUNCTIONS" in str(caught.value)
    finally:
        factory.close()

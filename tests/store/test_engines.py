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

from domain.envelope import Stamped
from domain.errors import Conflict, StoreUnavailable
from store.chain import digest_within, genesis
from store.codec import encode
from store.log import EventLog
from store.recorded_verify import verify_recorded
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

    positions = [envelope.position for envelope in log.read()]
    assert appended == [envelope.stamped() for envelope in log.read()]
    part = [envelope.stamped() for envelope in log.read(positions[6], positions[98])]
    assert appended[7:99] == part
    assert job_events(17)[1:] == [each.stamped() for each in log.read_stream("job:0000000017", 1)]
    assert appended[-1].time_us == log.last_time_us()
    assert [] == list(log.read(positions[-1]))


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
    assert [] == list(log.read(log.head()))


def test_a_digest_names_a_position(make_log) -> None:
    """
    A snapshot of another history must not be taken.
    """
    log = make_log()
    fill(log, commits=1)

    assert 41 == len({log.digest_at(position) for position in range(41)})


def test_the_digest_chains_over_everything_before(make_log) -> None:
    """
    It must not name the event at its position alone: two histories may end alike.
    """
    log = make_log()
    log.append(job_events(1))
    log.append(job_events(2))
    ends = [envelope.position for envelope in log.read()]

    assert log.digest_at(ends[-1]) == log.digest_at(log.head())
    origin = genesis("the-log", b"recorder")
    rows = [encode(stamped) for stamped in job_events(1)]
    first = digest_within(origin, rows)
    assert first == log.digest_at(ends[3])
    rows = [encode(stamped) for stamped in job_events(2)]
    assert digest_within(first, rows[:2]) == log.digest_at(ends[5])
    assert digest_within(first, rows) == log.head_digest()


def test_a_long_commit_has_its_digest_everywhere(make_log) -> None:
    """
    It is longer than the pages in which it is read.
    """
    log = make_log()
    log.append(job_events(1))
    log.append(jobs_events(2, 600))
    last = [envelope.position for envelope in log.read()][-1]

    assert log.digest_at(last) == log.head_digest()


def tampering(text: str) -> list[Stamped]:
    """
    Return the events of a job whose name is known, to find it in a table.
    """
    first, *rest = job_events(50)
    return [first._replace(cause=text), *rest]


OF_JOB = "WHERE originator_id = 'job:0000000050'"
OF_DIGEST = "WHERE originator_id = 'log-digest' AND originator_version = 2"
RAISED = "originator_version = originator_version + 1000"
TAMPERINGS = {
    "edit": (
        f"UPDATE {{table}} SET state = {{edited}} {OF_JOB} AND originator_version = 1",
        "chain",
    ),
    "re-date": (
        f"UPDATE {{table}} SET state = {{dated}} {OF_JOB} AND originator_version = 1",
        "chain",
    ),
    "remove": (f"DELETE FROM {{table}} {OF_JOB} AND originator_version = 4", "chain"),
    "rename": (f"UPDATE {{table}} SET originator_id = 'job:0000000051' {OF_JOB}", "chain"),
    "renumber": (f"UPDATE {{table}} SET {RAISED} {OF_JOB}", "order"),
    "remove a digest": (f"DELETE FROM {{table}} {OF_DIGEST}", "gap"),
    "change a digest": (f"UPDATE {{table}} SET state = {{digest}} {OF_DIGEST}", "chain"),
}


@pytest.mark.parametrize("name", list(TAMPERINGS))
@pytest.mark.parametrize("module", MODULES[1:])
def test_a_row_that_was_tampered_with_is_found(
    request, tmp_path: Path, module: str, name: str
) -> None:
    """
    Whoever has the database's password can change a row; the digests show it.
    """
    settings = {"PERSISTENCE_MODULE": module, "ORIGINATOR_ID_TYPE": "text"}
    settings |= {"SQLITE_DBNAME": str(tmp_path / "db")}
    is_postgres = "postgres" in module
    if is_postgres:
        settings |= request.getfixturevalue("server")
    table = "t" + str(abs(hash(str(tmp_path))))[:12] + "_events" if is_postgres else "stored_events"
    factory = InfrastructureFactory.construct(Variables(table.removesuffix("_events"), settings))
    recorder = factory.application_recorder()
    try:
        log = EventLog.from_recorder(recorder, log_id="the-log")
        fill(log, commits=1)
        log.append(tampering("was here"))
        log.append(job_events(60))
        good = verify_recorded(recorder, log_id="the-log")
        assert (True, 48, 3) == (good.is_good, good.events, good.commits), good.first_problem
        assert good.head_digest == log.head_digest().hex()
        state = bytes(recorder.select_events("job:0000000050", limit=1)[0].state)
        digest = bytes(recorder.select_events("log-digest", gt=1, limit=1)[0].state)
        statement, kind = TAMPERINGS[name]
        values = {
            "edited": state.replace(b"was here", b"not here"),
            "dated": state.replace(b'{"t":1', b'{"t":2'),
            "digest": digest.replace(b"a", b"b"),
        }
        written = {
            key: f"'\\x{value.hex()}'::bytea" if is_postgres else f"X'{value.hex()}'"
            for key, value in values.items()
        }
        change(factory, statement.format(table=table, **written), is_postgres=is_postgres)

        problem = verify_recorded(recorder, log_id="the-log").first_problem
        assert problem is not None
        assert kind == problem.kind
        assert problem.position is not None
        assert 41 <= problem.position - 1 <= 46
    finally:
        factory.close()


def change(factory, statement: str, *, is_postgres: bool) -> None:
    """
    Change a table behind the recorder's back.
    """
    if is_postgres:
        with factory.datastore.get_connection() as connection, connection.cursor() as cursor:
            cursor.execute(statement, prepare=False)
            connection.commit()
    else:
        with factory.datastore.transaction(commit=True) as cursor:
            cursor.execute(statement)


def test_a_writer_that_was_passed_cannot_append(make_log) -> None:
    """
    The digest's version is the count of commits: whoever counts wrong isn't the writer any more.
    """
    old, new = make_log(), make_log()
    old.append(job_events(1))
    new.append(job_events(2))
    for number in (3, 4):
        with pytest.raises(Conflict) as caught:
            old.append(job_events(number))
        assert "writer of the log" in str(caught.value)
    new.append(job_events(3))

    assert jobs_events(1, 3) == [envelope.stamped() for envelope in new.read()]


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

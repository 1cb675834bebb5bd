"""
Whoever asks in SQL can only read, and is told plainly what isn't allowed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.errors import Corrupt, NotFound, Refused
from projections.audit.reading import Reading
from tests.projections.audit.logs import SECOND_US, a_cluster
from tests.projections.audit.making import made


@pytest.fixture
def reading(tmp_path: Path):
    """
    Return a small read model, opened for reading.
    """
    log = a_cluster()
    log.job(1)
    with made(tmp_path / "a.db", log.envelopes) as opened:
        yield opened


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM jobs",
        "INSERT INTO about VALUES ('a', 'b')",
        "DROP TABLE jobs",
        "CREATE TEMP TABLE t (x)",
        "ATTACH 'FOLDER/other.db' AS other",
        "VACUUM INTO 'FOLDER/copy.db'",
        "VACUUM",
        "PRAGMA query_only = OFF",
        "PRAGMA writable_schema = ON",
        "PRAGMA journal_mode = DELETE",
        "SELECT load_extension('x')",
        "BEGIN; DELETE FROM jobs",
        "COMMIT",
        "WITH x AS (SELECT 1) DELETE FROM jobs",
        "SELECT 1; DELETE FROM jobs",
        "EXPLAIN",
        "nonsense",
        "",
    ],
)
def test_nothing_but_reading_is_possible(reading: Reading, tmp_path: Path, query: str) -> None:
    """
    Writing, other files and settings are refused before anything happens.
    """
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(Refused) as refused:
        list(reading.sql(query.replace("FOLDER", str(tmp_path)))[1])

    assert "query" == refused.value.field
    if query.split(" ", maxsplit=1)[0] in ("ATTACH", "PRAGMA", "DROP", "DELETE", "INSERT"):
        assert "must only read" in refused.value.rule
    assert ["main"] == [row["name"] for row in reading.rows("PRAGMA database_list")]
    assert 1 == reading.value("SELECT count(*) FROM jobs")
    assert before == sorted(path.name for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM jobs",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n",
        "SELECT json_extract(payload, '$.spec.user') FROM events WHERE type = 'job.submitted'",
        "SELECT rowid FROM jobs_fts WHERE jobs_fts MATCH 'job'",
        "PRAGMA table_info(jobs)",
        "EXPLAIN QUERY PLAN SELECT * FROM pend_reasons WHERE job_id = '1'",
    ],
)
def test_reading_in_every_form_is_possible(reading: Reading, query: str) -> None:
    """
    A rule that refuses everything would refuse the wrong ones too.
    """
    heads, rows = reading.sql(query)

    assert heads
    assert list(rows)


def test_all_queries_of_one_reading_see_one_moment(reading: Reading, tmp_path: Path) -> None:
    """
    A follower may write between two queries: an answer put together from both must still be true.
    """
    from projections.audit.read_model import ReadModel

    model = ReadModel.open(reading.path, log_id="test")
    model.database.execute("DELETE FROM jobs")

    assert 1 == reading.value("SELECT count(*) FROM jobs")
    model.close()
    with Reading(reading.path) as later:
        assert 0 == later.value("SELECT count(*) FROM jobs")


def test_a_time_finds_its_position(reading: Reading) -> None:
    """
    There is no index of times: stamps never fall, so halving finds the last event that isn't later.
    """
    times = [row["time_us"] for row in reading.rows("SELECT time_us FROM events ORDER BY position")]

    found = [reading.position_at(time_us) for time_us in times]

    assert [1, 2, 3, 4] == found
    assert (0, 2, 4) == (
        reading.position_at(times[0] - 1),
        reading.position_at(times[1] + 1),
        reading.position_at(times[-1] + SECOND_US),
    )


def test_no_file_and_another_database_are_refused_by_name(tmp_path: Path) -> None:
    """
    Each says what to do.
    """
    import sqlite3

    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE t (x)").connection.close()
    (tmp_path / "rubbish.db").write_bytes(b"rubbish" * 1000)

    with pytest.raises(NotFound):
        Reading(tmp_path / "none.db")
    with pytest.raises(Corrupt) as foreign:
        Reading(tmp_path / "other.db")
    with pytest.raises(Corrupt) as rubbish:
        Reading(tmp_path / "rubbish.db")
    assert ("foreign", "structure") == (foreign.value.kind, rubbish.value.kind)


def test_damage_is_found_by_the_integrity_check(tmp_path: Path) -> None:
    """
    SQLite has no checksums: only its own check of the whole structure finds a torn page.
    """
    log = a_cluster()
    for number in range(1, 200):
        log.job(number)
    made(tmp_path / "a.db", log.envelopes).close()
    with Reading(tmp_path / "a.db") as reading:
        assert [] == reading.problems()
    content = bytearray((tmp_path / "a.db").read_bytes())
    pages = len(content) // 4096
    for page in range(pages // 2, pages):
        content[page * 4096 : page * 4096 + 200] = b"\xff" * 200
    (tmp_path / "a.db").write_bytes(content)

    def look() -> list[str]:
        with Reading(tmp_path / "a.db") as damaged:
            return damaged.problems()

    with pytest.raises(Corrupt) as found:
        _refuse(look())
    assert "structure" == found.value.kind


def _refuse(problems: list[str]) -> None:
    """
    Raise what the command does when the check finds something.
    """
    if problems:
        raise Corrupt("structure", None, "ok", problems[0])


@pytest.mark.parametrize("ask", [Reading.table, Reading.sql])
def test_rows_that_nobody_reads_to_their_end_are_given_up_quietly(reading: Reading, ask) -> None:
    """
    As when what reads a pipe ends first: the connection is closed before the rows are dropped.
    """
    _, rows = ask(reading, "SELECT * FROM events")
    begun = iter(rows)
    next(begun)
    reading.close()

    begun.close()

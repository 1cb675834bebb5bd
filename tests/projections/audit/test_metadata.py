"""
The tables explain themselves: every column has its words, every canned query runs, Datasette opens
it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from projections.audit.metadata import (
    CANNED,
    described,
    documentation,
    metadata,
    metadata_json,
    names,
)
from projections.audit.reading import Reading
from projections.audit.schema import tables
from projections.audit.views import VIEWS
from tests.conftest import REPO
from tests.projections.audit.logs import a_cluster, dispatched, pended, short_of_slots
from tests.projections.audit.making import made


@pytest.fixture
def reading(tmp_path: Path):
    """
    Return tables with a job that waited and ran.
    """
    log = a_cluster()
    job = log.job(1)
    log.session(("reasons", short_of_slots()), (job, pended()))
    log.session((job, dispatched(1)))
    with made(tmp_path / "audit.db", log.envelopes) as opened:
        yield opened


def test_every_column_of_every_table_and_view_is_described(reading: Reading) -> None:
    """
    As SQLite itself lists them: nobody has to guess what a column says.
    """
    for name in names():
        doc, columns = described(name)
        found = [row["name"] for row in reading.rows(f"PRAGMA table_info({name})")]
        assert doc.endswith(".")
        assert found == [column for column, _, _ in columns]
        assert all(words for _, _, words in columns)


def test_no_other_table_is_in_the_file_than_those_described(reading: Reading) -> None:
    """
    Only SQLite's own, those of the full-text index, and the two that say what this is.
    """
    found = {
        row["name"]
        for row in reading.rows("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
    }

    others = {name for name in found - set(names()) if not re.match(r"jobs_fts|sqlite_", name)}

    assert {"about", "tracking"} == others


def test_the_row_classes_take_their_columns_in_order(reading: Reading) -> None:
    """
    A column that is written into another one's place would be silent.
    """
    for table in tables().values():
        for row in reading.table(table.read_sql)[1]:
            made_again = table.row(*row)
            taken = tuple(made_again) if table.grows else table.values(made_again)
            assert row == taken


@pytest.mark.parametrize("canned", CANNED, ids=lambda one: one.name)
def test_every_canned_query_runs(reading: Reading, canned) -> None:
    """
    With its parameters filled in, and it gives named columns.
    """
    values = {"job_id": "1", "actor": "ann", "host": "h1", "words": "job", "time_us": 1_005_000_000}
    sql = re.sub(
        r":([a-z_]+)", lambda found: repr(values[found[1]]), canned.sql.replace("%H:%M:%S", "%T%")
    )

    heads, rows = reading.sql(sql.replace("%T%", "%H:%M:%S"))

    assert heads
    list(rows)


def test_the_documentation_in_the_repository_is_the_one_made_from_the_tables() -> None:
    """
    Make it again: xce audit tables --markdown > docs/audit-tables.md.
    """
    assert documentation() == (REPO / "docs" / "audit-tables.md").read_text()


def test_the_metadata_names_tables_and_columns_that_exist() -> None:
    """
    A renamed column would leave its description behind.
    """
    content = json.loads(metadata_json("audit"))
    tables_told = content["databases"]["audit"]["tables"]

    assert metadata("audit") == content
    assert {*names(), "tracking", "about"} == set(tables_told)
    assert {view.name for view in VIEWS} <= set(tables_told)


@pytest.mark.slow
def test_datasette_opens_it_as_it_is(reading: Reading, tmp_path: Path) -> None:
    """
    The file, its metadata, and a canned query through Datasette's own server.
    """
    if find_spec("datasette") is None:
        pytest.skip("needs the package datasette (extra test)")
    file = shutil.copy(reading.path, tmp_path / "copy.db")
    (tmp_path / "metadata.json").write_text(metadata_json("copy"))

    def get(path: str) -> dict:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "datasette",
                str(file),
                "--metadata",
                str(tmp_path / "metadata.json"),
                "--get",
                path,
            ],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return json.loads(done.stdout)

    rows = get("/copy/why_did_it_wait.json?job_id=1&_shape=array")
    table = get("/copy/jobs.json?_shape=objects")

    assert ["JOB_NEW", "HOST_SLOTS"] == [row["code"] for row in rows]
    assert "1" == table["rows"][0]["job_id"]

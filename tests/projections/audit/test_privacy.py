"""
What a user's jobs run is shown to that user and to those with the right, wherever it stands.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.errors import Refused
from domain.events.jobs import JobModified
from domain.events.refusals import CommandRefused
from domain.jobs import JobLimits, JobSpec
from projections.audit.history import story
from projections.audit.privacy import Viewer
from projections.audit.reading import Reading
from projections.audit.who import Question, commands
from tests.projections.audit.logs import a_cluster, a_program
from tests.projections.audit.making import made

WORD = "hush"


@pytest.fixture
def reading(tmp_path: Path):
    """
    Return the tables of a job of ann whose command says the word before and after a change; a
    further change that said it was refused.
    """
    log = a_cluster()
    job = log.job(1, program=a_program("cat", f"{WORD}-1"))
    program = a_program("cat", f"{WORD}-2")
    spec = JobSpec(user="ann", queue="normal", name="renamed", program=program)
    log.add(job, JobModified(spec=spec), "ann")
    refused = CommandRefused(
        command="ModifyJob", subject="1", field="cwd", rule="must be a path", value=f"{WORD}-3"
    )
    log.add("refusals", refused, "ann")
    with made(tmp_path / "a.db", log.envelopes) as opened:
        yield opened


@pytest.mark.parametrize(("viewer", "is_told"), [("ann", True), ("ben", False)])
def test_a_story_tells_changes_of_the_command_to_its_user_only(
    reading: Reading, viewer: str, *, is_told: bool
) -> None:
    """
    Old and new values say the command as well as the words do.
    """
    told = repr(story(reading, "1", viewer=Viewer(viewer)).plain())

    assert [is_told] * 3 == [f"{WORD}-{number}" in told for number in (1, 2, 3)]
    assert "renamed" in told
    assert "must be a path" in told


@pytest.mark.parametrize(("viewer", "is_told"), [("ann", True), ("ben", False)])
def test_who_did_what_tells_changes_of_the_command_to_its_user_only(
    reading: Reading, viewer: str, *, is_told: bool
) -> None:
    """
    Everybody may know that a job was changed, not to which command.
    """
    told = repr(commands(reading, Question(), Viewer(viewer)))

    assert [is_told] * 3 == [f"{WORD}-{number}" in told for number in (1, 2, 3)]
    assert "renamed" in told
    assert "must be a path" in told


def test_no_table_or_view_tells_it_in_sql(reading: Reading) -> None:
    """
    Every table and view is read whole: a new one that shows commands fails here.
    """
    names = [
        row["name"]
        for row in reading.rows("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        if not row["name"].startswith("jobs_fts")
    ]
    everything = [repr(list(reading.sql(f'SELECT * FROM "{name}"')[1])) for name in names]
    assert not any("S3CRET" in rows for rows in everything)
    assert sum(WORD in rows for rows in everything) >= 5

    reading.hide_private()

    for name in names:
        assert WORD not in repr(list(reading.sql(f'SELECT * FROM "{name}"')[1])), name


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT rowid FROM jobs_fts WHERE jobs_fts MATCH '{WORD}'",
        "SELECT * FROM jobs_fts",
        "SELECT * FROM jobs_fts_data",
    ],
)
def test_whoever_may_not_see_commands_may_not_search_them(reading: Reading, query: str) -> None:
    """
    A hit tells what is in a command as well as showing it does.
    """
    assert reading.sql(query)[0]

    reading.hide_private()

    with pytest.raises(Refused):
        list(reading.sql(query)[1])


def test_conditions_on_a_hidden_column_hold_for_nothing(reading: Reading) -> None:
    """
    It can't be guessed word by word either.
    """
    query = f"SELECT count(*) FROM jobs WHERE command LIKE '%{WORD}%'"
    assert [(1,)] == list(reading.sql(query)[1])

    reading.hide_private()

    assert [(0,)] == list(reading.sql(query)[1])


def test_what_runs_before_and_after_a_command_is_as_private(tmp_path: Path) -> None:
    """
    It is the user's as much; also where something else of the job was changed.
    """
    log = a_cluster()
    texts = {"pre_exec": f"{WORD}-before", "post_exec": f"{WORD}-after"}
    program = a_program("true").model_copy(update=texts)
    job = log.job(1, program=program)
    limits = JobLimits(memory_kib=4096)
    spec = JobSpec(user="ann", queue="normal", program=program, limits=limits)
    log.add(job, JobModified(spec=spec), "ann")
    less = a_program("true").model_copy(update={"pre_exec": f"{WORD}-other"})
    log.add(job, JobModified(spec=spec.model_copy(update={"program": less})), "ann")
    with made(tmp_path / "a.db", log.envelopes) as reading:
        asked = "SELECT pre_exec, post_exec FROM jobs"
        assert [(f"{WORD}-other", "")] == list(reading.sql(asked)[1])

        for_ann, for_ben = (
            repr(story(reading, "1", viewer=Viewer(user)).plain())
            + repr(commands(reading, Question(), Viewer(user)))
            for user in ("ann", "ben")
        )
        reading.hide_private()
        row = repr(list(reading.sql("SELECT * FROM jobs")[1]))

    assert [True, False, False] == [WORD in told for told in (for_ann, for_ben, row)]
    assert ["4096" in told for told in (for_ann, for_ben, row)] == [True] * 3

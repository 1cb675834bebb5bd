"""
A read model belongs to one log and one version of the program, and is carried on only there.
"""

from __future__ import annotations

import os
import pickle
import signal
import stat
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from domain.errors import Conflict, Corrupt, InvariantBroken, NotFound, StoreUnavailable
from projections.audit.projection import AuditProjection
from projections.audit.read_model import OtherVersion, ReadModel
from projections.audit.reading import Reading
from tests.projections.audit.driving import driven, some_actions
from tests.projections.audit.logs import a_cluster
from tests.projections.audit.making import compared, made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """
    Return the file of a small read model.
    """
    log = a_cluster()
    log.job(1)
    made(tmp_path / "a.db", log.envelopes).close()
    return tmp_path / "a.db"


def test_its_file_is_its_owners_alone(path: Path) -> None:
    """
    It holds everybody's commands.
    """
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)


def test_a_read_model_of_another_log_is_refused(path: Path) -> None:
    """
    Two logs in one set of tables would be neither's history.
    """
    with pytest.raises(Conflict) as refused:
        ReadModel.open(path, log_id="other")

    assert ("test", "other") == (refused.value.expected, refused.value.found)


def test_a_log_that_is_behind_the_read_model_is_refused(path: Path) -> None:
    """
    A log restored from a backup will give the same positions to other events.
    """
    model = ReadModel.open(path, log_id="test")
    with pytest.raises(Conflict, match="ahead of the log"):
        model.check_against(head=3, digest="")
    model.close()


def test_a_log_with_another_history_is_refused(path: Path) -> None:
    """
    The same id and enough positions aren't enough: the digests up to our position must agree.
    """
    log = a_cluster()
    model = ReadModel.open(path, log_id="test")
    AuditProjection(model).take(
        [log.envelopes[-1]._replace(position=model.position() + 1)], digest="abc"
    )

    model.check_against(head=99, digest="abc")
    with pytest.raises(Conflict, match="isn't the one that the read model was made from"):
        model.check_against(head=99, digest="abd")
    model.close()


def test_tables_are_known_to_be_a_whole_log_s_only_when_all_of_it_agrees(path: Path) -> None:
    """
    On this word a question doesn't even look at what might have to be caught up.
    """
    model = ReadModel.open(path, log_id="test")
    head, digest = model.position(), model.digest()
    others = [("other", head, digest), ("test", head + 1, digest), ("test", head, digest + "0")]
    with Reading(path) as reading:
        agrees = reading.is_of("test", head, digest)
        differ = [reading.is_of(*one) for one in others]
    model.database.execute("UPDATE about SET value = 'old' WHERE key = 'schema_version'")
    model.close()
    with Reading(path) as reading:
        is_of_another_version = reading.is_of("test", head, digest)

    assert (True, [False] * 3, False) == (agrees, differ, is_of_another_version)


def test_a_read_model_of_another_version_is_told_apart(path: Path) -> None:
    """
    It is made anew, never migrated: the caller must be able to tell it from a foreign one.
    """
    model = ReadModel.open(path, log_id="test")
    model.database.execute("UPDATE about SET value = 'old' WHERE key = 'schema_version'")
    model.close()

    with pytest.raises(OtherVersion):
        ReadModel.open(path, log_id="test")


def test_no_file_another_database_and_rubbish_are_told_apart(tmp_path: Path) -> None:
    """
    Each needs another answer: make it, leave it alone, make it anew.
    """
    (tmp_path / "rubbish.db").write_bytes(b"no database" * 1000)
    with Reading(made(tmp_path / "own.db", a_cluster().envelopes).path) as reading:
        del reading
    import sqlite3

    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE t (x)")
    other.close()

    with pytest.raises(NotFound):
        ReadModel.open(tmp_path / "none.db", log_id="test")
    with pytest.raises(Corrupt) as rubbish:
        ReadModel.open(tmp_path / "rubbish.db", log_id="test")
    with pytest.raises(Corrupt) as foreign:
        ReadModel.open(tmp_path / "other.db", log_id="test")
    assert ("structure", "foreign") == (rubbish.value.kind, foreign.value.kind)


def test_events_are_taken_once(path: Path) -> None:
    """
    A batch that was taken already is a fault of the caller, not a second set of rows.
    """
    model = ReadModel.open(path, log_id="test")
    with pytest.raises(InvariantBroken):
        AuditProjection(model).take(a_cluster().envelopes[:1])
    model.close()


def test_the_second_of_two_projections_fails_and_leaves_no_rows(path: Path, tmp_path: Path) -> None:
    """
    Two processes fill one file: whoever comes second finds the position gone.
    """
    log = a_cluster()
    log.job(1)
    known = len(log.envelopes)
    log.job(2)
    log.job(3)
    first, second = (AuditProjection(ReadModel.open(path, log_id="test")) for _ in range(2))
    first.take(log.envelopes[known : known + 1])

    with pytest.raises(Conflict, match="another process"):
        second.take(log.envelopes[known:])
    first.take(log.envelopes[known + 1 :])
    first.model.close()
    second.model.close()

    assert [] == compared(Reading(path), made(tmp_path / "b.db", log.envelopes))


def test_a_full_disk_is_named_and_what_was_written_stays(path: Path, tmp_path: Path) -> None:
    """
    A batch that has no room is taken again later; the tables stay what they were.
    """
    log = a_cluster()
    log.job(1)
    known = len(log.envelopes)
    log.job(2, name="x" * 4000)
    model = ReadModel.open(path, log_id="test")
    pages = model.database.execute("PRAGMA page_count").fetchone()[0]
    model.database.execute(f"PRAGMA max_page_count={pages}")

    with pytest.raises(StoreUnavailable, match="disk full"):
        AuditProjection(model).take(log.envelopes[known:])
    model.database.execute("PRAGMA max_page_count=1000000")
    AuditProjection(model).take(log.envelopes[known:])
    model.close()

    assert [] == compared(Reading(path), made(tmp_path / "b.db", log.envelopes))


FILLER = """
import pickle
import sys
from pathlib import Path
from projections.audit.projection import AuditProjection
from projections.audit.read_model import ReadModel
model = ReadModel.open(sys.argv[1], log_id="test")
projection = AuditProjection(model)
rest = pickle.loads(Path(sys.argv[2]).read_bytes())[projection.position:]
print("ready", flush=True)
projection.catch_up(rest, batch_events=7)
print("done", flush=True)
"""


@pytest.mark.slow
def test_killed_anywhere_and_carried_on_the_tables_equal_a_fresh_rebuild(tmp_path: Path) -> None:
    """
    Kill -9 in the middle of filling, again and again, then once to the end: row for row the same.
    """
    envelopes = driven(some_actions(5, 400)).envelopes
    (tmp_path / "envelopes").write_bytes(pickle.dumps(envelopes))
    path, chance, kills = tmp_path / "killed.db", Random(3), 0
    ReadModel.create(path, log_id="test").close()
    while True:
        filler = subprocess.Popen(
            [sys.executable, "-c", FILLER, str(path), str(tmp_path / "envelopes")],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).resolve().parents[3],
        )
        assert filler.stdout is not None
        assert "ready\n" == filler.stdout.readline()
        if kills < 6:
            try:
                filler.wait(chance.random() * 0.06)
            except subprocess.TimeoutExpired:
                os.kill(filler.pid, signal.SIGKILL)
                kills += 1
        rest = filler.stdout.read()
        filler.stdout.close()
        filler.wait()
        if rest:
            break

    assert 6 == kills or kills > 0
    assert [] == compared(Reading(path), made(tmp_path / "fresh.db", envelopes))

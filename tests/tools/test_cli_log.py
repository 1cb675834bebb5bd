"""
The commands about logs and snapshots as files: what they say, and with which exit status.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from tests.tools import live_cluster
from tools.cli.main import run
from tools.dev.golden import write_log
from tools.torture.workload import job_events


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_log(tmp_path / "cluster")
    return tmp_path


def told(capsys) -> dict[str, object]:
    return json.loads(capsys.readouterr().out)


def test_info_describes_a_log_or_the_cluster_around_it(place: Path, capsys) -> None:
    """
    People name the cluster's directory.
    """
    for name in ("cluster", "cluster/log"):
        assert 0 == run(["log", "info", str(place / name), "--json"])
        info = told(capsys)
        assert ("golden", 4604, 2) == (info["log_id"], info["events"], info["epoch"])
    assert 0 == run(["log", "info", str(place / "cluster")])
    assert "4604" in capsys.readouterr().out


def test_what_is_not_there_is_not_found(tmp_path: Path, capsys) -> None:
    """
    Exit status 1, and nothing is made.
    """
    for command in ("info", "verify", "head", "compact"):
        assert 1 == run(["log", command, str(tmp_path)])
    assert 1 == run(["log", "export", str(tmp_path), str(tmp_path / "file")])
    assert [] == list(tmp_path.iterdir())
    capsys.readouterr()


def test_verify_ends_with_4_and_names_the_first_bad_position(place: Path, capsys) -> None:
    """
    For scripts and for people.
    """
    assert 0 == run(["log", "verify", str(place / "cluster"), "--json"])
    assert told(capsys)["is_good"]
    data = place / "cluster" / "log" / "data.mdb"
    content = bytearray(data.read_bytes())
    # The last frame, wherever it lies, and its copies on pages that are free by now.
    frames = [found.start() for found in re.finditer(rb"XF\x01[\x00\x01]", content)]
    last = max(content[at + 8 : at + 16] for at in frames)
    for at in frames:
        if content[at + 8 : at + 16] == last:
            content[at + 130] ^= 1
    data.write_bytes(content)

    assert 4 == run(["log", "verify", str(place / "cluster"), "--json"])
    problem = told(capsys)["problems"][0]
    assert "checksum" == problem["kind"]
    assert problem["position"] > 1
    assert 4 == run(["log", "verify", str(place / "cluster")])
    assert f"checksum at position {problem['position']}" in capsys.readouterr().out


def test_a_log_that_is_written_is_refused_by_who_would_write_too(place: Path, capsys) -> None:
    """
    Exit status 3, naming the process.
    """
    from store.log import EventLog

    with EventLog.open(place / "cluster", writable=True):
        assert 3 == run(["log", "archive", str(place / "cluster"), "--keep", "10"])
        assert 3 == run(["log", "compact", str(place / "cluster")])
        assert "process" in capsys.readouterr().err
        assert 0 == run(["log", "backup", str(place / "cluster"), str(place / "copy")])
        assert 0 == run(["log", "info", str(place / "copy")])


def test_export_import_archive_prune_and_repair_hold_together(place: Path, capsys) -> None:
    """
    The growth commands on one log.
    """
    log = str(place / "cluster" / "log")
    assert 0 == run(["log", "export", log, str(place / "lines.zst"), "--json"])
    digest = told(capsys)["head_digest"]
    assert 0 == run(["log", "import", str(place / "lines.zst"), str(place / "again"), "--json"])
    assert digest == told(capsys)["head_digest"]
    assert 2 == run(["log", "archive", log])
    assert 0 == run(["log", "archive", log, "--keep", "10"])
    assert 2 == run(["log", "prune", log, "--upto", "120"])
    assert "xce: --yes: must be given" in capsys.readouterr().err
    assert 0 == run(["log", "prune", log, "--upto", "120", "--yes"])
    assert 0 == run(["log", "compact", log])
    capsys.readouterr()
    assert 0 == run(["log", "verify", log])
    assert "Everything before position 121 was pruned." in capsys.readouterr().out
    assert 0 == run(["log", "repair", str(place / "again"), str(place / "repaired"), "--json"])
    assert 4604 == told(capsys)["events"]


def test_a_part_of_a_log_is_no_log_but_nothing_is_wrong_with_it(place: Path, capsys) -> None:
    """
    Who tries to import one is told what it is good for, not that it is damaged.
    """
    part = str(place / "part.jsonl")
    span = ("--from", "1", "--to", "120")
    assert 0 == run(["log", "export", str(place / "cluster" / "log"), part, *span])

    assert 2 == run(["log", "import", part, str(place / "again")])
    said = capsys.readouterr().err
    assert f"xce replay verify {part}; xce simulate {part}" in said
    assert not (place / "again").exists()


def test_archiving_and_pruning_are_themselves_in_the_log(place: Path, capsys) -> None:
    """
    Who removed what, and when, is told by the log that is left, anchor by anchor; also twice over.
    """
    from store.log import EventLog

    log = place / "cluster" / "log"
    assert 0 == run(["log", "archive", str(log), "--keep", "10"])
    assert 0 == run(["log", "prune", str(log), "--upto", "120", "--yes"])
    assert 0 == run(["log", "prune", str(log), "--upto", "120", "--yes"])
    assert 0 == run(["log", "archive", str(log), "--keep", "1"])
    capsys.readouterr()

    with EventLog.open(log, writable=False) as opened:
        told_by_log = list(opened.read_stream("log"))
    archived = [one for one in told_by_log if one.event.TYPE_CODE == "log.archived"]
    pruned = [one for one in told_by_log if one.event.TYPE_CODE == "log.pruned"]
    assert list(range(1, len(told_by_log) + 1)) == [one.version for one in told_by_log]
    # The first was moved before, by somebody who recorded nothing; it is pruned by now.
    assert 120 == archived[0].event.last_position
    assert 3 == len(archived)
    for event in (one.event for one in archived[1:]):
        content = (log / "archive" / event.file).read_bytes()
        assert hashlib.sha256(content).hexdigest() == event.sha256
        with EventLog.open(log, writable=False) as opened:
            assert opened.digest_at(event.last_position).hex() == event.digest
    assert [(1, 120, "root")] == [
        (one.event.first_position, one.event.last_position, one.actor) for one in pruned
    ]
    assert all(one.event.wall_time_us > 10**15 for one in told_by_log)
    assert 0 == run(["log", "verify", str(log)])
    capsys.readouterr()


def test_a_kept_head_shows_what_the_log_alone_cannot(place: Path, capsys) -> None:
    """
    An older copy verifies, but doesn't go on from the head.
    """
    from store.log import EventLog

    log, key, head = (str(place / name) for name in ("cluster", "key", "head"))
    assert 0 == run(["log", "backup", log, str(place / "old")])
    with EventLog.open(log, writable=True) as opened:
        opened.append(job_events(9000))
    capsys.readouterr()
    assert 0 == run(["log", "make-key", key, "--json"])
    assert {"private": key, "public": f"{key}.pub"} == told(capsys)
    assert 0 == run(["log", "head", log, "--sign", key, "--json"])
    Path(head).write_text(capsys.readouterr().out)

    assert 0 == run(["log", "check-head", log, head, "--key", f"{key}.pub", "--json"])
    assert told(capsys)["is_good"]
    assert 0 == run(["log", "verify", str(place / "old")])
    assert 4 == run(["log", "check-head", str(place / "old"), head])
    capsys.readouterr()


def test_snapshots_are_listed_checked_pinned_and_pruned(place: Path, capsys) -> None:
    """
    A bad one is named, and doesn't stop the list.
    """
    log = str(place / "cluster")
    assert 0 == run(["snapshot", "check", log])
    capsys.readouterr()
    assert 0 == run(["snapshot", "pin", log, "4604", "--json"])
    assert (4604, True) == ((pinned := told(capsys))["position"], pinned["pinned"])
    assert 1 == run(["snapshot", "pin", log, "17"])
    assert "POSITION: must be that of a snapshot (given: 17)" in capsys.readouterr().err
    next((place / "cluster" / "snapshots").glob("*.snapshot")).write_bytes(b"rubbish")
    capsys.readouterr()
    assert 0 == run(["snapshot", "list", log, "--json"])
    assert "truncated" in told(capsys)["snapshots"][0]["problem"]
    assert 4 == run(["snapshot", "check", log])
    capsys.readouterr()
    assert 0 == run(["snapshot", "prune", log, "--keep", "1", "--json"])
    assert [] == told(capsys)["removed"]


def test_what_no_snapshot_makes_up_for_is_not_pruned(place: Path, capsys) -> None:
    """
    A log that was pruned further than its snapshots reach would never run again.
    """
    log = str(place / "cluster")
    files = list((place / "cluster" / "log" / "archive").iterdir())
    for snapshot in (place / "cluster" / "snapshots").glob("*.snapshot"):
        snapshot.write_bytes(b"rubbish")

    assert 2 == run(["log", "prune", log, "--upto", "120", "--yes"])

    assert "xce snapshot make" in capsys.readouterr().err
    assert files == list((place / "cluster" / "log" / "archive").iterdir())
    assert 0 == run(["log", "prune", log, "--upto", "120", "--yes", "--force"])
    capsys.readouterr()


def test_a_snapshot_is_made_of_a_log_that_nobody_writes(tmp_path: Path, capsys) -> None:
    """
    It is the state that the whole log gives, and recovery starts from it.
    """
    from domain.commands import StartScheduler
    from projections.scheduling.core import SCHEMA
    from replay.engine import Engine
    from replay.plugins import found_plugins
    from store.log import EventLog
    from store.snapshots import SnapshotStore
    from tools.daemon.config import DaemonSettings, first_commands

    cluster = tmp_path / "cluster"
    (cluster / "snapshots").mkdir(parents=True)
    plugins = found_plugins()
    started = StartScheduler(
        epoch=1,
        holder="test",
        code_version="0",
        pickers=plugins.picker_versions(),
        allocators=plugins.allocator_versions(),
    )
    with EventLog.create(cluster / "log") as log:
        engine = Engine.recover(log, plugins=plugins)
        for command in (started, *first_commands(DaemonSettings())):
            engine.accept(command, actor="", now_us=1)
        engine.commit()

    assert 0 == run(["snapshot", "make", str(cluster), "--json"])
    made = told(capsys)

    with EventLog.open(cluster, writable=False) as log:
        store = SnapshotStore(cluster / "snapshots", log_id=log.log_id)
        found = store.newest_good(schema=SCHEMA, head=log.head(), digest_at=log.digest_at)
        assert found is not None
        assert (log.head(), str(found.path)) == (made["position"], made["file"])
        assert log.head() == found.position
        assert Engine.recover(log).core.snapshot() == found.state


def test_a_snapshot_is_not_made_beside_a_writer_that_serves_nobody(place: Path, capsys) -> None:
    """
    Exit status 3, naming the process; nothing is written.
    """
    from store.log import EventLog

    before = sorted((place / "cluster" / "snapshots").iterdir())
    with EventLog.open(place / "cluster", writable=True):
        assert 3 == run(["snapshot", "make", str(place / "cluster")])

    assert "process" in capsys.readouterr().err
    assert before == sorted((place / "cluster" / "snapshots").iterdir())


@pytest.mark.slow
def test_a_running_scheduler_makes_the_snapshot_itself(tmp_path: Path, capsys) -> None:
    """
    As of the commit that it stands at, and it goes on.
    """
    with live_cluster.running(tmp_path / "cluster", workers=1) as cluster:
        cluster.wait_ended(cluster.submit("true"))

        assert 0 == run(["snapshot", "make", str(tmp_path / "cluster"), "--json"])
        made = told(capsys)
        assert 0 == run(["snapshot", "check", str(tmp_path / "cluster")])

        assert Path(made["file"]).is_file()
        assert Path(made["file"]).parent == tmp_path / "cluster" / "snapshots"
        assert 0 < made["position"] <= cluster.get("/v1/status")["position"]
        cluster.wait_ended(cluster.submit("true"))
    capsys.readouterr()


def test_what_is_damaged_is_told_with_its_file_and_the_next_step(place: Path, capsys) -> None:
    """
    Who reads it at night must know which file, what of it, and what to type.
    """
    log, data = place / "cluster" / "log", place / "cluster" / "log" / "data.mdb"
    whole = data.read_bytes()
    data.write_bytes(whole[:30000])
    assert 4 == run(["log", "verify", str(log)])
    out = capsys.readouterr().out
    assert f"1 problem in {log}. To save what is good: xce log repair {log} NEW." in out
    assert 4 == run(["log", "info", str(log)])
    assert f"in {data}" in (err := capsys.readouterr().err)
    assert "xce log repair" in err

    archive = log / "archive"
    archive.rename(place / "aside")
    data.write_bytes(b"")
    assert 4 == run(["log", "repair", str(log), str(place / "saved")])
    assert "Nothing that is good was found" in capsys.readouterr().out
    (place / "aside").rename(archive)

    data.write_bytes(whole)
    (log / "STORE").write_text("x")
    assert 4 == run(["log", "info", str(log)])
    assert "xce log repair LOG NEW --log-id ID" in capsys.readouterr().err
    (log / "STORE").unlink()
    assert 2 == run(["log", "repair", str(log), str(place / "again")])
    assert "must be given when the marker file is lost" in capsys.readouterr().err
    assert 0 == run(["log", "repair", str(log), str(place / "again"), "--log-id", "another"])
    assert "it may be another one" in capsys.readouterr().out


def test_a_state_that_cannot_be_made_of_a_log_is_told_as_damage(tmp_path: Path, capsys) -> None:
    """
    It was called a fault of XCE, by a start of the scheduler too.
    """
    from store.log import EventLog

    with EventLog.create(tmp_path / "log") as log:
        log.append(job_events(1))

    assert 4 == run(["snapshot", "make", str(tmp_path / "log")])
    assert "corrupt (order), at position 1" in (err := capsys.readouterr().err)
    assert "xce replay check" in err
    assert 0 == run(["snapshot", "check", str(tmp_path / "log")])
    assert "0 snapshots." in capsys.readouterr().out

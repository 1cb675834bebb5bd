"""
The running scheduler is recorded: the file replays by itself, and recording changes nothing.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from projections.scheduling.core import SCHEMA
from replay.at import ladder_of
from replay.engine import Engine
from replay.verify import VerifyResult, verify
from store.log import EventLog
from store.recordings import LogLines, Recording, SnapshotLine, write_recording
from store.transfer import RECORDING_FORMAT, RecordingHeader
from tests.tools import live_cluster
from tests.tools.live_cluster import Cluster, until
from tools.daemon.config import ClusterFiles
from tools.daemon.journal import Journal
from tools.daemon.recorder import Recorder

pytestmark = pytest.mark.slow


def verified(file: Path) -> VerifyResult:
    """
    Decide again what is in a recording, and compare its states.
    """
    with Recording(file) as recording:
        return verify(
            recording, after=recording.first_position - 1, start=ladder_of(recording).start,
            states=recording.snapshots,
        )  # fmt: skip


def same_events(cluster: Cluster, file: Path) -> bool:
    """
    Tell whether a recording holds what the log holds in that span.
    """
    with EventLog.open(cluster.directory, writable=False) as log, Recording(file) as recording:
        first, last = recording.first_position, recording.head()
        return list(log.rows(first - 1, last)) == list(recording.rows(first - 1))


def test_a_recording_replays_by_itself(tmp_path: Path) -> None:
    """
    It begins with the state as it was, holds every event of the log until it is stopped, and its
    states are those of the log; a second one can follow.
    """
    with live_cluster.running(tmp_path / "cluster") as cluster:
        earlier = cluster.shell("sleep 0.3")
        file = tmp_path / "one.jsonl"
        begun = cluster.post("/v1/recording/start", {"file": str(file), "states_every": 5})
        assert (True, str(file)) == (begun["recording"], begun["file"])
        for job in [earlier, *(cluster.shell("exit 0") for _ in range(6))]:
            cluster.wait_ended(job)
        until(lambda: cluster.get("/v1/recording")["events"] > 10, "events are written")
        told = cluster.post("/v1/recording/stop")

        assert not told["recording"]
        assert told["events"] >= 7 * 3
        result = verified(file)
        assert result.is_same
        assert (told["events"], told["states"]) == (result.events, result.states + 1)
        assert result.states >= 3
        assert same_events(cluster, file)
        assert 0o600 == file.stat().st_mode & 0o777
        cluster.post("/v1/recording/start", {"file": str(tmp_path / "two.jsonl")})
        assert cluster.get("/v1/recording")["recording"]


def test_what_cannot_be_recorded_is_refused(tmp_path: Path) -> None:
    """
    One clear answer each, and nothing is begun.
    """
    with live_cluster.running(tmp_path / "cluster") as cluster:
        there = tmp_path / "there.jsonl"
        there.write_text("mine")
        for file, status in (
            ("relative.jsonl", 422), (str(there), 422), (str(tmp_path / "x.jsonl.zst"), 422),
            (str(tmp_path / "no" / "x.jsonl"), 503), ("", 422),
        ):  # fmt: skip
            assert status == cluster.ask("POST", "/v1/recording/start", {"file": file})[0], file
        assert 422 == cluster.ask("POST", "/v1/recording/stop", {})[0]
        assert {"recording": False} == cluster.get("/v1/recording")
        cluster.post("/v1/recording/start", {"file": str(tmp_path / "a.jsonl")})
        again = cluster.ask("POST", "/v1/recording/start", {"file": str(tmp_path / "b.jsonl")})

        assert 409 == again[0]
        assert str(tmp_path / "a.jsonl") in again[1]["error"]["text"]
        assert "mine" == there.read_text()
        assert not (tmp_path / "b.jsonl").exists()


def writers(directory: Path) -> list[psutil.Process]:
    """
    Return the processes that write a recording of a cluster.
    """
    found = []
    for one in psutil.process_iter():
        with suppress(psutil.Error):
            words = one.cmdline()
            is_it = "tools.daemon.record_process" in words and str(directory) in words
            if is_it and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
    return found


def test_a_recording_ends_whole_with_its_scheduler(tmp_path: Path) -> None:
    """
    Also with one that is killed: what it had committed is written. Where the writer is killed too,
    the last whole line ends it; all of them replay.
    """
    with live_cluster.running(tmp_path / "cluster") as cluster:
        cluster.post("/v1/recording/start", {"file": str(tmp_path / "a.jsonl")})
        cluster.wait_ended(cluster.shell("exit 0"))
        cluster.stop()
        with EventLog.open(cluster.directory, writable=False) as log:
            head = log.head()
        with Recording(tmp_path / "a.jsonl") as recording:
            assert head == recording.head()
        assert verified(tmp_path / "a.jsonl").is_same

        cluster.start()
        cluster.post("/v1/recording/start", {"file": str(tmp_path / "b.jsonl")})
        cluster.wait_ended(cluster.shell("exit 0"))
        until(lambda: cluster.get("/v1/recording")["events"] > 4, "events are written")
        (writer,) = writers(cluster.directory)
        writer.suspend()
        cluster.wait_ended(cluster.shell("exit 0"))
        cluster.kill()
        writer.resume()
        until(lambda: not writers(cluster.directory), "the writer has ended")
        with EventLog.open(cluster.directory, writable=False) as log:
            head = log.head()
        with Recording(tmp_path / "b.jsonl") as recording:
            assert head == recording.head()
        assert verified(tmp_path / "b.jsonl").is_same
        assert same_events(cluster, tmp_path / "b.jsonl")

        with (tmp_path / "b.jsonl").open("r+b") as file:
            file.seek(-7, os.SEEK_END)
            file.truncate()
        result = verified(tmp_path / "b.jsonl")

        assert result.is_same
        assert result.events > 1
        assert same_events(cluster, tmp_path / "b.jsonl")


def test_a_recording_is_what_the_log_says_byte_by_byte(tmp_path: Path) -> None:
    """
    Who writes it, and when, leaves no trace: a state stands at the first commit at which so many
    events have followed the last one.
    """
    every, file = 6, tmp_path / "a.jsonl"
    with live_cluster.running(tmp_path / "cluster", workers=0) as cluster:
        cluster.submit("true")
        began = cluster.post("/v1/recording/start", {"file": str(file), "states_every": every})
        assert (1, 0) == (began["states"], began["events"])
        for _ in range(9):
            cluster.submit("true")
        told = cluster.post("/v1/recording/stop")
        cluster.stop()

    first, head = began["position"], told["position"]
    log = EventLog.open(cluster.directory, writable=False)
    with log, LogLines(cluster.directory) as lines:
        events = list(lines.events(first, head))
        due = [first]
        for event in events:
            if event.ends_commit and event.position - due[-1] >= every:
                due.append(event.position)
        states = [state_at(log, position) for position in due]
        header = RecordingHeader(
            RECORDING_FORMAT, log.log_id, first + 1, None, lines.epoch(), ""
        )
        write_recording(tmp_path / "b.jsonl", header, events, states)
    assert len(due) == told["states"] > 2
    assert every in [b - a for a, b in pairwise(due)]
    assert (tmp_path / "b.jsonl").read_bytes() == file.read_bytes()


def state_at(log: EventLog, position: int) -> SnapshotLine:
    core = Engine.recover(log, upto=position).core
    digest = log.digest_at(position).hex()
    return SnapshotLine(position, core.state.stored.time_us, SCHEMA, digest, core.snapshot())


def test_a_scheduler_goes_on_while_its_recording_stands_still(tmp_path: Path) -> None:
    """
    Nothing in it waits for the writer but who asks for its begin or end; one that is killed is
    told, and another recording can begin.
    """
    with live_cluster.running(tmp_path / "cluster", workers=0) as cluster:
        cluster.post("/v1/recording/start", {"file": str(tmp_path / "a.jsonl")})
        (writer,) = writers(cluster.directory)
        writer.suspend()
        jobs = [cluster.submit("true") for _ in range(20)]
        states = {cluster.job(job)["state"] for job in jobs}
        writer.kill()
        told = until(
            lambda: one if (one := cluster.get("/v1/recording")).get("problem") else None,
            "its end is told",
        )
        again = cluster.post("/v1/recording/start", {"file": str(tmp_path / "b.jsonl")})

        assert {"PEND"} == states
        assert not told["recording"]
        assert "status -9" in told["problem"]
        assert again["recording"]


def test_a_recording_that_cannot_begin_leaves_nothing(tmp_path: Path) -> None:
    """
    Its writer is killed before the state is written: who asked is told, and what was recorded
    before is told of still.
    """
    with live_cluster.running(tmp_path / "cluster", workers=0) as cluster:
        body = {"file": str(tmp_path / "a.jsonl")}
        with ThreadPoolExecutor(1) as asking:
            other = Cluster(cluster.directory)
            answer = asking.submit(other.ask, "POST", "/v1/recording/start", body)
            until(lambda: writers(cluster.directory), "it is being begun")[0].kill()
            status, told = answer.result(60)
            other.close()

        assert (503, "recording") == (status, told["error"]["resource"])
        assert "status -9" in told["error"]["text"]
        assert not (tmp_path / "a.jsonl").exists()
        assert {"recording": False} == cluster.get("/v1/recording")


def test_a_recording_that_hangs_when_it_is_told_to_end_is_given_up(tmp_path: Path) -> None:
    """
    Its file would be the last that is recorded until the scheduler starts again.
    """
    with live_cluster.running(tmp_path / "cluster", workers=0) as cluster:
        files = ClusterFiles(cluster.directory)
        with EventLog.open(files.log, writable=False) as log:
            recorder = Recorder(files, log, Journal(tmp_path / "journal"))
            recorder.start(log.head(), tmp_path / "a.jsonl", 1000)
            (writer,) = writers(cluster.directory)
            writer.suspend()
            cluster.submit("true")
            recorder.stop(log.head())
            told = recorder.wait_end(0.5)
            again = recorder.start(log.head(), tmp_path / "b.jsonl", 1000)
            recorder.close(log.head())

    assert not told["recording"]
    assert "it told nothing new for 500ms" == told["problem"]
    assert again["recording"]

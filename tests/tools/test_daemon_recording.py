"""
The running scheduler is recorded: the file replays by itself, and recording changes nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from replay.at import ladder_of
from replay.verify import VerifyResult, verify
from store.log import EventLog
from store.recordings import Recording
from tests.tools import live_cluster
from tests.tools.live_cluster import Cluster, until

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


def test_a_recording_ends_whole_with_its_scheduler(tmp_path: Path) -> None:
    """
    In good order with the last event; killed, with the last whole line: both replay.
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
        cluster.kill()
        with (tmp_path / "b.jsonl").open("r+b") as file:
            file.seek(-7, os.SEEK_END)
            file.truncate()
        result = verified(tmp_path / "b.jsonl")

        assert result.is_same
        assert result.events > 1
        assert same_events(cluster, tmp_path / "b.jsonl")

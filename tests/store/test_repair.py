"""
Repair: the good prefix becomes a log again, the good rest is kept, what is lost is named.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from domain.envelope import Stamped
from domain.errors import Conflict, NotFound, Refused
from store.chain import genesis
from store.embedded.frames import HEADER_SIZE, read_header
from store.embedded.layout import space_names
from store.embedded.marker import MARKER_FILE
from store.embedded.preflight import DATA_FILE
from store.log import EventLog
from store.repair import repair
from store.salvage import salvage
from store.verify import verify_here
from tools.torture.workload import fill, job_events


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with EventLog.create(tmp_path / "log", log_id="the-log") as log:
        fill(log, commits=20, jobs=150)
    return tmp_path / "log"


def frame_offsets(data: bytes) -> list[int]:
    """
    Return where a data file has its frames, in the order of the log.
    """
    found, at = [], data.find(b"XF\x01")
    while at >= 0:
        found.append(at)
        at = data.find(b"XF\x01", at + 1)
    return sorted(found, key=lambda at: read_header(data[at : at + HEADER_SIZE]).first_position)


def test_a_sound_log_is_repaired_to_itself(tmp_path: Path, directory: Path) -> None:
    """
    Repair must lose nothing that is there.
    """
    report = repair(directory, tmp_path / "new")
    with (
        EventLog.open(directory, writable=False) as one,
        EventLog.open(tmp_path / "new", writable=False) as two,
    ):
        assert one.head_digest() == two.head_digest()
        assert list(one.read()) == list(two.read())
        assert one.epoch == two.epoch
    assert (12000, 0, ()) == (report.events, report.rest_events, report.lost)


@pytest.mark.parametrize("which", [0, 7, 19])
def test_a_damaged_frame_costs_its_commit_and_what_follows_is_kept_aside(
    tmp_path: Path, directory: Path, which: int
) -> None:
    """
    One bad record never stops the rest from being read.
    """
    data = bytearray((directory / "data.mdb").read_bytes())
    data[frame_offsets(data)[which] + 200] ^= 4
    (directory / "data.mdb").write_bytes(data)

    first = verify_here(directory).first_problem
    report = repair(directory, tmp_path / "new")

    assert first is not None
    assert ("checksum", which * 600 + 1) == (first.kind, first.position)
    assert which * 600 == report.events
    assert (19 - which) * 600 == report.rest_events
    lost = ((which * 600 + 1, which * 600 + 600),) if which < 19 else ()
    assert lost == report.lost
    assert verify_here(tmp_path / "new").is_good
    if report.rest_events:
        lines = Path(report.rest_file).read_text().splitlines()
        last = json.loads(lines[-1])["EVENT"]
        assert (12000, "job.finished") == (last["position"], last["type"])


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_overwritten_the_prefix_is_saved(
    tmp_path: Path, directory: Path, seed: int
) -> None:
    """
    Also where the engine's own structure is lost: frames are found without it.
    """
    chance = random.Random(seed)
    with EventLog.open(directory, writable=False) as log:
        before = list(log.read())
    data = bytearray((directory / "data.mdb").read_bytes())
    del data[chance.randrange(len(data) // 2, len(data)) :]
    for _ in range(3):
        at = chance.randrange(0, len(data) // 4096) * 4096
        data[at : at + 4096] = chance.randbytes(4096)
    (directory / "data.mdb").write_bytes(data)

    report = repair(directory, tmp_path / "new")

    with EventLog.open(tmp_path / "new", writable=False) as log:
        assert before[: report.events] == list(log.read())
    assert verify_here(tmp_path / "new").is_good


def test_a_log_without_its_marker_needs_its_identity(tmp_path: Path, directory: Path) -> None:
    """
    The chain begins with the log id: nothing else tells which history it is.
    """
    (directory / MARKER_FILE).unlink()
    with pytest.raises(Refused):
        repair(directory, tmp_path / "new")

    assert 0 == repair(directory, tmp_path / "wrong", log_id="another").events
    assert 12000 == repair(directory, tmp_path / "right", log_id="the-log").events


def test_without_its_data_file_there_is_nothing_to_repair(tmp_path: Path, directory: Path) -> None:
    """
    Told as that, and no empty log is made in its stead.
    """
    (directory / DATA_FILE).unlink()

    with pytest.raises(NotFound, match="no data file"):
        repair(directory, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_repaired_log_goes_on(tmp_path: Path, directory: Path) -> None:
    """
    Epochs don't fall, versions stay taken.
    """
    repair(directory, tmp_path / "new")
    with EventLog.open(tmp_path / "new", writable=True) as log:
        assert 2 == log.epoch
        with pytest.raises(Conflict):
            log.append(job_events(3))
        log.append(job_events(50000))
    assert verify_here(tmp_path / "new").is_good


def jobs(first: int, count: int) -> list[Stamped]:
    """
    Return the events of some jobs, for one commit.
    """
    return [event for number in range(first, first + count) for event in job_events(number)]


def test_of_a_commit_of_several_frames_all_or_nothing_is_saved(tmp_path: Path) -> None:
    """
    Half a commit was never answered for: its good frames go aside.
    """
    with EventLog.create(tmp_path / "log", log_id="the-log") as log:
        log.append(jobs(1, 10))
        log.append(jobs(11, 1_500))
    data = bytearray((tmp_path / "log" / DATA_FILE).read_bytes())
    offsets = frame_offsets(data)
    assert len(offsets) > 2
    data[offsets[-1] + 200] ^= 4
    (tmp_path / "log" / DATA_FILE).write_bytes(data)

    report = repair(tmp_path / "log", tmp_path / "new")

    assert 40 == report.events
    assert report.rest_events > 0
    assert verify_here(tmp_path / "new").is_good


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("kind", ["longer", "later"])
def test_of_two_that_follow_the_same_the_one_that_went_on_is_taken(
    tmp_path: Path, kind: str, *, is_first: bool
) -> None:
    """
    Pages of a commit that was undone are left in the file: behind it nothing follows, or its writer
    was an earlier one.
    """
    one, other = tmp_path / "one", tmp_path / "other"
    with EventLog.create(one, log_id="the-log") as log:
        log.append(jobs(1, 1))
    shutil.copytree(one, other)
    if kind == "later":
        EventLog.open(other, writable=True).close()
    for place, number in ((one, 2), (other, 3)):
        with EventLog.open(place, writable=True) as log:
            log.append(jobs(number, 1))
            if place == one and kind == "longer":
                log.append(jobs(number + 10, 1))
    expected = one if kind == "longer" else other
    with EventLog.open(expected, writable=False) as log:
        digest = log.head_digest()

    files = [place / DATA_FILE for place in ((one, other) if is_first else (other, one))]
    found = salvage(files, genesis("the-log", space_names("", "events").frames))

    assert digest == found.prefix[-1].header.digest

"""
Damage that once passed: each case was found by the harness that damages data files.
"""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from domain.errors import Corrupt
from store.backup import backup
from store.embedded.layout import index_prefix, version_bytes
from store.embedded.metas import newest_meta
from store.embedded.preflight import DATA_FILE
from store.log import EventLog
from store.recordings import LogLines
from store.verify import verify_here
from tools.torture.workload import fill, job_events, jobs_events

PAGE = 4096
NUMBER_AT = 144
"""Where the transaction's number stands in a meta page."""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with EventLog.create(tmp_path / "log", log_id="the-log") as log:
        fill(log, commits=5, jobs=12)
    return tmp_path / "log"


def replace_once(directory: Path, before: bytes, after: bytes) -> None:
    """
    Change bytes that occur once in the newest pages, and in older ones maybe.
    """
    content = (directory / DATA_FILE).read_bytes()
    assert before in content
    (directory / DATA_FILE).write_bytes(content.replace(before, after))


@pytest.mark.parametrize("page", [0, 1])
@pytest.mark.parametrize("is_copied", [False, True])
def test_no_bit_of_a_transactions_number_takes_the_log_back_by_a_commit(
    directory: Path, page: int, is_copied: bool
) -> None:
    """
    The engine takes the meta page with the greater number for the newer one; the last commit would
    be gone without a word.
    """
    if is_copied:
        backup(directory, directory.with_name("copy"))
        directory = directory.with_name("copy")
        with EventLog.open(directory, writable=True) as log:
            log.append(job_events(1000))
    path = directory / DATA_FILE
    content = path.read_bytes()
    assert newest_meta(path).transaction > 1
    for bit in range(64):
        damaged = bytearray(content)
        damaged[page * PAGE + NUMBER_AT + bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(Corrupt) as caught:
            newest_meta(path)
        assert "structure" == caught.value.kind


def test_a_writer_that_commits_meanwhile_is_not_taken_for_damage(tmp_path: Path) -> None:
    """
    The two pages are read one after the other.
    """
    with EventLog.create(tmp_path / "log", log_id="the-log", durability="none") as log:
        thread = threading.Thread(
            target=lambda: [log.append(job_events(number)) for number in range(1, 2_000)]
        )
        thread.start()
        numbers = []
        while thread.is_alive():
            numbers.append(newest_meta(tmp_path / "log" / DATA_FILE).transaction)
        thread.join()

    assert len(set(numbers)) > 10
    assert sorted(numbers) == numbers


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"events.log", b"events>log"),
        (b"events.log", b"eventr.log"),
        (b"events.index", b"events.indey"),
    ],
)
@pytest.mark.parametrize("is_writable", [False, True])
def test_a_log_whose_database_lost_its_name_is_not_an_empty_one(
    directory: Path, before: bytes, after: bytes, is_writable: bool
) -> None:
    """
    A writer would begin a second history in the same file.
    """
    replace_once(directory, before, after)

    with pytest.raises(Corrupt) as caught:
        EventLog.open(directory, writable=is_writable)
    assert "structure" == caught.value.kind
    assert not verify_here(directory).is_good


def test_an_index_key_under_which_nobody_looks_is_found_by_verifying(directory: Path) -> None:
    """
    It decodes to the right version all the same: its length is wrong.
    """
    key = index_prefix("job:0000000001") + version_bytes(1)
    replace_once(directory, key, key[:-2] + b"\xa9" + key[-1:])
    problem = verify_here(directory).first_problem

    assert problem is not None
    assert ("structure", "an index row") == (problem.kind, problem.expected)


def test_an_index_key_that_is_none_is_found_by_verifying(directory: Path) -> None:
    """
    It ended the verifying with an error of the standard library.
    """
    key = index_prefix("job:0000000001") + version_bytes(1)
    replace_once(directory, key, key.replace(b"\x00", b"\x01"))

    assert verify_here(directory).problems


def test_a_branch_of_the_tree_that_leads_elsewhere_is_found_by_verifying(tmp_path: Path) -> None:
    """
    All rows stand in the leaves, in order, and many are not found any more.
    """
    with EventLog.create(tmp_path / "log", log_id="the-log") as log:
        fill(log, commits=6, jobs=40)
    backup(tmp_path / "log", tmp_path / "copy")
    path = tmp_path / "copy" / DATA_FILE
    content = bytearray(path.read_bytes())
    changed = 0
    for page in range(2, len(content) // PAGE):
        at = content.find(b"tjob:", page * PAGE, (page + 1) * PAGE)
        if content[page * PAGE + 10] == 1 and at >= 0:
            content[at + 4] = ord("2")
            changed += 1
    assert 1 == changed
    path.write_bytes(content)
    with EventLog.open(tmp_path / "copy", writable=False) as log:
        assert [] == list(log.read_stream("job:0000000001"))
    problem = verify_here(tmp_path / "copy").first_problem

    assert problem is not None
    assert ("structure", "an index row that is found under its key") == (
        problem.kind, problem.expected,
    )  # fmt: skip


def test_a_database_that_sorts_otherwise_is_an_error_of_ours(tmp_path: Path) -> None:
    """
    Its flags are damaged: the engine then finds a later frame than the one that was looked for.
    """
    with EventLog.create(tmp_path / "log", log_id="the-log") as log:
        fill(log, commits=6, jobs=40)
    row = b"\x30\x00\x00\x00\x02\x00\x0a\x00events.log\x00\x00\x00\x00"
    replace_once(tmp_path / "log", row + b"\x00", row + b"\x5f")

    with EventLog.open(tmp_path / "log", writable=False) as log, pytest.raises(Corrupt):
        every_stream(log, 240)


def every_stream(log: EventLog, jobs: int) -> None:
    """
    Read the stream of each job.
    """
    for number in range(1, jobs + 1):
        list(log.read_stream(f"job:{number:010d}"))


@pytest.mark.parametrize(
    "opener", [lambda path: EventLog.open(path, writable=False), LogLines], ids=["log", "lines"]
)
@pytest.mark.parametrize(
    ("before", "after"),
    [(b"\x30\x00\x00", b"\x30\x00\x8c"), (b"\x02\x00\x0c", b"\x00\x00\x0c")],
    ids=["length", "kind"],
)
def test_a_file_that_could_not_be_opened_is_let_go(
    directory: Path, opener, before: bytes, after: bytes
) -> None:
    """
    Else this process would see the damaged one for ever, whatever is put in its place.
    """
    whole = (directory / DATA_FILE).read_bytes()
    # The length of what stands under this name, or that it is a database at all.
    row = b"\x30\x00\x00\x00\x02\x00\x0c\x00events.index"
    replace_once(directory, row, row.replace(before, after))
    with pytest.raises(Corrupt):
        opener(directory)
    shutil.move(directory / DATA_FILE, directory / "damaged")
    (directory / DATA_FILE).write_bytes(whole)

    with EventLog.open(directory, writable=False) as log:
        assert jobs_events(1, 60) == [envelope.stamped() for envelope in log.read()]

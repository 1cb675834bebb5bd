"""
Signed heads: what the chain alone can't show.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from domain.errors import Corrupt, Refused
from store.heads import (
    Head,
    check_against,
    check_signature,
    head_of,
    make_key,
    private_key,
    public_key,
    read_head,
    sign,
)
from store.log import EventLog
from store.verify import verify_here
from tools.torture.workload import fill, job_events, jobs_events


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with EventLog.create(tmp_path / "log", log_id="the-log") as log:
        fill(log, commits=3)
    return tmp_path / "log"


def head_now(directory: Path) -> Head:
    with EventLog.open(directory, writable=False) as log:
        return head_of(log)


def kind_of(directory: Path, head: Head) -> str:
    with EventLog.open(directory, writable=False) as log:
        try:
            check_against(log, head)
        except Corrupt as error:
            return error.kind
    return "good"


def append(directory: Path, first: int, count: int) -> None:
    with EventLog.open(directory, writable=True) as log:
        log.append(jobs_events(first, count))


def test_a_log_that_went_on_agrees_with_its_earlier_heads(directory: Path) -> None:
    """
    A head stays good for ever.
    """
    heads = [head_now(directory)]
    for number in range(3):
        append(directory, 100 + number, 1)
        heads.append(head_now(directory))

    assert ["good"] * 4 == [kind_of(directory, head) for head in heads]


def test_an_older_copy_that_was_put_back_is_seen(tmp_path: Path, directory: Path) -> None:
    """
    The copy verifies by itself: only the head kept elsewhere tells.
    """
    shutil.copytree(directory, tmp_path / "copy")
    append(directory, 100, 5)
    head = head_now(directory)

    assert verify_here(tmp_path / "copy").is_good
    assert "truncated" == kind_of(tmp_path / "copy", head)
    append(tmp_path / "copy", 200, 9)
    assert "chain" == kind_of(tmp_path / "copy", head)


def test_a_chain_that_was_computed_anew_is_seen(tmp_path: Path, directory: Path) -> None:
    """
    Who can write the file can write a whole other history that verifies.
    """
    head = head_now(directory)
    with EventLog.create(tmp_path / "forged", log_id="the-log") as log:
        events = [*jobs_events(1, 29), *job_events(77)]
        log.append(events)

    assert verify_here(tmp_path / "forged").is_good
    assert "chain" == kind_of(tmp_path / "forged", head)


def test_another_log_is_seen(tmp_path: Path, directory: Path) -> None:
    """
    Heads of two clusters must not be mixed up.
    """
    EventLog.create(tmp_path / "other", log_id="other").close()

    assert "foreign" == kind_of(tmp_path / "other", head_now(directory))


def test_a_signature_covers_every_field(tmp_path: Path, directory: Path) -> None:
    """
    A head whose fields could be exchanged would prove nothing.
    """
    public = make_key(tmp_path / "key")
    head = sign(head_now(directory), private_key(tmp_path / "key"))
    (tmp_path / "head").write_text(head.as_json())
    again = read_head(tmp_path / "head")

    assert head == again
    check_signature(again, public)
    check_signature(again, public_key(tmp_path / "key.pub"))
    for name in Head.__slots__:
        value = getattr(head, name)
        if name == "signature":
            changed = replace(head, signature=value[:-1] + ("0" if value[-1] != "0" else "1"))
        else:
            changed = replace(head, **{name: value + (1 if isinstance(value, int) else "x")})
        with pytest.raises(Corrupt):
            check_signature(changed, public)
    other = make_key(tmp_path / "other")
    with pytest.raises(Corrupt):
        check_signature(head, other)


def test_a_private_key_is_its_owners_alone_and_never_written_over(tmp_path: Path) -> None:
    """
    A lost key can't be made again.
    """
    make_key(tmp_path / "key")

    assert 0o600 == (tmp_path / "key").stat().st_mode & 0o777
    with pytest.raises(Refused):
        make_key(tmp_path / "key")
    with pytest.raises(Refused):
        private_key(tmp_path / "key.pub")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format":2}', '{"format":1}', "x" * 100])
def test_a_file_that_is_no_head_is_refused(tmp_path: Path, text: str) -> None:
    """
    Nothing is guessed.
    """
    (tmp_path / "head").write_text(text)
    with pytest.raises(Corrupt):
        read_head(tmp_path / "head")


def test_a_head_with_fields_of_other_types_is_refused(tmp_path: Path, directory: Path) -> None:
    """
    A position as text would compare with nothing.
    """
    fields = json.loads(head_now(directory).as_json())
    (tmp_path / "head").write_text(json.dumps({**fields, "position": "1"}))
    with pytest.raises(Corrupt):
        read_head(tmp_path / "head")

"""
What a host lacks is told apart from what a job asks for in vain.
"""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

import pytest

from tests.tools import launcher_harness as harness
from tools.agent import spawn
from tools.agent.messages import AttemptKey

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("number", "fault"),
    [
        (errno.ENOMEM, "memory"), (errno.EAGAIN, "host"), (errno.ENOSPC, "host"),
        (errno.EIO, "host"), (errno.ENOENT, ""), (errno.EACCES, ""), (errno.ENOTDIR, ""),
    ],
)  # fmt: skip
def test_a_host_at_fault_is_told_from_a_job_that_asks_for_what_cannot_be(
    number: int, fault: str
) -> None:
    """
    The one is tried on another host, the other ends.
    """
    with pytest.raises(spawn.CannotStart) as told, spawn._named("program", "x"):
        raise OSError(number, os.strerror(number))

    assert fault == told.value.fault
    assert f"program x: {os.strerror(number)}" == str(told.value)


@pytest.mark.parametrize(
    ("program", "hint"),
    [
        ("none", ""),
        ("echo 1", "; a command line in one word is what --shell takes"),
        ("mine", "; there is ./mine in the job's directory"),
    ],
)
def test_a_program_that_is_not_found_is_named_without_the_whole_path(
    program: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Dozens of folders hide what is wrong, which is mostly the name.
    """
    monkeypatch.chdir(tmp_path)
    Path("mine").touch()

    with pytest.raises(spawn.CannotStart) as told:
        spawn._find(program, "/usr/bin:/bin")

    assert f"program {program}: not found in the job's PATH{hint}" == str(told.value)


def test_a_program_for_which_there_is_no_file_left_is_the_hosts_fault(tmp_path: Path) -> None:
    """
    A launcher that may open no more files says so, and the job isn't to blame.
    """
    with harness.running(tmp_path) as files:
        client = harness.Client(files)
        pid = int(files.launcher_lock.read_text())
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        few = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (few, before[1]))
        client.start(harness.request("1", "true", directory=tmp_path))

        (ended,) = client.wait_ended(AttemptKey("1", 1))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        client.close()

    assert "host" == ended.fault, ended

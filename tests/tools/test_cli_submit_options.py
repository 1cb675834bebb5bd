"""
The options of a submission that say when, where and within which bounds: by LSF's letters.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from domain.errors import Refused
from tests.tools import cli_harness as harness
from tools.agent.files import expand_path
from tools.cli.job_options import fields_of
from tools.cli.job_texts import parse_transfer
from tools.cli.submit import request_of, submit

NOTHING: dict[str, Any] = {}


def given(*words: str) -> dict[str, Any]:
    """
    Return the fields that options as typed become.
    """
    return fields_of(submit.make_context("submit", [*words, "--", "true"]).params)


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ((), {}),
        (("-w", "done(1)"), {"dependency_text": "done(1)"}),
        (("-b", "1970-01-01T00:00:01Z"), {"begin_us": 1_000_000}),
        (("-t", "1970-01-01T00:00:02+00:00"), {"deadline_us": 2_000_000}),
        (
            ("-m", "alpha! beta+2"),
            {
                "hosts": [
                    {"host": "alpha", "preference": 0, "is_first": True},
                    {"host": "beta", "preference": 2, "is_first": False},
                ]
            },
        ),
        (("-x", "-r"), {"is_exclusive": True, "rerunnable": True}),
        (("-M", "2G", "-F", "10"), {"limits": {"memory_kib": 2 << 20, "file_kib": 10 << 10}}),
        (("-v", "1G"), {"limits": {"swap_kib": 1 << 20}}),
        (("-c", "1:30", "-p", "5", "-T", "6"),
         {"limits": {"cpu_us": 5_400_000_000, "processes": 5, "threads": 6}}),
        (("-Q", "99 EXCLUDE(20 21) 3"), {"exits": {"requeue": [99, 3], "exclude": [20, 21]}}),
        (("-sp", "7"), {"user_priority": 7}),
        (("-We", "10"), {"run_estimate_us": 600_000_000}),
    ],
)  # fmt: skip
def test_options_become_fields_of_the_submission(
    words: tuple[str, ...], fields: dict[str, Any]
) -> None:
    """
    Each letter means what LSF users expect; what isn't given isn't said.
    """
    assert NOTHING | fields == given(*words)


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("-b", "tomorrow"), "-b"),
        (("-t", "2026-11-29T18:00:00"), "-t"),
        (("-m", "alpha+x"), "-m"),
        (("-M", "much"), "-M"),
        (("-F", "1Q"), "-F"),
        (("-v", "-1"), "-v"),
        (("-c", "0"), "-c"),
        (("-We", "x"), "-We"),
        (("-Q", "99 256"), "-Q"),
        (("-Q", "(99)"), "-Q"),
    ],
)
def test_what_is_wrong_names_its_option(words: tuple[str, ...], field: str) -> None:
    """
    Whoever typed it sees which of many it was.
    """
    with pytest.raises(Refused) as refused:
        given(*words)

    assert field == refused.value.field


@pytest.mark.slow
def test_a_job_waits_for_another_and_is_bound_as_asked(tmp_path) -> None:
    """
    The whole road, with a real scheduler, worker and programs.
    """
    with harness.cluster(tmp_path, "--workers", "1", "--slots", "2") as live:
        first = live.submit("--", "sleep", "1000")
        second = live.submit(
            "-w", f"ended({first})", "-m", "local1", "-F", "1M", "-sp", "3",
            "--shell", "head -c 2000000 /dev/zero > big",
        )  # fmt: skip
        waiting = live.job(second)
        live.run("kill", first)
        ended = live.wait_state(second, "EXIT", "DONE")

        assert ("PEND", f"ended({first})") == (waiting["state"], waiting["dependency"])
        assert ended["exit_code"] != 0
        assert 1 << 20 == (tmp_path / "big").stat().st_size


@pytest.mark.parametrize(
    ("text", "local", "op", "remote"),
    [
        ("a > b", "a", ">", "b"), ("a<b", "a", "<", "b"), ("a <<b", "a", "<<", "b"),
        ("a <>", "a", "<>", "a"), ("my file >< there", "my file", "<>", "there"),
        ("  a  >  b c ", "a", ">", "b c"),
    ],
)  # fmt: skip
def test_files_to_copy_are_told_as_lsf_takes_them(text, local, op, remote):
    """
    Without the second it has the same name where the job runs.
    """
    assert {"local": local, "op": op, "remote": remote} == parse_transfer(text)


@pytest.mark.parametrize("text", ["", "a", "> b", "a = b", "a >> b", "a > b > c"])
def test_what_is_no_file_to_copy_is_refused(text):
    """
    The option is named.
    """
    with pytest.raises(Refused, match="-f"):
        parse_transfer(text)


def test_only_what_was_typed_of_a_path_names_the_job(tmp_path: Path) -> None:
    """
    A directory that is itself called %J stays that directory.
    """
    typed = ["--cwd", f"{tmp_path}/50%/%J", "-o", "out.%J", "-e", "/e/%I", "--", "true"]
    options = submit.make_context("submit", typed).params
    program = request_of(options.pop("command"), options)["program"]

    paths = [expand_path(program[name], "7[2]") for name in ("stdin", "stdout", "stderr")]

    assert ["", f"{tmp_path}/50%/%J/out.7", "/e/2"] == paths
    assert f"{tmp_path}/50%/%J" == program["cwd"]

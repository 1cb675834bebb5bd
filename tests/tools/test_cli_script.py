"""
What users of LSF type out of habit: scripts with #BSUB, and options that there aren't.
"""

from __future__ import annotations

import io
import subprocess
import sys

import click
import pytest

from domain.errors import Refused
from tests.tools import cli_harness as harness
from tools.cli import job_changes, lsf_options, script
from tools.cli import jobs as job_commands
from tools.cli.hosts import hosts
from tools.cli.main import SETTINGS
from tools.cli.queues import queues
from tools.cli.submit import submit

SCRIPT = """#!/bin/bash
#BSUB -J "scr[1-2]%1"   # two of them
#BSUB -W 0:10 -n 1
#BSUB -o out.%I
#BSUBSTANCE isn't a line of options
words=(one two); echo "${words[1]} $LSB_JOBINDEX"
"""


def taken(monkeypatch, text: str | bytes, *words: str) -> dict[str, object]:
    """
    Return the options of a submission with a script on standard input.
    """
    monkeypatch.setattr(script, "_is_given", lambda: True)
    given = text.encode() if isinstance(text, str) else text
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    context = submit.make_context("submit", list(words), **SETTINGS)
    with context:
        return script.with_script(context)


def test_a_script_gives_the_options_that_nobody_typed(monkeypatch):
    """
    As for bsub: the command line goes before the lines #BSUB, and the script is the command.
    """
    options = taken(monkeypatch, SCRIPT, "-W", "5")

    assert ("scr[1-2]%1", "5", "1", "out.%I") == tuple(
        options[name] for name in ("name", "run_limit", "tasks", "stdout")
    )
    assert ("/bin/bash", "-c", SCRIPT) == options["command"]


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ("", ("/bin/sh",)),
        ("#!/bin/bash -l\n", ("/bin/bash", "-l")),
        ("#!/usr/bin/env python3\n", ("/usr/bin/env", "python3")),
        ("#! /bin/tcsh -f\n", ("/bin/tcsh", "-f")),
        ('#!/bin/bash\necho "a\u2028#BSUB -N b"\n', ("/bin/bash",)),
    ],
)
def test_a_script_is_run_by_what_its_first_line_names(monkeypatch, first, words):
    """
    LSF runs it so; without such a line it is /bin/sh's.
    """
    text = first + "true\n"

    assert (*words, "-c", text) == taken(monkeypatch, text)["command"]


@pytest.mark.parametrize(
    ("text", "field", "rule"),
    [
        ("#!/usr/bin/perl\n1;", "COMMAND", "must be a script of a shell or of Python"),
        ('#BSUB -J "x\ntrue', "#BSUB", "must have both ends"),
        ("#BSUB -n 2 ls\ntrue", "#BSUB", "must have options only"),
        ("#BSUB --json\ntrue", "#BSUB", "can't give --json"),
        ('#!/bin/sh "x\necho hi\n', "COMMAND", "must be a script whose first line has both ends"),
        ("#BSUB -h\ntrue", "#BSUB", "can't give -h"),
        ("#BSUB -n 2 --help\ntrue", "#BSUB", "can't give --help"),
        (b"true \xff\n", "COMMAND", "must be a script in UTF-8; its byte 6 isn't"),
        ("#" * 131_072, "COMMAND", "must be a script of at most 131,071 bytes on standard input"),
        ("#BSUB -N\ntrue", "-N", "is an option of LSF that there isn't here"),
    ],
)
def test_what_a_script_can_not_give_is_refused(monkeypatch, text, field, rule):
    """
    Nothing of it is passed over: a job without what its script asks for is another job.
    """
    with pytest.raises(Refused) as refused:
        taken(monkeypatch, text)

    assert field == refused.value.field
    assert refused.value.rule.startswith(rule)


def test_a_script_may_come_from_another_system(monkeypatch):
    """
    A byte order mark hid the interpreter, and a line's return would be part of its last word.
    """
    text = "\ufeff#!/bin/bash\r\n#BSUB -J name\r\ntrue"

    options = taken(monkeypatch, text)

    command = ("/bin/bash", "-c", "#!/bin/bash\n#BSUB -J name\ntrue")
    assert ("name", command) == (options["name"], options["command"])


def test_the_longest_script_is_taken(monkeypatch):
    """
    The limit is the system's for one argument, its end included, and not below it.
    """
    text = "#" * 131_071

    assert ("/bin/sh", "-c", text) == taken(monkeypatch, text)["command"]
    subprocess.run(["/bin/sh", "-c", text], check=True)
    with pytest.raises(OSError, match="too long"):
        subprocess.run(["/bin/sh", "-c", text + "#"], check=True)


def test_marks_of_other_schedulers_are_told_to_say_nothing(monkeypatch, capsys):
    """
    They are comments here, which nobody may find out from a job that ran with one task.
    """
    taken(monkeypatch, "#!/bin/sh\n#SBATCH -n 4\ntrue\n")

    assert "lines that begin with #SBATCH say nothing here" in capsys.readouterr().err


def test_a_script_is_read_only_where_there_is_no_command(monkeypatch):
    """
    A command's own standard input is no script.
    """
    assert ("true",) == taken(monkeypatch, SCRIPT, "--", "true")["command"]
    assert () == taken(monkeypatch, SCRIPT, "--shell", "true")["command"]
    assert () == taken(monkeypatch, " \n")["command"]


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        (submit, lsf_options.OF_SUBMIT), (job_changes.modify, lsf_options.OF_SUBMIT),
        (job_commands.jobs, lsf_options.OF_JOBS), (queues, lsf_options.OF_QUEUES),
        (hosts, lsf_options.OF_HOSTS),
    ],
)  # fmt: skip
def test_options_of_lsf_that_there_are_not_are_refused_by_name(command, missing):
    """
    `-oo out` was the file "o" and the command "out".
    """
    for one in missing:
        for flag in one.flags.split():
            words = [flag, "value"] if one.has_value else [flag]
            with pytest.raises(Refused) as refused:
                command.make_context("any", [*words, "12"])
            assert (flag, one.instead) == (refused.value.field, refused.value.hint)


def test_no_missing_option_takes_the_place_of_one_that_there_is():
    """
    Click would take the later one, and quietly.
    """
    for command in (submit, job_changes.modify, job_commands.jobs, queues, hosts):
        flags = [flag for one in command.params if isinstance(one, click.Option)
                 for flag in (*one.opts, *one.secondary_opts)]  # fmt: skip
        assert sorted(set(flags)) == sorted(flags), command.name


@pytest.mark.slow
def test_a_script_runs_as_an_array_with_its_options(tmp_path):
    """
    The whole road of bsub < script: a file, a pipe, real programs.
    """
    (tmp_path / "job.sh").write_text(SCRIPT)
    with harness.cluster(tmp_path, "--workers", "1", "--slots", "2") as live:
        for source in ("file", "pipe"):
            with (tmp_path / "job.sh").open() as file:
                given = {"stdin": file} if source == "file" else {"input": SCRIPT}
                done = subprocess.run(
                    [*harness.XCE, "submit", "-K" if source == "pipe" else "-H"],
                    env=live._environment, text=True, capture_output=True, check=False,
                    cwd=tmp_path, timeout=60, **given,
                )  # fmt: skip
            assert (0, "") == (done.returncode, done.stderr)
        assert "Run limit      10m" in live.run("job", "1[1]").stdout
        live.wait_state("2[2]", "DONE")

        assert "two 2\n" == (tmp_path / "out.2").read_text()
        text = "exit $((LSB_JOBINDEX + 1))"
        assert 3 == live.run("submit", "-K", "-J", "a[2-3]", "--shell", text).returncode
        assert 1 == live.run("submit").stderr.count("COMMAND: must be given after --")
        done = live.run("kill", "-J", "scr")
        assert "JOB: must be given. 0 stands for all your jobs" in done.stderr
        assert 0 == live.run("history", "-l", "2").returncode
        assert "2000 means 2000MB" in live.run("submit", "-M", "2000", "true").stderr
        assert 0 == live.run("define", "cluster", "memory_unit=GB").returncode
        assert "-M: 2 means 2GB" in live.run("modify", "-M", "2", "1[1]").stderr
        assert 2 << 20 == live.job("1[1]")["asked"]["limits"]["memory_kib"]

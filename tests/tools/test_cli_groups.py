"""
Commands that are mistyped, help on narrow terminals, and errors that name what was typed.
"""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from domain.errors import NotFound, Refused
from tests.tools.test_cli_usage import ALL
from tools.cli import groups, main
from tools.cli.as_typed import telling


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (("queue",), "'queue'. Did you mean queues or requeue?"),
        (("jbos",), "Did you mean jobs"),
        (("bjobs",), "Did you mean jobs?"),
        (("squeue",), "Did you mean jobs?"),
        (("sbatch",), "Did you mean submit?"),
        (("replay", "dif"), "Did you mean diff?"),
        (("queues", "clos", "normal"), "Did you mean close?"),
        (("hosts", "opne", "h1"), "Did you mean open?"),
        (("frobnicate",), "No such command 'frobnicate'. See xce --help."),
    ],
)
def test_a_mistyped_command_says_what_was_meant(typed, words, capfd):
    """
    Also for whoever comes from another scheduler; what is near nothing gets no guess.
    """
    assert 2 == main.run(list(typed))
    assert words in capfd.readouterr().err


def test_what_other_schedulers_call_things_is_a_command_here():
    """
    A command that was renamed must not be advised.
    """
    assert set(groups.COMMANDS_ELSEWHERE.values()) <= set(main.COMMANDS)


@pytest.mark.parametrize("path", ALL, ids=lambda path: " ".join(path) or "xce")
def test_help_lines_end_where_a_terminal_of_80_columns_does(path):
    """
    Longer ones are broken by the terminal inside words; examples are as they are typed.
    """
    told = CliRunner().invoke(
        main.cli, [*path, "--help"], prog_name="xce", terminal_width=80, max_content_width=80
    ).output
    sentences = [line for line in told.splitlines() if not line.startswith("    ")]

    assert [] == [line for line in sentences if len(line) > 80]


def test_a_list_of_subcommands_has_their_whole_summaries():
    """
    A summary cut by an ellipsis leaves out what people look for.
    """
    for name in ("audit", "replay", "log", "queues"):
        told = CliRunner().invoke(main.cli, [name, "--help"], prog_name="xce").output

        assert "..." not in told.partition("Commands:")[2].partition("Example")[0]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["-m", "x"], "-m"),
        (["-mx"], "-m"),
        (["--host", "x"], "--host"),
        (["--host=x"], "--host"),
    ],
)
def test_an_error_names_the_option_as_it_was_typed(arguments, named):
    """
    Whoever typed -m doesn't look for --host.
    """

    @click.command()
    @click.option("-m", "--host")
    def shown(host):
        raise Refused("host", "must be one that is known", host)

    group = main.Lazy(commands={})
    telling(shown)
    context = group.make_context("xce", ["shown", *arguments], resilient_parsing=True)
    with context, pytest.raises(Refused) as caught:
        shown.main(arguments, standalone_mode=False, parent=context)

    assert named == caught.value.field


def test_a_log_that_isnt_there_is_told_by_its_argument_with_what_makes_one(tmp_path, capfd):
    """
    Of two logs, which of them; and the next step.
    """
    first, second = str(tmp_path / "a"), str(tmp_path / "b")

    assert 1 == main.run(["replay", "diff", first, second])
    told = capfd.readouterr().err

    assert f"xce: A: must be the directory of a log, or of a cluster (given: '{first}')." in told
    assert "xce simulate" in told


def test_a_workload_that_isnt_there_is_told_by_its_argument_with_what_is_read(capfd):
    """
    The field of a file that nobody calls so said nothing.
    """
    assert NotFound.exit_status == main.run(["simulate", "nofile"])
    assert "xce: FILE: must be a file that is there (given: 'nofile'). Give a workload" in (
        capfd.readouterr().err
    )

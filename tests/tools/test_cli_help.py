"""
Help that fits a terminal of 80 columns, with examples that can be pasted as they stand.
"""

from __future__ import annotations

import shlex

import pytest
from click.testing import CliRunner

from tests.tools.test_cli_usage import ALL
from tools.cli import main
from tools.cli.groups import example_lines

COLUMNS = 80


@pytest.mark.parametrize("path", ALL, ids=lambda path: " ".join(path) or "xce")
def test_every_line_of_help_fits(path: tuple[str, ...]) -> None:
    """
    A terminal that breaks a line inside a word makes another command of it.
    """
    done = CliRunner().invoke(main.cli, [*path, "--help"], prog_name="xce")

    assert [] == [line for line in done.output.splitlines() if len(line) > COLUMNS]


@pytest.mark.parametrize("kind", ["queue", "limit", "host", "resource", "profile", "cluster"])
def test_every_field_of_a_definition_fits(kind: str) -> None:
    """
    Names of fields are long, and so is what they may be said in.
    """
    done = CliRunner().invoke(main.cli, ["define", kind, "--help"], prog_name="xce")

    assert f"\n  xce define {kind} " in done.output
    assert [] == [line for line in done.output.splitlines() if len(line) > COLUMNS]


EXAMPLES = [
    ("  xce up --workers 2     try it out", "xce up --workers 2"),
    (
        "    xce replay sweep trace.swf.gz --cluster 100x1,128x1 --picker builtin_fcfs,strict_fcfs",
        "xce replay sweep trace.swf.gz --cluster 100x1,128x1 --picker builtin_fcfs,strict_fcfs",
    ),
    (
        "  xce define queue fair priority=2 fairshare.shares='ann=1  staff=5(bob=1)'    # both",
        "xce define queue fair priority=2 fairshare.shares='ann=1  staff=5(bob=1)'",
    ),
    (
        """  xce define resource lic scope=shared totals='[{"total_milli": 5000}]'""",
        """xce define resource lic scope=shared totals='[{"total_milli": 5000}]'""",
    ),
]


@pytest.mark.parametrize(("line", "command"), EXAMPLES)
@pytest.mark.parametrize("columns", [30, 60, 78])
def test_an_example_is_the_same_command_however_it_is_broken(
    line: str, command: str, columns: int
) -> None:
    """
    What it is for becomes a comment where it doesn't fit beside it.
    """
    told = list(example_lines(line, columns))

    if told != [line]:
        pasted = "\n".join(told).replace("\\\n", "")
        assert shlex.split(command) == shlex.split(pasted, comments=True)
    assert columns < COLUMNS - 2 or all(len(one) <= columns for one in told)

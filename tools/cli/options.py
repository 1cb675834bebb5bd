"""
Options that several commands share: which cluster, JSON, and watching.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from domain.errors import Refused
from tools.cli.output import WIDE

SECONDS_MAX: Final = 10_000_000.0
"""More seconds than anybody waits."""

Command = TypeVar("Command", bound=Callable[..., object])
Given = TypeVar("Given")


class Seconds(click.FloatRange):
    """
    Take a number of seconds that a program can wait.
    """

    def __init__(self, min: float) -> None:  # noqa: A002 - click's own name
        super().__init__(min=min, max=SECONDS_MAX)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """
        Return it; what is no number at all is within any bounds.
        """
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail("must be a number of seconds", param, ctx)
        return seconds


def default_directory() -> Path:
    """
    Return the cluster directory of a person who names none.
    """
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "xce"


def _directory(ctx: click.Context, param: click.Parameter, path: Path) -> Path:
    """
    Return a path that is a directory, or isn't there yet; one that was given before a subcommand's
    name holds for the subcommand too.

    Raises:
        Refused: Something else is there.
    """
    path = _given_before(ctx, param, path)
    if "\0" in str(path) or (os.path.lexists(path) and not path.is_dir()):
        source = ctx.get_parameter_source(param.name or "")
        said_by = "XCE_DIR" if source is ParameterSource.ENVIRONMENT else "--dir"
        raise Refused(said_by, "must be a directory", str(path))
    return path


def _given_before(ctx: click.Context, param: click.Parameter, value: Given) -> Given:
    """
    Return what an option's like of the group above was given, unless it was typed here itself.
    """
    name, above = param.name or "", ctx.parent
    if above is None or ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
        return value
    if above.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
        return value
    given: Given = above.params[name]
    return given


def dir_option(command: Command) -> Command:
    """
    Add --dir, which names the cluster.
    """
    return click.option(
        "--dir",
        "directory",
        envvar="XCE_DIR",
        # Who may only pass through it reaches the socket.
        type=click.Path(readable=False, path_type=Path),
        callback=_directory,
        default=default_directory,
        metavar="DIR",
        help="The cluster's directory; else the variable XCE_DIR, else ~/.local/state/xce.",
    )(command)


def json_option(command: Command) -> Command:
    """
    Add --json.
    """
    return click.option(
        "--json", "as_json", is_flag=True, callback=_given_before, help="Print one JSON object."
    )(command)


def json_anyway_option(command: Command) -> Command:
    """
    Add --json to a command that prints nothing else, so that nobody must know which those are.
    """
    return click.option(
        "--json", is_flag=True, expose_value=False, help="It prints JSON anyway."
    )(command)


def jsonl_option(command: Command) -> Command:
    """
    Add --jsonl, for answers of many rows.
    """
    return click.option(
        "--jsonl", "as_jsonl", is_flag=True, help="Print one JSON object a line for each row."
    )(command)


def watch_option(command: Command) -> Command:
    """
    Add --watch with its optional count of seconds.
    """
    return click.option(
        "--watch",
        "watch_s",
        is_flag=False,
        flag_value=2.0,
        type=Seconds(min=0.1),
        metavar="[SECONDS]",
        help="Show it again every so many seconds (2 when none are given) until Ctrl-C.",
    )(command)


def columns_option(command: Command) -> Command:
    """
    Add --columns, and --wide, for lists of many things.
    """
    wide = click.option(
        "-w", "--wide", is_flag=True, expose_value=False, callback=_note_wide,
        help="Show lines whole that are wider than the terminal; elsewhere they are anyway.",
    )  # fmt: skip
    return click.option(
        "--columns",
        metavar="NAME,...",
        help="Only these columns, in this order, by their heads in lower case.",
    )(wide(command))


def _note_wide(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001
    ctx.meta[WIDE] = value


def examples(*lines: str, after: str = "") -> str:
    """
    Return the end of a help text: examples as they are typed, and what comes next.
    """
    head = "Example:" if len(lines) == 1 else "Examples:"
    return "\n".join(["\b", head, *(f"  {line}" for line in lines), *([after] if after else [])])


def refuse_empty(options: Mapping[str, object]) -> None:
    """
    Refuse an option without anything in it: an unset variable of a script would choose all.
    """
    for name, value in options.items():
        if value == "":
            raise Refused(f"--{name}", "must not be empty")

"""
Options that several commands share: which cluster, JSON, and watching.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., object])


def default_directory() -> Path:
    """
    Return the cluster directory of a person who names none.
    """
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "xce"


def dir_option(command: Command) -> Command:
    """
    Add --dir, which names the cluster.
    """
    return click.option(
        "--dir",
        "directory",
        envvar="XCE_DIR",
        # Who may only pass through it reaches the socket.
        type=click.Path(file_okay=False, readable=False, path_type=Path),
        default=default_directory,
        metavar="DIR",
        help="The cluster's directory; else the variable XCE_DIR, else ~/.local/state/xce.",
    )(command)


def json_option(command: Command) -> Command:
    """
    Add --json.
    """
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(command)


def watch_option(command: Command) -> Command:
    """
    Add --watch with its optional count of seconds.
    """
    return click.option(
        "--watch",
        "watch_s",
        is_flag=False,
        flag_value=2.0,
        type=click.FloatRange(min=0.1),
        metavar="[SECONDS]",
        help="Show it again every so many seconds (2 when none are given) until Ctrl-C.",
    )(command)


def columns_option(command: Command) -> Command:
    """
    Add --columns.
    """
    return click.option(
        "--columns",
        metavar="NAME,...",
        help="Only these columns, in this order, by their heads in lower case.",
    )(command)


def examples(*lines: str, after: str = "") -> str:
    """
    Return the end of a help text: examples as they are typed, and what comes next.
    """
    head = "Example:" if len(lines) == 1 else "Examples:"
    return "\n".join(["\b", head, *(f"  {line}" for line in lines), *([after] if after else [])])

"""
Values that nobody can mean, given to every option and argument of every command.
"""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from tests.replay.conftest import SMALL
from tools.cli import main

DIGITS = "9" * 5000
NOT_RUN = ("up", "down", "worker")
"""Commands that begin or end processes."""


def parts(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """
    Yield each command with each of its parameters that takes a value.
    """
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and name not in NOT_RUN:
                yield from parts(inner, (*path, name))
    for one in command.params:
        is_flag = isinstance(one, click.Option) and (one.is_flag or one.hidden)
        if path and one.name not in (None, "directory") and not is_flag:
            yield " ".join(path), str(one.name)


def found(path: str) -> click.Command:
    command: click.Command = main.cli
    for name in path.split():
        assert isinstance(command, click.Group)
        inner = command.get_command(click.Context(command), name)
        assert inner is not None
        command = inner
    return command


def words_of(command: click.Command, wanted: str, value: str) -> list[str]:
    """
    Return what is typed: a value for one parameter, and something for each that must be given.
    """
    typed: list[str] = []
    for one in command.params:
        if isinstance(one, click.Option) and one.name == wanted:
            typed = [max(one.opts, key=len), value, *typed]
        elif isinstance(one, click.Argument) and (one.required or one.name == wanted):
            usual = one.type.choices[0] if isinstance(one.type, click.Choice) else "run1"
            typed.append(value if one.name == wanted else str(usual))
    return typed


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """
    Return a folder with the log of a simulation.
    """
    place = tmp_path_factory.mktemp("long")
    (place / "small.swf").write_text(SMALL)
    assert 0 == main.run(["simulate", str(place / "small.swf"), "--log", str(place / "run1")])
    return place


@pytest.mark.slow
@pytest.mark.parametrize(("path", "name"), sorted(set(parts(main.cli))))
def test_no_value_is_too_long_for_a_clear_and_short_refusal(path, name, log, monkeypatch, capfd):
    """
    A number of thousands of digits was a fault of XCE, or filled the screen with itself.
    """
    monkeypatch.chdir(log)
    monkeypatch.setenv("XCE_DIR", str(log / "run1"))
    words = words_of(found(path), name, DIGITS)
    wait = ["--wait", "0"] if path == "submit" and name != "wait_s" else []
    end = ["--", "true"] if path == "submit" and name not in ("command", "shell") else []

    status = main.run([*path.split(), *wait, *words, *end])

    told = capfd.readouterr().err
    assert main.FAULT != status, told
    assert len(told) < 1500, told

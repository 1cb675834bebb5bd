"""
A script on standard input in place of a command, with options in lines that begin with #BSUB, as
LSF takes them: ``xce submit < job.sh``.
"""

from __future__ import annotations

import os
import shlex
import stat
import sys
from pathlib import PurePosixPath
from typing import Any, Final

import click
from click.core import ParameterSource

from domain.errors import Refused
from tools.cli.job_options import OPTIONS
from tools.cli.output import note

MARK: Final = "#BSUB"
FOREIGN: Final = ("#SBATCH", "#PBS")
SHELLS: Final = ("sh", "bash", "dash", "ksh", "zsh", "csh", "tcsh", "fish")
IN_SCRIPTS: Final = frozenset(("wait_for_end", *(option.name for option in OPTIONS)))
"""Parameters that a script may give: what the job is, not which cluster is asked."""
AS_FILE: Final = "Make it a file that can be run: xce submit -- ./job."
BYTES_MAX: Final = 131_071
"""A script is one argument of its interpreter, and the system takes no longer ones."""


def take_script(context: click.Context) -> tuple[str, ...]:
    """
    Return the command that a script on standard input is, and take over the options that it has and
    nobody typed; nothing where there is a command already, or no such script.

    Raises:
        Refused: The script's interpreter takes no text, or it has options that it may not have.
    """
    options = context.params
    if options["command"] or options["shell"] is not None or not _is_given():
        return ()
    text = _text(sys.stdin.buffer.read())
    if not text.strip():
        return ()
    if words := _marked(text):
        _take(context, words)
    foreign = next((mark for mark in FOREIGN if f"\n{mark} " in text), None)
    if foreign is not None:
        note(f"xce: lines that begin with {foreign} say nothing here; those with {MARK} do.")
    return _command(text)


def _is_given() -> bool:
    """
    Say whether standard input is a file or a pipe.
    """
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISFIFO(mode)


def _text(given: bytes) -> str:
    """
    Return a script as text, its lines ending as they do here, without a byte order mark.

    Raises:
        Refused: It isn't UTF-8, or longer than a job can carry.
    """
    if len(given) > BYTES_MAX:
        rule = f"must be a script of at most {BYTES_MAX:,} bytes on standard input"
        raise Refused("COMMAND", rule, len(given), AS_FILE)
    try:
        return given.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        rule = f"must be a script in UTF-8; its byte {error.start + 1:,} isn't"
        raise Refused("COMMAND", rule, hint=AS_FILE) from None


def _lines(text: str) -> list[str]:
    """
    Return the lines of a script as a shell has them: other marks of Unicode end none.
    """
    return [line.removesuffix("\r") for line in text.split("\n")]


def _marked(text: str) -> list[str]:
    """
    Return the words of all lines of options, which are one command line together.
    """
    words: list[str] = []
    for line in _lines(text):
        if not line.startswith(MARK) or line[len(MARK) :][:1].strip():
            continue
        try:
            words += shlex.split(line.removeprefix(MARK), comments=True)
        except ValueError:
            raise Refused(MARK, "must have both ends of each quotation", line) from None
    return words


def _take(context: click.Context, words: list[str]) -> None:
    try:
        # Without the options that print the help: they would end the submission as if it were done.
        told = context.command.make_context(
            context.info_name, words, parent=context.parent, help_option_names=[]
        )
    except click.NoSuchOption as error:
        if error.option_name not in context.help_option_names:
            raise
        rule = f"can't give {error.option_name}: it goes with the command"
        raise Refused(MARK, rule) from None
    if told.params["command"]:
        raise Refused(MARK, "must have options only", " ".join(told.params["command"]))
    for parameter in context.command.params:
        name = parameter.name or ""
        if told.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        if name not in IN_SCRIPTS:
            raise Refused(MARK, f"can't give {parameter.opts[0]}: it goes with the command")
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            context.params[name] = told.params[name]
            context.set_parameter_source(name, ParameterSource.COMMANDLINE)


def _command(text: str) -> tuple[str, ...]:
    """
    Return what runs a script: what its first line names, else /bin/sh.
    """
    first = _lines(text)[0]
    try:
        words = shlex.split(first[2:]) if first.startswith("#!") else ["/bin/sh"]
    except ValueError:
        rule = "must be a script whose first line has both ends of each quotation"
        raise Refused("COMMAND", rule, first) from None
    called = [PurePosixPath(word).name for word in words if not word.startswith("-")]
    interpreter = called[-1] if called else ""
    if interpreter not in SHELLS and not interpreter.startswith("python"):
        rule = "must be a script of a shell or of Python, as its first line says"
        raise Refused("COMMAND", rule, first, AS_FILE)
    return (*words, "-c", text)


def with_script(context: click.Context) -> dict[str, Any]:
    """
    Return the options of a submission, those of a script on standard input among them.
    """
    command = take_script(context)
    options = {**context.params}
    return options | ({"command": command} if command else {})

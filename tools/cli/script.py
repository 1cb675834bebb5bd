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
    text = sys.stdin.read()
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


def _marked(text: str) -> list[str]:
    """
    Return the words of all lines of options, which are one command line together.
    """
    words: list[str] = []
    for line in text.splitlines():
        if not line.startswith(MARK) or line[len(MARK) :][:1].strip():
            continue
        try:
            words += shlex.split(line.removeprefix(MARK), comments=True)
        except ValueError:
            raise Refused(MARK, "must have both ends of each quotation", line) from None
    return words


def _take(context: click.Context, words: list[str]) -> None:
    told = context.command.make_context(context.info_name, words, parent=context.parent)
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
    first = text.splitlines()[0]
    words = shlex.split(first[2:]) if first.startswith("#!") else ["/bin/sh"]
    called = [PurePosixPath(word).name for word in words if not word.startswith("-")]
    interpreter = called[-1] if called else ""
    if interpreter not in SHELLS and not interpreter.startswith("python"):
        rule = "must be a script of a shell or of Python, as its first line says"
        hint = "Make it a file that can be run: xce submit -- ./job."
        raise Refused("COMMAND", rule, first, hint)
    return (*words, "-c", text)


def with_script(context: click.Context) -> dict[str, Any]:
    """
    Return the options of a submission, those of a script on standard input among them.
    """
    command = take_script(context)
    options = {**context.params}
    return options | ({"command": command} if command else {})

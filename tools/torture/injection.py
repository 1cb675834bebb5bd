"""
Let a system call of a child process fail, or kill it, by strace.

The child is forked with everything imported and waits; strace is attached, and only then it begins.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from tools.torture.children import TIMEOUT_S, context

Say = Callable[[str], None]
ERROR = "error"


@dataclass(frozen=True, slots=True)
class Ran:
    """
    How a child went.

    Args:
        said: What it said, in order.
        status: Its exit status, negative when a signal ended it.
    """

    said: list[str]
    status: int


def run_traced(
    begin: Callable[..., None],
    arguments: Sequence[object],
    *,
    options: Sequence[str],
    paths: Sequence[Path] = (),
) -> Ran:
    """
    Run something in a child under strace.

    Args:
        begin: Called in the child with the arguments and something to say lines with.
        arguments: What it gets.
        options: For strace.
        paths: Only system calls on these files count; all do without any.
    """
    starter = context()
    ours, theirs = starter.Pipe()
    process = starter.Process(target=_wait_and_begin, args=(theirs, begin, tuple(arguments)))
    process.start()
    theirs.close()
    watched = [word for path in paths for word in ("-P", str(path))]
    with subprocess.Popen(
        ["strace", *watched, *options, "-p", str(process.pid)], stderr=subprocess.PIPE, text=True
    ) as tracer:
        assert tracer.stderr is not None
        while "attached" not in (line := tracer.stderr.readline()):
            if not line:
                process.kill()
                message = f"strace could not be attached: it ended with {tracer.wait()}"
                raise RuntimeError(message)
        ours.send("begin")
        said = _heard(ours)
        process.join(TIMEOUT_S)
        if process.exitcode is None:
            process.kill()
            process.join()
            said.append(f"{ERROR} it hung")
        tracer.stderr.read()
    ours.close()
    return Ran(said, process.exitcode or 0)


def _heard(pipe: Connection) -> list[str]:
    """
    Return all that a child says, to its end.
    """
    said: list[str] = []
    try:
        while pipe.poll(TIMEOUT_S):
            said.append(pipe.recv())
    except (EOFError, OSError):
        pass
    return said


def _wait_and_begin(
    pipe: Connection, begin: Callable[..., None], arguments: tuple[object, ...]
) -> None:
    """
    Be the child.
    """
    pipe.recv()
    try:
        begin(*arguments, pipe.send)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is what we look for
        pipe.send(f"{ERROR} {type(error).__name__}: {error}")

"""
Do in a child process what may kill the process that does it, and make the child anew when it dies.

Children are forked from a server that has imported everything and opened nothing, so that a new one
costs milliseconds.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import Self

HARNESSES = ("kills", "power", "damage", "io_errors", "system_calls")
TIMEOUT_S = 60.0

Answer = Callable[..., str]


def context() -> ForkServerContext:
    """
    Return what starts processes.
    """
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload([f"tools.torture.{name}" for name in HARNESSES])
    return found


def stop_server() -> None:
    """
    End the processes that multiprocessing would leave running to our own end.
    """
    # The standard library has no public way to end them.
    for helper in (forkserver._forkserver, resource_tracker._resource_tracker):  # noqa: SLF001
        getattr(helper, "_stop")()  # noqa: B009


class Child:
    """
    Ask a child process, one question at a time.
    """

    def __init__(self, prepare: Callable[..., Answer], *arguments: object) -> None:
        """
        Remember what to do; nothing is started before the first question.

        Args:
            prepare: Called in the child; returns what answers a question's arguments.
            arguments: What it gets.
        """
        self._prepare = prepare
        self._arguments = arguments
        self._process: ForkServerProcess | None = None
        self._pipe: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def ask(self, *question: object) -> str | int:
        """
        Return the child's answer, or the status with which it died; one that hangs is killed.
        """
        if self._process is None or self._pipe is None:
            self._start()
        assert self._process is not None
        assert self._pipe is not None
        try:
            self._pipe.send(question)
            if self._pipe.poll(TIMEOUT_S):
                return str(self._pipe.recv())
            self._process.kill()
        except (EOFError, OSError):
            pass
        self._process.join()
        status = self._process.exitcode
        self.end()
        return 0 if status is None else status

    def _start(self) -> None:
        """
        Start the child.
        """
        starter = context()
        self._pipe, theirs = starter.Pipe()
        self._process = starter.Process(
            target=_serve, args=(theirs, self._prepare, self._arguments), daemon=True
        )
        self._process.start()
        theirs.close()

    def end(self) -> None:
        """
        End the child, if there is one.
        """
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None


def _serve(pipe: Connection, prepare: Callable[..., Answer], arguments: tuple[object, ...]) -> None:
    """
    Be the child: answer until nobody asks.
    """
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - its descriptor takes stderr's place
        # An engine that aborts says so there, thousands of times.
        os.dup2(nowhere.fileno(), 2)
    answer = prepare(*arguments)
    while True:
        try:
            question = pipe.recv()
        except EOFError:
            return
        pipe.send(answer(*question))

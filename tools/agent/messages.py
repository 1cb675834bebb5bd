"""
What agent and launcher say to each other: one JSON object a line.

The agent sends ``{"hello": true}``, ``{"start": [...]}``, ``{"order": [...]}``, ``{"forget": [[job,
attempt], ...]}`` and ``{"quit": true}``; the launcher sends ``{"attempts": [...], "orders": [...],
"hello": ...}``, where an attempt stands for its newest phase. Both ends belong to one installation,
so nothing here needs a version.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, NamedTuple


class AttemptKey(NamedTuple):
    """
    Name one attempt of one job.
    """

    job_id: str
    attempt: int


class Phase(StrEnum):
    """
    Name how far an attempt has come: the wish to start it is on the disk, what comes before its
    command runs, it runs, it has ended.
    """

    INTENDED = "intended"
    PREPARING = "preparing"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class StartRequest:
    """
    Say what to run for one attempt.

    Args:
        argv: Program and arguments; the program is looked for along PATH of *env*.
        env: The whole environment.
        cwd: Where it runs.
        umask: File mode mask, None for the launcher's own.
        stdin: File it reads, "" for none.
        stdout: File that takes its output; a relative path counts from *cwd*.
        stderr: File that takes its errors; the same path as *stdout* is opened once.
        make_directory: Directory to make first, "" for none.
        before: Shell texts that must succeed first, each with who says so.
        after: Shell texts that are run after it.
        nice: How much lower than the launcher's its priority is.
        file_kib: How large a file of it may become, None for any size.
    """

    job_id: str
    attempt: int
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    umask: int | None
    stdin: str
    stdout: str
    stderr: str
    make_directory: str = ""
    before: tuple[tuple[str, str], ...] = ()
    after: tuple[str, ...] = ()
    nice: int = 0
    file_kib: int | None = None

    @property
    def key(self) -> AttemptKey:
        """
        Return which attempt this is.
        """
        return AttemptKey(self.job_id, self.attempt)


class OrderKind(StrEnum):
    """
    Name what can be done to a running attempt.
    """

    KILL = "kill"
    """The given signals to its process group, each when it still runs a grace time after the one
    before; SIGTERM and SIGKILL when none are given."""
    SUSPEND = "suspend"
    """The given signal, so that a program can prepare, and SIGSTOP when it runs on."""
    RESUME = "resume"
    """SIGCONT."""
    SIGNAL = "signal"
    """The given signal, once; nothing follows."""


@dataclass(frozen=True, slots=True)
class OrderRequest:
    """
    Ask to do something to one attempt, once.

    Args:
        order_number: Rises with each order; 0 for a wish of the agent's own.
        grace_ms: How long the program may take before the signal that can't be caught follows.
        signal: Name of the signal to send, or to suspend with, "" for SIGTSTP.
        signals: Names of the signals to kill with, in order; none for SIGTERM and SIGKILL.
    """

    order_number: int
    kind: OrderKind
    job_id: str
    attempt: int
    grace_ms: int
    signal: str = ""
    signals: tuple[str, ...] = ()

    @property
    def key(self) -> AttemptKey:
        """
        Return which attempt is meant.
        """
        return AttemptKey(self.job_id, self.attempt)


@dataclass(slots=True)
class Attempt:
    """
    Hold what the launcher knows of one attempt.

    Args:
        pid: Its first process, which is its process group too; 0 before it runs.
        born_ticks: When that process began, in ticks since boot: tells it from a later one of the
            same number.
        exit_code: What it returned, None when a signal ended it or nobody knows.
        signal: The signal that ended it.
        failed: Why it couldn't be started, "" otherwise.
        pre_exec_of: Whose text before the command runs or has failed, "" for none.
        pre_exec_exit: What it returned.
        fault: What of the host kept it from starting: memory or host; "" for nothing.
    """

    job_id: str
    attempt: int
    phase: Phase
    pid: int = 0
    born_ticks: int = 0
    exit_code: int | None = None
    signal: int | None = None
    cpu_us: int = 0
    max_rss_kib: int = 0
    failed: str = ""
    pre_exec_of: str = ""
    pre_exec_exit: int = 0
    fault: str = ""

    @property
    def key(self) -> AttemptKey:
        """
        Return which attempt this is.
        """
        return AttemptKey(self.job_id, self.attempt)

    @property
    def is_alive(self) -> bool:
        """
        Tell whether a process of it runs that the launcher started.
        """
        return self.phase in (Phase.PREPARING, Phase.RUNNING)


@dataclass(frozen=True, slots=True)
class OrderOutcome:
    """
    Say what became of an order.
    """

    order_number: int
    outcome: str


@dataclass(slots=True)
class ToLauncher:
    """
    Hold what one line asks of the launcher.

    Args:
        quit: Whether it is to kill everything and end.
        reset: Whether its journal goes with it.
    """

    hello: bool = False
    start: list[StartRequest] = field(default_factory=list)
    order: list[OrderRequest] = field(default_factory=list)
    forget: list[AttemptKey] = field(default_factory=list)
    quit: bool = False
    reset: bool = False


@dataclass(slots=True)
class FromLauncher:
    """
    Hold what one line of the launcher tells.

    Args:
        hello: Whether this answers a hello: *attempts* are then all there are.
        last_order: The highest order number ever carried out.
    """

    attempts: list[Attempt] = field(default_factory=list)
    orders: list[OrderOutcome] = field(default_factory=list)
    hello: bool = False
    last_order: int = 0


def plain(value: object) -> Any:
    """
    Return a message, or a part of one, as plain JSON data without what is at its default.
    """
    if isinstance(value, list):
        return [plain(part) for part in value]
    if not hasattr(value, "__dataclass_fields__"):
        return value
    named = ((part.name, getattr(value, part.name), part.default) for part in fields(value))  # type: ignore[arg-type]
    return {name: plain(held) for name, held, default in named if held not in ([], default)}


def line_of(message: ToLauncher | FromLauncher) -> bytes:
    """
    Return the message as one line.
    """
    return json.dumps(plain(message), separators=(",", ":")).encode() + b"\n"


def attempt_of(data: dict[str, Any]) -> Attempt:
    """
    Return the attempt that plain data describes.
    """
    return Attempt(**{**data, "phase": Phase(data["phase"])})


def to_launcher(line: bytes) -> ToLauncher:
    """
    Return what a line asks of the launcher.

    Raises:
        ValueError, KeyError, TypeError: It is no message.
    """
    data: dict[str, Any] = json.loads(line)
    starts = [
        StartRequest(
            **{
                **one,
                "argv": tuple(one["argv"]),
                "umask": one.get("umask"),
                "before": tuple((owner, text) for owner, text in one.get("before", ())),
                "after": tuple(one.get("after", ())),
            }
        )
        for one in data.get("start", ())
    ]
    orders = [
        OrderRequest(**{**one, "kind": OrderKind(one["kind"])}) for one in data.get("order", ())
    ]
    forgets = [AttemptKey(*one) for one in data.get("forget", ())]
    return ToLauncher(
        bool(data.get("hello")),
        starts,
        orders,
        forgets,
        bool(data.get("quit")),
        bool(data.get("reset")),
    )


def from_launcher(line: bytes) -> FromLauncher:
    """
    Return what a line of the launcher tells.
    """
    data: dict[str, Any] = json.loads(line)
    attempts = [attempt_of(one) for one in data.get("attempts", ())]
    orders = [OrderOutcome(**one) for one in data.get("orders", ())]
    return FromLauncher(attempts, orders, bool(data.get("hello")), data.get("last_order", 0))

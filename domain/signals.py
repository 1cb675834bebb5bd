"""
The signals that users may send to their jobs: names, and Linux's numbers.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from domain.errors import Refused


class SignalName(StrEnum):
    """
    Name a signal that may be sent to a job. Those that stop a program or let it go on aren't here:
    the scheduler must know of it, so they have commands of their own.
    """

    HUP = "SIGHUP"
    INT = "SIGINT"
    QUIT = "SIGQUIT"
    ILL = "SIGILL"
    TRAP = "SIGTRAP"
    ABRT = "SIGABRT"
    BUS = "SIGBUS"
    FPE = "SIGFPE"
    KILL = "SIGKILL"
    USR1 = "SIGUSR1"
    SEGV = "SIGSEGV"
    USR2 = "SIGUSR2"
    PIPE = "SIGPIPE"
    ALRM = "SIGALRM"
    TERM = "SIGTERM"
    URG = "SIGURG"
    XCPU = "SIGXCPU"
    XFSZ = "SIGXFSZ"
    VTALRM = "SIGVTALRM"
    PROF = "SIGPROF"
    WINCH = "SIGWINCH"
    IO = "SIGIO"

    @property
    def number(self) -> int:
        """
        Return its number on Linux.
        """
        return _NUMBERS[self]


_NUMBERS: Final = {
    SignalName.HUP: 1, SignalName.INT: 2, SignalName.QUIT: 3, SignalName.ILL: 4,
    SignalName.TRAP: 5, SignalName.ABRT: 6, SignalName.BUS: 7, SignalName.FPE: 8,
    SignalName.KILL: 9, SignalName.USR1: 10, SignalName.SEGV: 11, SignalName.USR2: 12,
    SignalName.PIPE: 13, SignalName.ALRM: 14, SignalName.TERM: 15, SignalName.URG: 23,
    SignalName.XCPU: 24, SignalName.XFSZ: 25, SignalName.VTALRM: 26, SignalName.PROF: 27,
    SignalName.WINCH: 28, SignalName.IO: 29,
}  # fmt: skip
_BY_NUMBER: Final = {str(number): name for name, number in _NUMBERS.items()}
_OF_OTHER_COMMANDS: Final = {
    "SIGSTOP": "stop", "SIGTSTP": "stop", "SIGTTIN": "stop", "SIGTTOU": "stop",
    "SIGCONT": "resume", "19": "stop", "20": "stop", "21": "stop", "22": "stop", "18": "resume",
}  # fmt: skip


def parse_signal(text: str) -> SignalName:
    """
    Return the signal of a name, with or without SIG, or of a number.

    Raises:
        Refused: There is no such signal, or another command does that.
    """
    told = text.strip().upper()
    name = told if told.isdecimal() or told.startswith("SIG") else f"SIG{told}"
    if name in _BY_NUMBER:
        return _BY_NUMBER[name]
    other = _OF_OTHER_COMMANDS.get(name)
    if other is not None:
        rule = f"must not be one that {other}s a job: {other} has a command of its own"
        raise Refused("signal", rule, text, f"Say: xce {other} JOB.")
    try:
        return SignalName(name)
    except ValueError:
        known = ", ".join(each.removeprefix("SIG") for each in SignalName)
        raise Refused("signal", f"must be one of {known}", text) from None


def is_known_signal(number: int) -> bool:
    """
    Say whether a number is that of a signal with a name.
    """
    return str(number) in _BY_NUMBER


def signal_words(number: int) -> str:
    """
    Return a signal with its name: "signal 9 (SIGKILL)".
    """
    name = _BY_NUMBER.get(str(number))
    return f"signal {number} ({name.value})" if name else f"signal {number}"

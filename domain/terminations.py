"""
Why jobs end before their time: LSF's termination reasons and their numbers in accounting records.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from domain.signals import is_known_signal, signal_words


class Termination(StrEnum):
    """
    Name why a job was ended; the order is that of LSF's numbers, from 0.
    """

    UNKNOWN = "TERM_UNKNOWN"
    PREEMPT = "TERM_PREEMPT"
    WINDOW = "TERM_WINDOW"
    LOAD = "TERM_LOAD"
    OTHER = "TERM_OTHER"
    RUNLIMIT = "TERM_RUNLIMIT"
    DEADLINE = "TERM_DEADLINE"
    PROCESSLIMIT = "TERM_PROCESSLIMIT"
    FORCE_OWNER = "TERM_FORCE_OWNER"
    FORCE_ADMIN = "TERM_FORCE_ADMIN"
    REQUEUE_OWNER = "TERM_REQUEUE_OWNER"
    REQUEUE_ADMIN = "TERM_REQUEUE_ADMIN"
    CPULIMIT = "TERM_CPULIMIT"
    CHKPNT = "TERM_CHKPNT"
    OWNER = "TERM_OWNER"
    ADMIN = "TERM_ADMIN"
    MEMLIMIT = "TERM_MEMLIMIT"
    EXTERNAL_SIGNAL = "TERM_EXTERNAL_SIGNAL"
    RMS = "TERM_RMS"
    ZOMBIE = "TERM_ZOMBIE"
    SWAP = "TERM_SWAP"
    THREADLIMIT = "TERM_THREADLIMIT"
    SLURM = "TERM_SLURM"
    BUCKET_KILL = "TERM_BUCKET_KILL"
    CTRL_PID = "TERM_CTRL_PID"
    CWD_NOTEXIST = "TERM_CWD_NOTEXIST"
    REMOVE_HUNG_JOB = "TERM_REMOVE_HUNG_JOB"
    ORPHAN_SYSTEM = "TERM_ORPHAN_SYSTEM"
    PRE_EXEC_FAIL = "TERM_PRE_EXEC_FAIL"
    DATA = "TERM_DATA"
    MC_RECALL = "TERM_MC_RECALL"
    RC_RECLAIM = "TERM_RC_RECLAIM"
    CSM_ALLOC = "TERM_CSM_ALLOC"
    KUBE = "TERM_KUBE"

    @property
    def number(self) -> int:
        """
        Return its number in accounting records (exitInfo).
        """
        return _NUMBERS[self]


_NUMBERS: Final = {termination: number for number, termination in enumerate(Termination)}
_BY_NUMBER: Final = dict(enumerate(Termination))


def termination_of(number: int) -> Termination | int:
    """
    Return the reason of a number; one that isn't known stays a number, since releases add some.
    """
    return _BY_NUMBER.get(number, number)


LOST_HOST: Final = "TERM_LOST_HOST"
"""A reason of our own, which has no number: the job's host stayed lost."""

TEXTS: Final[dict[str, str]] = {
    Termination.PREEMPT: "it had to make way for another job",
    Termination.WINDOW: "the run window of its queue closed",
    Termination.LOAD: "the load of its host was too high",
    Termination.RUNLIMIT: "it reached its run limit",
    Termination.DEADLINE: "its deadline came",
    Termination.PROCESSLIMIT: "it had more processes than its limit",
    Termination.FORCE_OWNER: "killed by its user, by force",
    Termination.FORCE_ADMIN: "killed by an administrator, by force",
    Termination.REQUEUE_OWNER: "put back by its user",
    Termination.REQUEUE_ADMIN: "put back by an administrator",
    Termination.CPULIMIT: "it used more processor time than its limit",
    Termination.OWNER: "killed by its user",
    Termination.ADMIN: "killed by an administrator",
    Termination.MEMLIMIT: "it used more memory than its limit",
    Termination.EXTERNAL_SIGNAL: "a signal that nobody sent through the scheduler",
    Termination.SWAP: "it used more swap space than its limit",
    Termination.THREADLIMIT: "it had more threads than its limit",
    Termination.REMOVE_HUNG_JOB: "it didn't end as ordered, or its host stayed lost",
    Termination.ORPHAN_SYSTEM: "what it waited for can never be",
    Termination.PRE_EXEC_FAIL: "a pre-exec command ended with 99",
    LOST_HOST: "its host stayed silent for too long",
}
"""Reason that is given -> what people are told; those that no job ends for have none."""

_SHELL_CODES: Final = {126: "the command can't be executed", 127: "the command isn't found"}
_SIGNALLED: Final = 128
"""What a shell adds to the number of the signal that ended its command."""


def termination_words(why: str) -> str:
    """
    Return a reason in words with its code: "killed by its user (TERM_OWNER)"; what is no code of
    ours is words already.
    """
    return f"{TEXTS[why]} ({why})" if why in TEXTS else why


def exit_words(exit_code: int | None, signal: int | None) -> str:
    """
    Return how a program ended: "exit code 3", "exit code 127: the command isn't found",
    "signal 9 (SIGKILL)"; "" when nobody knows.
    """
    if signal is not None:
        return signal_words(signal)
    if exit_code is None:
        return ""
    hint = _SHELL_CODES.get(exit_code, "")
    if exit_code > _SIGNALLED and is_known_signal(exit_code - _SIGNALLED):
        hint = f"a shell's for {signal_words(exit_code - _SIGNALLED)}"
    return f"exit code {exit_code}" + (f": {hint}" if hint else "")

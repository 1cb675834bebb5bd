"""
Why jobs end before their time: LSF's termination reasons and their numbers in accounting records.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


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

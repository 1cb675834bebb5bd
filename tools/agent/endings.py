"""
What the launcher writes of an attempt that runs, and of one that has ended.
"""

from __future__ import annotations

import os
import resource

from tools.agent.messages import Attempt, AttemptKey, Phase


def running(key: AttemptKey, pid: int, born: int) -> Attempt:
    """
    Return an attempt whose first process runs.
    """
    return Attempt(key.job_id, key.attempt, Phase.RUNNING, pid=pid, born_ticks=born)


def preparing(key: AttemptKey, owner: str, pid: int, born: int) -> Attempt:
    """
    Return an attempt of which something before its command runs.
    """
    return Attempt(*key, Phase.PREPARING, pid=pid, born_ticks=born, pre_exec_of=owner)


def lost(attempt: Attempt) -> Attempt:
    """
    Return the end of an attempt whose exit status nobody knows.
    """
    return Attempt(attempt.job_id, attempt.attempt, Phase.ENDED, pid=attempt.pid)


def finished(key: AttemptKey, pid: int, status: int, usage: resource.struct_rusage) -> Attempt:
    """
    Return the end of an attempt by what its first process was waited for with.
    """
    code = os.waitstatus_to_exitcode(status)
    # The kernel hands the launcher's own peak on to what it spawns: up to there nothing is known.
    floor_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Attempt(
        key.job_id,
        key.attempt,
        Phase.ENDED,
        pid=pid,
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        cpu_us=round((usage.ru_utime + usage.ru_stime) * 1e6),
        max_rss_kib=usage.ru_maxrss if usage.ru_maxrss > floor_kib else 0,
    )

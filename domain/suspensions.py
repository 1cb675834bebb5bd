"""
Why a job is stopped, in words.
"""

from __future__ import annotations

import re
from typing import Final

_WORDS: Final = {
    "SUSP_USER_STOP": "its user stopped it",
    "SUSP_ADMIN_STOP": "an operator stopped it",
    "SUSP_QUEUE_WINDOW": "the run windows of its queue are closed",
    "SUSP_PREEMPT": "it makes room for another job",
    "SUSP_LOAD": "the load of a host of it is too much",
    "SUSP_QUE_STOP_COND": "the stop condition of its queue holds on a host of it",
    "SUSP_RES_RESERVE": "what it gave back when it was stopped isn't free again",
}
"""Suspend reason -> the same in words."""

_LOAD: Final = re.compile(r"SUSP_LOAD\((.+)\)")


def show_suspension(why: str, preemptor: str = "") -> str:
    """
    Return why a job is stopped, with the reason's code; "" for no reason.

    Args:
        why: The suspend reason; of a load with its index.
        preemptor: The job that it was stopped for, "" for none.
    """
    if not why:
        return ""
    load = _LOAD.fullmatch(why)
    if load is not None:
        words = f"the load index {load[1]} of a host of it is beyond its threshold"
    elif preemptor and why in ("SUSP_PREEMPT", "SUSP_RES_RESERVE"):
        still = "" if why == "SUSP_PREEMPT" else ", and what it gave back isn't free again"
        words = f"it {'makes' if not still else 'made'} room for job {preemptor}{still}"
    else:
        words = _WORDS.get(why, "the system stopped it")
    return f"{words} ({why})"

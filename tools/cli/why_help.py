"""
What would help a job that waits, by its main reason: a command to type, or what must happen first.
"""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote
from typing import Final

HELPS_SHOWN: Final = 3

ENDING: Final = "jobs that end: xce why {job} --ahead lists who has hosts, and until when"
OF_LIMITS: Final = "jobs that end and count for the same limit: xce limits shows what is in use"
OTHER_QUEUE: Final = "another queue: xce switch QUEUE {job}"
SHORTER: Final = "a shorter run limit: xce modify -W MINUTES {job}"
FEWER: Final = "fewer tasks (xce modify -n {slots} {job}), or more hosts (xce worker)"
MORE_HOSTS: Final = (
    "more hosts with free slots (xce worker), or fewer tasks (xce modify -n {slots} {job})"
)
MORE: Final = ", or hosts with more (xce worker)"
OTHER_REQUEST: Final = "another requirement: xce modify -R TEXT {job}; xce hosts NAME shows a host"
OF_HOSTS: Final = "an administrator: xce hosts shows the state of each"

HELP: Final[dict[str, str]] = {
    "USER_STOP": "xce resume {job}",
    "ADMIN_STOP": "an administrator's xce resume {job}",
    "JOB_DEPEND": "the end of what it waits for; or xce modify -w TEXT {job} (none: no dependency)",
    "JOB_DEP_INVALID": "xce modify -w TEXT {job} (none: no dependency), or xce kill {job}",
    "JOB_ARRAY_JLIMIT": "more elements at a time: xce modify -J %K {array}",
    "JOB_MISS_DEADLINE": SHORTER,
    "QUE_INACT": OTHER_QUEUE + ", or an administrator's xce queues activate {queue}",
    "QUE_WINDOW": OTHER_QUEUE + "; xce queues {queue} shows when its windows are open",
    "QUE_WINDOW_WILL_CLOSE": SHORTER,
    "QUE_JOB_LIMIT": OF_LIMITS,
    "QUE_PJOB_LIMIT": OF_LIMITS,
    "QUE_USR_JLIMIT": OF_LIMITS,
    "QUE_USR_PJLIMIT": OF_LIMITS,
    "QUE_PROCLIMIT": "xce modify -n N {job}; xce queues {queue} shows how many tasks it takes",
    "QUE_NO_RIGHT": OTHER_QUEUE,
    "USER_JOB_LIMIT": OF_LIMITS,
    "USER_PJOB_LIMIT": OF_LIMITS,
    "UGRP_JOB_LIMIT": OF_LIMITS,
    "UGRP_PJOB_LIMIT": OF_LIMITS,
    "RES_LIMIT": OF_LIMITS,
    "PROJECT_NO_RIGHT": "another project: xce modify -P PATH {job}",
    "PROJECT_CLOSED": "another project: xce modify -P PATH {job}",
    "JOB_NOT_ALLOWED": "xce modify {job} with what its profile and queue {queue} allow",
    "NO_ALLOCATOR": "xce modify {job}; xce why {job} --trace tells what was tried",
    "NO_PLAN": "xce modify {job}; xce why {job} --trace tells what was tried",
    "NO_HOSTS": "a host: xce worker, or xce up --workers N",
    "PLUGIN_FAILED": "whoever maintains the plug-in: xce why {job} --trace tells what was tried",
    "HOST_SLOTS": ENDING,
    "HOST_JOB_LIMIT": ENDING,
    "HOST_LESS_SLOTS": ENDING,
    "HOST_JOB_RUSAGE": ENDING,
    "HOST_QUE_RUSAGE": ENDING,
    "HOST_RES_REQ": OTHER_REQUEST,
    "HOST_QUE_RESREQ": OTHER_QUEUE + "; xce queues {queue} shows what its hosts must have",
    "HOST_SCHED_TYPE": OTHER_REQUEST,
    "HOST_USR_SPEC": "more hosts to choose from: it names those that it may run on (-m)",
    "HOST_QUE_MEMB": OTHER_QUEUE + "; xce queues {queue} shows its hosts",
    "QUE_HOST_JLIMIT": OF_LIMITS,
    "QUE_PROC_JLIMIT": OF_LIMITS,
    "USER_PROC_JLIMIT": OF_LIMITS,
    "HOST_USR_JLIMIT": OF_LIMITS,
    "HOST_NONEXCLUSIVE": ENDING,
    "HOST_EXCLUSIVE": ENDING,
    "HOST_JOB_SSUSP": ENDING,
    "SBD_JOB_REQUEUE": "another host; the avoided ones are forgotten by xce stop and xce resume",
    "JOB_NO_SPAN": ENDING,
    "JOB_SPREAD_TASK": ENDING,
    "RES_SHORT": ENDING,
    "HOST_WINDOW": OF_HOSTS,
    "HOST_NO_LIM": OF_HOSTS,
    "HOST_LOCKED": OF_HOSTS,
    "HOST_LOAD": "less load there: xce hosts NAME shows a host's load and thresholds",
    "HOST_STOP_COND": "less load there: xce hosts NAME shows a host's load",
    "HOST_DISABLED": "an administrator's xce hosts open NAME; xce hosts says which are closed",
    "SBD_UNREACH": "the workers of those hosts: xce hosts shows which aren't heard",
    "LOAD_UNAVAIL": (
        "workers that are heard and report it: xce hosts shows who isn't heard, xce hosts NAME "
        "what is reported; or no condition on it (xce modify -R TEXT {job}, xce queues {queue})"
    ),
}
"""Main reason -> what helps; of others nothing but time, or what is told beside them."""

NEVER: Final[dict[str, str]] = {
    "HOST_SLOTS": FEWER,
    "HOST_JOB_LIMIT": FEWER,
    "HOST_LESS_SLOTS": FEWER,
    "HOST_JOB_RUSAGE": "a smaller amount (xce modify -R TEXT {job})" + MORE,
    "HOST_QUE_RUSAGE": OTHER_QUEUE + MORE,
    "JOB_NO_SPAN": "fewer tasks on a host (xce modify -R TEXT {job})" + MORE,
    "JOB_SPREAD_TASK": "fewer hosts (xce modify -R TEXT {job}), or more of them (xce worker)",
    "RES_SHORT": "a smaller amount: xce modify -R TEXT {job}; xce definitions resource tells all",
    "RES_LIMIT": "a smaller request (xce modify), or a greater limit: xce limits shows them",
}
"""The same of a job that can never start on the cluster as it is."""

PASSES: Final = frozenset(
    {
        "JOB_NEW", "USER_RESUME", "JOB_MODIFY", "JOB_SWITCH", "JOB_REQUEUED", "JOB_PREEMPTED",
        "JOB_PRE_EXEC", "QUE_PRE_FAIL", "SBD_NO_MEM", "JOB_START_FAIL", "JOB_BEHIND",
        "JOB_START_TIME", "JOB_DELAY_SCHED", "MEMBER_NOT_TRIED", "ALTERNATIVE_WAITS",
        "HOST_ACCPT_ONE",
    }
)  # fmt: skip
"""Reasons that pass by themselves, or say beside them what they wait for."""


def helps(
    codes: Iterable[str],
    job_id: str,
    queue: str,
    *,
    never: bool,
    slots: int | None = None,
    is_of_hosts: bool = False,
) -> list[str]:
    """
    Return what would help a job, for each of its reasons once; nothing where only time does.

    Args:
        codes: Its reasons, the main one first.
        job_id: Which job.
        queue: Its queue.
        never: It can never start on the cluster as it is.
        slots: How many slots the hosts that suit it have, None when nobody knows.
        is_of_hosts: Its span could be had, on more hosts than there are.
    """
    of_never = NEVER | ({"JOB_NO_SPAN": MORE_HOSTS} if is_of_hosts else {})
    told = [(of_never.get(code) if never else None) or HELP.get(code, "") for code in codes]
    said = {
        "job": quote(job_id), "array": job_id.partition("[")[0], "queue": queue,
        "slots": slots or "N",
    }  # fmt: skip
    return [words.format(**said) for words in dict.fromkeys(told) if words]

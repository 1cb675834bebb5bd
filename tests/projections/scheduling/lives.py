"""
What the life of a cluster has come to: a count of each kind of happening and decision in its log.

Lives that are drawn prove nothing of what they never come to, so tests ask.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from domain.envelope import Stamped
from domain.event import Event
from domain.events.jobs import (
    JobDispatched,
    JobEnded,
    JobKillOrdered,
    JobRequeued,
    JobSuspendOrdered,
)
from tests.projections.scheduling.recovering import Step

CLUSTER: Final = (0, 0, 0, 1, 0, 1, 2, 1, 0, 0, 1, 1, 0, 1)
"""Numbers of a cluster where queues preempt, orphans end and jobs that hang are given up."""

SELDOM: Final[dict[str, tuple[Step, ...]]] = {
    "requeued: exit value": (("come_back", []),),
    "requeued: command": (("come_back", [0, 0, 0, 2]),),
    "requeued: lost host": (("lose", []),),
    "requeued: preempted": (("preempt", [2]),),
    "requeued: load": (("press", [2]),),
    "requeued: window closed": (("shut", [0, 0, 3]),),
    "ended: TERM_ORPHAN_SYSTEM": (("orphan", []),),
    "ended: TERM_REMOVE_HUNG_JOB": (("hang", []),),
    "ended: TERM_FORCE_OWNER": (("force", []),),
    "ended: TERM_FORCE_ADMIN": (("force", [0, 0, 0, 0, 1]),),
    "ended: TERM_LOST_HOST": (("lose", [2]),),
    "stopped for another": (("preempt", []),),
    "killed for another": (("preempt", [1]),),
    "stopped: SUSP_LOAD": (("press", []),),
    "stopped: SUSP_QUEUE_WINDOW": (("shut", []),),
    "job.resume_ordered": (("preempt", []),),
    "job.preemption_planned": (("preempt", []),),
    "job.preemption_ended": (("preempt", [0] * 8 + [1, 0, 0, 0, 0, 5]), ("queue", [1])),
    "forced start": (("run", []),),
    "jobs.forgotten": (("forget", []),),
}
"""What random steps come to only by several that fit together, with a life that comes to it."""


def reached(log: Iterable[Stamped]) -> Counter[str]:
    """
    Return how often each kind of thing is in a log.
    """
    return Counter(_kind(stamped.event) for stamped in log)


def _kind(event: Event) -> str:
    if isinstance(event, JobRequeued):
        return f"requeued: {event.why}"
    if isinstance(event, JobEnded):
        return f"ended: {event.why}"
    if isinstance(event, JobKillOrdered):
        return "killed for another" if event.preemptor else f"kill: {event.why}"
    if isinstance(event, JobSuspendOrdered):
        why = event.why.partition("(")[0]
        return "stopped for another" if event.preemptor else f"stopped: {why}"
    if isinstance(event, JobDispatched) and event.is_forced:
        return "forced start"
    return event.TYPE_CODE

"""
Which queues' jobs may suspend those of which others.
"""

from __future__ import annotations

from collections.abc import Mapping

from domain.name_lists import NameList
from domain.preemption import Relation
from domain.queues import QueueSpec


def preys_of(name: str, queues: Mapping[str, QueueSpec], relation: Relation) -> tuple[str, ...]:
    """
    Return the queues of lower priority whose jobs those of a queue may suspend, in order of their
    definition: both queues agree to it, or either where the cluster has LSF's rule.
    """
    hunter = queues.get(name)
    if hunter is None:
        return ()
    agreed = all if relation is Relation.BOTH else any
    return tuple(
        other
        for other, prey in queues.items()
        if prey.priority < hunter.priority
        and agreed(
            (_names(hunter.preemptible_queues, other), _names(prey.preemptible_by, name))
        )
    )


def _names(names: NameList | None, queue: str) -> bool:
    return names is not None and names.holds([queue])

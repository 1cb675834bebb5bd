"""
What of a queue's definition counts for nothing as the cluster is, and what would make it count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from domain.cluster import ClusterSettings
from domain.name_lists import EVERYBODY, NameList
from domain.preemption import Relation
from domain.queues import QueueSpec
from domain.resreq.merge import QueueResreq
from projections.scheduling.preying import preys_of

FAIRSHARE = "fairshare"


def notices_of(
    name: str, queues: Mapping[str, QueueSpec], cluster: ClusterSettings
) -> dict[str, str]:
    """
    Return by field what counts for nothing, with what to do.
    """
    return dict(_notices(name, queues, cluster))


def _notices(
    name: str, queues: Mapping[str, QueueSpec], cluster: ClusterSettings
) -> Iterator[tuple[str, str]]:
    queue = queues[name]
    relation = cluster.preemption.relation
    preempts = set(preys_of(name, queues, relation))
    others = set(queues) - {name}
    by = {other for other in others if name in preys_of(other, queues, relation)}
    for field, names, agreed in (
        ("preemptible_queues", queue.preemptible_queues, preempts),
        ("preemptible_by", queue.preemptible_by, by),
    ):
        if names is not None:
            unmet = _unmet(field, name, queues, sorted(_meant(names, others) - agreed), relation)
            if unmet and not (agreed and _is_for_all(names)):
                yield field, unmet
    picker = queue.picker or cluster.picker
    if queue.fairshare is not None and picker != FAIRSHARE:
        yield FAIRSHARE, (
            f"its picker is {picker}, so shares count for nothing; "
            f"xce define queue {name} picker={FAIRSHARE}"
        )
    if queue.resreq and cluster.queue_resreq is QueueResreq.IGNORE:
        yield "resreq", (
            "queues' requirements count for nothing here; xce define cluster queue_resreq=merge"
        )


def _meant(names: NameList, others: set[str]) -> set[str]:
    named = {each.name for each in names.entries if not each.is_excluded} - set(EVERYBODY)
    return named | {other for other in others if names.holds([other])}


def _is_for_all(names: NameList) -> bool:
    wanted = [each.name for each in names.entries if not each.is_excluded]
    return not wanted or any(name in EVERYBODY for name in wanted)


def _unmet(
    field: str,
    name: str,
    queues: Mapping[str, QueueSpec],
    others: list[str],
    relation: Relation,
) -> str:
    """
    Return why other queues aren't preempted, or don't preempt, though a list names them.
    """
    is_hunter = field == "preemptible_queues"
    told = []
    for other in others:
        hunter, prey = (name, other) if is_hunter else (other, name)
        if other not in queues:
            told.append(f"there is no queue {other}")
        elif queues[hunter].priority <= queues[prey].priority:
            told.append(
                f"{hunter} has no higher priority than {prey} "
                f"({queues[hunter].priority} and {queues[prey].priority})"
            )
        elif relation is Relation.BOTH:
            value = f"preemptible_by={name}" if is_hunter else f"preemptible_queues={name}"
            told.append(
                f"{hunter} preempts {prey} only when both say so; xce define queue {other} {value}"
            )
    return "; ".join(told)

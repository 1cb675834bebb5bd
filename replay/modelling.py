"""
Say what a job of a workload asks of a modelled cluster, and whether the cluster could ever hold it.

What a trace says counts only where the cluster describes it: memory where hosts have memory, an
amount where some host has that resource, properties of hosts where hosts have attributes, a number
of hosts where hosts are more than numbers of slots.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import final

from domain.resreq.syntax import (
    Expr,
    Name,
    Per,
    Primary,
    Requirement,
    RusageTerm,
    Span,
    SpanForm,
    Text,
    all_of,
    any_of,
    simple_requirement,
)
from replay.cluster_spec import ClusterSpec, HostSpec
from replay.slurm_conf import partition_attribute
from replay.workloads.details import MEM, UNKNOWN, Alternatives, Ask, TraceNeed
from replay.workloads.source import TraceJob, Workload

KIB_MILLI = 1_000
MILLI = 1_000
FLAG = "true"


@final
@dataclass(frozen=True, slots=True)
class ModelAsk:
    """
    Hold what a job asks of this cluster.

    Args:
        needs: Amounts besides slots, each resource once.
        select: What a host must have, all of it.
        task_most: So many tasks at most on one host; 0 without a bound.
    """

    needs: tuple[TraceNeed, ...] = ()
    select: tuple[Alternatives, ...] = ()
    task_most: int = 0


@final
@dataclass(frozen=True, slots=True)
class _Shape:
    """
    Hold what hosts that are alike have.
    """

    slots: int
    attributes: frozenset[tuple[str, str]]
    totals_milli: tuple[tuple[str, int], ...]
    with_units: frozenset[str] = frozenset()


Key = tuple[int, int, Ask]


@final
class Modelling:
    """
    Answer what jobs ask of one cluster; jobs that ask for the same are worked out once.

    Args:
        cluster: The modelled cluster.

    Attributes:
        is_described: Whether its hosts are more than numbers of slots.
    """

    def __init__(self, cluster: ClusterSpec) -> None:
        self._cluster = cluster
        self._shapes = Counter(map(_shape, cluster.hosts))
        self._resources = {
            name for shape in self._shapes for name, total in shape.totals_milli if total
        }
        self._has_attributes = cluster.has_attributes
        self.is_described = cluster.has_memory or self._has_attributes or bool(self._resources)
        self._asks: dict[Key, ModelAsk] = {}
        self._fits: dict[Key, bool] = {}
        self._requirements: dict[ModelAsk, Requirement | None] = {}

    def ask(self, job: TraceJob) -> ModelAsk:
        """
        Return what a job asks of the cluster.
        """
        key = (job.tasks, job.requested_kib, job.details.ask)
        found = self._asks.get(key)
        if found is None:
            found = self._asks[key] = self._ask(job)
        return found

    def requirement(self, job: TraceJob) -> Requirement | None:
        """
        Return the same as a resource requirement, None when it asks for nothing but slots.
        """
        if self._cluster.is_recorded and job.details.ask.own is not None:
            return job.details.ask.own
        ask = self.ask(job)
        if ask not in self._requirements:
            self._requirements[ask] = _requirement(ask)
        return self._requirements[ask]

    def fits(self, job: TraceJob) -> bool:
        """
        Tell whether the empty cluster holds the job.
        """
        if self._cluster.is_recorded:
            # It ran there; what no longer does is counted as never placed.
            return True
        key = (job.tasks, job.requested_kib, job.details.ask)
        if key not in self._fits:
            ask = self.ask(job)
            room = sum(_room(shape, ask) * count for shape, count in self._shapes.items())
            self._fits[key] = room >= job.tasks
        return self._fits[key]

    def fitting(self, workload: Workload) -> Workload:
        """
        Return the workload without the jobs that the cluster could never hold, counted.
        """
        small = workload.fitting(self._cluster.slots)
        if small.jobs.details is None and not self.is_described:
            return small
        fits = [self.fits(job) for job in small.jobs]
        if all(fits):
            return small
        counted = replace(small.left_out, fits_no_hosts=fits.count(False))
        return replace(small, jobs=small.jobs.kept(fits), left_out=counted)

    # -- one ask

    def _ask(self, job: TraceJob) -> ModelAsk:
        ask = job.details.ask
        select = ask.select if self._has_attributes else ()
        hosts = ask.hosts if self.is_described else UNKNOWN
        return ModelAsk(
            needs=self._needs(job),
            select=(*select, *self._partition_clause(ask)),
            task_most=-(-job.tasks // hosts) if hosts > 0 and job.tasks > 1 else 0,
        )

    def _needs(self, job: TraceJob) -> tuple[TraceNeed, ...]:
        """
        Return the amounts that count; a partition's default where no memory is asked for.
        """
        needs = [need for need in job.details.ask.needs if need.resource in self._resources]
        has_own = any(need.resource == MEM for need in needs)
        if MEM in self._resources and not has_own:
            kib = job.requested_kib
            if kib <= 0:
                kib = self._default_kib(job.details.ask)
            if kib > 0:
                needs.append(TraceNeed(MEM, kib * KIB_MILLI, per_task=True))
        return tuple(needs)

    def _default_kib(self, ask: Ask) -> int:
        names = ask.queue_name.split(",")
        for part in self._cluster.partitions:
            if part.name in names or (part.is_default and not ask.queue_name):
                return part.task_kib or 0
        return 0

    def _partition_clause(self, ask: Ask) -> tuple[Alternatives, ...]:
        """
        Return the clause that keeps a job on the hosts of its partitions.

        A partition that the cluster doesn't have is on no host: the job doesn't fit.
        """
        if not self._cluster.partitions:
            return ()
        if ask.queue_name:
            names = ask.queue_name.split(",")
        else:
            names = [part.name for part in self._cluster.partitions if part.is_default]
        return (tuple((partition_attribute(name), FLAG) for name in names),) if names else ()


def _shape(host: HostSpec) -> _Shape:
    totals = {resource.name: resource.total_milli for resource in host.resources}
    if host.mem_kib is not None:
        totals[MEM] = host.mem_kib * KIB_MILLI
    with_units = frozenset(resource.name for resource in host.resources if resource.has_units)
    attributes = frozenset(host.attributes)
    return _Shape(host.slots, attributes, tuple(sorted(totals.items())), with_units)


def _room(shape: _Shape, ask: ModelAsk) -> int:
    """
    Return how many tasks of a job an empty host holds.
    """
    if not all(any(pair in shape.attributes for pair in clause) for clause in ask.select):
        return 0
    room = min(shape.slots, ask.task_most or shape.slots)
    totals = dict(shape.totals_milli)
    for need in ask.needs:
        total = totals.get(need.resource, 0)
        if need.per_task:
            most = total // need.milli
            if need.resource in shape.with_units:
                most = _tasks_on_units(total // MILLI, need.milli)
            room = min(room, most)
        elif need.milli > total:
            return 0
    return room


def _tasks_on_units(units: int, milli: int) -> int:
    """
    Return how many tasks so many units hold, each a share of one beside whole ones.
    """
    whole, share = divmod(milli, MILLI)
    if not share:
        return units // whole
    each = MILLI // share
    counts = range(1, units * each + 1)
    return max((n for n in counts if n * whole + -(-n // each) <= units), default=0)


def _requirement(ask: ModelAsk) -> Requirement | None:
    terms = tuple(
        RusageTerm(
            resource=need.resource, milli=need.milli, per=Per.TASK if need.per_task else Per.HOST
        )
        for need in ask.needs
    )
    primary = Primary(
        select=_expression(ask.select),
        rusage=(terms,) if terms else (),
        span=_span(ask.task_most),
    )
    return None if primary == Primary() else simple_requirement(primary)


def _expression(select: tuple[Alternatives, ...]) -> Expr | None:
    clauses = tuple(any_of(tuple(_leaf(*pair) for pair in clause)) for clause in select)
    return all_of(clauses) if clauses else None


def _leaf(attribute: str, value: str) -> Expr:
    if value == FLAG:
        return Name(kind="name", name=attribute)
    return Text(kind="text", name=attribute, op="==", value=value)


def _span(task_most: int) -> Span | None:
    """
    Return the span of so many tasks on each host: the last host may have fewer.
    """
    return Span(form=SpanForm.PTILE, count=task_most) if task_most > 0 else None

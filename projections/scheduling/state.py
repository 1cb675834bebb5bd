"""
The state of the core: what is stored, and the indexes that are derived from it.

Indexes are never stored: ``apply`` keeps them, ``restore`` rebuilds them, and the rebuilt must
equal the kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from domain.amounts import SLOTS
from domain.effective import requirement_of
from domain.errors import Refused
from domain.identity import ByIdentity
from domain.job_states import LIVE, JobState
from domain.jobs import JobSpec
from domain.preemption import Relation
from domain.resources import Catalogue, ResourceDescriptor
from domain.resreq.merge import QueueResreq
from domain.resreq.render import text_of
from domain.resreq.syntax import Requirement
from projections.scheduling.alternatives import open_branches_of
from projections.scheduling.capacity import derive
from projections.scheduling.limits import Limits
from projections.scheduling.load_bounds import LoadBound, bounds_of
from projections.scheduling.openings import opens_by_taking
from projections.scheduling.own_words import own_words
from projections.scheduling.pickers.protocol import JobPicker
from projections.scheduling.preying import preys_of
from projections.scheduling.queue_share import NO_SHARE, QueueShare, share_of
from projections.scheduling.records import JobRecord, StoredState
from projections.scheduling.request import (
    Asking,
    Request,
    fingerprint_of,
    request_of,
)
from projections.scheduling.shut_hosts import ShutHosts

PARSED_MAX: Final = 4_096
"""So many texts of requirements are remembered with their parse."""


class State(ShutHosts):
    """
    Hold the stored state and its indexes. Only ``apply`` changes it.

    Args:
        stored: What snapshots hold.
        picker: Learns of every job that begins or stops to wait.
        is_plain: Work out each job's request by itself, and forget what proved impossible: for
            tests that compare.
    """

    def __init__(
        self, stored: StoredState, picker: JobPicker, *, is_plain: bool = False
    ) -> None:
        super().__init__(stored, picker)
        live = [job for job in stored.jobs.values() if job.state in LIVE]
        self.capacity = derive(stored.workers.values(), live)
        allocations = [job.allocation for job in live if job.allocation is not None]
        for descriptor in stored.resources.values():
            self.capacity.set_shared(descriptor, allocations)
        self.is_plain = is_plain
        self.limits = self.capacity.limits = Limits(stored, self.capacity)
        self.limits.define(live)
        self.requests: dict[str, Request] = {}
        self.wanted: dict[str, Request] = {}
        self.volatile = False
        self._opens_by_taking = False
        for worker in self.hosts:
            if worker.accepted_us is not None or worker.settings.dispatch_windows is not None:
                self.note_host(worker, stored.time_us)
                self.capacity.set_status(worker)
        self.parsed: dict[tuple[str, ...], Requirement] = {}
        self._texts: ByIdentity[Requirement, str] = ByIdentity()
        self._merged: dict[
            tuple[str, str], ByIdentity[Requirement | None, Requirement | None]
        ] = {}
        self._preys: dict[str, tuple[str, ...]] = {}
        self._catalogue: Catalogue | None = None
        self._vocabulary = 0
        self.windows_open: dict[str, bool] = {}
        self.windows_until_us = 0
        self.note_what_time_opens()
        self._index()
        self.note_loads()
        self.capacity.released = self._released()
        for job in self.live.values():
            if job.is_aside:
                self.capacity.stand_aside(job)
        for job in self.gatherers.values():
            self.limits.reserve(job)

    def _index(self) -> None:
        """
        Build every index over jobs, and tell the picker of every pending one.
        """
        self.picker.init(self)
        for queue in self.stored.queues.values():
            self.picker.on_queue_update(queue)
        for job in self.stored.jobs.values():
            if job.reason_set:
                self.members[job.reason_set] = self.members.get(job.reason_set, 0) + 1
        self.index_jobs(self.stored.jobs.values())

    # -- what pickers may ask

    def is_ready(self, job: JobRecord) -> bool:
        """
        Say whether the job may be tried in this session: it pends, and its queue is active and
        inside its windows.
        """
        if job.state is not JobState.PEND or job.kill_actor is not None or job.forced_on:
            return False
        name = job.spec.queue
        return name not in self._inactive and self.windows_open.get(name, True)

    def fingerprint_of(self, job: JobRecord) -> str:
        """
        Return the job's request in canonical words.
        """
        # hot: asked several times while a job waits, so that what is known is looked up here too.
        request = self.wanted.get(job.stream)
        if request is None or request.is_timed:
            request = self.request_of(job)
        return request.fingerprint

    def least_slots(self, job: JobRecord) -> int:
        """
        Return the fewest slots with which the job can start.
        """
        request = self.request_of(job)
        if request.is_bare:
            return request.only.tasks_min
        return min(sum(part.tasks_min for part in branch.parts) for branch in request.branches)

    def changes(self) -> int:
        """
        Return a count that rises with every change of capacity that can matter to a request that
        waits.

        As long as no request needs more than slots, only freed capacity matters.
        """
        if self.volatile:
            return self.freed() + self.capacity.changed
        return self.freed()

    def freed(self) -> int:
        """
        Return a count that rises with everything that may let a waiting request start, or shut a
        host.
        """
        return self.capacity.freed + self.capacity.claimed

    def let_go(self) -> int:
        """
        Return a count that rises with everything that was held for a job and no longer is.
        """
        return self.capacity.let_go

    def epoch_of(self, fingerprint: str) -> int:
        """
        Return a count that rises whenever the outcome, or the reasons, of a request may have
        changed.

        A request for slots alone that failed keeps its reasons until capacity is freed; one that
        also needs other resources may see its short hosts change with every change of capacity.
        """
        request = self.requests.get(fingerprint)
        if request is None or request.is_volatile:
            return self.freed() + self.capacity.changed
        return self.freed()

    def bounds_nothing(self, spec: JobSpec) -> bool:
        """
        Say whether neither queue, profile, project, deadline nor any limit has something to say of
        a job beside what it asks for.
        """
        if spec.profile or spec.is_exclusive or spec.deadline_us is not None:
            return False
        if self.stored.projects or self.limits.are_any:
            return False
        return spec.queue in self._saying_nothing

    # -- looking up

    def request_of(self, job: JobRecord) -> Request:
        """
        Return the job's request, one object for all jobs that ask for the same.

        It is kept while the job waits, so that it is worked out once.
        """
        request = self.wanted.get(job.stream)
        if request is not None and not request.is_timed:
            return request
        asking = self._asking(job)
        asks_more = job.spec.queue in self._asking_more
        fingerprint = fingerprint_of(asking) + own_words(self, job, asks_more=asks_more)
        request = None if self.is_plain else self.requests.get(fingerprint)
        if request is None:
            bounds, share = self._bounds_of(job.spec.queue), self.queue_share(job.spec)
            stop_when = self.stored.queues[job.spec.queue].spec.stop_when
            stops = None if stop_when is None else stop_when.only.select
            asking = asking._replace(bounds=bounds, stops=stops, of_queue=share)
            request = request_of(asking, self.settings(), self.catalogue)
            # What it may preempt changes with every start, and so may its outcome; and another
            # element may be what its array may just still start.
            is_bound = bool(self.preys_of(job.spec.queue)) or self.is_of_bounded_array(job)
            request = self.requests[fingerprint] = replace(
                request,
                fingerprint=fingerprint,
                is_volatile=request.is_volatile or is_bound,
                opens_by_taking=any(
                    opens_by_taking(part, self._is_taken)
                    for branch in request.branches
                    for part in branch.parts
                ),
            )
            self.volatile = self.volatile or request.is_volatile
            self._opens_by_taking = self._opens_by_taking or request.opens_by_taking
        if job.state is JobState.PEND:
            self.wanted[job.stream] = request
        return request

    def _asking(self, job: JobRecord) -> Asking:
        """
        Return what decides the job's request, as the alternatives are open now.
        """
        spec = self.effective(job)
        requirement, queue = spec.requirement, self.stored.queues[spec.queue].spec
        excluded = job.excluded_hosts
        budgets = self.limits.budgets_of(job.spec) if self.limits.are_any else ()
        asking = Asking(spec, requirement, "", 1, excluded, queue.hosts_max, queue.hosts, budgets)
        if requirement is None:
            return asking
        text = self._texts.get(requirement)
        if text is None:
            text = self._texts.put(requirement, text_of(requirement))
        # The submission itself may be what is being folded: the state's time is still before it.
        waited_us = max(self.session_us, self.stored.time_us, job.submit_us) - job.submit_us
        opened = open_branches_of(requirement, waited_us)
        return asking._replace(text=text, open_branches=opened)

    def _bounds_of(self, queue: str) -> tuple[LoadBound, ...]:
        """
        Return what load of hosts is too much for jobs of a queue.
        """
        thresholds, hosts = self.stored.queues[queue].spec.thresholds, self.capacity.load_bounds
        return bounds_of(thresholds, hosts, self.catalogue) if thresholds or hosts else ()

    def may_open_by_taking(self) -> bool:
        """
        Say whether some job waits to which hosts may open by what others take of them.
        """
        if len(self.wanted) < self.waiting:
            # Which requests are known depends on who was tried: a restored state knows others.
            for job in self.stored.jobs.values():
                if job.state is JobState.PEND:
                    self.request_of(job)
        if not self._opens_by_taking:
            return False
        return any(request.opens_by_taking for request in self.wanted.values())

    def _is_taken(self, name: str) -> bool:
        """
        Say whether jobs take of what has a name.
        """
        found = self.catalogue.get(name)
        known = name if found is None else found.name
        capacity = self.capacity
        is_pool = known in capacity.pools.by_name
        return known == SLOTS or is_pool or capacity.counts(known)

    def queue_share(self, spec: JobSpec) -> QueueShare:
        """
        Return what of a job's requirement only its queue says.
        """
        queue = self.stored.queues[spec.queue].spec.requirement
        if queue is None or self.settings().queue_resreq is not QueueResreq.MERGE:
            return NO_SHARE
        profile = self.stored.profiles.get(spec.profile) if spec.profile else None
        return share_of(queue, spec.requirement, None if profile is None else profile.requirement)

    def effective(self, job: JobRecord) -> JobSpec:
        """
        Return a job as it holds: its own values over its profile's over its queue's.
        """
        spec = job.spec
        if not spec.profile and spec.queue in self._saying_nothing:
            return spec
        values = self.values_of(job)
        requirement = self.requirement_of(spec, is_checked=False)
        if requirement is values.requirement:
            return values
        return values.model_copy(update={"requirement": requirement})

    def requirement_of(self, spec: JobSpec, *, is_checked: bool = True) -> Requirement | None:
        """
        Return the requirement that holds for a job, one object for equal jobs.

        Args:
            spec: The job.
            is_checked: Refuse what profile or queue don't allow; else the job's own holds then.

        Raises:
            Refused: They don't allow it.
        """
        if not spec.profile and spec.queue in self._saying_nothing:
            return spec.requirement
        queue = self.stored.queues[spec.queue].spec
        if not spec.profile and queue.requirement is None and not queue.reservations:
            return spec.requirement
        memo = self._merged.setdefault((spec.profile, spec.queue), ByIdentity())
        if spec.requirement in memo:
            return memo.get(spec.requirement)
        try:
            found = requirement_of(
                spec,
                self.stored.profiles.get(spec.profile),
                queue,
                queue_resreq=self.settings().queue_resreq,
                catalogue=self.catalogue,
            )
        except Refused:
            # Not remembered: who asks checked must be refused each time.
            if is_checked:
                raise
            return spec.requirement
        return memo.put(spec.requirement, found)

    def note_vocabulary(self) -> None:
        """
        Have names mean what they mean now that a host is described otherwise.
        """
        if self._vocabulary != self.capacity.vocabulary:
            self._catalogue = None
            _ = self.catalogue  # Made now, so that requests are read anew.

    @property
    def catalogue(self) -> Catalogue:
        """
        Return the resources that a requirement may name: LSF's, the site's, and what hosts have.
        """
        capacity = self.capacity
        if self._catalogue is None or self._vocabulary != capacity.vocabulary:
            self._vocabulary = capacity.vocabulary
            told = {each.name: each for each in capacity.descriptors()}
            told.update(self.stored.resources)
            self._catalogue = Catalogue(told.values())
            capacity.selector.forget(self._catalogue)
            self.forget_requests()
        return self._catalogue

    def is_known(self, requirement: Requirement) -> bool:
        """
        Say whether a job with this very requirement was taken in before, under the same resources.
        """
        return requirement in self._texts

    def remember_parsed(self, texts: tuple[str, ...], requirement: Requirement) -> None:
        """
        Remember how texts are parsed, until resources or settings change.
        """
        if len(self.parsed) >= PARSED_MAX:
            self.parsed.clear()
        self.parsed[texts] = requirement

    def define_resource(self, descriptor: ResourceDescriptor) -> None:
        """
        Take over what a resource is; requests are worked out anew.
        """
        self.stored.resources[descriptor.name] = descriptor
        live = [job.allocation for job in self.live.values() if job.allocation is not None]
        self.with_victims_back(lambda: self.capacity.set_shared(descriptor, live))
        self._catalogue = None
        self.note_loads()

    def forget_requests(self) -> None:
        """
        Have every request worked out anew: settings or resources have changed.
        """
        self.requests.clear()
        self.wanted.clear()
        self.parsed.clear()
        # The same reasons may be for ever now, or no longer.
        self.signatures.clear()
        self._texts.clear()
        self._merged.clear()

    def define_limits(self) -> None:
        """
        Work out anew what bounds jobs, and whom they are charged to: definitions have changed.
        """
        were = list(self.delaying)
        self.note_queues()
        self.check_readiness_anew(were)
        self.note_what_time_opens()
        self.limits.define(self.live.values())
        self.note_other_values()
        for job in self.gatherers.values():
            self.limits.reserve(job)
        self.with_victims_back(lambda: None)
        self._preys.clear()
        self.note_suspensions()
        self.forget_requests()
        self.time_alternatives_anew()
        self.note_loads()
        for queue in self.stored.queues.values():
            self.picker.on_queue_update(queue)
        self.capacity.freed += 1

    def note_what_time_opens(self) -> None:
        """
        Note whether any queue has windows, of either kind, and whether jobs may become able to
        preempt just because time goes by.
        """
        specs = [queue.spec for queue in self.stored.queues.values()]
        self.windows_until_us = 0
        self.has_windows = any(spec.run_windows or spec.dispatch_windows for spec in specs)
        cluster = self.stored.cluster
        self.opens_with_time = cluster is not None and cluster.preemption.opens_with_time

    def with_victims_back(self, change: Callable[[], None]) -> None:
        """
        Make a change of what hosts or resources are while stopped jobs hold all that they were
        given, so that they give back the right things afterwards.
        """
        aside = [job for job in self.live.values() if job.is_aside] if self.capacity.aside else []
        for job in aside:
            self.capacity.come_back(job)
        change()
        self.capacity.released = self._released()
        for job in aside:
            self.capacity.stand_aside(job)

    def _released(self) -> frozenset[str]:
        """
        Return the resources beside slots that a stopped job gives back.
        """
        named = self.stored.cluster.preemption.resources if self.stored.cluster else ()
        marked = [each.name for each in self.stored.resources.values() if each.release_on_suspend]
        return frozenset((*named, *marked))

    def preys_of(self, queue: str) -> tuple[str, ...]:
        """
        Return the queues whose jobs those of a queue may preempt.
        """
        found = self._preys.get(queue)
        if found is None:
            found = self._preys[queue] = preys_of(
                queue,
                {name: record.spec for name, record in self.stored.queues.items()},
                self.settings().preemption.relation if self.stored.cluster else Relation.BOTH,
            )
        return found

    def knows_reasons(self, job: JobRecord) -> bool:
        """
        Say whether the job is in the reason set of its request, not in none or another one.
        """
        kept = self.stored.reason_sets.get(job.reason_set) if job.reason_set else None
        return kept is not None and kept.fingerprint == self.request_of(job).fingerprint

"""
One cluster twice: the real core behind its engine, and the obvious slow scheduler. Whatever happens
happens to both, and then both are compared.
"""

# long: one small function for each thing that may happen.

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.amounts import MEM, Amount, Attribute, HostResource
from domain.arrays import ArraySpec, IndexRange
from domain.cluster import ClusterSettings
from domain.commands import (
    CloseWorker,
    ConfigureWorker,
    DefineGroup,
    DefineLimit,
    DefineProfile,
    DefineProject,
    DefineQueue,
    DefineResource,
    DefineUser,
    DrainWorker,
    HoldJob,
    JobFinishedReport,
    JobResumedReport,
    JobStartedReport,
    JobSuspendedReport,
    JoinWorker,
    KillJob,
    LeaveWorker,
    LiftHold,
    MarkUnreachable,
    ModifyJob,
    MoveJob,
    OpenWorker,
    RemoveLimit,
    RequeueJob,
    ResumeJob,
    RunJob,
    StopJob,
    SubmitJob,
    SwitchJob,
    WorkerReport,
)
from domain.envelope import Stamped
from domain.errors import Refused
from domain.events.jobs import (
    JobDispatched,
    JobEnded,
    JobKillOrdered,
    JobRequeued,
    JobResumeOrdered,
    JobSuspendOrdered,
)
from domain.events.workers import JobUsage
from domain.fairshare import Fairshare, ShareNode
from domain.groups import GroupSpec
from domain.ids import job_of_stream, job_stream
from domain.job_states import LIVE
from domain.jobs import ExitRules, HostChoice, JobSpec, WantedHost
from domain.limits import Basis, LimitAmount, LimitSpec, Scope
from domain.name_lists import NameList, parse_names
from domain.preemption import OnPreempt, Preemption, PreemptPolicy
from domain.profiles import ProfileSpec
from domain.projects import ProjectSpec
from domain.queues import QueueLimits, QueueSpec
from domain.reasons import ReasonCode
from domain.resources import ResourceDescriptor, ResourceScope, SharedTotal, ValueType
from domain.resreq.merge import Mark
from domain.thresholds import LoadThreshold
from domain.users import UserSpec
from domain.windows import Windows, parse_windows
from domain.workers import HostSettings
from projections.scheduling.core import Core
from projections.scheduling.records import JobRecord
from projections.scheduling.status import recorded_reasons
from replay.engine import Engine
from tests.builders import MB_MILLI, SECOND_US, beginning, some_settings
from tests.model import (
    ELEMENTS,
    MILLI,
    Ask,
    Decision,
    Exits,
    Group,
    Host,
    Job,
    Limit,
    Model,
    Part,
    Profile,
    Project,
    Queue,
    Reason,
    Rules,
    Shared,
    Threshold,
)
from tests.model_bounds import bounds_of, taken_of
from tests.model_fairshare import Sharing
from tests.model_forced import may_not_be_wished
from tests.model_place import may_not_be
from tests.replay.logs import ListLog

IN_WORDS = (ReasonCode.ALTERNATIVE_WAITS, ReasonCode.JOB_NOT_ALLOWED)
GRACE_US = 600 * SECOND_US


def settings_of(rules: Rules) -> ClusterSettings:
    """
    Return the same as a cluster's settings.
    """
    picker = "strict_fcfs" if rules.is_strict else "builtin_fcfs"
    return some_settings(
        picker="fairshare" if rules.is_shared else picker,
        allocators=rules.chain,
        lost_grace_us=rules.grace_us,
        preemption=Preemption(
            resources=rules.released,
            delay_us=rules.delay_us,
            times_max=rules.times_max,
            no_interval_us=rules.no_interval_us,
            no_run_us=rules.no_run_us,
            no_finish_us=rules.no_finish_us,
            no_run_percent=rules.no_run_percent,
            no_finish_percent=rules.no_finish_percent,
        ),
    )


def resreq_of(ask: Ask) -> tuple[str, ...]:
    """
    Return what a job asks for in LSF's words.
    """
    if not ask.branches:
        words = _words_of(ask.alternatives()[0].parts[0])
        return (words,) if words else ()
    found = []
    for branch in ask.branches:
        parts = [f"{part.tasks_min}*{{{_words_of(part)}}}" for part in branch.parts]
        delay = f"@{branch.delay_us // (60 * SECOND_US)}" if branch.delay_us else ""
        found.append(f"{{{' + '.join(parts)}}}{delay}")
    if len(found) == 1:
        same = ask.branches[0].same
        return (f"{found[0]} same[{same}]" if same else found[0][1:-1],)
    return (" || ".join(found),)


def _words_of(part: Part) -> str:
    words = []
    if part.flags:
        words.append(f"select[{' && '.join(part.flags)}]")
    if part.needs:
        amounts = [
            f"{name}={need.milli // (MB_MILLI if name == MEM else 1000)}/{need.per}"
            for name, need in part.needs.items()
        ]
        words.append(f"rusage[{':'.join(amounts)}]")
    if part.span:
        count = 1 if part.span == "hosts" else part.ptile
        words.append(f"span[{part.span}={count}]" if count else f"span[{part.span}]")
    if part.order:
        words.append(f"order[{':'.join(part.order)}]")
    if part.same:
        words.append(f"same[{part.same}]")
    return " ".join(words)


def condition_of(tree: tuple[object, ...] | None) -> str:
    """
    Return a dependency in LSF's words.
    """
    if tree is None:
        return ""
    kind, *parts = tree
    if kind in ("done", "ended"):
        return f"{kind}({parts[0] // ELEMENTS})"  # type: ignore[operator]
    inner = [f"({condition_of(part)})" for part in parts]  # type: ignore[arg-type]
    return f"!{inner[0]}" if kind == "not" else f" {'&&' if kind == 'and' else '||'} ".join(inner)


def exits_of(exits: Exits | None) -> ExitRules | None:
    """
    Return the same as the core's rules of exit values.
    """
    if exits is None:
        return None
    return ExitRules(
        requeue=exits.requeue,
        exclude=exits.exclude,
        success=exits.success,
        requeue_max=exits.most,
    )


def spec_of(ask: Ask, *, is_held: bool = False) -> JobSpec:
    """
    Return what a job asks for as the core takes it.
    """
    return JobSpec(
        user=ask.user,
        queue=ask.queue,
        tasks_min=ask.tasks_min,
        tasks_max=ask.tasks_max,
        resreq=resreq_of(ask),
        is_exclusive=ask.is_exclusive,
        user_priority=ask.priority,
        hold=is_held,
        dependency_text=condition_of(ask.depends),
        begin_us=ask.begin_us or None,
        rerunnable=True if ask.is_rerunnable else None,
        profile=ask.profile,
        hosts=tuple(
            HostChoice(host=name, preference=wish, is_first=name in ask.firsts)
            for name, wish in ask.hosts.items()
        ),
        run_limit_us=ask.run_limit_us,
        deadline_us=ask.deadline_us,
        exits=exits_of(ask.exits),
        group=ask.group,
        project=ask.project,
    )


def names_of(wishes: dict[str, int] | tuple[str, ...]) -> NameList | None:
    """
    Return names with how much each is preferred as a list, None for none.
    """
    found = dict.fromkeys(wishes, 0) if isinstance(wishes, tuple) else wishes
    words = [f"{name}+{wish}" for name, wish in found.items()]
    return parse_names(" ".join(words)) if words else None


def window_of(minutes: tuple[int, int] | None) -> Windows | None:
    """
    Return a window of the day.
    """
    if minutes is None:
        return None
    begin, end = (f"{minute // 60}:{minute % 60:02}" for minute in minutes)
    return parse_windows(f"{begin}-{end}")


def bounds_of_load(thresholds: tuple[Threshold, ...]) -> tuple[LoadThreshold, ...]:
    """
    Return the same as the core's bounds of loads.
    """
    return tuple(
        LoadThreshold(index=each.index, sched_milli=each.sched, stop_milli=each.stop)
        for each in thresholds
    )


def condition_of_load(condition: tuple[str, int] | None) -> str:
    """
    Return that a load is above an amount in LSF's words.
    """
    return "" if condition is None else f"{condition[0]} > {condition[1] // MILLI}"


def fairshare_of(sharing: Sharing | None) -> Fairshare | None:
    """
    Return the same as the core's rules of sharing.
    """
    if sharing is None:
        return None
    if sharing.of:
        return Fairshare(accounts_of=sharing.of)
    tree = tuple(
        ShareNode(
            name=name,
            shares=shares,
            members=tuple(ShareNode(name=each, shares=own) for each, own in members.items()),
        )
        for name, (shares, members) in sharing.tree.items()
    )
    return Fairshare(
        shares=tree,
        run_time_factor_milli=sharing.run_factor,
        committed_run_time_factor_milli=sharing.committed_factor,
        run_job_factor_milli=sharing.job_factor,
        counts_past_runs=sharing.counts_past,
        run_time_decays=sharing.past_decays,
        history_us=sharing.history_us,
    )


def scope_of(names: tuple[str, ...] | None, *, is_each: bool) -> Scope | None:
    """
    Return a limit's scope.
    """
    return None if names is None else Scope(names=parse_names(" ".join(names)), is_each=is_each)


class Pair:
    """
    Hold the real scheduler and the model of it.
    """

    def __init__(self, rules: Rules) -> None:
        self.log = ListLog([])
        self.engine = Engine(self.log, Core())
        self.model = Model(rules)
        self.is_alike = True
        self.model.now_us = SECOND_US
        known = (
            ResourceDescriptor(name="fast", value_type=ValueType.BOOLEAN, is_static=True),
            ResourceDescriptor(name="scratch", is_consumable=True),
            ResourceDescriptor(name="rack", value_type=ValueType.STRING, is_static=True),
        )
        for command in beginning(settings_of(rules)):
            self.tell(command)
        for descriptor in known:
            self.tell(DefineResource(descriptor=descriptor))

    @property
    def state(self) -> Any:
        """
        Return the core's state.
        """
        return self.engine.core.state

    def tell(self, command: Any, actor: str = "u1") -> str:
        """
        Have the real one take a command or report in; return the stream it was about.
        """
        answer = self.engine.accept(command, actor=actor, now_us=self.model.now_us)
        self.engine.commit()
        return answer.stream

    def record(self, job: Job) -> JobRecord:
        """
        Return the real one's record of a job.
        """
        found: JobRecord = self.state.stored.jobs[job_stream(job.name)]
        return found

    # -- what is defined

    def queue(self, queue: Queue) -> None:
        """
        Define a queue, or define it otherwise.
        """
        bounds = {
            "slots": queue.slots,
            "user_slots": queue.user_slots,
            "host_slots": queue.host_slots,
            "processor_slots_milli": queue.processor_slots_milli,
            "jobs": queue.jobs,
            "user_jobs": queue.user_jobs,
            "host_jobs": queue.host_jobs,
        }
        is_bound = any(value is not None for value in bounds.values())
        spec = QueueSpec(
            priority=queue.priority,
            is_active=queue.is_active,
            limits=QueueLimits(**bounds) if is_bound else None,
            hosts_max=queue.hosts_max,
            new_job_delay_us=queue.new_delay_us,
            user_priority_max=queue.priority_max,
            allows_exclusive=True,
            preemptible_queues=names_of({each: queue.wishes.get(each, 0) for each in queue.preys}),
            preemptible_by=names_of(queue.preemptible_by),
            preempt_policy=(
                PreemptPolicy.LEAST_RUN_TIME
                if queue.by_run_time
                else PreemptPolicy.LOWEST_PRIORITY
            ),
            on_preempt=OnPreempt(queue.on_preempt),
            hosts=names_of(queue.hosts or {}),
            run_limit_default_us=queue.run_limit_us,
            exits=exits_of(queue.exits),
            users=names_of(queue.users or ()),
            project=queue.project,
            run_windows=window_of(queue.run_window),
            dispatch_windows=window_of(queue.dispatch_window),
            thresholds=bounds_of_load(queue.thresholds),
            on_load=OnPreempt(queue.on_load),
            stop_condition=condition_of_load(queue.stop_when),
            resume_condition=condition_of_load(queue.resume_when),
            fairshare=fairshare_of(queue.sharing),
        )
        self.tell(DefineQueue(queue=queue.name, spec=spec))
        self.model.queues[queue.name] = queue

    def limit(self, name: str, limit: Limit) -> None:
        """
        Define a limit.
        """
        spec = LimitSpec(
            groups=scope_of(limit.groups, is_each=True),
            projects=scope_of(limit.projects, is_each=limit.each_project),
            profiles=scope_of(limit.profiles, is_each=limit.each_profile),
            users=scope_of(limit.users, is_each=limit.each_user),
            queues=scope_of(limit.queues, is_each=limit.each_queue),
            hosts=scope_of(limit.hosts, is_each=limit.each_host),
            amounts=(
                LimitAmount(
                    resource=limit.resource, milli=limit.milli, basis=Basis(limit.basis)
                ),
            ),
        )
        self.tell(DefineLimit(limit=name, spec=spec))
        self.model.limits[name] = limit

    def unlimit(self, name: str) -> None:
        """
        Remove a limit.
        """
        self.tell(RemoveLimit(limit=name))
        del self.model.limits[name]

    def user(self, name: str, slots: int | None) -> None:
        """
        Bound a user's slots, or no longer.
        """
        self.tell(DefineUser(user=name, spec=UserSpec(slots_max=slots)))
        self.model.user_slots.pop(name, None)
        if slots is not None:
            self.model.user_slots[name] = slots

    def group(self, name: str, group: Group) -> None:
        """
        Define a group, or define it otherwise.
        """
        spec = GroupSpec(
            members=group.members,
            default_project=group.project,
            slots_max=group.slots,
            user_slots_max=group.user_slots,
            jobs_max=group.jobs,
        )
        self.tell(DefineGroup(group=name, spec=spec))
        self.model.groups[name] = group

    def project(self, path: str, project: Project) -> None:
        """
        Define a project, or define it otherwise.
        """
        quotas = tuple(
            LimitAmount(resource=name, milli=milli) for name, milli in project.quotas.items()
        )
        spec = ProjectSpec(
            users=project.users, groups=project.groups, quotas=quotas, is_open=project.is_open
        )
        self.tell(DefineProject(project=path, spec=spec))
        self.model.projects[path] = project

    def profile(self, name: str, profile: Profile) -> None:
        """
        Define an application profile, or define it otherwise.
        """
        words = "" if profile.resreq is None else _words_of(profile.resreq)
        least, most = profile.tasks or (None, None)
        spec = ProfileSpec(
            resreq=(words,) if words else (),
            resreq_mark=Mark(profile.resreq_mark),
            tasks_min=least,
            tasks_max=most,
            tasks_mark=Mark(profile.tasks_mark),
            run_limit_us=profile.run_limit_us,
            run_limit_mark=Mark(profile.run_limit_mark),
            exits=exits_of(profile.exits),
            exits_mark=Mark(profile.exits_mark),
            rerunnable=True if profile.is_rerunnable else None,
        )
        self.tell(DefineProfile(profile=name, spec=spec))
        self.model.profiles[name] = profile

    def licence(self, name: str, total: int, *, is_released: bool) -> None:
        """
        Define a resource that all hosts share.
        """
        descriptor = ResourceDescriptor(
            name=name,
            scope=ResourceScope.SHARED,
            totals=(SharedTotal(total_milli=total * 1000),),
            is_consumable=True,
            release_on_suspend=is_released,
        )
        self.tell(DefineResource(descriptor=descriptor))
        self.model.shared[name] = Shared(total * 1000, is_released)

    def pools(
        self, name: str, totals: dict[tuple[str, ...], int], *, is_released: bool
    ) -> None:
        """
        Define a resource of which some hosts share one total, and others another one.
        """
        descriptor = ResourceDescriptor(
            name=name,
            scope=ResourceScope.SHARED,
            totals=tuple(
                SharedTotal(total_milli=total * 1000, hosts=hosts)
                for hosts, total in totals.items()
            ),
            is_consumable=True,
            release_on_suspend=is_released,
        )
        self.tell(DefineResource(descriptor=descriptor))
        keys = {f"{name}#{number}": hosts for number, hosts in enumerate(totals)}
        self.model.pools[name] = tuple(keys)
        for key, hosts in keys.items():
            self.model.shared[key] = Shared(totals[hosts] * 1000, is_released, hosts)

    def host(self, host: Host) -> None:
        """
        Let a host join, or join again.
        """
        resources = tuple(
            HostResource(name=name, total_milli=total, is_real=name == MEM)
            for name, total in host.totals.items()
        )
        flags = tuple(Attribute(name=flag, value="true") for flag in host.flags)
        if host.rack:
            flags = (*flags, Attribute(name="rack", value=host.rack))
        command = JoinWorker(
            worker=host.name, slots=host.slots, resources=resources, attributes=flags
        )
        self.tell(command, "")
        self.model.join(host)

    # -- jobs

    def submit(
        self, ask: Ask, *, is_held: bool, size: int = 0, most_at_once: int | None = None
    ) -> None:
        """
        Submit a job, or an array; what a bound can never hold is refused by both.
        """
        spec = spec_of(ask, is_held=is_held)
        if size:
            array = ArraySpec(ranges=(IndexRange(start=1, end=size),), started_max=most_at_once)
            spec = spec.model_copy(update={"array": array})
        refused = self._refused(SubmitJob(spec=spec), ask.user)
        assert may_not_be(self.model, ask) == (refused is not None), refused
        if refused is None:
            self.model.submit(ask, is_held=is_held, size=size, most_at_once=most_at_once)

    def _refused(self, command: Any, actor: str) -> Refused | None:
        try:
            self.tell(command, actor)
        except Refused as refused:
            return refused
        return None

    def command(self, kind: str, job: Job, **more: Any) -> None:
        """
        Do what a user may do to a job in this state.
        """
        commands: dict[str, Any] = {
            "hold": HoldJob,
            "lift": LiftHold,
            "kill": KillJob,
            "stop": StopJob,
            "go_on": ResumeJob,
            "requeue": RequeueJob,
            "switch": SwitchJob,
            "move": MoveJob,
        }
        given = {"to": "top" if more["to_top"] else "bottom"} if kind == "move" else more
        command = commands[kind].model_validate({"job_id": job.name, **given})
        refused = self._refused(command, job.ask.user)
        is_refused = kind == "switch" and self._may_not_switch(job, more["queue"])
        assert is_refused == (refused is not None), refused
        if is_refused:
            return
        if kind == "kill":
            job.is_unwanted = True
        elif kind == "requeue":
            job.back_why, job.is_back_held = "command", more.get("hold", False)
        else:
            getattr(self.model, kind)(job, **more)

    def _may_not_switch(self, job: Job, name: str) -> bool:
        own = self.model.queues[name].hosts
        where = set() if job.got is None else set(job.got.tasks)
        is_elsewhere = own is not None and not where <= set(own)
        return job.queue != name and (is_elsewhere or may_not_be(self.model, job.ask, name))

    def modify(self, job: Job, ask: Ask) -> None:
        """
        Ask for something else; what a bound can never hold is refused by both.
        """
        record = self.record(job)
        own = replace(job.ask, queue=job.queue)
        was, spec = (
            spec_of(each, is_held=record.spec.hold).model_copy(update={"array": record.spec.array})
            for each in (own, replace(ask, queue=job.queue))
        )
        refused = self._refused(ModifyJob(job_id=job.name, spec=spec), job.ask.user)
        where = {} if job.got is None else job.got.tasks
        hosts = [self.model.hosts[host] for host in where]
        is_lacking = any(name not in host.totals for host in hosts for name in ask.needs)
        is_refused = spec != was and (is_lacking or may_not_be(self.model, ask, job.queue))
        assert is_refused == (refused is not None), refused
        if refused is None:
            self.model.modify(job, ask)

    def wish(self, job: Job, wish: dict[str, int]) -> None:
        """
        Want a pending job started on certain hosts.
        """
        hosts = tuple(WantedHost(host=host, tasks=tasks) for host, tasks in wish.items())
        refused = self._refused(RunJob(job_id=job.name, hosts=hosts), "root")
        assert may_not_be_wished(self.model, job, wish) == (refused is not None), refused
        if refused is None:
            self.model.wish_for(job, wish)

    # -- hosts

    def close(self, host: Host, *, is_closed: bool) -> None:
        """
        Close a host or open it.
        """
        self.tell((CloseWorker if is_closed else OpenWorker)(worker=host.name))
        host.is_closed, host.is_drained = is_closed, False

    def drain(self, host: Host) -> None:
        """
        Let a host run dry; one that is closed stays as it is.
        """
        self.tell(DrainWorker(worker=host.name))
        host.is_drained = not host.is_closed

    def leave(self, host: Host) -> None:
        """
        Let a host's agent end in good order.
        """
        self.tell(LeaveWorker(worker=host.name, incarnation=host.incarnation), "")
        self.model.leave_cluster(host)

    def configure(self, host: Host, **settings: Any) -> None:
        """
        Lock a host, shut it at times, bound its load or what each user may have; or no longer.
        """
        for name, value in settings.items():
            setattr(host, name, value)
        found = HostSettings(
            dispatch_windows=window_of(host.window),
            user_slots_max=host.user_slots,
            is_locked=host.is_locked,
            thresholds=bounds_of_load(host.thresholds),
        )
        self.tell(ConfigureWorker(worker=host.name, settings=found))

    def lose(self, host: Host) -> None:
        """
        Lose contact to a host.
        """
        command = MarkUnreachable(
            worker=host.name, incarnation=host.incarnation, silent_us=SECOND_US
        )
        self.tell(command, "")
        self.model.lose(host)

    def report(self, host: Host, load: dict[str, int], used: dict[int, int]) -> None:
        """
        Report the load of a host, free memory among it, and what jobs use of memory there; no two
        reports come at once.
        """
        self.model.now_us += SECOND_US
        jobs = tuple(
            JobUsage(
                job_id=self.model.jobs[number].name,
                attempt=self.record(self.model.jobs[number]).attempt,
                amounts=(Amount(resource=MEM, milli=milli),),
            )
            for number, milli in used.items()
        )
        told = tuple(Amount(resource=name, milli=milli) for name, milli in load.items())
        names = {"worker": host.name, "incarnation": host.incarnation}
        self.tell(WorkerReport(**names, load=told, jobs=jobs), "")
        self.model.report(
            host, load, {number: {MEM: milli} for number, milli in used.items()}
        )

    def started(self, job: Job) -> None:
        """
        Report a job as started.
        """
        self.tell(JobStartedReport(**self._report(job)), "")
        self.model.started(job)

    def confirm(self, job: Job) -> None:
        """
        Report that a job was stopped or goes on, as ordered.
        """
        command = JobSuspendedReport if job.order == "suspend" else JobResumedReport
        self.tell(command(**self._report(job)), "")
        self.model.confirm(job)

    def finish(self, job: Job, exit_code: int) -> None:
        """
        Report that a job has ended.
        """
        self.tell(JobFinishedReport(**self._report(job), exit_code=exit_code), "")
        self.model.finish(job, exit_code)

    def _report(self, job: Job) -> dict[str, Any]:
        assert job.got is not None, job
        attempt = self.record(job).attempt
        return {
            "worker": job.got.first,
            "incarnation": self.model.hosts[job.got.first].incarnation,
            "job_id": job.name,
            "attempt": attempt,
        }

    # -- sessions

    def session(self) -> None:
        """
        Hold a session on both, again while it was cut short, and compare all that it gave.
        """
        self.is_alike, is_again = False, True
        while is_again:
            made = self.engine.hold_session(self.model.now_us)
            self.engine.commit()
            expected = self.model.session()
            found = [words for stamped in made if (words := self._decision(stamped))]
            assert expected == found, f"expected {expected}\nfound {found}"
            self._compare_reasons()
            self.compare(is_session=True)
            is_again = self.engine.core.is_cut_short
        self.is_alike = True

    def sleep(self, seconds: int) -> None:
        """
        Let time pass in which nothing happens: where no moment was waited for, the next session
        decides nothing.
        """
        # Behind a job that was tried, a dispatch may have given it one more reason to wait.
        before = -1
        while before != self.engine.position:
            before = self.engine.position
            self.session()
        moment = self.engine.core.next_wakeup(self.model.now_us)
        self.model.now_us += seconds * SECOND_US
        if moment is None or moment > self.model.now_us:
            made = self.engine.hold_session(self.model.now_us)
            assert [] == made, made
            assert [] == self.model.session()

    def _decision(self, stamped: Stamped) -> Decision:
        event = stamped.event
        if not stamped.stream.startswith("job:"):
            return ()
        job = job_of_stream(stamped.stream)
        if isinstance(event, JobDispatched):
            shares = self.state.host_names(event.allocation)
            return ("dispatched", job, " ".join(f"{host}*{tasks}" for host, tasks in shares))
        if isinstance(event, JobSuspendOrdered):
            return ("suspend", job, event.preemptor)
        if isinstance(event, JobResumeOrdered):
            return ("resume", job)
        if isinstance(event, JobKillOrdered):
            return ("kill", job, event.why)
        if isinstance(event, JobEnded):
            return ("ended", job, event.why)
        if isinstance(event, JobRequeued):
            return ("requeued", job, event.why)
        return ()

    def _compare_reasons(self) -> None:
        """
        Compare why jobs wait that were considered: each request's first job proved it for all.
        """
        by_set: dict[int, Job] = {}
        for number in self.model.tried:
            job = self.model.jobs[number]
            if job.state == "PEND":
                by_set.setdefault(self.record(job).reason_set, job)
        for job in self.model.jobs.values():
            if job.state != "PEND" or job.is_put_back:
                continue
            if not self.model.may_start(job.queue) and not job.wish:
                continue
            is_known = job.number in self.model.tried or self.model.why_not_ready(job)
            is_known = is_known or bool(job.wish)
            if not is_known:
                continue
            first = by_set.get(self.record(job).reason_set, job)
            never, reasons = recorded_reasons(self.state, self.record(job))
            expected = (first.number, first.is_never, sorted(first.reasons))
            found = (first.number, never, sorted(self._flat(reasons)))
            assert expected == found, f"{job}\nexpected {expected}\nfound {found}"

    def _flat(self, reasons: Any) -> set[Reason]:
        found: set[Reason] = set()
        for reason in reasons:
            names = [
                self.state.hosts[number].name
                for span in reason.hosts
                for number in range(span.first, span.first + span.hosts)
            ]
            at = f"@{reason.alternative}.{reason.member}"
            code = reason.code.value + at * bool(reason.alternative or reason.member)
            # When an alternative opens, and what isn't allowed, is told in words.
            detail = "" if reason.code in IN_WORDS else reason.detail
            words = (code, reason.resource, detail)
            found.update((*words, host) for host in names or [""])
        return found

    # -- what is so at every moment

    def compare(self, *, is_session: bool = False) -> None:
        """
        Compare the states of jobs, what hosts and shared totals have left, and what bounds charge.
        That a host's window has opened or closed is noted by the next session.
        """
        model, state = self.model, self.state
        was_alike, self.is_alike = self.is_alike, False
        expected = {job.name: job.state for job in model.jobs.values()}
        found = {job.job_id: job.state.value for job in state.stored.jobs.values()}
        assert expected == found, f"expected {expected}\nfound {found}"
        live = {job.job_id for job in state.stored.jobs.values() if job.state in LIVE}
        assert live == {job.name for job in model.live()}
        for number, host in enumerate(model.hosts.values()):
            expected, found = free_of(model, host), self._free(number, host)
            if host.window is not None and not is_session:
                expected["slots"] = found["slots"]
            assert expected == found, f"{host}\nexpected {expected}\nfound {found}"
        for name, shared in model.shared.items():
            charged = sum(
                job.got.shared.get(name, 0)
                for job in model.live()
                if job.got and not (job.aside and shared.is_released)
            )
            resource, _, place = name.partition("#")
            assert charged == state.capacity.pools.by_name[resource][int(place or 0)].charged, name
        expected, found = charges_of(model), self._charges()
        assert expected == found, f"expected {expected}\nfound {found}"
        self.is_alike = was_alike

    def _free(self, number: int, host: Host) -> dict[str, int]:
        capacity = self.state.capacity
        found = {name: int(capacity.resources[name].available[number]) for name in host.totals}
        return {**found, "slots": int(capacity.usable[number])}

    def _charges(self) -> dict[tuple[str, str, str], int]:
        return {
            (name, resource, owner): sum(amounts)
            for (name, resource, owner), amounts in self.state.limits.in_use().items()
        }


def free_of(model: Model, host: Host) -> dict[str, int]:
    """
    Return what a host has left as everybody sees it.
    """
    live = [job for job in model.live() if job.got and host.name in job.got.tasks]
    used = sum(job.got.tasks[host.name] for job in live if job.got)
    found = {"slots": max(0, host.slots - used) if model.is_open(host) else 0}
    for name, total in host.totals.items():
        charged = unused = 0
        for job in live:
            reserved = job.got.amounts[host.name].get(name, 0) if job.got else 0
            actual = job.actual.get(host.name, {}).get(name, 0)
            if reserved and not (job.aside and model.is_released(name)):
                charged += max(reserved, actual)
                unused += max(0, reserved - actual)
        left = total - charged
        if name == MEM and name in host.load:
            left = min(left, host.load[name] - unused)
        found[name] = max(0, left)
    return found


def charges_of(model: Model) -> dict[tuple[str, str, str], int]:
    """
    Return what each bound charges each owner, over all hosts.
    """
    found: dict[tuple[str, str, str], int] = {}
    for bound in bounds_of(model):
        for job in model.live():
            owner = bound.owner_of(model, job)
            is_free = job.aside and job.stopped_for and not bound.counts_stopped
            if owner is None or job.got is None or is_free:
                continue
            hosts = bound.hosts or ()
            on = [(host,) for host in hosts] if bound.each_host else [bound.hosts]
            milli = sum(taken_of(job.got, bound.resource, each) for each in on)
            if milli:
                key = (bound.name, bound.resource, owner)
                found[key] = found.get(key, 0) + milli
    return found

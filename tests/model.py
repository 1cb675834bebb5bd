"""
The obvious slow scheduler: the rules of the specification as plainly as they can be told, in dicts
and lists, without an index, a memo or a shortcut.

It shares nothing with the core but words. A property test (``test_model_props.py``) gives both the
same clusters, jobs and happenings, and compares what they decide and why jobs wait. Whatever can be
looked at in two ways is looked at here in the way that is easier to believe.

Here are the cluster, what happens to it, and the session; ``model_bounds.py`` tells what bounds
jobs together, ``model_place.py`` places one job, ``model_preempt.py`` finds victims and lets them
go on, ``model_load.py`` is about the load of hosts, ``model_profiles.py`` about profiles,
``model_forced.py`` about operators' wishes, ``model_fairshare.py`` about users' shares.
"""

# long: the whole scheduler in one place, so that it can be read from top to bottom.

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.model_fairshare import Sharing

MILLI: Final = 1_000
ELEMENTS: Final = 100
MINUTE_US: Final = 60_000_000
DAY_MINUTES: Final = 1_440
UNTRIED: Final = ("MEMBER_NOT_TRIED", "ALTERNATIVE_WAITS")
LIVE: Final = ("RUN", "USUSP", "SSUSP", "UNKWN")
ENDED: Final = ("DONE", "EXIT")

Decision = tuple[str, ...]
Reason = tuple[str, str, str, str]
"""Code, resource, limit, host; "" where one doesn't apply."""


@dataclass
class Need:
    """
    Ask for an amount of a resource: for each task, for each host, or once for the job.
    """

    milli: int
    per: str

    def of(self, tasks: int, hosts: int) -> int:
        """
        Return what so many tasks on so many hosts take.
        """
        return self.milli * {"task": tasks, "host": hosts, "job": 1}[self.per]


@dataclass
class Threshold:
    """
    Bound a load index: beyond ``sched`` nothing starts, beyond ``stop`` jobs are stopped too.
    """

    index: str
    sched: int | None = None
    stop: int | None = None


@dataclass
class Exits:
    """
    Hold exit values with which a job goes back to pending, does so and avoids its hosts, or is
    done; and how often it goes back at most.
    """

    requeue: tuple[int, ...] = ()
    exclude: tuple[int, ...] = ()
    success: tuple[int, ...] = ()
    most: int | None = None

    def over(self, other: Exits) -> Exits:
        """
        Return what holds beside what others say: which go back, which are well, and how often, each
        of these three by itself.
        """
        back = self if self.requeue or self.exclude else other
        most = other.most if self.most is None else self.most
        return Exits(back.requeue, back.exclude, self.success or other.success, most)


@dataclass
class Part:
    """
    Hold one primary: its tasks, what each host must be and give, and how hosts are chosen: in what
    order, and alike in what.
    """

    tasks_min: int = 1
    tasks_max: int = 1
    needs: dict[str, Need] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    span: str = ""
    ptile: int = 0
    order: tuple[str, ...] = ()
    same: str = ""


@dataclass
class Branch:
    """
    Hold one alternative: parts of which each must be placed, when it opens, and in what all its
    hosts must be alike.
    """

    parts: list[Part]
    delay_us: int = 0
    same: str = ""


@dataclass
class Ask:
    """
    Hold what a user asks for. ``depends`` is a small tree: ("done", id), ("ended", id),
    ("not", tree), ("and", tree, tree), ("or", tree, tree). ``hosts`` are those asked for with how
    much each is preferred, all when there are none; the job's first is one of ``firsts``, if any.
    """

    user: str
    queue: str
    tasks_min: int = 1
    tasks_max: int = 1
    needs: dict[str, Need] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    span: str = ""
    ptile: int = 0
    is_exclusive: bool = False
    priority: int = 0
    begin_us: int = 0
    depends: tuple[object, ...] | None = None
    is_rerunnable: bool = False
    hosts: dict[str, int] = field(default_factory=dict)
    run_limit_us: int | None = None
    deadline_us: int | None = None
    exits: Exits | None = None
    group: str = ""
    project: str = ""
    order: tuple[str, ...] = ()
    same: str = ""
    branches: list[Branch] = field(default_factory=list)
    firsts: tuple[str, ...] = ()
    profile: str = ""

    def own(self) -> Part:
        """
        Return what it says of its hosts when it has no alternatives.
        """
        own = (self.tasks_min, self.tasks_max, self.needs, self.flags, self.span, self.ptile)
        return Part(*own, self.order, self.same)

    def alternatives(self) -> list[Branch]:
        """
        Return the alternatives; one, of one part, unless the job says otherwise.
        """
        return self.branches or [Branch([self.own()])]

    def open_at(self, waited_us: int) -> list[Branch]:
        """
        Return the alternatives that are open so long after submission.
        """
        return [each for each in self.alternatives() if each.delay_us <= waited_us]


@dataclass
class Grant:
    """
    Hold what a job got: tasks on each host in order of claims, amounts there, and shared amounts.
    """

    tasks: dict[str, int]
    amounts: dict[str, dict[str, int]]
    shared: dict[str, int]

    def __post_init__(self) -> None:
        self.first = next(iter(self.tasks))


@dataclass
class Job:
    """
    Hold one job. Of the orders to its worker, at most one stands at a time.

    ``aside``: it has stopped and given back what stopped jobs give back. ``stopped_for`` is the job
    that it was stopped for; ``spared`` are those for which it isn't stopped again. ``holds`` is
    what is held for this job while its victims stop. ``run_us`` is how long it has run before it
    came into the state it is in; ``avoids`` are hosts where it failed, ``eased`` those that it had
    when it was put back for their load. ``number`` counts submissions in steps of a hundred, and
    the elements of an array between.
    """

    number: int
    ask: Ask
    queue: str
    queue_us: int
    state: str = "PEND"
    place: int = 0
    got: Grant | None = None
    actual: dict[str, dict[str, int]] = field(default_factory=dict)
    since_us: int = 0
    start_us: int = 0
    is_new: bool = True
    is_unwanted: bool = False
    back_why: str = ""
    is_put_back: bool = False
    order: str = ""
    stop_wanted: bool = False
    go_on_wanted: bool = False
    aside: bool = False
    before_loss: str = ""
    stopped_for: int = 0
    spared: list[int] = field(default_factory=list)
    holds: Grant | None = None
    is_back_held: bool = False
    times_back: int = 0
    times_stopped: int = 0
    run_us: int = 0
    avoids: tuple[str, ...] = ()
    submit_us: int = 0
    by_window: bool = False
    by_load: bool = False
    eased: list[str] = field(default_factory=list)
    index: int = 0
    most_at_once: int | None = None
    wish: dict[str, int] = field(default_factory=dict)
    is_forced: bool = False
    reasons: frozenset[Reason] = frozenset()
    is_never: bool = False

    @property
    def name(self) -> str:
        """
        Return what users call it: its submission's number, and its index in an array.
        """
        number = self.number // ELEMENTS
        return f"{number}[{self.index}]" if self.index else str(number)


@dataclass
class Host:
    """
    Hold one host: what it has, what its agent reported as free, and whether it takes jobs.

    ``incarnation`` counts its joins; ``is_gone``: its agent has ended in good order;
    ``answered_us`` is of which report a job was stopped for its load.
    """

    name: str
    slots: int
    totals: dict[str, int]
    flags: tuple[str, ...] = ()
    is_closed: bool = False
    lost_us: int | None = None
    report_us: int = 0
    rack: str = ""
    is_locked: bool = False
    user_slots: int | None = None
    window: tuple[int, int] | None = None
    load: dict[str, int] = field(default_factory=dict)
    incarnation: int = 1
    is_gone: bool = False
    is_drained: bool = False
    thresholds: tuple[Threshold, ...] = ()
    load_us: int = 0
    answered_us: int = 0


@dataclass
class Queue:
    """
    Hold a queue, and the bounds of its slots and jobs.

    Its jobs stop those of ``preys``, which have ``wishes`` among them; ``hosts`` are its own with
    how much each is preferred, None for all. A run limit and exit values are of jobs that say none.
    A window is open from a minute of the day up to another.
    """

    name: str
    priority: int
    preys: tuple[str, ...] = ()
    preemptible_by: tuple[str, ...] = ()
    is_active: bool = True
    slots: int | None = None
    user_slots: int | None = None
    host_slots: int | None = None
    jobs: int | None = None
    user_jobs: int | None = None
    host_jobs: int | None = None
    processor_slots_milli: int | None = None
    hosts_max: int | None = None
    new_delay_us: int = 0
    priority_max: int | None = None
    hosts: dict[str, int] | None = None
    wishes: dict[str, int] = field(default_factory=dict)
    by_run_time: bool = False
    on_preempt: str = "suspend"
    run_limit_us: int | None = None
    exits: Exits | None = None
    users: tuple[str, ...] | None = None
    project: str = ""
    run_window: tuple[int, int] | None = None
    dispatch_window: tuple[int, int] | None = None
    thresholds: tuple[Threshold, ...] = ()
    on_load: str = "suspend"
    stop_when: tuple[str, int] | None = None
    resume_when: tuple[str, int] | None = None
    sharing: Sharing | None = None


@dataclass
class Shared:
    """
    Hold one total that all hosts share, or some.
    """

    total: int
    is_released: bool
    hosts: tuple[str, ...] = ()


@dataclass
class Limit:
    """
    Hold a limit: who is listed and whether each of them has a budget; None for anybody.

    ``milli`` is told as it is, in percent of what hosts have, or for each of their processors.
    """

    resource: str
    milli: int
    basis: str = "absolute"
    users: tuple[str, ...] | None = None
    each_user: bool = False
    queues: tuple[str, ...] | None = None
    each_queue: bool = False
    hosts: tuple[str, ...] | None = None
    each_host: bool = False
    groups: tuple[str, ...] | None = None
    projects: tuple[str, ...] | None = None
    each_project: bool = False
    profiles: tuple[str, ...] | None = None
    each_profile: bool = False


@dataclass
class Group:
    """
    Hold a group of users, and of groups; and what bounds its members.
    """

    members: tuple[str, ...]
    slots: int | None = None
    user_slots: int | None = None
    jobs: int | None = None
    project: str = ""


@dataclass
class Project:
    """
    Hold who may be in a project, and how much its jobs may have together.
    """

    users: tuple[str, ...]
    groups: tuple[str, ...] = ()
    quotas: dict[str, int] = field(default_factory=dict)
    is_open: bool = True


@dataclass
class Profile:
    """
    Hold what jobs of an application have: a *default* where they say nothing, *fixed* values that
    they can't say otherwise, and a requirement that is *select*ed beside their own.
    """

    resreq: Part | None = None
    resreq_mark: str = "default"
    tasks: tuple[int, int] | None = None
    tasks_mark: str = "default"
    run_limit_us: int | None = None
    run_limit_mark: str = "default"
    exits: Exits | None = None
    exits_mark: str = "default"
    is_rerunnable: bool = False


@dataclass
class Rules:
    """
    Hold the cluster's settings that matter here.

    ``is_strict``: a job that can't be placed ends the session's tries; ``is_shared``: users take
    turns by their shares.
    """

    is_strict: bool
    chain: tuple[str, ...]
    grace_us: int
    is_shared: bool = False
    released: tuple[str, ...] = ()
    delay_us: int = 0
    times_max: int | None = None
    no_interval_us: int = 0
    no_run_us: int = 0
    no_finish_us: int = 0
    no_run_percent: int = 0
    no_finish_percent: int = 0


class Model:
    """
    Be the scheduler. Every ``session`` returns its decisions; jobs keep their reasons.

    ``pools``: the names in ``shared`` of what is one resource to jobs, each total of some hosts.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.hosts: dict[str, Host] = {}
        self.queues: dict[str, Queue] = {}
        self.shared: dict[str, Shared] = {}
        self.pools: dict[str, tuple[str, ...]] = {}
        self.limits: dict[str, Limit] = {}
        self.user_slots: dict[str, int] = {}
        self.groups: dict[str, Group] = {}
        self.projects: dict[str, Project] = {}
        self.profiles: dict[str, Profile] = {}
        self.jobs: dict[int, Job] = {}
        self.past: dict[tuple[str, tuple[str, ...]], list[tuple[int, int]]] = {}
        self.now_us = 0
        self.decisions: list[Decision] = []
        self.tried: list[int] = []

    # -- what everybody asks

    def live(self) -> list[Job]:
        """
        Return the started jobs, in order of submission.
        """
        return [job for job in self.jobs.values() if job.state in LIVE]

    def is_open(self, host: Host) -> bool:
        """
        Say whether a host takes jobs: it is open, reached, and no exclusive job is on it.
        """
        return not self.why_shut(host)

    def why_shut(self, host: Host) -> str:
        """
        Return why a host takes no jobs, the first cause of LSF's order; "" when it does.
        """
        if host.is_gone:
            return "LOAD_UNAVAIL"
        if host.lost_us is not None:
            return "SBD_UNREACH"
        if host.window is not None and not self.is_within(host.window):
            return "HOST_WINDOW"
        if host.is_closed or host.is_drained:
            return "HOST_DISABLED"
        on = [job for job in self.live() if job.got and host.name in job.got.tasks]
        if any(job.ask.is_exclusive for job in on):
            return "HOST_EXCLUSIVE"
        return "HOST_LOCKED" if host.is_locked else ""

    def is_released(self, resource: str) -> bool:
        """
        Say whether stopped jobs give a resource back.
        """
        shared = self.shared.get(resource)
        return resource in self.rules.released or (shared is not None and shared.is_released)

    def order_key(self, job: Job) -> tuple[int, ...]:
        """
        Return a waiting job's place: queue priority, its own capped by the queue, place among
        equals, time, number.
        """
        queue = self.queues[job.queue]
        return (-queue.priority, -self.priority_of(job), job.place, job.queue_us, job.number)

    def priority_of(self, job: Job) -> int:
        """
        Return what of a job's own priority counts.
        """
        most = self.queues[job.queue].priority_max
        return job.ask.priority if most is None else min(job.ask.priority, most)

    def is_within(self, window: tuple[int, int]) -> bool:
        """
        Say whether a window is open.
        """
        return window[0] <= self.now_us // MINUTE_US % DAY_MINUTES < window[1]

    def is_run_open(self, name: str) -> bool:
        """
        Say whether jobs of a queue may run now.
        """
        window = self.queues[name].run_window
        return window is None or self.is_within(window)

    def may_start(self, name: str) -> bool:
        """
        Say whether jobs of a queue may be started now.
        """
        queue = self.queues[name]
        window = queue.dispatch_window
        is_open = window is None or self.is_within(window)
        return queue.is_active and is_open and self.is_run_open(name)

    def wanted(self, job: Job) -> Ask:
        """
        Return what holds for a job, with what its profile makes of it.
        """
        from tests.model_profiles import wanted

        return wanted(self, job.ask)

    def run_limit_of(self, job: Job) -> int | None:
        """
        Return how long a job may run: its own word goes before its queue's.
        """
        own = self.wanted(job).run_limit_us
        return self.queues[job.queue].run_limit_us if own is None else own

    def has_run_us(self, job: Job) -> int:
        """
        Return how long a job has run up to now.
        """
        runs_on = job.state == "UNKWN" and job.before_loss == "RUN"
        is_running = job.state == "RUN" or runs_on
        return job.run_us + (self.now_us - job.since_us if is_running else 0)

    def turn(self, job: Job, state: str) -> None:
        """
        Put a job into another state.
        """
        job.run_us, job.since_us, job.state = self.has_run_us(job), self.now_us, state

    # -- what users and administrators do

    def submit(
        self, ask: Ask, *, is_held: bool, size: int = 0, most_at_once: int | None = None
    ) -> None:
        """
        Take a job in, or an array of some size, of which so many may be started at a time.
        """
        first = (max(self.jobs, default=0) // ELEMENTS + 1) * ELEMENTS
        for index in range(1, size + 1) if size else [0]:
            job = Job(first + index, ask, ask.queue, self.now_us, since_us=self.now_us)
            job.state = "PSUSP" if is_held else "PEND"
            job.index, job.most_at_once, job.submit_us = index, most_at_once, self.now_us
            self.jobs[job.number] = job

    def started_of(self, job: Job) -> int:
        """
        Return how many elements of a job's array are started.
        """
        number = job.number // ELEMENTS
        return sum(other.number // ELEMENTS == number for other in self.live())

    def hold(self, job: Job) -> None:
        """
        Keep a pending job back; nothing is held for it any more.
        """
        job.holds, job.wish = None, {}
        self.turn(job, "PSUSP")

    def lift(self, job: Job) -> None:
        """
        Let a held job wait again, on any host.
        """
        job.avoids = ()
        self.turn(job, "PEND")

    def modify(self, job: Job, ask: Ask) -> None:
        """
        Change what a waiting job asks for; of a started one, what it takes on its hosts.
        """
        from tests.model_forced import end_wish

        job.ask, was = ask, self.wanted(job).needs
        needs = self.wanted(job).needs
        if job.got is not None and needs != was:
            for host, tasks in job.got.tasks.items():
                job.got.amounts[host] = {
                    name: need.of(tasks, 1)
                    for name, need in needs.items()
                    if name not in self.shared and name not in self.pools
                }
        if job.state == "PEND":
            job.holds = None
            end_wish(self, job)

    def wish_for(self, job: Job, wish: dict[str, int]) -> None:
        """
        Want a pending job started on certain hosts, whatever else waits or is against it.
        """
        job.wish = wish

    def switch(self, job: Job, queue: str) -> None:
        """
        Move a job to another queue, where one that waits comes behind its equals.
        """
        if job.queue == queue:
            return
        job.queue, job.holds = queue, None
        if job.state in ("PEND", "PSUSP"):
            job.queue_us, job.place = self.now_us, 0

    def move(self, job: Job, *, to_top: bool) -> None:
        """
        Put a pending job before or behind those of its queue and priority that wait.
        """
        places = [
            other.place
            for other in self.jobs.values()
            if other.state == "PEND" and other is not job and other.queue == job.queue
            and other.ask.priority == job.ask.priority
        ]  # fmt: skip
        job.place = min(places, default=1) - 1 if to_top else max(places, default=-1) + 1

    def stop(self, job: Job) -> None:
        """
        Ask for a started job to be stopped; one that the system has stopped is stopped at once.
        """
        job.stop_wanted, job.go_on_wanted = True, False
        if job.state == "SSUSP":
            job.by_window = job.by_load = False
            self.turn(job, "USUSP")

    def go_on(self, job: Job) -> None:
        """
        Ask for a stopped job to go on: it waits as SSUSP until a session lets it.
        """
        job.stop_wanted = False
        if job.state == "USUSP":
            self.turn(job, "SSUSP")
        # A victim goes on by itself when what it gave back is free again.
        is_stopped = job.state == "SSUSP" or job.order == "suspend"
        job.go_on_wanted = is_stopped and not job.stopped_for

    # -- what workers tell

    def lose(self, host: Host) -> None:
        """
        Lose contact to a host: its own jobs are UNKWN, and nothing is held on it. Of one whose
        agent has ended nothing is expected but what became of its jobs.
        """
        own = [job for job in self.live() if job.got and job.got.first == host.name]
        if host.lost_us is not None or (host.is_gone and not own):
            return
        host.lost_us = self.now_us
        self._hold_nothing_on(host)
        for job in own:
            job.before_loss = job.state
            self.turn(job, "UNKWN")

    def _hold_nothing_on(self, host: Host) -> None:
        for job in self.jobs.values():
            if job.holds is not None and host.name in job.holds.tasks:
                job.holds = None

    def leave_cluster(self, host: Host) -> None:
        """
        Let a host's agent end in good order: its jobs go on, and nothing is held on it.
        """
        host.is_gone = True
        self._hold_nothing_on(host)

    def join(self, host: Host) -> None:
        """
        Let a host join, or join again with what it has now; then its jobs are there again.
        """
        known = self.hosts.get(host.name)
        if known is not None:
            self.hear(known)
            known.slots, known.totals, known.flags = host.slots, host.totals, host.flags
            known.rack, known.load = host.rack, {}
            known.incarnation, known.is_gone = known.incarnation + 1, False
            host = known
        host.report_us = self.now_us
        self.hosts[host.name] = host

    def hear(self, host: Host) -> None:
        """
        Hear of a host: whatever it reports, it is back.
        """
        if host.lost_us is None:
            return
        host.lost_us, host.report_us = None, self.now_us
        for job in self.live():
            if job.state == "UNKWN" and job.got is not None and job.got.first == host.name:
                self.turn(job, job.before_loss)

    def report(self, host: Host, load: dict[str, int], used: dict[int, dict[str, int]]) -> None:
        """
        Take in what is free on a host, and what its jobs use there.
        """
        self.hear(host)
        host.report_us = self.now_us
        host.load.update(load)
        host.load_us = self.now_us
        for number, actual in used.items():
            self.jobs[number].actual[host.name] = actual

    def started(self, job: Job) -> None:
        """
        Take in that a job was started.
        """
        assert job.got is not None, job
        self.hear(self.hosts[job.got.first])
        job.start_us, job.is_new = self.now_us, False

    def confirm(self, job: Job) -> None:
        """
        Take in that a job was stopped, or goes on, as ordered.
        """
        assert job.got is not None, job
        self.hear(self.hosts[job.got.first])
        if job.order == "suspend":
            self.turn(job, "USUSP" if job.stop_wanted else "SSUSP")
            job.aside = True
        else:
            self.turn(job, "RUN")
            job.go_on_wanted = job.by_window = job.by_load = False
            if job.stopped_for:
                job.spared.append(job.stopped_for)
                job.stopped_for = 0
        job.order = ""

    def finish(self, job: Job, exit_code: int) -> None:
        """
        Take in that a job has ended; its exit value may put it back.
        """
        assert job.got is not None, job
        self.hear(self.hosts[job.got.first])
        own, usual = self.wanted(job).exits, self.queues[job.queue].exits
        rules = (own or Exits()).over(usual or Exits())
        is_own_end = job.order != "kill"
        is_well = exit_code == 0 or exit_code in rules.success
        may_go_back = rules.most is None or job.times_back < rules.most
        if is_own_end and may_go_back and exit_code in (*rules.requeue, *rules.exclude):
            job.back_why = "exit value"
            if exit_code in rules.exclude and sum(job.got.tasks.values()) == 1:
                job.avoids = (*job.avoids, *job.got.tasks)
        if job.is_unwanted:
            job.back_why = ""
        self.leave(job, "DONE" if is_own_end and is_well else "EXIT")

    def leave(self, job: Job, state: str) -> None:
        """
        Give everything back.
        """
        from tests.model_fairshare import note_end

        self.turn(job, state)
        if self.rules.is_shared:
            note_end(self, job)
        job.got, job.actual, job.holds = None, {}, None
        job.order, job.aside = "", False
        job.go_on_wanted, job.stopped_for, job.spared = False, 0, []
        job.by_window = job.by_load = job.is_forced = False
        job.wish = {}

    # -- a session

    def session(self) -> list[Decision]:
        """
        Decide: first about started jobs, then about waiting ones in order, then who goes on.
        """
        from tests.model_forced import start_wished
        from tests.model_preempt import let_go_on

        self.decisions, self.tried = [], []
        for job in self.jobs.values():
            job.is_put_back = False
        self._end_at_limits()
        self._give_up_lost_hosts()
        self._end_unwanted()
        self._put_back()
        self._stop_and_let_go_on()
        start_wished(self)
        self._try_jobs()
        let_go_on(self)
        return self.decisions

    def decide(self, *decision: str) -> None:
        """
        Note a decision.
        """
        self.decisions.append(decision)

    def _end_at_limits(self) -> None:
        """
        End jobs at their deadlines, and those that have run as long as they may, the earliest
        moment first.
        """
        due = []
        for job in self.jobs.values():
            limit, deadline = self.run_limit_of(job), job.ask.deadline_us
            if deadline is not None and deadline <= self.now_us:
                due.append((deadline, job.number, "TERM_DEADLINE"))
            elif job.state == "RUN" and limit is not None and self.has_run_us(job) >= limit:
                due.append((job.since_us + limit - job.run_us, job.number, "TERM_RUNLIMIT"))
        for _, number, why in sorted(due):
            job = self.jobs[number]
            if job.state in LIVE and job.order != "kill":
                self.order_kill(job, why)
            elif job.state in ("PEND", "PSUSP"):
                self.decide("ended", job.name, why)
                job.back_why = "" if job.is_unwanted else job.back_why
                self.leave(job, "EXIT")

    def order_kill(self, job: Job, why: str) -> None:
        """
        Order a job's end.
        """
        self.decide("kill", job.name, why)
        job.order = "kill"

    def _give_up_lost_hosts(self) -> None:
        """
        After the grace time, rerunnable jobs of a lost host are requeued, others end.
        """
        for job in self.live():
            host = self.hosts[job.got.first] if job.got else None
            if job.state != "UNKWN" or host is None:
                continue
            if self.now_us < host.report_us + self.rules.grace_us:
                continue
            if self.wanted(job).is_rerunnable and not job.is_unwanted:
                self._requeue(job, "lost host")
            else:
                self.decide("ended", job.name, "TERM_LOST_HOST")
                job.back_why = "" if job.is_unwanted else job.back_why
                self.leave(job, "EXIT")

    def _end_unwanted(self) -> None:
        for job in self.jobs.values():
            if job.state in ("PEND", "PSUSP") and job.is_unwanted:
                self.decide("ended", job.name, "TERM_OWNER")
                self.leave(job, "EXIT")
            elif job.state in LIVE and job.order != "kill" and (job.is_unwanted or job.back_why):
                self.order_kill(job, "TERM_OWNER" if job.is_unwanted else "TERM_REQUEUE_OWNER")

    def _put_back(self) -> None:
        for job in self.jobs.values():
            if job.state in ENDED and job.back_why:
                self._requeue(job, job.back_why)

    def _requeue(self, job: Job, why: str) -> None:
        """
        Put a job back: behind its equals by command, at its old place by its own doing or from a
        lost host, where the next session considers it.
        """
        self.decide("requeued", job.name, why)
        self.leave(job, "PSUSP" if job.is_back_held else "PEND")
        if why == "lost host":
            job.is_put_back = not job.is_back_held
        elif why != "exit value":
            job.queue_us = self.now_us
        job.times_back, job.run_us = job.times_back + (why == "exit value"), 0
        job.back_why, job.is_unwanted, job.is_back_held = "", False, False
        job.stop_wanted, job.start_us = False, 0

    def _stop_and_let_go_on(self) -> None:
        """
        Order what users want stopped to stop, and what its queue's window stops, then what they let
        go on to go on when what it gave back is free, and held for nobody; that of higher queues
        first.
        """
        from tests.model_load import may_go_on, stop_by_load
        from tests.model_preempt import fits_again

        idle = [job for job in self.live() if not job.order]
        for job in idle:
            is_shut = not self.is_run_open(job.queue)
            if job.state == "RUN" and (job.stop_wanted or is_shut):
                self.decide("suspend", job.name, "")
                job.order, job.by_window = "suspend", not job.stop_wanted
        for job in sorted(idle, key=lambda each: -self.queues[each.queue].priority):
            is_by_system = job.by_window or job.by_load
            is_wanted = job.go_on_wanted or (is_by_system and not job.stop_wanted)
            if job.state != "SSUSP" or not is_wanted or not self.is_run_open(job.queue):
                continue
            if not may_go_on(self, job):
                continue
            if fits_again(self, job):
                self.resume(job)
        stop_by_load(self)

    def resume(self, job: Job) -> None:
        """
        Order a stopped job to go on; from now on it has all that it gave back.
        """
        self.decide("resume", job.name)
        job.order, job.aside = "resume", False

    def why_not_ready(self, job: Job) -> str:
        """
        Return why a waiting job may not be tried, "" when it may.
        """
        if self.now_us < job.ask.begin_us:
            return "JOB_START_TIME"
        verdict = True if job.ask.depends is None else self._holds(job.ask.depends)
        why = {True: "", None: "JOB_DEPEND", False: "JOB_DEP_INVALID"}[verdict]
        is_new = self.now_us < job.submit_us + self.queues[job.queue].new_delay_us
        return "JOB_DELAY_SCHED" if is_new and not why else why

    def _holds(self, tree: tuple[object, ...]) -> bool | None:
        """
        Return whether a dependency is true, None while it may become true, False when it never
        will.
        """
        kind, *parts = tree
        if kind in ("done", "ended"):
            parent = self.jobs[parts[0]]  # type: ignore[index]
            if kind == "ended":
                return True if parent.state in ENDED else None
            return {"DONE": True, "EXIT": False}.get(parent.state)
        found = [self._holds(part) for part in parts]  # type: ignore[arg-type]
        if kind == "not":
            # A condition is judged on the state as it is: what isn't true yet is not true.
            return found[0] is not True
        if kind == "and":
            return False if False in found else all(found) or None
        return True if True in found else (None if None in found else False)

    def _try_jobs(self) -> None:
        """
        Try every job that is ready, in order; where order is strict, only up to one that can't be
        placed.
        """
        from tests.model_fairshare import next_job
        from tests.model_preempt import stop_for

        waiting = [job for job in self.jobs.values() if job.state == "PEND" and not job.wish]
        for job in waiting:
            why = self.why_not_ready(job)
            if why and not job.is_put_back:
                job.reasons, job.is_never = frozenset({(why, "", "", "")}), why == "JOB_DEP_INVALID"
            if why or not self.may_start(job.queue):
                job.holds = None
        todo = [
            job
            for job in sorted(waiting, key=self.order_key)
            if self.may_start(job.queue) and not self.why_not_ready(job) and not job.is_put_back
        ]
        while todo:
            job = next_job(self, todo) if self.rules.is_shared else todo[0]
            todo.remove(job)
            if not self._start(job):
                stop_for(self, job)
                if self.rules.is_strict:
                    return

    def _start(self, job: Job) -> bool:
        """
        Place a job and start it, or note every reason why it waits.
        """
        from tests.model_place import Sight, place, why_kept, would_never

        self.tried.append(job.number)
        kept = why_kept(self, job)
        if kept is None:
            got, reasons = place(self, job, Sight(self, job))
        else:
            got, reasons = None, {kept}
        if got is None:
            shut = {(self.why_shut(each), "", "", each.name) for each in self.hosts.values()}
            shut = {reason for reason in shut if reason[0]}
            # A reason of the whole job is told alone, without those of hosts; what wasn't tried is
            # none.
            causes = [each for each in reasons if not each[0].startswith(UNTRIED)]
            if not causes or any(host for _, _, _, host in reasons):
                reasons = reasons | shut
            if not causes and not shut:
                reasons = reasons | {("NO_HOSTS", "", "", "")}
            job.reasons = frozenset(reasons)
            job.is_never = would_never(self, job)
            return False
        self.start(job, got)
        return True

    def start(self, job: Job, got: Grant) -> None:
        """
        Start a job with what it gets.
        """
        self.turn(job, "RUN")
        job.got, job.holds, job.start_us = got, None, self.now_us
        job.is_new, job.wish = True, {}
        where = " ".join(f"{host}*{tasks}" for host, tasks in got.tasks.items())
        self.decide("dispatched", job.name, where)

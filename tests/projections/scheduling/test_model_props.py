"""
The real core and the obvious slow scheduler decide alike, whatever happens to a small cluster.

``XCE_MODEL_EXAMPLES`` and ``XCE_MODEL_STEPS`` make the run longer.
"""

# long: one small rule for each thing that may happen.

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from domain.amounts import MEM
from domain.jobs import JobSpec
from projections.scheduling import forcing, limits, own_view, session
from projections.scheduling.budgets import Budget
from projections.scheduling.limits import Limits
from projections.scheduling.loads import Loads
from projections.scheduling.orders import Orders
from projections.scheduling.placement import bounds, loads
from projections.scheduling.placement.ground import Ground
from projections.scheduling.preemption import Preemption
from projections.scheduling.records import JobRecord, WorkerRecord
from projections.scheduling.state import State
from replay.engine import Engine
from tests.builders import MB_MILLI, SECOND_US
from tests.examples import IN_CI, examples
from tests.model import (
    LIVE,
    MILLI,
    Ask,
    Branch,
    Exits,
    Group,
    Host,
    Job,
    Limit,
    Need,
    Part,
    Profile,
    Project,
    Queue,
    Rules,
    Threshold,
)
from tests.model_fairshare import HOUR_US, Sharing
from tests.projections.scheduling.modelled import GRACE_US, Pair

EXAMPLES = int(os.environ.get("XCE_MODEL_EXAMPLES", str(examples(150))))
STEPS = int(os.environ.get("XCE_MODEL_STEPS", "50"))
SETTINGS = settings(max_examples=EXAMPLES, stateful_step_count=STEPS)
FINDING = settings(
    max_examples=1_000,
    stateful_step_count=STEPS,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    derandomize=True,
    database=None,
)

QUEUES = {
    "lo": Queue("lo", 10, preemptible_by=("mid", "hi")),
    "mid": Queue("mid", 50, preys=("lo",), preemptible_by=("hi",)),
    "hi": Queue("hi", 90, preys=("lo", "mid")),
    "plain": Queue("plain", 50),
}
ANY = st.integers(0, 99)
GROUPS = st.sampled_from(["g1", "g2"])
PATHS = st.sampled_from(["/a", "/a/b", "/c"])
PROFILE_NAMES = st.sampled_from(["p1", "p2"])
USERS = st.sampled_from(["u1", "u2"])
QUEUE_NAMES = st.sampled_from(sorted(QUEUES))
HOSTS = st.builds(
    lambda slots, mem, scratch, flags, rack: (rack, slots, mem, scratch, flags),
    st.sampled_from([2, 1, 2, 3, 4, 0]),
    st.sampled_from([400, 0, 100, 200]),
    st.sampled_from([0, 0, 2, 4]),
    st.sampled_from([(), ("fast",)]),
    st.sampled_from(["", "a", "a", "b"]),
)
PERS = st.sampled_from(["task", "host"])
MEMORY = st.builds(Need, st.sampled_from([50, 90, 150]).map(lambda mb: mb * MB_MILLI), PERS)
SCRATCH = st.builds(Need, st.sampled_from([MILLI, 2 * MILLI]), PERS)
LICENCES = st.builds(Need, st.sampled_from([MILLI, 2 * MILLI]), st.sampled_from(["job", "task"]))
HOST_NEEDS = st.fixed_dictionaries({}, optional={MEM: MEMORY, "scratch": SCRATCH})
NETS = st.builds(
    Need, st.sampled_from([MILLI, 2 * MILLI]), st.sampled_from(["job", "task", "task", "host"])
)
POOLS = {("h0", "h1"): 3, ("h2", "h4"): 2}
"""How much of a resource some hosts share; the others have none."""
NEEDS = st.one_of(
    st.just({}),
    st.just({}),
    st.fixed_dictionaries(
        {}, optional={MEM: MEMORY, "scratch": SCRATCH, "lic": LICENCES, "tok": LICENCES}
    ),
)
POOLED = st.one_of(
    NETS.map(lambda net: {"net": net}),
    st.builds(lambda needs, net: {**needs, "net": net}, NEEDS, NETS),
)
SIZES = st.sampled_from([(1, 1), (1, 1), (1, 1), (1, 3), (2, 2), (2, 3), (3, 3), (4, 5)])
SPANS = st.sampled_from([("", 0)] * 6 + [("hosts", 0), ("ptile", 1), ("ptile", 2)])
ASKS = st.builds(
    lambda user, queue, size, needs, flags, span, more, priority: Ask(
        user, queue, *size, needs, flags, *span, *more, priority
    ),
    USERS,
    st.sampled_from(["lo", "lo", "mid", "hi", "hi", "plain"]),
    SIZES,
    NEEDS,
    st.sampled_from([()] * 5 + [("fast",)]),
    SPANS,
    st.sampled_from([(False,)] * 11 + [(True,)]),
    st.integers(0, 2),
)
ORDERS = st.sampled_from([("mem",), ("-mem",), ("scratch",), ("-scratch", "mem"), ()])
PARTS = st.builds(
    lambda tasks, needs, flags, order: Part(tasks, tasks, needs, flags, order=order),
    st.integers(1, 3),
    NEEDS,
    st.sampled_from([(), (), (), ("fast",)]),
    ORDERS,
)
DELAYS = st.sampled_from([(0, 0, 0), (0, 1, 1), (0, 2, 5), (0, 0, 5)])
BRANCHES = st.builds(
    lambda parts, delays: [
        Branch(each, delay * 60 * SECOND_US) for each, delay in zip(parts, delays, strict=False)
    ],
    st.lists(st.lists(PARTS, min_size=1, max_size=2), min_size=1, max_size=3),
    DELAYS,
)
RULES = st.builds(
    Rules,
    is_strict=st.sampled_from([False, False, True]),
    chain=st.sampled_from([("parjob", "fill"), ("fill",), ("parjob",)]),
    grace_us=st.just(GRACE_US),
    released=st.sampled_from([(), (), (MEM,)]),
    delay_us=st.sampled_from([0, 0, 0, 0, 60 * SECOND_US]),
    times_max=st.sampled_from([None, None, None, 1]),
    no_interval_us=st.sampled_from([0, 0, 0, 100 * SECOND_US]),
    no_run_us=st.sampled_from([0, 0, 0, 150 * SECOND_US]),
    no_finish_us=st.sampled_from([0, 0, 0, 150 * SECOND_US]),
    no_run_percent=st.sampled_from([0, 0, 0, 40]),
    no_finish_percent=st.sampled_from([0, 0, 0, 40]),
)
SHARERS = st.sampled_from(["u1", "u2", "u3", "u4"])
TREES = st.sampled_from(
    [
        {"default": (1, {})},
        {"u1": (3, {}), "u2": (1, {}), "default": (2, {})},
        {"u1": (1, {}), "others": (2, {})},
        {"u1": (2, {}), "u2": (2, {})},
        {"a": (2, {"u1": 1, "u2": 3}), "b": (1, {"u3": 1}), "default": (1, {})},
        {"a": (1, {"u1": 2, "u3": 1}), "u2": (1, {}), "others": (1, {})},
    ]
)
SHARINGS = st.builds(
    Sharing,
    TREES,
    run_factor=st.sampled_from([700, 700, 9_000]),
    committed_factor=st.sampled_from([0, 0, 500]),
    job_factor=st.sampled_from([3_000, 3_000, 0, 10]),
    counts_past=st.booleans(),
    past_decays=st.booleans(),
    history_us=st.sampled_from([5 * HOUR_US, 900 * SECOND_US, 0]),
)
OF_LOWEST = Sharing(of="lo")
SHARING = st.tuples(SHARINGS, *[st.sampled_from([None, OF_LOWEST]) | SHARINGS] * 3)
EXITS = st.builds(
    Exits,
    requeue=st.sampled_from([(), (99,), (1, 99)]),
    exclude=st.sampled_from([(), (98,)]),
    success=st.sampled_from([(), (5,), (99,)]),
    most=st.sampled_from([None, None, 0, 1, 2]),
)
EXIT_CODES = st.sampled_from([0, 0, 1, 5, 98, 99])
TELLING_CODES = st.sampled_from([99, 99, 98, 1, 5])
TIMES = st.sampled_from([30, 100, 300, 900]).map(SECOND_US.__mul__)
SOME_HOSTS = st.dictionaries(
    st.sampled_from(["h0", "h1", "h2", "h3"]), st.integers(0, 2), min_size=1, max_size=2
)
WAYS = st.sampled_from(["suspend", "suspend", "kill", "requeue"])
WINDOWS = st.sampled_from([(0, 20), (0, 5), (5, 30), (2, 10), (10, 1_000)])
BOUNDS = st.sampled_from([None, None, None, None, 5, 3, 2, 1, 0])
SELDOM = st.sampled_from([False, False, False, True])
WISHES = st.sampled_from([[1], [1], [2], [3], [1, 1], [2, 1], [1, 2]])
AMOUNTS = st.one_of(
    st.tuples(
        st.sampled_from(["jobs", "slots", "tasks"]),
        st.sampled_from([4, 3, 2, 1, 0]).map(MILLI.__mul__),
    ),
    st.tuples(st.just(MEM), st.sampled_from([60, 150, 300]).map(MB_MILLI.__mul__)),
    st.tuples(st.just("scratch"), st.integers(1, 4).map(MILLI.__mul__)),
    st.tuples(st.just("lic"), st.integers(1, 2).map(MILLI.__mul__)),
)
SCOPES = st.sampled_from([None, None, ("some", False), ("some", True), ("all", True)])
MOST_WAITING = 8
ABOUT = (
    "bounds",
    "forced",
    "hosts",
    "load",
    "pools",
    "profiles",
    "projects",
    "queues",
    "requests",
    "sharing",
    "times",
)
THEMES = st.sampled_from(
    [frozenset(some) for size in range(4) for some in combinations(ABOUT, size)]
)
"""What a life is about: all that may happen in each would be a little of everything."""
FREE = st.sampled_from([0, 80, 200, 400]).map(MB_MILLI.__mul__)


def about(theme: str) -> Any:
    """
    Let a rule apply to lives of some theme only.
    """
    return precondition(lambda self: theme in self.themes)
LOADS = st.fixed_dictionaries(
    {},
    optional={
        MEM: FREE,
        "r1m": st.sampled_from([0, 1_000, 1_500, 3_000]),
        "it": st.sampled_from([0, 3_000, 9_000]),
    },
)
THRESHOLDS = st.sampled_from(
    [
        (),
        (Threshold("r1m", 1_000, 2_000),),
        (Threshold("r1m", None, 1_000),),
        (Threshold("r1m", 1_200),),
        (Threshold(MEM, 150 * MB_MILLI, 100 * MB_MILLI),),
        (Threshold(MEM, None, 90 * MB_MILLI), Threshold("r1m", 0, 1_200)),
        (Threshold("it", 2_000, 1_000),),
    ]
)
RESREQS = st.builds(
    lambda needs, flags, span, order, same: Part(1, 1, needs, flags, *span, order, same),
    NEEDS,
    st.sampled_from([(), ("fast",)]),
    SPANS,
    ORDERS,
    st.sampled_from(["rack", "", ""]),
)
SELECTS = st.just(Part(flags=("fast",)))
MARKS = st.sampled_from(["default", "default", "fixed"])
PROFILES = st.builds(
    lambda resreq, tasks, **more: Profile(*resreq, *tasks, **more),
    st.one_of(
        st.just((None, "default")),
        st.tuples(RESREQS, MARKS),
        st.tuples(SELECTS, st.just("select")),
    ),
    st.tuples(st.sampled_from([None, None, (1, 1), (2, 2), (2, 3)]), MARKS),
    run_limit_us=st.none() | TIMES,
    run_limit_mark=MARKS,
    exits=st.none() | EXITS,
    exits_mark=MARKS,
    is_rerunnable=SELDOM,
)


class Twice(RuleBasedStateMachine):
    """
    Do everything to the real scheduler and to the model, and see that they don't differ.

    ``only``: what every life is about, None for what is drawn.
    """

    only: frozenset[str] | None = None

    @initialize(
        rules=RULES,
        hosts=st.lists(HOSTS, min_size=1, max_size=3),
        licences=st.tuples(st.integers(0, 3), st.integers(1, 3)),
        way=WAYS,
        themes=THEMES,
        sharing=SHARING,
    )
    def begin(
        self,
        rules: Rules,
        hosts: list[Any],
        licences: tuple[int, int],
        way: str,
        themes: frozenset[str],
        sharing: tuple[Sharing | None, ...],
    ) -> None:
        themes = themes if self.only is None else self.only
        if "sharing" in themes:
            rules = replace(rules, is_shared=True, is_strict=False)
        self.pair, self.themes = Pair(rules), themes
        for queue, own in zip(QUEUES.values(), sharing, strict=True):
            shared = own if "sharing" in themes else None
            self.pair.queue(replace(queue, on_preempt=way, sharing=shared))
        self.pair.licence("lic", licences[0], is_released=True)
        self.pair.licence("tok", licences[1], is_released=False)
        self.pair.pools("net", POOLS, is_released=True)
        for host in hosts:
            self.join(host)
        for known in self.pair.model.hosts.values() if "load" in themes else ():
            self.pair.report(known, {"r1m": 0, "it": 9_000}, {})

    # -- what is there

    def join(self, host: Any, name: str = "") -> None:
        rack, slots, mem_mb, scratch, flags = host
        totals = {MEM: mem_mb * MB_MILLI} if mem_mb else {}
        if scratch:
            totals["scratch"] = scratch * MILLI
        name = name or f"h{len(self.pair.model.hosts)}"
        self.pair.host(Host(name, slots, totals, flags, rack=rack))

    def a_host(self, pick: int) -> Host:
        hosts = list(self.pair.model.hosts.values())
        return hosts[pick % len(hosts)]

    def jobs(self, *states: str) -> list[Job]:
        """
        Return the jobs in some states, those that nobody wants ended yet.
        """
        return [job for job in self.pair.model.jobs.values() if job.state in states]

    def on_job(self, pick: int, kind: str, *states: str, **more: Any) -> None:
        jobs = self.jobs(*states)
        if jobs:
            self.pair.command(kind, jobs[pick % len(jobs)], **more)

    # -- what users do

    @rule(asks=st.lists(ASKS, min_size=1, max_size=3), is_held=st.integers(0, 9))
    def submit(self, asks: list[Ask], is_held: int) -> None:
        # Many that wait for the same make a life long, and tell nothing more.
        for ask in asks if len(self.jobs("PEND")) < MOST_WAITING else []:
            self.pair.submit(ask, is_held=is_held == 9)

    @rule(asks=st.lists(ASKS, min_size=1, max_size=4))
    def submit_and_decide(self, asks: list[Ask]) -> None:
        self.submit(asks, 0)
        self.session()

    @about("times")
    @rule(ask=ASKS, begin=st.integers(0, 300), pick=ANY, form=st.integers(0, 5))
    def submit_for_later(self, ask: Ask, begin: int, pick: int, form: int) -> None:
        jobs = self.pair.model.jobs.values()
        known = sorted(job.number for job in jobs if not job.index)
        if known and form < 5:
            one, two = known[-1 - pick % len(known)], known[-1 - pick // 7 % len(known)]
            ask.depends = (
                ("done", one),
                ("ended", one),
                ("not", ("done", one)),
                ("and", ("ended", one), ("done", two)),
                ("or", ("done", one), ("not", ("ended", two))),
            )[form]
        else:
            ask.begin_us = self.pair.model.now_us + begin * SECOND_US
        self.pair.submit(ask, is_held=False)

    @rule(ask=ASKS)
    def submit_rerunnable(self, ask: Ask) -> None:
        ask.is_rerunnable = True
        self.pair.submit(ask, is_held=False)
        self.session()

    @about("times")
    @rule(ask=ASKS, run_limit=st.none() | TIMES, deadline=st.none() | TIMES)
    def submit_for_a_time(self, ask: Ask, run_limit: int | None, deadline: int | None) -> None:
        ask.run_limit_us = run_limit
        ask.deadline_us = None if deadline is None else self.pair.model.now_us + deadline
        self.pair.submit(ask, is_held=False)
        self.session()

    @rule(low=st.lists(ASKS, min_size=1, max_size=4), high=ASKS)
    def preempt(self, low: list[Ask], high: Ask) -> None:
        for ask in low:
            ask.queue, ask.is_exclusive = "lo", False
        high.queue = "hi"
        self.submit_and_decide(low)
        self.submit_and_decide([high])

    @about("queues")
    @rule(low=ASKS, high=ASKS, far=st.integers(0, 4))
    def fill_and_preempt(self, low: Ask, high: Ask, far: int) -> None:
        """
        Fill all hosts with jobs of the lowest queue, then have one of the highest. As far as it
        goes: victims stop, it runs, it ends, they go on.
        """
        slots = sum(host.slots for host in self.pair.model.hosts.values()) - len(self.jobs(*LIVE))
        small = replace(low, queue="lo", tasks_min=1, tasks_max=1, is_exclusive=False)
        self.submit_and_decide([replace(small) for _ in range(max(1, slots))])
        high.queue = "hi"
        self.submit_and_decide([high])

    @rule(ask=ASKS, exits=EXITS, code=TELLING_CODES)
    def submit_with_exits(self, ask: Ask, exits: Exits, code: int) -> None:
        ask.exits = exits
        self.submit_and_end([ask], code)

    def submit_and_end(self, asks: list[Ask], code: int) -> None:
        self.submit_and_decide(asks)
        for job in self.heard("RUN"):
            if any(job.ask is ask for ask in asks):
                self.pair.finish(job, code)
        self.session()

    @about("requests")
    @rule(ask=ASKS, hosts=SOME_HOSTS, firsts=st.integers(0, 2))
    def submit_to_hosts(self, ask: Ask, hosts: dict[str, int], firsts: int) -> None:
        ask.hosts = {name: wish for name, wish in hosts.items() if name in self.pair.model.hosts}
        ask.firsts = tuple(ask.hosts)[:firsts]
        self.pair.submit(ask, is_held=False)
        self.session()

    @about("sharing")
    @rule(asks=st.lists(st.tuples(ASKS, SHARERS), min_size=2, max_size=5), run_limit=TIMES)
    def submit_shared(self, asks: list[tuple[Ask, str]], run_limit: int) -> None:
        self.submit_and_decide(
            [replace(ask, user=user, run_limit_us=run_limit) for ask, user in asks]
        )

    @about("pools")
    @rule(asks=st.lists(st.tuples(ASKS, POOLED), min_size=1, max_size=3))
    def submit_pooled(self, asks: list[tuple[Ask, dict[str, Need]]]) -> None:
        self.submit_and_decide([replace(ask, needs=needs) for ask, needs in asks])

    @about("requests")
    @rule(
        asks=st.lists(ASKS, min_size=1, max_size=2),
        size=st.sampled_from([(2, 3), (3, 3), (2, 4), (4, 5), (5, 5)]),
        span=st.sampled_from([("block", 2), ("block", 3), ("stripe", 0), ("stripe", 2)]),
        hosts=st.just({}) | SOME_HOSTS,
    )
    def submit_in_blocks(
        self, asks: list[Ask], size: Any, span: tuple[str, int], hosts: dict[str, int]
    ) -> None:
        known = {name: wish for name, wish in hosts.items() if name in self.pair.model.hosts}
        more = {"hosts": known, "firsts": tuple(known)[:1]}
        sizes = {"tasks_min": size[0], "tasks_max": size[1]}
        kinds = {"span": span[0], "ptile": span[1]}
        self.submit_and_decide([replace(ask, **sizes, **kinds, **more) for ask in asks])

    @about("requests")
    @rule(ask=ASKS, order=ORDERS, same=st.sampled_from(["rack", "rack", ""]))
    def submit_in_order(self, ask: Ask, order: tuple[str, ...], same: str) -> None:
        ask.order, ask.same = order, same
        self.pair.submit(ask, is_held=False)
        self.session()

    @about("requests")
    @rule(
        ask=ASKS,
        branches=BRANCHES,
        same=st.sampled_from(["", "rack"]),
        hosts=st.just({}) | SOME_HOSTS,
    )
    def submit_alternatives(
        self, ask: Ask, branches: list[Branch], same: str, hosts: dict[str, int]
    ) -> None:
        ask.hosts = {name: wish for name, wish in hosts.items() if name in self.pair.model.hosts}
        ask.firsts = tuple(ask.hosts)[:1]
        branches[0].same = same if len(branches) == 1 else ""
        plain = replace(ask, tasks_min=1, tasks_max=1, needs={}, flags=(), span="", ptile=0)
        plain.branches = branches
        self.pair.submit(plain, is_held=False)
        self.session()

    @about("requests")
    @rule(
        ask=ASKS, size=st.integers(1, 4), most=st.sampled_from([None, 1, 2]), is_held=st.booleans()
    )
    def submit_array(self, ask: Ask, size: int, most: int | None, is_held: bool) -> None:
        self.pair.submit(ask, is_held=is_held, size=size, most_at_once=most)
        self.session()

    @precondition(lambda self: self.pair.model.groups or self.pair.model.projects)
    @rule(ask=ASKS, group=GROUPS, path=st.just("") | PATHS)
    def submit_for_project(self, ask: Ask, group: str, path: str) -> None:
        ask.group = group if group in self.pair.model.groups else ""
        ask.project = path
        self.pair.submit(ask, is_held=False)
        self.session()

    @about("profiles")
    @rule(
        asks=st.lists(ASKS, min_size=1, max_size=3),
        name=PROFILE_NAMES,
        exits=st.none() | EXITS,
        code=st.none() | TELLING_CODES,
    )
    def submit_with_profile(
        self, asks: list[Ask], name: str, exits: Exits | None, code: int | None
    ) -> None:
        if name not in self.pair.model.profiles:
            return
        some = [replace(ask, profile=name, exits=exits) for ask in asks]
        if code is None:
            self.submit_and_decide(some)
        else:
            self.submit_and_end(some, code)

    @about("profiles")
    @rule(user=USERS, queue=QUEUE_NAMES, name=PROFILE_NAMES, run_limit=st.none() | TIMES)
    def submit_by_profile_alone(
        self, user: str, queue: str, name: str, run_limit: int | None
    ) -> None:
        if name in self.pair.model.profiles:
            self.submit_and_decide([Ask(user, queue, run_limit_us=run_limit, profile=name)])

    @rule(pick=ANY, ask=ASKS)
    def modify(self, pick: int, ask: Ask) -> None:
        jobs = self.jobs("PEND", "PSUSP")
        if jobs:
            job = jobs[pick % len(jobs)]
            kept = {"user": job.ask.user, "queue": job.ask.queue, "profile": job.ask.profile}
            self.pair.modify(job, replace(ask, **kept))

    @rule(pick=ANY, needs=HOST_NEEDS, run_limit=st.none() | TIMES)
    def modify_started(self, pick: int, needs: dict[str, Need], run_limit: int | None) -> None:
        jobs = [
            job
            for job in self.jobs(*LIVE)
            if not ({"lic", "tok", "net"} & set(job.ask.needs) or job.ask.branches)
        ]
        if jobs:
            job = jobs[pick % len(jobs)]
            self.pair.modify(job, replace(job.ask, needs=needs, run_limit_us=run_limit))

    @rule(pick=ANY)
    def hold(self, pick: int) -> None:
        self.on_job(pick, "hold", "PEND")

    @precondition(lambda self: self.jobs("PSUSP"))
    @rule(pick=ANY)
    def lift(self, pick: int) -> None:
        self.on_job(pick, "lift", "PSUSP")

    @rule(pick=ANY)
    def kill(self, pick: int) -> None:
        jobs = [job for job in self.jobs("PEND", "PSUSP", *LIVE) if not job.is_unwanted]
        if jobs:
            self.pair.command("kill", jobs[pick % len(jobs)])

    @rule(pick=ANY, hold=st.integers(0, 3))
    def requeue(self, pick: int, hold: int) -> None:
        jobs = [job for job in self.jobs("RUN", "USUSP", "SSUSP") if not job.back_why]
        if jobs:
            self.pair.command("requeue", jobs[pick % len(jobs)], hold=hold == 3)

    @rule(pick=ANY)
    def stop(self, pick: int) -> None:
        jobs = [job for job in self.jobs("RUN", "SSUSP") if not job.stop_wanted]
        if jobs:
            self.pair.command("stop", jobs[pick % len(jobs)])

    @rule(pick=ANY)
    def go_on(self, pick: int) -> None:
        jobs = [job for job in self.jobs("USUSP", "RUN") if job.stop_wanted]
        if jobs:
            self.pair.command("go_on", jobs[pick % len(jobs)])

    @rule(pick=ANY, queue=QUEUE_NAMES)
    def switch(self, pick: int, queue: str) -> None:
        self.on_job(pick, "switch", "PEND", "RUN", queue=queue)

    @rule(pick=ANY, to_top=st.booleans())
    def move(self, pick: int, to_top: bool) -> None:
        self.on_job(pick, "move", "PEND", to_top=to_top)

    # -- what administrators do

    @about("forced")
    @rule(pick=ANY, wishes=WISHES, others=ANY)
    def wish(self, pick: int, wishes: list[int], others: int) -> None:
        """
        Want a pending job on certain hosts.
        """
        names = list(self.pair.model.hosts)
        jobs = [
            job
            for job in self.jobs("PEND")
            if not job.is_unwanted and all(len(each.parts) == 1 for each in job.ask.branches)
        ]
        if jobs:
            names = names[others % len(names) :] + names[: others % len(names)]
            self.pair.wish(jobs[pick % len(jobs)], dict(zip(names, wishes, strict=False)))

    @about("forced")
    @rule(ask=ASKS, pick=ANY, parts=st.lists(PARTS, max_size=3), delays=DELAYS)
    def submit_and_wish(
        self, ask: Ask, pick: int, parts: list[Part], delays: tuple[int, ...]
    ) -> None:
        """
        Submit a job and want all of it on some host, then decide.
        """
        if parts:
            ask = replace(ask, tasks_min=1, tasks_max=1, needs={}, flags=(), span="", ptile=0)
            ask.branches = [
                Branch([part], delay * 60 * SECOND_US)
                for part, delay in zip(parts, delays, strict=False)
            ]
        before = set(self.pair.model.jobs)
        self.pair.submit(ask, is_held=False)
        for number in set(self.pair.model.jobs) - before:
            job = self.pair.model.jobs[number]
            tasks = self.pair.model.wanted(job).alternatives()[-1].parts[0].tasks_max
            name = self.a_host(pick).name
            self.pair.wish(job, {name: tasks})
        self.session()

    @about("bounds")
    @rule(name=QUEUE_NAMES, slots=BOUNDS, user_slots=BOUNDS, host_slots=BOUNDS, jobs=BOUNDS)
    def bound_queue(self, name: str, **bounds: Any) -> None:
        self.pair.queue(replace(self.pair.model.queues[name], **bounds))

    @about("bounds")
    @rule(
        name=QUEUE_NAMES,
        user_jobs=BOUNDS,
        host_jobs=BOUNDS,
        processor_slots_milli=st.sampled_from([None, None, 500, 1_000, 700]),
        hosts_max=st.sampled_from([None, None, 1, 2]),
    )
    def bound_jobs_of_queue(self, name: str, **bounds: Any) -> None:
        self.pair.queue(replace(self.pair.model.queues[name], **bounds))

    @about("queues")
    @rule(name=QUEUE_NAMES, is_inactive=SELDOM, most=st.sampled_from([None, 1]))
    def turn_queue(self, name: str, is_inactive: bool, most: int | None) -> None:
        queue = self.pair.model.queues[name]
        self.pair.queue(replace(queue, is_active=not is_inactive, priority_max=most))

    @about("queues")
    @rule(name=QUEUE_NAMES, hosts=st.none() | SOME_HOSTS, run_limit=st.none() | TIMES)
    def describe_queue(
        self, name: str, hosts: dict[str, int] | None, run_limit: int | None
    ) -> None:
        queue = self.pair.model.queues[name]
        self.pair.queue(replace(queue, hosts=hosts, run_limit_us=run_limit))

    @about("queues")
    @rule(
        name=QUEUE_NAMES,
        way=WAYS,
        by_run_time=st.booleans(),
        wishes=st.dictionaries(st.sampled_from(["lo", "mid"]), st.integers(0, 2)),
        exits=st.none() | EXITS,
    )
    def preempt_otherwise(
        self, name: str, way: str, by_run_time: bool, wishes: dict[str, int], exits: Exits | None
    ) -> None:
        queue = self.pair.model.queues[name]
        changed = replace(queue, on_preempt=way, by_run_time=by_run_time, wishes=wishes)
        self.pair.queue(replace(changed, exits=exits))

    @about("profiles")
    @rule(name=PROFILE_NAMES, profile=PROFILES)
    def define_profile(self, name: str, profile: Profile) -> None:
        self.pair.profile(name, profile)

    @about("bounds")
    @rule(user=USERS, slots=BOUNDS)
    def bound_user(self, user: str, slots: int | None) -> None:
        self.pair.user(user, slots)

    @about("bounds")
    @rule(
        name=st.sampled_from(["l1", "l2"]),
        amount=AMOUNTS,
        users=SCOPES,
        queues=SCOPES,
        hosts=SCOPES,
        projects=SCOPES,
        is_by_group=st.booleans(),
        by_hosts=st.sampled_from([0, 0, 25, 50, 75, 100]),
    )
    def limit(
        self,
        name: str,
        amount: tuple[str, int],
        is_by_group: bool,
        by_hosts: int,
        **scopes: Any,
    ) -> None:
        model = self.pair.model
        some = {
            "users": ("u1",),
            "queues": ("lo", "hi"),
            "hosts": ("h0", "h1"),
            "projects": ("/a", "/c"),
        }
        every = {
            "users": ("u1", "u2"),
            "queues": tuple(QUEUES),
            "hosts": ("h0", "h1", "h2", "h3"),
            "projects": ("/a", "/a/b", "/c"),
        }
        given: dict[str, Any] = {}
        for kind, scope in scopes.items():
            if scope is not None:
                given[kind] = (some if scope[0] == "some" else every)[kind]
                given[f"each_{kind[:-1]}"] = scope[1]
        if not model.projects:
            given.pop("projects", None)
            given.pop("each_project", None)
        elif "projects" in given:
            given["projects"] = tuple(each for each in given["projects"] if each in model.projects)
        if is_by_group and model.groups:
            given["groups"] = tuple(model.groups)
        if by_hosts and "hosts" in given:
            # Resources in percent; what is counted for each processor, 100 being two of them.
            is_counted = amount[0] in ("jobs", "slots", "tasks")
            given["basis"] = "per_processor" if is_counted else "percent"
            amount = (amount[0], by_hosts * (20 if is_counted else MILLI))
        self.pair.limit(name, Limit(*amount, **given))

    @about("projects")
    @rule(
        name=GROUPS,
        members=st.sampled_from([("u1",), ("u2",), ("u1", "u2")]),
        is_nested=st.booleans(),
        slots=BOUNDS,
        user_slots=BOUNDS,
        jobs=BOUNDS,
        path=st.just("") | PATHS,
    )
    def define_group(
        self, name: str, members: tuple[str, ...], is_nested: bool, path: str, **bounds: Any
    ) -> None:
        known = self.pair.model.groups
        if is_nested and name == "g2" and "g1" in known:
            members = (*members, "g1")
        project = path if path in self.pair.model.projects else ""
        self.pair.group(name, Group(members, project=project, **bounds))

    @about("projects")
    @rule(
        path=PATHS,
        users=st.sampled_from([("u1", "u2"), ("u1", "u2"), ("u1",), ()]),
        group=GROUPS,
        quota=st.none() | AMOUNTS,
        is_open=st.sampled_from([True, True, True, False]),
    )
    def define_project(
        self, path: str, users: tuple[str, ...], group: str, quota: Any, is_open: bool
    ) -> None:
        model = self.pair.model
        if path != "/a/b" or "/a" in model.projects:
            groups = (group,) if group in model.groups else ()
            quotas = {} if quota is None else {quota[0]: quota[1]}
            self.pair.project(path, Project(users, groups, quotas, is_open))

    @about("times")
    @rule(
        name=QUEUE_NAMES,
        run=st.none() | WINDOWS,
        dispatch=st.none() | WINDOWS,
        delay=st.sampled_from([0, 0, 0, 100]),
    )
    def open_at_times(
        self,
        name: str,
        run: tuple[int, int] | None,
        dispatch: tuple[int, int] | None,
        delay: int,
    ) -> None:
        queue = replace(self.pair.model.queues[name], new_delay_us=delay * SECOND_US)
        self.pair.queue(replace(queue, run_window=run, dispatch_window=dispatch))

    @about("projects")
    @rule(
        name=QUEUE_NAMES,
        users=st.sampled_from([None, None, ("u1",), ("u2", "g1"), ("g2",)]),
        path=st.just("") | PATHS,
    )
    def entitle_queue(self, name: str, users: tuple[str, ...] | None, path: str) -> None:
        model = self.pair.model
        project = path if path in model.projects else ""
        self.pair.queue(replace(model.queues[name], users=users, project=project))

    @about("bounds")
    @rule(name=st.sampled_from(["l1", "l2"]))
    def unlimit(self, name: str) -> None:
        if name in self.pair.model.limits:
            self.pair.unlimit(name)

    @about("hosts")
    @rule(pick=ANY, is_closed=SELDOM)
    def close(self, pick: int, is_closed: bool) -> None:
        host = self.a_host(pick)
        if host.is_closed != is_closed:
            self.pair.close(host, is_closed=is_closed)

    @about("hosts")
    @rule(pick=ANY, is_locked=SELDOM, user_slots=BOUNDS, window=st.none() | WINDOWS)
    def configure(self, pick: int, **more: Any) -> None:
        self.pair.configure(self.a_host(pick), **more)

    @about("hosts")
    @rule(host=HOSTS)
    def one_more_host(self, host: Any) -> None:
        if len(self.pair.model.hosts) < 4:
            self.join(host)

    @about("hosts")
    @rule(pick=ANY, is_seldom=SELDOM)
    def drain(self, pick: int, is_seldom: bool) -> None:
        if is_seldom:
            self.pair.drain(self.a_host(pick))

    @about("load")
    @rule(
        name=QUEUE_NAMES,
        thresholds=THRESHOLDS,
        on_load=WAYS,
        stop_when=st.sampled_from([None, None, ("r1m", 2_000), ("it", 5_000)]),
        resume_when=st.sampled_from([None, None, None, ("it", 2_000), ("r1m", 0)]),
    )
    def bound_load(self, name: str, **more: Any) -> None:
        self.pair.queue(replace(self.pair.model.queues[name], **more))

    @about("load")
    @rule(pick=ANY, thresholds=THRESHOLDS)
    def bound_load_of_host(self, pick: int, thresholds: tuple[Threshold, ...]) -> None:
        self.pair.configure(self.a_host(pick), thresholds=thresholds)

    @about("load")
    @rule(loads=st.lists(LOADS, min_size=1, max_size=4), is_confirmed=st.booleans())
    def report_all_and_decide(self, loads: list[dict[str, int]], is_confirmed: bool) -> None:
        """
        Let all hosts report their load, decide, and have what was ordered done.
        """
        hosts = self.pair.model.hosts.values()
        for host, load in zip(hosts, loads, strict=False):
            if not host.is_gone:
                self.pair.report(host, load, {})
        self.session()
        if is_confirmed:
            self.confirm_all_and_decide()

    # -- what workers and time do

    def heard(self, *states: str) -> list[Job]:
        """
        Return the started jobs in some states whose first host has an agent that can report.
        """
        hosts = self.pair.model.hosts
        return [job for job in self.jobs(*states) if job.got and not hosts[job.got.first].is_gone]

    @about("hosts")
    @rule(pick=ANY, is_seldom=SELDOM)
    def leave(self, pick: int, is_seldom: bool) -> None:
        host = self.a_host(pick)
        if is_seldom and not host.is_gone:
            self.pair.leave(host)

    @about("hosts")
    @rule(pick=ANY, is_seldom=SELDOM, host=HOSTS)
    def join_again(self, pick: int, is_seldom: bool, host: Any) -> None:
        name = self.a_host(pick).name
        if is_seldom or self.pair.model.hosts[name].is_gone:
            self.join(host, name)

    @about("hosts")
    @rule(pick=ANY, is_seldom=SELDOM)
    def lose(self, pick: int, is_seldom: bool) -> None:
        host = self.a_host(pick)
        if is_seldom or host.is_gone:
            self.pair.lose(host)

    @about("hosts")
    @rule(
        pick=ANY,
        seconds=st.sampled_from([300, 600, 700]),
        has_left=SELDOM,
        comes_back=st.booleans(),
    )
    def lose_for_some_time(
        self, pick: int, seconds: int, has_left: bool, comes_back: bool
    ) -> None:
        """
        Lose the host of a started job, for less than the grace time or more.
        """
        jobs = self.heard("RUN", "SSUSP", "USUSP")
        if not jobs:
            return
        got = jobs[pick % len(jobs)].got
        assert got is not None, jobs
        host = self.pair.model.hosts[got.first]
        if has_left:
            self.pair.leave(host)
            self.session()
        self.pair.lose(host)
        self.session()
        self.pair.model.now_us += seconds * SECOND_US
        self.session()
        if comes_back and not host.is_gone:
            self.pair.report(host, {}, {})
            self.session()

    @rule(pick=ANY, load=LOADS, used=st.lists(FREE, max_size=3))
    def report(self, pick: int, load: dict[str, int], used: list[int]) -> None:
        host = self.a_host(pick)
        if host.is_gone:
            return
        on_host = [
            job.number
            for job in self.jobs(*LIVE)
            if job.got is not None and host.name in job.got.tasks
        ]
        self.pair.report(host, load, dict(zip(on_host, used, strict=False)))

    @rule(pick=ANY)
    def started(self, pick: int) -> None:
        jobs = [job for job in self.heard("RUN") if job.is_new]
        if jobs:
            self.pair.started(jobs[pick % len(jobs)])

    def ordered(self) -> list[Job]:
        return [job for job in self.heard(*LIVE) if job.order in ("suspend", "resume")]

    @precondition(lambda self: self.ordered())
    @rule(pick=ANY)
    def confirm(self, pick: int) -> None:
        jobs = self.ordered()
        self.pair.confirm(jobs[pick % len(jobs)])

    @rule()
    def confirm_all_and_decide(self) -> None:
        for job in self.ordered():
            self.pair.confirm(job)
        self.session()

    @rule(pick=ANY, exit_code=EXIT_CODES)
    def finish(self, pick: int, exit_code: int) -> None:
        jobs = self.heard(*LIVE)
        if jobs:
            self.pair.finish(jobs[pick % len(jobs)], exit_code)

    @rule(pick=ANY, exit_code=EXIT_CODES)
    def finish_and_decide(self, pick: int, exit_code: int) -> None:
        self.finish(pick, exit_code)
        self.session()

    @rule(seconds=st.sampled_from([1, 50, 200, 600]))
    def sleep(self, seconds: int) -> None:
        self.pair.sleep(seconds)

    @rule(seconds=st.sampled_from([1, 50, 200, 600]))
    def pass_time(self, seconds: int) -> None:
        self.pair.model.now_us += seconds * SECOND_US

    @rule()
    def session(self) -> None:
        self.pair.session()

    @invariant()
    def everything_is_alike(self) -> None:
        if hasattr(self, "pair"):
            self.pair.compare()

    def teardown(self) -> None:
        if hasattr(self, "pair") and self.pair.is_alike:
            self.pair.session()
            again = Engine.recover(self.pair.log)
            assert again.core.snapshot() == self.pair.engine.core.snapshot()


@pytest.mark.slow
def test_safety_the_core_decides_as_the_obvious_slow_scheduler() -> None:
    """
    What is fast and grouped and kept incrementally decides as rules that anybody can read.
    """
    run_state_machine_as_test(Twice, settings=SETTINGS)


def always_ready(*arguments: Any) -> None:
    """
    Keep nobody back for a begin time or a dependency.
    """


def one_slot_more(self: Limits, budget: Budget) -> Any:
    """
    Leave one unit more of every bound than there is.
    """
    return BALANCE(self, budget) + 1_000


def never_reached(*arguments: Any) -> tuple[int, str]:
    """
    Let jobs run for ever.
    """
    return 0, ""


def claimed_by_nobody(*arguments: Any) -> None:
    """
    Let each part of a request have what earlier ones got.
    """


def held_for_nobody(*arguments: Any) -> None:
    """
    Hold nothing for preemptors.
    """


def always_takes(worker: WorkerRecord) -> bool:
    """
    Have every host take jobs that is reached, also one that is closed or whose agent has left.
    """
    return not worker.is_silent


def never_beyond(bound: Any, milli: Any, ground: Ground) -> Any:
    """
    Find no load too much for a job to start.
    """
    return ground.takes | True


def nobody(*arguments: Any) -> list[Any]:
    """
    Stop nobody for the load of hosts.
    """
    return []


def its_own(self: State, spec: JobSpec, **more: Any) -> Any:
    """
    Let every job have its own requirement, whatever its profile says.
    """
    return spec.requirement


def never_protected(*arguments: Any) -> bool:
    """
    Let any running job be stopped for others, however long it has run.
    """
    return False


def nothing_bars(*arguments: Any) -> Iterator[Any]:
    """
    Start jobs that operators want on hosts that nobody reaches, or that exclusive jobs have.
    """
    return iter(())


def all_is_held(*arguments: Any) -> str:
    """
    Let hosts take more together than what they share.
    """
    return ""


def never_ran(*arguments: Any) -> int:
    """
    Count no time that jobs have run.
    """
    return 0


BALANCE = Limits.balance
SABOTAGES: dict[str, tuple[object, str, Any, str]] = {
    "readiness": (session, "kept_back", always_ready, "times"),
    "limits": (Limits, "balance", one_slot_more, "bounds"),
    "moments": (Orders, "_limit_reached", never_reached, "times"),
    "members": (Ground, "claim", claimed_by_nobody, "requests"),
    "holds": (own_view, "hold", held_for_nobody, "queues"),
    "hosts": (WorkerRecord, "takes_jobs", property(always_takes), "hosts"),
    "load": (loads, "_within", never_beyond, "load"),
    "stops": (Loads, "to_stop", nobody, "load"),
    "profiles": (State, "requirement_of", its_own, "profiles"),
    "protection": (Preemption, "_is_protected", never_protected, "queues"),
    "forced": (forcing, "_barred", nothing_bars, "forced hosts"),
    "pools": (bounds, "pools_hold", all_is_held, "pools"),
    "sharing": (JobRecord, "ran_us", never_ran, "sharing"),
    "percent": (limits, "PERCENT_MILLI", 10 * MILLI, "bounds"),
}
"""What is sabotaged: where, which rule, what stands in its place; and what such lives are about."""


SELDOM = ("percent", "pools")
"""What few lives meet: to find it takes 30 and 15 s, which is done everywhere but in CI."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [one for one in SABOTAGES if not (IN_CI and one in SELDOM)])
def test_sabotage_another_rule_in_the_core_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A comparison that another rule passes would prove nothing.
    """
    place, rule, other, themes = SABOTAGES[name]
    monkeypatch.setattr(place, rule, other)

    class About(Twice):
        only = frozenset(themes.split())

    with pytest.raises(AssertionError):
        run_state_machine_as_test(About, settings=FINDING)

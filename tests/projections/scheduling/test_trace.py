"""
What a decision trace tells: every level, plan, bucket and host that was tried, and what wasn't.
"""

from __future__ import annotations

import pytest

from domain.commands import DefineResource
from domain.resources import ResourceDescriptor, ResourceScope, SharedTotal
from projections.scheduling.placement.scan import Scan
from projections.scheduling.trace import DecisionTrace, Kind, Level, TraceSettings, Verdict
from projections.scheduling.trace_plans import PlanWriter
from projections.scheduling.trace_session import Tracing
from projections.scheduling.trace_store import TraceStore
from replay.debugger.show import Units
from replay.trace_words import line_text, outcome_text, trace_lines
from tests.builders import some_settings
from tests.projections.scheduling.policies import limit
from tests.projections.scheduling.preempting import queues, running
from tests.scenario import Scenario

SLOTS = "slots [number, release_on_suspend]"


@pytest.fixture
def scenario():
    """
    Return a scenario of the fast core: the literal one has no plans to tell of.
    """
    return Scenario()


def short(host, total, requested, *, used=0):
    """
    Return what is told of a host that is short of slots.
    """
    left = total - used
    return (
        f"{host}: short: {SLOTS} {used} of {total} in use, {used} reserved, {left} available, "
        f"{requested} requested, short of {requested - left}"
    )


def traced(scenario, **chosen):
    """
    Trace a scenario's sessions from now on; return where to.
    """
    store = TraceStore()
    scenario.core.tracing = Tracing(TraceSettings(**chosen), store)
    return store


def trace_of(scenario, store, name) -> DecisionTrace:
    found = store.get(scenario.ids[name])
    assert found is not None
    assert "" == found.broken
    return found


def told(trace, *kinds):
    """
    Return the lines of some kinds in words.
    """
    return [line_text(line, Units()) for line in trace.lines if line.kind in kinds]


def outcomes(trace, *kinds):
    """
    Return (kind, number, outcome) of the lines of some kinds.
    """
    return [(line.kind.value, line.number, line.outcome) for line in trace.lines
            if line.kind in kinds]  # fmt: skip


def test_each_bucket_tells_each_host_that_was_looked_at(scenario):
    """
    Taken, claimed before, or short of what by how much; the rollback; and which plans weren't
    tried any more.
    """
    scenario.hosts("h1 slots=2", "h2 slots=4", "h3 slots=1")
    store = traced(scenario)
    scenario.jobs("A tasks=5")

    scenario.session()

    trace = trace_of(scenario, store, "A")
    assert [
        "plan 1 [5]: discarded (no host left for a bucket of 5)",
        "1 bucket of 5 tasks: no host",
        short("h1", 2, 5),
        short("h2", 4, 5),
        short("h3", 1, 5),
        "plan 2 [3,2]: satisfied",
        "1 bucket of 3 tasks: placed",
        short("h1", 2, 3),
        "h2: taken",
        "1 bucket of 2 tasks: placed",
        "h1: taken",
        "3 later plans [2,2,1] to [1,1,1,1,1]: not tried",
    ] == told(trace, Kind.PLAN, Kind.BUCKET, Kind.HOST)
    assert "dispatched, by parjob, 5 tasks on 2 hosts" == outcome_text(trace.outcome)
    assert [("h2", 3), ("h1", 2)] == [(host.host, host.tasks) for host in trace.outcome.hosts]


def test_a_bucket_passes_over_hosts_that_an_earlier_one_claimed(scenario):
    """
    A host serves one bucket of a plan; the claims are released when a later bucket finds no host.
    """
    scenario.hosts("h1 slots=2", "h2 slots=2")
    store = traced(scenario)
    scenario.jobs("A tasks=5")

    scenario.session()

    lines = told(trace_of(scenario, store, "A"), Kind.PLAN, Kind.HOST)
    why = "no host left for a bucket of 1; 2 claims released"
    at = lines.index(f"plan 3 [2,2,1]: discarded ({why})")
    assert ["h1 to h2 (2 hosts): taken", "h1 to h2 (2 hosts): claimed before"] == (
        lines[at + 1 : at + 3]
    )


def test_alternatives_and_members_that_were_not_tried_are_told(scenario):
    """
    The first alternative fails at its second member, the second is taken, the third isn't tried;
    the fourth wasn't open yet.
    """
    scenario.hosts("h1 slots=4", "h2 slots=1")
    store = traced(scenario)
    first = "{2*{select[slots>0]}+9*{select[slots>0]}+1*{select[slots>0]}}"
    second = "{1*{select[slots>0]}+1*{select[hname==h2]}}"
    later = "{select[slots>2]} || {select[slots>3]}@10"
    scenario.submit("A", resreq=(f"{first} || {second} || {later}",))

    scenario.session()

    trace = trace_of(scenario, store, "A")
    assert [
        ("alternative", 1, "failed"),
        ("compound", 0, "failed"),
        ("primary", 1, "allocated"),
        ("primary", 2, "failed"),
        ("primary", 3, "not_tried"),
        ("alternative", 2, "allocated"),
        ("compound", 0, "allocated"),
        ("primary", 1, "allocated"),
        ("primary", 2, "allocated"),
        ("alternative", 3, "not_tried"),
        ("alternative", 4, "skipped"),
        ("merge", 0, "merged"),
    ] == outcomes(trace, Kind.ALTERNATIVE, Kind.COMPOUND, Kind.PRIMARY, Kind.MERGE)
    assert ["h1 selected out: the host doesn't match the job's select (hname == h2)"] == told(
        trace, Kind.SELECTED_OUT
    )


def test_checks_of_the_cluster_keep_every_row_a_host_only_the_unmet(scenario):
    """
    A shared resource that suffices is told as well; of a host only what it lacks.
    """
    for name, total in (("lic", 5_000), ("bw", 1_000)):
        descriptor = ResourceDescriptor(
            name=name, scope=ResourceScope.SHARED, is_consumable=True,
            totals=(SharedTotal(total_milli=total),),
        )  # fmt: skip
        scenario.command(DefineResource(descriptor=descriptor))
    scenario.hosts("h1 slots=4 mem_mb=100", "h2 slots=4 mem_mb=10")
    store = traced(scenario)
    scenario.submit("A", resreq=("rusage[lic=2:bw=1:mem=50]",))
    scenario.submit("B", resreq=("rusage[lic=2:bw=1:mem=80]",))
    scenario.submit("C", resreq=("rusage[lic=1:mem=80]",))

    scenario.session()

    flags = "[number, shared, consumable, per_job]"
    expected = (
        f"all together, lic: met: lic {flags} 2 of 5 in use, 2 reserved, 3 available, 2 requested, "
        f"met; all together, bw: short: bw {flags} 1 of 1 in use, 1 reserved, 0 available, "
        "1 requested, short of 1"
    )
    assert expected == "; ".join(told(trace_of(scenario, store, "B"), Kind.CHECK))
    mem = "short: mem [number, real, consumable]"
    expected = (
        f"h1: {mem} 50MB of 100MB in use, 50MB reserved, 50MB available, 80MB requested, short of "
        f"30MB; h2: {mem} 0MB of 10MB in use, 0MB reserved, 10MB available, 80MB requested, short "
        "of 70MB"
    )
    assert expected == "; ".join(told(trace_of(scenario, store, "C"), Kind.HOST))


def test_limits_are_told_with_scope_and_use_and_never_count_as_shortfalls(scenario):
    """
    A limit of each user, and one of a host: the outcome counts what is short apart from limits.
    """
    scenario.hosts("h1 slots=8", "h2 slots=1")
    limit(scenario, "few", users="each all", slots=3)
    limit(scenario, "host", hosts="each h1", slots=2)
    store = traced(scenario)
    scenario.jobs("A tasks=2", "B tasks=1", "C tasks=2")

    scenario.session()

    found = trace_of(scenario, store, "C")
    whole = "slots [number, limit, release_on_suspend]"
    by_host = "slots [number, limit, release_on_suspend, each_host]"
    expected = (
        f"limit few for each of users all; the budget of alice: reached: {whole} 3 of 3 in use, "
        "3 reserved, 0 available, 2 requested, short of 2; limit host for each of hosts h1: "
        f"reached: {by_host} 2 of 2 in use, 2 reserved, 0 available, 2 requested, short of 2"
    )
    assert expected == "; ".join(told(found, Kind.LIMIT))
    assert (0, 1) == (found.outcome.shortfalls, found.outcome.limits_reached)


def test_a_limit_of_hosts_is_the_hosts_verdict(scenario):
    """
    Where only a limit keeps a job from a host, the verdict is limit, not short.
    """
    scenario.hosts("h1 slots=8", "h2 slots=1")
    limit(scenario, "host", hosts="each h1", slots=2)
    store = traced(scenario)
    scenario.jobs("A tasks=4")

    scenario.session()

    trace = trace_of(scenario, store, "A")
    verdicts = [(line.host, line.outcome) for line in trace.lines if line.kind is Kind.HOST]
    assert [("h1", "limit"), ("h2", "short")] == verdicts[:2]
    assert (1, 1) == (trace.outcome.shortfalls, trace.outcome.limits_reached)


def test_the_same_request_is_skipped_and_names_who_proved_it(scenario):
    """
    Fresh ones are skipped by the cache; those that know their reasons aren't handed out at all.
    """
    scenario.hosts("h1 slots=1")
    store = traced(scenario)
    scenario.jobs("A tasks=2", "B tasks=2")
    scenario.session()
    first = trace_of(scenario, store, "B").outcome

    scenario.pass_time(10)
    scenario.close("h1")
    scenario.session()

    assert (Verdict.SKIPPED, "1") == (first.verdict, first.because_of)
    passed = trace_of(scenario, store, "B").passed
    assert passed is not None
    assert (Verdict.SKIPPED, "1", 2) == (
        passed.outcome.verdict, passed.outcome.because_of, passed.session.number,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("held", "no decision, held by its user"),
        ("dependency", "no decision, its dependency isn't satisfied yet"),
        ("inactive", "no decision, the queue is inactive"),
        ("behind", "no decision, an earlier job of the list can't start yet"),
        ("cut", "no decision, the session had made as many decisions as it may"),
        ("again", "no decision, its request proved unsatisfiable before, and nothing has changed"),
    ],
)
def test_a_job_without_a_decision_is_told_why(case, expected):
    """
    Held, not ready, of an inactive queue, behind another, or not come to: each has its record.
    """
    picker = "strict_fcfs" if case == "behind" else "builtin_fcfs"
    most = 1 if case == "cut" else 1_000
    scenario = Scenario(some_settings(picker=picker, session_max_decisions=most))
    scenario.hosts("h1 slots=2")
    store = traced(scenario)
    scenario.jobs("A tasks=2" if case == "cut" else "A tasks=3")
    if case == "dependency":
        scenario.submit("B", dependency_text="done(1)")
    else:
        scenario.jobs("B tasks=3" if case == "again" else "B tasks=1")
    if case == "held":
        scenario.hold("B")
    if case == "inactive":
        scenario.set_queue("normal", "inactive")

    scenario.session()
    if case == "again":
        scenario.session()

    trace = trace_of(scenario, store, "B")
    outcome = trace.passed.outcome if trace.passed else trace.outcome
    assert outcome_text(outcome).startswith(expected)
    assert ("1" if case in ("behind", "again") else "") == outcome.because_of
    assert trace.place == 0 or case == "again"


def test_victims_are_told_with_what_ranks_them(scenario):
    """
    The search for jobs to suspend, and whom it chose.
    """
    scenario.hosts("h1 slots=2")
    queues(scenario, "hi 90 >lo", "lo 10 <all")
    running(scenario, "A queue=lo tasks=1", "B queue=lo tasks=1")
    store = traced(scenario)
    scenario.submit("C", queue="hi", tasks_min=1)

    scenario.session()

    trace = trace_of(scenario, store, "C")
    assert Verdict.PREEMPTS is trace.outcome.verdict
    assert ["preemption, 2 jobs: possible (candidates in order of rank)"] == told(
        trace, Kind.PREEMPTION
    )
    assert [f"victim 1, job {scenario.ids['B']}: ordered"] == [
        text.split(" (")[0] for text in told(trace, Kind.VICTIM)
    ]


def test_an_outcome_names_fifty_hosts_and_sums_the_others(scenario):
    """
    Of a dispatch and of a pending job alike.
    """
    scenario.hosts(*(f"h{number:03} slots=1" for number in range(80)))
    store = traced(scenario)
    scenario.jobs("A tasks=70", "B tasks=90")

    scenario.session()

    placed, pended = (trace_of(scenario, store, name).outcome for name in "AB")
    assert (50, 70, [(20, 20)]) == (
        len(placed.hosts), placed.host_count, [(rest.hosts, rest.tasks) for rest in placed.rest],
    )  # fmt: skip
    assert (50, 80, [(30, "HOST_SLOTS")]) == (
        len(pended.hosts), pended.host_count, [(rest.hosts, rest.code) for rest in pended.rest],
    )  # fmt: skip


@pytest.mark.parametrize("bound", [1, 2, 7, 20, 100])
def test_what_is_left_out_beyond_the_bound_is_counted_exactly(bound):
    """
    Lines kept and lines left out are as many as there are without a bound.
    """
    counts = []
    for lines_max in (bound, 1_000_000):
        scenario = Scenario()
        scenario.hosts(*(f"h{number} slots={1 + number % 3}" for number in range(20)))
        store = traced(scenario, lines_max=lines_max)
        scenario.jobs("A tasks=9", "B tasks=40")
        scenario.session()
        traces = [trace_of(scenario, store, name) for name in "AB"]
        assert all(len(trace.lines) <= lines_max for trace in traces)
        counts.append([len(trace.lines) + trace.left_out for trace in traces])

    assert counts[0] == counts[1]


def test_a_summary_has_the_levels_without_plans_and_hosts(scenario):
    """
    Outcomes of levels, counts of plans, causes with how many hosts.
    """
    scenario.hosts("h1 slots=2", "h2 slots=4")
    store = traced(scenario, level=Level.SUMMARY)
    scenario.jobs("A tasks=5")

    scenario.session()

    kinds = {line.kind for line in trace_of(scenario, store, "A").lines}
    assert not kinds & {Kind.PLAN, Kind.BUCKET, Kind.HOST}
    assert ["parjob, 5 tasks, 2 plans on 2 hosts: allocated", "fill, 5 tasks: not tried"] == told(
        trace_of(scenario, store, "A"), Kind.ALLOCATOR
    )


def test_only_the_chosen_jobs_are_traced_from_the_next_session_on(scenario):
    """
    One job, or every element of an array; settings hold from one session to the next.
    """
    scenario.hosts("h1 slots=1")
    scenario.jobs("A tasks=1", "B tasks=1", "C tasks=1")
    store = traced(scenario, streams=frozenset({"job:0000000002"}))
    scenario.session()

    assert ["2"] == list(store.job_ids())
    scenario.core.tracing.settings = TraceSettings()
    assert ["2"] == list(store.job_ids())
    scenario.finish("A")
    scenario.session()
    assert ["2", "3"] == sorted(store.job_ids())


def test_a_new_trace_replaces_the_older_one(scenario):
    """
    One a job; a dispatch isn't replaced by sessions that have nothing to decide of it.
    """
    scenario.hosts("h1 slots=2")
    store = traced(scenario)
    scenario.jobs("A tasks=2", "B tasks=1")
    scenario.session()
    assert Verdict.PENDED is trace_of(scenario, store, "B").outcome.verdict

    scenario.finish("A")
    scenario.session()
    scenario.session()

    trace = trace_of(scenario, store, "B")
    assert (Verdict.DISPATCHED, 2) == (trace.outcome.verdict, trace.session.number)
    assert trace.passed is None
    assert 2 == len(store)


def test_what_goes_wrong_while_writing_reaches_no_decision(scenario, monkeypatch):
    """
    The trace says what happened; the job is decided as ever.
    """
    def fails(*args, **more):
        raise ValueError("no pen")

    monkeypatch.setattr(PlanWriter, "_host_line", fails)
    scenario.hosts("h1 slots=2")
    store = traced(scenario)
    scenario.jobs("A tasks=2")

    scenario.session()

    assert ["A dispatched: h1*2"] == scenario.decisions
    found = store.get("1")
    assert "ValueError: no pen" == found.broken
    assert "writing it failed" in "\n".join(trace_lines(found, Units()))


def test_untraced_placements_keep_the_short_cut(scenario, monkeypatch):
    """
    Plans are scanned one by one only for whom is traced.
    """
    scanned = []
    real = Scan.run
    monkeypatch.setattr(Scan, "run", lambda self, plans: scanned.append(1) or real(self, plans))
    scenario.hosts("h1 slots=9", "h2 slots=9 mem_mb=100")
    traced(scenario, streams=frozenset({"job:0000000002"}))

    scenario.jobs("A tasks=2")
    scenario.session()
    scenario.jobs("B tasks=2")
    scenario.session()

    assert [1] == scanned


@pytest.mark.parametrize(
    ("picker", "names"),
    [
        ("builtin_fcfs", []),
        ("strict_fcfs", []),
        ("easy", []),
        ("conservative", []),
        ("shortest_first", ["planned_run"]),
        ("fairshare", ["use over shares of default/alice"]),
    ],
)
def test_the_keys_of_the_order_are_those_of_the_picker(picker, names):
    """
    Each picker says itself what gave the job its place.
    """
    scenario = Scenario(some_settings(picker=picker))
    scenario.hosts("h1 slots=2")
    store = traced(scenario)
    scenario.submit("A", user_priority=5, run_limit_us=60_000_000)

    scenario.session()

    keys = trace_of(scenario, store, "A").keys
    usual = ["job_priority", "place", "queue_us", "job", "index"]
    assert ["queue_priority", *names, *usual] == [key.name for key in keys]
    assert ("job_priority", 5) == (keys[1 + len(names)].name, keys[1 + len(names)].value)


def test_what_is_promised_to_an_earlier_job_is_told(scenario):
    """
    Under EASY a job behind the first one is tried on terms, and says behind whom it waits.
    """
    scenario = Scenario(some_settings(picker="easy"))
    scenario.hosts("h1 slots=4", "h2 slots=4")
    store = traced(scenario)
    for name, tasks, limit_us in (("A", 5, 100), ("B", 8, 100), ("C", 3, 50), ("D", 3, 500)):
        us = limit_us * 1_000_000
        scenario.submit(name, tasks_min=tasks, tasks_max=tasks, run_limit_us=us,
                        resreq=("rusage[mem=0]",))  # fmt: skip
    scenario.session()

    first = scenario.ids["B"]
    assert told(trace_of(scenario, store, "C"), Kind.READINESS) == [
        "may start", f"job {first} must not be delayed: on terms",
    ]  # fmt: skip

"""
Load thresholds: hosts under too much load take no jobs, and running jobs are stopped there.
"""

from __future__ import annotations

import pytest

from domain.amounts import MEM, Amount
from domain.commands import ConfigureWorker, DefineResource, StopJob, WorkerReport
from domain.commands.jobs import ResumeJob
from domain.errors import Refused
from domain.jobs import HostChoice
from domain.preemption import OnPreempt
from domain.resources import ResourceDescriptor
from domain.resreq.syntax import Name, Primary, simple_requirement
from domain.thresholds import LoadThreshold
from domain.workers import HostSettings
from tests.projections.scheduling.policies import profile, queue
from tests.projections.scheduling.preempting import again, queues, running
from tests.scenario import Scenario


def bound(index: str, sched: int | None = None, stop: int | None = None) -> LoadThreshold:
    """
    Return a threshold in thousandths.
    """
    return LoadThreshold(index=index, sched_milli=sched, stop_milli=stop)


def set_host(scenario: Scenario, host: str, *thresholds: LoadThreshold) -> None:
    """
    Set a host's thresholds.
    """
    settings = HostSettings(thresholds=thresholds)
    scenario.command(ConfigureWorker(worker=host, settings=settings), actor="root")


def report(scenario: Scenario, host: str, **load: int) -> None:
    """
    Report a host's load in thousandths, a second after whatever was before.
    """
    scenario.pass_time(1)
    amounts = tuple(Amount(resource=name, milli=milli) for name, milli in load.items())
    scenario.command(WorkerReport(worker=host, incarnation=1, load=amounts), actor="")


def loaded(scenario: Scenario, *hosts: str, r1m: int = 0) -> None:
    """
    Let hosts join and report their load.
    """
    scenario.hosts(*hosts)
    for text in hosts:
        report(scenario, text.split()[0], r1m=r1m)


# ------------------------------------------------------------------------------ where jobs start


def test_nothing_starts_where_the_load_is_beyond_the_hosts_threshold(scenario: Scenario) -> None:
    """
    The bound itself isn't beyond; when the load falls, the host takes jobs again.
    """
    loaded(scenario, "h1 slots=2", "h2 slots=2", r1m=3_000)
    set_host(scenario, "h1", bound("r1m", sched=2_000))
    scenario.jobs("A tasks=4")
    scenario.session()
    assert "r1m short on h1" in scenario.reasons("A")

    report(scenario, "h1", r1m=2_000)
    scenario.session()

    assert "RUN" == scenario.states()["A"]


def test_a_queues_threshold_holds_for_its_own_jobs(scenario: Scenario) -> None:
    """
    Those of another queue start there all the same.
    """
    queue(scenario, "careful", thresholds=(bound("r1m", sched=1_000),))
    loaded(scenario, "h1", r1m=1_500)
    scenario.jobs("A queue=careful", "B")
    scenario.session()

    assert {"A": "PEND", "B": "RUN"} == scenario.states()
    assert "r1m short on h1" == scenario.reasons("A")


def test_of_the_hosts_and_the_queues_threshold_the_stricter_holds(scenario: Scenario) -> None:
    """
    The reason is told once, with the host's own bound where the load is beyond both.
    """
    queue(scenario, thresholds=(bound("r1m", sched=1_000),))
    loaded(scenario, "h1", "h2", r1m=3_000)
    set_host(scenario, "h1", bound("r1m", sched=2_000))
    scenario.jobs("A")
    scenario.session()
    kept = scenario.state.stored.reason_sets[scenario.job("A").reason_set]

    asked = [(each.requested_milli, [span.first for span in each.hosts]) for each in kept.reasons]
    assert [(2_000, [0]), (1_000, [1])] == asked
    assert [3_000] == list({span.available_milli for each in kept.reasons for span in each.hosts})
    report(scenario, "h1", r1m=1_500)
    scenario.session()
    assert "PEND" == scenario.states()["A"]
    report(scenario, "h1", r1m=1_000)
    scenario.session()
    assert "RUN" == scenario.states()["A"]


def test_less_is_too_much_where_more_is_better(scenario: Scenario) -> None:
    """
    Free memory and idle time have floors; memory that jobs have reserved isn't free.
    """
    scenario.hosts("h1 mem_mb=100")
    set_host(scenario, "h1", bound("mem", sched=60 * 1024 * 1000))
    scenario.jobs("A mem_mb=50")
    scenario.session()
    scenario.jobs("B")
    scenario.session()

    assert {"A": "RUN", "B": "PEND"} == scenario.states()
    assert "mem short on h1" == scenario.reasons("B")


def test_a_host_that_does_not_report_a_bounded_index_takes_no_jobs(scenario: Scenario) -> None:
    """
    Nobody knows whether it is under load.
    """
    scenario.hosts("h1", "h2 slots=1")
    set_host(scenario, "h1", bound("r1m", sched=2_000))
    scenario.jobs("A tasks=5")
    scenario.session()

    assert "LOAD_UNAVAIL (r1m) on h1; slots short on h2" == scenario.reasons("A")


def test_an_unknown_load_is_told_before_that_a_host_was_not_asked_for(scenario: Scenario) -> None:
    """
    LSF looks at the state of a host first, then at the queue's hosts and the job's.
    """
    scenario.hosts("h1", "h2 slots=5", "h3 slots=1")
    set_host(scenario, "h1", bound("r1m", sched=2_000))
    scenario.jobs("B tasks=5")
    scenario.session()
    scenario.submit("A", tasks_min=5, tasks_max=5, hosts=(HostChoice(host="h2"),))
    scenario.session()

    assert (
        "LOAD_UNAVAIL (r1m) on h1; HOST_USR_SPEC on h3; slots short on h2"
        == scenario.reasons("A")
    )


def test_a_full_host_says_so_before_it_tells_of_its_load(scenario: Scenario) -> None:
    """
    LSF looks at slots before it looks at load thresholds.
    """
    loaded(scenario, "h1 slots=1")
    running(scenario, "A")
    set_host(scenario, "h1", bound("r1m", sched=1_000))
    report(scenario, "h1", r1m=5_000)
    scenario.jobs("B")
    scenario.session()

    assert "slots short on h1; r1m short on h1" == scenario.reasons("B")


def test_a_load_that_can_fall_is_not_for_ever(scenario: Scenario) -> None:
    """
    A bound of memory above what the host has is.
    """
    loaded(scenario, "h1 mem_mb=100", r1m=9_000)
    set_host(scenario, "h1", bound("r1m", sched=0))
    scenario.jobs("A")
    scenario.session()
    assert not scenario.reasons("A").startswith("never")

    set_host(scenario, "h1", bound("mem", sched=200 * 1024 * 1000))
    scenario.session()

    assert "never: mem short on h1" == scenario.reasons("A")


def test_memory_that_a_host_only_reports_is_not_short_for_ever(scenario: Scenario) -> None:
    """
    It doesn't say how much it has in all, though another host does.
    """
    scenario.hosts("h1", "h2 slots=0 mem_mb=100")
    set_host(scenario, "h1", bound("mem", sched=60 * 1024 * 1000))
    report(scenario, "h1", mem=0)
    scenario.jobs("A")
    scenario.session()

    assert "slots short on h2; mem short on h1" == scenario.reasons("A")


def test_memory_that_a_host_only_reports_is_selected_by_its_reports(scenario: Scenario) -> None:
    """
    What it reports now says nothing of later; of what isn't a load only those have some that count
    it.
    """
    scenario.command(DefineResource(descriptor=ResourceDescriptor(name="gas", is_consumable=True)))
    scenario.hosts("h1", "h2 slots=0 mem_mb=40 gas=2")
    report(scenario, "h1", mem=10 * 1024 * 1000)
    scenario.submit("A", resreq=("select[mem>50]",))
    scenario.submit("B", resreq=("select[gas>2]",))
    scenario.session()
    assert "HOST_RES_REQ (mem > 50) on h1, h2" == scenario.reasons("A")
    assert "never: HOST_RES_REQ (gas > 2) on h1, h2" == scenario.reasons("B")

    report(scenario, "h1", mem=60 * 1024 * 1000)

    assert ["A dispatched: h1*1"] == scenario.session()


def test_without_its_threshold_the_host_takes_jobs_again(scenario: Scenario) -> None:
    """
    Nothing of a threshold that was taken away stays.
    """
    loaded(scenario, "h1", r1m=9_000)
    set_host(scenario, "h1", bound("r1m", sched=0))
    scenario.jobs("A")
    scenario.session()
    set_host(scenario, "h1")
    scenario.session()

    assert "RUN" == scenario.states()["A"]
    assert not scenario.state.capacity.load_bounds


# --------------------------------------------------------------------------- jobs that are stopped


def test_a_job_is_stopped_by_load_and_goes_on_when_it_has_fallen(scenario: Scenario) -> None:
    """
    Between the two thresholds it stays as it is.
    """
    loaded(scenario, "h1")
    set_host(scenario, "h1", bound("r1m", sched=1_000, stop=2_000))
    running(scenario, "A")
    report(scenario, "h1", r1m=2_000)
    assert [] == scenario.session()
    report(scenario, "h1", r1m=2_001)
    assert ["A stop ordered on h1: SUSP_LOAD(r1m)"] == scenario.session()
    scenario.suspended("A")
    assert "SSUSP" == scenario.states()["A"]

    report(scenario, "h1", r1m=1_500)
    assert [] == scenario.session()
    report(scenario, "h1", r1m=1_000)

    assert ["A resume ordered on h1"] == scenario.session()
    scenario.resumed("A")
    assert "RUN" == scenario.states()["A"]


def test_one_job_of_a_host_is_stopped_for_each_report(scenario: Scenario) -> None:
    """
    The lowest queue's first, then the one that was started last: what it did isn't known before
    the next report.
    """
    queues(scenario, "hi 90", "lo 10")
    loaded(scenario, "h1", "h2 slots=1")
    running(scenario, "A queue=lo", "B queue=hi", "C queue=lo")
    set_host(scenario, "h1", bound("r1m", stop=2_000))
    report(scenario, "h1", r1m=4_000)
    found = []
    for name in ("C", "A", "B"):
        found.append(scenario.session())
        scenario.suspended(name)
        assert [] == scenario.session()
        report(scenario, "h1", r1m=4_000)

    assert [[f"{name} stop ordered on h1: SUSP_LOAD(r1m)"] for name in ("C", "A", "B")] == found
    report(scenario, "h1", r1m=0)
    assert ["B", "A", "C"] == [words.split()[0] for words in scenario.session()]


def test_load_on_any_of_its_hosts_stops_a_job(scenario: Scenario) -> None:
    """
    It goes on when none of them is under load any more; the order goes to its first host.
    """
    loaded(scenario, "h1 slots=1", "h2 slots=1")
    queue(scenario, thresholds=(bound("r1m", sched=1_000, stop=2_000),))
    running(scenario, "A tasks=2")
    report(scenario, "h2", r1m=3_000)
    assert ["A stop ordered on h1: SUSP_LOAD(r1m)"] == scenario.session()
    scenario.suspended("A")
    report(scenario, "h1", r1m=3_000)
    report(scenario, "h2", r1m=0)
    assert [] == scenario.session()
    report(scenario, "h1", r1m=0)

    assert ["A resume ordered on h1"] == scenario.session()


def test_what_stops_jobs_lets_none_start(scenario: Scenario) -> None:
    """
    Otherwise one would start only to be stopped.
    """
    loaded(scenario, "h1", r1m=3_000)
    set_host(scenario, "h1", bound("r1m", stop=2_000))
    scenario.jobs("A")
    scenario.session()

    assert "r1m short on h1" == scenario.reasons("A")


def test_a_job_that_its_user_lets_go_on_waits_for_the_load(scenario: Scenario) -> None:
    """
    LSF looks at the host's conditions before a job goes on, whoever stopped it.
    """
    loaded(scenario, "h1")
    set_host(scenario, "h1", bound("r1m", sched=1_000))
    running(scenario, "A")
    scenario.command(StopJob(job_id=scenario.ids["A"]))
    scenario.session()
    scenario.suspended("A")
    report(scenario, "h1", r1m=5_000)
    scenario.command(ResumeJob(job_id=scenario.ids["A"]))
    assert [] == scenario.session()
    assert "SSUSP" == scenario.states()["A"]
    report(scenario, "h1", r1m=500)

    assert ["A resume ordered on h1"] == scenario.session()


@pytest.mark.parametrize(
    ("how", "state"), [(OnPreempt.KILL, "EXIT"), (OnPreempt.REQUEUE, "PEND")]
)
def test_a_queue_may_have_its_jobs_ended_or_put_back_by_load(
    how: OnPreempt, state: str, scenario: Scenario
) -> None:
    """
    LSF's TERMINATE_WHEN=LOAD, and SUSPEND[brequeue].
    """
    queue(scenario, thresholds=(bound("r1m", stop=2_000),), on_load=how)
    loaded(scenario, "h1")
    running(scenario, "A", "B")
    report(scenario, "h1", r1m=3_000)
    assert ["B kill ordered on h1: TERM_LOAD"] == scenario.session()
    assert [] == scenario.session()
    scenario.finish("B", exit_code=143)
    scenario.session()

    assert {"A": "RUN", "B": state} == scenario.states()
    if state == "EXIT":
        assert "TERM_LOAD" == scenario.job("B").why


def test_a_core_restored_in_the_middle_stops_and_resumes_alike(scenario: Scenario) -> None:
    """
    What was stopped for which report is part of the state.
    """
    loaded(scenario, "h1")
    set_host(scenario, "h1", bound("r1m", stop=2_000))
    running(scenario, "A", "B")
    report(scenario, "h1", r1m=3_000)
    scenario.core = again(scenario)
    assert ["B stop ordered on h1: SUSP_LOAD(r1m)"] == scenario.session()
    scenario.suspended("B")
    scenario.core = again(scenario)
    assert [] == scenario.session()
    report(scenario, "h1", r1m=1_000)
    scenario.core = again(scenario)

    assert ["B resume ordered on h1"] == scenario.session()


def test_of_two_loads_that_nobody_reports_a_restored_core_names_the_same(
    scenario: Scenario,
) -> None:
    """
    Whatever was bounded first: a reason that depends on it would be told anew after each restart.
    """
    scenario.hosts("h1")
    set_host(scenario, "h1", bound("r1m", sched=1_000))
    set_host(scenario, "h1", bound("it", stop=1_000), bound("r1m", sched=1_000))
    scenario.jobs("A")
    scenario.session()
    assert "LOAD_UNAVAIL (it) on h1" == scenario.reasons("A")
    scenario.core = again(scenario)

    assert [] == scenario.session()


# ----------------------------------------------------------------------------------- what is asked


@pytest.mark.parametrize(
    ("thresholds", "rule"),
    [
        ((bound("nothing", sched=1),), "load index"),
        ((bound("maxmem", sched=1),), "load index"),
        ((bound("type", sched=1),), "load index"),
        ((bound("slots", sched=1),), "load index"),
        ((bound("cpu", sched=1), bound("r1m", stop=1)), "once"),
        ((bound("r1m"),), "sched_milli, stop_milli or both"),
        ((bound("r1m", sched=2, stop=1),), "may start"),
        ((bound("mem", sched=1, stop=2),), "may start"),
    ],
)
def test_thresholds_that_make_no_sense_are_refused(
    thresholds: tuple[LoadThreshold, ...], rule: str, scenario: Scenario
) -> None:
    """
    One error names the field and the rule, for a host as for a queue.
    """
    scenario.hosts("h1 mem_mb=100")
    for ask in (
        lambda: set_host(scenario, "h1", *thresholds),
        lambda: queue(scenario, thresholds=thresholds),
    ):
        with pytest.raises(Refused, match=rule) as caught:
            ask()
        assert "thresholds" == caught.value.field


def test_an_alias_is_kept_as_what_it_means_and_a_site_may_bound_an_index_of_its_own(
    scenario: Scenario,
) -> None:
    """
    So that load reports, which use the real names, are compared with it.
    """
    descriptor = ResourceDescriptor(name="heat", lower_is_better=True, is_load=True)
    scenario.command(DefineResource(descriptor=descriptor))
    scenario.hosts("h1 mem_mb=100")
    set_host(scenario, "h1", bound("cpu", sched=1_000), bound("heat", sched=60_000))
    worker = scenario.state.stored.workers["h1"]
    assert ["r1m", "heat"] == [each.index for each in worker.settings.thresholds]
    report(scenario, "h1", r1m=0, heat=61_000, **{MEM: 1})
    scenario.jobs("A")
    scenario.session()

    assert "heat short on h1" == scenario.reasons("A")


@pytest.mark.parametrize("of_queue", [False, True])
def test_between_the_two_thresholds_nothing_starts(of_queue: bool, scenario: Scenario) -> None:
    """
    Of the two the first is reached first, whichever way the index points.
    """
    scenario.hosts("h1", "h2")
    for host, threshold in (("h1", bound("r1m", 1_000, 2_000)), ("h2", bound("it", 9_000, 2_000))):
        if not of_queue:
            set_host(scenario, host, threshold)
    if of_queue:
        queue(scenario, thresholds=(bound("r1m", 1_000, 2_000), bound("it", 9_000, 2_000)))
    report(scenario, "h1", r1m=1_500, it=9_000)
    report(scenario, "h2", r1m=1_000, it=5_000)
    scenario.jobs("A")
    scenario.session()

    told = ["it short on h2", "r1m short on h1"]
    assert "; ".join(reversed(told) if of_queue else told) == scenario.reasons("A")


def test_a_requirement_of_a_queue_given_parsed_is_checked(scenario: Scenario) -> None:
    """
    As one of a job: what nobody has is refused, however it was said.
    """
    nothing = simple_requirement(Primary(select=Name(kind="name", name="nothing")))

    with pytest.raises(Refused, match="no resource nothing"):
        queue(scenario, "polite", requirement=nothing)
    with pytest.raises(Refused, match="no resource nothing"):
        profile(scenario, "polite", requirement=nothing)

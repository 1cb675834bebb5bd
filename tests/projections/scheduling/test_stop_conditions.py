"""
Stop and resume conditions: selects of hosts where a queue's jobs are stopped, and where they go on.
"""

from __future__ import annotations

import pytest

from domain.errors import Refused
from domain.preemption import OnPreempt
from tests.builders import MB_MILLI
from tests.projections.scheduling.policies import queue
from tests.projections.scheduling.preempting import again, running
from tests.projections.scheduling.test_loads import loaded, report
from tests.scenario import Scenario


def test_a_queue_may_say_in_a_select_where_its_jobs_are_stopped_and_go_on(
    scenario: Scenario,
) -> None:
    """
    LSF's STOP_COND and RESUME_COND; the jobs of other queues aren't concerned.
    """
    queue(
        scenario,
        "polite",
        stop_condition="r1m > 2 && it < 5",
        resume_condition="select[it >= 10]",
    )
    scenario.hosts("h1")
    report(scenario, "h1", r1m=0, it=30_000)
    running(scenario, "A queue=polite", "B")
    report(scenario, "h1", r1m=3_000, it=30_000)
    assert [] == scenario.session()
    report(scenario, "h1", r1m=3_000, it=1_000)
    assert ["A stop ordered on h1: SUSP_QUE_STOP_COND"] == scenario.session()
    scenario.suspended("A")
    scenario.core = again(scenario)
    report(scenario, "h1", r1m=0, it=7_000)
    assert [] == scenario.session()
    report(scenario, "h1", r1m=9_000, it=10_000)

    assert ["A resume ordered on h1"] == scenario.session()


@pytest.mark.parametrize(
    ("field", "text", "rule"),
    [
        ("stop_condition", "nothing > 2", "no resource nothing"),
        ("resume_condition", "rusage[mem=1]", "select alone"),
        ("stop_condition", "r1m>1 order[mem]", "select alone"),
        ("stop_condition", "{select[r1m>1]} || {select[r1m>2]}", "select alone"),
        ("resume_condition", "r1m >", "resume_condition"),
        ("stop_condition", "r1m>1 || slots<1", "slots changes with the jobs themselves"),
    ],
)
def test_a_condition_that_is_no_select_is_refused(
    field: str, text: str, rule: str, scenario: Scenario
) -> None:
    """
    The error names the field, as the requirement's own parser names the place.
    """
    with pytest.raises(Refused, match=rule) as caught:
        queue(scenario, **{field: text})
    assert field == caught.value.field


@pytest.mark.parametrize("plain", [False, True])
def test_a_job_that_was_put_back_is_not_started_where_it_would_be_stopped_again(
    *, plain: bool
) -> None:
    """
    Else it would start, be put back at the next report, and so on for as long as the load lasts.
    """
    scenario = Scenario(plain=plain)
    queue(scenario, "polite", stop_condition="r1m > 2", on_load=OnPreempt.REQUEUE)
    loaded(scenario, "h1", "h2", r1m=3_000)
    report(scenario, "h1", r1m=0)
    running(scenario, "A queue=polite")
    report(scenario, "h1", r1m=3_000)
    assert ["A kill ordered on h1: TERM_LOAD"] == scenario.session()
    scenario.finish("A")
    scenario.jobs("B")
    scenario.session()
    assert {"A": "PEND", "B": "RUN"} == scenario.states()
    assert "HOST_STOP_COND on h1, h2" == scenario.reasons("A")

    report(scenario, "h2", r1m=2_000)

    assert ["A dispatched: h2*1"] == scenario.session()


def test_a_host_that_does_not_report_what_a_stop_condition_names_takes_jobs(
    scenario: Scenario,
) -> None:
    """
    The condition doesn't hold there, so nobody would be stopped either.
    """
    queue(scenario, "polite", stop_condition="r1m > 2 || it < 5")
    scenario.hosts("h1")
    report(scenario, "h1", it=1_000)
    running(scenario, "A queue=polite")

    assert [] == scenario.session()


def test_no_job_is_stopped_for_what_it_reserves_itself(scenario: Scenario) -> None:
    """
    A stop condition goes by what the host reports, as thresholds do.
    """
    queue(scenario, "polite", stop_condition="mem < 200MB")
    scenario.hosts("h1 slots=2 mem_mb=300")
    report(scenario, "h1", mem=300 * MB_MILLI)
    running(scenario, "A queue=polite mem_mb=250")
    report(scenario, "h1", mem=290 * MB_MILLI)
    assert [] == scenario.session()

    report(scenario, "h1", mem=100 * MB_MILLI)

    assert ["A stop ordered on h1: SUSP_QUE_STOP_COND"] == scenario.session()


def test_a_condition_is_what_its_text_says_alone(scenario: Scenario) -> None:
    """
    Whoever changes a definition hands back what was made of the old text: a condition whose text is
    taken away is gone, and one without text, which nobody checked, never counts. It would have
    ended the scheduler at the next report.
    """
    queue(scenario, "polite", stop_condition="r1m > 2", resume_condition="it >= 10")
    known = scenario.state.stored.queues["polite"].spec

    queue(scenario, "polite", stop_when=known.stop_when, resume_when=known.resume_when)

    spec = scenario.state.stored.queues["polite"].spec
    assert (None, None) == (spec.stop_when, spec.resume_when)


@pytest.mark.parametrize("plain", [False, True])
def test_a_load_that_a_job_brings_about_itself_puts_it_back_once(*, plain: bool) -> None:
    """
    Else it would begin anew at every other report, for ever: there it is suspended the next time,
    goes on when the load has fallen, and so comes to its end.
    """
    scenario = Scenario(plain=plain)
    queue(scenario, "polite", stop_condition="r1m > 2", on_load=OnPreempt.REQUEUE)
    loaded(scenario, "h1")
    report(scenario, "h1", r1m=0)
    running(scenario, "A queue=polite")
    report(scenario, "h1", r1m=3_000)
    assert ["A kill ordered on h1: TERM_LOAD"] == scenario.session()
    scenario.finish("A")
    assert ["A requeued: load", "A pended: HOST_STOP_COND on h1"] == scenario.session()
    report(scenario, "h1", r1m=0)
    assert ["A dispatched: h1*1"] == scenario.session()
    scenario.start("A")

    report(scenario, "h1", r1m=3_000)

    assert ["A stop ordered on h1: SUSP_QUE_STOP_COND"] == scenario.session()
    scenario.suspended("A")
    report(scenario, "h1", r1m=0)
    assert ["A resume ordered on h1"] == scenario.session()
    scenario.resumed("A")
    loaded(scenario, "h2")
    report(scenario, "h2", r1m=0)
    scenario.finish("A")
    assert [] == scenario.session()


@pytest.mark.parametrize("plain", [False, True])
def test_it_is_put_back_from_each_host(*, plain: bool) -> None:
    """
    That is what its queue asks for: it may find one with less load.
    """
    scenario = Scenario(plain=plain)
    queue(scenario, "polite", stop_condition="r1m > 2", on_load=OnPreempt.REQUEUE)
    loaded(scenario, "h1", "h2")
    for host in ("h1", "h2"):
        report(scenario, host, r1m=0)
    running(scenario, "A queue=polite")
    report(scenario, "h1", r1m=3_000)
    scenario.session()
    scenario.finish("A")
    assert "A dispatched: h2*1" in scenario.session()
    scenario.core = again(scenario)
    scenario.start("A")

    report(scenario, "h2", r1m=3_000)

    assert ["A kill ordered on h2: TERM_LOAD"] == scenario.session()
    assert (0, 1) == scenario.job("A").eased_hosts

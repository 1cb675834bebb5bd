"""
Every termination reason that jobs here can have is brought about by one test.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from domain.amounts import MEM, Amount
from domain.commands import (
    JobCouldNotStartReport,
    JobFinishedReport,
    MarkUnreachable,
    RequeueJob,
    WorkerReport,
)
from domain.events.workers import JobUsage
from domain.jobs import JobLimits
from domain.preemption import OnPreempt
from domain.terminations import Termination
from domain.thresholds import LoadThreshold
from domain.windows import parse_windows
from tests.builders import MB_MILLI, SECOND_US, some_settings
from tests.projections.scheduling.policies import queue
from tests.projections.scheduling.preempting import queues
from tests.scenario import Scenario

Provoke = Callable[[Scenario], object]
PROVOKERS: dict[str, Provoke] = {}
"""Reason -> what gives it to the job ``A``, which runs on h1, in the sessions that follow."""

OURS = {"TERM_LOST_HOST"}
"""Reasons that LSF doesn't have."""

NOT_GIVEN = {
    "TERM_UNKNOWN", "TERM_OTHER", "TERM_CHKPNT", "TERM_RMS", "TERM_ZOMBIE", "TERM_SLURM",
    "TERM_BUCKET_KILL", "TERM_CTRL_PID", "TERM_CWD_NOTEXIST", "TERM_DATA", "TERM_MC_RECALL",
    "TERM_RC_RECLAIM", "TERM_CSM_ALLOC", "TERM_KUBE",
}  # fmt: skip
"""Reasons of LSF that nothing here brings about; docs/reasons.md says why."""


def gives(code: str) -> Callable[[Provoke], Provoke]:
    """
    Name the reason that a function brings about.
    """

    def note(provoke: Provoke) -> Provoke:
        assert code not in PROVOKERS, code
        PROVOKERS[code] = provoke
        return provoke

    return note


def used(scenario: Scenario, *, mem_kib: int = 0, swp_kib: int = 0, **more: int) -> None:
    """
    Report what A uses.
    """
    amounts = (
        Amount(resource=MEM, milli=mem_kib * 1000), Amount(resource="swp", milli=swp_kib * 1000),
    )  # fmt: skip
    usage = JobUsage(job_id=scenario.ids["A"], attempt=1, amounts=amounts, **more)
    scenario.command(WorkerReport(worker="h1", incarnation=1, jobs=(usage,)), actor="")


@gives("TERM_MEMLIMIT")
def it_uses_more_memory(scenario: Scenario) -> None:
    used(scenario, mem_kib=1_001)


@gives("TERM_SWAP")
def it_uses_more_swap_space(scenario: Scenario) -> None:
    used(scenario, swp_kib=1_001)


@gives("TERM_CPULIMIT")
def it_uses_more_processor_time(scenario: Scenario) -> None:
    used(scenario, cpu_us=10 * SECOND_US + 1)


@gives("TERM_PROCESSLIMIT")
def it_has_more_processes(scenario: Scenario) -> None:
    used(scenario, processes=6)


@gives("TERM_THREADLIMIT")
def it_has_more_threads(scenario: Scenario) -> None:
    used(scenario, threads=9)


@gives("TERM_RUNLIMIT")
def it_runs_for_longer(scenario: Scenario) -> None:
    scenario.pass_time(60)


@gives("TERM_DEADLINE")
def its_deadline_comes(scenario: Scenario) -> None:
    scenario.pass_time(50)


@gives("TERM_OWNER")
def its_user_kills_it(scenario: Scenario) -> None:
    scenario.kill("A")


@gives("TERM_ADMIN")
def an_administrator_kills_it(scenario: Scenario) -> None:
    scenario.kill("A", actor="root")


@gives("TERM_FORCE_OWNER")
def its_user_ends_it_by_force(scenario: Scenario) -> None:
    scenario.kill("A", force=True)


@gives("TERM_FORCE_ADMIN")
def an_administrator_ends_it_by_force(scenario: Scenario) -> None:
    scenario.kill("A", actor="root", force=True)


@gives("TERM_REQUEUE_OWNER")
def its_user_puts_it_back(scenario: Scenario) -> None:
    scenario.command(RequeueJob(job_id=scenario.ids["A"]))


@gives("TERM_REQUEUE_ADMIN")
def an_administrator_puts_it_back(scenario: Scenario) -> None:
    scenario.command(RequeueJob(job_id=scenario.ids["A"]), actor="root")


@gives("TERM_WINDOW")
def its_window_closes(scenario: Scenario) -> None:
    windows = parse_windows("8:00-9:00")
    queue(scenario, run_windows=windows, on_window=OnPreempt.KILL)


@gives("TERM_LOAD")
def its_host_is_under_load(scenario: Scenario) -> None:
    threshold = LoadThreshold(index=MEM, stop_milli=100 * MB_MILLI)
    queue(scenario, thresholds=(threshold,), on_load=OnPreempt.KILL)
    free = (Amount(resource=MEM, milli=10 * MB_MILLI),)
    scenario.command(WorkerReport(worker="h1", incarnation=1, load=free), actor="")


@gives("TERM_PREEMPT")
def another_job_needs_its_host(scenario: Scenario) -> None:
    queues(scenario, "normal 30 <all", on_preempt=OnPreempt.KILL)
    queues(scenario, "hi 90 >normal")
    scenario.jobs("B queue=hi")


@gives("TERM_EXTERNAL_SIGNAL")
def a_signal_ends_it(scenario: Scenario) -> None:
    scenario.end_by("A", 11)


@gives("TERM_PRE_EXEC_FAIL")
def its_pre_exec_says_that_it_is_no_use(scenario: Scenario) -> None:
    about = {"worker": "h1", "incarnation": 1, "job_id": scenario.ids["A"], "attempt": 1}
    report = JobCouldNotStartReport(**about, why="it failed", pre_exec_of="job", pre_exec_exit=99)
    scenario.command(report, actor="")


@gives("TERM_ORPHAN_SYSTEM")
def what_it_waits_for_can_never_be(scenario: Scenario) -> None:
    scenario.submit("A", dependency_text="done(1)", ends_as_orphan=True)
    about = {"worker": "h1", "incarnation": 1, "job_id": "1", "attempt": 1}
    scenario.command(JobFinishedReport(**about, exit_code=1), actor="")


@gives("TERM_REMOVE_HUNG_JOB")
def it_does_not_end_as_ordered(scenario: Scenario) -> None:
    scenario.kill("A")
    scenario.session()
    scenario.pass_time(30)


@gives("TERM_LOST_HOST")
def its_host_stays_silent(scenario: Scenario) -> None:
    silent = MarkUnreachable(worker="h1", incarnation=1, silent_us=1)
    scenario.command(silent, actor="")
    scenario.pass_time(40)


@pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
@pytest.mark.parametrize("code", PROVOKERS)
def test_a_reason_is_given(code: str, plain: bool) -> None:
    """
    To the job, or with the order to end it.
    """
    settings: dict[str, Any] = {"hung_after_us": 30 * SECOND_US, "lost_grace_us": 20 * SECOND_US}
    scenario = Scenario(some_settings(**settings), plain=plain)
    scenario.hosts("h1 slots=1 mem_mb=1000")
    limits = JobLimits(
        memory_kib=1_000, swap_kib=1_000, cpu_us=10 * SECOND_US, processes=5, threads=8
    )
    ends_by = {"deadline_us": 51 * SECOND_US} if code == "TERM_DEADLINE" else {}
    run_limit_us = None if ends_by else 60 * SECOND_US
    scenario.submit("A", limits=limits, run_limit_us=run_limit_us, **ends_by)
    assert ["A dispatched: h1*1"] == scenario.session()
    scenario.start("A")
    if code == "TERM_LOST_HOST":
        assert [] == scenario.session()
    PROVOKERS[code](scenario)

    told = " ".join(scenario.session())

    assert re.search(rf"\b{code}\b", told) or scenario.job("A").why == code


@pytest.mark.parametrize(
    "within",
    [{"mem_kib": 1_000}, {"swp_kib": 1_000}, {"cpu_us": 10 * SECOND_US}, {"processes": 5},
     {"threads": 8}],
)  # fmt: skip
def test_what_is_within_a_limit_ends_nothing(scenario: Scenario, within: dict[str, int]) -> None:
    """
    A limit is the most that may be used.
    """
    scenario.hosts("h1")
    limits = JobLimits(
        memory_kib=1_000, swap_kib=1_000, cpu_us=10 * SECOND_US, processes=5, threads=8
    )
    scenario.submit("A", limits=limits)
    scenario.session()

    used(scenario, **within)

    assert [] == scenario.session()


def test_memory_of_all_hosts_counts(scenario: Scenario) -> None:
    """
    The limit is the job's, wherever its tasks are.
    """
    scenario.hosts("h1 slots=1", "h2 slots=1")
    limits = JobLimits(memory_kib=1_000)
    scenario.submit("A", limits=limits, tasks_min=2, tasks_max=2)
    scenario.session()
    used(scenario, mem_kib=600)
    assert [] == scenario.session()
    usage = JobUsage(job_id="1", attempt=1, amounts=(Amount(resource=MEM, milli=600_000),))
    scenario.command(WorkerReport(worker="h2", incarnation=1, jobs=(usage,)), actor="")

    assert ["A kill ordered on h1: TERM_MEMLIMIT"] == scenario.session()


def test_every_reason_is_given_or_said_not_to_be() -> None:
    """
    One that nothing can bring about would be a word that people look for in vain.
    """
    assert {each.value for each in Termination} == (set(PROVOKERS) | NOT_GIVEN) - OURS
    assert not set(PROVOKERS) & NOT_GIVEN

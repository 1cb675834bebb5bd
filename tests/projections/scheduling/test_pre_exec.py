"""
A command before the job's own that fails: the job is tried elsewhere, or not again.
"""

from __future__ import annotations

import pytest

from domain.commands import JobCouldNotStartReport, StartScheduler
from domain.effective import Around, around
from domain.jobs import FileTransfer, Program
from domain.profiles import ProfileSpec
from domain.queues import QueueSpec
from projections.scheduling.status import why_waiting
from tests.builders import some_settings
from tests.scenario import Scenario

STARTED_AGAIN = StartScheduler(
    epoch=2, holder="test", code_version="test", pickers=(), allocators=(), awaits_workers=True
)


@pytest.fixture(params=["fast", "plain"])
def stepwise(request: pytest.FixtureRequest) -> Scenario:
    """
    Return a scenario with two hosts whose sessions make one decision each.
    """
    settings = some_settings(session_max_decisions=1)
    scenario = Scenario(settings, plain=request.param == "plain")
    scenario.hosts("h1 slots=1", "h2 slots=1")
    return scenario


def fails(scenario: Scenario, name: str, owner: str, code: int = 1) -> list[str]:
    """
    Let what runs before a job fail, and return what is decided at once.
    """
    report = JobCouldNotStartReport(
        **scenario._report(name), why="exit code", pre_exec_of=owner, pre_exec_exit=code
    )
    scenario.command(report, actor="")
    return scenario.session()


def reason_of(scenario: Scenario, name: str) -> str:
    _, reasons = why_waiting(scenario.state, scenario.job(name))
    return " ".join(one.code.value for one in reasons)


@pytest.mark.parametrize(
    ("owner", "why", "code"),
    [
        pytest.param(
            "queue", "queue pre-exec", "QUE_PRE_FAIL", marks=pytest.mark.provokes("QUE_PRE_FAIL")
        ),
        pytest.param(
            "job", "job pre-exec", "JOB_PRE_EXEC", marks=pytest.mark.provokes("JOB_PRE_EXEC")
        ),
        ("profile", "job pre-exec", "JOB_PRE_EXEC"),
    ],
)
def test_a_job_whose_pre_exec_fails_is_put_back_and_starts_on_another_host(
    stepwise: Scenario, owner: str, why: str, code: str
) -> None:
    """
    The host may be at fault: the job keeps its place and avoids that host; nothing of it runs twice
    at the same place in a loop.
    """
    stepwise.jobs("A", "B")
    stepwise.session()

    put_back = fails(stepwise, "A", owner)
    waits = reason_of(stepwise, "A")

    assert ([f"A requeued: {why}"], code) == (put_back, waits)
    assert ["A dispatched: h2*1"] == stepwise.session()
    assert 2 == stepwise.job("A").attempt


def test_a_pre_exec_that_fails_everywhere_makes_the_job_wait_until_its_hold_is_lifted(
    stepwise: Scenario,
) -> None:
    """
    Whoever mended what was wrong says so by xce stop and xce resume.
    """
    stepwise.jobs("A")
    stepwise.session()
    fails(stepwise, "A", "queue")
    stepwise.session()
    fails(stepwise, "A", "queue")
    stepwise.session()
    avoided = reason_of(stepwise, "A")
    stepwise.hold("A")
    stepwise.lift("A")

    assert "SBD_JOB_REQUEUE" == avoided
    assert ["A dispatched: h1*1"] == stepwise.session()


def test_a_start_of_the_scheduler_forgets_where_jobs_failed(stepwise: Scenario) -> None:
    """
    As in LSF: nobody knows how long ago it was and what has been mended since.
    """
    stepwise.jobs("A")
    stepwise.session()
    fails(stepwise, "A", "job")
    stored = stepwise.state.stored
    plugins = {"pickers": stored.pickers, "allocators": stored.allocators}
    stepwise.command(STARTED_AGAIN.model_copy(update=plugins), actor="")
    stepwise.hosts("h1 slots=1")

    assert ["A dispatched: h1*1"] == stepwise.session()


def test_a_pre_exec_that_ends_with_99_ends_the_job(stepwise: Scenario) -> None:
    """
    It says that there is no use in trying again.
    """
    stepwise.jobs("A")
    stepwise.session()

    assert [] == fails(stepwise, "A", "job", code=99)
    assert ("EXIT", "TERM_PRE_EXEC_FAIL") == (stepwise.states()["A"], stepwise.job("A").why)


def test_a_job_that_is_to_end_does_not_go_back(stepwise: Scenario) -> None:
    """
    Its user wants it gone.
    """
    stepwise.jobs("A")
    stepwise.session()
    stepwise.kill("A")
    fails(stepwise, "A", "queue")

    assert {"A": "EXIT"} == stepwise.states()


def test_the_queues_commands_are_outside_the_jobs_own() -> None:
    """
    What is set up last is taken down first.
    """
    queue = QueueSpec(priority=1, pre_exec="q in", post_exec="q out")
    profile = ProfileSpec(pre_exec="p in")
    program = Program(argv=("true",), pre_exec="j in", post_exec="j out")

    assert Around(
        (("queue", "q in"), ("profile", "p in"), ("job", "j in")), ("j out", "q out")
    ) == around(profile, queue, program)


def test_files_are_copied_next_to_the_command_but_for_the_jobs_own_pre_exec() -> None:
    """
    What queue and profile prepare is there when files come; what a job prepares may need them.
    """
    copied = tuple(
        FileTransfer.model_validate({"local": "a b", "op": op, "remote": f"r{place}"})
        for place, op in enumerate((">", "<", "<<", "<>"))
    )
    program = Program(argv=("true",), pre_exec="j in", post_exec="j out", transfers=copied)
    queue = QueueSpec(priority=1, pre_exec="q in", post_exec="q out")

    found = around(None, queue, program)

    assert (
        ("queue", "q in"),
        ("job", "[ 'a b' -ef r0 ] || cp -- 'a b' r0"),
        ("job", "[ 'a b' -ef r3 ] || cp -- 'a b' r3"),
        ("job", "j in"),
    ) == found.pre_exec
    assert (
        "[ r1 -ef 'a b' ] || cp -- r1 'a b'",
        "cat -- r2 >> 'a b'",
        "[ r3 -ef 'a b' ] || cp -- r3 'a b'",
        "j out",
        "q out",
    ) == found.post_exec

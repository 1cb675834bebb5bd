"""
Jobs that nobody can wait for any longer: orphans, and jobs that hang.
"""

from __future__ import annotations

from typing import Any

import pytest

from domain.commands import (
    DefineCluster,
    MarkUnreachable,
    ModifyJob,
    RequeueJob,
    WorkerReport,
)
from domain.errors import Refused
from domain.jobs import HostFault
from tests.builders import SECOND_US, some_settings
from tests.projections.scheduling.preempting import again
from tests.scenario import Scenario

EITHER_CORE = pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])


# --------------------------------------------------------------------------------------- orphans


def orphaned(plain: bool, *, own: bool | None = None, **settings: Any) -> Scenario:
    """
    Return a scenario at second 10, in which B waits in vain for A to be done.
    """
    values = {"end_orphans": True, "orphan_grace_us": 60 * SECOND_US} | settings
    scenario = Scenario(some_settings(**values), plain=plain)
    scenario.hosts("h1")
    scenario.jobs("A")
    scenario.submit("B", dependency_text="done(1)", ends_as_orphan=own)
    scenario.session()
    scenario.now_us = 10 * SECOND_US
    scenario.finish("A", exit_code=1)
    return scenario


@EITHER_CORE
@pytest.mark.parametrize("restores", [False, True])
def test_an_orphan_has_its_grace_time(*, plain: bool, restores: bool) -> None:
    """
    Somebody may still mend it: LSF's ORPHAN_JOB_TERM_GRACE_PERIOD.
    """
    scenario = orphaned(plain)
    assert ["B pended: never: JOB_DEP_INVALID"] == scenario.session()
    if restores:
        scenario.core = again(scenario)
    assert 70 * SECOND_US == scenario.core.next_wakeup(scenario.now_us)

    scenario.now_us = 70 * SECOND_US - 1
    assert [] == scenario.session()
    scenario.now_us += 1

    assert ["B ended: TERM_ORPHAN_SYSTEM"] == scenario.session()


@EITHER_CORE
def test_a_job_that_asks_for_it_has_no_grace_time(*, plain: bool) -> None:
    """
    LSF's -ti means at once.
    """
    assert ["B ended: TERM_ORPHAN_SYSTEM"] == orphaned(plain, own=True).session()


@EITHER_CORE
def test_an_orphan_that_is_mended_in_time_runs(*, plain: bool) -> None:
    """
    Another condition begins another wait: the grace time is that of its own.
    """
    scenario = orphaned(plain)
    scenario.session()
    scenario.now_us = 60 * SECOND_US
    spec = scenario.job("B").spec.model_copy(update={"dependency_text": "exit(1) && done(1)"})
    scenario.command(ModifyJob(job_id=scenario.ids["B"], spec=spec))
    scenario.session()
    scenario.now_us = 119 * SECOND_US
    assert [] == scenario.session()

    spec = spec.model_copy(update={"dependency_text": "exit(1)"})
    scenario.command(ModifyJob(job_id=scenario.ids["B"], spec=spec))

    assert ["B dispatched: h1*1"] == scenario.session()


@EITHER_CORE
def test_another_grace_time_holds_for_those_that_wait(*, plain: bool) -> None:
    """
    Also the rule itself: whoever turns it on wants today's orphans gone.
    """
    scenario = orphaned(plain, end_orphans=False)
    assert ["B pended: never: JOB_DEP_INVALID"] == scenario.session()
    assert scenario.core.next_wakeup(scenario.now_us) in (None, 70 * SECOND_US)
    scenario.now_us = 80 * SECOND_US
    assert [] == scenario.session()
    settings = some_settings(end_orphans=True, orphan_grace_us=90 * SECOND_US)
    scenario.command(DefineCluster(settings=settings))
    assert [] == scenario.session()
    assert 100 * SECOND_US == scenario.core.next_wakeup(scenario.now_us)

    settings = settings.model_copy(update={"orphan_grace_us": 70 * SECOND_US})
    scenario.command(DefineCluster(settings=settings))

    assert ["B ended: TERM_ORPHAN_SYSTEM"] == scenario.session()


# ------------------------------------------------------------------------------ hosts at fault


@EITHER_CORE
@pytest.mark.parametrize(
    ("fault", "why"), [("memory", "host out of memory"), ("host", "host at fault")]
)
def test_a_host_that_cannot_start_a_job_is_avoided(
    fault: HostFault, why: str, *, plain: bool
) -> None:
    """
    The job is tried elsewhere as its next attempt, before its equals; LSF's SBD_NO_MEM and
    JOB_START_FAIL.
    """
    scenario = Scenario(plain=plain)
    scenario.hosts("h1 slots=1", "h2 slots=1")
    scenario.jobs("A", "X", "B")
    scenario.session()
    scenario.could_not_start("A", fault=fault)
    scenario.finish("X")

    assert [f"A requeued: {why}", "A dispatched: h2*1", "B dispatched: h1*1"] == scenario.session()
    assert 2 == scenario.job("A").attempt
    scenario.core = again(scenario)
    assert (0,) == scenario.job("A").excluded_hosts


@EITHER_CORE
def test_a_job_that_asks_for_what_cannot_be_ends(*, plain: bool) -> None:
    """
    A directory that isn't there will not be there for the next attempt; its agent's words tell.
    """
    scenario = Scenario(plain=plain)
    scenario.hosts("h1", "h2")
    scenario.jobs("A")
    scenario.session()

    scenario.could_not_start("A")

    assert [] == scenario.session()
    assert ("EXIT", "it failed") == (scenario.states()["A"], scenario.job("A").why)


@EITHER_CORE
def test_a_killed_job_is_not_tried_on_another_host(*, plain: bool) -> None:
    """
    Whoever wants it ended doesn't want it back.
    """
    scenario = Scenario(plain=plain)
    scenario.hosts("h1", "h2")
    scenario.jobs("A")
    scenario.session()
    scenario.kill("A")
    scenario.session()

    scenario.could_not_start("A", fault="host")

    assert [] == scenario.session()
    assert {"A": "EXIT"} == scenario.states()


# -------------------------------------------------------------------------------- jobs that hang


def hung(plain: bool, **settings: Any) -> Scenario:
    """
    Return a scenario at second 10, in which the end of A was ordered.
    """
    values = {"hung_after_us": 60 * SECOND_US} | settings
    scenario = Scenario(some_settings(**values), plain=plain)
    scenario.hosts("h1 slots=1")
    scenario.jobs("A")
    scenario.session()
    scenario.now_us = 10 * SECOND_US
    scenario.kill("A")
    scenario.session()
    return scenario


@EITHER_CORE
@pytest.mark.parametrize("restores", [False, True])
def test_a_job_that_does_not_end_as_ordered_is_given_up(*, plain: bool, restores: bool) -> None:
    """
    A process that the kernel can't end would keep its slots for ever: LSF's REMOVE_HUNG_JOBS_FOR.
    """
    scenario = hung(plain)
    if restores:
        scenario.core = again(scenario)
    assert 70 * SECOND_US == scenario.core.next_wakeup(scenario.now_us)
    scenario.now_us = 70 * SECOND_US - 1
    assert [] == scenario.session()
    scenario.now_us += 1

    assert ["A ended: TERM_REMOVE_HUNG_JOB"] == scenario.session()
    assert {} == scenario.state.stored.workers["h1"].orders


@EITHER_CORE
def test_a_job_that_ends_in_time_does_not_hang(*, plain: bool) -> None:
    """
    Its end is what its worker says it is.
    """
    scenario = hung(plain)
    scenario.now_us = 69 * SECOND_US
    scenario.end_by("A", 9)
    scenario.now_us = 80 * SECOND_US

    assert [] == scenario.session()
    assert "TERM_OWNER" == scenario.job("A").why


@EITHER_CORE
def test_without_the_setting_nothing_hangs(*, plain: bool) -> None:
    """
    As LSF does by default.
    """
    scenario = hung(plain, hung_after_us=None)
    scenario.now_us = 1_000_000 * SECOND_US

    assert [] == scenario.session()
    assert {"A": "RUN"} == scenario.states()


@EITHER_CORE
def test_the_setting_holds_for_kills_that_stand(*, plain: bool) -> None:
    """
    Whoever turns it on has such jobs.
    """
    scenario = hung(plain, hung_after_us=None)
    scenario.now_us = 100 * SECOND_US
    scenario.command(DefineCluster(settings=some_settings(hung_after_us=90 * SECOND_US)))

    assert ["A ended: TERM_REMOVE_HUNG_JOB"] == scenario.session()


@pytest.mark.parametrize("hung_after_us", [0, 60, 30 * SECOND_US - 1])
def test_a_job_that_is_being_ended_does_not_hang_yet(hung_after_us: int) -> None:
    """
    Whoever means seconds or "off" would have every job given up that is killed, and its slots given
    to others beside its program.
    """
    scenario = hung(plain=False)

    with pytest.raises(Refused) as refused:
        scenario.command(DefineCluster(settings=some_settings(hung_after_us=hung_after_us)))

    assert "hung_after_us" == refused.value.field
    scenario.command(DefineCluster(settings=some_settings(hung_after_us=30 * SECOND_US)))


@EITHER_CORE
def test_a_hung_job_that_was_to_be_put_back_is_put_back(*, plain: bool) -> None:
    """
    Its user wants it to run again, not its end.
    """
    scenario = Scenario(some_settings(hung_after_us=60 * SECOND_US), plain=plain)
    scenario.hosts("h1 slots=1", "h2 slots=1")
    scenario.jobs("A")
    scenario.session()
    scenario.command(RequeueJob(job_id="1"))
    scenario.session()
    scenario.pass_time(60)

    decisions = scenario.session()

    assert ["A ended: TERM_REMOVE_HUNG_JOB", "A requeued: command"] == decisions[:2]
    assert 2 == scenario.job("A").attempt


def lost(plain: bool, **settings: Any) -> Scenario:
    """
    Return a scenario in which h1 was heard last in second 1 and is lost, and its jobs are kept.
    """
    values = {"lost_jobs": "keep", "lost_grace_us": 30 * SECOND_US} | settings
    scenario = Scenario(some_settings(**values), plain=plain)
    scenario.hosts("h1 slots=1")
    scenario.jobs("A")
    scenario.session()
    scenario.now_us = 10 * SECOND_US
    scenario.command(MarkUnreachable(worker="h1", incarnation=1, silent_us=1), actor="")
    return scenario


@EITHER_CORE
def test_a_job_kept_on_a_lost_host_is_given_up_at_last(*, plain: bool) -> None:
    """
    Counted from its last report, like the grace time.
    """
    scenario = lost(plain, hung_after_us=60 * SECOND_US)
    moments = []
    while (moment := scenario.core.next_wakeup(scenario.now_us)) is not None:
        scenario.now_us = moment
        moments.append((moment // SECOND_US, scenario.session()))

    assert [(31, []), (61, ["A ended: TERM_REMOVE_HUNG_JOB"])] == moments


@EITHER_CORE
def test_a_job_kept_on_a_lost_host_goes_on_when_it_is_back(*, plain: bool) -> None:
    """
    That is what keeping them is for.
    """
    scenario = lost(plain, hung_after_us=60 * SECOND_US)
    scenario.now_us = 60 * SECOND_US
    scenario.command(WorkerReport(worker="h1", incarnation=1), actor="")
    scenario.now_us = 100 * SECOND_US

    assert [] == scenario.session()
    assert {"A": "RUN"} == scenario.states()


@EITHER_CORE
def test_jobs_kept_on_lost_hosts_are_kept_for_ever_without_the_setting(*, plain: bool) -> None:
    """
    LSF's way: UNKWN until the host returns.
    """
    scenario = lost(plain)
    scenario.now_us = 1_000_000 * SECOND_US

    assert [] == scenario.session()
    assert {"A": "UNKWN"} == scenario.states()


@EITHER_CORE
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_killed_job_of_a_lost_host_is_not_run_again(*, plain: bool, is_killed: bool) -> None:
    """
    Though it may be rerun: whoever wants it ended doesn't want another attempt.
    """
    scenario = Scenario(some_settings(lost_grace_us=60 * SECOND_US), plain=plain)
    scenario.hosts("h1")
    scenario.submit("A", rerunnable=True)
    scenario.session()
    scenario.command(MarkUnreachable(worker="h1", incarnation=1, silent_us=1), actor="")
    if is_killed:
        scenario.kill("A")
        scenario.session()
    scenario.now_us = 61 * SECOND_US

    decided = "A ended: TERM_LOST_HOST" if is_killed else "A requeued: lost host"
    assert decided == scenario.session()[0]

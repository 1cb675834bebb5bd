"""
Dependencies as the core takes them: what is refused, and which jobs a name means.
"""

from __future__ import annotations

import pytest

from domain.commands import ModifyJob, SubmitJob
from domain.errors import Refused
from tests.builders import some_settings
from tests.scenario import Scenario


@pytest.mark.parametrize(
    "text", ["post_done(1)", "done(1) && !post_err(1)", 'exit(1) || external(1, "READY")']
)
@pytest.mark.parametrize("is_modified", [False, True])
def test_what_nobody_tells_the_scheduler_is_refused(
    scenario: Scenario, text: str, *, is_modified: bool
) -> None:
    """
    A job would wait for ever for what it never hears of.
    """
    scenario.jobs("P", "A")
    spec = scenario.job("A").spec.model_copy(update={"dependency_text": text})
    command = ModifyJob(job_id="2", spec=spec) if is_modified else SubmitJob(spec=spec)

    with pytest.raises(Refused) as refused:
        scenario.command(command)

    assert "dependency" == refused.value.field
    assert "of which the scheduler doesn't hear" in refused.value.rule
    assert "Wait for done, exit or ended instead." == refused.value.hint


@pytest.mark.parametrize(("last_only", "starts"), [(False, False), (True, True)])
@pytest.mark.parametrize("plain", [False, True])
def test_a_name_means_all_jobs_or_the_latest(
    *, last_only: bool, starts: bool, plain: bool
) -> None:
    """
    LSF's JOB_DEP_LAST_SUB; what a name meant when the job came in is what it means.
    """
    scenario = Scenario(some_settings(names_mean_last_job=last_only), plain=plain)
    scenario.hosts("h1 slots=9")
    scenario.jobs("X", "X")
    scenario.session()
    scenario.submit("A", dependency_text='done("X")')
    scenario.jobs("X")
    scenario.session()

    scenario.ids["latest"] = "2"
    scenario.finish("latest")
    scenario.session()

    assert ("RUN" if starts else "PEND") == scenario.states()["A"]

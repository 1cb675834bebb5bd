"""
Exit values that put a job back, as LSF writes them.
"""

from __future__ import annotations

import pytest

from domain.effective import values_of
from domain.errors import Refused
from domain.exit_values import parse_requeue_values, show_requeue_values
from domain.jobs import ExitRules, JobSpec
from domain.profiles import ProfileSpec
from domain.queues import QueueSpec
from domain.resreq.merge import Mark


@pytest.mark.parametrize(
    ("text", "requeue", "exclude"),
    [
        ("99 100", (99, 100), ()),
        ("99 EXCLUDE(20 21) 3", (99, 3), (20, 21)),
        ("EXCLUDE ( 7 )", (), (7,)),
        ("", (), ()),
        ("5 5 EXCLUDE(5)", (), (5,)),
    ],
)
def test_values_are_listed_and_some_exclude_the_host(text, requeue, exclude):
    """
    One that excludes the host isn't among the others too.
    """
    assert (requeue, exclude) == parse_requeue_values(text)


def test_all_is_every_failure_but_those_taken_out():
    """
    A job that ends with 0 hasn't failed, so it isn't put back.
    """
    requeue, exclude = parse_requeue_values("all ~1 ~2 EXCLUDE(9)")

    assert set(range(3, 256)) - {9} == set(requeue)
    assert (9,) == exclude


@pytest.mark.parametrize(
    "text", ["256", "9" * 5_000, "x", "all ~x", "EXCLUDE(300)", "99, 100", "-1", "99~1x"]
)
def test_anything_else_is_refused(text):
    """
    With the field that it stands in.
    """
    with pytest.raises(Refused) as refused:
        parse_requeue_values(text, field="-Q")
    assert "-Q" == refused.value.field


QUEUE = QueueSpec(priority=1, exits=ExitRules(requeue=(17, 99), requeue_max=3))


def test_each_part_of_the_rules_comes_from_whoever_says_it():
    """
    A profile's success values don't take away what its queue puts back, nor a job's own requeue
    values what its profile counts as success.
    """
    profile = ProfileSpec(exits=ExitRules(success=(17,)))
    job = JobSpec(user="u", queue="q")
    own = job.model_copy(update={"exits": ExitRules(exclude=(5,))})

    of_queue = values_of(job, profile, QUEUE).exits
    of_job = values_of(own, profile, QUEUE).exits

    assert ExitRules(requeue=(17, 99), success=(17,), requeue_max=3) == of_queue
    assert ExitRules(exclude=(5,), success=(17,), requeue_max=3) == of_job


def test_fixed_rules_of_a_profile_go_before_the_jobs_own():
    """
    What it doesn't say is still the job's.
    """
    profile = ProfileSpec(exits=ExitRules(requeue=(1,)), exits_mark=Mark.FIXED)
    job = JobSpec(user="u", queue="q", exits=ExitRules(requeue=(2,), success=(3,)))

    found = values_of(job, profile, QueueSpec(priority=1)).exits

    assert ExitRules(requeue=(1,), success=(3,)) == found


@pytest.mark.parametrize(
    "text",
    ["", "99", "99 100 EXCLUDE(20 21)", "EXCLUDE(3)", "all", "all ~1 ~2", "all ~7 EXCLUDE(7)"],
)
def test_values_that_put_a_job_back_are_told_as_they_can_be_given(text):
    """
    254 numbers in a line are what nobody typed.
    """
    found = parse_requeue_values(text)

    assert found == parse_requeue_values(show_requeue_values(*found))
    assert len(show_requeue_values(*found)) <= len(text)

"""
Job, profile and queue: which level's section holds, and what a job may not ask for.
"""

from __future__ import annotations

import pytest

from domain.errors import Refused
from domain.resreq import EMPTY, parse
from domain.resreq.merge import (
    Mark,
    QueueResreq,
    ReservationRange,
    check_profile,
    effective_requirement,
    merge,
)

MB = 1_024_000


def merged(job=None, profile=None, queue=None):
    return merge(*(None if text is None else parse(text) for text in (job, profile, queue)))


def test_selects_of_all_levels_are_anded():
    """
    No level loosens what another one asks for.
    """
    assert parse("(gpu || big) && swp>5 && mem>10") == merged("gpu || big", "swp>5", "mem>10")


def test_rusage_is_overridden_per_resource_and_the_rest_is_kept():
    """
    Job over profile over queue.
    """
    assert parse("rusage[mem=1,swp=2,lic=3]") == merged(
        "rusage[mem=1]", "rusage[mem=2,swp=2]", "rusage[mem=3,swp=3,lic=3]"
    )


def test_a_missing_duration_and_decay_are_inherited():
    """
    Each by itself, and only where the job doesn't say it.
    """
    queue = "rusage[mem=200:duration=20:decay=1]"

    assert parse("rusage[mem=100:duration=20:decay=1]") == merged("rusage[mem=100]", queue=queue)
    assert parse("rusage[mem=100:duration=5:decay=1]") == merged(
        "rusage[mem=100:duration=5]", queue=queue
    )
    assert parse("rusage[mem=100:duration=20:decay=0]") == merged(
        "rusage[mem=100:decay=0]", queue=queue
    )


def test_phases_inherit_nothing():
    """
    A list of durations has no place for a single one.
    """
    assert parse("rusage[mem=(9 5):duration=(1)]") == merged(
        "rusage[mem=(9 5):duration=(1)]", queue="rusage[mem=20:duration=7]"
    )


def test_alternatives_of_the_job_override_the_queues_rusage_completely():
    """
    And a plain rusage of the job is put over each of the queue's alternatives.
    """
    assert parse("rusage[a=1||b=1]") == merged("rusage[a=1||b=1]", queue="rusage[c=1]")
    assert parse("rusage[a=2,c=1||a=2,b=1]") == merged("rusage[a=2]", queue="rusage[c=1||a=1,b=1]")


def test_any_requirement_of_the_job_drops_the_queues_order():
    """
    Without an order of its own the default applies; the profile's order stays.
    """
    assert () == merged("rusage[mem=1]", queue="order[mem]").only.order
    assert parse("order[ut]") == merged("order[ut]", "order[swp]", "order[mem]")
    assert parse("a order[swp]") == merged("a", "order[swp]", "order[mem]")
    assert parse("a order[mem]") == merged(None, "a", "order[mem]")
    assert parse("order[mem]") == merged(queue="order[mem]") == merged("", queue="order[mem]")


def test_the_highest_span_holds_and_minus_one_cancels():
    """
    After the merge nothing is left of a cancelled span.
    """
    assert parse("span[ptile=2]") == merged("span[ptile=2]", "span[block=3]", "span[hosts=1]")
    assert parse("a span[hosts=1]") == merged("a", queue="span[hosts=1]")
    assert EMPTY == merged("span[hosts=-1]", queue="span[hosts=1]")
    assert EMPTY == merged("span[hosts=-1]")


def test_same_is_united_and_affinity_replaced():
    """
    The two remaining sections.
    """
    assert parse("same[type:model]") == merged("same[type]", "same[model]", "same[type]")
    assert parse("affinity[core(2)]") == merged("affinity[core(2)]", queue="affinity[thread]")


def test_a_shape_wins_and_lower_selects_are_anded_into_every_term():
    """
    Rusage isn't merged across shapes.
    """
    assert parse("{1*{a && q} + 2*{rusage[mem=1] select[q]}} same[type]") == merged(
        "{1*{a} + 2*{rusage[mem=1]}} same[type]", queue="select[q] rusage[lic=1]"
    )
    assert parse("{a && p && q} || {b && p && q}@5") == merged("{a} || {b}@5", "p", "q")
    assert parse("a && q") == merged("a", "1*{p} + 1*{r}", "q")
    assert parse("1*{p} + 1*{r}") == merged(None, "1*{p} + 1*{r}", "{q} || {s}")


def test_no_level_at_all_asks_for_nothing():
    """
    And the empty text is no level.
    """
    assert EMPTY == merged() == merged("", "", "")


# ------------------------------------------------------------------------ what a job may ask for


def effective(job, queue, ranges=(), **more):
    return effective_requirement(
        parse(job), queue=parse(queue), queue_resreq=QueueResreq.MERGE, ranges=ranges, **more
    )


def test_the_queues_value_of_a_built_in_index_is_a_ceiling():
    """
    For a site's resource it is only a default.
    """
    assert parse("rusage[mem=200]") == effective("rusage[mem=200]", "rusage[mem=200]")
    assert parse("rusage[lic=5]") == effective("rusage[lic=5]", "rusage[lic=1]")
    with pytest.raises(Refused, match="more mem than the queue's 200MB"):
        effective("rusage[mem=300]", "rusage[mem=200]")
    with pytest.raises(Refused, match="more mem than the queue's 200MB"):
        effective("1*{rusage[mem=300]} + 1*{a}", "rusage[mem=200]")


def test_a_range_takes_the_place_of_the_ceiling():
    """
    The merged value must lie in it, wherever it comes from; what isn't reserved isn't bound.
    """
    ranges = (ReservationRange(resource="mem", least_milli=100 * MB, most_milli=500 * MB),)

    assert parse("rusage[mem=300]") == effective("rusage[mem=300]", "rusage[mem=200]", ranges)
    assert parse("a") == effective("a", "", ranges)
    for job, queue in (("rusage[mem=50]", ""), ("rusage[mem=501]", ""), ("a", "rusage[mem=50]")):
        with pytest.raises(Refused, match="between 100MB and 500MB of mem"):
            effective(job, queue, ranges)


def test_a_queues_requirement_is_ignored_unless_the_cluster_merges_it():
    """
    Queues are policy, profiles say what jobs need; the setting is for sites that come from LSF.
    """
    assert parse("a") == effective_requirement(parse("a"), queue=parse("q rusage[mem=1]"))
    assert parse("a && q") == effective("a", "q")


def test_a_fixed_profile_refuses_another_value():
    """
    The same value, or none, is fine.
    """
    profile = parse("rusage[mem=1]")

    assert profile == effective_requirement(None, profile, mark=Mark.FIXED)
    assert profile == effective_requirement(profile, profile, mark=Mark.FIXED)
    with pytest.raises(Refused, match="is fixed"):
        effective_requirement(parse("rusage[mem=2]"), profile, mark=Mark.FIXED)


@pytest.mark.parametrize(
    ("fixed", "asked", "is_same"),
    [
        ("rusage[mem=1,lic=2]", "rusage[lic=2:mem=1]", True),
        ("rusage[mem=1:lic=2:duration=5]", "rusage[lic=2:mem=1:duration=5]", True),
        ("rusage[mem=1:lic=2:duration=5]", "rusage[mem=1,lic=2:duration=5]", False),
        ("select[a && (b || c)] span[hosts=1]", "span[hosts=1] select[(c || b) && a]", True),
        ("select[mem + swp == 3]", "select[3 == swp + mem]", True),
        ("select[mem > swp]", "select[swp > mem]", False),
        ("same[type:model]", "same[model:type]", True),
        ("order[mem:ut]", "order[ut:mem]", False),
        ("rusage[mem=1||lic=2]", "rusage[lic=2||mem=1]", False),
        ("1*{rusage[mem=1]} + 2*{a}", "2*{a} + 1*{rusage[mem=1]}", False),
        ("1*{rusage[mem=1,lic=2]} + 2*{b && a}", "1*{rusage[lic=2,mem=1]} + 2*{a && b}", True),
    ],
)
def test_what_is_fixed_may_be_said_in_another_order(fixed: str, asked: str, *, is_same: bool):
    """
    A job that asks for the very same isn't refused for the order of its words; what is tried or
    compared in the order written is something else in another.
    """
    profile = parse(fixed)

    if is_same:
        assert profile == effective_requirement(parse(asked), profile, mark=Mark.FIXED)
    else:
        with pytest.raises(Refused, match="is fixed"):
            effective_requirement(parse(asked), profile, mark=Mark.FIXED)


def test_a_profiles_select_is_anded_and_may_hold_nothing_else():
    """
    It is refused where it is defined, not at some job's submission.
    """
    assert parse("a && p") == effective_requirement(parse("a"), parse("p"), mark=Mark.SELECT)
    assert parse("p") == check_profile(parse("p"), Mark.SELECT)
    with pytest.raises(Refused, match="nothing but select"):
        check_profile(parse("p rusage[mem=1]"), Mark.SELECT)
    with pytest.raises(Refused, match="nothing but select"):
        check_profile(parse("1*{p} + 1*{q}"), Mark.SELECT)


def test_a_default_profile_may_be_overridden():
    """
    The job's sections go over the profile's.
    """
    assert parse("rusage[mem=2] span[hosts=1]") == effective_requirement(
        parse("rusage[mem=2]"), parse("rusage[mem=1] span[hosts=1]")
    )

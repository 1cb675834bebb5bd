"""
Changes of a workload for an experiment: estimates, load and chance, all exact.
"""

from __future__ import annotations

from array import array
from fractions import Fraction
from itertools import islice

import pytest

from domain.errors import Refused
from replay.workloads.adjusting import Adjustments, adjusted, numbers_of, parse_load
from replay.workloads.source import Header, Jobs, LeftOut, Workload


def workload(*jobs: tuple[int, int, int]) -> Workload:
    """
    Return jobs by submit time, run time and requested time.
    """
    columns = Jobs.empty()
    columns.extend(
        [(number, submit, run, 1, requested, *[-1] * 9)
         for number, (submit, run, requested) in enumerate(jobs)]
    )  # fmt: skip
    return Workload("w", Header(), 1000, columns, LeftOut())


JOBS = workload((5, 60, 100), (8, 60, 30), (15, 7, -1))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("requested", [100, 30, -1]), ("at-least-run", [100, 60, 7]), ("exact", [60, 60, 7]),
        ("times:1.5", [90, 90, 11]), ("times:1", [60, 60, 7]),
    ],
)  # fmt: skip
def test_estimates_follow_their_rule(rule: str, expected: list[int]) -> None:
    """
    Rounded up: an estimate below the run time would let a planner promise too much.
    """
    changed = adjusted(JOBS, Adjustments(estimates=rule))

    assert array("q", expected) == changed.jobs.estimate_s
    assert JOBS.jobs.estimate_s is None


def test_chance_is_the_seeds_alone_and_within_its_bounds() -> None:
    """
    The same seed gives the same estimates on every machine; another gives others.
    """
    jobs = workload(*[(0, 1000, -1)] * 2000)

    first, again, other = (
        adjusted(jobs, Adjustments(estimates="random:3", seed=seed)).jobs.estimate_s
        for seed in (7, 7, 8)
    )

    assert first is not None
    assert first == again != other
    assert 1000 <= min(first) < 1100
    assert 2900 < max(first) <= 3000
    assert 1950 < sum(first) / len(first) < 2050


def test_the_generator_gives_the_published_numbers() -> None:
    """
    The first three of splitmix64 from seed 1234567, as its author's program prints them.
    """
    assert [6457827717110365317, 3203168211198807973, 9817491932198370423] == list(
        islice(numbers_of(1234567), 3)
    )


def test_load_moves_submissions_exactly_and_nothing_else() -> None:
    """
    Half as long between them at twice the load; the first stays where it was.
    """
    changed = adjusted(JOBS, Adjustments(load=Fraction(2)))

    assert [1_005_000_000, 1_006_500_000, 1_010_000_000] == list(changed.submits_us())
    assert [5, 6, 10] == list(changed.jobs.submit_s)
    assert JOBS.jobs.run_s == changed.jobs.run_s
    assert [0, 1, 2] == changed.arrival_order()


def test_a_load_undone_gives_the_workload_back() -> None:
    """
    No rounding is lost where the factor divides.
    """
    there = adjusted(JOBS, Adjustments(load=Fraction(1, 4)))

    assert JOBS.submits_us() == adjusted(there, Adjustments(load=Fraction(4))).submits_us()


def test_a_load_is_read_exactly() -> None:
    """
    1.1 is eleven tenths, not the nearest binary fraction.
    """
    assert Fraction(11, 10) == parse_load("1.1")


@pytest.mark.parametrize("text", ["0", "-1", "1e3", "1.2345", "1001", "fast", ""])
def test_a_load_that_is_none_is_refused(text: str) -> None:
    """
    Naming the option.
    """
    with pytest.raises(Refused) as caught:
        parse_load(text)

    assert "--load" == caught.value.field


@pytest.mark.parametrize(
    ("rule", "seed", "field"),
    [("times:0.5", None, "--estimates"), ("times:1001", None, "--estimates"),
     ("best", None, "--estimates"), ("random:2", None, "--seed")],
)  # fmt: skip
def test_a_rule_that_cannot_be_followed_is_refused(
    rule: str, seed: int | None, field: str
) -> None:
    """
    Chance without a seed is refused too: it would differ from run to run.
    """
    with pytest.raises(Refused) as caught:
        adjusted(JOBS, Adjustments(estimates=rule, seed=seed))

    assert field == caught.value.field

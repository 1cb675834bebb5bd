"""
Change a workload for an experiment: what the scheduler is told of run times, and the load.

Everything is whole numbers and a function of the input: the same options give the same workload on
every machine. Chance comes from a seed that has to be given, through a generator of our own.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

from domain.errors import Refused
from replay.workloads.source import SECOND_US, Workload

ESTIMATES = "--estimates"
LOAD = "--load"
HOW_ESTIMATES = "One of: requested, at-least-run, exact, times:F, random:F (F from 1 to 1000)."
PLAIN_ESTIMATES = ("requested", "at-least-run", "exact")
ESTIMATES_DEFAULT = "at-least-run"
_factor = re.compile(r"(times|random):([0-9]{1,4}(?:\.[0-9]{1,3})?)")
_MASK = 2**64 - 1
FACTOR_MAX = 1000


@final
@dataclass(frozen=True, slots=True)
class Adjustments:
    """
    Say how a workload is changed before it is simulated.

    Args:
        estimates: What the scheduler is told of run times; None tells it nothing but the limit.
            requested: the requested time (none where it isn't known); at-least-run: the same but
            never below the run time; exact: the run time; times:F: F times the run time; random:F:
            each job its own factor from 1 to F, by the seed.
        load: How many times the recorded load: times between submissions are divided by it.
        seed: Where chance begins; needed by what is random.
    """

    estimates: str | None = None
    load: Fraction = Fraction(1)
    seed: int | None = None


def adjusted(workload: Workload, adjustments: Adjustments) -> Workload:
    """
    Return the workload as it is to be simulated.

    Raises:
        Refused: An option is malformed, or chance is asked for without a seed.
    """
    changed = workload if adjustments.load == 1 else _with_load(workload, adjustments.load)
    if adjustments.estimates is None:
        return changed
    estimates = array("q", _estimates(changed, adjustments.estimates, adjustments.seed))
    return replace(changed, jobs=replace(changed.jobs, estimate_s=estimates))


def parse_load(text: str) -> Fraction:
    """
    Return a load such as 1.25, exactly.

    Raises:
        Refused: It is no number from 0.001 to 1000 with at most three decimals.
    """
    if not re.fullmatch(r"[0-9]{1,4}(?:\.[0-9]{1,3})?", text):
        raise Refused(LOAD, "must be a number such as 1.25, with at most three decimals", text)
    load = Fraction(text)
    if not Fraction(1, 1000) <= load <= FACTOR_MAX:
        raise Refused(LOAD, f"must be from 0.001 to {FACTOR_MAX}", text)
    return load


def parse_estimates(rule: str, seed: int | None) -> tuple[str, Fraction]:
    """
    Return what the scheduler is told of run times: a word, and a factor (1 where it has none).

    Raises:
        Refused: It is no rule, or chance is asked for without a seed.
    """
    if rule in PLAIN_ESTIMATES:
        return rule, Fraction(1)
    match = _factor.fullmatch(rule)
    factor = Fraction(match[2]) if match else Fraction(0)
    if match is None or not 1 <= factor <= FACTOR_MAX:
        raise Refused(ESTIMATES, "must be a known rule", rule, HOW_ESTIMATES)
    if match[1] == "random" and seed is None:
        raise Refused("--seed", f"is needed for {ESTIMATES} {rule}: chance has no default")
    return match[1], factor


def _with_load(workload: Workload, load: Fraction) -> Workload:
    """
    Return the workload with its submissions nearer to the first one, or farther from it.

    Moments are rounded down to microseconds, so the order of submissions stays.
    """
    if load <= 0:
        raise Refused(LOAD, "must be above 0", str(load))
    submits = workload.submits_us()
    first = min(submits, default=0)
    moved = [
        first + (moment - first) * load.denominator // load.numerator for moment in submits
    ]
    origin_us = workload.start_unix_s * SECOND_US
    seconds = array("q", ((moment - origin_us) // SECOND_US for moment in moved))
    parts = array("q", ((moment - origin_us) % SECOND_US for moment in moved))
    return replace(
        workload, jobs=replace(workload.jobs, submit_s=seconds, submit_part_us=parts)
    )


def _estimates(workload: Workload, rule: str, seed: int | None) -> Iterator[int]:
    """
    Yield what the scheduler is told of each job's run time, UNKNOWN for nothing.
    """
    jobs = workload.jobs
    pairs = zip(jobs.requested_s, jobs.run_s, strict=True)
    word, factor = parse_estimates(rule, seed)
    if word == "requested":
        yield from jobs.requested_s
    elif word == "exact":
        yield from jobs.run_s
    elif word == "at-least-run":
        yield from (max(requested, run) for requested, run in pairs)
    else:
        yield from _scaled(jobs.run_s, factor, seed if word == "random" else None)


def _scaled(runs: array[int], factor: Fraction, seed: int | None) -> Iterator[int]:
    """
    Yield run times times a factor, by chance one up to it when there is a seed, rounded up: an
    estimate is never below the run time.
    """
    if seed is None:
        yield from (-(-run * factor.numerator // factor.denominator) for run in runs)
        return
    extra = (factor - 1) / 2**64
    for run, chance in zip(runs, numbers_of(seed), strict=False):
        yield run + -(-run * extra.numerator * chance // extra.denominator)


def numbers_of(seed: int) -> Iterator[int]:
    """
    Yield whole numbers from 0 to 2**64 - 1 without end (the splitmix64 generator).
    """
    state = seed & _MASK
    while True:
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        yield mixed ^ (mixed >> 31)

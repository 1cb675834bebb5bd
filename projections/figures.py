"""
Define each figure of a schedule once: wait, bounded slowdown, utilisation, makespan, starts.

All sums are whole numbers, so that a figure doesn't depend on the order of the jobs; means are
fractions, and decimals appear only when a figure is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

SECOND_US = 1_000_000
# Jobs shorter than this count as this long in the slowdown: a job of 1 s that waited 10 s isn't
# told apart from one of 0.1 s.
SLOWDOWN_BOUND_US = 10 * SECOND_US
# Slowdowns are summed in this part of 1, each rounded down: an exact sum would need a denominator
# that grows with every run time. The mean is too small by less than one such part.
SLOWDOWN_PARTS = 10**15


def wait_us(*, submit_us: int, start_us: int) -> int:
    """
    Return how long a job waited for its dispatch.
    """
    return start_us - submit_us


def bounded_slowdown(*, wait_us: int, run_us: int) -> Fraction:
    """
    Return max(1, (wait + run) / max(run, 10 s)), exactly.
    """
    return max(Fraction(1), Fraction(wait_us + run_us, max(run_us, SLOWDOWN_BOUND_US)))


@final
@dataclass(slots=True)
class Figures:
    """
    Sum up finished jobs; every job is added once, in any order.

    Args:
        slots: Slots of the cluster, for the utilisation; it must not change on the way.
    """

    slots: int
    job_count: int = 0
    wait_sum_us: int = 0
    start_sum_us: int = 0
    used_slot_us: int = 0
    submit_first_us: int | None = None
    finish_last_us: int | None = None
    slowdown_sum_parts: int = 0

    def add(self, *, submit_us: int, start_us: int, finish_us: int, tasks: int) -> None:
        """
        Add one finished job.

        Args:
            submit_us: When it was submitted.
            start_us: When it was dispatched.
            finish_us: When it ended, not before its start.
            tasks: How many slots it held.
        """
        # hot: once a job of a simulation, so no function is called and no fraction made
        # (test_the_sums_agree_with_the_definitions_of_one_job).
        run_us = finish_us - start_us
        self.job_count += 1
        self.wait_sum_us += start_us - submit_us
        self.start_sum_us += start_us
        self.used_slot_us += run_us * tasks
        if self.submit_first_us is None or submit_us < self.submit_first_us:
            self.submit_first_us = submit_us
        if self.finish_last_us is None or finish_us > self.finish_last_us:
            self.finish_last_us = finish_us
        bound_us = run_us if run_us > SLOWDOWN_BOUND_US else SLOWDOWN_BOUND_US  # noqa: FURB136
        stay_us = finish_us - submit_us
        if stay_us <= bound_us:
            self.slowdown_sum_parts += SLOWDOWN_PARTS
        else:
            self.slowdown_sum_parts += stay_us * SLOWDOWN_PARTS // bound_us

    @property
    def mean_wait_us(self) -> Fraction | None:
        """
        Return the mean wait, or None without jobs.
        """
        return Fraction(self.wait_sum_us, self.job_count) if self.job_count else None

    @property
    def mean_bounded_slowdown(self) -> Fraction | None:
        """
        Return the mean bounded slowdown (too small by less than 10^-15), or None without jobs.
        """
        if not self.job_count:
            return None
        return Fraction(self.slowdown_sum_parts, self.job_count * SLOWDOWN_PARTS)

    @property
    def makespan_us(self) -> int | None:
        """
        Return last finish - first submit, or None without jobs.
        """
        if self.finish_last_us is None or self.submit_first_us is None:
            return None
        return self.finish_last_us - self.submit_first_us

    @property
    def utilisation(self) -> Fraction | None:
        """
        Return used slot-time / offered slot-time of the makespan, or None when nothing was offered.
        """
        offered = self.slots * (self.makespan_us or 0)
        return Fraction(self.used_slot_us, offered) if offered else None


@final
@dataclass(frozen=True, slots=True)
class Group:
    """
    Hold the figures of the jobs of one queue, user or project, and their longest wait.
    """

    name: str
    figures: Figures
    longest_wait_us: int


@final
class Grouped:
    """
    Sum up finished jobs by name.

    Args:
        slots: Slots of the whole cluster: a group's utilisation is its share of them.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._groups: dict[str, Figures] = {}
        self._longest_us: dict[str, int] = {}

    def add(self, name: str, *, submit_us: int, start_us: int, finish_us: int, tasks: int) -> None:
        """
        Add a finished job to the group of a name, as `Figures.add` takes it.
        """
        figures = self._groups.get(name)
        if figures is None:
            figures = self._groups[name] = Figures(self._slots)
        figures.add(submit_us=submit_us, start_us=start_us, finish_us=finish_us, tasks=tasks)
        waited_us = wait_us(submit_us=submit_us, start_us=start_us)
        self._longest_us[name] = max(self._longest_us.get(name, 0), waited_us)

    def groups(self) -> tuple[Group, ...]:
        """
        Return the groups, in order of their names.
        """
        return tuple(
            Group(name, self._groups[name], self._longest_us[name]) for name in sorted(self._groups)
        )


def shown(figure: Fraction | int, decimals: int) -> str:
    """
    Return a figure with so many decimals, rounded to the nearest, a tie to the even one.
    """
    scaled = round(Fraction(figure) * 10**decimals)
    sign, digits = "-" * (scaled < 0), f"{abs(scaled):0{decimals + 1}}"
    whole = digits[: len(digits) - decimals]
    return f"{sign}{whole}.{digits[-decimals:]}" if decimals else f"{sign}{whole}"

"""
Sum up why jobs wait, over a whole cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from domain.reasons import PendReason, ReasonCode

Key = TypeVar("Key", bound=str)

HOST_BASED: Final = "host based"
"""What jobs count under that wait for reasons of single hosts."""


@dataclass(frozen=True, slots=True)
class ReasonSummary:
    """
    Hold how many jobs wait for what.

    Args:
        by_jobs: Jobs per reason of the whole job, those with reasons of hosts together; most first.
        occurrences: For each reason of hosts, how often it holds for a job on a host; most first.
    """

    by_jobs: tuple[tuple[str, int], ...]
    occurrences: tuple[tuple[ReasonCode, int], ...]


def summary_of(jobs: Iterable[Sequence[PendReason]]) -> ReasonSummary:
    """
    Return the summary of the reasons of each waiting job, its main reason first.
    """
    by_jobs: Counter[str] = Counter()
    occurrences: Counter[ReasonCode] = Counter()
    for reasons in jobs:
        main = next((each for each in reasons if not each.hosts), None)
        by_jobs[HOST_BASED if main is None else main.code.value] += 1
        if main is None:
            for each in reasons:
                occurrences[each.code] += each.host_count()
    return ReasonSummary(_most_first(by_jobs), _most_first(occurrences))


def _most_first(counts: Counter[Key]) -> tuple[tuple[Key, int], ...]:
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

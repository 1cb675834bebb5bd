"""
Bind a dependency to its parents when the job is submitted: from then on numbers count, not names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from domain.arrays import indices_of
from domain.dependency.syntax import COUNTED, FIELD, Condition, Dependency, JobRef, Not
from domain.errors import Refused


class OwnJobs(Protocol):
    """
    Be what binding needs to know of the user's jobs.
    """

    def numbers(self, ref: JobRef) -> Sequence[int]:
        """
        Return the numbers of the jobs that a reference names, oldest first; its elements don't
        matter here.
        """

    def indices(self, number: int) -> Sequence[int] | None:
        """
        Return the indices of an array, rising, None for a job that is none.
        """


def bind(
    dependency: Dependency,
    jobs: OwnJobs,
    *,
    own_indices: Sequence[int] | None = None,
    last_only: bool = False,
) -> Dependency:
    """
    Return a dependency whose conditions know their parents.

    Args:
        dependency: As parsed.
        jobs: What is known of the user's jobs.
        own_indices: Indices of the dependent job, when it is an array.
        last_only: Whether a name means the latest job of that name only (JOB_DEP_LAST_SUB).

    Raises:
        Refused: A parent or one of its elements isn't known, or the sizes of arrays don't match.
    """
    if isinstance(dependency, Condition):
        return _bind_condition(dependency, jobs, own_indices, last_only=last_only)

    def bound(part: Dependency) -> Dependency:
        return bind(part, jobs, own_indices=own_indices, last_only=last_only)

    if isinstance(dependency, Not):
        return Not(kind="not", of=bound(dependency.of))
    return dependency.model_copy(update={"parts": tuple(bound(part) for part in dependency.parts)})


def _bind_condition(
    condition: Condition, jobs: OwnJobs, own_indices: Sequence[int] | None, *, last_only: bool
) -> Condition:
    ref = condition.ref
    numbers = tuple(jobs.numbers(ref))
    if not numbers:
        raise Refused(FIELD, "must name jobs that exist", ref.text())
    if last_only and ref.name and not ref.name.endswith("*"):
        numbers = numbers[-1:]
    for number in numbers:
        _check_elements(condition, jobs.indices(number), own_indices)
    return condition.model_copy(update={"parents": numbers})


def _check_elements(
    condition: Condition, indices: Sequence[int] | None, own_indices: Sequence[int] | None
) -> None:
    ref = condition.ref
    needs_array = ref.is_each or ref.ranges or condition.predicate in COUNTED
    if needs_array and indices is None:
        raise Refused(FIELD, "must name an array here", ref.text())
    if indices is None:
        return
    missing = [index for index in indices_of(ref.ranges) if index not in set(indices)]
    if missing:
        raise Refused(
            FIELD, f"names element {missing[0]}, which the array doesn't have", ref.text()
        )
    if ref.is_each and (own_indices is None or len(own_indices) != len(indices)):
        raise Refused(FIELD, "[*] needs an array of as many elements as its parent", ref.text())

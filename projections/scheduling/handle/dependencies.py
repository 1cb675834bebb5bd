"""
Bind what a job waits for to the jobs that are there when it comes in.
"""

from __future__ import annotations

from typing import Final

from domain.dependency import (
    Dependency,
    JobRef,
    Predicate,
    bind,
    parse_dependency,
    show_dependency,
)
from domain.dependency.syntax import FIELD, conditions_of
from domain.errors import Refused
from domain.jobs import JobSpec
from projections.scheduling.state import State


def with_parents(state: State, spec: JobSpec) -> JobSpec:
    """
    Return the job with its dependency parsed and bound to its parents.

    Raises:
        Refused: It isn't a dependency, a parent isn't known, or nobody would hear of what it asks.
    """
    if not spec.dependency_text:
        return spec
    own = None if spec.array is None else spec.array.indices()
    parsed = parse_dependency(spec.dependency_text)
    _check_is_heard(parsed)
    last_only = state.settings().names_mean_last_job
    dependency = bind(parsed, OwnJobs(state, spec.user), own_indices=own, last_only=last_only)
    return spec.model_copy(update={"dependency": dependency})


UNHEARD: Final = frozenset({Predicate.POST_DONE, Predicate.POST_ERR, Predicate.EXTERNAL})
"""What nobody tells the scheduler: how commands after a job's own ended, and messages to jobs."""


def _check_is_heard(dependency: Dependency) -> None:
    """
    Refuse a condition of which nobody would ever hear: a job would wait for it for ever.
    """
    for condition in conditions_of(dependency):
        if condition.predicate in UNHEARD:
            name = condition.predicate.value
            rule = f"must not ask for {name}, of which the scheduler doesn't hear"
            hint = "Wait for done, exit or ended instead."
            raise Refused(FIELD, rule, show_dependency(condition), hint)


class OwnJobs:
    """
    Be what binding a dependency asks: the user's own jobs by name, any job by its number.
    """

    def __init__(self, state: State, user: str) -> None:
        self._state = state
        self._user = user

    def numbers(self, ref: JobRef) -> list[int]:
        """
        Return the numbers of the jobs that a reference names, oldest first.
        """
        if ref.number:
            return [ref.number] if self._state.streams_of(ref.number) else []
        found = {
            job.number
            for job in self._state.stored.jobs.values()
            if job.spec.user == self._user and _is_named(job.spec.name, ref.name)
        }
        return sorted(found)

    def indices(self, number: int) -> tuple[int, ...] | None:
        """
        Return the indices of an array, None for a job that is none.
        """
        array = self._state.stored.arrays.get(number)
        if array is None:
            return None
        return tuple(self._state.stored.jobs[stream].index for stream in array.elements)


def _is_named(name: str, wanted: str) -> bool:
    return name.startswith(wanted[:-1]) if wanted.endswith("*") else name == wanted

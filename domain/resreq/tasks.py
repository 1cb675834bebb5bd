"""
Bring the counts of a compound and the job's -n together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from domain.errors import Refused
from domain.resreq.syntax import Compound, Requirement

FIELD: Final = "tasks"


@dataclass(frozen=True, slots=True)
class TaskRange:
    """
    Hold the fewest and the most tasks of something.
    """

    least: int
    most: int

    def __str__(self) -> str:
        """
        Return it as -n takes it.
        """
        return str(self.least) if self.least == self.most else f"{self.least},{self.most}"


ONE_TASK: Final = TaskRange(1, 1)


def task_counts(compound: Compound, asked: TaskRange | None) -> tuple[TaskRange, ...]:
    """
    Return the range of tasks of each primary, in order.

    Args:
        compound: One alternative of the job's requirement.
        asked: The job's -n, None when it has none: a term without a count is then for one task.

    Raises:
        Refused: -n contradicts the counts.
    """
    counted = sum(primary.tasks or 0 for primary in compound.primaries)
    fixed = [
        TaskRange(primary.tasks, primary.tasks) for primary in compound.primaries if primary.tasks
    ]
    if len(fixed) < len(compound.primaries):
        return (*fixed, _rest(counted, asked))
    if asked is not None and not asked.least <= counted <= asked.most:
        raise Refused(FIELD, f"must be {counted}, the sum of the requirement's counts", str(asked))
    return tuple(fixed)


def _rest(counted: int, asked: TaskRange | None) -> TaskRange:
    """
    Return what -n leaves for the last term.
    """
    if asked is None:
        return ONE_TASK
    if asked.most <= counted:
        rule = f"must be more than {counted}, the sum of the requirement's other counts"
        raise Refused(FIELD, rule, str(asked))
    return TaskRange(max(1, asked.least - counted), asked.most - counted)


def task_range(compound: Compound, asked: TaskRange | None) -> TaskRange:
    """
    Return the range of tasks of a whole compound.

    Raises:
        Refused: -n contradicts the counts.
    """
    counts = task_counts(compound, asked)
    return TaskRange(sum(each.least for each in counts), sum(each.most for each in counts))


def check_tasks(requirement: Requirement, asked: TaskRange | None) -> tuple[TaskRange, ...]:
    """
    Return the range of tasks of each alternative.

    Raises:
        Refused: -n contradicts the counts of one of them.
    """
    return tuple(task_range(compound, asked) for compound in requirement.compounds)


def kept_counts(compound: Compound, asked: TaskRange | None) -> tuple[TaskRange, ...]:
    """
    Return the same for a job that was taken in before: where other defaults of its profile or queue
    contradict its counts by now, these go on as they are.
    """
    try:
        return task_counts(compound, asked)
    except Refused:
        return task_counts(compound, None)

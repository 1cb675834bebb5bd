"""
What a job asks for, as placement sees it, and the fingerprint that tells requests apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.jobs import JobSpec, Need

MILLI = 1000


@dataclass(slots=True, frozen=True)
class Request:
    """
    Hold a request. Jobs of one fingerprint ask for the same and get the same answer.

    Args:
        fingerprint: Everything that the outcome of a placement depends on, in canonical words.
        tasks_min: Fewest tasks.
        tasks_max: Most tasks.
        needs: Amounts per host or per task.
    """

    fingerprint: str
    tasks_min: int
    tasks_max: int
    needs: tuple[Need, ...]


def fingerprint_of(spec: JobSpec) -> str:
    """
    Return the canonical words of all that decides a job's placement: queue, tasks, reserved
    amounts.

    Users and projects are not in it as long as nothing is limited by user or project.
    """
    needs = ",".join(
        f"{need.resource}={need.milli}/{'task' if need.per_task else 'host'}" for need in spec.needs
    )
    tasks = (
        str(spec.tasks_min)
        if spec.tasks_min == spec.tasks_max
        else f"{spec.tasks_min},{spec.tasks_max}"
    )
    return f"queue={spec.queue} tasks={tasks}" + (f" rusage[{needs}]" if needs else "")


def request_of(spec: JobSpec) -> Request:
    """
    Return the request of a job.
    """
    return Request(fingerprint_of(spec), spec.tasks_min, spec.tasks_max, spec.needs)


def need_of(need: Need, tasks: int) -> int:
    """
    Return what a bucket of so many tasks takes of a resource on its host, in thousandths.
    """
    return need.milli * tasks if need.per_task else need.milli

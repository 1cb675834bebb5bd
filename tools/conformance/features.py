"""
Which vectors ask for what this program leaves out, and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tools.conformance.values import (
    NOTHING,
    Fields,
    LeftOut,
    Vector,
    cases_of,
    items_of,
    mapping_of,
    texts_of,
)

BACKFILL: Final = "jobs of an interruptible backfill queue aren't ended for the job they overtook"

_QUEUE_FIELDS: Final = {"INTERRUPTIBLE_BACKFILL": BACKFILL}
DURATION: Final = "duration and decay of rusage are kept and told, and not carried out yet"
SUPERSEDED: Final = "superseded: use is reported per host, so jobs over several hosts reconcile too"


def refuse_left_out(vector: Vector) -> None:
    """
    Do nothing, or say which feature a vector asks for that isn't part of this program.

    Raises:
        LeftOut: It asks for one.
    """
    reason = None
    if "overage_applied" in mapping_of_or_nothing(vector.fields.get("expect")):
        reason = SUPERSEDED
    # A limit stays charged when a duration ends, so only vectors about the resource itself differ.
    is_about = vector.kind == "schedule" and vector.topic == "shared"
    if is_about and any(":duration" in text for text in _requirements(vector)):
        reason = reason or DURATION
    for fields in _queues(vector):
        for name in fields:
            reason = reason or _QUEUE_FIELDS.get(name)
    if reason is not None:
        raise LeftOut(reason)


def mapping_of_or_nothing(value: object) -> Fields:
    """
    Return a mapping, an empty one for anything else.
    """
    return mapping_of(value) if isinstance(value, Mapping) else NOTHING


def _queues(vector: Vector) -> Iterator[Fields]:
    for _, case in cases_of(vector.fields):
        yield from _mappings_in(case.get("queues"))


def _requirements(vector: Vector) -> Iterator[str]:
    for _, case in cases_of(vector.fields):
        for jobs in ("jobs", "running"):
            for job in _mappings_in(case.get(jobs)):
                yield from texts_of(job.get("R"))


def _mappings_in(value: object) -> list[Fields]:
    """
    Return what is told in a list, or by name, as mappings; bare names say nothing more.
    """
    told = list(value.values()) if isinstance(value, Mapping) else items_of(value)
    return [mapping_of(each) for each in told if isinstance(each, Mapping)]

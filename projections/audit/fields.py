"""
What people call the fields of a job, and which of them say nothing that another one doesn't say.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from domain.definitions import MODELS, shape_of
from projections.audit.job_words import job_words

JOB: Final = "job"
_MADE: Final = ("env_count", "names_tasks", "needs", "requirement", "uses_shell")
"""Fields of a job that are worked out from what stands beside them."""


def field_words(field: str, kind: str) -> str:
    """
    Return what people call a field of something of a kind; what is defined has the names that
    define it.
    """
    return job_words(field) if kind == JOB else field


def is_made(field: str, kind: str) -> bool:
    """
    Say whether a field is worked out from another one.
    """
    outer = field.split(".", 1)[0]
    return outer in _MADE if kind == JOB else outer in _made_of(kind)


@cache
def _made_of(kind: str) -> frozenset[str]:
    """
    Return the fields of a definition that nobody says; a host's are a worker's inside.
    """
    model = MODELS.get("host" if kind == "worker" else kind)
    fields = {} if model is None else model.model_fields
    return frozenset(name for name, field in fields.items() if shape_of(field) == "made")

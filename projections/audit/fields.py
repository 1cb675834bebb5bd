"""
What people call the fields of a job, and which of them say nothing that another one doesn't say.
"""

from __future__ import annotations

from typing import Final

JOB: Final = "job"

_WORDS: Final = {
    "array": "elements at a time (-J %K)",
    "array.started_max": "elements at a time (-J %K)",
    "begin_us": "not before (-b)",
    "deadline_us": "ends by (-t)",
    "dependency": "dependency (-w)",
    "dependency_text": "dependency (-w)",
    "group": "user group (-G)",
    "hosts": "hosts (-m)",
    "job_id": "job",
    "limits.cpu_us": "processor time (-c)",
    "limits.file_kib": "file size (-F)",
    "limits.memory_kib": "memory (-M)",
    "limits.processes": "processes (-p)",
    "limits.swap_kib": "swap space (-v)",
    "limits.threads": "threads (-T)",
    "name": "name (-J)",
    "profile": "profile (--app)",
    "program.stderr": "standard error (-e)",
    "program.stdout": "standard output (-o)",
    "project": "project (-P)",
    "rerunnable": "started anew when its host is lost (-r)",
    "resreq": "requirement (-R)",
    "run_estimate_us": "expected run time (-We)",
    "run_limit_us": "run limit (-W)",
    "tasks_max": "tasks at most (-n)",
    "tasks_min": "tasks at least (-n)",
    "user_priority": "priority (--sp)",
}
"""Field of a job -> what its user calls it, with the option that sets it."""

_MADE: Final = ("needs", "requirement", "dependency")
"""Fields of a job that are worked out from a text that stands beside them."""


def field_words(field: str, kind: str) -> str:
    """
    Return what people call a field of something of a kind; what is defined has the names that
    define it.
    """
    return _WORDS.get(field, field) if kind == JOB else field


def is_made(field: str, kind: str) -> bool:
    """
    Say whether a field is worked out from another one.
    """
    return kind == JOB and field.split(".", 1)[0] in _MADE

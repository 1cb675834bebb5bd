"""
What people call the fields of a job, and which of them say nothing that another one doesn't say.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from domain.definitions import MODELS, shape_of

JOB: Final = "job"
STARTED_MAX: Final = "array.started_max"

_WORDS: Final = {
    "array": "elements at a time (-J %K)",
    STARTED_MAX: "elements at a time (-J %K)",
    "begin_us": "not before (-b)",
    "command": "command",
    "cwd": "directory (--cwd)",
    "deadline_us": "ends by (-t)",
    "dependency": "dependency (-w)",
    "dependency_text": "dependency (-w)",
    "ends_as_orphan": "ended when its dependency can't come true (-ti)",
    "exits": "what exit codes mean (-Q)",
    "exits.exclude": "exit codes that put it back, avoiding the host (-Q)",
    "exits.requeue": "exit codes that put it back (-Q)",
    "exits.success": "exit codes that mean success",
    "group": "user group (-G)",
    "hosts": "hosts (-m)",
    "hosts_asked": "hosts (-m)",
    "is_exclusive": "nothing else on its hosts (-x)",
    "job_id": "job",
    "limits.cpu_us": "processor time (-c)",
    "limits.file_kib": "file size (-F)",
    "limits.memory_kib": "memory (-M)",
    "limits.processes": "processes (-p)",
    "limits.swap_kib": "swap space (-v)",
    "limits.threads": "threads (-T)",
    "name": "name (-J)",
    "place": "place among its equals",
    "post_exec": "command afterwards (-Ep)",
    "pre_exec": "command before (-E)",
    "profile": "profile (--app)",
    "program.stderr": "standard error (-e)",
    "program.stdout": "standard output (-o)",
    "project": "project (-P)",
    "queue": "queue (-q)",
    "rerunnable": "started anew when its host is lost (-r)",
    "resreq": "requirement (-R)",
    "run_estimate_us": "expected run time (-We)",
    "run_limit_us": "run limit (-W)",
    "started_max": "elements at a time (-J %K)",
    "stderr": "standard error (-e)",
    "stdin": "standard input (-i)",
    "stdout": "standard output (-o)",
    "tasks_max": "tasks at most (-n)",
    "tasks_min": "tasks at least (-n)",
    "transfers": "files copied (-f)",
    "user_group": "user group (-G)",
    "user_priority": "priority (--sp)",
}
"""Field or column of a job -> what its user calls it, with the option that sets it."""

_MADE: Final = ("env_count", "names_tasks", "needs", "requirement", "uses_shell")
"""Fields of a job that are worked out from what stands beside them."""


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

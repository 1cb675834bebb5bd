"""
What people call the fields of a job, and by which options they set them: the one table of both.
"""

from __future__ import annotations

from typing import Final

STARTED_MAX: Final = "array.started_max"
COMMAND: Final = "COMMAND"
"""Stands where an option would: what is typed behind the options."""

_ASKED: Final = {
    "queue": ("queue", "-q"),
    "group": ("user group", "-G"),
    "project": ("project", "-P"),
    "profile": ("profile", "--app"),
    "name": ("name", "-J"),
    "array": ("elements at a time", "-J %K"),
    "array.ranges": ("indices", "-J"),
    STARTED_MAX: ("elements at a time", "-J %K"),
    "tasks_min": ("tasks at least", "-n"),
    "tasks_max": ("tasks at most", "-n"),
    "names_tasks": ("tasks named", "-n"),
    "resreq": ("requirement", "-R"),
    "requirement": ("requirement", "-R"),
    "hosts": ("hosts", "-m"),
    "is_exclusive": ("nothing else on its hosts", "-x"),
    "dependency": ("dependency", "-w"),
    "dependency_text": ("dependency", "-w"),
    "ends_as_orphan": ("ended when its dependency can't come true", "-ti"),
    "begin_us": ("not before", "-b"),
    "deadline_us": ("ends by", "-t"),
    "hold": ("hold", "-H"),
    "run_limit_us": ("run limit", "-W"),
    "run_estimate_us": ("expected run time", "-We"),
    "limits": ("limits", "-M"),
    "limits.memory_kib": ("memory", "-M"),
    "limits.swap_kib": ("swap space", "-v"),
    "limits.cpu_us": ("processor time", "-c"),
    "limits.processes": ("processes", "-p"),
    "limits.threads": ("threads", "-T"),
    "limits.file_kib": ("file size", "-F"),
    "rerunnable": ("started anew when its host is lost", "-r"),
    "exits": ("what exit codes mean", "-Q"),
    "exits.requeue": ("exit codes that put it back", "-Q"),
    "exits.exclude": ("exit codes that put it back, avoiding the host", "-Q"),
    "user_priority": ("priority", "-sp"),
    "program": ("command", "--shell"),
    "program.argv": ("command", COMMAND),
    "program.shell": ("shell text", "--shell"),
    "program.cwd": ("directory", "--cwd"),
    "program.env": ("environment", "--env"),
    "program.stdin": ("standard input", "-i"),
    "program.stdout": ("standard output", "-o"),
    "program.stderr": ("standard error", "-e"),
    "program.pre_exec": ("command before", "-E"),
    "program.post_exec": ("command afterwards", "-Ep"),
    "program.transfers": ("files copied", "-f"),
}
"""Field of a job -> what its user calls it, and the option that sets it."""

_TOLD: Final = {
    "job_id": "job",
    "place": "place among its equals",
    "user": "user",
    "exits.success": "exit codes that mean success",
    "exits.requeue_max": "times that it is put back",
    "program.umask": "file mode mask",
    "submit_model": "model of the submission's host",
    "submit_type": "type of the submission's host",
}
"""Field of a job that no option sets -> what its user calls it."""

_ALIASES: Final = {
    "command": "program.argv",
    "cwd": "program.cwd",
    "dependency": "dependency_text",
    "env_count": "program.env",
    "hosts_asked": "hosts",
    "post_exec": "program.post_exec",
    "pre_exec": "program.pre_exec",
    "started_max": STARTED_MAX,
    "stderr": "program.stderr",
    "stdin": "program.stdin",
    "stdout": "program.stdout",
    "transfers": "program.transfers",
    "umask": "program.umask",
    "user_group": "group",
}
"""Column of the audit tables, or field of a request -> the field of a job that it holds."""


def job_words(field: str) -> str:
    """
    Return what people call a field of a job, with the option that sets it.
    """
    field = _ALIASES.get(field, field)
    words, option = bare_words(field), _ASKED.get(field, ("", COMMAND))[1]
    return words if option == COMMAND else f"{words} ({option})"


def bare_words(field: str) -> str:
    """
    Return the same without the option.
    """
    field = _ALIASES.get(field, field)
    return _ASKED[field][0] if field in _ASKED else _TOLD.get(field, field)


def option_of(field: str) -> str | None:
    """
    Return the option that sets a field of a job, None when none does; a part of a field that no
    entry names is the whole's.
    """
    field = _ALIASES.get(field, field)
    while field and field not in _ASKED:
        field = field.rpartition(".")[0]
    return _ASKED[field][1].split()[0] if field else None


def job_fields() -> tuple[str, ...]:
    """
    Return every field of a job that has words.
    """
    return (*_ASKED, *_TOLD)


def aliases() -> dict[str, str]:
    """
    Return the other names of fields.
    """
    return dict(_ALIASES)

"""
Everything that is told of one job: what it asks for, by the options that say it, and what became of
it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from domain.exit_values import show_requeue_values
from domain.terminations import exit_words, termination_words
from domain.units import MEMORY_NAMES, MILLI, show_memory, show_milli
from domain.units import show_duration as exactly
from projections.audit.job_words import bare_words
from tools.cli.client import Json
from tools.cli.output import show_duration, show_kib, show_time

Fact = tuple[str, Any]
Show = Callable[[Any], Any]


class Asked(NamedTuple):
    """
    Say how something that a job asks for is told.

    Args:
        fields: The fields of a job that it tells, parts of others with dots; the first one's words
            are its label.
        show: Makes a text of their values.
        label: Another label.
    """

    fields: tuple[str, ...]
    show: Callable[..., Any]
    label: str = ""

    def fact(self, job: Json) -> Fact:
        """
        Return label and text.
        """
        values = [_value(job, field) for field in self.fields]
        label = self.label or bare_words(self.fields[0]).capitalize()
        return label, None if all(_is_nothing(value) for value in values) else self.show(*values)


def _is_nothing(value: object) -> bool:
    return value is None or value in ("", [], {})


def _value(job: Json, field: str) -> Any:
    """
    Return a field of what a job asks for; its program is told apart from the rest.
    """
    found: Any = job if field.startswith("program.") else job.get("asked")
    for part in field.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _size(kib: int) -> str:
    """
    Return an amount of memory exactly, as it was asked for.
    """
    return show_memory(kib * MILLI)


def _yes(value: object) -> str:
    return "yes" if value else ""


def _said(value: object) -> str:
    return "yes" if value else "no"


def _text(value: object) -> str:
    return str(value)


def _range(tasks_min: int, tasks_max: int, *_: object) -> str:
    return str(tasks_min) if tasks_min == tasks_max else f"{tasks_min} to {tasks_max}"


def _hosts(hosts: list[Json]) -> str:
    return " ".join(
        f"{one['host']}{'!' * one['is_first']}{_wish(one['preference'])}" for one in hosts
    )


def _wish(preference: int) -> str:
    return f"+{preference}" if preference else ""


def _array(_: object, ranges: list[Json], started_max: int | None) -> str:
    """
    Return the indices of an array as -J takes them.
    """
    shown = ",".join(
        str(one["start"])
        if one["start"] == one["end"]
        else f"{one['start']}-{one['end']}" + (f":{one['step']}" if one["step"] > 1 else "")
        for one in ranges
    )
    return f"[{shown}]" + ("" if started_max is None else f"%{started_max}")


def _exits(_: object, requeue: list[int] | None, exclude: list[int] | None) -> str:
    return show_requeue_values(requeue or (), exclude or ())


def _numbers(values: list[int]) -> str:
    return " ".join(map(str, values))


def _command(argv: list[str] | None, shell: str | None) -> str:
    return shell if shell is not None else shlex.join(argv or ())


ASKED: Final = (
    Asked(("user",), _text),
    Asked(("queue",), _text),
    Asked(("group",), _text),
    Asked(("project",), _text),
    Asked(("profile",), _text),
    Asked(("program.argv", "program.shell"), _command),
    Asked(("program.cwd",), _text),
    Asked(("tasks_min", "tasks_max", "names_tasks"), _range, label="Tasks"),
    Asked(("resreq",), "  ".join),
    Asked(("array", "array.ranges", "array.started_max"), _array, label="Array"),
    Asked(("hosts",), _hosts, label="Hosts asked"),
    Asked(("is_exclusive",), _yes),
    Asked(("dependency_text",), _text, label="Depends on"),
    Asked(("ends_as_orphan",), _said),
    Asked(("begin_us",), show_time),
    Asked(("run_limit_us",), exactly),
    Asked(("run_estimate_us",), exactly, label="Expected run"),
    Asked(("deadline_us",), show_time),
    Asked(("limits.memory_kib",), _size, label="Memory limit"),
    Asked(("limits.swap_kib",), _size, label="Swap limit"),
    Asked(("limits.cpu_us",), exactly, label="CPU limit"),
    Asked(("limits.processes",), _text, label="Process limit"),
    Asked(("limits.threads",), _text, label="Thread limit"),
    Asked(("limits.file_kib",), _size, label="File limit"),
    Asked(("user_priority",), lambda number: number or ""),
    Asked(("rerunnable",), _said, label="Rerunnable"),
    Asked(("exits", "exits.requeue", "exits.exclude"), _exits, label="Requeued by"),
    Asked(("exits.requeue_max",), _text, label="Requeued up to"),
    Asked(("exits.success",), _numbers, label="Success is"),
    Asked(("program.pre_exec",), _text, label="Run before"),
    Asked(("program.post_exec",), _text, label="Run after"),
    Asked(("program.transfers",), "; ".join, label="Copied"),
    Asked(("program.stdin",), _text, label="Input"),
    Asked(("program.umask",), "{:03o}".format),
    Asked(("submit_type",), _text, label="Submit type"),
    Asked(("submit_model",), _text, label="Submit model"),
)
"""In the order of telling."""

NOT_ASKED: Final = {
    "name": "told first, with the job's number",
    "hold": "the state PSUSP tells it, and what it waits for",
    "requirement": "the parsed form of resreq",
    "dependency": "the parsed form of dependency_text",
    "limits": "told part by part",
    "program": "told part by part",
    "program.env": "may hold secrets, and is long",
    "program.stdout": "told with the output, where it really lies",
    "program.stderr": "told with the output, where it really lies",
}
"""Fields of a job that aren't told as asked for -> why not."""


def facts(job: Json, show_hosts: Show) -> Iterator[Fact]:
    """
    Yield everything about one job: what to call it, and what there is to say.

    Args:
        job: As the scheduler tells it.
        show_hosts: Makes a text of the hosts where it runs.
    """
    program = job.get("program") or {}
    yield from (("Job", job["job_id"]), ("Name", job.get("name")), ("State", job["state"]))
    yield from (one.fact(job) for one in ASKED)
    yield from _filled_in(job)
    yield from (
        ("Hosts", show_hosts(job.get("hosts"))),
        ("Attempt", job.get("attempt")),
        ("Process", job.get("pid")),
        ("Submitted", show_time(job.get("submit_us"))),
        ("Started", show_time(job.get("start_us"))),
        ("Finished", show_time(job.get("finish_us"))),
        ("Ended with", exit_words(job.get("exit_code"), job.get("signal"))),
        ("Why it ended", termination_words(job.get("why") or "")),
        ("CPU time", show_duration(job.get("cpu_us") or None)),
        ("Memory peak", show_kib(job.get("max_rss_kib") or None)),
        ("Output", job.get("stdout") or program.get("stdout")),
        ("Errors", job.get("stderr") or program.get("stderr")),
        ("Waits for", job.get("pend_reason")),
        ("Stopped", job.get("stopped")),
    )


def _filled_in(job: Json) -> Iterator[Fact]:
    """
    Yield what holds for a job that its user didn't say in these words: what its requirement means
    on a host, and what its profile or queue says.
    """
    values, asked = job.get("effective") or {}, job.get("asked") or {}
    yield "Reserves", " ".join(map(_reserved, values.get("reserves") or ()))
    limits, own = values.get("limits") or {}, asked.get("limits") or {}
    if asked.get("run_limit_us") is None:
        yield "Run limit", _by_others(values.get("run_limit_us"), exactly)
    for one in ASKED:
        field = one.fields[0].removeprefix("limits.")
        if one.fields[0] != field and own.get(field) is None:
            yield one.label, _by_others(limits.get(field), one.show)


def _reserved(one: Json) -> str:
    """
    Return an amount that a job reserves, with what it counts for: "mem=500MB/host".
    """
    show = show_memory if one["resource"] in MEMORY_NAMES else show_milli
    return f"{one['resource']}={show(one['milli'])}/{one['per']}"


def _by_others(value: object, show: Show) -> str | None:
    return None if value is None else f"{show(value)}, by its profile or queue"

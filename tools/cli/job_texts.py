"""
What the options of a job are given as, read into the fields of a request.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from domain.errors import Refused
from domain.exit_values import parse_requeue_values
from domain.texts import is_utf8
from domain.units import MemoryUnit, memory_limit_kib, parse_run_limit_us, whole_number
from tools.cli.client import Json
from tools.cli.moments import parse_moment_us


class Typed(NamedTuple):
    """
    Say how a value was typed.

    Args:
        flag: The option, for errors.
        unit: What a number alone means for memory, as the cluster has it.
    """

    flag: str
    unit: MemoryUnit = MemoryUnit.MB


Reader = Callable[[Any, Typed], Json]

ENV_BYTES_MAX: Final = 512 * 1024
ENV_COUNT_MAX: Final = 4096

# ------------------------------------------------------------------------------ values of one field


def text_of(field: str) -> Reader:
    """
    Return what takes a text as it is.
    """
    return lambda text, _typed: {field: text}


def all_of(field: str) -> Reader:
    """
    Return the same for an option that may be given several times.
    """
    return lambda words, _typed: {field: list(words)}


def flag_of(field: str, *, off: bool | None) -> Reader:
    """
    Return what takes a flag, which may be switched off.
    """
    return lambda is_on, _typed: {field: True if is_on else off}


def duration_of(field: str) -> Reader:
    """
    Return what reads a duration of more than 0.
    """
    return lambda text, typed: {field: parse_run_limit(text, typed.flag)}


def moment_of(field: str) -> Reader:
    """
    Return what reads a moment.
    """

    def read(text: str, typed: Typed) -> Json:
        return {field: parse_moment_us(text, field=typed.flag, now_us=time.time_ns() // 1000)}

    return read


def size_of(field: str) -> Reader:
    """
    Return what reads an amount of memory; a number alone is in the cluster's unit.
    """
    return lambda text, typed: {field: memory_limit_kib(text, unit=typed.unit, field=typed.flag)}


def count_of(field: str, *, least: int) -> Reader:
    """
    Return what reads a whole number.
    """

    def read(text: str, typed: Typed) -> Json:
        count = whole_number(text)
        if count is None or count < least:
            raise Refused(typed.flag, f"must be a whole number from {least} on", text)
        return {field: count}

    return read


def parse_run_limit(text: str, field: str = "-W") -> int:
    """
    Return the microseconds of "MINUTES", "HOURS:MINUTES", or a duration as it is shown ("1h30m").

    Raises:
        Refused: It is something else.
    """
    limit_us = parse_run_limit_us(text, field=field)
    if not limit_us:
        raise Refused(field, "must be more than 0", text)
    return limit_us


# ----------------------------------------------------------------------------- values of their kind


def read_tasks(text: str, typed: Typed) -> Json:
    """
    Read fewest and most tasks.
    """
    tasks_min, tasks_max = parse_tasks(text, typed.flag)
    return {"tasks_min": tasks_min, "tasks_max": tasks_max}


def parse_tasks(text: str, field: str = "-n") -> tuple[int, int]:
    """
    Return fewest and most tasks of "MIN" or "MIN,MAX".

    Raises:
        Refused: It is something else.
    """
    least, comma, most = text.partition(",")
    tasks_min = whole_number(least)
    tasks_max = whole_number(most) if comma else tasks_min
    if tasks_min is None or tasks_max is None:
        raise Refused(field, "must be MIN or MIN,MAX in whole numbers", text)
    if tasks_min < 1:
        raise Refused(field, "must ask for at least 1 task", text)
    if tasks_max < tasks_min:
        raise Refused(field, "must not have a MAX below its MIN", text)
    return tasks_min, tasks_max


def read_name(text: str, typed: Typed) -> Json:
    """
    Read a name, and what makes the job an array.
    """
    from domain.arrays import INDEX_MAX, parse_job_name  # It loads pydantic.

    name, array = parse_job_name(text, index_max=INDEX_MAX, field=typed.flag)
    return {"name": name, "array": None if array is None else array.model_dump()}


def read_name_change(text: str, typed: Typed) -> Json:
    """
    Read another name, another bound of an array, or both.
    """
    if text.isalnum():
        return {"name": text}
    from domain.arrays import parse_name_change

    name, bound = parse_name_change(text, field=typed.flag)
    found: Json = {"name": name} if name or bound is None else {}
    return found if bound is None else found | {"started_max": bound}


def read_hosts(text: str, typed: Typed) -> Json:
    """
    Read hosts with their preference.
    """
    hosts = [_host(word, typed.flag) for word in text.split()]
    if not hosts:
        raise Refused(typed.flag, "must name a host", text)
    return {"hosts": hosts}


def _host(word: str, flag: str) -> Json:
    name, plus, wish = word.partition("+")
    preference = whole_number(wish) if plus else 0
    if preference is None:
        raise Refused(flag, "must prefer hosts by a whole number such as alpha+1", word)
    return {
        "host": name.removesuffix("!"),
        "preference": preference,
        "is_first": name.endswith("!"),
    }


def read_exits(text: str, typed: Typed) -> Json:
    """
    Read exit values that put a job back: "99 100 EXCLUDE(20 21)", "all ~1".
    """
    requeue, exclude = parse_requeue_values(text, field=typed.flag)
    return {"exits.requeue": list(requeue), "exits.exclude": list(exclude)}


TRANSFER = re.compile(
    r"\s*(?P<local>[^<>]*?[^<>\s])\s*(?P<op><>|><|<<|<|>)\s*(?P<remote>[^<>]*?)\s*"
)


def read_transfers(words: Iterable[str], typed: Typed) -> Json:
    """
    Read files to copy.
    """
    return {"program.transfers": [parse_transfer(word, typed.flag) for word in words]}


def parse_transfer(text: str, field: str = "-f") -> Json:
    """
    Return a file to copy: "local > remote"; without the second it has the same name there.

    Raises:
        Refused: It isn't one.
    """
    found = TRANSFER.fullmatch(text)
    if found is None:
        rule = 'must be a file, one of > < << <>, and maybe another, as "in > there"'
        raise Refused(field, rule, text)
    op = "<>" if found["op"] == "><" else found["op"]
    return {"local": found["local"], "op": op, "remote": found["remote"] or found["local"]}


def read_shell(text: str, _typed: Typed) -> Json:
    """
    Read a shell text, which stands in place of a command.
    """
    return {"program.shell": text, "program.argv": []}


def read_cwd(text: str, _typed: Typed) -> Json:
    """
    Read a directory, relative to this one.
    """
    return {"program.cwd": str(Path(text).absolute())}


# ----------------------------------------------------------------------------------- environments


def read_environment(changes: tuple[str, ...], _typed: Typed) -> Json:
    """
    Read an environment, made from the current one.
    """
    return {"program.env": variables(environment(changes, dict(os.environ)))}


def variables(chosen: dict[str, str]) -> list[Json]:
    """
    Return an environment as a request has it.
    """
    return [{"name": name, "value": value} for name, value in chosen.items()]


def environment(changes: tuple[str, ...], current: dict[str, str]) -> dict[str, str]:
    """
    Return the environment of a job: the current one, changed option by option.

    Args:
        changes: NONE empties it, ALL takes the current one, NAME=VALUE sets, NAME takes one
            variable from the current one, ~NAME leaves one out.
        current: The environment of the caller.

    Raises:
        Refused: A change names nothing that is there, or the whole is too large.
    """
    chosen = dict(current)
    for change in changes:
        name, equals, value = change.partition("=")
        if equals and name:
            chosen[name] = value
        elif change.upper() in ("ALL", "NONE"):
            chosen = dict(current) if change.upper() == "ALL" else {}
        elif change.startswith("~"):
            chosen.pop(change[1:], None)
        elif change in current:
            chosen[change] = current[change]
        else:
            rule = "must be ALL, NONE, NAME=VALUE, ~NAME or a variable that is set"
            raise Refused("--env", rule, change)
    _check_environment(chosen)
    return chosen


def _check_environment(chosen: dict[str, str]) -> None:
    size = sum(len(os.fsencode(f"{name}={value}")) + 1 for name, value in chosen.items())
    if len(chosen) > ENV_COUNT_MAX or size > ENV_BYTES_MAX:
        rule = f"must hold at most {ENV_COUNT_MAX} variables and {ENV_BYTES_MAX // 1024} KiB in all"
        found = f"{len(chosen)} variables, {size // 1024} KiB"
        raise Refused("--env", rule, found, "Begin with --env NONE and name what the job needs.")
    for name, value in chosen.items():
        if not is_utf8(name + value):
            hint = f"Leave it out: --env '~{name}'."
            raise Refused(f"--env {name}", "must be UTF-8", hint=hint)

"""
What else a submission may ask for, by LSF's letters: when it starts, where, and what bounds it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import click

from domain.errors import Refused
from domain.exit_values import parse_requeue_values
from domain.units import MemoryUnit, memory_limit_kib, parse_run_limit_us
from tools.cli.client import Json

Command = Callable[..., Any]


_OPTIONS = (
    click.option("-w", "dependency", metavar="TEXT",
                 help='Wait for other jobs: "done(12) && ended(13)".'),
    click.option("-b", "begin", metavar="TIME",
                 help="Don't start before this time, such as 2026-11-29T18:00:00Z."),
    click.option("-t", "deadline", metavar="TIME", help="End it at this time, if it still runs."),
    click.option("-m", "hosts", metavar="HOSTS",
                 help='Only on these hosts: "alpha beta+1" (beta is preferred).'),
    click.option("-x", "is_exclusive", is_flag=True, help="Nothing else may run on its hosts."),
    click.option("-M", "memory", metavar="SIZE",
                 help="End it when it uses more memory; in MB, or with a suffix such as 2G; "
                      "rounded up to a whole MB."),
    click.option("-v", "swap", metavar="SIZE",
                 help="End it when it uses more swap space; as for -M."),
    click.option("-F", "file_size", metavar="SIZE", help="No file of it gets larger; as for -M."),
    click.option("-c", "cpu", metavar="[HOURS:]MINUTES",
                 help="End it when it has used so much processor time."),
    click.option("-p", "processes", type=click.IntRange(min=1), metavar="N",
                 help="End it when it has more processes."),
    click.option("-T", "threads", type=click.IntRange(min=1), metavar="N",
                 help="End it when it has more threads."),
    click.option("-r", "is_rerunnable", is_flag=True, help="Start it anew when its host is lost."),
    click.option("-ti", "ends_as_orphan", is_flag=True,
                 help="End it when what it waits for (-w) can never come true."),
    click.option("-Q", "requeue", metavar="CODES",
                 help='Put it back when it ends with these exit codes: "99 EXCLUDE(20)" (and, with '
                      'one task, avoid the host), or "all ~1" (any but 0 and 1).'),
    click.option("-sp", "--sp", "priority", type=click.IntRange(min=0), metavar="NUMBER",
                 help="Its priority among the jobs of its queue."),
    click.option("-We", "estimate", metavar="[HOURS:]MINUTES",
                 help="How long it will run, for planning; nothing ends it then."),
)  # fmt: skip


def more_options(command: Command) -> Command:
    """
    Give a command these options.
    """
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def more_of(options: dict[str, Any]) -> Json:
    """
    Return what of these options was given, as fields of a submission.

    Raises:
        Refused: One breaks a rule that can be told here.
    """
    from domain.units import parse_time_us

    found: Json = {"dependency_text": options["dependency"] or ""}
    for name, letter in (("begin", "-b"), ("deadline", "-t")):
        if options[name]:
            found[f"{name}_us"] = parse_time_us(options[name], field=letter)
    if options["hosts"]:
        found["hosts"] = [_host(word) for word in options["hosts"].split()]
    if options["estimate"]:
        found["run_estimate_us"] = parse_run_limit(options["estimate"], field="-We")
    if options["is_exclusive"]:
        found["is_exclusive"] = True
    if options["is_rerunnable"]:
        found["rerunnable"] = True
    if options["ends_as_orphan"]:
        found["ends_as_orphan"] = True
    if options["priority"] is not None:
        found["user_priority"] = options["priority"]
    if options["requeue"]:
        found["exits"] = _exits(options["requeue"])
    limits = _limits(options)
    return {**found, "limits": limits} if limits else found


SIZES: Final = (
    ("memory", "memory_kib", "-M"),
    ("swap", "swap_kib", "-v"),
    ("file_size", "file_kib", "-F"),
)


def _limits(options: dict[str, Any]) -> Json:
    found: Json = {}
    for name, field, letter in SIZES:
        if options[name]:
            found[field] = memory_limit_kib(options[name], unit=MemoryUnit.MB, field=letter)
    if options["cpu"]:
        found["cpu_us"] = parse_run_limit(options["cpu"], field="-c")
    for name in ("processes", "threads"):
        if options[name] is not None:
            found[name] = options[name]
    return found


def _host(word: str) -> Json:
    name, _, wish = word.partition("+")
    if wish and not wish.isdecimal():
        raise Refused("-m", "must prefer hosts by a whole number such as alpha+1", word)
    return {
        "host": name.removesuffix("!"),
        "preference": int(wish or 0),
        "is_first": name.endswith("!"),
    }


def _exits(text: str) -> Json:
    """
    Return exit values that put a job back: "99 100 EXCLUDE(20 21)", "all ~1".
    """
    requeue, exclude = parse_requeue_values(text, field="-Q")
    return {"requeue": list(requeue), "exclude": list(exclude)}


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


TRANSFER = re.compile(
    r"\s*(?P<local>[^<>]*?[^<>\s])\s*(?P<op><>|><|<<|<|>)\s*(?P<remote>[^<>]*?)\s*"
)


def parse_transfer(text: str) -> Json:
    """
    Return a file to copy: "local > remote"; without the second it has the same name there.

    Raises:
        Refused: It isn't one.
    """
    found = TRANSFER.fullmatch(text)
    if found is None:
        rule = 'must be a file, one of > < << <>, and maybe another, as "in > there"'
        raise Refused("-f", rule, text)
    op = "<>" if found["op"] == "><" else found["op"]
    return {"local": found["local"], "op": op, "remote": found["remote"] or found["local"]}

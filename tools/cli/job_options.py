"""
The options that say what a job asks for, by LSF's letters: one table, from which submit takes all
and modify those that may change, and by which a job is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import click

from domain.errors import Refused
from domain.units import MILLI, MemoryUnit, memory_limit_kib, show_memory, split_quantity
from tools.cli import job_texts as texts
from tools.cli.client import Client, Json
from tools.cli.output import note

Command = Callable[..., Any]

NONE: Final = "none"
"""Stands for no value, when a job is modified."""


class Change(NamedTuple):
    """
    Say what is otherwise where a job is modified.
    """

    metavar: str
    help: str
    read: texts.Reader | None = None


class JobOption(NamedTuple):
    """
    Hold one option.

    Args:
        name: Of the command's parameter.
        flags: How it is typed; the first names it in errors.
        metavar: What stands for its value in the help, "" for a flag, which has none.
        help: What it does.
        read: Returns the fields of a request that a value becomes, parts of others with dots.
        nothing: The fields when it is taken away; None for what a job must have.
        is_list: Whether it may be given several times.
        change: What modify takes, where that isn't the same.
        instead: What modifies it, where modify doesn't.
    """

    name: str
    flags: tuple[str, ...]
    metavar: str
    help: str
    read: texts.Reader
    nothing: Json | None = None
    is_list: bool = False
    change: Change | None = None
    instead: str = ""

    @property
    def off(self) -> str:
        """
        Return how LSF takes it away: by its letter and n.
        """
        return f"{next(flag for flag in self.flags if flag[:2] != '--')}n"


OPTIONS: Final = (
    JobOption("tasks", ("-n",), "MIN[,MAX]",
              "How many tasks (slots); else what profile and queue say, else 1.",
              texts.read_tasks, {"tasks_min": None}),
    JobOption("resreq", ("-R",), "TEXT",
              'Resource requirement such as "rusage[mem=500]"; may be given several times.',
              texts.all_of("resreq"), {"resreq": []}, is_list=True),
    JobOption("queue", ("-q",), "QUEUE", "The queue; else the cluster's default.",
              texts.text_of("queue"), {"queue": ""}),
    JobOption("group", ("-G",), "GROUP", "The user group that it counts for.",
              texts.text_of("group"), {"group": ""}),
    JobOption("project", ("-P",), "PATH", "Its project, such as /a/b.",
              texts.text_of("project"), {"project": ""}),
    JobOption("profile", ("--app", "-app"), "PROFILE", "Its application profile.",
              texts.text_of("profile"), {"profile": ""}),
    JobOption("name", ("-J",), "NAME[LIST]%K",
              "A name for people; with indices such as sim[1-100:2]%10 an array, of which at "
              "most K elements are started at a time.",
              texts.read_name, {"name": ""},
              change=Change("NAME[%K]|%K", "A name for people; of an array also how many elements "
                            "are started at a time.", texts.read_name_change)),
    JobOption("run_limit", ("-W",), "[HOURS:]MINUTES",
              "Run limit, also as 1h30m; a job that runs longer, suspended time not counted, "
              "is ended.",
              texts.duration_of("run_limit_us"), {"run_limit_us": None}),
    JobOption("dependency", ("-w",), "TEXT", 'Wait for other jobs: "done(12) && ended(13)".',
              texts.text_of("dependency_text"), {"dependency_text": ""}),
    JobOption("begin", ("-b",), "TIME",
              "Don't start before this time: [[[YEAR:]MONTH:]DAY:]HOUR:MINUTE in the local time of "
              "this machine, the next such moment, or 2026-11-29T18:00:00Z. One that is past "
              "keeps nothing back.",
              texts.moment_of("begin_us"), {"begin_us": None}),
    JobOption("deadline", ("-t",), "TIME",
              "End it at this time, if it still runs; as for -b. One that is past ends it as soon "
              "as it would start.",
              texts.moment_of("deadline_us"), {"deadline_us": None}),
    JobOption("hosts", ("-m",), "HOSTS",
              'Only on these hosts: "alpha beta+1" (beta is preferred); of those marked as in '
              '"alpha!" one runs the command.',
              texts.read_hosts, {"hosts": []}),
    JobOption("is_exclusive", ("-x",), "", "Nothing else may run on its hosts.",
              texts.flag_of("is_exclusive", off=False)),
    JobOption("memory", ("-M",), "SIZE",
              "End it when it uses more memory; in the cluster's unit, else MB, or with a suffix "
              "such as 2G; rounded up to whole ones of that unit.",
              texts.size_of("limits.memory_kib"), {"limits.memory_kib": None}),
    JobOption("swap", ("-v",), "SIZE", "End it when it uses more swap space; as for -M.",
              texts.size_of("limits.swap_kib"), {"limits.swap_kib": None}),
    JobOption("file_size", ("-F",), "SIZE", "No file of it gets larger; as for -M.",
              texts.size_of("limits.file_kib"), {"limits.file_kib": None}),
    JobOption("cpu", ("-c",), "[HOURS:]MINUTES",
              "End it when it has used so much processor time.",
              texts.duration_of("limits.cpu_us"), {"limits.cpu_us": None}),
    JobOption("processes", ("-p",), "N", "End it when it has more processes.",
              texts.count_of("limits.processes", least=1), {"limits.processes": None}),
    JobOption("threads", ("-T",), "N", "End it when it has more threads.",
              texts.count_of("limits.threads", least=1), {"limits.threads": None}),
    JobOption("is_rerunnable", ("-r",), "",
              "Start it anew when its host is lost; -rn never, whatever the queue says.",
              texts.flag_of("rerunnable", off=False)),
    JobOption("ends_as_orphan", ("-ti",), "",
              "End it when what it waits for (-w) can never come true.",
              texts.flag_of("ends_as_orphan", off=None)),
    JobOption("requeue", ("-Q",), "CODES",
              'Put it back when it ends with these exit codes: "99 EXCLUDE(20)" (and, with '
              'one task, avoid the host), or "all ~1" (any but 0 and 1).',
              texts.read_exits, {"exits": None}),
    JobOption("priority", ("-sp", "--sp"), "NUMBER", "Its priority among the jobs of its queue.",
              texts.count_of("user_priority", least=0), {"user_priority": 0}),
    JobOption("estimate", ("-We",), "[HOURS:]MINUTES",
              "How long it will run, for planning; nothing ends it then.",
              texts.duration_of("run_estimate_us"), {"run_estimate_us": None}),
    JobOption("stdin", ("-i",), "FILE", "Standard input; else empty. %J and %I as for -o.",
              texts.text_of("program.stdin"), {"program.stdin": ""}),
    JobOption("stdout", ("-o",), "FILE",
              "Standard output; else a file of the worker. %J in it is the job's number, %I "
              "the index in an array (else 0), %% is %.",
              texts.text_of("program.stdout"), {"program.stdout": ""}),
    JobOption("stderr", ("-e",), "FILE",
              "Standard error; else a file of the worker. %J and %I as for -o.",
              texts.text_of("program.stderr"), {"program.stderr": ""}),
    JobOption("pre_exec", ("-E", "--pre-exec"), "TEXT",
              "Run this text by /bin/sh first, on the host; if it fails the job is tried on "
              "another one, with 99 it ends.",
              texts.text_of("program.pre_exec"), {"program.pre_exec": ""}),
    JobOption("post_exec", ("-Ep", "--post-exec"), "TEXT",
              "Run this text by /bin/sh afterwards, however the job ended; LSB_JOBEXIT_STAT "
              "tells it how.",
              texts.text_of("program.post_exec"), {"program.post_exec": ""}),
    JobOption("transfers", ("-f",), '"FILE OP [FILE]"',
              'Copy a file: "in > there" before the job, "out < there" after it, '
              '"log << there" appends it then, <> does both; several times.',
              texts.read_transfers, {"program.transfers": []}, is_list=True),
    JobOption("cwd", ("--cwd", "-cwd"), "DIR", "Where the job runs; else here.",
              texts.read_cwd,
              change=Change("DIR", "Where the job runs; relative to this directory.")),
    JobOption("env", ("--env",), "WHAT",
              "ALL, as if not given: all of this environment; NONE; NAME=VALUE; NAME; ~NAME "
              "leaves one out. May be given several times, and is taken in this order; at "
              f"most {texts.ENV_BYTES_MAX // 1024} KiB.",
              texts.read_environment, is_list=True,
              change=Change("WHAT", "Its environment, in place of what it had: ALL of this one, "
                            "changed as for xce submit.")),
    JobOption("hold", ("-H", "--hold"), "", "Keep it back until xce resume.",
              texts.flag_of("hold", off=False),
              instead="xce stop keeps a job back, xce resume lets it go on."),
    JobOption("shell", ("--shell", "-Z"), "TEXT",
              "Run this text by /bin/sh instead of a command.",
              texts.read_shell),
)  # fmt: skip
"""In the order of the help."""


def asking(command: Command) -> Command:
    """
    Give a command the options that say what a new job asks for.
    """
    for option in reversed(OPTIONS):
        command = _given(option)(command)
    return command


def changing(command: Command) -> Command:
    """
    Give a command the options that say what a job is to ask for from now on; each may also be taken
    away, as LSF does it, by its letter and n.
    """
    for option in reversed(OPTIONS):
        if option.nothing is not None:
            command = click.option(option.off, _off(option), is_flag=True, hidden=True)(command)
        command = _given(option, is_change=True)(command)
    return command


def _given(option: JobOption, *, is_change: bool = False) -> Command:
    names = [*option.flags, option.name]
    is_hidden = is_change and bool(option.instead)
    if not option.metavar:
        names[0] += "" if option.instead else f"/{option.off}"
        return click.option(
            *names, is_flag=True, multiple=True, callback=_one_way, help=option.help,
            hidden=is_hidden,
        )  # fmt: skip
    told = option.change if is_change and option.change is not None else option
    return click.option(
        *names, metavar=told.metavar, help=told.help, multiple=option.is_list, hidden=is_hidden
    )


def _one_way(
    _context: click.Context, parameter: click.Parameter, given: tuple[bool, ...]
) -> bool | None:
    """
    Return what a flag was given as, None for not at all; refuse it both on and off.
    """
    if len(set(given)) > 1:
        rule = f"can't be given along with {parameter.secondary_opts[0]}"
        raise Refused(parameter.opts[0], rule)
    return given[0] if given else None


def _off(option: JobOption) -> str:
    return f"{option.name}_off"


SIZES: Final = ("memory", "swap", "file_size")


def unit_for(client: Client, options: Json) -> MemoryUnit:
    """
    Return what a number alone means for memory; a cluster is only asked when an amount is given.
    """
    if all(options[name] in (None, NONE) for name in SIZES):
        return MemoryUnit.MB
    settings = client.get("/v1/definitions")["definitions"]["cluster"]
    return MemoryUnit(settings["memory_unit"])


def tell_sizes(options: Json, unit: MemoryUnit) -> None:
    """
    Say what amounts of memory mean that were given without a unit.
    """
    for option in OPTIONS:
        text = options[option.name] if option.name in SIZES else None
        if text not in (None, NONE) and not split_quantity(text, field=option.flags[0])[1]:
            kib = memory_limit_kib(text, unit=unit)
            note(f"xce: {option.flags[0]}: {text} means {show_memory(kib * MILLI)}.")


def fields_of(options: Json, unit: MemoryUnit = MemoryUnit.MB) -> Json:
    """
    Return the body of a submission, as far as options say it.

    Args:
        options: By the names of their parameters.
        unit: What a number alone means for memory.

    Raises:
        Refused: One breaks a rule that can be told here.
    """
    found: Json = {}
    for option in OPTIONS:
        value = options[option.name]
        if value not in (None, ()):
            _check_empty(option, value)
            found |= option.read(value, texts.Typed(option.flags[0], unit))
    return nested(found)


def changes_of(options: Json, unit: MemoryUnit = MemoryUnit.MB) -> Json:
    """
    Return the body of a modification.

    Args:
        options: By the names of their parameters.
        unit: What a number alone means for memory.

    Raises:
        Refused: Nothing is changed, or an option breaks a rule that can be told here.
    """
    found: Json = {}
    for option in OPTIONS:
        value, flag = options[option.name], option.flags[0]
        is_off = value in (NONE, (NONE,)) or bool(options.get(_off(option)))
        _check_told_once(option, options)
        if value in (None, ()) and not is_off:
            continue
        if option.instead:
            raise Refused(flag, "can't be changed by a modification", hint=option.instead)
        if not is_off:
            _check_empty(option, value)
            read = option.change.read if option.change is not None else None
            found |= (read or option.read)(value, texts.Typed(flag, unit))
        elif option.nothing is None:
            raise Refused(flag, "can be changed, not taken away")
        else:
            found |= option.nothing
    if not found:
        raise Refused("options", "must name what to change", hint="See xce modify --help.")
    return nested(found)


def _check_told_once(option: JobOption, options: Json) -> None:
    """
    Do nothing, or refuse a value along with the letter that takes it away: one would be dropped.
    """
    value = options[option.name]
    if options.get(_off(option)) and value not in (None, (), NONE, (NONE,)):
        raise Refused(option.flags[0], f"can't be given along with {option.off}", value)


def _check_empty(option: JobOption, value: object) -> None:
    if "" in (value if isinstance(value, tuple) else (value,)):
        raise Refused(option.flags[0], "must not be empty")


def nested(flat: Json) -> Json:
    """
    Return fields as a request has them, those with dots inside of what stands before the dot.
    """
    found: Json = {}
    for name, value in flat.items():
        outer, dot, inner = name.partition(".")
        if dot:
            found.setdefault(outer, {})[inner] = value
        else:
            found[outer] = value
    return found

"""
Tell a refusal in the words of the person who asked: by the option or argument that was typed, not
by the field of a request that it became.
"""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from domain.errors import NotFound, Refused
from domain.texts import is_utf8
from tools.cli.groups import TYPED, Context

# Fields of requests whose parameter of the command has another name, and that no job has.
PARAMETERS: Final = {
    "job_id": "job_ids",
    "object": "name",
    "program.argv": "command",
    "worker": "host",
    "workload": "file",
}

# Commands that say what a job asks for.
JOB_COMMANDS: Final = ("submit", "modify")

# What lists those that may be named, by the rule of a refusal that names none of them.
LISTS: Final = {
    "must name a job that is known": "xce jobs -a",
    "must name a queue that exists": "xce queues",
    "must name a profile that exists": "xce definitions profile",
    "must name a project that exists": "xce definitions project",
    "must name jobs that exist": "xce jobs -a",
    "must name one that exists": "xce definitions",
    "must name a worker that has joined": "xce hosts",
    "must name workers that have joined": "xce hosts",
    "must be a job, host, queue or other entity of this log":
        "xce jobs -a, xce hosts, xce queues. Of a log without a scheduler: "
        "xce audit export jobs --dir LOG",
}  # fmt: skip

# What is advised by the rule of a refusal that says nothing itself.
ADVICE: Final = {
    "must not have ended": "xce job JOB tells how it did.",
}

# Fields that are named by a path, of which a command may take several.
PLACES: Final = ("log", "workload")

# What is advised where something that was to be read isn't there, by the field of the refusal.
MISSING: Final = {
    "log": "xce up makes a log, and so do xce simulate and xce replay branch with --log DIR.",
    "workload": "Give a workload, a log's directory or a recording: xce simulate --help names what "
    "is read.",
}

# Their values were made from what was typed, in a unit that nobody typed.
MADE: Final = ("_us", "_kib")


def tell_as_typed(error: Refused) -> None:
    """
    Put the option or argument of the command at work in place of the field that an error names, and
    say what lists those that may be named.

    A field that nothing typed gave stays as it is, so that nobody looks for an option that isn't
    there.
    """
    context = click.get_current_context(silent=True)
    if context is None:
        return
    _advise(error, context)
    if context.params.get("kind") == error.field:
        # What has a name is asked for by its kind: nobody typed that as a field.
        error.field = "NAME"
        return
    is_missing = isinstance(error, NotFound) and error.field in PLACES
    if is_missing and (named := _of_place(context, str(error.value))) is not None:
        _rename(error, named, error.value)
        return
    for name in _parameters_of(error.field):
        found = [one for one in context.command.params if _is_called(one, name)]
        given = [one for one in found if _is_given(context, one)]
        if given:
            _rename(error, given[0], context.params.get(given[0].name or ""))
            return
    if context.command.name in JOB_COMMANDS:
        _say_in_words(error)


def _say_in_words(error: Refused) -> None:
    """
    Put what people call a field of a job in place of its name, where nothing typed gave it: a
    profile did, or the queue.
    """
    from domain.units import show_by_name
    from projections.audit.job_words import bare_words

    if error.field.endswith(MADE) and isinstance(error.value, int):
        error.value = show_by_name(error.field, error.value)
    error.field = bare_words(error.field)


def _advise(error: Refused, context: click.Context) -> None:
    """
    Give an error that says nothing of what to do the next step, where there is one.
    """
    if error.hint is not None:
        return
    # The lists are a scheduler's: a command that takes a log as its argument asks none.
    asks_cluster = any(one.name == "directory" for one in context.command.params)
    if asks_cluster and error.rule in LISTS:
        error.hint = f"List them: {LISTS[error.rule]}."
    elif isinstance(error, NotFound) and error.field in MISSING:
        error.hint = MISSING[error.field]
    else:
        error.hint = ADVICE.get(error.rule)


def _of_place(context: click.Context, place: str) -> click.Parameter | None:
    """
    Return the parameter that named a directory or a file, None when none did.
    """
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if not isinstance(value, Path) or not _is_given(context, parameter):
            continue
        if place in (str(value), str(value.absolute()), str(value.resolve())):
            return parameter
    return None


def _parameters_of(field: str) -> list[str]:
    """
    Return what the parameter of a field may be called, the likeliest first; "program.env" may be
    "env", and "hosts.0.host" is "-m".
    """
    from projections.audit.job_words import option_of

    inner = field.removeprefix("program.")
    option = option_of(field)
    names = [] if option is None else [option]
    # A shell text stands in place of a command, which ends where it begins.
    names += [PARAMETERS.get(field, inner), inner, *(["shell"] if inner == "argv" else [])]
    return [*names, inner.split(".")[0]]


def _is_called(parameter: click.Parameter, name: str) -> bool:
    is_argument = isinstance(parameter, click.Argument)
    return (
        parameter.name == name
        or name in parameter.opts
        or f"--{name}" in parameter.opts
        or (is_argument and _shown(parameter).lower() == name)
    )


def _is_given(context: click.Context, parameter: click.Parameter) -> bool:
    source = context.get_parameter_source(parameter.name or "")
    return source not in (None, ParameterSource.DEFAULT)


def _rename(error: Refused, parameter: click.Parameter, typed: Any) -> None:
    if error.field.endswith(MADE) and isinstance(typed, str):
        error.value = typed
    error.field = _shown(parameter)


def _shown(parameter: click.Parameter) -> str:
    """
    Return a parameter as the help shows it.
    """
    if isinstance(parameter, click.Argument):
        shown = (parameter.metavar or "").strip("[]-. ")
        return shown if shown and "|" not in shown else (parameter.name or "").upper()
    return _typed(parameter) or max(parameter.opts, key=len)


def _typed(parameter: click.Parameter) -> str:
    """
    Return which of an option's names was typed, "" when none was.
    """
    context = click.get_current_context(silent=True)
    words: tuple[str, ...] = () if context is None else context.meta.get(TYPED, ())
    named = [*parameter.opts, *parameter.secondary_opts]
    longest_first = sorted(named, key=len, reverse=True)
    for word in words[: words.index("--")] if "--" in words else words:
        for name in longest_first:
            is_short = not name.startswith("--") and word.startswith(name)
            if word == name or word.startswith(f"{name}=") or is_short:
                return name
    return ""


def _check_utf8() -> None:
    """
    Refuse texts that can't be sent: bytes that are no UTF-8. Names of files may have any.
    """
    context = click.get_current_context(silent=True)
    for parameter in [] if context is None else context.command.params:
        assert context is not None
        value = context.params.get(parameter.name or "")
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str) and not is_utf8(text):
                raise Refused(_shown(parameter), "must be UTF-8", text)


def telling(command: click.Command) -> click.Command:
    """
    Return a command, with those below it, that tells refusals as they were typed, and whose help
    ends its lines where the terminal does.
    """
    command.context_class = Context
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            telling(inner)
    work = command.callback
    if work is None or hasattr(work, "tells"):
        return command

    @wraps(work)
    def told(*arguments: Any, **named: Any) -> Any:
        try:
            _check_utf8()
            return work(*arguments, **named)
        except Refused as error:
            tell_as_typed(error)
            raise

    vars(told)["tells"] = True
    command.callback = told
    return command

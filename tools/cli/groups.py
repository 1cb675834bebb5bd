"""
Commands with subcommands: whole summaries, what was meant by a mistyped one, and help whose lines
end where the terminal does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

import click

TYPED = "xce.typed"
"""Where the words of the command line are kept, for errors that name what was typed."""

SUMMARY_MAX = 1000
KEPT = "\b\n"
_PLAIN_WORD = r"""(?:[^\s"']|"[^"]*"|'[^']*')+"""
_WORD = re.compile(rf"(?:-\S+ (?=[^-\s]))?{_PLAIN_WORD}")
"""A word of a shell's line, quoted or not; an option's value stays beside it."""
_COMMAND = re.compile(rf"\s*{_PLAIN_WORD}(?: {_PLAIN_WORD})*")
"""An example up to where more than one blank stands before what it is for."""


class Formatter(click.HelpFormatter):
    """
    Write help; a text whose lines are kept has its sentences wrapped, and its examples as they are.

    Click keeps either all lines of a paragraph or none: sentences of up to a hundred columns were
    broken inside words by narrower terminals.
    """

    def write_text(self, text: str) -> None:
        """
        Write a text; of one whose lines are kept those that begin with blanks are examples.
        """
        if KEPT not in text:
            super().write_text(text)
            return
        lines = text.replace(KEPT, "").splitlines()
        for is_kept, part in groupby(lines, lambda line: line[:1] in ("", " ")):
            if is_kept:
                for line in part:
                    for fitting in example_lines(" " * self.current_indent + line, self.width):
                        self.write(f"{fitting}\n")
            else:
                for sentence in _paragraphs(part):
                    super().write_text(sentence)


def example_lines(line: str, width: int) -> Iterator[str]:
    """
    Yield an example in lines that fit, and can be pasted as they are: what it is for follows below
    it, as a comment; what is too long even so goes on behind a backslash.
    """
    line = line.rstrip()
    if len(line) <= width:
        yield line
        return
    indent = " " * (len(line) - len(line.lstrip()))
    found = _COMMAND.match(line)
    command = line if found is None else found[0]
    remark = line.removeprefix(command).strip()
    shown = indent
    for word in _WORD.findall(command):
        if len(f"{shown} {word} \\") > width and shown.strip():
            yield f"{shown} \\"
            shown = f"{indent} "
        shown += word if shown == indent else f" {word}"
    yield shown
    if remark:
        yield f"{indent}  # {remark.removeprefix('# ')}"


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """
    Yield what is wrapped together: lines up to one that ends a sentence, or announces examples.
    """
    found: list[str] = []
    for line in lines:
        found.append(line)
        if line.endswith((".", ":")):
            yield " ".join(found)
            found = []
    if found:
        yield " ".join(found)


class Context(click.Context):
    """
    Be the context of a command that formats its help so.
    """

    formatter_class = Formatter


class Commands(click.Group):
    """
    List subcommands with their whole summaries, and say what a mistyped one may have meant.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """
        Return the subcommand.

        Raises:
            UsageError: There is no such one.
        """
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            raise unknown_command(ctx, name, self.list_commands(ctx))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """
        Write the list of subcommands.
        """
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, command.get_short_help_str(SUMMARY_MAX)) for name, command in found if command
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class ByName(Commands):
    """
    Take the name of a thing where a subcommand may stand: then that thing is shown.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """
        Return the subcommand, ``show`` for what is the name of none.
        """
        if args[0].startswith("-") or self.get_command(ctx, args[0]) is not None:
            return super().resolve_command(ctx, args)
        if args[1:] and not args[1].startswith("-"):
            # A thing that is shown has only its name.
            raise unknown_command(ctx, args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, ["show", *args])


def unknown_command(ctx: click.Context, name: str, known: Iterable[str]) -> click.UsageError:
    """
    Return the error about a subcommand that isn't there, with those that were likely meant.
    """
    words = f"No such command '{name}'.{meant(name, known)}"
    return click.UsageError(words, ctx)


def meant(name: str, known: Iterable[str]) -> str:
    """
    Return a sentence that says what of some names was likely meant by one that is none of them, ""
    when nothing is near.
    """
    names, typed = list(known), name.lower()
    elsewhere = COMMANDS_ELSEWHERE.get(typed)
    if elsewhere in names:
        return f" Did you mean {elsewhere}?"
    from difflib import get_close_matches

    near = get_close_matches(typed, names)
    if not near and len(typed) > 1:
        near = [each for each in names if each.startswith(typed)]
    return f" Did you mean {' or '.join(near)}?" if near else ""


COMMANDS_ELSEWHERE = {
    "bsub": "submit", "bjobs": "jobs", "bkill": "kill", "bhosts": "hosts", "bqueues": "queues",
    "bhist": "history", "bacct": "audit", "bstop": "stop", "bresume": "resume", "bmod": "modify",
    "bswitch": "switch", "btop": "top", "bbot": "bottom", "brun": "run", "brequeue": "requeue",
    "blimits": "limits", "lshosts": "hosts", "lsload": "hosts", "bpeek": "job",
    "sbatch": "submit", "srun": "submit", "squeue": "jobs", "scancel": "kill", "sinfo": "hosts",
    "sacct": "history", "scontrol": "modify", "salloc": "submit",
    "qsub": "submit", "qstat": "jobs", "qdel": "kill", "qhold": "stop", "qrls": "resume",
    "qalter": "modify", "pbsnodes": "hosts",
    "cancel": "kill", "delete": "kill", "ps": "jobs", "list": "jobs", "ls": "jobs", "show": "job",
    "status": "jobs", "info": "job", "nodes": "hosts", "workers": "hosts", "suspend": "stop",
    "hold": "stop", "release": "resume", "rm": "remove", "start": "up", "create": "define",
    "set": "define", "config": "definitions", "priority": "top", "explain": "why",
}  # fmt: skip
"""What other schedulers and programs call things -> our command."""

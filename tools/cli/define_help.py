"""
The help of `xce define`: after KIND --help the fields of that kind, read off its model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from tools.cli.groups import example_lines

if TYPE_CHECKING:
    from domain.definitions import DefinedField

KEY = "xce.define.kind"
EXAMPLE = "  xce define "
TAKEN_AWAY = """
FIELD=none takes a value away where there may be none; FIELD= does so too,
or brings the default back.
"""


class DefineCommand(click.Command):
    """
    Explain the fields of the kind that stands beside ``--help``.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """
        Remember the kind before anything is parsed: help is given before arguments are looked at.
        """
        ctx.meta[KEY] = next((one for one in args if one in self._kinds()), "")
        return super().parse_args(ctx, args)

    def _kinds(self) -> list[str]:
        """
        Return the kinds that the first argument may name.
        """
        choice = next(one.type for one in self.params if one.name == "kind")
        return list(choice.choices) if isinstance(choice, click.Choice) else []

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """
        Write the fields of the kind that was named, with examples of it alone.
        """
        from domain.definitions import fields_of

        kind = ctx.meta.get(KEY, "")
        if not kind:
            super().format_epilog(ctx, formatter)
            formatter.write(TAKEN_AWAY)
            return
        article = "the" if kind == "cluster" else "a"
        formatter.write(f"\nFields of {article} {kind}:\n")
        for field in fields_of(kind):
            _write_field(formatter, kind, field)
        formatter.write(TAKEN_AWAY)
        formatter.write("\nExamples:\n")
        for line in _examples(self.epilog or "", kind):
            formatter.write("".join(f"{part}\n" for part in example_lines(line, formatter.width)))


def _write_field(formatter: click.HelpFormatter, kind: str, field: DefinedField) -> None:
    is_amount = field.shape == "amounts"
    formatter.write(f"  {field.words if is_amount else f'{field.name}={field.words}'}\n")
    if kind == "cluster":
        usual = f" Default: {field.default}." if field.default else ""
    elif field.is_needed:
        usual = " A new one needs it."
    else:
        usual = f" Default: {field.default or 'none'}."
    # On the command line nothing after = is what the models call None.
    meaning = field.meaning.replace("None for", "none for").replace("None when", "none when")
    with formatter.indentation(), formatter.indentation(), formatter.indentation():
        formatter.write_text(f"{meaning}{usual}")


def _examples(epilog: str, kind: str) -> Iterator[str]:
    for line in epilog.splitlines():
        if line.startswith(f"{EXAMPLE}{kind} "):
            yield line

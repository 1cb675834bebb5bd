"""
Debug a log: the terminal around `replay.debugger`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tools.cli.replay_state import AT_HELP, log_argument

if TYPE_CHECKING:
    from replay.debugger.shell import Shell

REFUSED = 2
PROMPT = "(xce) "


@click.command(epilog="""
\b
Examples:
  xce replay debug run1
  xce replay debug run1 --at 4711
  xce replay debug evening.jsonl         a recording, from the state with which it begins
  echo "break job 12; continue" | tr ';' '\\n' | xce replay debug run1
  xce replay debug run1 < script        the same bytes each time
  echo "trace on job 12; continue; info trace 12" | tr ';' '\\n' | xce replay debug run1
Inside: help lists the commands; step, continue, back and goto move; break, watch and until stop;
info shows everything, and trace writes down how sessions decide. On a terminal there are completion
(Tab) and history.
Exit status: 0; 2 when a command of a script was refused.
""")
@log_argument
@click.option("--at", "moment", metavar="POSITION|TIME",
              help=f"Begin here, else at the beginning. {AT_HELP}")
def debug(log: Path, moment: str | None) -> int:
    """
    Step through a log, forwards and backwards, and look at every state.
    """
    from replay.at import ladder_of
    from replay.debugger.cursor import Cursor
    from replay.debugger.shell import Shell
    from replay.moments import parse_moment, position_of
    from replay.plugins import found_plugins
    from replay.recordings import open_history

    with open_history(log) as opened:
        plugins = found_plugins()
        cursor = Cursor(opened, ladder_of(opened, plugins=plugins), plugins)
        if moment is not None:
            cursor.goto(position_of(opened, parse_moment("--at", moment), field="--at"))
        shell = Shell(cursor, click.echo, log_path=opened.path or log)
        if sys.stdin.isatty():
            shell.run(_typed(shell))
            return 0
        return REFUSED if shell.run(sys.stdin) else 0


def _typed(shell: Shell) -> Iterator[str]:
    """
    Yield what a person types, with completion and history; Ctrl-C drops the line, Ctrl-D ends.
    """
    import readline

    def complete(_text: str, index: int) -> str | None:
        line = readline.get_line_buffer()[: readline.get_endidx()]
        found = shell.complete(line)
        return f"{found[index]} " if index < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" ")
    readline.parse_and_bind("tab: complete")
    while True:
        try:
            yield input(PROMPT)
        except KeyboardInterrupt:
            click.echo()
        except EOFError:
            click.echo()
            return

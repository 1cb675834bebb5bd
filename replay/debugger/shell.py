"""
Read command lines, carry them out, print the answers; the loop around `commands`.

A line that is refused prints one error and changes nothing. Commands may be shortened as long as
they stay unique; the common ones have one letter. Blank lines and those that begin with # are
passed over.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, final

from domain.errors import Refused, XceError
from domain.units import whole_number
from replay.debugger.commands import Command, Commands
from replay.debugger.cursor import Cursor
from replay.debugger.files import OpenFiles
from replay.debugger.show import printable

SHORT: Final = {
    "b": "break", "c": "continue", "g": "goto", "h": "help", "i": "info", "l": "list",
    "p": "print", "q": "quit", "s": "step",
}  # fmt: skip
USAGE_WIDE: Final = 40
HELP_WIDE: Final = 100
"""So wide are the usage of a command and the whole line in the help."""
HISTORY_SHOWN: Final = 50
OUTPUT: Final = "output"


@final
class Shell:
    """
    Run the debugger.

    Args:
        cursor: Where it stands.
        write: Shows one line.
        log_path: The directory of the log, which no output may go into, or a recording; None when
            there is neither.
    """

    def __init__(
        self, cursor: Cursor, write: Callable[[str], None], *, log_path: Path | None = None
    ) -> None:
        self._files = OpenFiles(log_path)
        self.commands = Commands(cursor, self._files)
        self._write = write
        self._is_echoing = False
        self.history: list[str] = []
        self.refused = 0
        self.is_over = False
        self.table: dict[str, Command] = {
            **self.commands.table,
            "output": Command("output FILE|off", "copy everything shown into a file too",
                              self._output),
            "echo": Command("echo on|off", "show each command before its answer", self._echo),
            "history": Command("history [COUNT]", "show the last commands", self._history),
            "help": Command("help [COMMAND]", "show what there is", self._help),
            "quit": Command("quit", "end", self._quit),
        }  # fmt: skip

    def run(self, lines: Iterable[str]) -> int:
        """
        Carry out lines until they end or one says quit; return how many were refused.
        """
        try:
            for line in lines:
                self.take(line)
                if self.is_over:
                    break
        finally:
            self._files.close_all()
        return self.refused

    def take(self, line: str) -> None:
        """
        Carry out one line.
        """
        text = line.strip()
        if not text or text.startswith("#"):
            return
        self.history.append(text)
        if self._is_echoing:
            self._say(f"> {text}")
        try:
            for answer in self._command(text):
                self._say(answer)
        except XceError as error:
            self.refused += 1
            self._say(f"error: {printable(error.text())}")

    def _command(self, text: str) -> Iterator[str]:
        word, _, rest = text.partition(" ")
        return self.table[self._name(word)].run(rest.strip())

    def _name(self, word: str) -> str:
        """
        Return the command that a word means.
        """
        if word in self.table:
            return word
        if word in SHORT:
            return SHORT[word]
        fitting = [name for name in self.table if name.startswith(word)]
        if len(fitting) > 1:
            raise Refused("command", f"could be {', '.join(fitting)}", word)
        if not fitting:
            raise Refused("command", "isn't known", word, "help lists them.")
        return fitting[0]

    # -- output

    def _say(self, line: str) -> None:
        self._write(line)
        file = self._files.get(OUTPUT)
        if file is not None:
            file.write(line + "\n")

    def _output(self, rest: str) -> Iterator[str]:
        if not rest:
            raise Refused("output", "needs a file, or off")
        if rest == "off":
            self._files.close(OUTPUT)
            yield "output goes to no file"
            return
        self._files.open(OUTPUT, rest)
        yield f"output goes to {rest} too"

    def _echo(self, rest: str) -> Iterator[str]:
        if rest not in ("on", "off"):
            raise Refused("echo", "must be on or off", rest)
        self._is_echoing = rest == "on"
        yield f"echo is {rest}"

    # -- help and the like

    def _history(self, rest: str) -> Iterator[str]:
        shown = whole_number(rest) if rest else HISTORY_SHOWN
        if not shown:
            raise Refused("history", "must be a whole number from 1", rest)
        first = max(0, len(self.history) - shown)
        for number, line in enumerate(self.history[first:], first + 1):
            yield f"{number:>4}  {printable(line)}"

    def _help(self, rest: str) -> Iterator[str]:
        if rest:
            command = self.table[self._name(rest)]
            yield command.usage
            yield f"  {command.summary}"
            return
        for one in self.table.values():
            yield from _help_lines(one)
        yield "A command may be shortened. Conditions are those of xce replay bisect."

    def _quit(self, rest: str) -> Iterator[str]:
        if rest:
            raise Refused("quit", "takes no argument", rest)
        self.is_over = True
        yield from ()

    # -- completion

    def complete(self, line: str) -> list[str]:
        """
        Return the words that the last one of a line may become.
        """
        words = line.split(" ")
        before = [word for word in words[:-1] if word]
        if before:
            fitting = SHORT.get(before[0]) or before[0]
            before[0] = fitting
        names = list(self.table) if not before else self.commands.words(before)
        if before == ["help"]:
            names = list(self.table)
        return [name for name in names if name.startswith(words[-1])]


def _help_lines(command: Command) -> Iterator[str]:
    """
    Yield what a command looks like and does, beside each other where the first is short.
    """
    does = textwrap.wrap(command.summary, HELP_WIDE - USAGE_WIDE)
    usage = textwrap.wrap(command.usage, HELP_WIDE, subsequent_indent="    ")
    if len(command.usage) < USAGE_WIDE:
        usage, does = [f"{command.usage:<{USAGE_WIDE}}{does[0]}"], does[1:]
    yield from usage
    yield from (f"{'':<{USAGE_WIDE}}{line}" for line in does)

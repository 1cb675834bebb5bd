"""
Say where a text can't be understood: the text itself, a caret under the offending place, what was
expected.
"""

from __future__ import annotations

from typing import Final

from domain.errors import Refused

PRINTABLE_PATTERN: Final = r"^[\x21-\x7e]*$"
"""A text that stands as it is in a line of anything."""

SHOWN_BEFORE: Final = 60
"""So many characters are shown before the caret, at most."""

SHOWN_AFTER: Final = 40
"""And so many after it."""


class NotUnderstood(Refused):
    """
    Say that a text breaks the rules of its language, and at which column.

    Args:
        field: Name of the field whose text it is.
        rule: What is wrong there, or what was expected, as a sentence fragment.
        value: The whole text.
        column: Where, from 1; one past the end when the text stops too early.
        hint: One sentence that says what to do.
    """

    def __init__(
        self, field: str, rule: str, value: str, column: int = 1, hint: str | None = None
    ) -> None:
        super().__init__(field, rule, value, hint)
        self.args = (field, rule, value, column, hint)
        self.column = column

    def text(self) -> str:
        """
        Return the rule, the text and the caret on lines of their own.
        """
        hint = "" if self.hint is None else f" {self.hint}"
        shown, caret = _window(str(self.value), self.column - 1)
        return f"{self.field}: {self.rule} at column {self.column}.{hint}\n  {shown}\n  {caret}"


def is_utf8(text: str) -> bool:
    """
    Say whether a text can be sent: bytes of a command line that are none were kept aside by Python.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _window(text: str, offset: int) -> tuple[str, str]:
    """
    Return the part of a text around an offset on one line, and the line with the caret below it.
    """
    flat = "".join(character if character.isprintable() else " " for character in text)
    start = max(0, offset - SHOWN_BEFORE)
    end = offset + SHOWN_AFTER
    before = "..." if start else ""
    after = "..." if end < len(flat) else ""
    return f"{before}{flat[start:end]}{after}", " " * (len(before) + offset - start) + "^"

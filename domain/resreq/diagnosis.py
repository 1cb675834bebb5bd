"""
Say what is wrong with a text that doesn't follow the grammar: where, what stands there, what could
stand there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from domain.texts import NotUnderstood

FIELD: Final = "resreq"

_SECTIONS: Final = "select[, order[, rusage[, span[, same[ or affinity["
_WORDS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("a name", ("NAME",)),
    ("a number", ("QUANTITY",)),
    ("a quoted text", ("QUOTED",)),
    ("'('", ("_LPAR",)),
    ("an operator", ("_AND", "EQ_OP", "REL_OP", "STAR")),
    ("'||'", ("_OR",)),
    ("'+'", ("PLUS",)),
    ("a section", ("SELECT_OPEN", "ORDER_OPEN", "RUSAGE_OPEN", "SPAN_OPEN", "SAME_OPEN")),
    ("'{'", ("_LBRACE", "COUNT_OPEN")),
    ("'='", ("_ASSIGN",)),
    ("':'", ("_COLON",)),
    ("','", ("_COMMA",)),
    ("')'", ("_RPAR",)),
    ("']'", ("_RBRACKET",)),
    ("'}'", ("_RBRACE",)),
    ("the end", ("$END",)),
)
_BEGINS_TEXT: Final = re.compile(r"[\w.'\"(!-]")
_NAMED_BRACKET: Final = re.compile(r"([A-Za-z_]\w*)\s*\[")
_NAME_BEFORE: Final = re.compile(r"([A-Za-z_]\w*)\s*$")


def not_understood(text: str, error: Exception) -> NotUnderstood:
    """
    Return what to raise for an error of the grammar; an error of another kind is raised again.
    """
    if not isinstance(error, UnexpectedInput):
        raise error
    position = _position(text, error)
    section = _unknown_section(text, position)
    if section is not None:
        return section
    if _follows_a_section(text, position):
        rule = "text without a section name must come first"
        return NotUnderstood(FIELD, rule, text, position + 1, "Put it into select[...].")
    rule = f"expected {_expected(error)}, found {_found(text, position)}"
    return NotUnderstood(FIELD, rule, text, position + 1, _hint(text, position))


def _position(text: str, error: UnexpectedInput) -> int:
    at_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    offset = error.pos_in_stream
    return len(text) if at_end or offset is None else offset


def _unknown_section(text: str, position: int) -> NotUnderstood | None:
    """
    Return the error for ``name[`` where no section has that name.
    """
    name = _NAMED_BRACKET.match(text, position)
    if name is None and text[position : position + 1] == "[":
        name = _NAME_BEFORE.search(text[:position])
    if name is None:
        return None
    rule = f"there is no section {name[1]}[...]"
    return NotUnderstood(FIELD, rule, text, name.start(1) + 1, f"Sections are {_SECTIONS}.")


def _follows_a_section(text: str, position: int) -> bool:
    return text[:position].rstrip().endswith("]") and _BEGINS_TEXT.match(text, position) is not None


def _expected(error: UnexpectedInput) -> str:
    names: Iterable[str] = ()
    if isinstance(error, UnexpectedToken):
        names = error.accepts or error.expected
    elif isinstance(error, UnexpectedCharacters):
        names = error.allowed or ()
    possible = set(names)
    words = [word for word, terminals in _WORDS if possible.intersection(terminals)]
    if not words:
        return "something else"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _found(text: str, position: int) -> str:
    if position >= len(text):
        return "the end"
    word = re.compile(r"\w+|.", re.DOTALL).match(text, position)
    assert word is not None
    return repr(word[0])


def _hint(text: str, position: int) -> str | None:
    character = text[position : position + 1]
    if character == "=":
        return "A comparison is written ==."
    if text.startswith("||", position) and text[:position].rstrip().endswith("}"):
        return "A compound that is one of several alternatives needs braces around it."
    if character in {"&", "|"} and not text.startswith(("&&", "||"), position):
        return "Conditions are joined with && and ||."
    return None

"""
Exit values that put a job back, as LSF writes them: ``99 100 EXCLUDE(20 21)``, ``all ~1 ~2``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from domain.errors import Refused

HIGHEST: Final = 255
DIGITS_MAX: Final = 99
"""Longer numbers aren't even read; Python itself refuses some thousand digits."""

_PIECE: Final = re.compile(r"\s+|EXCLUDE\s*\(([^()]*)\)|(~?)(\d+)(?!\d)|(all)\b", re.IGNORECASE)


def parse_requeue_values(
    text: str, *, field: str = "requeue"
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """
    Return the values that put a job back, and those that make it avoid the host as well.

    ``all`` is every value but 0, which is no failure; ``~1`` takes one out of it.

    Raises:
        Refused: A piece isn't understood, or a value is above 255.
    """
    listed: list[int] = []
    left_out: set[int] = set()
    exclude: list[int] = []
    at = 0
    while at < len(text):
        found = _PIECE.match(text, at)
        if found is None:
            raise _not_understood(text, field)
        at = found.end()
        inner, tilde, value, every = found.groups()
        if inner is not None:
            exclude += [_value(each, text, field) for each in inner.split()]
        elif every:
            listed += range(1, HIGHEST + 1)
        elif value and tilde:
            left_out.add(_value(value, text, field))
        elif value:
            listed.append(_value(value, text, field))
    apart = left_out | set(exclude)
    requeue = dict.fromkeys(value for value in listed if value not in apart)
    return tuple(requeue), tuple(dict.fromkeys(exclude))


def show_requeue_values(requeue: Sequence[int], exclude: Sequence[int]) -> str:
    """
    Return such values as they can be given, "" for none.
    """
    shown = " ".join(map(str, requeue))
    if len(requeue) > HIGHEST // 2:
        left_out = sorted(set(range(1, HIGHEST + 1)) - {*requeue, *exclude})
        shown = " ".join(["all", *(f"~{value}" for value in left_out)])
    apart = " ".join(map(str, exclude))
    return f"{shown} EXCLUDE({apart})".strip() if apart else shown


def _value(word: str, text: str, field: str) -> int:
    if not word.isdecimal() or len(word) > DIGITS_MAX or int(word) > HIGHEST:
        raise _not_understood(text, field)
    return int(word)


def _not_understood(text: str, field: str) -> Refused:
    rule = 'must be values from 0 to 255 such as "99 EXCLUDE(20)" or "all ~1"'
    return Refused(field, rule, text)

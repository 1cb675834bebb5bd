"""
Know the dictionaries with which small frames are compressed.

They are trained on the project's own events and never change: a dictionary's number is the
beginning of its SHA-256, so that a wrong one can't be taken for it. A log keeps a copy of each that
its frames need; those of this program are here too, and stand in for a copy that is damaged.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

CURRENT = Path(__file__).parent / "trained" / "events-1.zdict"
"""What new small frames are compressed with. Another one gets another file; old ones stay."""

_learned: dict[int, bytes] = {}


def number_of_dictionary(content: bytes) -> int:
    """
    Return the number of a dictionary.
    """
    return int.from_bytes(hashlib.sha256(content).digest()[:4], "big")


@cache
def current() -> tuple[int, bytes]:
    """
    Return number and content of the dictionary for new frames.
    """
    content = CURRENT.read_bytes()
    number = number_of_dictionary(content)
    _learned[number] = content
    return number, content


@cache
def _own() -> dict[int, bytes]:
    """
    Return all dictionaries that come with this program.
    """
    found = [path.read_bytes() for path in sorted(CURRENT.parent.glob("*.zdict"))]
    return {number_of_dictionary(content): content for content in found}


def known(number: int) -> bytes | None:
    """
    Return a dictionary, None when neither this program nor a log that it opened has it.
    """
    return _learned.get(number) or _own().get(number)


def learn(number: int, content: bytes) -> bool:
    """
    Take a dictionary from a log; say whether it is what its number says.
    """
    if number_of_dictionary(content) != number:
        return False
    _learned.setdefault(number, content)
    return True

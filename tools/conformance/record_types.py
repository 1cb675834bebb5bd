"""
Which types of records a replay needs, which it skips with a warning, and the numbers of types.
"""

from __future__ import annotations

from typing import Final

from replay.workloads.lsf_records import FIELDS, NUMBERS, REPLAYED, record_of
from tools.conformance.values import (
    Fields,
    Malformed,
    differing,
    items_of,
    mapping_of,
    text_of,
    texts_of,
)

TYPES: Final = ("type", "types", "record", "records", "lines", "line")
"""Fields that name types of records, or hold records."""

NEEDED: Final = frozenset({"needed", "replay", "replayed", "required", "used", "needs"})
SKIPPED: Final = frozenset({"skip", "skipped", "ignored", "ignore"})
WARNED: Final = frozenset({"warning", "warn", "warnings", "warned"})
UNKNOWN: Final = frozenset({"unknown"})
KNOWN: Final = frozenset({"known"})
NUMBER: Final = frozenset({"number", "event_number"})
WORDS: Final = NEEDED | SKIPPED | WARNED | UNKNOWN | KNOWN | NUMBER
"""What may be expected of types of records."""


def of_types(case: Fields) -> list[str]:
    """
    Return what differs from what is expected of one type of record, or of several: truth for one,
    lists or counts for several.
    """
    kinds = [kind for name in TYPES if name in case for kind in _kinds(name, case[name])]
    expect = case.get("expect")
    if isinstance(expect, str):
        expect = {expect: True}
    is_one = len(kinds) == 1
    found = []
    for word, wanted in mapping_of(expect).items():
        if word in NUMBER:
            found += differing(word, wanted, NUMBERS.get(kinds[0]))
            continue
        of_word = [kind for kind in kinds if _is(word, kind)]
        if isinstance(wanted, bool):
            found += differing(word, wanted, bool(of_word) if is_one else of_word == kinds)
        elif isinstance(wanted, int):
            found += differing(word, wanted, len(of_word))
        elif isinstance(wanted, str) and is_one:
            found += [] if of_word else [f"{word}: nothing is told of {kinds[0]}"]
        else:
            found += differing(word, [text_of(each) for each in items_of(wanted)], of_word)
    return found


def _kinds(name: str, value: object) -> list[str]:
    if name in {"line", "lines"}:
        return [text_of(record_of(line)["type"]) for line in texts_of(value)]
    return [kind for each in texts_of(value) for kind in each.split()]


def _is(word: str, kind: str) -> bool:
    if word in NEEDED:
        return kind in REPLAYED
    if word in SKIPPED | WARNED:
        return kind not in REPLAYED
    is_known = kind in FIELDS or kind in NUMBERS
    if word in KNOWN | UNKNOWN:
        return is_known == (word in KNOWN)
    raise Malformed(f"nothing is known of expecting {word!r} of a record")

"""
Read what Slurm writes: durations, time stamps, memory, array indices, host lists, constraints.

Each returns UNKNOWN or None for the words by which Slurm says that it doesn't know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from replay.workloads.details import UNKNOWN, Alternatives, attribute_word
from replay.workloads.gathering import BadLineError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_UNKNOWN_WORDS = frozenset(
    ["", "unknown", "none", "unlimited", "partition_limit", "invalid", "n/a", "(null)"]
)

_stamp = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}")
_duration = re.compile(
    r"(?:([0-9]{1,6})-)?(?:(?:([0-9]{1,6}):)?([0-9]{1,6}):)?([0-9]{1,9})(?:\.[0-9]*)?"
)
_memory = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,6}))?([KMGTP]?)(?:B)?([nc]?)", re.IGNORECASE)
_KIB_OF = {"K": 1, "M": 1024, "G": 1024**2, "T": 1024**3, "P": 1024**4}
# Old versions keep "per CPU" in this bit of the number of MiB, and print it as it is.
_PER_CPU_BIT = 2**31


def is_unknown(text: str) -> bool:
    """
    Tell whether a text is one of the words that say "not known" or "without limit".
    """
    return text.strip().lower() in _UNKNOWN_WORDS


def stamp_s(text: str, field: str) -> int:
    """
    Return a time stamp (2016-12-22T07:15:12, taken as UTC) in Unix seconds; UNKNOWN for "Unknown".
    """
    if is_unknown(text):
        return UNKNOWN
    if _stamp.fullmatch(text) is None:
        raise BadLineError(f"{field} is no time such as 2016-12-22T07:15:12: {text[:40]!r}")
    try:
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        raise BadLineError(f"{field} is no time of the calendar: {text[:40]!r}") from None
    return (moment - _EPOCH) // _SECOND


def elapsed_s(text: str, field: str) -> int:
    """
    Return a duration that sacct prints ([D-]HH:MM:SS or MM:SS[.mmm]) in whole seconds.
    """
    if is_unknown(text):
        return UNKNOWN
    match = _duration.fullmatch(text)
    if match is None:
        raise BadLineError(f"{field} is no duration such as 1-02:03:04: {text[:40]!r}")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def limit_s(text: str, field: str) -> int:
    """
    Return a time limit as sbatch takes it: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S; in seconds.
    """
    if is_unknown(text):
        return UNKNOWN
    days_text, dash, rest = text.rpartition("-")
    parts = rest.split(":")
    is_sound = len(parts) <= 3 and all(re.fullmatch(r"[0-9]{1,9}", part) for part in parts)
    if not is_sound or (dash and not re.fullmatch(r"[0-9]{1,6}", days_text)):
        raise BadLineError(f"{field} is no time limit such as 1-02:03:04: {text[:40]!r}")
    values = [int(part) for part in parts]
    if dash:
        hours, minutes, seconds = (*values, 0, 0)[:3]
        return ((int(days_text) * 24 + hours) * 60 + minutes) * 60 + seconds
    if len(values) == 1:
        return values[0] * 60
    hours, minutes, seconds = values if len(values) == 3 else (0, *values)
    return (hours * 60 + minutes) * 60 + seconds


def memory_kib(text: str, field: str) -> tuple[int, str]:
    """
    Return a requested memory in KiB, rounded up, and what it is per: c (CPU), n (node) or "".

    A number without a unit is in MiB. UNKNOWN when nothing was asked for (0 asks for no amount).
    """
    if is_unknown(text) or text == "?":
        return UNKNOWN, ""
    match = _memory.fullmatch(text)
    if match is None:
        raise BadLineError(f"{field} is no memory such as 2Gc: {text[:40]!r}")
    whole, decimals, unit, per = int(match[1]), match[2] or "", match[3].upper(), match[4].lower()
    if whole >= _PER_CPU_BIT and unit in ("", "M"):
        whole, per = whole - _PER_CPU_BIT, "c"
    scale = 10 ** len(decimals)
    kib = -(-(whole * scale + int(decimals or 0)) * _KIB_OF[unit or "M"] // scale)
    return (kib or UNKNOWN), per


def index_numbers(text: str, field: str) -> list[int]:
    """
    Return the numbers of a list such as 9-11,13,16-20:2%5, in order, each once.
    """
    numbers: list[int] = []
    for part in text.partition("%")[0].split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([1-9][0-9]{0,8}))?)?", part)
        if match is None:
            raise BadLineError(f"{field} is no list of indices such as 1-3,5: {text[:40]!r}")
        first = int(match[1])
        last = int(match[2] or first)
        if last - first > 1_000_000:
            raise BadLineError(f"{field} names more than 1000000 elements: {text[:40]!r}")
        numbers += range(first, last + 1, int(match[3] or 1))
    return list(dict.fromkeys(numbers))


def host_names(text: str) -> Iterator[str]:
    """
    Yield the names of a host list such as cpn-[01-02,07],gn1: brackets expanded, widths kept.

    Raises:
        ValueError: Brackets don't pair, or a range doesn't rise.
    """
    for part in _split_outside(text):
        yield from _expanded(part)


def _split_outside(text: str) -> Iterator[str]:
    """
    Yield the parts between commas that stand outside brackets.
    """
    depth, begin = 0, 0
    for index, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if depth not in (0, 1):
            raise ValueError(f"brackets don't pair in {text[:60]!r}")
        if character == "," and depth == 0:
            yield text[begin:index]
            begin = index + 1
    if depth:
        raise ValueError(f"brackets don't pair in {text[:60]!r}")
    yield text[begin:]


def _expanded(part: str) -> Iterator[str]:
    before, bracket, rest = part.partition("[")
    if not bracket:
        yield before
        return
    inside, _, after = rest.partition("]")
    for item in inside.split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", item)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise ValueError(f"must hold rising ranges of numbers in brackets: {part[:60]!r}")
        first, last, width = int(match[1]), int(match[2] or match[1]), len(match[1])
        if last - first > 1_000_000:
            raise ValueError(f"names more than 1000000 hosts: {part[:60]!r}")
        for number in range(first, last + 1):
            for tail in _expanded(after):
                yield f"{before}{number:0{width}}{tail}"


def select_of(constraint: str) -> tuple[Alternatives, ...] | None:
    """
    Return what a constraint asks of each host; None where it counts or nests, which can't be said.

    Such as `CPU&IB`, `a|b`, `[a|b]`. "[a|b]" also asks that all hosts have the same; that isn't
    said by the result.
    """
    if not constraint:
        return ()
    clauses = []
    for part in constraint.replace(",", "&").split("&"):
        names = part.strip("[]()").split("|")
        if not all(re.fullmatch(r"[\w.+-]+", name) for name in names):
            return None
        clauses.append(tuple((attribute_word(name), "true") for name in dict.fromkeys(names)))
    is_nested = "(" in constraint and "|" in constraint and "&" in constraint.split("(", 1)[1]
    return None if is_nested else tuple(clauses)


def gpus_of(gres: str) -> int:
    """
    Return how many GPUs a request for generic resources names: gpu, gpu:2, gpu:v100:2, a list.
    """
    total = 0
    for part in gres.split(","):
        words = re.sub(r"\(.*\)", "", part).removeprefix("gres/").replace("=", ":").split(":")
        if words[0] == "gpu":
            total += int(words[-1]) if words[-1].isdecimal() else 1
    return total

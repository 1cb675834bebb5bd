"""
Job arrays: the list of indices in a job's name, and elements named on the command line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final

from pydantic import Field

from domain.errors import Refused
from domain.event import Value
from domain.texts import NotUnderstood

INDEX_MAX_DEFAULT: Final = 1000
"""LSF's highest index unless the cluster says otherwise."""

INDEX_MAX: Final = 999_999
"""The highest index that a job id can hold."""

Index = Annotated[int, Field(ge=1, le=INDEX_MAX)]

_RANGE: Final = re.compile(r"\s*([0-9]{1,99})\s*(?:-\s*([0-9]{1,99})\s*(?::\s*([0-9]{1,99})\s*)?)?")
_STARTED_MAX: Final = re.compile(r"%([0-9]{1,99})")
_SELECTION: Final = re.compile(r"([1-9][0-9]{0,9})(?:\[([^\[\]]*)\]|\.([0-9][0-9,:-]*))?")


class IndexRange(Value):
    """
    Hold the indices from *start* to *end* in steps.
    """

    start: Index
    end: Index
    step: Index = 1

    def indices(self) -> range:
        """
        Return the indices in order.
        """
        return range(self.start, self.end + 1, self.step)

    def text(self) -> str:
        """
        Return the range as it is written.
        """
        if self.start == self.end:
            return str(self.start)
        return f"{self.start}-{self.end}" + (f":{self.step}" if self.step > 1 else "")


class ArraySpec(Value):
    """
    Hold what makes a job an array.

    Args:
        ranges: Its indices, as written; overlapping ones count once.
        started_max: So many elements may be started at a time (``%k``), None without a bound.
    """

    ranges: Annotated[tuple[IndexRange, ...], Field(min_length=1)]
    started_max: Annotated[int, Field(ge=1, le=INDEX_MAX)] | None = None

    def indices(self) -> tuple[int, ...]:
        """
        Return the indices of its elements, rising, each once.
        """
        return indices_of(self.ranges)

    def text(self) -> str:
        """
        Return it as it stands behind the job's name.
        """
        bound = "" if self.started_max is None else f"%{self.started_max}"
        return f"[{show_ranges(self.ranges)}]{bound}"


class JobSelection(Value):
    """
    Name a job, or some elements of an array.

    Args:
        ranges: The elements; empty for the whole job or array.
    """

    number: Annotated[int, Field(ge=1)]
    ranges: tuple[IndexRange, ...] = ()


def indices_of(ranges: tuple[IndexRange, ...]) -> tuple[int, ...]:
    """
    Return the indices of several ranges, rising, each once.
    """
    return tuple(sorted({index for each in ranges for index in each.indices()}))


def show_ranges(ranges: tuple[IndexRange, ...]) -> str:
    """
    Return ranges as they are written.
    """
    return ",".join(each.text() for each in ranges)


def parse_job_name(
    text: str, *, index_max: int = INDEX_MAX_DEFAULT, field: str = "name"
) -> tuple[str, ArraySpec | None]:
    """
    Return the name and the array that ``-J "name[list]%k"`` says; a name without brackets is no
    array.

    Raises:
        Refused: The list or the bound isn't as LSF has it, or an index is above *index_max*.
    """
    name, bracket, rest = text.partition("[")
    if not bracket:
        return text.strip(), None
    listed, closing, after = rest.partition("]")
    if not closing:
        raise NotUnderstood(field, "expected ']' after the indices", text, len(text) + 1)
    ranges = parse_ranges(
        listed, whole=text, offset=len(name) + 1, index_max=index_max, field=field
    )
    started_max = parse_started_max(after, text, field=field)
    return name.strip(), ArraySpec(ranges=ranges, started_max=started_max)


def parse_name_change(text: str, *, field: str = "name") -> tuple[str, int | None]:
    """
    Return the new name and bound that ``-J`` says of a job that is there: ``name``, ``%k`` or
    ``name%k``; "" for no other name, None for no other bound, 0 for none from now on.

    Raises:
        Refused: It names indices, or what begins with % is no bound.
    """
    if "[" in text:
        rule = "an array keeps its indices: expected a name, %k or name%k"
        raise NotUnderstood(field, rule, text, text.index("[") + 1)
    name, percent, bound = text.rpartition("%")
    if not percent or (name and not bound.strip().isdecimal()):
        return text.strip(), None
    return name.strip(), parse_started_max(f"%{bound}", text, field=field) or 0


def parse_started_max(after: str, text: str, *, field: str = "name") -> int | None:
    """
    Return the bound behind the brackets; %0 is none, as at LSF.

    Args:
        after: What stands there: nothing, or ``%k``.
        text: The whole, for the error.
        field: Name of the field in errors.

    Raises:
        Refused: It is neither.
    """
    if not after.strip():
        return None
    match = _STARTED_MAX.fullmatch(after.strip())
    column = len(text) - len(after) + 1
    if match is None:
        raise NotUnderstood(field, "expected % and a number, or nothing", text, column)
    if int(match[1]) > INDEX_MAX:
        raise NotUnderstood(field, f"the bound must be at most {INDEX_MAX}", text, column)
    return int(match[1]) or None


def parse_ranges(
    listed: str, *, whole: str, offset: int, index_max: int = INDEX_MAX, field: str = "name"
) -> tuple[IndexRange, ...]:
    """
    Return the ranges of a list such as ``1-100:2,7``.

    Args:
        listed: The list, without brackets.
        whole: The text that it stands in, for the error.
        offset: Where it stands in it.
        index_max: The highest index allowed.
        field: Name of the field in errors.

    Raises:
        Refused: The list breaks a rule; the caret is under the range that does.
    """
    found = []
    for start, part in _parts(listed):
        match = _RANGE.fullmatch(part)
        if match is None:
            rule = "expected an index, or a range such as 1-10 or 1-10:2"
            raise NotUnderstood(field, rule, whole, offset + start + 1)
        first = int(match[1])
        last, step = int(match[2] or first), int(match[3] or 1)
        broken = _broken_rule(first, last, step, index_max)
        if broken is not None:
            raise NotUnderstood(field, broken, whole, offset + start + 1)
        found.append(IndexRange(start=first, end=last, step=_step(first, last, step)))
    return tuple(found)


def _step(first: int, last: int, step: int) -> int:
    """
    Return the step, 1 where a longer one makes no difference.
    """
    return step if first + step <= last else 1


def _parts(listed: str) -> Iterator[tuple[int, str]]:
    start = 0
    for part in listed.split(","):
        yield start, part
        start += len(part) + 1


def _broken_rule(first: int, last: int, step: int, index_max: int) -> str | None:
    if first < 1 or step < 1:
        return "indices and steps must be at least 1"
    if last < first:
        return "a range must not end before it starts"
    if last > min(index_max, INDEX_MAX):
        return f"an index must be at most {min(index_max, INDEX_MAX)}"
    return None


def parse_selection(text: str, *, field: str = "job_id") -> JobSelection:
    """
    Return the job or elements named by ``4711``, ``4711[3]``, ``4711[1-5,7]`` or, easier on shells,
    ``4711.1-5``.

    Raises:
        Refused: It names neither.
    """
    match = _SELECTION.fullmatch(text.strip())
    if match is None:
        rule = "must be a job number, or elements of an array such as 4711[1-3]"
        raise Refused(field, rule, text)
    listed = match[2] if match[2] is not None else match[3]
    if listed is None:
        return JobSelection(number=int(match[1]))
    offset = len(match[1]) + 1
    ranges = parse_ranges(listed, whole=text.strip(), offset=offset, field=field)
    return JobSelection(number=int(match[1]), ranges=ranges)

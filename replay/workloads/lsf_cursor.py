"""
Walk through the records of LSF's `lsb.events` and `lsb.acct`, field by field.

Real files hold damage, so this keeps the text of every field (`lsf_records` gives numbers): a
length glued to the number after it can still be seen and parted.

A record is a line of blank-separated fields: type, version, Unix time, then what its type has.
Strings stand in double quotes, a quote inside is doubled; every list follows its length. Releases
append fields, so whoever reads asks for what it knows from the front and leaves the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import final

from replay.workloads.details import UNKNOWN
from replay.workloads.gathering import BadLineError

LIST_MAX = 1_000_000

_field = re.compile(r'"((?:[^"]|"")*)"(?=\s|$)|([^\s"]+)(?=\s|$)')
_type = re.compile(r'"([A-Z][A-Z0-9_]*)"\s')
_whole = re.compile(r"[+-]?[0-9]{1,18}")


def type_of(line: str) -> str | None:
    """
    Return the type that a record begins with, None when the line is no record.
    """
    match = _type.match(line)
    return match[1] if match else None


@final
@dataclass(slots=True)
class Record:
    """
    Hold a record that is read from front to back.

    Args:
        line_number: The line that it stands in.
        type_name: JOB_NEW and the like.
        version: LSF's version that wrote it.
        time_s: Event time in Unix seconds.
        fields: What follows these three, strings without their quotes.
        next_index: The field that is read next.
        is_repaired: Whether two fields that were glued together were parted.
    """

    line_number: int
    type_name: str
    version: str
    time_s: int
    fields: list[str]
    next_index: int = 0
    is_repaired: bool = False

    def text(self, name: str) -> str:
        """
        Return the next field.

        Raises:
            BadLineError: The record ends before it.
        """
        if self.next_index == len(self.fields):
            raise BadLineError(f"{self.type_name} ends before {name}")
        value = self.fields[self.next_index]
        self.next_index += 1
        return value

    def whole(self, name: str) -> int:
        """
        Return the next field, a whole number.

        Raises:
            BadLineError: The record ends before it, or it is none.
        """
        text = self.text(name)
        if _whole.fullmatch(text) is None:
            raise BadLineError(f"{name} is no whole number: {text[:40]!r}")
        return int(text)

    def skip(self, names: str) -> None:
        """
        Pass over the fields of these names.
        """
        for name in names.split():
            self.text(name)

    def texts(self, name: str) -> list[str]:
        """
        Return the list that comes next, after its length.
        """
        count = self._length(name)
        return [self.text(name) for _ in range(count)]

    def _length(self, name: str) -> int:
        count = self.whole(name)
        if not 0 <= count <= LIST_MAX:
            raise BadLineError(f"the length of {name} must be from 0 to {LIST_MAX}: {count}")
        return count

    def part_zero(self) -> None:
        """
        Part an empty list's length from the number after it, where a writer glued them ("02").
        """
        text = self.fields[self.next_index] if self.next_index < len(self.fields) else ""
        if re.fullmatch(r"0[0-9]+", text):
            self.fields[self.next_index : self.next_index + 1] = ["0", text[1:]]
            self.is_repaired = True

    def has_more(self) -> bool:
        """
        Tell whether fields are left.
        """
        return self.next_index < len(self.fields)


def records_of(lines: Iterable[str], remarks: list[str]) -> Iterator[Record | tuple[int, str]]:
    """
    Yield the records of a file, and (line number, rule) for each line that is none.

    Lines that begin with `#` (the position of the history, comments) go to the remarks.
    """
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith("#"):
            remarks.append(text.lstrip("#").strip())
        elif text:
            try:
                yield _record(number, text)
            except BadLineError as error:
                yield number, error.rule


def _record(number: int, line: str) -> Record:
    fields = _fields(line)
    if len(fields) < 3 or type_of(line) is None:
        raise BadLineError("must begin with a record's type, version and time")
    if _whole.fullmatch(fields[2]) is None:
        raise BadLineError(f"the event time is no whole number: {fields[2][:40]!r}")
    return Record(number, fields[0], fields[1], int(fields[2]), fields[3:])


def _fields(line: str) -> list[str]:
    """
    Return the fields of a line.

    Raises:
        BadLineError: A quote doesn't close, or text is glued to one.
    """
    fields = []
    index = 0
    while index < len(line):
        if line[index].isspace():
            index += 1
            continue
        match = _field.match(line, index)
        if match is None:
            raise BadLineError(f"column {index + 1}: a quoted string doesn't end before a blank")
        fields.append(match[1].replace('""', '"') if match[1] is not None else match[2])
        index = match.end()
    return fields


def run_limit_of(limits: list[str]) -> int:
    """
    Return the run limit among a job's limits, in seconds; UNKNOWN without one.
    """
    # CPU, FSIZE, DATA, STACK, CORE, RSS, NOFILE, OPEN_MAX, SWAP, RUN, PROCESS, THREAD.
    run_index = 9
    text = limits[run_index] if len(limits) > run_index else ""
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,11}", text) else UNKNOWN

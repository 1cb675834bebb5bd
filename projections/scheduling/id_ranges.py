"""
Say many job numbers in few words.
"""

from __future__ import annotations

from domain.events.session import IdRange


def ranges_of(numbers: list[int]) -> tuple[IdRange, ...]:
    """
    Return ascending job numbers as ranges.
    """
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return tuple(IdRange(first=first, last=last) for first, last in ranges)

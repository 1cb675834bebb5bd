"""
Termination reasons and their numbers.
"""

from __future__ import annotations

import pytest

from domain.terminations import Termination, termination_of


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("TERM_UNKNOWN", 0),
        ("TERM_RUNLIMIT", 5),
        ("TERM_DEADLINE", 6),
        ("TERM_PROCESSLIMIT", 7),
        ("TERM_CPULIMIT", 12),
        ("TERM_OWNER", 14),
        ("TERM_ADMIN", 15),
        ("TERM_MEMLIMIT", 16),
        ("TERM_EXTERNAL_SIGNAL", 17),
        ("TERM_SWAP", 20),
        ("TERM_THREADLIMIT", 21),
        ("TERM_REMOVE_HUNG_JOB", 26),
        ("TERM_ORPHAN_SYSTEM", 27),
        ("TERM_KUBE", 33),
    ],
)
def test_the_numbers_are_those_of_accounting_records(name, number):
    """
    They agree with public log parsers; a moved line in the enumeration would break old records.
    """
    assert number == Termination(name).number
    assert termination_of(number) is Termination(name)


def test_an_unknown_number_stays_a_number():
    """
    Releases add reasons.
    """
    assert 99 == termination_of(99)

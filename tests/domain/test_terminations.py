"""
Termination reasons and their numbers.
"""

from __future__ import annotations

import pytest

from domain.terminations import Termination, exit_words, termination_of, termination_words


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


@pytest.mark.parametrize(
    ("exit_code", "signal", "words"),
    [
        (None, None, ""),
        (3, None, "exit code 3"),
        (126, None, "exit code 126: the command can't be executed"),
        (127, None, "exit code 127: the command isn't found"),
        (137, None, "exit code 137: a shell's for signal 9 (SIGKILL)"),
        (200, None, "exit code 200"),
        (None, 9, "signal 9 (SIGKILL)"),
        (None, 40, "signal 40"),
    ],
)
def test_how_a_program_ended_is_told_in_words(exit_code, signal, words):
    """
    A bare 137 says nothing to whoever doesn't know shells by heart.
    """
    assert words == exit_words(exit_code, signal)


def test_a_reason_is_told_in_words_with_its_code():
    """
    The words for people, the code to look it up; what a worker says is words already.
    """
    assert "killed by its user (TERM_OWNER)" == termination_words("TERM_OWNER")
    assert "no such directory" == termination_words("no such directory")

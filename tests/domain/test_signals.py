"""
Signals for jobs: how they are named.
"""

from __future__ import annotations

import signal

import pytest

from domain.errors import Refused
from domain.signals import SignalName, parse_signal


@pytest.mark.parametrize("text", ["USR1", "usr1", "SIGUSR1", "10", " SIGUSR1 "])
def test_a_signal_is_named_with_or_without_sig_or_by_its_number(text: str) -> None:
    """
    As kill(1) and LSF take it.
    """
    assert parse_signal(text) is SignalName.USR1


@pytest.mark.parametrize("each", SignalName)
def test_numbers_are_those_of_the_machine(each: SignalName) -> None:
    """
    The number tells whether a job was ended by the signal that somebody sent.
    """
    assert signal.Signals[each.value] == each.number
    assert parse_signal(str(each.number)) is each


@pytest.mark.parametrize(
    ("text", "command"),
    [("STOP", "stop"), ("SIGTSTP", "stop"), ("19", "stop"), ("CONT", "resume"), ("18", "resume")],
)
def test_signals_that_stop_or_resume_have_commands_of_their_own(text: str, command: str) -> None:
    """
    The scheduler would take a stopped program for a running one.
    """
    with pytest.raises(Refused) as refused:
        parse_signal(text)

    assert refused.value.field == "signal"
    assert refused.value.hint == f"Say: xce {command} JOB."


@pytest.mark.parametrize("text", ["", "SIG", "SIGNONE", "0", "99", "-9", "RTMIN", "9 9"])
def test_what_is_no_signal_is_refused(text: str) -> None:
    """
    The error names all that there are.
    """
    with pytest.raises(Refused, match=r"signal: must be one of HUP, INT"):
        parse_signal(text)

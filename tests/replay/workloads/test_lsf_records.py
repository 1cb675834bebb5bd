"""
Records of LSF's event and accounting files.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

from domain.errors import Refused
from replay.workloads.lsf_records import (
    fields_of,
    record_of,
    statuses_of,
    tasks_by_host,
    tokens_of,
    wait_status_of,
)


def test_strings_are_quoted_and_a_quote_inside_is_doubled():
    """
    The writer's only escape.
    """
    assert ("X", "10.1", 1, 'say "hi" now', "", Decimal("60.0")) == tokens_of(
        '"X" "10.1" 1 "say ""hi"" now" "" 60.0\n'
    )


@pytest.mark.parametrize("line", ['"X" "10.1" 1 "open', '"X"5 1', '"X" "a" b"c"'])
def test_a_line_that_cannot_be_taken_apart_is_refused(line):
    """
    Rather than read with its fields shifted.
    """
    with pytest.raises(Refused):
        tokens_of(line)


def test_a_record_is_read_by_name_and_its_codes_have_meanings():
    """
    The numbers of queue and host control differ.
    """
    queue = record_of('"QUEUE_CTRL" "10.1" 1700000000 3 "night" 0 "root" ""')
    host = record_of('"HOST_CTRL" "10.1" 1700000000 3 "h1" 0 "root"')

    assert ("night", "activate", "") == (queue["queue"], queue["meaning"], queue["message"])
    assert ("h1", "reboot") == (host["host"], host["meaning"])
    assert "message" not in host


def test_more_fields_at_the_end_and_unknown_types_are_no_error():
    """
    Each release appends fields and adds types.
    """
    assert 7 == record_of('"JOB_CLEAN" "10.1" 1 7 0 "new" 5')["jobId"]
    assert {"type": "NEWS", "version": "11", "time": 1} == record_of('"NEWS" "11" 1 2 3')


def test_a_list_is_preceded_by_its_length():
    """
    And an empty one is nothing but the 0.
    """
    names = ["numAskedHosts", "askedHosts", "next"]

    assert {"numAskedHosts": 2, "askedHosts": ("a", "b"), "next": 7} == fields_of(
        (2, "a", "b", 7), names
    )
    assert {"numAskedHosts": 0, "askedHosts": (), "next": 7} == fields_of((0, 7), names)


@pytest.mark.parametrize("line", ['"X" "1"', '"JOB_CLEAN" "10.1" 1 7', '"MIG" "10.1" 1 5 9 "h1"',
                                  '"MIG" "10.1" 1 5 "h1"', ""])  # fmt: skip
def test_a_record_that_ends_too_early_is_refused(line):
    """
    Also when a list says that it is longer than the line.
    """
    with pytest.raises(Refused):
        record_of(line)


def test_hosts_stand_once_per_slot_or_with_a_count():
    """
    The short event file writes n*host.
    """
    assert {"h1": 2, "h2": 1} == tasks_by_host(("h1", "h1", "h2")) == tasks_by_host(("2*h1", "h2"))


def test_status_bits_add_up():
    """
    The state itself, and how post-processing went.
    """
    assert ("DONE", "POST_ERR") == statuses_of(320)
    assert ("UNKWN",) == statuses_of(65536)
    assert () == statuses_of(0)


def test_the_wait_status_has_the_code_in_its_high_byte():
    """
    And a signal in the low one, with the bit for a core dump left aside.
    """
    assert (3, None, 3, "") == seen(768)
    assert (None, 9, 137, "") == seen(9)
    assert (None, 11, 139, "") == seen(128 + 11)
    assert (130, None, 130, "killed by SIGINT inside a shell") == seen(33280)
    assert (255, None, 255, "") == seen(65280)


def seen(raw):
    status = wait_status_of(raw)
    return status.code, status.signal, status.shown, status.reading

"""
Records as people read them: requirements as written, no environments, changes on a few lines.
"""

from __future__ import annotations

import json

from domain.jobs import EnvironmentVariable, JobSpec, Program
from domain.resreq.parser import parse
from replay.entities import (
    LINE_MAX,
    LINES_MAX,
    Change,
    change_lines,
    flat,
    for_people,
    is_moment,
    plain,
    text_words,
)

WANTED = "select[mem>5] rusage[mem=2GB] span[ptile=2]"


def _spec(**changes: object) -> JobSpec:
    values = {"user": "ann", "queue": "normal", "tasks_min": 1, "tasks_max": 1}
    return JobSpec(**{**values, **changes})


def test_a_requirement_is_shown_as_it_is_written():
    """
    A job of a workload has no text of its own, and its tree fills a page.
    """
    shown = for_people(plain(_spec(requirement=parse(WANTED))))

    assert ("requirement", "select[mem > 5] rusage[mem=2GB] span[ptile=2]") in list(flat(shown))
    assert not [path for path, _ in flat(shown) if "primaries" in path]


def test_an_environment_is_counted_and_never_shown():
    """
    It may hold passwords.
    """
    program = Program(argv=("true",), env=(EnvironmentVariable(name="TOKEN", value="secret"),))

    text = json.dumps(for_people(plain(_spec(program=program))))

    assert "secret" not in text
    assert "1 variable" in text


def test_what_came_or_went_is_told_in_a_few_lines_and_a_long_value_is_cut():
    """
    A line of two thousand characters is no answer.
    """
    record = json.dumps({f"field{number}": "x" * 20 for number in range(100)})
    long_before, long_after = json.dumps("a" * 900), json.dumps("b" * 900)

    came = change_lines(Change("jobs.1", None, record))
    went = change_lines(Change("jobs.1", record, "null"))
    other = change_lines(Change("text", long_before, long_after))

    assert ("jobs.1: came", "jobs.1: went") == (came[0], went[0])
    assert LINES_MAX + 2 == len(came) == len(went)
    assert [3, True] == [len(other), other[1].startswith('  before "aaa')]
    assert LINE_MAX + 10 > max(map(len, (*came, *went, *other)))
    assert ["a.b: 1 -> 2"] == change_lines(Change("a.b", "1", "2"))


def test_moments_and_durations_of_a_change_are_told_with_their_units():
    """
    Nobody reads microseconds since 1970, nor tells a moment from a duration by its digits.
    """
    submitted = 1_796_040_500_737_000
    record = json.dumps({"submit_us": submitted, "run_us": 5_037_487, "text": "x" * 200})

    assert ["jobs.1.start_us: null -> 2026-11-30T12:08:20.737Z"] == change_lines(
        Change("jobs.1.start_us", "null", str(submitted))
    )
    assert ["jobs.1.run_us: 0 -> 1m30s"] == change_lines(
        Change("jobs.1.run_us", "0", "90000000")
    )
    assert ["jobs.1.pid: 0 -> 30328"] == change_lines(Change("jobs.1.pid", "0", "30328"))
    assert "1m30s" == text_words("run_us", "90000000")
    assert "3" == text_words("exit_code", "3")
    assert ["0", "1970-01-01T00:00:00Z"] == [
        text_words(name, "0") for name in ("kill_us", "submit_us")
    ]
    came = " ".join(change_lines(Change("jobs.1", None, record)))
    assert "submit_us 2026-11-30T12:08:20.737Z, run_us 5.037487s" in came


def test_a_duration_whose_name_ends_as_a_moments_does_is_no_moment():
    """
    A limit of protection before the end of a job was told as a moment of 1970.
    """
    assert is_moment("jobs.4.finish_us")
    assert not is_moment("preemption.no_finish_us")
    (line,) = change_lines(Change("preemption.no_finish_us", "0", "600000000"))
    assert line == "preemption.no_finish_us: 0 -> 10m"

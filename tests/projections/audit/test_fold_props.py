"""
Whatever happened to the real core, the tables tell it truly, however the log was cut into batches.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.ids import job_of_stream
from projections.audit.reading import Reading
from tests.examples import examples
from tests.projections.audit.driving import Driven, driven, some_actions
from tests.projections.audit.making import compared, made, made_in_pieces

# Drawn one by one, the numbers stay small and alike, and little happens; a seed gives rich
# histories.
ACTIONS = st.builds(some_actions, st.integers(0, 2**32), st.integers(1, 90))
PICKERS = st.sampled_from(["builtin_fcfs", "strict_fcfs"])
pytestmark = pytest.mark.slow


def intervals(reading: Reading, query: str) -> dict[str, list[tuple]]:
    """
    Return the rows of a query by their first column, in order of position.
    """
    found = defaultdict(list)
    for name, *rest in reading.table(query)[1]:
        found[name].append(tuple(rest))
    return found


def check_partition(pieces: list[tuple], begin: int, end: int | None) -> None:
    """
    Assert that intervals (from, to) cover what lies between two positions without gap or overlap.
    """
    assert pieces[0][0] == begin
    for before, after in pairwise(pieces):
        assert before[1] == after[0]
    assert pieces[-1][1] == end


@settings(max_examples=examples(40))
@given(ACTIONS, st.lists(st.integers(1, 200), max_size=8), PICKERS)
def test_safety_tables_dont_depend_on_where_the_log_was_cut(actions, cuts, picker) -> None:
    """
    A kill between any two transactions, a restart, other batches: row for row the same tables.
    """
    envelopes = driven(actions, picker).envelopes
    with tempfile.TemporaryDirectory() as folder:
        whole = made(Path(folder, "whole.db"), envelopes)
        pieces = made_in_pieces(Path(folder, "pieces.db"), envelopes, cuts)

        assert [] == compared(whole, pieces)


@settings(max_examples=examples(40))
@given(ACTIONS, PICKERS)
def test_safety_intervals_partition_each_jobs_life(actions, picker) -> None:
    """
    States cover a job's life, and reasons cover its waiting, without gap or overlap, in positions
    and in time.
    """
    history = driven(actions, picker)
    with (
        tempfile.TemporaryDirectory() as folder,
        made(Path(folder, "a.db"), history.envelopes) as reading,
    ):
        states = intervals(
            reading,
            "SELECT job_id, from_position, to_position, from_us, to_us, state "
            "FROM job_states ORDER BY from_position",
        )
        reasons = intervals(
            reading,
            "SELECT job_id, from_position, to_position, from_us, to_us, code "
            "FROM pend_reasons ORDER BY from_position",
        )
        jobs = reading.rows("SELECT job_id, submit_position FROM jobs")

        for job in jobs:
            own = states[job["job_id"]]
            check_partition(own, job["submit_position"], None)
            waiting = [one for one in own if one[4] in ("PEND", "PSUSP", "WAIT")]
            mine = reasons[job["job_id"]]
            check_stretches(mine, waiting)
            length = sum((to or history.now_us) - begin for _, _, begin, to, _ in mine)
            assert length == sum((to or history.now_us) - begin for _, _, begin, to, _ in waiting)
            assert all(code for *_, code in mine)


def check_stretches(pieces: list[tuple], whole: list[tuple]) -> None:
    """
    Assert that pieces cover exactly what a list of intervals covers.
    """

    def merged(rows: list[tuple]) -> list[list]:
        out: list[list] = []
        for begin, end, *_ in rows:
            if out and out[-1][1] == begin:
                out[-1][1] = end
            else:
                out.append([begin, end])
        return out

    assert all(a[1] == b[0] or a[1] < b[0] for a, b in pairwise(pieces))
    assert merged(whole) == merged(pieces)


def told_by_the_core(history: Driven) -> dict[str, tuple]:
    """
    Return what the core knows of each job that it hasn't forgotten.
    """
    return {
        one.job_id: (
            str(one.state),
            one.attempt,
            one.dispatch_us,
            one.start_us,
            one.finish_us,
            one.exit_code,
            one.signal,
            one.pend_us,
            one.held_us,
            # A requeue begins the core's count of run time anew, and time without contact counts in
            # it; the tables keep every attempt and state.
            one.run_us if not (one.requeues or one.unknown_us) else None,
            one.unknown_us,
        )
        for one in history.core.state.stored.jobs.values()
    }


@settings(max_examples=examples(40))
@given(ACTIONS, PICKERS)
def test_safety_tables_agree_with_the_core(actions, picker) -> None:
    """
    Two folds of one log, written apart from each other: states, times in them, reason sets, hosts.
    """
    history = driven(actions, picker)
    with (
        tempfile.TemporaryDirectory() as folder,
        made(Path(folder, "a.db"), history.envelopes) as reading,
    ):
        expected = told_by_the_core(history)
        found = {}
        for row in reading.rows("SELECT * FROM jobs"):
            spent = defaultdict(int)
            for state in reading.rows(
                "SELECT * FROM job_states WHERE job_id = ?", (row["job_id"],)
            ):
                if state["to_us"] is not None:
                    spent[state["state"]] += state["to_us"] - state["from_us"]
            if row["job_id"] in expected:
                found[row["job_id"]] = (
                    row["state"],
                    row["attempt"],
                    row["dispatch_us"],
                    row["start_us"],
                    row["finish_us"],
                    row["exit_code"],
                    row["signal"],
                    spent["PEND"],
                    spent["PSUSP"],
                    spent["RUN"] if not (row["requeues"] or spent["UNKWN"]) else None,
                    spent["UNKWN"],
                )
        state = history.core.state.stored
        waits = {
            row["job_id"]: row["reason_set"]
            for row in reading.rows(
                "SELECT job_id, reason_set FROM waits WHERE to_position IS NULL AND kind = 'set'"
            )
        }
        hosts = {
            row["host"]: row["status"] for row in reading.rows("SELECT host, status FROM hosts")
        }
        blocker = reading.value("SELECT blocker FROM list_blockers WHERE to_position IS NULL") or ""

        assert expected == found
        assert {j.job_id: j.reason_set for j in state.jobs.values() if j.reason_set} == waits
        assert {w.name: status_of(w) for w in state.workers.values()} == hosts
        assert (job_of_stream(state.blocker) if state.blocker else "") == blocker


def status_of(worker) -> str:
    """
    Return a worker's status in the words of the tables.
    """
    if worker.left:
        return "left"
    if worker.is_silent:
        return "unreachable"
    if worker.closed:
        return "closed"
    return "locked" if worker.settings.is_locked else "ok"

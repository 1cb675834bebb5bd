"""
The cases for other people's pickers and allocators, run on our own and on some that are broken.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from projections.scheduling.pickers.conservative import Conservative
from projections.scheduling.pickers.easy import Easy
from projections.scheduling.pickers.fairshare import FairsharePicker
from projections.scheduling.pickers.fcfs import BuiltinFcfs, StrictFcfs
from projections.scheduling.pickers.shortest import ShortestFirst
from projections.scheduling.placement.allocators import Fill, ParJob
from projections.scheduling.placement.plugins import Plan, View
from projections.scheduling.records import JobRecord
from tests.literal import LiteralFcfs, LiteralStrict
from tools.conformance import allocator_cases, picker_cases
from tools.conformance.__main__ import main


class PlansOnly:
    """
    Spread one task on each host, without any short cut: as a third party would begin.
    """

    name = "scattered"
    version = 1

    def accepts(self, tasks: int) -> bool:
        return tasks > 1

    def plans(self, tasks: int, view: View) -> Iterator[Plan] | None:
        yield Plan(((tasks, 1),))


OURS = [
    BuiltinFcfs, StrictFcfs, Easy, Conservative, FairsharePicker, ShortestFirst,
    LiteralFcfs, LiteralStrict,
]  # fmt: skip


@pytest.mark.parametrize("make", [ParJob, Fill, PlansOnly])
def test_our_allocators_pass_the_cases(make: Callable[[], Any]) -> None:
    """
    What we ask of others holds for our own.
    """
    assert [] == allocator_cases.problems_of(make)


def test_plug_ins_are_tried_where_no_vectors_can_be_read() -> None:
    """
    An installation for use has no YAML: whoever writes a picker has just that.
    """
    picker = "projections.scheduling.pickers.fcfs:StrictFcfs"
    code = (
        "import sys; sys.modules['yaml'] = None; from tools.conformance.__main__ import main;"
        f"sys.exit(main(['picker', {picker!r}]))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.parametrize("make", OURS)
def test_our_pickers_pass_the_cases(make: Callable[[], Any]) -> None:
    """
    What we ask of others holds for our own.
    """
    assert [] == picker_cases.problems_of(make)


class Forgets(PlansOnly):
    """
    Leave a task out.
    """

    def plans(self, tasks: int, view: View) -> Iterator[Plan] | None:
        yield Plan(((1, max(1, tasks - 1)),))


class Remembers(PlansOnly):
    """
    Give other plans each time.
    """

    calls = 0

    def plans(self, tasks: int, view: View) -> Iterator[Plan] | None:
        Remembers.calls += 1
        return iter([Plan(((1, tasks),))] * (1 + Remembers.calls % 2))


class Guesses(ParJob.__mro__[0]):  # type: ignore[misc]
    """
    Find another host than the plans would.
    """

    def find(self, tasks: int, view: View, total: int) -> Any:
        found = super().find(tasks, view, total)
        if found and len(found[0][0]) == 1 and int((view.fits >= tasks).sum()) > 1:
            return [((view.fits >= tasks).nonzero()[0][-1:], tasks)]
        return found


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (Forgets, "plans_partition_the_tasks"),
        (Remembers, "plans_repeat"),
        (Guesses, "short_cuts_decide_as_plans"),
    ],
)
def test_broken_allocators_are_told_what_they_break(make: Callable[[], Any], rule: str) -> None:
    """
    A case that can't fail says nothing.
    """
    assert any(line.startswith(rule) for line in allocator_cases.problems_of(make))


class Twice(LiteralFcfs):
    """
    Return a job again.
    """

    def next_job(self) -> JobRecord | None:
        if not self.todo:
            return None
        job: JobRecord = self.todo[0] if self.again else self.todo.pop(0)
        self.again = not self.again
        return job

    def begin_session(self) -> None:
        super().begin_session()
        self.again = True


class Loses(LiteralFcfs):
    """
    Forget jobs whose hold is lifted, and all after a restore: odd numbers aren't known again.
    """

    def on_job_push(self, job: JobRecord) -> None:
        if job.number % 3:
            super().on_job_push(job)


class Counts(LiteralFcfs):
    """
    Decide by how many sessions there were.
    """

    sessions = 0

    def begin_session(self) -> None:
        super().begin_session()
        self.sessions += 1
        if self.sessions % 2:
            self.todo.reverse()


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (Twice, "jobs_are_returned_once_a_session"),
        (Loses, "every_job_runs_at_last"),
        (Counts, "a_restore_changes_no_decision"),
    ],
)
def test_broken_pickers_are_told_what_they_break(make: Callable[[], Any], rule: str) -> None:
    """
    A case that can't fail says nothing.
    """
    found = picker_cases.problems_of(make)
    for where in (f"{rule}: seed", f"{rule}: in a queue, seed"):
        assert any(line.startswith(where) for line in found)


def test_a_third_party_tries_its_plugins_by_command(capsys: pytest.CaptureFixture[str]) -> None:
    """
    A plug-in is named as in an entry point; what can't be loaded is refused.
    """
    here = "tests.tools.conformance.test_plugin_cases"
    assert 0 == main(["allocator", f"{here}:PlansOnly"])
    assert 1 == main(["picker", f"{here}:Twice"])
    assert "a job was returned twice" in capsys.readouterr().out
    assert 2 == main(["picker", f"{here}:Nobody"])
    assert "must be loadable (AttributeError" in capsys.readouterr().err

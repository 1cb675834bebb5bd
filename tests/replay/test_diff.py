"""
Two futures side by side: figures that add up, jobs that moved, and who displaced them.
"""

from __future__ import annotations

from fractions import Fraction

from domain.arrays import ArraySpec, IndexRange
from domain.commands import DefineQueue, RequeueJob, SwitchJob
from domain.queues import QueueSpec
from projections.figures import Figures
from replay.branch import Branch
from replay.branch_changes import Changes, parse_hosts
from replay.diff import Course, Displacer, Schedule, compare, schedule_of
from replay.recordings import open_history, record
from store.log import EventLog
from tests.replay.logs import ListLog
from tests.scenario import Scenario

S = 1_000_000


def a_schedule(*rows, slots=2):
    """
    Return a schedule of (number, submit, start, finish, tasks) in seconds; users u1 and so on.
    """
    jobs = {}
    for number, submit, start, finish, tasks in rows:
        stream = f"job:{number:010d}"
        jobs[stream] = Course(
            stream, submit * S, "normal", f"u{number}", tasks,
            None if start is None else start * S, None if finish is None else finish * S,
        )  # fmt: skip
    return Schedule("", jobs, slots)


def group(found, kind, name):
    """
    Return one group of a comparison.
    """
    return next(one for one in found.groups if (one.kind, one.name) == (kind, name))


def test_a_job_that_starts_later_was_displaced_by_those_who_ran_in_its_place():
    """
    Job 2 had job 1's hosts for 10 s more; job 3 ran then in both futures and gained nothing.
    """
    before = a_schedule((1, 0, 0, 10, 2), (2, 0, 10, 30, 2), (3, 0, 0, 30, 1), slots=3)
    after = a_schedule((1, 0, 20, 30, 2), (2, 0, 0, 20, 2), (3, 0, 0, 30, 1), slots=3)

    found = compare(before, after)

    assert (2, 1) == (found.moved_count, found.later_count)
    first, second = found.moved
    assert ("1", 20 * S, (Displacer("2", 20 * S),)) == (first.job_id, first.later_us, first.by)
    assert ("2", -10 * S, (Displacer("1", 20 * S),)) == (second.job_id, second.later_us, second.by)


def test_the_figures_of_a_group_are_those_of_its_jobs():
    """
    Wait, slowdown and utilisation by user; the utilisations add up to the whole.
    """
    found = compare(
        a_schedule((1, 0, 0, 10, 2), (2, 0, 10, 30, 2)),
        a_schedule((1, 0, 0, 10, 2), (2, 0, 10, None, 2), (3, 5, None, 8, 1)),
    )

    second = group(found, "user", "u2").before
    assert (1, 0, 10 * S) == (second.jobs, second.open, second.mean_wait_us)
    assert (Fraction(3, 2), Fraction(40, 60)) == (second.mean_bounded_slowdown, second.utilisation)
    whole = group(found, "all", "").before
    first = group(found, "user", "u1").before
    assert 1 == whole.utilisation == first.utilisation + second.utilisation
    assert (1, 2) == (group(found, "all", "").after.jobs, group(found, "all", "").after.open)


def test_jobs_that_only_one_future_has_or_starts_are_named():
    """
    A job must not vanish from the comparison because it has no counterpart.
    """
    before = a_schedule((1, 0, 0, 9, 1), (2, 0, 0, 9, 1), (3, 0, None, None, 1))
    after = a_schedule((2, 0, None, None, 1), (3, 0, 4, 9, 1), (4, 0, 0, 9, 1))

    found = compare(before, after)

    assert (("1",), ("4",)) == (found.only_before, found.only_after)
    assert (("2",), ("3",)) == (found.started_only_before, found.started_only_after)
    assert not found.is_same


def test_sizes_are_grouped_by_powers_of_two():
    """
    1, 2, 3-4, 5-8: in order of size, each job in one of them.
    """
    rows = [(tasks, 0, 0, 9, tasks) for tasks in (1, 2, 3, 4, 5, 8, 9)]

    found = compare(a_schedule(*rows), a_schedule(*rows))

    sizes = [(one.name, one.before.jobs) for one in found.groups if one.kind == "size"]
    assert [("1 task", 1), ("2 tasks", 1), ("3-4 tasks", 2), ("5-8 tasks", 2),
            ("9-16 tasks", 1)] == sizes  # fmt: skip
    assert found.is_same


def test_the_courses_of_a_log_give_the_figures_of_its_simulation(small_log):
    """
    Read back from the log, the sums are those that the events tell one by one.
    """
    with EventLog.open(small_log, writable=False) as log:
        schedule = schedule_of(log)
    figures = Figures(schedule.slots)
    for job in schedule.jobs.values():
        figures.add(submit_us=job.submit_us, start_us=job.start_us, finish_us=job.finish_us,
                    tasks=job.tasks)  # fmt: skip

    whole = group(compare(schedule, schedule), "all", "").before

    assert 4 == schedule.slots
    assert (5, 0) == (whole.jobs, whole.open)
    assert (figures.mean_wait_us, figures.utilisation) == (whole.mean_wait_us, whole.utilisation)
    assert figures.mean_wait_us > 0


def test_a_branch_with_more_hosts_is_told_from_its_parent(small_log):
    """
    The whole way: a log, a branch of it with more hosts, and the comparison.
    """
    with EventLog.open(small_log, writable=False) as parent:
        made = Branch(parent, 5, changes=Changes(hosts=parse_hosts("2x2", frozenset())))
        child = ListLog([], made.log_id)
        made.run(child)
        found = compare(schedule_of(parent, parent.log_id), schedule_of(child, child.log_id))

    assert found.before_log_id.startswith("sim-")
    assert found.after_log_id.startswith("branch-")
    assert [("2", -90 * S), ("3", -85 * S), ("4", -85 * S), ("5", -30 * S)] == [
        (one.job_id, one.later_us) for one in found.moved
    ]


def test_elements_of_an_array_are_jobs_of_their_own(tmp_path):
    """
    Each starts and ends by itself.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=2")
    array = ArraySpec(ranges=(IndexRange(start=1, end=3),))
    scenario.submit("A", array=array)
    scenario.log += scenario.core.session(scenario.now_us)
    found = schedule_of(ListLog(scenario.log))

    assert 3 == len(found.jobs)
    assert [S, S, None] == [job.start_us for job in found.jobs.values()]


def test_the_last_attempt_and_the_last_queue_count():
    """
    A job that went back to pending hasn't started; one that was switched counts where it is.
    """
    scenario = Scenario()
    scenario.command(DefineQueue(queue="other", spec=QueueSpec(priority=1)))
    scenario.hosts("h1 slots=2")
    scenario.jobs("A tasks=2", "B tasks=2")
    scenario.session()
    scenario.start("A")
    scenario.command(SwitchJob(job_id=scenario.ids["B"], queue="other"))
    scenario.command(RequeueJob(job_id=scenario.ids["A"], hold=True))
    scenario.session()
    scenario.pass_time(1)
    scenario.finish("A")
    scenario.log += scenario.core.session(scenario.now_us)
    found = schedule_of(ListLog(scenario.log))

    assert [None, "other"] == [found.jobs["job:0000000001"].start_us,
                               found.jobs["job:0000000002"].queue]  # fmt: skip


def test_a_recording_is_compared_as_far_as_it_goes(small_log, tmp_path):
    """
    Jobs from before its beginning are unknown to it.
    """
    with open_history(small_log) as log:
        second = next(
            one.position for one in log.read()
            if one.event.TYPE_CODE == "job.submitted" and one.stream.endswith("2")
        )  # fmt: skip
        record(log, tmp_path / "w.jsonl", after=second - 1)
        whole = schedule_of(log)
    with open_history(tmp_path / "w.jsonl") as window:
        part = schedule_of(window)

    assert [job for job in whole.jobs.values() if not job.stream.endswith("1")] == list(
        part.jobs.values()
    )

"""
xce why: one screen from the recorded decisions and the state at a position, without a scheduler.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from domain.arrays import ArraySpec, IndexRange
from domain.commands import DefineLimit, KillJob, MoveJob, RequeueJob, StopJob
from domain.limits import LimitAmount, LimitSpec
from domain.units import show_time
from projections.audit.pending import Shortage
from store.log import EventLog
from tests.scenario import Scenario
from tools.cli import audit_asking
from tools.cli.main import run
from tools.daemon import views


def written(scenario, tmp_path):
    """
    Return the directory of a cluster whose log is what happened in a scenario.
    """
    with EventLog.create(tmp_path / "c" / "log", log_id="why", durability="none") as log:
        log.append(scenario.log)
    return tmp_path / "c"


@pytest.fixture
def life():
    """
    Return a scenario: A runs on all of h1; then low, first, second and urgent wait, in another
    order than the one in which they were submitted.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=4")
    scenario.queue("high", 50)
    scenario.jobs("A tasks=4")
    scenario.session()
    scenario.start("A")
    scenario.pass_time(10)
    scenario.jobs("low tasks=2", "first tasks=2 priority=5", "second tasks=2 priority=5")
    scenario.jobs("urgent tasks=3 queue=high", "huge tasks=9")
    scenario.session()
    scenario.pass_time(60)
    return scenario


@pytest.fixture
def ask(capsys):
    """
    Return the function that runs xce why and gives what it printed.
    """

    def asked(directory, *arguments, status=0):
        assert status == run(["why", "--dir", str(directory), *map(str, arguments)])
        captured = capsys.readouterr()
        assert (status == 0) == (captured.err == "")
        return captured.out if status == 0 else captured.err

    return asked


def test_a_question_about_tables_that_are_up_loads_nothing_that_fills_them(life, tmp_path, ask):
    """
    Most of a question's second is loading the program; only whoever must catch up loads the rest.
    """
    directory = written(life, tmp_path)
    ask(directory, "2")
    code = (
        "import sys; from tools.cli.main import run;"
        f"status = run(['why', '2', '--dir', {str(directory)!r}]);"
        "fill = {'sqlite_utils', 'projections.audit.fold', 'projections.audit.read_model'};"
        "print(status, sorted(fill & set(sys.modules)), file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "0 []" == done.stderr.strip()


def told(ask, directory, *arguments):
    return json.loads(ask(directory, *arguments, "--json"))


def test_ahead_goes_by_the_order_in_which_jobs_are_taken(life, ask, tmp_path):
    """
    Queue priority, job priority, place, queue time, number: not by submission.
    """
    life.command(MoveJob(job_id=life.ids["second"], to="top"))
    directory = written(life, tmp_path)

    found = told(ask, directory, life.ids["low"], "--ahead")

    names = [life.ids[name] for name in ("urgent", "second", "first")]
    assert names == [one["job_id"] for one in found["ahead"]]
    assert (4, 5, "builtin_fcfs") == (found["place"], found["waiting_count"], found["picker"])
    assert [life.ids["A"]] == [one["job_id"] for one in found["holders"]]
    assert (["h1"], None) == (found["holders"][0]["hosts"], found["holders"][0]["expected_end_us"])


def test_one_screen_tells_verdict_limit_nearest_host_place_and_moment(life, ask, tmp_path):
    """
    What people ask first is all there, with units.
    """
    directory = written(life, tmp_path)

    shown = ask(directory, life.ids["low"])

    assert "waits: it can start, but not now" in shown
    assert "\n             2 slots asked for, 0 free (of 4) on 1 host that suits it\n" in shown
    assert "\nWhat helps   jobs that end: xce why" in shown
    assert "4 of 5 that wait, just after" in shown
    assert "Since" in shown
    assert f"(position {len(life.log)})" in shown
    assert len(shown.splitlines()) <= 24


def test_figures_of_a_try_long_ago_are_told_as_such(life, ask, tmp_path):
    """
    A job that can never start isn't tried when something becomes free: what the nearest host had
    free then must not read as if it were of now.
    """
    life.jobs("wide tasks=9 resreq=span[hosts=1]")
    life.session()
    before = ask(written(life, tmp_path / "before"), life.ids["wide"])
    life.finish("A")

    shown = ask(written(life, tmp_path / "after"), life.ids["wide"])
    told = json.loads(ask(tmp_path / "after" / "c", life.ids["wide"], "--json"))

    assert "by position" not in before
    assert "9 slots asked for there at least, 0 free on h1, which has most: 9 short" in shown
    assert f"by position {told['position']} h1 has 4 slots free: it was tried last at" in shown
    assert told["figures_position"] < told["position"]
    assert [{"host": "h1", "resource": "slots", "available_milli": 4000}] == told["freer_by_now"]


def test_the_past_is_told_as_it_was_told_then(life, ask, tmp_path):
    """
    After the end of everything the answer for a position is the answer of that position, to the
    last byte.
    """
    then = written(life, tmp_path / "then")
    position = len(life.log)
    low = life.ids["low"]
    before = ask(then, low, "--json", "--ahead", "--hosts")

    life.finish("A")
    life.session()
    life.start("urgent")
    life.finish("urgent")
    life.session()
    life.start("first", "second")
    life.finish("first", "second")
    life.session()
    life.start("low")
    life.finish("low")
    later = written(life, tmp_path / "later")

    assert before == ask(later, low, "--at", position, "--json", "--ahead", "--hosts")
    assert "waits: it can start, but not then" in ask(later, low, "--at", position)
    ended = ask(later, low)
    assert "doesn't wait: it ran on h1 and ended well." in ended
    assert "Ran instead  3 jobs" in ended
    assert "at last: not enough slots: 1 host" in ended


def test_a_time_means_the_last_position_of_that_time(life, ask, tmp_path):
    """
    People know when, programs know where.
    """
    directory = written(life, tmp_path)
    low, at_us = life.ids["low"], told(ask, directory, life.ids["low"])["since_us"]
    position = max(place for place, one in enumerate(life.log, 1) if one.time_us <= at_us)

    by_time = ask(directory, low, "--at", show_time(at_us))

    assert by_time == ask(directory, low, "--at", position)


def test_the_intervals_sum_to_the_wait(life, ask, tmp_path):
    """
    No second of the wait is left out or told twice.
    """
    life.finish("A")
    life.session()
    directory = written(life, tmp_path)
    job = life.job("first")

    found = told(ask, directory, life.ids["first"], "--history")

    ends = [found["now_us"] if one["to_us"] is None else one["to_us"] for one in found["intervals"]]
    begins = [one["from_us"] for one in found["intervals"]]
    assert begins[1:] == ends[:-1]
    assert found["waited_us"] == sum(ends) - sum(begins) == life.now_us - job.submit_us
    assert found["waited_us"] > 0


def test_an_inactive_queue_is_the_reason_since_it_became_so(life, ask, tmp_path):
    """
    Nobody decides about such a job, so the state says it, and the job has no place.
    """
    life.pass_time(30)
    life.set_queue("normal", "inactive")
    directory = written(life, tmp_path)

    found = told(ask, directory, life.ids["low"])
    shown = ask(directory, life.ids["low"])

    assert ("QUE_INACT", None) == (found["code"], found["place"])
    assert (len(life.log), life.now_us) == (found["since_position"], found["since_us"])
    assert "inactive" in shown
    assert "Its place    none" in shown


def test_a_limit_is_named_with_what_is_in_use_and_missing(ask, tmp_path):
    """
    Which limit, how much of it, for whom, and short of how much.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=8")
    amount = LimitAmount(resource="slots", milli=4000)
    scenario.command(DefineLimit(limit="four", spec=LimitSpec(amounts=(amount,))))
    scenario.jobs("A tasks=3", "B tasks=2")
    scenario.session()
    directory = written(scenario, tmp_path)

    found = told(ask, directory, scenario.ids["B"])["limits"]

    amounts = ("used_milli", "most_milli", "asked_milli", "missing_milli")
    assert [["four", 3000, 4000, 2000, 1000]] == [
        [one["limit"], *(one[name] for name in amounts)] for one in found
    ]
    assert "four: 3 of 4 slots in use, 2 asked for, short of 1" in ask(
        directory, scenario.ids["B"]
    )


def test_a_held_job_says_so(life, ask, tmp_path):
    """
    A hold is lifted by people, not by the scheduler.
    """
    life.hold("low")

    assert "is held" in ask(written(life, tmp_path), life.ids["low"])


def test_what_its_user_has_it_wait_for_is_named(life, ask, tmp_path):
    """
    Which jobs and which moment: "a dependency" and "a start time" answer nobody's question. The
    reason stands there once.
    """
    begin_us = life.now_us + 3_600_000_000
    life.submit("later", begin_us=begin_us)
    life.submit("after", dependency_text=f"done({life.ids['A']})")
    life.session()
    directory = written(life, tmp_path)

    later, after = (ask(directory, life.ids[name]) for name in ("later", "after"))

    assert f"Not before   {show_time(begin_us)}" in later
    assert 1 == later.count("it has a start time in the future")
    assert f"Waits for    done({life.ids['A']})" in after
    assert 1 == after.count("its dependency isn't satisfied yet")


def test_a_load_is_told_as_a_load():
    """
    Nothing of it is free, tried or short: it stands beside its threshold.
    """
    text = "the load index r1m is beyond its threshold"
    one = Shortage("HOST_LOAD", text, "r1m", 100, 2, "h1", 3628, 0)

    assert (
        f"{text}: 2 hosts; it is highest on h1 with 3.628, and the lowest threshold is 0.1"
    ) == one.words()


def test_a_stopped_job_does_not_run(life, ask, tmp_path):
    """
    Whoever asks why nothing comes of a job must not read that it runs.
    """
    directory = written(life, tmp_path / "before")
    assert "it runs on h1." in ask(directory, life.ids["A"])
    life.command(StopJob(job_id=life.ids["A"]))
    life.session()
    life.suspended("A")

    shown = ask(written(life, tmp_path / "after"), life.ids["A"])

    assert "runs" not in shown.splitlines()[0]
    assert "it has started on h1" in shown


def test_a_job_that_started_at_once_waited_for_nothing(life, ask, tmp_path):
    """
    That it was new when it came is no reason that anybody can do something about.
    """
    shown = ask(written(life, tmp_path), life.ids["A"])

    assert "Waited       0s\n" in shown
    assert "not yet considered" not in shown


def test_a_job_that_started_twice_ran_instead_once(life, ask, tmp_path):
    """
    It is jobs that are counted and named, not their attempts.
    """
    life.finish("A")
    life.session()
    life.start("urgent")
    life.command(RequeueJob(job_id=life.ids["urgent"]))
    life.finish("urgent", exit_code=1)
    life.session()
    life.session()
    assert 2 == life.job("urgent").attempt

    found = told(ask, written(life, tmp_path), life.ids["huge"])

    assert life.ids["urgent"] in found["instead"]
    assert found["dispatched_instead"] == len(found["instead"]) == len(set(found["instead"]))


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(("99",), 1), (("1", "--at", "soon"), 2), (("1", "--at", "9999"), 2),
     (("1", "--at", "9999", "--trace"), 2), (("1", "--history", "--hosts"), 2), (("x",), 2)],
)
def test_what_can_not_be_answered_is_one_line(life, ask, tmp_path, arguments, status):
    """
    Not found is 1, wrong usage 2.
    """
    assert 1 == ask(written(life, tmp_path), *arguments, status=status).count("\n")


def test_a_moment_that_is_none_is_told_what_is_taken(life, capsys, tmp_path):
    """
    A position beyond the end isn't taken for the end, and positions are told as well as times.
    """
    directory, last = str(written(life, tmp_path)), len(life.log)

    for at in (str(last + 1), "soon"):
        assert 2 == run(["why", "--dir", directory, "1", "--at", at])
    assert 0 == run(["why", "--dir", directory, "1", "--at", str(last)])

    beyond, nonsense = capsys.readouterr().err.splitlines()
    assert f"at: must not be after the log's last position {last}" in beyond
    assert "at: must be a position such as 4711 or a time such as 2026-" in nonsense


def test_where_a_job_was_placed_and_why_there_is_told(ask, tmp_path):
    """
    Also of a running job: which hosts were looked at, in which order, what each had room for.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=4", "h2 slots=2", "h3 slots=8", "h4 slots=8")
    scenario.jobs("A tasks=3")
    scenario.session()
    scenario.start("A")
    scenario.jobs("B tasks=1", "C tasks=2")
    scenario.session()
    directory = written(scenario, tmp_path)

    first, second = (told(ask, directory, scenario.ids[name])["placed"] for name in "BC")
    shown = ask(directory, scenario.ids["C"])

    assert [{"host": "h1", "tasks": 1}] == first["hosts"]
    assert (True, "h2") == (first["is_same"], first["why"]["next_host"])
    assert [("h1", 0, "not enough slots"), ("h2", 2, "")] == [
        (one["host"], one["room_tasks"], one["short_of"]) for one in second["why"]["considered"]
    ]
    assert (4, 3) == (second["why"]["considered_count"], second["why"]["with_room_count"])
    assert "Placed       on 2*h2 by parjob, attempt 1" in shown
    assert "passed over h1: not enough slots" in shown
    assert "the next with room was h3" in shown


def test_an_order_and_hosts_that_do_not_match_are_named(ask, tmp_path):
    """
    The order decides before the joining does; who doesn't match isn't looked at.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=2", "h2 slots=4", "h3 slots=8")
    scenario.submit("A", resreq=("select[slots>2] order[slots]",))
    scenario.session()
    directory = written(scenario, tmp_path)

    placed = told(ask, directory, scenario.ids["A"])["placed"]

    assert "order[slots], then in the order in which they joined" == placed["why"]["order"]
    assert "h3" == placed["hosts"][0]["host"]
    assert "h2" == placed["why"]["next_host"]
    assert [("HOST_RES_REQ", 1)] == [
        (one["code"], one["host_count"]) for one in placed["why"]["unmatched"]
    ]


def test_hosts_that_an_operator_named_are_told_as_such(ask, tmp_path):
    """
    Before the job starts there and afterwards: nothing chose them, and no queue keeps it back.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=1 mem_mb=900", "h2 slots=1")
    scenario.submit("X", resreq=("rusage[mem=700]",))
    scenario.session()
    scenario.submit("A", resreq=("rusage[mem=400] select[slots>9]",))
    scenario.run("A", "h1")
    scenario.session()
    waiting = written(scenario, tmp_path / "waiting")
    scenario.start("X")
    scenario.finish("X")
    scenario.session()
    started = written(scenario, tmp_path / "started")

    shown = ask(waiting, scenario.ids["A"])
    assert "Its place    before all others: an operator wants it on 1*h1\n" in shown
    assert "Why there    an operator named these hosts\n" in ask(started, scenario.ids["A"])
    placed = told(ask, started, scenario.ids["A"])["placed"]
    assert (True, True, None) == (placed["is_forced"], placed["is_same"], placed["why"])


def test_an_array_names_an_element_to_ask_about(ask, tmp_path):
    """
    Each of its elements waits for itself.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=1")
    array = ArraySpec(ranges=(IndexRange(start=4, end=6),))
    scenario.submit("A", array=array)
    scenario.session()
    directory = written(scenario, tmp_path)

    assert "is an array" in ask(directory, "1", status=2)
    assert "1[4]" in ask(directory, "1", "--history", status=2)
    assert "1[5]" == told(ask, directory, "1[5]")["job_id"]


def test_what_became_of_a_job_is_said_in_the_scheduler_s_words(life, ask, tmp_path):
    """
    Also long after it has forgotten the job: killed while it waited, failed, ended by a signal.
    """
    life.command(KillJob(job_id=life.ids["huge"]))
    life.finish("A", exit_code=3)
    life.session()
    directory = written(life, tmp_path)
    state = life.core.state

    for name in ("A", "huge", "urgent"):
        job = life.job(name)
        expected = views.why(state, job)
        found = told(ask, directory, job.job_id)
        assert expected == {one: found[one] for one in expected}
        never_ran = "it ended before it started" in found["verdict"]
        assert never_ran == (name == "huge")


def test_the_first_question_about_a_long_log_folds_it_in_a_second_process(
    life, ask, tmp_path, monkeypatch
):
    """
    Tables and ladder are made at once; the other process is gone when the answer comes.
    """
    begun, start = [], subprocess.Popen

    def started(*arguments, **options):
        begun.append(start(*arguments, **options))
        return begun[-1]

    monkeypatch.setattr(subprocess, "Popen", started)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(audit_asking, "FAR_EVENTS", 5)
    directory = written(life, tmp_path)

    first = ask(directory, life.ids["low"], "--at", len(life.log))
    again = ask(directory, life.ids["low"], "--at", len(life.log))

    (folding,) = begun
    assert "replay" in folding.args
    assert folding.returncode is not None
    assert first == again

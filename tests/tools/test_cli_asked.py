"""
What a job asks for, as a user of LSF says it, sees it, changes it and looks for it: against a real
scheduler with a real worker.
"""

from __future__ import annotations

import json

import pytest

from tests.tools import cli_harness as harness

pytestmark = pytest.mark.slow

ASKED = (
    "-J", "sim", "-n", "2,4", "-R", "rusage[mem=5]", "-m", "local1!+2", "-x", "-M", "1500",
    "-v", "1G", "-F", "10M", "-c", "1:00", "-p", "5", "-T", "6", "-W", "20", "-We", "10",
    "-b", "2030:12:24:10:30", "-t", "2031:1:1:0:00", "-r", "-Q", "99 EXCLUDE(3)", "-sp", "7",
    "-E", "echo before", "-Ep", "echo after", "-f", "a > b", "-i", "in", "-o", "out.%J",
)  # fmt: skip
SHOWN = {
    "Name": "sim", "Tasks": "2 to 4", "Requirement": "rusage[mem=5]", "Hosts asked": "local1!+2",
    "Nothing else on its hosts": "yes", "Memory limit": "1500MB", "Swap limit": "1GB",
    "File limit": "10MB", "CPU limit": "1h", "Process limit": "5", "Thread limit": "6",
    "Run limit": "20m", "Expected run": "10m", "Rerunnable": "yes", "Priority": "7",
    "Requeued by": "99 EXCLUDE(3)", "Run before": "echo before", "Run after": "echo after",
    "Copied": "a > b",
}  # fmt: skip


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """
    Return one cluster for all tests of this module, in UTC, with another queue.
    """
    options = ("--workers", "1", "--slots", "2")
    with harness.cluster(tmp_path_factory.mktemp("asked"), *options) as one:
        one._environment["TZ"] = "UTC"
        assert 0 == one.run("define", "queue", "other", "priority=1").returncode
        yield one


def facts(live: harness.Cluster, job_id: str) -> dict[str, str]:
    """
    Return what xce job tells, by its labels.
    """
    lines = live.run("job", job_id).stdout.splitlines()
    wide = lines[0].index(job_id)
    return {line[:wide].strip(): line[wide:] for line in lines}


def test_everything_that_a_job_asks_for_is_seen_and_taken_away(live):
    """
    Who can't see what was asked can't find out why it isn't so; `none` and LSF's n take it away.
    """
    job_id = live.submit("-H", *ASKED, "--", "true")
    told = facts(live, job_id)
    place = live.directory.parent

    assert set() == SHOWN.items() - told.items()
    assert "mem=5MB/host" == told["Reserves"]
    assert ("2030-12-24T10:30:00Z", "2031-01-01T00:00:00Z") == (told["Not before"], told["Ends by"])
    assert (f"{place}/in", f"{place}/out.%J") == (told["Input"], told["Output"])

    letters = "R m M v F c W b t Q sp E f i o".split()
    away = [word for letter in letters for word in (f"-{letter}", "none")]
    by_n = ["-pn", "-Tn", "-Wen", "-Epn", "-xn", "-rn", "-nn"]
    done = live.run("modify", *away, *by_n, job_id)

    assert (0, f"Job {job_id} is changed.\n", "") == (done.returncode, done.stdout, done.stderr)
    told = facts(live, job_id)
    kept = {"Name", "Tasks", "Rerunnable"}
    assert set() == (SHOWN.keys() - kept) & told.keys()
    assert ("1", "no") == (told["Tasks"], told["Rerunnable"])
    assert set() == {"Not before", "Ends by", "Input", "Output"} & told.keys()
    live.run("kill", job_id)


def test_a_pending_job_is_changed_in_every_respect_by_one_command(live):
    """
    LSF's bmod; what isn't named stays, also of its limits and its program.
    """
    job_id = live.submit("-H", "-M", "100", "-e", "err", "--cwd", "/tmp", "--", "sleep", "1")

    done = live.run(
        "modify", "-q", "other", "-T", "9", "-o", "out.%J", "-b", "2030:1:1:0:00", "-Z", "date",
        "-J", "new", "-rn", "-app", "none", job_id,
    )  # fmt: skip

    assert (0, "") == (done.returncode, done.stderr.replace(
        "xce: -b: 2030:1:1:0:00 means 2030-01-01T00:00:00Z.\n", ""
    ))  # fmt: skip
    told = facts(live, job_id)
    assert ("other", "new", "date", "/tmp") == tuple(
        told[name] for name in ("Queue", "Name", "Command", "Directory")
    )
    assert ("100MB", "9", "/tmp/out.%J", "/tmp/err") == tuple(
        told[name] for name in ("Memory limit", "Thread limit", "Output", "Errors")
    )
    story = live.run("history", job_id).stdout
    assert "threads (-T): none -> 9" in story
    assert "not before (-b): none -> 2030-01-01T00:00:00Z" in story
    live.run("kill", job_id)


def test_a_started_job_keeps_to_its_new_limits_and_the_rest_is_refused_with_the_reason(live):
    """
    LSF lets limits, amounts, output and -r change; each other option says what to do instead.
    """
    job_id = live.submit("-M", "100", "-o", "o", "--", "sleep", "600")
    live.wait_state(job_id, "RUN")

    for words in (
        ("-n", "2"), ("-i", "f"), ("-E", "x"), ("-m", "local1"), ("-b", "10:30"), ("-sp", "3"),
        ("-Q", "3"), ("-Z", "date"), ("-w", "done(1)"), ("-x",),
    ):  # fmt: skip
        done = live.run("modify", *words, job_id)
        rule = f"xce: {words[0]}: can't be changed once the job has started"
        assert (2, True) == (done.returncode, done.stderr.startswith(rule)), done.stderr
        assert f"xce requeue {job_id} puts it back first." in done.stderr
    assert f"xce switch QUEUE {job_id}" in live.run("modify", "-q", "other", job_id).stderr
    assert "xce stop keeps a job back" in live.run("modify", "-H", job_id).stderr

    done = live.run("modify", "-p", "50", "-o", "new", "-r", "-W", "0.02", job_id)

    assert 0 == done.returncode, done.stderr
    ended = live.wait_state(job_id, "EXIT")
    assert "TERM_RUNLIMIT" == ended["why"]
    limits = ended["asked"]["limits"]
    assert (102_400, 50) == (limits["memory_kib"], limits["processes"])


def test_moments_are_told_and_past_ones_have_their_meaning(live):
    """
    A job whose begin is past starts, one whose deadline is past ends without having run.
    """
    begun = live.run("submit", "--json", "-b", "2026:1:1:0:00", "--", "true")
    late = live.run("submit", "-t", "2026-01-01T00:00:00Z", "--", "true")
    job_id = late.stdout.split()[1]

    live.wait_state(json.loads(begun.stdout)["job_id"], "DONE")
    assert "-t: 2026-01-01T00:00:00Z is past: the job is ended" in late.stderr
    assert "TERM_DEADLINE" == live.wait_state(job_id, "EXIT")["why"]


def test_jobs_are_found_as_users_of_lsf_look_for_them(live):
    """
    Bjobs -u all, -J with *, -p, -d, -l, and Slurm's several states.
    """
    live.run("kill", "0")
    sim = live.submit("-H", "-J", "look-sim[1-2]", "--", "true")
    one = live.submit("-H", "-J", "look-one", "--", "true")
    done = live.submit("-J", "look-done", "--", "true")
    live.wait_state(done, "DONE")

    def found(*words: str) -> list[str]:
        return [job["job_id"] for job in live.ask("jobs", *words)["jobs"]]

    elements = [f"{sim}[1]", f"{sim}[2]"]
    assert [*elements, one] == found("-u", "all", "-J", "look-*")
    assert elements == found("-J", "*-sim")
    assert elements[1:] == found("-J", "look-sim[2]")
    assert [] == found("-p", "-J", "look*")
    assert [one] == found("-J", "look-one", "-s", "psusp,run")
    assert [done] == found("-d", "-J", "look*")
    assert [done] == found("-J", "look*", "-s", "DONE,EXIT")
    long = live.run("jobs", "-l", "-J", "look-*").stdout.split("\n\n")
    assert [f"Job            {job_id}" for job_id in (*elements, one)] == [
        each.splitlines()[0] for each in long
    ]
    assert [one] == found("-u", "all", one)
    assert "-q: chooses among all jobs" in live.run("jobs", "-q", "other", one).stderr
    assert "-s: must be some of PEND,PSUSP" in live.run("jobs", "-s", "odd").stderr
    assert 0 == live.run("kill", "0", "-J", "*-sim").returncode
    assert [one] == found("-J", "look-*")
    live.run("kill", one)


def test_what_a_profile_or_queue_sets_is_told_with_what_was_asked(live):
    """
    A job is ended by such a limit as by its own.
    """
    assert 0 == live.run("define", "queue", "bound", "priority=1",
                         "run_limit_max_us=1h", "run_limit_default_us=30m").returncode  # fmt: skip
    job_id = live.submit("-H", "-q", "bound", "--", "true")

    assert "30m, by its profile or queue" == facts(live, job_id)["Run limit"]
    over = live.run("submit", "-q", "bound", "-W", "2:00", "--", "true").stderr
    assert "xce: -W: must be at most the queue's 1h (given: '2:00')" in over
    assert 0 == live.run("define", "queue", "wrong", "priority=1", "run_limit_max_us=1h").returncode
    assert 0 == live.run("define", "profile", "long", "run_limit_us=3h").returncode
    untyped = live.run("submit", "-q", "wrong", "--app", "long", "--", "true").stderr
    assert untyped.startswith("xce: run limit: must be at most the queue's 1h"), untyped
    assert 0 == live.run("define", "limit", "small", "users=each all", "mem=1GB").returncode
    much = live.run("submit", "-R", "rusage[mem=2GB]", "--", "true").stderr
    assert much.startswith("xce: -R: is more than limit small ever allows of mem"), much
    live.run("remove", "limit", "small")
    live.run("kill", job_id)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("submit", "-n", "9" * 5000, "--", "true"), "-n: must be MIN or MIN,MAX in whole numbers"),
        (("submit", "-m", "a+" + "9" * 5000, "true"), "-m: must prefer hosts by a whole number"),
        (("submit", "-p", "9" * 5000, "true"), "-p: must be a whole number from 1 on"),
        (("submit", "-sp", "9" * 18, "true"), "-sp: must be at most 2147483647"),
        (("submit", "-M", "9" * 5000, "true"), "-M: must be a number, such as 4, 0.5 or 2GB"),
        (("run", "-m", "h1*" + "9" * 5000, "1"), "-m: must have a number of tasks"),
        (("submit", "-M", "", "true"), "-M: must not be empty"),
        (("submit", "-v", "", "true"), "-v: must not be empty"),
        (("modify", "-W", "", "1"), "-W: must not be empty"),
        (("kill", "0", "-q", ""), "-q: must not be empty"),
        (("stop", "0", "-J", ""), "-J: must not be empty"),
        (("jobs", "-q", ""), "-q: must not be empty"),
        (("jobs", "-m", "", "1"), "-m: must not be empty"),
        (("submit", "-J", "a\udcff", "true"), "-J: must be UTF-8"),
        (("submit", "-o", "a\udcff", "true"), "-o: must be UTF-8"),
        (("submit", "--", "a\udcff"), "COMMAND: must be UTF-8"),
        (("jobs", "-J", "a\udcff"), "-J: must be UTF-8"),
        (("job", "a\udcff"), "JOB: must be UTF-8"),
        (("submit", "--wait", "nan", "true"), "must be a number of seconds"),
        (("jobs", "--watch", "inf"), "is not in the range"),
    ],
)
def test_what_can_not_be_read_at_all_is_refused_by_its_option(live, words, message):
    """
    One short line, whatever was typed: nothing of it is a fault of the program.
    """
    done = live.run(*words)

    assert (2, "", 1) == (done.returncode, done.stdout, done.stderr.count("\n")), done.stderr
    assert message in done.stderr
    assert len(done.stderr) < 1000

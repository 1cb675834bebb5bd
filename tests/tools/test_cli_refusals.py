"""
What the command refuses, told as it was typed: against a real scheduler with a real worker.
"""

from __future__ import annotations

import pytest

from tests.tools import cli_harness as harness

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """
    Return one cluster for all tests of this module.
    """
    options = ("--workers", "1", "--slots", "2")
    with harness.cluster(tmp_path_factory.mktemp("refusals"), *options) as one:
        one.wait_state(one.submit("--shell", "true"), "DONE")
        yield one


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("submit", "-q", "nowhere", "--", "true"), 2, "-q: must name a queue that exists"),
        (("submit", "-R", "rusage[mem=", "--", "true"), 2, "-R: expected"),
        (("submit", "-n", "1000001", "--", "true"), 2, "-n: must be at most 1000000"),
        (("submit", "-w", "done(999999)", "--", "true"), 2, "-w: must name jobs that exist"),
        (("submit", "-m", "nowhere", "--", "true"), 2, "-m: must name workers that have joined"),
        (("submit", "-P", "odd one", "--", "true"), 2, "-P: must be a path such as /physics/"),
        (("submit", "--app", "a b", "--", "true"), 2, "--app: must be a name: up to 128 letters"),
        (("submit", "-G", "nobody", "--", "true"), 2, "-G: must be a user group that has "),
        (("submit", "-J", "a[1-100001]", "--", "true"), 2, "-J: must have at most 100000 elem"),
        (("submit", "-W", "9" * 18, "--", "true"), 2, "(given: '999999999999999999')"),
        (("submit", "--sp", "9" * 18, "--", "true"), 2, "--sp: must be at most 2147483647"),
        (("submit", "--key", "a b", "--", "true"), 2, "--key: must be of printable ASCII"),
        (("submit", "--", ""), 2, "COMMAND: must begin with the name of a program"),
        (("modify", "-W", "none", "999999"), 1, "JOB: must name a job that is known"),
        (("switch", "nowhere", "999999"), 1, "JOB: must name a job that is known"),
        (("job", "999999"), 1, "JOB: must name a job that is known (given: '999999'). List"),
        (("why", "999999"), 1, "JOB: must name a job of this log (given: '999999')"),
        (("why", "1", "--at", "999999"), 2, "--at: must not be after the log's last position"),
        (("history", "999999"), 1, "NAME: must be a job, host, queue or other entity of this log"),
        (("kill", "999999"), 1, "a job that is known (given: '999999'). List them: xce jobs -a."),
        (("job", "seven"), 2, "JOB: must be a job number"),
        (("remove", "limit", "nowhere"), 1, "NAME: must name one that exists (given: 'nowhere')."),
        (("remove", "limit", "nowhere"), 1, "List them: xce definitions."),
        (("jobs", "-m", "nowhere"), 1, "xce: -m: must be one that is known:"),
        (("queues", "nrmal"), 1, "Did you mean normal?"),
        (("define", "queue", "q", "priority=1", "slot_reserve_us=soon"), 2,
         "slot_reserve_us: must be a number of microseconds, or have units: 1h30m, 90s"),
        (("jobs", "--columns", "size"), 2, "--columns: must be some of job,"),
        (("hosts", "close", "nowhere"), 1, "HOST: must name a worker that has joined"),
        (("hosts", "close", "nowhere"), 1, "(given: 'nowhere'). List them: xce hosts."),
        (("submit", "-m", "nowhere", "--", "true"), 2, "List them: xce hosts."),
        (("submit", "-q", "nowhere", "--", "true"), 2, "List them: xce queues."),
        (("history", "999999"), 1, "List them: xce jobs -a, xce hosts, xce queues."),
        (("queues", "close", "nowhere"), 1, "QUEUE: must name a queue that exists"),
        (("audit", "report", "/nowhere/r.html"), 2, "FILE: must be in a directory that exists"),
        (("audit", "report", "/"), 2, "FILE: must be a file, not a directory"),
        (("audit", "export", "nothing"), 2, "TABLE: must be one of events,"),
    ],
)
def test_what_can_not_be_is_refused_in_one_line(live, arguments, status, message):
    """
    Not found is 1, refused is 2; each names the option or argument that was typed and what is wrong
    with it, on standard error only. A mistake in a requirement shows the text and a caret too.
    """
    done = live.run(*arguments)

    assert (status, "") == (done.returncode, done.stdout)
    assert message in done.stderr
    assert (3 if "-R: " in message else 1) == done.stderr.count("\n")


def test_what_nobody_typed_keeps_its_own_name(live):
    """
    Whoever gave no -q must not look for what is wrong with it.
    """
    live.run("queues", "close", "normal")
    try:
        refused = live.run("submit", "--", "true")
    finally:
        live.run("queues", "open", "normal")

    assert "xce: queue: must be open (given: 'normal').\n" == refused.stderr


def test_a_job_counts_for_no_group_but_its_users_own(live):
    """
    Naming another group, or one that isn't there, would get round the limits of one's own.
    """
    user = live.job(live.submit("--shell", "true"))["user"]
    assert 0 == live.run("define", "group", "inner", f"members={user}").returncode
    assert 0 == live.run("define", "group", "outer", "members=inner").returncode
    assert 0 == live.run("define", "group", "others", "members=somebody").returncode
    held = live.submit("-H", "-G", "inner", "--shell", "true")
    live.submit("-G", "outer", "--shell", "true")

    for arguments in (("submit", "-G", "others", "--", "true"), ("modify", "-G", "others", held)):
        refused = live.run(*arguments)
        assert 2 == refused.returncode
        assert "-G: must be a user group that has" in refused.stderr
    assert 0 == live.run("modify", "-G", "none", held).returncode


def test_a_directory_with_something_else_in_it_is_not_taken_for_a_cluster(tmp_path):
    """
    A mistyped --dir would scatter a cluster's files over somebody's home directory.
    """
    (tmp_path / "thesis.tex").write_text("mine")
    (tmp_path / "workers").mkdir()

    refused = harness.Cluster(tmp_path).run("up")

    assert 2 == refused.returncode
    assert "--dir: must not hold anything but a cluster, and holds thesis.tex" in refused.stderr
    assert ["thesis.tex", "workers"] == sorted(path.name for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("file", "must be a directory"),
        ("file/below", "can't be made or read: not a directory"),
        ("a/" + "b" * 300, "can't be made or read: file name too long"),
    ],
)
def test_a_directory_that_can_not_be_is_refused_by_name(tmp_path, path, rule):
    """
    The words are for people: the option, the rule, and the path that was given.
    """
    (tmp_path / "file").write_text("")

    refused = harness.Cluster(tmp_path).run("up", "--dir", str(tmp_path / path))

    assert 2 == refused.returncode
    assert f"xce: --dir: {rule} (given: '{tmp_path / path}')." in refused.stderr

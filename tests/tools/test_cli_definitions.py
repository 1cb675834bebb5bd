"""
What is said of a queue's definition that counts for nothing, and the help about definitions.
"""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest
from click.testing import CliRunner

from domain.definitions import MODELS, fields_of
from domain.name_lists import parse_names
from domain.preemption import Preemption, Relation
from domain.queues import QueueSpec
from domain.thresholds import parse_thresholds
from tests.builders import some_settings
from tests.tools import cli_harness as harness
from tools.cli import main, policies
from tools.cli.definition_notices import unreported
from tools.cli.definitions import Definitions
from tools.cli.queue_notices import notices_of

MADE = ("requirement", "stop_when", "resume_when")
BOTH = some_settings()
EITHER = some_settings(preemption=Preemption(relation=Relation.EITHER))


def _queues(hunter="normal", prey=None, priority=90):
    return {
        "urgent": QueueSpec(
            priority=priority, preemptible_queues=parse_names(hunter) if hunter else None
        ),
        "normal": QueueSpec(priority=30, preemptible_by=parse_names(prey) if prey else None),
    }


@pytest.mark.parametrize(
    ("queues", "name", "cluster", "field", "words"),
    [
        (_queues(), "urgent", BOTH, "preemptible_queues",
         "define queue normal preemptible_by=urgent"),
        (_queues(None, "urgent"), "normal", BOTH, "preemptible_by",
         "define queue urgent preemptible_queues=normal"),
        (_queues("night"), "urgent", BOTH, "preemptible_queues", "there is no queue night"),
        (_queues("normal", "urgent", 30), "urgent", EITHER, "preemptible_queues",
         "no higher priority"),
        (_queues("all"), "urgent", BOTH, "preemptible_queues", "both say so"),
    ],
)  # fmt: skip
def test_a_queue_that_silently_never_preempts_is_told_what_to_do(
    queues, name, cluster, field, words
):
    """
    Both queues must agree unless the cluster says otherwise; who set one of the two waits for
    preemption that never comes.
    """
    assert words in notices_of(name, queues, cluster)[field]


@pytest.mark.parametrize(
    ("queues", "cluster"),
    [(_queues(), EITHER), (_queues("normal", "urgent"), BOTH), (_queues("all", "all"), BOTH)],
)
def test_queues_that_agree_are_told_nothing(queues, cluster):
    """
    A notice that comes always is read never.
    """
    assert {} == notices_of("urgent", queues, cluster)


def test_shares_without_the_picker_that_reads_them_are_told():
    """
    They are kept, and count for nothing.
    """
    queue = QueueSpec.model_validate({"priority": 1, "fairshare": {}})

    told = notices_of("q", {"q": queue}, BOTH)

    assert "picker=fairshare" in told["fairshare"]


def test_the_kinds_that_can_be_defined_are_those_of_the_models():
    """
    They are written down in the command, so that help needn't load the models.
    """
    assert tuple(MODELS) == policies.DEFINED


@pytest.mark.parametrize("command", ["jobs", "jobs 7", "queues", "hosts", "kill 7[1]"])
def test_what_people_type_all_day_loads_no_model(command, tmp_path):
    """
    Pydantic and the models take twice as long as everything else.
    """
    code = (
        "import sys; from tools.cli.main import run; status = run(sys.argv[1:]);"
        "print(status, sorted({'pydantic', 'numpy', 'lmdb'} & set(sys.modules)))"
    )
    arguments = [*command.split(), "--dir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )

    assert "3 []" == done.stdout.strip()


@pytest.mark.parametrize("kind", MODELS)
def test_help_of_define_lists_every_field_of_the_kind(kind):
    """
    With its type, unit and default, and examples of that kind alone.
    """
    done = CliRunner().invoke(main.cli, ["define", kind, "--help"], prog_name="xce")

    told = " ".join(done.output.split())
    assert "FIELD=none takes a value away" in told
    for field in fields_of(kind):
        assert field.words in told
        assert field.shape == "amounts" or f" {field.name}=" in told
    other = next(each for each in MODELS if each != kind)
    assert f"xce define {kind} " in done.output
    assert f"xce define {other} " not in done.output


@pytest.mark.parametrize("command", ["define", "remove"])
def test_what_may_stand_for_a_missing_argument_is_told_in_one_line(capfd, command):
    """
    The line ends between the choices were shown as backslashes.
    """
    status = main.run([command])

    told = capfd.readouterr().err
    assert (2, 1) == (status, told.count("\n"))
    assert "Choose from: queue, " in told
    assert "\\" not in told


def test_the_list_of_commands_says_of_replay_what_its_own_help_says():
    """
    Checking is the least of what it does; who looks for the rest reads the list.
    """
    told = CliRunner().invoke(main.cli, ["replay", "--help"], prog_name="xce").output

    assert "Look at any moment of a log, " in told
    assert main.COMMANDS["replay"].summary.startswith("Look at any moment of a log, ")


def _examples_of(kind):
    told = CliRunner().invoke(main.cli, ["define", kind, "--help"], prog_name="xce").output
    lines = told.partition("\nExamples:\n")[2].replace("\\\n", "").splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines]


@pytest.mark.slow
def test_every_example_in_the_help_of_define_does_as_printed(tmp_path):
    """
    Examples are typed as they stand, on a cluster where nothing is defined yet.
    """
    with harness.cluster(tmp_path, "--workers", "1", "--slots", "2") as live:
        worker = live.begin("worker", "--name", "alpha", "--slots", "2")
        try:
            harness.wait_until(lambda: "alpha" in live.run("hosts", "alpha").stdout)
            done = [live.run(*typed) for kind in MODELS for typed in _examples_of(kind)]
        finally:
            worker.terminate()
            worker.communicate()

    assert len(done) >= len(MODELS)
    assert [] == [(one.args, one.stderr) for one in done if one.returncode]


@pytest.mark.slow
def test_a_live_cluster_shows_each_definition_in_full(tmp_path):
    """
    What was said, what holds where nothing was said, and limits that nothing uses yet.
    """
    with harness.cluster(tmp_path, "--workers", "1", "--slots", "2") as live:
        noted = live.run("define", "queue", "urgent", "priority=90", "preemptible_queues=normal")
        live.run("define", "limit", "l1", "users=each all", "mem=50GB")
        live.run("define", "cluster", "default_project=p1")
        shown = live.run("queues", "urgent").stdout
        facts = live.ask("queues", "urgent")
        limits = live.ask("limits")
        table = live.run("limits").stdout
        unknown = live.run("queues", "nothing")
        cluster = live.ask("definitions", "cluster")
        all_of_it = live.run("definitions").stdout

        assert "preemptible_by=urgent" in noted.stderr
        assert all(field in shown for field in QueueSpec.model_fields if field not in MADE)
        assert "builtin_fcfs, the cluster's" in shown
        assert ([], 90) == (facts["preempts"], facts["definition"]["priority"])
        assert ("l1", ["users"]) == (limits["unused"][0]["limit"], limits["unused"][0]["each"])
        assert "each user" in table
        assert "50GB" in table
        assert (1, True) == (unknown.returncode, "urgent, normal" in unknown.stderr)
        assert "p1" == cluster["definition"]["default_project"]
        assert 'limit    l1      users="each all" mem=50GB' in all_of_it
        assert "" == live.run("define", "queue", "normal", "preemptible_by=urgent").stderr
        assert ["normal"] == live.ask("queues", "urgent")["preempts"]
        host = live.ask("hosts")["hosts"][0]["host"]
        live.submit("-J", "there", "--", harness.program("sleep"), "600")
        harness.wait_until(lambda: live.ask("jobs", "-m", host)["jobs"])
        assert ["there"] == [job["name"] for job in live.ask("jobs", "-m", host)["jobs"]]
        assert ("ok", False) == (
            (one := live.ask("hosts", host))["status"], one["settings"]["is_locked"]
        )
        shown = live.run("hosts", host).stdout
        assert "1 of 2 slots used by 1 job" in shown
        assert "run queue length, mean of a minute" in shown
        assert (1, True) == (
            (gone := live.run("jobs", "-q", "none")).returncode, "-q: must be" in gone.stderr
        )
        _check_projects(live)
        # What stands before a subcommand's name is meant for it too.
        elsewhere = live.run("queues", "--dir", str(tmp_path / "none"), "close", "normal")
        assert 3 == elsewhere.returncode


@pytest.mark.parametrize(
    ("kind", "name", "thresholds", "words"),
    [
        ("queue", "q", "r1m=4", None),
        ("queue", "q", "ls=4 r1m=2", "h1 hasn't reported ls so far, and no job of this queue"),
        ("queue", "q", "r15s=4", "h1, h2 haven't reported r15s so far"),
        ("host", "h1", "r15s=4", "h1 hasn't reported r15s so far, and no job starts there"),
        ("host", "h2", "ls=4", None),
        ("host", "h3", "ls=4", None),
    ],
)
def test_a_bound_of_a_load_that_nobody_reports_is_told(kind, name, thresholds, words):
    """
    Nothing starts on such a host, for ever; one that has only just joined reports nothing yet.
    """
    bounds = [each.model_dump(mode="json") for each in parse_thresholds(thresholds)]
    spec = {"queue": {"priority": 1, "thresholds": bounds}, "host": {"thresholds": bounds}}[kind]
    hosts = [
        {"host": host, "load": [{"index": index, "milli": 1} for index in load.split()]}
        for host, load in (("h1", "mem r1m"), ("h2", "mem r1m ls"), ("h3", ""))
    ]

    told = unreported(Definitions({"definitions": {kind: {name: spec}}}), kind, name, hosts)

    assert (words is None) == (told == {})
    assert (words or "") in told.get("thresholds", "")


def _check_projects(live):
    """
    Check that whoever defines the first project is told that jobs need one from then on.
    """
    nobody = live.run("define", "host", "h9", "is_locked=true").stderr
    assert "NAME: must name a worker" in nobody
    live.run("define", "cluster", "default_project=")
    first = live.run("define", "project", "/a", "users=nobody")
    refused = live.run("submit", "--", harness.program("true"))
    assert "xce define cluster default_project=/a" in first.stderr
    assert (2, True) == (refused.returncode, "each job counts for one" in refused.stderr)
    assert "it has no members" in live.run("define", "project", "/b").stderr
    assert "" == live.run("define", "project", "/b", "users=nobody").stderr
    default = live.run("define", "cluster", "default_project=/a").stderr
    assert "count for /a, which only its members may use: users nobody; others" in default
    refused = live.run("submit", "--", harness.program("true")).stderr
    assert "isn't among its users (nobody). An administrator" in refused
    assert "count for it by default" in live.run("define", "project", "/a", "slots=9").stderr
    elsewhere = live.run("define", "queue", "normal", "project=/b").stderr
    assert "Note: project: jobs that name no project count for /b" in elsewhere

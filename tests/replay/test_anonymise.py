"""
A recording that is given away names nobody, and decides what the log decided.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import typing

import pytest
from pydantic import BaseModel

from domain.commands import CloseWorker, DefineQueue, KillJob, SubmitJob
from domain.commands.policies import (
    DefineGroup,
    DefineLimit,
    DefineProfile,
    DefineProject,
    DefineUser,
)
from domain.errors import Refused
from domain.event import event_classes
from domain.events.refusals import CommandRefused
from domain.fairshare import Fairshare, ShareNode
from domain.groups import GroupSpec
from domain.jobs import EnvironmentVariable, JobSpec, Program
from domain.limits import LimitAmount, LimitSpec, Scope
from domain.name_lists import parse_names
from domain.profiles import ProfileSpec
from domain.projects import ProjectSpec
from domain.queues import QueueSpec
from domain.users import UserSpec
from projections.scheduling import records
from replay.anonymise import Aliases
from replay.anonymise_rules import KEYS, OPEN, RULES, Kind
from replay.at import ladder_of
from replay.recordings import record
from replay.verify import verify
from store.log import EventLog
from store.recordings import Recording
from tests.scenario import Scenario

# Everything of it is secret, and none of it is a word of the program.
SECRETS = (
    "zora quentin wolfram staff-group /apollo/rocket hushmoney sim-of-engine paper-run topsecret "
    "lab-limit chem-profile client-key-1 /home/zora HOMEVAR big-description tired-of-it"
).split()


@pytest.fixture
def told(tmp_path):
    """
    Return a log in which people, projects, limits and commands decide and are told in many places.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=4", "h2 slots=2")
    amounts = (LimitAmount(resource="slots", milli=2000),)
    names = parse_names("zora quentin")
    for command in (
        DefineGroup(group="staff-group", spec=GroupSpec(
            members=("zora", "quentin", "wolfram"), description="big-description")),
        DefineUser(user="zora", spec=UserSpec(slots_max=3)),
        DefineProject(project="/apollo", spec=ProjectSpec(groups=("staff-group",))),
        DefineProject(project="/apollo/rocket", spec=ProjectSpec(users=("zora",),
                                                                 groups=("staff-group",))),
        DefineLimit(limit="lab-limit", spec=LimitSpec(
            users=Scope(names=names, is_each=True), amounts=amounts)),
        DefineProfile(profile="chem-profile", spec=ProfileSpec(pre_exec="topsecret --init")),
        DefineQueue(queue="shared", spec=QueueSpec(
            priority=40, users=parse_names("staff-group"), description="big-description",
            fairshare=Fairshare(shares=(ShareNode(name="zora", shares=3),
                                        ShareNode(name="default", shares=1))))),
    ):  # fmt: skip
        scenario.command(command, actor="wolfram")
    ids = [_submit(scenario, user, number) for number, user in enumerate(
        ("zora", "quentin", "zora", "wolfram", "quentin", "zora"))]  # fmt: skip
    _hold_session(scenario)
    running = list(scenario.state.live.values())
    scenario.ids |= {job.job_id: job.job_id for job in running}
    scenario.start(*(job.job_id for job in running))
    scenario.pass_time(5)
    scenario.command(CloseWorker(worker="h2", why="tired-of-it"), actor="wolfram")
    scenario.command(KillJob(job_id=ids[-1]), actor="wolfram")
    _hold_session(scenario)
    for job in running:
        scenario.pass_time(3)
        scenario.finish(job.job_id)
        _hold_session(scenario)
    with EventLog.create(tmp_path / "secret-place") as log:
        log.append(scenario.log)
    return tmp_path / "secret-place"


def _hold_session(scenario):
    scenario.log += scenario.core.session(scenario.now_us)


def _submit(scenario, user, number):
    program = Program(
        argv=("topsecret", "--of", user), cwd="/home/zora",
        env=(EnvironmentVariable(name="HOMEVAR", value="hushmoney"),),
    )  # fmt: skip
    spec = JobSpec(
        user=user, queue="shared" if number % 2 else "normal", project="/apollo/rocket",
        group="staff-group", profile="chem-profile",
        name="paper-run" if number < 2 else "sim-of-engine",
        tasks_min=1 + number % 2, tasks_max=1 + number % 2, program=program,
    )  # fmt: skip
    made = scenario.command(
        SubmitJob(spec=spec, key=f"client-key-1{number}", digest=f"client-key-1{number}"),
        actor=user,
    )
    return str(int(made[0].stream[4:]))


def verified(file):
    with Recording(file) as recording:
        return verify(
            recording, after=recording.first_position - 1, start=ladder_of(recording).start,
            states=recording.snapshots,
        )  # fmt: skip


def anonymised(log, file, **options):
    with EventLog.open(log, writable=False) as opened:
        record(opened, file, is_anonymous=True, **options)
    return file


@pytest.mark.parametrize("after", [0, 25])
def test_nobody_is_named_and_every_decision_is_the_same(told, tmp_path, after):
    """
    The whole log and a window, each with states: nothing of the original is in the bytes.
    """
    with EventLog.open(told, writable=False) as log:
        whole = "\n".join(json.dumps([str(part) for part in row]) for row in log.rows())
        expected = [row[3] for row in log.rows()]
        record(log, tmp_path / "open.jsonl", after=after, every=20)
    file = anonymised(told, tmp_path / "closed.jsonl", after=after, every=20)
    text = file.read_text()

    assert [] == [secret for secret in SECRETS if secret not in whole and after == 0]
    assert [] == [secret for secret in SECRETS if secret in text]
    assert "secret" not in text
    assert verified(tmp_path / "open.jsonl").is_same
    result = verified(file)
    assert result.is_same, result.differences
    assert result.states > 1
    with Recording(file) as recording:
        first = recording.first_position
        assert expected[first - 1 :] == [row[3] for row in recording.rows(first - 1)]


def test_the_same_name_is_the_same_alias_everywhere(told, tmp_path):
    """
    As user of a job, as actor, as member of a group, in charges and lists.
    """
    file = anonymised(told, tmp_path / "closed.jsonl")
    jobs, group, actors = [], None, []
    with Recording(file) as recording:
        for one in recording.read():
            if one.event.TYPE_CODE == "job.submitted":
                jobs.append(one.event.spec)
                actors.append(one.actor)
            if one.event.TYPE_CODE == "group.defined":
                group = one.event.spec.members

    assert [job.user for job in jobs] == actors
    assert jobs[0].user == jobs[2].user == jobs[5].user != jobs[1].user == jobs[4].user
    assert group == (jobs[0].user, jobs[1].user, jobs[3].user)
    assert jobs[0].name == jobs[1].name != jobs[2].name
    assert jobs[0].program.argv == jobs[2].program.argv != jobs[1].program.argv
    assert f"of {jobs[0].user}" in file.read_text()


def test_words_that_a_refusal_quotes_are_left_out(tmp_path):
    """
    What was typed may be anybody's secret, and no decision looks at it: which command and which
    field stay.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=4")
    spec = JobSpec(
        user="zora", queue="normal", resreq=("select[moonshot>3]",), program=Program(argv=("true",))
    )
    with pytest.raises(Refused) as refused:
        scenario.command(SubmitJob(spec=spec), actor="zora")
    said = {name: str(refused.value.fields()[name]) for name in ("field", "rule", "value")}
    event = CommandRefused(command="SubmitJob", **said)
    scenario.log += scenario.core.take(
        [("refusals", event)], actor="zora", cause="", now_us=scenario.now_us
    )
    with EventLog.create(tmp_path / "log") as log:
        log.append(scenario.log)
    file = anonymised(tmp_path / "log", tmp_path / "closed.jsonl")

    assert "moonshot" in event.rule
    assert "moonshot" not in file.read_text()
    with Recording(file) as recording:
        (left,) = (one.event for one in recording.read() if one.event.TYPE_CODE == event.TYPE_CODE)
    assert ("SubmitJob", "resreq") == (left.command, left.field)
    assert verified(file).is_same


def test_aliases_keep_the_order_of_names_and_what_lists_mean():
    """
    Whoever is decided by the order of names is decided alike.
    """
    aliases = Aliases()
    names = ["bob", "alice", "all", "carol9", "carol10", "user-1", "g@"]
    for name in names:
        aliases.see(Kind.PERSON, name)
    aliases.see(Kind.STREAM, "queue:bob")
    aliases.settle()
    given = {name: aliases.alias(Kind.PERSON, name) for name in names}

    assert "all" == given["all"]
    people = sorted(name for name in names if name not in ("all", "g@"))
    assert [given[name] for name in people] == sorted(given[name] for name in people)
    assert not set(given.values()) & {"bob", "alice", "carol9", "carol10", "user-1"}
    assert given["g@"].endswith("@")
    assert f"of {given['alice']} queue bob" == aliases.alias(Kind.MIXED, "of alice queue bob")
    assert "user:" + given["bob"] == aliases.alias(Kind.STREAM, "user:bob")


# ---------------------------------------------------------------------------------------- the rules


def _has_text(kind):
    if isinstance(kind, type):
        return issubclass(kind, str) and not issubclass(kind, enum.Enum)
    return any(_has_text(part) for part in typing.get_args(kind) if not isinstance(part, str))


def _classes_in(kind):
    if isinstance(kind, type) and (issubclass(kind, BaseModel) or dataclasses.is_dataclass(kind)):
        yield kind
    for part in typing.get_args(kind):
        yield from _classes_in(part)


def _texts(cls, found):
    if cls in found:
        return
    hints = typing.get_type_hints(cls)
    names = (
        list(cls.model_fields) if issubclass(cls, BaseModel)
        else [each.name for each in dataclasses.fields(cls)]
    )  # fmt: skip
    found[cls] = [name for name in names if _has_text(hints[name])]
    for name in names:
        for inner in _classes_in(hints[name]):
            _texts(inner, found)


def test_every_text_of_every_event_and_record_is_either_open_or_has_a_rule():
    """
    Whoever adds a field says in replay/anonymise_rules.py whether it names somebody.
    """
    found = {}
    for cls in (*event_classes().values(), records.StoredState):
        _texts(cls, found)
    known = {(owner, name) for owner, names in OPEN.items() for name in names.split()}
    known |= {*RULES, *KEYS}
    there = {(cls.__name__, name) for cls, names in found.items() for name in names}

    speaking = [cls.__name__ for cls, names in found.items() if names]
    assert len(set(speaking)) == len(speaking), "classes are told apart by their names"
    assert set() == there - known, "these have no rule"
    structures = {(owner, name) for owner, name in known if (owner, name) not in there}
    classes = {cls.__name__: cls for cls in found}
    for owner, name in structures:
        assert name in typing.get_type_hints(classes[owner]), f"{owner}.{name} isn't there"

"""
One table of the options of a job: what submit takes, what modify takes, what is shown, and how
refusals name it.
"""

from __future__ import annotations

from typing import Any

import click
import pytest
from pydantic import BaseModel

from domain.arrays import ArraySpec
from domain.errors import Refused
from domain.jobs import ExitRules, JobLimits, JobSpec, Program
from projections.audit.job_words import bare_words, option_of
from tools.cli.as_typed import tell_as_typed
from tools.cli.groups import TYPED
from tools.cli.job_changes import modify
from tools.cli.job_facts import ASKED, NOT_ASKED
from tools.cli.job_options import OPTIONS, changes_of, fields_of, nested
from tools.cli.submit import submit
from tools.daemon.bodies import ModifyRequest, SubmitRequest

PARTS: dict[str, type[BaseModel]] = {
    "array": ArraySpec, "exits": ExitRules, "limits": JobLimits, "program": Program,
}  # fmt: skip
VALUES = {
    "-n": "2,3", "-J": "name[1-3]%2", "-w": "done(1)", "-b": "10:30", "-t": "2030:1:1:0:0",
    "-m": "h1+1", "-Q": "99 EXCLUDE(3)", "-f": "a > b", "--env": "NONE", "-R": "mem>1",
    "-P": "/a",
}  # fmt: skip
NOT_OF_A_SUBMISSION = {"exits.success", "exits.requeue_max", "program.umask", "user"}
"""Fields that no option of a submission gives: of queues, of the caller."""


def leaves(model: type[BaseModel]) -> set[str]:
    """
    Return every field of a request or job, of objects each of their own.
    """
    found = set()
    for name in model.model_fields:
        inner = PARTS.get(name)
        found |= {f"{name}.{part}" for part in inner.model_fields} if inner else {name}
    return found


def typed(option: Any) -> list[str]:
    if not option.metavar:
        return [option.flags[0]]
    return [option.flags[0], VALUES.get(option.flags[0], "7")]


def flat(body: dict[str, Any]) -> set[str]:
    inner = {f"{name}.{part}" for name in PARTS for part in body.get(name) or ()}
    return {name for name in body if name not in PARTS} | inner


def given_by_options() -> set[str]:
    """
    Return the fields of a submission that some option gives.
    """
    words = [word for option in OPTIONS for word in typed(option)]
    options = submit.make_context("submit", words).params
    return flat(fields_of(options))


def test_every_field_of_a_submission_is_given_by_an_option():
    """
    What the API takes and the command line doesn't would be forgotten there for ever.
    """
    assert leaves(SubmitRequest) - NOT_OF_A_SUBMISSION - {"key"} == given_by_options()


def test_every_option_of_a_submission_modifies_or_says_what_does():
    """
    One table serves both commands, so that none lacks what the other takes.
    """
    taken = {flag for one in modify.params for flag in one.opts}

    for option in OPTIONS:
        assert set(option.flags) <= taken, option.name
        words = typed(option) if option.name != "name" else ["-J", "name%2"]
        context = modify.make_context("modify", [*words, "12"])
        if option.instead:
            with pytest.raises(Refused, match="can't be changed by a modification"):
                changes_of(context.params)
        else:
            body = changes_of(context.params)
            assert body, option.name
            assert set(body) <= set(ModifyRequest.model_fields), option.name


def test_every_option_is_taken_away_by_none_and_as_lsf_does_it():
    """
    By its letter and n as bmod has it; what a job must have can't be taken away.
    """
    for option in OPTIONS:
        if option.nothing is None:
            continue
        flag = option.flags[0]
        by_none = modify.make_context("modify", [flag, "none", "12"]).params
        by_letter = modify.make_context("modify", [option.off, "12"]).params

        assert nested(option.nothing) == changes_of(by_none) == changes_of(by_letter), flag
    for words in (["--cwd", "none"], ["--env", "none"]):
        context = modify.make_context("modify", [*words, "12"])
        with pytest.raises(Refused, match="can be changed, not taken away"):
            changes_of(context.params)


def test_a_value_and_its_removal_are_a_contradiction():
    """
    One of both was dropped, and which one depended on the program, not on the order.
    """
    for option in OPTIONS:
        flag = option.flags[0]
        if option.instead or (option.nothing is None and option.metavar):
            continue
        words = [flag, "4"] if option.metavar else [flag]
        for both in ([*words, option.off], [option.off, *words]):
            with pytest.raises(Refused, match=f"can't be given along with {option.off}") as refused:
                changes_of(modify.make_context("modify", [*both, "12"]).params)
            assert flag == refused.value.field
    with pytest.raises(Refused, match="-r: can't be given along with -rn"):
        submit.make_context("submit", ["-rn", "-r", "true"])
    context = modify.make_context("modify", ["-r", "-r", "-n", "none", "-nn", "12"])
    assert {"rerunnable": True, "tasks_min": None} == changes_of(context.params)


def test_flags_are_switched_off_by_n():
    """
    As LSF's -rn: never started anew, whatever the queue says.
    """
    context = modify.make_context("modify", ["-xn", "-rn", "-tin", "12"])
    fields = {"is_exclusive": False, "rerunnable": False, "ends_as_orphan": None}

    assert fields == changes_of(context.params)


def test_an_empty_value_is_refused_by_the_name_of_its_option():
    """
    An unset variable in a script must not pass for nothing having been said.
    """
    for option in OPTIONS:
        if not option.metavar:
            continue
        for command, read, end in (
            (submit, fields_of, ["--", "true"]), (modify, changes_of, ["12"]),
        ):  # fmt: skip
            context = command.make_context("any", [option.flags[0], "", *end])
            with pytest.raises(Refused) as refused:
                read(context.params)
            assert (option.flags[0], "must not be empty") == (
                refused.value.field, refused.value.rule
            )  # fmt: skip


def test_everything_that_a_job_asks_for_is_told():
    """
    A field that is new and forgotten there would ask for something that nobody sees.
    """
    told = [field for one in ASKED for field in one.fields]

    assert leaves(JobSpec) | set(PARTS) == {*told} | set(NOT_ASKED)
    assert set() == set(told) & set(NOT_ASKED)


@pytest.mark.parametrize("command", [submit, modify])
def test_a_refusal_names_the_option_that_gave_the_field(command):
    """
    No field of a job is told by its raw name to whoever typed an option, or didn't.
    """
    words = [
        word for option in OPTIONS if not (option.instead and command is modify)
        for word in (typed(option) if option.name != "name" or command is submit else ["-J", "%2"])
    ]  # fmt: skip
    words += ["12"] if command is modify else []
    for field in leaves(JobSpec):
        flag = option_of(field)
        given = Refused(field, "must be otherwise", 3)
        other = Refused(field, "must be otherwise", 3)
        with command.make_context(command.name, list(words)) as context:
            context.meta[TYPED] = tuple(words)
            tell_as_typed(given)
        with command.make_context(command.name, ["12"]):
            tell_as_typed(other)

        is_typed = flag is not None and flag not in ("-H", "COMMAND")
        assert (flag if is_typed else given.field) == given.field, field
        assert bare_words(field) == other.field or field.startswith("program.argv"), field
        assert "_" not in given.field, field
        assert "_" not in other.field, field


def test_a_part_of_a_list_is_named_by_its_option():
    """
    "hosts.0.preference" is as raw as any.
    """
    for field, words in {
        "hosts.0.preference": ["-m", "h1"], "exits.requeue.0": ["-Q", "3"],
        "array.ranges.0.end": ["-J", "a[1]"], "started_max": ["-J", "a[1]%3"],
        "program.transfers.1.op": ["-f", "a > b"],
    }.items():  # fmt: skip
        refused = Refused(field, "must be otherwise")
        with submit.make_context("submit", [*words, "--", "true"]):
            tell_as_typed(refused)
        assert words[0] == refused.field


def test_no_help_of_submit_and_modify_is_forgotten():
    """
    Each option says what it does.
    """
    for command in (submit, modify):
        for one in command.params:
            if isinstance(one, click.Option) and not one.hidden:
                assert one.help, one.name

"""
Values made without checks are those that checks would have given.
"""

from __future__ import annotations

import ast
import copy
import importlib
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.allocations import Allocation, HostRun
from domain.commands.reports import JobFinishedReport, JobStartedReport
from domain.event import event_classes, sure, sure_of_all
from domain.events.jobs import JobFinished, JobResumed, JobSuspended
from tests.conftest import REPO
from tests.examples import examples
from tests.strategies import instances

CLASSES = (*event_classes().values(), HostRun, Allocation, JobStartedReport, JobFinishedReport)


@settings(max_examples=examples(40))
@given(data=st.data(), cls=st.sampled_from(CLASSES))
def test_a_value_made_without_checks_is_the_checked_one(data, cls):
    """
    Bytes too: they depend on the order of the fields, and what is left out has its default.
    """
    checked = data.draw(instances(cls))
    fields = {name: getattr(checked, name) for name in sorted(checked.model_fields_set)}

    every = {name: getattr(checked, name) for name in cls.model_fields}

    for made in (sure(cls, **fields), sure_of_all(cls, every)):
        assert made == checked
        assert made.model_dump_json(exclude_defaults=True) == checked.model_dump_json(
            exclude_defaults=True
        )
        assert hash(made) == hash(checked)


def test_who_makes_a_value_of_all_its_fields_names_them_in_their_order():
    """
    A field that was left out would be missing for ever, and another order would change the bytes.
    """
    seen = 0
    for folder in ("domain", "projections", "replay", "store", "tools"):
        for file in sorted((REPO / folder).rglob("*.py")):
            text = file.read_text()
            if "sure_of_all(" not in text:
                continue
            module = importlib.import_module(".".join(file.relative_to(REPO).with_suffix("").parts))
            for cls, fields in calls_in(ast.parse(text)):
                assert list(getattr(module, cls).model_fields) == fields, f"{cls} in {file}"
                seen += 1
    assert seen >= 8


def calls_in(tree):
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "sure_of_all":
            cls, fields = call.args
            yield cls.id, [key.value for key in fields.keys]


@settings(max_examples=examples(40))
@given(data=st.data(), cls=st.sampled_from((JobFinished, HostRun)))
def test_a_value_with_other_fields_is_the_checked_one(data, cls):
    """
    The first stays what it was.
    """
    before, after = data.draw(instances(cls)), data.draw(instances(cls))
    shown = before.model_dump_json()
    fields = {name: getattr(after, name) for name in cls.model_fields}

    assert before.but(**fields) == after
    assert before.model_dump_json() == shown


def test_a_value_made_without_checks_is_copied_like_a_checked_one():
    """
    What pydantic keeps beside the fields isn't kept with it, and is asked for by every copy.
    """
    run = sure(HostRun, first=1, tasks=2)
    other = HostRun(first=1, tasks=3)

    assert other == run.model_copy(update={"tasks": 3})
    assert copy.deepcopy(run) == pickle.loads(pickle.dumps(run)) == run
    assert set(HostRun.model_fields) == run.model_fields_set
    assert repr(HostRun(first=1, tasks=2)) == repr(run)


def test_values_of_two_classes_differ():
    """
    Also where they have the same fields.
    """
    assert sure(JobSuspended, attempt=1) == JobSuspended(attempt=1)
    assert sure(JobSuspended, attempt=1) != sure(JobResumed, attempt=1)


def test_a_value_made_without_checks_has_its_fields_only():
    """
    As a checked one: a misspelt name is an error.
    """
    with pytest.raises(AttributeError, match="task_count"):
        _ = sure(HostRun, first=1, tasks=2).task_count


def test_a_value_made_without_checks_is_frozen():
    """
    Only the checks are left out.
    """
    run = sure(HostRun, first=1, tasks=2)

    with pytest.raises(ValueError, match="frozen"):
        run.first = 2

"""
What pydantic finds wrong, in our own words.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from pydantic import ValidationError

from domain.broken_rules import refused_of
from domain.commands import DefineQueue
from domain.queues import QueueSpec


@pytest.mark.parametrize(
    ("body", "field", "rule"),
    [
        ('{"queue":"q","spec":{}}', "priority", "must be given"),
        ('{"queue":"q","spec":{"priority":"x"}}', "priority", "must be a whole number"),
        ('{"queue":"q","spec":{"priority":-1}}', "priority", "must be at least 0"),
        ('{"queue":"q","spec":{"priority":1,"is_open":3}}', "is_open", "must be true or false"),
        ('{"queue":"q","spec":{"priority":1,"limits":{"user_slots":"s"}}}',
         "limits.user_slots", "must be a whole number"),
        ('{"queue":"q","spec":7}', "spec", "must be an object of fields"),
        ('{"queue":7,"spec":{"priority":1}}', "queue", "must be a text"),
        ("[]", "body", "must be an object of fields"),
    ],
)  # fmt: skip
def test_a_broken_rule_is_said_in_our_words(body: str, field: str, rule: str) -> None:
    """
    People who define a queue know neither pydantic nor what the body is made of.
    """
    with pytest.raises(ValidationError) as caught:
        DefineQueue.model_validate_json(body)

    refused = refused_of(caught.value, DefineQueue, inside="spec")
    assert (field, rule) == (refused.field, refused.rule)


@pytest.mark.parametrize(
    ("spec", "field", "known"),
    [
        ('"bad":1', "bad", QueueSpec.model_fields),
        ('"limits":{"bad":1}', "limits.bad", ["user_slots"]),
    ],
)
def test_an_unknown_field_is_answered_with_those_that_are_known(
    spec: str, field: str, known: Iterable[str]
) -> None:
    """
    Whoever mistypes a field wants to know how it is called.
    """
    with pytest.raises(ValidationError) as caught:
        DefineQueue.model_validate_json(f'{{"queue":"q","spec":{{"priority":1,{spec}}}}}')

    refused = refused_of(caught.value, DefineQueue, inside="spec")
    assert field == refused.field
    named = refused.rule.removeprefix("must be a known field, one of ").split(", ")
    assert set(known) <= set(named)


def test_a_body_that_is_no_json_is_told_with_its_place() -> None:
    """
    The body itself isn't repeated.
    """
    with pytest.raises(ValidationError) as caught:
        DefineQueue.model_validate_json(b"{")

    refused = refused_of(caught.value, DefineQueue)
    assert ("body", None) == (refused.field, refused.value)
    assert refused.rule.startswith("must be JSON: EOF")

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


def test_a_number_that_is_too_long_to_be_read_names_its_field() -> None:
    """
    It is refused before there are any fields, and told as a place in the body.
    """
    body = f'{{"queue": "q", "spec": {{"priority" : {"9" * 4301}, "nice": 3}}}}'
    for raw in (body, body.encode()):
        with pytest.raises(ValidationError) as caught:
            DefineQueue.model_validate_json(raw)

        refused = refused_of(caught.value, DefineQueue)
        assert ("priority", "must have at most 4300 digits", None) == (
            refused.field, refused.rule, refused.value
        )  # fmt: skip
    with pytest.raises(ValidationError) as caught:
        DefineQueue.model_validate_json("9" * 4301)
    assert "body" == refused_of(caught.value, DefineQueue).field


def test_a_body_that_is_no_json_is_told_with_its_place() -> None:
    """
    The body itself isn't repeated.
    """
    with pytest.raises(ValidationError) as caught:
        DefineQueue.model_validate_json(b"{")

    refused = refused_of(caught.value, DefineQueue)
    assert ("body", None) == (refused.field, refused.value)
    assert refused.rule.startswith("must be JSON: EOF")

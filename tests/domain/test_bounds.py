"""
No text of a command is without bounds: by introspection over every field of every command.
"""

from __future__ import annotations

import json
import re
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from pydantic import BaseModel, ValidationError

import domain.commands
from domain.broken_rules import refused_of
from domain.commands import ConfigureWorker

PARSED = ("domain.resreq.syntax", "domain.dependency.syntax")
"""Worked out from a text that has bounds itself."""

_ENDLESS = re.compile(r"(?<!\\)[*+](?![^\[]*\])|\{\d+,\}")


def _is_bounded(metadata: Any) -> bool:
    for one in metadata:
        pattern = getattr(one, "pattern", None)
        if getattr(one, "max_length", None) is not None or _is_bounded(
            getattr(one, "metadata", ())
        ):
            return True
        if pattern is not None and not _ENDLESS.search(getattr(pattern, "pattern", pattern)):
            return True
    return False


def _unbounded(annotation: Any, metadata: list[Any], path: str) -> Any:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _unbounded(inner[0], [*metadata, *inner[1:]], path)
    elif origin in (Union, UnionType):
        for one in inner:
            yield from _unbounded(one, metadata, path)
    elif origin in (tuple, list, dict):
        for one in inner:
            yield from _unbounded(one, [], path)
    elif annotation is str and not _is_bounded(metadata):
        yield path
    elif _is_looked_into(annotation, path):
        for name, field in annotation.model_fields.items():
            at = f"{path}<{annotation.__name__}>.{name}"
            yield from _unbounded(field.annotation, list(field.metadata), at)


def _is_looked_into(annotation: Any, path: str) -> bool:
    """
    Say whether it is a model; one that holds itself (shares within shares) is looked at once.
    """
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    is_new = is_model and f"<{annotation.__name__}>" not in path
    return is_new and annotation.__module__ not in PARSED


@pytest.mark.parametrize("name", domain.commands.__all__)
def test_every_text_of_a_command_has_a_greatest_length(name):
    """
    One command must not be able to fill the log, or every list that shows what it said.
    """
    assert [] == list(_unbounded(getattr(domain.commands, name), [], ""))


def test_the_walk_finds_a_text_without_bounds():
    """
    The test of the test: within a list, within another model, within a choice.
    """

    class Inner(BaseModel):
        text: str

    class Outer(BaseModel):
        many: tuple[Inner | None, ...]
        short: Annotated[str, "no bound"] = ""

    assert ["<Outer>.many<Inner>.text", "<Outer>.short"] == list(_unbounded(Outer, [], ""))


def test_a_description_that_is_too_long_is_refused_by_field_and_rule():
    """
    In the words of the other bounds.
    """
    body = json.dumps({"worker": "h1", "settings": {"description": "x" * 513}})
    with pytest.raises(ValidationError) as caught:
        ConfigureWorker.model_validate_json(body)

    refused = refused_of(caught.value, ConfigureWorker, inside="settings")
    assert ("description", "must have at most 512 characters") == (refused.field, refused.rule)

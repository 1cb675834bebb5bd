"""
Run vectors of the kind ``control``: commands about jobs, their states, arrays and dependencies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tools.conformance import array_names, dependencies
from tools.conformance.features import refuse_left_out
from tools.conformance.values import Vector, cases_of

Run = Callable[[Vector], list[str]]

TOPICS: Final[dict[str, Run]] = {"dependency": dependencies.differences}
"""Vectors whose topic has a runner of its own."""


def differences(vector: Vector) -> list[str]:
    """
    Return what differs from what a vector expects.
    """
    refuse_left_out(vector)
    if any("w" in case for _, case in cases_of(vector.fields)):
        return dependencies.differences(vector)
    if all("J" in case for _, case in cases_of(vector.fields)):
        return array_names.differences(vector)
    run = TOPICS.get(vector.topic)
    return ["vectors of this kind aren't run yet"] if run is None else run(vector)

"""
Run vectors of the kind ``control``.
"""

from __future__ import annotations

from tools.conformance.features import refuse_left_out
from tools.conformance.values import Vector


def differences(vector: Vector) -> list[str]:
    """
    Return what differs from what a vector expects.
    """
    refuse_left_out(vector)
    return ["vectors of this kind aren't run yet"]

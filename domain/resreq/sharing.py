"""
Let equal requirements be one object: a hundred thousand waiting jobs have a few hundred distinct
ones.
"""

from __future__ import annotations

from typing import Final

from domain.resreq.syntax import Requirement

SHARED_MAX: Final = 16_384
"""So many are remembered; then all are forgotten, which costs memory but changes nothing."""

_shared: dict[Requirement, Requirement] = {}


def shared(requirement: Requirement) -> Requirement:
    """
    Return the one object for all requirements equal to this one.

    A requirement read back from an event takes some 7 KB by itself; whoever keeps one for each job
    keeps this one.
    """
    known = _shared.get(requirement)
    if known is not None:
        return known
    if len(_shared) >= SHARED_MAX:
        _shared.clear()
    _shared[requirement] = requirement
    return requirement

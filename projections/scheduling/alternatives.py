"""
Alternatives of a requirement that open only some time after submission.
"""

from __future__ import annotations

from domain.resreq.syntax import Requirement


def open_branches_of(requirement: Requirement | None, waited_us: int) -> int:
    """
    Return how many alternatives are open so long after submission.
    """
    if requirement is None:
        return 1
    return sum(compound.delay_us <= waited_us for compound in requirement.compounds)


def delays_of(requirement: Requirement | None) -> tuple[int, ...]:
    """
    Return the moments after submission at which hidden alternatives open, rising.
    """
    if requirement is None:
        return ()
    return tuple(
        dict.fromkeys(compound.delay_us for compound in requirement.compounds if compound.delay_us)
    )

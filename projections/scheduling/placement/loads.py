"""
Keep tasks away from hosts whose load is beyond a threshold of theirs, or of the job's queue.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from domain.reasons import ReasonCode
from projections.scheduling.capacity import Column, Mask
from projections.scheduling.load_bounds import NO_BOUND, LoadBound
from projections.scheduling.placement.checks import Check
from projections.scheduling.placement.ground import Ground


def unknown_load(bound: LoadBound, ground: Ground) -> Mask:
    """
    Return the hosts that don't report an index which is bounded there.
    """
    unreported = ground.capacity.selector.unreported(bound.index, ground)
    if bound.milli is not None:
        return unreported
    own = ground.capacity.load_bounds.of(bound, ground.capacity.hosts)
    unknown: Mask = unreported & (own != NO_BOUND)
    return unknown


def checks_of_hosts(bounds: tuple[LoadBound, ...], ground: Ground) -> Iterator[Check]:
    """
    Yield a check for each index and bound that hosts have.
    """
    for bound in bounds:
        own = ground.capacity.load_bounds.of(bound, ground.capacity.hosts)
        for milli in np.unique(own[own != NO_BOUND]).tolist():
            yield _check(bound, milli, ground, own == milli)


def checks_of_queue(bounds: tuple[LoadBound, ...], ground: Ground) -> Iterator[Check]:
    """
    Yield a check for each index that the queue bounds; a host that is beyond its own bound has told
    so already.
    """
    for bound in bounds:
        if bound.milli is None:
            continue
        own = ground.capacity.load_bounds.of(bound, ground.capacity.hosts)
        told = (own != NO_BOUND) & ~_within(bound, own, ground)
        yield _check(bound, bound.milli, ground, ~told)


def _within(bound: LoadBound, milli: int | Column, ground: Ground) -> Mask:
    """
    Return the hosts whose load isn't beyond a bound; what isn't reported is told elsewhere. An
    empty cluster has no load, but what a host counts of memory is known.
    """
    amounts = ground.capacity.selector.amounts(bound.index, ground)
    within: Mask = (amounts <= milli) if bound.is_ceiling else (amounts >= milli)
    if ground.is_empty:
        return within | ~ground.present(bound.index) | bound.is_ceiling
    return within | (amounts < 0)


def _check(bound: LoadBound, milli: int, ground: Ground, where: Mask) -> Check:
    """
    Check one bound on some hosts; it lets all others through.
    """
    good = _within(bound, milli, ground) | ~where
    amounts = ground.capacity.selector.amounts(bound.index, ground)
    return Check(
        ReasonCode.HOST_LOAD,
        bound.index,
        np.maximum(amounts, 0),
        lambda tasks: milli,
        lambda most: np.where(good, most, 0),
    )

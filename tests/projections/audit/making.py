"""
Make read models in tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from domain.envelope import Envelope
from projections.audit.compare import Difference, differences
from projections.audit.projection import AuditProjection
from projections.audit.read_model import ReadModel
from projections.audit.reading import Reading


def made(path: Path, envelopes: Sequence[Envelope], batch_events: int = 10_000) -> Reading:
    """
    Return the read model of envelopes, made in one go, opened for reading.
    """
    with_model = ReadModel.create(path, log_id="test")
    AuditProjection(with_model).catch_up(envelopes, batch_events=batch_events)
    with_model.close()
    return Reading(path)


def made_in_pieces(path: Path, envelopes: Sequence[Envelope], cuts: Sequence[int]) -> Reading:
    """
    Return the same, but opened anew after each cut, as after a kill.
    """
    ReadModel.create(path, log_id="test").close()
    bounds = [0, *sorted({cut for cut in cuts if cut < len(envelopes)}), len(envelopes)]
    for begin, end in pairwise(bounds):
        model = ReadModel.open(path, log_id="test")
        AuditProjection(model).take(list(envelopes[begin:end]))
        model.close()
    return Reading(path)


def compared(first: Reading, second: Reading) -> list[Difference]:
    """
    Return how two read models differ; both are closed.
    """
    with first, second:
        return list(differences(first, second))

"""
The projection: envelopes, in batches, into the read model, exactly once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from domain.envelope import Envelope
from domain.errors import InvariantBroken
from projections.audit.fold import Fold
from projections.audit.read_model import ReadModel

# A job that is submitted, runs and ends within a batch is written once; larger ones gain little
# more.
BATCH_EVENTS = 20_000


class AuditProjection:
    """
    Fold batches of a log into a read model.

    Args:
        model: Where the rows go; nobody else writes to it meanwhile.
    """

    def __init__(self, model: ReadModel) -> None:
        self.model = model
        self.position = model.position()
        self._fold = Fold(model)

    def take(self, envelopes: list[Envelope], digest: str = "") -> None:
        """
        Take the next envelopes of the log: all of them are in the tables afterwards, or none is.

        After an error the projection must be made anew: what it remembers may be ahead of the
        tables.

        Raises:
            InvariantBroken: They don't follow what was taken before.
            Conflict: Another process was here first.
            StoreUnavailable: There is no room.
        """
        if not envelopes:
            return
        if envelopes[0].position <= self.position:
            raise InvariantBroken(
                "events are taken once", f"{envelopes[0].position} after {self.position}"
            )
        self._fold.take_all(envelopes)
        self.model.write(self._fold.drain(), envelopes[-1].position, digest)
        self.position = envelopes[-1].position

    def catch_up(
        self,
        envelopes: Iterable[Envelope],
        *,
        digest_at: Callable[[int], str] | None = None,
        progress: Callable[[int], None] | None = None,
        batch_events: int = BATCH_EVENTS,
    ) -> int:
        """
        Take envelopes until there are no more, a batch at a time; return how many.

        Args:
            envelopes: In order, beginning after our position.
            digest_at: Digest of the log's history up to a position.
            progress: Called with the position after each batch.
            batch_events: Events a transaction.
        """
        count = 0
        source = iter(envelopes)
        while batch := list(islice(source, batch_events)):
            last = batch[-1].position
            self.take(batch, digest_at(last) if digest_at is not None else "")
            count += len(batch)
            if progress is not None:
                progress(last)
        return count

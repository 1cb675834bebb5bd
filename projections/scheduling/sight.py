"""
What pickers may ask of time: the session's moment, and what is foreseen from it.
"""

from __future__ import annotations

from typing import Protocol

from projections.scheduling.foreseen import Forecast, SlotsAhead
from projections.scheduling.lookups import Lookups
from projections.scheduling.pickers.protocol import JobPicker
from projections.scheduling.records import JobRecord, StoredState


class Foresight(Protocol):
    """
    Be what foresees starts; it needs the runner, which the state doesn't know.
    """

    def of(self, job: JobRecord) -> Forecast | None:
        """
        Return when a pending job could start.
        """
        ...

    def slots_ahead(self, job: JobRecord) -> SlotsAhead | None:
        """
        Return the free slots by time.
        """
        ...


class Sight(Lookups):
    """
    Look ahead.

    Args:
        stored: What snapshots hold.
        picker: Learns of every job that becomes ready.
    """

    def __init__(self, stored: StoredState, picker: JobPicker) -> None:
        super().__init__(stored, picker)
        self.session_us = stored.time_us
        self.foresight: Foresight | None = None

    def now_us(self) -> int:
        """
        Return the session's time.
        """
        return self.session_us

    def runs_changed(self) -> int:
        """
        Return a count that rises whenever a job begins or stops to run, or its planned end moves.
        """
        return self.runs_moved

    def forecast(self, job: JobRecord) -> Forecast | None:
        """
        Return when a pending job could start at the latest, None when that isn't foreseen.
        """
        return None if self.foresight is None else self.foresight.of(job)

    def slots_ahead(self, job: JobRecord) -> SlotsAhead | None:
        """
        Return the free slots by time where they alone decide when a pending job can start.
        """
        return None if self.foresight is None else self.foresight.slots_ahead(job)

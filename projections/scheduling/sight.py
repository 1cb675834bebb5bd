"""
What pickers may ask of time: the session's moment, and what is foreseen from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from domain.errors import InvariantBroken
from domain.reservations import KeptRun
from projections.scheduling.capacity import Capacity
from projections.scheduling.foreseen import Forecast, SlotsAhead, Wanted
from projections.scheduling.limits import Limits
from projections.scheduling.lookups import Lookups
from projections.scheduling.pickers.protocol import JobPicker, Remembering
from projections.scheduling.records import Document, JobRecord, StoredState
from projections.scheduling.watches import order_of


class Foresight(Protocol):
    """
    Be what foresees starts; it needs the runner, which the state doesn't know.
    """

    def of(self, job: JobRecord, beside: tuple[KeptRun, ...] = ()) -> Forecast | None:
        """
        Return when a pending job could start.
        """
        ...

    def slots_ahead(self, job: JobRecord) -> SlotsAhead | None:
        """
        Return the free slots by time.
        """
        ...

    def kept_for(self, wanted: Wanted) -> tuple[KeptRun, ...] | None:
        """
        Return what of wanted hosts must stay free.
        """
        ...


class Sight(Lookups):
    """
    Look ahead.

    Args:
        stored: What snapshots hold.
        picker: Learns of every job that becomes ready.
    """

    capacity: Capacity
    limits: Limits

    def __init__(self, stored: StoredState, picker: JobPicker) -> None:
        super().__init__(stored, picker)
        self.session_us = stored.time_us
        self.foresight: Foresight | None = None
        self.is_applying = False
        self.rememberer = picker if isinstance(picker, Remembering) else None

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

    def forecast(self, job: JobRecord, beside: tuple[KeptRun, ...] = ()) -> Forecast | None:
        """
        Return when a pending job could start at the latest, None when that isn't foreseen.
        """
        return None if self.foresight is None else self.foresight.of(job, beside)

    def slots_ahead(self, job: JobRecord) -> SlotsAhead | None:
        """
        Return the free slots by time where they alone decide when a pending job can start.
        """
        return None if self.foresight is None else self.foresight.slots_ahead(job)

    def kept_for(self, wanted: Wanted) -> tuple[KeptRun, ...] | None:
        """
        Return what of hosts that are wanted at some moments must stay free until then, None when
        they can't all be had.
        """
        return None if self.foresight is None else self.foresight.kept_for(wanted)

    # -- who uses what

    def hosts_changed(self) -> int:
        """
        Return a count that rises with every change of which hosts there are or take jobs.
        """
        return self.capacity.status

    def groups_of(self, user: str) -> Collection[str]:
        """
        Return the names of the groups that a user is in.
        """
        return self.limits.rules.membership.groups_of(user)

    def live_jobs(self) -> Iterable[JobRecord]:
        """
        Return the jobs that have hosts.
        """
        return self.live.values()

    def promised_jobs(self) -> Iterable[JobRecord]:
        """
        Return the pending jobs with a backfill reservation.
        """
        return sorted(self.promised.values(), key=order_of)

    # -- what pickers keep

    def recall(self, name: str) -> str | None:
        """
        Return the document of a name, None when there is none.
        """
        kept = self.stored.documents.get(name)
        return None if kept is None else kept.text

    def remember(self, name: str, version: int, text: str) -> None:
        """
        Keep a document; only while an event is applied.

        Raises:
            InvariantBroken: A session is being held: what it doesn't decide changes nothing.
        """
        if not self.is_applying:
            raise InvariantBroken("documents change while events are applied", name)
        self.stored.documents[name] = Document(version, text)

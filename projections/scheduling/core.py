"""
The scheduling core: commands in, events out; events in, state on; a moment in, decisions out.
"""

from __future__ import annotations

from typing import Any, Final

from domain.envelope import Stamped, stamp
from domain.errors import InvariantBroken
from domain.event import Event
from domain.events.queues import QueueDefined, QueueRemoved
from domain.events.scheduler import ClusterDefined
from projections.scheduling.apply import APPLY
from projections.scheduling.forecast import Forecasts
from projections.scheduling.handle import HANDLE
from projections.scheduling.handle.answers import NewEvents
from projections.scheduling.pickers.lists import picker_of, picking_of
from projections.scheduling.placement.runner import PlacementRunner
from projections.scheduling.plugins import Plugins
from projections.scheduling.records import StoredState
from projections.scheduling.session import Session
from projections.scheduling.snapshot import SCHEMA, dump_state, load_state
from projections.scheduling.state import State
from projections.scheduling.trace_session import Tracing
from projections.scheduling.wakeups import next_wakeup_us

__all__ = ["SCHEMA", "Core"]

SAY_WHO_PICKS: Final = frozenset({ClusterDefined, QueueDefined, QueueRemoved})


class Core:
    """
    Fold events into a state and decide from it. Passive: it does nothing until it is called, and
    reads no clock.

    Args:
        plugins: Pickers and allocators by name.
        stored: A state to go on from; empty when None.
        plain: Decide literally by the specification, slowly: for tests that compare.

    ``is_cut_short`` says that the last session must go on: it stopped at its most decisions, or its
    last ones let jobs start that had had their turn.
    ``tracing`` writes down how sessions decide, None for not at all; it changes no decision.
    """

    def __init__(
        self,
        plugins: Plugins | None = None,
        stored: StoredState | None = None,
        *,
        plain: bool = False,
    ) -> None:
        self.plugins = plugins or Plugins()
        self._plain = plain
        self.is_cut_short = False
        self.tracing: Tracing | None = None
        self._adopt(stored or StoredState())

    def _adopt(self, stored: StoredState) -> None:
        """
        Take over a stored state and rebuild every index.
        """
        self._picking = picking_of(stored, otherwise=next(iter(self.plugins.pickers)))
        picker = picker_of(self._picking, self.plugins.pickers)
        self.state = State(stored, picker, is_plain=self._plain)
        self._runner = PlacementRunner(
            self.state.capacity, self.plugins.allocators, plain=self._plain
        )
        self.state.foresight = Forecasts(self.state, self._runner)
        self._session = Session(self.state, self._runner, self._record)

    # -- commands and events

    def handle(self, command: Any, *, actor: str, now_us: int) -> NewEvents:
        """
        Check a command or report against the state; nothing is changed.

        Args:
            command: One of ``domain.commands``.
            actor: The user on whose behalf, "" for the scheduler itself.
            now_us: The driver's stamp, not before the last one.

        Returns:
            (stream, event) in order; empty when everything is so already.

        Raises:
            Refused: The command can't be honoured; field and rule are named.
            Conflict: Somebody else was first.
        """
        return HANDLE[type(command)](self.state, command, actor)

    def apply(self, stamped: Stamped) -> None:
        """
        Fold one event into the state.

        Raises:
            InvariantBroken: Its version or time doesn't follow what was applied before.
        """
        stored = self.state.stored
        version = stored.versions.get(stamped.stream, 0) + 1
        if stamped.version != version or stamped.time_us < stored.time_us:
            rule = f"version {version} at or after {stored.time_us} follows in {stamped.stream}"
            raise InvariantBroken(rule, f"got version {stamped.version} at {stamped.time_us}")
        self._fold(stamped)

    def take(self, found: NewEvents, *, actor: str, cause: str, now_us: int) -> list[Stamped]:
        """
        Stamp the events that a command gave, and fold them as one step.

        Args:
            found: What ``handle`` returned, not empty.
            actor: On whose behalf.
            cause: Id of the command, "" when there is none.
            now_us: The driver's stamp, not before the last one.
        """
        stored = self.state.stored
        if now_us < stored.time_us:
            raise _falls(now_us, stored.time_us)
        made: list[Stamped] = []
        left = len(found)
        for stream, event in found:
            left -= 1
            version = stored.versions.get(stream, 0) + 1
            stamped = stamp(Stamped, (stream, version, now_us, actor, cause, event, not left))
            self._fold(stamped)
            made.append(stamped)
        return made

    # hot: every decision comes through here.
    def _record(self, stream: str, event: Event, now_us: int, *, actor: str, cause: str) -> Stamped:
        """
        Stamp a decision, and fold it.
        """
        version = self.state.stored.versions.get(stream, 0) + 1
        stamped = stamp(Stamped, (stream, version, now_us, actor, cause, event, False))
        self._fold(stamped)
        return stamped

    # hot: every event comes through here.
    def _fold(self, stamped: Stamped) -> None:
        stream, version, time_us, _, _, event, _ = stamped
        state, kind = self.state, type(event)
        APPLY[kind](state, stamped, event)
        stored = state.stored
        # Forgetting its jobs drops their versions; the stream of the event itself always stays.
        stored.versions[stream] = version
        stored.time_us = time_us
        stored.events += 1
        if kind in SAY_WHO_PICKS:
            self._note_who_picks(is_removal=kind is QueueRemoved)

    def _note_who_picks(self, *, is_removal: bool) -> None:
        """
        Build every index anew when other pickers pick, or from other queues, than before; also when
        a queue was removed: none may know it any more, since a queue may get its name again.
        """
        stored = self.state.stored
        if is_removal or picking_of(stored, otherwise=self._picking.cluster) != self._picking:
            self._adopt(stored)

    # -- sessions

    def session(self, now_us: int) -> list[Stamped]:
        """
        Hold a session: decide, and apply each decision as it is made.

        Args:
            now_us: The driver's stamp, not before the last one.

        Returns:
            The session event followed by its decisions, one step; empty when nothing was decided,
            and then nothing has changed.
        """
        stored = self.state.stored
        if stored.cluster is None:
            return []
        if now_us < stored.time_us:
            raise _falls(now_us, stored.time_us)
        tracing = None if self.tracing is None else self.tracing.begin(self.state, now_us)
        session = self._session
        is_complete = session.hold(now_us, tracing)
        self.is_cut_short = not (is_complete and session.is_settled)
        if tracing is not None:
            tracing.finish(is_complete=is_complete)
        made = session.take_made()
        if made:
            made[-1] = stamp(Stamped, (*made[-1][:-1], True))
        return made

    def next_wakeup(self, now_us: int) -> int | None:
        """
        Return the next moment after ``now_us`` at which a session may decide something without a
        new event.

        A session that was cut short (``is_cut_short``) goes on at the same stamp, after the
        commands that wait.
        """
        return next_wakeup_us(self.state, now_us)

    # -- snapshots

    def snapshot(self) -> bytes:
        """
        Return the whole stored state as canonical JSON.
        """
        return dump_state(self.state.stored)

    @classmethod
    def restore(cls, data: bytes, plugins: Plugins | None = None, *, plain: bool = False) -> Core:
        """
        Return a core that goes on from a snapshot.
        """
        return cls(plugins, load_state(data), plain=plain)


def _falls(now_us: int, before_us: int) -> InvariantBroken:
    return InvariantBroken("stamps never fall", f"{now_us} after {before_us}")

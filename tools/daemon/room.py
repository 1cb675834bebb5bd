"""
What is refused while the log's disk or its map is nearly full: what can wait.

The ends of running jobs can't wait, and neither can what ends them: the room that is left belongs
to them. Measured anew for every batch, so service comes back by itself.
"""

from __future__ import annotations

from collections.abc import Callable

from domain.errors import StoreUnavailable
from replay.engine import Engine
from store.space import Room, Space, room_of
from tools.daemon.attempted import Attempted
from tools.daemon.journal import Journal
from tools.daemon.requests import Command, Refusal, Request, Submission

ENDING = ("KillJob", "CloseWorker", "DrainWorker", "SetQueue")
"""Commands that are taken as long as anything is: they end work, or keep new work away."""
HINT = "Running jobs go on and can be killed; everything is accepted again once there is room."


class RoomKeeper:
    """
    Refuse what can wait while there is little room.

    Args:
        space: Measures the room, None when the log knows of none.
        path: The log's directory, for the answers.
        journal: Where to note that service changes.
    """

    def __init__(self, space: Callable[[], Space | None], path: str, journal: Journal) -> None:
        self._measure = space
        self._path = path
        self._journal = journal
        self._space: Space | None = None
        self.room = Room.PLENTY

    def look(self) -> None:
        """
        Measure; where that isn't possible, the next commit tells.
        """
        try:
            self._space = self._measure()
        except StoreUnavailable:
            self._space = None
        room = Room.PLENTY if self._space is None else self._space.room
        if self._space is not None and room != self.room:
            note = self._journal.info if room is Room.PLENTY else self._journal.error
            note("room in the log", room=room.name, space=self._space.text())
        self.room = room

    def check(self, request: Request, engine: Engine) -> None:
        """
        Let a request through that may be taken in now.

        Raises:
            StoreUnavailable: It can wait until there is room.
        """
        if self.room is Room.PLENTY or not isinstance(request, Command):
            return
        if self.room is Room.LOW and not isinstance(request, Submission):
            return
        if _changes_nothing(request, engine) or _name(request) in ENDING:
            return
        raise self._refusal()

    def _refusal(self) -> StoreUnavailable:
        space = self._space
        assert space is not None
        disk = room_of(space.disk_free, space.disk_size)
        short = "disk" if disk is space.room else "map"
        return StoreUnavailable(f"{short} nearly full", self._path, space.text(), HINT)


def _changes_nothing(request: Command, engine: Engine) -> bool:
    """
    Tell whether a request is answered without taking anything in: a known key, a refusal.
    """
    key = getattr(request.command, "key", "")
    return isinstance(request, Refusal) or bool(key and key in engine.core.state.stored.keys)


def _name(request: Command) -> str:
    command = request.command
    return command.what if isinstance(command, Attempted) else type(command).__name__


def room_view(space: Space | None) -> dict[str, object] | None:
    """
    Return how much room the log has left on its disk and in its map, None where none is known.

    ``level`` says what is still taken: everything (plenty), no submissions (low), or only what ends
    work, with nothing started either (critical).
    """
    if space is None:
        return None
    return {
        "level": space.room.name.lower(),
        "disk_free_bytes": space.disk_free,
        "disk_bytes": space.disk_size,
        "map_free_bytes": space.map_free,
        "map_bytes": space.map_size,
    }

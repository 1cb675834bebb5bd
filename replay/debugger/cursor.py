"""
Where the debugger stands: a position, the state right after its event, and how to get elsewhere.

Unlike everything that decides, the debugger also looks inside steps: the state after each event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol, final

from domain.envelope import Envelope
from domain.errors import Refused
from domain.events.session import SessionHeld
from projections.scheduling.core import Core
from projections.scheduling.plugins import Plugins
from replay.at import Ladder
from replay.engine import apply_all
from replay.moments import SearchableLog

RECENT_KEPT: Final = 8
# Going back lands on a state remembered so many events earlier, so that going back again is quick.
RECENT_EVENTS: Final = 500

Test = Callable[[Envelope], bool]


class DebuggedLog(SearchableLog, Protocol):
    """
    Be a log that can be debugged.
    """

    log_id: str


def is_decision(envelope: Envelope) -> bool:
    """
    Say whether an event was decided in a session; the session event itself is none.
    """
    return envelope.cause.startswith("session ") and not isinstance(envelope.event, SessionHeld)


def ends_session(envelope: Envelope) -> bool:
    """
    Say whether an event is the last of a session's step.
    """
    return envelope.cause.startswith("session ") and envelope.ends_step


@final
class Cursor:
    """
    Stand at a position of a log.

    Args:
        log: The log; it may grow meanwhile, what is there at the beginning is what is seen.
        ladder: Gives states.
        plugins: Pickers and allocators; the built-in ones when None.

    ``first`` is the earliest position to stand at: 0, or where a recorded window begins. ``last``
    is the event at the position, None at the first. ``on_event`` is told of each event on the way
    forwards, before it is applied.
    """

    def __init__(self, log: DebuggedLog, ladder: Ladder, plugins: Plugins | None = None) -> None:
        self.log = log
        self.plugins = plugins
        self.on_event: Callable[[Envelope], None] | None = None
        self.head = log.head()
        self._ladder = ladder
        self._recent: dict[int, bytes] = {}
        self.first = ladder.first_position - 1
        self.position = self.first
        self.core = ladder.at(self.first).core
        self.last: Envelope | None = None

    # -- forwards

    def forward(self) -> Iterator[Envelope]:
        """
        Apply one event after the other; yield each when the state is right after it.
        """
        for envelope in self.log.read(self.position, self.head):
            if self.on_event is not None:
                self.on_event(envelope)
            apply_all(self.core, (envelope,))
            self.position, self.last = envelope.position, envelope
            yield envelope

    def ahead(self, count: int) -> list[Envelope]:
        """
        Return the next events without going there.
        """
        return list(self.log.read(self.position, min(self.head, self.position + count)))

    # -- anywhere

    def goto(self, position: int) -> None:
        """
        Stand right after the event at a position.
        """
        if position < self.first:
            rule = f"must not be before position {self.first}, with which the recording begins"
            raise Refused("position", rule, position)
        core, begin = self._near(position)
        apply_all(core, self.log.read(begin, position))
        self.core, self.position = core, position
        is_first = position == self.first
        self.last = None if is_first else next(iter(self.log.read(position - 1, position)), None)

    def _near(self, position: int) -> tuple[Core, int]:
        """
        Return a state not after a position: one remembered, or one from the ladder.
        """
        wanted = [one for one in self._recent if one <= position <= one + 4 * RECENT_EVENTS]
        if wanted:
            begin = max(wanted)
            return Core.restore(self._recent[begin], self.plugins), begin
        if position >= self.position and position - self.position < RECENT_EVENTS:
            return self.core, self.position
        found = self._ladder.at(max(self.first, position - RECENT_EVENTS))
        if found.position > self.first:
            self._recent[found.position] = found.core.snapshot()
            while len(self._recent) > RECENT_KEPT:
                del self._recent[next(iter(self._recent))]
        return found.core, found.position

    def state_at(self, position: int) -> Core:
        """
        Return the state right after an event elsewhere, without going there.
        """
        found = self._ladder.at(position)
        apply_all(found.core, self.log.read(found.position, position))
        return found.core

    # -- backwards

    def before(self, count: int, test: Test) -> int:
        """
        Return the position of the count-th event backwards for which a test holds; the first one
        when there are fewer.
        """
        end, span = self.position - 1, 256
        while end > self.first:
            begin = max(self.first, end - span)
            hits = [one.position for one in self.log.read(begin, end) if test(one)]
            if len(hits) >= count:
                return hits[-count]
            count -= len(hits)
            end, span = begin, span * 2
        return self.first

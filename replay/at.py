"""
The state at any moment of a log, quickly: from the nearest snapshot below it and the events since.

Besides the snapshots that the scheduler keeps there is a *ladder*: one about every 5,000 events,
made the first time that somebody passes there. It is a cache beside the log; whoever removes it
loses nothing but time. A state exists only between steps, so a position inside a step means the
boundary before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, final

from domain.envelope import Envelope
from domain.errors import StoreUnavailable
from projections.scheduling.core import SCHEMA, Core
from projections.scheduling.plugins import Plugins
from replay.engine import apply_all
from store.log import EventLog
from store.recordings import Recording
from store.snapshots import Snapshot, SnapshotStore, entries_of, schema_key

LADDER_EVENTS: Final = 5_000
"""
The specification names 50,000; folding so many takes 0.9 s, where a question that takes a second in
all has 0.1 s left for it.
"""
LADDER: Final = "ladder"
PROGRESS_EVENTS: Final = 5_000


@final
@dataclass(slots=True)
class Moment:
    """
    Hold the state between two steps.

    Args:
        core: Folded up to and with ``position``; the caller may go on with it.
        position: The boundary.
        asked: The position that was asked for; greater when it lies inside a step.
    """

    core: Core
    position: int
    asked: int

    @property
    def time_us(self) -> int:
        """
        Return the stamp of the last event of the state.
        """
        return self.core.state.stored.time_us


class KeptStates(Protocol):
    """
    Be where whole states are.
    """

    def newest_good(
        self,
        *,
        schema: str,
        head: int,
        digest_at: Callable[[int], bytes],
        upto: int | None = None,
    ) -> Snapshot | None:
        """
        Return the newest sound state of a schema at or before a position.
        """
        ...


class HistoryLog(Protocol):
    """
    Be a log or a recording, as far as states need it.
    """

    def head(self) -> int:
        """
        Return the last position.
        """
        ...

    def read(self, after: int = 0, upto: int | None = None) -> Iterator[Envelope]:
        """
        Yield envelopes after a position.
        """
        ...

    def digest_at(self, position: int) -> bytes:
        """
        Return the digest of the history up to a position.
        """
        ...


class Ladder:
    """
    Give the state at positions of one log.

    Args:
        log: Where the events are.
        kept: Where snapshots may be that somebody else keeps.
        rungs: Where the ladder is, None to keep none.
        plugins: Pickers and allocators; the built-in ones when None.
        every: How many events there are between two rungs.
        on_progress: Called with a position now and then while events are folded.

    ``first_position`` is that of the first event that can be read.
    """

    def __init__(
        self,
        log: HistoryLog,
        *,
        kept: Iterable[KeptStates] = (),
        rungs: SnapshotStore | None = None,
        plugins: Plugins | None = None,
        every: int = LADDER_EVENTS,
        on_progress: Callable[[int], None] | None = None,
    ) -> None:
        self._log = log
        self._kept = tuple(kept)
        self._rungs = rungs
        self._plugins = plugins
        self._every = every
        self._on_progress = on_progress
        self.first_position = log.first_position if isinstance(log, Recording) else 1

    def at(self, position: int) -> Moment:
        """
        Return the state at the last boundary that isn't after a position.

        Raises:
            Corrupt: The log doesn't check.
        """
        core, start = self._nearest(position)
        moment = Moment(core, start, position)
        self.advance(moment, position)
        return moment

    def start(self, position: int) -> tuple[Core, int]:
        """
        Return core and boundary of `at`, for whoever goes on by itself.
        """
        found = self.at(position)
        return found.core, found.position

    def kept_at(self, position: int) -> bytes | None:
        """
        Return the state that is kept for exactly a position, None when none is.
        """
        for place in (*self._kept, self._rungs):
            found = self._newest_in(place, position)
            if found is not None and found.position == position:
                return found.state
        return None

    def advance(self, moment: Moment, position: int) -> None:
        """
        Go on to a later position, leaving rungs on the way.
        """
        moment.asked = position
        rung = self._next_rung(moment.position)
        said = moment.position
        for step in whole_steps(self._log.read(moment.position, position)):
            apply_all(moment.core, step)
            moment.position = step[-1].position
            if moment.position >= rung:
                self._leave_rung(moment)
                rung = self._next_rung(moment.position)
            if self._on_progress is not None and moment.position - said >= PROGRESS_EVENTS:
                said = moment.position
                self._on_progress(said)

    def _next_rung(self, position: int) -> int:
        return (position // self._every + 1) * self._every

    def _nearest(self, position: int) -> tuple[Core, int]:
        """
        Return a core from the newest good snapshot of any place, or an empty one.
        """
        found = [self._newest_in(place, position) for place in (*self._kept, self._rungs)]
        good = [one for one in found if one is not None]
        if not good:
            return Core(self._plugins), 0
        best = max(good, key=lambda one: one.position)
        return Core.restore(best.state, self._plugins), best.position

    def _newest_in(self, place: KeptStates | None, position: int) -> Snapshot | None:
        if place is None:
            return None
        return place.newest_good(
            schema=SCHEMA, head=self._log.head(), digest_at=self._log.digest_at, upto=position
        )

    def _leave_rung(self, moment: Moment) -> None:
        """
        Keep a rung; a cache that can't be written is no error.
        """
        if self._rungs is None:
            return
        with suppress(StoreUnavailable):
            self._rungs.put(
                position=moment.position,
                schema=SCHEMA,
                state=moment.core.snapshot(),
                chain_digest=self._log.digest_at(moment.position),
                time_us=moment.time_us,
            )


def whole_steps(envelopes: Iterable[Envelope]) -> Iterator[list[Envelope]]:
    """
    Yield whole steps; what is left after the last end of a step is none.
    """
    step: list[Envelope] = []
    for envelope in envelopes:
        step.append(envelope)
        if envelope.ends_step:
            yield step
            step = []


def ladder_of(
    log: EventLog | Recording,
    *,
    may_write: bool = True,
    plugins: Plugins | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Ladder:
    """
    Return the ladder of a log in a directory, with the snapshots that are kept beside it; for a
    recording, with those that are in it.

    Args:
        log: Open.
        may_write: Whether rungs that are missing are made.
        plugins: As in `Ladder`.
        on_progress: As in `Ladder`.
    """
    if isinstance(log, Recording):
        return Ladder(log, kept=(log.snapshots,), plugins=plugins, on_progress=on_progress)
    if log.path is None:
        return Ladder(log, plugins=plugins, on_progress=on_progress)
    rungs = beside(log.path, LADDER)
    kept = _existing(beside(log.path, "snapshots"), log.log_id)
    return Ladder(
        log,
        kept=kept if may_write else (*kept, *_existing(rungs, log.log_id)),
        rungs=_made(rungs, log.log_id) if may_write else None,
        plugins=plugins,
        on_progress=on_progress,
    )


def states_kept(log: EventLog | Recording) -> list[int]:
    """
    Return the positions of the states that are kept of a log or in a recording, in order; nothing
    of them is checked.
    """
    if isinstance(log, Recording):
        return list(log.snapshots.positions)
    if log.path is None:
        return []
    places = (beside(log.path, LADDER), beside(log.path, "snapshots"))
    key = schema_key(SCHEMA)
    return sorted({
        entry.position
        for place in places if place.is_dir()
        for entry in entries_of(place) if entry.schema_key == key
    })  # fmt: skip


def beside(directory: Path, name: str) -> Path:
    """
    Return where something is kept that belongs to a log: in its cluster's directory, or in it.
    """
    around = directory.parent
    is_cluster = directory.name == "log" and (around / "snapshots").is_dir()
    return (around if is_cluster else directory) / name


def _existing(directory: Path, log_id: str) -> tuple[SnapshotStore, ...]:
    return (SnapshotStore(directory, log_id=log_id),) if directory.is_dir() else ()


def _made(directory: Path, log_id: str) -> SnapshotStore | None:
    """
    Return the ladder's place, made if need be; None where nothing can be written.
    """
    try:
        return SnapshotStore(directory, log_id=log_id)
    except StoreUnavailable:
        return None

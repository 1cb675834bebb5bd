"""
Re-decide a log: every recorded session is held again on the state before it, and must decide the
same.

Inputs (commands taken, reports) are only applied. After a difference the recorded decisions hold,
so that one wrong decision isn't reported as thousands. Decisions are compared as bytes, by the
encoding that wrote them; only where the bytes differ are the events compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

from domain.envelope import Envelope, Stamped
from domain.errors import XceError
from domain.events.session import SessionHeld
from projections.scheduling.core import SCHEMA, Core
from projections.scheduling.plugins import Plugins
from store.codec import (
    OpenRow,
    PlacedRow,
    decode,
    encode_all,
    is_last,
    moment_us_of,
    open_rows,
    stamped_of,
)

DIFFERENCES_KEPT: Final = 100
PROGRESS_EVENTS: Final = 5_000
SESSION_HELD: Final = SessionHeld.TYPE_CODE


class RowLog(Protocol):
    """
    Be a log that can be read as rows.
    """

    def rows(self, after: int = 0, upto: int | None = None) -> Iterator[PlacedRow]:
        """
        Yield rows after a position.
        """
        ...


class States(Protocol):
    """
    Be the whole states of a recording.
    """

    @property
    def positions(self) -> tuple[int, ...]:
        """
        Return where there are states.
        """
        ...

    def at(self, position: int, schema: str) -> bytes | None:
        """
        Return the state of a schema at a position, None when there is none.
        """
        ...


@dataclass(slots=True, frozen=True)
class Difference:
    """
    Say where a decision differs.

    Args:
        position: Position of the recorded event, or of the last one of its step when too few were
            recorded.
        stream: The stream that the recorded decision, or else the new one, belongs to.
        recorded: The recorded decision in words, "" when the core now decides more than was
            recorded.
        re_decided: What the core decides now, "" when it decides less.
        why: "" or what policy changed since, when that is known.
    """

    position: int
    stream: str
    recorded: str
    re_decided: str
    why: str = ""


@dataclass(slots=True)
class VerifyResult:
    """
    Hold the outcome: counts, and the first differences in order of position.

    ``states`` counts the recorded states that were compared with the folded one.
    """

    events: int = 0
    steps: int = 0
    sessions: int = 0
    decisions: int = 0
    states: int = 0
    difference_count: int = 0
    differences: list[Difference] = field(default_factory=list)

    @property
    def is_same(self) -> bool:
        """
        Say whether every decision was reproduced.
        """
        return self.difference_count == 0

    def add(self, difference: Difference) -> None:
        """
        Count a difference and keep it while there is room.
        """
        self.difference_count += 1
        if len(self.differences) < DIFFERENCES_KEPT:
            self.differences.append(difference)


Start = Callable[[int], tuple[Core, int]]
"""Gives a core for a position: folded up to a boundary not after it, which is returned too."""


def steps_of(rows: Iterable[PlacedRow]) -> Iterator[list[OpenRow]]:
    """
    Yield whole steps. What is left after the last end of a step is a step too.
    """
    step: list[OpenRow] = []
    for opened in open_rows(rows):
        step.append(opened)
        if is_last(opened):
            yield step
            step = []
    if step:
        yield step


def verify(
    log: RowLog,
    *,
    plugins: Plugins | None = None,
    make_core: Callable[[Plugins | None], Core] = Core,
    on_progress: Callable[[int], None] | None = None,
    after: int = 0,
    upto: int | None = None,
    start: Start | None = None,
    states: States | None = None,
) -> VerifyResult:
    """
    Re-decide a whole log, or the whole steps after a position up to another.

    Args:
        log: The log, live or simulated.
        plugins: Pickers and allocators; the built-in ones when None.
        make_core: Builds an empty core; tests hand in one with a rule changed.
        on_progress: Called with the position now and then.
        after: A position; one inside a step means the boundary before it.
        upto: The last position; None for the log's end.
        start: Gives a core for a position, such as a ladder of snapshots does; without it the log
            is folded from its beginning.
        states: Recorded states, each of which must be the folded one; None for none.

    Raises:
        Corrupt: The log doesn't check.
    """
    found = start or (lambda _position: (make_core(plugins), 0))
    return _Verification(log, found, on_progress, states).run(after, upto)


class _Verification:
    _core: Core

    def __init__(
        self,
        log: RowLog,
        start: Start,
        on_progress: Callable[[int], None] | None,
        states: States | None,
    ) -> None:
        self._log = log
        self._start = start
        self._on_progress = on_progress
        self._states = states
        self._state_positions = frozenset(() if states is None else states.positions)
        self._result = VerifyResult()
        self._said = 0

    # hot: the rate of re-deciding needs it.
    def run(self, after: int, upto: int | None) -> VerifyResult:
        """
        Re-decide the steps after one position up to another.
        """
        self._core, position = self._start(after)
        result = self._result
        for step in steps_of(self._log.rows(position, upto)):
            last = step[-1][0][0]
            if last <= after:
                if not self._applied(step):
                    break
                continue
            if upto is not None and not is_last(step[-1]):
                break
            result.steps += 1
            result.events += len(step)
            is_session = step[0][0][3] == SESSION_HELD
            if not (self._re_decided(step) if is_session else self._applied(step)):
                break
            if last in self._state_positions:
                self._compare_state(last)
            self._say_progress(last)
        return result

    def _applied(self, step: list[OpenRow]) -> bool:
        """
        Apply recorded inputs; an event that can't follow what was recorded before is a difference,
        and the last.
        """
        for opened in step:
            stamped = stamped_of(opened)
            try:
                self._core.apply(stamped)
            except Exception as error:  # noqa: BLE001 - an altered log may break any rule; it is reported
                words = f"it can't be applied to what was recorded before it: {_told(error)}"
                position = opened[0][0]
                self._result.add(Difference(position, stamped.stream, _words(stamped), words))
                return False
        return True

    def _say_progress(self, position: int) -> None:
        if self._on_progress is not None and position - self._said >= PROGRESS_EVENTS:
            self._said = position
            self._on_progress(position)

    def _re_decided(self, step: list[OpenRow]) -> bool:
        """
        Hold the session again and compare; on a difference go on from the recorded decisions.

        Returns:
            Whether it is possible to go on.
        """
        result, rows = self._result, [row for row, _ in step]
        result.sessions += 1
        result.decisions += len(step) - 1
        try:
            made = self._core.session(moment_us_of(step[0]))
        except Exception as error:  # noqa: BLE001 - as above
            words = f"the core fails: {type(error).__name__}: {error}"
            recorded = _words(stamped_of(step[0]))
            result.add(Difference(rows[0][0], rows[0][1], recorded, words))
            return self._fold_afresh(step)
        if [row[1:] for row in rows] == encode_all(made):
            return True
        # The same event may have been written otherwise by an older schema version of its class.
        envelopes = [decode(*row) for row in rows]
        before = [envelope.stamped() for envelope in envelopes]
        if made == before:
            return True
        result.add(self._difference(envelopes, before, made))
        return self._fold_afresh(step)

    def _compare_state(self, position: int) -> None:
        """
        Compare a recorded state with the folded one.
        """
        assert self._states is not None
        state = self._states.at(position, SCHEMA)
        if state is None:
            return
        self._result.states += 1
        if state != self._core.snapshot():
            words = "the state that the events before it give is another one"
            self._result.add(Difference(position, "", "a whole state", words, self._why()))

    def _fold_afresh(self, step: list[OpenRow]) -> bool:
        """
        Fold the log anew up to and with a step: a core that has decided otherwise can't be used any
        more.
        """
        before = step[0][0][0] - 1
        self._core, position = self._start(before)
        earlier = steps_of(self._log.rows(position, before))
        return all(self._applied(one) for one in earlier) and self._applied(step)

    def _difference(
        self, step: list[Envelope], recorded: list[Stamped], made: list[Stamped]
    ) -> Difference:
        """
        Describe the first event of the step that differs, or that is only on one side.

        That an event ends its step only says that the next one is missing, so the next is told.
        """
        for place, (old, new) in enumerate(zip(recorded, made, strict=False)):
            if old._replace(ends_step=new.ends_step) != new:
                return self._both(step[place].position, old, new)
        place = min(len(recorded), len(made))
        if len(recorded) == len(made):
            return self._both(step[-1].position, recorded[-1], made[-1])
        old_words = _words(recorded[place]) if place < len(recorded) else ""
        new_words = _words(made[place]) if place < len(made) else ""
        longer = recorded if place < len(recorded) else made
        position = step[min(place, len(step) - 1)].position
        return Difference(position, longer[place].stream, old_words, new_words, self._why())

    def _both(self, position: int, old: Stamped, new: Stamped) -> Difference:
        """
        Tell two events that differ; what differs in their stamps only where nothing else does.
        """
        words, again = _words(old), _words(new)
        if words == again:
            names = [
                name for name in ("time_us", "actor", "cause", "ends_step")
                if getattr(old, name) != getattr(new, name)
            ]  # fmt: skip
            words += "".join(f", {name} {getattr(old, name)!r}" for name in names)
            again += "".join(f", {name} {getattr(new, name)!r}" for name in names)
        return Difference(position, old.stream, words, again, self._why())

    def _why(self) -> str:
        """
        Tell "the policy changed" from "not deterministic" by the versions that the log recorded.
        """
        stored, plugins = self._core.state.stored, self._core.plugins
        now = {*plugins.picker_versions(), *plugins.allocator_versions()}
        recorded = (*stored.pickers, *stored.allocators)
        changed = [f"{known.name} {known.version}" for known in recorded if known not in now]
        return f"the policy changed since: {', '.join(changed)}" if changed else ""


def _told(error: Exception) -> str:
    """
    Return in words what an event broke; a key that isn't there is named as what it is.
    """
    if isinstance(error, XceError):
        return error.text()
    if isinstance(error, KeyError):
        return f"nothing is known of {error}"
    return f"{type(error).__name__}: {error}"


def _words(stamped: Stamped) -> str:
    event = stamped.event
    payload = event.model_dump_json(exclude_defaults=True)
    return f"{event.TYPE_CODE} in {stamped.stream} version {stamped.version}: {payload}"

"""
Re-decide a log: every recorded session is held again on the state before it, and must decide the
same.

Inputs (commands taken, reports) are only applied. After a difference the recorded decisions hold,
so that one wrong decision isn't reported as thousands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

from domain.envelope import Envelope, Stamped
from domain.events.session import SessionHeld
from projections.scheduling.core import Core
from projections.scheduling.plugins import Plugins

DIFFERENCES_KEPT: Final = 100
PROGRESS_EVENTS: Final = 5_000


class ReadableLog(Protocol):
    """
    Be a log that can be read.
    """

    def read(self, after: int = 0, upto: int | None = None) -> Iterator[Envelope]:
        """
        Yield envelopes after a position.
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
    """

    events: int = 0
    steps: int = 0
    sessions: int = 0
    decisions: int = 0
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


def steps_of(envelopes: Iterable[Envelope]) -> Iterator[list[Envelope]]:
    """
    Yield whole steps. What is left after the last end of a step is a step too.
    """
    step: list[Envelope] = []
    for envelope in envelopes:
        step.append(envelope)
        if envelope.ends_step:
            yield step
            step = []
    if step:
        yield step


def verify(
    log: ReadableLog,
    *,
    plugins: Plugins | None = None,
    make_core: Callable[[Plugins | None], Core] = Core,
    on_progress: Callable[[int], None] | None = None,
    after: int = 0,
    upto: int | None = None,
    start: Start | None = None,
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

    Raises:
        Corrupt: The log doesn't check.
    """
    found = start or (lambda _position: (make_core(plugins), 0))
    return _Verification(log, found, on_progress).run(after, upto)


class _Verification:
    _core: Core

    def __init__(
        self,
        log: ReadableLog,
        start: Start,
        on_progress: Callable[[int], None] | None,
    ) -> None:
        self._log = log
        self._start = start
        self._on_progress = on_progress
        self._result = VerifyResult()
        self._said = 0

    def run(self, after: int, upto: int | None) -> VerifyResult:
        """
        Re-decide the steps after one position up to another.
        """
        self._core, position = self._start(after)
        for step in steps_of(self._log.read(position, upto)):
            if step[-1].position <= after:
                if not self._applied(step):
                    break
                continue
            if upto is not None and not step[-1].ends_step:
                break
            self._result.steps += 1
            self._result.events += len(step)
            is_session = type(step[0].event) is SessionHeld
            if not (self._re_decided(step) if is_session else self._applied(step)):
                break
            self._say_progress(step[-1].position)
        return self._result

    def _applied(self, step: list[Envelope]) -> bool:
        """
        Apply recorded inputs; an event that can't follow what was recorded before is a difference,
        and the last.
        """
        for envelope in step:
            try:
                self._core.apply(envelope.stamped())
            except Exception as error:  # noqa: BLE001 - an altered log may break any rule; it is reported
                words = f"it can't follow: {type(error).__name__}: {error}"
                recorded = _words(envelope.stamped())
                self._result.add(Difference(envelope.position, envelope.stream, recorded, words))
                return False
        return True

    def _say_progress(self, position: int) -> None:
        if self._on_progress is not None and position - self._said >= PROGRESS_EVENTS:
            self._said = position
            self._on_progress(position)

    def _re_decided(self, step: list[Envelope]) -> bool:
        """
        Hold the session again and compare; on a difference go on from the recorded decisions.

        Returns:
            Whether it is possible to go on.
        """
        result = self._result
        result.sessions += 1
        result.decisions += len(step) - 1
        recorded = [envelope.stamped() for envelope in step]
        try:
            made = self._core.session(step[0].time_us)
        except Exception as error:  # noqa: BLE001 - as above
            words = f"the core fails: {type(error).__name__}: {error}"
            result.add(Difference(step[0].position, step[0].stream, _words(recorded[0]), words))
            return self._fold_afresh(step)
        if made == recorded:
            return True
        result.add(self._difference(step, recorded, made))
        return self._fold_afresh(step)

    def _fold_afresh(self, step: list[Envelope]) -> bool:
        """
        Fold the log anew up to and with a step: a core that has decided otherwise can't be used any
        more.
        """
        before = step[0].position - 1
        self._core, position = self._start(before)
        earlier = steps_of(self._log.read(position, before))
        return all(self._applied(one) for one in earlier) and self._applied(step)

    def _difference(
        self, step: list[Envelope], recorded: list[Stamped], made: list[Stamped]
    ) -> Difference:
        """
        Describe the first event of the step that differs.
        """
        for place, (old, new) in enumerate(zip(recorded, made, strict=False)):
            if old != new:
                return Difference(
                    step[place].position, old.stream, _words(old), _words(new), self._why()
                )
        place = min(len(recorded), len(made))
        old_words = _words(recorded[place]) if place < len(recorded) else ""
        new_words = _words(made[place]) if place < len(made) else ""
        longer = recorded if place < len(recorded) else made
        position = step[min(place, len(step) - 1)].position
        return Difference(position, longer[place].stream, old_words, new_words, self._why())

    def _why(self) -> str:
        """
        Tell "the policy changed" from "not deterministic" by the versions that the log recorded.
        """
        stored, plugins = self._core.state.stored, self._core.plugins
        now = {*plugins.picker_versions(), *plugins.allocator_versions()}
        recorded = (*stored.pickers, *stored.allocators)
        changed = [f"{known.name} {known.version}" for known in recorded if known not in now]
        return f"the policy changed since: {', '.join(changed)}" if changed else ""


def _words(stamped: Stamped) -> str:
    event = stamped.event
    payload = event.model_dump_json(exclude_defaults=True)
    return f"{event.TYPE_CODE} in {stamped.stream} version {stamped.version}: {payload}"

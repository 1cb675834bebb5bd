"""
Which workers have fallen silent.
"""

from __future__ import annotations

from domain.commands import MarkUnreachable
from replay.engine import Engine

NS_PER_S = 1_000_000_000


class Liveness:
    """
    Remember when each worker was last heard, on the monotonic clock.

    Args:
        silent_after_s: A worker that said nothing for so long is unreachable.
        now_ns: When the scheduler began to listen; nobody is silent before that.
    """

    def __init__(self, silent_after_s: float, now_ns: int) -> None:
        self._silent_ns = round(silent_after_s * NS_PER_S)
        self._began_ns = now_ns
        self._checked_ns = now_ns
        self._heard: dict[str, int] = {}

    @property
    def every_ns(self) -> int:
        """
        Return how often `silent` wants to be asked.
        """
        return min(NS_PER_S, self._silent_ns // 4)

    def hear(self, worker: str, now_ns: int) -> None:
        """
        Note that a worker said something.
        """
        self._heard[worker] = now_ns

    def silent(self, engine: Engine, now_ns: int) -> list[MarkUnreachable]:
        """
        Return what to tell the core of workers that have been silent for too long.
        """
        if now_ns - self._checked_ns > self._silent_ns // 2:
            # We were away ourselves (stopped, suspended): what was said meanwhile isn't read yet.
            self._began_ns = now_ns
        self._checked_ns = now_ns
        state = engine.core.state
        found = []
        for worker in state.stored.workers.values():
            heard_ns = max(self._heard.get(worker.name, 0), self._began_ns)
            if worker.unreachable_us is not None or now_ns - heard_ns <= self._silent_ns:
                continue
            # Nothing is expected of one that left, but for what became of the jobs it left behind.
            if not worker.left or state.jobs_led_by(worker):
                found.append(
                    MarkUnreachable(
                        worker=worker.name,
                        incarnation=worker.incarnation,
                        silent_us=(now_ns - heard_ns) // 1000,
                    )
                )
        return found

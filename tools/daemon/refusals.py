"""
How refusals are recorded: each one, up to a rate; beyond it their count.
"""

from __future__ import annotations

from domain.errors import Refused, XceError
from domain.event import Value
from replay.engine import Engine

PER_S = 5
BURST = 50
NS_PER_S = 1_000_000_000


class RefusalRecorder:
    """
    Record refusals in the log without letting a mistaken client fill it.
    """

    def __init__(self, now_ns: int) -> None:
        self._allowance_ns = BURST * NS_PER_S // PER_S
        self._since_ns = now_ns
        self._unrecorded = 0

    def record(
        self,
        engine: Engine,
        command: Value,
        error: XceError,
        *,
        actor: str,
        now_us: int,
        now_ns: int,
    ) -> None:
        """
        Record a refusal, or count it when there were too many.
        """
        cost_ns = NS_PER_S // PER_S
        full_ns = BURST * cost_ns
        self._allowance_ns = min(full_ns, self._allowance_ns + now_ns - self._since_ns)
        self._since_ns = now_ns
        if self._allowance_ns < cost_ns:
            self._unrecorded += 1
            return
        self._allowance_ns -= cost_ns
        if self._unrecorded:
            rule = f"{self._unrecorded} refusals before this one were counted, not recorded"
            engine.refuse(command, Refused("rate", rule), actor="", now_us=now_us)
            self._unrecorded = 0
        engine.refuse(command, error, actor=actor, now_us=now_us)

"""
A sabotaged scheduler: it answers before the commit. The crash test must catch it.
"""

from __future__ import annotations

import time

from replay.engine import Engine
from tools.daemon import engine_thread
from tools.daemon.__main__ import main

commit = Engine.commit


def _late_commit(engine: Engine) -> int:
    if engine.pending:
        time.sleep(0.03)
    return commit(engine)


def _answer_first(
    thread: engine_thread.EngineThread, batch: list, now_us: int, now_ns: int
) -> None:
    thread._take_all(batch, now_us, now_ns)
    made = thread._decide(now_us)
    thread._answer(batch, now_ns)
    _late_commit(thread._engine)
    thread._books.note(thread._engine, made)
    thread._answer([], now_ns)


def _handle(thread: engine_thread.EngineThread, batch: list) -> None:
    _answer_first(thread, batch, thread._clock.now_us(), time.monotonic_ns())


if __name__ == "__main__":
    engine_thread.EngineThread._handle = _handle
    raise SystemExit(main())

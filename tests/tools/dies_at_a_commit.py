"""
A scheduler that is killed at the commit of its first submission: just before it, or just after.
"""

from __future__ import annotations

import os
import signal

from replay.engine import Engine
from tools.daemon.__main__ import main

VARIABLE = "XCE_TEST_DIES"

commit = Engine.commit


def _commit(engine: Engine) -> int:
    if not engine.core.state.stored.jobs:
        return commit(engine)
    if os.environ[VARIABLE] == "after":
        commit(engine)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


if __name__ == "__main__":
    Engine.commit = _commit
    raise SystemExit(main())

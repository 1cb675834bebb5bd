"""
Run a scheduler without the command line around it: ``python -m tools.daemon --dir DIR``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from domain.errors import XceError
from tools.daemon.config import DaemonSettings
from tools.daemon.process import run_scheduler


def main() -> int:
    """
    Run it and return the exit status.
    """
    parser = argparse.ArgumentParser(prog="python -m tools.daemon")
    parser.add_argument("--dir", required=True, type=Path)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--worker-slots", type=int)
    parser.add_argument(
        "--snapshot-every", type=int, default=DaemonSettings().snapshot_every_events
    )
    parser.add_argument("--silent-after-s", type=float, default=DaemonSettings().silent_after_s)
    parser.add_argument("--snapshot-limit-s", type=float, default=DaemonSettings().snapshot_limit_s)
    asked = parser.parse_args()
    settings = DaemonSettings(
        silent_after_s=asked.silent_after_s,
        snapshot_every_events=asked.snapshot_every,
        snapshot_limit_s=asked.snapshot_limit_s,
    )
    try:
        return run_scheduler(
            asked.dir, workers=asked.workers, worker_slots=asked.worker_slots, settings=settings
        )
    except XceError as error:
        print(error.text(), file=sys.stderr)  # noqa: T201 - it is a program
        return error.exit_status


if __name__ == "__main__":
    raise SystemExit(main())

"""
Follow a log from the command line: ``python -m tools.follower DIR``; ended by SIGTERM or Ctrl-C.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType

from domain.errors import XceError
from store.log import EventLog
from tools.follower.feed import follow
from tools.follower.place import place_of


def main(arguments: list[str]) -> int:
    """
    Follow the log of a directory and return the exit status.
    """
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m tools.follower DIR\n")
        return 2
    stop = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    try:
        with EventLog.open(arguments[0], writable=False) as log:
            follow(log, place_of(arguments[0]), stop, trouble=_tell)
    except XceError as error:
        sys.stderr.write(f"xce: {error.text()}\n")
        return error.exit_status
    return 0


def _tell(error: Exception) -> None:
    sys.stderr.write(f"xce: {error}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

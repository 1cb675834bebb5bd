"""
Follow a log from the command line: ``python -m tools.follower DIR``; ended by SIGTERM or Ctrl-C.

With ``--until-eof`` it belongs to a scheduler: it ends when standard input does, gives way to
whoever else wants the processor, and waits while another process fills the tables.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

from domain.errors import XceError
from store.log import EventLog
from tools.follower.feed import follow
from tools.follower.place import place_of

GIVE_WAY = 5


def main(arguments: list[str]) -> int:
    """
    Follow the log of a directory and return the exit status.
    """
    belongs, places = "--until-eof" in arguments, [one for one in arguments if one != "--until-eof"]
    if len(places) != 1:
        sys.stderr.write("usage: python -m tools.follower [--until-eof] DIR\n")
        return 2
    stop = threading.Event()
    if belongs:
        os.nice(GIVE_WAY)
        threading.Thread(target=_end_with_input, args=(stop,), daemon=True).start()

    def end(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    try:
        with EventLog.open(places[0], writable=False) as log:
            follow(log, place_of(places[0]), stop, trouble=_tell, waits_for_others=belongs)
    except XceError as error:
        sys.stderr.write(f"xce: {error.text()}\n")
        return error.exit_status
    return 0


def _end_with_input(stop: threading.Event) -> None:
    while sys.stdin.buffer.read(1):
        pass
    stop.set()


def _tell(error: Exception) -> None:
    sys.stderr.write(f"xce: {error}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

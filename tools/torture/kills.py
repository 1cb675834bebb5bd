"""
Kill a writer with SIGKILL at random moments, over and over, and hold the log against what was
acknowledged.

The writer appends commits of random size and acknowledges each through a pipe after the append
returned; the sabotage is to acknowledge before.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path

from domain.errors import XceError
from domain.events.jobs import JobHeld
from store.log import EventLog
from store.verify import verify_here
from tools.torture.outcome import Outcome
from tools.torture.workload import stamped

EARLY = "before the commit"


def write(directory: str, seed: int, acknowledge: Connection, when: str) -> None:
    """
    Append until killed.
    """
    chance = random.Random(seed)  # noqa: S311 - a seed, to repeat it
    log = EventLog.open(directory, writable=True)
    position = log.head()
    acknowledge.send(0)
    while True:
        count = chance.choice((1, 1, 2, 5, 40, 900))
        events = [
            stamped(f"job:{position + each:010d}", 1, JobHeld(), ends_step=each == count)
            for each in range(1, count + 1)
        ]
        if when == EARLY:
            acknowledge.send(position + count)
        position = log.append(events)
        if when != EARLY:
            acknowledge.send(position)


def run(directory: Path, *, kills: int, seed: int, sabotage: bool = False) -> Outcome:
    """
    Kill a writer so many times; return what was seen.
    """
    chance = random.Random(seed)  # noqa: S311 - a seed, to repeat it
    outcome = Outcome()
    when = EARLY if sabotage else "after the commit"
    # Forked from a server that has imported everything and opened nothing.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tools.torture.kills"])
    EventLog.create(directory, log_id="the-log").close()
    last = 0
    for number in range(kills):
        ours, theirs = context.Pipe(duplex=False)
        arguments = (str(directory), seed + number, theirs, when)
        writer = context.Process(target=write, args=arguments)
        writer.start()
        theirs.close()
        before = outcome.counts["acknowledged"]
        last = max(last, *_receive(ours, chance.randrange(1, 20), outcome))
        time.sleep(chance.uniform(0, 0.004))
        writer.kill()
        writer.join()
        # What stood in the pipe when it died was acknowledged all the same.
        last = max([last, *_receive(ours, None, outcome)])
        ours.close()
        outcome.tries += 1
        if outcome.counts["acknowledged"] == before:
            outcome.violated(f"the writer did not start after kill {number}")
        _check(directory, last, outcome, is_whole=number % 10 == 0 or number == kills - 1)
    stop_server()
    return outcome


def stop_server() -> None:
    """
    End the processes that multiprocessing would leave running to our own end.
    """
    # The standard library has no public way to end them.
    for helper in (forkserver._forkserver, resource_tracker._resource_tracker):  # noqa: SLF001
        getattr(helper, "_stop")()  # noqa: B009


def _receive(pipe: Connection, count: int | None, outcome: Outcome) -> list[int]:
    """
    Receive so many acknowledgements, or all to the end.
    """
    received = [0]
    try:
        while count is None or len(received) <= count:
            received.append(pipe.recv())
            outcome.saw("acknowledged")
    except (EOFError, OSError):
        pass
    return received


def _check(directory: Path, acknowledged: int, outcome: Outcome, *, is_whole: bool) -> None:
    """
    Hold the log against the acknowledgements: nothing lost, no half commit, no gap, all of it good.
    """
    try:
        if is_whole and not (report := verify_here(directory)).is_good:
            outcome.violated(str(report.first_problem))
        with EventLog.open(directory, writable=False) as log:
            envelopes = list(log.read(after=max(0, acknowledged - 2000)))
            if log.head() < acknowledged:
                outcome.violated(f"{acknowledged} was acknowledged, the log ends at {log.head()}")
            if envelopes and not envelopes[-1].ends_step:
                outcome.violated(f"half a commit at the end, {log.head()}")
    except XceError as error:
        outcome.violated(error.text())

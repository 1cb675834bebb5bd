"""
Kill the scripted writer at every single system call that writes, syncs or renames.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

from tools.torture.children import stop_server
from tools.torture.injection import Ran, run_traced
from tools.torture.outcome import Outcome
from tools.torture.power import digests_of, examine, script

CALLS = "write,pwrite64,pwritev,writev,fdatasync,fsync,ftruncate,rename,link,unlink,openat,mkdir"
KILLED = -9
RUNS_MAX = 3


def run(directory: Path, *, tries: int, seed: int = 0, sabotage: bool = False) -> Outcome:
    """
    Kill at so many calls, evenly spread over all; with as many tries as calls at each of them.

    Args:
        directory: An empty place.
        tries: How many; beyond the last call it is a writer with other commits.
        seed: What the writer's commits are drawn from.
        sabotage: Pretend that everything had been acknowledged.
    """
    outcome = Outcome()
    while outcome.tries < tries:
        calls, everything = _undisturbed(directory / "root", directory / "trace", seed)
        step = max(1, len(calls) // (tries - outcome.tries))
        for kind, number in calls[::step][: tries - outcome.tries]:
            options = ["-o", "/dev/null", "-e", f"trace={kind}",
                       "-e", f"inject={kind}:signal=SIGKILL:when={number}"]  # fmt: skip
            ran = _killed(directory / "root", seed, options)
            said = everything if sabotage else ran.said
            outcome.tries += 1
            if ran.status != KILLED:
                outcome.violated(f"not killed at {kind} number {number}: status {ran.status}")
            answer = examine(directory / "root", said, digests_of(everything), is_decoded=True)
            outcome.saw(answer.partition(":")[0])
            if answer.startswith("bad"):
                outcome.violated(f"killed at {kind} number {number}, seed {seed}: {answer}")
        seed += 1
    stop_server()
    return outcome


def _killed(root: Path, seed: int, options: list[str]) -> Ran:
    """
    Run the writer until it is killed at the call, three times at most: now and then it opens a file
    less than it did undisturbed, and ends before a last one comes.
    """
    for _ in range(RUNS_MAX):
        ran = _run(root, seed, options)
        if ran.status == KILLED:
            break
    return ran


def _undisturbed(root: Path, trace: Path, seed: int) -> tuple[list[tuple[str, int]], list[str]]:
    """
    Return the calls that the writer makes on files of its own, each with its number among those of
    its kind, and all that the writer acknowledges.
    """
    ran = _run(root, seed, ["-o", str(trace), "-e", f"trace={CALLS}"])
    counts: Counter[str] = Counter()
    calls = []
    for line in trace.read_text().splitlines():
        kind, is_call, _ = line.partition("(")
        if is_call and kind in CALLS.split(","):
            counts[kind] += 1
            calls.append((kind, counts[kind]))
    trace.unlink()
    return calls, ran.said


def _run(root: Path, seed: int, options: list[str]) -> Ran:
    """
    Run the scripted writer under strace in an empty place.
    """
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    return run_traced(script, (root, seed), options=options)

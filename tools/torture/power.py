"""
Lose power at every moment: rebuild the disk from a recorded write log, with what was synced and any
part of what wasn't, and open it.

A scripted writer runs under strace, with other commits for each recording. Each image has all that
was synced at the moment, of the unsynced writes a random part in random order, torn at sectors, and
of the unsynced directory changes a random beginning. What had been acknowledged by then must be
there, whole and good: the digest of the history that is found, computed from its bytes, is the one
that the undisturbed writer had at that position.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from domain.errors import XceError
from store.log import EventLog
from store.snapshots import SnapshotStore
from store.verify import verify_here
from tools.torture.children import Answer, Child, stop_server
from tools.torture.disk import Call, Disk, apply
from tools.torture.outcome import Outcome
from tools.torture.traces import CALLS, TOO_LONG, calls_of
from tools.torture.workload import jobs_events

REPO = Path(__file__).resolve().parent.parent.parent
COMMITS = 14
IMAGES_PER_RECORDING = 1000
IMAGES_PER_DECODING = 10
"""Every so many-th image is also decoded and compared event by event."""


def commit_sizes(seed: int) -> list[int]:
    """
    Return how many jobs each commit of the scripted writer has: small, of a few pages and of many.
    """
    chance = random.Random(seed)  # noqa: S311 - a seed, to repeat it
    sizes = [1, 1, 2, 3, 40, 300, *(chance.choice((1, 2, 3, 20, 60)) for _ in range(COMMITS - 6))]
    chance.shuffle(sizes)
    return sizes


def script(root: Path, seed: int, say: Callable[[str], None]) -> None:
    """
    Be the scripted writer: create, append, take snapshots, close, open again; acknowledge each.
    """
    number = 1
    log = EventLog.create(root / "log", log_id="the-log")
    say("created 0 -")
    snapshots = SnapshotStore(root / "snapshots", log_id="the-log")
    for commit, count in enumerate(commit_sizes(seed)):
        head = log.append(jobs_events(number, count))
        number += count
        digest = log.digest_at(head)
        say(f"position {head} {digest.hex()}")
        if commit % 5 == 4:
            snapshots.put(
                position=head, schema="s", state=b"x" * 5000, chain_digest=digest, time_us=0
            )
            say(f"snapshot {head} {digest.hex()}")
        if commit == COMMITS // 2:
            log.close()
            log = EventLog.open(root / "log", writable=True)
    log.close()


def _say(text: str) -> None:
    """
    Acknowledge through a pipe.
    """
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def record(root: Path, trace: Path, seed: int = 0) -> list[Call]:
    """
    Run the scripted writer under strace and return what it did to the disk.
    """
    done = subprocess.run(
        ["strace", "-qq", "-y", "-xx", "-s", str(TOO_LONG), "-o", trace, "-e", f"trace={CALLS}",
         sys.executable, "-m", "tools.torture.power", str(root), str(seed)],
        cwd=REPO, capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    assert done.stdout.count("position") == COMMITS
    calls = list(calls_of(trace.read_text(errors="replace").splitlines(), str(root)))
    trace.unlink()
    return calls


def said_of(calls: list[Call]) -> list[str]:
    """
    Return the acknowledgements among recorded calls.
    """
    return b"".join(call.data for call in calls if call.kind == "say").decode().splitlines()


def digests_of(said: list[str]) -> dict[int, str]:
    """
    Return the digest at each acknowledged position, in hexadecimal.
    """
    return {
        int(number): digest for kind, number, digest in map(str.split, said) if kind != "created"
    }


def run(directory: Path, *, images: int, seed: int, sabotage: bool = False) -> Outcome:
    """
    Open so many images of moments of recordings of the writer.

    Args:
        directory: An empty place.
        images: How many.
        seed: What commits, moments and losses are drawn from.
        sabotage: Leave the syncs out.
    """
    outcome = Outcome()
    for first in range(0, images, IMAGES_PER_RECORDING):
        place = directory / str(first)
        place.mkdir()
        count = min(IMAGES_PER_RECORDING, images - first)
        _open_images(place, count, seed + first, outcome, without_syncs=sabotage)
        shutil.rmtree(place)
    stop_server()
    return outcome


def _open_images(
    place: Path, count: int, seed: int, outcome: Outcome, *, without_syncs: bool
) -> None:
    """
    Record the writer once and open images of moments of it.
    """
    root = place / "root"
    root.mkdir()
    calls = record(root, place / "trace", seed)
    chance = random.Random(seed)  # noqa: S311 - a seed, to repeat it
    moments = sorted(chance.randrange(len(calls) + 1) for _ in range(count))
    disk, done = Disk(), 0
    checker = Checker(place, root, digests_of(said_of(calls)))
    try:
        for number, moment in enumerate(moments):
            while done < moment:
                apply(disk, calls[done], without_syncs=without_syncs)
                done += 1
            outcome.tries += 1
            is_decoded = number % IMAGES_PER_DECODING == 0
            answer = checker.check(disk.image(chance), said_of(calls[:done]), is_decoded=is_decoded)
            outcome.saw(answer.partition(":")[0])
            if answer.startswith("bad"):
                outcome.violated(f"seed {seed}, after call {done} of {len(calls)}: {answer}")
    finally:
        checker.close()


class Checker:
    """
    Open images in a child process.
    """

    def __init__(self, place: Path, root: Path, digests: dict[int, str]) -> None:
        self._image = place / "image"
        self._root = root
        self._child = Child(_prepare, self._image, digests)

    def check(self, files: dict[str, bytes], said: list[str], *, is_decoded: bool) -> str:
        """
        Return what opening an image gave.
        """
        shutil.rmtree(self._image, ignore_errors=True)
        for name, content in files.items():
            path = self._image / Path(name).relative_to(self._root)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self._image.mkdir(exist_ok=True)
        answer = self._child.ask(said, is_decoded)
        return answer if isinstance(answer, str) else f"bad: the process was ended with {answer}"

    def close(self) -> None:
        """
        End the child.
        """
        self._child.end()


def _prepare(image: Path, digests: dict[int, str]) -> Answer:
    """
    Be the child that opens images.
    """
    return lambda said, is_decoded: examine(image, said, digests, is_decoded=is_decoded)


def examine(image: Path, said: list[str], digests: dict[int, str], *, is_decoded: bool) -> str:
    """
    Open an image of a disk and hold it against what had been acknowledged.

    Args:
        image: Where it is.
        said: What had been acknowledged, the newest last.
        digests: What the undisturbed writer had at the end of each commit.
        is_decoded: Also compare the events themselves, one by one.
    """
    last = {"created": -1, "position": 0, "snapshot": 0}
    for line in said:
        kind, number, _ = line.split()
        last[kind] = int(number)
    try:
        with EventLog.open(image / "log", writable=True) as log:
            head = log.head()
            events = [each.stamped() for each in log.read()] if is_decoded else []
    except XceError as error:
        return f"bad: {error}" if said else _begin_again(image)
    report = verify_here(image / "log", decoded=False)
    if head < last["position"]:
        return f"bad: {last['position']} was acknowledged, the log ends at {head}"
    if not report.is_good or report.last_position != head:
        return f"bad: {report.first_problem}"
    if head and report.head_digest != digests.get(head):
        return f"bad: another history ends at {head}"
    if is_decoded and events != jobs_events(1, head // 4):
        return f"bad: other events up to {head}"
    if last["snapshot"] and not _has_snapshot(image, last["snapshot"], digests, head):
        return f"bad: the snapshot at {last['snapshot']} is gone"
    return "good"


def _has_snapshot(image: Path, position: int, digests: dict[int, str], head: int) -> bool:
    """
    Say whether an acknowledged snapshot can be taken.
    """
    store = SnapshotStore(image / "snapshots", log_id="the-log")
    found = store.newest_good(
        schema="s", head=head, digest_at=lambda at: bytes.fromhex(digests.get(at, ""))
    )
    return found is not None and found.position >= position


def _begin_again(image: Path) -> str:
    """
    See that a creation which was cut short doesn't stand in the way of the next one.
    """
    try:
        with EventLog.create(image / "log", log_id="the-log") as log:
            log.append(jobs_events(1, 1))
    except XceError as error:
        return f"bad: a new start is refused: {error}"
    return "begun again"


if __name__ == "__main__":
    script(Path(sys.argv[1]), int(sys.argv[2]), _say)

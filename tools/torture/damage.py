"""
Damage the data file of a log and see that reading never misleads and never kills.

Bits are flipped, bytes overwritten, sectors zeroed, pages swapped and doubled, the file cut. Each
damaged copy is opened, read to the end and verified in a child process; what the child read must be
a prefix of the truth, or an error.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Self

from domain.envelope import Envelope
from domain.errors import Corrupt, XceError
from store.backup import backup
from store.embedded.preflight import DATA_FILE
from store.log import EventLog
from store.verify import verify_here
from tools.torture.children import Answer, Child, stop_server
from tools.torture.outcome import Outcome
from tools.torture.workload import fill

SECTOR, PAGE = 512, 4096
KINDS = ("bit", "byte", "sector", "page", "swap", "double", "cut")
READ, VERIFY = "read", "verify"
SHAPES = {
    "as written": (5, 12, False), "compact": (5, 12, True), "large and compact": (6, 40, True),
}  # fmt: skip
"""Commits and jobs of the logs that are damaged, and whether they have no free pages, damage of
which does no harm."""
TURNS = (*("compact",) * 6, "as written", "large and compact")
"""Whose turn it is. The large log takes three times as long as the small ones."""
STREAMS_READ = 4
DRAWS, NEAR = 5, 8


def somewhere(data: bytearray, chance: random.Random) -> int:
    """
    Draw a place, preferably one where there is something: most of a small log is empty.
    """
    place = chance.randrange(len(data))
    for _ in range(DRAWS - 1):
        if any(data[max(0, place - NEAR) : place + NEAR]):
            break
        place = chance.randrange(len(data))
    return place


def flip_bit(data: bytearray, chance: random.Random) -> None:
    """
    Flip one bit.
    """
    data[somewhere(data, chance)] ^= 1 << chance.randrange(8)


def set_byte(data: bytearray, chance: random.Random) -> None:
    """
    Overwrite one byte.
    """
    data[somewhere(data, chance)] = chance.randrange(256)


def zero_sector(data: bytearray, chance: random.Random) -> None:
    """
    Zero one sector.
    """
    at = chance.randrange(len(data) // SECTOR) * SECTOR
    data[at : at + SECTOR] = bytes(SECTOR)


def fill_page(data: bytearray, chance: random.Random) -> None:
    """
    Overwrite one page with rubbish.
    """
    at = chance.randrange(len(data) // PAGE) * PAGE
    data[at : at + PAGE] = chance.randbytes(PAGE)


def swap_pages(data: bytearray, chance: random.Random) -> None:
    """
    Exchange two pages.
    """
    one, two = (chance.randrange(len(data) // PAGE) * PAGE for _ in range(2))
    data[one : one + PAGE], data[two : two + PAGE] = (
        data[two : two + PAGE],
        data[one : one + PAGE],
    )


def double_page(data: bytearray, chance: random.Random) -> None:
    """
    Write one page over another.
    """
    one, two = (chance.randrange(len(data) // PAGE) * PAGE for _ in range(2))
    data[one : one + PAGE] = data[two : two + PAGE]


def cut(data: bytearray, chance: random.Random) -> None:
    """
    Cut the file anywhere.
    """
    del data[chance.randrange(len(data)) :]


DAMAGE: dict[str, Callable[[bytearray, random.Random], None]] = {
    "bit": flip_bit, "byte": set_byte, "sector": zero_sector, "page": fill_page,
    "swap": swap_pages, "double": double_page, "cut": cut,
}  # fmt: skip


def run(
    directory: Path,
    *,
    tries: int,
    seed: int,
    kinds: tuple[str, ...] = KINDS,
    sabotage: bool = False,
) -> Outcome:
    """
    Damage a log so many times.

    Args:
        directory: An empty place for the copies.
        tries: How often.
        seed: What the damage is drawn from.
        kinds: Which damage.
        sabotage: Read without comparing checksums.
    """
    chance = random.Random(seed)  # noqa: S311 - a seed, to repeat it
    outcome = Outcome()
    with contextlib.ExitStack() as stack:
        probers = {
            name: stack.enter_context(
                Prober(directory / "copy" / name, _original(directory, name), sabotage=sabotage)
            )
            for name in SHAPES
        }
        for number in range(tries):
            # Kinds and shapes take turns, so that each kind meets each shape.
            kind = kinds[number % len(kinds)]
            prober = probers[TURNS[number // len(kinds) % len(TURNS)]]
            data = bytearray(prober.content)
            DAMAGE[kind](data, chance)
            outcome.tries += 1
            answer = prober.probe(kind, bytes(data))
            outcome.saw(f"{kind}: {answer}")
            if answer.startswith(("silent", "killed", "hung")):
                outcome.violated(f"{kind}, seed {seed}, try {number}: {answer}")
    stop_server()
    return outcome


def _original(directory: Path, name: str) -> Path:
    """
    Make one of the logs that are damaged.
    """
    commits, jobs, is_compact = SHAPES[name]
    path = directory / "original" / name
    with EventLog.create(path, log_id="the-log") as log:
        fill(log, commits=commits, jobs=jobs)
    if not is_compact:
        return path
    backup(path, path.with_name(f"{name}, copied"))
    return path.with_name(f"{name}, copied")


class Prober:
    """
    Read damaged copies in a child process, made anew when one dies.
    """

    def __init__(self, directory: Path, original: Path, *, sabotage: bool) -> None:
        self._directory = directory
        self._original = original
        self._child = Child(_prepare, directory, original, sabotage)
        self.content = (original / DATA_FILE).read_bytes()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.end()

    def probe(self, kind: str, data: bytes) -> str:
        """
        Return what reading a damaged copy gave.
        """
        shutil.rmtree(self._directory, ignore_errors=True)
        shutil.copytree(self._original, self._directory)
        (self._directory / DATA_FILE).write_bytes(data)
        answer = self._child.ask(READ)
        return answer if isinstance(answer, str) else self._after_death(kind, answer)

    def _after_death(self, kind: str, status: int) -> str:
        """
        Say whether a reader was allowed to die.

        Swapped or doubled pages may make the engine abort the process that reads. A file that was
        cut must never: its size is looked at first. The one who verifies always tells: he walks the
        structure before the engine sees it, and what kills him all the same is a finding.
        """
        if kind == "cut" or status >= 0 or status == -signal.SIGKILL:
            return f"killed the reader with {status}"
        answer = self._child.ask(VERIFY)
        if answer == "good":
            return f"killed the reader with {status}"
        return "engine aborted, named by verify"


def _prepare(directory: Path, original: Path, sabotage: bool) -> Answer:  # noqa: FBT001
    """
    Be the child: know the truth, and read or verify the copy.
    """
    if sabotage:
        skip_checks()
    with EventLog.open(original, writable=False) as log:
        truth = list(log.read())

    def answer(question: str) -> str:
        if question == READ:
            return probe_here(directory, truth)
        return "good" if verify_here(directory, decoded=False).is_good else "bad"

    return answer


def probe_here(directory: Path, truth: list[Envelope]) -> str:
    """
    Read a damaged copy in this process, all events and some streams; say what came of it.
    """
    try:
        with EventLog.open(directory, writable=False) as log:
            count = 0
            for count, envelope in enumerate(log.read(), 1):
                if envelope != truth[count - 1]:
                    return f"silent change at {count}"
            is_short = count < len(truth)
            for stream in _some_streams(truth):
                expected = [envelope for envelope in truth if envelope.stream == stream]
                found = list(log.read_stream(stream))
                is_short = is_short or len(found) < len(expected)
                if any(envelope not in expected for envelope in found):
                    return f"silent change of {stream}"
        report = verify_here(directory, decoded=False)
    except Corrupt as error:
        return f"named {error.kind}"
    except XceError as error:
        return f"refused {type(error).__name__}"
    if not report.is_good:
        return "named by verify"
    return "silent loss" if is_short else "harmless"


def _some_streams(truth: list[Envelope]) -> list[str]:
    """
    Return some streams from all over a log.
    """
    streams = list(dict.fromkeys(envelope.stream for envelope in truth))
    return streams[:: max(1, len(streams) // STREAMS_READ)]


def skip_checks() -> None:
    """
    Be the sabotage: compare neither checksum nor digest on reading.
    """
    from store.embedded import frames, reader

    def compare_nothing(*_: object, **__: object) -> None:
        return None

    for module in (frames, reader):
        vars(module)["check_crc"] = compare_nothing
    vars(frames)["check_digest"] = compare_nothing

"""
Damage the data file of a log and see that reading never misleads and never kills.

Bits are flipped, bytes overwritten, sectors zeroed, pages swapped and doubled, the file cut. Each
damaged copy is opened, read to the end and verified in a child process; what the child read must be
a prefix of the truth, or an error.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Self

from domain.errors import Corrupt, XceError
from store.log import EventLog
from store.verify import verify, verify_here
from tools.torture.outcome import Outcome
from tools.torture.workload import fill

SECTOR, PAGE = 512, 4096
KINDS = ("bit", "byte", "sector", "page", "swap", "double", "cut")
TIMEOUT_S = 60
REPO = Path(__file__).resolve().parent.parent.parent


def flip_bit(data: bytearray, chance: random.Random) -> None:
    """
    Flip one bit anywhere.
    """
    bit = chance.randrange(len(data) * 8)
    data[bit // 8] ^= 1 << bit % 8


def set_byte(data: bytearray, chance: random.Random) -> None:
    """
    Overwrite one byte.
    """
    data[chance.randrange(len(data))] = chance.randrange(256)


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
    original = directory / "original"
    with EventLog.create(original, log_id="the-log") as log:
        fill(log, commits=6, jobs=40)
    content = (original / "data.mdb").read_bytes()
    outcome = Outcome()
    with Prober(directory, original, sabotage=sabotage) as prober:
        for number in range(tries):
            kind = kinds[number % len(kinds)]
            data = bytearray(content)
            DAMAGE[kind](data, chance)
            outcome.tries += 1
            answer = prober.probe(kind, bytes(data))
            outcome.saw(f"{kind}: {answer}")
            if answer.startswith(("silent", "killed", "hung")):
                outcome.violated(f"{kind}, seed {seed}, try {number}: {answer}")
    return outcome


class Prober:
    """
    Read damaged copies in a child process, made anew when one dies.
    """

    def __init__(self, directory: Path, original: Path, *, sabotage: bool) -> None:
        self._directory = directory / "copy"
        self._original = original
        self._sabotage = "sabotage" if sabotage else ""
        self._child: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def probe(self, kind: str, data: bytes) -> str:
        """
        Return what reading a damaged copy gave.
        """
        shutil.rmtree(self._directory, ignore_errors=True)
        shutil.copytree(self._original, self._directory)
        (self._directory / "data.mdb").write_bytes(data)
        child = self._child or self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write("\n")
            child.stdin.flush()
            answer = child.stdout.readline()
        except BrokenPipeError:
            answer = ""
        return str(json.loads(answer)) if answer else self._after_death(child, kind)

    def _after_death(self, child: subprocess.Popen[str], kind: str) -> str:
        """
        Say whether a reader was allowed to die.

        Swapped or doubled pages may make the engine abort the process that reads. A file that was
        cut must never: its size is looked at first. The one who verifies always tells.
        """
        status = child.wait(timeout=TIMEOUT_S)
        self._end()
        if kind == "cut" or status >= 0 or verify(self._directory, decoded=False).is_good:
            return f"killed the reader with {status}"
        return "engine aborted, named by verify"

    def _start(self) -> subprocess.Popen[str]:
        """
        Start a child.
        """
        arguments = [sys.executable, "-m", "tools.torture.damage", str(self._directory)]
        self._child = subprocess.Popen(
            [*arguments, str(self._original), self._sabotage], cwd=REPO, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return self._child

    def _end(self) -> None:
        """
        End the child.
        """
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            for pipe in (self._child.stdin, self._child.stdout):
                if pipe is not None:
                    pipe.close()
            self._child = None


def probe_here(directory: Path, truth: list[object]) -> str:
    """
    Read a damaged copy in this process; say what came of it.
    """
    try:
        with EventLog.open(directory, writable=False) as log:
            read: list[object] = []
            for envelope in log.read():
                read.append(envelope)
                if envelope != truth[len(read) - 1]:
                    return f"silent change at {len(read)}"
        report = verify_here(directory, decoded=False)
    except Corrupt as error:
        return f"named {error.kind}"
    except XceError as error:
        return f"refused {type(error).__name__}"
    if len(read) < len(truth):
        return "silent loss" if report.is_good else "named by verify"
    return "harmless" if report.is_good else "named by verify"


def serve(directory: Path, original: Path, lines: Iterator[str], answers: IO[str]) -> None:
    """
    Probe the copy for every line that comes in.
    """
    with EventLog.open(original, writable=False) as log:
        truth: list[object] = list(log.read())
    for _ in lines:
        answers.write(json.dumps(probe_here(directory, truth)) + "\n")
        answers.flush()


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


if __name__ == "__main__":
    if "sabotage" in sys.argv[3:]:
        skip_checks()
    serve(Path(sys.argv[1]), Path(sys.argv[2]), iter(sys.stdin), sys.stdout)

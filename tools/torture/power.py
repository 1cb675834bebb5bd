"""
Lose power at every moment: rebuild the disk from a recorded write log, with what was synced and any
part of what wasn't, and open it.

A scripted writer runs under strace. Each image has all that was synced at the moment, of the
unsynced writes a random part in random order, torn at sectors, and of the unsynced directory
changes a random beginning. What had been acknowledged by then must be there, whole and good.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from domain.errors import NotFound, StoreUnavailable, XceError
from store.log import EventLog
from store.snapshots import SnapshotStore
from store.verify import verify_here
from tools.torture.outcome import Outcome
from tools.torture.workload import jobs_events

SECTOR = 512
REPO = Path(__file__).resolve().parent.parent.parent
CALLS = (
    "openat,lseek,write,pwrite64,writev,pwritev,ftruncate,fdatasync,fsync,"
    "rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,close"
)
COMMITS = 14
TOO_LONG = 2_000_000
JOBS = (1, 3, 40, 2, 300)


def script(root: Path) -> None:
    """
    Be the scripted writer: create, append, take snapshots, close, open again; acknowledge each.
    """
    number = 1
    log = EventLog.create(root / "log", log_id="the-log")
    _say("created 0")
    snapshots = SnapshotStore(root / "snapshots", log_id="the-log")
    for commit in range(COMMITS):
        count = JOBS[commit % len(JOBS)]
        head = log.append(jobs_events(number, count))
        number += count
        _say(f"position {head}")
        if commit % 5 == 4:
            digest = log.digest_at(head)
            snapshots.put(
                position=head, schema="s", state=b"x" * 5000, chain_digest=digest, time_us=0
            )
            _say(f"snapshot {head}")
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


@dataclass(slots=True)
class Call:
    """
    One recorded system call that changes what is on the disk, or an acknowledgement.
    """

    kind: str
    path: str = ""
    target: str = ""
    offset: int = 0
    data: bytes = b""
    is_synced: bool = False


@dataclass(slots=True)
class Disk:
    """
    What a disk holds for certain, and what it may or may not hold.

    Args:
        durable: Content of each file by its first name.
        pending: Unsynced writes of each file: offset and bytes, or a new length and None.
        names: Durable names, each with the file that it leads to.
        changes: Unsynced changes of names, in order: name and file, or name and None.
    """

    durable: dict[str, bytes] = field(default_factory=dict)
    pending: dict[str, list[tuple[int, bytes | None]]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    changes: list[tuple[str, str | None]] = field(default_factory=list)
    current: dict[str, str] = field(default_factory=dict)
    files: int = 0

    def create(self, path: str) -> None:
        """
        Make a new file under a name.
        """
        self.files += 1
        name = f"file{self.files}"
        self.durable[name], self.pending[name] = b"", []
        self.rename_to(path, name)

    def rename_to(self, path: str, file: str | None) -> None:
        """
        Let a name lead to a file, or to none.
        """
        self.changes.append((path, file))
        if file is None:
            self.current.pop(path, None)
        else:
            self.current[path] = file

    def sync_file(self, path: str) -> None:
        """
        Make a file's content durable.
        """
        file = self.current.get(path)
        if file is not None:
            self.durable[file] = _applied(self.durable[file], self.pending[file])
            self.pending[file] = []

    def sync_directory(self, path: str) -> None:
        """
        Make the names in a directory durable.
        """
        left = []
        for name, file in self.changes:
            if name.rpartition("/")[0] != path:
                left.append((name, file))
            elif file is None:
                self.names.pop(name, None)
            else:
                self.names[name] = file
        self.changes = left

    def image(self, chance: random.Random) -> dict[str, bytes]:
        """
        Return files by name as they may be found after a power loss now.
        """
        names = dict(self.names)
        for name, file in self.changes[: chance.randint(0, len(self.changes))]:
            if file is None:
                names.pop(name, None)
            else:
                names[name] = file
        contents = {}
        for file in set(names.values()):
            survivors = [write for write in self.pending[file] if chance.random() < 0.5]
            chance.shuffle(survivors)
            torn = [part for write in survivors for part in _torn(write, chance)]
            contents[file] = _applied(self.durable[file], torn)
        return {name: contents[file] for name, file in names.items()}


def _torn(
    write: tuple[int, bytes | None], chance: random.Random
) -> Iterator[tuple[int, bytes | None]]:
    """
    Yield a write whole, or only some of its sectors.
    """
    offset, data = write
    if data is None or chance.random() < 0.5:
        yield write
        return
    for at in range(0, len(data), SECTOR):
        if chance.random() < 0.5:
            yield offset + at, data[at : at + SECTOR]


def _applied(content: bytes, writes: Iterable[tuple[int, bytes | None]]) -> bytes:
    """
    Return content with writes done.
    """
    result = bytearray(content)
    for offset, data in writes:
        if data is None:
            del result[offset:]
            result.extend(bytes(offset - len(result)))
            continue
        if len(result) < offset + len(data):
            result.extend(bytes(offset + len(data) - len(result)))
        result[offset : offset + len(data)] = data
    return bytes(result)


def record(root: Path, trace: Path) -> list[Call]:
    """
    Run the scripted writer under strace and return what it did to the disk.
    """
    done = subprocess.run(
        ["strace", "-qq", "-y", "-xx", "-s", str(TOO_LONG), "-o", trace, "-e", f"trace={CALLS}",
         sys.executable, "-m", "tools.torture.power", "script", str(root)],
        cwd=REPO, capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    assert "position" in done.stdout
    calls = list(_calls(trace.read_text(errors="replace").splitlines(), str(root)))
    trace.unlink()
    return calls


_LINE = re.compile(r"(\w+)\((.*)\)\s+= (-?\d+)(?:<(.*)>)?")
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_FD = re.compile(r"^(\d+)<([^>]*)>")


def _plain(text: str) -> str:
    """
    Return a path that strace wrote, in hexadecimal or not.
    """
    if "\\x" not in text:
        return text
    return bytes.fromhex(text.replace("\\x", "")).decode(errors="replace")


def _calls(lines: list[str], root: str) -> Iterator[Call]:
    """
    Read strace's lines.
    """
    handles = Handles(root)
    for line in lines:
        found = _LINE.match(line)
        if found is not None and int(found[3]) >= 0:
            name, arguments, result, opened = found[1], found[2], int(found[3]), found[4]
            yield from handles.read(name, arguments, result, _plain(opened or ""))


class Handles:
    """
    Know what the traced process has open: places in files, and which are written through.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._offsets: dict[int, int] = {}
        self._through: set[int] = set()
        self._known: set[str] = set()

    def read(self, name: str, arguments: str, result: int, opened: str) -> Iterator[Call]:
        """
        Yield what a traced call did to the disk.
        """
        strings = [bytes.fromhex(text.replace("\\x", "")) for text in _STRING.findall(arguments)]
        handle = _FD.match(arguments)
        number, path = (int(handle[1]), _plain(handle[2])) if handle else (-1, "")
        if name == "openat":
            yield from self._open(result, opened, arguments)
        elif name == "write" and number == 1:
            yield Call("say", data=strings[0])
        elif name == "lseek":
            self._offsets[number] = result
        elif "write" in name and path.startswith(self._root):
            yield self._write(number, path, b"".join(strings)[:result], name, arguments)
        elif name == "ftruncate" and path.startswith(self._root):
            yield Call("truncate", path, offset=int(arguments.rpartition(",")[2]))
        elif "sync" in name and path.startswith(self._root):
            yield Call("sync", path)
        elif strings and strings[0].decode(errors="replace").startswith(self._root):
            yield from self._names(name, [text.decode() for text in strings])

    def _open(self, number: int, path: str, arguments: str) -> Iterator[Call]:
        """
        Remember a handle, and yield the making of a file.
        """
        self._offsets[number] = 0
        self._through.discard(number)
        if "O_DSYNC" in arguments:
            self._through.add(number)
        is_new = "O_CREAT" in arguments and path not in self._known
        if is_new and path.startswith(self._root):
            self._known.add(path)
            yield Call("create", path)

    def _write(self, number: int, path: str, data: bytes, name: str, arguments: str) -> Call:
        """
        Return a write at its place.
        """
        if name.startswith("pwrite"):
            at = int(arguments.rpartition(",")[2])
        else:
            at = self._offsets.get(number, 0)
            self._offsets[number] = at + len(data)
        return Call("write", path, offset=at, data=data, is_synced=number in self._through)

    def _names(self, name: str, paths: list[str]) -> Iterator[Call]:
        """
        Yield a change of names.
        """
        if name.startswith(("rename", "link")):
            self._known.add(paths[1])
            yield Call("rename" if name.startswith("rename") else "link", paths[0], paths[1])
        if name.startswith(("rename", "unlink")):
            self._known.discard(paths[0])
        if name.startswith("unlink"):
            yield Call("unlink", paths[0])


def apply(disk: Disk, call: Call, *, without_syncs: bool) -> None:
    """
    Do a call to a disk.

    Args:
        disk: Changed in place.
        call: What to do.
        without_syncs: Be the sabotage: a disk, or a program, that doesn't sync.
    """
    file = disk.current.get(call.path)
    if call.kind == "create":
        disk.create(call.path)
    elif call.kind == "write" and file is not None:
        disk.pending[file].append((call.offset, call.data))
        if call.is_synced and not without_syncs:
            # Written through: this write is durable, the others aren't by it.
            disk.pending[file].pop()
            disk.durable[file] = _applied(disk.durable[file], [(call.offset, call.data)])
    elif call.kind == "truncate" and file is not None:
        disk.pending[file].append((call.offset, None))
    elif call.kind == "sync" and not without_syncs:
        disk.sync_file(call.path)
        disk.sync_directory(call.path)
    elif call.kind in ("rename", "link"):
        disk.rename_to(call.target, file)
        if call.kind == "rename":
            disk.rename_to(call.path, None)
    elif call.kind == "unlink":
        disk.rename_to(call.path, None)


def run(directory: Path, *, images: int, seed: int, sabotage: bool = False) -> Outcome:
    """
    Record the writer once and open so many images of moments of it.

    Args:
        directory: An empty place.
        images: How many.
        seed: What moments and losses are drawn from.
        sabotage: Leave the syncs out.
    """
    root = directory / "root"
    root.mkdir()
    calls = record(root, directory / "trace")
    chance = random.Random(seed)  # noqa: S311 - a seed, to repeat it
    moments = sorted(chance.randrange(len(calls) + 1) for _ in range(images))
    outcome = Outcome()
    disk, done, said = Disk(), 0, ""
    checker = Checker(directory / "image", root)
    try:
        for moment in moments:
            while done < moment:
                call = calls[done]
                said = call.data.decode() + said if call.kind == "say" else said
                apply(disk, call, without_syncs=sabotage)
                done += 1
            outcome.tries += 1
            answer = checker.check(disk.image(chance), said)
            outcome.saw(answer.partition(":")[0])
            if answer.startswith("bad"):
                outcome.violated(f"seed {seed}, after call {done} of {len(calls)}: {answer}")
    finally:
        checker.close()
    return outcome


class Checker:
    """
    Open images in a child process, made anew when one dies.
    """

    def __init__(self, image: Path, root: Path) -> None:
        self._image = image
        self._root = root
        self._child: subprocess.Popen[str] | None = None

    def check(self, files: dict[str, bytes], said: str) -> str:
        """
        Return what opening an image gave.
        """
        shutil.rmtree(self._image, ignore_errors=True)
        for name, content in files.items():
            path = self._image / Path(name).relative_to(self._root)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self._image.mkdir(exist_ok=True)
        child = self._child or self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps(said.splitlines()) + "\n")
        child.stdin.flush()
        answer = child.stdout.readline()
        if not answer:
            status = child.wait(timeout=60)
            self.close()
            return f"bad: the process was ended with {status}"
        return str(json.loads(answer))

    def _start(self) -> subprocess.Popen[str]:
        """
        Start a child.
        """
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tools.torture.power", "check", str(self._image)],
            cwd=REPO, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return self._child

    def close(self) -> None:
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


def examine(image: Path, said: list[str]) -> str:
    """
    Open an image of a disk and hold it against what had been acknowledged.
    """
    last = {"created": -1, "position": 0, "snapshot": 0}
    for line in reversed(said):
        kind, number = line.split()
        last[kind] = int(number)
    try:
        with EventLog.open(image / "log", writable=True) as log:
            head = log.head()
            events = [envelope.stamped() for envelope in log.read()]
            digests = {position: log.digest_at(position) for position in (head, last["snapshot"])}
    except (NotFound, StoreUnavailable, XceError) as error:
        if last["created"] >= 0:
            return f"bad: {error}"
        return _begin_again(image)
    report = verify_here(image / "log", decoded=False)
    truth = jobs_events(1, len(events) // 4)
    if head < last["position"]:
        return f"bad: {last['position']} was acknowledged, the log ends at {head}"
    if not report.is_good or events != truth:
        return f"bad: {report.first_problem}"
    if last["snapshot"]:
        store = SnapshotStore(image / "snapshots", log_id="the-log")
        found = store.newest_good(
            schema="s", head=head, digest_at=lambda position: digests.get(position, b"")
        )
        if found is None or found.position < last["snapshot"]:
            return f"bad: the snapshot at {last['snapshot']} is gone"
    return "good"


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


def main(arguments: list[str]) -> None:
    """
    Be the scripted writer, or the one who opens images.
    """
    if arguments[0] == "script":
        script(Path(arguments[1]))
        return
    for line in sys.stdin:
        answer = examine(Path(arguments[1]), json.loads(line))
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])

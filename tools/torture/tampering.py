"""
Tamper with a log as somebody would who knows the format: every change carries a right checksum.

The chain must show what was removed, inserted, doubled, reordered, re-dated or edited; what only an
outside anchor can show (a cut tail, an older copy, a chain computed anew) must be shown with the
anchor.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import lmdb

from domain.errors import Corrupt
from store.chain import frame_digest
from store.compression import compress
from store.embedded.frames import (
    RAW,
    ZSTD,
    Header,
    decode_columns,
    encode_columns,
    join_frame,
    raw_payload,
    read_header,
)
from store.embedded.layout import number_bytes, number_of
from store.heads import Head, check_against, head_of
from store.log import EventLog
from store.verify import verify_here
from tools.torture.outcome import Outcome
from tools.torture.workload import fill, jobs_events

COMMITS = 12
MAP_BYTES = 1 << 30
Frames = dict[int, bytes]


@dataclass(frozen=True, slots=True)
class Kind:
    """
    A way to tamper.

    Args:
        change: Changes the frames by position.
        needs_anchor: Whether only a head kept elsewhere can show it.
    """

    change: Callable[[Frames, random.Random], None]
    needs_anchor: bool = False


def with_payload(frame: bytes, raw: bytes, *, rehash: bool, header: Header | None = None) -> bytes:
    """
    Return a frame with another payload and header, its checksum right, its digest if wanted.
    """
    changed = (header or read_header(frame))._replace(raw_length=len(raw))
    if rehash:
        digest = frame_digest(
            changed.previous, changed.flags, changed.first_position, changed.events,
            changed.epoch, changed.topic_mask, raw,
        )  # fmt: skip
        changed = changed._replace(digest=digest)
    packed = compress(raw)
    codec, stored = (ZSTD, packed) if len(packed) < len(raw) else (RAW, raw)
    return join_frame(changed._replace(codec=codec, stored_length=len(stored)), stored)


def moved(frame: bytes, first_position: int) -> bytes:
    """
    Return a frame that says it is at another position.
    """
    header = read_header(frame)
    raw = raw_payload(frame, header)
    there = header._replace(first_position=first_position)
    return with_payload(frame, raw, rehash=False, header=there)


def edited(frame: bytes, chance: random.Random, *, rehash: bool) -> bytes:
    """
    Return a frame with another exit code in one event.
    """
    header = read_header(frame)
    columns = decode_columns(raw_payload(frame, header), header.events)
    states = list(columns.states)
    chosen = [at for at, state in enumerate(states) if b'"exit_code":0' in state]
    at = chance.choice(chosen)
    states[at] = states[at].replace(b'"exit_code":0', b'"exit_code":7')
    return with_payload(frame, encode_columns(columns._replace(states=states)), rehash=rehash)


def _any(frames: Frames, chance: random.Random) -> int:
    """
    Choose a frame that isn't the last.
    """
    return chance.choice(sorted(frames)[:-1])


def edit(frames: Frames, chance: random.Random) -> None:
    """
    Change an event.
    """
    at = _any(frames, chance)
    frames[at] = edited(frames[at], chance, rehash=False)


def edit_and_hash(frames: Frames, chance: random.Random) -> None:
    """
    Change an event and the digest of its frame, but not of the later ones.
    """
    at = _any(frames, chance)
    frames[at] = edited(frames[at], chance, rehash=True)


def redate(frames: Frames, chance: random.Random) -> None:
    """
    Change the time of an event.
    """
    at = _any(frames, chance)
    header = read_header(frames[at])
    raw = raw_payload(frames[at], header).replace(b'{"t":1000000', b'{"t":1000001', 1)
    frames[at] = with_payload(frames[at], raw, rehash=False)


def raise_epoch(frames: Frames, chance: random.Random) -> None:
    """
    Pretend that another writer wrote a frame.
    """
    at = _any(frames, chance)
    header = read_header(frames[at])
    raw = raw_payload(frames[at], header)
    frames[at] = with_payload(frames[at], raw, rehash=False, header=header._replace(epoch=9))


def remove(frames: Frames, chance: random.Random) -> None:
    """
    Take a frame out.
    """
    del frames[_any(frames, chance)]


def remove_and_renumber(frames: Frames, chance: random.Random) -> None:
    """
    Take a frame out and close the gap in the positions.
    """
    gone = _any(frames, chance)
    count = read_header(frames.pop(gone)).events
    for first in [first for first in sorted(frames) if first > gone]:
        frames[first - count] = moved(frames.pop(first), first - count)


def double(frames: Frames, chance: random.Random) -> None:
    """
    Put a copy of a frame in the place of the next.
    """
    order = sorted(frames)
    at = chance.randrange(len(order) - 1)
    frames[order[at + 1]] = frames[order[at]]


def swap(frames: Frames, chance: random.Random) -> None:
    """
    Exchange two frames, with their positions made to fit.
    """
    one, two = chance.sample(sorted(frames)[:-1], 2)
    frames[one], frames[two] = moved(frames[two], one), moved(frames[one], two)


def insert(frames: Frames, chance: random.Random) -> None:
    """
    Put a frame of one's own behind the end, with a digest made up.
    """
    last = max(frames)
    header: Header = read_header(frames[last])
    raw = raw_payload(frames[last], header)
    first = header.last_position + 1
    there = header._replace(first_position=first, previous=chance.randbytes(32))
    frames[first] = with_payload(frames[last], raw, rehash=True, header=there)


def cut_tail(frames: Frames, chance: random.Random) -> None:
    """
    Remove the last commits.
    """
    for first in sorted(frames)[-chance.randint(1, 3) :]:
        del frames[first]


def compute_anew(frames: Frames, chance: random.Random) -> None:
    """
    Change an event and compute the digests of everything behind it.
    """
    at = _any(frames, chance)
    frames[at] = edited(frames[at], chance, rehash=True)
    digest = read_header(frames[at]).digest
    for first in [first for first in sorted(frames) if first > at]:
        header = read_header(frames[first])
        raw = raw_payload(frames[first], header)
        there = header._replace(previous=digest)
        frames[first] = with_payload(frames[first], raw, rehash=True, header=there)
        digest = read_header(frames[first]).digest


KINDS = {
    "edit": Kind(edit),
    "edit and hash": Kind(edit_and_hash),
    "re-date": Kind(redate),
    "epoch": Kind(raise_epoch),
    "remove": Kind(remove),
    "remove and renumber": Kind(remove_and_renumber),
    "double": Kind(double),
    "swap": Kind(swap),
    "insert": Kind(insert),
    "cut tail": Kind(cut_tail, needs_anchor=True),
    "compute anew": Kind(compute_anew, needs_anchor=True),
}


def run(directory: Path, *, tries: int, seed: int, sabotage: bool = False) -> Outcome:
    """
    Tamper so many times.

    Args:
        directory: An empty place.
        tries: How often.
        seed: What the changes are drawn from.
        sabotage: Verify without comparing digests.
    """
    chance = random.Random(seed)  # noqa: S311 - a seed, to repeat it
    original = directory / "original"
    with EventLog.create(original, log_id="the-log") as log:
        fill(log, commits=COMMITS, jobs=5)
        log.append(jobs_events(1000, 2))
        head = head_of(log)
    outcome = Outcome()
    for number in range(tries):
        name, kind = list(KINDS.items())[number % len(KINDS)]
        copy = directory / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(original, copy)
        rewrite(copy, kind, chance)
        outcome.tries += 1
        _judge(copy, name, kind, head, outcome, sabotage=sabotage)
    return outcome


def rewrite(directory: Path, kind: Kind, chance: random.Random) -> None:
    """
    Change the frames of a log behind its back.
    """
    with lmdb.open(str(directory), max_dbs=16, map_size=MAP_BYTES) as environment:
        database = environment.open_db(b"events.log")
        with environment.begin(write=True, db=database) as transaction:
            frames = {number_of(bytes(key)): bytes(frame) for key, frame in transaction.cursor()}
            before = set(frames)
            kind.change(frames, chance)
            for first in before - set(frames):
                transaction.delete(number_bytes(first))
            for first, frame in frames.items():
                transaction.put(number_bytes(first), frame)


def _judge(
    directory: Path, name: str, kind: Kind, head: Head, outcome: Outcome, *, sabotage: bool
) -> None:
    """
    See whether a change is shown.
    """
    report = verify_here(directory)
    found = report.first_problem
    if sabotage and found is not None and found.kind == "chain":
        found = None
    if found is not None:
        outcome.saw(f"{name}: {found.kind}")
        return
    try:
        with EventLog.open(directory, writable=False) as log:
            check_against(log, head)
    except Corrupt as error:
        outcome.saw(f"{name}: {error.kind} by the anchor")
        if not kind.needs_anchor:
            outcome.violated(f"{name} was only shown by the anchor")
        return
    outcome.violated(f"{name} was not shown at all")

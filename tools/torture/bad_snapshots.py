"""
Damage snapshots: a bad one is named and skipped, and what is given is the state that was taken.
"""

from __future__ import annotations

import random
from pathlib import Path

import zstandard

from store import snapshots
from store.snapshot_files import SnapshotHeader, read_header
from store.snapshots import SnapshotStore
from tools.torture.damage import DAMAGE
from tools.torture.outcome import Outcome

POSITIONS = (10, 20, 30)
SCHEMA = "core:1"


def run(directory: Path, *, tries: int, seed: int, sabotage: bool = False) -> Outcome:
    """
    Damage one, two or all of three snapshots so many times.

    Args:
        directory: An empty place.
        tries: How often.
        seed: What the damage is drawn from.
        sabotage: Compare nothing when a snapshot is read.
    """
    chance = random.Random(seed)  # noqa: S311 - a seed, to repeat it
    store = SnapshotStore(directory / "snapshots", log_id="the-log")
    states = {position: chance.randbytes(300) for position in POSITIONS}
    for position, state in states.items():
        store.put(
            position=position, schema=SCHEMA, state=state, chain_digest=_digest(position),
            time_us=position,
        )  # fmt: skip
    whole = {entry.position: entry.path.read_bytes() for entry in store.entries()}
    paths = {entry.position: entry.path for entry in store.entries()}
    outcome = Outcome()
    original = vars(snapshots)["read_snapshot"]
    if sabotage:
        vars(snapshots)["read_snapshot"] = _read_unchecked
    try:
        for number in range(tries):
            _try(store, states, whole, paths, number, chance, outcome)
    finally:
        vars(snapshots)["read_snapshot"] = original
    return outcome


def _try(
    store: SnapshotStore,
    states: dict[int, bytes],
    whole: dict[int, bytes],
    paths: dict[int, Path],
    number: int,
    chance: random.Random,
    outcome: Outcome,
) -> None:
    """
    Damage some, look for the newest good one, and mend them again.
    """
    damaged = POSITIONS[-(1 + number % 3) :]
    changed = []
    kinds = [kind for kind in DAMAGE if kind not in ("swap", "double", "page")]
    for position in damaged:
        data = bytearray(whole[position])
        DAMAGE[chance.choice(kinds)](data, chance)
        paths[position].write_bytes(data)
        if data != whole[position]:
            changed.append(position)
    outcome.tries += 1
    good = [position for position in POSITIONS if position not in changed]
    found = store.newest_good(schema=SCHEMA, head=99, digest_at=_digest)
    if found is None:
        outcome.saw("none left")
        if good:
            outcome.violated(f"try {number}: {max(good)} is good and was not taken")
    else:
        outcome.saw(f"fell back {POSITIONS.index(POSITIONS[-1]) - POSITIONS.index(found.position)}")
        if found.state != states[found.position] or found.time_us != found.position:
            outcome.violated(f"try {number}: a state that was never taken at {found.position}")
        elif good and found.position < max(good):
            outcome.violated(f"try {number}: {max(good)} is good and was not taken")
    if len(store.problems) < len([at for at in changed if found is None or at > found.position]):
        outcome.violated(f"try {number}: a bad snapshot was skipped without a word")
    for position in damaged:
        paths[position].write_bytes(whole[position])


def _digest(position: int) -> bytes:
    """
    Stand for the log's chain.
    """
    return position.to_bytes(32, "big")


def _read_unchecked(path: Path) -> tuple[SnapshotHeader, bytes]:
    """
    Be the sabotage: take whatever comes out, as long as the header can be read.
    """
    content = path.read_bytes()
    header = read_header(path)
    rest = content[len(content) - header.stored_size :]
    try:
        return header, zstandard.ZstdDecompressor().decompressobj().decompress(rest)
    except zstandard.ZstdError:
        return header, rest

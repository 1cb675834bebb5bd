"""
Make the golden log of the present record format: python -m tools.dev.golden DIRECTORY.

It is made once for each format and never again; the tests read it for ever.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from pathlib import Path

from store.archive import SEGMENT_EVENTS
from store.embedded.layout import FORMAT
from store.log import EventLog
from store.snapshots import SnapshotStore
from store.transfer import export_log
from tools.torture.workload import jobs_events

LOG_ID = "golden"
STATE = b'{"golden":true}'


def write_log(directory: Path) -> dict[str, object]:
    """
    Write what every golden log holds: commits of one and more frames, two writers, an archive.
    """
    with EventLog.create(directory / "log", log_id=LOG_ID) as log:
        for commit in range(5):
            log.append(jobs_events(1 + commit * 10, 10))
        log.append(jobs_events(100, 1100))
    with EventLog.open(directory / "log", writable=True) as log:
        log.append(jobs_events(5000, 1))
        log.archive(120, segment_events=SEGMENT_EVENTS)
        head = log.head()
        snapshots = SnapshotStore(directory / "snapshots", log_id=LOG_ID)
        snapshots.put(
            position=head, schema="golden", state=STATE, chain_digest=log.head_digest(), time_us=0
        )
        return {
            "format": FORMAT,
            "log_id": log.log_id,
            "events": head,
            "epoch": log.epoch,
            "frames": log.info().frames,
            "archived_events": log.info().archived_events,
            "digests": {str(at): log.digest_at(at).hex() for at in (0, 1, 40, 120, 130, head)},
        }


def main(target: Path) -> None:
    """
    Make the files: data and archive packed, marker, expectations, and the log as JSON lines.
    """
    with tempfile.TemporaryDirectory() as place:
        made = Path(place)
        expected = write_log(made)
        target.mkdir(parents=True)
        for path in sorted(made.rglob("*")):
            if path.is_file() and path.name not in ("LOCK", "lock.mdb"):
                name = str(path.relative_to(made)).replace("/", "__") + ".gz"
                (target / name).write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
        export_log(made / "log", target / "log.jsonl.zst")
        (target / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

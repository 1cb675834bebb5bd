"""
The same input gives the same bytes: under any hash seed, locale and time zone, from any snapshot.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from projections.scheduling.core import Core
from replay.at import Ladder
from replay.entities import digest_of
from replay.verify import verify
from store.log import EventLog
from tests.replay.conftest import SMALL

REPO = Path(__file__).parents[2]
ENVIRONMENTS = [
    {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C"},
    {"PYTHONHASHSEED": "1", "TZ": "Asia/Kathmandu", "LC_ALL": "C.UTF-8"},
    {"PYTHONHASHSEED": "random", "TZ": "America/St_Johns", "LC_ALL": "tr_TR.UTF-8"},
]
SCRIPT = "trace on all\nbreak decision *\ncontinue\ninfo jobs\ngoto end\ninfo trace 4\nhash\n"
COMMANDS = """
import io, sys
from tools.cli.main import run
def xce(text, piped=""):
    sys.stdin = io.StringIO(piped)
    print(run(text.split()), text, flush=True)
xce("simulate small.swf --picker easy --log log --no-progress")
xce("simulate small.swf --picker fairshare --estimates random:3 --seed 7 --load 1.5 --log two")
for log in ("log", "two"):
    xce(f"log head {log}")
    xce(f"log export {log} {log}.jsonl --states-every 9 --anonymise")
    xce(f"replay verify {log} --json")
    xce(f"replay check {log}.jsonl --json")
xce("replay state log --at 1970-01-01T00:01:40 --hash")
xce("replay branch log --at 20 --log branch --set queue.priority=7 --add-hosts 1x2")
xce("log head branch")
xce("replay diff log branch --json")
xce("replay debug log", SCRIPT)
"""


@pytest.mark.slow
def test_every_replay_command_gives_the_same_bytes_in_every_environment(tmp_path):
    """
    Simulations, exports, verdicts, states, branches, differences and debugger sessions with traces.
    """
    shown = []
    for number, variables in enumerate(ENVIRONMENTS):
        place = tmp_path / str(number)
        place.mkdir()
        (place / "small.swf").write_text(SMALL)
        done = subprocess.run(
            [sys.executable, "-c", f"SCRIPT = {SCRIPT!r}\n{COMMANDS}"],
            cwd=place, env={**os.environ, **variables, "PYTHONPATH": str(REPO)},
            capture_output=True, check=True,
        )  # fmt: skip
        exports = [(place / name).read_bytes() for name in ("log.jsonl", "two.jsonl")]
        shown.append((_without_speed(done.stdout), done.stderr, exports))

    assert shown[0] == shown[1] == shown[2]
    ended = [line for line in shown[0][0].decode().splitlines() if line[1:2] == " "]
    statuses = [line for line in ended if line.split()[1] in ("simulate", "log", "replay")]
    assert set("01") == {line[:1] for line in statuses}
    assert 15 == len(statuses)


def _without_speed(text: bytes) -> bytes:
    timed = (b"jobs/s", b"time taken")
    return b"\n".join(
        line for line in text.splitlines() if not any(word in line for word in timed)
    )


@pytest.mark.needs_traces
@pytest.mark.slow
def test_from_any_snapshot_the_same_is_decided(kth_log):
    """
    A state that was written and read again decides what the log decided, and ends in the log's last
    state, byte for byte.
    """
    with EventLog.open(kth_log, writable=False) as log:
        ladder, head = Ladder(log), log.head()
        last = digest_of(ladder.at(head).core)
        for position in range(1, head, head // 12):
            moment = ladder.at(position)
            begin = Core.restore(moment.core.snapshot()), moment.position
            result = verify(log, after=moment.position, start=lambda _, begin=begin: begin)
            assert result.is_same, result.differences
            assert last == digest_of(begin[0])

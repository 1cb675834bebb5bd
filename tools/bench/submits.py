"""
Measure durable submissions: how many jobs a second are safe on disk and acknowledged by the API.

One generator process over the unix socket, requests made beforehand, connections kept. Nothing
runs: there is no host, so that only the acceptance is measured (each job is also tried and pends).
"""

from __future__ import annotations

from pathlib import Path

from tools.bench import live
from tools.bench.disk import synced_appends_per_s
from tools.bench.frame import Figure, Reading

CLIENTS = 32
ALONE = 500
TOGETHER = 4000


def measure(folder: Path) -> list[Reading]:
    """
    Take one round.
    """
    disk = synced_appends_per_s(folder)
    asked = live.submission("true")
    with live.cluster(folder / "cluster") as directory:
        live.rate_at_once(directory, asked, clients=1, count=50)
        alone = live.rate_at_once(directory, asked, clients=1, count=ALONE)
        together = live.rate_at_once(directory, asked, clients=CLIENTS, count=TOGETHER)
    return [
        Reading("synced appends of the disk", disk, "1/s"),
        Reading("one client", alone, "1/s", per="synced appends of the disk"),
        Reading("32 clients at once", together, "1/s", per="synced appends of the disk", goal=1500),
    ]


FIGURE = Figure("submits", "Durable submissions per second through the API.", measure)

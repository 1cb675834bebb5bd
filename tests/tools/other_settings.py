"""
A scheduler whose clusters begin with other settings: those in XCE_TEST_SETTINGS, as JSON.
"""

from __future__ import annotations

import json
import os

from domain.cluster import ClusterSettings
from domain.commands import DefineCluster, DefineQueue
from tools.daemon import process
from tools.daemon.__main__ import main
from tools.daemon.config import DaemonSettings, first_commands

VARIABLE = "XCE_TEST_SETTINGS"


def _other(settings: DaemonSettings) -> tuple[DefineCluster, DefineQueue]:
    cluster, queue = first_commands(settings)
    changed = {**dict(cluster.settings), **json.loads(os.environ[VARIABLE])}
    return DefineCluster(settings=ClusterSettings(**changed)), queue


if __name__ == "__main__":
    process.first_commands = _other
    raise SystemExit(main())

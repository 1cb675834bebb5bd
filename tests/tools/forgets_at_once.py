"""
A scheduler whose clusters forget ended jobs at once.
"""

from __future__ import annotations

from domain.commands import DefineCluster, DefineQueue
from tools.daemon import process
from tools.daemon.__main__ import main
from tools.daemon.config import DaemonSettings, first_commands


def _forgetful(settings: DaemonSettings) -> tuple[DefineCluster, DefineQueue]:
    cluster, queue = first_commands(settings)
    changed = cluster.settings.model_copy(update={"clean_period_us": 1000, "forget_batch": 1})
    return cluster.model_copy(update={"settings": changed}), queue


if __name__ == "__main__":
    process.first_commands = _forgetful
    raise SystemExit(main())

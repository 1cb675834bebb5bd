"""
A PostgreSQL server of the tests' own: in a temporary directory, on a free port, ended afterwards.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


def _free_port() -> int:
    """
    Return a port that nobody listens on now.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def server() -> Iterator[dict[str, str]]:
    """
    Start a server; give the settings of the library's PostgreSQL module for it.
    """
    directory = Path(tempfile.mkdtemp(prefix="xce-postgres-"))
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if as_user:
        shutil.chown(directory, "postgres")
    control = [*as_user, str(BINARIES[-1] / "pg_ctl"), "-D", str(directory / "data"), "-w"]
    port = _free_port()
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -k {directory} -c max_connections=50"

    def run(*arguments: str) -> None:
        subprocess.run([*control, *arguments], check=True, capture_output=True, cwd="/", timeout=60)

    try:
        run("initdb", "-o", "--auth=trust --username=postgres --no-sync")
        run("start", "-l", str(directory / "log"), "-o", options)
        try:
            yield {
                "POSTGRES_DBNAME": "postgres",
                "POSTGRES_HOST": "127.0.0.1",
                "POSTGRES_PORT": str(port),
                "POSTGRES_USER": "postgres",
                "POSTGRES_PASSWORD": "unused",
                "ORIGINATOR_ID_TYPE": "text",
            }
        finally:
            run("stop", "-m", "immediate")
    finally:
        shutil.rmtree(directory, ignore_errors=True)

"""
The process that keeps the audit tables up with the log while a scheduler runs.

It hears that its scheduler is gone, however that ended, by the end of the pipe between them: so
none is ever left behind, and nobody has to remember its number. The scheduler starts it, and looks
at it again only when it ends itself.
"""

from __future__ import annotations

import subprocess
import sys

from tools.daemon.config import ClusterFiles
from tools.daemon.journal import Journal

END_S = 5.0


class AuditFollower:
    """
    Hold the follower of one scheduler.
    """

    def __init__(self, files: ClusterFiles, journal: Journal) -> None:
        self._files = files
        self._journal = journal
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """
        Start it; without one the tables are brought up by whoever asks them.
        """
        arguments = ["--until-eof", str(self._files.directory)]
        try:
            with self._files.follower_log.open("ab") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "tools.follower", *arguments],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError as error:
            self._journal.error("no audit follower", error=str(error))
            return
        self._journal.info("audit follower started", pid=self._process.pid)

    def end(self) -> None:
        """
        Let it end, and see that it does: killed anywhere its tables stay whole.
        """
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._journal.info("audit follower ended", status=self._process.returncode)

"""
Where a worker keeps what is its own (DIR/workers/NAME), and which files of a job are meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

SOCKET_NAME = "xce.sock"
_LETTER = re.compile("%([JI%])")


@dataclass(frozen=True, slots=True)
class WorkerFiles:
    """
    Name the files of one worker.

    Args:
        cluster: The cluster's directory.
        worker: The worker's name.
    """

    cluster: Path
    worker: str

    @property
    def directory(self) -> Path:
        """
        Return the worker's own directory.
        """
        return self.cluster / "workers" / self.worker

    @property
    def scheduler_socket(self) -> Path:
        """
        Return where the scheduler listens.
        """
        return self.cluster / SOCKET_NAME

    @property
    def launcher_socket(self) -> Path:
        """
        Return where the worker's launcher listens.
        """
        return self.directory / "launcher.sock"

    @property
    def launcher_lock(self) -> Path:
        """
        Return what the living launcher holds locked.
        """
        return self.directory / "launcher.lock"

    @property
    def agent_lock(self) -> Path:
        """
        Return what the living agent holds locked; its process id is in it.
        """
        return self.directory / "agent.lock"

    @property
    def spool(self) -> Path:
        """
        Return the launcher's journal of starts and ends.
        """
        return self.directory / "spool"

    @property
    def jobs(self) -> Path:
        """
        Return where each attempt without paths of its own has its directory.
        """
        return self.directory / "jobs"

    def log(self, program: str) -> Path:
        """
        Return where a program of this worker writes its log lines.
        """
        return self.directory / f"{program}.log"


def expand_path(text: str, job_id: str) -> str:
    """
    Return the path that a text stands for in a job: %J is the job's number without an index, %I its
    index in an array (0 outside of one), %% a single %; anything else stays as it is.
    """
    number, _, index = job_id.rstrip("]").partition("[")
    meant = {"J": number, "I": index or "0", "%": "%"}
    return _LETTER.sub(lambda found: meant[found[1]], text)

"""
A real scheduler process with real local workers, for tests: started, killed, started again, ended.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.agent import sockets
from tools.agent.files import SOCKET_NAME, WorkerFiles
from tools.agent.locks import holder, is_locked
from tools.daemon.process import stop_all

DEADLINE_S = 40.0


class Connection(http.client.HTTPConnection):
    """
    Speak HTTP over the cluster's socket.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__("xce", timeout=DEADLINE_S)
        self._directory = directory

    def connect(self) -> None:
        self.sock = sockets.connect(self._directory / SOCKET_NAME, timeout_s=DEADLINE_S)


class Cluster:
    """
    Be a cluster in a directory.

    Args:
        program: What runs the scheduler; the real one when None.
    """

    def __init__(
        self,
        directory: Path,
        *,
        workers: int = 2,
        slots: int = 2,
        program: list[str] | None = None,
        options: tuple[str, ...] = (),
    ) -> None:
        self.directory = directory
        self.workers = workers
        self._arguments = [
            sys.executable,
            "-P",
            *(program or ["-m", "tools.daemon"]),
            "--dir",
            str(directory),
            "--workers",
            str(workers),
            "--worker-slots",
            str(slots),
            *options,
        ]
        self.process: subprocess.Popen[str] | None = None
        self._connection: Connection | None = None

    # -- processes

    def start(self) -> dict[str, Any]:
        """
        Start the scheduler and return its ready line.
        """
        self.process = subprocess.Popen(self._arguments, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the scheduler ended with {self._reap()}"
        ready: dict[str, Any] = json.loads(line)
        return ready

    def kill(self) -> None:
        """
        Kill the scheduler as a crash does, and wait until it is gone.
        """
        assert self.process is not None
        self.process.kill()
        self._reap()

    def stop(self) -> int:
        """
        End the scheduler in good order; its workers live on.
        """
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self._reap()

    def _reap(self) -> int:
        assert self.process is not None
        assert self.process.stdout is not None
        status = self.process.wait(DEADLINE_S)
        self.process.stdout.close()
        self.close()
        return status

    def kill_agent(self, name: str) -> None:
        """
        Kill a worker's agent; its launcher and jobs live on.
        """
        files = WorkerFiles(self.directory, name)
        pid = until(lambda: holder(files.agent_lock), "the agent lives")
        os.kill(pid, signal.SIGKILL)
        until(lambda: not is_locked(files.agent_lock), "the agent is gone")

    def end(self) -> None:
        """
        End everything.
        """
        if self.process is not None and self.process.poll() is None:
            self.kill()
        self.close()
        stop_all(self.directory)

    # -- asking

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def ask(self, method: str, target: str, body: object = None) -> tuple[int, dict[str, Any]]:
        """
        Return status and answer.

        Raises:
            OSError, http.client.HTTPException: There was none.
        """
        if self._connection is None:
            self._connection = Connection(self.directory)
        try:
            content = body if body is None or isinstance(body, bytes) else json.dumps(body)
            self._connection.request(method, target, content)
            response = self._connection.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def get(self, target: str) -> dict[str, Any]:
        status, answer = self.ask("GET", target)
        assert status == 200, (status, answer)
        return answer

    def post(self, target: str, body: object = None) -> dict[str, Any]:
        status, answer = self.ask("POST", target, {} if body is None else body)
        assert status in (200, 201), (status, answer)
        return answer

    def submit(self, *argv: str, **fields: object) -> str:
        """
        Submit a program and return the job's id.
        """
        program = {"argv": argv, "env": [{"name": "PATH", "value": "/usr/bin:/bin"}]}
        job_id: str = self.post("/v1/jobs", {"program": program, **fields})["job_id"]
        return job_id

    def shell(self, text: str, **fields: object) -> str:
        return self.submit("sh", "-c", text, **fields)

    def job(self, job_id: str) -> dict[str, Any]:
        return self.get(f"/v1/jobs/{job_id}")

    def wait_state(self, job_id: str, *states: str) -> dict[str, Any]:
        return until(
            lambda: found if (found := self.job(job_id))["state"] in states else None,
            f"job {job_id} is {states}",
        )

    def wait_ended(self, job_id: str) -> dict[str, Any]:
        return self.wait_state(job_id, "DONE", "EXIT")

    def wait_hosts(self, count: int | None = None) -> None:
        wanted = self.workers if count is None else count
        until(lambda: self.get("/v1/status")["hosts"].get("ok", 0) >= wanted, "all hosts joined")


def until(holds: Callable[[], Any], what: str) -> Any:
    """
    Return what a condition gives, as soon as it gives something.
    """
    deadline = time.monotonic() + DEADLINE_S
    while True:
        found = holds()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {DEADLINE_S} s: {what}"
        time.sleep(0.005)


@contextmanager
def running(directory: Path, **settings: Any) -> Iterator[Cluster]:
    """
    Give a cluster whose scheduler serves and whose workers have joined; all ends afterwards.
    """
    cluster = Cluster(directory, **settings)
    try:
        cluster.start()
        cluster.wait_hosts()
        yield cluster
    finally:
        cluster.end()

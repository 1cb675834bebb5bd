"""
Start one program by posix_spawn: files, directory, mask and environment as asked, in a process
group of its own.

The launcher is single-threaded, so it may change its own directory and mask for the moment of the
start.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tools.agent.messages import StartRequest

DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
REST_DIRECTORY = "/"
# Python ignores some signals, and what is ignored stays so through an exec: a job begins with all
# at their default.
_DEFAULT_SIGNALS = tuple(
    number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)
)
_INPUT_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY
_OUTPUT_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY


HOST_FAULTS = frozenset(
    (
        errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EIO, errno.ESTALE,
        errno.ENODEV, errno.ENXIO, errno.EHOSTDOWN, errno.ETIMEDOUT,
    )
)  # fmt: skip
"""What another host may do better: processes, files and space that are used up, disks that fail."""


class CannotStart(Exception):  # noqa: N818 - it says what happened
    """
    Say why a program couldn't be started.

    Args:
        why: In words.
        fault: What of the host was at fault: memory or host; "" when the job's own wish can't be
            carried out anywhere like this.
    """

    def __init__(self, why: str, fault: str = "") -> None:
        super().__init__(why)
        self.fault = fault


def start(request: StartRequest) -> int:
    """
    Start the program and return its process id, which is its process group too.

    Raises:
        CannotStart: A file, the directory or the program is missing or barred.
    """
    mask = None if request.umask is None else os.umask(request.umask)
    files: list[int] = []
    try:
        _enter(request)
        with _named("program", request.argv[0]):
            program = _find(request.argv[0], request.env.get("PATH", DEFAULT_PATH))
        _open_files(request, files)
        with _file_limit(request.file_kib):
            pid = _spawn(program, request, files)
        _bind(pid, request)
        return pid
    finally:
        os.chdir(REST_DIRECTORY)
        for number in set(files):
            os.close(number)
        if mask is not None:
            os.umask(mask)


@contextmanager
def _named(what: str, path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        words = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise CannotStart(f"{what} {path}: {words}", _fault_of(error)) from error


def _fault_of(error: OSError | ValueError) -> str:
    """
    Return what of the host an error tells of, "" for nothing.
    """
    if not isinstance(error, OSError):
        return ""
    if error.errno == errno.ENOMEM:
        return "memory"
    return "host" if error.errno in HOST_FAULTS else ""


@contextmanager
def _file_limit(size_kib: int | None) -> Iterator[None]:
    """
    Have what is started inside the block inherit a limit of the size of its files.
    """
    if size_kib is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_within(size_kib, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _within(size_kib: int, hard: int) -> int:
    size = size_kib * 1024
    return size if hard == resource.RLIM_INFINITY else min(size, hard)


def _bind(pid: int, request: StartRequest) -> None:
    """
    Make the limit one that the program can't raise again, and give it its priority.
    """
    with suppress(OSError):
        if request.file_kib is not None:
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            size = _within(request.file_kib, hard)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, size))
    with suppress(OSError):  # A higher priority than the launcher's needs a privilege.
        if request.nice:
            usual = os.getpriority(os.PRIO_PROCESS, 0)
            os.setpriority(os.PRIO_PROCESS, pid, usual + request.nice)


def _enter(request: StartRequest) -> None:
    if request.make_directory:
        with _named("job directory", request.make_directory):
            Path(request.make_directory).mkdir(parents=True, exist_ok=True)
    with _named("cwd", request.cwd):
        os.chdir(request.cwd)


def _find(program: str, search_path: str) -> str:
    """
    Return the file of a program: itself when it names a directory, else the first along the search
    path.
    """
    if "/" in program:
        return program
    for folder in search_path.split(":"):
        candidate = f"{folder or '.'}/{program}"
        if os.access(candidate, os.X_OK) and not Path(candidate).is_dir():
            return candidate
    hint = ""
    if " " in program:
        hint = "; a command line in one word is what --shell takes"
    elif os.access(program, os.R_OK) and Path(program).is_file():
        hint = f"; there is ./{program} in the job's directory"
    raise CannotStart(f"program {program}: not found in the job's PATH{hint}")


def _open_files(request: StartRequest, files: list[int]) -> None:
    """
    Open the three standard files in order into *files*; one path for output and errors is opened
    once.
    """
    for what, path, flags in (
        ("stdin", request.stdin, _INPUT_FLAGS),
        ("stdout", request.stdout, _OUTPUT_FLAGS),
        ("stderr", request.stderr, _OUTPUT_FLAGS),
    ):
        if what == "stderr" and path == request.stdout:
            files.append(files[1])
            continue
        with _named(what, path):
            files.append(os.open(path or os.devnull, flags, 0o666))


def _spawn(program: str, request: StartRequest, files: list[int]) -> int:
    actions = [(os.POSIX_SPAWN_DUP2, opened, target) for target, opened in enumerate(files)]
    with _named("program", program):
        return os.posix_spawn(
            program,
            request.argv,
            request.env,
            file_actions=actions,
            setpgroup=0,
            setsigmask=(),
            setsigdef=_DEFAULT_SIGNALS,
        )

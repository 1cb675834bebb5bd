"""
Train the dictionary for small frames: python -m tools.dev.dictionary FILE.

The samples are payloads of commits of one event each, of every type there is, and of a live
scheduler's commonest ones in proportion: submissions with the environments that people have,
dispatches, starts, ends. A dictionary that was published never changes; a better one is a new file.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import zstandard

from domain.allocations import Allocation, HostRun
from domain.envelope import Stamped
from domain.event import event_classes
from domain.events.jobs import JobDispatched, JobFinished, JobStarted, JobSubmitted
from domain.ids import job_stream_of
from domain.jobs import EnvironmentVariable, JobSpec, Program
from store.codec import encode
from store.embedded.frames import Columns, encode_columns
from store.embedded.layout import id_bytes
from tools.torture.workload import stamped

JOBS = 1_500
TYPE_REPEATS = 3
DICTIONARY_BYTES = 16 << 10
SEED = 1


def environment_of(user: str, chance: random.Random) -> tuple[EnvironmentVariable, ...]:
    """
    Return an environment as a login shell has it, or only what a service gives.
    """
    few = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": f"/home/{user}",
        "LANG": "C.UTF-8",
        "USER": user,
    }
    many = {
        "SHELL": "/bin/bash", "LOGNAME": user, "TERM": "xterm-256color", "LANG": "en_US.UTF-8",
        "PATH": f"/home/{user}/.local/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "PWD": f"/scratch/{user}/run{chance.randrange(1000)}", "OLDPWD": f"/home/{user}",
        "SSH_CONNECTION": f"10.0.{chance.randrange(255)}.{chance.randrange(255)} 51234 10.0.0.1 22",
        "LD_LIBRARY_PATH": "/usr/local/lib:/opt/lib64", "MANPATH": "/usr/local/share/man:",
        "LOADEDMODULES": "gcc:openmpi:cuda", "MODULEPATH": "/usr/share/modulefiles",
        "OMP_NUM_THREADS": str(chance.choice((1, 2, 4, 8))), "MAIL": f"/var/mail/{user}",
        "XDG_RUNTIME_DIR": f"/run/user/{1000 + chance.randrange(60)}", "SHLVL": "1",
        "XDG_SESSION_ID": str(chance.randrange(100_000)), "EDITOR": "vim", "PAGER": "less",
        "LS_COLORS": "rs=0:di=01;34:ln=01;36:mh=00:pi=40;33:so=01;35:do=01;35:bd=40;33;01",
        "HISTCONTROL": "ignoredups", "CUDA_VISIBLE_DEVICES": "0",
        "VIRTUAL_ENV": f"/home/{user}/venv",
    }  # fmt: skip
    values = few | (many if chance.random() < 0.6 else {})
    return tuple(EnvironmentVariable(name=name, value=value) for name, value in values.items())


def submission(chance: random.Random) -> JobSubmitted:
    """
    Return a submission as people make them.
    """
    user = f"{chance.choice(('u', 'user', 'anna', 'ben'))}{chance.randrange(100)}"
    tasks = chance.choice((1, 1, 2, 4, 8))
    program = Program(
        argv=(f"/home/{user}/bin/run.sh", f"--case={chance.randrange(10**6)}"),
        cwd=f"/scratch/{user}/run{chance.randrange(1000)}",
        env=environment_of(user, chance),
        stdout="out.%J",
        stderr="err.%J",
    )
    spec = JobSpec(
        user=user, queue=chance.choice(("normal", "short", "long")), tasks_min=tasks,
        tasks_max=tasks, run_limit_us=chance.randrange(1, 48) * 3_600_000_000, program=program,
    )  # fmt: skip
    return JobSubmitted(spec=spec)


def commits(chance: random.Random) -> Iterator[Stamped]:
    """
    Yield events, each to be a commit of its own.
    """
    for number in range(1, JOBS + 1):
        stream, at_s = job_stream_of(number), number * 7
        host = f"worker:host{chance.randrange(256):04d}"
        event = submission(chance)
        yield stamped(stream, 1, event, at_s=at_s, actor=event.spec.user)
        runs = (HostRun(first=chance.randrange(256), tasks=event.spec.tasks_min),)
        placed = JobDispatched(
            attempt=1, index=0, allocation=Allocation(runs=runs, allocator="fill")
        )
        yield stamped(stream, 2, placed, at_s=at_s, cause=f"s{number}")
        started = JobStarted(attempt=1, pid=chance.randrange(4_000_000))
        yield stamped(stream, 3, started, at_s=at_s + 1, actor=host)
        ended = JobFinished(attempt=1, exit_code=0, cpu_us=chance.randrange(10**9))
        yield stamped(stream, 4, ended, at_s=at_s + 99, actor=host)


def payloads() -> list[bytes | bytearray | memoryview]:
    """
    Return what their frames hold, and the names of every type's fields.
    """
    found: list[bytes | bytearray | memoryview] = []
    for event in commits(random.Random(SEED)):  # noqa: S311 - a seed, to repeat it
        stream, version, topic, state = encode(event)
        found.append(
            encode_columns(Columns([topic], [id_bytes(stream)], [0], [0], [version], [state]))
        )
    for code, cls in sorted(event_classes().items()):
        names = b",".join(b'"%b":' % name.encode() for name in cls.model_fields)
        state = b'{"t":1000000001000000,"a":"root","c":"s1","l":0,"e":{%b}}' % names
        row = encode_columns(Columns([code], [id_bytes(job_stream_of(1))], [0], [0], [1], [state]))
        found.extend([row] * TYPE_REPEATS)
    return found


def main(target: Path) -> None:
    """
    Write the dictionary.
    """
    target.write_bytes(zstandard.train_dictionary(DICTIONARY_BYTES, payloads()).as_bytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]))

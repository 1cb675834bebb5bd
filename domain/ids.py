"""
Identifiers: how jobs are called, which stream belongs to which entity, and what a name may look
    like.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated

from pydantic import StringConstraints

from domain.errors import Refused

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.@+-]{0,127}$"
JOB_ID_PATTERN = r"^[1-9][0-9]{0,9}(\[[1-9][0-9]{0,5}\])?$"

Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
MaybeName = Annotated[str, StringConstraints(max_length=128)]
"""A name, or "" for none, or what will be refused since nothing has that name."""

MaybePath = Annotated[str, StringConstraints(max_length=1056)]
"""A project as it may be written, "" for none."""

JobId = Annotated[str, StringConstraints(pattern=JOB_ID_PATTERN)]
"""The text that users see: "4711", or "4711[3]" for the third element of an array."""

JOB_DIGITS = 10
JOB_STREAM_CHARACTERS = len("job:") + JOB_DIGITS

CLUSTER = "cluster"
SCHEDULER = "scheduler"
SESSION = "session"
REASONS = "reasons"
REFUSALS = "refusals"
LOG = "log"

_job_id = re.compile(JOB_ID_PATTERN)
_name = re.compile(NAME_PATTERN)


def split_job_id(job_id: str) -> tuple[int, int]:
    """
    Return the number of a job and its array index, 0 for a job that is no element.

    Raises:
        Refused: The text is no job id.
    """
    # The short cut saves the pattern, which most ids need no more than this.
    if _is_number(job_id):
        return int(job_id), 0
    if _job_id.fullmatch(job_id) is None:
        raise Refused(
            "job_id",
            "must be a job number such as 4711, or an array element such as 4711[3]",
            job_id,
        )
    number, _, index = job_id.rstrip("]").partition("[")
    return int(number), int(index or 0)


def _is_number(job_id: str) -> bool:
    is_short = len(job_id) <= JOB_DIGITS
    return is_short and job_id.isascii() and job_id.isdigit() and job_id[0] != "0"


def number_of_stream(stream: str) -> tuple[int, int]:
    """
    Return the number of the job whose stream this is, and its array index, 0 for none.
    """
    # hot: once a job, of which few are elements of arrays.
    if len(stream) == JOB_STREAM_CHARACTERS:
        return int(stream[4:]), 0
    return int(stream[4:14]), int(stream[15:-1])


def job_id_of(number: int, index: int = 0) -> str:
    """
    Return the job id of a number and an array index.
    """
    return f"{number}[{index}]" if index else str(number)


def job_stream_of(number: int, index: int = 0) -> str:
    """
    Return the stream of a job; the texts sort in order of creation.
    """
    return f"job:{number:010d}[{index:06d}]" if index else f"job:{number:010d}"


@lru_cache(maxsize=1 << 16)
def job_stream(job_id: str) -> str:
    """
    Return the stream of a job id.
    """
    # hot: once a job. The number needn't be read to be written with its zeros.
    if _is_number(job_id):
        return "job:" + job_id.zfill(JOB_DIGITS)
    return job_stream_of(*split_job_id(job_id))


@lru_cache(maxsize=1 << 16)
def job_of_stream(stream: str) -> str:
    """
    Return the job id whose stream this is.
    """
    # hot: once a job.
    digits = stream[4:]
    if len(digits) == JOB_DIGITS and digits.isdigit():
        return digits.lstrip("0") or "0"
    return job_id_of(*number_of_stream(stream))


def worker_stream(name: str) -> str:
    """
    Return the stream of a worker.
    """
    return f"worker:{name}"


def queue_stream(name: str) -> str:
    """
    Return the stream of a queue.
    """
    return f"queue:{name}"


def resource_stream(name: str) -> str:
    """
    Return the stream of a resource.
    """
    return f"resource:{name}"


def user_stream(name: str) -> str:
    """
    Return the stream of a user.
    """
    return f"user:{name}"


def group_stream(name: str) -> str:
    """
    Return the stream of a user group.
    """
    return f"group:{name}"


def project_stream(path: str) -> str:
    """
    Return the stream of a project.
    """
    return f"project:{path}"


def limit_stream(name: str) -> str:
    """
    Return the stream of a limit.
    """
    return f"limit:{name}"


def profile_stream(name: str) -> str:
    """
    Return the stream of an application profile.
    """
    return f"profile:{name}"


def entity_of_stream(stream: str) -> tuple[str, str]:
    """
    Return the kind of entity and its name (a job id for jobs); the name is "" for a singleton
    stream.
    """
    kind, _, name = stream.partition(":")
    return (kind, job_of_stream(stream)) if kind == "job" else (kind, name)


def check_name(field: str, name: str) -> str:
    """
    Return a name that may become an identifier.

    Raises:
        Refused: It may not.
    """
    if _name.fullmatch(name) is None:
        raise Refused(
            field,
            "must begin with a letter or digit and hold at most 128 of A-Z a-z 0-9 _ . @ + -",
            name,
        )
    return name

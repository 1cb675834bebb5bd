"""
The capability of one attempt: whoever reports about it must have been given it.

It is made from the cluster's key, never stored in the log, and the same after a restart.
"""

from __future__ import annotations

import hmac
import os
import secrets
from pathlib import Path

from domain.errors import Refused, StoreUnavailable

KEY_BYTES = 32
DIGITS = 32


def cluster_key(path: Path) -> bytes:
    """
    Return the cluster's key; it is made with the cluster and readable by its owner alone.

    Raises:
        Refused: Somebody else can read it, or it is no key.
        StoreUnavailable: It can't be read or made.
    """
    try:
        if not path.exists():
            _make(path)
        if path.stat().st_mode & 0o077:
            raise Refused(
                "cluster.key", "must be readable by its owner alone", str(path), f"chmod 600 {path}"
            )
        key = path.read_bytes()
    except OSError as error:
        raise StoreUnavailable("cluster key", str(path), str(error)) from error
    if len(key) != KEY_BYTES:
        raise Refused("cluster.key", f"must hold {KEY_BYTES} bytes", str(path))
    return key


def _make(path: Path) -> None:
    """
    Write a fresh key aside and put it in place whole, so that a crash leaves none or a good one.
    """
    aside = path.with_suffix(".new")
    file = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "wb") as out:
        out.write(secrets.token_bytes(KEY_BYTES))
        out.flush()
        os.fsync(out.fileno())
    aside.rename(path)


def capability(key: bytes, job_id: str, attempt: int, worker: str) -> str:
    """
    Return the capability of an attempt on its worker.
    """
    return hmac.digest(key, f"{job_id}|{attempt}|{worker}".encode(), "sha256").hex()[:DIGITS]


def is_capability(key: bytes, given: str, job_id: str, attempt: int, worker: str) -> bool:
    """
    Tell whether what was given is the attempt's capability, in constant time.
    """
    return hmac.compare_digest(capability(key, job_id, attempt, worker), given)

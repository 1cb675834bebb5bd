"""
Signed heads: what lets a later check prove that nothing before a position was changed.

A hash chain alone can't show a cut tail, an older copy put back, or a chain that was computed anew;
a head kept elsewhere can. What comes after the last head is only as safe as the machine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from domain.errors import Corrupt, Refused
from domain.given_files import unreadable
from store.log import EventLog
from store.os_errors import unavailable

HEAD_FORMAT = 1
_DOMAIN = b"xce signed head 1\0"


@dataclass(frozen=True, slots=True)
class Head:
    """
    Name a history: everything up to a position of a log.

    Args:
        format: Version of the head's form.
        log_id: The log's identity.
        position: The last position of the history.
        digest: The log's digest there, in hexadecimal.
        time_us: Time of the event there, 0 for an empty log.
        epoch: The log's epoch when the head was taken.
        signature: Ed25519 over all the others, in hexadecimal, "" when nobody signed.
    """

    format: int
    log_id: str
    position: int
    digest: str
    time_us: int
    epoch: int
    signature: str = ""

    def signed_bytes(self) -> bytes:
        """
        Return what a signature covers.
        """
        others = {name: value for name, value in asdict(self).items() if name != "signature"}
        return _DOMAIN + json.dumps(others, sort_keys=True, separators=(",", ":")).encode()

    def as_json(self) -> str:
        """
        Return it as one line.
        """
        return json.dumps(asdict(self), sort_keys=True) + "\n"


def head_of(log: EventLog) -> Head:
    """
    Return the head of a log as it is now, unsigned.
    """
    position = log.head()
    digest = log.digest_at(position).hex()
    return Head(HEAD_FORMAT, log.log_id, position, digest, log.time_at(position), log.epoch)


def read_head(path: Path) -> Head:
    """
    Read a head from a file.

    Raises:
        Refused: The file can't be read, or isn't there.
        Corrupt: It holds no head, or one of a newer format.
    """
    try:
        fields = json.loads(path.read_text())
        if fields["format"] != HEAD_FORMAT:
            raise Corrupt("newer", None, f"head format {HEAD_FORMAT}", fields["format"], str(path))
        head = Head(**fields)
    except OSError as error:
        raise unreadable("head", path, error) from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Corrupt("foreign", None, "a head of a log", str(error)[:200], str(path)) from None
    for name in Head.__slots__:
        wanted = str if name in ("log_id", "digest", "signature") else int
        if type(getattr(head, name)) is not wanted:
            raise Corrupt("foreign", None, f"{name} of type {wanted.__name__}", "", str(path))
    return head


def sign(head: Head, key: Ed25519PrivateKey) -> Head:
    """
    Return a head with a signature.
    """
    signature = key.sign(head.signed_bytes()).hex()
    return Head(**{**asdict(head), "signature": signature})


def check_signature(head: Head, key: Ed25519PublicKey) -> None:
    """
    Check that the holder of a key signed a head as it is.

    Raises:
        Corrupt: Of the kind chain.
    """
    try:
        key.verify(bytes.fromhex(head.signature), head.signed_bytes())
    except (InvalidSignature, ValueError):
        raise Corrupt(
            "chain", head.position, "a head signed with this key", "another signature"
        ) from None


def check_against(log: EventLog, head: Head) -> None:
    """
    Hold a log against a head taken earlier: it must go on from that very history.

    Raises:
        Corrupt: foreign (another log), truncated (its tail was cut, or an older copy put back), or
            chain (something before the head was changed, or the chain was computed anew).
    """
    if log.log_id != head.log_id:
        raise Corrupt("foreign", None, f"the log {head.log_id}", f"the log {log.log_id}")
    last = log.head()
    if last < head.position:
        found = f"the end at position {last}"
        raise Corrupt("truncated", last + 1, f"position {head.position}", found)
    digest = log.digest_at(head.position).hex()
    if digest != head.digest:
        raise Corrupt("chain", head.position, head.digest, digest)
    if log.epoch < head.epoch:
        raise Corrupt("truncated", None, f"at least epoch {head.epoch}", f"epoch {log.epoch}")


def make_key(path: Path) -> Ed25519PublicKey:
    """
    Make a key pair: the private key into a file for its owner alone, the public one beside it
    (.pub).

    Raises:
        Refused: The file exists.
        StoreUnavailable: It can't be written.
    """
    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secret)
        path.with_name(path.name + ".pub").write_bytes(public)
    except FileExistsError:
        raise Refused("key", "must not exist yet", str(path)) from None
    except OSError as error:
        raise unavailable(path, error) from None
    return key.public_key()


def private_key(path: Path) -> Ed25519PrivateKey:
    """
    Read a private key (PEM, without a passphrase).

    Raises:
        Refused: It can't be read, isn't there, or is no Ed25519 key.
    """
    key = _load(path, lambda data: load_pem_private_key(data, None))
    if not isinstance(key, Ed25519PrivateKey):
        raise Refused("key", "must be an Ed25519 private key in PEM", str(path))
    return key


def public_key(path: Path) -> Ed25519PublicKey:
    """
    Read a public key (PEM).

    Raises:
        Refused: It can't be read, isn't there, or is no Ed25519 key.
    """
    key = _load(path, load_pem_public_key)
    if not isinstance(key, Ed25519PublicKey):
        raise Refused("key", "must be an Ed25519 public key in PEM", str(path))
    return key


def _load(path: Path, load: Callable[[bytes], object]) -> object:
    """
    Read a key file.
    """
    try:
        return load(path.read_bytes())
    except OSError as error:
        raise unreadable("key", path, error) from None
    except (ValueError, TypeError):
        return None

"""
The eventsourcing persistence module on LMDB, selected by ``PERSISTENCE_MODULE=store.embedded``.

It exports exactly one factory, as the library demands. Settings: LMDB_PATH (required),
LMDB_MAP_SIZE, LMDB_DURABILITY (full, relaxed, none), LMDB_MAX_READERS, LMDB_READONLY,
LMDB_ALLOW_NETWORK_FS, LMDB_MODE.
"""

from store.embedded.factory import EmbeddedFactory

__all__ = ["EmbeddedFactory"]

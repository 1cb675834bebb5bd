"""
Bytes that last: the event log, its persistence module for the eventsourcing library, and the
snapshots.

`store.log.EventLog` is the log as the engine sees it; `store.embedded` is the persistence module on
LMDB, selected by ``PERSISTENCE_MODULE=store.embedded``; `store.snapshots.SnapshotStore` keeps
snapshots in files. What every byte means is written in ``FORMAT.md``. Nothing in here knows what a
scheduler is.
"""

"""
Every event there is, by family. Importing this package fills the registry.
"""

from domain.events import (
    groups,
    jobs,
    limits,
    log,
    profiles,
    projects,
    queues,
    refusals,
    resources,
    scheduler,
    session,
    users,
    workers,
)

__all__ = [
    "groups",
    "jobs",
    "limits",
    "log",
    "profiles",
    "projects",
    "queues",
    "refusals",
    "resources",
    "scheduler",
    "session",
    "users",
    "workers",
]

"""
Every event there is, by family. Importing this package fills the registry.
"""

from domain.events import jobs, queues, refusals, scheduler, session, workers

__all__ = ["jobs", "queues", "refusals", "scheduler", "session", "workers"]

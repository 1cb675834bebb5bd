"""
Every event there is, by family. Importing this package fills the registry.
"""

from domain.events import jobs, log, queues, refusals, resources, scheduler, session, workers

__all__ = ["jobs", "log", "queues", "refusals", "resources", "scheduler", "session", "workers"]

"""
Every table of the read model, one row class each, by family.
"""

from projections.audit.rows import events, hosts, jobs, reasons, settings

__all__ = ["events", "hosts", "jobs", "reasons", "settings"]

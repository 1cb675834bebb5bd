"""
What the reading of a requirement depends on, beside its text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from domain.units import MEMORY_NAMES, MemoryUnit

ALIASES: Final = {"swap": "swp", "idle": "it", "login": "ls", "cpu": "r1m"}
"""LSF's other names of its load indices."""

TEXT_NAMES: Final = frozenset({"type", "model", "hname", "status", "arch"})
"""The built-in attributes that are texts."""


@dataclass(frozen=True, slots=True)
class ParseSettings:
    """
    Hold what the reading of a requirement depends on; the same text under equal settings gives
    equal nodes.

    Args:
        memory_unit: What a number without a suffix means for a resource that is memory.
        memory_names: The resources that are memory.
        text_names: Attributes that are texts; ``os == rhel8`` then compares with a literal.
    """

    memory_unit: MemoryUnit = MemoryUnit.MB
    memory_names: frozenset[str] = MEMORY_NAMES
    text_names: frozenset[str] = TEXT_NAMES


DEFAULT_SETTINGS: Final = ParseSettings()

"""
The plug-ins that a core works with. They are handed in by whoever builds the core; the core looks
nothing up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from domain.events.scheduler import PluginVersion
from projections.scheduling.pickers.conservative import Conservative
from projections.scheduling.pickers.easy import Easy
from projections.scheduling.pickers.fairshare import FairsharePicker
from projections.scheduling.pickers.fcfs import BuiltinFcfs, StrictFcfs
from projections.scheduling.pickers.protocol import JobPicker
from projections.scheduling.pickers.shortest import ShortestFirst
from projections.scheduling.placement.allocators import BUILT_IN
from projections.scheduling.placement.plugins import Allocator

BUILT_IN_PICKERS: Final[tuple[Callable[[], JobPicker], ...]] = (
    BuiltinFcfs,
    StrictFcfs,
    Easy,
    Conservative,
    FairsharePicker,
    ShortestFirst,
)


def _built_in_pickers() -> dict[str, Callable[[], JobPicker]]:
    return {maker().name: maker for maker in BUILT_IN_PICKERS}


def _built_in_allocators() -> dict[str, Allocator]:
    return {allocator.name: allocator for allocator in BUILT_IN}


@dataclass(slots=True, frozen=True)
class Plugins:
    """
    Hold factories of pickers and the allocators, by name.
    """

    pickers: dict[str, Callable[[], JobPicker]] = field(default_factory=_built_in_pickers)
    allocators: dict[str, Allocator] = field(default_factory=_built_in_allocators)

    def picker_versions(self) -> tuple[PluginVersion, ...]:
        """
        Return every picker and the version of its rules, by name.
        """
        return tuple(
            PluginVersion(name=name, version=self.pickers[name]().version)
            for name in sorted(self.pickers)
        )

    def allocator_versions(self) -> tuple[PluginVersion, ...]:
        """
        Return every allocator and the version of its rules, by name.
        """
        return tuple(
            PluginVersion(name=name, version=self.allocators[name].version)
            for name in sorted(self.allocators)
        )

"""
Find pickers and allocators, our own and other people's, and hand them to the core by name.

A package of somebody else's registers its plug-ins in its own metadata:

    [project.entry-points."xce.pickers"]
    by_size = "their_package:BySize"          # a class, or a function that makes a picker

    [project.entry-points."xce.allocators"]
    spread = "their_package:Spread"

The name in the metadata is the plug-in's own. ``python -m tools.conformance picker MODULE:NAME``
(or ``allocator``) runs the cases that it should pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, cast

from domain.errors import Refused
from projections.scheduling.pickers.protocol import JobPicker
from projections.scheduling.placement.plugins import Allocator
from projections.scheduling.plugins import Plugins

PICKERS: Final = "xce.pickers"
ALLOCATORS: Final = "xce.allocators"


def found_plugins(
    pickers: Iterable[EntryPoint] | None = None, allocators: Iterable[EntryPoint] | None = None
) -> Plugins:
    """
    Return the built-in plug-ins and every one that an installed package registers.

    Args:
        pickers: Entry points of pickers; those of the environment when None.
        allocators: Entry points of allocators; those of the environment when None.

    Raises:
        Refused: Two have one name, one can't be loaded, or its name isn't the registered one.
    """
    built_in = Plugins()
    more_pickers = entry_points(group=PICKERS) if pickers is None else pickers
    more_allocators = entry_points(group=ALLOCATORS) if allocators is None else allocators
    return Plugins(
        pickers={
            **built_in.pickers,
            **_loaded(more_pickers, PICKERS, built_in.pickers, _factory),
        },
        allocators={
            **built_in.allocators,
            **_loaded(more_allocators, ALLOCATORS, built_in.allocators, _made),
        },
    )


def _loaded(
    points: Iterable[EntryPoint], group: str, taken: Iterable[str], take: Callable[[str, Any], Any]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for point in sorted(points, key=lambda point: (point.name, point.value)):
        if point.name in found or point.name in taken:
            raise Refused(group, "must have each name once", point.name)
        try:
            loaded = point.load()
        except Exception as error:
            rule = f"must be loadable ({type(error).__name__}: {error})"
            raise Refused(group, rule, f"{point.name} = {point.value}") from error
        found[point.name] = take(point.name, loaded)
    return found


def _factory(name: str, loaded: Callable[[], JobPicker]) -> Callable[[], JobPicker]:
    _check_name(PICKERS, name, loaded())
    return loaded


def _made(name: str, loaded: Any) -> Allocator:
    made = loaded() if callable(loaded) else loaded
    _check_name(ALLOCATORS, name, made)
    return cast("Allocator", made)


def _check_name(group: str, name: str, plugin: Any) -> None:
    called = getattr(plugin, "name", None)
    if called != name:
        raise Refused(group, f"must be registered under its own name, {called!r}", name)

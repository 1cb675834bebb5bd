"""
What follows from a definition that nobody may expect: what of it counts for nothing, and whom it
keeps from submitting.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from domain.projects import ProjectSpec
from tools.cli.queue_notices import notices_of

if TYPE_CHECKING:
    from tools.cli.definitions import Definitions

DEFAULTS: Final = {"queue": "project", "group": "default_project", "cluster": "default_project"}
"""Kinds that give jobs a project, and the field that does."""
SHOWN_MAX: Final = 8


def notices_about(found: Definitions, kind: str, name: str, said: set[str]) -> dict[str, str]:
    """
    Return by field what people should know of a definition.

    Args:
        found: Everything that is defined, this one too.
        kind: Of what.
        name: Which one; somebody may have removed it already.
        said: The fields that were given.
    """
    return dict(_notices(found, kind, name, said))


def _notices(
    found: Definitions, kind: str, name: str, said: set[str]
) -> Iterator[tuple[str, str]]:
    if name not in found.names(kind) and kind != "cluster":
        return
    if kind == "queue":
        yield from notices_of(name, found.queues(), found.cluster()).items()
    if kind == "project":
        yield from _of_project(found, name)
    if DEFAULTS.get(kind) in said:
        field = DEFAULTS[kind]
        path = getattr(found.spec(kind, name), field)
        if path in found.names("project"):
            words = f"jobs that name no project count for {path}, which only its members may use"
            yield field, f"{words}: {_members(_project(found, path))}; others are refused"


def _of_project(found: Definitions, path: str) -> Iterator[tuple[str, str]]:
    project = _project(found, path)
    is_empty = not project.users and not project.groups
    if is_empty:
        yield "users", (
            "it has no members, so nobody may submit for it; "
            f'xce define project {path} users="NAME NAME", or groups=GROUP'
        )
    default = found.cluster().default_project
    if not default and len(found.names("project")) == 1:
        yield "default_project", (
            "this is the first project, so jobs that name none, and whose queue and group name "
            f"none, are refused from now on; xce define cluster default_project={path} would make "
            "them count for this one, which only its members may use"
        )
    elif default and default not in found.names("project"):
        yield "default_project", (
            f"jobs that name none count for the cluster's default, {default}, which isn't defined, "
            f"so they are refused; xce define project {default}, or xce define cluster "
            f"default_project={path}"
        )
    elif path in _defaults(found) and not is_empty:
        yield "users", (
            "jobs that name no project count for it by default, and only its members may use it: "
            f"{_members(project)}; others are refused"
        )


def _defaults(found: Definitions) -> set[str]:
    """
    Return every project that jobs get without naming it.
    """
    return {
        getattr(found.spec(kind, name), field)
        for kind, field in DEFAULTS.items()
        for name in found.names(kind)
    }


def _members(project: ProjectSpec) -> str:
    told = []
    for words, names in (("users", project.users), ("groups", project.groups)):
        more = len(names) - SHOWN_MAX
        if names:
            end = f" and {more} more" if more > 0 else ""
            told.append(f"{words} {', '.join(names[:SHOWN_MAX])}{end}")
    return " and ".join(told) or "it has none"


def _project(found: Definitions, path: str) -> ProjectSpec:
    spec = found.spec("project", path)
    assert isinstance(spec, ProjectSpec), path
    return spec

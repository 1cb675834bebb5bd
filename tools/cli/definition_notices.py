"""
What follows from a definition that nobody may expect: what of it counts for nothing, and whom it
keeps from submitting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from domain.projects import ProjectSpec
from domain.queues import QueueSpec
from domain.workers import HostSettings
from tools.cli.client import Json
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
        if names:
            told.append(f"{words} {_some(names)}")
    return " and ".join(told) or "it has none"


def _project(found: Definitions, path: str) -> ProjectSpec:
    spec = found.spec("project", path)
    assert isinstance(spec, ProjectSpec), path
    return spec


def unreported(
    found: Definitions, kind: str, name: str, hosts: Sequence[Json]
) -> dict[str, str]:
    """
    Return what bounds of load indices do on hosts that don't report them: nothing starts there.

    Args:
        found: Everything that is defined.
        kind: A queue or a host.
        name: Which one.
        hosts: Each host with its load, as the scheduler tells it.
    """
    if name not in found.names(kind):
        return {}
    spec = found.spec(kind, name)
    assert isinstance(spec, QueueSpec | HostSettings), kind
    # Whoever reports nothing yet has only just joined.
    heard = [
        host for host in hosts if host["load"] and (kind == "queue" or host["host"] == name)
    ]
    told = [
        f"{_some(missing)} {'has' if len(missing) == 1 else 'have'}n't reported {one.index} so far"
        for one in spec.thresholds
        if (missing := [host["host"] for host in heard if not _reports(host, one.index)])
    ]
    if not told:
        return {}
    what = "no job of this queue starts there" if kind == "queue" else "no job starts there"
    return {"thresholds": f"{', '.join(told)}, and {what} until then; xce hosts NAME shows a load"}


def _reports(host: Json, index: str) -> bool:
    return any(one["index"] == index for one in host["load"])


def _some(names: Sequence[str]) -> str:
    """
    Return the first few of some names.
    """
    more = len(names) - SHOWN_MAX
    return ", ".join(names[:SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")

"""
Tables of what people set: every changed field, old and new, and what holds now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from projections.audit.schema import Index, table


@table(
    "changes",
    key="position field",
    grows=True,
    indexes=(Index(("kind", "name", "position")), Index(("actor", "position"))),
)
class ChangeRow(NamedTuple):
    """
    One field of a definition that changed: cluster settings, queues, limits, hosts and the like.
    """

    position: Annotated[int, "Position of the event"]
    field: Annotated[str, "Field that changed; parts of it joined by dots"]
    time_us: Annotated[int, "When"]
    actor: Annotated[str, "Who changed it; empty for the scheduler itself"]
    cause: Annotated[str, "Command that it follows from"]
    kind: Annotated[str, "Kind of entity: cluster, queue, worker, limit, project and so on"]
    name: Annotated[str, "Name of the entity; empty for the cluster"]
    old: Annotated[str | None, "Value before, as JSON; NULL when it is new"]
    new: Annotated[str | None, "Value after, as JSON; NULL when it was taken away"]


@table("definitions", key="kind name")
@dataclass(slots=True)
class DefinitionRow:
    """
    One definition as it holds now.
    """

    kind: Annotated[str, "Kind of entity: cluster, queue, worker, limit, project and so on"]
    name: Annotated[str, "Name of the entity; empty for the cluster"]
    position: Annotated[int, "Position of the event that last changed it"]
    time_us: Annotated[int, "When that was"]
    actor: Annotated[str, "Who did it"]
    is_removed: Annotated[int, "1 when it was taken away"]
    content: Annotated[str, "The whole definition, as JSON"]

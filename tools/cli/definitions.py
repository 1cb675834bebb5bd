"""
Show what is defined: one definition in full with what holds where it says nothing, or all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from domain.cluster import ClusterSettings
from domain.definition_texts import told_fields
from domain.definitions import MODELS, fields_of
from domain.errors import NotFound
from domain.event import Value
from domain.queues import TASKS_MAX, QueueSpec
from projections.scheduling.preying import preys_of
from tools.cli.client import Client, Json
from tools.cli.options import dir_option, json_option
from tools.cli.output import note, say, say_hanging, say_json, show_time, table
from tools.cli.queue_notices import notices_of

CLUSTER = "cluster"


class Definitions:
    """
    Hold everything that is defined, as the scheduler told it at one position.
    """

    def __init__(self, answer: Json) -> None:
        self.position = answer.get("position")
        self.plain: Json = answer["definitions"]

    def names(self, kind: str) -> list[str]:
        """
        Return what of a kind is defined, in order of definition.
        """
        if kind == CLUSTER:
            return [self.plain[CLUSTER]["name"]]
        return list(self.plain[kind])

    def one(self, kind: str, name: str) -> Json:
        """
        Return one definition as JSON.

        Raises:
            NotFound: There is none of that name.
        """
        found: Json | None
        found = self.plain[CLUSTER] if kind == CLUSTER else self.plain[kind].get(name)
        if found is None:
            known = ", ".join(self.names(kind)) or "none"
            rule = f"must be a {kind} that is defined: {known}"
            raise NotFound(kind, rule, name)
        return found

    def spec(self, kind: str, name: str) -> Value:
        """
        Return one definition.

        Raises:
            NotFound: There is none of that name.
        """
        return MODELS[kind].model_validate_json(json.dumps(self.one(kind, name)))

    def queues(self) -> dict[str, QueueSpec]:
        """
        Return every queue's definition.
        """
        plain = self.plain["queue"]
        return {
            name: QueueSpec.model_validate_json(json.dumps(spec)) for name, spec in plain.items()
        }

    def cluster(self) -> ClusterSettings:
        """
        Return the cluster's settings.
        """
        return ClusterSettings.model_validate_json(json.dumps(self.plain[CLUSTER]))


def read_definitions(client: Client) -> Definitions:
    """
    Ask the scheduler for everything that is defined.
    """
    return Definitions(client.get("/v1/definitions"))


@click.command("definitions", epilog="""
\b
Examples:
  xce definitions                  all, with what differs from the defaults
  xce definitions limit            those of one kind
  xce definitions profile solver   one in full
  xce definitions cluster --json
KIND is queue, resource, user, group, project, limit, profile, host or cluster.
Next: xce define KIND NAME FIELD=VALUE; xce define KIND --help names the fields.
""")
@dir_option
@json_option
@click.argument("kind", required=False, metavar="[KIND]", type=click.Choice(tuple(MODELS)))
@click.argument("name", required=False)
def definitions(directory: Path, kind: str | None, name: str | None, *, as_json: bool) -> None:
    """
    Show what is defined: queues, limits, profiles and all the rest.
    """
    found = read_definitions(Client(directory))
    if kind is not None and (name is not None or kind == CLUSTER):
        if as_json:
            plain = found.one(kind, name or "")
            say_json({"position": found.position, "kind": kind, "name": name, "definition": plain})
        else:
            show_definition(found, kind, name or "")
        return
    kinds = [kind] if kind is not None else list(MODELS)
    if as_json:
        shown = {each: found.plain[each] for each in kinds}
        say_json({"position": found.position, "definitions": shown})
        return
    named = [(each, one) for each in kinds for one in found.names(each)]
    rows = [(each, one, _told(each, found.spec(each, one))) for each, one in named]
    if rows:
        table(("KIND", "NAME", "DEFINITION"), rows)
    else:
        note(f"No {kind} is defined. xce define {kind} --help says how.")


def _told(kind: str, spec: Value) -> str:
    """
    Return the fields that differ from their defaults, as people would say them.
    """
    usual = {field.name: field.default for field in fields_of(kind)}
    return " ".join(
        f'{name}="{value}"' if " " in value else f"{name}={value}"
        for name, value in told_fields(spec)
        if value and value != usual.get(name)
    )


def show_definition(found: Definitions, kind: str, name: str) -> None:
    """
    Print one definition, a line for each field: its value, and what holds where that isn't all.
    """
    spec = found.spec(kind, name)
    holds = dict(_holds_in_queue(found, name, spec)) if isinstance(spec, QueueSpec) else {}
    rows = [(field, value, holds.get(field, "")) for field, value in told_fields(spec)]
    if holds:
        table(("FIELD", "VALUE", "IN_EFFECT"), rows)
        say_hanging(
            '"-" is what its definition leaves open; IN_EFFECT is what holds then, or beside other '
            "queues."
        )
    else:
        table(("FIELD", "VALUE"), [row[:2] for row in rows])


def queue_facts(found: Definitions, name: str) -> Json:
    """
    Return of one queue its definition, and what follows from it beside the others.
    """
    queues = found.queues()
    relation = found.cluster().preemption.relation
    return {
        "definition": found.one("queue", name),
        "preempts": list(preys_of(name, queues, relation)),
        "preempted_by": [one for one in queues if name in preys_of(one, queues, relation)],
        "notices": notices_of(name, queues, found.cluster()),
    }


def _holds_in_queue(found: Definitions, name: str, spec: QueueSpec) -> Iterator[tuple[str, str]]:
    """
    Yield what holds of a queue's fields that say nothing, or that don't say all.
    """
    cluster = found.cluster()
    facts = queue_facts(found, name)
    least = spec.tasks_min or 1
    usual: list[tuple[str, Any, str]] = [
        ("picker", spec.picker, f"{cluster.picker}, the cluster's"),
        ("run_windows", spec.run_windows, "always open"),
        ("dispatch_windows", spec.dispatch_windows, "always open"),
        ("run_limit_max_us", spec.run_limit_max_us, "any"),
        (
            "run_limit_default_us", spec.run_limit_default_us,
            "no limit" if spec.run_limit_max_us is None else "the longest, run_limit_max_us",
        ),
        ("limits", spec.limits, "any count of slots and jobs"),
        ("tasks_min", spec.tasks_min, "1"),
        ("tasks_max", spec.tasks_max, str(TASKS_MAX)),
        ("tasks_default", spec.tasks_default, str(least)),
        ("hosts_max", spec.hosts_max, "any"),
        ("hosts", spec.hosts, "all"),
        ("users", spec.users, "everybody"),
        ("project", spec.project, cluster.default_project or "none"),
    ]
    yield from ((field, words) for field, value, words in usual if value in (None, ""))
    yield "preemptible_queues", _agreed("preempts", facts["preempts"])
    yield "preemptible_by", _agreed("is preempted by", facts["preempted_by"])
    # Later ones come in place of those above.
    yield from facts["notices"].items()


def _agreed(words: str, queues: list[str]) -> str:
    return f"{words} {', '.join(queues)}" if queues else f"{words} none"


def show_queue(client: Client, row: Json, name: str, *, as_json: bool) -> None:
    """
    Show one queue in full: how it is, and its definition.

    Args:
        client: Asks the scheduler.
        row: What the list of queues says of it.
        name: Its name.
        as_json: Whether for programs.
    """
    found = read_definitions(client)
    if as_json:
        say_json({"position": found.position, **row, **queue_facts(found, name)})
        return
    jobs = ", ".join(f"{count} {state}" for state, count in row["jobs"].items())
    say(f"Queue {name}: {_status(row)}; jobs: {jobs or 'none'}.")
    show_definition(found, "queue", name)


def _status(row: Json) -> str:
    takes = "takes submissions" if row["is_open"] else "is closed to submissions"
    if not row["is_active"]:
        return f"{takes}, inactive, so none of its jobs starts"
    if row["is_in_windows"]:
        return f"{takes}, its jobs may start"
    opens_us = row["opens_us"]
    until = "at no time that is near" if opens_us is None else show_time(opens_us)
    return f"{takes}, outside its windows, so none of its jobs starts; next opening: {until}"

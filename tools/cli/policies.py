"""
Define and remove queues, users, groups, projects, limits and profiles, how hosts are used and how
the cluster works; show what is in use.

A definition is said as FIELD=VALUE. What isn't said stays as it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from domain.errors import Refused
from domain.units import MEMORY_NAMES, show_memory, show_milli
from tools.cli.client import Client, Json
from tools.cli.define_help import DefineCommand
from tools.cli.options import columns_option, dir_option, json_option
from tools.cli.output import chosen, note, note_each, say, say_json, table

if TYPE_CHECKING:
    from domain.definition_texts import FieldChange

# Written down, so that nothing is loaded for them; a test holds them to what there is.
DEFINED = (
    "queue", "resource", "user", "group", "project", "limit", "profile", "host", "cluster",
)  # fmt: skip
BASES = {"absolute": "", "percent": "%", "per_processor": "/processor"}
REMOVED = ("queue", "user", "group", "project", "limit", "profile")
CLUSTER = "cluster"
GIVEN = "must be given"
"""The rule of what is missing."""
NOTED = {"default_project", "thresholds"}
"""Fields of other kinds than queues and projects that people should know something of."""

HEADS = ("LIMIT", "OF", "HOST", "RESOURCE", "USED", "MOST")


@click.command(
    cls=DefineCommand,
    epilog="""
\b
Examples:
  xce define limit l1 users="each all ~root" slots=8 mem=64GB
  xce define limit half hosts="each all" mem=50% slots=2/processor
  xce define group physics members="alice bob" slots_max=100
  xce define project /physics groups=physics slots=200
  xce define queue short priority=40 limits.user_slots=10 hosts="h1+2 others"
  xce define queue urgent priority=90 preemptible_queues="short+1 normal"
  xce define queue normal preemptible_by=all     # both must say so
  xce define queue wide priority=30 slot_reserve_us=1h
  xce define queue filler priority=10 is_backfill=true
  xce define queue fair priority=20 picker=fairshare
  xce define queue fair fairshare.shares="ann=10 staff=5(bob=1 eve=2)"
  xce define profile solver resreq="rusage[mem=2000]" resreq_mark=fixed
  xce define user alice slots_max=20
  xce define host alpha thresholds="r1m=4/8 mem=2GB/500MB"
  xce define queue night priority=5 thresholds="r1m=4/8" on_load=requeue
  xce define resource licence scope=shared is_consumable=true totals='[{"total_milli": 5000}]'
  xce define cluster picker=easy       # there is only one: it isn't named
KIND is queue, resource, user, group, project, limit, profile, host or cluster.
A new queue must have a priority, a new limit at least one amount (slots=8); all else has a default.
Beyond the first bound of a threshold nothing starts, beyond the second running jobs are stopped.
What is defined already is changed only in the fields that are said; --new begins afresh.
xce define KIND --help names the fields of a kind; xce definitions shows what is defined.
"""
)
@click.option("--new", "is_new", is_flag=True, help="Begin afresh, whatever is defined now.")
@dir_option
@json_option
@click.argument("kind", metavar="KIND", type=click.Choice(DEFINED))
@click.argument("name", metavar="NAME")
@click.argument("fields", nargs=-1, metavar="[FIELD=VALUE]...")
def define(
    directory: Path, kind: str, name: str, fields: tuple[str, ...], *, is_new: bool, as_json: bool
) -> None:
    """
    Define a queue, user, group, project, limit, profile or resource, or the settings of a host or
    of the cluster.
    """
    from domain.definition_texts import changes_of, definition_of, unit_notices

    client = Client(directory)
    if kind == CLUSTER:
        name, fields = CLUSTER, (name, *fields)
    known: Json = client.get("/v1/definitions")["definitions"][kind]
    current = known if kind == CLUSTER else known.get(name, {})
    spec = definition_of(kind, {} if is_new else current, fields)
    if kind == "limit" and not spec.get("amounts"):
        hint = f"For example: xce define limit {name} slots=8."
        raise Refused("FIELD=VALUE", "must give a limit at least one amount", hint=hint)
    try:
        answer = client.post(f"/v1/define/{kind}", _body(kind, name, spec))
    except Refused as error:
        # Nobody typed that word: what an administrator calls a host is a worker inside.
        error.field = "NAME" if kind == "host" and error.field == "worker" else error.field
        if error.rule == GIVEN and error.hint is None:
            error.hint = f"xce define {kind} --help says what it is, and gives examples."
        raise
    said = {text.partition("=")[0] for text in fields}
    notices = {**unit_notices(fields), **_notices(client, kind, name, said)}
    after = {**spec, "name": name} if kind == "resource" else spec
    changes = changes_of(kind, current, after)
    if as_json:
        plain = [{"field": one.field, "old": one.old, "new": one.new} for one in changes]
        say_json({**answer, "changes": plain, "notices": notices})
        return
    _say_changes(kind, name, changes, is_new=not current)
    note_each(notices)


def _say_changes(kind: str, name: str, changes: list[FieldChange], *, is_new: bool) -> None:
    what = "The cluster" if kind == CLUSTER else f"The {kind} {name}"
    if is_new:
        say(f"{what} is defined.")
        for one in changes:
            say(f"  {one.field} = {one.new}")
        return
    if not changes:
        say(f"Nothing changed: {what[0].lower()}{what[1:]} is so already.")
        return
    say(f"{what} is changed.")
    for one in changes:
        say(f"  {one.words()}")


def _body(kind: str, name: str, spec: Json) -> Json:
    """
    Return the command that asks for a definition.
    """
    if kind == "resource":
        return {"descriptor": {**spec, "name": name}}
    if kind == "host":
        return {"worker": name, "settings": spec}
    return {"settings": spec} if kind == CLUSTER else {kind: name, "spec": spec}


def _notices(client: Client, kind: str, name: str, said: set[str]) -> dict[str, str]:
    """
    Return what follows from a definition that nobody may expect.
    """
    if kind not in ("queue", "project") and not said & NOTED:
        return {}
    from tools.cli.definition_notices import notices_about, unreported
    from tools.cli.definitions import read_definitions

    found = read_definitions(client)
    notices = notices_about(found, kind, name, said)
    if "thresholds" in said:
        notices |= unreported(found, kind, name, client.get("/v1/hosts")["hosts"])
    return notices


@click.command(
    epilog="""
\b
Examples:
  xce remove limit l1
  xce remove project /physics/old
"""
)
@dir_option
@json_option
@click.argument("kind", metavar="KIND", type=click.Choice(REMOVED))
@click.argument("name", metavar="NAME")
def remove(directory: Path, kind: str, name: str, *, as_json: bool) -> None:
    """
    Remove a queue, user, group, project, limit or profile.
    """
    answer = Client(directory).post(f"/v1/remove/{kind}", {kind: name})
    if as_json:
        say_json(answer)
    else:
        say(f"The {kind} {name} is removed.")


@click.command(
    epilog="""
\b
Examples:
  xce limits
  xce limits --json | jq '.limits[] | select(.used_milli == .most_milli)'
Next: xce definitions limit NAME, xce define limit NAME ..., xce why JOB.
"""
)
@columns_option
@dir_option
@json_option
def limits(directory: Path, columns: str | None, *, as_json: bool) -> None:
    """
    Show what of each limit is in use, of queues, users, groups and projects too; and what may be
    where nothing is.
    """
    wanted = chosen(columns, HEADS)
    answer = Client(directory).get("/v1/limits")
    if as_json:
        say_json(answer)
        return
    told = [*map(_row, answer["limits"]), *map(_unused_row, answer["unused"])]
    if told:
        rows = [[row[column] for column in wanted] for row in told]
        table([HEADS[column] for column in wanted], rows, numbers="USED MOST", is_list=True)
    else:
        note("No limit is defined. xce define limit --help says how.")


def _row(limit: Json) -> list[Any]:
    show = show_memory if limit["resource"] in MEMORY_NAMES else show_milli
    most = limit["most_milli"]
    return [
        limit["limit"],
        limit["budget"],
        limit["host"],
        limit["resource"],
        show(limit["used_milli"]),
        "" if most is None else show(most),
    ]


def _unused_row(limit: Json) -> list[Any]:
    is_memory = limit["resource"] in MEMORY_NAMES and limit["basis"] == "absolute"
    most = (show_memory if is_memory else show_milli)(limit["most_milli"]) + BASES[limit["basis"]]
    each = "/".join(f"each {dimension[:-1]}" for dimension in limit["each"])
    host = "each" if limit["is_by_host"] else ""
    return [limit["limit"], each, host, limit["resource"], "0", most]

"""
Define and remove queues, users, groups, projects, limits and profiles, and how hosts are used; show
what is in use.

A definition is said as FIELD=VALUE. What isn't said stays as it is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from domain.errors import Refused
from domain.fairshare import parse_shares
from domain.limits import DIMENSIONS, Basis
from domain.name_lists import parse_names
from domain.resreq.settings import MEMORY_NAMES
from domain.thresholds import parse_thresholds
from domain.units import MemoryUnit, parse_memory_milli, parse_milli, show_memory, show_milli
from domain.windows import parse_windows
from tools.cli.client import Client, Json
from tools.cli.options import columns_option, dir_option, json_option
from tools.cli.output import chosen, note, say, say_json, table

DEFINED = ("queue", "resource", "user", "group", "project", "limit", "profile", "host")
REMOVED = ("queue", "user", "group", "project", "limit", "profile")

AMOUNTS = {"limit": "amounts", "project": "quotas"}
"""Kinds whose amounts are said by the resource's name, and the field that holds them."""

FIELDS = {
    "limit": {*DIMENSIONS, "windows", "description"},
    "project": {"users", "groups", "is_open", "description"},
}
TEXTS = {
    "description", "picker", "project", "default_project", "pre_exec", "post_exec", "resreq_mark",
    "tasks_mark", "run_limit_mark", "limits_mark", "exits_mark", "rerunnable_mark", "exec_mark",
    "env_mark",
}  # fmt: skip
QUEUE_LISTS = ("hosts", "users", "preemptible_queues", "preemptible_by")
HEADS = ("LIMIT", "OF", "HOST", "RESOURCE", "USED", "MOST")


def definition_of(kind: str, current: Json, texts: tuple[str, ...]) -> Json:
    """
    Return a definition with fields changed.

    Args:
        kind: Of what; limits and projects have amounts of resources.
        current: The definition now, empty for a new one.
        texts: FIELD=VALUE; a dot reaches into a field, nothing after = takes a value away.

    Raises:
        Refused: One isn't understood.
    """
    spec: Json = json.loads(json.dumps(current))
    for text in texts:
        name, is_told, value = text.partition("=")
        if not is_told or not name:
            raise Refused("definition", "must be said as FIELD=VALUE", text)
        if kind in FIELDS and name not in FIELDS[kind]:
            _set_amount(spec, AMOUNTS[kind], name, value)
        elif name == "resreq":
            spec["resreq"] = [value] if value else []
            spec["requirement"] = None
        else:
            _set_field(kind, spec, name, value)
    return spec


def _set_amount(spec: Json, field: str, resource: str, text: str) -> None:
    """
    Set the amount of one resource: 4, 2GB, 50%, 1.5/processor; take it away for an empty text.
    """
    kept = [each for each in spec.get(field) or [] if each["resource"] != resource]
    if text:
        number, basis = text, Basis.ABSOLUTE
        if text.endswith("%"):
            number, basis = text[:-1], Basis.PERCENT
        elif text.endswith("/processor"):
            number, basis = text.removesuffix("/processor"), Basis.PER_PROCESSOR
        is_memory = resource in MEMORY_NAMES and basis is Basis.ABSOLUTE
        milli = parse_memory_milli(number, unit=MemoryUnit.MB) if is_memory else parse_milli(number)
        kept.append({"resource": resource, "milli": milli, "basis": basis.value})
    spec[field] = kept


def _set_field(kind: str, spec: Json, name: str, text: str) -> None:
    inner, _, rest = name.partition(".")
    if name == "fairshare.shares" and text:
        shares = [each.model_dump(mode="json") for each in parse_shares(text)]
        spec[inner] = {**(spec.get(inner) or {}), rest: shares}
    elif rest:
        spec[inner] = spec.get(inner) or {}
        spec[inner][rest] = json.loads(text) if text else None
    elif text or name in TEXTS:
        spec[name] = _value(kind, name, text)
    else:
        spec.pop(name, None)


def _value(kind: str, name: str, text: str) -> Any:
    if kind == "limit" and name in DIMENSIONS:
        names = parse_names(text.removeprefix("each "), field=name)
        return {"names": names.model_dump(mode="json"), "is_each": text.startswith("each ")}
    if kind == "queue" and name in QUEUE_LISTS:
        return parse_names(text, field=name).model_dump(mode="json")
    if name in ("members", "users", "groups"):
        return text.split()
    if name.endswith("windows"):
        return parse_windows(text, field=name).model_dump(mode="json")
    if name == "thresholds":
        return [each.model_dump(mode="json") for each in parse_thresholds(text)]
    if name in TEXTS:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


@click.command(
    epilog="""
\b
Examples:
  xce define limit l1 users="each all ~root" slots=8 mem=64GB
  xce define limit half hosts="each all" mem=50% slots=2/processor
  xce define group physics members="alice bob" slots_max=100
  xce define project /physics groups=physics slots=200
  xce define queue short priority=40 tasks_max=4 limits.user_slots=10 hosts="h1+2 others"
  xce define queue urgent priority=90 preemptible_queues="short+1 normal"
  xce define queue normal preemptible_by=all          # urgent preempts it: both must say so
  xce define queue wide slot_reserve_us=3600000000
  xce define queue filler is_backfill=true
  xce define queue shared picker=fairshare fairshare.shares="ann=10 staff=5(bob=1 eve=2) default=1"
  xce define profile solver resreq="rusage[mem=2000]" resreq_mark=fixed
  xce define user alice slots_max=20
  xce define host alpha thresholds="r1m=4/8 mem=2GB/500MB" dispatch_windows="18:00-8:00"
  xce define queue night thresholds="it=10/1" on_load=requeue
A new queue must have a priority, a new limit at least one amount (slots=8); all else has a default.
Beyond the first bound of a threshold nothing starts, beyond the second running jobs are stopped.
What is defined already is changed only in the fields that are said; --new begins afresh.
What is defined: xce audit sql "SELECT kind, name, content FROM definitions WHERE NOT is_removed"
"""
)
@click.option("--new", "is_new", is_flag=True, help="Begin afresh, whatever is defined now.")
@dir_option
@json_option
@click.argument("kind", type=click.Choice(DEFINED))
@click.argument("name")
@click.argument("fields", nargs=-1, metavar="[FIELD=VALUE]...")
def define(
    directory: Path, kind: str, name: str, fields: tuple[str, ...], *, is_new: bool, as_json: bool
) -> None:
    """
    Define a queue, user, group, project, limit, profile or resource, or a host's settings.
    """
    client = Client(directory)
    known: Json = client.get("/v1/definitions")["definitions"][kind]
    spec = definition_of(kind, {} if is_new else known.get(name, {}), fields)
    if kind == "limit" and not spec.get("amounts"):
        hint = f"For example: xce define limit {name} slots=8."
        raise Refused("FIELD=VALUE", "must give a limit at least one amount", hint=hint)
    if kind == "resource":
        body: Json = {"descriptor": {**spec, "name": name}}
    elif kind == "host":
        body = {"worker": name, "settings": spec}
    else:
        body = {kind: name, "spec": spec}
    answer = client.post(f"/v1/define/{kind}", body)
    if as_json:
        say_json(answer)
    else:
        say(f"The {kind} {name} is defined.")


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
@click.argument("kind", type=click.Choice(REMOVED))
@click.argument("name")
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
Next: xce define limit NAME ..., xce why JOB.
"""
)
@columns_option
@dir_option
@json_option
def limits(directory: Path, columns: str | None, *, as_json: bool) -> None:
    """
    Show what of each limit is in use, of queues, users, groups and projects too.
    """
    wanted = chosen(columns, HEADS)
    answer = Client(directory).get("/v1/limits")
    if as_json:
        say_json(answer)
    elif not answer["limits"]:
        note("Nothing that a limit counts is in use.")
    else:
        rows = [[row[column] for column in wanted] for row in map(_row, answer["limits"])]
        table([HEADS[column] for column in wanted], rows, numbers="USED MOST")


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

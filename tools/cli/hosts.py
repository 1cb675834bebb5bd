"""
List hosts, and close and open them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from domain.errors import NotFound
from tools.cli.client import Client, Json, segment
from tools.cli.groups import ByName, meant
from tools.cli.lsf_options import OF_HOSTS, refusing
from tools.cli.options import columns_option, dir_option, json_option, watch_option
from tools.cli.output import (
    as_typed,
    chosen,
    counted,
    note,
    say,
    say_json,
    show_amount,
    show_time,
    table,
    watch,
)

HEADS = ("HOST", "STATUS", "SLOTS", "USED", "FREE", "JOBS", "MEM", "MEM_FREE", "WHY")
NUMBERS = "SLOTS USED FREE JOBS MEM MEM_FREE"


def _memory(host: Json, which: str) -> str | None:
    for resource in host.get("resources") or ():
        if resource.get("name") == "mem" and resource.get(which) is not None:
            return show_amount("mem", resource[which])
    return None


def _row(host: Json) -> list[Any]:
    used = host.get("slots_used", 0)
    return [
        host["host"], host["status"], host["slots"], used, max(0, host["slots"] - used),
        host.get("jobs"), _memory(host, "total_milli"), _memory(host, "available_milli"),
        host.get("why"),
    ]


@click.group(cls=ByName, invoke_without_command=True, epilog="""
\b
Examples:
  xce hosts --watch
  xce hosts alpha                  one in full
  xce hosts close alpha --why "new disk"
  xce hosts open alpha
""")
@refusing(*OF_HOSTS)
@columns_option
@watch_option
@dir_option
@json_option
@click.pass_context
def hosts(
    ctx: click.Context,
    directory: Path,
    columns: str | None,
    watch_s: float | None,
    *,
    as_json: bool,
) -> None:
    """
    List the hosts; with a HOST show one in full, with a subcommand close or open one.
    """
    if ctx.invoked_subcommand is None:
        wanted = chosen(columns, HEADS)
        client = Client(directory)
        watch(lambda: _list(client, wanted, as_json=as_json), watch_s)


def _list(client: Client, columns: list[int], *, as_json: bool) -> None:
    answer = client.get("/v1/hosts")
    if as_json:
        say_json(answer)
        return
    rows = [[row[column] for column in columns] for row in map(_row, answer["hosts"])]
    if rows:
        table([HEADS[column] for column in columns], rows, numbers=NUMBERS, is_list=True,
              tells=columns[-1:] == [len(HEADS) - 1])  # fmt: skip
    else:
        start = as_typed("xce", "worker", "--dir", client.directory)
        note(f"No host has joined. Start one: {start}")


@hosts.command(epilog="""
\b
Example:
  xce hosts show alpha             the same: xce hosts alpha
Next: xce jobs -m alpha; xce define host alpha FIELD=VALUE.
""")
@click.argument("name", metavar="HOST")
@dir_option
@json_option
def show(directory: Path, name: str, *, as_json: bool) -> None:
    """
    Show a host in full: how it is, what it has and has free, and its settings.
    """
    from tools.cli.definitions import read_definitions, show_definition

    client = Client(directory)
    found = client.get("/v1/hosts")["hosts"]
    row = next((each for each in found if each["host"] == name), None)
    if row is None:
        names = [each["host"] for each in found]
        rule = f"must be one of {', '.join(names[:20]) or 'none yet'}, or a subcommand"
        raise NotFound("host", rule, name, meant(name, [*names, *hosts.commands]).strip() or None)
    defined = read_definitions(client)
    if as_json:
        settings = defined.one("host", name)
        say_json({"position": defined.position, **row, "settings": settings})
        return
    why = f" ({row['why']})" if row["why"] else ""
    used = f"{row['slots_used']} of {row['slots']} slots used by {counted(row['jobs'], 'job')}"
    say(f"Host {name} is {row['status']}{why}: {used}.")
    heard = show_time(row["report_us"])
    say(f"It joined at {show_time(row['joined_us'])}; its last report that said anything new is of "
        f"{heard}.")
    table(("HAS", "VALUE", "FREE"), _has(row))
    say()
    if row.get("load"):
        table(("LOAD", "VALUE", "MEANS"), _load(row), numbers="VALUE")
        say()
    show_definition(defined, "host", name)


def _has(row: Json) -> list[tuple[str, str, str]]:
    amounts = [
        (one["name"], *(show_amount(one["name"], one[which]) for which in
                        ("total_milli", "available_milli")))
        for one in row["resources"]
    ]  # fmt: skip
    return [*amounts, *((name, str(value), "") for name, value in row["attributes"].items())]


def _load(row: Json) -> list[tuple[str, str, str]]:
    """
    Return each load index that a host's worker reports, with what it means.
    """
    from domain.resources import BUILT_IN

    return [
        (
            one["index"],
            show_amount(one["index"], one["milli"]),
            BUILT_IN[one["index"]].description if one["index"] in BUILT_IN else "",
        )
        for one in row["load"]
    ]


def _set(directory: Path, name: str, verb: str, body: Json, *, as_json: bool) -> None:
    answer = Client(directory).post(f"/v1/hosts/{segment(name)}/{verb}", body)
    if as_json:
        say_json({"host": name, **answer})
    else:
        said = {"close": "is closed", "drain": "takes no new jobs and runs dry", "open": "is open"}
        say(f"Host {name} {said[verb]}.")


@hosts.command(epilog="""
\b
Example:
  xce hosts close alpha --why "new disk"
Its jobs go on; open it again by: xce hosts open alpha
""")
@click.argument("name", metavar="HOST")
@click.option("--why", default="", help="For those who ask later.")
@dir_option
@json_option
def close(directory: Path, name: str, why: str, *, as_json: bool) -> None:
    """
    Close a host to new jobs.
    """
    _set(directory, name, "close", {"why": why}, as_json=as_json)


@hosts.command(epilog="""
\b
Example:
  xce hosts drain alpha --why "new kernel"; xce hosts --watch 5
It is draining while it has jobs, then drained; open it again by: xce hosts open alpha
""")
@click.argument("name", metavar="HOST")
@click.option("--why", default="", help="For those who ask later.")
@dir_option
@json_option
def drain(directory: Path, name: str, why: str, *, as_json: bool) -> None:
    """
    Let a host run dry: no new jobs, those that it has end by themselves.
    """
    _set(directory, name, "drain", {"why": why}, as_json=as_json)


@hosts.command("open", epilog="""
\b
Example:
  xce hosts open alpha
""")
@click.argument("name", metavar="HOST")
@dir_option
@json_option
def open_(directory: Path, name: str, *, as_json: bool) -> None:
    """
    Open a host to new jobs again.
    """
    _set(directory, name, "open", {}, as_json=as_json)

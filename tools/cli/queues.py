"""
List queues, and open, close, activate and inactivate them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from domain.errors import NotFound
from tools.cli.client import Client, Json, segment
from tools.cli.groups import ByName, meant
from tools.cli.lsf_options import OF_QUEUES, refusing
from tools.cli.options import columns_option, dir_option, json_option, watch_option
from tools.cli.output import chosen, say, say_json, table, watch

HEADS = ("QUEUE", "PRIORITY", "STATUS", "PICKER", "JOBS", "PEND", "RUN", "SUSP", "DESCRIPTION")


def _row(queue: Json) -> list[Any]:
    status = f"{'open' if queue['is_open'] else 'closed'}:{_starts(queue)}"
    jobs = queue.get("jobs") or {}
    waiting = sum(jobs.get(state, 0) for state in ("PEND", "PSUSP", "WAIT"))
    running = sum(jobs.get(state, 0) for state in ("RUN", "UNKWN"))
    stopped = sum(jobs.get(state, 0) for state in ("USUSP", "SSUSP"))
    return [
        queue["queue"], queue["priority"], status, queue.get("picker"),
        waiting + running + stopped, waiting, running, stopped, queue.get("description"),
    ]


def _starts(queue: Json) -> str:
    """
    Return in a word whether a queue's jobs may start; that of its windows is LSF's.
    """
    if not queue["is_active"]:
        return "inactive"
    return "active" if queue["is_in_windows"] else "inact_win"


@click.group(cls=ByName, invoke_without_command=True, epilog="""
\b
Examples:
  xce queues
  xce queues normal                one in full: its definition, and what holds where it says nothing
  xce queues inactivate normal     nothing of it starts; submissions are taken
  xce queues close normal          no submissions; what waits still starts
""")
@refusing(*OF_QUEUES)
@columns_option
@watch_option
@dir_option
@json_option
@click.pass_context
def queues(
    ctx: click.Context,
    directory: Path,
    columns: str | None,
    watch_s: float | None,
    *,
    as_json: bool,
) -> None:
    """
    List the queues; with a QUEUE show one in full, with a subcommand change one.
    """
    if ctx.invoked_subcommand is None:
        wanted = chosen(columns, HEADS)
        client = Client(directory)
        watch(lambda: _list(client, wanted, as_json=as_json), watch_s)


def _list(client: Client, columns: list[int], *, as_json: bool) -> None:
    answer = client.get("/v1/queues")
    if as_json:
        say_json(answer)
        return
    rows = [[row[column] for column in columns] for row in map(_row, answer["queues"])]
    heads = [HEADS[column] for column in columns]
    table(heads, rows, numbers="PRIORITY JOBS PEND RUN SUSP", is_list=True, spare="PICKER")


@queues.command(epilog="""
\b
Example:
  xce queues show normal           the same: xce queues normal
Next: xce define queue normal FIELD=VALUE; xce define queue --help names the fields.
""")
@click.argument("name", metavar="QUEUE")
@dir_option
@json_option
def show(directory: Path, name: str, *, as_json: bool) -> None:
    """
    Show a queue in full: how it is, every field of its definition, and what holds by it.
    """
    from tools.cli.definitions import show_queue

    client = Client(directory)
    found = client.get("/v1/queues")["queues"]
    row = next((each for each in found if each["queue"] == name), None)
    if row is None:
        names = [each["queue"] for each in found]
        rule = f"must be one of {', '.join(names)}, or a subcommand"
        raise NotFound("queue", rule, name, meant(name, [*names, *queues.commands]).strip() or None)
    show_queue(client, row, name, as_json=as_json)


def _setter(verb: str, done: str, summary: str) -> None:
    """
    Add one subcommand that changes a queue.
    """

    @queues.command(verb, help=summary, epilog=f"\b\nExample:\n  xce queues {verb} normal\n")
    @click.argument("name", metavar="QUEUE")
    @dir_option
    @json_option
    def change(directory: Path, name: str, *, as_json: bool) -> None:
        answer = Client(directory).post(f"/v1/queues/{segment(name)}/{verb}")
        if as_json:
            say_json({"queue": name, **answer})
        else:
            say(f"Queue {name} is {done}.")


_setter("open", "open", "Let a queue take submissions.")
_setter("close", "closed", "Let a queue take no more submissions.")
_setter("activate", "active", "Let a queue's jobs start.")
_setter("inactivate", "inactive", "Let no job of a queue start.")

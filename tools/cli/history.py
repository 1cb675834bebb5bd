"""
Tell the story of a job, an array, a host, a queue or whatever else has one, from the tables; of a
job also from the scheduler, for whoever may not read the log.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from domain.errors import Refused
from tools.cli.audit_asking import (
    answered_by_scheduler,
    fresh_option,
    from_option,
    now_us_of,
    time_of,
    to_option,
    viewer_of,
)
from tools.cli.client import Client, Json, segment
from tools.cli.options import dir_option, json_option
from tools.cli.output import counted, say, say_hanging, say_json, show_duration, table

ELEMENTS_SHOWN = 50


@click.command(epilog="""
\b
Examples:
  xce history 12
  xce history '12[3]'            an element; of the whole array: xce history 12
  xce history alpha              a host; --reports tells what it reported, too
  xce history queue:normal       who changed it, from what to what
  xce history 12 --from 2026-11-29T03:00:00Z --to 15200 --jsonl
  xce history 12 --json | jq -r '.events[] | [.position, .text] | @tsv'
It is told from the log, also with the scheduler down and when the job ended long ago; whoever may
not read the log hears it from the scheduler. Next: xce why 12.
""")
@click.argument("name", metavar="JOB|HOST|QUEUE|PROJECT|KIND:NAME")
@from_option
@to_option
@click.option("-l", is_flag=True, hidden=True, expose_value=False)  # LSF's, for what it tells.
@click.option("--reports", is_flag=True, help="Tell a host's load reports too.")
@click.option("--jsonl", is_flag=True, help="Print one JSON object for each event.")
@fresh_option
@dir_option
@json_option
def history(
    directory: Path,
    name: str,
    from_text: str | None,
    to_text: str | None,
    *,
    reports: bool,
    jsonl: bool,
    stale: bool,
    as_json: bool,
) -> None:
    """
    Tell the story of a job: positions, times, actors, what happened; then the time in each state.

    A host, a queue or anything else by its name (or kind:name) has a story too.
    """
    if jsonl and as_json:
        raise Refused("jsonl", "must not be given with --json", None, "Choose one.")

    def show(told: Json) -> None:
        if jsonl:
            for line in told["events"]:
                click.echo(json.dumps(line))
        elif as_json:
            say_json(told)
        else:
            _show(told)

    only_tables = "" if name[:1].isdigit() else "any story but a job's"
    if from_text or to_text:
        only_tables = "--from and --to"
    if answered_by_scheduler(
        directory, lambda: show(_from_scheduler(directory, name)), only_log=only_tables,
        may_be_far=stale,
    ):  # fmt: skip
        return
    show(_from_tables(directory, name, from_text, to_text, reports=reports, stale=stale))


def _from_scheduler(directory: Path, job_id: str) -> Json:
    with Client(directory) as client:
        return client.get(f"/v1/jobs/{segment(job_id)}/history")


def _from_tables(
    directory: Path, name: str, from_text: str | None, to_text: str | None,
    *, reports: bool, stale: bool,
) -> Json:  # fmt: skip
    from projections.audit.history import story
    from tools.cli.audit import asked

    with asked(directory, fresh=not stale) as reading:
        told = story(
            reading,
            name,
            viewer=viewer_of(Path(reading.path)),
            from_us=time_of(reading, from_text, "from"),
            to_us=time_of(reading, to_text, "to"),
            now_us=now_us_of(reading),
            with_reports=reports,
        )
    return told.plain()


# ------------------------------------------------------------------------------------- the screen


def _show(told: Json) -> None:
    kind = "host" if told["kind"] == "worker" else str(told["kind"])
    say(f"{kind.capitalize()} {told['name']}".rstrip())
    wide = len(str(told["position"])) + 1
    for line in told["events"]:
        _show_line(line, wide, "job" if kind == "array" else str(told["kind"]))
    if told.get("elements"):
        _show_elements(told["elements"])
    if told["in_state_us"]:
        _show_times(told["in_state_us"], kind)
    say_hanging(f"Told from {_period(told)}, position {told['position']:,} of the log.")


def _show_line(line: Json, wide: int, kind: str) -> None:
    from projections.audit.times import moment
    from projections.audit.who import is_removal, told_changes

    by = f" by {line['actor']}" if line["actor"] else ""
    number = f"{'#' + str(line['position']):>{wide}}"
    say_hanging(f"{number}  {moment(line['time_us'])}{by}: {line['text']}", wide + 2)
    gone, is_new = is_removal(line["type_code"]), line.get("is_new", False)
    for words in told_changes(line["changes"], kind, is_new=is_new, is_removal=gone):
        say_hanging(f"{'':{wide}}    {words}", wide + 4)


def _show_elements(elements: list[Json]) -> None:
    states = list(elements[0]["in_state_us"])
    say(f"{counted(len(elements), 'element')}, with the time in each state:")
    rows = [
        (one["job_id"], one["state"], *(show_duration(one["in_state_us"][of]) for of in states))
        for one in elements[:ELEMENTS_SHOWN]
    ]
    table(["JOB", "STATE", *(f"IN_{state}" for state in states)], rows,
          numbers=" ".join(f"IN_{state}" for state in states))  # fmt: skip
    if len(elements) > ELEMENTS_SHOWN:
        say(f"and {len(elements) - ELEMENTS_SHOWN:,} more; --json names them all")


def _show_times(in_state_us: dict[str, int], kind: str) -> None:
    whose = " of all elements" if kind == "array" else ""
    say(f"Time in each state{whose}:")
    heads = [*in_state_us, "TOTAL"]
    shown = [*map(show_duration, in_state_us.values()), show_duration(sum(in_state_us.values()))]
    table(heads, [shown], numbers=" ".join(heads))


def _period(told: Json) -> str:
    from projections.audit.times import moment

    begin = "the log's beginning" if told["from_us"] is None else moment(told["from_us"])
    if told["from_us"] is None and told["first_position"] > 1:
        begin = f"position {told['first_position']:,} (what came before was pruned)"
    return f"{begin} to {moment(told['now_us'] if told['to_us'] is None else told['to_us'])}"

"""
What is done with a running scheduler itself: recording it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tools.cli.client import Client
from tools.cli.groups import Commands
from tools.cli.options import dir_option, examples, json_option
from tools.cli.output import counted, say, say_json

# A process of its own folds the log up to now before there is an answer.
BEGIN_S = 3600.0


@click.group(cls=Commands, epilog=examples("xce scheduler record start evening.jsonl"))
def scheduler() -> None:
    """
    Do something with the running scheduler itself.
    """


@scheduler.group(cls=Commands, epilog=examples(
    "xce scheduler record start evening.jsonl --states-every 10000",
    "xce scheduler record status",
    "xce scheduler record stop",
    after="Next: xce replay verify evening.jsonl; xce simulate evening.jsonl; without names of "
    "people:\n  xce log export evening.jsonl given-away.jsonl --anonymise.",
))
def record() -> None:
    """
    Record what the running scheduler takes in and decides into a file that replays by itself.

    The file begins with the whole state and goes on until it is stopped or the scheduler ends; it
    is written on the scheduler's host, by its user.
    """


@record.command(epilog=examples("xce scheduler record start /var/tmp/evening.jsonl"))
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--states-every", "every", metavar="EVENTS", default=50_000, show_default=True,
              type=click.IntRange(min=1), help="Write the whole state every so many events.")
@dir_option
@json_option
def start(file: Path, every: int, directory: Path, *, as_json: bool) -> None:
    """
    Begin a recording in the new file FILE.
    """
    with Client(directory, answer_s=BEGIN_S) as client:
        body = {"file": str(file.absolute()), "states_every": every}
        _show(client.post("/v1/recording/start", body), as_json=as_json)


@record.command(epilog=examples("xce scheduler record stop"))
@dir_option
@json_option
def stop(directory: Path, *, as_json: bool) -> None:
    """
    End the recording with what is committed now.
    """
    with Client(directory) as client:
        _show(client.post("/v1/recording/stop"), as_json=as_json)


@record.command(epilog=examples("xce scheduler record status --json"))
@dir_option
@json_option
def status(directory: Path, *, as_json: bool) -> None:
    """
    Say what is recorded, or what was recorded last.
    """
    with Client(directory) as client:
        _show(client.get("/v1/recording"), as_json=as_json)


def _show(told: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        say_json(told)
        return
    if "file" not in told:
        say("Nothing is recorded.")
        return
    word = "Recording to" if told["recording"] else "Recorded in"
    say(f"{word} {told['file']}: {counted(told['events'], 'event')} from position "
        f"{told['first_position']}, {counted(told['states'], 'state')}.")
    if "problem" in told:
        say(f"It ended by itself: {told['problem']}")

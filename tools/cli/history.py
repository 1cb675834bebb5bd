"""
Tell the story of a job, from the scheduler or, when it is down, from the log itself.
"""

from __future__ import annotations

import time
from pathlib import Path

import click

from domain.errors import StoreUnavailable
from tools.cli.audit_asking import from_option, to_option
from tools.cli.client import Client, Json, NoScheduler, segment
from tools.cli.options import dir_option, json_option
from tools.cli.output import note, say, say_json, show_duration, show_time, table

STATES = ("PEND", "PSUSP", "RUN", "USUSP", "SSUSP", "UNKWN")


@click.command(epilog="""
\b
Examples:
  xce history 12
  xce history 12 --json | jq -r '.events[] | [.position, .text] | @tsv'
  xce history alpha
  xce history queue:normal
  xce history 12 --from 2026-11-29T03:00:00Z --to 15200 --jsonl
Without a scheduler the log is read directly, if you may read it. The story of a host, queue or
project, and one with --from, --to or --jsonl, comes from the audit tables beside the log (more:
xce audit history). Next: xce why 12.
""")
@click.argument("job_id", metavar="JOB|HOST|QUEUE|PROJECT")
@from_option
@to_option
@click.option("--jsonl", is_flag=True, help="Print one JSON object for each event.")
@dir_option
@json_option
@click.pass_context
def history(
    ctx: click.Context,
    directory: Path,
    job_id: str,
    from_text: str | None,
    to_text: str | None,
    *,
    jsonl: bool,
    as_json: bool,
) -> None:
    """
    Tell the story of a job: positions, times, actors, what happened; then the time in each state.

    A host, a queue or anything else by its name (or kind:name) has a story too.
    """
    if not job_id[:1].isdigit() or from_text or to_text or jsonl:
        from tools.cli.audit_questions import history as from_tables

        ctx.invoke(
            from_tables, directory=directory, name=job_id, from_text=from_text,
            to_text=to_text, reports=False, jsonl=jsonl, stale=False, as_json=as_json,
        )
        return
    try:
        answer = Client(directory).get(f"/v1/jobs/{segment(job_id)}/history")
    except NoScheduler as down:
        answer = _from_log(directory, job_id, down)
        note("xce: no scheduler answers; this is from the log itself.")
    if as_json:
        say_json(answer)
    else:
        _show(answer)


def _from_log(directory: Path, job_id: str, down: NoScheduler) -> Json:
    """
    Return the same object as the scheduler would give.

    Raises:
        NoScheduler: There is no log either.
    """
    if not (directory / "log").is_dir():
        raise down
    from replay.story import job_story
    from store.log import EventLog
    from tools.cli.audit_asking import viewer_of

    try:
        log = EventLog.open(directory / "log", writable=False)
    except StoreUnavailable as error:
        raise down from error
    try:
        viewer = viewer_of(directory / "log")
        names = _host_names(log)
        story = job_story(log, job_id, names.__getitem__, may_see=viewer.may_see)
        return story.plain(now_us=time.time_ns() // 1000, position=log.head())
    finally:
        log.close()


def _host_names(log: object) -> dict[int, str]:
    """
    Return the names of all hosts that ever joined, by number.
    """
    from domain.events.workers import WorkerJoined
    from domain.ids import entity_of_stream
    from store.log import EventLog

    assert isinstance(log, EventLog)
    return {
        envelope.event.host_number: entity_of_stream(envelope.stream)[1]
        for envelope in log.read()
        if isinstance(envelope.event, WorkerJoined)
    }


def _show(answer: Json) -> None:
    say(f"Job {answer['job_id']}, as of position {answer['position']} of the log")
    rows = [
        (event["position"], show_time(event["time_us"]), event["actor"], event["text"])
        for event in answer["events"]
    ]
    table(("POSITION", "TIME", "ACTOR", "WHAT HAPPENED"), rows, numbers="POSITION")
    spent = answer["in_state_us"]
    say()
    say("Time in each state:")
    heads = [state for state in STATES if state in spent or state in ("PEND", "RUN")]
    totals = [show_duration(spent.get(state, 0)) for state in heads]
    table([*heads, "TOTAL"], [[*totals, show_duration(sum(spent.values()))]],
          numbers=" ".join((*heads, "TOTAL")))

"""
Submit a job: options in, one keyed request out, once and only once.
"""

from __future__ import annotations

import os
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import click

from domain.errors import NotFound, Refused
from tools.cli.client import Client, Json, NoScheduler, segment
from tools.cli.options import dir_option, json_option
from tools.cli.output import note, say, say_json
from tools.cli.submit_options import (
    more_of,
    more_options,
    parse_run_limit,
    parse_transfer,
)

ENV_BYTES_MAX = 512 * 1024
ENV_COUNT_MAX = 4096
# A cluster whose workers are still on their way can start nothing either.
NEVER_S = 3.0


def parse_tasks(text: str) -> tuple[int, int]:
    """
    Return fewest and most tasks of "MIN" or "MIN,MAX".

    Raises:
        Refused: It is something else.
    """
    least, _, most = text.partition(",")
    if not least.isdecimal() or (most and not most.isdecimal()) or text.endswith(","):
        raise Refused("-n", "must be MIN or MIN,MAX in whole numbers", text)
    tasks_min, tasks_max = int(least), int(most or least)
    if tasks_min < 1:
        raise Refused("-n", "must ask for at least 1 task", text)
    if tasks_max < tasks_min:
        raise Refused("-n", "must not have a MAX below its MIN", text)
    return tasks_min, tasks_max


def environment(changes: tuple[str, ...], current: dict[str, str]) -> dict[str, str]:
    """
    Return the environment of a job: the current one, changed option by option.

    Args:
        changes: NONE empties it, ALL takes the current one, NAME=VALUE sets, NAME takes one
            variable from the current one, ~NAME leaves one out.
        current: The environment of the caller.

    Raises:
        Refused: A change names nothing that is there, or the whole is too large.
    """
    chosen = dict(current)
    for change in changes:
        name, equals, value = change.partition("=")
        if equals and name:
            chosen[name] = value
        elif change.upper() in ("ALL", "NONE"):
            chosen = dict(current) if change.upper() == "ALL" else {}
        elif change.startswith("~"):
            chosen.pop(change[1:], None)
        elif change in current:
            chosen[change] = current[change]
        else:
            rule = "must be ALL, NONE, NAME=VALUE, ~NAME or a variable that is set"
            raise Refused("--env", rule, change)
    _check_environment(chosen)
    return chosen


def _check_environment(chosen: dict[str, str]) -> None:
    size = sum(len(os.fsencode(f"{name}={value}")) + 1 for name, value in chosen.items())
    if len(chosen) > ENV_COUNT_MAX or size > ENV_BYTES_MAX:
        rule = f"must hold at most {ENV_COUNT_MAX} variables and {ENV_BYTES_MAX // 1024} KiB in all"
        found = f"{len(chosen)} variables, {size // 1024} KiB"
        raise Refused("--env", rule, found, "Begin with --env NONE and name what the job needs.")
    for name, value in chosen.items():
        _check_text(f"--env {name}", name + value, f"Leave it out: --env '~{name}'.")


def _check_text(field: str, text: str, hint: str | None = None) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused(field, "must be UTF-8", hint=hint) from None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _program(command: tuple[str, ...], options: dict[str, Any]) -> Json:
    shell = options["shell"]
    if bool(command) == (shell is not None):
        hint = "For example: xce submit -- sleep 10, or xce submit --shell 'date | tee now'."
        raise Refused("COMMAND", "must be given after --, or else by --shell", hint=hint)
    for text in (*command, shell or ""):
        _check_text("command", text)
    variables = environment(options["env"], dict(os.environ))
    cwd = Path(options["cwd"] or Path.cwd()).absolute()
    return {
        "argv": list(command),
        "shell": shell,
        "cwd": str(cwd),
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "umask": _umask(),
        **{name: _within(cwd, options[name]) for name in ("stdin", "stdout", "stderr")},
        "pre_exec": options["pre_exec"] or "",
        "post_exec": options["post_exec"] or "",
        "transfers": [parse_transfer(text) for text in options["transfers"]],
    }


def _within(cwd: Path, path: str | None) -> str:
    """
    Return a file of the job as an absolute path: relative ones count from the job's directory.
    """
    within = str(cwd).replace("%", "%%")  # The directory's name is meant as it is.
    return str(Path(within, path)) if path else ""


def request_of(command: tuple[str, ...], options: dict[str, Any]) -> Json:
    """
    Return the body of a submission.

    Raises:
        Refused: An option breaks a rule that can be told here.
    """
    from domain.arrays import INDEX_MAX, parse_job_name

    tasks = options["tasks"]
    given = parse_tasks(tasks) if tasks else ()
    least_and_most = zip(("tasks_min", "tasks_max"), given, strict=False)
    run_limit = options["run_limit"]
    name, array = parse_job_name(options["name"] or "", index_max=INDEX_MAX, field="-J")
    return {
        "key": options["key"] or str(uuid.uuid4()),
        "queue": options["queue"] or "",
        "name": name,
        "array": None if array is None else array.model_dump(),
        "group": options["group"] or "",
        "project": options["project"] or "",
        "profile": options["profile"] or "",
        **dict(least_and_most),
        "program": _program(command, options),
        "resreq": list(options["resreq"]),
        "run_limit_us": None if run_limit is None else parse_run_limit(run_limit),
        "hold": options["hold"],
        **more_of(options),
    }


EPILOG = """
\b
Examples:
  xce submit -- sleep 60
  xce submit -n 4 -R "rusage[mem=500]" -J solve -o out.txt -- ./solve --fast
  xce submit -K --shell 'sort big.txt | uniq > small.txt'
  xce submit -J 'sim[1-100]%10' -o out.%I -- ./sim  # LSB_JOBINDEX is the index
  id=$(xce submit --json -- make | jq -r .job_id); xce history $id
The answer comes after the job is safe on disk. Next: xce jobs, xce why JOB, xce kill JOB.
"""


# Options end where the command begins, as in LSF: in "submit ls -l" the -l belongs to ls.
@click.command(epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@click.option("-n", "tasks", metavar="MIN[,MAX]",
              help="How many tasks (slots); else what profile and queue say, else 1.")
@click.option("-R", "resreq", multiple=True, metavar="TEXT",
              help='Resource requirement such as "rusage[mem=500]"; may be given several times.')
@click.option("-q", "queue", metavar="QUEUE", help="The queue; else the cluster's default.")
@click.option("-G", "group", metavar="GROUP", help="The user group that it counts for.")
@click.option("-P", "project", metavar="PATH", help="Its project, such as /a/b.")
@click.option("--app", "profile", metavar="PROFILE", help="Its application profile.")
@click.option("-J", "name", metavar="NAME[LIST]%K",
              help="A name for people; with indices such as sim[1-100:2]%10 an array, of which at "
                   "most K elements are started at a time.")
@click.option("-W", "run_limit", metavar="[HOURS:]MINUTES",
              help="Run limit, also as 1h30m; a job that runs longer, suspended time not counted, "
                   "is ended.")
@more_options
@click.option("-i", "stdin", metavar="FILE",
              help="Standard input; else empty. %J and %I as for -o.")
@click.option("-o", "stdout", metavar="FILE",
              help="Standard output; else a file of the worker. %J in it is the job's number, %I "
                   "the index in an array (else 0), %% is %.")
@click.option("-e", "stderr", metavar="FILE",
              help="Standard error; else a file of the worker. %J and %I as for -o.")
@click.option("-E", "--pre-exec", "pre_exec", metavar="TEXT",
              help="Run this text by /bin/sh first, on the host; if it fails the job is tried on "
                   "another one, with 99 it ends.")
@click.option("-Ep", "--post-exec", "post_exec", metavar="TEXT",
              help="Run this text by /bin/sh afterwards, however the job ended; LSB_JOBEXIT_STAT "
                   "tells it how.")
@click.option("-f", "transfers", multiple=True, metavar='"FILE OP [FILE]"',
              help='Copy a file: "in > there" before the job, "out < there" after it, '
                   '"log << there" appends it then, <> does both; several times.')
@click.option("--cwd", metavar="DIR", help="Where the job runs; else here.")
@click.option("--env", multiple=True, metavar="WHAT",
              help="ALL, as if not given: all of this environment; NONE; NAME=VALUE; NAME; ~NAME "
                   "leaves one out. May be given several times, and is taken in this order; at "
                   f"most {ENV_BYTES_MAX // 1024} KiB.")
@click.option("-H", "--hold", is_flag=True, help="Keep it back until xce resume.")
@click.option("-K", "--wait-for-end", "wait_for_end", is_flag=True,
              help="Wait for its end, and end with its exit code, 128 + its signal, or 1 when it "
                   "never ran.")
@click.option("--shell", metavar="TEXT", help="Run this text by /bin/sh instead of a command.")
@click.option("--key", metavar="KEY",
              help="A name of this submission: the same key again gives the same job, never two.")
@click.option("--wait", "wait_s", default=10.0, type=click.FloatRange(min=0), metavar="SECONDS",
              show_default=True, help="Try for so long while the scheduler is away.")
@dir_option
@json_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
def submit(directory: Path, wait_s: float, *, as_json: bool, **options: Any) -> None:
    """
    Submit a job.

    The command runs in this directory with this environment, as it is given: no shell looks at it.
    """
    body = request_of(options["command"], options)
    client = Client(directory, wait_s=wait_s, waiting=_announcer(directory, wait_s))
    try:
        answer = client.post("/v1/jobs", body)
    except NotFound as error:
        # What it names isn't there, so the submission is refused: nothing was looked for.
        raise Refused(error.field, error.rule, error.value, error.hint) from error
    if as_json:
        say_json({**answer, "replayed": bool(answer.get("replayed"))})
    else:
        again = " was submitted before, by the same key" if answer.get("replayed") else ""
        say(f"Job {answer['job_id']}{again or ' is submitted'}.")
        for text in answer.get("notes", ()):
            note(f"xce: {text}")
    sys.stdout.flush()
    if options["wait_for_end"]:
        raise click.exceptions.Exit(_wait_for_end(client, answer["job_id"]))


def _announcer(directory: Path, wait_s: float) -> Any:
    return lambda: note(f"xce: no scheduler answers in {directory}; trying for {wait_s:g} s.")


def _wait_for_end(client: Client, job_id: str) -> int:
    """
    Return the exit status of a job when it has ended; the scheduler may come and go meanwhile.
    """
    pause_s = 0.05
    never_since_s: float | None = None
    told = False
    while True:
        try:
            job = client.get(f"/v1/jobs/{segment(job_id)}")
        except NoScheduler:
            job = {}
        job = job.get("job", job)
        if job.get("state") in ("DONE", "EXIT"):
            if job.get("exit_code") is None and job.get("signal") is None:
                note(f"xce: job {job_id} never ran: see xce why {job_id}")
            return _status_of(job)
        if not job.get("never"):
            never_since_s = None
        elif never_since_s is None:
            never_since_s = time.monotonic()
        elif not told and time.monotonic() - never_since_s >= NEVER_S:
            note(f"xce: job {job_id} can't start on this cluster as it is: see xce why {job_id}")
            told = True
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 1.0)


def _status_of(job: Json) -> int:
    if job.get("exit_code") is not None:
        return int(job["exit_code"])
    if job.get("signal") is not None:
        return 128 + int(job["signal"])
    return 1

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
from domain.paths import STREAMS, within
from tools.cli.client import Client, Json, NoScheduler, segment
from tools.cli.job_options import asking, fields_of
from tools.cli.job_texts import environment, variables
from tools.cli.moments import tell_moments
from tools.cli.options import Seconds, dir_option, json_option
from tools.cli.output import note, say, say_json

# A cluster whose workers are still on their way can start nothing either.
NEVER_S = 3.0


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def request_of(command: tuple[str, ...], options: dict[str, Any]) -> Json:
    """
    Return the body of a submission.

    Raises:
        Refused: An option breaks a rule that can be told here.
    """
    if bool(command) == (options["shell"] is not None):
        hint = "For example: xce submit -- sleep 10, or xce submit --shell 'date | tee now'."
        raise Refused("COMMAND", "must be given after --, or else by --shell", hint=hint)
    body = fields_of(options)
    usual: Json = {"argv": list(command), "cwd": str(Path.cwd().absolute()), "umask": _umask()}
    program = usual | body.get("program", {})
    for name in STREAMS:
        program[name] = within(str(program["cwd"]), str(program.get(name, "")))
    if "env" not in program:
        program["env"] = variables(environment((), dict(os.environ)))
    return {"key": options["key"] or str(uuid.uuid4()), **body, "program": program}


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
@asking
@click.option("-K", "--wait-for-end", "wait_for_end", is_flag=True,
              help="Wait for its end, and end with its exit code, 128 + its signal, or 1 when it "
                   "never ran.")
@click.option("--key", metavar="KEY",
              help="A name of this submission: the same key again gives the same job, never two.")
@click.option("--wait", "wait_s", default=10.0, type=Seconds(min=0), metavar="SECONDS",
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
        tell_moments(options, body)
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

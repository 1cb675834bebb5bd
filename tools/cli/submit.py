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
from domain.units import MemoryUnit
from tools.cli.client import Client, Json, NoScheduler, segment
from tools.cli.job_options import asking, fields_of, tell_sizes, unit_for
from tools.cli.job_texts import environment, variables
from tools.cli.lsf_options import OF_SUBMIT, refusing
from tools.cli.moments import tell_moments
from tools.cli.options import Seconds, dir_option, json_option
from tools.cli.output import note, say, say_json
from tools.cli.script import with_script

# A cluster whose workers are still on their way can start nothing either.
NEVER_S = 3.0


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def request_of(
    command: tuple[str, ...], options: dict[str, Any], unit: MemoryUnit = MemoryUnit.MB
) -> Json:
    """
    Return the body of a submission.

    Args:
        command: What to run.
        options: By the names of their parameters.
        unit: What a number alone means for memory.

    Raises:
        Refused: An option breaks a rule that can be told here.
    """
    if bool(command) == (options["shell"] is not None):
        hint = "For example: xce submit -- sleep 10, or xce submit --shell 'date | tee now'."
        raise Refused("COMMAND", "must be given after --, or else by --shell", hint=hint)
    body = fields_of(options, unit)
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
  xce submit < job.sh            # options in its lines #BSUB, as for LSF
  xce submit -J 'sim[1-100]%10' -o out.%I -- ./sim  # LSB_JOBINDEX is the index
  id=$(xce submit --json -- make | jq -r .job_id); xce history $id
The answer comes after the job is safe on disk. Next: xce jobs, xce why JOB, xce kill JOB.
"""


# Options end where the command begins, as in LSF: in "submit ls -l" the -l belongs to ls.
@click.command(epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@asking
@click.option("-K", "--wait-for-end", "wait_for_end", is_flag=True,
              help="Wait for its end, and end with its exit code, 128 + its signal, or 1 when it "
                   "never ran; of an array with that of the first element that isn't 0.")
@click.option("--key", metavar="KEY",
              help="A name of this submission: the same key again gives the same job, never two.")
@click.option("--wait", "wait_s", default=10.0, type=Seconds(min=0), metavar="SECONDS",
              show_default=True, help="Try for so long while the scheduler is away.")
@refusing(*OF_SUBMIT)
@dir_option
@json_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
def submit(directory: Path, wait_s: float, *, as_json: bool, **_options: Any) -> None:
    """
    Submit a job.

    The command runs in this directory with this environment, as it is given: no shell looks at it.
    Without one a script is read from standard input, and options from its lines that begin with
    #BSUB.
    """
    options = with_script(click.get_current_context())
    client = Client(directory, wait_s=wait_s, waiting=_announcer(directory, wait_s))
    unit = unit_for(client, options)
    body = request_of(options["command"], options, unit)
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
        tell_sizes(options, unit)
    sys.stdout.flush()
    if options["wait_for_end"]:
        is_array = body.get("array") is not None
        status = _wait_for_end(client, answer["job_id"], is_array=is_array)
        raise click.exceptions.Exit(status)


def _announcer(directory: Path, wait_s: float) -> Any:
    return lambda: note(f"xce: no scheduler answers in {directory}; trying for {wait_s:g} s.")


def _wait_for_end(client: Client, job_id: str, *, is_array: bool) -> int:
    """
    Return the exit status of a job when it has ended, of an array that of its first element which
    has another than 0; the scheduler may come and go meanwhile.
    """
    pause_s = 0.05
    never_since_s: float | None = None
    told = False
    while True:
        jobs = _asked_for(client, job_id, is_array=is_array)
        if jobs and all(job["state"] in ("DONE", "EXIT") for job in jobs):
            return _status_of_all(jobs)
        if not any(job["never"] for job in jobs):
            never_since_s = None
        elif never_since_s is None:
            never_since_s = time.monotonic()
        elif not told and time.monotonic() - never_since_s >= NEVER_S:
            note(f"xce: job {job_id} can't start on this cluster as it is: see xce why {job_id}")
            told = True
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 1.0)


def _asked_for(client: Client, job_id: str, *, is_array: bool) -> list[Json]:
    """
    Return a job, or the elements of an array; none while no scheduler answers.
    """
    try:
        if is_array:
            elements: list[Json] = client.get("/v1/jobs", all=1, job=job_id)["jobs"]
            return elements
        return [client.get(f"/v1/jobs/{segment(job_id)}")]
    except NoScheduler:
        return []


def _status_of_all(jobs: list[Json]) -> int:
    for job in jobs:
        if job["exit_code"] is None and job["signal"] is None:
            note(f"xce: job {job['job_id']} never ran: see xce why {job['job_id']}")
    return next((status for status in map(_status_of, jobs) if status), 0)


def _status_of(job: Json) -> int:
    if job.get("exit_code") is not None:
        return int(job["exit_code"])
    if job.get("signal") is not None:
        return 128 + int(job["signal"])
    return 1

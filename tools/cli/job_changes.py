"""
Change jobs that are there: requeue, switch, modify, and move among their equals.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from domain.errors import Refused
from domain.units import whole_number
from tools.cli.client import Client, Json
from tools.cli.job_options import changes_of, changing, tell_sizes, unit_for
from tools.cli.jobs import change_jobs
from tools.cli.lsf_options import OF_SUBMIT, refusing
from tools.cli.moments import tell_moments
from tools.cli.options import dir_option, json_option


@click.command(epilog="""
\b
Examples:
  xce requeue 12
  xce requeue -H 12              and keep it back until xce resume 12
The program is ended first. The job keeps its id; its next attempt has the next number.
""")
@click.argument("job_ids", nargs=-1, required=True, metavar="JOB...")
@click.option("-H", "--hold", is_flag=True, help="Keep it back until xce resume.")
@dir_option
@json_option
def requeue(directory: Path, job_ids: tuple[str, ...], *, hold: bool, as_json: bool) -> None:
    """
    Put started jobs back to pending, behind their equals.
    """
    body: Json = {"hold": hold}
    change_jobs(directory, job_ids, "requeue", "is being put back", body=body, as_json=as_json)


@click.command(epilog="""
\b
Examples:
  xce run -m h1 12               all its tasks on h1
  xce run -m "h1*2 h2" 12        two on h1, where it begins, and one on h2
It goes before all others, past limits, windows, dependencies, closed hosts and free slots; only
what it reserves, such as memory, must be there. Until it is, the job waits: xce why 12 tells.
""")
@click.argument("job_ids", nargs=-1, required=True, metavar="JOB...")
@click.option("-m", "hosts", required=True, metavar="HOSTS",
              help='Where: names with the tasks of each, such as "h1*2 h2".')
@dir_option
@json_option
def run(directory: Path, job_ids: tuple[str, ...], hosts: str, *, as_json: bool) -> None:
    """
    Start pending jobs at once on named hosts, for operators.
    """
    body: Json = {"hosts": parse_host_tasks(hosts)}
    change_jobs(directory, job_ids, "run", "is to start at once", body=body, as_json=as_json)


COUNTED_HOST = re.compile(
    r"(?P<before>[0-9]+)[*](?P<after>[^*#]+)|(?P<name>[^*#]+)(?:[*#](?P<count>[0-9]+))?"
)


def parse_host_tasks(text: str) -> list[Json]:
    """
    Return hosts with their tasks: "h1*2", LSF's "h1#2" and "2*h1" all say two on h1.

    Raises:
        Refused: There is none, or a count isn't one.
    """
    found: list[Json] = []
    for word in text.split():
        told = COUNTED_HOST.fullmatch(word)
        if told is None:
            rule = 'must be names of hosts with their tasks, such as "h1*2 h2"'
            raise Refused("-m", rule, word)
        name, count = told["name"] or told["after"], told["count"] or told["before"]
        found.append({"host": name} if count is None else {"host": name, "tasks": _tasks(count)})
    if not found:
        raise Refused("-m", "must name a host", text)
    return found


def _tasks(count: str) -> int:
    tasks = whole_number(count)
    if tasks is None:
        raise Refused("-m", "must have a number of tasks that a host can carry", count)
    return tasks


@click.command(epilog="""
\b
Example:
  xce switch night 12 13
A started job runs on if the queue has its hosts. Next: xce why 12.
""")
@click.argument("queue")
@click.argument("job_ids", nargs=-1, required=True, metavar="JOB...")
@dir_option
@json_option
def switch(directory: Path, queue: str, job_ids: tuple[str, ...], *, as_json: bool) -> None:
    """
    Move jobs to another QUEUE.
    """
    done = f"is moved to queue {queue}"
    change_jobs(directory, job_ids, "switch", done, body={"queue": queue}, as_json=as_json)


@click.command(epilog="""
\b
Examples:
  xce modify -n 8 -R "rusage[mem=500]" 12
  xce modify -W none 12          takes the run limit away; so does LSF's -Wn
  xce modify -J %10 4711         lets 10 elements of an array run at a time
What isn't named stays as it is; none in place of a value takes it away, -xn, -rn and -tin do it for
flags. Of a started job only limits (-W -M -v -F -c -p -T), the amounts of -R rusage, -o, -e, -r and
the name can change; of -o and -e its next start takes notice. Next: xce job 12.
""")
@click.argument("job_ids", nargs=-1, required=True, metavar="JOB...")
@changing
@refusing(*OF_SUBMIT)
@dir_option
@json_option
def modify(
    directory: Path, job_ids: tuple[str, ...], *, as_json: bool, **options: Any
) -> None:
    """
    Change what jobs ask for; what isn't named stays as it is.
    """
    unit = unit_for(Client(directory), options)
    body = changes_of(options, unit)
    if "started_max" in body:
        _check_arrays(job_ids)
    change_jobs(directory, job_ids, "modify", "is changed", body=body, as_json=as_json)
    if not as_json:
        tell_moments(options, body)
        tell_sizes(options, unit)


def _check_arrays(job_ids: tuple[str, ...]) -> None:
    """
    Refuse, once, to change how many elements run at a time for some of them.
    """
    for job_id in job_ids:
        number = re.split(r"[\[.]", job_id, maxsplit=1)[0]
        if job_id.removesuffix("[*]") != number:
            rule = "changes how many elements of a whole array run at a time"
            raise Refused("-J", rule, job_id, hint=f"Name the array: {number}.")


@click.command(epilog="""
\b
Example:
  xce top 12
It is considered before all other jobs of its queue and priority when an
administrator asks, before your own when you do. Next: xce jobs.
""")
@click.argument("job_ids", nargs=-1, required=True, metavar="JOB...")
@dir_option
@json_option
def top(directory: Path, job_ids: tuple[str, ...], *, as_json: bool) -> None:
    """
    Put pending jobs before their equals.
    """
    change_jobs(directory, job_ids, "top", "is first of its equals", as_json=as_json)


@click.command(epilog="""
\b
Example:
  xce bottom 12
It is considered after all other jobs of its queue and priority when an
administrator asks, after your own when you do. Next: xce jobs.
""")
@click.argument("job_ids", nargs=-1, required=True, metavar="JOB...")
@dir_option
@json_option
def bottom(directory: Path, job_ids: tuple[str, ...], *, as_json: bool) -> None:
    """
    Put pending jobs behind their equals.
    """
    change_jobs(directory, job_ids, "bottom", "is last of its equals", as_json=as_json)

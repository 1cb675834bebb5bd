"""
List jobs, show one, and end, keep back or let go on.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import click

from domain.errors import NotFound, Refused
from domain.signals import parse_signal
from domain.terminations import exit_words, termination_words
from tools.cli.as_typed import tell_as_typed
from tools.cli.client import Client, Json, segment
from tools.cli.lsf_options import OF_JOBS, refusing
from tools.cli.options import (
    columns_option,
    dir_option,
    json_option,
    refuse_empty,
    watch_option,
)
from tools.cli.output import (
    chosen,
    note,
    say,
    say_json,
    show_duration,
    show_moment,
    table,
    watch,
)

HEADS = (
    "JOB", "STATE", "USER", "QUEUE", "TASKS", "HOSTS", "EXIT", "NAME", "SUBMITTED", "TIME",
    "REASON",
)  # fmt: skip
SPARE = "SUBMITTED QUEUE USER NAME"
EXIT = HEADS.index("EXIT")
WAITING = ("PEND", "PSUSP", "WAIT")
ENDED = ("DONE", "EXIT")
ALL_JOBS = "0"
"""Stands for all jobs of a user, as in LSF."""
AS_ASKED = "is as asked already: nothing changed"
LABEL_MIN = 14
NOTHING = (None, "", "-", 0)
"""What isn't told of a job."""
JUST_ONE = re.compile(r"[1-9][0-9]{0,9}(\[[1-9][0-9]{0,5}\])?")
"""One job, element or array by its number."""
STATES = ("PEND", "PSUSP", "WAIT", "RUN", "USUSP", "SSUSP", "UNKWN", "DONE", "EXIT")


def show_hosts(hosts: Any) -> str:
    """
    Return hosts as LSF writes them: "4*alpha:2*beta", one host with one task as "alpha".
    """
    parts = []
    for host in hosts or ():
        name, tasks = (host["host"], host["tasks"]) if isinstance(host, dict) else host
        parts.append(name if tasks == 1 else f"{tasks}*{name}")
    return ":".join(parts)


def _exit(job: Json) -> str:
    """
    Return how a job ended, in short: its exit code, or the signal that ended it.
    """
    if job.get("signal") is not None:
        return f"signal {job['signal']}"
    return "" if job.get("exit_code") is None else str(job["exit_code"])


def _end_words(job: Json) -> str:
    """
    Return how a job ended that didn't end well, in words.
    """
    if job.get("why"):
        return termination_words(job["why"])
    return exit_words(job.get("exit_code"), job.get("signal")) if job["state"] == "EXIT" else ""


def _time_us(job: Json, now_us: int) -> int:
    """
    Return for how long a job has waited, or has been on its hosts, or was until it ended.
    """
    begin_us = job.get("start_us") or job.get("dispatch_us") or job["submit_us"]
    if job["state"] in WAITING:
        begin_us = job["submit_us"]
    end_us = now_us if job.get("finish_us") is None else job["finish_us"]
    return max(0, int(end_us) - int(begin_us))


def _row(job: Json, now_us: int) -> list[Any]:
    return [
        job["job_id"], job["state"], job["user"], job["queue"], job.get("tasks"),
        show_hosts(job.get("hosts")), _exit(job), job.get("name"),
        show_moment(job.get("submit_us"), now_us), show_duration(_time_us(job, now_us)),
        job.get("pend_reason") or job.get("stopped") or _end_words(job),
    ]


@click.command(epilog="""
\b
Examples:
  xce jobs                       those that haven't ended
  xce jobs -a -s EXIT            all that ended badly
  xce jobs -m alpha              those on one host
  xce jobs -J "sim*"             those whose names begin so
  xce jobs 12 '7[1-3]'           these, ended or not; of an array (7) all elements
  xce jobs --columns job,state,hosts
  xce jobs --json | jq '.jobs[] | select(.state == "PEND") | .job_id'
EXIT is shown when one has ended; TIME is how long a job has waited, or been on its hosts; REASON
says why it waits, is stopped or ended. Next: xce job JOB for everything about one, xce why JOB for
what it waits for.
""")
@click.argument("job_ids", nargs=-1, metavar="[JOB...]")
@click.option("-a", "--all", "everything", is_flag=True, help="Also those that have ended.")
@click.option("-s", "--state", metavar="STATE,...",
              help=f"In one of these states: {', '.join(STATES)}.")
@click.option("-p", "state", flag_value="PEND", help="As -s PEND.")
@click.option("-r", "state", flag_value="RUN", help="As -s RUN.")
@click.option("-d", "state", flag_value="DONE,EXIT", help="As -s DONE,EXIT.")
@click.option("-l", "--long", "is_long", is_flag=True, help="Everything about each, as xce job.")
@click.option("-q", "--queue", metavar="QUEUE", help="Of this queue.")
@click.option("-u", "--user", metavar="USER", help="Of this user; all, as if not given, of all.")
@click.option("-m", "--host", metavar="HOST", help="With tasks on this host.")
@click.option("-J", "--name", metavar="NAME",
              help='Of this name, in which * stands for any text: "sim*".')
@click.option("--limit", metavar="N", type=click.IntRange(min=1),
              help="At most so many, the newest.")
@refusing(*OF_JOBS)
@columns_option
@watch_option
@dir_option
@json_option
def jobs(directory: Path, *, as_json: bool, **options: Any) -> None:
    """
    List jobs: those that haven't ended, or with -a all; or just the JOBs named.
    """
    columns = chosen(options["columns"], HEADS)
    options["state"] = _states(options["state"])
    refuse_empty({name: options[name] for name in CHOOSE if name != "state"})
    if options["job_ids"]:
        _check_named(options)
    client = Client(directory)
    watch(lambda: _list(client, columns, options, as_json=as_json), options["watch_s"])


CHOOSE = ("state", "queue", "user", "host", "name", "limit")


def _check_named(options: Json) -> None:
    """
    Refuse to choose among jobs that are named: nothing of what is typed is passed over.
    """
    for name in CHOOSE:
        if options[name] and (name, options[name]) != ("user", "all"):
            raise Refused(name, "chooses among all jobs: it can't go with a JOB", options[name])


def _states(typed: str | None) -> str:
    """
    Return states as they are asked for, "" for any.

    Raises:
        Refused: There is no such one.
    """
    states = [] if typed is None else [word.strip().upper() for word in typed.split(",")]
    for state in states:
        if state not in STATES:
            raise Refused("state", f"must be some of {','.join(STATES)}", state)
    return ",".join(states)


def _list(client: Client, columns: list[int], options: Json, *, as_json: bool) -> None:
    answer = _named(client, options["job_ids"]) if options["job_ids"] else client.get(
        "/v1/jobs", all=int(options["everything"]), state=options["state"],
        queue=options["queue"], user=options["user"], host=options["host"], name=options["name"],
        limit=options["limit"],
    )
    if as_json:
        say_json(answer)
        return
    if options["is_long"]:
        _say_each(client, [str(job["job_id"]) for job in answer["jobs"]])
        return
    told = [_row(job, time.time_ns() // 1000) for job in answer["jobs"]]
    if options["columns"] is None and not any(row[EXIT] for row in told):
        columns = [column for column in columns if column != EXIT]
    rows = [[row[column] for column in columns] for row in told]
    if rows:
        table(
            [HEADS[column] for column in columns], rows, numbers="JOB TASKS TIME", is_list=True,
            spare="" if options["columns"] else SPARE, tells=columns[-1:] == [len(HEADS) - 1],
        )  # fmt: skip
    else:
        note(_none_words(options))


def _say_each(client: Client, job_ids: list[str]) -> None:
    """
    Tell everything about each of several jobs.
    """
    for number, job_id in enumerate(job_ids):
        if number:
            say()
        _say_facts(_one(client, job_id))


def _none_words(options: Json) -> str:
    """
    Return what is said of an empty list: what was looked for, and where else it may be.
    """
    wanted = [
        f"{words} {options[name]}"
        for name, words in (("state", "in state"), ("queue", "of queue"), ("user", "of user"),
                            ("host", "on host"), ("name", "called"))
        if options[name] and (name, options[name]) != ("user", "all")
    ]  # fmt: skip
    which = " ".join(["No job", *wanted])
    is_all = options["everything"] or bool({*ENDED} & {*options["state"].split(",")})
    return f"{which}." if is_all else f"{which} waits or runs; -a shows all."


def _named(client: Client, job_ids: tuple[str, ...]) -> Json:
    found = [row for job_id in job_ids for row in _rows(client, job_id)]
    return {"position": found[-1].get("position"), "jobs": found}


def _rows(client: Client, job_id: str) -> list[Json]:
    """
    Return the job of an id in full, or the elements of an array, all or those named.
    """
    ids = selected(client, job_id, whole_array=False)
    if len(ids) == 1:
        return [_one(client, ids[0])]
    number, _, _ = ids[0].partition("[")
    wanted = set(ids)
    answer = client.get("/v1/jobs", all=1, job=number)
    position = answer["position"]
    return [{"position": position, **row} for row in answer["jobs"] if row["job_id"] in wanted]


def selected(client: Client, job_id: str, *, whole_array: bool) -> list[str]:
    """
    Return the ids that an argument names: a job, an array, an element, or some such as "7[1-3]".

    Args:
        client: Asks which elements there are.
        job_id: As it was typed; "7[*]" is the array 7.
        whole_array: Whether an array's own number may stand for all its elements.

    Raises:
        NotFound: There is no such job or element.
        Refused: It is none of these.
    """
    number = job_id.removesuffix("[*]")
    if JUST_ONE.fullmatch(number) and (whole_array or "[" in number):
        return [number]
    wanted = None
    if not JUST_ONE.fullmatch(number):
        # Only lists of elements need what reads them, which loads much.
        from domain.arrays import indices_of, parse_selection

        selection = parse_selection(number)
        number = str(selection.number)
        wanted = {f"{number}[{index}]" for index in indices_of(selection.ranges)}
        if len(wanted) == 1:
            return list(wanted)
    rows = client.get("/v1/jobs", all=1, job=number)["jobs"]
    ids = [str(row["job_id"]) for row in rows if wanted is None or row["job_id"] in wanted]
    if not ids:
        raise NotFound("job_id", "must name a job that is known", job_id)
    return ids


def _one(client: Client, job_id: str) -> Json:
    answer = client.get(f"/v1/jobs/{segment(job_id)}")
    inner = answer.get("job")
    return {"position": answer.get("position"), **inner} if isinstance(inner, dict) else answer


# ------------------------------------------------------------------------------------------ one job


@click.command(epilog="""
\b
Examples:
  xce job 12
  xce job 12 --json | jq .exit_code
Next: xce why 12, xce history 12.
""")
@click.argument("job_id", metavar="JOB")
@dir_option
@json_option
def job(directory: Path, job_id: str, *, as_json: bool) -> None:
    """
    Show everything about one job.
    """
    answer = _one(Client(directory), job_id)
    if as_json:
        say_json(answer)
        return
    _say_facts(answer)


def _say_facts(job: Json) -> None:
    from tools.cli.job_facts import facts  # Lists of jobs need none of it.

    told = [(name, value) for name, value in facts(job, show_hosts) if value not in NOTHING]
    wide = max(LABEL_MIN, *(len(name) for name, _ in told))
    for name, value in told:
        say(f"{name:<{wide}} {value}")


# ------------------------------------------------------------------------------------- what changes


def change_jobs(
    directory: Path,
    job_ids: tuple[str, ...],
    verb: str,
    done: str,
    *,
    body: Json | None = None,
    as_json: bool,
) -> None:
    """
    Do one thing to each job; the first failure decides the exit status, the others are still done.
    """
    client = Client(directory)
    if job_ids == (ALL_JOBS,):
        change_all(client, verb, done, body, as_json=as_json)
        return
    answers: list[Json] = []
    failures: list[Refused] = []
    named: list[str] = []
    for job_id in job_ids:
        try:
            named += selected(client, job_id, whole_array=True)
        except Refused as error:
            failures.append(error)
    for job_id in named:
        try:
            answer = client.post(f"/v1/jobs/{segment(job_id)}/{verb}", body)
            answers.append({"job_id": job_id, **answer})
        except Refused as error:
            failures.append(error)
            continue
        if not as_json:
            told = done if answer.get("changed", True) else AS_ASKED
            say(f"Job {job_id} {told}.")
            for text in answer.get("notes", ()):
                note(f"xce: {text}")
    if as_json:
        say_json({"jobs": answers, "failed": [error.fields() for error in failures]})
    for failure in failures[:-1]:
        tell_as_typed(failure)
        note(f"xce: {failure.text()}")
    if failures:
        raise failures[-1]


def change_all(
    client: Client, verb: str, done: str, body: Json | None, *, as_json: bool
) -> None:
    """
    Do one thing to all jobs that are chosen, by one request.
    """
    answer = client.post(f"/v1/jobs/{ALL_JOBS}/{verb}", body)
    jobs = [{"position": answer["position"], **job} for job in answer["jobs"]]
    if as_json:
        notes = {"notes": answer["notes"]} if "notes" in answer else {}
        say_json({"jobs": jobs, "failed": [], **notes})
        return
    for job in jobs:
        say(f"Job {job['job_id']} {done if job['changed'] else AS_ASKED}.")
    for text in answer.get("notes", ()):
        note(f"xce: {text}")


def choosing(command: Any) -> Any:
    """
    Give a command the options that say which jobs 0 stands for.
    """
    for option in reversed((
        click.option("-q", "--queue", help="Of job 0: those of this queue."),
        click.option("-u", "--user", help="Of job 0: those of this user, or all; for operators."),
        click.option("-m", "--host", help="Of job 0: those with tasks on this host."),
        click.option("-J", "--name", help='Of job 0: those of this name, such as "sim*".'),
    )):  # fmt: skip
        command = option(command)
    return command


def chosen_of(job_ids: tuple[str, ...], options: Json) -> Json:
    """
    Return what a request says of the jobs that 0 stands for.

    Raises:
        Refused: There is none, 0 stands beside others, or options are given without it.
    """
    given = {name: value for name, value in options.items() if value is not None}
    refuse_empty(given)
    if not job_ids:
        hint = "0 stands for all your jobs, or those that -q, -u, -m and -J choose."
        raise Refused("JOB", "must be given", hint=hint)
    if job_ids == (ALL_JOBS,):
        return given
    if ALL_JOBS in job_ids:
        raise Refused("job_id", "must be alone: it stands for all your jobs", ALL_JOBS)
    if given:
        name = next(iter(given))
        raise Refused(f"--{name}", "must be given with job 0, which stands for all", given[name])
    return {}


@click.command(epilog="""
\b
Examples:
  xce kill 12 13
  xce kill 0                     all your jobs that haven't ended
  xce kill 0 -q night -J "sim*"  those of that queue whose names begin so
  xce kill -s USR1 12            send one signal, and leave the rest to the program
  xce kill -r 12                 end it though its host doesn't answer
A running job gets SIGTERM, and SIGKILL if that doesn't end it. Next: xce job 12 says how it ended.
To stop a job and let it go on: xce stop, xce resume.
""")
@click.argument("job_ids", nargs=-1, metavar="JOB...")
@click.option("-s", "--signal", "signal", metavar="NAME",
              help="Only send this signal to the programs of started jobs: USR1, SIGUSR1 or 10.")
@click.option("-r", "--force", is_flag=True,
              help="End it at once, without waiting for its host to say that it has ended.")
@choosing
@dir_option
@json_option
def kill(
    directory: Path, job_ids: tuple[str, ...], *, as_json: bool, **options: Any
) -> None:
    """
    End jobs, pending or running, or send them a signal.
    """
    signal, force = options.pop("signal"), options.pop("force")
    body = chosen_of(job_ids, options)
    if signal is None:
        body["force"] = force
        change_jobs(directory, job_ids, "kill", "is being ended", body=body, as_json=as_json)
        return
    if force:
        raise Refused("--force", "must not be given with --signal, which ends no job by itself")
    name = parse_signal(signal).value
    done = f"is being sent {name}"
    change_jobs(directory, job_ids, "signal", done, body=body | {"signal": name}, as_json=as_json)


@click.command(epilog="""
\b
Examples:
  xce stop 12
  xce stop 0 -q night            all your jobs of that queue
It stays so until: xce resume 12.
""")
@click.argument("job_ids", nargs=-1, metavar="JOB...")
@choosing
@dir_option
@json_option
def stop(
    directory: Path, job_ids: tuple[str, ...], *, as_json: bool, **options: Any
) -> None:
    """
    Keep pending jobs back (PSUSP), suspend started ones (USUSP), until they are resumed.
    """
    body = chosen_of(job_ids, options)
    change_jobs(directory, job_ids, "stop", "is being stopped", body=body, as_json=as_json)


@click.command(epilog="""
\b
Examples:
  xce resume 12
  xce resume 0                   all your jobs that are stopped
Next: xce why 12, if it doesn't start at once.
""")
@click.argument("job_ids", nargs=-1, metavar="JOB...")
@choosing
@dir_option
@json_option
def resume(
    directory: Path, job_ids: tuple[str, ...], *, as_json: bool, **options: Any
) -> None:
    """
    Let jobs go on that were stopped.
    """
    body = chosen_of(job_ids, options)
    change_jobs(directory, job_ids, "resume", "may go on", body=body, as_json=as_json)

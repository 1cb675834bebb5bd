"""
Read the event files of a Slurm simulator: one submission a line, with sbatch's options.

`-dt SECONDS -e submit_batch_job | -sim-walltime SECONDS <options> pseudo.job`. The true run time is
`-sim-walltime`, -1 for "until its limit", and the time limit cuts it. A partition counts as queue.
"""

from __future__ import annotations

import re
from pathlib import Path

from replay.workloads.details import GPU, MEM, UNKNOWN, Ask, Details, TraceNeed
from replay.workloads.gathering import (
    COMPLETED,
    FAILED,
    BadLineError,
    FoundJob,
    Gathering,
    open_lines,
)
from replay.workloads.slurm_text import gpus_of, limit_s, memory_kib, select_of
from replay.workloads.source import Header, Workload

EVENT = "submit_batch_job"
WITHOUT_VALUE = frozenset({"--exclusive"})
# Long names of options that also have a short one.
LONG_NAMES = {
    "-N": "--nodes", "-n": "--ntasks", "-t": "--time", "-q": "--qos", "-p": "--partition",
    "-A": "--account", "-J": "--job-name", "-C": "--constraint", "-c": "--cpus-per-task",
    "-M": "--clusters", "-d": "--dependency",
}  # fmt: skip
READ = frozenset(
    "-jid -sim-walltime --nodes --ntasks --time --qos --partition --account --job-name "
    "--constraint --cpus-per-task --uid --gid --mem --mem-per-cpu --gres --exclusive "
    "--ntasks-per-node --clusters".split()
)
_seconds = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,6})0*)?")


def read_sim_events(path: Path) -> Workload:
    """
    Read the submissions of an event file.

    Raises:
        Refused: The file can't be read, or none of its lines is a submission.
    """
    gathering = Gathering()
    remarks: list[str] = []
    with open_lines(path) as lines:
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if text.startswith("#"):
                remarks.append(text.lstrip("# "))
            elif text:
                try:
                    gathering.add(_job(text, number, gathering))
                except BadLineError as error:
                    gathering.add_malformed(number, error.rule)
    return gathering.workload(path, Header(remarks=tuple(remarks)), begins_s=0)


def _job(text: str, number: int, gathering: Gathering) -> FoundJob:
    event, bar, submission = text.partition("|")
    when = event.split()
    if not bar or len(when) != 4 or (when[0], when[2]) != ("-dt", "-e"):
        raise BadLineError("must begin with -dt SECONDS -e EVENT |")
    if when[3] != EVENT:
        raise BadLineError(f"has an event other than {EVENT}: {when[3][:40]!r}")
    options = _options(submission.split())
    for name in options:
        if name not in READ:
            gathering.note(f"option {name}, which isn't modelled")
    submit_s, submit_part_us = _moment(when[1], "-dt")
    limit = limit_s(options.get("--time", ""), "--time")
    run_s, is_cut = _run_s(options, limit, gathering)
    tasks = _tasks(options)
    kib_per_task = memory_kib(options.get("--mem-per-cpu", ""), "--mem-per-cpu")[0]
    job_name = options.get("--job-name", "")
    return FoundJob(
        trace_id=_trace_id(options, job_name, number),
        submit_s=submit_s,
        submit_part_us=submit_part_us,
        run_s=run_s,
        tasks=tasks,
        requested_s=limit,
        requested_kib=kib_per_task,
        status=FAILED if is_cut else COMPLETED,
        details=Details(_ask(options, gathering), job_name=job_name),
    )


def _options(words: list[str]) -> dict[str, str]:
    """
    Return the options with their values, by their long names; the last of a repeated one counts.
    """
    options: dict[str, str] = {}
    index = 0
    while index < len(words):
        word = words[index]
        if not word.startswith("-"):
            index += 1
            continue
        name, has_value, value = word.partition("=")
        if not has_value and name not in WITHOUT_VALUE:
            index += 1
            if index == len(words):
                raise BadLineError(f"option {name} has no value")
            value = words[index]
        options[LONG_NAMES.get(name, name)] = value
        index += 1
    return options


def _moment(text: str, field: str) -> tuple[int, int]:
    """
    Return whole seconds, and microseconds beyond them.
    """
    match = _seconds.fullmatch(text)
    if match is None:
        raise BadLineError(f"{field} is no number of seconds: {text[:40]!r}")
    return int(match[1]), int((match[2] or "").ljust(6, "0"))


def _run_s(options: dict[str, str], limit: int, gathering: Gathering) -> tuple[int, bool]:
    """
    Return the run time, and whether the limit cut it.
    """
    text = options.get("-sim-walltime", "")
    if re.fullmatch(r"-1(\.0*)?", text):
        gathering.note("job that runs until its time limit")
        return limit, True
    run_s, part_us = _moment(text, "-sim-walltime")
    if part_us:
        raise BadLineError(f"-sim-walltime is no whole number of seconds: {text[:40]!r}")
    if 0 <= limit < run_s:
        gathering.note("run time cut at the time limit")
        return limit, True
    return run_s, False


def _number(options: dict[str, str], name: str) -> int:
    """
    Return an option's number, UNKNOWN without it; of a range (nodes) the smaller one.
    """
    text = options.get(name)
    if text is None:
        return UNKNOWN
    match = re.fullmatch(r"([0-9]{1,9})(?:-[0-9]{1,9})?", text)
    if match is None:
        raise BadLineError(f"{name} is no whole number: {text[:40]!r}")
    return int(match[1])


def _tasks(options: dict[str, str]) -> int:
    """
    Return the CPUs asked for: tasks times CPUs per task; without tasks, one on each node.
    """
    tasks = _number(options, "--ntasks")
    if tasks == UNKNOWN:
        hosts = max(1, _number(options, "--nodes"))
        tasks = hosts * max(1, _number(options, "--ntasks-per-node"))
    return tasks * max(1, _number(options, "--cpus-per-task"))


def _trace_id(options: dict[str, str], job_name: str, number: int) -> int:
    """
    Return the job's id, from its name where it has none, else the line's number.
    """
    if "-jid" in options:
        return _number(options, "-jid")
    match = re.fullmatch(r"jobid_([0-9]{1,12})", job_name)
    return int(match[1]) if match else number


def _ask(options: dict[str, str], gathering: Gathering) -> Ask:
    constraint = options.get("--constraint", "")
    select = select_of(constraint)
    if select is None:
        gathering.note("constraint that can't be modelled")
    if options.get("--exclusive"):
        gathering.note(f"hosts for one {options['--exclusive']} alone, modelled as for one job")
    hosts = _number(options, "--nodes")
    per_host = _number(options, "--ntasks-per-node")
    if hosts == UNKNOWN and per_host > 0:
        hosts = -(-_number(options, "--ntasks") // per_host)
    return Ask(
        user_name=options.get("--uid", ""),
        group_name=options.get("--gid", ""),
        queue_name=options.get("--partition", ""),
        project_name=options.get("--account", ""),
        hosts=hosts if hosts > 0 else UNKNOWN,
        needs=_needs(options),
        select=select or (),
        constraint=constraint,
        is_exclusive="--exclusive" in options,
    )


def _needs(options: dict[str, str]) -> tuple[TraceNeed, ...]:
    """
    Return what is asked for on each node.
    """
    kib = memory_kib(options.get("--mem", ""), "--mem")[0]
    gpus = gpus_of(options.get("--gres", ""))
    pairs = ((MEM, kib * 1000), (GPU, gpus * 1000))
    return tuple(TraceNeed(resource, milli) for resource, milli in pairs if milli > 0)

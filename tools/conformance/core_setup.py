"""
Turn what a vector says into our own settings, queues, hosts and jobs.

Where a vector assumes LSF's defaults, the cluster gets the settings that the specification names
for them. What can't be said yet raises NotYet: a vector is never run without a part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pydantic import ValidationError

from domain.amounts import MEM, Amount, Attribute, HostResource
from domain.arrays import parse_job_name
from domain.broken_rules import refused_of
from domain.cluster import ClusterSettings
from domain.commands import JoinWorker
from domain.exit_values import parse_requeue_values
from domain.jobs import ExitRules, HostChoice, JobLimits, JobSpec, Program
from domain.preemption import JobType, Preemption, Relation, SuspendSignals, Trigger, Uncounted
from domain.thresholds import LoadThreshold, parse_thresholds
from domain.units import (
    MILLI,
    MINUTE_US,
    MemoryUnit,
    memory_limit_kib,
    parse_memory_milli,
    parse_milli,
)
from domain.windows import parse_windows
from domain.workers import HostSettings
from tools.conformance.trial import NotYet
from tools.conformance.values import (
    Fields,
    Malformed,
    items_of,
    known_only,
    mapping_of,
    text_of,
    texts_of,
    whole_of,
)
from tools.conformance.written import SAME_PARAMS, is_yes, minutes_us, named_alike, wholes_of

BEGIN_US: Final = 1_700_000_000_000_000 // (24 * 60 * MINUTE_US) * (24 * 60 * MINUTE_US)
"""Minute 0 of every vector: midnight in UTC, so that a clock of 18:00 is minute 1080."""

MB_MILLI: Final = MemoryUnit.MB.kib * MILLI

SECOND_US: Final = 1_000_000

CYCLE_US: Final = MINUTE_US
"""What LSF counts in cycles is counted in time: its cycle is a minute by default."""

CONFIGURED: Final = ("closed_Lock", "closed_Wind")
"""Host states that come from the host's settings."""

LOADS: Final = ("r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "it")

SPACES: Final = ("swp", "tmp")
"""What hosts have in MB beside memory, all of it free where a vector says how much."""

ONLY_APP: Final = "app"
"""The profile of all jobs of a vector that speaks of one."""

OVER_US: Final = 10 * MINUTE_US
OVER_TIMES: Final = ("runlimit", "termination_deadline")
OVER_LIMITS: Final[dict[str, dict[str, int]]] = {
    "memlimit": {"memory_kib": 1024},
    "swaplimit": {"swap_kib": 1024},
    "cpulimit": {"cpu_us": MINUTE_US},
    "processlimit": {"processes": 1},
    "threadlimit": {"threads": 1},
}
"""The limit of a job that is to be over it."""

JOB_LIMITS: Final = {
    "MEMLIMIT": "memory_kib", "M": "memory_kib", "SWAPLIMIT": "swap_kib", "CPULIMIT": "cpu_us",
    "PROCESSLIMIT": "processes", "THREADLIMIT": "threads", "v": "swap_kib", "p": "processes",
    "T": "threads", "c": "cpu_us",
}  # fmt: skip
"""Limits of queues and profiles, and the options of jobs for the same."""

UNCOUNTED: Final = {each.name: each for each in Uncounted}
"""Keywords of PREEMPT_FOR that say for what suspended victims don't count."""

THRESHOLDS: Final = ("loadSched", "loadStop", "thresholds")
"""Fields that hold from which load on nothing starts, and jobs are stopped."""

KNOWN_HOST: Final = {
    "name", "slots", "mem", "maxmem", "type", "model", "status", "ncpus", "bool", "str", "num",
    "load_available", "JL_U", "load", *LOADS, *SPACES, *THRESHOLDS, "DISPATCH_WINDOW",
}  # fmt: skip
KNOWN_JOB: Final = {
    "id", "n", "R", "q", "m", "user", "sp", "project", "just_submitted", "submit", "W", "b", "x",
    "w", "J", "rerunnable", "over", "hold", "t", "We", "H", "r", "G", "P", "Q", "app", "group",
    "submit_type", "submit_model", "type", "model", "ti", "i", "o", "e", *JOB_LIMITS,
}  # fmt: skip
KNOWN_PARAMS: Final = {
    "reserve_per_task", "parallel_sched_by_slot", "accept_interval", "PREEMPT_FOR",
    "PREEMPTABLE_RESOURCES",
    "NO_PREEMPT_FINISH_TIME", "NO_PREEMPT_RUN_TIME", "NO_PREEMPT_INTERVAL", "MAX_JOB_PREEMPT",
    "PREEMPT_DELAY", "cycle_seconds", "CPU_TIME_FACTOR", "RUN_TIME_FACTOR", "RUN_JOB_FACTOR",
    "COMMITTED_RUN_TIME_FACTOR", "HIST_HOURS", "ENABLE_HIST_RUN_TIME", "RUN_TIME_DECAY",
    "MAX_JOB_REQUEUE", "MAX_USER_PRIORITY", "unit", "PREEMPT_JOBTYPE",
    "ORPHAN_JOB_TERM_GRACE_PERIOD",
}  # fmt: skip


SAME_IN_JOB: Final = {
    "H": "hold", "r": "rerunnable", "G": "group", "P": "project", "type": "submit_type",
    "submission_type": "submit_type", "submission_host_type": "submit_type", "from_type":
    "submit_type", "model": "submit_model", "begin": "b", "deadline": "t", "runlimit": "W",
    "profile": "app", "queue": "q", "hosts": "m", "exclusive": "x", "tasks": "n", "resreq": "R",
    "after": "w", "priority": "sp", "-ti": "ti", "orphan_term": "ti", "orphan_termination": "ti",
}  # fmt: skip
"""Other words for what a job asks for."""


def only(fields: Fields, known: Iterable[str], what: str) -> None:
    """
    Do nothing, or say what of a mapping can't be said yet.

    Raises:
        NotYet: Something is in it that isn't known.
    """
    unknown = sorted(set(fields) - set(known))
    if unknown:
        raise NotYet(f"{what} with {', '.join(unknown)}")


def settings_of(case: Fields) -> ClusterSettings:
    """
    Return the settings of a case. A session makes one decision, so that a trial can look between
    two of them.
    """
    params = named_alike(mapping_of(case.get("params")), SAME_PARAMS)
    only(params, KNOWN_PARAMS, "params")
    is_ours = _is_ours(case.get("expect"))
    values: dict[str, object] = {
        "name": "vectors",
        "default_queue": "normal",
        "picker": "builtin_fcfs",
        # Where the vendor and XCE differ, XCE's own chain is meant; everything else is LSF's way.
        "allocators": ("parjob", "fill") if is_ours else ("fill",),
        "session_interval_us": 0,
        "session_max_decisions": 1,
        "clean_period_us": 3_600_000_000,
        "forget_batch": 1_000,
        "key_retention_us": 3_600_000_000,
        "snapshot_every_events": 1_000_000,
        "default_host_type": "local",
        "memory_unit": "MB",
        "reserve_per_task": is_yes(params.get("reserve_per_task")),
        "parallel_sched_by_slot": is_yes(params.get("parallel_sched_by_slot", True)),
        "accept_interval_us": whole_of(params.get("accept_interval", 0)) * CYCLE_US,
        "lost_jobs": "keep",
        "lost_grace_us": 0,
        "end_orphans": "ORPHAN_JOB_TERM_GRACE_PERIOD" in params,
        "orphan_grace_us": whole_of(params.get("ORPHAN_JOB_TERM_GRACE_PERIOD", 0)) * SECOND_US,
        "queue_resreq": "merge",
        "user_priority_max": whole_of(params.get("MAX_USER_PRIORITY", 100)),
        "preemption": preemption_of(params, is_ours=is_ours),
    }
    known = ClusterSettings.model_fields
    return ClusterSettings.model_validate(
        {name: values[name] for name in values if name in known}, strict=False
    )


def _is_ours(expect: object) -> bool:
    """
    Say whether a vector tells what this program does where the vendor does something else.
    """
    if not isinstance(expect, Mapping):
        return False
    return any(text_of(name).endswith("xce") or _is_ours(each) for name, each in expect.items())


def preemption_of(params: Fields, *, is_ours: bool) -> Preemption:
    """
    Return how jobs preempt others: LSF's way, or our own where a vector says what differs.
    """
    most = params.get("MAX_JOB_PREEMPT")
    return Preemption(
        relation=Relation.BOTH if is_ours else Relation.EITHER,
        trigger=Trigger.ANY if is_ours else Trigger.SLOTS,
        signals=SuspendSignals.TSTP if is_ours else SuspendSignals.LSF,
        resources=texts_of(params.get("PREEMPTABLE_RESOURCES")),
        delay_us=whole_of(params.get("PREEMPT_DELAY", 0)) * SECOND_US,
        times_max=None if most is None else whole_of(most),
        job_types=tuple(
            JobType(word.lower())
            for word in " ".join(texts_of(params.get("PREEMPT_JOBTYPE"))).split()
        ),
        uncounted=tuple(
            UNCOUNTED[word]
            for word in " ".join(texts_of(params.get("PREEMPT_FOR"))).split()
            if word in UNCOUNTED
        ),
        **_protections(params),
    )


def _protections(params: Fields) -> dict[str, int]:
    """
    Return how long jobs are protected, in microseconds or in percent of their run limits.
    """
    found = {}
    for word in ("finish", "run", "interval"):
        name = "INTERVAL" if word == "interval" else f"{word.upper()}_TIME"
        value = params.get(f"NO_PREEMPT_{name}", 0)
        if isinstance(value, str) and value.endswith("%"):
            found[f"no_{word}_percent"] = int(value.rstrip("%"))
        else:
            found[f"no_{word}_us"] = whole_of(value) * MINUTE_US
    return found


def exits_of(fields: Fields) -> ExitRules | None:
    """
    Return what exit values mean, None when the vector doesn't say.
    """
    if not {"REQUEUE_EXIT_VALUES", "SUCCESS_EXIT_VALUES"}.intersection(fields):
        return None
    requeue, exclude = _requeue_values(fields.get("REQUEUE_EXIT_VALUES"))
    most = fields.get("MAX_JOB_REQUEUE")
    return ExitRules(
        requeue=requeue,
        exclude=exclude,
        success=tuple(int(each) for each in _words(fields.get("SUCCESS_EXIT_VALUES"))),
        requeue_max=None if most is None else whole_of(most),
    )


def _requeue_values(value: object) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """
    Return the exit values that put a job back, and those that also exclude the host:
    ``99 EXCLUDE(20 21)``, ``all ~1``.
    """
    text = value if isinstance(value, str) else " ".join(_words(value))
    return parse_requeue_values(text)


def _words(value: object) -> list[str]:
    if value is None or isinstance(value, int):
        return [] if value is None else [text_of(value)]
    return (
        text_of(value).split()
        if isinstance(value, str)
        else [text_of(each) for each in items_of(value)]
    )


def job_limits_of(fields: Fields, *, which: int = 0) -> JobLimits | None:
    """
    Return what an attempt may use at most, None when nothing is said.

    Args:
        fields: Of a job, a profile or a queue.
        which: Where two values are told, the default (0) or the most (-1).
    """
    found: dict[str, int] = {}
    for name, ours in JOB_LIMITS.items():
        if name not in fields:
            continue
        value = fields[name]
        words = value.split() if isinstance(value, str) else value
        told = words[which] if isinstance(words, list) else value
        if ours.endswith("_kib"):
            found[ours] = memory_limit_kib(text_of(told), unit=MemoryUnit.MB)
        else:
            found[ours] = minutes_us(told) or 0 if ours == "cpu_us" else int(text_of(told))
    return JobLimits.model_validate(found) if found else None


def host_of(host: Fields) -> JoinWorker:
    """
    Return the joining of a host. One that doesn't report its load has no memory to tell of either.
    """
    only(host, KNOWN_HOST, "host")
    resources = []
    if host.get("load_available") is not False:
        total_milli = load_milli(MEM, host.get("maxmem", host.get("mem", 16000)))
        resources.append(HostResource(name=MEM, total_milli=total_milli, is_real=True))
    for name in SPACES:
        if name in host:
            total_milli = load_milli(name, host[name])
            resources.append(HostResource(name=name, total_milli=total_milli, is_real=True))
    for name, value in mapping_of(host.get("num")).items():
        resources.append(HostResource(name=name, total_milli=parse_milli(text_of(value))))
    attributes = {"type": host.get("type", "LINUX"), "model": host.get("model", "M1")}
    attributes |= mapping_of(host.get("str"))
    attributes |= dict.fromkeys(texts_of(host.get("bool")), "true")
    if "ncpus" in host:
        attributes["ncpus"] = host["ncpus"]
    return JoinWorker(
        worker=text_of(host.get("name")),
        slots=whole_of(host.get("slots", 4)),
        resources=tuple(resources),
        attributes=tuple(
            Attribute(name=name, value=text_of(value)) for name, value in attributes.items()
        ),
    )


def host_settings_of(host: Fields) -> HostSettings:
    """
    Return what an administrator has set for a host. A window that is closed opens at noon.
    """
    bound = host.get("JL_U")
    window = "12:00-13:00" if host.get("status") == "closed_Wind" else host.get("DISPATCH_WINDOW")
    return HostSettings(
        thresholds=thresholds_of(host, indices=()),
        dispatch_windows=None if window is None else parse_windows(" ".join(texts_of(window))),
        user_slots_max=None if bound is None else whole_of(bound),
        is_locked=host.get("status") == "closed_Lock",
    )


def thresholds_of(fields: Fields, *, indices: Iterable[str] = LOADS) -> tuple[LoadThreshold, ...]:
    """
    Return the load thresholds of a queue or host: ``loadSched`` and ``loadStop`` by index,
    ``thresholds`` or the indices themselves with one or both.
    """
    bounds: dict[str, list[object]] = {}
    for place, field in enumerate(("loadSched", "loadStop")):
        for index, value in mapping_of(fields.get(field)).items():
            bounds.setdefault(index, [None, None])[place] = value
    told = fields.get("thresholds")
    if isinstance(told, str):
        return parse_thresholds(told)
    both = {**mapping_of(told), **{name: fields[name] for name in indices if name in fields}}
    for index, value in both.items():
        bounds[index] = _both_bounds(value)
    words = [
        f"{index}={'' if sched is None else text_of(sched)}"
        f"{'' if stop is None else '/' + text_of(stop)}"
        for index, (sched, stop) in bounds.items()
    ]
    return parse_thresholds(" ".join(words)) if words else ()


def _both_bounds(value: object) -> list[object]:
    """
    Return from which load on nothing starts, and jobs are stopped: ``0.7/2.0``, a list, a mapping
    or the first alone.
    """
    if isinstance(value, str):
        sched, _, stop = value.partition("/")
        return [sched or None, stop or None]
    if isinstance(value, list):
        return [*value, None][:2]
    if isinstance(value, Mapping):
        unknown = sorted(set(map(text_of, value)) - {"loadSched", "loadStop", "sched", "stop"})
        if unknown:
            raise NotYet(f"thresholds with {', '.join(unknown)}")
        return [
            value.get("loadSched", value.get("sched")), value.get("loadStop", value.get("stop"))
        ]  # fmt: skip
    return [value, None]


def load_of(host: Fields) -> tuple[Amount, ...]:
    """
    Return what a host reports: its free memory where it isn't all, and load indices, which are all
    equal where the vector doesn't say.
    """
    if host.get("load_available") is False:
        return ()
    known_only(mapping_of(host.get("load")), (*LOADS, *SPACES, MEM), "the load of a host")
    told = {**host, **mapping_of(host.get("load"))}
    load = [Amount(resource=name, milli=load_milli(name, told.get(name, 0))) for name in LOADS]
    if "mem" in told and "maxmem" in host:
        load.append(Amount(resource=MEM, milli=load_milli(MEM, told["mem"])))
    return tuple(load)


def load_milli(name: str, value: object) -> int:
    """
    Return a load index in thousandths; memory is in MB where no unit is told.
    """
    if name in {MEM, *SPACES}:
        return parse_memory_milli(text_of(value), unit=MemoryUnit.MB)
    return parse_milli(text_of(value))


def job_of(written: Fields, name: str, case: Fields) -> JobSpec:
    """
    Return a job, its requirement as written.

    Raises:
        Refused: It can't be one: no job has no tasks.
    """
    try:
        return _job_of(written, name, case)
    except ValidationError as error:
        raise refused_of(error, JobSpec) from None


def _job_of(written: Fields, name: str, case: Fields) -> JobSpec:
    job = named_alike(written, SAME_IN_JOB)
    only(job, KNOWN_JOB, "job")
    least, most = _tasks(job.get("n", 1))
    base, array = parse_job_name(text_of(job["J"])) if "J" in job else (name, None)
    over = text_of(job.get("over"))
    limits = JobLimits.model_validate(OVER_LIMITS[over]) if over in OVER_LIMITS else None
    return JobSpec(
        user=text_of(job.get("user", "u1")),
        group=text_of(job.get("group")),
        queue=text_of(job.get("q", "normal")),
        project=text_of(job.get("project", "p1")),
        profile=text_of(job.get("app", ONLY_APP if case.get("app") else "")),
        name=base,
        names_tasks="n" in job,
        tasks_min=least,
        tasks_max=most,
        resreq=texts_of(job.get("R")),
        hosts=tuple(asked_host(text) for text in asked_texts(job.get("m"))),
        submit_type=text_of(job.get("submit_type", "LINUX")),
        submit_model=text_of(job.get("submit_model", "M1")),
        is_exclusive=is_yes(job.get("x")),
        program=_program(job),
        user_priority=whole_of(job.get("sp", 0)),
        run_limit_us=OVER_US if over == "runlimit" else minutes_us(job.get("W")),
        begin_us=_moment_us(job.get("b")),
        run_estimate_us=minutes_us(job.get("We")),
        deadline_us=BEGIN_US + OVER_US
        if over == "termination_deadline"
        else _moment_us(job.get("t")),
        limits=limits or job_limits_of(job),
        hold=is_yes(job.get("hold")),
        array=array,
        dependency_text=text_of(job.get("w", "")),
        exits=exits_of({"REQUEUE_EXIT_VALUES": job["Q"]}) if "Q" in job else None,
        rerunnable=is_yes(job["rerunnable"]) if "rerunnable" in job else None,
        ends_as_orphan=is_yes(job["ti"]) if "ti" in job else None,
    )


def _program(job: Fields) -> Program | None:
    """
    Return where a job's input and output are, None where nobody says.
    """
    named = {"i": "stdin", "o": "stdout", "e": "stderr"}
    files = {ours: text_of(job[theirs]) for theirs, ours in named.items() if theirs in job}
    return Program.model_validate(files) if files else None


def asked_texts(value: object) -> tuple[str, ...]:
    """
    Return the hosts that a job asks for, one text each: from ``h1 h2+3`` or a list.
    """
    return tuple(value.split()) if isinstance(value, str) else texts_of(value)


def _moment_us(minute: object) -> int | None:
    return None if minute is None else BEGIN_US + whole_of(minute) * MINUTE_US


def asked_host(text: str) -> HostChoice:
    """
    Return one host that a job asks for: ``h1``, ``h1!`` as its first, ``h1+3`` with a preference.
    """
    name, _, preference = text.partition("+")
    return HostChoice(
        host=name.rstrip("!"), preference=int(preference or 0), is_first=name.endswith("!")
    )


def _tasks(value: object) -> tuple[int, int]:
    """
    Return the fewest and the most tasks.
    """
    counts = wholes_of(value)
    if not 1 <= len(counts) <= 2:
        raise Malformed(f"expected a count of tasks or the fewest and the most, found {value!r}")
    return counts[0], counts[-1]

"""
Why a job waits, as the scheduler itself says it now: for whoever may not read the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from domain.units import MILLI
from projections.audit.times import moment
from tools.cli.client import Client, Json, segment
from tools.cli.output import counted, say, say_json, show_amount, show_time
from tools.cli.why_help import HELPS_SHOWN, helps
from tools.cli.why_slots import OF_SLOTS, OF_SPAN

HOSTS_SHOWN = 5
NAMED_MAX = 6


def tell(directory: Path, job_id: str, *, all_hosts: bool, as_json: bool) -> None:
    """
    Ask the scheduler and show its answer.

    Raises:
        NoScheduler: None answers.
    """
    with Client(directory) as client:
        answer = client.get(f"/v1/jobs/{segment(job_id)}/why")
        if as_json:
            say_json(answer)
            return
        asks = client.get(f"/v1/jobs/{segment(job_id)}") if answer["reasons"] else None
    _show(job_id, answer, asks, all_hosts=all_hosts)


def _show(job_id: str, answer: Json, asks: Json | None, *, all_hosts: bool) -> None:
    say(f"Job {job_id} is {answer['state']}: {_verdict(answer)}")
    say(f"  since {show_time(answer['since_us'])}")
    if asks is not None:
        say(f"  it asks for {_request(asks)}")
    for words, reasons in _grouped(answer["reasons"]).items():
        wanted = None if asks is None else int(asks["tasks_min"])
        _show_group(words, reasons, all_hosts=all_hosts, wanted=wanted)
    if answer["proved_by"] not in ("", job_id):
        say(f"  as found for job {answer['proved_by']}, which asks for the same")
    if answer["blocker"]:
        say(f"  It is behind job {answer['blocker']}: see xce why {answer['blocker']}")
    for line in promise_lines(answer):
        say(f"  {line}")
    codes = [str(reason["code"]) for reason in answer["reasons"]]
    if asks is not None:
        found = helps(
            codes, job_id, asks["queue"], never=answer["never"], is_of_hosts=_is_one_wanted(answer)
        )
        for words in found[:HELPS_SHOWN]:
            say(f"  what helps: {words}")
    say(f"  as of position {answer['position']} of the log")


def promise_lines(answer: Json) -> list[str]:
    """
    Return in words what is promised to a job, who overtakes it, and what it must keep clear of.
    """
    lines = []
    promise = answer["promise"]
    if promise is not None:
        lines.append(_promise_line(promise))
    overtakers = answer["overtaken_by"]
    if overtakers:
        named = ", ".join(str(one["job_id"]) for one in overtakers[-NAMED_MAX:])
        count = counted(len(overtakers), "job")
        runs = "runs" if len(overtakers) == 1 else "run"
        lines.append(f"{count} started ahead of it and still {runs}, the latest: {named}")
    lines += [str(one["words"]) for one in answer["beside"]]
    return lines


def _promise_line(promise: Json) -> str:
    shown = [f"{one['slots']}*{one['host']}" for one in promise["hosts"] if one["slots"]]
    shown += [
        f"{show_amount(each['resource'], each['milli'])} {each['resource']} of {one['host']}"
        for one in promise["hosts"]
        for each in one["amounts"]
    ]
    more = len(shown) - NAMED_MAX
    where = " ".join(shown[:NAMED_MAX]) + (f" and {more:,} more" if more > 0 else "")
    start_us = promise["start_us"]
    start = "from a moment that nobody knows"
    if start_us is not None:
        start = f"from {moment(start_us)} at the latest"
    on = f" on hosts {where}" if where else ""
    if not promise["is_held"]:
        return f"reserved {start}{on} ({promise['policy']})"
    until_us = promise["until_us"]
    until = "" if until_us is None else f" until {moment(until_us)} at most"
    return f"gathers{on}{until}; reserved {start}"


def _is_one_wanted(answer: Json) -> bool:
    """
    Say whether the job's span wants one task on a host: fewer there are none.
    """
    wanted = [one["requested_milli"] for one in answer["reasons"] if one["code"] == OF_SPAN]
    return bool(wanted) and min(wanted) <= MILLI


def _verdict(answer: Json) -> str:
    if answer.get("verdict"):
        return str(answer["verdict"])
    never = "it can never start on the cluster as it is."
    return never if answer["never"] else "it can't start now."


def _request(job: Json) -> str:
    """
    Return what a job asks for, in words.
    """
    least, most = job["tasks_min"], job["tasks_max"]
    tasks = counted(least, "task") if least == most else f"{least:,} to {counted(most, 'task')}"
    return ", ".join([tasks, *job["resreq"]])


def _grouped(reasons: Iterable[Json]) -> dict[str, list[Json]]:
    """
    Return the reasons by their words: of the whole job first, then those of most hosts.
    """
    groups: dict[str, list[Json]] = {}
    for reason in reasons:
        groups.setdefault(reason["text"], []).append(reason)
    return dict(sorted(groups.items(), key=lambda one: _rank(one[1])))


def _rank(reasons: list[Json]) -> tuple[bool, int]:
    count = sum(reason["host_count"] for reason in reasons)
    return count > 0, -count


def _show_group(
    words: str, reasons: list[Json], *, all_hosts: bool, wanted: int | None
) -> None:
    """
    Show one reason, how many hosts it holds for, and what is asked for and there is on each.

    Args:
        words: The reason.
        reasons: All with these words.
        all_hosts: Whether every host is named.
        wanted: How many slots the job asks for in all, None when nobody knows.
    """
    count = sum(reason["host_count"] for reason in reasons)
    # The parts that a job of several tasks was tried in say nothing of the slots it lacks.
    is_of_all = (wanted or 1) > 1 and all(reason["code"] in OF_SLOTS for reason in reasons)
    more = ""
    if is_of_all:
        free = sum(host["available_milli"] for one in reasons for host in one["hosts"]) // MILLI
        more = f"; {wanted} slots asked for, {free} free there"
    say(f"  {words}: {counted(count, 'host')}{more}" if count else f"  {words}")
    lines = [
        _host_line(reason, host, is_of_all=is_of_all)
        for reason in reasons
        for host in reason["hosts"]
    ]
    shown = lines if all_hosts else lines[:HOSTS_SHOWN]
    for line in shown:
        say(f"    {line}")
    if len(lines) > len(shown):
        say(f"    and {counted(len(lines) - len(shown), 'more host')}; --hosts names them")


def _host_line(reason: Json, host: Json, *, is_of_all: bool) -> str:
    resource = resource_of(reason)
    if not resource:
        return str(host["host"])
    available = show_amount(resource, host["available_milli"])
    asked = show_amount(resource, reason["requested_milli"])
    unit = "" if resource == "mem" else f" {resource}"
    if (resource, host["available_milli"]) == ("slots", 1000):
        unit = " slot"
    told = "" if is_of_all else f", {asked} asked for"
    return f"{host['host']}: {available}{unit} available{told}"


def resource_of(reason: Json) -> str:
    """
    Return the resource that a reason is about, "" when it is about none.
    """
    if reason.get("resource"):
        return str(reason["resource"])
    return "slots" if reason["code"] == "HOST_SLOTS" else ""

"""
Say why a job waits, on one screen: the verdict, reasons with counts and amounts, what to ask next.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tools.cli.client import Client, Json, segment
from tools.cli.options import dir_option, json_option
from tools.cli.output import counted, say, say_json, show_amount, show_time

HOSTS_SHOWN = 5


@click.command(epilog="""
\b
Examples:
  xce why 12
  xce why 12 --hosts             every host by name, with what it has available
  xce why 12 --json | jq .never
Next: xce history 12 tells how it came here, xce hosts shows what the hosts have.
""")
@click.argument("job_id", metavar="JOB")
@click.option("--hosts", "all_hosts", is_flag=True, help="Name every host, not just the first few.")
@dir_option
@json_option
def why(directory: Path, job_id: str, *, all_hosts: bool, as_json: bool) -> None:
    """
    Say why a job waits, and whether it can ever start; or what became of it.
    """
    answer = Client(directory).get(f"/v1/jobs/{segment(job_id)}/why")
    if as_json:
        say_json(answer)
        return
    say(f"Job {job_id} is {answer['state']}: {_verdict(answer)}")
    if answer.get("since_us") is not None:
        say(f"  since {show_time(answer['since_us'])}")
    for reason in answer.get("reasons") or ():
        _show_reason(reason, all_hosts=all_hosts)
    if answer.get("blocker"):
        say(f"  It is behind job {answer['blocker']}: see xce why {answer['blocker']}")
    say(f"  as of position {answer['position']} of the log")


def _verdict(answer: Json) -> str:
    if answer.get("verdict"):
        return str(answer["verdict"])
    if answer.get("never"):
        return "it can never start on the cluster as it is."
    return "it can't start now." if answer.get("reasons") else "nothing holds it back."


def _show_reason(reason: Json, *, all_hosts: bool) -> None:
    """
    Show one reason: its words, how many hosts it holds for, what was asked and what is there.
    """
    count = reason.get("host_count", 0)
    words = reason.get("text") or reason["code"]
    line = f"  {words}: {counted(count, 'host')}" if count else f"  {words}"
    resource = resource_of(reason)
    if resource and reason.get("requested_milli"):
        line += f", {show_amount(resource, reason['requested_milli'])} asked for"
        best = _most_available(reason.get("hosts") or ())
        if best is not None:
            line += f", at most {show_amount(resource, best)} available"
    say(line)
    hosts = reason.get("hosts") or ()
    shown = hosts if all_hosts else hosts[:HOSTS_SHOWN]
    for host in shown:
        amount = f": {show_amount(resource, host['available_milli'])} available" if resource else ""
        say(f"    {host['host']}{amount}")
    if len(hosts) > len(shown):
        say(f"    and {counted(len(hosts) - len(shown), 'more host')}; --hosts names them")


def resource_of(reason: Json) -> str:
    """
    Return the resource that a reason is about, "" when it is about none.
    """
    if reason.get("resource"):
        return str(reason["resource"])
    return "slots" if reason["code"] == "HOST_SLOTS" else ""


def _most_available(hosts: Any) -> int | None:
    amounts = [host["available_milli"] for host in hosts if host.get("available_milli") is not None]
    return max(amounts) if amounts else None

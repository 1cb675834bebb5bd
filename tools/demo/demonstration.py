"""
Show the whole road: submit, run, crash, recover, explain, prove.

Every sentence with a mark before it was checked.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from tools.demo.stage import BOLD, Stage, StageError, painted

ENDED = ("DONE", "EXIT")
WORKERS, SLOTS = 2, 2
INTERRUPTED = 130


class Act(NamedTuple):
    """
    One job of the workload: options and command as typed, and how it must end.
    """

    name: str
    words: tuple[str, ...]
    ends: tuple[str, int | None]


def _counted(command: str) -> str:
    """
    Return a shell text that notes its own start, so that a second start would be seen.
    """
    return f'echo "$XCE_JOB_ID" >> starts.txt; {command}'


def _until(name: str) -> str:
    """
    Return a shell text that ends when it is told to, however slow the machine is.
    """
    return f"until [ -e {name}.ends ]; do sleep 0.1; done"


WORKLOAD = (
    Act("sort", ("--shell", _counted("seq 300000 | sort -R | sort -n | sha256sum")), ("DONE", 0)),
    Act("hosts", ("-n", "3", "--shell", _counted('echo "my hosts: $XCE_HOSTS"')), ("DONE", 0)),
    Act("memory", ("-R", "rusage[mem=64]", "--shell", _counted("head -c 50m /dev/zero | md5sum")),
        ("DONE", 0)),
    Act("fails", ("--shell", _counted("echo this goes wrong >&2; exit 3")), ("EXIT", 3)),
    Act("short", ("--shell", _counted(_until("short"))), ("DONE", 0)),
    Act("long", ("--shell", _counted(f"{_until('long')}; echo survived")), ("DONE", 0)),
    Act("too-wide", ("-n", "1000", "--shell", _counted("true")), ("EXIT", None)),
)


def main() -> int:
    """
    Run the demonstration; the exit status is 0 only when everything was as it says.
    """
    parser = argparse.ArgumentParser(prog="tools.demo", description=main.__doc__)
    parser.add_argument("--keep", action="store_true", help="keep the directory, to look at it")
    keep = parser.parse_args().keep
    directory = Path(tempfile.mkdtemp(prefix="xce-demo-"))
    stage = Stage(directory)
    try:
        _play(stage)
    except StageError as error:
        stage.check("the demonstration went to its end", holds=False, seen=error)
    except KeyboardInterrupt:
        stage.say("\nInterrupted.")
        return INTERRUPTED
    finally:
        stage.clear()
        # What went wrong can only be found out from what is there.
        is_kept = keep or bool(stage.failures)
        if not is_kept:
            shutil.rmtree(directory, ignore_errors=True)
    _farewell(stage, kept=directory if is_kept else None)
    return 1 if stage.failures else 0


def _play(stage: Stage) -> None:
    _open(stage)
    jobs = _submit(stage)
    _crash(stage, jobs)
    _finish(stage, jobs)
    _explain(stage, jobs)
    _prove(stage)
    _close(stage)


def _open(stage: Stage) -> None:
    stage.chapter("1. A scheduler on an event log, with two local workers")
    stage.start(WORKERS, SLOTS)
    stage.show("hosts")


def _submit(stage: Stage) -> dict[str, str]:
    """
    Submit the workload and return the job ids by name.
    """
    stage.chapter("2. Real programs: serial, parallel, with memory, one that fails, one too wide")
    jobs = {}
    for act in WORKLOAD:
        jobs[act.name] = stage.ask("submit", "-J", act.name, *act.words)["job_id"]
    wanted = {jobs["short"], jobs["long"]}
    stage.wait("the two that wait run", lambda: wanted <= set(_states(stage, "RUN")))
    stage.show("jobs", "-a", "--columns", "job,name,state,tasks,hosts,exit")
    return jobs


def _states(stage: Stage, *states: str) -> dict[str, dict[str, Any]]:
    """
    Return the jobs that are in one of the states, by id; all without a state.
    """
    jobs = stage.ask("jobs", "-a")["jobs"]
    return {job["job_id"]: job for job in jobs if not states or job["state"] in states}


def _crash(stage: Stage, jobs: dict[str, str]) -> None:
    stage.chapter("3. kill -9 of the scheduler in the middle")
    before = _states(stage)
    pids = {job_id: stage.ask("job", job_id).get("pid") for job_id in (jobs["short"], jobs["long"])}
    pid = stage.kill_scheduler()
    stage.check(f"the scheduler (process {pid}) is gone", holds=stage.show("jobs") == 3)
    stage.check("both running programs go on without it", holds=_alive(pids), seen=pids)
    late = stage.begin("submit", "-J", "late", "--wait", "30", "--shell", _counted("echo late"))
    stage.say("  a submission made now waits for the scheduler to come back")
    (stage.directory / "short.ends").touch()
    stage.wait("the short job ends unseen", lambda: not _exists(pids[jobs["short"]]))
    stage.say("  the short job has ended meanwhile; nobody was there to hear it")

    stage.chapter("4. The scheduler starts again from its log")
    stage.start(WORKERS, SLOTS)
    after = _states(stage)
    _compare(stage, before, after)
    stage.check(
        "the long job is the same process as before, its first attempt",
        holds=_exists(pids[jobs["long"]]) and after[jobs["long"]].get("attempt", 1) == 1,
        seen=after[jobs["long"]],
    )
    _late(stage, late, jobs)


def _alive(pids: dict[str, int]) -> bool:
    return all(_exists(pid) for pid in pids.values())


def _exists(pid: int | None) -> bool:
    return bool(pid) and Path(f"/proc/{pid}").exists()


def _compare(stage: Stage, before: dict[str, Any], after: dict[str, Any]) -> None:
    missing = sorted(set(before) - set(after))
    stage.check(f"all {len(before)} jobs are still known", holds=not missing, seen=missing)
    back = [
        job_id for job_id in before
        if before[job_id]["state"] in ENDED and before[job_id]["state"] != after[job_id]["state"]
    ]
    stage.check("what had ended before is as it was", holds=not back, seen=back)


def _late(stage: Stage, late: subprocess.Popen[bytes], jobs: dict[str, str]) -> None:
    stage.check("the submission that waited was taken", holds=late.wait(timeout=40) == 0)
    named = [job_id for job_id, job in _states(stage).items() if job.get("name") == "late"]
    stage.check("it is one job, under a number of its own",
                holds=len(named) == 1 and named[0] not in jobs.values(), seen=named)
    jobs["late"] = named[0]


def _finish(stage: Stage, jobs: dict[str, str]) -> None:
    stage.chapter("5. Everything runs to its end")
    (stage.directory / "long.ends").touch()
    running = {job_id for name, job_id in jobs.items() if name != "too-wide"}
    stage.wait("all jobs that fit end", lambda: running <= set(_states(stage, *ENDED)))
    stage.show("jobs", "-a", "--columns", "job,name,state,tasks,hosts,exit")
    all_jobs = _states(stage)
    for act in WORKLOAD:
        job = all_jobs[jobs[act.name]]
        if act.name != "too-wide":
            stage.check(f"{act.name} ended {act.ends[0]} with {act.ends[1]}",
                        holds=(job["state"], job["exit_code"]) == act.ends, seen=job)
    starts = Counter((stage.directory / "starts.txt").read_text().split())
    output = Path(stage.ask("job", jobs["long"])["stdout"])
    stage.check("the long job's output is all there",
                holds=output.read_text() == "survived\n", seen=output)
    stage.check("every program was started exactly once",
                holds=starts == Counter(running), seen=dict(starts))


def _explain(stage: Stage, jobs: dict[str, str]) -> None:
    stage.chapter("6. Why does a job wait, and what was its story?")
    wide = jobs["too-wide"]
    stage.show("why", wide)
    answer = stage.ask("why", wide)
    stage.check("it waits, and it is told that it can never start here",
                holds=_states(stage)[wide]["state"] == "PEND" and answer.get("never") is True,
                seen=answer)
    stage.show("history", jobs["long"])
    stage.ask("kill", wide)
    stage.wait("it has ended", lambda: _states(stage)[wide]["state"] == "EXIT")


def _prove(stage: Stage) -> None:
    stage.chapter("7. The log proves it: every decision, decided again")
    log = str(stage.cluster)
    stage.check("every recorded decision comes out the same again",
                holds=stage.show("replay", "verify", log) == 0)
    stage.check("no byte of the log has changed", holds=stage.show("log", "verify", log) == 0)


def _close(stage: Stage) -> None:
    stage.chapter("8. The end")
    stage.check("the scheduler and its workers stop when asked", holds=stage.show("down") == 0)
    assert stage.scheduler is not None
    stage.wait("nothing is left", lambda: not stage.processes(), deadline_s=15)
    stage.check("nothing is left running", holds=True)


def _farewell(stage: Stage, kept: Path | None) -> None:
    if stage.failures:
        stage.say(f"\n{len(stage.failures)} of the claims above did not hold.")
    if kept is not None:
        stage.say(f"\nThe cluster is kept in {kept / 'cluster'}.")
    stage.say(f"""
{painted('What to type next', BOLD)}
  . .venv/bin/activate              so that the shell knows the command xce
  xce up --workers 2                a scheduler of your own (Ctrl-C ends it; xce down ends all)
  xce submit -- sleep 10            in another terminal; then: xce jobs --watch
  xce simulate TRACE.swf.gz         a recorded workload on a model of its cluster
  xce --help                        everything else""")

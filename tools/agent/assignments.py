"""
Turn an assignment into what the launcher starts: arguments, environment, directory and files.
"""

from __future__ import annotations

import os
import pwd

from tools.agent.files import WorkerFiles, expand_path
from tools.agent.messages import StartRequest
from tools.agent.processes import ATTEMPT_VARIABLE, JOB_VARIABLE, WORKER_VARIABLE
from tools.agent.protocol import Assignment
from tools.agent.spawn import DEFAULT_PATH

SHELL = "/bin/sh"


class CannotRun(Exception):  # noqa: N818 - it says what happened
    """
    Say why this worker can't carry out an assignment.
    """


def start_request(assignment: Assignment, files: WorkerFiles) -> StartRequest:
    """
    Return what to start for an assignment.

    Raises:
        CannotRun: It has no program, or it is another user's: an agent runs the jobs of its own
        user only.
    """
    program = assignment.program
    own = pwd.getpwuid(os.geteuid()).pw_name
    if assignment.user != own:
        raise CannotRun(f"user: this worker runs jobs of {own} only, not of {assignment.user}")
    if program is None or (not program.argv and program.shell is None):
        raise CannotRun("program: the job has none")
    argv = (
        program.argv
        if program.shell is None
        else (SHELL, "-c", program.shell, SHELL, *program.argv)
    )
    own_directory = str(files.jobs / f"{assignment.job_id}.{assignment.attempt}")
    wants_directory = not (program.cwd and program.stdout and program.stderr)
    return StartRequest(
        job_id=assignment.job_id,
        attempt=assignment.attempt,
        argv=argv,
        env=environment(assignment, files),
        cwd=program.cwd or own_directory,
        umask=program.umask,
        stdin=expand_path(program.stdin, assignment.job_id),
        stdout=expand_path(program.stdout, assignment.job_id) or f"{own_directory}/stdout",
        stderr=expand_path(program.stderr, assignment.job_id) or f"{own_directory}/stderr",
        make_directory=own_directory if wants_directory else "",
        before=assignment.pre_exec,
        after=assignment.post_exec,
        nice=assignment.nice,
        file_kib=assignment.file_kib,
    )


def environment(assignment: Assignment, files: WorkerFiles) -> dict[str, str]:
    """
    Return the job's whole environment: a small base, the job's own variables, and what the
    scheduler tells it.
    """
    user = pwd.getpwuid(os.geteuid())
    base = {
        "PATH": DEFAULT_PATH,
        "HOME": user.pw_dir,
        "USER": user.pw_name,
        "LOGNAME": user.pw_name,
        "SHELL": SHELL,
    }
    asked = (
        {}
        if assignment.program is None
        else {one.name: one.value for one in assignment.program.env}
    )
    return base | asked | _told(assignment, files)


def _told(assignment: Assignment, files: WorkerFiles) -> dict[str, str]:
    """
    Return the variables that say where and as what the job runs; LSF's beside our own.
    """
    number, _, index = assignment.job_id.rstrip("]").partition("[")
    shares = assignment.hosts
    return {
        JOB_VARIABLE: assignment.job_id,
        ATTEMPT_VARIABLE: str(assignment.attempt),
        WORKER_VARIABLE: str(files.directory),
        "XCE_QUEUE": assignment.queue,
        "XCE_HOSTS": " ".join(f"{share.host}*{share.tasks}" for share in shares),
        "LSB_JOBID": number,
        "LSB_JOBINDEX": index or "0",
        "LSB_QUEUE": assignment.queue,
        "LSB_JOBNAME": assignment.name,
        "LSB_HOSTS": " ".join(share.host for share in shares for _ in range(share.tasks)),
        "LSB_MCPU_HOSTS": " ".join(f"{share.host} {share.tasks}" for share in shares),
    }

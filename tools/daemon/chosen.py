"""
The jobs that job 0 stands for, as in LSF: all of a user that haven't ended and fit what is asked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from domain.errors import Denied, NotFound, Refused
from projections.scheduling.records import JobRecord
from projections.scheduling.state import State
from tools.daemon.access import Caller
from tools.daemon.bodies import ChosenJobs
from tools.daemon.job_filter import Filter

ALL_JOBS: Final = "0"
EVERYBODY: Final = "all"


def check_chosen(job_id: str, chosen: ChosenJobs) -> None:
    """
    Refuse to choose among the jobs that an id other than 0 names.
    """
    given = next((name for name in ChosenJobs.model_fields if getattr(chosen, name)), None)
    if given is not None and job_id != ALL_JOBS:
        raise Refused(given, "chooses among all jobs: it goes with job 0 alone", job_id)


def jobs_chosen(state: State, chosen: ChosenJobs, caller: Caller) -> list[JobRecord]:
    """
    Return the jobs that are meant, in order of submission.

    Raises:
        Denied: They are another user's, and the caller is no operator.
        NotFound: There is none.
    """
    user = chosen.user or caller.user
    if user != caller.user and not caller.is_operator:
        raise Denied("user", "must be the caller, unless an operator asks", user)
    whose = "" if user == EVERYBODY else user
    wanted = Filter(False, (), chosen.queue, whose, chosen.host, 0, 0, chosen.name)
    found = list(filter(wanted.fits(state), state.stored.jobs.values()))
    if not found:
        # Who the caller is was told by the system, not typed.
        typed = "" if user == caller.user else whose
        replace(wanted, everything=True, user=typed).check_names(state)
        is_all = not (chosen.queue or chosen.host or chosen.name)
        of = "of yours" if user == caller.user else "" if user == EVERYBODY else f"of {user}"
        which = " ".join(filter(None, ("no job", of, "" if is_all else "that fits")))
        raise NotFound("job_id", f"{which} hasn't ended yet")
    return found

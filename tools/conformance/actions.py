"""
Let happen what the actions and steps of a vector say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tools.conformance.trial import Trial
from tools.conformance.values import (
    Fields,
    Malformed,
    items_of,
    mapping_of,
    mappings_of,
    text_of,
    texts_of,
    whole_of,
)
from tools.conformance.written import clock_minutes, is_yes

ACTIONS: Final = frozenset(
    {"bstop", "bresume", "bkill", "brequeue", "bswitch", "bmod", "btop", "bbot", "exit", "killed",
     "brun", "pre_exec", "over", "host_unavail", "finish", "host_ok", "job_alive", "submit",
     "hclose", "hopen", "job_done", "job_exited", "load", "qopen", "qclose", "qact", "qinact",
     "host_status"}
)  # fmt: skip
"""What may happen: a command about jobs, hosts or queues, or something that happens to them."""

SAME: Final[Mapping[str, str]] = {
    "fail": "exit", "bsub": "submit", "report": "load",
    "host_lost": "host_unavail", "host_down": "host_unavail", "host_unreach": "host_unavail",
    "host_up": "host_ok", "host_back": "host_ok",
    "host_close": "hclose", "close_host": "hclose", "badmin_hclose": "hclose",
    "host_open": "hopen", "open_host": "hopen", "badmin_hopen": "hopen",
    "queue_close": "qclose", "close_queue": "qclose", "badmin_qclose": "qclose",
    "queue_open": "qopen", "open_queue": "qopen", "badmin_qopen": "qopen",
    "queue_inact": "qinact", "inactivate_queue": "qinact", "badmin_qinact": "qinact",
    "queue_act": "qact", "activate_queue": "qact", "badmin_qact": "qact",
    "stop": "bstop", "resume": "bresume", "kill": "bkill", "requeue": "brequeue",
    "switch": "bswitch", "modify": "bmod", "finished": "finish", "done": "finish",
}  # fmt: skip
"""Other words for some of them."""
_WITH_VALUE: Final[Mapping[str, object]] = {"fail": 1, "host_unreach": "unreach"}
"""Those that say which value is meant where none is told: of an exit, of what is lost."""

OF_OPERATORS: Final = frozenset(
    {"brun", "hclose", "hopen", "qopen", "qclose", "qact", "qinact", "host_status"}
)
"""What only those do who run the cluster."""

ADMINISTRATORS: Final = frozenset({"admin", "administrator", "root"})

HELD: Final = frozenset({"hold", "-H"})
"""With a brequeue: the job is held."""

ABOUT: Final = frozenset({"by", "at", "clock", "cycle", "expect", "why", "note", "host"}) | HELD
"""What else an action or step may have."""

FIELDS: Final = ACTIONS | frozenset(SAME) | ABOUT

ENDED: Final = {"finish": 0, "job_done": 0, "job_exited": 1}
"""What tells of jobs that ended by themselves, and their exit code where none is told."""

_OF_TRIAL: Final = frozenset({*ENDED, "host_ok", "job_alive", "submit"})


class Arrivals:
    """
    Submit the jobs of a case when their time has come; those without one at once.

    Args:
        trial: The scheduler.
        jobs: As the vector lists them.
    """

    def __init__(self, trial: Trial, jobs: Iterable[Fields]) -> None:
        self._trial = trial
        self._waiting = list(jobs)

    def until(self, minute: int) -> None:
        """
        Submit those that come up to a minute.
        """
        due = [job for job in self._waiting if _submitted_at(job) <= minute]
        self._waiting = [job for job in self._waiting if _submitted_at(job) > minute]
        for job in sorted(due, key=_submitted_at):
            if "submit" in job:
                self._trial.go_to(_submitted_at(job))
            self._trial.submit(job)

    def all(self) -> None:
        """
        Submit all of them, each at its time.
        """
        self.until(max(map(_submitted_at, self._waiting), default=0))


def _submitted_at(job: Fields) -> int:
    return whole_of(job.get("submit", 0))


def check_action(action: Fields, what: str) -> None:
    """
    Do nothing, or name what of an action or step nobody knows.

    Raises:
        Malformed: There is something.
    """
    unknown = sorted(str(name) for name, value in action.items()
                     if name not in FIELDS and value is not None)  # fmt: skip
    if unknown:
        raise Malformed(f"nothing is known of {', '.join(unknown)} in {what}")


def minute_of(when: Fields) -> int | None:
    """
    Return the minute of a step, by ``clock`` or ``at``; None when it doesn't say.
    """
    if when.get("clock") is not None:
        return clock_minutes(when["clock"])
    return whole_of(when["at"]) if when.get("at") is not None else None


def carry_out(trial: Trial, action: Fields, arrivals: Arrivals) -> None:
    """
    Let time go on to when an action happens, and let it happen.
    """
    names = {word: word if word in _WITH_VALUE else SAME.get(word, word) for word in action}
    if len(set(names.values())) < len(names):
        raise Malformed(f"two words of {', '.join(action)} mean the same")
    action = {name: action[word] for word, name in names.items()}
    minute = minute_of(action)
    if minute is not None:
        arrivals.until(minute)
        trial.go_to(minute)
    if action.get("cycle") is True:
        trial.cycle()
    words = list(action)
    # What stands before a submission happens before it.
    is_early = "submit" in action
    early = {word: action[word] for word in words[: words.index("submit")]} if is_early else {}
    late = {word: value for word, value in action.items() if word not in early}
    held = {word: value for word, value in action.items() if word in ABOUT}
    for name, about, value in _acts_of({**early, **held}):
        trial.act(name, about, value, by=_who(action, name))
    for job in _new_jobs(action.get("submit")):
        trial.submit(job)
    for name, about, value in _acts_of({**late, **held}):
        trial.act(name, about, value, by=_who(action, name))
    if _OF_TRIAL.intersection(action):
        trial.happen(action)


def _who(action: Fields, name: str) -> str:
    """
    Return who does it: unless an action says so, an operator what only operators do.
    """
    by = text_of(action.get("by") or ("admin" if name in OF_OPERATORS else "u1"))
    return "admin" if by in ADMINISTRATORS else by


def _new_jobs(value: object) -> list[Fields]:
    if value is None:
        return []
    if isinstance(value, str):
        return [{"id": value}]
    if isinstance(value, Mapping):
        return [mapping_of(value)]
    return [job if isinstance(job, Mapping) else {"id": text_of(job)} for job in items_of(value)]


def _acts_of(action: Fields) -> list[tuple[str, str, object]]:
    found: list[tuple[str, str, object]] = []
    for word, about in action.items():
        name = SAME.get(word, word)
        if name in ABOUT or name in _OF_TRIAL or about is None:
            continue
        default = _WITH_VALUE.get(word)
        if name == "brun":
            default = action.get("host")
        if name == "brequeue" and any(is_yes(action.get(option)) for option in HELD):
            default = "-H"
        if isinstance(about, Mapping):
            found += [(name, text_of(job), value) for job, value in about.items()]
        else:
            found += [(name, job, default) for job in texts_of(about)]
    return found


def finished_in(step: Fields) -> list[tuple[str, int]]:
    """
    Return the jobs that end in a step by themselves, with their exit codes.
    """
    found: list[tuple[str, int]] = []
    for field, usual in ENDED.items():
        about = step.get(field)
        if isinstance(about, Mapping):
            found += [(text_of(job), whole_of(code)) for job, code in about.items()]
        else:
            found += [(job, usual) for job in texts_of(about)]
    return found


def check_steps(holder: Fields) -> None:
    """
    Do nothing, or name what of the steps and actions of a vector or case nobody knows.

    Raises:
        Malformed: There is something.
    """
    for field, what in (("steps", "step"), ("actions", "action")):
        for number, action in enumerate(mappings_of(holder.get(field)), 1):
            check_action(action, f"{what} {number}")

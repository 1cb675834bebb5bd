"""
What an application profile is made of: what the jobs of one application need.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from domain.amounts import TimeUs
from domain.errors import Refused
from domain.event import Value
from domain.jobs import EnvironmentVariable, ExitRules, JobLimits, Shell, Tasks, Text
from domain.resreq.merge import Mark, check_profile
from domain.resreq.syntax import Requirement


class ProfileSpec(Value):
    """
    Hold a profile as its administrator defined it.

    Beside each value stands its mark: a *default* holds for jobs that say nothing of it, a *fixed*
    value can't be said otherwise, and a *select* is ANDed to the job's own (the requirement
    only).

    Args:
        resreq: Resource requirement as written, one text per option.
        requirement: The same parsed and checked.
        resreq_mark: Its mark; so each ``_mark``.
        tasks_min: Fewest tasks, None when the profile doesn't say.
        tasks_max: Most tasks; so is ``tasks_min`` when only one is given.
        run_limit_us: The run limit.
        limits: What an attempt may use at most; each bound by itself.
        exits: What exit values mean.
        rerunnable: Whether jobs start anew when their host is lost.
        pre_exec: A command before the job's own; it must succeed. As a default it doesn't keep a
            job from having one too, inside of it.
        post_exec: A command after it.
        env: Variables of the environment, each by itself.
        allows_job_exec: Whether a job may have commands of its own before and after, inside these.
        description: A line for people.
    """

    resreq: tuple[Text, ...] = ()
    requirement: Requirement | None = None
    resreq_mark: Mark = Mark.DEFAULT
    tasks_min: Tasks | None = None
    tasks_max: Tasks | None = None
    tasks_mark: Mark = Mark.DEFAULT
    run_limit_us: TimeUs | None = None
    run_limit_mark: Mark = Mark.DEFAULT
    limits: JobLimits | None = None
    limits_mark: Mark = Mark.DEFAULT
    exits: ExitRules | None = None
    exits_mark: Mark = Mark.DEFAULT
    rerunnable: bool | None = None
    rerunnable_mark: Mark = Mark.DEFAULT
    pre_exec: Shell = ""
    post_exec: Shell = ""
    exec_mark: Mark = Mark.DEFAULT
    env: tuple[EnvironmentVariable, ...] = ()
    env_mark: Mark = Mark.DEFAULT
    allows_job_exec: bool = True
    description: Annotated[str, Field(max_length=512)] = ""

    @property
    def tasks(self) -> tuple[int, int] | None:
        """
        Return the fewest and the most tasks, None when it doesn't say.
        """
        if self.tasks_min is None and self.tasks_max is None:
            return None
        least = self.tasks_min or self.tasks_max or 1
        return least, self.tasks_max or least


def check_profile_spec(profile: ProfileSpec) -> None:
    """
    Do nothing when a profile makes sense.

    Raises:
        Refused: A mark doesn't suit its value, or its tasks contradict each other.
    """
    for name in (mark for mark in ProfileSpec.model_fields if mark.endswith("_mark")):
        if getattr(profile, name) is Mark.SELECT and name != "resreq_mark":
            raise Refused(name, "only a requirement can be ANDed", Mark.SELECT.value)
    if profile.requirement is not None:
        check_profile(profile.requirement, profile.resreq_mark)
    least, most = profile.tasks_min or 1, profile.tasks_max
    if most is not None and most < least:
        raise Refused("tasks_max", "must not be below tasks_min", most)

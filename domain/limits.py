"""
What a limit is made of: for whom it holds, and how much they may have at a time.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from domain.amounts import Milli
from domain.errors import Refused
from domain.event import Value
from domain.name_lists import NameList
from domain.resources import Catalogue
from domain.windows import Windows

JOBS: Final = "jobs"
SLOTS: Final = "slots"
TASKS: Final = "tasks"
COUNTED: Final = (JOBS, SLOTS, TASKS)
"""What limits count beside resources; every job takes some of it."""

DIMENSIONS: Final = ("users", "groups", "queues", "projects", "profiles", "hosts")


class Basis(StrEnum):
    """
    Name what an amount is told in: itself, for each processor of the host, or as a share of what
    the host has.
    """

    ABSOLUTE = "absolute"
    PER_PROCESSOR = "per_processor"
    PERCENT = "percent"


class LimitAmount(Value):
    """
    Say how much of one thing may be in use: jobs, slots, tasks, or a resource that is reserved.

    Args:
        milli: Thousandths, whatever the basis.
    """

    resource: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,38}$")]
    milli: Milli
    basis: Basis = Basis.ABSOLUTE


class Scope(Value):
    """
    Say for whom a limit holds: those listed share one budget, or each of them has it.
    """

    names: NameList
    is_each: bool = False


class LimitSpec(Value):
    """
    Hold a limit as its administrator defined it. A scope that isn't given means anybody.

    Args:
        users: Users and user groups.
        groups: User groups: the job's own, else all of its user's.
        queues: Queues.
        projects: Projects, as jobs name them.
        profiles: Application profiles.
        hosts: Then the limit is looked at for each host.
        amounts: How much of each thing they may have at a time: jobs, slots, tasks or a resource.
        windows: When it holds; None for always. What is in use counts at any time.
        description: A line for people.
    """

    users: Scope | None = None
    groups: Scope | None = None
    queues: Scope | None = None
    projects: Scope | None = None
    profiles: Scope | None = None
    hosts: Scope | None = None
    amounts: Annotated[tuple[LimitAmount, ...], Field(min_length=1)]
    windows: Windows | None = None
    description: Annotated[str, StringConstraints(max_length=512)] = ""


class LimitCharge(Value):
    """
    Say what a job is charged to one budget of a limit.

    Args:
        limit: Name of the limit, or of what else has a bound: ``queue normal``, ``user alice``.
        budget: Whose of its budgets it is, "" when it has only one.
        resource: What is counted.
        milli: In thousandths, over all of the job's hosts.
    """

    limit: str
    budget: str = ""
    resource: str
    milli: Milli


def check_amounts(
    amounts: tuple[LimitAmount, ...], catalogue: Catalogue, *, is_of_hosts: bool
) -> None:
    """
    Do nothing when amounts make sense.

    Raises:
        Refused: One names what can't be counted, is named twice, or is told by the host though
            the limit holds for no hosts.
    """
    names = [amount.resource for amount in amounts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise Refused("amounts", "must name each resource once", twice)
    for amount in amounts:
        found = catalogue.get(amount.resource)
        is_known = found is not None and (found.is_consumable or amount.resource in COUNTED)
        if not is_known and amount.resource not in COUNTED:
            rule = "must be jobs, slots, tasks, or a resource that can be reserved"
            raise Refused("amounts", rule, amount.resource)
        if amount.basis is not Basis.ABSOLUTE and not is_of_hosts:
            rule = "an amount told by the host needs a limit of hosts"
            raise Refused("amounts", rule, amount.resource)
        if amount.basis is Basis.PERCENT and amount.resource in COUNTED:
            raise Refused("amounts", "only a resource can be told in percent", amount.resource)

"""
What a user is made of: nobody must be defined, only whom something holds for.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

from domain.amounts import Count, Milli
from domain.event import Value


class UserSpec(Value):
    """
    Hold a user as the administrator defined it; the groups are those that name the user.

    Args:
        slots_max: So many slots at most are used at a time, None for any.
        processor_slots_max_milli: The same on each host, for each of its processors.
        description: A line for people.
    """

    slots_max: Count | None = None
    processor_slots_max_milli: Milli | None = None
    description: Annotated[str, StringConstraints(max_length=512)] = ""

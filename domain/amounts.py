"""
Amounts of named resources: whole thousandths of the base unit (memory in KiB), so that sums don't
depend on order.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from domain.event import Value
from domain.ids import MaybeName

AMOUNT_MAX = 2**63 - 1
Milli = Annotated[int, Field(ge=0, le=AMOUNT_MAX)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
TimeUs = Annotated[int, Field(ge=0, le=2**62)]

SLOTS = "slots"
MEM = "mem"


class Amount(Value):
    """
    Say how much of one resource, in thousandths of its base unit.
    """

    resource: MaybeName
    milli: Milli


class InstanceUnit(Value):
    """
    Hold one named unit of a resource, such as one GPU.

    Args:
        name: Its name on the host ("0" to "7").
        model: What it is.
        topology: Where it sits, in the words of whoever measured it.
    """

    name: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    model: Annotated[str, StringConstraints(max_length=128)] = ""
    topology: Annotated[str, StringConstraints(max_length=256)] = ""


class HostResource(Value):
    """
    Describe one resource of one host: its total, and whether the operating system measures it
    (memory) or it is only counted (a licence).

    Args:
        units: The named units that the total counts, such as GPUs; empty for a plain amount.
    """

    name: MaybeName
    total_milli: Milli
    is_real: bool = False
    units: tuple[InstanceUnit, ...] = ()


class Attribute(Value):
    """
    Describe one attribute of a host, such as its type or model; a boolean one is "true" or absent.
    """

    name: MaybeName
    value: Annotated[str, StringConstraints(max_length=65_536)]

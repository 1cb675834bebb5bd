"""
Read the node table of Alibaba's cluster of 2023 (openb) as a modelled cluster.

A slot is a CPU, so that a pod, which takes one slot, is bound by its amount of CPU alone: none asks
for less than one. GPUs are units with a model; `gpu_model` is an attribute of the node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from domain.errors import Refused
from replay.cluster_spec import HOW, OPTION, SLOTS_MAX, HostSpec, ResourceSpec, check_count
from replay.workloads.details import CPU, GPU
from replay.workloads.openb import GPU_MODEL

HEADER = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
KIB_PER_MIB = 1024


def is_openb_nodes(text: str) -> bool:
    """
    Tell whether a text begins as the node table does.
    """
    return tuple(text.split("\n", 1)[0].strip().split(",")) == HEADER


def openb_hosts(text: str) -> Iterator[HostSpec]:
    """
    Yield the hosts of a node table, in its order.

    Raises:
        Refused: A line of it can't be understood; the line is named.
    """
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.strip().split(",")
        if number == 1 or not line.strip():
            continue
        if len(cells) != len(HEADER):
            raise Refused(f"{OPTION} line {number}", f"must have {len(HEADER)} columns", line[:80])
        cpu_milli, mib, gpus = (_whole(cell, number) for cell in cells[1:4])
        check_count(f"{OPTION} line {number} cpu_milli", cpu_milli // 1000, SLOTS_MAX)
        model = cells[4]
        resources = [ResourceSpec(CPU, cpu_milli)]
        if gpus:
            resources.append(ResourceSpec(GPU, gpus * 1000, model, has_units=True))
        yield HostSpec(
            cells[0],
            cpu_milli // 1000,
            mib * KIB_PER_MIB,
            ((GPU_MODEL, model),) if model else (),
            tuple(resources),
        )


def _whole(text: str, number: int) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", text):
        raise Refused(f"{OPTION} line {number}", "must hold whole numbers", text, HOW)
    return int(text)

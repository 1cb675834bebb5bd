"""
Model the cluster that a workload is simulated on.

It comes from the workload's own header, from a size such as `1024x8`, or from a file. A file is a
slurm.conf, openb's table of nodes, a table of machines that some traces bring along (see
`_machines_table`), or JSON:

    {"hosts": [
        {"name": "thin[001-144]", "slots": 8, "mem_kib": 4194304,
         "attributes": {"type": "X86_64"}},
        {"name": "fat", "slots": 64, "mem_kib": 1073741824, "resources": {"gpu": 4}}
    ]}

One range in brackets names several hosts alike, its width is kept (`thin001`). Hosts stand in host
order. Memory is given for all hosts or for none; without it the memory that jobs ask for doesn't
count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from domain.broken_rules import refused_of
from domain.errors import NotFound, Refused
from domain.event import Value
from domain.given_files import unreadable
from replay.cluster_spec import (
    HOSTS_MAX,
    HOW,
    OPTION,
    SLOTS_MAX,
    ClusterSpec,
    HostSpec,
    ResourceSpec,
    check_count,
    check_hosts,
)
from replay.openb_nodes import is_openb_nodes, openb_hosts
from replay.slurm_conf import is_slurm_conf, slurm_cluster
from replay.workloads.source import Header, Workload
from replay.workloads.swf import header_number

__all__ = ["ClusterSpec", "HostSpec", "cluster_for", "cluster_of", "read_cluster_file"]

_size = re.compile(r"([0-9]{1,15})x([0-9]{1,15})")
_range = re.compile(r"([^\[\]]*)\[([0-9]{1,9})-([0-9]{1,9})\]([^\[\]]*)")


def cluster_for(option: str | None, workload: Workload) -> ClusterSpec:
    """
    Return the cluster that a workload is simulated on: the one asked for, else its own.

    Raises:
        Refused: As `cluster_of`.
    """
    if option is None and workload.cluster is not None and workload.cluster.hosts:
        return workload.cluster
    return cluster_of(option, workload.header)


def cluster_of(option: str | None, header: Header) -> ClusterSpec:
    """
    Return the cluster that a simulation runs on.

    Args:
        option: What the user gave as --cluster: a size such as 1024x8, or a file; None for neither.
        header: The workload's header, which is used when the option isn't given.

    Raises:
        NotFound: There is no such file, and it is no size.
        Refused: The option is malformed, the file is, or nothing says what the cluster is.
    """
    if option is None:
        return cluster_from_header(header)
    size = _size.fullmatch(option)
    if size:
        return cluster_of_size(int(size[1]), int(size[2]))
    if not Path(option).exists():
        rule = "must be a size such as 1024x8, or a file that is there"
        raise NotFound(OPTION, rule, option, HOW)
    return read_cluster_file(Path(option))


def cluster_from_header(header: Header) -> ClusterSpec:
    """
    Return MaxNodes hosts with MaxProcs slots in all; the remainder one each from the first.

    The format defines the two as equal where only one is given.

    Raises:
        Refused: The header says neither, or what it says can't be a cluster.
    """
    nodes, processors = header_number(header, "MaxNodes"), header_number(header, "MaxProcs")
    if nodes is None and processors is None:
        rule = "is needed: the workload doesn't say what its cluster is"
        if header.entries:
            rule = "is needed: the workload's header has neither MaxNodes nor MaxProcs"
        raise Refused(OPTION, rule, hint=HOW)
    hosts = nodes if nodes is not None else processors
    slots = processors if processors is not None else nodes
    assert hosts is not None
    assert slots is not None
    check_count("MaxNodes", hosts, HOSTS_MAX)
    check_count("MaxProcs", slots, HOSTS_MAX * SLOTS_MAX)
    if slots < hosts:
        raise Refused("MaxProcs", f"must be at least MaxNodes ({hosts})", slots, HOW)
    share, rest = divmod(slots, hosts)
    return _numbered(tuple(share + (index < rest) for index in range(hosts)))


def cluster_of_size(hosts: int, slots: int) -> ClusterSpec:
    """
    Return a cluster of equal hosts.

    Raises:
        Refused: A number is 0 or too large.
    """
    check_count(f"{OPTION} hosts", hosts, HOSTS_MAX)
    check_count(f"{OPTION} slots", slots, SLOTS_MAX)
    return _numbered((slots,) * hosts)


def _numbered(slots_of_hosts: tuple[int, ...]) -> ClusterSpec:
    width = max(4, len(str(len(slots_of_hosts))))
    return ClusterSpec(
        tuple(
            HostSpec(f"host{number:0{width}}", slots)
            for number, slots in enumerate(slots_of_hosts, 1)
        )
    )


# ------------------------------------------------------------------------------------------ files


class HostGroup(Value):
    """
    Describe the hosts of a cluster file that are alike.

    Args:
        name: A host's name, or names with one range in brackets: thin[001-144].
        slots: How many tasks each can hold.
        mem_kib: The memory of each.
        attributes: What a select expression can name, with its value.
        resources: How much of other resources each has, in whole units.
    """

    name: Annotated[str, Field(min_length=1, max_length=200)]
    slots: Annotated[int, Field(ge=1, le=SLOTS_MAX)]
    mem_kib: Annotated[int, Field(ge=1, le=2**50)] | None = None
    attributes: dict[str, str] = Field(default_factory=dict)
    resources: dict[str, Annotated[int, Field(ge=0, le=2**40)]] = Field(default_factory=dict)


class ClusterFile(Value):
    """
    Describe a cluster file: groups of hosts, in host order.
    """

    hosts: Annotated[tuple[HostGroup, ...], Field(min_length=1)]


def read_cluster_file(path: Path) -> ClusterSpec:
    """
    Read a cluster file of any kind that this module names; told apart by content.

    Raises:
        Refused: The file can't be read, or a field of it breaks a rule.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Refused(OPTION, "must be a text file", str(path), HOW) from error
    except OSError as error:
        raise unreadable(OPTION, path, error, HOW) from error
    cluster = _cluster_of_text(text)
    if not cluster.hosts:
        raise Refused(OPTION, "has no hosts", str(path), HOW)
    check_hosts(cluster.hosts)
    return cluster


def _cluster_of_text(text: str) -> ClusterSpec:
    if text.lstrip().startswith("{"):
        return ClusterSpec(tuple(_json_hosts(text)))
    if is_openb_nodes(text):
        return ClusterSpec(tuple(openb_hosts(text)))
    if is_slurm_conf(text):
        return slurm_cluster(text)
    return ClusterSpec(tuple(_machines_table(text)))


def _json_hosts(text: str) -> Iterator[HostSpec]:
    try:
        content = ClusterFile.model_validate_json(text)
    except ValidationError as error:
        told = refused_of(error, ClusterFile, where=OPTION)
        raise Refused(told.field, told.rule, told.value, HOW) from None
    for group in content.hosts:
        attributes = tuple(sorted(group.attributes.items()))
        resources = tuple(
            ResourceSpec(name, count * 1000) for name, count in sorted(group.resources.items())
        )
        for name in _names(group.name):
            yield HostSpec(name, group.slots, group.mem_kib, attributes, resources)


def _names(pattern: str) -> Iterator[str]:
    """
    Yield the host names of a pattern, numbers as wide as the range's first.
    """
    if "[" not in pattern and "]" not in pattern:
        yield pattern
        return
    match = _range.fullmatch(pattern)
    if match is None or int(match[2]) > int(match[3]):
        raise Refused(f"{OPTION} name", "must have one rising range in brackets", pattern)
    first, last, width = int(match[2]), int(match[3]), len(match[2])
    check_count(f"{OPTION} {pattern}", last - first + 1, HOSTS_MAX)
    for number in range(first, last + 1):
        yield f"{match[1]}{number:0{width}}{match[4]}"


def _machines_table(text: str) -> Iterator[HostSpec]:
    """
    Yield the hosts of a table: id, name, nodes, processors per node, speed, KiB per node.

    A seventh column, which some files have, describes no host and isn't used.
    """
    for number, line in enumerate(text.splitlines(), 1):
        parts = line.split()
        if not parts:
            continue
        if len(parts) not in (6, 7):
            rule = f"line {number} must have 6 or 7 columns, or the file be JSON"
            raise Refused(OPTION, rule, line[:80], HOW)
        nodes, slots, speed, mem_kib = (_table_number(number, part) for part in parts[2:6])
        if speed != 1:
            rule = "must be 1: other speeds aren't modelled"
            raise Refused(f"{OPTION} line {number} speed", rule, speed)
        check_count(f"{OPTION} line {number} nodes", nodes, HOSTS_MAX)
        check_count(f"{OPTION} line {number} processors", slots, SLOTS_MAX)
        for index in range(1, nodes + 1):
            yield HostSpec(f"{parts[1]}{index:0{len(str(nodes))}}", slots, mem_kib)


def _table_number(line_number: int, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise Refused(f"{OPTION} line {line_number}", "must hold whole numbers from column 3", text)
    return int(text)

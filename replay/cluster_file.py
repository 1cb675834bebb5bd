"""
Model the cluster that a workload is simulated on.

It comes from the workload's own header, from a size such as `1024x8`, or from a file. A file is
JSON (or a table of the kind that some traces bring along, see `_machines_table`):

    {"hosts": [
        {"name": "thin[001-144]", "slots": 8, "mem_kib": 4194304,
         "attributes": {"type": "X86_64"}},
        {"name": "fat", "slots": 64, "mem_kib": 1073741824}
    ]}

One range in brackets names several hosts alike, its width is kept (`thin001`). Hosts stand in host
order. Memory is given for all hosts or for none; without it the memory that jobs ask for doesn't
count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, final

from pydantic import Field, ValidationError

from domain.errors import Refused
from domain.event import Value
from domain.ids import check_name
from replay.workloads.source import Header
from replay.workloads.swf import header_number

HOSTS_MAX = 1_000_000
SLOTS_MAX = 1_000_000
OPTION = "--cluster"
_HOW = f"Give {OPTION} HOSTSxSLOTS (for example 1024x8) or {OPTION} FILE."

_size = re.compile(r"([0-9]+)x([0-9]+)")
_range = re.compile(r"([^\[\]]*)\[([0-9]{1,9})-([0-9]{1,9})\]([^\[\]]*)")


@final
@dataclass(frozen=True, slots=True)
class HostSpec:
    """
    Hold one host of a modelled cluster; its memory is None where the cluster doesn't give it.
    """

    name: str
    slots: int
    mem_kib: int | None = None
    attributes: tuple[tuple[str, str], ...] = ()


@final
@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """
    Hold a modelled cluster: its hosts in host order, each name once.
    """

    hosts: tuple[HostSpec, ...]

    @property
    def slots(self) -> int:
        """
        Return the slots of all hosts together.
        """
        return sum(host.slots for host in self.hosts)

    @property
    def has_memory(self) -> bool:
        """
        Tell whether the hosts' memory is given, so that the memory of jobs counts.
        """
        return all(host.mem_kib is not None for host in self.hosts)


def cluster_of(option: str | None, header: Header) -> ClusterSpec:
    """
    Return the cluster that a simulation runs on.

    Args:
        option: What the user gave as --cluster: a size such as 1024x8, or a file; None for neither.
        header: The workload's header, which is used when the option isn't given.

    Raises:
        Refused: The option is malformed, the file is, or nothing says what the cluster is.
    """
    if option is None:
        return cluster_from_header(header)
    size = _size.fullmatch(option)
    if size:
        return cluster_of_size(int(size[1]), int(size[2]))
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
        rule = "is needed: the workload's header has neither MaxNodes nor MaxProcs"
        raise Refused(OPTION, rule, hint=_HOW)
    hosts = nodes if nodes is not None else processors
    slots = processors if processors is not None else nodes
    assert hosts is not None
    assert slots is not None
    _check_count("MaxNodes", hosts, HOSTS_MAX)
    _check_count("MaxProcs", slots, HOSTS_MAX * SLOTS_MAX)
    if slots < hosts:
        raise Refused("MaxProcs", f"must be at least MaxNodes ({hosts})", slots, _HOW)
    share, rest = divmod(slots, hosts)
    return _numbered(tuple(share + (index < rest) for index in range(hosts)))


def cluster_of_size(hosts: int, slots: int) -> ClusterSpec:
    """
    Return a cluster of equal hosts.

    Raises:
        Refused: A number is 0 or too large.
    """
    _check_count(f"{OPTION} hosts", hosts, HOSTS_MAX)
    _check_count(f"{OPTION} slots", slots, SLOTS_MAX)
    return _numbered((slots,) * hosts)


def _numbered(slots_of_hosts: tuple[int, ...]) -> ClusterSpec:
    width = max(4, len(str(len(slots_of_hosts))))
    return ClusterSpec(
        tuple(
            HostSpec(f"host{number:0{width}}", slots)
            for number, slots in enumerate(slots_of_hosts, 1)
        )
    )


def _check_count(field: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise Refused(field, f"must be from 1 to {most}", value, _HOW)


# ------------------------------------------------------------------------------------------ files


class HostGroup(Value):
    """
    Describe the hosts of a cluster file that are alike.

    Args:
        name: A host's name, or names with one range in brackets: thin[001-144].
        slots: How many tasks each can hold.
        mem_kib: The memory of each.
        attributes: What a select expression can name, with its value.
    """

    name: Annotated[str, Field(min_length=1, max_length=200)]
    slots: Annotated[int, Field(ge=1, le=SLOTS_MAX)]
    mem_kib: Annotated[int, Field(ge=1, le=2**50)] | None = None
    attributes: dict[str, str] = Field(default_factory=dict)


class ClusterFile(Value):
    """
    Describe a cluster file: groups of hosts, in host order.
    """

    hosts: Annotated[tuple[HostGroup, ...], Field(min_length=1)]


def read_cluster_file(path: Path) -> ClusterSpec:
    """
    Read a cluster file: JSON, or a machines table of a trace; told apart by content.

    Raises:
        Refused: The file can't be read, or a field of it breaks a rule.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Refused(OPTION, "must be a text file", str(path), _HOW) from error
    except OSError as error:
        rule = f"can't be read: {error.strerror}"
        raise Refused(OPTION, rule, str(path), _HOW) from error
    is_json = text.lstrip().startswith("{")
    hosts = tuple(_json_hosts(text) if is_json else _machines_table(text))
    if not hosts:
        raise Refused(OPTION, "has no hosts", str(path), _HOW)
    _check_hosts(hosts)
    return ClusterSpec(hosts)


def _json_hosts(text: str) -> Iterator[HostSpec]:
    try:
        content = ClusterFile.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise Refused(f"{OPTION} {where}".strip(), f"{first['msg']}", hint=_HOW) from error
    for group in content.hosts:
        attributes = tuple(sorted(group.attributes.items()))
        for name in _names(group.name):
            yield HostSpec(name, group.slots, group.mem_kib, attributes)


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
    _check_count(f"{OPTION} {pattern}", last - first + 1, HOSTS_MAX)
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
            raise Refused(OPTION, rule, line[:80], _HOW)
        nodes, slots, speed, mem_kib = (_table_number(number, part) for part in parts[2:6])
        if speed != 1:
            rule = "must be 1: other speeds aren't modelled"
            raise Refused(f"{OPTION} line {number} speed", rule, speed)
        _check_count(f"{OPTION} line {number} nodes", nodes, HOSTS_MAX)
        _check_count(f"{OPTION} line {number} processors", slots, SLOTS_MAX)
        for index in range(1, nodes + 1):
            yield HostSpec(f"{parts[1]}{index:0{len(str(nodes))}}", slots, mem_kib)


def _table_number(line_number: int, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise Refused(f"{OPTION} line {line_number}", "must hold whole numbers from column 3", text)
    return int(text)


def _check_hosts(hosts: tuple[HostSpec, ...]) -> None:
    """
    Refuse names that can't be identifiers or come twice, and memory given for some hosts only.
    """
    seen: set[str] = set()
    for host in hosts:
        check_name(f"{OPTION} name", host.name)
        if host.name in seen:
            raise Refused(f"{OPTION} name", "must be of one host only", host.name)
        seen.add(host.name)
    if len({host.mem_kib is None for host in hosts}) > 1:
        raise Refused(f"{OPTION} mem_kib", "must be given for all hosts or for none")

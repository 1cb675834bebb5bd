"""
Read the nodes and partitions of a slurm.conf as a modelled cluster.

`NodeName=DEFAULT` lines accumulate: a later one overrides only the keys that it names. A slot is a
CPU. Features become attributes (`CPU-Gold-6130` is `CPU_Gold_6130`), so does each partition of a
node (`partition_debug`). Nodes of lower Weight come first in host order, as Slurm takes them first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from domain.errors import Refused
from replay.cluster_spec import (
    HOSTS_MAX,
    HOW,
    OPTION,
    SLOTS_MAX,
    ClusterSpec,
    HostSpec,
    PartitionSpec,
    ResourceSpec,
    check_count,
)
from replay.workloads.details import GPU, attribute_word
from replay.workloads.slurm_text import host_names

Settings = dict[str, str]

DEFAULT: Final = "DEFAULT"
NODE, PARTITION = "nodename", "partitionname"
# Older and shorter names of the same keys.
OTHER_NAMES: Final = {"procs": "cpus", "features": "feature", "socketsperboard": "sockets"}
# A node in one of these states takes no jobs.
NOT_THERE: Final = frozenset({"DOWN", "DRAIN", "FAIL", "FUTURE", "FAILING"})
KIB_PER_MIB: Final = 1024
WEIGHT_DEFAULT: Final = 1

_line = re.compile(r"^\s*(NodeName|PartitionName)\s*=", re.IGNORECASE | re.MULTILINE)
_pair = re.compile(r'([A-Za-z]+)=("[^"]*"|\S*)')


def is_slurm_conf(text: str) -> bool:
    """
    Tell whether a text defines nodes as slurm.conf does.
    """
    match = _line.search(text)
    return match is not None and re.search(r"(?im)^\s*NodeName\s*=", text) is not None


def slurm_cluster(text: str) -> ClusterSpec:
    """
    Return the cluster that a slurm.conf describes.

    Raises:
        Refused: A line of it can't be understood; the line is named.
    """
    lines = list(_settings_of_lines(text))
    with_memory = _counts_memory(lines)
    nodes = list(_nodes(lines))
    parts = list(_partitions(lines, {name for name, _, _ in nodes}))
    hosts = []
    for name, number, settings in sorted(nodes, key=lambda node: _weight(node[1], node[2])):
        if settings.get("state", "").upper() in NOT_THERE:
            continue
        own = tuple(part.attribute for part, names in parts if name in names)
        hosts.append(_host(name, number, settings, own, with_memory=with_memory))
    return ClusterSpec(tuple(hosts), tuple(part for part, _ in parts))


def _settings_of_lines(text: str) -> Iterator[tuple[int, Settings]]:
    """
    Yield line number and settings of each line, keys in lower case; a final backslash continues.
    """
    held, first_number = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        body = re.sub(r"(?<!\\)#.*", "", line).rstrip()
        first_number = first_number if held else number
        if body.endswith("\\"):
            held += body[:-1] + " "
            continue
        whole, held = (held + body).strip(), ""
        if whole.lower().startswith("include "):
            rule = f"line {first_number} includes another file, which isn't read"
            raise Refused(OPTION, rule, whole[:80], "Put the nodes into this file.")
        settings = {match[1].lower(): match[2].strip('"') for match in _pair.finditer(whole)}
        yield first_number, {OTHER_NAMES.get(key, key): text for key, text in settings.items()}


def _counts_memory(lines: list[tuple[int, Settings]]) -> bool:
    """
    Tell whether memory is handed out: unless the parameters of selection leave it out.
    """
    given = [settings["selecttypeparameters"] for _, settings in lines
             if "selecttypeparameters" in settings]  # fmt: skip
    return "memory" in given[-1].lower() if given else True


def _nodes(lines: list[tuple[int, Settings]]) -> Iterator[tuple[str, int, Settings]]:
    """
    Yield each node's name with its line and settings, defaults filled in.
    """
    defaults: Settings = {}
    for number, settings in lines:
        pattern = settings.get(NODE)
        if pattern is None:
            continue
        if pattern.upper() == DEFAULT:
            defaults = {**defaults, **settings}
            continue
        for name in _names(pattern, number):
            yield name, number, {**defaults, **settings}


def _names(pattern: str, number: int) -> Iterator[str]:
    try:
        yield from host_names(pattern)
    except ValueError as error:
        raise Refused(f"{OPTION} line {number}", str(error), hint=HOW) from None


def _partitions(
    lines: list[tuple[int, Settings]], known: set[str]
) -> Iterator[tuple[PartitionSpec, frozenset[str]]]:
    """
    Yield each partition with the names of its nodes.

    Raises:
        Refused: It names a node that isn't defined.
    """
    defaults: Settings = {}
    for number, settings in lines:
        name = settings.get(PARTITION)
        if name is None:
            continue
        if name.upper() == DEFAULT:
            defaults = {**defaults, **settings}
            continue
        full = {**defaults, **settings}
        pattern = full.get("nodes", "")
        names = known if pattern.upper() == "ALL" else set(_names(pattern, number))
        unknown = sorted(names - known - {""})
        if unknown:
            raise Refused(f"{OPTION} line {number} Nodes", "must be defined nodes", unknown[0])
        memory = _whole(full, "defmempercpu", number)
        yield PartitionSpec(
            name=name,
            attribute=partition_attribute(name),
            is_default=full.get("default", "").upper() == "YES",
            task_kib=memory * KIB_PER_MIB if memory else None,
        ), frozenset(names)


def partition_attribute(name: str) -> str:
    """
    Return the attribute of the hosts of a partition.
    """
    return attribute_word(f"partition_{name}")


def _whole(settings: Settings, key: str, number: int) -> int | None:
    text = settings.get(key)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,12}", text):
        raise Refused(f"{OPTION} line {number} {key}", "must be a whole number", text)
    return int(text)


def _weight(number: int, settings: Settings) -> int:
    weight = _whole(settings, "weight", number)
    return WEIGHT_DEFAULT if weight is None else weight


def _host(
    name: str, number: int, settings: Settings, partitions: Iterable[str], *, with_memory: bool
) -> HostSpec:
    memory = _whole(settings, "realmemory", number) if with_memory else None
    gpus, model = _gpus(settings.get("gres", ""), number)
    features = [word for word in settings.get("feature", "").split(",") if word]
    attributes = {attribute_word(word): "true" for word in (*features, *partitions)}
    if model:
        attributes["gpu_model"] = model
    resource = ResourceSpec(GPU, gpus * 1000, model, has_units=True)
    return HostSpec(
        name,
        _cpus(settings, number),
        None if memory is None else memory * KIB_PER_MIB,
        tuple(sorted(attributes.items())),
        (resource,) if gpus else (),
    )


def _cpus(settings: Settings, number: int) -> int:
    """
    Return the CPUs of a node: given, or its boards, sockets, cores and threads.
    """
    cpus = _whole(settings, "cpus", number)
    if cpus is None:
        cpus = 1
        for key in ("boards", "sockets", "corespersocket", "threadspercore"):
            count = _whole(settings, key, number)
            cpus *= 1 if count is None else count
    check_count(f"{OPTION} line {number} CPUs", cpus, SLOTS_MAX)
    return cpus


def _gpus(gres: str, number: int) -> tuple[int, str]:
    """
    Return how many GPUs a node has, and their model.
    """
    total, model = 0, ""
    for part in gres.split(",") if gres else ():
        words = re.sub(r"\(.*\)", "", part).split(":")
        if words[0].lower() != GPU:
            continue
        count = words[-1] if len(words) > 1 and words[-1].isdecimal() else "1"
        total += int(count)
        kinds = [word for word in words[1:] if not word.isdecimal() and word != "no_consume"]
        model = model or (kinds[0] if kinds else "")
    if total:
        check_count(f"{OPTION} line {number} Gres", total, HOSTS_MAX)
    return total, model

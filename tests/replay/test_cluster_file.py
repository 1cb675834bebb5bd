"""
The modelled cluster: from a header, from a size, from files; and what is refused.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from domain.errors import Refused
from replay.cluster_file import ClusterSpec, HostSpec, cluster_of, read_cluster_file
from replay.workloads.source import Header


def header(**keys: object) -> Header:
    """
    Return a header with these keys.
    """
    return Header(tuple((key, str(value)) for key, value in keys.items()))


def slots_of(cluster: ClusterSpec) -> list[int]:
    """
    Return the slots in host order.
    """
    return [host.slots for host in cluster.hosts]


def test_the_remainder_of_the_slots_goes_one_each_from_the_first_host() -> None:
    """
    MaxProcs counts all slots, and no slot may be lost to rounding.
    """
    cluster = cluster_of(None, header(MaxNodes=3, MaxProcs=8))

    assert slots_of(cluster) == [3, 3, 2]
    assert [host.name for host in cluster.hosts] == ["host0001", "host0002", "host0003"]
    assert (8, False) == (cluster.slots, cluster.has_memory)


@pytest.mark.parametrize("key", ["MaxNodes", "MaxProcs"])
def test_one_of_the_two_alone_means_hosts_of_one_slot(key: str) -> None:
    """
    The format lets a header leave one out where both are equal.
    """
    assert slots_of(cluster_of(None, header(**{key: 4}))) == [1, 1, 1, 1]


def test_without_a_header_the_option_is_named() -> None:
    """
    A guess would give figures of a machine that never was.
    """
    with pytest.raises(Refused) as caught:
        cluster_of(None, Header())

    assert caught.value.field == "--cluster"
    assert "--cluster" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("keys", "field"),
    [
        ({"MaxNodes": 5, "MaxProcs": 4}, "MaxProcs"),
        ({"MaxNodes": 0, "MaxProcs": 4}, "MaxNodes"),
        ({"MaxNodes": "many", "MaxProcs": 4}, "MaxNodes"),
        ({"MaxNodes": -1}, "MaxNodes"),
    ],
)
def test_a_header_that_is_no_cluster_is_refused(keys: dict[str, object], field: str) -> None:
    """
    Each refusal names the key that is wrong.
    """
    with pytest.raises(Refused) as caught:
        cluster_of(None, header(**keys))

    assert field == caught.value.field


def test_a_size_wins_over_the_header() -> None:
    """
    How slots are spread over hosts is the user's to try out.
    """
    cluster = cluster_of("2x8", header(MaxNodes=100, MaxProcs=100))

    assert slots_of(cluster) == [8, 8]


@pytest.mark.parametrize("size", ["0x8", "8x0", "9999999x1"])
def test_an_impossible_size_is_refused(size: str) -> None:
    """
    No hosts, no slots, or more than memory holds.
    """
    with pytest.raises(Refused):
        cluster_of(size, Header())


def written(folder: Path, content: object) -> Path:
    """
    Return a file with the content as JSON, or as it is when it is text.
    """
    path = folder / "cluster"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_file_names_groups_of_hosts_in_host_order(tmp_path: Path) -> None:
    """
    Host order decides placements, so it is the file's order.
    """
    thin = {"name": "thin[08-10]", "slots": 8, "mem_kib": 4096, "attributes": {"b": "2", "a": "1"}}
    fat = {"name": "fat", "slots": 64, "mem_kib": 8192}

    cluster = cluster_of(str(written(tmp_path, {"hosts": [thin, fat]})), Header())

    attributes = (("a", "1"), ("b", "2"))
    assert cluster.hosts == (
        HostSpec("thin08", 8, 4096, attributes),
        HostSpec("thin09", 8, 4096, attributes),
        HostSpec("thin10", 8, 4096, attributes),
        HostSpec("fat", 64, 8192),
    )
    assert cluster.has_memory


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({"hosts": []}, "--cluster hosts"),
        ({"hosts": [{"name": "a", "slots": 0}]}, "--cluster hosts.0.slots"),
        ({"hosts": [{"name": "a", "slots": 1.0}]}, "--cluster hosts.0.slots"),
        ({"hosts": [{"name": "a", "slots": "8"}]}, "--cluster hosts.0.slots"),
        ({"hosts": [{"name": "a"}]}, "--cluster hosts.0.slots"),
        ({"hosts": [{"name": "a", "slots": 1}], "queues": []}, "--cluster queues"),
        ({"hosts": [{"name": "a b", "slots": 1}]}, "--cluster name"),
        ({"hosts": [{"name": "a[3-1]", "slots": 1}]}, "--cluster name"),
        ({"hosts": [{"name": "a[1-2", "slots": 1}]}, "--cluster name"),
        ({"hosts": [{"name": "a[1-999999999]", "slots": 1}]}, "--cluster a[1-999999999]"),
        ({"hosts": [{"name": "a", "slots": 1}, {"name": "a", "slots": 1}]}, "--cluster name"),
        (
            {"hosts": [{"name": "a", "slots": 1}, {"name": "b", "slots": 1, "mem_kib": 1}]},
            "--cluster mem_kib",
        ),
        ("{", "--cluster"),
        ("", "--cluster"),
        ("1 2 3", "--cluster"),
        ("0 c 2 8 2 4096", "--cluster line 1 speed"),
        ("0 c two 8 1 4096", "--cluster line 1"),
        ("0 c 0 8 1 4096", "--cluster line 1 nodes"),
    ],
)
def test_a_bad_file_is_refused_by_field(tmp_path: Path, content: object, field: str) -> None:
    """
    A field that isn't known is refused too: ignoring it would model another cluster.
    """
    with pytest.raises(Refused) as caught:
        read_cluster_file(written(tmp_path, content))

    assert field == caught.value.field
    assert "nput" not in caught.value.rule, "the checker's own words"


def test_a_missing_file_is_refused_by_path(tmp_path: Path) -> None:
    """
    A size with a slip in it (`8by8`) ends here too, so the hint shows both forms.
    """
    with pytest.raises(Refused) as caught:
        cluster_of(str(tmp_path / "8by8"), Header())

    assert "1024x8" in str(caught.value.hint)


def test_a_file_of_bytes_is_refused(tmp_path: Path) -> None:
    """
    A packed trace given by mistake is told from a cluster.
    """
    path = tmp_path / "bytes"
    path.write_bytes(b"\x1f\x8b\x08\xff")

    with pytest.raises(Refused):
        read_cluster_file(path)


def test_a_machines_table_gives_hosts_with_memory(tmp_path: Path) -> None:
    """
    Some traces bring their machine along in this form, with or without a seventh column.
    """
    table = "0\tzew\t2\t80\t1\t529426432\n1\tzeg\t1\t12\t1\t94035968\t30\n\n"

    cluster = read_cluster_file(written(tmp_path, table))

    assert cluster.hosts == (
        HostSpec("zew1", 80, 529426432),
        HostSpec("zew2", 80, 529426432),
        HostSpec("zeg1", 12, 94035968),
    )


@pytest.mark.needs_traces
@pytest.mark.parametrize(
    ("name", "hosts", "slots"),
    [
        ("pwa-swf/ricc.swf.machines", 1024, 8192),
        ("alea/wagap-2013.swf.machines", 68, 2176),
        ("alea/jaros1.swf.machines", 16, 256),
    ],
)
def test_the_machines_of_real_traces_are_read(
    trace_folder: Path, name: str, hosts: int, slots: int
) -> None:
    """
    The sizes are those that the publishers state.
    """
    cluster = read_cluster_file(trace_folder / name)

    assert (hosts, slots, True) == (len(cluster.hosts), cluster.slots, cluster.has_memory)

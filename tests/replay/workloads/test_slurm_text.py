"""
What Slurm writes: durations, limits, time stamps, memory, lists, constraints, GPUs.
"""

from __future__ import annotations

import pytest

from replay.workloads.details import UNKNOWN
from replay.workloads.gathering import BadLineError
from replay.workloads.slurm_text import (
    elapsed_s,
    gpus_of,
    host_names,
    index_numbers,
    limit_s,
    memory_kib,
    select_of,
    stamp_s,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10-13:27:06", 912_426), ("00:05:16", 316), ("05:16", 316), ("01:07.402", 67),
        ("7", 7), ("Partition_Limit", UNKNOWN), ("", UNKNOWN), ("UNLIMITED", UNKNOWN),
    ],
)  # fmt: skip
def test_elapsed_times_are_read_from_the_right(text: str, seconds: int) -> None:
    """
    What sacct prints always ends in seconds.
    """
    assert seconds == elapsed_s(text, "Elapsed")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5_400), ("1:30", 90), ("01:00:00", 3_600), ("2-12", 216_000), ("2-0:30", 174_600),
        ("3-00:00:00", 259_200), ("UNLIMITED", UNKNOWN),
    ],
)  # fmt: skip
def test_time_limits_are_read_as_sbatch_does(text: str, seconds: int) -> None:
    """
    One number alone is minutes, one behind days is hours.
    """
    assert seconds == limit_s(text, "--time")


@pytest.mark.parametrize(
    ("text", "kib", "per"),
    [
        ("100Mc", 102_400, "c"), ("8Gn", 8_388_608, "n"), ("500000", 512_000_000, ""),
        ("2.5G", 2_621_440, ""), ("7K", 7, ""), ("0n", UNKNOWN, "n"), ("", UNKNOWN, ""),
        # 2 to the power of 31 is the flag for "per CPU": 3000 MiB for each.
        ("2147486648Mn", 3_072_000, "c"),
    ],
)  # fmt: skip
def test_memory_is_read_with_what_it_is_per(text: str, kib: int, per: str) -> None:
    """
    Most rows of a real file carry the flag inside the number.
    """
    assert (kib, per) == memory_kib(text, "ReqMem")


def test_a_stamp_is_utc_and_words_for_unknown_are_unknown() -> None:
    """
    Rows carry no time zone.
    """
    assert 1_482_390_912 == stamp_s("2016-12-22T07:15:12", "Submit")
    assert UNKNOWN == stamp_s("Unknown", "Start") == stamp_s("None", "Start")


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (stamp_s, "2016-12-22"), (stamp_s, "2016-13-22T07:15:12"), (elapsed_s, "soon"),
        (limit_s, "1:2:3:4"), (limit_s, "x-1"), (memory_kib, "3Q"), (memory_kib, "-1"),
        (index_numbers, "1-"), (index_numbers, "1-9999999"),
    ],
)  # fmt: skip
def test_a_bad_value_names_its_field(read: object, text: str) -> None:
    """
    The line is counted under this rule.
    """
    assert callable(read)
    with pytest.raises(BadLineError, match="Field"):
        read(text, "Field")


def test_lists_of_indices_keep_their_order_and_know_steps() -> None:
    """
    Overlaps count once, and how many may run at a time is no index.
    """
    assert [9, 10, 11, 13] == index_numbers("9-11,13,10", "JobID")
    assert [1, 4, 7] == index_numbers("1-8:3%2", "JobID")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("cpn-f11-31", ["cpn-f11-31"]),
        ("a[01-02,07],b", ["a01", "a02", "a07", "b"]),
        ("r[1-2]n[3-4]", ["r1n3", "r1n4", "r2n3", "r2n4"]),
        ("d13n[03,05,07-08,16]", ["d13n03", "d13n05", "d13n07", "d13n08", "d13n16"]),
    ],
)
def test_host_lists_are_expanded_over_commas_and_brackets(text: str, names: list[str]) -> None:
    """
    A comma inside brackets separates numbers, outside it separates hosts.
    """
    assert names == list(host_names(text))


@pytest.mark.parametrize("text", ["a[1-2", "a[3-1]", "a]1[", "a[x]", "a[[1]]"])
def test_a_malformed_host_list_is_refused(text: str) -> None:
    """
    Half a list would be half a machine.
    """
    with pytest.raises(ValueError, match="bracket"):
        list(host_names(text))


def test_constraints_become_what_each_host_must_have() -> None:
    """
    `&` joins conditions, `|` alternatives; what counts hosts can't be said of each.
    """
    assert ((("CPU_N", "true"),), (("a", "true"), ("b", "true"))) == select_of("CPU-N&[a|b]")
    assert () == select_of("")
    assert select_of("rack1*2&rack2*4") is None
    assert select_of("(a&b)|c") is None


@pytest.mark.parametrize(
    ("text", "count"),
    [("gpu:2", 2), ("gpu", 1), ("gpu:v100:3", 3), ("fast:1,gpu:tesla:2(S:0)", 2), ("fast:9", 0),
     ("billing=64,cpu=64,gres/gpu=2,mem=31000M", 2), ("", 0)],
)  # fmt: skip
def test_gpus_are_counted_in_requests_and_in_what_was_given(text: str, count: int) -> None:
    """
    Sbatch writes gpu:2, accounting gres/gpu=2.
    """
    assert count == gpus_of(text)

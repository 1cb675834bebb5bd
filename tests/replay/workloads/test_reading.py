"""
Which format a file is, told by its content; and the counts of every recorded file.
"""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from domain.errors import Refused
from replay.workloads.reading import FORMATS, format_of, read_workload

pytestmark = pytest.mark.needs_traces

# File, format, jobs that stay, jobs left out for their run time, malformed lines. Counted by awk
# and one-off scripts over the same files (SHA256SUMS beside them says which).
FILES = [
    ("alea/wagap-2013.swf.gz", "extended SWF (Alea)", 17_898, 2, 0),
    ("alea/jaros1.swf", "extended SWF (Alea)", 12, 0, 0),
    ("alea/jaros2.swf", "extended SWF (Alea)", 12, 0, 0),
    ("lublin-model/lublin_256.swf", "SWF", 10_000, 0, 0),
    ("alibaba-openb/openb_pod_list_default.csv", "openb pods", 7_255, 897, 0),
    ("alibaba-openb/openb_pod_list_gpuspec33.csv", "openb pods", 7_255, 897, 0),
    ("alibaba-openb/openb_pod_list_cpu050.csv", "openb pods", 6_561, 878, 0),
    ("alibaba-openb/openb_pod_list_multigpu20.csv", "openb pods", 0, 8_324, 0),
    ("ub-hpc-slurm/workload_week.events.gz", "events of a Slurm simulator", 19_579, 0, 0),
    ("ub-hpc-slurm/micro/jobs500.events", "events of a Slurm simulator", 500, 0, 0),
    ("ub-hpc-slurm/sacct/sacct_simple.log", "Slurm sacct --parsable", 4, 0, 0),
    ("ub-hpc-slurm/sacct/sacct_dump2101.log", "Slurm sacct --parsable", 6, 6, 1),
    ("xdmod/phillips.log", "Slurm sacct --parsable", 4_046, 239, 0),
    # Five rows stand for 3, 2, 4, 4 and 9 elements, a sixth for one.
    ("xdmod/slurm-accounting-logs-with-job-arrays.log", "Slurm sacct --parsable", 23, 0, 0),
    ("xdmod/pbs-accounting-logs.log", "PBS accounting", 9, 0, 0),
    ("xdmod/lsf-utf8-multibyte-chars.log", "LSF lsb.acct", 1, 0, 0),
    ("kabre-slurm/sacct.csv.gz", "Slurm sacct --parsable", 30_376, 0, 0),
    ("aws-slurm/sacct-output-v2.txt", "Slurm sacct --parsable", 483, 0, 0),
    ("aws-slurm/sacct-multi-node.txt", "Slurm sacct --parsable", 1, 0, 0),
    ("aws-slurm/sacct-issue-5.txt", "Slurm sacct --parsable", 0, 1, 0),
    ("aws-slurm/sacct-issue-17.txt", "Slurm sacct --parsable", 1, 1, 0),
    ("aws-lsf/lsb.events", "LSF lsb.events", 87, 0, 0),
    ("aws-lsf/lsb.acct", "LSF lsb.acct", 5, 0, 0),
    ("aws-lsf/lsb.acct-missing-fields", "LSF lsb.acct", 6, 0, 0),
    ("aws-lsf/lsb.acct.hostFactor-not-a-float", "LSF lsb.acct", 10, 0, 0),
    ("aws-lsf/lsb.acct.issue-16", "LSF lsb.acct", 0, 1, 0),
    ("aws-lsf/lsb.acct.issue-18", "LSF lsb.acct", 1, 0, 0),
    ("aws-lsf/lsb.acct.issue-44", "LSF lsb.acct", 0, 1, 0),
    ("batcheuphoria/slurm-sacct.json", "Slurm sacct --json", 1, 0, 0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "known_as", "jobs", "never_ran", "malformed"), FILES, ids=str)
def test_every_recorded_file_is_recognised_and_gives_the_counts_of_an_independent_scan(
    trace_folder: Path, tmp_path: Path, name: str, known_as: str, jobs: int, never_ran: int,
    malformed: int,
) -> None:
    """
    Its name says nothing: mirrors rename files, so it is read under another one.
    """
    path = tmp_path / "renamed"
    shutil.copyfile(trace_folder / name, path)

    workload = read_workload(path)

    left_out = workload.left_out
    assert known_as == format_of(path).name
    assert (jobs, never_ran, malformed, never_ran + malformed) == (
        len(workload.jobs), left_out.run_time_negative, left_out.malformed, left_out.total,
    )  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        "README.md", "SHA256SUMS", "alea/jaros1.swf.machines", "ub-hpc-slurm/slurm.conf",
        "alibaba-openb/openb_node_list_all_node.csv", "oar/oar_out_jobs.csv",
        "openlava-conf/lsb.queues", "osc-slurm/owens_partitions.txt", "htcondor/job_evicted.log",
        "flux/resource.eventlog.thing2.first2528", "flux/dump-0-46-0-queues-named-v1.tar",
        "flux/dump-warn-shorteventlog.tar.bz2", "batcheuphoria/slurm-scontrol.txt",
        "batcheuphoria/lsf-queryExtendedJobStateByIdTest.json",
    ],
)  # fmt: skip
def test_what_is_no_workload_is_refused_naming_what_is_known(
    trace_folder: Path, name: str
) -> None:
    """
    A guess would give the figures of something else; the hint shows what would have done.
    """
    with pytest.raises(Refused) as caught:
        read_workload(trace_folder / name)

    assert ("workload", "is of no known format") == (caught.value.field, caught.value.rule)
    assert all(known.name in str(caught.value.hint) for known in FORMATS)


def test_an_empty_file_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    """
    Each says what is wrong with it.
    """
    empty = tmp_path / "empty"
    empty.write_bytes(gzip.compress(b"\n\n"))

    with pytest.raises(Refused, match="is empty"):
        read_workload(empty)
    with pytest.raises(Refused, match="must be a file that is there"):
        read_workload(tmp_path / "missing")


def test_a_file_that_is_one_endless_line_is_refused_without_reading_it_all(
    tmp_path: Path,
) -> None:
    """
    A disk image given by mistake has no line breaks.
    """
    path = tmp_path / "image"
    path.write_bytes(b"x" * (8 << 20))

    with pytest.raises(Refused, match="no known format"):
        format_of(path)

"""
Read the pod tables of Alibaba's cluster of 2023 (openb): CPU, memory and GPUs or shares of one.

A pod is a job of one task with amounts: `cpus` and `gpu` in thousandths, memory. Part of one GPU is
an amount below 1000. A pod without a scheduled time never ran. A table without times (5 columns)
needs a run time for its pods from outside; they are all submitted at second 0, in file order.
"""

from __future__ import annotations

import re
from pathlib import Path

from replay.workloads.details import CPU, GPU, MEM, UNKNOWN, Alternatives, Ask, Details, TraceNeed
from replay.workloads.gathering import (
    CANCELLED,
    COMPLETED,
    FAILED,
    BadLineError,
    FoundJob,
    Gathering,
    open_lines,
)
from replay.workloads.source import Header, Workload

SHORT_HEADER = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
LONG_HEADER = (
    *SHORT_HEADER, "gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time",
    "scheduled_time",
)  # fmt: skip
GPU_MODEL = "gpu_model"
MILLI_KIB_PER_MIB = 1024 * 1000
WHOLE_GPU = 1000
STATUS = {"Succeeded": COMPLETED, "Running": COMPLETED, "Failed": FAILED, "Pending": CANCELLED}
WITHOUT_TIMES = "pod without recorded times"


def read_openb_pods(path: Path, *, unrecorded_run_s: int | None = None) -> Workload:
    """
    Read a pod table.

    Args:
        path: The file.
        unrecorded_run_s: The run time of a pod of a table without times; without it, none runs.

    Raises:
        Refused: The file can't be read, or none of its lines is a pod.
    """
    gathering = Gathering()
    with open_lines(path) as lines:
        header = tuple(lines.readline().strip().split(","))
        for number, line in enumerate(lines, 2):
            if line.strip():
                try:
                    row = _row(line.rstrip("\r\n").split(","), header)
                    gathering.add(_job(row, number, unrecorded_run_s, gathering))
                except BadLineError as error:
                    gathering.add_malformed(number, error.rule)
    return gathering.workload(path, Header(), begins_s=0)


def _row(cells: list[str], header: tuple[str, ...]) -> dict[str, str]:
    if len(cells) != len(header):
        raise BadLineError(f"has {len(cells)} columns, not {len(header)}")
    return dict(zip(header, cells, strict=True))


def _job(
    row: dict[str, str], number: int, unrecorded_run_s: int | None, gathering: Gathering
) -> FoundJob:
    submit_s, run_s = _times(row, unrecorded_run_s, gathering)
    match = re.fullmatch(r"[\w-]*?([0-9]{1,12})", row["name"])
    return FoundJob(
        trace_id=int(match[1]) if match else number,
        submit_s=submit_s,
        run_s=run_s,
        tasks=1,
        status=STATUS.get(row.get("pod_phase", ""), UNKNOWN),
        details=Details(
            Ask(
                queue_name=row.get("qos", ""),
                hosts=1,
                needs=_needs(row),
                select=_select(row.get("gpu_spec", "")),
                constraint=row.get("gpu_spec", ""),
            ),
            trace_name=row["name"],
        ),
    )


def _whole(row: dict[str, str], name: str) -> int:
    text = row[name]
    if not re.fullmatch(r"[0-9]{1,15}(\.0*)?", text):
        raise BadLineError(f"{name} is no whole number: {text[:40]!r}")
    return int(text.partition(".")[0])


def _times(
    row: dict[str, str], unrecorded_run_s: int | None, gathering: Gathering
) -> tuple[int, int]:
    """
    Return when a pod was submitted and how long it ran; UNKNOWN when it never did.
    """
    if "creation_time" not in row:
        gathering.note(WITHOUT_TIMES)
        return 0, UNKNOWN if unrecorded_run_s is None else unrecorded_run_s
    submit_s = _whole(row, "creation_time")
    if not row["scheduled_time"]:
        gathering.note("pod that was never scheduled")
        return submit_s, UNKNOWN
    return submit_s, _whole(row, "deletion_time") - _whole(row, "scheduled_time")


def _needs(row: dict[str, str]) -> tuple[TraceNeed, ...]:
    count, share = _whole(row, "num_gpu"), _whole(row, "gpu_milli")
    if share > WHOLE_GPU or (count > 1 and share != WHOLE_GPU):
        raise BadLineError(f"gpu_milli must be {WHOLE_GPU}, or below it for one GPU: {share}")
    amounts = (
        (CPU, _whole(row, "cpu_milli")),
        (MEM, _whole(row, "memory_mib") * MILLI_KIB_PER_MIB),
        (GPU, count * share),
    )
    return tuple(TraceNeed(resource, milli) for resource, milli in amounts if milli)


def _select(text: str) -> tuple[Alternatives, ...]:
    """
    Return the models of GPU, one of which a node must have; a model named twice counts once.
    """
    if not text:
        return ()
    models = tuple(dict.fromkeys(text.split("|")))
    if not all(re.fullmatch(r"\w+", model) for model in models):
        raise BadLineError(f"gpu_spec is no list such as V100M16|V100M32: {text[:40]!r}")
    return (tuple((GPU_MODEL, model) for model in models),)

"""
The page of what was run whole names commands that can be typed as they stand there.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from replay.cluster_file import cluster_of
from replay.workloads.swf import Header
from tools.cli.simulate import simulate

ROOT = Path(__file__).resolve().parents[2]


def rows() -> list[list[str]]:
    """
    Return the rows of the page's first table: file, options, jobs, cluster and so on.
    """
    text = (ROOT / "docs" / "workloads.md").read_text(encoding="utf-8")
    lines = text.partition("| FILE |")[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def test_every_row_can_be_typed_as_a_command() -> None:
    """
    With options that the command has.
    """
    assert len(rows()) >= 10
    for file, options, *_ in rows():
        context = simulate.make_context("simulate", [file, *options.split()])
        assert Path(file) == context.params["file"]


@pytest.mark.needs_traces
def test_the_files_that_rows_name_are_there_and_are_clusters_as_large_as_said(
    trace_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    As typed in the folder of the recorded workloads.
    """
    monkeypatch.chdir(trace_folder)
    for file, options, _, said, *_ in rows():
        assert Path(file).is_file()
        option = re.search(r"--cluster (\S+)", options)
        if option is not None:
            hosts = cluster_of(option[1], Header()).hosts
            slots = sum(host.slots for host in hosts)
            assert f"{len(hosts):,} hosts, {slots:,} slots" == said, file

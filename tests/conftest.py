"""
Set up what all tests share: what they need from outside, and the account of what didn't run.

A test that needs something which isn't there is skipped and listed at the end; with CI=true that
makes the whole run fail, so that a green run always means that everything ran.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

REPO = Path(__file__).resolve().parent.parent

# No deadline: how long an example takes depends on what else the machine does, not on the code.
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "local")


def trace_folder_path() -> Path:
    """
    Return where the recorded workloads are: XCE_TRACES, or ../shared/data beside the checkout.
    """
    return Path(os.environ.get("XCE_TRACES") or REPO.parent / "shared" / "data")


def missing_need(item: pytest.Item) -> str | None:
    """
    Return what a test needs and doesn't find, or None when it can run.
    """
    if item.get_closest_marker("needs_root") and os.geteuid() != 0:
        return "needs root"
    if item.get_closest_marker("needs_traces") and not (trace_folder_path() / "pwa-swf").is_dir():
        return "needs the recorded workloads in ../shared/data (or in XCE_TRACES)"
    for marker in item.iter_markers("needs_program"):
        name = marker.args[0]
        package = marker.args[1] if len(marker.args) > 1 else name
        if shutil.which(name) is None:
            return f"needs the program {name} (Debian package {package})"
    return None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """
    Skip a test that needs what isn't there.
    """
    need = missing_need(item)
    if need is not None:
        pytest.skip(need)


@pytest.fixture(scope="session")
def trace_folder() -> Path:
    """
    Return the folder of the recorded workloads; the test is marked needs_traces.
    """
    return trace_folder_path()


def _skipped(config: pytest.Config) -> int:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return len(reporter.stats.get("skipped", [])) if reporter is not None else 0


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """
    Fail a run under CI=true that left something out.
    """
    if os.environ.get("CI") == "true" and exitstatus == 0 and _skipped(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """
    Say how many tests didn't run, and that under CI=true this is a failure.
    """
    count = len(terminalreporter.stats.get("skipped", []))
    if count:
        terminalreporter.section("not run")
        failed = " (a failure, since CI=true)" if os.environ.get("CI") == "true" else ""
        terminalreporter.line(
            f"{count} tests did not run{failed}; the summary names each and why."
        )

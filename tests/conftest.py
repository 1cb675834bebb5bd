"""
Set up what all tests share: what they need from outside, and the account of what didn't run.

A test that needs something which isn't there is skipped and listed at the end; with CI=true that
makes the whole run fail, so that a green run always means that everything ran.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, settings

from tests.examples import examples

REPO = Path(__file__).resolve().parent.parent
# Every process that a test starts inherits this, also one that has left its parent since.
RUN_MARK = "XCE_TEST_RUN"
os.environ[RUN_MARK] = str(os.getpid())
# Under nohup, or behind a shell's &, these are ignored, by all that tests start too; some of them
# are about what a signal does.
for number, handler in (
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGINT, signal.default_int_handler),
):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, handler)
# So long may a process take that a test has told to end.
ENDING_S = 5.0

# No deadline: how long an example takes depends on what else the machine does, not on the code.
settings.register_profile(
    "local",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=examples(100),
)
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "local")


_left_behind = pytest.StashKey[list[str]]()


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


def left_running() -> list[psutil.Process]:
    """
    Return the living processes that tests of this run started.
    """
    found = []
    for process in psutil.process_iter():
        try:
            is_ours = process.environ().get(RUN_MARK) == str(os.getpid())
            if is_ours and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def _end_left_running() -> list[str]:
    """
    Wait for what is ending, kill what isn't, and return what had to be killed.
    """
    deadline = time.monotonic() + ENDING_S
    while (remaining := left_running()) and time.monotonic() < deadline:
        time.sleep(0.05)
    told = []
    for process in remaining:
        try:
            told.append(f"{process.pid} {' '.join(process.cmdline())[:200]}")
            process.kill()
        except psutil.Error:
            continue
    return told


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """
    Fail a run that left processes behind, and one under CI=true that left tests out.
    """
    session.config.stash[_left_behind] = left_behind = _end_left_running()
    is_incomplete = os.environ.get("CI") == "true" and _skipped(session.config) > 0
    if exitstatus == 0 and (left_behind or is_incomplete):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """
    Say what was left running, and how many tests didn't run.
    """
    left_behind = config.stash.get(_left_behind, [])
    if left_behind:
        terminalreporter.section("left running, and killed: a failure")
        for line in left_behind:
            terminalreporter.line(line)
    count = len(terminalreporter.stats.get("skipped", []))
    if count:
        terminalreporter.section("not run")
        failed = " (a failure, since CI=true)" if os.environ.get("CI") == "true" else ""
        terminalreporter.line(f"{count} tests did not run{failed}; the summary names each and why.")

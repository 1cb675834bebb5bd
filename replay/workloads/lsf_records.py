"""
The records of LSF's event and accounting files: tokens, fields by name, status bits, wait status.

A record is a line of blank-separated fields; strings stand in double quotes, a quote inside is
doubled. A list is preceded by its length, and an empty one is nothing but the 0. Later releases
append fields, so more fields at the end are no error, and unknown types of record are the reader's
to skip.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from signal import Signals
from typing import Final

from domain.errors import Refused

Token = str | int | Decimal
"""A quoted string; a whole number; a number with decimals."""

_TOKEN: Final = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^\s"]+))(?=\s|$)')
_WHOLE: Final = re.compile(r"-?[0-9]{1,30}")
_DECIMAL: Final = re.compile(r"-?[0-9]{1,30}\.[0-9]*")

HEAD: Final = ("type", "version", "time")
"""The first fields of every record."""

FIELDS: Final[dict[str, str]] = {
    "JOB_NEW": (
        "jobId userId options numProcessors submitTime beginTime termTime sigValue chkpntPeriod"
        " restartPid userName rLimits hostSpec hostFactor umask queue resReq fromHost cwd chkpntDir"
        " inFile outFile errFile subHomeDir jobFile numAskedHosts askedHosts dependCond preExecCmd"
        " jobName command nxf xf mailUser projectName niosPort maxNumProcessors schedHostType"
        " loginShell userGroup options2 idx inFileSpool commandSpool jobSpoolDir userPriority"
    ),
    "JOB_MODIFY2": "jobIdStr options options2 delOptions userId userName submitTime",
    "JOB_FINISH": (
        "jobId userId options numProcessors submitTime beginTime termTime startTime userName queue"
        " resReq dependCond preExecCmd fromHost cwd inFile outFile errFile jobFile numAskedHosts"
        " askedHosts numExHosts execHosts jStatus hostFactor jobName command utime stime maxrss"
        " ixrss ismrss idrss isrss minflt majflt nswap inblock oublock ioch msgsnd msgrcv nsignals"
        " nvcsw nivcsw exutime mailUser projectName exitStatus maxNumProcessors loginShell"
        " timeEvent idx maxRMem maxRSwap inFileSpool commandSpool rsvId sla exceptMask"
        " additionalInfo exitInfo warningAction warningTimePeriod chargedSAAP licenseProject app"
        " postExecCmd runtimeEstimation jobGroupName requeueEvalues options2 resizeNotifyCmd"
        " lastResizeTime rsvId2 jobDescription"
    ),
    "JOB_STATUS": ("jobId jStatus reason subreasons cpuTime endTime ru lsfRusage exitStatus idx"),
    "JOB_SWITCH": "userId jobId queue idx userName",
    "JOB_MOVE": "userId jobId position base idx userName",
    "JOB_SIGNAL": "jobId userId runCount signalSymbol idx userName",
    "JOB_REQUEUE": "jobId idx",
    "JOB_CLEAN": "jobId idx",
    "JOB_START_ACCEPT": "jobId jobPid jobPGid idx",
    "JOB_EXECUTE": "jobId execUid jobPGid execCwd execHome execUsername jobPid idx",
    "JOB_SIGACT": "jobId period pid jStatus reasons flags actStatus signalSymbol idx",
    "JOB_START": (
        "jobId jStatus jobPid jobPGid hostFactor numExHosts execHosts queuePreCmd queuePostCmd"
        " jFlags userGroup idx"
    ),
    "MIG": "jobId numAskedHosts askedHosts userId idx userName",
    "QUEUE_CTRL": "opCode queue userId userName message",
    "HOST_CTRL": "opCode host userId userName message",
    "MBD_START": "master cluster numHosts numQueues",
    "MBD_DIE": "master numRemoveJobs exitCode message",
    "LOAD_INDEX": "nIdx names",
    "UNFULFILL": "jobId notSwitched sig sig1 sig1Flags chkPeriod notModified idx",
}
"""The fields after the first three, by type of record."""

LISTS: Final = {
    "askedHosts": ("numAskedHosts", 1),
    "execHosts": ("numExHosts", 1),
    "names": ("nIdx", 1),
    "xf": ("nxf", 3),
    "lsfRusage": ("ru", 19),
}
"""Lists, the field before each that holds its length, and the fields of each of its items."""

FIXED: Final = {"rLimits": 11}
"""Lists that always are so long."""

OPTIONAL: Final[dict[str, str]] = {
    "JOB_NEW": (
        "niosPort maxNumProcessors schedHostType loginShell userGroup options2 idx inFileSpool"
        " commandSpool jobSpoolDir userPriority"
    ),
    "JOB_FINISH": (
        "maxNumProcessors loginShell timeEvent idx maxRMem maxRSwap inFileSpool commandSpool rsvId"
        " sla exceptMask additionalInfo exitInfo warningAction warningTimePeriod chargedSAAP"
        " licenseProject app postExecCmd runtimeEstimation jobGroupName requeueEvalues options2"
        " resizeNotifyCmd lastResizeTime rsvId2 jobDescription"
    ),
    "QUEUE_CTRL": "message",
    "HOST_CTRL": "message",
    "MBD_DIE": "message",
}
"""Fields at the end of records that some writers leave out."""

REPLAYED: Final = frozenset(
    {"JOB_NEW", "JOB_MODIFY", "JOB_MODIFY2", "JOB_START", "JOB_EXECUTE", "JOB_STATUS",
     "JOB_SWITCH", "JOB_MOVE", "JOB_SIGNAL", "JOB_REQUEUE", "JOB_CLEAN", "QUEUE_CTRL",
     "HOST_CTRL"}
)  # fmt: skip
"""Types of record that say what a replay needs; others may be skipped with a warning."""

NUMBERS: Final = {
    "JOB_NEW": 1, "JOB_START": 2, "JOB_STATUS": 3, "JOB_SWITCH": 4, "JOB_MOVE": 5, "QUEUE_CTRL": 6,
    "HOST_CTRL": 7, "MBD_DIE": 8, "UNFULFILL": 9, "JOB_FINISH": 10, "LOAD_INDEX": 11, "CHKPNT": 12,
    "MIG": 13, "PRE_EXEC_START": 14, "MBD_START": 15, "JOB_MODIFY": 16, "JOB_SIGNAL": 17,
    "JOB_EXECUTE": 18, "JOB_REQUEUE": 21, "JOB_SIGACT": 22, "JOB_START_ACCEPT": 24,
    "JOB_CLEAN": 25, "JOB_FORCE": 26, "LOG_SWITCH": 27, "JOB_MODIFY2": 28,
}  # fmt: skip
"""The numbers of types of record in LSF's stream of events."""

MEANINGS: Final[dict[tuple[str, str], dict[int, str]]] = {
    ("QUEUE_CTRL", "opCode"): {1: "open", 2: "close", 3: "activate", 4: "inactivate"},
    ("HOST_CTRL", "opCode"): {1: "open", 2: "close", 3: "reboot", 4: "shutdown"},
    ("JOB_MOVE", "position"): {1: "top", 2: "bottom"},
}
"""What the numbers of a field mean."""

STATUS_BITS: Final = {
    1: "PEND",
    2: "PSUSP",
    4: "RUN",
    8: "SSUSP",
    16: "USUSP",
    32: "EXIT",
    64: "DONE",
    128: "POST_DONE",
    256: "POST_ERR",
    512: "WAIT",
    65536: "UNKWN",
}

Record = dict[str, "Token | tuple[Token, ...]"]


def tokens_of(line: str) -> tuple[Token, ...]:
    """
    Return the fields of a line.

    Raises:
        Refused: A string isn't closed, or something stands right behind one.
    """
    found: list[Token] = []
    position = 0
    end = len(line.rstrip())
    while position < end:
        match = _TOKEN.match(line, position, end)
        if match is None:
            raise Refused("line", f"must consist of numbers and quoted strings ({position=})", line)
        found.append(match[1].replace('""', '"') if match[2] is None else _bare(match[2]))
        position = match.end()
    return tuple(found)


def _bare(text: str) -> Token:
    if _WHOLE.fullmatch(text):
        return int(text)
    return Decimal(text) if _DECIMAL.fullmatch(text) else text


def record_of(line: str) -> Record:
    """
    Return the fields of a record by name; of an unknown type, only the first three.

    A field whose numbers have meanings is accompanied by ``meaning``.

    Raises:
        Refused: The line can't be taken apart, or ends before its known fields do.
    """
    tokens = tokens_of(line)
    if len(tokens) < len(HEAD):
        raise Refused("line", "must begin with type, version and time", line)
    record: Record = dict(zip(HEAD, tokens, strict=False))
    kind = str(record["type"])
    names = FIELDS.get(kind, "").split()
    optional = OPTIONAL.get(kind, "").split()
    record.update(fields_of(tokens[len(HEAD) :], names, optional))
    for (of_kind, name), meanings in MEANINGS.items():
        value = record.get(name)
        if of_kind == kind and isinstance(value, int) and value in meanings:
            record["meaning"] = meanings[value]
    return record


def fields_of(
    tokens: Sequence[Token], names: Sequence[str], optional: Sequence[str] = ()
) -> Record:
    """
    Return tokens by name; a list takes as many as the field before it says.

    Missing fields at the end are left out when they are *optional*; others are an error.

    Raises:
        Refused: The tokens end too early, or a length isn't one.
    """
    found: Record = {}
    at = 0
    for name in names:
        if name in LISTS or name in FIXED:
            length = _length_of(name, found, len(tokens) - at)
            found[name] = tuple(tokens[at : at + length])
            at += length
        elif at < len(tokens):
            found[name] = tokens[at]
            at += 1
        elif name not in optional:
            raise Refused(name, "must not be missing", " ".join(str(token) for token in tokens))
    return found


def _length_of(name: str, found: Record, left: int) -> int:
    """
    Return how many tokens a list takes.
    """
    count, width = LISTS.get(name, ("", FIXED.get(name, 0)))
    items = found.get(count) if count else 1
    if not isinstance(items, int) or not 0 <= items * width <= left:
        raise Refused(count or name, f"must be the length of {name}", str(items))
    return items * width


def tasks_by_host(hosts: Sequence[Token]) -> dict[str, int]:
    """
    Return the tasks of each host, in order of appearance: a host stands there once per slot, or as
    ``n*host``.
    """
    tasks: dict[str, int] = {}
    for token in hosts:
        count, star, host = str(token).partition("*")
        if not star or not count.isdecimal():
            count, host = "1", str(token)
        tasks[host] = tasks.get(host, 0) + int(count)
    return tasks


def statuses_of(bits: int) -> tuple[str, ...]:
    """
    Return the names of the status bits that are set, the state itself first.
    """
    return tuple(name for bit, name in STATUS_BITS.items() if bits & bit)


@dataclass(frozen=True, slots=True)
class WaitStatus:
    """
    Hold how a process ended, read from its raw wait status.

    Args:
        code: Its exit code, None when a signal ended it.
        signal: The number of the signal that ended it, None otherwise.
    """

    code: int | None
    signal: int | None

    @property
    def shown(self) -> int:
        """
        Return the exit code as shells show it: 128 and the signal's number for a signal.
        """
        return 128 + self.signal if self.signal is not None else self.code or 0

    @property
    def reading(self) -> str:
        """
        Return what a code above 128 most likely means, "" for others.
        """
        number = (self.code or 0) - 128
        if number not in set(Signals):
            return ""
        return f"killed by {Signals(number).name} inside a shell"


def wait_status_of(raw: int) -> WaitStatus:
    """
    Return what a raw wait status says: the code in the high byte, a signal in the low one.
    """
    signal = raw & 0x7F
    return WaitStatus(None, signal) if signal else WaitStatus(raw >> 8 & 0xFF, None)

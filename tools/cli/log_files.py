"""
The commands that copy, move, repair and sign logs.
"""

from __future__ import annotations

import json
import os
import pwd
import sys
from dataclasses import asdict
from pathlib import Path

import click

from domain.errors import Refused
from store.backup import backup, compact
from store.heads import check_against, check_signature, head_of, make_key, private_key, public_key
from store.heads import read_head as head_from
from store.heads import sign as signed
from store.log import EventLog
from store.repair import repair
from store.snapshots import SnapshotStore
from store.transfer import RecordingHeader, export_log, import_log
from tools.cli.log_places import snapshot_directory
from tools.cli.options import examples, json_anyway_option, json_option
from tools.cli.output import as_typed, say_json
from tools.cli.replay_state import AT_HELP

PATH = click.Path(path_type=Path)
CORRUPT = 4
LOG = click.argument("log", metavar="LOG", type=PATH)


def user() -> str:
    """
    Return who runs the command, by the name that the machine knows.
    """
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"


def report(fields: dict[str, object], text: str, *, as_json: bool) -> None:
    """
    Print what was done, for programs or for people.
    """
    if as_json:
        say_json(fields)
    else:
        click.echo(text)


@click.command(
    "export",
    epilog=examples(
        "xce log export run1 run1.jsonl.zst",
        "xce log export run1 given-away.jsonl --anonymise",
        "xce log export run1 evening.jsonl --from 2026-11-29T18:00:00 --to 2026-11-29T19:00:00",
        after="A part of a log begins with the state before it, so that it replays by itself.\n"
        "Next: xce replay verify FILE; or xce log import FILE NEW, of a whole log.",
    ),
)
@click.argument("log", metavar="LOG|RECORDING", type=PATH)
@click.argument("file", metavar="FILE", type=PATH)
@click.option("--from", "first", metavar="POSITION|TIME", help=f"Begin here. {AT_HELP}")
@click.option("--to", "last", metavar="POSITION|TIME", help="End here.")
@click.option("--states-every", "every", type=click.IntRange(min=1), metavar="EVENTS",
              help="Write the whole state every so many events too.")
@click.option("--anonymise", is_flag=True,
              help="Put aliases for people, projects, commands and names of jobs; leave free text "
                   "out. Hosts, queues and resources stay.")
@json_option
def log_export(
    log: Path, file: Path, *, first: str | None, last: str | None, every: int | None,
    anonymise: bool, as_json: bool,
) -> None:
    """
    Write a log, or a part of it, to FILE as JSON lines (.gz and .zst compress).
    """
    if str(file) == "-":
        raise Refused("FILE", "must be a file: nothing is written to standard output", "-")
    is_part = first is not None or last is not None or every is not None or log.is_file()
    header = (
        _record(log, file, first, last, every, is_anonymous=anonymise)
        if is_part or anonymise
        else export_log(log, file)
    )
    report(
        {
            "log_id": header.log_id, "first_position": header.first_position,
            "events": header.events, "head_digest": header.head_digest,
        },
        f"{header.events} events of the log {header.log_id} from position "
        f"{header.first_position} written to {file}.",
        as_json=as_json,
    )  # fmt: skip


def _record(
    log: Path, file: Path, first: str | None, last: str | None, every: int | None, *,
    is_anonymous: bool,
) -> RecordingHeader:
    # The states need the whole core; whole logs are copied without it.
    from replay.moments import before_of, parse_moment, position_of
    from replay.recordings import first_of, open_history, record

    with open_history(log) as history:
        after = first_of(history) - 1
        if first is not None:
            after = max(after, before_of(history, parse_moment("--from", first)))
        upto = position_of(history, parse_moment("--to", last or "end"), field="--to")
        if upto < after:
            raise Refused("--to", "must not be before --from", last)
        return record(
            history, file, after=after, upto=upto, every=every, is_anonymous=is_anonymous
        )


@click.command(
    "schema",
    epilog=examples(
        "xce log schema > recording.schema.json",
        after="It describes one line; each line of a file is checked by itself.",
    ),
)
@json_anyway_option
def log_schema() -> None:
    """
    Print the JSON Schema of the lines of exported logs and recordings.
    """
    from replay.recording_schema import recording_schema

    click.echo(json.dumps(recording_schema(), indent=1))


@click.command("import", epilog=examples("xce log import run1.jsonl.zst run2"))
@click.argument("file", metavar="FILE", type=PATH)
@LOG
@json_option
def log_import(file: Path, log: Path, *, as_json: bool) -> None:
    """
    Make the new log LOG of exported JSON lines: the exact inverse of export.
    """
    header = import_log(file, log)
    report(
        {"log_id": header.log_id, "events": header.events, "head_digest": header.head_digest},
        f"{header.events} events of the log {header.log_id} restored in {log}.",
        as_json=as_json,
    )


@click.command(
    "repair", epilog=examples("xce log repair damaged saved", after="Next: xce log verify saved.")
)
@LOG
@click.argument("new", metavar="NEW", type=PATH)
@click.option("--log-id", help="The log's identity, when its marker file is lost.")
@json_option
def log_repair(log: Path, new: Path, *, log_id: str | None, as_json: bool) -> int:
    """
    Save what is good of a damaged log into the new log NEW; LOG stays as it is. Exit status 4 when
    nothing of it is.
    """
    result = repair(log, new, log_id=log_id)
    lost = ", ".join(f"{first} to {last}" for first, last in result.lost) or "none"
    rest = f"; {result.rest_events} good events behind stand in {result.rest_file}"
    text = (
        f"{result.events} events saved in {new}; lost positions: {lost}"
        f"{rest if result.rest_events else ''}."
    )
    if log_id and result.rest_events and not result.events:
        text += f" None of them follows from the identity {log_id}: it may be another one."
    is_empty = not (result.events or result.rest_events)
    if is_empty:
        text = f"Nothing that is good was found in {log}: {new} is empty. Restore a backup."
    report(asdict(result), text, as_json=as_json)
    return CORRUPT if is_empty else 0


@click.command("backup", epilog=examples(
    "xce log backup ~/.local/state/xce /backup/xce-log",
    "mkdir new && cp -r /backup/xce-log new/log && xce up --dir new",
    "  # a cluster again: its other files are made anew where they are missing"))
@LOG
@click.argument("target", metavar="TARGET", type=PATH)
@json_option
def log_backup(log: Path, target: Path, *, as_json: bool) -> None:
    """
    Copy a log to the new directory TARGET as it is at one moment, while it may be written.
    """
    result = backup(log, target)
    report(asdict(result), f"{result.events} events copied to {target}, verified.", as_json=as_json)


@click.command("compact", epilog=examples("xce log compact run1"))
@LOG
@json_option
def log_compact(log: Path, *, as_json: bool) -> None:
    """
    Give the free pages of a log's data file back; nothing may write it meanwhile.
    """
    result = compact(log)
    report(
        asdict(result),
        f"{result.bytes_before} bytes became {result.bytes_after}.",
        as_json=as_json,
    )


@click.command(
    "archive",
    epilog=examples("xce log archive run1 --keep 1000000", after="Next: xce log compact run1."),
)
@LOG
@click.option("--upto", type=click.IntRange(1), help="The last position to archive.")
@click.option("--keep", type=click.IntRange(1), help="How many of the last events to keep.")
@json_option
def log_archive(log: Path, *, upto: int | None, keep: int | None, as_json: bool) -> None:
    """
    Move old events to compressed files in LOG/archive, where every command still reads them.
    """
    if (upto is None) == (keep is None):
        raise Refused("--upto, --keep", "exactly one of them must be given")
    with EventLog.open(log, writable=True) as opened:
        last = upto if upto is not None else max(0, opened.head() - (keep or 0))
        segments = opened.archive(last, actor=user())
    events = sum(each.last_position - each.first_position + 1 for each in segments)
    report(
        {"segments": [asdict(segment) for segment in segments], "events": events},
        f"{events} events moved to {len(segments)} segment files. "
        "xce log compact gives their pages back.",
        as_json=as_json,
    )


@click.command("prune", epilog=examples("xce log prune run1 --upto 5000000"))
@LOG
@click.option("--upto", type=click.IntRange(1), required=True, help="The last position to remove.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--force", is_flag=True, help="Also when no snapshot lets a scheduler start again.")
@json_option
def log_prune(log: Path, *, upto: int, yes: bool, force: bool, as_json: bool) -> None:
    """
    Remove archived files for ever, as far as they end at or before a position; it is recorded.
    """
    if not yes:
        if not sys.stdin.isatty():
            raise Refused("--yes", "must be given where nobody can be asked")
        click.confirm("History before that position can't be read any more. Go on?", abort=True)
    with EventLog.open(log, writable=True) as opened:
        if not force:
            _check_recoverable(log, opened, upto)
        removed = opened.prune(upto, actor=user())
    report(
        {"removed": [segment.file for segment in removed]},
        f"{len(removed)} segment files removed.",
        as_json=as_json,
    )


def _check_recoverable(log: Path, opened: EventLog, upto: int) -> None:
    """
    Refuse to remove what no snapshot makes up for.

    Raises:
        Refused: Without these events nobody can tell the state any more.
    """
    going = opened.prunable(upto)
    store = SnapshotStore(snapshot_directory(log), log_id=opened.log_id)
    found = store.check(head=opened.head(), digest_at=opened.digest_at) if going else []
    if going and not any(
        entry.position >= going[-1].last_position and not problem for entry, problem in found
    ):
        raise Refused(
            "--upto",
            "must not be behind the newest good snapshot: no scheduler could start again",
            upto,
            f"First: xce snapshot make {as_typed(log)}. Or --force.",
        )


@click.command(
    "head",
    epilog=examples(
        "xce log head run1 --sign auditor.key > head.json",
        after="Next, at any later time: xce log check-head run1 head.json.",
    ),
)
@LOG
@click.option("--sign", "key", metavar="KEY", type=PATH, help="Sign it with a private key.")
@json_anyway_option
def log_head(log: Path, *, key: Path | None) -> None:
    """
    Print the log's head (position and digest) as JSON, to be kept elsewhere.
    """
    with EventLog.open(log, writable=False) as opened:
        head = head_of(opened)
    click.echo((signed(head, private_key(key)) if key else head).as_json(), nl=False)


@click.command(
    "check-head", epilog=examples("xce log check-head run1 head.json --key auditor.key.pub")
)
@LOG
@click.argument("head", metavar="HEAD", type=PATH)
@click.option("--key", metavar="KEY", type=PATH, help="Public key of the head's signature.")
@json_option
def log_check_head(log: Path, head: Path, *, key: Path | None, as_json: bool) -> None:
    """
    Prove that nothing up to an earlier HEAD was changed; exit status 4 when it was.
    """
    kept = head_from(head)
    if key is not None:
        check_signature(kept, public_key(key))
    with EventLog.open(log, writable=False) as opened:
        check_against(opened, kept)
    report(
        {"position": kept.position, "is_good": True, "is_signature_checked": key is not None},
        f"The log goes on from position {kept.position} of that head, unchanged.",
        as_json=as_json,
    )


@click.command(
    "make-key",
    epilog=examples(
        "xce log make-key auditor.key", after="Next: xce log head LOG --sign auditor.key."
    ),
)
@click.argument("file", metavar="FILE", type=PATH)
@json_option
def log_make_key(file: Path, *, as_json: bool) -> None:
    """
    Make a key pair for signing heads: FILE and FILE.pub.
    """
    make_key(file)
    report(
        {"private": str(file), "public": f"{file}.pub"},
        f"The private key is in {file}, the public one in {file}.pub.",
        as_json=as_json,
    )


COMMANDS = (
    log_export, log_import, log_schema, log_repair, log_backup, log_compact, log_archive, log_prune,
    log_head, log_check_head, log_make_key,
)  # fmt: skip

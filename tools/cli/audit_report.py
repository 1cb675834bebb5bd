"""
What the tables give as files: the report, exports, and their own description.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from domain.errors import Refused, StoreUnavailable
from tools.cli.audit_asking import fresh_option, keep_private
from tools.cli.audit_questions import Form, csv_option, write_rows
from tools.cli.options import dir_option, json_option, jsonl_option
from tools.cli.output import say, say_json, table


@click.command(
    "report",
    epilog="""
\b
Example:
  xce audit report report.html
The page needs no network and no program: open it in any browser, or send it by mail.
""",
)
@click.argument(
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    default="xce-audit.html",
)
@click.option("--force", is_flag=True, help="Replace a file that is there already.")
@fresh_option
@dir_option
@json_option
def report(directory: Path, file: Path, *, force: bool, stale: bool, as_json: bool) -> None:
    """
    Write one HTML page: utilisation, queue lengths, waits, preemptions, why jobs waited.
    """
    from projections.audit.report.figures import report_of
    from projections.audit.report.page import page
    from tools.cli.audit import asked

    _check_new(file, force=force)
    with asked(directory, fresh=not stale) as reading:
        found = report_of(reading)
    text = page(found)
    new = file.with_name(file.name + ".new")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(file)
    except OSError as error:
        raise StoreUnavailable("report", str(file), error.strerror) from None
    if as_json:
        size = file.stat().st_size
        say_json({"file": str(file), "bytes": size, "position": found.position})
    else:
        say(f"Written: {file}")


def _check_new(file: Path, *, force: bool) -> None:
    """
    Refuse a file that can't be written, before the long work for it.
    """
    if file.is_dir():
        raise Refused("file", "must be a file, not a directory", str(file))
    if not file.absolute().parent.is_dir():
        raise Refused("file", "must be in a directory that exists", str(file))
    if file.exists() and not force:
        raise Refused("file", "must not exist yet", str(file), "Replace it with --force.")


@click.command("export", epilog="Example: xce audit export jobs. Names: xce audit tables.")
@click.argument("name", metavar="TABLE")
@csv_option
@fresh_option
@dir_option
@json_option
@jsonl_option
def export(directory: Path, name: str, *, stale: bool, **form: bool) -> None:
    """
    Print a whole table or view as CSV (or JSON), safe for spreadsheets.
    """
    from projections.audit.metadata import names
    from tools.cli.audit import asked

    wanted = Form(**form)
    if not (wanted.as_json or wanted.as_jsonl):
        wanted = Form(as_csv=True, as_json=False, as_jsonl=False)
    if name not in names():
        raise Refused("table", f"must be one of {', '.join(names())}", name)
    with asked(directory, fresh=not stale) as reading:
        keep_private(reading)
        heads, rows = reading.table(f'SELECT * FROM "{name}"')  # noqa: S608 - one of our own names
        write_rows(heads, rows, reading.position(), wanted)


@click.command("tables", epilog="Examples: xce audit tables, xce audit tables pend_reasons.")
@click.argument("name", metavar="[TABLE]", required=False)
@click.option("--markdown", is_flag=True, help="Print the whole documentation as Markdown.")
@click.option("--datasette", is_flag=True, help="Print the metadata for Datasette as JSON.")
@json_option
def tables_command(name: str | None, *, markdown: bool, datasette: bool, as_json: bool) -> None:
    """
    Describe the tables and views, or one of them column by column.
    """
    from projections.audit.metadata import described, documentation, metadata_json, names

    if markdown or datasette:
        sys.stdout.write(metadata_json("audit") if datasette else documentation())
    elif name is not None and name not in names():
        raise Refused("table", f"must be one of {', '.join(names())}", name)
    elif as_json:
        say_json({"tables": list(map(_table_json, [name] if name else names()))})
    elif name is None:
        table(("NAME", "ONE ROW IS"), [(one, described(one)[0]) for one in names()])
    else:
        doc, columns = described(name)
        say(doc)
        table(("COLUMN", "TYPE", "SAYS"), columns)


def _table_json(name: str) -> dict[str, object]:
    from projections.audit.metadata import described

    doc, columns = described(name)
    rows = [{"column": column, "type": kind, "says": says} for column, kind, says in columns]
    return {"table": name, "says": doc, "columns": rows}


COMMANDS = (report, export, tables_command)

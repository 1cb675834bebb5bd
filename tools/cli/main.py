"""
The one command: its subcommands by name, and how each error ends the process.

Exit status: 0 fine, 1 a difference or not found, 2 refused or wrong usage, 3 unavailable,
4 corrupt, 70 a fault of this program, 130 interrupted.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from domain.errors import InvariantBroken, XceError
from domain.texts import NotUnderstood
from tools.cli.as_typed import telling
from tools.cli.groups import TYPED, Commands, Context

FAULT = 70
INTERRUPTED = 130
WORD_MAX = 1000


class Entry(NamedTuple):
    """
    Say where a command is and what it does, without importing it.
    """

    place: str
    summary: str


COMMANDS = {
    "up": Entry("tools.cli.up:up", "Start the scheduler of a cluster, and local workers."),
    "down": Entry("tools.cli.up:down", "Stop the scheduler and its local workers."),
    "worker": Entry("tools.cli.up:worker", "Run a worker agent on this host."),
    "submit": Entry("tools.cli.submit:submit", "Submit a job."),
    "jobs": Entry("tools.cli.jobs:jobs", "List jobs."),
    "job": Entry("tools.cli.jobs:job", "Show everything about one job."),
    "why": Entry("tools.cli.why:why", "Say why a job waits or waited, or what became of it."),
    "history": Entry("tools.cli.history:history", "Tell the story of a job."),
    "kill": Entry("tools.cli.jobs:kill", "End jobs, pending or running."),
    "stop": Entry("tools.cli.jobs:stop", "Keep pending jobs back, suspend started ones."),
    "resume": Entry("tools.cli.jobs:resume", "Let jobs that were stopped go on."),
    "run": Entry("tools.cli.job_changes:run", "Start pending jobs at once on named hosts."),
    "requeue": Entry("tools.cli.job_changes:requeue", "Put started jobs back to pending."),
    "switch": Entry("tools.cli.job_changes:switch", "Move jobs to another queue."),
    "modify": Entry("tools.cli.job_changes:modify", "Change what jobs ask for."),
    "top": Entry("tools.cli.job_changes:top", "Put pending jobs before their equals."),
    "bottom": Entry("tools.cli.job_changes:bottom", "Put pending jobs behind their equals."),
    "hosts": Entry("tools.cli.hosts:hosts", "List hosts; close and open them."),
    "queues": Entry("tools.cli.queues:queues", "List queues; open, close, activate them."),
    "limits": Entry("tools.cli.policies:limits", "Show what of each limit is in use."),
    "definitions": Entry("tools.cli.definitions:definitions", "Show what is defined."),
    "define": Entry(
        "tools.cli.policies:define", "Define a queue, a limit and the like; set hosts and cluster."
    ),
    "remove": Entry(
        "tools.cli.policies:remove", "Remove a queue, user, group, project, limit or profile."
    ),
    "scheduler": Entry("tools.cli.scheduler:scheduler", "Record the running scheduler."),
    "simulate": Entry("tools.cli.simulate:simulate", "Run a recorded workload on a model cluster."),
    "replay": Entry(
        "tools.cli.replay:replay", "Look at any moment of a log, check it, try other futures."
    ),
    "audit": Entry("tools.cli.audit:audit_group", "Ask what happened, in plain tables and words."),
    "log": Entry("tools.cli.log:log_group", "Look at an event log, and verify it."),
    "snapshot": Entry("tools.cli.log:snapshot_group", "Look at the snapshots of a log."),
}


class Lazy(Commands):
    """
    Import a subcommand only when it is called.
    """

    context_class = Context

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """
        Keep the words as they were typed, for errors that name an option.
        """
        ctx.meta[TYPED] = tuple(args)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own shape
        """
        Return the names in the order in which people need them.
        """
        return list(COMMANDS)

    def get_command(
        self, ctx: click.Context, cmd_name: str  # noqa: ARG002 - click's own shape
    ) -> click.Command | None:
        """
        Return one command, imported now.
        """
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.place.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return telling(command)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """
        Return what may stand here, again without importing the commands.
        """
        names = [
            CompletionItem(name, help=entry.summary)
            for name, entry in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter  # noqa: ARG002 - click's own shape
    ) -> None:
        """
        Write the list of commands without importing any of them.
        """
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


def _show_version(ctx: click.Context, _parameter: click.Parameter, value: Any) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"xce {version('xce')}")
        ctx.exit()


SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=Lazy, context_settings=SETTINGS, epilog="""
\b
Try it out in two terminals:
  xce up --workers 2
  xce submit -- sleep 10
  xce jobs
Every command explains itself: xce COMMAND --help. Which cluster is meant says --dir or the variable
XCE_DIR.
Completion for bash; also zsh and fish, each with its own word before _source:
  eval "$(_XCE_COMPLETE=bash_source xce)"
Exit status: 0 fine, 1 a difference or not found, 2 refused or wrong usage, 3 unavailable,
4 corrupt.
""")
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version,
    help="Show the version and end.",
)
def cli() -> None:
    """
    Schedule batch jobs on a cluster; everything that happened is in one event log.
    """


def main() -> None:
    """
    Run the command line and end the process.
    """
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """
    Run one command and return its exit status; errors become text on standard error, one line but
    for a caret under what isn't understood.
    """
    try:
        status = cli.main(arguments, prog_name="xce", standalone_mode=False)
        sys.stdout.flush()
    except XceError as error:
        return complain(error)
    except click.ClickException as error:
        return _usage(error)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        return _nobody_reads()
    except OSError as error:
        return _complain(_operating_system(error), status=3)
    except Exception as error:  # noqa: BLE001 - a person gets one line, whatever it was
        return _fault(error)
    return status if isinstance(status, int) else 0


def complain(error: XceError) -> int:
    """
    Tell an error and return the exit status that it means.
    """
    if isinstance(error, NotUnderstood):
        # The caret needs the text on the line above it; neither of the two holds line ends.
        return _complain(*error.text().rsplit("\n", 2), status=error.exit_status)
    fault = isinstance(error, InvariantBroken)
    return _complain(error.text(), status=FAULT if fault else error.exit_status)


def _complain(*lines: str, status: int) -> int:
    from tools.cli.output import escape

    click.echo("xce: " + "\n".join(escape(_shortened(line)) for line in lines), err=True)
    return status


def _usage(error: click.ClickException) -> int:
    from tools.cli.output import escape

    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return 2
    where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "xce"
    message = error.format_message()
    if isinstance(error, click.MissingParameter):
        # What may stand there is listed over several lines; nothing of it was typed.
        message = " ".join(message.split()).removesuffix(".") + "."
    message = escape(_shortened(message))
    click.echo(f"xce: {message} See {where} --help.", err=True)
    return 2


def _shortened(text: str) -> str:
    """
    Return a text with the beginnings of words that are longer than any that is read.
    """
    return re.sub(rf"\S{{{WORD_MAX},}}", lambda word: f"{word[0][: WORD_MAX // 2]}...", text)


def _operating_system(error: OSError) -> str:
    named = f"{error.filename}: " if error.filename else ""
    return f"{named}{error.strerror or error}."


def _nobody_reads() -> int:
    """
    End quietly when the reader of a pipe has gone; what is still buffered has nowhere to go.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _fault(error: Exception) -> int:
    if os.environ.get("XCE_TRACEBACK"):
        raise error
    hint = "This is a fault of XCE; set XCE_TRACEBACK=1 to see where it came from."
    return _complain(f"{type(error).__name__}: {error}. {hint}", status=FAULT)

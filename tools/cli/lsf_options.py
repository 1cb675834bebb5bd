"""
Options of LSF's commands that there aren't here: refused by name, with what to type instead.

Without these ``-oo out.txt`` would be ``-o`` with the file ``o``, and ``out.txt`` the command.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import click

from domain.errors import Refused

Command = Callable[..., Any]


class Missing(NamedTuple):
    """
    Say which options are missing, whether they take a value, and what to do instead.
    """

    flags: str
    instead: str
    has_value: bool = True


INTERACTIVE: Final = "Jobs have no terminal; -K waits for the end, and -o names the output."
OF_SUBMIT: Final = (
    Missing("-oo -eo", "-o and -e append; remove the file before, or put %J into its name."),
    Missing("-is -Zs", "The job reads the file where it runs: -i names it, -f copies it."),
    Missing("-env", "--env says it, once for each variable: --env NONE --env HOME --env A=1."),
    Missing("-outdir", "--cwd says where the job runs; -o and -e lie there unless they begin "
                       "with /."),
    Missing("-Jd -jd", "-J names the job."),
    Missing("-g -sla -ext -eptl -ptl -wa -wt -notify -Wep -U -hostfile -clusters -data -freq",
            "Nothing stands for it here."),
    Missing("-C -D -S -ul", "Limits are -M, -v, -F, -c, -p, -T and -W."),
    Missing("-gpu", '-R "rusage[gpu=1]" asks for units of a resource.'),
    Missing("-u", "Nobody is sent mail: -K waits for the end, xce history tells it."),
    Missing("-N -B", "Nobody is sent mail: -K waits for the end, xce history tells it.",
            has_value=False),
    Missing("-I -Ip -Is -IS -ISp -ISs -IX -tty -XF", INTERACTIVE, has_value=False),
)  # fmt: skip
OF_QUEUES: Final = (
    Missing("-l", "xce queues NAME tells everything about one.", has_value=False),
)
OF_HOSTS: Final = (
    Missing("-l", "xce hosts NAME tells everything about one.", has_value=False),
)
OF_JOBS: Final = (
    Missing("-o", "--columns chooses and orders columns, --json has all."),
    Missing("-g -sla -G -P -app -fwd -N", "xce audit sql finds jobs by anything they have."),
    Missing("-A -X -WL -WP -WF -psum -noheader -sum", "Each element has a line; --json is for "
            "programs.", has_value=False),
)  # fmt: skip


def refusing(*missing: Missing) -> Callable[[Command], Command]:
    """
    Return what gives a command hidden options that are refused when they are typed.
    """

    def give(command: Command) -> Command:
        for one in missing:
            for flag in one.flags.split():
                command = _option(flag, one)(command)
        return command

    return give


def _option(flag: str, missing: Missing) -> Command:
    def refuse(_ctx: click.Context, _parameter: click.Parameter, value: object) -> None:
        if value is not None:
            raise Refused(flag, "is an option of LSF that there isn't here", hint=missing.instead)

    return click.option(
        flag, f"lsf_{flag.strip('-')}", hidden=True, expose_value=False, callback=refuse,
        is_flag=not missing.has_value, default=None, is_eager=True,
    )  # fmt: skip

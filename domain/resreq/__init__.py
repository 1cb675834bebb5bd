"""
The resource-requirement language (LSF's -R): parse, check, merge, evaluate and render.

`parse` and `render` are inverses; `syntax` has the nodes, which live inside events.
"""

from domain.resreq.parser import parse, parse_and_warn
from domain.resreq.render import render
from domain.resreq.settings import DEFAULT_SETTINGS, ParseSettings
from domain.resreq.sharing import shared
from domain.resreq.syntax import EMPTY, Compound, Primary, Requirement

__all__ = [
    "DEFAULT_SETTINGS",
    "EMPTY",
    "Compound",
    "ParseSettings",
    "Primary",
    "Requirement",
    "parse",
    "parse_and_warn",
    "render",
    "shared",
]

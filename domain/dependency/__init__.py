"""
Dependencies between jobs (-w): parse and show, bind to parents, evaluate three-valued.
"""

from domain.dependency.binding import OwnJobs, bind
from domain.dependency.evaluate import ParentElement, ParentJobs, Verdict, evaluate
from domain.dependency.parser import parse_dependency
from domain.dependency.syntax import (
    Condition,
    Dependency,
    JobRef,
    Predicate,
    parents_of,
    show_dependency,
)

__all__ = [
    "Condition",
    "Dependency",
    "JobRef",
    "OwnJobs",
    "ParentElement",
    "ParentJobs",
    "Predicate",
    "Verdict",
    "bind",
    "evaluate",
    "parents_of",
    "parse_dependency",
    "show_dependency",
]

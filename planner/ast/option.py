"""AST of options: ``name [=] value`` of WITH (...), COPY, EXPLAIN, CREATE ROLE and others; OPTIONS (...) of
foreign data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from planner.ast.query import Expression, Node, TypeName

# A plain option value: word or string, number, true/false, a list of names, a type, a role, None = absent.
OptionValue: TypeAlias = "str | int | bool | tuple[str, ...] | TypeName | NumberText | Expression | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberText(Node):
    """A number with a fraction or exponent as an option value, as written."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Option(Node):
    """``name [=] value`` of WITH (...), COPY, EXPLAIN, CREATE ROLE ...; ``namespace`` as in toast.x."""

    name: str
    value: OptionValue = None
    namespace: str = ""


OptionAction: TypeAlias = Literal["add", "set", "drop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignOption(Node):
    """One of OPTIONS (...); ``value`` "" of what is dropped."""

    name: str
    value: str = ""
    action: OptionAction = "add"

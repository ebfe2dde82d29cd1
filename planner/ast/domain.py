"""AST of CREATE DOMAIN and ALTER DOMAIN (RENAME, OWNER TO, SET SCHEMA and DROP are those of all objects)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.ast.definitions import Constraint
from planner.ast.query import Expression, Name, StatementNode, TypeName


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDomain(StatementNode):
    """CREATE DOMAIN name AS type, with its constraints in order."""

    name: Name
    type: TypeName
    constraints: tuple[Constraint, ...]
    collation: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterDomain(StatementNode):
    """ALTER DOMAIN: one action.

    ``default`` (None: DROP DEFAULT), ``constraint`` (ADD) and ``constraint_name`` (DROP, VALIDATE) belong to
    their actions.
    """

    name: Name
    action: Literal["default", "set not null", "drop not null", "add", "drop", "validate"]
    default: Expression | None = None
    constraint: Constraint | None = None
    constraint_name: str = ""
    if_exists: bool = False

"""Bound statements about policies of row-level security. Read them as ``planner.statements``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from planner.catalog.policy import PolicyDef


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRole:
    """Whom a policy is about: a role by name, or current_user or session_user; "" for PUBLIC."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePolicy:
    """CREATE POLICY on a table by oid. ``policy``: its oid and roles are to be given."""

    table: int
    policy: PolicyDef
    roles: tuple[PolicyRole, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPolicy:
    """ALTER POLICY of one that is there, which becomes ``policy``; ``roles`` None: they stay."""

    table: int
    policy: PolicyDef
    roles: tuple[PolicyRole, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamePolicy:
    """ALTER POLICY ... RENAME TO."""

    table: int
    name: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropPolicy:
    """DROP POLICY of one that is there."""

    table: int
    name: str


PolicyStatement: TypeAlias = CreatePolicy | AlterPolicy | RenamePolicy | DropPolicy

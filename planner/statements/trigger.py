"""Bound statements about triggers. Read them as ``planner.statements``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from planner.catalog import ConstraintDef
from planner.catalog.trigger import TriggerDef


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTrigger:
    """CREATE TRIGGER on a table by oid. ``trigger``: its oid is to be given, and that of its ``constraint``;
    ``replace``: OR REPLACE.
    """

    table: int
    trigger: TriggerDef
    constraint: ConstraintDef | None
    replace: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTrigger:
    """ALTER TRIGGER ... RENAME TO."""

    table: int
    name: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTrigger:
    """DROP TRIGGER of one that is there."""

    table: int
    name: str


TriggerStatement: TypeAlias = CreateTrigger | DropTrigger | RenameTrigger

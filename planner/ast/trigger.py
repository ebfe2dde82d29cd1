"""AST of statements about triggers. Read it as ``planner.ast``."""

from __future__ import annotations

from dataclasses import dataclass

from planner.ast.query import Expression, Name, StatementNode, TableRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A name of REFERENCING: NEW or OLD, TABLE or ROW."""

    name: str
    new: bool
    table: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTrigger(StatementNode):
    """CREATE TRIGGER.

    ``timing``: before, after, instead of. ``events``: letters of
    ``planner.catalog.trigger.TriggerEventKind``. ``transitions``: REFERENCING; ``constraint``: CREATE
    CONSTRAINT TRIGGER, ``from_table``: its FROM.
    """

    name: str
    relation: TableRef
    timing: str
    row: bool
    events: str
    function: Name
    args: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    when: Expression | None = None
    transitions: tuple[Transition, ...] = ()
    constraint: bool = False
    from_table: TableRef | None = None
    deferrable: bool = False
    deferred: bool = False
    replace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTrigger(StatementNode):
    """ALTER TRIGGER ... RENAME TO."""

    name: str
    relation: TableRef
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTrigger(StatementNode):
    """DROP TRIGGER; ``table``: the table's name, with its schema where it was written."""

    table: Name
    name: str
    if_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentOnTrigger(StatementNode):
    """COMMENT ON TRIGGER."""

    table: Name
    name: str
    text: str | None

"""AST of session statements: transactions, settings, cursors, prepared statements, EXPLAIN. Read it as ``planner.ast``.

One class per statement family; variants that share every field share a class and say which by a ``kind`` or
``action`` word in lower case. What PostgreSQL's grammar has and the server refuses altogether is not
modelled: ``planner.parse`` raises 0A000 naming the construct.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.ast.option import Option
from planner.ast.query import Expression, Name, QueryNode, StatementNode, TableRef, TypeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction(StatementNode):
    """BEGIN, START, COMMIT, ROLLBACK, SAVEPOINT, RELEASE, ROLLBACK TO, PREPARE TRANSACTION ...

    ``options``: transaction_isolation, transaction_read_only, transaction_deferrable.
    """

    action: Literal[
        "begin", "start", "commit", "rollback", "savepoint", "release", "rollback to", "prepare transaction",
        "commit prepared", "rollback prepared",
    ]  # fmt: skip
    name: str = ""
    options: tuple[Option, ...] = ()
    chain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetVariable(StatementNode):
    """SET / RESET. ``kind``: value, default, current (FROM CURRENT), multi, reset, reset all.

    For "multi", ``name`` is "TRANSACTION", "SESSION CHARACTERISTICS" or "TRANSACTION SNAPSHOT" and
    ``options`` carries the modes; else ``args`` are Constant or TypeCast (SET TIME ZONE INTERVAL).
    """

    kind: Literal["value", "default", "current", "multi", "reset", "reset all"]
    name: str
    args: tuple[Expression, ...] = ()
    options: tuple[Option, ...] = ()
    local: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Show(StatementNode):
    """SHOW name | ALL ("all")."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare(StatementNode):
    """PREPARE; ``text`` is the inner statement's text, as written, ``at`` where it stands in the text parsed."""

    name: str
    types: tuple[TypeName, ...]
    query: StatementNode
    text: str
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Execute(StatementNode):
    """EXECUTE."""

    name: str
    args: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deallocate(StatementNode):
    """DEALLOCATE; ``name`` None = ALL."""

    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribe(StatementNode):
    """SUBSCRIBE (``planner.parse.beyond``); a table is the query TABLE name.

    ``query`` None: what the named ``subscription`` is about; whoever knows that puts it in before the
    statement is bound.
    """

    query: QueryNode | None
    subscription: str | None = None
    as_of: Expression | None = None
    up_to: Expression | None = None
    snapshot: bool = True
    progress: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSubscription(StatementNode):
    """CREATE SUBSCRIPTION name FOR (``planner.parse.beyond.named``)."""

    name: str
    query: QueryNode
    snapshot: bool
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgeSubscription(StatementNode):
    """ALTER SUBSCRIPTION name ACKNOWLEDGE moment."""

    name: str
    to: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSubscription(StatementNode):
    """DROP SUBSCRIPTION."""

    name: str
    if_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclareCursor(StatementNode):
    """DECLARE CURSOR; ``scroll`` None where not written."""

    name: str
    query: QueryNode | Subscribe
    scroll: bool | None = None
    hold: bool = False
    binary: bool = False
    insensitive: bool = False
    asensitive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch(StatementNode):
    """FETCH / MOVE; ``count`` None = ALL."""

    cursor: str
    direction: Literal["forward", "backward", "absolute", "relative"]
    count: int | None
    move: bool = False
    timeout: str | None = None
    """WITH (timeout = '...'): an interval's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosePortal(StatementNode):
    """CLOSE; ``name`` None = ALL."""

    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain(StatementNode):
    """EXPLAIN of ``statement``; ``text`` is that statement's text."""

    statement: StatementNode
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance(StatementNode):
    """VACUUM, ANALYZE, CHECKPOINT, REINDEX, CLUSTER.

    ``relations`` pairs a table with its column list. ``object`` (REINDEX): index, table, schema, system,
    database; ``name`` its schema or database, or CLUSTER's index.
    """

    what: Literal["vacuum", "analyze", "checkpoint", "reindex", "cluster"]
    options: tuple[Option, ...] = ()
    relations: tuple[tuple[TableRef, tuple[str, ...]], ...] = ()
    object: Literal["", "index", "table", "schema", "system", "database"] = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discard(StatementNode):
    """DISCARD."""

    what: Literal["all", "plans", "sequences", "temp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify(StatementNode):
    """LISTEN, UNLISTEN (``channel`` "" = all), NOTIFY."""

    action: Literal["listen", "unlisten", "notify"]
    channel: str
    payload: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetConstraints(StatementNode):
    """SET CONSTRAINTS; no ``names`` = ALL. A name is (constraint,), (schema, constraint) or longer."""

    names: tuple[Name, ...]
    deferred: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LockTable(StatementNode):
    """LOCK TABLE; ``mode`` is PostgreSQL's lock level 1 (access share) .. 8 (access exclusive)."""

    relations: tuple[TableRef, ...]
    mode: int
    nowait: bool = False

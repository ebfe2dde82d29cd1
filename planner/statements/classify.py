"""Statement classes, result columns, and what a statement writes: a row for each class of bound statements.

    INSERT ... VALUES           WRITE_ONLY
    INSERT ... SELECT, UPDATE   READ_THEN_WRITE
    SELECT, COPY TO             READ_ONLY
    CREATE, ALTER, DROP         DDL

Everything here is a walk over a bound statement: no catalog, no session. A class without a row fails when
this module is imported, as does one with two. ``planner.statements.parsed`` has the rows of what was parsed,
``engine.statements.registry`` of what runs a statement.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from planner import query
from planner import statements as st
from planner.base.total import joined, members, total
from planner.facts import JSON, TEXT, facts, rows
from planner.query import (
    Const,
    FuncExpr,
    OpExpr,
    OutputColumn,
    Param,
    ScalarArrayOp,
    SqlCall,
    SubLink,
    Values,
)
from planner.query.walk import walk
from planner.statements import StatementClass
from planner.types import SqlType

# Functions that are volatile only in name: they change nothing and may run anywhere.
_VOLATILE = "v"


def is_volatile(node: object) -> bool:
    """Tell whether an expression, query or statement calls a volatile function."""
    return any(_proc_volatility(item) == _VOLATILE for item in walk(node))


def _proc_volatility(node: object) -> str:
    if isinstance(node, SqlCall):
        return _VOLATILE if node.stays else "i"  # one that stays is run for each row
    if isinstance(node, FuncExpr | OpExpr | ScalarArrayOp):
        proc = facts().procs.get(node.proc)
        return proc.volatility if proc is not None else "i"
    return "i"


class Runs(enum.Enum):
    """What of a statement is run, and so has plain types, no COLLATE, and the rows that row-level security leaves."""

    WHOLE = "all of it, as it is bound"
    QUERY = "its query, whose rows fill the relation that the rest defines"
    NOTHING = "nothing: it is a definition, or about the session"


class Uses(enum.Enum):
    """What the transaction that runs a statement does with the rows of tables that this names."""

    ROWS = "reads or writes them"
    NAMES = "nothing: they are read later, or elsewhere"
    NOTHING = "nothing, and it is about no timeline: most definitions, upkeep"


_Class: TypeAlias = StatementClass | Callable[[Any], StatementClass]
_Written: TypeAlias = Callable[[Any], Iterable[int]]
_Uses: TypeAlias = Uses | Callable[[Any], Uses]
_Returned: TypeAlias = Callable[[Any], tuple[OutputColumn, ...] | None]


@dataclass(frozen=True, slots=True)
class BoundSpec:
    """A class of bound statements.

    Attributes:
        class_: how a statement runs, or what tells it.
        runs: what of it is run.
        writes: returns the oids of tables whose rows it changes.
        returns: returns the columns of its rows, None where it has none or the engine alone knows (FETCH, EXECUTE).
        uses: what its transaction does with the rows of tables, or what tells it.
        again: running it again has no effect beyond its transaction, unless it calls what is volatile.
        calls: "" where functions that change data may be in what it runs, else what the error calls it (0A000).
    """

    class_: _Class
    runs: Runs
    writes: _Written
    returns: _Returned
    uses: _Uses
    again: bool
    calls: str


def row_of(statement: st.Statement) -> BoundSpec:
    """Return the row of a statement's class."""
    return BOUND[type(statement)]


def classify(statement: st.Statement) -> StatementClass:
    """Return how the statement runs."""
    class_ = BOUND[type(statement)].class_
    return class_ if isinstance(class_, StatementClass) else class_(statement)


def uses_of(statement: st.Statement) -> Uses:
    """Return what the statement's transaction does with the rows of tables that it names."""
    uses = BOUND[type(statement)].uses
    return uses if isinstance(uses, Uses) else uses(statement)


def relations_written(statement: st.Statement) -> frozenset[int]:
    """Return the oids of tables whose rows the statement changes."""
    return frozenset(BOUND[type(statement)].writes(statement))


def returned_rows(statement: st.Statement) -> tuple[OutputColumn, ...] | None:
    """Return the result's columns, None when it has no rows (or only the engine knows: FETCH, EXECUTE)."""
    return BOUND[type(statement)].returns(statement)


# --- how a statement runs ---------------------------------------------------------------------------


def _query_class(statement: st.QueryStatement) -> StatementClass:
    return StatementClass.READ_THEN_WRITE if _locks_rows(statement) else StatementClass.READ_ONLY


def _copy_class(statement: st.Copy) -> StatementClass:
    if statement.subscribe is not None:
        return StatementClass.UTILITY
    if statement.change is not None:
        return StatementClass.READ_THEN_WRITE
    if statement.is_from:
        return StatementClass.WRITE_ONLY
    return StatementClass.READ_THEN_WRITE if _locks_rows(statement) else StatementClass.READ_ONLY


def _maintenance_class(statement: st.Maintenance) -> StatementClass:
    return StatementClass.DDL if statement.index else StatementClass.UTILITY


def _locks_rows(statement: st.Statement) -> bool:
    return any(isinstance(item, query.Select) and item.row_marks for item in walk(statement))


def _insert_class(insert: query.Insert) -> StatementClass:
    source = insert.source
    if insert.on_conflict is not None or (source is not None and not isinstance(source, Values)):
        return StatementClass.READ_THEN_WRITE
    cells = [cell for row in source.rows for cell in row] if source is not None else []
    looks = any(
        isinstance(item, SubLink)
        for cell in (*cells, *insert.returning)
        if not isinstance(cell, Const | Param)
        for item in walk(cell)
    )
    return StatementClass.READ_THEN_WRITE if looks else StatementClass.WRITE_ONLY


# --- what it does with tables ------------------------------------------------------------------------


def _copy_uses(statement: st.Copy) -> Uses:
    return Uses.ROWS if statement.subscribe is None else Uses.NAMES


def _filled_uses(statement: st.CreateTable) -> Uses:
    return Uses.NAMES if statement.query is None else Uses.ROWS


def _view_uses(statement: st.CreateMaterializedView) -> Uses:
    return Uses.ROWS if statement.with_data else Uses.NAMES


# --- what it writes ---------------------------------------------------------------------------------


def _no_table(_statement: object) -> tuple[int, ...]:
    return ()


def _its_table(statement: query.Insert | query.Update | query.Delete | query.Merge) -> tuple[int, ...]:
    return (statement.table,)


def _tables_of_parts(statement: st.WithChanges) -> frozenset[int]:
    return frozenset().union(*map(relations_written, statement.parts))


def _copied(statement: st.Copy) -> Iterable[int]:
    if statement.change is not None:
        return relations_written(statement.change)
    return (statement.table,) if statement.is_from else ()


def _truncated(statement: st.Truncate) -> tuple[int, ...]:
    return statement.tables


# --- what it returns --------------------------------------------------------------------------------


def _no_rows(_statement: object) -> None:
    return None


def _query_rows(statement: st.QueryStatement) -> tuple[OutputColumn, ...]:
    return statement.query.columns


def _returning(statement: query.Insert | query.Update | query.Delete) -> tuple[OutputColumn, ...] | None:
    return statement.columns if statement.returning else None


def _rows_of_body(statement: st.WithChanges) -> tuple[OutputColumn, ...] | None:
    return returned_rows(statement.body)


def _outputs(statement: st.Call) -> tuple[OutputColumn, ...] | None:
    return statement.call.outputs or None


def _plan_rows(statement: st.Explain) -> tuple[OutputColumn, ...]:
    oid = JSON if statement.options.get("format") == "json" else TEXT
    return (OutputColumn(name="QUERY PLAN", type=SqlType(oid)),)


def _subscribed(statement: st.Subscribe) -> tuple[OutputColumn, ...]:
    return statement.columns


def _shown(statement: st.ShowVariable) -> tuple[OutputColumn, ...]:
    return show_columns(statement.name)


def show_columns(name: str) -> tuple[OutputColumn, ...]:
    """Return the columns of SHOW: one named as the setting is spelt, or three for SHOW ALL."""
    names = ("name", "setting", "description") if name == "all" else (setting_spelling(name),)
    return tuple(OutputColumn(name=n, type=SqlType(TEXT)) for n in names)


def setting_spelling(name: str) -> str:
    """Return a setting's own spelling (DateStyle, TimeZone); unknown ones as given."""
    lowered = name.lower()
    return next((row["name"] for row in rows("settings") if row["name"].lower() == lowered), name)


# --- the rows ---------------------------------------------------------------------------------------

_DDL, _UTILITY = StatementClass.DDL, StatementClass.UTILITY
_RETHINKS: Final = StatementClass.READ_THEN_WRITE
_OTHERS: Final = "this statement"
_DEFINES: Final = BoundSpec(_DDL, Runs.NOTHING, _no_table, _no_rows, Uses.NOTHING, False, _OTHERS)
_SERVES: Final = BoundSpec(_UTILITY, Runs.NOTHING, _no_table, _no_rows, Uses.ROWS, False, _OTHERS)

BOUND: Final[Mapping[type, BoundSpec]] = total(
    "bound statements",
    members(st.Statement),
    joined(
        "bound statements",
        {
            # rows
            st.QueryStatement: BoundSpec(
                _query_class, Runs.WHOLE, _no_table, _query_rows, Uses.ROWS, True, ""
            ),
            query.Insert: BoundSpec(_insert_class, Runs.WHOLE, _its_table, _returning, Uses.ROWS, True, ""),
            query.Update: BoundSpec(_RETHINKS, Runs.WHOLE, _its_table, _returning, Uses.ROWS, True, ""),
            query.Delete: BoundSpec(_RETHINKS, Runs.WHOLE, _its_table, _returning, Uses.ROWS, True, ""),
            query.Merge: BoundSpec(_RETHINKS, Runs.WHOLE, _its_table, _no_rows, Uses.ROWS, True, ""),
            st.WithChanges: BoundSpec(
                _RETHINKS, Runs.WHOLE, _tables_of_parts, _rows_of_body, Uses.ROWS, True, ""
            ),
            st.Copy: BoundSpec(_copy_class, Runs.WHOLE, _copied, _no_rows, _copy_uses, False, "COPY"),
            st.DeclareCursor: BoundSpec(
                _UTILITY, Runs.WHOLE, _no_table, _no_rows, Uses.ROWS, False, "a cursor"
            ),
            st.Explain: BoundSpec(_UTILITY, Runs.NOTHING, _no_table, _plan_rows, Uses.ROWS, False, ""),
            st.Call: BoundSpec(_RETHINKS, Runs.WHOLE, _no_table, _outputs, Uses.ROWS, True, ""),
            st.Do: BoundSpec(_RETHINKS, Runs.NOTHING, _no_table, _no_rows, Uses.ROWS, True, ""),
            st.Subscribe: BoundSpec(_UTILITY, Runs.WHOLE, _no_table, _subscribed, Uses.NAMES, False, _OTHERS),
            st.DeclareSubscribe: BoundSpec(
                _UTILITY, Runs.WHOLE, _no_table, _no_rows, Uses.NAMES, False, _OTHERS
            ),
            st.AcknowledgeSubscription: BoundSpec(
                _UTILITY, Runs.WHOLE, _no_table, _no_rows, Uses.ROWS, False, _OTHERS
            ),
            # definitions that run something
            st.CreateTable: BoundSpec(_DDL, Runs.QUERY, _no_table, _no_rows, _filled_uses, False, _OTHERS),
            st.CreateMaterializedView: BoundSpec(
                _DDL, Runs.QUERY, _no_table, _no_rows, _view_uses, False, _OTHERS
            ),
            st.RefreshMaterializedView: BoundSpec(
                _DDL, Runs.QUERY, _no_table, _no_rows, Uses.ROWS, True, _OTHERS
            ),
            st.MarkConstraints: BoundSpec(_DDL, Runs.WHOLE, _no_table, _no_rows, Uses.ROWS, True, _OTHERS),
            st.Truncate: BoundSpec(_DDL, Runs.NOTHING, _truncated, _no_rows, Uses.NOTHING, False, _OTHERS),
            # what is read later
            st.CreateView: replace(_DEFINES, uses=Uses.NAMES),
            st.CreateSubscription: replace(_SERVES, uses=Uses.NAMES),
            st.Prepare: replace(_SERVES, uses=Uses.NAMES),
            # the rest
            st.Maintenance: BoundSpec(
                _maintenance_class, Runs.NOTHING, _no_table, _no_rows, Uses.NOTHING, False, _OTHERS
            ),
            st.ShowVariable: BoundSpec(_UTILITY, Runs.NOTHING, _no_table, _shown, Uses.ROWS, False, _OTHERS),
            st.Transaction: BoundSpec(
                StatementClass.TRANSACTION_CONTROL,
                Runs.NOTHING,
                _no_table,
                _no_rows,
                Uses.ROWS,
                False,
                _OTHERS,
            ),
        },
        dict.fromkeys(
            (
                st.RoleStatement,
                st.AlterDefaults,
                st.Grant,
                st.GrantRole,
                st.Comment,
                st.AlterTable,
                st.CreateIndex,
                st.AlterDatabase,
                st.AlterSchemaOwner,
                st.AlterLargeObject,
                st.AlterSequence,
                st.AlterSource,
                st.CreateDatabase,
                st.CreateSchema,
                st.CreateSequence,
                st.CreateSource,
                st.CreateTimeline,
                st.Drop,
                st.DropDatabase,
                st.DropSource,
                st.DropTimeline,
                st.Rename,
                st.AddEnumValue,
                st.AlterComposite,
                st.SetDomainDefault,
                st.SetDomainNotNull,
                st.AddDomainCheck,
                st.DropDomainConstraint,
                st.ValidateDomainConstraint,
                st.RenameDomainConstraint,
                st.AlterType,
                st.CreateComposite,
                st.CreateDomain,
                st.CreateEnum,
                st.CreateRange,
                st.DropType,
                st.RenameEnumValue,
                st.AlterFunction,
                st.CreateAggregate,
                st.CreateFunction,
                st.DropFunction,
                st.ReassignOwned,
                st.DropOwned,
                st.AlterDefaultPrivileges,
                st.CreateExtension,
                st.AlterExtension,
                st.DropExtension,
                st.CreateTrigger,
                st.DropTrigger,
                st.RenameTrigger,
                st.CreatePolicy,
                st.AlterPolicy,
                st.RenamePolicy,
                st.DropPolicy,
                st.CreateConfiguration,
                st.CreateDictionary,
                st.AlterMapping,
                st.AlterDictionary,
                st.AlterTextSearch,
                st.DropTextSearch,
                st.CreateStatistics,
                st.AlterStatistics,
                st.DropStatistics,
                st.CreateWrapper,
                st.AlterWrapper,
                st.CreateServer,
                st.AlterServer,
                st.CreateUserMapping,
                st.AlterUserMapping,
                st.DropUserMapping,
                st.AlterForeign,
                st.DropForeign,
                st.ImportForeignSchema,
                st.CreateOpfamily,
                st.CreateOpclass,
                st.ChangeOpfamily,
                st.AlterOpclass,
                st.DropOpclass,
                st.CreateConversion,
                st.AlterConversion,
                st.DropConversion,
                st.CreateCollation,
                st.AlterCollation,
                st.DropCollation,
            ),
            _DEFINES,
        ),
        dict.fromkeys(
            (
                st.Skip,
                st.Notify,
                st.LockTable,
                st.SetConstraints,
                st.SetVariable,
                st.SetTransaction,
                st.ExecutePrepared,
                st.Deallocate,
                st.DropSubscription,
                st.Fetch,
                st.CloseCursor,
                st.Discard,
                st.Load,
                st.RefreshCollation,
            ),
            _SERVES,
        ),
    ),
)

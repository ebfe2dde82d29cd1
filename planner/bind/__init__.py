"""Name resolution and typing: AST -> bound statement.

    bind_statement(ast, text, catalog, search_path)  ->  BoundStatement(statement, class, params, columns, ...)

One module per statement family; ``query`` and what it uses bind queries and expressions, ``dml``, ``ddl``, ``copy``
and ``utility`` the rest. Afterwards values that are fixed for a statement or transaction (now(), current_user,
settings) leave the tree and become parameters above the client's: ``BoundStatement.stable``.

Binding is a pure function of its arguments. What the result depends on is recorded in it: relation versions,
and the settings a literal was read under.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pgwire.codecs.settings import DEFAULT, CodecSettings
from pgwire.give_way import give_way
from planner import ast
from planner import query as qt
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind import recursion, supplied  # noqa: F401 - answers what is asked from below

# these register binders of AST classes
from planner.bind.change.changing_items import runs_in_parts
from planner.bind.change.current_of import for_cursor
from planner.bind.change.with_items import bind_with_changes
from planner.bind.context import BindContext, RowSecurity, WithStep, make_context
from planner.bind.define.table.generated import generated_from, generations
from planner.bind.expression import columns, compare, funcs, sublinks
from planner.bind.query.nesting import check_nesting
from planner.bind.query.row_security import secured
from planner.bind.query.select import bind_query
from planner.bind.stored import coerce_argument, deparse_check, rebase_view
from planner.bind.stored.evaluated import bind_check
from planner.bind.stored.inline import inline_calls
from planner.bind.stored.runnable import restricted_calls
from planner.catalog.rights import RESTRICTED, restricted_functions
from planner.conversion.collations import COLLATIONS, settled, without_collations
from planner.partitions.bounds import descendants
from planner.query.walk import walk
from planner.rules.failing import failure
from planner.rules.fold import fold, fold_and_tell
from planner.rules.partitions import without_partitioned
from planner.rules.plain import declared_types, told_columns, without_domains
from planner.rules.stable import changes_settings, extract_stable
from planner.statements.classify import Runs, classify, relations_written, returned_rows, row_of
from planner.statements.parsed import PARSED, command_tag

__all__ = [
    "bind_check",
    "bind_node",
    "bind_statement",
    "coerce_argument",
    "deparse_check",
    "generated_from",
    "generations",
    "rebase_view",
]

_FAMILIES = (columns, compare, funcs, sublinks)


def bind_statement(
    statement: ast.StatementNode,
    text: str,
    catalog: Any,
    search_path: Sequence[str],
    param_types: Sequence[int] = (),
    settings: CodecSettings = DEFAULT,
    *,
    database: str = "",
    variable_params: bool = True,
    steps: Mapping[str, WithStep] | None = None,
    security: RowSecurity | None = None,
    keeps: bool = False,
) -> st.BoundStatement:
    """Bind one parsed statement. ``keeps``: its rows are a cursor's (``planner.bind.change.current_of``).

    ``text`` is the statement's own text (spans count in the whole text it was parsed from). ``search_path``:
    existing schemas in order. ``param_types``: declared types of ``$1`` ..., 0 or missing = to be deduced.

    ``variable_params`` False: only parameters that were declared exist (42P02 for others). ``steps``:
    transition tables. ``security``: for whom it is to run; without it no table with row-level security may be
    in what runs.

    Raises SqlError with PostgreSQL's SQLSTATE, wording, hint and position; 54001 for nesting that is too
    deep; 42P18 when a parameter's type stays open.
    """
    check_nesting(statement, text)
    context = make_context(
        catalog,
        search_path,
        text=text,
        param_types=param_types,
        settings=settings,
        database=database,
        variable_params=variable_params,
        security=security,
        drops=PARSED[type(statement)].drops,
    )
    context.steps.update(steps or {})
    try:
        bound = bind_node(context, statement)
        if keeps:
            bound = for_cursor(context, bound)
        return envelope(statement, text, context, bound)
    except RecursionError:
        raise SqlError(
            "54001",
            "stack depth limit exceeded",
            hint="Split the statement, or write it with less nesting.",
        ) from None


def bind_node(context: BindContext, node: ast.StatementNode) -> st.Statement:
    """Bind a statement of any kind within a context. Raises as ``bind_statement``."""
    if runs_in_parts(node):
        return bind_with_changes(context, node)
    if not PARSED[type(node)].params:
        context.env.params.variable = False
    return binder_of(type(node))(context, node)


_Binder = Callable[[BindContext, Any], st.Statement]
_BINDERS: dict[type[ast.StatementNode], _Binder] = {}


def binder_of(kind: type[ast.StatementNode]) -> _Binder:
    """Return what binds the statements of a class; its module is imported when it is first asked for."""
    binder = _BINDERS.get(kind)
    if binder is None:
        module, _, name = PARSED[kind].binder.partition(":")
        binder = getattr(importlib.import_module(f"{__name__}.{module}" if module else __name__), name)
        _BINDERS[kind] = binder
    return binder


def load() -> None:
    """Import the modules of binders, which else the first statement of each class does."""
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)
        give_way()
    for kind in PARSED:
        binder_of(kind)


def bind_query_statement(context: BindContext, node: ast.QueryNode) -> st.QueryStatement:
    """Bind a query that is a statement by itself."""
    return st.QueryStatement(query=bind_query(context, node))


def bind_explain(context: BindContext, node: ast.Explain) -> st.Explain:
    """Bind EXPLAIN and the statement in it."""
    from planner.bind.session.utility import (
        explain_options,  # of the families that are imported when first needed
    )

    options = explain_options(node.options)
    inner = node.statement
    if not PARSED[type(inner)].explained:
        raise not_supported(f"EXPLAIN of {command_tag(inner)}")
    if isinstance(inner, ast.Subscribe) and options.get("analyze", "off") in ("on", "true", "1", ""):
        raise not_supported("EXPLAIN ANALYZE of SUBSCRIBE, which goes on")
    bound = bind_node(context, inner)
    if isinstance(bound, st.MarkConstraints):
        raise not_supported("EXPLAIN of UPDATE of a catalog relation")
    body = envelope(inner, context.text, context, bound, finish=False)
    return st.Explain(body=body, options=options)


def _run_as(bound: st.Statement, change: Callable[[Any], Any]) -> st.Statement:
    """Return a statement with ``change`` made to what of it is about to run; definitions stay as they are written."""
    runs = row_of(bound).runs
    if runs is Runs.QUERY and not getattr(bound, "with_data", True):
        return bound  # WITH NO DATA: nothing is run
    return _with(bound, runs, change)


def _with(bound: Any, runs: Runs, change: Callable[[Any], Any]) -> st.Statement:
    """Return a statement with ``change`` made to what of it is run: all of it, or the query that it is filled from."""
    made: st.Statement = bound
    if runs is Runs.WHOLE:
        made = change(bound)
    elif runs is Runs.QUERY and bound.query is not None:
        query = change(bound.query)
        made = bound if query is bound.query else replace(bound, query=query)
    return made


def _prepared(context: BindContext, bound: st.Statement) -> st.Statement:
    """Return what is about to run without COLLATE, with the bodies of users' functions, and as row-level
    security lets it.
    """
    if COLLATIONS in context.flags:
        bound = _run_as(bound, lambda node: settled(node, context.catalog, context.search_path))
    if "function" in context.flags:
        bound = _run_as(bound, lambda node: inline_calls(context, node))
    bound = _secured(context, bound)
    if COLLATIONS in context.flags and context.flags & {"function", "row security"}:
        bound = _run_as(bound, without_collations)  # of bodies and policies
    return bound


def _called_unfolded(context: BindContext, bound: st.Statement) -> set[int]:
    """Return the built-in functions with rights of their own that a statement calls, be it only while it is folded.

    None where no rights to any have been changed: those that not everybody may call from the start are never folded.
    """
    if isinstance(bound, st.Explain):
        return set(bound.body.functions)
    guarded, found = context.catalog.guarded_functions, set[int]()
    if len(guarded) == len(restricted_functions()):
        return found
    changed = guarded - restricted_functions().keys()

    def note(node: object) -> Any:
        found.update(restricted_calls(node, changed))
        return node

    _run_as(bound, note)
    return found


def _with_restricted(made: st.BoundStatement, guarded: frozenset[int]) -> st.BoundStatement:
    """Return a statement that says which built-in functions, of those that not everybody may call, it is about to call.

    These are asked for in what is left once it is folded: nobody asks who calls a strict function with NULL,
    as in PostgreSQL.
    """
    statement: Any = made.statement
    found = set(made.functions)
    if isinstance(statement, st.Explain):
        body = _with_restricted(statement.body, guarded)
        return replace(made, statement=replace(statement, body=body), functions=body.functions | found)

    def note(node: object) -> Any:
        found.update(restricted_calls(node, guarded))
        return node

    _run_as(statement, note)
    for value in made.stable:
        note(value)
    return replace(made, functions=frozenset(found))


def _secured(context: BindContext, bound: st.Statement) -> st.Statement:
    """Return what is about to run as row-level security lets it; definitions keep the tables."""
    if isinstance(bound, st.RefreshMaterializedView | st.CreateSubscription):
        made: st.Statement = secured(context, bound)
        return made
    return _with(bound, row_of(bound).runs, lambda tree: secured(context, tree))


def envelope(
    node: ast.StatementNode, text: str, context: BindContext, bound: st.Statement, *, finish: bool = True
) -> st.BoundStatement:
    """Wrap a bound statement with what executors and the plan cache need to know about it."""
    if isinstance(bound, st.Explain):
        body = replace(bound.body, params=context.env.params.finish())
        body = _stable(body)
        bound = replace(bound, body=body)
    bound = _prepared(context, bound)
    class_ = classify(bound)
    changes = "changes" in context.flags and not _only_defines(bound, class_)
    if changes:
        _check_changing(bound)
    if changes and class_ in (st.StatementClass.READ_ONLY, st.StatementClass.WRITE_ONLY):
        class_ = st.StatementClass.READ_THEN_WRITE  # what a function writes may rest on what it has read
    writes = relations_written(bound)
    fires = any(
        (table := context.catalog.relation_by_oid(oid)) is not None and table.triggers for oid in writes
    )
    if fires and class_ is st.StatementClass.WRITE_ONLY:
        class_ = st.StatementClass.READ_THEN_WRITE  # so may what triggers do
    returned = returned_rows(bound)
    made = st.BoundStatement(
        statement=bound,
        class_=class_,
        tag=command_tag(node),
        text=text,
        params=context.env.params.finish() if finish else (),
        columns=told_columns(returned),
        declared=declared_types(returned),
        reads=frozenset(context.reads),
        writes=writes,
        versions=tuple(context.versions.items()),
        volatile=context.volatile or fires,
        uses_virtual=context.uses_virtual,
        settings=frozenset(context.env.folded),
        functions=frozenset(context.functions | _called_unfolded(context, bound)),
        calls="calls" in context.flags,
        changes=changes,
        row_security=_bound_for(context),
    )
    if not finish:
        return made
    made = made if isinstance(bound, st.Explain) else _stable(made)
    return divided(
        context,
        _with_restricted(made, context.catalog.guarded_functions) if RESTRICTED in context.flags else made,
    )


def divided(context: BindContext, made: st.BoundStatement) -> st.BoundStatement:
    """Return a statement that reads partitions where it named partitioned tables (``planner.rules.partitions``)."""
    catalog = context.catalog
    if made.asked is not None:
        made = replace(made, asked=_run_as(made.asked, lambda tree: without_partitioned(tree, catalog)))
    named = [
        oid for oid in made.versions if (r := catalog.relation_by_oid(oid[0])) is not None and r.kind == "p"
    ]
    if not named:
        return made
    statement: Any = made.statement
    if isinstance(statement, st.Explain):
        return replace(made, statement=replace(statement, body=divided(context, statement.body)))
    runs = row_of(statement).runs
    if runs is Runs.NOTHING or (runs is Runs.QUERY and statement.query is None):
        return made
    statement = _with(statement, runs, lambda tree: without_partitioned(tree, catalog))
    versions = dict(made.versions)
    reads, writes = set(made.reads), set(made.writes)
    for oid, _version in named:
        parent = catalog.relation_by_oid(oid)
        below = [] if parent is None else descendants(parent, catalog)
        versions.update((table.oid, table.version) for table in below)
        tables = {table.oid for table in below if table.kind != "p"}
        reads |= tables if oid in reads else set()
        writes |= tables if oid in writes else set()
    return replace(
        made,
        statement=statement,
        versions=tuple(versions.items()),
        reads=frozenset(reads),
        writes=frozenset(writes),
    )


def _bound_for(context: BindContext) -> tuple[int, bool, int] | None:
    """Return for whom row-level security was looked at, None where there was none to look at."""
    security = context.security
    if security is None or "row security" not in context.flags:
        return None
    return security.key


def _only_defines(bound: st.Statement, class_: st.StatementClass) -> bool:
    """Tell whether a statement runs nothing of what it holds: a default, a view's query."""
    if row_of(bound).runs is Runs.QUERY:
        return isinstance(bound, st.CreateTable) and bound.query is None
    return class_ is st.StatementClass.DDL


def _check_changing(bound: st.Statement) -> None:
    """Raise 0A000 for a statement whose query may not call functions that write."""
    refused = row_of(bound).calls
    if refused:
        raise not_supported(f"a function that changes data in {refused}")


def _plain(made: st.BoundStatement) -> st.BoundStatement:
    statement = made.statement
    plain = _with(statement, row_of(statement).runs, without_domains)
    return made if plain is statement else replace(made, statement=plain)


_PLANNED: Final = (
    st.QueryStatement,
    qt.Insert,
    qt.Update,
    qt.Delete,
    qt.Merge,
    st.WithChanges,
    st.DeclareCursor,
)
"""What PostgreSQL surely plans when it runs, all of it."""


def _stable(made: st.BoundStatement) -> st.BoundStatement:
    """Fold constants and move stable values out of the trees an executor runs, which have plain types."""
    made = _plain(made)
    statement: Any = made.statement
    count = len(made.params)
    if made.volatile and changes_settings(statement):
        return made
    runs = row_of(statement).runs
    if runs is Runs.QUERY:
        # only what is read now: column defaults stay as they are defined
        if statement.query is None:
            return made
        folded = fold(statement.query)
        tree, stable = extract_stable(folded, count)
        lost = _falls_away(statement.query, folded)
        made = replace(made, asked=statement) if lost else made
        return replace(made, statement=replace(statement, query=tree), stable=stable)
    if runs is Runs.WHOLE:
        kept, met = fold_and_tell(statement)
        if met and isinstance(statement, _PLANNED):
            made = replace(made, fails=failure(kept))
        changed, stable = extract_stable(kept, count)
        if stable or changed is not statement:
            asked = statement if _falls_away(statement, kept) else None
            return replace(made, statement=changed, stable=stable, asked=asked)
    return made


def _falls_away(before: Any, after: Any) -> bool:
    """Tell whether columns or relations that a tree names are not named any more once it is folded."""
    return after is not before and _named(after) < _named(before)


def _named(tree: Any) -> int:
    return sum(isinstance(node, qt.Var | qt.Range) for node in walk(tree))


recursion.STATEMENT.supply(bind_node)
recursion.ENVELOPE.supply(envelope)

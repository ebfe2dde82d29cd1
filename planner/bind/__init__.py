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
from typing import Any

from pgwire.codecs.settings import DEFAULT, CodecSettings
from pgwire.give_way import give_way
from planner import ast
from planner import query as qt
from planner import statements as st
from planner.base.errors import SqlError, not_supported

# these register binders of AST classes
from planner.bind.change import with_items as changes
from planner.bind.context import BindContext, RowSecurity, WithStep, make_context
from planner.bind.define.table.generated import generated_from, generations
from planner.bind.expression import columns, compare, funcs, sublinks
from planner.bind.query.nesting import check_nesting
from planner.bind.query.row_security import secured
from planner.bind.query.select import bind_query
from planner.bind.stored import bind_check, coerce_argument, deparse_check, rebase_view
from planner.bind.stored.inline import inline_calls
from planner.catalog.guard import DROPS
from planner.catalog.rights import RESTRICTED
from planner.conversion.collations import COLLATIONS, settled, without_collations
from planner.partitions.bounds import descendants
from planner.query.walk import walk
from planner.rules.fold import fold
from planner.rules.partitions import without_partitioned
from planner.rules.plain import declared_types, told_columns, without_domains
from planner.rules.stable import changes_settings, extract_stable
from planner.statements.classify import RUN, classify, command_tag, relations_written, returned_rows

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
    statement: ast.Node,
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

    ``variable_params`` False: only parameters that were declared exist (42P02 for others). ``steps``: transition tables.
    ``security``: for whom it is to run; without it no table with row-level security may be in what runs.

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
        drops=isinstance(statement, DROPS),
    )
    context.steps.update(steps or {})
    try:
        bound = bind_node(context, statement)
        if keeps:
            from planner.bind.change.current_of import for_cursor

            bound = for_cursor(context, bound)
        return envelope(statement, text, context, bound)
    except RecursionError:
        raise SqlError(
            "54001",
            "stack depth limit exceeded",
            hint="Split the statement, or write it with less nesting.",
        ) from None


def bind_node(context: BindContext, node: ast.Node) -> st.Statement:
    """Bind a statement of any kind within a context. Raises as ``bind_statement``."""
    if changes.runs_in_parts(node):
        return changes.bind_with_changes(context, node)
    if isinstance(node, ast.Select | ast.SetOp | ast.Values):
        return st.QueryStatement(query=bind_query(context, node))
    binder = _binders().get(type(node))
    if binder is None:
        raise not_supported(command_tag(node))
    return binder(context, node)


def load() -> None:
    """Import the families of binders, which else the first statement does that is no query."""
    _binders()


_Binder = Callable[[BindContext, Any], st.Statement]
_BINDERS: dict[type, _Binder] = {}


def _binders() -> dict[type, _Binder]:
    """Return the binder of each AST class; the families are imported when first needed."""
    if _BINDERS:
        return _BINDERS
    for module in pkgutil.walk_packages(
        __path__, f"{__name__}."
    ):  # one by one: the first statement after a start may do it
        importlib.import_module(module.name)
        give_way()
    from planner.bind.change import copy, dml, merge
    from planner.bind.define import (
        absent,
        aggregates,
        alter_placed,
        collation,
        composite,
        conversions,
        database,
        domain,
        foreign,
        functions,
        grant,
        materialized,
        named_functions,
        opclasses,
        own_range,
        owned,
        policy,
        source,
        statistics,
        text_search,
        trigger,
        types,
    )
    from planner.bind.define import relations as ddl
    from planner.bind.define.table import alter, constraint_marks, index, sequence, table
    from planner.bind.session import libraries, procedure, subscribe, utility

    _BINDERS.update(
        {
            ast.Insert: dml.bind_insert,
            ast.Update: constraint_marks.bind_update_or_marks,
            ast.Delete: dml.bind_delete,
            ast.Merge: merge.bind_merge,
            ast.Copy: copy.bind_copy,
            ast.CreateTable: _without_params(table.bind_create_table),
            ast.CreateTableAs: table.bind_create_table_as,
            ast.RefreshMaterializedView: materialized.bind_refresh,
            ast.CreateSchema: ddl.bind_create_schema,
            ast.CreateTimeline: ddl.bind_create_timeline,
            ast.DropTimeline: ddl.bind_drop_timeline,
            ast.CreateDatabase: database.bind_create,
            ast.AlterDatabase: database.bind_alter,
            ast.DropDatabase: database.bind_drop,
            ast.AlterDefaults: database.bind_defaults,
            ast.CreateSource: _without_params(source.bind_create_source),
            ast.AlterSource: source.bind_alter_source,
            ast.DropSource: source.bind_drop_source,
            ast.CreateSequence: sequence.bind_create_sequence,
            ast.AlterSequence: sequence.bind_alter_sequence,
            ast.CreateView: _without_params(ddl.bind_create_view),
            ast.CreateIndex: _without_params(index.bind_create_index),
            ast.AlterTable: _without_params(alter.bind_alter_table),
            ast.ReassignOwned: owned.bind_reassign,
            ast.DropOwned: owned.bind_drop_owned,
            ast.AlterDefaultPrivileges: owned.bind_default_privileges,
            ast.Extension: owned.bind_extension,
            ast.DropAbsent: absent.bind_drop_absent,
            ast.CreateFunction: _without_params(functions.bind_create_function),
            ast.CreateAggregate: aggregates.bind_create_aggregate,
            ast.AlterFunction: named_functions.bind_alter_function,
            ast.DropFunction: named_functions.bind_drop_function,
            ast.Call: procedure.bind_call,
            ast.CreateTrigger: _without_params(trigger.bind_create_trigger),
            ast.RenameTrigger: trigger.bind_rename_trigger,
            ast.DropTrigger: trigger.bind_drop_trigger,
            ast.CommentOnTrigger: trigger.bind_comment_on_trigger,
            ast.CreatePolicy: _without_params(policy.bind_create_policy),
            ast.AlterPolicy: _without_params(policy.bind_alter_policy),
            ast.RenamePolicy: policy.bind_rename_policy,
            ast.DropPolicy: policy.bind_drop_policy,
            ast.CommentOnPolicy: policy.bind_comment_on_policy,
            ast.CreateTextSearch: text_search.bind_create,
            ast.AlterMapping: text_search.bind_alter_mapping,
            ast.AlterDictionary: text_search.bind_alter_dictionary,
            ast.AlterTextSearch: alter_placed.bind_alter,
            ast.DropTextSearch: text_search.bind_drop,
            ast.CommentOnTextSearch: text_search.bind_comment,
            ast.CreateStatistics: _without_params(statistics.bind_create),
            ast.AlterStatistics: statistics.bind_alter,
            ast.DropStatistics: statistics.bind_drop,
            ast.CommentOnStatistics: statistics.bind_comment,
            ast.DefineWrapper: foreign.bind_define_wrapper,
            ast.CreateServer: foreign.bind_create_server,
            ast.AlterServer: foreign.bind_alter_server,
            ast.UserMapping: foreign.bind_user_mapping,
            ast.AlterForeign: foreign.bind_alter,
            ast.DropForeign: foreign.bind_drop,
            ast.CommentOnForeign: foreign.bind_comment,
            ast.ImportForeignSchema: foreign.bind_import,
            ast.CreateConversion: conversions.bind_create,
            ast.AlterConversion: alter_placed.bind_alter,
            ast.DropConversion: conversions.bind_drop,
            ast.CommentOnConversion: conversions.bind_comment,
            ast.CreateOpfamily: opclasses.bind_create_family,
            ast.CreateOpclass: opclasses.bind_create_class,
            ast.ChangeOpfamily: opclasses.bind_change_family,
            ast.AlterOpclass: alter_placed.bind_alter,
            ast.DropOpclass: opclasses.bind_drop,
            ast.CommentOnOpclass: opclasses.bind_comment,
            ast.Do: procedure.bind_do,
            ast.CommentOnFunction: named_functions.bind_comment_on_function,
            ast.CreateEnum: types.bind_create_enum,
            ast.CreateComposite: composite.bind_create_composite,
            ast.CreateRange: own_range.bind_create_range,
            ast.AddEnumValue: types.bind_add_enum_value,
            ast.RenameEnumValue: types.bind_rename_enum_value,
            ast.CreateDomain: domain.bind_create_domain,
            ast.AlterDomain: domain.bind_alter_domain,
            ast.Rename: alter.bind_rename,
            ast.SetSchema: alter.bind_set_schema,
            ast.AlterOwner: alter.bind_alter_owner,
            ast.Drop: ddl.bind_drop,
            ast.Truncate: ddl.bind_truncate,
            ast.Grant: grant.bind_grant,
            ast.GrantRole: grant.bind_grant_role,
            ast.Execute: utility.bind_execute,
            ast.DeclareCursor: utility.bind_declare,
            ast.Subscribe: subscribe.bind_subscribe,
            ast.CreateSubscription: _without_params(subscribe.bind_create),
            ast.AcknowledgeSubscription: subscribe.bind_acknowledge,
            ast.DropSubscription: subscribe.bind_drop,
            ast.Transaction: utility.bind_transaction,
            ast.SetVariable: utility.bind_set,
            ast.Show: utility.bind_show,
            ast.Discard: utility.bind_discard,
            ast.SecurityLabel: libraries.bind_security_label,
            ast.Load: libraries.bind_load,
            ast.CreateCollation: collation.bind_create,
            ast.RefreshCollation: collation.bind_refresh,
            ast.AlterCollation: alter_placed.bind_alter,
            ast.DropCollation: collation.bind_drop,
            ast.CommentOnCollation: collation.bind_comment,
            ast.Prepare: utility.bind_prepare,
            ast.Deallocate: utility.bind_deallocate,
            ast.Fetch: utility.bind_fetch,
            ast.ClosePortal: utility.bind_close,
            ast.CreateRole: utility.bind_create_role,
            ast.AlterRole: utility.bind_alter_role,
            ast.DropRole: utility.bind_drop_role,
            ast.Maintenance: utility.bind_maintenance,
            ast.Comment: utility.bind_comment,
            ast.Notify: utility.bind_notify,
            ast.LockTable: utility.bind_lock,
            ast.SetConstraints: utility.bind_set_constraints,
            ast.Explain: _explain,
        }
    )
    return _BINDERS


def _without_params(binder: _Binder) -> _Binder:
    """Return ``binder`` for a statement whose text is kept: ``$n`` means nothing in it (42P02)."""

    def bound(context: BindContext, node: Any) -> st.Statement:
        context.env.params.variable = False
        return binder(context, node)

    return bound


def _explain(context: BindContext, node: ast.Explain) -> st.Statement:
    from planner.bind.session.utility import explain_options

    options = explain_options(node.options)
    inner = node.statement
    if not isinstance(
        inner,
        ast.Select | ast.SetOp | ast.Values | ast.Insert | ast.Update | ast.Delete | ast.Merge
        | ast.CreateTableAs | ast.RefreshMaterializedView | ast.DeclareCursor | ast.Execute | ast.Subscribe,
    ):  # fmt: skip
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
    if isinstance(bound, st.CreateTable | st.CreateMaterializedView) and not bound.with_data:
        return bound  # WITH NO DATA: nothing is run
    if isinstance(bound, st.CreateTable | st.CreateMaterializedView | st.RefreshMaterializedView):
        return bound if bound.query is None else replace(bound, query=change(bound.query))
    if isinstance(bound, RUN):
        changed: st.Statement = change(bound)
        return changed
    return bound


def _prepared(context: BindContext, bound: st.Statement) -> st.Statement:
    """Return what is about to run without COLLATE, with the bodies of users' functions, and as row-level security lets it."""
    if COLLATIONS in context.flags:
        bound = _run_as(bound, lambda node: settled(node, context.catalog, context.search_path))
    if "function" in context.flags:
        bound = _run_as(bound, lambda node: inline_calls(context, node))
    bound = _secured(context, bound)
    if RESTRICTED in context.flags:
        _run_as(bound, lambda node: _note_restricted(context, node))
    if COLLATIONS in context.flags and context.flags & {"function", "row security"}:
        bound = _run_as(bound, without_collations)  # of bodies and policies
    return bound


def _note_restricted(context: BindContext, node: Any) -> Any:
    """Note which built-in functions of those that not everybody may call are about to be called."""
    from planner.bind.stored.runnable import restricted_calls

    context.functions.update(restricted_calls(node))
    return node


def _secured(context: BindContext, bound: st.Statement) -> st.Statement:
    """Return what is about to run as row-level security lets it; definitions keep the tables."""
    made: st.Statement
    if isinstance(bound, st.RefreshMaterializedView | st.CreateSubscription):
        made = secured(context, bound)
        return made
    if isinstance(bound, st.CreateTable | st.CreateMaterializedView):
        return bound if bound.query is None else replace(bound, query=secured(context, bound.query))
    if isinstance(bound, RUN):
        made = secured(context, bound)
        return made
    return bound


def envelope(
    node: ast.Node, text: str, context: BindContext, bound: st.Statement, *, finish: bool = True
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
        functions=frozenset(context.functions),
        calls="calls" in context.flags,
        changes=changes,
        row_security=_bound_for(context),
    )
    if not finish:
        return made
    return divided(context, made if isinstance(bound, st.Explain) else _stable(made))


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
    if isinstance(statement, st.CreateTable | st.CreateMaterializedView | st.RefreshMaterializedView):
        if statement.query is not None:
            statement = replace(statement, query=without_partitioned(statement.query, catalog))
    elif isinstance(statement, RUN):
        statement = without_partitioned(statement, catalog)
    else:
        return made
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
    if isinstance(bound, st.CreateTable):
        return bound.query is None
    filled = isinstance(bound, st.CreateMaterializedView | st.RefreshMaterializedView)
    return class_ is st.StatementClass.DDL and not filled


def _check_changing(bound: st.Statement) -> None:
    """Raise 0A000 for a statement whose query may not call functions that write."""
    if isinstance(
        bound,
        st.QueryStatement
        | qt.Insert
        | qt.Update
        | qt.Delete
        | qt.Merge
        | st.WithChanges
        | st.Call
        | st.Do
        | st.Explain,
    ):
        return
    what = {st.DeclareCursor: "a cursor", st.Copy: "COPY"}.get(type(bound), "this statement")
    raise not_supported(f"a function that changes data in {what}")


def _plain(made: st.BoundStatement) -> st.BoundStatement:
    statement: Any = made.statement
    plain: Any
    if isinstance(statement, RUN):
        plain = without_domains(statement)
    elif isinstance(statement, st.CreateTable | st.CreateMaterializedView | st.RefreshMaterializedView):
        query: Any = without_domains(statement.query)
        plain = replace(statement, query=query)
    else:
        return made
    return made if plain is statement else replace(made, statement=plain)


def _stable(made: st.BoundStatement) -> st.BoundStatement:
    """Fold constants and move stable values out of the trees an executor runs, which have plain types."""
    made = _plain(made)
    statement = made.statement
    count = len(made.params)
    if made.volatile and changes_settings(statement):
        return made
    if isinstance(statement, st.CreateTable | st.CreateMaterializedView | st.RefreshMaterializedView):
        # only what is read now: column defaults stay as they are defined
        if statement.query is None:
            return made
        folded = fold(statement.query)
        tree, stable = extract_stable(folded, count)
        lost = _falls_away(statement.query, folded)
        made = replace(made, asked=statement) if lost else made
        return replace(made, statement=replace(statement, query=tree), stable=stable)
    if isinstance(statement, RUN):
        kept = fold(statement)
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

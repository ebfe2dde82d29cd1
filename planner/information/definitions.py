"""pg_get_*def: the SQL text of views, constraints, indexes, defaults and functions.

What the catalog stores is canonical text with every relation qualified; these functions bind it anew and print it
for the reader: names that the search path finds go unqualified, and with ``pretty`` only the parentheses and casts
that are needed remain.
"""

from __future__ import annotations

import functools
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pgwire.codecs.invalid import quoting
from pgwire.codecs.settings import CodecSettings
from planner.base.errors import SqlError, not_supported
from planner.base.quoting import quote_ident
from planner.bind.define.table.partition import key_definition, shown_condition
from planner.bind.expression.expr import bind_clause
from planner.bind.query.select import bind_view
from planner.bind.scope import Scope
from planner.bind.stored import coerce_default, stored_context, table_scope
from planner.bind.stored.domain_checks import stored_check
from planner.bind.stored.shown import index_definition, index_key_text
from planner.catalog import ConstraintDef, IndexDef, RelationDef, TypeDef
from planner.catalog.relation_kinds import BY_QUERY
from planner.conversion.resolve import default_arguments
from planner.deparse import (
    Reader,
    check_definition,
    deparse_expr,
    deparse_query,
    exclusion_definition,
    foreign_key_definition,
    timing_words,
)
from planner.deparse import key_definition as constraint_key_definition
from planner.deparse.expr import depends_on_styles
from planner.facts import FLOAT8, ProcFact, facts, rows
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.system.function_names import entry_points
from planner.functions.system.names import (
    opclass_is_visible,
    qualifier,
    relation_visible,
    shown_schema,
    type_name,
)
from planner.functions.values.reg import find_relation
from planner.information.named_constants import as_literals_are, for_reader, names_for_reader
from planner.parse import parse_expression
from planner.partitions.bounds import bound_text
from planner.query import Const
from planner.types.facts import format_type

if TYPE_CHECKING:
    from planner.deparse import Reader
    from planner.query import Expr

FunctionNamer = Callable[[int, str, str], str]
MAX_CACHED_TEXTS = 4096
# Texts that read the same in plain and in pretty form: literals with a cast, calls without arguments.
_ATOM = re.compile(
    r"(?:'(?:[^']|'')*'(?:::[a-z][a-z ]*(?:\(\d+\))?)?|-?\d+(?:\.\d+)?|true|false|\w+\(\)|[A-Z_]+)"
)
_BOUND = re.compile(r"FOR VALUES |DEFAULT$")


# --- expressions ----------------------------------------------------------------------------------


class _Texts:
    """Printed expressions by what they depend on; the oldest go first."""

    def __init__(self) -> None:
        self._texts: OrderedDict[tuple[object, ...], str] = OrderedDict()

    def get(self, key: tuple[object, ...]) -> str | None:
        text = self._texts.get(key)
        if text is not None:
            self._texts.move_to_end(key)
        return text

    def put(self, key: tuple[object, ...], text: str) -> None:
        self._texts[key] = text
        if len(self._texts) > MAX_CACHED_TEXTS:
            self._texts.popitem(last=False)


_TEXTS = _Texts()


def shown_expression(session: EvalSession, sql: str, relation: RelationDef, *, pretty: bool = False) -> str:
    """Return a stored expression over ``relation``'s columns as a reader sees it, relations apart."""
    names_others = _TYPE_BY_OID in sql or _SUB_SELECT.search(sql) is not None
    if depends_on_styles(sql, session.codec_settings):
        names_others = True
    elif not names_others and (not pretty or _ATOM.fullmatch(sql)):
        return sql
    key = (sql, relation.oid, relation.version, pretty, *(reading(session) if names_others else ()))
    text = _TEXTS.get(key)
    if text is None:
        expr = _bind(session, sql, relation)
        text = deparse_expr(
            expr, relation, pretty=pretty, settings=shown_settings(session), qualify=qualifier(session),
            type_name=type_namer(session), function_name=function_namer(session),
        )  # fmt: skip
        _TEXTS.put(key, text)
    return text


# of a policy, maybe without columns; what it reads has its schema in the stored text
_SUB_SELECT = re.compile(r"\( (?:SELECT|VALUES|WITH)\b")
_TYPE_BY_OID = '"#'  # ``planner.types.facts.stored_type``


def reading(session: EvalSession) -> tuple[object, ...]:
    """Return what the names of users' types and of their values, and the looks of constants, depend on."""
    return (
        session.quotes_all,
        session.search_path,
        session.catalog.namespace_version,
        session.codec_settings.styles,
        session.escapes,
    )


def shown_settings(session: EvalSession) -> CodecSettings:
    """Return the settings under which definitions show constants: the reader's, as in PostgreSQL."""
    return session.output_settings


def reader_of(session: EvalSession) -> Reader:
    """Return the session as the reader of definitions."""
    return Reader(
        shown_settings(session), type_namer(session), function_namer(session), session.catalog, opclass_namer(session),
        partial(shown_schema, session),
    )  # fmt: skip


def type_namer(session: EvalSession) -> Callable[[int, int | None], str]:
    """Return the function that gives a type the name by which the reader finds it."""
    return lambda oid, typmod: type_name(session, oid, typmod) or "-"


def opclass_namer(session: EvalSession) -> Callable[[int], str]:
    """Return what gives a users' operator class the name by which the reader finds it."""

    def name(oid: int) -> str:
        found = session.catalog.opclass_by_oid(oid)
        if found is None:
            return "-"
        shown = quote_ident(found.name)
        return (
            shown if opclass_is_visible("opclass", session, oid) else f"{quote_ident(found.schema)}.{shown}"
        )

    return name


def function_namer(session: EvalSession) -> FunctionNamer:
    """Return what tells what the reader has to write for a user's function (oid, schema, name)."""
    from planner.information.functions import namer  # which ask here what is built in

    return namer(session)


def _bind(session: EvalSession, sql: str, relation: RelationDef) -> Expr:
    context = stored_context(session.catalog, sql)
    clause = "POLICY" if _SUB_SELECT.search(sql) else "CHECK"
    expr = bind_clause(table_scope(context, relation), parse_expression(sql), clause)
    # the conversion to a column's type is not shown, but what it converts gets parentheses
    column = next((c for c in relation.columns if c.default_sql == sql), None)
    return expr if column is None else coerce_default(expr, column.name, column.type, context.env)


def get_expr(session: EvalSession, tree: str, relation_oid: int, pretty: bool = False) -> str | None:
    """SQL's ``pg_get_expr``: a default or check; NULL when the relation is gone; 0 for text that needs none."""
    if relation_oid == 0:
        return _without_relation(session, tree)
    relation = session.catalog.relation_by_oid(relation_oid)
    if relation is None:
        return None
    if relation.partition_of and _BOUND.match(tree):
        return _shown_bound(session, relation) or tree
    for texts in _lists(relation):
        if ", ".join(texts) == tree:  # pg_index.indexprs, pg_statistic_ext.stxexprs
            shown = [shown_expression(session, text, relation, pretty=pretty) for text in texts]
            # a CASE begins a line, and leaves no blank behind the one before
            joined = "".join(("," if text.startswith("\n") else ", ") + text for text in shown)
            return for_reader(session, joined.removeprefix(", ").removeprefix(",\n"))
    return for_reader(session, shown_expression(session, tree, relation, pretty=pretty))


def _without_relation(session: EvalSession, sql: str) -> str:
    """Return a stored expression as a reader sees it who says that it is about no relation: a domain's default, or
    the check of one, which cannot be bound alone.
    """
    if _TYPE_BY_OID not in sql and not depends_on_styles(sql, session.codec_settings):
        return for_reader(session, sql)
    try:
        return as_literals_are(session, shown_value(session, sql))
    except SqlError:
        return for_reader(session, sql)


def _lists(relation: RelationDef) -> Iterator[Sequence[str]]:
    """Yield the lists of expressions that a table's indexes and extended statistics have."""
    for every in (
        *(i.expressions for i in relation.every_index),
        *(s.expressions for s in relation.statistics),
    ):
        texts = [text for text in every if text]
        if len(texts) > 1:
            yield texts


def _shown_bound(session: EvalSession, partition: RelationDef) -> str | None:
    """Return a partition's bound as the reader's settings show it; None where its table is none, or no more."""
    parent = session.catalog.relation_by_oid(partition.partition_of)
    if partition.bound is None or parent is None or parent.partition_key is None:
        return None
    shown = bound_text(partition.bound, parent, shown_settings(session))
    return as_literals_are(session, shown)


def partition_key_definition(session: EvalSession, oid: int) -> str | None:
    """SQL's ``pg_get_partkeydef``; NULL for what is not partitioned."""
    return partition_key_definitions(session)(oid)


def partition_key_definitions(session: EvalSession) -> Callable[[int], str | None]:
    """Return ``pg_get_partkeydef`` for many relations."""
    catalog = session.catalog
    find = catalog.relation_by_oid

    def definition(oid: int) -> str | None:
        relation = find(oid)
        if relation is None or relation.partition_key is None:
            return None  # as for nearly all: an import, even one done before, takes longer than the question

        return for_reader(session, key_definition(relation, catalog, reader_of(session)))

    return definition


def partition_constraint_definition(session: EvalSession, oid: int) -> str | None:
    """SQL's ``pg_get_partition_constraintdef``; NULL for what is no partition, or has no condition."""
    relation = session.catalog.relation_by_oid(oid)
    if relation is None:
        return None
    shown = shown_condition(relation, session.catalog, reader_of(session))
    return None if shown is None else for_reader(session, shown)


# --- constraints and indexes ----------------------------------------------------------------------


def constraint_definition(session: EvalSession, oid: int, pretty: bool = False) -> str | None:
    """SQL's ``pg_get_constraintdef``; NULL for an unknown oid."""
    found = session.catalog.constraint_by_oid(oid)
    if found is not None:
        return constraint_text(session, *found, pretty=pretty)
    of_domain = session.catalog.domain_constraint(oid)
    return None if of_domain is None else domain_constraint_text(session, *of_domain, pretty=pretty)


def domain_constraint_text(
    session: EvalSession, made: TypeDef, constraint: ConstraintDef, *, pretty: bool
) -> str:
    """Return the definition of a domain's CHECK."""
    expr = stored_check(session.catalog, made, constraint.check_sql, plain=False)
    shown = deparse_expr(
        expr, pretty=pretty, settings=shown_settings(session), type_name=type_namer(session),
        function_name=function_namer(session),
    )  # fmt: skip
    return check_definition(for_reader(session, shown)) + ("" if constraint.validated else " NOT VALID")


def shown_value(session: EvalSession, sql: str) -> str:
    """Return the stored default of a domain as a reader sees it: a text of the catalog, whose literals are
    standard ones.
    """
    expr = bind_clause(Scope(context=stored_context(session.catalog, sql)), parse_expression(sql), "DEFAULT")
    shown = deparse_expr(
        expr,
        settings=shown_settings(session),
        type_name=type_namer(session),
        function_name=function_namer(session),
    )
    return names_for_reader(session, shown)


def constraint_text(
    session: EvalSession, table: RelationDef, constraint: ConstraintDef, *, pretty: bool
) -> str:
    """Return the definition of a table's constraint."""
    timing = timing_words(constraint)
    if constraint.kind == "t":
        return "TRIGGER" + timing
    if constraint.foreign is not None:
        referenced = session.catalog.relation_by_oid(constraint.foreign.table)
        if referenced is None:
            raise RuntimeError(f"foreign key {constraint.name} refers to a table that is gone")
        return foreign_key_definition(constraint, table, referenced, qualifier(session)) + timing
    if constraint.kind == "c":
        sql = constraint.check_sql
        shown = for_reader(session, shown_expression(session, sql, table, pretty=pretty))
        return check_definition(shown) + (" NO INHERIT" if constraint.no_inherit else "") + timing
    names = {c.attnum: c.name for c in table.columns}
    index = next((i for i in table.indexes if i.oid == constraint.index_oid), None)
    if constraint.kind == "x":
        where = constraint.check_sql
        if where:
            where = for_reader(session, shown_expression(session, where, table, pretty=pretty))
        operators = [facts().operators[oid].name for oid in constraint.operators]
        if index is None:
            raise AssertionError("an exclusion constraint has no index")
        keys = [
            for_reader(
                session, index_key_text(index, table, position, pretty=pretty, reader=reader_of(session))
            )
            for position in range(len(index.attnums))
        ]
        include = [names[a] for a in index.include]
        return exclusion_definition(index, keys, operators, where, include) + timing
    return (
        constraint_key_definition(
            constraint.kind == "p",
            [names[a] for a in constraint.attnums],
            include=[names[a] for a in index.include] if index is not None else (),
            nulls_not_distinct=index is not None and index.nulls_not_distinct,
        )
        + timing
    )


def find_index(session: EvalSession, oid: int) -> tuple[RelationDef, IndexDef] | None:
    """Return the table and the index with this oid."""
    relation = session.catalog.relation_by_oid(oid)
    if relation is None or relation.kind != "i":
        return None
    table = session.catalog.relation_by_oid(relation.table_oid)
    if table is None:
        return None
    return table, next(i for i in table.every_index if i.oid == oid)


def whole_index_definition(session: EvalSession, oid: int) -> str | None:
    """SQL's ``pg_get_indexdef(oid)``: the table always with its schema; NULL for an unknown oid."""
    found = find_index(session, oid)
    if found is None:
        return None
    return for_reader(session, index_definition(found[1], found[0], reader=reader_of(session)))


def index_definition_part(session: EvalSession, oid: int, position: int, pretty: bool) -> str | None:
    """SQL's ``pg_get_indexdef(oid, column, pretty)``: one column's definition, or all when ``column`` is 0."""
    found = find_index(session, oid)
    if found is None:
        return None
    table, index = found
    if position == 0:
        shown = index_definition(
            index, table, pretty=pretty, qualify=qualifier(session), reader=reader_of(session)
        )
        return for_reader(session, shown)
    attnums = index.attnums + index.include
    if not 1 <= position <= len(attnums):
        return ""
    if position <= len(index.attnums):
        shown = index_key_text(index, table, position - 1, pretty=pretty, reader=reader_of(session))
        return for_reader(session, shown)
    return quote_ident(next(c.name for c in table.columns if c.attnum == attnums[position - 1]))


# --- views ----------------------------------------------------------------------------------------


_RULE_NAMES = ("old", "new")  # the rows before and after, in the rule that PostgreSQL makes of a view


def view_text(session: EvalSession, view: RelationDef, *, pretty: bool) -> str | None:
    """Return a view's query as the reader's search path shows it; NULL for what is no stored view."""
    if view.kind not in BY_QUERY or not view.view_sql:
        return None
    # which names need their schema depends on the search path and on the names there are; lists of columns
    # follow what is read
    found = [session.catalog.relation_by_oid(oid) for oid in view.depends_on]
    versions = tuple([0 if one is None else one.version for one in found])
    names = tuple([column.name for column in view.columns])
    key = (view.oid, view.view_sql, names, pretty, versions, *reading(session))
    text = _TEXTS.get(key)
    if text is None:
        context = stored_context(session.catalog, view.view_sql, view.view_path)
        try:
            query = bind_view(context, view)
        except SqlError:
            return (
                view.view_sql + ";"
            )  # as it was stored: who asks for many views, like pg_dump, gets the others
        shown = deparse_query(
            query, pretty=pretty, settings=shown_settings(session), qualify=qualifier(session),
            type_name=type_namer(session), function_name=function_namer(session), names=names, taken=_RULE_NAMES,
        )  # fmt: skip
        text = for_reader(session, shown) + ";"
        _TEXTS.put(key, text)
    return text


def view_definition(session: EvalSession, oid: int, pretty: bool = False) -> str | None:
    """SQL's ``pg_get_viewdef(oid, pretty)``."""
    view = session.catalog.relation_by_oid(oid)
    return None if view is None else view_text(session, view, pretty=pretty)


def wrapped_view_definition(session: EvalSession, oid: int, column: int) -> str | None:
    """SQL's ``pg_get_viewdef(oid, wrap_column)``: pretty; only column 0 (a line for each item) is supported."""
    if column != 0:
        raise not_supported("pg_get_viewdef with a wrap column other than 0")
    return view_definition(session, oid, True)


def named_view_definition(session: EvalSession, name: str, pretty: bool = False) -> str | None:
    """SQL's ``pg_get_viewdef(name, pretty)``; 42P01."""
    view = find_relation(session, name)
    if view is None:
        raise SqlError("42P01", quoting("relation ", name, " does not exist"))
    return view_text(session, view, pretty=pretty)


RULE_OID_BASE = 0xC000_0000


def rule_definition(session: EvalSession, oid: int, pretty: bool = False) -> str | None:
    """SQL's ``pg_get_ruledef``: the _RETURN rule of a view
    (``engine.catalog.relations.dependency_rows.rewrite_oid``).
    """
    view = session.catalog.relation_by_oid(oid & ~RULE_OID_BASE) if oid >= RULE_OID_BASE else None
    text = view_text(session, view, pretty=pretty) if view is not None else None
    if view is None or text is None:
        return None
    name = quote_ident(view.name)
    if not pretty or not relation_visible(session, view):
        name = f"{shown_schema(session, view.schema)}.{name}"
    return f'CREATE RULE "_RETURN" AS\n    ON SELECT TO {name} DO INSTEAD {text}'


# --- functions ------------------------------------------------------------------------------------

_MODES = {"i": "", "o": "OUT ", "b": "INOUT ", "v": "VARIADIC "}


def _default(value: Expr) -> str:
    """Return a default's text; those of float8 were written as decimals."""
    if isinstance(value, Const) and value.type.oid == FLOAT8:
        return str(value.value)
    return deparse_expr(value)


def _arguments(proc: ProcFact, *, defaults: bool) -> str:
    types = proc.all_arg_types or proc.arg_types
    modes = proc.arg_modes or ("i",) * len(types)
    names = proc.arg_names or ("",) * len(types)
    values = default_arguments(proc) if defaults else ()
    aggregate = facts().aggregates.get(proc.oid)
    order_at = aggregate.direct_args if aggregate is not None and aggregate.kind != "n" else -1
    parts: list[str] = []
    inputs = 0
    for oid, mode, name in zip(types, modes, names, strict=True):
        if mode == "t":
            continue
        text = _MODES[mode] + (quote_ident(name) + " " if name else "") + format_type(oid)
        if mode in "ibv":
            inputs += 1
            left = len(proc.arg_types) - inputs
            if left < len(values):
                text += " DEFAULT " + _default(values[len(values) - 1 - left])
        parts.append(text)
    return ", ".join(parts) if order_at < 0 else with_order(parts, order_at)


def with_order(parts: Sequence[str], direct: int) -> str:
    """Return the arguments of an ordered-set aggregate, of which ``direct`` stand before ORDER BY; a VARIADIC
    one stands on both sides.
    """
    ordered = parts[direct:] or parts[-1:]
    return f"{', '.join(parts[:direct])} ORDER BY {', '.join(ordered)}".lstrip()


def function_arguments(oid: int) -> str | None:
    """SQL's ``pg_get_function_arguments``: with names, modes and defaults."""
    proc = facts().procs.get(oid)
    return None if proc is None else _arguments(proc, defaults=True)


def function_identity_arguments(oid: int) -> str | None:
    """SQL's ``pg_get_function_identity_arguments``: without defaults."""
    proc = facts().procs.get(oid)
    return None if proc is None else _arguments(proc, defaults=False)


def function_result(oid: int) -> str | None:
    """SQL's ``pg_get_function_result``; NULL for procedures."""
    proc = facts().procs.get(oid)
    if proc is None or proc.kind == "p":
        return None
    if proc.arg_modes is not None and "t" in proc.arg_modes:
        types, names = proc.all_arg_types or (), proc.arg_names or ()
        columns = [
            f"{quote_ident(name)} {format_type(t)}"
            for t, mode, name in zip(types, proc.arg_modes, names, strict=True)
            if mode == "t"
        ]
        return f"TABLE({', '.join(columns)})"
    return ("SETOF " if proc.returns_set else "") + format_type(proc.result)


def function_argument_default(oid: int, position: int) -> str | None:
    """SQL's ``pg_get_function_arg_default``: the default of an input argument counted from 1, or NULL."""
    proc = facts().procs.get(oid)
    if proc is None:
        return None
    values = default_arguments(proc)
    index = position - 1 - (len(proc.arg_types) - len(values))
    return _default(values[index]) if 0 <= index < len(values) else None


@dataclass(frozen=True, slots=True)
class _Source:
    """What a function's definition shows besides its signature."""

    language: int
    parallel: str
    leakproof: bool
    security_definer: bool
    cost: float
    rows: float


@functools.cache
def _sources() -> dict[int, _Source]:
    return {
        int(row["oid"]): _Source(
            int(row["prolang"]), row["proparallel"], row["proleakproof"] == "t", row["prosecdef"] == "t",
            float(row["procost"]), float(row["prorows"]),
        )
        for row in rows("functions")
    }  # fmt: skip


INTERNAL_LANGUAGE = 12
_LANGUAGES = {12: "internal", 13: "c", 14: "sql"}
_VOLATILITY = {"i": "IMMUTABLE", "s": "STABLE", "v": ""}
_PARALLEL = {"s": "PARALLEL SAFE", "r": "PARALLEL RESTRICTED", "u": ""}


def function_definition(oid: int) -> str | None:
    """SQL's ``pg_get_functiondef``; 42809 for aggregates, 0A000 for the few whose body is SQL."""
    proc = facts().procs.get(oid)
    if proc is None:
        return None
    if proc.kind == "a":
        raise SqlError("42809", f'"{proc.name}" is an aggregate function')
    source = _sources()[oid]
    if source.language != INTERNAL_LANGUAGE:
        raise not_supported(f"the definition of function {proc.name}, whose language is not internal")
    text = f"CREATE OR REPLACE FUNCTION {quote_ident('pg_catalog')}.{quote_ident(proc.name)}({_arguments(proc, defaults=True)})\n"
    text += f" RETURNS {function_result(oid)}\n LANGUAGE {quote_ident(_LANGUAGES[source.language])}\n"
    words = ["WINDOW"] if proc.kind == "w" else []
    words += [_VOLATILITY[proc.volatility], _PARALLEL[source.parallel], "STRICT" if proc.strict else ""]
    words += ["SECURITY DEFINER" if source.security_definer else "", "LEAKPROOF" if source.leakproof else ""]
    words.append(f"COST {source.cost:g}" if source.cost != 1 else "")
    words.append(f"ROWS {source.rows:g}" if source.rows not in (0, 1000) else "")
    line = " ".join(word for word in words if word)
    text += f" {line}\n" if line else ""
    return text + f"AS $function${entry_points().get(oid, proc.name)}$function$\n"


def _register() -> None:
    python = REGISTRY.python
    for signature in ("pg_get_expr(pg_node_tree,oid)", "pg_get_expr(pg_node_tree,oid,bool)"):
        python(signature, get_expr, needs_session=True)
    for signature in ("pg_get_constraintdef(oid)", "pg_get_constraintdef(oid,bool)"):
        python(signature, constraint_definition, needs_session=True)
    python("pg_get_indexdef(oid)", whole_index_definition, needs_session=True)
    python("pg_get_indexdef(oid,int4,bool)", index_definition_part, needs_session=True)
    for signature in ("pg_get_viewdef(oid)", "pg_get_viewdef(oid,bool)"):
        python(signature, view_definition, needs_session=True)
    for signature in ("pg_get_viewdef(text)", "pg_get_viewdef(text,bool)"):
        python(signature, named_view_definition, needs_session=True)
    python("pg_get_viewdef(oid,int4)", wrapped_view_definition, needs_session=True)
    for signature in ("pg_get_ruledef(oid)", "pg_get_ruledef(oid,bool)"):
        python(signature, rule_definition, needs_session=True)
    python(
        "pg_get_partkeydef(oid)", partition_key_definition, needs_session=True,
        for_rows=partition_key_definitions,
    )  # fmt: skip
    python("pg_get_partition_constraintdef(oid)", partition_constraint_definition, needs_session=True)


_register()

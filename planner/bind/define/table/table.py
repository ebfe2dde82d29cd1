"""CREATE TABLE and its pieces: columns, defaults, checks, keys, LIKE.

    CREATE TABLE t (a int PRIMARY KEY, b text DEFAULT 'x' CHECK (b <> ''))
      columns  a int4 not null, b text default 'x'::text
      keys     primary (a)
      checks   (b <> ''::text) over column b

Checks are bound over the table as it will be, so attnums are known; constraint names are chosen when the statement
runs (``planner.bind.define.table.table_parts``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pgwire.give_way import paced
from planner import ast
from planner import statements as st
from planner.base.errors import Span, SqlError, not_supported
from planner.bind.change.changing_items import modifies
from planner.bind.context import BindContext
from planner.bind.define.statistics import copied_statistics
from planner.bind.define.table.exclusion import exclusion_spec, exclusions_of_partitions
from planner.bind.define.table.generated import columns_used
from planner.bind.define.table.index import computed_index, create_index, index_keys, key_names, with_hidden
from planner.bind.define.table.options import check_storage_options
from planner.bind.define.table.partition import bind_bound, bind_key
from planner.bind.define.table.placing import creation_schema, persistence_of
from planner.bind.define.table.sequence import drawn_from
from planner.bind.define.table.table_parts import (
    TableParts,
    _used_names,
    add_column,
    add_constraint,
    bind_generated,
    bound_checks,
    bound_default,
    bound_foreign_keys,
    check_access_method,
    check_column_name,
    check_key_columns,
    check_tablespace,
    makes_sequence,
    refuse_constraint,
    relation_of,
    with_attributes,
)
from planner.bind.define.table.typed import type_of_table, typed_columns
from planner.bind.query.select import bind_query
from planner.bind.session.utility import bind_execute
from planner.bind.stored.evaluated import bind_check
from planner.catalog import ColumnDef, RelationDef
from planner.catalog.relation_kinds import COLUMNED, RELATION_KINDS
from planner.conversion.collations import COLLATE_HINT, query_collations, type_collation
from planner.conversion.type_names import check_column_type
from planner.facts import INT8, UNKNOWN
from planner.query import QueryExpr
from planner.statements.foreign_options import new_options, server_named
from planner.types.facts import format_type

MAX_COLUMNS = 1600


# --- LIKE -----------------------------------------------------------------------------------------


def add_like(context: BindContext, parts: TableParts, node: ast.TableLike) -> None:
    """Copy another relation's columns, and with INCLUDING its defaults, checks and keys."""
    source = node.relation
    if parts.foreign_table:
        raise SqlError("0A000", "LIKE is not supported for creating foreign tables", span=source.span)
    relation = context.relation(source.schema, source.name, source.span, catalog=source.catalog)
    if relation.kind not in COLUMNED:
        raise SqlError(
            "42809",
            f'relation "{relation.name}" is invalid in LIKE clause',
            detail=f"This operation is not supported for {RELATION_KINDS[relation.kind].plural}.",
            span=source.span,
        )
    parts.likes.append(relation.oid)
    words = node.including
    every = "all" in words
    if every or "comments" in words:
        parts.commented.append(relation.oid)
    for column in relation.live:
        spec = st.ColumnSpec(
            name=column.name, type=column.declared, not_null=column.not_null, collation=column.collation,
            storage=column.storage if every or "storage" in words else "",
            compression=column.compression if every or "compression" in words else "",
        )  # fmt: skip
        if column.generated:
            if every or "generated" in words:
                spec = replace(spec, generated="s", default_sql=column.default_sql)
        elif column.identity:
            if every or "identity" in words:
                drawn = context.catalog.relation_by_oid(drawn_from(column) or 0)
                if drawn is not None and drawn.sequence is not None:
                    # of the widest type, whatever the column's is, with the bounds that it had
                    copied = replace(
                        drawn.sequence,
                        type_oid=INT8,
                        generation=0,
                        restart=None,
                        owner_table=0,
                        owner_attnum=0,
                    )
                    spec = replace(spec, identity=column.identity, sequence=st.ColumnSequence(copied))
        elif (every or "defaults" in words) and column.default_sql is not None:
            spec = replace(
                spec,
                default_sql=column.default_sql,
            )
        parts.columns.append(spec)
        parts.spans.append(source.span)
    if every or "constraints" in words:
        for constraint in relation.constraints:
            if constraint.kind == "c":
                parts.copied_checks.append((relation, constraint))
    if every or "indexes" in words:
        _like_indexes(parts, relation, source.span)
    if every or "statistics" in words:
        parts.copied_statistics.append(relation)


def _like_indexes(parts: TableParts, relation: RelationDef, span: Span | None) -> None:
    names = {column.attnum: column.name for column in relation.columns}
    for index in relation.every_index:
        if not index.constraint_oid:
            parts.copied_indexes.append((relation, index))
            continue
        parts.keys.append(
            st.KeySpec(
                name=None,
                primary=index.primary,
                columns=tuple(
                    names[a] if a else index.key_names[place] for place, a in enumerate(index.key_columns)
                ),
                expressions=index.expressions,
                nulls_not_distinct=index.nulls_not_distinct,
                include=tuple(names[a] for a in index.include),
                deferrable=index.deferrable,
                deferred=any(c.oid == index.constraint_oid and c.deferred for c in relation.constraints),
                operators=next(
                    (c.operators for c in relation.constraints if c.oid == index.constraint_oid), ()
                ),
                method=index.method,
                where_sql=next(
                    (c.check_sql for c in relation.constraints if c.oid == index.constraint_oid), ""
                ),
                options=index.options,
                index_names=index.key_names,
            )
        )


def _indexes(context: BindContext, parts: TableParts, table: RelationDef) -> tuple[st.CreateIndex, ...]:
    """Return the statements for copied indexes without constraints; the hidden columns of each are behind
    those before.
    """
    found: list[st.CreateIndex] = []
    by_name = {column.name: column.attnum for column in table.live}
    for source, index in parts.copied_indexes:
        attnum_of = {column.attnum: by_name[column.name] for column in source.live}
        definition = replace(
            index, name="", include=tuple(attnum_of[a] for a in index.include), written=(), key_names=()
        )
        hidden: tuple[ColumnDef, ...] = ()
        if index.computed:
            # the texts mean the same over the new table: its columns have the same names
            written = tuple(attnum_of.get(a, 0) for a in index.written)
            keys, where = index_keys(replace(index, written=written), table, context.catalog)
            definition, hidden = computed_index(definition, table, keys, where, context.catalog)
            table = with_hidden(table, hidden)
        else:
            definition = replace(definition, attnums=tuple(attnum_of[a] for a in index.attnums))
        attnums = index.key_columns + index.include
        # an index keeps what its columns were called when it was made
        names = index.key_names or key_names([source.column(a).name for a in attnums])
        made = create_index(0, definition, names, hidden)
        found.append(replace(made, keeps_names=bool(index.key_names)))
    return tuple(found)


def _copied(context: BindContext, parts: TableParts, relation: RelationDef) -> list[st.CheckSpec]:
    """Bind copied checks over the new table: the same text, since column names are the same."""
    result: list[st.CheckSpec] = []
    for _, constraint in parts.copied_checks:
        sql = constraint.check_sql
        expr = bind_check(sql, relation, context.catalog)
        used = columns_used(expr)
        columns = _used_names(relation, used)
        result.append(
            st.CheckSpec(
                name=constraint.name, expr=expr, sql=sql, columns=columns, no_inherit=constraint.no_inherit
            )
        )
    return result


# --- CREATE TABLE -----------------------------------------------------------------------------------


def bind_create_table(context: BindContext, node: ast.CreateTable) -> st.CreateTable:
    """Bind CREATE TABLE.

    Raises SqlError 42701, 42601, 42703, 42704, 42804, 42P16, 3F000, 22023, 54011, and 0A000 naming what is not
    supported (generated columns, inheritance, partitions ...).
    """
    for construct in node.unsupported:
        raise not_supported(construct, span=node.span)
    check_tablespace(node.tablespace)
    check_access_method(node.access_method)
    schema = creation_schema(context, node.relation, node.relation.span)
    persistence = persistence_of(node.relation, schema)
    taken = context.holder(schema, node.relation.name) is not None
    if taken and node.if_not_exists:  # told to who may create there, and nothing else is looked at
        return st.CreateTable(
            schema=schema,
            name=node.relation.name,
            if_not_exists=True,
            columns=(),
            persistence=persistence,
        )
    parent = None if node.parent is None else _partitioned(context, node.parent, persistence)
    if node.on_commit and persistence != "t":
        raise SqlError("42P16", "ON COMMIT can only be used on temporary tables")
    parts = TableParts(
        table=node.relation.name,
        schema=schema,
        makes_sequences=any(map(makes_sequence, node.elements)),
        foreign_table=bool(node.server),
    )
    if parent is not None:
        parts.columns += inherited_columns(parent)
    of_type = None if node.of_type is None else type_of_table(context, node.of_type)
    if of_type is not None:
        parts.columns += typed_columns(of_type)
    parts.spans += [None] * len(parts.columns)
    constraints: list[ast.Constraint] = []
    for element in paced(node.elements, 1):
        if (parent is not None or of_type is not None) and isinstance(element, ast.ColumnDef):
            _override(context, parts, element, "partitions" if of_type is None else "typed tables")
        elif isinstance(element, ast.ColumnDef):
            add_column(context, parts, element)
        elif isinstance(element, ast.TableLike):
            add_like(context, parts, element)
        else:
            constraints.append(element)
            add_constraint(context, parts, element)
    if parts.second_primary is not None:
        raise parts.second_primary
    for key in parts.keys:
        if key.primary:
            parts.not_null(key.columns)
    relation = relation_of(node.relation.name, parts.columns)
    for key in parts.keys:
        if key.using_index is not None:
            raise SqlError("0A000", "CREATE TABLE does not support USING INDEX")
        if not key.operators:  # else copied from a table where they have been looked at
            check_key_columns(key, relation.columns, _constraint_span(constraints, key))
    check_columns(parts.columns)
    if taken:  # told to who may create there, before defaults and checks are looked at
        plain = tuple(st.ColumnSpec(name=c.name, type=c.type) for c in parts.columns)
        return st.CreateTable(
            schema=schema,
            name=node.relation.name,
            if_not_exists=False,
            columns=plain,
            persistence=persistence,
        )
    if parts.wrong is not None:
        raise parts.wrong
    relation = bind_generated(context, parts, relation)
    checks = (*bound_checks(context, parts.checks, relation), *_copied(context, parts, relation))
    parts.keys += [exclusion_spec(context, one, relation) for one in parts.exclusions]
    _check_names(parts, checks)
    if node.partition_by is not None:
        if parts.exclusions:
            raise exclusions_of_partitions(parts.exclusions[0])
        if any(check.no_inherit for check in checks):
            raise SqlError(
                "42P16", f'cannot add NO INHERIT constraint to partitioned table "{node.relation.name}"'
            )
    bound, spans = None, st.NO_SPANS
    computed: tuple[st.ComputedBound, ...] = ()
    if parent is not None and node.bound is not None:
        bound, spans, computed = bind_bound(context, node.bound, parent)
    divided_by = None if node.partition_by is None else bind_key(context, node.partition_by, relation)
    return st.CreateTable(
        partition_key=divided_by,
        parent=0 if parent is None else parent.oid,
        bound=bound,
        bound_spans=spans,
        bound_computed=computed,
        schema=schema,
        name=node.relation.name,
        if_not_exists=node.if_not_exists,
        columns=tuple(parts.columns),
        keys=_distinct_keys(parts.keys),
        checks=checks,
        foreign_keys=bound_foreign_keys(context, parts),
        persistence=persistence,
        on_commit=node.on_commit,
        options=check_storage_options(node.options, "table" if node.partition_by is None else "partitioned"),
        indexes=_indexes(context, parts, relation),
        statistics=tuple(
            one
            for source in parts.copied_statistics
            for one in copied_statistics(source, relation, context.catalog)
        ),
        likes=tuple(parts.likes),
        commented=tuple(parts.commented),
        path=tuple(context.search_path),
        of_type=0 if of_type is None else of_type.oid,
        server=server_named(context.catalog, node.server) if node.server else 0,
        foreign_options=new_options(node.foreign_options),
    )


def late_defaults(
    columns: Sequence[ColumnDef], specs: Sequence[st.ColumnSpec], context: BindContext
) -> tuple[ColumnDef, ...]:
    """Return a new table's columns with those defaults that name what the statement makes; ``context`` knows that.

    Raises SqlError as ``bound_default``.
    """
    return tuple(
        column
        if spec.late is None
        else replace(column, default_sql=bound_default(context, spec.late, spec.name, spec.type)[1])
        for column, spec in zip(columns, specs, strict=True)
    )


def _partitioned(context: BindContext, node: ast.TableRef, persistence: str) -> RelationDef:
    """Return the table of PARTITION OF. Raises SqlError 42P01, 42P17; 42809 where one of the two is temporary."""
    parent = context.relation(node.schema, node.name, None, catalog=node.catalog)
    if (persistence == "t") != (parent.persistence == "t"):
        made, of = ("temporary", "permanent") if persistence == "t" else ("permanent", "temporary")
        raise SqlError(
            "42809", f'cannot create a {made} relation as partition of {of} relation "{parent.name}"'
        )
    if parent.kind != "p":
        raise SqlError("42P17", f'"{parent.name}" is not partitioned')
    return parent


def inherited_columns(parent: RelationDef) -> list[st.ColumnSpec]:
    """Return the columns of a new partition: the parent's. Identity stays with that."""
    found: list[st.ColumnSpec] = []
    for column in parent.live:
        sql = None if column.identity else column.default_sql
        found.append(
            st.ColumnSpec(
                name=column.name, type=column.declared, not_null=column.not_null, default_sql=sql,
                collation=column.collation, generated=column.generated, storage=column.storage,
                compression=column.compression,
            )
        )  # fmt: skip
    return found


def _override(context: BindContext, parts: TableParts, node: ast.ColumnDef, of: str) -> None:
    """Give a column of a partition or typed table (``of``: "partitions", "typed tables") a default, NOT NULL
    or constraints of its own.

    Raises SqlError 42703, 42701; 0A000 for what such a column cannot have.
    """
    at = next((i for i, column in enumerate(parts.columns) if column.name == node.name), None)
    if at is None:
        raise SqlError("42703", f'column "{node.name}" does not exist')
    if node.name in parts.overridden:
        raise SqlError("42701", f'column "{node.name}" specified more than once')
    parts.overridden.add(node.name)
    column = parts.columns[at]
    for constraint in with_attributes(node.constraints):
        if constraint.kind == "not null":
            column = replace(column, not_null=True)
        elif constraint.kind == "default" and constraint.expr is not None:
            if column.generated:
                raise SqlError(
                    "42601", f'column "{node.name}" inherits from generated column but specifies default'
                )
            made = bound_default(context, constraint.expr, node.name, column.type)
            column = replace(column, default=made[0], default_sql=made[1])
        elif constraint.kind in ("check", "primary key", "unique", "foreign key"):
            add_constraint(context, parts, replace(constraint, columns=constraint.columns or (node.name,)))
        elif constraint.kind in ("identity", "generated"):
            raise SqlError("0A000", f"{constraint.kind} columns are not supported on {of}")
        elif constraint.kind != "null":
            refuse_constraint(constraint)
    parts.columns[at] = column


def _distinct_keys(keys: Sequence[st.KeySpec]) -> tuple[st.KeySpec, ...]:
    """Return the keys, the primary one first; of those that say the same only the first, with the first name given."""
    kept: list[st.KeySpec] = []
    for key in sorted(keys, key=lambda k: not k.primary):
        for at, prior in enumerate(kept):
            if replace(key, name=None, primary=prior.primary) == replace(prior, name=None):
                kept[at] = replace(prior, name=prior.name or key.name)
                break
        else:
            kept.append(key)
    return tuple(kept)


def _constraint_span(constraints: Sequence[ast.Constraint], key: st.KeySpec) -> Span | None:
    return next((c.span for c in constraints if c.columns == key.columns), None)


def check_columns(columns: Sequence[st.ColumnSpec]) -> None:
    """Refuse duplicate names (42701) and too many columns (54011)."""
    if len(columns) > MAX_COLUMNS:
        raise SqlError("54011", f"tables can have at most {MAX_COLUMNS} columns")
    seen: set[str] = set()
    for column in columns:
        if column.name in seen:
            raise SqlError("42701", f'column "{column.name}" specified more than once')
        seen.add(column.name)


def _check_names(parts: TableParts, checks: Sequence[st.CheckSpec]) -> None:
    """Refuse two constraints with one written name: 42710."""
    written = [check.name for check in checks if check.name is not None]
    for name in written:
        if written.count(name) > 1:
            raise SqlError("42710", f'check constraint "{name}" already exists')
    seen: set[str] = set()
    keys = [key.name for key in parts.keys if key.name is not None]
    foreign = [node.name for node, _ in parts.foreign if node.name]
    for name in (*keys, *written, *foreign):
        if name in seen:
            raise SqlError("42710", f'constraint "{name}" for relation "{parts.table}" already exists')
        seen.add(name)


# --- CREATE TABLE AS --------------------------------------------------------------------------------


def bind_create_table_as(
    context: BindContext, node: ast.CreateTableAs
) -> st.CreateTable | st.CreateMaterializedView | st.ExecutePrepared:
    """Bind CREATE TABLE AS, SELECT INTO and CREATE MATERIALIZED VIEW. Raises SqlError 42601, 42701, 42P16, 0A000."""
    if node.materialized:
        from planner.bind.define.materialized import bind_create  # which has columns as a table has

        return bind_create(context, node)
    if isinstance(node.query, ast.Execute):  # bound when it is known what that is
        schema = creation_schema(context, node.relation)
        return replace(bind_execute(context, node.query), into=node, schema=schema)
    if not isinstance(node.query, ast.Select | ast.SetOp | ast.Values):
        raise AssertionError(f"CREATE TABLE AS has {type(node.query).__name__}, not a query")
    check_tablespace(node.tablespace)
    check_access_method(node.access_method)
    if modifies(node.query):
        raise not_supported("CREATE TABLE AS with a data-modifying statement in WITH", span=node.span)
    query: QueryExpr = bind_query(context, node.query)
    schema = creation_schema(context, node.relation)
    if node.on_commit and persistence_of(node.relation, schema) != "t":
        raise SqlError("42P16", "ON COMMIT can only be used on temporary tables")
    return st.CreateTable(
        schema=schema,
        name=node.relation.name,
        if_not_exists=node.if_not_exists,
        columns=columns_of_query(context, node, query),
        persistence=persistence_of(node.relation, schema),
        on_commit=node.on_commit,
        options=check_storage_options(node.options, "table"),
        query=query,
        with_data=node.with_data,
        executed=node.executed,
    )


def columns_of_query(
    context: BindContext, node: ast.CreateTableAs, query: QueryExpr
) -> tuple[st.ColumnSpec, ...]:
    """Return the columns of the table that a query fills. Raises SqlError 42601, 42701, 42P16, 42P21, 42P22."""
    if len(node.columns) > len(query.columns):
        raise SqlError("42601", "too many column names were specified")
    specs: list[st.ColumnSpec] = []
    collations = query_collations(query, context.catalog)
    for index, output in enumerate(query.columns):
        name = node.columns[index] if index < len(node.columns) else output.name
        check_column_name(name)
        type_ = output.type
        if type_.oid == UNKNOWN:
            raise SqlError("42P16", f'column "{name}" has pseudo-type unknown')
        check_column_type(name, type_)
        if not collations[index] and type_collation(type_, context.catalog):
            raise SqlError(
                "42P22",
                f'no collation was derived for column "{name}" with collatable type {format_type(type_.oid)}',
                hint=COLLATE_HINT,
            )
        specs.append(st.ColumnSpec(name=name, type=type_, collation=collations[index]))
    check_columns(specs)
    return tuple(specs)

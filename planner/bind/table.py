"""CREATE TABLE and its pieces: columns, defaults, checks, keys, LIKE.

    CREATE TABLE t (a int PRIMARY KEY, b text DEFAULT 'x' CHECK (b <> ''))
      columns  a int4 not null, b text default 'x'::text
      keys     primary (a)
      checks   (b <> ''::text) over column b

Checks are bound over the table as it will be, so attnums are known; constraint names are chosen when the statement
runs. ``TableParts`` collects what column and table constraints say; ALTER TABLE ADD COLUMN uses it too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from planner import ast
from planner import statements as st
from planner.bind.changes import modifies
from planner.bind.context import BindContext
from planner.bind.expr import check_collation
from planner.bind.foreign_key import foreign_key_spec
from planner.bind.options import check_storage_options
from planner.bind.sequence import SERIAL_TYPES, drawn_from, identity_definition, serial_definition
from planner.bind.stored import bind_check, bind_check_expr, bind_default, stored_default
from planner.builtins.reg import split_identifier
from planner.catalog import ColumnDef, ConstraintDef, RelationDef, SequenceDef
from planner.deparse import deparse_expr
from planner.errors import Span, SqlError, not_supported
from planner.facts import NAME, UNKNOWN, rows
from planner.query import CTID, TABLEOID, Const, Expr, FuncExpr, QueryExpr, Var
from planner.resolve import default_opclass
from planner.rewrite import replace_children
from planner.scope import SYSTEM_COLUMNS
from planner.typefacts import category, element_of, format_type
from planner.typenames import check_column_type, resolve_type
from planner.types import SqlType
from planner.walk import walk

MAX_COLUMNS = 1600
PLURALS = {"r": "tables", "v": "views", "m": "materialized views", "i": "indexes", "S": "sequences"}
DEFAULT_COLLATION, C_COLLATION = 100, 950
_BTREE, _HASH = 403, 405

Default: TypeAlias = tuple[Expr | None, str | None]

_REGCLASS_OF_TEXT = 1079


def creation_schema(context: BindContext, node: ast.TableRef) -> str:
    """Return the schema a new relation goes to; ``pg_temp`` for temporary ones.

    The path's temporary schema counts where the setting lists it: behind pg_catalog, which is searched first then.
    Raises SqlError 3F000 (no such schema, nothing to create in), 42P16 (temporary in a permanent schema).
    """
    if node.persistence == "t" or node.schema == "pg_temp":
        if node.schema not in ("", "pg_temp"):
            raise SqlError(
                "42P16", "cannot create temporary relation in non-temporary schema", span=node.span
            )
        return "pg_temp"
    if node.schema:
        if context.catalog.schema(node.schema) is None:
            raise SqlError("3F000", f'schema "{node.schema}" does not exist', span=node.span)
        return node.schema
    listed = False
    for name in context.search_path:
        if name == "pg_catalog":
            listed = True
        elif not name.startswith("pg_temp"):
            return name
        elif listed:
            return "pg_temp"
    raise SqlError("3F000", "no schema has been selected to create in", span=node.span)


def persistence_of(node: ast.TableRef, schema: str) -> Literal["p", "t", "u"]:
    """Return the persistence written, or ``t`` for what goes to ``schema`` pg_temp."""
    return "t" if schema == "pg_temp" else node.persistence


def check_tablespace(name: str) -> None:
    """Accept the tablespace every server has (no effect); 42704 for others."""
    if name not in ("", "pg_default"):
        raise SqlError("42704", f'tablespace "{name}" does not exist')


def check_access_method(name: str) -> None:
    """Accept ``heap`` (no effect); 42704 for others."""
    if name not in ("", "heap"):
        raise SqlError("42704", f'access method "{name}" does not exist')


@dataclass(slots=True)
class TableParts:
    """What the elements of a table definition say, in order. ``checks`` are still to be bound."""

    table: str
    columns: list[st.ColumnSpec] = field(default_factory=list)
    spans: list[Span | None] = field(default_factory=list)
    keys: list[st.KeySpec] = field(default_factory=list)
    checks: list[ast.Constraint] = field(default_factory=list)
    copied_checks: list[tuple[RelationDef, ConstraintDef]] = field(default_factory=list)
    foreign_keys: list[st.ForeignKeySpec] = field(default_factory=list)
    schema: str | None = None  # of the table being created: it may refer to itself

    def not_null(self, names: Sequence[str]) -> None:
        """Mark columns (of a primary key) as NOT NULL."""
        wanted = set(names)
        self.columns = [replace(c, not_null=True) if c.name in wanted else c for c in self.columns]


# --- columns --------------------------------------------------------------------------------------


def _serial_type(node: ast.ColumnDef) -> int | None:
    """Return the integer type behind serial and its kin, None for other types. Raises SqlError 0A000 for arrays."""
    if node.type is None or len(node.type.names) != 1 or node.type.names[0] not in SERIAL_TYPES:
        return None
    if node.type.dims:
        raise SqlError("0A000", "array of serial is not implemented", span=node.type.span)
    return SERIAL_TYPES[node.type.names[0]]


def column_type(node: ast.ColumnDef) -> SqlType:
    """Return a column's type. Raises SqlError 42704, 42P16, 0A000 (types outside the value domain)."""
    if node.type is None:
        raise not_supported("a column without a type", span=node.span)
    serial = _serial_type(node)
    if serial is not None:
        return SqlType(serial)
    type_ = resolve_type(node.type)
    check_column_type(node.name, type_, node.type.span)
    return type_


def column_collation(node_collation: ast.Name, type_: SqlType, span: Span | None) -> int:
    """Return the collation oid of a column: the one written, else its type's (0 where it has none)."""
    base = element_of(type_.oid) or type_.oid
    collatable = base == NAME or category(base) == "S"
    if not node_collation:
        if base in (NAME,):
            return C_COLLATION
        return DEFAULT_COLLATION if collatable and base != 18 else 0
    if not collatable:
        raise SqlError("42804", f"collations are not supported by type {format_type(type_.oid)}", span=span)
    check_collation(node_collation, span)
    wanted = {"C.UTF-8": "C.utf8"}.get(node_collation[-1], node_collation[-1])
    return next((int(r["oid"]) for r in rows("collations") if r["collname"] == wanted), DEFAULT_COLLATION)


def check_column_name(name: str, span: Span | None = None) -> None:
    """Refuse the names of system columns: 42701."""
    if name in SYSTEM_COLUMNS:
        raise SqlError("42701", f'column name "{name}" conflicts with a system column name', span=span)


def add_column(context: BindContext, parts: TableParts, node: ast.ColumnDef) -> st.ColumnSpec:
    """Bind a column definition into ``parts``; its constraints become keys and checks of the table."""
    check_column_name(node.name)
    type_ = column_type(node)
    if node.compression not in ("", "pglz", "lz4", "default"):
        raise SqlError("22023", f'invalid compression method "{node.compression}"')
    serial = _serial_type(node) is not None
    null: bool | None = False if serial else None
    default: ast.Constraint | None = None
    identity: ast.Constraint | None = None
    for constraint in with_attributes(node.constraints):
        kind = constraint.kind
        if kind in ("null", "not null"):
            if null is not None and null != (kind == "null"):
                raise SqlError(
                    "42601",
                    f'conflicting NULL/NOT NULL declarations for column "{node.name}" of table "{parts.table}"',
                    span=None if serial else constraint.span,
                )
            null = kind == "null"
        elif kind == "default":
            if default is not None or serial:
                raise SqlError(
                    "42601",
                    f'multiple default values specified for column "{node.name}" of table "{parts.table}"',
                    span=None if serial else constraint.span,
                )
            default = constraint
        elif kind == "identity":
            if identity is not None:
                raise SqlError(
                    "42601",
                    f'multiple identity specifications for column "{node.name}" of table "{parts.table}"',
                    span=constraint.span,
                )
            identity = constraint
            if null is True:
                raise SqlError(
                    "42601",
                    f'conflicting NULL/NOT NULL declarations for column "{node.name}" of table "{parts.table}"',
                    span=constraint.span,
                )
            null = False
        elif kind == "check":
            parts.checks.append(constraint)
        elif kind in ("primary key", "unique"):
            parts.keys.append(_key(parts, constraint, (node.name,)))
        elif kind == "foreign key":
            _add_foreign_key(context, parts, constraint, (node.name,))
        else:
            refuse_constraint(constraint)
    value: Default = (None, None)
    if default is not None and default.expr is not None:
        value = bound_default(context, default.expr, node.name, type_)
    if identity is not None and (serial or default is not None):
        later = max(
            (c.span for c in (identity, default) if c is not None and c.span is not None), default=None
        )
        raise SqlError(
            "42601",
            f'both default and identity specified for column "{node.name}" of table "{parts.table}"',
            span=later,
        )
    sequence: SequenceDef | None = serial_definition(type_.oid) if serial else None
    sequence_name: str | None = None
    if identity is not None:
        sequence, sequence_name = identity_definition(identity.options, type_.oid)
    spec = st.ColumnSpec(
        name=node.name,
        type=type_,
        not_null=null is False,
        default=value[0],
        default_sql=value[1],
        collation=column_collation(node.collation, type_, node.span),
        identity="" if identity is None else identity.generated_when,
        sequence=sequence,
        sequence_name=sequence_name,
    )
    parts.columns.append(spec)
    parts.spans.append(node.span)
    return spec


def bound_default(context: BindContext, node: ast.Expression, column: str, type_: SqlType) -> Default:
    """Return a DEFAULT's expression and canonical text; DEFAULT NULL is no default: (None, None)."""
    expr = _by_oid(context, bind_default(context, node, column, type_))
    if isinstance(expr, Const) and expr.value is None:
        return None, None
    return expr, deparse_expr(expr)


def _by_oid(context: BindContext, node: Any) -> Any:
    """Return an expression in which ``'name'::regclass`` is the relation it names now, whatever that is called later."""
    node = replace_children(node, lambda child: _by_oid(context, child))
    if isinstance(node, FuncExpr) and node.proc == _REGCLASS_OF_TEXT and node.cast == "implicit":
        [name] = node.args
        if isinstance(name, Const) and isinstance(name.value, str):
            names = split_identifier(name.value)
            relation = context.relation(names[-2] if len(names) > 1 else "", names[-1], node.span)
            return Const(type=node.type, value=relation.oid)
    return node


_REFUSED = {
    "exclude": "EXCLUDE",
    "exclusion": "EXCLUDE",
    "generated": "GENERATED ALWAYS AS (...) STORED",
}


def refuse_constraint(constraint: ast.Constraint) -> None:
    """Raise 0A000 for a kind of constraint that is not supported."""
    raise not_supported(_REFUSED.get(constraint.kind, constraint.kind.upper()), span=constraint.span)


_TAKE_ATTRIBUTES = frozenset(("primary key", "unique", "exclude", "foreign key"))
_ATTRIBUTES = {
    "deferrable": "DEFERRABLE",
    "not deferrable": "NOT DEFERRABLE",
    "deferred": "INITIALLY DEFERRED",
    "immediate": "INITIALLY IMMEDIATE",
}


def with_attributes(constraints: Sequence[ast.Constraint]) -> list[ast.Constraint]:
    """Return a column's constraints, each with the attributes written behind it (transformConstraintAttrs).

    Raises SqlError 42601 for attributes that are misplaced, repeated or contradict each other.
    """
    found: list[ast.Constraint] = []
    said: set[str] = set()
    for node in constraints:
        words = _ATTRIBUTES.get(node.kind)
        if words is None:
            found.append(node)
            said = set()
            continue
        if not found or found[-1].kind not in _TAKE_ATTRIBUTES:
            raise SqlError("42601", f"misplaced {words} clause", span=node.span)
        timing = node.kind in ("deferred", "immediate")
        if said & ({"deferred", "immediate"} if timing else {"deferrable", "not deferrable"}):
            which = "INITIALLY IMMEDIATE/DEFERRED" if timing else "DEFERRABLE/NOT DEFERRABLE"
            raise SqlError("42601", f"multiple {which} clauses not allowed", span=node.span)
        said.add(node.kind)
        if {"not deferrable", "deferred"} <= said:
            raise SqlError(
                "42601", "constraint declared INITIALLY DEFERRED must be DEFERRABLE", span=node.span
            )
        found[-1] = replace(
            found[-1],
            deferrable=bool(said & {"deferrable", "deferred"}),
            initially_deferred="deferred" in said,
        )
    return found


def _add_foreign_key(
    context: BindContext, parts: TableParts, node: ast.Constraint, columns: Sequence[str]
) -> None:
    created = None if parts.schema is None else (parts.schema, parts.table)
    parts.foreign_keys.append(foreign_key_spec(context, node, columns, created))


# --- keys and checks ------------------------------------------------------------------------------


def _key(parts: TableParts, constraint: ast.Constraint, columns: Sequence[str]) -> st.KeySpec:
    check_tablespace(constraint.tablespace)
    check_storage_options(constraint.options, "btree")
    primary = constraint.kind == "primary key"
    if primary and any(key.primary for key in parts.keys):
        raise SqlError(
            "42P16",
            f'multiple primary keys for table "{parts.table}" are not allowed',
            span=constraint.span,
        )
    return st.KeySpec(
        name=constraint.name or None,
        primary=primary,
        columns=tuple(columns),
        nulls_not_distinct=constraint.nulls_not_distinct,
        include=constraint.include,
        using_index=constraint.using_index or None,
        deferrable=constraint.deferrable,
        deferred=constraint.initially_deferred,
    )


def add_constraint(context: BindContext, parts: TableParts, constraint: ast.Constraint) -> None:
    """Enter a table constraint into ``parts``."""
    if constraint.kind == "check":
        parts.checks.append(constraint)
    elif constraint.kind in ("primary key", "unique"):
        parts.keys.append(_key(parts, constraint, constraint.columns))
    elif constraint.kind == "foreign key":
        _add_foreign_key(context, parts, constraint, constraint.columns)
    else:
        refuse_constraint(constraint)


def check_key_columns(key: st.KeySpec, columns: Sequence[ColumnDef], span: Span | None) -> None:
    """Check that a key's columns exist, differ and can be compared: 42703, 42701, 42704."""
    by_name = {column.name: column for column in columns if not column.dropped}
    seen: set[str] = set()
    for name in (*key.columns, *key.include):
        column = by_name.get(name)
        if column is None:
            if name in SYSTEM_COLUMNS:
                raise not_supported("an index on system columns", span=span)
            raise SqlError("42703", f'column "{name}" named in key does not exist', span=span)
        if name in key.columns:
            if name in seen:
                what = "primary key" if key.primary else "unique"
                raise SqlError("42701", f'column "{name}" appears twice in {what} constraint', span=span)
            seen.add(name)
            check_indexable(column.type.oid, "btree")


def check_indexable(oid: int, method: str) -> None:
    """Raise 42704 when the type has no default operator class for an index method."""
    found = default_opclass(oid, _BTREE if method == "btree" else _HASH)
    if found is None or (element_of(oid) and default_opclass(element_of(oid)) is None):
        raise SqlError(
            "42704",
            f'data type {format_type(oid)} has no default operator class for access method "{method}"',
            hint="You must specify an operator class for the index or define a default operator class for "
            "the data type.",
        )


def bound_checks(
    context: BindContext, nodes: Sequence[ast.Constraint], relation: RelationDef
) -> tuple[st.CheckSpec, ...]:
    """Bind CHECK constraints over ``relation``. Raises SqlError 0A000, 42703, 42804, 42803."""
    result: list[st.CheckSpec] = []
    for node in nodes:
        if node.expr is None:
            continue
        expr = bind_check_expr(context, node.expr, relation)
        used = {item.attnum for item in walk(expr) if isinstance(item, Var)}
        result.append(
            st.CheckSpec(
                name=node.name or None,
                expr=expr,
                sql=deparse_expr(expr, relation),
                columns=_used_names(relation, used),
                no_inherit=node.no_inherit,
            )
        )
    return tuple(result)


_SYSTEM_NAMES = {TABLEOID: "tableoid", CTID: "ctid"}


def _used_names(relation: RelationDef, used: Collection[int]) -> tuple[str, ...]:
    names = [c.name for c in relation.live if c.attnum in used]
    return (*names, *(name for attnum, name in _SYSTEM_NAMES.items() if attnum in used))


def relation_of(table: str, columns: Sequence[st.ColumnSpec]) -> RelationDef:
    """Return a stand-in definition of a table that does not exist yet."""
    return RelationDef(
        oid=0,
        schema_oid=0,
        schema="",
        name=table,
        kind="r",
        columns=tuple(
            ColumnDef(attnum=number, name=c.name, type=c.type, not_null=c.not_null)
            for number, c in enumerate(columns, 1)
        ),
    )


# --- LIKE -----------------------------------------------------------------------------------------


def add_like(context: BindContext, parts: TableParts, node: ast.TableLike) -> None:
    """Copy another relation's columns, and with INCLUDING its defaults, checks and keys."""
    source = node.relation
    relation = context.relation(source.schema, source.name, source.span, catalog=source.catalog)
    if relation.kind not in ("r", "v", "m"):
        raise SqlError(
            "42809",
            f'relation "{relation.name}" is invalid in LIKE clause',
            detail=f"This operation is not supported for {PLURALS[relation.kind]}.",
            span=source.span,
        )
    words = node.including
    every = "all" in words
    for column in relation.live:
        spec = st.ColumnSpec(
            name=column.name, type=column.type, not_null=column.not_null, collation=column.collation
        )
        if column.identity:
            if every or "identity" in words:
                drawn = context.catalog.relation_by_oid(drawn_from(column) or 0)
                if drawn is not None and drawn.sequence is not None:
                    copied = replace(
                        drawn.sequence, generation=0, restart=None, owner_table=0, owner_attnum=0
                    )
                    spec = replace(spec, identity=column.identity, sequence=copied)
        elif (every or "defaults" in words) and column.default_sql is not None:
            spec = replace(
                spec,
                default=stored_default(column.default_sql, column.type),
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


def _like_indexes(parts: TableParts, relation: RelationDef, span: Span | None) -> None:
    names = {column.attnum: column.name for column in relation.columns}
    for index in relation.indexes:
        if not index.constraint_oid:
            raise not_supported(
                f'LIKE INCLUDING INDEXES of an index without a constraint ("{index.name}")', span=span
            )
        parts.keys.append(
            st.KeySpec(
                name=None,
                primary=index.primary,
                columns=tuple(names[a] for a in index.attnums),
                nulls_not_distinct=index.nulls_not_distinct,
                include=tuple(names[a] for a in index.include),
                deferrable=index.deferrable,
                deferred=any(c.oid == index.constraint_oid and c.deferred for c in relation.constraints),
            )
        )


def _copied(context: BindContext, parts: TableParts, relation: RelationDef) -> list[st.CheckSpec]:
    """Bind copied checks over the new table: the same text, since column names are the same."""
    result: list[st.CheckSpec] = []
    for _, constraint in parts.copied_checks:
        sql = constraint.check_sql
        expr = bind_check(sql, relation, context.catalog)
        used = {item.attnum for item in walk(expr) if isinstance(item, Var)}
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
    schema = creation_schema(context, node.relation)
    persistence = persistence_of(node.relation, schema)
    if node.on_commit and persistence != "t":
        raise SqlError("42P16", "ON COMMIT can only be used on temporary tables")
    parts = TableParts(table=node.relation.name, schema=schema)
    constraints: list[ast.Constraint] = []
    for element in node.elements:
        if isinstance(element, ast.ColumnDef):
            add_column(context, parts, element)
        elif isinstance(element, ast.TableLike):
            add_like(context, parts, element)
        else:
            constraints.append(element)
            add_constraint(context, parts, element)
    check_columns(parts.columns)
    for key in parts.keys:
        if key.primary:
            parts.not_null(key.columns)
    relation = relation_of(node.relation.name, parts.columns)
    for key in parts.keys:
        if key.using_index is not None:
            raise SqlError("0A000", "CREATE TABLE does not support USING INDEX")
        check_key_columns(key, relation.columns, _constraint_span(constraints, key))
    checks = (*bound_checks(context, parts.checks, relation), *_copied(context, parts, relation))
    if context.find_relation(schema, node.relation.name) is None:  # else that is the error
        _check_names(parts, checks)
    return st.CreateTable(
        schema=schema,
        name=node.relation.name,
        if_not_exists=node.if_not_exists,
        columns=tuple(parts.columns),
        keys=_distinct_keys(parts.keys),
        checks=checks,
        foreign_keys=tuple(parts.foreign_keys),
        persistence=persistence,
        on_commit=node.on_commit,
        options=check_storage_options(node.options, "table"),
    )


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
    foreign = [key.name for key in parts.foreign_keys if key.name is not None]
    for name in (*keys, *written, *foreign):
        if name in seen:
            raise SqlError("42710", f'constraint "{name}" for relation "{parts.table}" already exists')
        seen.add(name)


# --- CREATE TABLE AS --------------------------------------------------------------------------------


def bind_create_table_as(
    context: BindContext, node: ast.CreateTableAs
) -> st.CreateTable | st.CreateMaterializedView:
    """Bind CREATE TABLE AS, SELECT INTO and CREATE MATERIALIZED VIEW. Raises SqlError 42601, 42701, 42P16, 0A000."""
    from planner.bind.query import bind_query

    if node.materialized:
        from planner.bind.materialized import bind_create

        return bind_create(context, node)
    if not isinstance(node.query, ast.Select | ast.SetOp | ast.Values):
        raise not_supported("CREATE TABLE AS EXECUTE", span=node.span)
    check_tablespace(node.tablespace)
    check_access_method(node.access_method)
    schema = creation_schema(context, node.relation)
    if node.on_commit and persistence_of(node.relation, schema) != "t":
        raise SqlError("42P16", "ON COMMIT can only be used on temporary tables")
    if modifies(node.query):
        raise not_supported("CREATE TABLE AS with a data-modifying statement in WITH", span=node.span)
    query: QueryExpr = bind_query(context, node.query)
    return st.CreateTable(
        schema=schema,
        name=node.relation.name,
        if_not_exists=node.if_not_exists,
        columns=columns_of_query(node, query),
        persistence=persistence_of(node.relation, schema),
        on_commit=node.on_commit,
        options=check_storage_options(node.options, "table"),
        query=query,
        with_data=node.with_data,
    )


def columns_of_query(node: ast.CreateTableAs, query: QueryExpr) -> tuple[st.ColumnSpec, ...]:
    """Return the columns of the table that a query fills. Raises SqlError 42601, 42701, 42P16."""
    if len(node.columns) > len(query.columns):
        raise SqlError("42601", "too many column names were specified")
    specs: list[st.ColumnSpec] = []
    for index, output in enumerate(query.columns):
        name = node.columns[index] if index < len(node.columns) else output.name
        check_column_name(name)
        type_ = output.type
        if type_.oid == UNKNOWN:
            raise SqlError("42P16", f'column "{name}" has pseudo-type unknown')
        check_column_type(name, type_)
        specs.append(st.ColumnSpec(name=name, type=type_, collation=column_collation((), type_, None)))
    check_columns(specs)
    return tuple(specs)

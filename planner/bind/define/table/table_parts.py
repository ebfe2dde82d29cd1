"""What the elements of a table definition say: columns, defaults, generated columns, keys, checks.

``TableParts`` collects what column and table constraints say; CREATE TABLE and ALTER TABLE ADD use it. Checks and
generated columns are bound over the table as it will be, so attnums are known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from planner import ast
from planner import statements as st
from planner.base.errors import Span, SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.define.collation import find_collation
from planner.bind.define.table.foreign_key import foreign_key_spec
from planner.bind.define.table.generated import bind_generation, columns_used
from planner.bind.define.table.options import check_storage_options
from planner.bind.define.table.sequence import SERIAL_TYPES, identity_sequence, serial_sequence
from planner.bind.scope import SYSTEM_COLUMNS
from planner.bind.stored import bind_default, with_oids
from planner.bind.stored.evaluated import bind_check_expr
from planner.bind.stored.runnable import must_be_called, runnable_or_called
from planner.catalog import ColumnDef, ConstraintDef, IndexDef, RelationDef
from planner.catalog.foreign import Options
from planner.conversion.collations import type_collation
from planner.conversion.type_names import check_column_type
from planner.deparse import deparse_expr
from planner.facts import facts, rows
from planner.indexing.opclass import check_indexable
from planner.query import CTID, TABLEOID, Const, Expr
from planner.statements.foreign_options import new_options
from planner.types import SqlType
from planner.types.domains import base_oid, domain_named, is_domain, plain_type
from planner.types.facts import format_type, plain_collation

Default: TypeAlias = tuple[Expr | None, str | None]


def check_tablespace(name: str) -> None:
    """Accept the tablespace every server has (no effect); 42704 for others."""
    if name not in ("", "pg_default"):
        raise SqlError("42704", f'tablespace "{name}" does not exist')


def check_access_method(name: str) -> None:
    """Accept ``heap`` (no effect); 55000 for PostgreSQL's methods of indexes, 42704 for others."""
    if name not in ("", "heap"):
        if any(row["amname"] == name for row in rows("am")):
            raise SqlError("55000", f'access method "{name}" is not of type TABLE')
        raise SqlError("42704", f'access method "{name}" does not exist')


@dataclass(slots=True)
class TableParts:
    """What the elements of a table definition say, in order. ``checks`` and ``exclusions`` are still to be bound."""

    table: str
    columns: list[st.ColumnSpec] = field(default_factory=list)
    spans: list[Span | None] = field(default_factory=list)
    keys: list[st.KeySpec] = field(default_factory=list)
    checks: list[ast.Constraint] = field(default_factory=list)
    copied_checks: list[tuple[RelationDef, ConstraintDef]] = field(default_factory=list)
    foreign: list[tuple[ast.Constraint, tuple[str, ...]]] = field(default_factory=list)
    copied_indexes: list[tuple[RelationDef, IndexDef]] = field(default_factory=list)
    copied_statistics: list[RelationDef] = field(default_factory=list)  # whose they are
    exclusions: list[ast.Constraint] = field(default_factory=list)
    generated: dict[str, ast.Constraint] = field(default_factory=dict)
    likes: list[int] = field(default_factory=list)  # relations, by oid
    commented: list[int] = field(default_factory=list)  # those INCLUDING COMMENTS
    has_primary: bool = False  # whether one is written: that of LIKE is looked at when the table is made
    second_primary: SqlError | None = (
        None  # of a new table, which is told behind what is wrong with its columns' types
    )
    overridden: set[str] = field(default_factory=set)  # columns of a partition that were named
    schema: str | None = None  # of the table being created: it may refer to itself
    makes_sequences: bool = False  # by CREATE TABLE: defaults may draw from them
    foreign_table: bool = False
    wrong: SqlError | None = (
        None  # of a default of the table being created, to be raised once it could be made
    )

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


def column_type(context: BindContext, node: ast.ColumnDef) -> SqlType:
    """Return a column's type. Raises SqlError 42704, 42P16, 0A000 (types outside the value domain)."""
    if node.type is None:
        raise not_supported("a column without a type", span=node.span)
    serial = _serial_type(node)
    if serial is not None:
        return SqlType(serial)
    type_ = context.type_of(node.type)
    check_column_type(node.name, type_, node.type.span)
    return type_


def column_collation(
    context: BindContext, node_collation: ast.Name, type_: SqlType, span: Span | None
) -> int:
    """Return the collation oid of a column: the one written, else its type's (0 where it has none)."""
    own = plain_collation(type_.oid)
    if not node_collation:
        return own
    found = find_collation(context, node_collation, span)
    if not own:
        raise SqlError("42804", f"collations are not supported by type {format_type(type_.oid)}", span=span)
    return found


def declared_collation(context: BindContext, written: ast.Name, type_: SqlType, span: Span | None) -> int:
    """As ``column_collation``, for a type that may be a domain: it brings its own."""
    return (
        column_collation(context, written, plain_type(type_), span)
        if written
        else type_collation(type_, context.catalog)
    )


def check_column_name(name: str, span: Span | None = None) -> None:
    """Refuse the names of system columns: 42701."""
    if name in SYSTEM_COLUMNS:
        raise SqlError("42701", f'column name "{name}" conflicts with a system column name', span=span)


def add_column(context: BindContext, parts: TableParts, node: ast.ColumnDef) -> st.ColumnSpec:
    """Bind a column definition into ``parts``; its constraints become keys and checks of the table."""
    check_column_name(node.name)
    type_ = column_type(context, node)
    compression = check_compression(node.compression, type_.oid)
    serial = _serial_type(node) is not None
    null: bool | None = False if serial else None
    default: ast.Constraint | None = None
    identity: ast.Constraint | None = None
    generated: ast.Constraint | None = None
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
        elif kind == "generated":
            if generated is not None:
                raise SqlError(
                    "42601",
                    f'multiple generation clauses specified for column "{node.name}" of table "{parts.table}"',
                    span=constraint.span,
                )
            generated = constraint
        elif parts.foreign_table and kind in KEYS:
            raise no_key_of_foreign_table(constraint)
        elif kind == "check":
            parts.checks.append(constraint)
        elif kind in ("primary key", "unique"):
            parts.keys.append(_key(parts, constraint, (node.name,)))
        elif kind == "foreign key":
            parts.foreign.append((constraint, (node.name,)))
        else:
            refuse_constraint(constraint)
    value: Default = (None, None)
    late: ast.Expression | None = None
    if default is not None and default.expr is not None:
        value, late = _default_of_new(context, parts, default.expr, node.name, type_)
    if identity is not None and (serial or default is not None):
        later = max(
            (c.span for c in (identity, default) if c is not None and c.span is not None), default=None
        )
        raise SqlError(
            "42601",
            f'both default and identity specified for column "{node.name}" of table "{parts.table}"',
            span=None if serial else later,
        )
    if generated is not None:
        _check_generated(parts, node, generated, default, identity, serial=serial)
        parts.generated[node.name] = generated
    sequence = serial_sequence(type_.oid) if serial else None
    if identity is not None:
        sequence = identity_sequence(identity.options, type_.oid)
    spec = st.ColumnSpec(
        name=node.name,
        type=type_,
        not_null=null is False,
        default=value[0],
        default_sql=value[1],
        collation=declared_collation(context, node.collation, type_, node.collation_span),
        identity="" if identity is None else identity.generated_when,
        generated="" if generated is None else "s",
        sequence=sequence,
        late=late,
        dims=node.dims,
        compression=compression,
        foreign_options=_column_options(parts, node),
    )
    parts.columns.append(spec)
    parts.spans.append(node.span)
    return spec


def _column_options(parts: TableParts, node: ast.ColumnDef) -> Options:
    if node.foreign_options and not parts.foreign_table:
        raise SqlError("42809", f'"{parts.table}" is not a foreign table')
    return new_options(node.foreign_options)


def _check_generated(
    parts: TableParts,
    node: ast.ColumnDef,
    generated: ast.Constraint,
    default: ast.Constraint | None,
    identity: ast.Constraint | None,
    *,
    serial: bool,
) -> None:
    """Refuse a generated column with a default or an identity: 42601, at the later of the two."""
    other = "default" if default is not None or serial else "identity" if identity is not None else ""
    if other:
        last = [c for c in node.constraints if c in (generated, default, identity)][-1]
        raise SqlError(
            "42601",
            f'both {other} and generation expression specified for column "{node.name}" of table "{parts.table}"',
            span=None if serial else last.span,
        )


def bind_generated(context: BindContext, parts: TableParts, relation: RelationDef) -> RelationDef:
    """Bind the expressions of generated columns in ``parts``, over the whole table; returns it with them.

    Raises SqlError as ``bind_generation``.
    """
    for at, spec in enumerate(parts.columns):
        constraint = parts.generated.get(spec.name)
        if not spec.generated or constraint is None or constraint.expr is None:
            continue
        expr = bind_generation(context, constraint.expr, relation, spec.name, spec.type)
        parts.columns[at] = replace(spec, default_sql=deparse_expr(expr, relation))
    texts = {spec.name: spec.default_sql for spec in parts.columns if spec.generated}
    live = {c.attnum for c in relation.live}
    columns = (
        replace(c, default_sql=texts[c.name]) if c.name in texts and c.attnum in live else c
        for c in relation.columns
    )
    return replace(relation, columns=tuple(columns))


def bound_default(context: BindContext, node: ast.Expression, column: str, type_: SqlType) -> Default:
    """Return a DEFAULT's expression, as it is evaluated, None where only a statement can do that, and canonical text.

    DEFAULT NULL is no default, (None, None), unless a domain's default would stand in for it.
    """
    expr = with_oids(context, bind_default(context, node, column, type_))
    if isinstance(expr, Const) and expr.value is None and not is_domain(type_.oid):
        return None, None
    made = runnable_or_called(expr, context.catalog)
    return None if must_be_called(made) else made, deparse_expr(expr)


def makes_sequence(element: ast.Node) -> bool:
    """Tell whether an element of CREATE TABLE may make a sequence: a serial or identity column, or LIKE that
    copies one.
    """
    if isinstance(element, ast.TableLike):
        return "all" in element.including or "identity" in element.including
    return isinstance(element, ast.ColumnDef) and (
        _serial_type(element) is not None or any(c.kind == "identity" for c in element.constraints)
    )


def _default_of_new(
    context: BindContext, parts: TableParts, node: ast.Expression, column: str, type_: SqlType
) -> tuple[Default, ast.Expression | None]:
    """Return a column's default, or, where that names what CREATE TABLE is about to make, the expression that
    is bound later.

    The table is there, and so are its sequences, when PostgreSQL reads defaults: what is wrong with one comes
    behind what is wrong with the table.
    """
    try:
        value = bound_default(context, node, column, type_)
    except SqlError as error:
        if parts.schema is None:
            raise
        if error.sqlstate == "42P01":
            return (None, None), node
        parts.wrong = parts.wrong or error.copy()
        return (None, None), None
    if parts.makes_sequences and "::regclass" in (value[1] or ""):  # which one of theirs may hide
        return (None, None), node
    return value, None


def refuse_constraint(constraint: ast.Constraint) -> None:
    """Raise 0A000 for a kind of constraint that is not supported."""
    raise not_supported(constraint.kind.upper(), span=constraint.span)


KEYS: Final[Mapping[str, str]] = {
    "primary key": "primary key", "unique": "unique", "foreign key": "foreign key", "exclude": "exclusion",
}  # fmt: skip
"""Constraints that something else than a row decides, with what messages call them."""


def no_key_of_foreign_table(constraint: ast.Constraint) -> SqlError:
    """Return the error for a constraint that only who has the rows could keep."""
    what = KEYS[constraint.kind]
    return SqlError("0A000", f"{what} constraints are not supported on foreign tables", span=constraint.span)


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


def bound_foreign_keys(context: BindContext, parts: TableParts) -> tuple[st.ForeignKeySpec, ...]:
    """Return the foreign keys; what they refer to is looked up when all else of the table is found right.
    Raises as ``foreign_key_spec``.
    """
    created = None if parts.schema is None else (parts.schema, parts.table)
    return tuple(foreign_key_spec(context, node, columns, created) for node, columns in parts.foreign)


# --- keys and checks ------------------------------------------------------------------------------


def _key(parts: TableParts, constraint: ast.Constraint, columns: Sequence[str]) -> st.KeySpec:
    check_tablespace(constraint.tablespace)
    options = check_storage_options(constraint.options, "btree")
    primary = constraint.kind == "primary key"
    if primary and parts.has_primary:
        error = SqlError(
            "42P16",
            f'multiple primary keys for table "{parts.table}" are not allowed',
            span=constraint.span,
        )
        if parts.schema is None:
            raise error
        parts.second_primary = parts.second_primary or error
    parts.has_primary = parts.has_primary or primary
    return st.KeySpec(
        name=constraint.name or None,
        primary=primary,
        columns=tuple(columns),
        nulls_not_distinct=constraint.nulls_not_distinct,
        include=constraint.include,
        using_index=constraint.using_index or None,
        deferrable=constraint.deferrable,
        deferred=constraint.initially_deferred,
        options=options,
        span=constraint.span,
    )


def add_constraint(context: BindContext, parts: TableParts, constraint: ast.Constraint) -> None:
    """Enter a table constraint into ``parts``. Raises SqlError 0A000 for what a foreign table cannot have."""
    if parts.foreign_table and constraint.kind in KEYS:
        raise no_key_of_foreign_table(constraint)
    if constraint.kind == "check":
        parts.checks.append(constraint)
    elif constraint.kind in ("primary key", "unique"):
        parts.keys.append(_key(parts, constraint, constraint.columns))
    elif constraint.kind == "foreign key":
        parts.foreign.append((constraint, tuple(constraint.columns)))
    elif constraint.kind == "exclude":
        parts.exclusions.append(constraint)
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
                raise SqlError("0A000", "index creation on system columns is not supported")
            raise SqlError("42703", f'column "{name}" named in key does not exist', span=span)
        if name in key.columns:
            if name in seen:
                raise SqlError("42701", f'column "{name}" appears twice in {key.words} constraint', span=span)
            seen.add(name)
            check_indexable(column.declared.oid, "btree")


def check_compression(word: str, type_oid: int) -> str:
    """Return how pg_attribute calls COMPRESSION (p, l; "" for the default). Raises SqlError 22023, 0A000 for
    a type that is never compressed.
    """
    if word in ("", "default"):
        return ""
    if word not in ("pglz", "lz4"):
        raise SqlError("22023", f'invalid compression method "{word}"')
    fact = facts().types.get(base_oid(type_oid))
    if fact is not None and fact.length != -1:
        raise SqlError("0A000", f"column data type {format_type(type_oid)} does not support compression")
    return word[0]


def check_clusterable(relation: RelationDef, name: str) -> None:
    """Raise 0A000 where a table cannot be clustered on an index of it."""
    index = next((index for index in relation.every_index if index.name == name), None)
    if index is not None and index.method not in ("btree", "gist"):
        raise SqlError(
            "0A000", f'cannot cluster on index "{name}" because access method does not support clustering'
        )
    if index is not None and index.where_sql:
        raise SqlError("0A000", f'cannot cluster on partial index "{name}"')
    if index is not None and not index.valid:
        raise SqlError("0A000", f'cannot cluster on invalid index "{name}"')


def bound_checks(
    context: BindContext, nodes: Sequence[ast.Constraint], relation: RelationDef
) -> tuple[st.CheckSpec, ...]:
    """Bind CHECK constraints over ``relation``. Raises SqlError 0A000, 42703, 42804, 42803."""
    result: list[st.CheckSpec] = []
    for node in nodes:
        if node.expr is None:
            continue
        expr = with_oids(context, bind_check_expr(context, node.expr, relation))
        used = columns_used(expr)
        result.append(
            st.CheckSpec(
                name=node.name or None,
                expr=expr,
                sql=deparse_expr(expr, relation),
                columns=_used_names(relation, used),
                no_inherit=node.no_inherit,
                not_valid=node.not_valid,
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
            ColumnDef(
                attnum=number,
                name=c.name,
                type=plain_type(c.type),
                not_null=c.not_null,
                generated=c.generated,
                domain=domain_named(c.type),
                collation=c.collation,
            )
            for number, c in enumerate(columns, 1)
        ),
    )

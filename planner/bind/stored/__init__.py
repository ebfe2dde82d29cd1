"""Stored texts: defaults, checks and views are kept as canonical SQL and bound anew where they are used.

    create      AST --bind--> tree --deparse--> text in the catalog
    use         text --parse, bind--> the same tree
    rename      text bound against the catalog of before, printed with the names of after

Stored texts were printed under the codecs' default settings (ISO dates, UTC), so that is how they are read,
whatever the session's settings are. Functions live in pg_catalog alone, so no search path matters either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from pgwire.codecs.registry import text_input, text_output
from pgwire.codecs.settings import DEFAULT, STORED_TEXT, CodecSettings
from pgwire.codecs.users.types import latest_row
from pgwire.give_way import give_way
from pgwire.release import release_all
from planner import ast
from planner.base.errors import Span, SqlError, not_supported
from planner.bind.context import BindContext, make_context
from planner.bind.expression.expr import bind_kept
from planner.bind.recursion import VIEW
from planner.bind.scope import Scope
from planner.bind.stored.renaming import renamed
from planner.catalog import (
    Catalog,
    ColumnDef,
    DatabaseDef,
    ExtensionDef,
    FunctionDef,
    RelationDef,
    RoleDef,
    RowType,
    SchemaDef,
    TextSearchDef,
    TypeDef,
)
from planner.catalog.collations import CollationDef
from planner.catalog.conversions import ConversionDef
from planner.catalog.foreign import ForeignDef, Name
from planner.catalog.opclasses import OpclassDef
from planner.catalog.rights import restricted_functions
from planner.catalog.statistics import StatisticsDef
from planner.conversion.casts import coerce_to_column, try_coerce
from planner.conversion.collations import COLLATIONS, mixing
from planner.conversion.env import CoerceEnv, ParamTypes
from planner.conversion.pathways import CastContext
from planner.deparse import deparse_expr, deparse_query
from planner.facts import BOOL, INT2, INT4, INT8, NUMERIC, REGROLE
from planner.functions.values.names_of import NamesOf
from planner.functions.values.reg import NAMED
from planner.parse import parse_expression
from planner.query import (
    ArrayCoerce,
    ArrayExpr,
    CoerceViaIO,
    Const,
    Expr,
    FuncExpr,
    OutputColumn,
    QueryExpr,
    RangeRef,
    RowExpr,
    Select,
    SubLink,
    Target,
    Var,
)
from planner.query.rewrite import replace_children
from planner.query.tables import table_range
from planner.types import SqlType
from planner.types.facts import format_type


class _NoCatalog:
    """The catalog that a default is bound against: it may not refer to anything.

    Of composite types it knows the latest committed attributes, to show what was bound with a catalog.
    """

    def schema(self, name: str) -> SchemaDef | None:
        return None

    def relation(self, schema: str, name: str) -> RelationDef | None:
        return None

    def relation_by_oid(self, oid: int) -> RelationDef | None:
        return None

    def relations(self, schema: str) -> Sequence[RelationDef]:
        return ()

    def partitions_of(self, oid: int) -> Sequence[RelationDef]:
        return ()

    def typed_tables(self, oid: int) -> Sequence[RelationDef]:
        return ()

    def role(self, name: str) -> RoleDef | None:
        return None

    def role_by_oid(self, oid: int) -> RoleDef | None:
        return None

    def database_named(self, name: str) -> DatabaseDef | None:
        return None

    def type_oid(self, schema: str, name: str) -> int | None:
        return None

    def type_by_oid(self, oid: int) -> TypeDef | None:
        return None

    def row_type(self, oid: int) -> RowType | None:
        shape = latest_row(oid)
        if shape is None:
            return None
        columns = [
            ColumnDef(attnum=i + 1, name="", type=SqlType(BOOL), dropped=True) for i in range(shape.width)
        ]
        for a in shape.attributes:
            declared = a.oid if a.oid != a.plain else 0
            columns[a.slot] = ColumnDef(
                attnum=a.slot + 1, name=a.name, type=SqlType(a.plain, a.typmod), domain=declared
            )
        return RowType(oid=oid, name=shape.name, columns=tuple(columns))

    def constructors_named(self, name: str) -> Sequence[tuple[str, int]]:
        return ()

    def functions_named(self, name: str) -> Sequence[FunctionDef]:
        return ()

    @property
    def guarded_functions(self) -> frozenset[int]:
        return frozenset(restricted_functions())

    def functions_in(self, schema: str) -> Sequence[FunctionDef]:
        return ()

    def extension(self, name: str) -> ExtensionDef | None:
        return None

    def function_by_oid(self, oid: int) -> FunctionDef | None:
        return None

    def text_search_named(self, named_by: int, schema: str, name: str) -> TextSearchDef | None:
        return None

    def text_search_by_oid(self, oid: int) -> TextSearchDef | None:
        return None

    def statistics_named(self, schema_oid: int, name: str) -> tuple[RelationDef, StatisticsDef] | None:
        return None

    def foreign_named(self, class_oid: int, name: Name) -> ForeignDef | None:
        return None

    def opclass_named(self, class_oid: int, method: int, schema: str, name: str) -> OpclassDef | None:
        return None

    def opclass_by_oid(self, oid: int) -> OpclassDef | None:
        return None

    def collation_named(self, schema: str, name: str) -> CollationDef | None:
        return None

    def collation_by_oid(self, oid: int) -> CollationDef | None:
        return None

    def conversion_named(self, schema: str, name: str) -> ConversionDef | None:
        return None

    def conversion_by_oid(self, oid: int) -> ConversionDef | None:
        return None


def stored_context(catalog: Catalog, sql: str, path: Sequence[str] = ("pg_catalog",)) -> BindContext:
    """Return the context in which a stored text is bound."""
    return make_context(catalog, path, text=sql, settings=STORED_TEXT, variable_params=False, stored=True)


EMPTY_CATALOG = _NoCatalog()


def table_query(relation: RelationDef, attnums: Sequence[int]) -> Select:
    """Return ``SELECT columns FROM relation``."""
    by_attnum = {c.attnum: c for c in relation.columns}
    chosen = [by_attnum[attnum] for attnum in attnums]
    return Select(
        columns=tuple(OutputColumn(name=c.name, type=c.type) for c in chosen),
        targets=tuple(
            Target(expr=Var(type=c.type, range=0, attnum=c.attnum, name=c.name), name=c.name) for c in chosen
        ),
        ranges=(replace(table_range(relation), used=frozenset(attnums)),),
        from_=(RangeRef(range=0),),
    )


def table_scope(context: BindContext, relation: RelationDef) -> Scope:
    """Return a scope in which range 0 is ``relation`` (a CHECK, a COPY ... WHERE)."""
    if mixing(relation):
        context.flags.add(COLLATIONS)
    scope = Scope(context=context)
    index = scope.add_range(
        table_range(relation), [(relation.oid, column.attnum) for column in relation.live]
    )
    scope.add_namespace([scope.item(index, relation=relation)])
    return scope


# --- defaults -------------------------------------------------------------------------------------


def coerce_default(expr: Expr, column: str, type_: SqlType, env: CoerceEnv, span: Span | None = None) -> Expr:
    """Convert a DEFAULT to its column's type; 42804 in PostgreSQL's words."""
    coerced = coerce_to_column(expr, type_, env)
    if coerced is None:
        raise SqlError(
            "42804",
            f'column "{column}" is of type {format_type(type_.oid)} but default expression is of type '
            f"{format_type(expr.type.oid)}",
            hint="You will need to rewrite or cast the expression.",
            span=span,
        )
    return coerced


def bind_default(context: BindContext, node: ast.Expression, column: str, type_: SqlType) -> Expr:
    """Bind the expression of a DEFAULT clause; it may use no columns, sub-queries or aggregates."""
    expr = bind_kept(Scope(context=context), node, "DEFAULT")
    return coerce_default(expr, column, type_, context.env)


def _constant_texts(node: object) -> Any:
    """Return a tree in which constant numbers that become texts have done so: they print alike under all settings."""
    node = replace_children(node, _constant_texts)
    if isinstance(node, CoerceViaIO) and isinstance(node.arg, Const) and node.arg.type.oid in _NUMBERS:
        value = node.arg.value
        shown = None if value is None else text_input(node.type.oid, text_output(node.arg.type.oid, value))
        return Const(type=node.type, value=shown, span=node.span)
    return node


_NUMBERS = frozenset((INT2, INT4, INT8, NUMERIC))


def with_oids(context: BindContext, node: object) -> Any:
    """Return a tree in which ``'name'::regclass``, or another type of names, is what it names now, whatever
    that is called later.

    Raises SqlError 42P01, 42704 and so on where there is none of that name, 0A000 for a role, on which
    nothing can be kept to depend.
    """
    node = replace_children(node, lambda child: with_oids(context, child))
    if isinstance(node, FuncExpr) and node.proc == _REGCLASS_OF_TEXT and node.cast == "implicit":
        node = _named_now(context, node, node.args[0])
    elif isinstance(node, CoerceViaIO) and node.type.oid in NAMED and not node.explicit:
        node = _named_now(context, node, node.arg)
    if isinstance(node, Const) and node.type.oid == REGROLE and node.value is not None:
        raise SqlError("0A000", "constant of the type regrole cannot be used here")
    return node


_REGCLASS_OF_TEXT = 1079


def _named_now(context: BindContext, node: Expr, name: Expr) -> Expr:
    if not (isinstance(name, Const) and isinstance(name.value, str)):
        return node
    names = NamesOf(context.catalog, context.search_path, context.database, context.closed)
    return Const(type=node.type, value=names.read(node.type.oid, name.value))


def bound_default(sql: str, type_: SqlType, catalog: Catalog) -> Expr:
    """Return the expression of a stored default as it is printed; what computes it is made of it in
    ``planner.bind.stored.evaluated``. Raises SqlError.
    """
    context = stored_context(catalog, sql)
    expr: Expr = without_spans(bind_default(context, parse_expression(sql), "", type_))
    return expr


def without_spans(node: Any) -> Any:
    """Return a tree without spans: those of a stored text would point into another text."""
    node = replace_children(node, without_spans)
    return replace(node, span=None) if getattr(node, "span", None) is not None else node


def deparse_check(expr: Expr, relation: RelationDef) -> str:
    """Return a CHECK's canonical text with the column names of ``relation``."""
    return deparse_expr(expr, relation)


# --- views ----------------------------------------------------------------------------------------


def rebase_view(
    view: RelationDef, before: Catalog, after: Catalog, *, settings: CodecSettings = DEFAULT
) -> str:
    """Return a view's text as it must read under ``after``, where relations or columns have new names.

    The text is bound against ``before``. Raises SqlError when a relation or column it uses is gone.
    """
    context = stored_context(before, view.view_sql, view.view_path)
    query = renamed(VIEW.call(context, view), after)
    return deparse_query(query, names=[column.name for column in view.columns])


def rebase_readable_view(view: RelationDef, before: Catalog, after: Catalog) -> str:
    """Return ``rebase_view``; the text as it is where it has no meaning under ``before`` either."""
    try:
        query = VIEW.call(stored_context(before, view.view_sql, view.view_path), view)
    except SqlError as error:
        if error.ends_statement:
            raise
        return view.view_sql
    return deparse_query(renamed(query, after), names=[column.name for column in view.columns])


def stored_query(context: BindContext, query: QueryExpr, names: Sequence[str]) -> str:
    """Return the text that a query is stored as, its columns called ``names``.

    Raises SqlError 0A000 where the text does not mean the query: better now than whenever it is read. The
    trees that are made for that are freed in slices.
    """
    trees: list[QueryExpr] = [with_oids(context, query)]
    try:
        sql = deparse_query(trees[0], names=names)
        view = RelationDef(
            oid=0, schema_oid=0, schema="", name="", kind="v", view_sql=sql, view_path=context.search_path
        )
        try:
            trees.append(VIEW.call(stored_context(context.catalog, sql, context.search_path), view))
        except SqlError as error:
            # nested too deeply: so it is in PostgreSQL
            if error.sqlstate == "42P17" or error.ends_statement:
                raise
            raise not_supported(
                f"storing a query that would be read with an error ({error.message})"
            ) from error
        if not _one_meaning(*trees):
            raise not_supported("storing a query that would be read as another one")
        return sql
    finally:
        release_all(trees)


# What ranges, columns and fields are called, printed with names of their own where two have one, and what is
# noted of them.
_CALLED: Final = frozenset(("alias", "name", "names", "used"))


def _one_meaning(one: Any, other: Any) -> bool:
    """Tell whether two trees differ in nothing but names."""
    stack = [(one, other)]
    while stack:
        give_way()
        a, b = stack.pop()
        if a is b:
            continue
        if isinstance(a, RowExpr) and a.names and isinstance(b, SubLink):
            continue  # how a row of a join's alias is printed
        if {type(a), type(b)} == {ArrayCoerce, ArrayExpr}:
            continue  # the cast of an array is bound as casts of its elements
        if type(a) is not type(b):
            return False
        if isinstance(a, OutputColumn):
            stack.append((a.type, b.type))  # not where RowDescription says that it comes from
        elif is_dataclass(a):
            stack += [
                (getattr(a, f.name), getattr(b, f.name))
                for f in fields(a)
                if f.compare and f.name not in _CALLED
            ]
        elif isinstance(a, tuple):
            if len(a) != len(b):
                return False
            stack += zip(a, b, strict=True)
        elif a != b and (a == a or b == b):  # NaN is what it is
            return False
    return True


def rebase_default_text(sql: str, type_: SqlType, before: Catalog, after: Catalog) -> str:
    """Return the text of a stored default as it must read under ``after``."""
    made: Expr = renamed(bound_default(sql, type_, before), after)
    return deparse_expr(made)


# --- arguments of EXECUTE -------------------------------------------------------------------------


def coerce_argument(
    expr: Expr,
    oid: int,
    *,
    settings: CodecSettings,
    row_type: Callable[[int], RowType | None],
    check_name: Callable[[int, str], object],
    search_name: Callable[[int, str], int],
) -> Expr:
    """Convert an argument of EXECUTE to its parameter's type; for the others see ``CoerceEnv``.

    Raises SqlError 42804 whose message says ``$n`` where the caller knows the position.
    """
    env = CoerceEnv(
        settings=settings,
        params=ParamTypes((), variable=False),
        row_type=row_type,
        check_name=check_name,
        search_name=search_name,
    )
    coerced = try_coerce(expr, SqlType(oid), CastContext.ASSIGNMENT, env)
    if coerced is None:
        raise SqlError(
            "42804",
            f"parameter $n of type {format_type(expr.type.oid)} cannot be coerced to the expected type "
            f"{format_type(oid)}",
            hint="You will need to rewrite or cast the expression.",
            span=expr.span,
        )
    return coerced

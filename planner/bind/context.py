"""What binding one statement shares: where names are looked up, what was touched, what was folded in.

One ``BindContext`` lives as long as one call of ``bind_statement``. It collects what the plan cache and the
router need to know afterwards: relations with their versions, whether anything volatile was called, which
settings a literal was read under. View bodies are bound under a copy with the view's own search path
(``for_view``) that shares all collections.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from pgwire.codecs.settings import DEFAULT, STORED_TEXT, CodecSettings
from planner import ast
from planner.base.errors import Span, SqlError
from planner.catalog import Catalog, FunctionDef, RelationDef, RoleDef, RowType, SystemCatalog, row_type_named
from planner.catalog.extensions import WITH_OPERATORS, with_operators
from planner.catalog.guard import guarded
from planner.conversion.env import CoerceEnv, ParamTypes
from planner.conversion.type_names import find_builtin, resolve_type
from planner.functions.values.names_of import NamesOf
from planner.query import Expr, OutputColumn
from planner.textsearch.names import read_stored
from planner.types import SqlType

if TYPE_CHECKING:
    from planner.bind.scope import Scope

# A view may be defined over views this deep; more is taken for a loop.
MAX_VIEW_DEPTH = 64


@dataclass(frozen=True, slots=True)
class WithStep:
    """A part of a statement whose WITH changes data, or a transition table, as names find it; ``columns``
    None: it returns no rows.
    """

    number: int
    columns: tuple[OutputColumn, ...] | None


@dataclass(frozen=True, slots=True)
class Arguments:
    """What names mean in a function's body where no column has them: its inputs ("" = unnamed) are $1, $2 ..."""

    function: str
    names: tuple[str, ...]

    def number(self, names: Sequence[str]) -> int:
        """Return the number of the input that ``name`` or ``function.name`` means, 0 if none."""
        if len(names) == 2 and names[0] != self.function:
            return 0
        return self.names.index(names[-1]) + 1 if len(names) <= 2 and names[-1] in self.names else 0


@dataclass(frozen=True, slots=True)
class RowSecurity:
    """Whose row-level security counts: the current user's. ``enforced``: the setting row_security;
    ``catalog``: who is who.

    ``closed``: the schemas in which the user may not look anything up (no USAGE). ``version``: that of ``catalog``.
    """

    role: RoleDef
    enforced: bool
    catalog: SystemCatalog
    closed: frozenset[str] = frozenset()
    version: int = 0

    @property
    def key(self) -> tuple[int, bool, int]:
        """What ``BoundStatement.row_security`` keeps of it."""
        return self.role.oid, self.enforced, self.version


class NamedValues(Protocol):
    """What names mean that may be no columns (``planner.plpgsql.variables``)."""

    def resolve(
        self, scope: Any, node: ast.ColumnRef, as_column: Callable[[Any, ast.ColumnRef], Expr]
    ) -> Expr:
        """Return what a name means; ``as_column`` finds a column, or raises."""

    def cursor(self, name: str, span: Span | None) -> Expr | None:
        """Return the variable that names a cursor, if there is one."""
        ...

    def row(self, scope: Any, names: ast.Name, span: Span | None) -> list[tuple[str, Expr]] | None:
        """Return what ``names.*`` stands for, None where it is none of them."""


@dataclass(slots=True)
class BindContext:
    """Shared state of one bind.

    ``search_path``: existing schemas in order; pg_catalog is first unless listed. ``env`` carries codec
    settings, parameter types and folded settings. ``reads``: oids of base and virtual relations;
    ``versions``: every relation looked at (views included) with its version; ``uses_virtual``: some range is
    a virtual relation; ``volatile``: a volatile function is called; ``database``: the current database's
    name, for three-part names. ``steps``: what names mean that are no tables but parts of the statement
    (``planner.bind.change.with_items``), or a trigger's transition tables; ``future_steps``: those of parts
    that come later. ``arguments``: of the function whose body is bound. ``functions``: oids of users'
    functions that the statement runs; ``running``: those whose bodies are being bound as statements of their
    own. ``keeps``: what is bound is kept with a table or domain (``planner.bind.stored.runnable``).
    ``variables``: of the PL/pgSQL function whose statement is bound. ``security``: for whom it is to run;
    ``closed``: schemas whose names that user may not write, while a text of theirs is bound. ``defines``: it
    is only looked at. ``keys``: primary keys that grouped queries rely on, by the depth of views that they
    are at and the oid of their constraint. ``changing``: by identity, the items of WITH that may change data,
    of a statement that is kept to be printed; ``around``: the scope that such an item is in.
    """

    catalog: Catalog
    search_path: tuple[str, ...]
    env: CoerceEnv
    text: str = ""
    database: str = ""
    reads: set[int] = field(default_factory=set)
    versions: dict[int, int] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    view_depth: int = 0
    steps: dict[str, WithStep] = field(default_factory=dict)
    future_steps: set[str] = field(default_factory=set)
    arguments: Arguments | None = None
    functions: set[int] = field(default_factory=set)
    running: frozenset[int] = frozenset()
    keeps: bool = False
    variables: NamedValues | None = None
    security: RowSecurity | None = None
    closed: frozenset[str] = frozenset()
    defines: bool = False
    keys: set[tuple[int, int]] = field(default_factory=set)
    changing: frozenset[int] = frozenset()
    around: Scope | None = None

    @property
    def volatile(self) -> bool:
        """Tell whether a volatile function was bound so far."""
        return "volatile" in self.flags

    @property
    def uses_virtual(self) -> bool:
        """Tell whether a virtual catalog relation was bound so far."""
        return "virtual" in self.flags

    def for_view(self, relation: RelationDef) -> BindContext:
        """Return the context that the body of a view is bound in. Raises 42P17 for endless nesting."""
        if self.view_depth >= MAX_VIEW_DEPTH:
            raise SqlError("42P17", f'infinite recursion detected in rules for relation "{relation.name}"')
        return replace(
            self,
            search_path=relation.view_path or self.search_path,
            env=CoerceEnv(
                # under which stored texts were printed: they mean the same under any
                settings=STORED_TEXT,
                params=ParamTypes((), variable=False),
                row_type=self.env.row_type,
                extensions=WITH_OPERATORS,
            ),
            text=relation.view_sql,
            view_depth=self.view_depth + 1,
            closed=frozenset(),
            steps={},
            future_steps=set(),
            arguments=None,
            variables=None,
        )

    def for_stored(self, sql: str) -> BindContext:
        """Return the context that the text of a policy is bound in. Raises 42P17 for endless nesting."""
        if self.view_depth >= MAX_VIEW_DEPTH:
            raise SqlError("42P17", "infinite recursion detected in policies")
        return replace(
            self,
            search_path=("pg_catalog",),
            env=CoerceEnv(
                settings=STORED_TEXT,
                params=ParamTypes((), variable=False),
                row_type=self.env.row_type,
                extensions=WITH_OPERATORS,
            ),
            text=sql,
            view_depth=self.view_depth + 1,
            closed=frozenset(),
            steps={},
            future_steps=set(),
            arguments=None,
            variables=None,
        )

    def for_function(self, function: FunctionDef, types: Sequence[int]) -> BindContext:
        """Return the context that the body of a function is bound in, whose inputs have these types. Raises 54001."""
        if self.view_depth >= MAX_VIEW_DEPTH:
            raise SqlError(
                "54001", "stack depth limit exceeded", hint="SQL functions call each other too deep."
            )
        stored = bool(function.body_sql)
        path = self.search_path
        search_name: Callable[[int, str], int] = read_stored
        if stored:
            path = function.path
        elif self.keeps:
            path = tuple(dict.fromkeys(("pg_catalog", function.schema, "public")))
        if not stored:
            search_name = NamesOf(self.catalog, path, self.database, self.closed).search_name
        return replace(
            self,
            search_path=path,
            env=CoerceEnv(
                settings=STORED_TEXT if stored else self.env.settings,
                params=ParamTypes(types, variable=False),
                folded=self.env.folded,
                row_type=self.env.row_type,
                search_name=search_name,
                extensions=WITH_OPERATORS if stored else with_operators(self.catalog, path),
            ),
            text=function.body_sql or function.source,
            view_depth=self.view_depth + 1,
            closed=frozenset() if stored else self.closed,
            steps={},
            future_steps=set(),
            arguments=Arguments(function.name, function.input_names),
            variables=None,
        )

    def check_open(self, schema: str, span: Span | None = None) -> None:
        """Raise SqlError 42501 for the name of a schema that the user may not use; "" is no name."""
        if schema in self.closed:
            raise SqlError("42501", f"permission denied for schema {schema}", span=span)

    def has_schema(self, schema: str, span: Span | None = None) -> bool:
        """Tell whether functions may be looked for in a schema ("": along the search path). Raises SqlError 42501."""
        self.check_open(schema, span)
        if schema == "pg_temp":
            return any(entry.startswith("pg_temp_") for entry in self.search_path)
        return schema in ("", "pg_catalog") or self.catalog.schema(schema) is not None

    def require_schema(self, schema: str) -> None:
        """Raise SqlError 3F000 for the name of a schema that is not there, 42501 as ``check_open``; "" is no name."""
        if not self.has_schema(schema):
            raise SqlError("3F000", f'schema "{schema}" does not exist')

    def own_schema(self, schema: str) -> str:
        """Return what ``pg_temp`` stands for: the session's own schema, which is in its path once it exists;
        others as they are.
        """
        if schema == "pg_temp":
            return next((s for s in self.search_path if s.startswith("pg_temp_")), schema)
        return schema

    # --- relations ------------------------------------------------------------------------------

    def find_relation(self, schema: str, name: str) -> RelationDef | None:
        """Return the relation a name means (``schema`` "" searches the path), and note its version. Raises
        SqlError 42501.
        """
        self.check_open(schema)
        return self.holder(schema, name)

    def holder(self, schema: str, name: str) -> RelationDef | None:
        """As ``find_relation``, of a name that is to be given: who may create in a schema need not have USAGE of it."""
        found: RelationDef | None = None
        schema = self.own_schema(schema)
        if schema:
            found = self.catalog.relation(schema, name)
        else:
            for candidate in self.search_path:
                found = self.catalog.relation(candidate, name)
                if found is not None:
                    break
        if found is not None:
            self.versions[found.oid] = found.version
        return found

    def find_type(self, schema: str, name: str) -> int | None:
        """Return the oid of the type a name means (``schema`` "" searches the path). Raises SqlError 3F000, 42501."""
        self.check_open(schema)
        schema = self.own_schema(schema)
        if schema and schema != "pg_catalog" and self.catalog.schema(schema) is None:
            raise SqlError("3F000", f'schema "{schema}" does not exist')
        for entry in (schema,) if schema else self.search_path:
            found = (
                find_builtin("pg_catalog", name) or self._row_type(entry, name)
                if entry == "pg_catalog"
                else self.catalog.type_oid(entry, name) or self._row_type(entry, name)
            )
            if found is not None:
                return found
        return None

    def _row_type(self, schema: str, name: str) -> int | None:
        found = row_type_named(self.catalog, schema, name)
        if found is None:
            return None
        relation, oid = found
        self.versions[relation.oid] = relation.version
        return oid

    def type_of(self, name: ast.TypeName) -> SqlType:
        """Return the type a written name means. Raises as ``planner.conversion.type_names.resolve_type``."""
        return resolve_type(name, self.find_type)

    def relation(
        self, schema: str, name: str, span: Span | None = None, *, catalog: str = "", read: bool = False
    ) -> RelationDef:
        """Return the relation a name means. Raises 42P01, 42501, 0A000 for another database's; 3F000 where it
        is not ``read``.

        ``read``: in a query or a change of rows, where PostgreSQL does not tell a schema that is missing from
        a relation that is.
        """
        if catalog and self.database and catalog != self.database:
            raise SqlError(
                "0A000",
                f'cross-database references are not implemented: "{catalog}.{schema}.{name}"',
                span=span,
            )
        self.check_open(schema, span)
        found = self.find_relation(schema, name)
        if found is None:
            if not read:
                self.require_schema(schema)
            shown = f"{schema}.{name}" if schema else name
            raise SqlError("42P01", f'relation "{shown}" does not exist', span=span)
        return found


def make_context(
    catalog: Catalog,
    search_path: Sequence[str],
    *,
    text: str = "",
    param_types: Sequence[int] = (),
    settings: CodecSettings = DEFAULT,
    database: str = "",
    variable_params: bool = True,
    stored: bool = False,
    security: RowSecurity | None = None,
    drops: bool = False,
) -> BindContext:
    """Make the context of one bind; ``param_types`` are the client's (0 = not declared).

    ``stored``: of a text in the catalog. What its literals name is looked up when it is evaluated, on the
    session's path. Such a text, and a statement that ``drops``, may name what cannot be read: it is fenced
    off with that, or goes with it.
    """
    if not (stored or drops):
        catalog = guarded(catalog)
    path = tuple(search_path)
    if "pg_catalog" not in path:
        path = ("pg_catalog", *path)
    params = ParamTypes(param_types, variable=variable_params)
    closed = frozenset[str]() if security is None or stored else security.closed
    versions: dict[int, int] = {}

    def row_type(oid: int) -> RowType | None:
        found = catalog.row_type(oid)
        if found is not None and found.relation:
            relation = catalog.relation_by_oid(found.relation)
            if relation is not None:
                versions[relation.oid] = relation.version
        return found

    names = NamesOf(catalog, path, database, closed)
    return BindContext(
        catalog=catalog,
        search_path=path,
        env=CoerceEnv(
            settings=settings,
            params=params,
            row_type=row_type,
            check_name=(lambda oid, text: None) if stored else names.read,
            search_name=read_stored if stored else names.search_name,
            extensions=WITH_OPERATORS if stored else with_operators(catalog, path),
        ),
        versions=versions,
        text=text,
        database=database,
        security=security,
        closed=closed,
    )

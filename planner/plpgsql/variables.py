"""Variables of PL/pgSQL in statements of SQL: each that is named becomes a parameter.

    UPDATE t SET n = total WHERE id = r.id      total, r.id are no columns of t: $1 = variable total, $2 = field id of record r

A name that is a column as well is refused (42702), unless #variable_conflict says which it is (manual
43.11.1). A record's fields are those of the row that it holds when the statement is bound: ``shapes`` tells
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from weakref import ref

from planner import ast
from planner.base.errors import Span, SqlError
from planner.bind.expression.columns import is_row, row_fields, select_field
from planner.bind.scope import Scope
from planner.conversion.composite import is_composite
from planner.conversion.env import ParamTypes
from planner.facts import RECORD
from planner.plpgsql.declarations import REFCURSOR
from planner.plpgsql.tree import Conflict, Names, Variable
from planner.query import Const, Expr, Param, RelabelType, RowExpr
from planner.types import SqlType
from planner.types.domains import names_domain, plain_type

_Fields: TypeAlias = "tuple[tuple[int, ...], tuple[str, ...], tuple[int, ...]]"
Shape: TypeAlias = "_Fields | int | None"
"""Of a record: the types, names and type modifiers (none: -1 each) of its fields, None if it holds no row
yet; of a value of any type: its type."""

NO_COLUMN: Final = frozenset(("42703", "42P01"))


@dataclass(frozen=True, slots=True)
class Source:
    """Where a parameter's value is: in a variable, or in a field of the record that it holds."""

    variable: int
    field: int | None = None


def unassigned(variable: Variable) -> SqlError:
    """Return the error for a record of which something is asked before it holds a row."""
    return SqlError(
        "55000",
        f'record "{variable.name}" is not assigned yet',
        detail="The tuple structure of a not-yet-assigned record is indeterminate.",
    )


class VariableParams(ParamTypes):
    """The parameters of a statement of PL/pgSQL: ``$n`` is the function's n-th one, all others are made as
    names are met.
    """

    __slots__ = ("_names",)

    def __init__(self, names: VariableNames) -> None:
        """``names`` finds what ``$n`` is; it has these parameters itself, and a cycle would wait for the collector."""
        super().__init__((), variable=False)
        self._names = ref(names)

    def reference(self, number: int, span: Span | None = None) -> Param:
        """Return the parameter for what is written ``$number``. Raises 42P02."""
        names = self._names()
        if names is None:
            raise AssertionError("the statement is bound")
        return names.of_number(number, span)

    def finish(self) -> tuple[int, ...]:
        """Return all types; a field of a row that was made of literals has none, and none is deduced."""
        return tuple(self.types)


class VariableNames:
    """Finds what names mean in one statement, and collects what its parameters are (``sources``)."""

    def __init__(
        self, variables: Sequence[Variable], names: Names, conflict: Conflict, shapes: Mapping[int, Shape]
    ) -> None:
        """``names``: those that can be seen where the statement stands; ``shapes``: of records, by variable."""
        self.variables = list(variables)
        self.names = names
        self.conflict = conflict
        self.shapes = shapes
        self.sources: list[Source] = []
        self.numbers: dict[Source, int] = {}
        self.refusal: SqlError | None = None  # what a record's value did not allow
        self.dynamic: set[int] = set()  # variables whose shapes were asked for
        self.zero_based: frozenset[int] = frozenset()  # arrays whose subscripts begin at 0
        self.opened: frozenset[int] = frozenset()  # rows whose fields are at hand as those of records
        self.params = VariableParams(self)

    # -- what statements ask -----------------------------------------------------------------------

    def resolve(
        self, scope: Scope, node: ast.ColumnRef, as_column: Callable[[Scope, ast.ColumnRef], Expr]
    ) -> Expr:
        """Return what a name means. Raises SqlError 42702 where it is a variable and a column, 42703, 42P01, 55000."""
        if self.conflict == "use_variable":
            made = self._reference(scope, node)
            return as_column(scope, node) if made is None else made
        try:
            column = as_column(scope, node)
        except SqlError as error:
            if error.sqlstate not in NO_COLUMN:
                raise
            made = self._reference(scope, node)
            if made is None:
                raise
            return made
        if self.conflict == "error" and self._known(scope, node):
            raise SqlError(
                "42702",
                f'column reference "{".".join(node.names)}" is ambiguous',
                detail="It could refer to either a PL/pgSQL variable or a table column.",
                span=node.span,
            )
        return column

    def row(self, scope: Scope, names: ast.Name, span: Span | None) -> list[tuple[str, Expr]] | None:
        """Return the fields of ``names.*``, None where it is no variable."""
        found = self.names.find(names, self.variables)
        if found is None or found[1] != len(names):
            return None
        variable = self.variables[found[0]]
        row = scope.context.env.row_type(variable.type.oid) if variable.number in self.opened else None
        if row is not None:
            return [
                (c.name, self.param(Source(variable.number, at), c.declared, span))
                for at, c in enumerate(row.live)
            ]
        value = self.value(found[0], span)
        return row_fields(scope, value, span) if is_row(value) else None

    def cursor(self, name: str, span: Span | None) -> Expr | None:
        """Return the variable that WHERE CURRENT OF names, None where it is no refcursor."""
        found = self.names.find((name,), self.variables)
        if found is None or self.variables[found[0]].type.oid != REFCURSOR:
            return None
        return self.value(found[0], span)

    # -- variables ---------------------------------------------------------------------------------

    def value(self, number: int, span: Span | None = None) -> Expr:
        """Return a variable as an expression: NULL for a record that holds nothing."""
        variable = self.variables[number]
        if variable.kind == "record":
            self.dynamic.add(number)
            if self.shapes.get(number) is None:
                return Const(type=SqlType(RECORD), value=None, span=span)
            types, names, typmods = self._fields(variable, span)
            fields = tuple(
                self.param(Source(number, i), SqlType(oid, typmods[i] if typmods else -1), span)
                for i, oid in enumerate(types)
            )
            return RowExpr(type=SqlType(RECORD), fields=fields, names=names, span=span)
        if variable.kind == "any":
            self.dynamic.add(number)
            shape = self.shapes.get(number)
            if not isinstance(shape, int):
                raise AssertionError(f"variable {number} is no single value")
            return self.param(Source(number), SqlType(shape), span)
        return self.param(Source(number), variable.type, span)

    def _fields(self, variable: Variable, span: Span | None) -> _Fields:
        self.dynamic.add(variable.number)
        shape = self.shapes.get(variable.number)
        if not isinstance(shape, tuple):
            self.refusal = unassigned(variable)
            raise self.refusal
        return shape

    def param(self, source: Source, type_: SqlType, span: Span | None = None) -> Expr:
        """Return the parameter that stands for a source, which is of ``type_``."""
        plain = plain_type(type_) if names_domain(type_.oid) else type_
        number = self.numbers.get(source)
        if number is None:
            self.sources.append(source)
            self.params.types.append(plain.oid)
            number = self.numbers[source] = len(self.sources)
        if plain is type_:
            return Param(type=type_, number=number, span=span)
        return RelabelType(
            type=SqlType(type_.oid), arg=Param(type=SqlType(plain.oid), number=number, span=span), span=span
        )

    def of_number(self, number: int, span: Span | None) -> Param:
        """Return the parameter for the function's ``$number``. Raises SqlError 42P02."""
        found = self.names.find((f"${number}",), self.variables)
        made = None if found is None else self.value(found[0], span)
        if isinstance(made, RelabelType):
            made = made.arg
        if not isinstance(made, Param):
            raise SqlError("42P02", f"there is no parameter ${number}", span=span)
        return made

    def _reference(self, scope: Scope, node: ast.ColumnRef) -> Expr | None:
        """Return a variable, or a field of one. Raises SqlError 42703 where a row has no such field."""
        if node.star:
            return None
        found = self.names.find(node.names, self.variables)
        if found is None or len(node.names) > found[1] + 1:
            return None
        number, used = found
        if used == len(node.names):
            return self.value(number, node.span)
        return self._field(scope, self.variables[number], node)

    def _field(self, scope: Scope, variable: Variable, node: ast.ColumnRef) -> Expr | None:
        name = node.names[-1]
        if variable.kind == "record":
            types, names, typmods = self._fields(variable, node.span)
            if name in names:
                at = names.index(name)
                type_ = SqlType(types[at], typmods[at] if typmods else -1)
                return self.param(Source(variable.number, at), type_, node.span)
        elif is_composite(variable.type.oid):
            row = scope.context.env.row_type(variable.type.oid) if variable.number in self.opened else None
            for at, column in enumerate(() if row is None else row.live):
                if column.name == name:
                    return self.param(Source(variable.number, at), column.declared, node.span)
            try:
                return select_field(scope, self.value(variable.number, node.span), name, node.span)
            except SqlError as error:
                if error.sqlstate != "42703":
                    raise
        else:
            return None
        self.refusal = SqlError("42703", f'record "{variable.name}" has no field "{name}"', span=node.span)
        raise self.refusal

    def _known(self, scope: Scope, node: ast.ColumnRef) -> bool:
        """Tell whether names mean a variable, whatever else they mean. Raises SqlError as ``_reference``."""
        found = None if node.star else self.names.find(node.names, self.variables)
        if found is None or len(node.names) > found[1] + 1:
            return False
        number, used = found
        if used == len(node.names):
            return True
        # PostgreSQL looks the field up before it asks whether there is such a column, too
        return self._field(scope, self.variables[number], node) is not None

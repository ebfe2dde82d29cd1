"""Composite values and anonymous rows: from one to the other.

ROW(1, 'x')::t      ComposeRow(Row(Const 1, Const 'x' -> text))     each field as the attribute's type
(c).f               FieldSelect(DecomposeRow(c))                    of ComposeRow(Row(...), too: a stored one hangs on the type
c IS NULL           NullTest(DecomposeRow(c))                       looks at the fields
c = d               record_eq(c, d)                                 of one type: compared as they stand
c = ROW(1, 'x')     record_eq(DecomposeRow(c), Row(...))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pgwire.codecs.users.types import STORED
from planner.base.errors import Span, SqlError
from planner.catalog import ColumnDef, RowType
from planner.conversion.env import CoerceEnv
from planner.facts import RECORD
from planner.query import ComposeRow, Const, DecomposeRow, Expr, FieldSelect, RowExpr
from planner.types import SqlType
from planner.types.domains import base_oid, is_domain
from planner.types.facts import element_of, format_type, range_of, range_subtype, type_kind

FindRow = Callable[[int], RowType | None]
"""From the oid of a composite type to its attributes; None for any other type."""


def is_composite(oid: int) -> bool:
    """Tell whether a type is composite, or a domain over such a type."""
    return type_kind(base_oid(oid)) == "c"


_OF: dict[
    int, frozenset[int]
] = {}  # row types of typed tables, with the types that the tables are of, or were
_TYPED: set[int] = set()  # types that tables are of, or were


def note_typed(row: int, of: int) -> bool:
    """Note what ``planner.conversion.polymorphic.register_typed`` is told; returns whether it is news."""
    known = _OF.get(row, frozenset())
    if of in known:
        return False
    _OF[row] = known | {of}
    _TYPED.add(of)
    return True


def forget_typed(oid: int) -> None:
    """Take back what ``note_typed`` was told of a type, whichever of the two it was."""
    _OF.pop(oid, None)
    if oid in _TYPED:
        _TYPED.discard(oid)
        for row, known in list(_OF.items()):
            if oid in known:
                _OF[row] = known - {oid}


def is_row_of(source: int, target: int) -> bool:
    """Tell whether ``source`` is the type of a table's rows, and the table one of the composite type
    ``target``, or has been.
    """
    return target in _OF.get(source, ())


def has_domains(oid: int, find: FindRow) -> bool:
    """Tell whether values of a type have attributes, or bounds, of domains in them, at any depth."""
    left, seen = [oid], set[int]()
    while left:
        oid = base_oid(left.pop())
        oid = base_oid(element_of(oid) or oid)
        element = range_subtype(oid) or range_subtype(range_of(oid))
        if is_domain(element):
            return True
        oid = element or oid
        row = None if oid in seen else find(oid)
        seen.add(oid)
        if row is not None:
            if any(column.domain for column in row.live):
                return True
            left += [column.declared.oid for column in row.live]
    return False


def decompose(expr: Expr, row: RowType) -> Expr:
    """Return a composite value as an anonymous row."""
    if not isinstance(expr, ComposeRow) or expr.named:
        return taken_apart(expr, row)
    inner = expr.arg
    if isinstance(inner, DecomposeRow) and isinstance(inner.arg, ComposeRow):
        return inner.arg.arg  # ``typed_row``
    return inner


def taken_apart(expr: Expr, row: RowType) -> DecomposeRow:
    """Return a composite value as an anonymous row, whatever it was made of."""
    live = row.live
    return DecomposeRow(
        type=SqlType(RECORD), arg=expr, slots=row.slots, types=tuple(c.type.oid for c in live),
        names=tuple(c.name for c in live), span=expr.span,
    )  # fmt: skip


def compose(row: Expr, target: RowType, *, explicit: bool, span: Span | None) -> ComposeRow:
    """Return an anonymous row, whose fields are of the attributes' types, as a value of a composite type."""
    return ComposeRow(
        type=SqlType(target.oid), arg=row, slots=target.slots, types=tuple(c.type.oid for c in target.live),
        names=tuple(c.name for c in target.live), width=len(target.columns), explicit=explicit, span=span,
    )  # fmt: skip


def decomposed(expr: Expr, find: FindRow) -> Expr:
    """Return a value that is composite as an anonymous row, and any other as it is."""
    if not is_composite(expr.type.oid):
        return expr
    row = find(base_oid(expr.type.oid))
    return expr if row is None else decompose(expr, row)


def opened(expr: Expr, find: FindRow) -> Expr:
    """Return what ``decomposed`` does; what a row constructor made stays one of its type, on which a stored
    expression hangs.
    """
    made = isinstance(expr, ComposeRow) and isinstance(expr.arg, RowExpr)
    row = find(base_oid(expr.type.oid)) if made else None
    return decomposed(expr, find) if row is None else taken_apart(expr, row)


def row_as(
    expr: Expr,
    target: int,
    env: CoerceEnv,
    convert: Callable[[Expr, SqlType], Expr | None],
    *,
    explicit: bool,
    span: Span | None,
) -> Expr:
    """Return an anonymous row as one of the composite type ``target``; ``convert`` makes its fields fit.

    Raises:
        SqlError: 42846 for a row of other fields, or whose fields nobody knows; one of a stored text may lack
        those at the end.
    """
    row = env.row_type(target)
    if row is None:
        raise SqlError("42704", f"type with OID {target} does not exist", span=span)
    span = span or expr.span
    if isinstance(expr, DecomposeRow):
        expr = _fields_of(expr)
    elif id(expr) in env.whole_rows:
        expr = env.whole_rows[id(expr)][1]()
    if not isinstance(expr, RowExpr):
        raise _no_cast(row, None, span)
    live = row.live
    fields: list[Expr] = []
    for number, (field, column) in enumerate(zip(expr.fields, live, strict=False), 1):
        wanted = attribute_type(column)
        made = convert(field, wanted)
        if made is None:
            detail = f"Cannot cast type {format_type(field.type.oid)} to {format_type(wanted.oid)} in column {number}."
            raise _no_cast(row, detail, span)
        fields.append(made)
    if len(expr.fields) < len(live):
        if env.settings.types is not STORED:
            raise _no_cast(row, "Input has too few columns.", span)
        # the type has been given attributes since the text was stored
        fields += [Const(type=attribute_type(column), value=None) for column in live[len(expr.fields) :]]
    if len(expr.fields) > len(live):
        raise _no_cast(row, "Input has too many columns.", span)
    made_row = RowExpr(type=SqlType(RECORD), fields=tuple(fields), names=expr.names, span=expr.span)
    return compose(made_row, row, explicit=explicit, span=span)


def typed_row(expr: Expr, target: int, env: CoerceEnv, *, explicit: bool, span: Span | None) -> Expr:
    """Return a row of a typed table as one of the table's type ``target``. Raises SqlError 42846 where the
    two have come apart (NOT OF).
    """
    source, row = env.row_type(expr.type.oid), env.row_type(target)
    if (
        source is None
        or row is None
        or [(c.name, c.declared) for c in source.live] != [(c.name, c.declared) for c in row.live]
    ):
        raise SqlError(
            "42846",
            f"cannot cast type {format_type(expr.type.oid)} to {format_type(target)}",
            span=span or expr.span,
        )
    # even of what was composed: that a row of the table was converted shows in what is printed
    return compose(taken_apart(expr, source), row, explicit=explicit, span=span or expr.span)


def attribute_type(column: ColumnDef) -> SqlType:
    """Return the type that an attribute was declared as."""
    return column.declared


def _fields_of(expr: DecomposeRow) -> RowExpr:
    fields = tuple(
        FieldSelect(type=SqlType(oid), arg=expr, index=i, span=expr.span) for i, oid in enumerate(expr.types)
    )
    return RowExpr(type=SqlType(RECORD), fields=fields, names=expr.names, span=expr.span)


def _no_cast(row: RowType, detail: str | None, span: Span | None) -> SqlError:
    return SqlError("42846", f"cannot cast type record to {format_type(row.oid)}", detail=detail, span=span)


def fields_made(expr: Expr) -> tuple[Expr, ...] | None:
    """Return the columns of a row constructor, be it cast to a composite type; None for any other expression."""
    row = expr.arg if isinstance(expr, ComposeRow) else expr
    return row.fields if isinstance(row, RowExpr) else None


def same_composite(oids: Sequence[int]) -> bool:
    """Tell whether all are one composite type: such values are compared as they stand."""
    bases = {base_oid(oid) for oid in oids}
    return len(bases) == 1 and is_composite(next(iter(bases)))

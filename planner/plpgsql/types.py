"""Types as DECLARE has them: names of types, ``variable%TYPE``, ``table.column%TYPE``, ``table%ROWTYPE``,
``record``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from planner import ast
from planner.base.errors import Span, SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.define.collation import find_collation
from planner.catalog import ColumnDef
from planner.catalog.relation_kinds import COLUMNED
from planner.conversion.composite import is_composite
from planner.conversion.polymorphic import POLYMORPHIC
from planner.facts import RECORD, facts
from planner.parse import parse_expression
from planner.plpgsql.stream import Stream
from planner.plpgsql.tree import Kind, Names, Variable
from planner.types import SqlType
from planner.types.facts import format_type

_OF: Final = re.compile(r"%\s*(type|rowtype)\s*$", re.IGNORECASE)


def kind_of(type_: SqlType) -> Kind:
    """Return how variables of a type are kept."""
    if type_.oid == RECORD:
        return "record"
    return "row" if is_composite(type_.oid) else "scalar"


class CatalogTypes:
    """Finds types in the catalog that ``context`` binds against, which is told what it rests on."""

    def __init__(self, context: BindContext) -> None:
        """Look names up as statements bound under ``context`` do."""
        self.context = context

    def check_collation(self, name: tuple[str, ...]) -> None:
        """Raise SqlError 42704, 3F000, 0A000 unless there is a collation of a name."""
        find_collation(self.context, name, None)

    def resolve(
        self, text: str, at: int, names: Names, variables: Sequence[Variable]
    ) -> tuple[SqlType, Kind]:
        """Return a type. Raises SqlError 42704, 42P01, 42703, 42601; 0A000 for pseudo-types."""
        of = _OF.search(text)
        try:
            if of is not None and of[1].lower() == "type":
                found = self._type_of(_path(text[: of.start()]), names, list(variables))
                if found is not None:
                    return found
                place = at + text.index("%")
                raise SqlError(
                    "42601",
                    'syntax error at or near "%"',
                    span=Span(place, place + 1),
                    where=f'invalid type name "{text}"',
                )
            if of is not None:
                return self._row_of(_path(text[: of.start()]))
            type_ = self._named(text)
        except SqlError as error:
            if error.span is None and of is None:
                error.span = Span(at, at + len(text))
            raise
        fact = facts().types.get(type_.oid)
        if fact is not None and fact.kind == "p" and type_.oid != RECORD and type_.oid not in POLYMORPHIC:
            raise SqlError(
                "0A000", f"variable has pseudo-type {format_type(type_.oid)}", span=Span(at, at + len(text))
            )
        return type_, kind_of(type_)

    def _named(self, text: str) -> SqlType:
        try:
            node = parse_expression(f"NULL::{text}")
        except SqlError as error:
            raise SqlError("42601", error.message) from None
        if not isinstance(node, ast.TypeCast):
            raise SqlError("42601", f'invalid type name "{text}"')
        try:
            return self.context.type_of(node.type)
        except SqlError as error:
            error.span = None
            raise

    def _type_of(
        self, path: tuple[str, ...], names: Names, variables: list[Variable]
    ) -> tuple[SqlType, Kind] | None:
        """Return the type of a variable that is no row, or of a column; None where it is neither."""
        found = names.find(path, variables) if path else None
        if found is not None and found[1] == len(path) and variables[found[0]].kind == "scalar":
            variable = variables[found[0]]
            return variable.type, variable.kind
        columns: tuple[ColumnDef, ...] = ()
        if len(path) > 1:
            relation = self.context.find_relation(path[-3] if len(path) > 2 else "", path[-2])
            columns = () if relation is None else relation.live
        return next(((c.declared, kind_of(c.declared)) for c in columns if c.name == path[-1]), None)

    def _row_of(self, path: tuple[str, ...]) -> tuple[SqlType, Kind]:
        schema = path[-2] if len(path) > 1 else ""
        relation = self.context.relation(schema, path[-1])
        if relation.kind not in COLUMNED:
            raise not_supported(f"the row type of {relation.name}")
        oid = self.context.find_type(relation.schema, relation.name)
        if oid is None:
            raise SqlError("42809", f'relation "{relation.name}" does not have a composite type')
        return SqlType(oid), "row"


def _path(text: str) -> tuple[str, ...]:
    return tuple([token.name or token.word for token in Stream(text).tokens if token.text != "."])

"""Constants of INSERT ... VALUES read straight into their column's type: the fast road for long lists.

    VALUES (1, 'x', 1.5) into (int4, varchar(10), numeric(10,2))
      Const int4 1, Const varchar(10) 'x', Const numeric(10,2) 1.50

Gives what binding, assignment and folding of the constant would give, or None: then they do it, and word the
error. Types whose input depends on settings take the slow road, where the setting is noted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import text_decoder
from planner import ast
from planner.catalog import ColumnDef
from planner.facts import (
    BOOL,
    BPCHAR,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    NUMERIC,
    TEXT,
    UUID,
    VARCHAR,
)
from planner.query import Const

CellReader: TypeAlias = Callable[[ast.Constant], Const | None]

_BY_TEXT = frozenset((BOOL, INT2, INT4, INT8, FLOAT4, FLOAT8, NUMERIC, TEXT, VARCHAR, BPCHAR, UUID))
_INT_RANGE = {INT2: 2**15, INT4: 2**31, INT8: 2**63}


def cell_reader(column: ColumnDef) -> CellReader:
    """Return the function from a written constant to the column's value, None where it does not apply."""
    type_ = column.type
    oid = type_.oid
    decode = text_decoder(oid, typmod=type_.typmod) if oid in _BY_TEXT else None
    limit = _INT_RANGE.get(oid, 0)

    def read(node: ast.Constant) -> Const | None:
        kind, written = node.kind, node.value
        value: Any = None
        if kind == "null":
            return Const(type=type_, value=None, span=node.span)
        if kind == "string":
            if decode is None:
                return None
        elif kind == "int":
            if not isinstance(written, int):
                raise AssertionError(f"an integer is kept as {type(written).__name__}")
            if limit:
                if not -limit <= written < limit:
                    return None
                return Const(type=type_, value=written, span=node.span)
            if oid == FLOAT8:
                return Const(type=type_, value=float(written), span=node.span)
            if oid != NUMERIC:
                return None
        elif kind == "float":
            if oid == FLOAT8:
                exact = Decimal(str(written))
                value = float(exact) or 0.0  # numeric has no -0
                fits = math.isfinite(value) and (value != 0.0 or not exact)
                return Const(type=type_, value=value, span=node.span) if fits else None
            if oid != NUMERIC:
                return None
        elif kind == "bool" and oid == BOOL:
            return Const(type=type_, value=written, span=node.span)
        else:
            return None
        if decode is None:
            raise AssertionError(f"cells of kind {kind} have no decoder")
        try:
            value = decode(str(written))
        except DataError:
            return None
        return Const(type=type_, value=value, span=node.span)

    return read

"""Constants of SQL as an engine writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner import facts as f
from planner.base.errors import not_supported
from planner.lower.kit import build as b
from planner.lower.kit import numeric
from planner.lower.kit.dialect import Dialect
from planner.lower.kit.value import (
    Fixed,
    Val,
    element_of,
    kind_of,
)
from planner.types import SqlType

if TYPE_CHECKING:
    pass

from decimal import Decimal
from typing import TYPE_CHECKING

from pgwire.bounded import BoundedArray
from planner.lower.kit.value import (
    declared_num,
    declared_padding,
)

if TYPE_CHECKING:
    pass


def constant(d: Dialect, value: object, type_: SqlType) -> Val:
    """Return a constant of the value domain."""
    if value is None:
        num = declared_num(type_)
        if num is not None and type_.typmod < 4:
            num = Fixed(1, 0)
        return Val(d.typed_null(type_, num), type_, num, None)
    kind = kind_of(type_.oid)
    if kind == "numeric":
        if not isinstance(value, Decimal):
            raise TypeError(f"numeric constant {value!r}")
        made = numeric.constant(d, value)
        return Val(made.node, type_, made.num, value)
    if kind == "list":
        if not isinstance(value, tuple):
            raise TypeError(f"array constant {value!r}")
        element = SqlType(element_of(type_.oid))
        if any(
            isinstance(item, tuple) and kind_of(element.oid) not in ("interval", "timetz") for item in value
        ):
            raise not_supported("an array of several dimensions in this executor")
        if type(value) is BoundedArray:
            raise not_supported("an array with other lower bounds than 1 in this executor")
        items = [column_form(d, constant(d, item, element)).node for item in value]
        return Val(b.cast(b.array(*items), d.engine_type(type_)), type_, None, value)
    return Val(d.literal(value, kind), type_, None, value, declared_padding(type_))


def column_form(d: Dialect, value: Val) -> Val:
    """Return a numeric in Floating form, others as they are (elements of arrays)."""
    return numeric.floating(d, value) if value.type.oid == f.NUMERIC else value

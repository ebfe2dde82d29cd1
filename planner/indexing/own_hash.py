"""Keys of partitions that are hashed by a function of one's own: the second support function of a hash operator class.

    CREATE OPERATOR CLASS c FOR TYPE int4 USING hash AS OPERATOR 1 =, FUNCTION 2 f(int4, int8)
    PARTITION BY HASH (a c)         the hash of a row is f(a, seed)

A function whose body is an expression is called as such; any other is refused where the table is made (0A000).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from planner.base.errors import SqlError, not_supported
from planner.catalog import Catalog, ColumnDef, RelationDef
from planner.catalog.opclasses import OperatorClassDef, OperatorFamilyDef
from planner.conversion.ports import KEY_EXPR
from planner.evaluate import Env, Layout, compile_expr
from planner.facts import facts
from planner.query.exprs import has_calls
from planner.types import SqlType
from planner.types.facts import FIRST_USER_OID, format_type

Hasher = Callable[[Any], int]

_EXTENDED: Final = 2
_MASK: Final = (1 << 64) - 1


def own_hasher(catalog: Catalog, class_oid: int, type_: SqlType, seed: int) -> Hasher:
    """Return what hashes values of a type that are not NULL to 64 bits. Raises SqlError 42P17, 0A000; XX001
    where it cannot be read.
    """
    found = catalog.opclass_by_oid(class_oid)
    family = None if found is None else catalog.opclass_by_oid(getattr(found, "family", 0))
    if not isinstance(found, OperatorClassDef) or not isinstance(family, OperatorFamilyDef):
        raise SqlError("42P17", f"operator class with OID {class_oid} does not exist")
    place = (True, _EXTENDED, found.input_type, found.input_type)
    oid = next((one.object for one in family.members if one.place == place), 0)
    if not oid:
        raise SqlError(
            "42P17",
            f'operator class "{found.name}" of access method hash is missing support function {_EXTENDED} '
            f"for type {format_type(found.input_type)}",
        )
    called = f'"#{oid}"' if oid >= FIRST_USER_OID else f"pg_catalog.{facts().procs[oid].name}"
    column = ColumnDef(attnum=1, name="value", type=type_)
    alone = RelationDef(oid=0, schema_oid=0, schema="", name="key", kind="r", columns=(column,))
    expr = KEY_EXPR.call(f"{called}(value, {seed}::pg_catalog.int8)", alone, catalog)
    if has_calls(expr):
        raise not_supported(
            f'operator class "{found.name}" in a partition key: a function that is no expression'
        )
    compute = compile_expr(expr, Layout(columns={(0, 1): 0}))
    nothing = Env((), None)

    def hashed(value: Any) -> int:
        number = compute((value,), nothing)
        if number is None:
            raise SqlError("22004", f"function {oid} returned NULL")
        return int(number) & _MASK

    return hashed

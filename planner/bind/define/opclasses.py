"""Statements about operator classes and families: names to oids, and what PostgreSQL checks of members.

    CREATE OPERATOR CLASS c FOR TYPE int4 USING hash AS OPERATOR 1 =, FUNCTION 2 f(int4, int8)
        type 23    operator 1 for (23, 23): 96, of the class    function 2 for (23, 23): 16500, the family's

Which functions there are, what they take and give, is the index method's to say (``_SUPPORT``). PostgreSQL's
own families are not changed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple, TypeAlias

from pgwire.give_way import paced
from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.define.functions import written_type
from planner.bind.define.placed import creation_schema
from planner.catalog.opclasses import (
    OPCLASS_WORDS,
    PG_OPCLASS,
    PG_OPFAMILY,
    OpclassDef,
    OperatorFamilyDef,
)
from planner.facts import BOOL, INT4, INT8, OID, facts, rows
from planner.types.facts import FIRST_USER_OID, format_type

_CLASSES: Final = {"operator class": PG_OPCLASS, "operator family": PG_OPFAMILY}
_FILES: Final = {PG_OPCLASS: ("opclass", "opc"), PG_OPFAMILY: ("opfamily", "opf")}
_INTERNAL, _VOID = 2281, 2278
_MOST: Final = 32767


class _Method(NamedTuple):
    """``strategies``: how many operators there are, 0 for any; ``functions``: how many functions;
    ``required``: which go with their class.

    ``options``: the number of the function that reads a class's options. ``orders``: may operators be FOR
    ORDER BY? ``keeps``: may another type be kept? ``typed``: operators go with the class of their type.
    ``all``: so does everything that is made with a class.
    """

    strategies: int
    functions: int
    options: int
    required: frozenset[int]
    orders: bool
    keeps: bool
    typed: bool = False
    all: bool = False


_SUPPORT: Final[Mapping[str, _Method]] = {
    "btree": _Method(5, 5, 5, frozenset((1,)), orders=False, keeps=False, typed=True),
    "hash": _Method(1, 3, 3, frozenset((1,)), orders=False, keeps=False, typed=True),
    "gist": _Method(0, 11, 10, frozenset((1, 2, 5, 6, 7)), orders=True, keeps=True),
    "gin": _Method(0, 7, 7, frozenset((2, 3)), orders=False, keeps=True),
    "spgist": _Method(0, 7, 6, frozenset((1, 2, 3, 4, 5)), orders=True, keeps=True),
    "brin": _Method(0, 15, 5, frozenset(), orders=False, keeps=True, all=True),
}


@cache
def method_oids() -> Mapping[str, int]:
    """Return the index methods' oids by name."""
    return {row["amname"]: int(row["oid"]) for row in rows("am") if row["amtype"] == "i"}


def _method(name: str) -> _Method:
    found = _SUPPORT.get(name)
    if found is None:
        raise SqlError("42704", f'access method "{name}" does not exist')
    return found


def _type(context: BindContext, name: ast.TypeName) -> int:
    """Return the oid of a type. Raises SqlError 42704, 0A000 for one that users made."""
    try:
        oid = written_type(context, name)
    except SqlError as error:
        error.span = None
        raise
    if oid >= FIRST_USER_OID:
        raise not_supported("an operator class over a type of one's own", span=name.span)
    return oid


def class_goes_by_type(method: str) -> bool:
    """Tell whether members go with the class of their type."""
    return _SUPPORT[method].typed


def find_opclass(context: BindContext, class_oid: int, method: str, name: ast.Name) -> OpclassDef | int:
    """Return the class or family that a name means; of PostgreSQL's own the oid. Raises SqlError 42704,
    3F000, 42501.
    """
    _method(method)
    if len(name) > 1:
        context.check_open(name[-2])
        if name[-2] != "pg_catalog" and context.catalog.schema(name[-2]) is None:
            raise SqlError("3F000", f'schema "{name[-2]}" does not exist')
    oid = method_oids()[method]
    file, prefix = _FILES[class_oid]
    for schema in name[-2:-1] or context.search_path:
        if schema == "pg_catalog":
            for row in rows(file):
                if int(row[f"{prefix}method"]) == oid and row[f"{prefix}name"] == name[-1]:
                    return int(row["oid"])
        found = context.catalog.opclass_named(class_oid, oid, schema, name[-1])
        if found is not None:
            return found
    shown = ".".join(name)
    raise SqlError(
        "42704", f'{OPCLASS_WORDS[class_oid]} "{shown}" does not exist for access method "{method}"'
    )


def _own(found: OpclassDef | int, verb: str, what: str) -> OpclassDef:
    """Return what users made. Raises SqlError 0A000 for PostgreSQL's own."""
    if isinstance(found, int):
        raise not_supported(f"{verb} {what.upper()} of PostgreSQL's own")
    return found


def bind_create_family(context: BindContext, node: ast.CreateOpfamily) -> st.CreateOpfamily:
    """CREATE OPERATOR FAMILY. Raises SqlError 3F000, 42704."""
    schema = creation_schema(context, node.name, "operator class or family")
    _method(node.method)
    return st.CreateOpfamily(schema=schema, name=node.name[-1], method=node.method)


def bind_create_class(context: BindContext, node: ast.CreateOpclass) -> st.CreateOpclass:
    """CREATE OPERATOR CLASS. Raises SqlError 3F000, 42704, 42883, 42P17, 42601, 42809; 0A000 for one of a
    family of PostgreSQL's own.
    """
    schema = creation_schema(context, node.name, "operator class or family")
    method = _method(node.method)
    input_type = _type(context, node.type)
    family = 0
    if node.family:
        found = find_opclass(context, PG_OPFAMILY, node.method, node.family)
        family = _own(found, "CREATE OPERATOR CLASS in an", "operator family").oid
    key_type = 0
    members: dict[_Place, st.NewMember] = {}
    for item in paced(node.items):
        if item.storage is not None:
            if key_type:
                raise SqlError("42P17", "storage type specified more than once")
            key_type = _type(context, item.storage)
        else:
            _add(members, _member(context, node.method, method, item, input_type))
    if key_type == input_type:
        key_type = 0
    if key_type and not method.keeps:
        raise SqlError(
            "42P17", f'storage type cannot be different from data type for access method "{node.method}"'
        )
    return st.CreateOpclass(
        schema=schema, name=node.name[-1], method=node.method, family=family, input_type=input_type,
        default=".".join(node.type.names) if node.default else "", key_type=key_type, members=tuple(members.values()),
    )  # fmt: skip


_Place: TypeAlias = tuple[bool, int, int, int]
"""What no two members have in common: function or not, number, types."""


def _add(members: dict[_Place, st.NewMember], made: st.NewMember) -> None:
    """Raise SqlError 42P17 for a member that is there already."""
    place = made.function, made.number, made.left, made.right
    if place in members:
        raise _twice(*place)
    members[place] = made


def _twice(function: bool, number: int, left: int, right: int) -> SqlError:
    word = "function" if function else "operator"
    sides = f"({format_type(left)},{format_type(right)})"
    return SqlError("42P17", f"{word} number {number} for {sides} appears more than once")


def bind_change_family(context: BindContext, node: ast.ChangeOpfamily) -> st.ChangeOpfamily:
    """ALTER OPERATOR FAMILY ... ADD and DROP. Raises SqlError as ``bind_create_class``."""
    method = _method(node.method)
    found = find_opclass(context, PG_OPFAMILY, node.method, node.name)
    family = _own(found, "ALTER", "operator family").oid
    if node.drop:
        places: dict[_Place, None] = {}
        for item in paced(node.items):
            function = item.kind == "function"
            _check_number(method, function, item.number)
            place = (function, item.number, *_two_types(context, item.types))
            if place in places:
                raise _twice(*place)
            places[place] = None
        return st.ChangeOpfamily(family=family, members=(), places=tuple(places))
    members: dict[_Place, st.NewMember] = {}
    for item in paced(node.items):
        if item.storage is not None:
            raise SqlError("42601", "STORAGE cannot be specified in ALTER OPERATOR FAMILY")
        if item.kind == "operator" and not item.operands:
            _check_number(method, False, item.number)
            raise SqlError("42601", "operator argument types must be specified in ALTER OPERATOR FAMILY")
        _add(members, _member(context, node.method, method, item, 0))
    return st.ChangeOpfamily(family=family, members=tuple(members.values()), places=())


def _check_number(method: _Method, function: bool, number: int) -> None:
    most = method.functions if function else method.strategies or _MOST
    if not 1 <= number <= most:
        word = "function" if function else "operator"
        raise SqlError("42P17", f"invalid {word} number {number}, must be between 1 and {most}")


def _two_types(context: BindContext, types: Sequence[ast.TypeName]) -> tuple[int, int]:
    if len(types) not in (1, 2):
        raise SqlError("42601", "one or two argument types must be specified")
    left = _type(context, types[0])
    return left, _type(context, types[1]) if len(types) == 2 else left


def _member(
    context: BindContext, name: str, method: _Method, item: ast.OpclassItem, input_type: int
) -> st.NewMember:
    function = item.kind == "function"
    _check_number(method, function, item.number)
    if function:
        if item.function is None:
            raise AssertionError("a support function of an operator class is not named")
        oid, arguments, result = _function(context, item.function)
        left, right = _two_types(context, item.types) if item.types else (0, 0)
        left, right = _function_types(name, method, item.number, arguments, result, left, right)
        left, right = left or input_type, right or input_type
        if not left or not right:
            raise SqlError("42P17", "associated data types must be specified for index support function")
        sort_family = 0
    else:
        oid, left, right = _operator(context, item, input_type)
        sort_family = _sort_family(context, name, method, item.order_by)
        if not sort_family and facts_result(oid) != BOOL:
            raise SqlError("42P17", "index search operators must return boolean")
    if method.all:
        of_class = bool(input_type)
    elif function and item.number not in method.required:
        of_class = False
    elif method.typed:
        of_class = left == right
    else:
        of_class = function and bool(input_type)
    return st.NewMember(
        function=function, number=item.number, left=left, right=right, object=oid, of_class=of_class,
        sort_family=sort_family,
    )  # fmt: skip


def facts_result(operator: int) -> int:
    """Return the type that an operator gives."""
    return facts().operators[operator].result


def _sort_family(context: BindContext, name: str, method: _Method, written: ast.Name) -> int:
    if not written:
        return 0
    if not method.orders:
        # as PostgreSQL, whose look-up of the family comes first
        _sorting(context, written)
        raise SqlError("42P17", f'access method "{name}" does not support ordering operators')
    return _sorting(context, written)


def _sorting(context: BindContext, written: ast.Name) -> int:
    found = find_opclass(context, PG_OPFAMILY, "btree", written)
    return found if isinstance(found, int) else found.oid


def _operator(context: BindContext, item: ast.OpclassItem, input_type: int) -> tuple[int, int, int]:
    """Return an operator, by oid, and its operands. Raises SqlError 42883: of one's own there are none."""
    if item.operands:
        left, right = (0 if one is None else _type(context, one) for one in item.operands)
    else:
        left = right = input_type
    schemas = item.operator[-2:-1] or ("pg_catalog",)
    for found in facts().operators_by_name.get(item.operator[-1], ()):
        if "pg_catalog" in schemas and (found.left, found.right) == (left, right):
            if not left:
                raise SqlError("42P17", "index operators must be binary")
            return found.oid, left, right
    shown = f"{'.'.join(item.operator)} {format_type(right)}"
    raise SqlError("42883", f"operator does not exist: {f'{format_type(left)} {shown}' if left else shown}")


def _function(context: BindContext, named: ast.FunctionName) -> tuple[int, tuple[int, ...], int]:
    """Return a function's oid, its arguments and result. Raises SqlError 42883, 3F000."""
    schema, name = named.name[-2] if len(named.name) > 1 else "", named.name[-1]
    context.require_schema(schema)
    wanted = tuple(_type(context, p.type) for p in named.parameters or () if p.mode in "ibv")
    for entry in (schema,) if schema else context.search_path:
        if entry == "pg_catalog":
            for proc in facts().procs_by_name.get(name, ()):
                if proc.arg_types == wanted:
                    return proc.oid, wanted, proc.result
        for made in context.catalog.functions_named(name):
            if made.schema == entry and tuple(made.inputs) == wanted:
                return made.oid, wanted, made.result
    shown = ", ".join(map(format_type, wanted))
    raise SqlError("42883", f"function {'.'.join(named.name)}({shown}) does not exist")


def _function_types(
    name: str, method: _Method, number: int, arguments: tuple[int, ...], result: int, left: int, right: int
) -> tuple[int, int]:
    """Return for which types a function is, 0 where that is not told by it. Raises SqlError 42P17 for one
    that is none of that number.
    """

    def need(holds: bool, message: str) -> None:
        if not holds:
            raise SqlError("42P17", message)

    if number == method.options:
        need(
            left == right,
            "left and right associated data types for operator class options parsing functions must match",
        )
        if arguments != (_INTERNAL,) or result != _VOID:
            raise SqlError(
                "42P17",
                "invalid operator class options parsing function",
                hint="Valid signature of operator class options parsing function is (internal) RETURNS void.",
            )
    elif name == "btree" and number == 1:
        need(len(arguments) == 2, "btree comparison functions must have two arguments")
        need(result == INT4, "btree comparison functions must return integer")
        return left or arguments[0], right or arguments[1]
    elif name == "btree" and number == 2:
        need(arguments == (_INTERNAL,), 'btree sort support functions must accept type "internal"')
        need(result == _VOID, "btree sort support functions must return void")
    elif name == "btree" and number == 3:
        need(len(arguments) == 5, "btree in_range functions must have five arguments")
        need(result == BOOL, "btree in_range functions must return boolean")
        return left or arguments[0], right or arguments[2]
    elif name == "btree" and number == 4:
        need(arguments == (OID,), "btree equal image functions must have one argument")
        need(result == BOOL, "btree equal image functions must return boolean")
        need(left == right, "btree equal image functions must not be cross-type")
    elif name == "hash" and number == 1:
        need(len(arguments) == 1, "hash function 1 must have one argument")
        need(result == INT4, "hash function 1 must return integer")
        return left or arguments[0], right or arguments[0]
    elif name == "hash" and number == 2:
        need(len(arguments) == 2, "hash function 2 must have two arguments")
        need(result == INT8, "hash function 2 must return bigint")
        return left or arguments[0], right or arguments[0]
    return left, right


# --- names, owners, DROP --------------------------------------------------------------------------


def altered(context: BindContext, node: ast.AlterOpclass) -> OpclassDef:
    """Return what ALTER OPERATOR CLASS or FAMILY is about. Raises SqlError 42704, 3F000; 0A000 for PostgreSQL's own."""
    return _own(find_opclass(context, _CLASSES[node.what], node.method, node.name), "ALTER", node.what)


def bind_drop(context: BindContext, node: ast.DropOpclass) -> st.DropOpclass:
    """DROP. Raises SqlError 42704, 3F000, with IF EXISTS notices, but for a method that is not there; 2BP01
    for PostgreSQL's own.
    """
    _method(node.method)
    try:
        found = find_opclass(context, _CLASSES[node.what], node.method, node.name)
    except SqlError as error:
        if not node.if_exists or error.sqlstate not in ("42704", "3F000"):
            raise
        return st.DropOpclass(object=0, notice=f"{error.message}, skipping")
    if isinstance(found, int):
        shown = f"{node.what} {node.name[-1]} for access method {node.method}"
        raise SqlError("2BP01", f"cannot drop {shown} because it is required by the database system")
    return st.DropOpclass(object=found.oid, written=".".join((node.method, *node.name)), cascade=node.cascade)


def bind_comment(context: BindContext, node: ast.CommentOnOpclass) -> st.Comment:
    """COMMENT ON. Raises SqlError 42704, 3F000; 0A000 for PostgreSQL's own."""
    found = _own(find_opclass(context, _CLASSES[node.what], node.method, node.name), "COMMENT ON", node.what)
    class_oid: st.CommentClass = 2753 if isinstance(found, OperatorFamilyDef) else 2616
    return st.Comment(
        class_oid=class_oid,
        object_oid=found.oid,
        sub_id=0,
        text=node.text,
        name=".".join((node.method, *node.name)),
    )

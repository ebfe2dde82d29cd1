"""Functions that statements name: to the one that is meant, and ALTER, DROP and COMMENT ON FUNCTION,
PROCEDURE, AGGREGATE, ROUTINE.

DROP FUNCTION f          the one function of that name
DROP FUNCTION f(int)     the one with these inputs, in the first schema of the search path that has it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from pgwire.give_way import paced
from planner import ast
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind.context import BindContext
from planner.bind.define.functions import from_current, function_options, function_settings, written_type
from planner.bind.expression.funcs import MAX_ARGUMENTS
from planner.bind.session.utility import owner_name
from planner.catalog import FunctionDef
from planner.facts import ProcFact, facts
from planner.types.facts import format_type

PG_PROC: Final = 1255
_HINT: Final = "Specify the argument list to select the {} unambiguously."


def find_function(context: BindContext, what: str, named: ast.FunctionName) -> FunctionDef:
    """Return the user's function that a statement names.

    Raises SqlError 42883 (there is none), 42725 (a name alone means several), 3F000, 42704 (of a type), 2BP01
    (built in), 42501.
    """
    schema, name = named.name[-2] if len(named.name) > 1 else "", named.name[-1]
    context.require_schema(schema)
    shown = ".".join(named.name)
    found: list[FunctionDef] = []
    built_in: list[int] = []
    wanted = None
    if named.parameters is not None:
        if len(named.parameters) > MAX_ARGUMENTS:
            many = "procedures" if what == "procedure" else "functions"
            raise SqlError("54023", f"{many} cannot have more than {MAX_ARGUMENTS} arguments")
        try:
            wanted = [written_type(context, p.type) for p in named.parameters if p.mode in "ibv"]
            every = [written_type(context, p.type) for p in named.parameters]
        except SqlError as error:
            error.span = None  # as PostgreSQL, which looks them up without the statement's text
            raise
    schema = context.own_schema(schema)
    path = [schema] if schema else list(context.search_path)
    for entry in path:
        if entry == "pg_catalog":
            procs = facts().procs_by_name.get(name, ())
            built_in += [p.oid for p in procs if wanted is None or list(p.arg_types) == wanted]
            continue
        for function in context.catalog.functions_named(name):
            if function.schema != entry or any(f.inputs == function.inputs for f in found):
                continue
            if wanted is None or list(function.inputs) == wanted or list(function.types) == every:
                found.append(function)
        if wanted is not None and (found or built_in):
            break
    if what == "aggregate":
        return _aggregate(named, shown, found, [facts().procs[oid] for oid in built_in], wanted or ())
    if wanted is None and what in ("procedure", "function"):
        found = [f for f in found if (f.kind == "p") == (what == "procedure")]
    if len(found) + len(built_in) > 1:
        raise SqlError("42725", f'{what} name "{shown}" is not unique', hint=_HINT.format(what))
    if found and what in ("procedure", "function") and (what == "procedure") != (found[0].kind == "p"):
        raise SqlError("42809", f"{signature(shown, found[0].inputs, ', ')} is not a {what}")
    if built_in:
        raise BuiltIn(facts().procs[built_in[0]])
    if not found:
        if wanted is None:
            raise SqlError("42883", f'could not find a {_word(what)} named "{shown}"')
        raise SqlError("42883", f"{_word(what)} {signature(shown, wanted, ', ')} does not exist")
    return found[0]


def _aggregate(
    named: ast.FunctionName,
    shown: str,
    found: Sequence[FunctionDef],
    built_in: Sequence[ProcFact],
    types: Sequence[int],
) -> FunctionDef:
    """Return the user's aggregate among what a name with these types means. Raises SqlError 42883, 42809, 2BP01."""
    if not found and not built_in:
        inputs = signature(shown, types, ", ") if types else f"{shown}(*)"
        raise SqlError("42883", f"aggregate {inputs} does not exist")
    one = found[0] if found else built_in[0]
    if one.kind != "a":
        raise SqlError("42809", f"function {signature(shown, types, ', ')} is not an aggregate")
    if not found:
        raise BuiltIn(built_in[0])
    return found[0]


class BuiltIn(SqlError):
    """A statement names a function of PostgreSQL's own, ``oid`` (2BP01)."""

    def __init__(self, proc: ProcFact) -> None:
        """Say so."""
        shown = signature(proc.name, proc.arg_types)
        message = f"cannot change function {shown} because it is required by the database system"
        super().__init__("2BP01", message)
        self.oid = proc.oid


def _word(what: str) -> str:
    return "function" if what == "routine" else what


def signature(name: str, types: Sequence[int], between: str = ",") -> str:
    """Return ``name(type,type)`` as messages about definitions show a function."""
    return f"{name}({between.join(format_type(oid) for oid in types)})"


def bind_alter_function(context: BindContext, node: ast.AlterFunction) -> st.AlterFunction:
    """ALTER FUNCTION. Raises as ``find_function``; 3F000 for no such schema; 0A000 for options that are refused."""
    function = find_function(context, node.what, node.function)
    if function.kind == "a" and (node.options or node.settings):
        raise SqlError("42809", f'"{".".join(node.function.name)}" is an aggregate function')
    if node.schema is not None and node.schema != "pg_temp":  # nothing moves there
        context.require_schema(node.schema)
    return st.AlterFunction(
        function=function.oid,
        name=node.rename,
        schema=node.schema,
        owner=None if node.owner is None else owner_name(node.owner),
        changes=function_options(node.options, returns_set=function.returns_set, creating=False),
        settings=function_settings(context, node.settings),
        from_current=from_current(node.settings),
    )


_KINDS: Final[Mapping[str, Literal["function", "procedure", "aggregate", "routine"]]] = {
    "function": "function", "procedure": "procedure", "aggregate": "aggregate", "routine": "routine",
}  # fmt: skip


def bind_drop_function(context: BindContext, node: ast.DropFunction) -> st.DropFunction:
    """DROP FUNCTION. Raises as ``find_function``; with IF EXISTS what is missing is a notice."""
    found: dict[int, str] = {}
    missing: list[str] = []
    for named in paced(node.functions):
        try:
            function = find_function(context, node.what, named)
        except SqlError as error:
            if error.sqlstate == "2BP01":
                error.message = error.message.replace("cannot change", "cannot drop")
            if not node.if_exists or error.sqlstate not in ("42883", "42704", "3F000"):
                raise
            missing.append(_not_there(node.what, named, error))
            continue
        if function.kind == "a" and node.what == "function":
            raise SqlError(
                "42809",
                f'"{".".join(named.name)}" is an aggregate function',
                hint="Use DROP AGGREGATE to drop aggregate functions.",
            )
        found.setdefault(function.oid, ".".join(named.name))
    return st.DropFunction(
        what=_KINDS[node.what],
        functions=tuple(found),
        names=tuple(found.values()),
        missing=tuple(missing),
        cascade=node.cascade,
    )


def _not_there(what: str, named: ast.FunctionName, error: SqlError) -> str:
    """Return PostgreSQL's notice; it shows argument types as the grammar spells them."""
    if error.sqlstate == "42883" and named.parameters is not None:
        types = ",".join(
            ".".join(p.type.names) + "[]" * len(p.type.dims) for p in named.parameters if p.mode in "ibv"
        )
        return f"{what} {'.'.join(named.name)}({types}) does not exist, skipping"
    if error.sqlstate == "42883":
        return f"{what} {'.'.join(named.name)}() does not exist, skipping"
    return f"{error.message}, skipping"


def bind_comment_on_function(context: BindContext, node: ast.CommentOnFunction) -> st.Comment:
    """COMMENT ON FUNCTION."""
    function = find_function(context, node.what, node.function)
    return st.Comment(
        class_oid=PG_PROC,
        object_oid=function.oid,
        sub_id=0,
        text=node.text,
        name=".".join(node.function.name),
    )

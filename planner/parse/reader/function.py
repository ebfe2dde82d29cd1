"""Raw parse tree -> AST, for statements about functions (see ``planner.parse.reader.statement``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, cast

from planner import ast
from planner.parse.reader.option import OptionReader, object_word
from planner.parse.reader.reader import Raw, strings

_MODES: Final[Mapping[str, Literal["i", "o", "b", "v", "t"]]] = {
    "FUNC_PARAM_IN": "i", "FUNC_PARAM_DEFAULT": "i", "FUNC_PARAM_OUT": "o", "FUNC_PARAM_INOUT": "b",
    "FUNC_PARAM_VARIADIC": "v", "FUNC_PARAM_TABLE": "t",
}  # fmt: skip
ROUTINES: Final = ("function", "procedure", "aggregate", "routine")


def _parameter(reader: OptionReader, body: Raw) -> ast.Parameter:
    return ast.Parameter(
        mode=_MODES[body["mode"]],
        name=body.get("name", ""),
        type=reader.type_name(body["argType"]),
        default=reader.optional(body.get("defexpr")),
        span=reader.span(body),
    )


def create_function(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read CREATE FUNCTION and CREATE PROCEDURE."""
    language: str | None = None
    source: tuple[str, ...] | None = None
    source_at: int | None = None
    rest = []
    settings: list[ast.SetVariable] = []
    for node in body.get("options", ()):
        option = node["DefElem"]
        if option["defname"] == "language":
            language = option["arg"]["String"].get("sval", "")
        elif option["defname"] == "as":
            source = strings(option["arg"]["List"]["items"])
            source_at = _inside(reader, option, source[0])
        elif option["defname"] == "set":
            settings.append(_setting(reader, option["arg"]))
        else:
            rest.append(node)
    result = body.get("returnType")
    return ast.CreateFunction(
        name=strings(body["funcname"]),
        replace=body.get("replace", False),
        procedure=body.get("is_procedure", False),
        parameters=tuple([_parameter(reader, p["FunctionParameter"]) for p in body.get("parameters", ())]),
        result=None if result is None else reader.type_name(result),
        options=reader.options(rest),
        language=language,
        source=source,
        source_at=source_at,
        body=_body(reader, body.get("sql_body")),
        returned=_returned(body.get("sql_body")),
        settings=tuple(settings),
    )


def create_aggregate(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read CREATE AGGREGATE."""
    parameters: tuple[ast.Parameter, ...] | None = None
    direct = -1
    if not body.get("oldstyle", False):
        listed, before_order = body["args"]
        found = listed["List"]["items"] if listed else ()
        parameters = tuple([_parameter(reader, node["FunctionParameter"]) for node in found])
        direct = before_order["Integer"].get("ival", 0)
    return ast.CreateAggregate(
        name=strings(body["defnames"]),
        replace=body.get("replace", False),
        parameters=parameters,
        options=reader.options(body.get("definition")),
        direct=direct,
    )


def _inside(reader: OptionReader, option: Raw, source: str) -> int | None:
    """Return where a literal's text begins, None where it is not written as it means."""
    span = reader.span({"location": option.get("arg_location", -1)})
    if span is None:
        return None
    text = reader.text
    at = text.find("$", span.start + 1) + 1 if text[span.start] == "$" else span.start + 1
    return at if text.startswith(source, at) else None


def _setting(reader: OptionReader, node: Raw) -> ast.SetVariable:
    """Read SET or RESET within a definition."""
    return cast("ast.SetVariable", reader.statement(node))  # the grammar has no other statement there


def _body(reader: OptionReader, raw: Raw | None) -> tuple[ast.Node, ...] | ast.Expression | None:
    if raw is None:
        return None
    if "ReturnStmt" in raw:
        return reader.expr(raw["ReturnStmt"]["returnval"])
    return tuple([_statement(reader, node) for node in _parts(raw)])


def _parts(raw: Raw) -> list[Raw]:
    """Return the statements of BEGIN ATOMIC; an empty one is a body without statements."""
    found: list[Raw] = []
    for part in raw["List"]["items"]:
        inner = part["List"].get("items", ()) if "List" in part else (part,)
        found += [node for node in inner if node]
    return found


def _returned(raw: Raw | None) -> tuple[int, ...]:
    """Return which statements of BEGIN ATOMIC are RETURN."""
    if raw is None or "ReturnStmt" in raw:
        return ()
    return tuple([number for number, node in enumerate(_parts(raw)) if "ReturnStmt" in node])


def _statement(reader: OptionReader, node: Raw) -> ast.StatementNode:
    """Read a statement of a body; RETURN is the SELECT of its value."""
    if "ReturnStmt" not in node:
        return reader.statement(node)
    expr = reader.expr(node["ReturnStmt"]["returnval"])
    return ast.Select(targets=(ast.TargetItem(expr=expr, name="", span=expr.span),))


def do(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read DO."""
    language, source, source_at = "plpgsql", "", None
    for node in body.get("args", ()):
        option = node["DefElem"]
        value = option["arg"]["String"].get("sval", "")
        if option["defname"] == "language":
            language = value
        else:
            source, source_at = value, _inside(reader, option, value)
    return ast.Do(language=language, source=source, source_at=source_at)


def call(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read CALL."""
    return ast.Call(call=reader.func(body["funccall"]))


def function_name(reader: OptionReader, node: Raw) -> ast.FunctionName:
    """Read a function's name with its arguments, from an ObjectWithArgs node or its body."""
    body = node.get("ObjectWithArgs", node)
    found = [_parameter(reader, p["FunctionParameter"]) for p in body.get("objfuncargs", ())]
    if not found and "objargs" in body:
        found = [
            ast.Parameter(mode="i", name="", type=reader.type_name(arg["TypeName"]))
            for arg in body["objargs"]
        ]
    return ast.FunctionName(
        name=strings(body["objname"]),
        parameters=None if body.get("args_unspecified", False) else tuple(found),
    )


def alter_function(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read ALTER FUNCTION with options."""
    actions = [node["DefElem"] for node in body.get("actions", ())]
    rest = [node for node in body.get("actions", ()) if node["DefElem"]["defname"] != "set"]
    return ast.AlterFunction(
        what=object_word(body["objtype"]),
        function=function_name(reader, body["func"]),
        options=reader.options(rest),
        settings=tuple([_setting(reader, a["arg"]) for a in actions if a["defname"] == "set"]),
    )


def about_function(reader: OptionReader, kind: str, body: Raw) -> ast.StatementNode | None:
    """Read RENAME, SET SCHEMA, OWNER TO, DROP and COMMENT where they are about functions, else return None."""
    key = {
        "RenameStmt": "renameType", "AlterObjectSchemaStmt": "objectType", "AlterOwnerStmt": "objectType",
        "DropStmt": "removeType", "CommentStmt": "objtype",
    }.get(kind)  # fmt: skip
    if key is None:
        return None
    what = object_word(body[key])
    if what not in ROUTINES:
        return None
    if kind == "DropStmt":
        return ast.DropFunction(
            what=what,
            functions=tuple([function_name(reader, node) for node in body["objects"]]),
            if_exists=body.get("missing_ok", False),
            cascade=body.get("behavior") == "DROP_CASCADE",
        )
    function = function_name(reader, body["object"])
    if kind == "CommentStmt":
        return ast.CommentOnFunction(what=what, function=function, text=body.get("comment"))
    if kind == "RenameStmt":
        return ast.AlterFunction(what=what, function=function, rename=body["newname"])
    if kind == "AlterObjectSchemaStmt":
        return ast.AlterFunction(what=what, function=function, schema=body["newschema"])
    return ast.AlterFunction(what=what, function=function, owner=reader.role(body["newowner"]))

"""Raw parse tree -> AST, for statements about operator classes and families (see
``planner.parse.reader.statement``).
"""

from __future__ import annotations

from typing import Final

from planner import ast
from planner.parse.reader.function import function_name
from planner.parse.reader.option import OptionReader, object_word
from planner.parse.reader.reader import Raw, strings

KINDS: Final = frozenset(("operator class", "operator family"))
_WHAT: Final = {
    "RenameStmt": "renameType", "AlterObjectSchemaStmt": "objectType", "AlterOwnerStmt": "objectType",
    "DropStmt": "removeType", "CommentStmt": "objtype",
}  # fmt: skip
_ITEMS: Final = {1: "operator", 2: "function", 3: "storage"}


def _item(reader: OptionReader, body: Raw) -> ast.OpclassItem:
    kind = _ITEMS[body["itemtype"]]
    named = body.get("name")
    stored = body.get("storedtype")
    return ast.OpclassItem(
        kind=kind,
        number=body.get("number", 0),
        operator=strings(named["objname"]) if named and kind == "operator" else (),
        operands=tuple(
            [reader.type_name(a["TypeName"]) if a else None for a in named.get("objargs", ())]
            if named and kind == "operator"
            else ()
        ),
        function=function_name(reader, named) if named and kind == "function" else None,
        types=tuple([reader.type_name(a["TypeName"]) for a in body.get("class_args", ())]),
        order_by=strings(body.get("order_family", ())),
        storage=None if stored is None else reader.type_name(stored),
    )


def _items(reader: OptionReader, body: Raw) -> tuple[ast.OpclassItem, ...]:
    return tuple([_item(reader, node["CreateOpClassItem"]) for node in body["items"]])


def create_family(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read CREATE OPERATOR FAMILY."""
    return ast.CreateOpfamily(name=strings(body["opfamilyname"]), method=body["amname"])


def create_class(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read CREATE OPERATOR CLASS."""
    return ast.CreateOpclass(
        name=strings(body["opclassname"]),
        method=body["amname"],
        type=reader.type_name(body["datatype"]),
        default=body.get("isDefault", False),
        family=strings(body.get("opfamilyname", ())),
        items=_items(reader, body),
    )


def change_family(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read ALTER OPERATOR FAMILY ... ADD and DROP."""
    return ast.ChangeOpfamily(
        name=strings(body["opfamilyname"]),
        method=body["amname"],
        drop=body.get("isDrop", False),
        items=_items(reader, body),
    )


def about_opclass(reader: OptionReader, kind: str, body: Raw) -> ast.StatementNode | None:
    """Read RENAME, SET SCHEMA, OWNER TO, DROP and COMMENT where they are about these kinds, else return None."""
    key = _WHAT.get(kind)
    if key is None or (what := object_word(body[key])) not in KINDS:
        return None
    found = body["objects"][0] if kind == "DropStmt" else body["object"]  # the grammar has no list of them
    method, *rest = strings(found["List"]["items"])
    name = tuple(rest)
    if kind == "DropStmt":
        return ast.DropOpclass(
            what=what, method=method, name=name, if_exists=body.get("missing_ok", False),
            cascade=body.get("behavior") == "DROP_CASCADE",
        )  # fmt: skip
    if kind == "CommentStmt":
        return ast.CommentOnOpclass(what=what, method=method, name=name, text=body.get("comment"))
    if kind == "RenameStmt":
        return ast.AlterOpclass(what=what, method=method, name=name, rename=body["newname"])
    if kind == "AlterObjectSchemaStmt":
        return ast.AlterOpclass(what=what, method=method, name=name, schema=body["newschema"])
    return ast.AlterOpclass(what=what, method=method, name=name, owner=reader.role(body["newowner"]))

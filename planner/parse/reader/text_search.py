"""Raw parse tree -> AST, for statements about text search configurations and dictionaries (see
``planner.parse.reader.statement``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from planner import ast
from planner.parse.reader.option import OptionReader, object_word
from planner.parse.reader.reader import Raw, strings

KINDS: Final = frozenset(("text search configuration", "text search dictionary"))
_ACTIONS: Final[Mapping[str, Literal["add", "alter", "replace", "drop"]]] = {
    "ALTER_TSCONFIG_ADD_MAPPING": "add",
    "ALTER_TSCONFIG_ALTER_MAPPING_FOR_TOKEN": "alter",
    "ALTER_TSCONFIG_REPLACE_DICT": "replace",
    "ALTER_TSCONFIG_REPLACE_DICT_FOR_TOKEN": "replace",
    "ALTER_TSCONFIG_DROP_MAPPING": "drop",
}


def alter_mapping(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read ALTER TEXT SEARCH CONFIGURATION ... MAPPING."""
    return ast.AlterMapping(
        configuration=strings(body["cfgname"]),
        action=_ACTIONS[body["kind"]],
        tokens=strings(body.get("tokentype", ())),
        dictionaries=tuple([strings(node["List"]["items"]) for node in body.get("dicts", ())]),
        if_exists=body.get("missing_ok", False),
    )


def alter_dictionary(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read ALTER TEXT SEARCH DICTIONARY with options."""
    return ast.AlterDictionary(dictionary=strings(body["dictname"]), options=reader.options(body["options"]))


def about_text_search(reader: OptionReader, kind: str, body: Raw) -> ast.StatementNode | None:
    """Read CREATE, RENAME, SET SCHEMA, OWNER TO, DROP and COMMENT where they are about these kinds, else
    return None.
    """
    key = {
        "DefineStmt": "kind", "RenameStmt": "renameType", "AlterObjectSchemaStmt": "objectType",
        "AlterOwnerStmt": "objectType", "DropStmt": "removeType", "CommentStmt": "objtype",
    }.get(kind)  # fmt: skip
    if key is None:
        return None
    what = object_word(body[key])
    if what not in KINDS:
        return None
    if kind == "DefineStmt":
        return ast.CreateTextSearch(
            what=what, name=strings(body["defnames"]), options=reader.options(body.get("definition"))
        )
    if kind == "DropStmt":
        return ast.DropTextSearch(
            what=what,
            names=tuple([strings(node["List"]["items"]) for node in body["objects"]]),
            if_exists=body.get("missing_ok", False),
            cascade=body.get("behavior") == "DROP_CASCADE",
        )
    name = strings(body["object"]["List"]["items"])
    if kind == "CommentStmt":
        return ast.CommentOnTextSearch(what=what, name=name, text=body.get("comment"))
    if kind == "RenameStmt":
        return ast.AlterTextSearch(what=what, name=name, rename=body["newname"])
    if kind == "AlterObjectSchemaStmt":
        return ast.AlterTextSearch(what=what, name=name, schema=body["newschema"])
    return ast.AlterTextSearch(what=what, name=name, owner=reader.role(body["newowner"]))

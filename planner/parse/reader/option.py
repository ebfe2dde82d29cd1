"""Raw parse tree -> AST: options, names of objects and roles, which statements of several kinds share."""

from __future__ import annotations

from collections.abc import Callable

from pgwire.codecs.registry import text_input
from planner import ast
from planner.facts import OID
from planner.parse.reader.query import RawReader
from planner.parse.reader.reader import Raw, strings


def words(kind: str, prefix: str) -> str:
    """Return an enumeration value of the grammar without its prefix, as words in lower case."""
    return kind.removeprefix(prefix).replace("_", " ").lower()


def object_word(kind: str) -> str:
    """Return what a message calls the kind of an object (OBJECT_MATVIEW: materialized view)."""
    return {
        "OBJECT_MATVIEW": "materialized view",
        "OBJECT_TABCONSTRAINT": "table constraint",
        "OBJECT_DOMCONSTRAINT": "domain constraint",
        "OBJECT_FOREIGN_TABLE": "foreign table",
        "OBJECT_FOREIGN_SERVER": "server",
        "OBJECT_FDW": "foreign data wrapper",
        "OBJECT_LARGEOBJECT": "large object",
        "OBJECT_OPCLASS": "operator class",
        "OBJECT_OPFAMILY": "operator family",
        "OBJECT_STATISTIC_EXT": "statistics",
        "OBJECT_TSCONFIGURATION": "text search configuration",
        "OBJECT_TSDICTIONARY": "text search dictionary",
        "OBJECT_TSPARSER": "text search parser",
        "OBJECT_TSTEMPLATE": "text search template",
    }.get(kind, words(kind, "OBJECT_"))


def about_part(
    reader: RawReader,
    kind: str,
    body: Raw,
    word: str,
    *,
    rename: Callable[..., ast.StatementNode],
    drop: Callable[..., ast.StatementNode],
    comment: Callable[..., ast.StatementNode],
) -> ast.StatementNode | None:
    """Read RENAME, DROP and COMMENT of an object that is named within its table and whose kind is ``word``,
    else return None.
    """
    key = {"RenameStmt": "renameType", "DropStmt": "removeType", "CommentStmt": "objtype"}.get(kind)
    if key is None or object_word(body[key]) != word:
        return None
    if kind == "RenameStmt":
        return rename(name=body["subname"], relation=reader.table(body["relation"]), new=body["newname"])
    found = body["object"] if kind == "CommentStmt" else body["objects"][0]  # the grammar has no list of them
    name = strings(found["List"]["items"])
    if kind == "CommentStmt":
        return comment(table=name[:-1], name=name[-1], text=body.get("comment"))
    return drop(table=name[:-1], name=name[-1], if_exists=body.get("missing_ok", False))


def large_object_number(node: Raw) -> int:
    """Return the oid that a statement names a large object by. SqlError 22003, 22P02 where it is none."""
    text = str(node["Integer"].get("ival", 0)) if "Integer" in node else str(node["Float"]["fval"])
    number: int = text_input(OID, text)
    return number


class OptionReader(RawReader):
    """Reads options and names."""

    def _option_value(self, node: Raw | None) -> ast.OptionValue:
        if node is None:
            return None
        for kind, body in node.items():
            if kind == "String":
                return str(body.get("sval", ""))
            if kind == "Integer":
                return int(body.get("ival", 0))
            if kind == "Float":
                return ast.NumberText(text=body["fval"])
            if kind == "Boolean":
                return bool(body.get("boolval", False))
            if kind == "List":
                return tuple(
                    [
                        item["String"].get("sval", "") if "String" in item else self.role(next(iter(item.values()))).name
                        for item in body.get("items", ())
                    ]
                )  # fmt: skip
            if kind == "A_Star":
                return "*"
            if kind == "TypeName":
                return self.type_name(body)
            if kind == "RoleSpec":
                return self.role(body).name
            return self.expr(node)
        raise AssertionError("empty option value")

    def options(self, nodes: list[Raw] | None) -> tuple[ast.Option, ...]:
        """Read a list of DefElem."""
        return tuple(
            [
                ast.Option(
                    name=body["defname"],
                    value=self._option_value(body.get("arg")),
                    namespace=body.get("defnamespace", ""),
                    span=self.span(body),
                )
                for body in [node["DefElem"] for node in nodes or ()]
            ]
        )

    def role(self, body: Raw) -> ast.Role:
        """Read a RoleSpec: a role by its name, or CURRENT_USER and its like."""
        special = body["roletype"].removeprefix("ROLESPEC_").lower()
        return ast.Role(
            name=body.get("rolename", ""),
            special="" if special == "cstring" else special,
            span=self.span(body),
        )

    def object_name(self, node: Raw) -> ast.Name:
        """Read the name that a statement calls an object by, in the parts it is written in; a large object's
        number is one.
        """
        for kind, body in node.items():
            if kind in ("Integer", "Float"):
                return (str(large_object_number(node)),)
            if kind == "String":
                return (body.get("sval", ""),)
            if kind == "List":
                if (
                    "TypeName" in body["items"][0] and "String" in body["items"][-1]
                ):  # a constraint of a domain: that, and its name
                    return (
                        *strings(body["items"][0]["TypeName"].get("names", ())),
                        *strings(body["items"][1:]),
                    )
                return strings([item for item in body["items"] if "String" in item])
            if kind == "TypeName":
                return strings(body.get("names", ()))
            if kind == "ObjectWithArgs":
                return strings(body["objname"])
        return ()

"""Raw parse tree -> AST, for statements about types (see ``planner.parse.reader.statement``)."""

from __future__ import annotations

from typing import Any

from planner import ast
from planner.parse.reader.definitions import DdlReader
from planner.parse.reader.query import RawReader
from planner.parse.reader.reader import Raw, strings


def create_enum(reader: RawReader, body: Raw) -> ast.StatementNode:
    """Read CREATE TYPE ... AS ENUM."""
    return ast.CreateEnum(name=strings(body["typeName"]), labels=strings(body.get("vals", ())))


def create_composite(reader: DdlReader, body: Raw) -> ast.StatementNode:
    """Read CREATE TYPE ... AS (attributes)."""
    name = reader.table(body["typevar"])
    return ast.CreateComposite(
        name=(name.schema, name.name) if name.schema else (name.name,),
        columns=tuple([reader.column_def(node["ColumnDef"]) for node in body.get("coldeflist", ())]),
    )


def create_range(reader: DdlReader, body: Raw) -> ast.StatementNode:
    """Read CREATE TYPE ... AS RANGE."""
    return ast.CreateRange(name=strings(body["typeName"]), options=reader.options(body.get("params")))


def alter_enum(reader: RawReader, body: Raw) -> ast.StatementNode:
    """Read ALTER TYPE ... ADD VALUE and RENAME VALUE."""
    name = strings(body["typeName"])
    if "oldVal" in body:
        return ast.RenameEnumValue(name=name, old=body["oldVal"], new=body["newVal"])
    return ast.AddEnumValue(
        name=name,
        label=body["newVal"],
        neighbour=body.get("newValNeighbor"),
        after=body.get("newValIsAfter", False),
        if_not_exists=body.get("skipIfNewValExists", False),
    )


def create_domain(reader: DdlReader, body: Raw) -> ast.StatementNode:
    """Read CREATE DOMAIN."""
    collation = body.get("collClause")
    return ast.CreateDomain(
        name=strings(body["domainname"]),
        type=reader.type_name(body["typeName"]),
        constraints=tuple([reader.constraint(n["Constraint"]) for n in body.get("constraints", ())]),
        collation=strings(collation["collname"]) if collation else (),
    )


_ALTER_DOMAIN: dict[str, Any] = {
    "T": "default",
    "O": "set not null",
    "N": "drop not null",
    "C": "add",
    "X": "drop",
    "V": "validate",
}


def alter_domain(reader: DdlReader, body: Raw) -> ast.StatementNode:
    """Read ALTER DOMAIN, but for RENAME, OWNER TO and SET SCHEMA."""
    action = _ALTER_DOMAIN[body["subtype"]]
    written: Any = body.get("def")
    return ast.AlterDomain(
        name=strings(body["typeName"]),
        action=action,
        default=reader.optional(written) if action == "default" else None,
        constraint=reader.constraint(written["Constraint"]) if action == "add" else None,
        constraint_name=body.get("name", ""),
        if_exists=body.get("missing_ok", False),
    )

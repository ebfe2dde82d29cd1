"""Raw parse tree -> AST: databases, and what settings begin with."""

from __future__ import annotations

from planner import ast
from planner.parse.reader.definitions import DdlReader
from planner.parse.reader.reader import Raw, strings
from planner.parse.reader.tables import SET_KINDS


class ServerReader(DdlReader):
    """Reads statements about what all databases share."""

    def _create_database(self, body: Raw) -> ast.StatementNode:
        return ast.CreateDatabase(name=body["dbname"], options=self.options(body.get("options")))

    def _alter_database(self, body: Raw) -> ast.StatementNode:
        return ast.AlterDatabase(name=body["dbname"], options=self.options(body.get("options")))

    def _refresh_database(self, body: Raw) -> ast.StatementNode:
        return ast.AlterDatabase(name=body["dbname"], refresh=True)

    def _create_collation(self, body: Raw) -> ast.StatementNode:
        return ast.CreateCollation(
            name=strings(body["defnames"]),
            options=self.options(body.get("definition")),
            if_not_exists=body.get("if_not_exists", False),
        )

    def _refresh_collation(self, body: Raw) -> ast.StatementNode:
        return ast.RefreshCollation(name=strings(body["collname"]))

    def _drop_database(self, body: Raw) -> ast.StatementNode:
        return ast.DropDatabase(
            name=body["dbname"],
            if_exists=body.get("missing_ok", False),
            options=self.options(body.get("options")),
        )

    def _alter_database_set(self, body: Raw) -> ast.StatementNode:
        return ast.AlterDefaults(
            database=body["dbname"], role=None, setting=self._set(body["setstmt"]), of_role=False
        )

    def _alter_role_set(self, body: Raw) -> ast.StatementNode:
        role = body.get("role")
        return ast.AlterDefaults(
            database=body.get("database", ""),
            role=None if role is None else self.role(role),
            setting=self._set(body["setstmt"]),
            of_role=True,
        )

    def _security_label(self, body: Raw) -> ast.StatementNode:
        return ast.SecurityLabel(provider=body.get("provider", ""))

    def _load(self, body: Raw) -> ast.StatementNode:
        return ast.Load(library=body["filename"])

    def _set(self, body: Raw) -> ast.SetVariable:
        raw = body.get("args", [])
        modes = bool(raw) and "DefElem" in raw[0]
        args = () if modes else self.exprs(raw)
        options = self.options(raw) if modes else ()
        return ast.SetVariable(
            kind=SET_KINDS[body["kind"]],
            name=body.get("name", ""),
            args=args,
            options=options,
            local=body.get("is_local", False),
            span=args[0].span if args else None,
        )

"""Raw parse tree -> AST, for statements about triggers (see ``planner.raw_statement``)."""

from __future__ import annotations

from typing import Any, Final

from planner import ast
from planner.raw_option import object_word
from planner.raw_reader import Raw, strings

_EVENTS: Final = (("i", 4), ("d", 8), ("u", 16), ("t", 32))
_TIMINGS: Final = {0: "after", 2: "before", 64: "instead of"}


def create_trigger(reader: Any, body: Raw) -> ast.Node:
    """Read CREATE TRIGGER."""
    events = body["events"]
    return ast.CreateTrigger(
        name=body["trigname"],
        relation=reader.table(body["relation"]),
        timing=_TIMINGS[body.get("timing", 0)],
        row=body.get("row", False),
        events="".join(letter for letter, bit in _EVENTS if events & bit),
        function=strings(body["funcname"]),
        args=strings(body.get("args", ())),
        columns=strings(body.get("columns", ())),
        when=reader.optional(body.get("whenClause")),
        transitions=tuple(
            [_transition(node["TriggerTransition"]) for node in body.get("transitionRels", ())]
        ),
        constraint=body.get("isconstraint", False),
        from_table=reader.table(body["constrrel"]) if "constrrel" in body else None,
        deferrable=body.get("deferrable", False),
        deferred=body.get("initdeferred", False),
        replace=body.get("replace", False),
    )


def _transition(body: Raw) -> ast.Transition:
    return ast.Transition(name=body["name"], new=body.get("isNew", False), table=body.get("isTable", False))


def about_trigger(reader: Any, kind: str, body: Raw) -> ast.Node | None:
    """Read RENAME, DROP and COMMENT where they are about triggers, else return None."""
    key = {"RenameStmt": "renameType", "DropStmt": "removeType", "CommentStmt": "objtype"}.get(kind)
    if key is None or object_word(body[key]) != "trigger":
        return None
    if kind == "RenameStmt":
        return ast.RenameTrigger(
            name=body["subname"], relation=reader.table(body["relation"]), new=body["newname"]
        )
    found = body["object"] if kind == "CommentStmt" else body["objects"][0]  # the grammar has no list of them
    name = strings(found["List"]["items"])
    if kind == "CommentStmt":
        return ast.CommentOnTrigger(table=name[:-1], name=name[-1], text=body.get("comment"))
    return ast.DropTrigger(table=name[:-1], name=name[-1], if_exists=body.get("missing_ok", False))

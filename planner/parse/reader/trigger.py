"""Raw parse tree -> AST, for statements about triggers (see ``planner.parse.reader.statement``)."""

from __future__ import annotations

from typing import Final

from planner import ast
from planner.parse.reader.option import OptionReader, about_part
from planner.parse.reader.reader import Raw, strings

_EVENTS: Final = (("i", 4), ("d", 8), ("u", 16), ("t", 32))
_TIMINGS: Final = {0: "after", 2: "before", 64: "instead of"}


def create_trigger(reader: OptionReader, body: Raw) -> ast.StatementNode:
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


def about_trigger(reader: OptionReader, kind: str, body: Raw) -> ast.StatementNode | None:
    """Read RENAME, DROP and COMMENT where they are about triggers, else return None."""
    return about_part(
        reader,
        kind,
        body,
        "trigger",
        rename=ast.RenameTrigger,
        drop=ast.DropTrigger,
        comment=ast.CommentOnTrigger,
    )

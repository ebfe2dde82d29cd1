"""Triggers -> SQL text, as pg_get_triggerdef prints them.

CREATE TRIGGER t BEFORE INSERT OR UPDATE OF a ON public.x FOR EACH ROW WHEN ((old.a <> new.a)) EXECUTE FUNCTION f('1')
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from planner.base.quoting import quote_identifier
from planner.catalog import RelationDef
from planner.catalog.trigger import TriggerDef
from planner.deparse import STORED_READER, Reader
from planner.deparse.expr import INDENT_STEP, Level, Printer, quote_literal
from planner.query import Expr, Range, RangeColumn

TIMING_WORDS: Final = {"b": "BEFORE", "a": "AFTER", "i": "INSTEAD OF"}
EVENT_WORDS: Final = {"i": "INSERT", "d": "DELETE", "u": "UPDATE", "t": "TRUNCATE"}


def deparse_when(
    expr: Expr, relation: RelationDef, *, pretty: bool = False, reader: Reader = STORED_READER
) -> str:
    """Return the text of a trigger's condition. Vars of range 0 are columns of the old row, of range 1 of the
    new one.
    """
    columns = tuple([RangeColumn(name=c.name, type=c.type, attnum=c.attnum) for c in relation.columns])
    names = ("old", "new")
    level = Level(ranges=tuple([Range(alias=name, columns=columns) for name in names]), names=names)
    printer = Printer(
        pretty=pretty,
        prefix=True,
        settings=reader.settings,
        type_name=reader.type_name,
        function_name=reader.function_name,
        levels=[level],
        indent=INDENT_STEP,
    )
    printer.expr(expr, False)
    return printer.out


def trigger_definition(
    trigger: TriggerDef, relation: RelationDef, table: str, function: str, when: str, from_table: str = ""
) -> str:
    """Return CREATE TRIGGER; ``table``, ``function``, the condition ``when`` and ``from_table`` as the reader
    has to write them.
    """
    events: list[str] = []
    for letter in trigger.events:
        word = EVENT_WORDS[letter]
        if letter == "u" and trigger.attnums:
            word += " OF " + ", ".join(quote_identifier(relation.column(a).name) for a in trigger.attnums)
        events.append(word)
    words = [
        f"CREATE {'CONSTRAINT ' if trigger.constraint else ''}TRIGGER {quote_identifier(trigger.name)}",
        f"{TIMING_WORDS[trigger.timing]} {' OR '.join(events)} ON {table}",
    ]
    constraint = next((c for c in relation.constraints if c.oid == trigger.constraint), None)
    if constraint is not None:
        words += [f"FROM {from_table}"] if from_table else []
        words.append("DEFERRABLE" if constraint.deferrable else "NOT DEFERRABLE")
        words.append("INITIALLY DEFERRED" if constraint.deferred else "INITIALLY IMMEDIATE")
    if trigger.old_table or trigger.new_table:
        words.append("REFERENCING")
        words += [f"OLD TABLE AS {quote_identifier(trigger.old_table)}"] if trigger.old_table else []
        words += [f"NEW TABLE AS {quote_identifier(trigger.new_table)}"] if trigger.new_table else []
    words.append("FOR EACH ROW" if trigger.row else "FOR EACH STATEMENT")
    if when:
        words.append(f"WHEN ({when})")
    words.append(f"EXECUTE FUNCTION {function}({_arguments(trigger.args)})")
    return " ".join(words)


def _arguments(args: Sequence[str]) -> str:
    return ", ".join(quote_literal(arg) for arg in args)

"""Constants of reg* types in stored texts, which hold oids, as readers see them: by name.

    nextval('16385'::regclass)    nextval('s'::regclass)        '{16400,23}'::regtype[]    '{mood,integer}'::regtype[]

Names follow their objects; those that the reader's search path does not find have their schema. Definitions
are shown under the reader's ``standard_conforming_strings``, as in PostgreSQL: never with E'…'.
"""

from __future__ import annotations

import re
from typing import Final, cast

from pgwire.codecs.registry import text_input
from planner.base.errors import SqlError
from planner.catalog import Catalog, RelationDef
from planner.conversion.casts import is_oid_text
from planner.deparse.expr import quote_literal
from planner.facts import REGCLASS
from planner.functions.session import EvalSession
from planner.functions.system.reg_output import named_output
from planner.functions.values.names_of import NamesOf
from planner.functions.values.reg import NAMED, REG_ARRAYS, find_relation
from planner.textsearch.names import SEARCH_NAMES
from planner.types.facts import format_type

# literals, of which those of reg* types count, and quoted names, whatever is in them
_TOKEN: Final = re.compile(
    r"""'(?P<text>(?:[^']|'')*)'(?:::(?P<label>reg[a-z]+\b(?:\[\])?))?|"(?:[^"]|"")*\""""
)
# regconfig and regdictionary are printed by name (``planner.deparse.expr``)
_TYPES: Final = {format_type(oid): oid for oid in NAMED if oid not in SEARCH_NAMES}


def for_reader(session: EvalSession, text: str) -> str:
    """Write a text's constants as the reader has to: what those of reg* types name, as the search path shows
    it, and backslashes.
    """
    return as_literals_are(session, names_for_reader(session, text))


def as_literals_are(session: EvalSession, text: str) -> str:
    """Return a text whose literals the reader's statements take, which double backslashes under
    ``standard_conforming_strings = off``.
    """
    if not session.escapes or "\\" not in text:
        return text
    return _TOKEN.sub(lambda token: token[0].replace("\\", "\\\\") if token[0][0] == "'" else token[0], text)


def names_for_reader(session: EvalSession, text: str) -> str:
    """Write what constants of reg* types name as the search path shows it; what the reader cannot find, as it
    stands.
    """

    def shown(match: re.Match[str]) -> str:
        label = match["label"]
        type_ = None if label is None else _TYPES.get(label)
        if type_ is None:
            return match.group()
        written = match["text"].replace("''", "'")
        if is_oid_text(written, array=type_ in REG_ARRAYS):
            value = text_input(type_, written)
        elif type_ == REGCLASS and (relation := _found(session, written)) is not None:
            value = relation.oid
        else:
            return match.group()
        return f"{quote_literal(named_output(session, type_, value))}::{label}"

    return _TOKEN.sub(shown, text) if "::reg" in text else text


def with_names(text: str, catalog: Catalog) -> str:
    """Return a text with what its constants name as who has no search path of theirs sees it: what is not in
    public with its schema.
    """
    return names_for_reader(cast("EvalSession", NamesOf(catalog, ("pg_catalog", "public"), "")), text)


def _found(session: EvalSession, name: str) -> RelationDef | None:
    """Return the relation that a text names which was stored by its name, as views and checks once were."""
    try:
        return find_relation(session, name)
    except SqlError:  # of a schema that is gone, closed to the reader, or another session's temporary one
        return None

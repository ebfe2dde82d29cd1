"""ALTER ... RENAME TO, SET SCHEMA and OWNER TO of what has a name in a schema: one binder for all kinds (``KINDS``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from planner import ast
from planner import statements as st
from planner.bind.context import BindContext
from planner.bind.define import collation, conversions, opclasses, text_search
from planner.bind.define.placed import creation_schema
from planner.bind.session.utility import owner_name

Placed: TypeAlias = ast.AlterConversion | ast.AlterCollation | ast.AlterOpclass | ast.AlterTextSearch


class Kind(NamedTuple):
    """``find``: what a statement names, which has an oid and a name, 0A000 for PostgreSQL's own; ``made``:
    the bound statement; ``what``: the word for it.
    """

    find: Callable[[BindContext, Any], Any]
    made: Callable[..., st.Statement]
    what: Callable[[Any], str]


KINDS: Final[Mapping[type, Kind]] = {
    ast.AlterConversion: Kind(conversions.altered, st.AlterConversion, lambda _node: "conversion"),
    ast.AlterCollation: Kind(collation.altered, st.AlterCollation, lambda _node: "collation"),
    ast.AlterOpclass: Kind(opclasses.altered, st.AlterOpclass, lambda _node: "operator class or family"),
    ast.AlterTextSearch: Kind(text_search.altered, st.AlterTextSearch, lambda node: str(node.what)),
}


def bind_alter(context: BindContext, node: Placed) -> st.Statement:
    """RENAME TO, SET SCHEMA, OWNER TO. Raises SqlError 42704, 3F000, 42501; 0A000 for PostgreSQL's own and
    for a temporary schema.
    """
    kind = KINDS[type(node)]
    found = kind.find(context, node)
    if node.schema is not None and node.schema != "pg_temp":  # nothing moves there
        creation_schema(context, (node.schema, found.name), kind.what(node))
    return kind.made(
        object=found.oid,
        name=node.rename,
        schema=node.schema,
        owner=None if node.owner is None else owner_name(node.owner),
    )

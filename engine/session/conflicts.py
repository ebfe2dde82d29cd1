"""What is said of conflicts between transactions: 40001, 40P01, 55P03 (N8, Q13).

    ERROR:  deadlock detected
    DETAIL:  Process 12 waits for AccessExclusiveLock on row (id = 2) of table "pair"; blocked by process 34.
             Process 34 waits for AccessExclusiveLock on row (id = 1) of table "pair"; blocked by process 12.
             Process 12: UPDATE pair SET v = 1 WHERE id = 2
             Process 34: UPDATE pair SET v = 2 WHERE id = 1
    HINT:  The transaction might succeed if retried.

in the manner of PostgreSQL's report in its server log. A row is named by its primary key where that is in
memory, else by its ctid; so it is to who may not read that key, of all rows. What another connection runs is
shown to superusers and to its own user (as pg_stat_activity does).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from engine.base.lock_modes import mode_name
from engine.catalog.index_parts import part_of
from engine.catalog.tids import block_and_position, tid_of
from engine.session.large_objects.shards import NAMES
from engine.session.transaction.shown_values import shown_value
from pgwire.codecs.registry import CodecSettings
from planner.base.quoting import quote_identifier
from planner.bind.stored.shown import index_key_text
from planner.catalog import Catalog, IndexDef, RelationDef
from planner.deparse import Reader
from planner.facts import BYTEA, INT8
from planner.information.named_constants import with_names
from planner.types.facts import element_of
from txn.base.errors import LockTarget, LockWait
from txn.base.types import Key, Row, RowId, ShardId

RETRY_HINT: Final = "The transaction might succeed if retried."
MAX_QUERY_CHARS: Final = 1024  # of another connection's statement
MAX_WAITS: Final = 20  # lines of a cycle

_CANONICAL = CodecSettings()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What reports may ask the server for.

    ``query``: what a connection runs (by pid), None where there is none or it is not for the reader's eyes.
    ``row``: the latest values of a row that is in memory, else None. ``readable``: whether the user may read
    all of some columns (attnums; 0, an expression, is the whole table). ``relative``: a text in which the
    server's files are called as they are within its folders; where those are is not for clients.
    """

    query: Callable[[int], str | None]
    row: Callable[[ShardId, RowId], Row | None]
    readable: Callable[[RelationDef, Iterable[int]], bool]
    relative: Callable[[str], str] = str


NOTHING_KNOWN: Final = Surroundings(
    lambda _pid: None, lambda _shard, _row_id: None, lambda _relation, _attnums: True
)


def relation_name(catalog: Catalog, shard: int) -> str:
    """Return a table's name, or what there is to say of one that is gone."""
    relation = catalog.relation_by_oid(shard)
    if relation is not None:
        return relation.name
    return NAMES.get(ShardId(shard), f"relation {shard}")


def find_index(relation: RelationDef | None, oid: int | None) -> IndexDef | None:
    """Return the index of a table, or the part of one, that its shard knows under a number; or None."""
    if relation is None or oid is None:
        return None
    return part_of(relation, oid)


def key_text(catalog: Catalog, relation: RelationDef, index: IndexDef, key: Key) -> tuple[str, str]:
    """Return ("a, b", "1, x"): column names and values of an index key, as DETAIL shows them."""
    names, values = _named(catalog, relation, index, key)
    return ", ".join(names), ", ".join(values)


def _named(catalog: Catalog, relation: RelationDef, index: IndexDef, key: Key) -> tuple[list[str], list[str]]:
    by_attnum = {column.attnum: column for column in relation.columns}
    columns = [by_attnum[attnum] for attnum in index.attnums]
    types = [column.type.oid for column in columns]
    if index.method == "gin":  # an element; of a document the number that stands for a piece
        types = [element_of(types[0]) or INT8]
    elif not index.by_value:  # the node that ranges stand under
        types = [BYTEA]
    shown = key[: len(key) - bool(index.guard)]
    values = [shown_value(type_, value, _CANONICAL) for type_, value in zip(types, shown, strict=True)]
    return [key_word(catalog, relation, index, i) for i in range(len(columns))], values


def key_word(catalog: Catalog, relation: RelationDef, index: IndexDef, position: int) -> str:
    """Return how messages call a key of an index: the column's name, quoted where SQL needs that, or its expression."""
    attnum = index.key_columns[position]
    if attnum:
        return quote_identifier(relation.column(attnum).name)
    reader = Reader(function_name=lambda _oid, _schema, name: quote_identifier(name), catalog=catalog)
    return with_names(index_key_text(index, relation, position, pretty=True, reader=reader), catalog)


def equalities(catalog: Catalog, relation: RelationDef, index: IndexDef, key: Key) -> str:
    """Return ``a = 1, b = x``."""
    return ", ".join(
        f"{name} = {value}" for name, value in zip(*_named(catalog, relation, index, key), strict=True)
    )


def target_text(target: LockTarget, catalog: Catalog, known: Surroundings) -> str:
    """Return what a lock is on: ``row (id = 1) of table "t"``."""
    if target.kind == "advisory":
        return f"advisory lock [{','.join(map(str, target.key or ()))}]"
    relation = catalog.relation_by_oid(target.shard)
    table = f'table "{relation_name(catalog, target.shard)}"'
    if target.kind == "table":
        return table
    if target.kind == "row" and target.row_id is not None:
        return f"row {_row_text(catalog, relation, target, known)} of {table}"
    index = find_index(relation, target.index)
    if relation is None or index is None:
        return f"an index key of {table}"
    if target.key is None:
        return f'the end of index "{index.name}" of {table}'
    if not known.readable(relation, index.key_columns):
        return f'a {"key" if target.kind == "key" else "range"} of index "{index.name}" of {table}'
    what = "key" if target.kind == "key" else "range below"
    return f'{what} ({equalities(catalog, relation, index, target.key)}) of index "{index.name}" of {table}'


def _row_text(catalog: Catalog, relation: RelationDef | None, target: LockTarget, known: Surroundings) -> str:
    if relation is not None and target.row_id is not None:
        primary = next((index for index in relation.indexes if index.primary), None)
        if primary is not None and not known.readable(relation, primary.key_columns):
            primary = None
        row = known.row(target.shard, target.row_id) if primary is not None else None
        if row is not None and primary is not None and max(primary.attnums) <= len(row):
            return f"({equalities(catalog, relation, primary, tuple(row[n - 1] for n in primary.attnums))})"
    page, number = block_and_position(tid_of(target.row_id or 0))
    return f"({page},{number})"


def wait_lines(waits: Sequence[LockWait], catalog: Catalog, known: Surroundings) -> list[str]:
    """Return a line for each wait, then one for the query of each connection concerned."""
    lines = [
        f"Process {wait.waiter} waits for {mode_name(wait.target.kind, wait.mode)} "
        f"on {target_text(wait.target, catalog, known)}; blocked by process {wait.holder}."
        for wait in waits[:MAX_WAITS]
    ]
    pids = dict.fromkeys(pid for wait in waits[:MAX_WAITS] for pid in (wait.waiter, wait.holder))
    return [*lines, *query_lines(pids, known)]


def query_lines(pids: Iterable[int], known: Surroundings) -> list[str]:
    """Return ``Process 12: UPDATE ...`` for the connections whose statement is known."""
    lines = []
    for pid in pids:
        query = known.query(pid)
        if query:
            cut = query if len(query) <= MAX_QUERY_CHARS else query[:MAX_QUERY_CHARS] + "..."
            lines.append(f"Process {pid}: {cut}")
    return lines

"""INSERT ... SELECT and CREATE TABLE AS whose query runs on Spark: its executors write the parts (docs/guide/spark.md).

    query, route Spark ──► X on the table ──► job: rows ──► parts        the server learns names and sizes
                                   └── anything fails: the job's files are deleted

Only where there is nothing to do per row but to look for NULLs (as ``insert_bulk.BulkSource``), and not for a query
that returns few rows whatever the tables hold: those go as intents, which lock no more than themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from engine.base.executor import ExecContext
from engine.catalog.physical import shard_column, shard_spec
from engine.changes.writes.shape import TableShape
from engine.executors.spark.executor import SparkExecutor
from engine.executors.spark.part_worker import Target
from engine.executors.spark.part_writer import OtherForm, Rows
from engine.plans.query import CompiledQuery, check_populated, choose_route
from planner.base.errors import SqlError
from planner.catalog import RelationDef
from planner.query import Const, QueryExpr, Select, Values
from txn.api import PartJob, WrittenPart
from txn.base.errors import NullInColumn
from txn.base.types import ShardId
from txn.values.columns import RowPlan, column_fields, table_rows

if TYPE_CHECKING:
    from engine.session.session import Session

FEW_ROWS = 20_000  # a query that returns no more goes row by row


async def load_on_spark(
    session: Session, query: CompiledQuery, ctx: ExecContext, shape: TableShape, attnums: Sequence[int]
) -> int | None:
    """Insert what the query selects, whose columns go to ``attnums``, and return the row count.

    None: it does not go by this way, and nothing has happened but, perhaps, that the table is locked.

    Raises:
        SqlError: what the query raises; 23502.
        DuplicateKey and all else that ``Transaction.bulk_insert_parts`` raises.
    """
    relation = shape.relation
    check_populated(session, query)
    if not may_load(query.query, relation, attnums):
        return None
    route, executable = choose_route(session, query, ctx.params, ctx.txn)
    if route.executor != "spark":
        return None
    spark = session.db.executors["spark"]
    if not isinstance(spark, SparkExecutor):
        raise AssertionError(f"the Spark executor is {type(spark).__name__}")
    rows = rows_for(relation, attnums)
    not_null = [c.attnum for c in relation.live if c.not_null]

    async def write(job: PartJob) -> list[WrittenPart]:
        return (await spark.write_parts(executable, ctx, job.requiring(not_null), rows)).parts

    try:
        return await session.block.ensure_txn().bulk_insert_parts(ShardId(relation.oid), write)
    except OtherForm:
        return None
    except SqlError as error:  # Spark may learn only at run time that it cannot
        if error.sqlstate != "0A000" or session.derived.executor != "auto":
            raise
        query.refused["spark"] = error.copy()
        return None
    except NullInColumn as error:
        raise null_error(session, shape, error) from error


def may_load(query: QueryExpr, relation: RelationDef, attnums: Sequence[int]) -> bool:
    """Return whether a query's rows may go to a table as parts that Spark writes, if it runs there."""
    if relation.generated:
        return False
    columns = [shard_column(relation.columns[attnum - 1]) for attnum in attnums]
    return not returns_few(query) and all(column.type.kind != "list" for column in columns)


def returns_few(query: QueryExpr) -> bool:
    """Return whether a query is known to return few rows: by its LIMIT, its VALUES, or as one aggregate."""
    limit = query.limit
    if isinstance(limit, Const) and isinstance(limit.value, int) and limit.value <= FEW_ROWS:
        return True
    if isinstance(query, Values):
        return len(query.rows) <= FEW_ROWS
    return isinstance(query, Select) and query.grouped and not query.group and query.grouping_sets is None


def rows_for(relation: RelationDef, attnums: Sequence[int]) -> Rows:
    """Return how rows whose columns go to ``attnums`` (0: nowhere) become a table's parts."""
    source = {attnum: i for i, attnum in enumerate(attnums) if attnum}
    targets = []
    for column in relation.stored_columns:
        fields = column_fields(shard_column(column))
        targets.append(Target(fields[0].name, fields[0].type, source.get(column.attnum)))
        targets += [Target(field.name, field.type, None) for field in fields[1:]]
    key = next((index.attnums for index in relation.indexes if index.primary), ())
    return Rows(targets=targets, key=[f"c{attnum}" for attnum in key])


def null_error(session: Session, shape: TableShape, error: NullInColumn) -> SqlError:
    """Return 23502 for a row with a NULL too many, as ``TableShape.check`` raises it."""
    found: Any = pa.ipc.open_stream(error.row).read_all()
    system = pa.array([0], pa.int64())
    found = found.append_column("s_row_id", system).append_column("s_begin", system)
    relation = shape.relation
    row = table_rows(found, RowPlan(shard_spec(relation), tuple(c.attnum for c in relation.stored_columns)))[
        0
    ]
    return shape.null_in(row, relation.columns[error.attnum - 1].name, session)

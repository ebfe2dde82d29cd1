"""Files of a FILES source to rows of its table: read as COPY FROM reads files on the server, with the same functions.

    file ──thread: ``engine.changes.bulk.read_split``──> Arrow batches ──> rows of at most SLICE_ROWS, between
    two turns of the loop
    many bytes ──> Spark's tasks: the same function ──> parts                                           (``files_spark``)

What a value is, and what is wrong with a line, is thus the same whoever reads it. Errors name file, line
(row, of Parquet) and column. Values read under PostgreSQL's own defaults (DateStyle ISO, TimeZone UTC),
whatever sessions set.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Final

import pyarrow as pa

from engine.base.server_files import ServerFile
from engine.base.stored_objects import beside
from engine.catalog.physical import shard_spec
from engine.changes.bulk.look import look, looks_at, splits_of
from engine.changes.bulk.read_split import Reading, read_split, worker_env
from engine.changes.writes.copy_rows import LoadSpec
from engine.feeds.sources.options import Options
from engine.feeds.sources.reader import Temporary
from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.errors import DataError
from pgwire.codecs.settings import DEFAULT
from planner.base.errors import SqlError
from planner.catalog import RelationDef
from txn.base.types import Row
from txn.values.columns import RowPlan, table_rows

SLICE_ROWS: Final = 2000
_WHOLE: Final = 1 << 62
_MAY_PASS: Final = (
    "58P01",
    "58030",
    "53000",
    "53100",
    "53200",
)  # gone since it was listed; the disk, the network, what is short
_UNREADABLE: Final = ("42501", "42809")

Rows = AsyncGenerator[list[Row]]


def csv_options(options: Options) -> CopyOptions:
    """Return what the options of a CSV source amount to. Raises DataError 42601, 0A000, 22023 as COPY does."""
    made = CopyOptions(
        format="csv",
        header="match" if options.bool("header") else False,
        delimiter=options.text("delimiter"),
        null=options.text("null"),
        quote=options.text("quote"),
        escape=options.text("escape"),
    )
    made.check("from")
    return made


def load_spec(relation: RelationDef, options: Options) -> LoadSpec:
    """Return what reading the files of a source takes."""
    form = options.need("format")
    return LoadSpec(
        relation=relation,
        attnums=tuple(c.attnum for c in relation.live),
        options=csv_options(options) if form == "csv" else CopyOptions(format=form),  # type: ignore[arg-type]
        settings=DEFAULT,
        defaults=(),
        where=None,
        checks=(),
        generated=(),
    )


async def read_file(file: ServerFile, spec: LoadSpec, skip: int) -> Rows:
    """Yield the rows of a file or an object behind the first ``skip``, which were committed before.

    Raises DataError with its place; Temporary for a file that is gone, or that the system cannot read now.
    """
    plan = RowPlan(shard_spec(spec.relation), spec.attnums)
    stored = not isinstance(file.path, str)
    try:
        looks = looks_at([file], spec.options, _WHOLE)
        found = [await beside(stored, look, spec.options, item) for item in looks]
        for split in splits_of([file], spec.options, looks, found):
            batches = read_split(spec, worker_env(), split, Reading())
            while (batch := await beside(stored, next, batches, None)) is not None:
                skipped = min(skip, batch.num_rows)
                skip -= skipped
                for start in range(skipped, batch.num_rows, SLICE_ROWS):
                    yield table_rows(_table(batch.slice(start, SLICE_ROWS)), plan)
                    await asyncio.sleep(0)
    except DataError as error:
        raise placed(error, file.name, spec.relation) from None


def _table(batch: Any) -> Any:
    return pa.Table.from_batches([batch])


def placed(error: DataError, name: str, relation: RelationDef) -> Exception:
    """Return the error about a file as sources tell it: ``file "/in/a.csv", line 3`` where COPY says ``COPY
    t, line 3``.
    """
    if error.sqlstate in _MAY_PASS:
        return Temporary(f"{error.sqlstate}: {error.message}")
    if error.sqlstate in _UNREADABLE and not error.where:
        return SqlError(error.sqlstate, error.message)  # without COPY's hint
    said, place = f"COPY {relation.name}, ", f'file "{name}"'
    where = (error.where or "").removesuffix(f"\n{place}").removesuffix(place)
    error.where = f"{place}, {where[len(said) :]}" if where.startswith(said) else f"{place}\n{where}".rstrip()
    return error

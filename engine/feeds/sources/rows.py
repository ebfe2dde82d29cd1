"""Field texts to table rows: decoded by column, cut to their typmods, checked against NOT NULL.

Values read as PostgreSQL reads them under its own defaults (DateStyle ISO, TimeZone UTC), whatever sessions set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import text_decoder
from pgwire.codecs.settings import DEFAULT
from pgwire.codecs.typmod import typmod_function
from planner.base.errors import SqlError
from planner.catalog import ColumnDef, RelationDef
from txn.base.types import Row

Where = Callable[[int, str | None, str | None], str]
"""Says where a field stands: index of its row, its column, its text; column None: the row."""

MAX_SHOWN: Final = 100


def _reader(column: ColumnDef) -> Callable[[str], Any]:
    decode = text_decoder(column.type.oid, DEFAULT)
    coerce = typmod_function(column.type.oid, column.type.typmod)
    if coerce is None:
        return decode
    return lambda text: coerce(decode(text))


class RowReader:
    """Makes rows of one table out of texts."""

    def __init__(self, relation: RelationDef, attnums: Sequence[int]) -> None:
        """``attnums``: the columns that the fields of a row are of, in their order; others are NULL."""
        self.relation = relation
        self.columns = [relation.column(attnum) for attnum in attnums]
        self.width = len(relation.columns)
        self.readers = [_reader(column) for column in self.columns]
        self._not_null = [(c.attnum - 1, c.name) for c in relation.live if c.not_null]

    def rows(self, fields: Sequence[Sequence[str | None]], where: Where) -> list[Row]:
        """Return rows. Raises DataError with ``where`` as CONTEXT for the first field that does not read, or 23502."""
        rows = self.values(fields, where)
        self.check(rows, where)
        return rows

    def values(self, fields: Sequence[Sequence[str | None]], where: Where) -> list[Row]:
        """Return rows that may have NULLs where there should be none. Else as ``rows``."""
        count = len(fields)
        columns: list[Sequence[Any]] = [(None,) * count] * self.width
        for position, (column, read) in enumerate(zip(self.columns, self.readers, strict=True)):
            values: list[Any] = []
            try:
                for row in fields:
                    text = row[position]
                    values.append(None if text is None else read(text))
            except DataError as error:
                index = len(values)
                raise located(error, where(index, column.name, fields[index][position])) from None
            columns[column.attnum - 1] = values
        return list(zip(*columns, strict=True)) if columns else [()] * count

    def check(self, rows: Sequence[Row], where: Where) -> None:
        """Raise 23502, with ``where`` as CONTEXT, for the first row with a NULL too many."""
        for position, name in self._not_null:
            for index, row in enumerate(rows):
                if row[position] is None:
                    error = SqlError(
                        "23502",
                        f'null value in column "{name}" of relation "{self.relation.name}" '
                        "violates not-null constraint",
                    )
                    raise located(error, where(index, None, None))


def located(error: DataError, where: str) -> DataError:
    """Add a CONTEXT to an error, in front of what it has; returns it."""
    error.where = f"{where}\n{error.where}" if error.where else where
    return error


def shown(text: str) -> str:
    """Return a piece of data for a message, cut where it is long."""
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."

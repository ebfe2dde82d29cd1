"""COPY FROM, row by row: decoded fields -> values -> defaults, WHERE, NOT NULL, CHECK -> table rows.

This is the careful path: it serves small loads, and of large ones what ``engine.writes.copy_bulk`` cannot read by column.
Errors carry PostgreSQL's CONTEXT with the line, the column and the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.writes.progress import CopyProgress
from engine.writes.shape import TableShape, table_layout
from pgwire.codecs.copy import CopyOptions, copy_context, with_context
from pgwire.codecs.copy_in import CopyRows
from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import binary_decoder, text_decoder
from pgwire.codecs.typmod import typmod_function
from planner.catalog import RelationDef
from planner.errors import SqlError
from planner.evaluate import Env, compile_expr, compile_predicate
from planner.statements import Copy
from txn.types import Row

if TYPE_CHECKING:
    from engine.connection.session import Session


class RowLoader:
    """Turns decoded fields into table rows of one table."""

    def __init__(
        self, session: Session, statement: Copy, relation: RelationDef, env: Env, progress: CopyProgress
    ) -> None:
        """Compile what the rows of one COPY need; ``progress`` is told of them."""
        self._progress = progress
        self.relation = relation
        self.shape = TableShape(relation, session)
        self.env = env
        self.by_attnum = {c.attnum: c for c in relation.columns}
        self.targets = [self.by_attnum[attnum] for attnum in statement.attnums]
        options = statement.options["codec"]
        assert isinstance(options, CopyOptions)
        self.options = options
        self.binary = options.format == "binary"
        make = binary_decoder if self.binary else text_decoder
        settings = self.settings = session.codec_settings
        self.decoders = [make(c.type.oid, settings) for c in self.targets]
        self.coercions = [typmod_function(c.type.oid, c.type.typmod) for c in self.targets]
        self.defaults = [(attnum - 1, compile_expr(expr)) for attnum, expr in statement.defaults]
        self.where = None
        if statement.where is not None:
            self.where = compile_predicate([statement.where], table_layout(relation))

    def rows(self, decoded: CopyRows) -> list[Row]:
        """Return table rows for decoded ones, column by column; errors name line and column."""
        if not decoded.rows:
            return []
        count = len(decoded.rows)
        columns: list[Sequence[Any]] = [(None,) * count] * self.shape.width
        fields = zip(*decoded.rows, strict=True)
        for target, decode, coerce, texts in zip(
            self.targets, self.decoders, self.coercions, fields, strict=True
        ):
            try:
                values = [None if text is None else decode(text) for text in texts]
                if coerce is not None:
                    values = [None if v is None else coerce(v) for v in values]
            except DataError:
                raise self._locate(target.name, decode, coerce, texts, decoded.lines) from None
            columns[target.attnum - 1] = values
        for position, make in self.defaults:
            columns[position] = [make((), self.env) for _ in range(count)]
        rows: list[Row] = list(zip(*columns, strict=True)) if columns else [()] * count
        if self.where is not None:
            rows = [row for row in rows if self.where((*row, self.relation.oid), self.env)]
        try:
            self.shape.check(rows, self.env)
        except SqlError as error:
            raise self._locate_row(error, rows, decoded) from None
        self._progress.rows(count, len(rows))
        return rows

    def _locate(
        self, column: str, decode: Any, coerce: Any, texts: Sequence[Any], lines: Sequence[int]
    ) -> DataError:
        """Find the row whose field does not read, and return its error with CONTEXT."""
        for text, line in zip(texts, lines, strict=True):
            try:
                value = None if text is None else decode(text)
                if value is not None and coerce is not None:
                    coerce(value)
            except DataError as error:
                return with_context(
                    error,
                    copy_context(
                        self.relation.name,
                        line,
                        column,
                        None if self.binary else text,
                        binary=self.binary,
                    ),
                )
        raise RuntimeError(f"a field of column {column} failed to read, then read")

    def _locate_row(self, error: SqlError, rows: Sequence[Row], decoded: CopyRows) -> DataError:
        if self.where is not None or self.binary:
            return error
        for row, fields, line in zip(rows, decoded.rows, decoded.lines, strict=True):
            try:
                self.shape.check([row], self.env)
            except SqlError as first:
                null = self.options.effective_null
                text = self.options.effective_delimiter.join(
                    null if field is None else str(field) for field in fields
                )
                return with_context(first, copy_context(self.relation.name, line, None, text))
        return error

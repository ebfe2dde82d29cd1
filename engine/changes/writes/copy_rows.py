"""COPY FROM, row by row: decoded fields -> values -> defaults, WHERE, NOT NULL, CHECK -> table rows.

This is the careful path: it serves small loads, and of large ones what ``engine.changes.writes.copy_bulk``
cannot read by column. It goes by column as long as all is well. Where something is not, the rows are gone
through one by one, so that the error is that of the first bad row, and carries PostgreSQL's CONTEXT with the
line, the column and the text.

With ON_ERROR ignore (manual of PostgreSQL 17 and 18), rows with a field that does not read are left out and counted;
what breaks the form of the file or a constraint still ends the load.

A ``LoadSpec`` is all that reading rows takes, as values: it can be sent to another process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from engine.changes.writes.shape import (
    ALL_SHOWN,
    Shown,
    TableShape,
    bound_checks,
    bound_demands,
    bound_generations,
    table_layout,
)
from engine.session.progress import CopyProgress
from pgwire.codecs.bytea import Digits
from pgwire.codecs.copy import MAX_CONTEXT_BYTES, CopyOptions, copy_context, limited, with_context
from pgwire.codecs.copy.lines import CopyDecoder, CopyRows, ShortRow
from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import binary_decoder, text_decoder
from pgwire.codecs.settings import CodecSettings
from pgwire.codecs.typmod import typmod_function
from planner.base.errors import SqlError
from planner.bind.stored.domain_checks import demanded_calls
from planner.catalog import RelationDef
from planner.conversion.composite import has_domains
from planner.conversion.ports import Demand
from planner.evaluate import Env, compile_expr, compile_predicate
from planner.functions.values.reg import NAMED, named_input
from planner.query import Expr
from planner.statements import Copy
from txn.base.types import Row

if TYPE_CHECKING:
    from engine.session.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSpec:
    """What the rows of one COPY FROM are made of. ``attnums``: the columns read, in the order of the file.

    ``reads_domains``: composite types among these have attributes of domains, whose demands are looked at as
    they are read.
    """

    relation: RelationDef
    attnums: tuple[int, ...]
    options: CopyOptions
    settings: CodecSettings
    defaults: tuple[tuple[int, Expr], ...]
    where: Expr | None
    checks: tuple[tuple[str, Expr], ...]
    generated: tuple[tuple[int, Expr], ...]
    demands: tuple[tuple[int, Demand], ...] = ()
    shown: Shown = ALL_SHOWN
    reads_domains: bool = False

    @property
    def encoding(self) -> str:
        """What the rows are in, a canonical name; those of the binary format have texts in ``settings.encoding``."""
        return (
            "UTF8" if self.options.format == "binary" else self.options.text_encoding(self.settings.encoding)
        )

    @classmethod
    def of(cls, session: Session, statement: Copy, relation: RelationDef) -> LoadSpec:
        """Return that of a bound statement."""
        options = statement.options["codec"]
        if not isinstance(options, CopyOptions):
            raise AssertionError(f"the codec of a COPY is bound as {type(options).__name__}")
        called: set[int] = set()
        checks = bound_checks(relation, session, called)
        generated = bound_generations(relation, session, called)
        for column in relation.live:
            called |= demanded_calls(session.catalog, column.domain)
        session.ask_calls(called)
        return cls(
            relation=relation,
            attnums=statement.attnums,
            options=options,
            settings=session.codec_settings,
            defaults=statement.defaults,
            where=statement.where,
            checks=checks,
            generated=generated,
            demands=bound_demands(relation, session),
            shown=Shown.of(relation, session).given(statement.attnums),
            reads_domains=any(
                has_domains(relation.column(attnum).type.oid, session.catalog.row_type)
                for attnum in statement.attnums
            ),
        )


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that ON_ERROR ignore left out: where it stood, and the field (None: NULL) that did not read, cut
    as errors show it.
    """

    line: int
    column: str
    text: str | None
    file: str = ""

    def message(self) -> str:
        """Return the notice of LOG_VERBOSITY verbose."""
        what = "null input" if self.text is None else f'"{self.text}"'
        return (
            f"skipping row due to data type incompatibility at line {self.line} "
            f'for column "{self.column}": {what}'
        )

    def where(self, table: str) -> str:
        """Return the CONTEXT of an error about it."""
        found = copy_context(table, self.line, self.column, self.text)
        return found + (f'\nfile "{self.file}"' if self.file else "")


@dataclass(slots=True)
class Rejects:
    """The rows left out so far. ``keep``: how many of the first are remembered."""

    keep: int = 0
    count: int = 0
    first: list[Reject] = field(default_factory=list)

    def add(self, reject: Reject) -> None:
        """Count a row."""
        self.count += 1
        if len(self.first) < self.keep:
            self.first.append(reject)


def _shown(field: Any) -> Any:
    """Return a field as errors show it: of a long one its beginning."""
    if isinstance(field, Digits):
        return field.beginning
    return field[: MAX_CONTEXT_BYTES + 1] if isinstance(field, str) else field


def too_many(limit: int, where: str | None) -> DataError:
    """Return PostgreSQL's error for more rows left out than REJECT_LIMIT allows."""
    return DataError(
        "22P02",
        f"skipped more than REJECT_LIMIT ({limit}) rows due to data type incompatibility",
        where=where,
    )


class RowWatch(Protocol):
    """Looks out for rows of the table; ``lines``: where they stood."""

    lines: list[int]

    def in_batch(self, batch: Any) -> bool:
        """Return whether such a row is in a batch."""

    def has(self, row: Row) -> bool:
        """Return whether a row is one."""


class RowLoader:
    """Turns decoded fields into table rows of one table."""

    def __init__(
        self, spec: LoadSpec, env: Env, progress: CopyProgress, *, file: str = "", keep: int = 0
    ) -> None:
        """Compile what the rows of one COPY need; ``progress`` is told of them.

        ``file``: named by errors, where there are several. ``keep``: see ``Rejects``.
        """
        self.spec = spec
        self._progress = progress
        self._file = file
        self.relation = relation = spec.relation
        self.shape = TableShape(
            relation,
            spec.settings,
            spec.checks,
            spec.generated,
            [found for found in spec.demands if found[0] not in spec.attnums],
        )
        self.shape.shown = spec.shown
        self.env = env
        self.by_attnum = {c.attnum: c for c in relation.columns}
        self.targets = [self.by_attnum[attnum] for attnum in spec.attnums]
        self.options = spec.options
        self.binary = spec.options.format == "binary"
        self.settings = spec.settings
        self.decoders = [self._decoder(c.type.oid) for c in self.targets]
        self.coercions = [typmod_function(c.type.oid, c.type.typmod) for c in self.targets]
        demands = dict(spec.demands)
        self.demands = [demands.get(c.attnum) for c in self.targets]
        """What the domains of columns that are read demand, so that errors name the field."""
        self.defaults = [(attnum - 1, compile_expr(expr)) for attnum, expr in spec.defaults]
        self.where = None
        if spec.where is not None:
            self.where = compile_predicate([spec.where], table_layout(relation))
        self.by_row = self.where is not None or self.shape.by_row or bool(spec.demands) or spec.reads_domains
        """Whether there are expressions over the columns of a row, or over its values: WHERE, generated
        columns, CHECK."""
        self._ignores = spec.options.on_error == "ignore"
        self.finishes = True
        """Set to False, rows are returned without their generated columns, and unchecked."""
        self.texts: list[str | None] | None = None
        """Set to a list, it gets the text of each row that is returned, None in binary format."""
        self.rejects = Rejects(keep)
        self.lines: list[int] | None = None
        """Set to a list, it gets the line of each row that is returned."""
        self.watch: RowWatch | None = None
        """Told the line of each row that it looks out for."""

    def _decoder(self, oid: int) -> Callable[[Any], Any]:
        """Return what reads a field; names of objects are looked up, each once."""
        if self.binary:
            return binary_decoder(oid, self.settings)
        if oid in NAMED and self.env.session is not None:
            return functools.cache(functools.partial(named_input, self.env.session, oid))
        return text_decoder(oid, self.settings)

    def feed(self, decoder: CopyDecoder, data: bytes) -> list[Row]:
        """Return the rows that ``data`` completes.

        Raises:
            DataError: that of the first bad row: a row before one that cannot be split counts first.
        """
        before = decoder.save()
        decoded: CopyRows | None = None
        try:
            decoded = decoder.feed(data)
        except DataError:
            pass  # and with it goes what its frames hold: a line may be long
        if decoded is not None:
            return self.rows(decoded)
        # Line by line: what stands behind the end marker, say, is not looked at.
        decoder.restore(before)
        del before
        rows: list[Row] = []
        for piece in data.splitlines(keepends=True):
            rows += self.rows(self._decoded(decoder.feed, piece))
        return rows

    def finish(self, decoder: CopyDecoder) -> list[Row]:
        """Return the rows that the end of the data completes. Raises DataError as ``feed``."""
        return self.rows(self._decoded(decoder.finish))

    def _decoded(self, decode: Callable[..., CopyRows], *data: bytes) -> CopyRows:
        """Decode a line; of a row with too few fields, one that does not read is the error, as it comes first."""
        try:
            return decode(*data)
        except ShortRow as short:
            raise (None if self._ignores else self._bad_field(short.fields, short.line)) or short from None

    def rows(self, decoded: CopyRows) -> list[Row]:
        """Return table rows for decoded ones. Raises DataError for the first that is none, naming line and column."""
        if not decoded.rows:
            return []
        count = len(decoded.rows)
        try:
            rows, lines = self._by_column(decoded.rows, decoded.lines)
        except DataError:
            rows, lines = self._one_by_one(decoded)
        self._progress.rows(count, len(rows))
        if self.lines is not None:
            self.lines += lines
        if self.texts is not None:
            fields = dict(zip(decoded.lines, decoded.rows, strict=True))
            self.texts += [self._text(fields[line]) for line in lines]
        if (watch := self.watch) is not None:
            watch.lines += [line for row, line in zip(rows, lines, strict=True) if watch.has(row)]
        return rows

    def leave_out(self, rows: int) -> None:
        """Count rows that WHERE has left out of those that were read otherwise."""
        self._progress.excluded += rows

    def _by_column(
        self, decoded: Sequence[Sequence[Any]], lines: Sequence[int]
    ) -> tuple[list[Row], Sequence[int]]:
        count = len(decoded)
        columns: list[Sequence[Any]] = [(None,) * count] * self.shape.width
        fields = zip(*decoded, strict=True)
        for target, decode, coerce, demand, texts in zip(
            self.targets, self.decoders, self.coercions, self.demands, fields, strict=True
        ):
            values = [None if text is None else decode(text) for text in texts]
            if coerce is not None:
                values = [None if v is None else coerce(v) for v in values]
            if demand is not None:
                for value in values:
                    demand(value, self.env.session)
            columns[target.attnum - 1] = values
        for position, make in self.defaults:
            columns[position] = [make((), self.env) for _ in range(count)]
        rows: list[Row] = list(zip(*columns, strict=True)) if columns else [()] * count
        if self.where is not None:
            oid, env, where = self.relation.oid, self.env, self.where
            kept = [(row, line) for row, line in zip(rows, lines, strict=True) if where((*row, oid), env)]
            rows, lines = [row for row, _ in kept], [line for _, line in kept]
        return list(self.shape.made(rows, self.env)) if self.finishes else rows, lines

    def _one_by_one(self, decoded: CopyRows) -> tuple[list[Row], Sequence[int]]:
        rows: list[Row] = []
        lines: list[int] = []
        for fields, line in zip(decoded.rows, decoded.lines, strict=True):
            bad = self._bad_field(fields, line)
            if bad is not None:
                if not self._ignores:
                    raise bad
                self._check_limit(bad)
                continue
            try:
                made, places = self._by_column([fields], [line])
                rows += made
                lines += places
            except SqlError as error:
                where = copy_context(self.relation.name, line, None, self._text(fields))
                raise self._located(error, where) from None
        return rows, lines

    def _text(self, fields: Sequence[Any]) -> str | None:
        """Return a row as errors show it, None in binary format."""
        if self.binary:
            return None
        null = self.options.effective_null
        return self.options.effective_delimiter.join(
            null if field is None else str(_shown(field)) for field in fields
        )

    def _check_limit(self, bad: DataError) -> None:
        """Raise if more rows were left out than REJECT_LIMIT allows; ``bad``: the error of the latest."""
        limit = self.options.reject_limit
        if limit and self.rejects.count > limit:
            raise too_many(limit, bad.where)

    def _bad_field(self, fields: Sequence[Any], line: int) -> DataError | None:
        """Return the error of the first field that does not read, if any; count the row as left out."""
        for target, decode, coerce, demand, text in zip(
            self.targets, self.decoders, self.coercions, self.demands, fields, strict=False
        ):  # a row may have too few fields
            if text is None and demand is None:
                continue
            try:
                value = None if text is None else decode(text)
                if coerce is not None and value is not None:
                    value = coerce(value)
                if demand is not None:
                    demand(value, self.env.session)
            except DataError as error:
                shown = None if self.binary else _shown(text)
                cut = None if shown is None else limited(shown)
                self.rejects.add(Reject(line, target.name, cut, self._file))
                where = copy_context(self.relation.name, line, target.name, shown, binary=self.binary)
                return self._located(error, where)
        return None

    def _located(self, error: DataError, where: str) -> DataError:
        return with_context(error, where + (f'\nfile "{self._file}"' if self._file else ""))

    def locate(self, error: DataError) -> DataError:
        """Add the file to an error of a decoder."""
        return with_context(error, f'file "{self._file}"') if self._file else error

"""COPY's options, checked as PostgreSQL checks them, and the CONTEXT lines of its errors.

``copy_in`` reads the three formats from chunks of any size, ``copy_out`` writes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from pgwire.codecs.errors import DataError

Format: TypeAlias = Literal["text", "csv", "binary", "json", "parquet"]

BINARY_SIGNATURE: Final = b"PGCOPY\n\xff\r\n\x00"
MAX_CONTEXT_BYTES: Final = 100
_TEXT_DELIMITERS_REFUSED: Final = "\\.abcdefghijklmnopqrstuvwxyz0123456789"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOptions:
    r"""Options of one COPY; None means "not given".

    ``delimiter``, ``null``, ``quote`` and ``escape`` get their defaults from ``effective_*``. ``header`` may
    be ``"match"`` (COPY FROM: names must match). ``encoding`` is a canonical name; see ``text_encoding``. The
    ``force_*`` sets hold column *indexes*. ``on_error``, ``reject_limit`` (0: none) and ``log_verbosity`` are
    those of PostgreSQL 17 and 18.
    """

    format: Format = "text"
    delimiter: str | None = None
    null: str | None = None
    header: bool | Literal["match"] = False
    quote: str | None = None
    escape: str | None = None
    encoding: str | None = None
    force_quote: frozenset[int] = field(default=frozenset())
    force_not_null: frozenset[int] = field(default=frozenset())
    force_null: frozenset[int] = field(default=frozenset())
    on_error: Literal["stop", "ignore"] = "stop"
    reject_limit: int = 0
    log_verbosity: Literal["silent", "default", "verbose"] = "default"

    @property
    def effective_delimiter(self) -> str:
        """Tab in text format, comma in CSV."""
        return self.delimiter or ("," if self.format == "csv" else "\t")

    @property
    def effective_null(self) -> str:
        r"""``\N`` in text format, nothing in CSV."""
        if self.null is not None:
            return self.null
        return "" if self.format == "csv" else "\\N"

    @property
    def effective_quote(self) -> str:
        """A double quote."""
        return self.quote or '"'

    @property
    def effective_escape(self) -> str:
        """The quote character."""
        return self.escape or self.effective_quote

    def text_encoding(self, client: str) -> str:
        """Return what the file is in, given the client's encoding: that, unless said otherwise. Parquet is UTF8.

        In binary format the client's counts, whatever is said (copyto.c converts texts of the text formats alone).
        """
        if self.format == "parquet":
            return "UTF8"
        name = client if self.encoding is None or self.format == "binary" else self.encoding
        return "UTF8" if name == "SQL_ASCII" else name

    def check(self, direction: Literal["from", "to"]) -> None:
        """Refuse what PostgreSQL refuses: 42601, 0A000 or 22023 with its wording."""
        csv, binary = self.format == "csv", self.format not in ("text", "csv")
        mode = self.format.upper()
        if binary and self.delimiter is not None:
            raise DataError("42601", f"cannot specify DELIMITER in {mode} mode")
        if binary and self.null is not None:
            raise DataError("42601", f"cannot specify NULL in {mode} mode")
        if self.format == "parquet" and self.encoding is not None:
            raise DataError("42601", "cannot specify ENCODING in PARQUET mode")
        if self.format == "binary" and self.on_error != "stop":
            raise DataError("42601", "only ON_ERROR STOP is allowed in BINARY mode")
        if self.reject_limit and self.on_error == "stop":
            raise DataError("22023", "COPY REJECT_LIMIT requires ON_ERROR to be set to IGNORE")
        delimiter, null = self.effective_delimiter, self.effective_null
        if self.delimiter is not None and len(self.delimiter.encode("utf-8")) != 1:
            raise DataError("0A000", "COPY delimiter must be a single one-byte character")
        if delimiter in "\r\n":
            raise DataError("22023", "COPY delimiter cannot be newline or carriage return")
        if "\r" in null or "\n" in null:
            raise DataError("22023", "COPY null representation cannot use newline or carriage return")
        if not csv and delimiter in _TEXT_DELIMITERS_REFUSED:
            raise DataError("22023", f'COPY delimiter cannot be "{delimiter}"')
        if binary and self.header:
            raise DataError("0A000", f"cannot specify HEADER in {mode} mode")
        if self.header == "match" and direction == "to":
            raise DataError("0A000", 'cannot use "match" with HEADER in COPY TO')
        self._check_csv(direction, csv)
        if delimiter in null and not binary:
            raise DataError("0A000", "COPY delimiter must not appear in the NULL specification")
        if csv and self.effective_quote in null:
            raise DataError("0A000", "CSV quote character must not appear in the NULL specification")

    def _check_csv(self, direction: str, csv: bool) -> None:
        for what, value in (("quote", self.quote), ("escape", self.escape)):
            if not csv and value is not None:
                raise DataError("0A000", f"COPY {what} available only in CSV mode")
            if value is not None and len(value.encode("utf-8")) != 1:
                raise DataError("0A000", f"COPY {what} must be a single one-byte character")
            if what == "quote" and csv and self.effective_delimiter == self.effective_quote:
                raise DataError("22023", "COPY delimiter and quote must be different")
        for what, columns, only in (
            ("force quote", self.force_quote, "to"),
            ("force not null", self.force_not_null, "from"),
            ("force null", self.force_null, "from"),
        ):
            if columns and not csv:
                raise DataError("0A000", f"COPY {what} available only in CSV mode")
            if columns and direction != only:
                raise DataError("0A000", f"COPY {what} only available using COPY {only.upper()}")


def limited(text: str) -> str:
    """Cut a piece of data for an error message as PostgreSQL does: 100 bytes, then ``...``."""
    data = text[: MAX_CONTEXT_BYTES + 1].encode("utf-8")
    if len(data) <= MAX_CONTEXT_BYTES:
        return text
    return data[:MAX_CONTEXT_BYTES].decode("utf-8", "ignore") + "..."


def copy_context(
    table: str, line: int, column: str | None = None, value: str | None = None, *, binary: bool = False
) -> str:
    """Return the CONTEXT of an error in COPY FROM.

    ``column`` None: ``value`` is the whole line. ``value`` None with a column: a null input.
    """
    if column is None:
        return f"COPY {table}, line {line}" + ("" if value is None else f': "{limited(value)}"')
    if binary:
        return f"COPY {table}, line {line}, column {column}"
    if value is None:
        return f"COPY {table}, line {line}, column {column}: null input"
    return f'COPY {table}, line {line}, column {column}: "{limited(value)}"'


def with_context(error: DataError, context: str) -> DataError:
    """Add ``context`` to an error (after a CONTEXT it already has); returns the same error."""
    error.where = f"{error.where}\n{context}" if error.where else context
    return error

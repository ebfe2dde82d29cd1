"""COPY FROM: chunks of bytes of any size -> rows of field texts (or bytes, in binary format).

    decoder = copy_decoder(options, "t", ("a", "b"))
    batch = decoder.feed(data)      rows [["1", None], ...], lines [1, ...]
    batch = decoder.finish()

Whole blocks of lines are split at C speed as long as they hold nothing special (no backslash in text format, no
quote in CSV); other lines take the careful path. Rows always have one field per column. Line numbers are
PostgreSQL's: the number of lines read when the row was complete.

After an error a decoder is dead, unless it is restored to what ``save`` returned.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.copy.binary import BinaryDecoder
from pgwire.codecs.copy.csv import CsvDecoder
from pgwire.codecs.copy.lines import CopyDecoder
from pgwire.codecs.copy.text import TextDecoder


def copy_decoder(options: CopyOptions, table: str, columns: Sequence[str]) -> CopyDecoder:
    """Return the decoder for ``options`` (already checked); names serve HEADER MATCH and errors."""
    if options.format == "binary":
        return BinaryDecoder(table, columns)
    if options.format == "csv":
        return CsvDecoder(options, table, columns)
    return TextDecoder(options, table, columns)

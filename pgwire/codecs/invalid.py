"""What a text is told that a type cannot read. It stands whole in the message, as in PostgreSQL, so that is
made in pieces where the text is long.
"""

from __future__ import annotations

from pgwire.codecs.errors import DataError
from pgwire.long.values import joined


def quoting(before: str, text: str, after: str = "") -> str:
    """Return a message with ``text`` in quotation marks."""
    return joined((f'{before}"', text, f'"{after}'))


def invalid_syntax(type_name: str, text: str, sqlstate: str = "22P02") -> DataError:
    """Return the error of a text that is no value of a type."""
    return DataError(sqlstate, quoting(f"invalid input syntax for type {type_name}: ", text))


def out_of_range(text: str, type_name: str) -> DataError:
    """Return the error 22003 of a text that is a value, but none that a type has."""
    return DataError("22003", quoting("value ", text, f" is out of range for type {type_name}"))

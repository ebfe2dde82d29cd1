"""DuckDB's errors as SQLSTATEs.

Errors that our SQL raises carry theirs (``HF!22012:division by zero``); DuckDB's own are told apart by class
and message. What is left over is a query that DuckDB refuses: 0A000. Where DuckDB fails, or has no type for a
value, another executor may answer (``EngineLimit``). Clients read our words alone: DuckDB's name its types
and functions, and its SQL; the log has them.
"""

from __future__ import annotations

import logging
import os
import re
from typing import Final

import duckdb

from engine.base.executor import EngineLimit
from engine.base.troubles import TROUBLES
from planner.base.errors import SqlError
from planner.lower.kit.dialect import ERROR_END, ERROR_MARK, error_of
from planner.lower.kit.numeric import OVERFLOW
from txn.base.errors import MissingFile
from txn.persist.trouble import number_in, said

log = logging.getLogger("holdfast.local")

_REFUSES: Final = (
    (duckdb.ParserException, "parse"),
    (duckdb.BinderException, "bind"),
    (duckdb.CatalogException, "bind"),
)
BEYOND: Final = (
    "0A000",
    "a numeric of more than 38 digits, NaN or an infinity in this executor is not supported",
)
_MARKED = re.compile(re.escape(ERROR_MARK) + r"([0-9A-Z]{5}):(.*)", re.DOTALL)
# Two operations whose error does not name the type: their operand, the smallest value, does.
_SMALLEST = re.compile(r"Overflow (?:on abs\(|in division of )(-\d+)\b")
_OF_SMALLEST = {str(-(2**15)): "smallint", str(-(2**31)): "integer", str(-(2**63)): "bigint"}
_FAR_DATE = re.compile(r"Type INT32 with value \d+-\d\d-\d\d\b.* INT64")  # a date is made a timestamp
_NO_FILE = re.compile(r'No files found that match the pattern "([^"]+)"')
_WIDE = re.compile(r"DECIMAL|INT128|HUGEINT")
_INTEGERS = {"INT8": "tinyint", "INT16": "smallint", "INT32": "integer", "INT64": "bigint"}
_MESSAGES: tuple[tuple[str, str, str], ...] = (
    ("Division by zero", "22012", "division by zero"),
    ("More than one row returned by a subquery", "21000", "more than one row returned by a subquery used as an expression"),
    ("LIMIT/OFFSET cannot be negative", "2201W", "LIMIT must not be negative"),
    ("Like pattern must not end with escape", "22025", "LIKE pattern must not end with escape character"),
    ("Date out of range", "22008", "date out of range"),
    ("not in timestamp range", "22008", "timestamp out of range"),
    ("Timestamp out of range", "22008", "timestamp out of range"),
    ("timestamp out of range", "22008", "timestamp out of range"),
    ("out of range for date", "22008", "date out of range"),
    ("PRECEDING expression cannot be negative", "22013", "frame starting offset must not be negative"),
    ("FOLLOWING expression cannot be negative", "22013", "frame ending offset must not be negative"),
    ("Invalid GROUPS PRECEDING value", "22013", "frame starting offset must not be negative"),
    ("Invalid GROUPS FOLLOWING value", "22013", "frame ending offset must not be negative"),
    ("Invalid RANGE ", "22013", "invalid preceding or following size in window function"),
)  # fmt: skip


def to_sql_error(error: Exception) -> SqlError:
    """Return the error a client gets for an exception of DuckDB."""
    text = str(error)
    marked = _MARKED.search(text)
    if marked is not None:
        sqlstate, message = marked.group(1), _message(marked.group(2))
        if (sqlstate, message) == OVERFLOW:
            return EngineLimit(*BEYOND)
        return error_of(sqlstate, message)
    if isinstance(error, duckdb.InterruptException):
        return SqlError("57014", "canceling statement due to user request")
    if isinstance(error, duckdb.OutOfMemoryException):
        log.info("DuckDB is out of memory: %s", text)
        return SqlError("53200", "out of memory")
    for needle, sqlstate, message in _MESSAGES:
        if needle in text:
            return SqlError(sqlstate, message)
    if isinstance(error, duckdb.OutOfRangeException | duckdb.ConversionException) or "out of range" in text:
        return _out_of_range(text)
    log.warning("DuckDB: %s: %s", type(error).__name__, text)
    if isinstance(error, duckdb.IOException):
        number = number_in(text)
        why = f": {os.strerror(number)}" if number is not None else ""
        return SqlError(TROUBLES[said(number).kind], f"the local executor cannot use its files{why}")
    if isinstance(error, duckdb.InternalException | duckdb.FatalException):
        return EngineLimit("XX000", "the local executor failed", lasting=True)
    does = next((does for kind, does in _REFUSES if isinstance(error, kind)), "run")
    return SqlError("0A000", f"the local executor cannot {does} this query")


def missing_part(error: Exception) -> MissingFile | None:
    """Return what other executors raise where DuckDB does not find the file of a part; None where it is
    something else.
    """
    found = _NO_FILE.search(str(error)) if isinstance(error, duckdb.IOException) else None
    return None if found is None else MissingFile(found.group(1))


def _message(text: str) -> str:
    """Cut what follows the message: the end mark with the witness, DuckDB's pointer into the SQL."""
    return text.split(ERROR_END)[0].split("\n\nLINE ")[0].strip()


def _out_of_range(text: str) -> SqlError:
    first = text.splitlines()[0]  # what follows is SQL
    if _FAR_DATE.search(first):
        return SqlError("22008", "date out of range for timestamp")
    smallest = _SMALLEST.search(first)
    if smallest is not None and smallest.group(1) in _OF_SMALLEST:
        return SqlError("22003", f"{_OF_SMALLEST[smallest.group(1)]} out of range")
    for name, sql_name in reversed(_INTEGERS.items()):
        if re.search(rf"\b{name}\b(?!.*\bINT(8|16|32|64)\b)", first):
            return SqlError("22003", f"{sql_name} out of range")
    if _WIDE.search(first):
        return EngineLimit(*BEYOND)
    return EngineLimit("22003", "value out of range")

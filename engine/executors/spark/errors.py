"""Spark's errors as SQLSTATEs.

An exception of the JVM reaches us as text, at times wrapped in the failure of the job it ended. Errors that our SQL
raises carry theirs (``HF!22012:division by zero``); Spark's own are told by their condition, ``[DIVIDE_BY_ZERO]``.
What is left over is a query that Spark refuses: 0A000. Clients read our words alone; the log has Spark's.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from engine.base.troubles import TROUBLES
from planner.base.errors import SqlError
from planner.lower.kit.dialect import ERROR_END, ERROR_MARK, error_of
from txn.persist.trouble import number_in, said

log = logging.getLogger("holdfast.spark")

# Only where it was raised: a plan printed with another error holds the marks of all its expressions.
_MARKED = re.compile(r"\[USER_RAISED_EXCEPTION\] " + re.escape(ERROR_MARK) + r"([0-9A-Z]{5}):(.*)")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)?)\]")
_WRAPPERS = frozenset(("TASK_WRITE_FAILED",))  # say where it happened: the condition is the next one
_CALL = re.compile(r"^\s*An error occurred while calling [^\n]*\n: ")
_TAIL = re.compile(r"\s*SQLSTATE: [0-9A-Z]{5}.*", re.DOTALL)
_CAST_TO = re.compile(
    r'\[CAST_OVERFLOW\] The value .*? of the type .*? cannot be cast to "?([A-Z]+)"? ', re.DOTALL
)
_INTEGERS = {"BIGINT": "bigint", "INT": "integer", "SMALLINT": "smallint"}
_OVERFLOWS = {
    r"\[ARITHMETIC_OVERFLOW\] Overflow in integral divide\.": "bigint",  # div is computed in longs
    r"\[BINARY_ARITHMETIC_OVERFLOW\] -?\d+S \S -?\d+S caused overflow\.": "smallint",
}
_REFUSES = {"[PARSE_": "parse", "[UNRESOLVED_": "bind"}
"""How errors begin that tell of SQL which Spark should not have been sent."""
Overflowed: TypeAlias = Callable[[str], str | None]
"""From the text of an overflow to PostgreSQL's name of the type, None where it cannot be told."""
_CONDITIONS: dict[str, tuple[str, str]] = {
    "DIVIDE_BY_ZERO": ("22012", "division by zero"),
    "REMAINDER_BY_ZERO": ("22012", "division by zero"),
    "INTERVAL_DIVIDED_BY_ZERO": ("22012", "division by zero"),
    "NUMERIC_VALUE_OUT_OF_RANGE": ("22003", "numeric field overflow"),
    "NUMERIC_OUT_OF_SUPPORTED_RANGE": ("22003", "numeric field overflow"),
    "SCALAR_SUBQUERY_TOO_MANY_ROWS": ("21000", "more than one row returned by a subquery used as an expression"),
    "DATETIME_OVERFLOW": ("22008", "timestamp out of range"),
    "INTERVAL_ARITHMETIC_OVERFLOW": ("22008", "interval out of range"),
    "DATETIME_FIELD_OUT_OF_BOUNDS": ("22008", "date/time field value out of range"),
}  # fmt: skip
_CANCELLED = ("cancelled part of cancelled job tags", "cancelled job tag", "SparkJobCancelled", "was cancelled",
              "JOB_CANCELLED", "Job cancelled", "OPERATION_CANCELED")  # fmt: skip


def _unknown(text: str) -> None:
    return None


def text_of(error: BaseException) -> str:
    """Return an exception's own text, its causes' after it, without asking the JVM."""
    parts: list[str] = []
    current: Any = error
    while current is not None and len(parts) < 8:
        parts.append(str(getattr(current, "_desc", "") or _java_message(current) or _plain(current)))
        stack = getattr(current, "_stackTrace", None)
        if stack:
            parts.append(str(stack))
        current = getattr(current, "_cause", None)
    return "\n".join(parts)


def _java_message(error: Any) -> str:
    """Return the whole text of an exception that py4j did not translate; it was sent with the failure."""
    java = getattr(error, "java_exception", None)
    if java is None:
        return ""
    try:
        return str(error)
    except Exception as unreadable:
        return f"{getattr(error, 'errmsg', '')} ({type(unreadable).__name__})"


def _plain(error: Any) -> str:
    # Spark's own classes print themselves by asking the JVM.
    return type(error).__name__ if hasattr(error, "_desc") else str(error)


def lost(error: BaseException) -> bool:
    """Return whether the exception means that the JVM went away."""
    from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

    if isinstance(error, Py4JJavaError):
        return False
    return isinstance(error, Py4JNetworkError | Py4JError | ConnectionError | EOFError)


def to_sql_error(error: BaseException, overflowed: Overflowed = _unknown) -> SqlError:
    """Return the error a client gets for an exception of Spark; see ``from_text``."""
    if isinstance(error, SqlError):
        return error
    return from_text(text_of(error), overflowed)


def from_text(text: str, overflowed: Overflowed = _unknown) -> SqlError:
    """Return the error a client gets for the text of an exception.

    ``overflowed``: asked for the integer type, where an operation's result is out of its range and Spark does
    not name it.
    """
    marked = _MARKED.search(text)
    if marked is not None:
        return error_of(marked.group(1), _TAIL.sub("", marked.group(2).split(ERROR_END)[0]))
    # The first one is the error's own; what follows may be text of the query.
    condition = next((each for each in _CONDITION.finditer(text) if each.group(1) not in _WRAPPERS), None)
    known = None if condition is None else _known(condition.group(1), text[condition.start() :], overflowed)
    if known is not None:
        return known
    if any(sign in text for sign in _CANCELLED):
        return SqlError("57014", "canceling statement due to user request")
    text = _CALL.sub("", text).strip()
    first = text.splitlines()[0] if text else "no message"
    if "OutOfMemoryError" in text or "UNABLE_TO_ACQUIRE_MEMORY" in text or "SparkOutOfMemoryError" in text:
        log.info("Spark is out of memory: %s", text)
        return SqlError("53200", "out of memory")
    number = number_in(text)
    if number is not None and said(number).kind in ("files", "memory"):
        log.warning("Spark: %s", text)
        return SqlError(TROUBLES[said(number).kind], f"Spark cannot use its files: {os.strerror(number)}")
    if number is not None and said(number).kind == "space":
        return SqlError("53100", f"could not write a temporary file of Spark: {os.strerror(number)}")
    if "FileNotFoundException" in text or "FAILED_READ_FILE" in text:
        log.warning("Spark: %s", text)
        return SqlError("58030", "Spark cannot read its files")
    if "java.lang.ArithmeticException" in text or "overflow" in first:
        return SqlError("22003", "value out of range")
    log.warning("Spark: %s", text)
    if "Job aborted" in text or "INTERNAL_ERROR" in text:
        return SqlError("XX000", "Spark failed")
    does = next((does for begins, does in _REFUSES.items() if first.startswith(begins)), "run")
    return SqlError(
        "0A000", f"Spark cannot {does} this query" + ("" if condition is None else f": {condition.group(1)}")
    )


def _known(condition: str, text: str, overflowed: Overflowed) -> SqlError | None:
    base = condition.split(".")[0]
    if base in ("ARITHMETIC_OVERFLOW", "CAST_OVERFLOW", "BINARY_ARITHMETIC_OVERFLOW"):
        type_name = _named(text) or overflowed(text) or "value"
        return SqlError("22003", f"{type_name} out of range")
    if base in ("CAST_INVALID_INPUT", "CANNOT_PARSE_TIMESTAMP", "INVALID_BOOLEAN"):
        return SqlError("22P02", "invalid input syntax")
    found = _CONDITIONS.get(base)
    return None if found is None else SqlError(*found)


def _named(text: str) -> str | None:
    """Return the integer type that is out of range, where Spark's text itself tells it."""
    cast = _CAST_TO.match(text)
    if cast is not None:
        return _INTEGERS.get(cast.group(1))
    return next((name for sign, name in _OVERFLOWS.items() if re.match(sign, text)), None)

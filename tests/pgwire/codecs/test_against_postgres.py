"""Text input and output agree with PostgreSQL 15: the same texts, or the same SQLSTATE, message and detail."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import CodecSettings, binary_input, binary_output, text_input, text_output
from tests.pgwire.codecs.samples import SAMPLES, STYLED, TYPES
from tests.support.postgres import postgres  # noqa: F401


@pytest.fixture(scope="module")
def connection(postgres: str) -> Any:  # noqa: F811
    with psycopg.connect(postgres, autocommit=True) as conn:
        conn.execute("SET TimeZone = 'America/New_York'")
        yield conn


def _escaped(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''").replace("%", "%%") + "'"


def theirs(connection: Any, type_name: str, text: str) -> str:
    try:
        if TYPES[type_name][1] >= 0:
            # A typmod as a column has it: an INSERT checks lengths, a cast would cut.
            connection.execute(f'CREATE TEMP TABLE IF NOT EXISTS "{type_name}" (x {type_name})')
            cur = connection.execute(
                f'INSERT INTO "{type_name}" VALUES (E{_escaped(text)}) RETURNING x::text'
            )
        else:
            shown = "CASE x WHEN true THEN 't' ELSE 'f' END" if type_name == "bool" else "x::text"
            cur = connection.execute(f"SELECT {shown} FROM (SELECT E{_escaped(text)}::{type_name}) AS s(x)")
        return str(cur.fetchone()[0])
    except psycopg.Error as error:
        diag = error.diag
        return " | ".join(filter(None, (diag.sqlstate, diag.message_primary, diag.message_detail)))


def ours(oid: int, text: str, settings: CodecSettings, typmod: int = -1) -> str:
    try:
        return text_output(oid, text_input(oid, text, typmod, settings), settings)
    except DataError as error:
        return " | ".join(filter(None, (error.sqlstate, error.message, error.detail)))


@pytest.mark.parametrize("type_name", SAMPLES)
def test_text_reads_and_prints_as_in_postgresql(connection: Any, type_name: str) -> None:
    oid, typmod = TYPES[type_name]
    settings = CodecSettings(time_zone="America/New_York")
    differences = []
    for text in SAMPLES[type_name]:
        expected, got = theirs(connection, type_name, text), ours(oid, text, settings, typmod)
        if expected != got:
            differences.append((text, expected, got))
    assert not differences, "\n".join(f"{t!r}\n  theirs {e}\n  ours   {g}" for t, e, g in differences)


@pytest.mark.parametrize("order", ["MDY", "DMY", "YMD"])
@pytest.mark.parametrize("style", ["ISO", "SQL", "Postgres", "German"])
def test_date_styles(connection: Any, style: Any, order: Any) -> None:
    settings = CodecSettings(time_zone="America/New_York", date_style=style, date_order=order)
    connection.execute(f"SET DateStyle = '{style}, {order}'")
    try:
        differences = []
        for type_name in ("date", "timestamp", "timestamptz", "time", "timetz"):
            oid, typmod = TYPES[type_name]
            for text in SAMPLES[type_name]:
                expected, got = theirs(connection, type_name, text), ours(oid, text, settings, typmod)
                if expected != got:
                    differences.append((type_name, text, expected, got))
    finally:
        connection.execute("SET DateStyle = 'ISO, MDY'")
    assert not differences, "\n".join(map(str, differences))


@pytest.mark.parametrize("style", ["postgres", "postgres_verbose", "sql_standard", "iso_8601"])
def test_interval_styles(connection: Any, style: Any) -> None:
    settings = CodecSettings(interval_style=style)
    connection.execute(f"SET IntervalStyle = '{style}'")
    try:
        differences = []
        for text in STYLED:
            expected, got = theirs(connection, "interval", text), ours(1186, text, settings)
            if expected != got:
                differences.append((text, expected, got))
    finally:
        connection.execute("SET IntervalStyle = 'postgres'")
    assert not differences, "\n".join(map(str, differences))


@pytest.mark.parametrize("type_name", SAMPLES)
def test_binary_form_is_postgresql_s(connection: Any, type_name: str) -> None:
    """What the server sends in binary reads as what its text reads as, and is what we send."""
    oid, typmod = TYPES[type_name]
    if type_name in ("xid", "cid"):
        pytest.skip("no cast from text")
    settings = CodecSettings(time_zone="America/New_York")
    with connection.cursor(binary=True) as cur:
        for text in SAMPLES[type_name]:
            try:
                value = text_input(oid, text, typmod, settings)
                data = cur.execute(f"SELECT '{text.replace(chr(39), chr(39) * 2)}'::{type_name}")
                raw = data.pgresult.get_value(0, 0)
            except (DataError, psycopg.Error):
                continue
            if text in ("now", "today", "tomorrow", "yesterday") or "now" in text:
                continue
            assert binary_output(oid, value, settings) == raw, (text, value, raw)
            back = binary_input(oid, raw, settings)
            assert text_output(oid, back, settings) == text_output(oid, value, settings), text

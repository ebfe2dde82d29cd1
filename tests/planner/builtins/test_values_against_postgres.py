"""Date/time, formatting, json, array and bytea functions answer as PostgreSQL's, errors included.

Every eleventh case of a family is run; ``HOLDFAST_FULL=1`` (``make proofs``) runs all of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from pgwire.codecs.settings import CodecSettings
from tests.engine.index.compare import connect, ours, same, theirs
from tests.engine.index.tables import make
from tests.planner.builtins import value_queries as queries
from tests.support.postgres import postgres

__all__ = ["postgres"]

STEP = 1 if os.environ.get("HOLDFAST_FULL") else 11
FAMILIES: dict[str, Callable[[], list[str]]] = {
    "times": queries.time_queries,
    "formats": queries.format_queries,
    "json": queries.json_queries,
    "arrays": queries.array_queries,
    "bytea": queries.bytea_queries,
}


@pytest.mark.parametrize("family", FAMILIES)
def test_functions_answer_as_postgresql_does(postgres: str, family: str) -> None:
    database = make()
    database.session.codec_settings = CodecSettings(time_zone="America/New_York")
    database.session.output_settings = database.session.codec_settings
    connection = connect(postgres, database)
    connection.execute("SET timezone = 'America/New_York'")
    found = []
    cases = FAMILIES[family]()[::STEP]
    try:
        for sql in cases:
            want, got = theirs(connection, sql), ours(database, sql)
            if not same(sql, got, want):
                found.append(f"{sql}\n    PostgreSQL: {want}\n    Holdfast:   {got}")
    finally:
        connection.close()
    assert not found, f"{len(found)} of {len(cases)}:\n" + "\n".join(found[:80])

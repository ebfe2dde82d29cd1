"""The catalog queries of Metabase, Superset, Grafana, DBeaver, DataGrip, pgAdmin, Tableau and Npgsql, as on PostgreSQL 15.

``bi_queries.sql`` holds them, ``shop.sql`` what they look at; both sides run the same psql script and must print the same.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drivers.test_dump import SHOP, other_database, psql, run
from tests.support.postgres import postgres, url_of
from tests.support.server import ServerProcess

__all__ = ["postgres"]
pytestmark = pytest.mark.long
QUERIES = Path(__file__).with_name("bi_queries.sql")


@pytest.fixture
def both(postgres: str, server: ServerProcess) -> Iterator[list[str]]:
    urls = [url_of(postgres), server.url]
    for url in urls:
        psql(url, "CREATE DATABASE bi")
        psql(other_database(url, "bi"), SHOP.read_text())
    yield [other_database(url, "bi") for url in urls]
    for url in urls:
        psql(url, "DROP DATABASE bi")
        psql(url, "DROP ROLE clerk; DROP ROLE boss")


def test_dashboards_and_admin_tools_see_what_postgresql_shows(both: list[str]) -> None:
    expected, got = (
        run("psql", "-X", "-A", "-v", "ON_ERROR_STOP=1", "-d", url, "-f", str(QUERIES)).splitlines()
        for url in both
    )
    assert len(expected) > 300
    assert got == expected, "\n".join(
        difflib.unified_diff(expected, got, "PostgreSQL", "Holdfast", lineterm="", n=1)
    )

"""Cursors and plan templates beside PostgreSQL 15: the same statements, the same answers.

Templates: statements of one shape with other literals are run several times over, so that from the third on a template
answers, where it may; a template that changed a result would differ from PostgreSQL, which knows no templates.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import psycopg
import pytest

from sqllogictest.client import ServerError
from tests.support.fields import FieldsClient, connect
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]

SEED = 20240


class Peer:
    """Ours and PostgreSQL, asked the same."""

    def __init__(self, port: int, dsn: str) -> None:
        self.ours: FieldsClient = connect(port)
        self.theirs = psycopg.connect(dsn, autocommit=True)
        self.theirs.execute("SET datestyle = 'ISO, MDY'; SET timezone = 'UTC'")
        self.ours.run("SET timezone = 'UTC'")

    def both(self, sql: str) -> tuple[object, object]:
        return self._ours(sql), self._theirs(sql)

    def _ours(self, sql: str) -> object:
        try:
            got = self.ours.run(sql)
        except ServerError as error:
            return error.sqlstate
        return [list(row) for row in got.rows], got.tag

    def _theirs(self, sql: str) -> object:
        done = self.theirs.pgconn.exec_(sql.encode())
        if done.status == psycopg.pq.ExecStatus.FATAL_ERROR:
            state = done.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
            return (state or b"").decode()
        rows = [
            [None if (v := done.get_value(r, c)) is None else v.decode() for c in range(done.nfields)]
            for r in range(done.ntuples)
        ]
        return rows, (done.command_status or b"").decode()

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


@pytest.fixture
def peer(server: ServerProcess, postgres: str) -> Iterator[Peer]:
    made = Peer(server.port, postgres)
    yield made
    made.close()


MOVES = [
    "NEXT", "PRIOR", "FIRST", "LAST", "ABSOLUTE 3", "ABSOLUTE 0", "ABSOLUTE -2", "ABSOLUTE 99", "ABSOLUTE -99",
    "RELATIVE 2", "RELATIVE -1", "RELATIVE 0", "3", "-2", "0", "ALL", "FORWARD", "FORWARD 2", "FORWARD -1",
    "FORWARD 0", "FORWARD ALL", "BACKWARD", "BACKWARD 2", "BACKWARD -2", "BACKWARD 0", "BACKWARD ALL",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_every_fetch_and_move_is_postgresqls(peer: Peer, seed: int) -> None:
    random_ = random.Random(SEED + seed)
    size = random_.choice((0, 1, 5, 8))
    peer.both("BEGIN")
    peer.both(f"DECLARE c SCROLL CURSOR FOR SELECT g FROM generate_series(1, {size}) g ORDER BY g")
    path = []
    for _ in range(60):
        statement = f"{random_.choice(('FETCH', 'FETCH', 'MOVE'))} {random_.choice(MOVES)} FROM c"
        path.append(statement)
        ours, theirs = peer.both(statement)
        assert ours == theirs, (size, path)
    peer.both("ROLLBACK")


def test_a_cursor_without_scroll_goes_forward_only(peer: Peer) -> None:
    peer.both("BEGIN")
    peer.both("DECLARE c NO SCROLL CURSOR FOR VALUES (1), (2), (3)")
    for statement in ("FETCH 2 FROM c", "FETCH NEXT FROM c", "FETCH 0 FROM c", "FETCH NEXT FROM c",
                      "MOVE RELATIVE 0 FROM c", "FETCH PRIOR FROM c", "ROLLBACK"):  # fmt: skip
        ours, theirs = peer.both(statement)
        assert ours == theirs, statement


SHAPES = [
    "SELECT a, b FROM tpl ORDER BY {o}, a",
    "SELECT b, count(*) FROM tpl GROUP BY {g} ORDER BY 1",
    "SELECT a FROM tpl ORDER BY a LIMIT {n} OFFSET {n}",
    "SELECT a FROM tpl WHERE b LIKE '{p}' ORDER BY a",
    "SELECT a FROM tpl WHERE a = {n} OR b = '{w}' ORDER BY a",
    "SELECT interval '{n}' day, interval '{n}' hour, date '2020-01-{d}' + {n}",
    "SELECT a::numeric({q},2) FROM tpl WHERE a < {n} ORDER BY 1",
    "SELECT '{w}'::varchar({n}), substring('abcdef', {n}, 2)",
    "SELECT a, {n} AS k FROM tpl GROUP BY a, {o} ORDER BY a",
    "SELECT a + {n}, a - {n}, a - -{n}, -{n} FROM tpl ORDER BY 1",
    "SELECT a FROM tpl WHERE a IN ({n}, {d}, {n}) ORDER BY 1 DESC",
    "SELECT to_char(timestamp '2020-01-{d} 10:00', '{f}')",
    "SELECT {x}, {x} / 2, {x} % 2",
    "SELECT '{j}'::text, '{j}' = b FROM tpl ORDER BY a",
    "SELECT {n} FROM tpl UNION SELECT a FROM tpl ORDER BY {one}",
    "SELECT CASE WHEN a > {n} THEN '{w}' ELSE b END FROM tpl ORDER BY a",
    "SELECT extract({e} FROM timestamp '2020-02-03 04:05:06')",
    "SELECT a FROM tpl ORDER BY a FETCH FIRST {n} ROWS ONLY",
    "SELECT count(*) OVER (ORDER BY a ROWS {n} PRECEDING) FROM tpl ORDER BY a",
    "UPDATE tpl SET b = '{w}' WHERE a = {n} RETURNING a, b, {n}",
    "SELECT b, a FROM tpl WHERE d > '2020-01-{d}' AND d < date '2020-01-{d}' + {n} ORDER BY 2",
]


def test_a_template_never_changes_a_result(peer: Peer) -> None:
    for sql in (
        "DROP TABLE IF EXISTS tpl",
        "CREATE TABLE tpl (a int PRIMARY KEY, b text, d date)",
        "INSERT INTO tpl SELECT g, chr(96 + g), date '2020-01-01' + g FROM generate_series(1, 6) g",
    ):
        peer.both(sql)
    random_ = random.Random(SEED)
    for shape in SHAPES:
        for _ in range(7):
            sql = shape.format(
                o=random_.choice((1, 2)), g=random_.choice(("1", "b")), n=random_.randint(1, 5),
                d=f"0{random_.randint(1, 9)}", p=random_.choice(("a%", "_", "%c", "b", "\\_")),
                w=random_.choice(("a", "bb", "it''s", "")), q=random_.choice((3, 4, 8)),
                f=random_.choice(("YYYY-MM", "HH24:MI", "DD")), one=1, j=random_.choice(("a", "1", "null")),
                x=random_.choice(("7", "7.0", "7000000000", "-7", "1e1", "99999999999999999999")),
                e=random_.choice(("year", "month", "second")),
            )  # fmt: skip
            ours, theirs = peer.both(sql)
            assert ours == theirs, sql
    peer.both("DROP TABLE tpl")

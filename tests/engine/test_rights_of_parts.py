"""``SET a[1] = x`` and ``SET c.f = x`` ask for UPDATE alone: the rest of the column stays, which is no reading of it (PostgreSQL 15's answers).

So policies for SELECT do not count either, unless the statement names a column.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.fields import FieldsClient
from tests.support.roles import logged_in
from tests.support.server import ServerProcess

SETUP = (
    "CREATE TYPE pair AS (x int, y text)",
    "CREATE TABLE plain (i int PRIMARY KEY, c pair, a int[], g int GENERATED ALWAYS AS (a[2]) STORED, j jsonb)",
    "INSERT INTO plain (i, c, a, j) VALUES (1, ROW(1, 'z'), '{1,2}', '{}')",
    "CREATE TABLE parted (i int, a int[]) PARTITION BY RANGE (i)",
    "CREATE TABLE parted_1 (a int[], i int); ALTER TABLE parted ATTACH PARTITION parted_1 FOR VALUES FROM (0) TO (9)",
    "INSERT INTO parted VALUES (1, '{1}')",
    "CREATE VIEW seen AS SELECT i, a, c FROM plain",
    "GRANT INSERT (i), SELECT (i), UPDATE (c, a, j) ON plain TO ann; GRANT UPDATE (a) ON parted TO ann; GRANT UPDATE (a, c) ON seen TO ann",
    "CREATE TABLE guarded (i int PRIMARY KEY, a int[]); INSERT INTO guarded VALUES (1, '{1}'), (2, '{2}'), (3, '{3}')",
    "ALTER TABLE guarded ENABLE ROW LEVEL SECURITY; GRANT SELECT, UPDATE ON guarded TO ann",
    "CREATE POLICY reads ON guarded FOR SELECT USING (i = 1); CREATE POLICY writes ON guarded FOR UPDATE USING (i < 3) WITH CHECK (true)",
)

ALLOWED = (
    "UPDATE plain SET a[1] = 5", "UPDATE plain SET a[1] = 5, a[2] = 6, c.x = 7", "UPDATE plain SET a[1:2] = '{7,8}' WHERE i = 1 RETURNING i",
    "UPDATE plain SET (a[1], c.x) = (SELECT 5, 6)", "UPDATE plain SET j['k'] = '1', j['l'] = '2'", "WITH w AS (UPDATE plain SET a[1] = 9) SELECT 1",
    "INSERT INTO plain (i) VALUES (1) ON CONFLICT (i) DO UPDATE SET a[1] = excluded.i, c.y = 'q'",
    "MERGE INTO plain USING (VALUES (1)) v (z) ON i = z WHEN MATCHED THEN UPDATE SET c.x = z", "UPDATE parted SET a[1] = 5",
    "UPDATE seen SET a[1] = 5, c.x = 2",
)  # fmt: skip

DENIED = (
    "UPDATE plain SET a[1] = a[2]", "UPDATE plain SET a[a[1]] = 1", "UPDATE plain SET a[1] = 5, c.x = (c).x", "UPDATE plain SET a[1] = 5 WHERE a IS NULL",
    "UPDATE plain SET a[1] = 5 RETURNING a", "UPDATE plain SET a[1] = 5 RETURNING g", "UPDATE plain SET c.x = 5 RETURNING (c).x",
    "UPDATE plain SET (a[1], c.x) = (SELECT a[2], 6)", "UPDATE plain SET g = DEFAULT", "UPDATE parted SET a[1] = a[2]",
    "INSERT INTO plain (i) VALUES (1) ON CONFLICT (i) DO UPDATE SET c.x = (plain.c).x",
    "INSERT INTO plain (i) VALUES (1) ON CONFLICT (i) DO UPDATE SET a[1] = 2 RETURNING a",
    "MERGE INTO plain USING (VALUES (1)) v (z) ON i = z WHEN MATCHED THEN UPDATE SET c.x = 5, a[1] = a[2]",
    "UPDATE seen SET a[1] = a[2]", "UPDATE seen SET a[1] = 1 RETURNING a",
)  # fmt: skip


@pytest.fixture(scope="module")
def ann(server: ServerProcess) -> Iterator[FieldsClient]:
    after = "DROP TABLE plain, parted, guarded CASCADE; DROP TYPE pair"
    with logged_in(server, "ann", before=SETUP, after=(after,)) as client:
        yield client


def test_a_part_asks_for_update_alone(ann: FieldsClient) -> None:
    for sql in ALLOWED:
        ann.run("BEGIN")
        ann.run(sql)
        ann.run(f"PREPARE p AS {sql}")
        ann.run("EXECUTE p")
        ann.run("DEALLOCATE p")
        ann.run("ROLLBACK")


def test_what_is_named_beside_the_part_asks_for_select(ann: FieldsClient) -> None:
    states = {sql: ann.fails(sql)["sqlstate"] for sql in DENIED}
    assert states == dict.fromkeys(DENIED, "42501")


@pytest.mark.parametrize(
    ("sql", "changed"),
    [("a[1] = 9", 2), ("a[1] = 9 WHERE true", 2), ("a[1] = 9 WHERE i > 0", 1), ("a[1] = a[2]", 1), ("a[1] = 9 RETURNING i", 1)],
)  # fmt: skip
def test_policies_for_select_count_where_a_column_is_named(ann: FieldsClient, sql: str, changed: int) -> None:
    ann.run("BEGIN")
    assert ann.run(f"UPDATE guarded SET {sql}").tag == f"UPDATE {changed}"
    ann.run("ROLLBACK")

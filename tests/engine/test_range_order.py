"""Rows of a range of an index, where nobody asks for an order: they come as those of a scan do."""

from tests.support.server import ServerProcess


def test_a_range_gives_rows_in_the_order_of_the_table(server: ServerProcess) -> None:
    client = server.connect()
    client.run("SET executor = index")
    client.run("CREATE TABLE ro (a int, b int)")
    client.run("CREATE INDEX ON ro (a, b)")
    client.run("INSERT INTO ro VALUES (5, 1), (3, 1), (9, 1), (3, 0), (7, 2)")

    def rows(sql: str) -> list[tuple[str | None, ...]]:
        return [tuple(row) for row in client.run(sql).rows]

    assert rows("SELECT a, b FROM ro WHERE a > 3") == [("5", "1"), ("9", "1"), ("7", "2")]
    assert rows("SELECT a, b FROM ro WHERE a BETWEEN 3 AND 5") == [("5", "1"), ("3", "1"), ("3", "0")]
    assert rows("SELECT a, b FROM ro WHERE a = 3 AND b >= 0") == [("3", "0"), ("3", "1")]
    assert rows("SELECT a FROM ro WHERE a > 3 ORDER BY a") == [("5",), ("7",), ("9",)]
    assert rows("SELECT a FROM ro WHERE a > 3 ORDER BY a DESC LIMIT 2") == [("9",), ("7",)]
    assert rows("SELECT max(a), min(a) FROM ro WHERE a > 3") == [("9", "5")]
    client.run("SET enable_bitmapscan = off")
    assert rows("SELECT a, b FROM ro WHERE a > 3") == [("5", "1"), ("7", "2"), ("9", "1")]
    client.close()

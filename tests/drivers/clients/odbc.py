"""psqlODBC with pyodbc: values, parameters, arrays of parameters, catalog functions, errors, transactions."""

from __future__ import annotations

import datetime as dt
import decimal
import sys
import uuid
from pathlib import Path

from steps import ADDRESS, raised, run, same, step

try:
    import pyodbc
except ImportError:  # it needs unixODBC
    print("SKIP no unixODBC: install libodbc2")
    sys.exit(0)

DRIVER = "/usr/lib/x86_64-linux-gnu/odbc/psqlodbcw.so"
if not Path(DRIVER).exists():
    print("SKIP no psqlODBC: install odbc-postgresql")
    sys.exit(0)
LINE = f"DRIVER={DRIVER};SERVER={ADDRESS.host};PORT={ADDRESS.port};UID={ADDRESS.user};DATABASE={ADDRESS.database}"


def connect(more: str = "", autocommit: bool = True) -> pyodbc.Connection:
    return pyodbc.connect(f"{LINE};{more}", autocommit=autocommit)


@step("values and parameters")
def values() -> None:
    sent = [
        5,
        2**40,
        1.25,
        decimal.Decimal("3.14"),
        "snow ☃",
        b"\x00\xff",
        dt.date(2000, 1, 1),
        dt.datetime(2001, 2, 3, 4, 5, 6),
    ]
    casts = ["int", "bigint", "float8", "numeric(5,2)", "text", "bytea", "date", "timestamp"]
    for more in ("", "UseServerSidePrepare=1", "UseServerSidePrepare=0"):
        with connect(more) as connection:
            row = connection.execute(
                "SELECT " + ", ".join(f"CAST(? AS {c})" for c in casts), *sent
            ).fetchone()
            same(list(row), sent)
            same(
                connection.execute(
                    "SELECT CAST(? AS uuid), CAST(? AS text)", uuid.UUID(int=7), None
                ).fetchone()[1],
                None,
            )


@step("tables: executemany, fast_executemany, cursors")
def tables() -> None:
    with connect(autocommit=False) as connection:
        cursor = connection.cursor()
        cursor.execute("DROP TABLE IF EXISTS odbc_made")
        cursor.execute(
            "CREATE TABLE odbc_made (id int PRIMARY KEY, name varchar(30) NOT NULL, price numeric(8,2), at timestamp)"
        )
        rows = [(i, f"name {i}", decimal.Decimal(i) / 4, dt.datetime(2024, 1, 1)) for i in range(200)]
        cursor.executemany("INSERT INTO odbc_made VALUES (?, ?, ?, ?)", rows[:50])
        cursor.fast_executemany = True
        cursor.executemany("INSERT INTO odbc_made VALUES (?, ?, ?, ?)", rows[50:])
        connection.commit()
        same([tuple(r) for r in cursor.execute("SELECT * FROM odbc_made ORDER BY id").fetchall()], rows)
        same(
            [(d[0], d[1].__name__, d[4]) for d in cursor.description],
            [("id", "int", 10), ("name", "str", 30), ("price", "Decimal", 8), ("at", "datetime", 26)],
        )
        same(cursor.execute("UPDATE odbc_made SET name = name || ?", "!").rowcount, 200)
        connection.rollback()
        same(cursor.execute("SELECT name FROM odbc_made WHERE id = ?", 7).fetchval(), "name 7")
    with connect("UseDeclareFetch=1;Fetch=16") as connection:
        same(sum(1 for _ in connection.execute("SELECT * FROM odbc_made")), 200)


@step("catalog functions")
def catalog() -> None:
    with connect() as connection:
        cursor = connection.cursor()
        cursor.execute("DROP TABLE IF EXISTS odbc_child")
        cursor.execute("CREATE TABLE odbc_child (id int REFERENCES odbc_made, note text DEFAULT 'x')")
        same(
            [(r.table_name, r.table_type) for r in cursor.tables(table="odbc%")],
            [("odbc_child", "TABLE"), ("odbc_made", "TABLE")],
        )
        columns = [
            (r.column_name, r.type_name, r.column_size, r.nullable) for r in cursor.columns(table="odbc_made")
        ]
        same(
            columns,
            [
                ("id", "int4", 10, 0),
                ("name", "varchar", 30, 0),
                ("price", "numeric", 8, 1),
                ("at", "timestamp", 26, 1),
            ],
        )
        same(
            [(r.column_name, r.pk_name) for r in cursor.primaryKeys("odbc_made")], [("id", "odbc_made_pkey")]
        )
        same(
            [(r.pktable_name, r.fkcolumn_name) for r in cursor.foreignKeys(foreignTable="odbc_child")],
            [("odbc_made", "id")],
        )
        same(
            [
                (r.index_name, r.column_name)
                for r in cursor.statistics("odbc_made", unique=True)
                if r.index_name
            ],
            [("odbc_made_pkey", "id")],
        )
        same("varchar" in {r.type_name for r in cursor.getTypeInfo(pyodbc.SQL_VARCHAR)}, True)
        same(connection.getinfo(pyodbc.SQL_DBMS_NAME), "PostgreSQL")


@step("errors")
def errors() -> None:
    with connect() as connection:
        same(
            raised(
                pyodbc.IntegrityError, lambda: connection.execute("INSERT INTO odbc_made VALUES (1, 'again')")
            ).args[0],
            "23505",
        )
        same(
            raised(pyodbc.ProgrammingError, lambda: connection.execute("SELECT * FROM nowhere")).args[0],
            "42P01",
        )
        same(connection.execute("SELECT {fn UCASE('x')}, {d '2020-01-02'}").fetchone()[0], "X")


@step("drop")
def drop() -> None:
    with connect() as connection:
        connection.execute("DROP TABLE odbc_child, odbc_made")


if __name__ == "__main__":
    run()

"""psycopg2 and pg8000: values both ways, cursors, COPY, transactions, two of their own idioms each."""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import io
import pathlib
import tempfile
import uuid

import pg8000.dbapi
import pg8000.native
import psycopg2
import psycopg2.errors
import psycopg2.extras
from psycopg2 import sql
from steps import ADDRESS, raised, run, same, step

VALUES = {
    "bool": True, "int": 5, "bigint": 2**40, "float8": 1.25, "numeric": decimal.Decimal("3.1400"), "text": "snow ☃",
    "bytea": b"\x00\xff", "date": dt.date(2000, 1, 1), "time": dt.time(1, 2, 3, 4),
    "timestamp": dt.datetime(2001, 2, 3, 4, 5, 6), "timestamptz": dt.datetime(2001, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
    "interval": dt.timedelta(days=1, seconds=2), "uuid": uuid.UUID(int=7), "int[]": [1, 2, 3], "varchar": None,
}  # fmt: skip


def two() -> psycopg2.extensions.connection:
    return psycopg2.connect(host=ADDRESS.host, port=ADDRESS.port, user=ADDRESS.user, dbname=ADDRESS.database)


@step("psycopg2: values")
def psycopg2_values() -> None:
    psycopg2.extras.register_uuid()
    with two() as connection, connection.cursor() as cursor:
        for value in VALUES.values():
            cursor.execute("SELECT %s", [value])
            got = cursor.fetchone()[0]
            same(bytes(got) if isinstance(value, bytes) else got, value)
        cursor.execute("SELECT %s::jsonb", [psycopg2.extras.Json({"a": [1, None]})])
        same(cursor.fetchone(), ({"a": [1, None]},))
        cursor.execute("SELECT 1::int AS i, 'x'::varchar(9) AS v, 1.50::numeric(8,3) AS n")
        same([(c.name, c.type_code, c.internal_size, c.precision, c.scale) for c in cursor.description],
             [("i", 23, 4, None, None), ("v", 1043, 9, None, None), ("n", 1700, 8, 8, 3)])  # fmt: skip


@step("psycopg2: execute_values, named and dict cursors")
def psycopg2_extras() -> None:
    with contextlib.closing(two()) as connection, connection, connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE two (id serial PRIMARY KEY, n int, s text)")
        rows = psycopg2.extras.execute_values(
            cursor,
            "INSERT INTO two (n, s) VALUES %s RETURNING id",
            [(i, f"s{i}") for i in range(250)],
            fetch=True,
        )
        same(len(rows), 250)
        psycopg2.extras.execute_batch(
            cursor, "UPDATE two SET n = n + %s WHERE id = %s", [(1, i) for i in range(1, 51)]
        )
        with connection.cursor("server_side", scrollable=True) as named:
            named.itersize = 20
            named.execute("SELECT n FROM two ORDER BY id")
            same(named.fetchmany(3), [(1,), (2,), (3,)])
            named.scroll(-1)
            same(named.fetchone(), (3,))
            same(len(named.fetchall()), 247)
        with connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as named:
            named.execute(
                sql.SQL("SELECT {}, {} FROM two WHERE {} = 7").format(*map(sql.Identifier, ("id", "s", "id")))
            )
            same(dict(named.fetchone()), {"id": 7, "s": "s6"})


@step("psycopg2: COPY")
def psycopg2_copy() -> None:
    with contextlib.closing(two()) as connection, connection, connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE two (id int, s text)")
        cursor.copy_from(io.StringIO("1\ta\n2\t\\N\n"), "two")
        cursor.copy_expert("COPY two FROM STDIN (FORMAT csv, HEADER)", io.StringIO('id,s\n3,"x, y"\n'))
        out = io.StringIO()
        cursor.copy_to(out, "two", sep="|", null="-")
        same(out.getvalue(), "1|a\n2|-\n3|x, y\n")


@step("psycopg2: large objects")
def psycopg2_large_objects() -> None:
    with contextlib.closing(two()) as connection, tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "file")
        path.write_bytes(bytes(range(256)) * 100)
        made = connection.lobject(0, "wb", 0, str(path))
        same(
            (made.seek(0, 2), made.seek(-10, 1), made.tell(), made.read()),
            (25600, 25590, 25590, bytes(range(246, 256))),
        )
        made.truncate(7)
        same((made.write(b"behind"), made.seek(0), made.read(8)), (6, 0, b"\0\1\2\3\4\5\6\0"))
        made.export(str(path))
        same(path.read_bytes()[-6:], b"behind")
        connection.commit()
        again = connection.lobject(made.oid, "r")
        raised(psycopg2.Error, lambda: again.write("no"))
        connection.rollback()
        connection.lobject(made.oid, "n").unlink()
        connection.commit()
        raised(psycopg2.OperationalError, lambda: connection.lobject(made.oid))


@step("psycopg2: transactions, levels, notices, notifications, cancel")
def psycopg2_session() -> None:
    with contextlib.closing(two()) as connection:
        connection.set_session(isolation_level="SERIALIZABLE", readonly=True, deferrable=True)
        with connection.cursor() as cursor:
            cursor.execute("SHOW transaction_read_only")
            same(cursor.fetchone(), ("on",))
            raised(psycopg2.errors.ReadOnlySqlTransaction, lambda: cursor.execute("CREATE TABLE no (a int)"))
            connection.rollback()
        connection.set_session(readonly=False, autocommit=True)
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS nowhere; LISTEN chat; NOTIFY chat, 'hello'")
            connection.poll()
            same((connection.notices[-1].split("\n")[0], connection.notifies[0].payload),
                 ('NOTICE:  table "nowhere" does not exist, skipping', "hello"))  # fmt: skip
            cursor.callproc("substr", ["abcdef", 2, 3])
            same(cursor.fetchone(), ("bcd",))
            cursor.execute("SET statement_timeout = 200")
            raised(psycopg2.errors.QueryCanceled, lambda: cursor.execute("SELECT pg_sleep(60)"))
        connection.set_session(autocommit=False)
        same((connection.server_version // 10000, connection.encoding), (15, "UTF8"))
        connection.tpc_begin("gone")
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        # so says a PostgreSQL whose max_prepared_transactions is 0; Holdfast does not know the statement
        assert raised(psycopg2.Error, connection.tpc_prepare).pgcode in ("55000", "0A000")


def eight() -> pg8000.native.Connection:
    return pg8000.native.Connection(
        ADDRESS.user, host=ADDRESS.host, port=ADDRESS.port, database=ADDRESS.database
    )


@step("pg8000: values")
def pg8000_values() -> None:
    with eight() as connection:
        for kind, value in VALUES.items():
            same(connection.run(f"SELECT CAST(:v AS {kind})", v=value), [[value]])
        same(connection.run("SELECT CAST(:j AS jsonb)", j='{"a": [1, null]}'), [[{"a": [1, None]}]])


@step("pg8000: prepared statements, COPY, notifications")
def pg8000_session() -> None:
    with eight() as connection:
        connection.run("CREATE TEMPORARY TABLE eight (id int, s text)")
        insert = connection.prepare("INSERT INTO eight VALUES (:i, :s)")
        for i in range(3):
            insert.run(i=i, s=f"s{i}")
        connection.run("COPY eight FROM STDIN WITH (FORMAT CSV)", stream=io.StringIO("7,seven\n"))
        out = io.BytesIO()
        connection.run("COPY eight TO STDOUT WITH (FORMAT CSV)", stream=out)
        same(out.getvalue(), b"0,s0\n1,s1\n2,s2\n7,seven\n")
        connection.run("LISTEN eight")
        connection.run("NOTIFY eight, 'yes'")
        same(connection.notifications[0][1:], ("eight", "yes"))


@step("pg8000: dbapi")
def pg8000_dbapi() -> None:
    with contextlib.closing(
        pg8000.dbapi.connect(ADDRESS.user, host=ADDRESS.host, port=ADDRESS.port, database=ADDRESS.database)
    ) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TEMP TABLE eight (id int PRIMARY KEY, s text)")
        cursor.executemany("INSERT INTO eight VALUES (%s, %s)", [(i, str(i)) for i in range(20)])
        cursor.execute("SELECT id, s FROM eight WHERE id > %s ORDER BY id", [15])
        same(tuple(map(tuple, cursor.fetchall())), ((16, "16"), (17, "17"), (18, "18"), (19, "19")))
        connection.commit()
        error = raised(
            pg8000.dbapi.DatabaseError, lambda: cursor.execute("INSERT INTO eight VALUES (1, 'again')")
        )
        same((error.args[0]["C"], error.args[0]["n"]), ("23505", "eight_pkey"))
        connection.rollback()


if __name__ == "__main__":
    run()

"""pandas, polars, ADBC and ConnectorX: a frame written, read back whole, in pieces, by query, by binary COPY."""

from __future__ import annotations

import datetime as dt

import adbc_driver_postgresql.dbapi
import connectorx
import pandas
import polars
import pyarrow
import sqlalchemy
from steps import ADDRESS, run, same, step

URL = ADDRESS.with_scheme("postgresql")
ENGINE = sqlalchemy.create_engine(ADDRESS.with_scheme("postgresql+psycopg"))
ROWS = 5000
COLUMNS = {
    "i": list(range(ROWS)),
    "x": [n / 4 for n in range(ROWS)],
    "s": [None if n % 7 == 0 else f"name {n}" for n in range(ROWS)],
    "b": [n % 3 == 0 for n in range(ROWS)],
    "t": [dt.datetime(2024, 1, 1) + dt.timedelta(minutes=n) for n in range(ROWS)],
    "d": [dt.date(2024, 1, 1) + dt.timedelta(days=n % 365) for n in range(ROWS)],
}


@step("pandas: to_sql and read_sql")
def pandas_both() -> None:
    frame = pandas.DataFrame(COLUMNS)
    for method in (None, "multi"):
        frame.to_sql("frame_pandas", ENGINE, if_exists="replace", index=False, method=method, chunksize=500)
        back = pandas.read_sql("SELECT * FROM frame_pandas ORDER BY i", ENGINE, parse_dates=["t"])
        same((back["i"].sum(), back["x"].sum(), int(back["b"].sum()), back["s"].isna().sum()),
             (frame["i"].sum(), frame["x"].sum(), int(frame["b"].sum()), frame["s"].isna().sum()))  # fmt: skip
        same(list(back["t"]), list(frame["t"]))
    pieces = list(pandas.read_sql_table("frame_pandas", ENGINE, columns=["i", "d"], chunksize=999))
    same([len(p) for p in pieces], [999] * 5 + [5])
    same(list(pieces[0].columns), ["i", "d"])


@step("polars: write_database and read_database, by SQLAlchemy and by ADBC")
def polars_both() -> None:
    frame = polars.DataFrame(COLUMNS)
    for engine in ("sqlalchemy", "adbc"):
        address = URL if engine == "adbc" else ADDRESS.with_scheme("postgresql+psycopg")
        frame.write_database(f"frame_{engine}", address, engine=engine, if_table_exists="replace")
        frame.head(5).write_database(f"frame_{engine}", address, engine=engine, if_table_exists="append")
        back = polars.read_database(f"SELECT * FROM frame_{engine} ORDER BY i LIMIT 20", ENGINE)
        same(back["i"].to_list()[:6], [0, 0, 1, 1, 2, 2])
    query = "SELECT i, x, s, b, t, d FROM frame_adbc WHERE i > 4 ORDER BY i"
    for engine in ("adbc", "connectorx"):
        back = polars.read_database_uri(query, URL, engine=engine)
        same(
            back.with_columns(polars.col("t").cast(polars.Datetime("us"))).equals(frame.tail(ROWS - 5)), True
        )


@step("ADBC: ingest, parameters, catalog")
def adbc() -> None:
    with adbc_driver_postgresql.dbapi.connect(URL) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS adbc_made")
        table = pyarrow.table({"k": [1, 2, 3], "v": ["a", None, "c"], "f": [1.5, None, 2.5]})
        same(cursor.adbc_ingest("adbc_made", table, mode="create"), 3)
        cursor.adbc_ingest("adbc_made", table, mode="append")
        cursor.execute("SELECT k, v FROM adbc_made WHERE k > $1 ORDER BY k", parameters=(2,))
        same(cursor.fetchall(), [(3, "c"), (3, "c")])
        cursor.executemany("INSERT INTO adbc_made VALUES ($1, $2, $3)", [(9, "z", 0.5), (10, "y", None)])
        connection.commit()
        cursor.execute("SELECT * FROM adbc_made ORDER BY k")
        same(cursor.fetch_arrow_table().num_rows, 8)
        same(connection.adbc_get_table_schema("adbc_made").names, ["k", "v", "f"])
        objects = (
            connection.adbc_get_objects(depth="all", table_name_filter="adbc_made").read_all().to_pylist()
        )
        tables = [
            t["table_name"]
            for c in objects
            for s in c["catalog_db_schemas"] or []
            for t in s["db_schema_tables"] or []
        ]
        same(tables, ["adbc_made"])
        same("table" in connection.adbc_get_table_types(), True)
        cursor.execute(
            "SELECT 1::int2, 2::int8, 1.25::float4, 'x'::bytea, '1 day'::interval, now()::timestamptz, ARRAY[1,2], 3.5::numeric, true, '{}'::jsonb, gen_random_uuid()"
        )
        same(cursor.fetchone()[:4], (1, 2, 1.25, b"x"))
        connection.rollback()


@step("ConnectorX: partitions")
def connectorx_partitions() -> None:
    for protocol in ("binary", "csv", "cursor", "simple"):
        frame = connectorx.read_sql(
            f"{URL}?cxprotocol={protocol}", "SELECT i, x, s, b, t, d FROM frame_adbc", protocol=protocol,
            partition_on="i", partition_num=3, return_type="arrow",
        )  # fmt: skip
        same((frame.num_rows, sum(frame["i"].to_pylist())), (ROWS + 5, sum(COLUMNS["i"]) + 10))


@step("drop")
def drop() -> None:
    with ENGINE.begin() as connection:
        for name in ("frame_pandas", "frame_sqlalchemy", "frame_adbc", "adbc_made"):
            connection.exec_driver_sql(f"DROP TABLE IF EXISTS {name}")


if __name__ == "__main__":
    run()

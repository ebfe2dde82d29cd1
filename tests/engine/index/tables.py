"""The tables that the comparison queries run over."""

from __future__ import annotations

from tests.engine.index.harness import Database


def make() -> Database:
    """Return a database with all tables."""
    d = Database()
    d.table(
        "emp", "id int4 pk", "name text", "dept int4", "salary numeric(10,2)", "hired date", "score float8",
        "tag bpchar(4)",
        rows=[
            ("1", "ann", "1", "100", "2020-01-05", "1.5", "ab"),
            ("2", "bob", "1", "200.5", "2019-03-01", "NaN", "cd"),
            ("3", "cy", None, "50", "2021-07-09", "-0", "ab  "),
            ("4", "di", "2", None, None, None, None),
            ("5", "ed", "2", "100.00", "2020-01-05", "Infinity", "zz"),
            ("6", "flo", "3", "300", "2018-12-31", "2.5", "AB"),
            ("7", None, "1", "100", "2022-02-02", "0", "x"),
        ],
    )  # fmt: skip
    d.table(
        "dept", "id int4 pk", "title text", "boss int4",
        rows=[("1", "eng", "1"), ("2", "ops", "5"), ("3", "hr", None), ("4", "law", "99")],
    )  # fmt: skip
    cells = [(str(a), str(b), f"r{a}{b}") for a in range(5) for b in range(6)]
    d.table("m", "a int4", "b int4", "c text", primary=("a", "b"), rows=cells)
    d.table(
        "nums", "k int8", "i2 int2", "v numeric", "f float4", "t text", "ts timestamp", "iv interval", "arr int4[]",
        "bo bool", "u uuid",
        rows=[
            ("1", "1", "1.0", "1.5", "abc", "2020-01-01 10:00", "1 day", "{1,2,3}", "t",
             "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
            ("2", "-5", "1.00", "NaN", "Abc", "2020-01-02 11:30", "24:00:00", "{}", "f",
             "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12"),
            ("3", None, "NaN", "-0", "", "infinity", "-1 mon 3 days", "{NULL,1}", None, None),
            ("4", "7", "-2.50", None, "äöü", None, None, None, "t", None),
        ],
    )  # fmt: skip
    d.table(
        "pc", "oid oid", "relname name", "ns oid", virtual=True,
        rows=[("10", "one", "1"), ("11", "two", "2"), ("12", "three", "1")],
    )  # fmt: skip
    d.table("empty", "a int4", "b text")
    return d

"""How queries about the catalog are planned: patterns that are names, outer joins that are inner ones, joins by batches."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from engine.executors.index.access.exact_patterns import exact_text
from engine.executors.index.state import BATCH
from tests.support.engine import Session, open_database
from txn.persist.memory import MemoryDisk


@pytest.mark.parametrize(
    ("kind", "pattern", "text"),
    [
        ("regex", "^(orders)$", "orders"), ("regex", "^orders$", "orders"), ("regex", r"^(a\.b)$", "a.b"),
        ("regex", "^(or.ers)$", None), ("regex", "^(a|b)$", None), ("regex", "orders", None), ("regex", r"^(a\d)$", None),
        ("regex", "^(a)$b", None), ("regex", "^(a\nb)$", None), ("regex", "^()$", ""), ("regex", "^(orders.*)$", None),
        ("like", "orders", "orders"), ("like", r"my\_orders", "my_orders"), ("like", "my_orders", None),
        ("like", "a%", None), ("like", "a\\", None), ("like", r"a\\b", r"a\b"),
    ],
)  # fmt: skip
def test_patterns_that_one_text_matches(kind: Any, pattern: str, text: str | None) -> None:
    assert exact_text(kind, pattern) == text


def play(*statements: str) -> list[list[tuple[Any, ...]]]:
    async def run() -> list[list[tuple[Any, ...]]]:
        session = Session(await open_database(MemoryDisk()), 1)
        return [await session.run(statement) for statement in statements]

    return asyncio.run(run())


TABLES = (
    "CREATE TABLE a (x int PRIMARY KEY, y int)",
    "CREATE TABLE b (x int PRIMARY KEY, y int)",
    "CREATE TABLE c (x int, y int)",
    "INSERT INTO a VALUES (1, 1), (2, 2), (3, NULL), (4, 9)",
    "INSERT INTO b VALUES (1, 10), (2, NULL), (9, 90)",
    "INSERT INTO c VALUES (1, 10), (10, 1), (90, 9), (5, NULL)",
)
# each with what PostgreSQL 15 answers
JOINS = (
    ("a LEFT JOIN b ON b.x = a.y WHERE b.y = 10", "1 1 1 10"),
    ("a LEFT JOIN b ON b.x = a.y WHERE b.y IS NULL", "2 2 2 -|3 - - -"),
    ("a LEFT JOIN b ON b.x = a.y WHERE b.y IS NOT NULL", "1 1 1 10|4 9 9 90"),
    ("a LEFT JOIN b ON b.x = a.y WHERE NOT (b.y = 10)", "4 9 9 90"),
    ("a LEFT JOIN b ON b.x = a.y WHERE coalesce(b.y, 0) = 0", "2 2 2 -|3 - - -"),
    ("a LEFT JOIN b ON b.x = a.y WHERE b.y = 10 OR a.x = 3", "1 1 1 10|3 - - -"),
    ("a LEFT JOIN b ON b.x = a.y WHERE b.y = 10 OR b.x = 9", "1 1 1 10|4 9 9 90"),
    ("a LEFT JOIN b ON b.x = a.y WHERE b.y IN (10, 90)", "1 1 1 10|4 9 9 90"),
    ("a LEFT JOIN b ON b.x = a.y WHERE b.y <> ALL ('{}')", "1 1 1 10|2 2 2 -|3 - - -|4 9 9 90"),
    ("a RIGHT JOIN b ON b.x = a.y WHERE a.x > 0", "1 1 1 10|2 2 2 -|4 9 9 90"),
    ("a FULL JOIN b ON b.x = a.y AND b.y > 50 WHERE b.x < 9", "- - 1 10|- - 2 -"),
    ("a FULL JOIN b ON b.x = a.y AND b.y > 50 WHERE a.x > 3 AND b.x = 9", "4 9 9 90"),
    ("a FULL JOIN b ON b.x = a.y AND b.y > 50 WHERE a.x > 2", "3 - - -|4 9 9 90"),
    ("a LEFT JOIN (b LEFT JOIN c ON c.x = b.y) ON b.x = a.x AND c.y = 1", "1 1 1 10 10 1|2 2 - - - -|3 - - - - -|4 9 - - - -"),
    ("(a LEFT JOIN b ON b.x = a.y) JOIN c ON c.x = b.y", "1 1 1 10 10 1|4 9 9 90 90 9"),
    ("c, a LEFT JOIN b ON b.x = a.x WHERE a.x = c.x", "1 10 1 1 1 10"),
    ("c, b RIGHT JOIN a ON b.x = a.y WHERE a.x = c.x", "1 10 1 10 1 1"),
    ("a LEFT JOIN b ON b.x = a.y WHERE (a.x = 1 AND b.y = 10) OR (a.x = 3 AND b.y IS NULL)", "1 1 1 10|3 - - -"),
    (
        "a, b LEFT JOIN c ON c.x = b.y WHERE b.x = a.y AND ((a.x = 1 AND b.y > 1) OR (a.x = 4 AND c.y = 9))",
        "1 1 1 10 10 1|4 9 9 90 90 9",
    ),
    (
        "a, b LEFT JOIN c ON c.x = b.y WHERE b.x = a.y AND ((a.x = 1 AND b.y > 1) OR (a.x = 4 AND b.y < 1) OR false)",
        "1 1 1 10 10 1",
    ),
    (
        "a LEFT JOIN b ON b.x = a.y AND ((a.x = 1 AND b.y = 10) OR (a.x = 4 AND b.y = 1))",
        "1 1 1 10|2 2 - -|3 - - -|4 9 - -",
    ),
    ("a LEFT JOIN b ON b.x = a.y WHERE a.y NOT IN (2, 9)", "1 1 1 10"),
    ("a LEFT JOIN b ON b.x = a.y WHERE a.y NOT IN (2, NULL) OR b.y IN (90, NULL)", "4 9 9 90"),
)  # fmt: skip


def test_outer_joins_under_conditions() -> None:
    answers = play(*TABLES, *(f"SELECT * FROM {text}" for text, _ in JOINS))[len(TABLES) :]
    for (text, expected), rows in zip(JOINS, answers, strict=True):
        shown = sorted(" ".join("-" if v is None else v for v in row) for row in rows)
        assert shown == sorted(expected.split("|")), text


def plan_of(query: str) -> str:
    rows = play("CREATE TABLE app (id int PRIMARY KEY, a int UNIQUE)", f"EXPLAIN {query}")[1]
    return "\n".join(row[0] for row in rows)


def test_a_name_in_a_pattern_is_looked_up() -> None:
    plan = plan_of(
        "SELECT c.oid FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relname ~ '^(app)$' COLLATE pg_catalog.default AND n.nspname ~ '^(public)$'"
    )
    assert "Index Scan on pg_class c" in plan
    assert "Index Cond: (c.relname = 'app'" in plan
    assert "Seq Scan" not in plan


def test_an_outer_join_is_reached_by_key_from_what_is_joined_before() -> None:
    plan = plan_of(
        "SELECT 1 FROM pg_class c, pg_class c2, pg_index i LEFT JOIN pg_constraint con ON conindid = i.indexrelid "
        "AND conrelid = i.indrelid WHERE c.oid = 16384 AND c.oid = i.indrelid AND i.indexrelid = c2.oid"
    )
    assert "Index Cond: (i.indrelid = " in plan
    assert "Index Cond: (con.conrelid = " in plan
    assert "Seq Scan" not in plan


def test_the_column_that_means_the_fewest_rows_is_looked_up() -> None:
    plan = plan_of(
        "SELECT 1 FROM information_schema.columns c WHERE c.table_schema = 'public' AND c.table_name = 'app'"
    )
    assert "Index Cond: (table_name = 'app'" in plan
    plan = plan_of("SELECT 1 FROM pg_attribute a WHERE a.attnum = 1 AND a.attrelid = 16384")
    assert "Index Cond: (attrelid = " in plan


def test_joins_by_batches_give_what_pairs_give() -> None:
    by_key = (
        "SELECT c.relname, a.attname, t.typname FROM pg_class c {0} JOIN pg_attribute a ON a.attrelid = c.oid "
        "AND a.attnum > 0 AND a.attname <> c.relname {0} JOIN pg_type t ON t.oid = a.atttypid "
        "WHERE c.relname IN ('a', 'b', 'c', 'pg_class', 'a_pkey') ORDER BY 1, 2, 3"
    )
    by_pairs = by_key.replace("a.attrelid = c.oid", "a.attrelid + 0::oid::int8 = c.oid::int8").replace(
        "t.oid = a.atttypid", "t.oid::int8 = a.atttypid::int8"
    ).replace("a.attrelid + 0::oid::int8", "a.attrelid::int8")  # fmt: skip
    queries = [text.format(kind) for text in (by_key, by_pairs) for kind in ("INNER", "LEFT")]
    answers = play(*TABLES, *queries)[len(TABLES) :]
    assert answers[0] == answers[2]
    assert answers[1] == answers[3]
    assert len(answers[0]) > 30


CHAINS = (
    # several rows for one on the left, then one or none for each of these, then by an expression over a row that may be missing
    "pg_class c {0} JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 {0} JOIN pg_type t ON t.oid = a.atttypid "
    "{0} JOIN pg_collation l ON l.oid = a.attcollation {0} JOIN pg_type e ON e.oid = coalesce(t.typelem, t.oid)",
    # a sub-select on the left; system columns and the row as a whole on the right
    "(SELECT oid, relname, relnamespace FROM pg_class LIMIT 1000) c {0} JOIN pg_namespace n ON n.oid = c.relnamespace "
    "AND n.tableoid > 0 AND (n).nspname <> 'x' {0} JOIN pg_index i ON i.indrelid = c.oid {0} JOIN pg_class x ON x.oid = i.indexrelid",
    # a condition over both sides in the middle, one over what is joined behind it
    "pg_class c {0} JOIN pg_index i ON i.indrelid = c.oid {0} JOIN pg_class x ON x.oid = i.indexrelid AND x.relname || c.relname <> 'a_pkeya' "
    "{0} JOIN pg_am m ON m.oid = x.relam AND m.amname = 'btree' {0} JOIN pg_namespace n ON n.oid = x.relnamespace",
)  # fmt: skip


@pytest.mark.parametrize("text", CHAINS)
@pytest.mark.parametrize("kind", ["INNER", "LEFT"])
def test_several_joins_by_batches_give_what_pairs_give(text: str, kind: str) -> None:
    columns = {"l.": "l.collname, e.typname, a.attname", "i.": "i.indexrelid, x.relname, n.nspname"}
    chosen = next(names for prefix, names in columns.items() if f" {prefix}" in text)
    by_key = f"SELECT c.relname, {chosen} FROM {text.format(kind)} WHERE c.relname ~ '^([a-c]|pg_[a-c])'"
    by_pairs = re.sub(
        r"(\w+\.(?:oid|attrelid|indrelid)) = (coalesce\([^)]*\)|[\w.]+)", r"\1::int8 = \2::int8", by_key
    )
    answers = play(*TABLES, by_key, by_pairs, f"EXPLAIN {by_key}", f"EXPLAIN {by_pairs}")[len(TABLES) :]
    assert sorted(map(repr, answers[0])) == sorted(map(repr, answers[1]))
    assert answers[0]
    lookups = [sum("Index Scan" in row[0] for row in plan) for plan in answers[2:]]
    assert lookups[0] >= 3 > lookups[1]


def test_a_batch_with_many_rows_for_each_of_its_own() -> None:
    every = "SELECT count(*), count(DISTINCT (a.attrelid, a.attnum)), count(DISTINCT a.attrelid) FROM "
    by_key = "pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid"
    joined, alone = play(every + by_key, every + "pg_attribute a")
    assert joined == alone
    assert int(joined[0][0]) > 2 * BATCH


def test_what_is_behind_order_by_reads_rows_of_several_relations() -> None:
    text = (
        "SELECT n.nspname, c.relname, pg_table_size(c.oid) > 0, pg_size_pretty(pg_relation_size(c.oid) * 0), "
        "pg_get_userbyid(c.relowner), obj_description(c.oid, 'pg_class') {} FROM pg_class c "
        "LEFT JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_index i ON i.indexrelid = c.oid "
        "WHERE n.nspname = 'public' ORDER BY 1, 2 DESC"
    )
    own = ", (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = i.indexrelid AND a.attnum > 0) + (random() > 2)::int"
    done = play(*TABLES, "COMMENT ON TABLE a IS 'first'", text.format(""), text.format(own))[-2:]
    names = [row[1] for row in done[0]]
    assert names == ["c", "b_pkey", "b", "a_pkey", "a"]
    assert done[0][4] == ("public", "a", "t", "0 bytes", "postgres", "first")
    assert [row[2] for row in done[0]] == ["t", "f", "t", "f", "t"]
    assert {row[5] for row in done[0][:4]} == {None}
    assert [row[:6] for row in done[1]] == done[0]
    assert [row[6] for row in done[1]] == ["0", "1", "0", "1", "0"]


def test_functions_made_for_many_rows_reach_parts_that_are_cut_off() -> None:
    deep = "pg_get_userbyid(c.relowner)"
    for _ in range(60):
        deep = f"substr({deep} || '', 1)"
    wide = ", ".join(f"obj_description(c.oid, 'pg_class') || {n}" for n in range(300))
    done = play(
        "CREATE TABLE one (x int)",
        "COMMENT ON TABLE one IS 'text'",
        f"SELECT {deep}, {wide} FROM pg_class c WHERE c.relname = 'one' AND pg_get_userbyid(c.relowner) = 'postgres'",
    )[-1]
    assert done == [("postgres", *(f"text{n}" for n in range(300)))]


# each with what PostgreSQL 15 answers, and whether conditions reach the keys of all tables (None: there is one without)
PUSHED = (
    ("(SELECT x AS k, y FROM a) s WHERE s.k = 2", "2 2", True),
    ("(SELECT x AS k, y FROM a UNION ALL SELECT x, y FROM b) s WHERE s.k = 2", "2 -|2 2", True),
    ("(SELECT x AS k, y FROM a UNION SELECT x, y FROM b) s WHERE s.k = 2", "2 -|2 2", False),
    ("(SELECT x AS k, y FROM a ORDER BY x LIMIT 1) s WHERE s.k = 2", "", None),
    ("(SELECT x AS k, count(*) FROM a GROUP BY x) s WHERE s.k = 2", "2 1", False),
    ("(SELECT x AS k, row_number() OVER (ORDER BY x DESC) FROM a) s WHERE s.k = 2", "2 3", False),
    ("(SELECT DISTINCT ON (y > 0) x AS k, y FROM a ORDER BY y > 0, x) s WHERE s.k = 2", "", False),
    ("(SELECT x AS k, generate_series(1, 2) AS n FROM a) s WHERE s.n = 2 AND s.k = 4", "4 2", False),
    ("(SELECT (SELECT b.x FROM b WHERE b.x = a.x) AS k, y FROM a) s WHERE s.k = 2", "2 2", False),
    ("(SELECT x AS k, y FROM a) s WHERE s.k IN (SELECT b.x FROM b WHERE b.y = 10)", "1 1", None),
    ("(SELECT x AS k, y FROM a) s WHERE s.k IN (SELECT c.x FROM c WHERE c.y = s.y)", "", False),
    ("c LEFT JOIN (SELECT x AS k, y FROM a) s ON s.k = 1 AND s.y = c.y", "1 10 - -|10 1 1 1|5 - - -|90 9 - -", None),
    ("c CROSS JOIN LATERAL (SELECT x AS k, y FROM a WHERE a.y = c.y) s WHERE s.k = 1", "10 1 1 1", None),
)  # fmt: skip


def test_conditions_over_a_sub_select() -> None:
    queries = [f"SELECT * FROM {text}" for text, _, _ in PUSHED]
    answers = play(*TABLES, *queries, *(f"EXPLAIN {query}" for query in queries))[len(TABLES) :]
    plans = answers[len(queries) :]
    for (text, expected, by_key), rows, plan in zip(PUSHED, answers, plans, strict=False):
        shown = sorted(" ".join("-" if v is None else v for v in row) for row in rows)
        assert shown == sorted(expected.split("|") if expected else []), text
        keyed = any("every table is reached by key" in row[0] for row in plan)
        assert by_key is None or keyed == by_key, (text, plan)


def test_conditions_come_before_the_joins_that_they_say_nothing_of() -> None:
    plan = plan_of(
        "SELECT * FROM pg_namespace n, pg_class c LEFT JOIN pg_description d ON d.objoid = c.oid WHERE c.relnamespace = n.oid "
        "AND n.nspname = 'app' AND ((c.relkind = 'r' AND n.nspname !~ '^pg_') OR (c.relkind = 'v' AND n.nspname <> 'x'))"
    )
    parts = (
        "Nested Loop Left Join",
        "Nested Loop ",
        "Filter: (((c.relkind = 'r'",
        "pg_namespace n",
        "pg_class c",
        "pg_description d",
    )
    places = [plan.index(part) for part in parts]
    assert places == sorted(places)
    assert (
        "Filter: ((c.relkind = 'r'::\"char\") OR (c.relkind = 'v'::\"char\"))" in plan
    )  # which the OR says, too


def test_sizes_are_computed_late_only_where_some_rows_do_not_come_out() -> None:
    """They are volatile, but it makes no difference when they are looked at: one pass over the rows is enough."""
    whole = "SELECT oid, pg_table_size(oid), pg_relation_size(oid) FROM pg_class ORDER BY relname"
    plans = play(
        f"EXPLAIN {whole}",
        f"EXPLAIN {whole} LIMIT 3",
        "EXPLAIN SELECT oid, random() FROM pg_class ORDER BY relname",
    )
    early, cut, drawn = ("\n".join(str(line[0]) for line in plan) for plan in plans)
    assert "Result" not in early
    assert "Result" in cut
    assert "Result" in drawn

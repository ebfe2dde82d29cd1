"""DuckDB that asks Python for values in the middle of its queries."""

from __future__ import annotations

from tests.hostile.row import Row

ROWS = (
    Row(name="Python called for many rows", sql="SELECT count(to_char(a.id, '999') || b.id) FROM numbers a, numbers b WHERE a.id <= <n>", short=10,
        full=400, executor="local"),
    Row(name="Python called for a pattern", sql="SELECT count(*) FROM numbers WHERE (repeat('x', 21) || s) ~ '^(x+)+$y' AND id <= <n>", short=2, full=300,
        executor="local", answer="0"),
    Row(name="Python called for long numbers", sql="SELECT count((3.7 ^ (1000 + id))::text) FROM numbers WHERE id <= <n>", short=30, full=3000,
        executor="local", expect="done 0A000"),
    Row(name="Python called for text search", sql="SELECT count(to_tsvector('english', repeat(s || ' ', 50))) FROM numbers WHERE id <= <n>", short=30,
        full=3000, executor="local", expect="done 0A000"),
    Row(name="Python called for jsonb", sql="SELECT count(jsonb_pretty(to_jsonb(s))) FROM numbers a, generate_series(1, <n>) g", short=2, full=300,
        executor="local"),
    Row(name="Python called for one long value", sql=lambda n: f"SELECT length(regexp_replace('{'x ' * n}' || max(id), '(x|xx)+', 'y', 'g')) FROM numbers",
        short=6000, full=50_000, executor="local"),
    Row(name="Python called for dates", sql="SELECT count(age(now(), now() - id * interval '1 day')) FROM numbers a, generate_series(1, <n>) g", short=2,
        full=300, executor="local"),
    Row(name="Python called for crypt", sql="SELECT count(crypt(s, '$1$abcdefgh')) FROM numbers WHERE id <= <n>", short=30, full=2000,
        executor="local"),
    Row(name="Python called in an aggregate", sql="SELECT count(DISTINCT to_char(id, 'FM0000')) FROM numbers, generate_series(1, <n>)", short=2, full=300,
        executor="local"),
    Row(name="Python called for large values", sql="SELECT max(length(regexp_replace(repeat('xy', 500000), 'y', 'z' || id, 'g'))) FROM numbers WHERE id "
        "<= <n>", short=1, full=100, executor="local", expect="done 53200 54000 0A000"),
)  # fmt: skip

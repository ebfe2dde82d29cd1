"""Full-text search."""

from __future__ import annotations

from tests.hostile.row import Row

ROWS = (
    Row(name="to_tsvector of a long text", sql="SELECT length(to_tsvector('english', repeat('The quick brown foxes jump. ', <n>)))",
        short=500, full=35_000, also=("EXPLAIN", "PREPARE p AS")),
    Row(name="to_tsvector of many words",
        sql="SELECT length(to_tsvector('english', string_agg('w' || g, ' '))) FROM generate_series(1, <n>) g", short=3000, full=60_000,
        expect="done 54000", executor="index"),
    Row(name="ts_headline", sql="SELECT length(ts_headline('english', repeat('alpha beta gamma ', <n>), to_tsquery('gamma & alpha')))",
        short=800, full=4000, also=("EXPLAIN",)),
    Row(name="ts_headline with fragments",
        sql="SELECT length(ts_headline('english', repeat('alpha beta gamma ', <n>), to_tsquery('gamma & alpha'), 'MaxFragments=50'))",
        short=800, full=4000),
    Row(name="ts_rank_cd", sql="SELECT ts_rank_cd(to_tsvector('simple', repeat('a b c d ', <n>)), 'a & b & c & d'::tsquery) >= 0",
        short=200, full=4000, answer="t"),
    Row(name="ts_rank", sql="SELECT ts_rank(to_tsvector('simple', repeat('a b c d ', <n>)), 'a & b & c & d'::tsquery) >= 0",
        short=40, full=4000, answer="t"),
    Row(name="a phrase of many words",
        sql=lambda n: f"SELECT to_tsvector('simple', repeat('a b ', 60)) @@ '{' <-> '.join(['a', 'b'] * n)}'::tsquery", short=240,
        full=2000, expect="done 54001 54000"),
    Row(name="a query that nests",
        sql=lambda n: f"SELECT to_tsvector('simple', 'a b') @@ '{'!(' * n}a{')' * n}'::tsquery", short=3500, full=100_000,
        expect="done 54001"),
    Row(name="a query of many words", sql=lambda n: f"SELECT numnode('{'|'.join(f'w{i}' for i in range(n))}'::tsquery)", short=8000,
        full=100_000, expect="done 54001"),
    Row(name="plainto_tsquery", sql="SELECT numnode(plainto_tsquery('english', repeat('some words ', <n>)))", short=5200, full=200_000,
        expect="done 54000 54001"),
    Row(name="websearch_to_tsquery", sql="SELECT numnode(websearch_to_tsquery('english', repeat('\"some words\" or ', <n>)))",
        short=3200, full=200_000, expect="done 54000 54001"),
    Row(name="ts_rewrite", sql=lambda n: f"SELECT numnode(ts_rewrite('{'&'.join(f'w{i}' for i in range(n))}'::tsquery, 'w1&w2', 'x&y'))",
        short=3200, full=16_000, expect="done 54000 54001"),
    Row(name="ts_delete", sql="""SELECT length(ts_delete((SELECT string_agg('w' || g, ' ')::tsvector FROM generate_series(1, <n>) g),
        (SELECT array_agg('w' || g) FROM generate_series(1, <n>) g)))""", short=4000, full=200_000, executor="index"),
    Row(name="concatenated vectors", sql="SELECT length(a || a || a || a) FROM (SELECT string_agg('w' || g, ' ')::tsvector a "
        "FROM generate_series(1, <n>) g) s", short=6000, full=100_000, executor="index", expect="done 54000"),
    Row(name="ts_parse", sql="SELECT count(*) FROM ts_parse('default', repeat('http://a.b/c?d=e x@y.zz 1.5e-7 ', <n>))",
        short=880, full=50_000),
    Row(name="a text that is one host", sql="SELECT length(to_tsvector('simple', repeat('a.', <n>)))", short=10_000, full=500_000),
    Row(name="a text of hyphens", sql="SELECT length(to_tsvector('simple', repeat('a-', <n>)))", short=3000, full=500_000),
    Row(name="a text of tags", sql="SELECT length(to_tsvector('simple', repeat('<', <n>)))", short=10_000, full=500_000),
    Row(name="json_to_tsvector", sql="SELECT length(to_tsvector('simple', ('[' || repeat('\"some words\",', <n>) || '1]')::jsonb))",
        short=5200, full=50_000),
)  # fmt: skip

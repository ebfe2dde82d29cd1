"""Users' code: PL/pgSQL, SQL functions, and what tables run by themselves (CHECKs, defaults, triggers, policies, indexes)."""

from __future__ import annotations

from tests.hostile.row import RUNS, Row

FIB = """CREATE OR REPLACE FUNCTION pg_temp.fib(n int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN IF n < 2 THEN RETURN n; END IF; RETURN pg_temp.fib(n - 1) + pg_temp.fib(n - 2); END $$"""
FIB_SQL = """CREATE OR REPLACE FUNCTION pg_temp.fibs(n int) RETURNS int LANGUAGE sql AS
$$ SELECT CASE WHEN n < 2 THEN n ELSE pg_temp.fibs(n - 1) + pg_temp.fibs(n - 2) END $$"""
SLOW = """CREATE OR REPLACE FUNCTION slow(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE s bigint := 0; BEGIN FOR i IN 1..<n> LOOP s := s + i; END LOOP; RETURN n; END $$"""
LOOP = "FOR i IN 1..<n> LOOP x := x + i; END LOOP;"


def block(body: str, declare: str = "x bigint := 0;") -> str:
    """Return a DO statement."""
    return f"DO $$ DECLARE {declare} BEGIN {body} END $$"


ROWS = (
    Row(name="fib in PL/pgSQL", sql="SELECT pg_temp.fib(<n>)", setup=(FIB,), short=17, full=60, answer="1597"),
    Row(name="fib in SQL", sql="SELECT pg_temp.fibs(<n>)", setup=(FIB_SQL,), short=12, full=60, answer="144"),
    Row(name="recursion without an end", sql="SELECT pg_temp.deep(1)", setup=("CREATE OR REPLACE FUNCTION pg_temp.deep(n int) RETURNS int "
        "LANGUAGE plpgsql AS $$ BEGIN RETURN pg_temp.deep(n + 1); END $$",), short=1, full=1, expect="54001"),
    Row(name="recursion of a SQL function", sql="SELECT pg_temp.deeps(1)", setup=("CREATE OR REPLACE FUNCTION pg_temp.deeps(n int) RETURNS int "
        "LANGUAGE sql AS $$ SELECT pg_temp.deeps(n + 1) $$",), short=1, full=1, expect="54001"),
    Row(name="a loop that counts", sql=block(LOOP), short=32_000, full=10**9),
    Row(name="a loop without an end", sql=block("LOOP x := x + 1; END LOOP;"), expect=RUNS),
    Row(name="an empty loop", sql=block("LOOP END LOOP;"), expect=RUNS),
    Row(name="a WHILE loop", sql=block("WHILE x < <n> LOOP x := x + 1; END LOOP;"), short=32_000, full=10**9),
    Row(name="loops within loops", sql=block("FOR i IN 1..<n> LOOP FOR j IN 1..<n> LOOP x := x + 1; END LOOP; END LOOP;"), short=320,
        full=100_000),
    Row(name="a loop over a query", sql=block("FOR r IN SELECT id FROM numbers WHERE id <= <n> LOOP x := x + r.id; END LOOP;",
        "x bigint := 0; r record;"), short=1400, full=3000),
    Row(name="a loop over an array", sql=block("FOREACH i IN ARRAY array_fill(1, ARRAY[<n>]) LOOP x := x + i; END LOOP;",
        "x bigint := 0; i int;"), short=14_000, full=5_000_000, expect="done 53200"),
    Row(name="a loop of queries", sql=block("FOR i IN 1..<n> LOOP SELECT count(*) INTO x FROM numbers WHERE id = i; END LOOP;"), short=1200,
        full=1_000_000),
    Row(name="a loop of long expressions", sql=block("FOR i IN 1..<n> LOOP x := length(regexp_replace(repeat('ab', 300), 'b', 'c', 'g')); "
        "END LOOP;"), short=600, full=1_000_000),
    Row(name="a loop of exceptions", sql=block("FOR i IN 1..<n> LOOP BEGIN x := 1 / 0; EXCEPTION WHEN others THEN x := x + 1; END; END LOOP;"),
        short=1400, full=1_000_000),
    Row(name="a loop that catches the cancel", sql=block("LOOP BEGIN LOOP x := x + 1; END LOOP; EXCEPTION WHEN others THEN x := 0; END; END LOOP;"),
        expect=RUNS),
    Row(name="a loop of EXECUTE", sql=block("FOR i IN 1..<n> LOOP EXECUTE 'SELECT ' || i INTO x; END LOOP;"), short=120, full=1_000_000),
    Row(name="EXECUTE of a long list", sql=block("EXECUTE 'SELECT count(*) FROM numbers WHERE id IN (' || repeat('1,', <n>) || '1)' INTO x;"),
        short=60_000, full=300_000, expect="done 53200"),
    Row(name="EXECUTE of many statements", sql=block("EXECUTE repeat('SELECT 1;', <n>);"), short=3000, full=100_000, expect="done 53200"),
    Row(name="a SQL function of many statements", sql=lambda n: "CREATE OR REPLACE FUNCTION pg_temp.said() RETURNS int LANGUAGE sql AS $$"
        + " SELECT 1;" * n + "$$", short=3000, full=100_000, expect="done 53200"),
    Row(name="a loop of inserts", sql=block("FOR i IN 1..<n> LOOP INSERT INTO taken VALUES (i); END LOOP;"),
        setup=("CREATE TEMP TABLE taken (id int)",), short=1400, full=1_000_000, expect="done 53200"),
    Row(name="a loop of savepoints", sql=block("FOR i IN 1..<n> LOOP BEGIN INSERT INTO taken VALUES (i); EXCEPTION WHEN unique_violation THEN "
        "END; END LOOP;"), setup=("CREATE TEMP TABLE taken (id int)",), short=700, full=200_000, expect="done 53200"),
    Row(name="RETURN NEXT", sql="SELECT count(*) FROM pg_temp.many(<n>)", setup=("CREATE OR REPLACE FUNCTION pg_temp.many(n int) RETURNS SETOF "
        "int LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..n LOOP RETURN NEXT i; END LOOP; END $$",), short=10_000, full=10_000_000,
        expect="done 53200"),
    Row(name="RETURN NEXT of large values", sql="SELECT count(*) FROM pg_temp.large(<n>)", setup=("CREATE OR REPLACE FUNCTION pg_temp.large(n "
        "int) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..n LOOP RETURN NEXT repeat('x', 1000000); END LOOP; END $$",),
        short=880, full=20_000, expect="done 53200"),
    Row(name="RETURN QUERY", sql="SELECT count(*) FROM pg_temp.more(<n>)", setup=("CREATE OR REPLACE FUNCTION pg_temp.more(n int) RETURNS SETOF "
        "int LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT generate_series(1, n); END $$",), short=64_000, full=10_000_000,
        expect="done 53200"),
    Row(name="a SQL function of a set", sql="SELECT count(*) FROM pg_temp.sets(<n>)", setup=("CREATE OR REPLACE FUNCTION pg_temp.sets(n int) "
        "RETURNS SETOF int LANGUAGE sql VOLATILE AS $$ SELECT generate_series(1, n) $$",), short=93_000, full=10_000_000, expect="done 53200"),
    Row(name="a function for each row", sql="SELECT sum(pg_temp.plus(id)) FROM numbers WHERE id <= <n>", setup=("CREATE OR REPLACE FUNCTION "
        "pg_temp.plus(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN n + 1; END $$",), short=2800, full=3000),
    Row(name="a function for each row of DuckDB", sql="SELECT sum(pg_temp.plus(id)) FROM numbers WHERE id <= <n>", setup=("CREATE OR REPLACE "
        "FUNCTION pg_temp.plus(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN n + 1; END $$",), short=3000, full=3000,
        executor="local", expect="done 0A000"),
    Row(name="an immutable function folded", sql="SELECT pg_temp.folded(1)", setup=("CREATE OR REPLACE FUNCTION pg_temp.folded(n int) RETURNS "
        f"int LANGUAGE plpgsql IMMUTABLE AS $$ DECLARE x bigint := 0; BEGIN {LOOP} RETURN n; END $$",), short=28_000, full=10**9,
        also=("EXPLAIN", "PREPARE p AS")),
    Row(name="a condition by a function", sql="SELECT count(*) FROM numbers WHERE pg_temp.odd(id) AND id <= <n>", setup=("CREATE OR REPLACE "
        "FUNCTION pg_temp.odd(n int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RETURN n % 2 = 1; END $$",), short=1800, full=3000),
    Row(name="a procedure", sql="CALL pg_temp.work(<n>)", setup=("CREATE OR REPLACE PROCEDURE pg_temp.work(n int) LANGUAGE plpgsql AS $$ DECLARE "
        "x bigint := 0; BEGIN FOR i IN 1..n LOOP x := x + 1; END LOOP; END $$",), short=19_000, full=10**9),
    Row(name="a procedure that commits", sql="CALL commits(<n>)", setup=("CREATE OR REPLACE PROCEDURE commits(n int) LANGUAGE plpgsql AS $$ BEGIN "
        "FOR i IN 1..n LOOP COMMIT; END LOOP; END $$",), short=3300, full=1_000_000),
    Row(name="an aggregate of one's own", sql="SELECT steps(id) FROM numbers WHERE id <= <n>", setup=("DROP AGGREGATE IF EXISTS steps(int)",
        "CREATE OR REPLACE FUNCTION step(a int, b int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN a + b; END $$",
        "CREATE AGGREGATE steps(int) (SFUNC = step, STYPE = int, INITCOND = '0')"), short=1800, full=3000),
    Row(name="CHECK that takes long", sql="INSERT INTO checked SELECT g FROM generate_series(1, 100) g",
        setup=(SLOW, "CREATE TEMP TABLE checked (a int CHECK (slow(a) > 0))"), short=320, full=20_000),
    Row(name="CHECK that takes long for one row", sql="INSERT INTO checked VALUES (1)",
        setup=(SLOW, "CREATE TEMP TABLE checked (a int CHECK (slow(a) > 0))"), short=19_000, full=10**9),
    Row(name="CHECK with a pattern", sql="INSERT INTO checked SELECT repeat('x', 18) FROM generate_series(1, <n>)",
        setup=("CREATE TEMP TABLE checked (a text CHECK (a !~ '^(x+)+$y'))",), short=28, full=100),
    Row(name="a default that takes long", sql="INSERT INTO defaulted (a) SELECT g FROM generate_series(1, 100) g",
        setup=(SLOW, "CREATE TEMP TABLE defaulted (a int, b int DEFAULT slow(1))"), short=370, full=20_000),
    Row(name="a generated column that takes long", sql="INSERT INTO generated (a) SELECT g FROM generate_series(1, 60) g",
        setup=(SLOW, "CREATE TEMP TABLE generated (a int, b int GENERATED ALWAYS AS (slow(a)) STORED)"), short=560, full=20_000,
        expect="done 0A000"),
    Row(name="a generated column of patterns", sql="INSERT INTO generated (a) SELECT repeat('x ', 300) FROM generate_series(1, <n>)",
        setup=("CREATE TEMP TABLE generated (a text, b text GENERATED ALWAYS AS (regexp_replace(a, '(x|xx)+', 'y', 'g')) STORED)",), short=20,
        full=10_000),
    Row(name="an index expression that takes long", sql="INSERT INTO indexed SELECT g FROM generate_series(1, 60) g",
        setup=(SLOW, "CREATE TEMP TABLE indexed (a int)", "CREATE INDEX ON indexed (slow(a))"), short=470, full=20_000, expect="done 0A000"),
    Row(name="an index built over what takes long", sql="CREATE INDEX ON indexed (slow(a))",
        setup=(SLOW, "CREATE TEMP TABLE indexed (a int)", "INSERT INTO indexed SELECT g FROM generate_series(1, 60) g"), short=200,
        full=20_000, expect="done 0A000"),
    Row(name="an index condition that takes long", sql="INSERT INTO indexed SELECT g FROM generate_series(1, 60) g",
        setup=(SLOW, "CREATE TEMP TABLE indexed (a int)", "CREATE INDEX ON indexed (a) WHERE slow(a) > 0"), short=200, full=20_000,
        expect="done 0A000"),
    Row(name="a row trigger", sql="INSERT INTO triggered SELECT g FROM generate_series(1, <n>) g",
        setup=("CREATE TEMP TABLE triggered (a int)", "CREATE OR REPLACE FUNCTION pg_temp.fires() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "NEW.a := NEW.a + 1; RETURN NEW; END $$", "CREATE TRIGGER t BEFORE INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION pg_temp.fires()"),
        short=1000, full=500_000),
    Row(name="a row trigger that takes long", sql="INSERT INTO triggered VALUES (1)",
        setup=("CREATE TEMP TABLE triggered (a int)", "CREATE OR REPLACE FUNCTION pg_temp.fires() RETURNS trigger LANGUAGE plpgsql AS $$ "
        f"DECLARE x bigint := 0; BEGIN {LOOP} RETURN NEW; END $$",
        "CREATE TRIGGER t BEFORE INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION pg_temp.fires()"), short=28_000, full=10**9),
    Row(name="an AFTER trigger for each row", sql="INSERT INTO triggered SELECT g FROM generate_series(1, <n>) g",
        setup=("CREATE TEMP TABLE triggered (a int)", "CREATE OR REPLACE FUNCTION pg_temp.fires() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "PERFORM 1; RETURN NULL; END $$", "CREATE TRIGGER t AFTER INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION pg_temp.fires()"),
        short=950, full=500_000),
    Row(name="a deferred trigger", sql="COMMIT",
        setup=("CREATE TEMP TABLE triggered (a int)", "CREATE OR REPLACE FUNCTION pg_temp.fires() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "PERFORM 1; RETURN NULL; END $$", "CREATE CONSTRAINT TRIGGER t AFTER INSERT ON triggered INITIALLY DEFERRED FOR EACH ROW EXECUTE "
        "FUNCTION pg_temp.fires()", "BEGIN", "INSERT INTO triggered SELECT g FROM generate_series(1, <n>) g"), short=500, full=100_000),
    Row(name="triggers that fire one another", sql="INSERT INTO triggered VALUES (1)",
        setup=("CREATE TEMP TABLE triggered (a int)", "CREATE OR REPLACE FUNCTION pg_temp.fires() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "INSERT INTO triggered VALUES (NEW.a + 1); RETURN NEW; END $$",
        "CREATE TRIGGER t AFTER INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION pg_temp.fires()"), short=1, full=1, expect="54001"),
    Row(name="a policy that takes long", sql="SELECT count(*) FROM guarded",
        setup=(SLOW, "DROP TABLE IF EXISTS guarded", "CREATE TABLE guarded (a int)", "INSERT INTO guarded SELECT g FROM generate_series(1, 60) g",
        "ALTER TABLE guarded ENABLE ROW LEVEL SECURITY", "ALTER TABLE guarded FORCE ROW LEVEL SECURITY",
        "CREATE POLICY p ON guarded USING (slow(a) > 0)", "DROP ROLE IF EXISTS somebody", "CREATE ROLE somebody",
        "GRANT SELECT ON guarded TO somebody", "SET ROLE somebody"), short=200, full=20_000),
    Row(name="a domain's CHECK", sql="SELECT count(g::checked) FROM generate_series(1, 60) g",
        setup=(SLOW, "DROP DOMAIN IF EXISTS checked", "CREATE DOMAIN checked AS int CHECK (slow(VALUE) > 0)"), short=470, full=20_000),
    Row(name="a domain's CHECK by itself", sql="SELECT 1::checked", setup=(SLOW, "DROP DOMAIN IF EXISTS checked",
        "CREATE DOMAIN checked AS int CHECK (slow(VALUE) > 0)"), short=8000, full=10**9),
    Row(name="ALTER TABLE … USING what takes long", sql="ALTER TABLE altered ALTER a TYPE bigint USING slow(a)",
        setup=(SLOW, "CREATE TEMP TABLE altered (a int)", "INSERT INTO altered SELECT g FROM generate_series(1, 60) g"), short=200, full=20_000),
    Row(name="ADD CHECK over rows", sql="ALTER TABLE altered ADD CHECK (slow(a) > 0)",
        setup=(SLOW, "CREATE TEMP TABLE altered (a int)", "INSERT INTO altered SELECT g FROM generate_series(1, 60) g"), short=350, full=20_000),
    Row(name="foreign keys that cascade", sql="DELETE FROM parents WHERE id <= <n>",
        setup=("DROP TABLE IF EXISTS children, parents", "CREATE TABLE parents (id int PRIMARY KEY)",
        "CREATE TABLE children (id int PRIMARY KEY, p int REFERENCES parents ON DELETE CASCADE)",
        "INSERT INTO parents SELECT g FROM generate_series(1, <n>) g", "INSERT INTO children SELECT g, g FROM generate_series(1, <n>) g",
        "CREATE INDEX ON children (p)"), short=700, full=20_000),
    Row(name="foreign keys without an index", sql="DELETE FROM parents WHERE id <= <n>",
        setup=("DROP TABLE IF EXISTS children, parents", "CREATE TABLE parents (id int PRIMARY KEY)",
        "CREATE TABLE children (id int PRIMARY KEY, p int REFERENCES parents ON DELETE CASCADE)",
        "INSERT INTO parents SELECT g FROM generate_series(1, <n>) g", "INSERT INTO children SELECT g, g FROM generate_series(1, <n>) g"),
        short=350, full=5000),
    Row(name="exclusion constraints", sql="INSERT INTO excluded SELECT int4range(4 * g, 4 * g + 2) FROM generate_series(1, <n>) g",
        setup=("CREATE TEMP TABLE excluded (r int4range, EXCLUDE USING gist (r WITH &&))",), short=2400, full=50_000),
    Row(name="a large body", sql=lambda n: "DO $$ DECLARE x int := 0; BEGIN " + "x := x + 1; " * n + "END $$", short=300, full=200_000,
        expect="done 54000"),
    Row(name="a body of deep blocks", sql=lambda n: "DO $$ BEGIN " + "BEGIN " * n + "NULL; " + "END; " * n + "END $$", short=1700, full=100_000,
        expect="done 54001 42601"),
    Row(name="a body of deep IFs", sql=lambda n: "DO $$ BEGIN " + "IF true THEN " * n + "NULL; " + "END IF; " * n + "END $$", short=200,
        full=100_000, expect="done 54001 42601"),
    Row(name="a function of a thousand defaults", sql=lambda n: f"SELECT pg_temp.wide({','.join('1' * n)})", short=350, full=1000,
        setup=("CREATE OR REPLACE FUNCTION pg_temp.wide(VARIADIC a int[]) RETURNS int LANGUAGE sql AS $$ SELECT array_length(a, 1) $$",),
        expect="done 54023"),
    Row(name="a view's expression that takes long", sql="SELECT count(slow) FROM pg_temp.seen WHERE id <= 60",
        setup=(SLOW, "CREATE TEMP VIEW seen AS SELECT id, slow(id) FROM numbers"), short=470, full=20_000),
    Row(name="a materialized view that takes long", sql="CREATE MATERIALIZED VIEW made AS SELECT slow(id) FROM numbers WHERE id <= 60",
        setup=(SLOW, "DROP MATERIALIZED VIEW IF EXISTS made"), short=520, full=20_000),
    Row(name="an event of NOTIFY in a loop", sql=block("FOR i IN 1..<n> LOOP PERFORM pg_notify('c', i::text); END LOOP;"), short=2300,
        full=1_000_000, expect="done 53400 53200 54000"),
    Row(name="pg_sleep in a loop", sql=block("LOOP PERFORM pg_sleep(0.001); END LOOP;"), expect=RUNS),
    Row(name="clock_timestamp in a loop", sql=block("WHILE clock_timestamp() < '2999-01-01' LOOP END LOOP;"), expect=RUNS),
    Row(name="a body of many statements", sql=lambda n: "DO $x$BEGIN " + "NULL;" * n + " END$x$", short=3000, full=500_000,
        expect="done 53200"),
    Row(name="a body of many declarations", sql=lambda n: "DO $x$DECLARE " + "".join(f"v{i} int;" for i in range(n)) + " BEGIN END$x$", short=1500,
        full=100_000, expect="done 53200"),
    Row(name="a body of many branches", sql=lambda n: "DO $x$BEGIN IF false THEN NULL; " + "ELSIF false THEN NULL; " * n + "END IF; END$x$", short=700,
        full=50_000, expect="done 53200"),
)  # fmt: skip

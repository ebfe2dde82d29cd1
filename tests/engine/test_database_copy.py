"""CREATE DATABASE ... TEMPLATE: what is in the template is in the copy, and from then on they have nothing to do with each other."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from engine.definitions.database_copy import Oids
from tests.support.server import ServerProcess

MOOD = """
    CREATE SCHEMA s;
    CREATE TYPE s.mood AS ENUM ('sad', 'happy');
    ALTER TYPE s.mood ADD VALUE 'so-so' BEFORE 'happy';
"""
SCHEMA = """
    CREATE DOMAIN positive AS int CHECK (VALUE > 0);
    CREATE DOMAIN small AS positive CHECK (VALUE < 100) DEFAULT 7;
    CREATE FUNCTION s.opposite(m s.mood) RETURNS s.mood LANGUAGE sql IMMUTABLE
        RETURN CASE m WHEN 'sad' THEN 'happy'::s.mood ELSE 'sad' END;
    CREATE TABLE people (id serial PRIMARY KEY, m s.mood DEFAULT 'so-so', p small, moods s.mood[], gone int, about regclass);
    ALTER TABLE people ALTER about SET DEFAULT 'people'::regclass;
    CREATE TABLE letters (
        id int GENERATED ALWAYS AS IDENTITY, person int REFERENCES people ON DELETE CASCADE,
        twice int GENERATED ALWAYS AS (person * 2) STORED, CONSTRAINT few CHECK (person < 1000), UNIQUE (person, id)
    );
    CREATE INDEX odd ON letters ((person + 1)) WHERE person % 2 = 1;
    CREATE VIEW happy AS SELECT l.id, m, s.opposite(m) AS other FROM people p JOIN letters l ON p.id = person WHERE m = 'happy';
    INSERT INTO people (m, p, moods) SELECT 'happy', 5, '{sad,so-so}' FROM generate_series(1, 3);
    INSERT INTO people (p, about) VALUES (99, 'letters');
    INSERT INTO letters (person) SELECT id FROM people;
    CREATE VIEW called AS SELECT 's.mood'::regtype AS a, 's'::regnamespace AS b, 's.opposite(s.mood)'::regprocedure AS c,
        '{s.mood,int}'::regtype[] AS d, 'people'::regclass AS e;
    CREATE MATERIALIZED VIEW counted AS SELECT m, count(*) AS n FROM people GROUP BY m;
    ALTER TABLE people ADD COLUMN late s.mood DEFAULT 'sad';
    ALTER TABLE people DROP COLUMN gone;
    CREATE SEQUENCE fives START 5 INCREMENT 5;
    SELECT nextval('fives'), nextval('fives');
    CREATE TABLE many (k int PRIMARY KEY, t text);
    INSERT INTO many SELECT g, 'row ' || g FROM generate_series(1, 21000) g;
    DELETE FROM many WHERE k % 1000 = 0;
    CREATE TABLE nothing ();
    CREATE TYPE pair AS (a int, b s.mood);
    CREATE TYPE pairs AS (one pair, more pair[]);
    CREATE DOMAIN sure AS pair CHECK ((VALUE).a > 0);
    CREATE TABLE rows (id int PRIMARY KEY, v pair, w pairs, d sure, p letters);
    INSERT INTO rows SELECT 1, (1, 'sad'), ((2, 'happy'), ARRAY[(3, 'so-so')::pair]), (4, 'sad'), letters FROM letters WHERE id = 1;
    CREATE FUNCTION s.last(a s.mood, b s.mood) RETURNS s.mood LANGUAGE sql STRICT AS 'SELECT $2';
    CREATE AGGREGATE s.last(s.mood) (SFUNC = s.last, STYPE = s.mood);
    CREATE VIEW latest AS SELECT s.last(m ORDER BY id) AS m FROM people;
    CREATE FUNCTION s.first(r rows) RETURNS int LANGUAGE sql AS 'SELECT (r.v).a';
    CREATE PROCEDURE s.add(i int) LANGUAGE sql AS 'INSERT INTO rows (id) VALUES (i)';
    CREATE TABLE booked (room int, during int4range, EXCLUDE USING gist (room WITH =, during WITH &&) WHERE (room > 0));
    INSERT INTO booked VALUES (1, '[1,5)');
    SELECT lo_from_bytea(4001, 'of the template'), lo_create(4002), lo_put(4002, 600000, 'behind a hole');
    GRANT SELECT ON LARGE OBJECT 4002 TO pg_monitor;
    SELECT lo_from_bytea('people'::regclass::oid, 'the number of a table');
    DO $$ BEGIN EXECUTE format('COMMENT ON LARGE OBJECT %s IS %L', 'people'::regclass::oid, 'noted'); END $$;
    COMMENT ON TABLE people IS 'everybody';
    COMMENT ON CONSTRAINT few ON letters IS 'not many';
    GRANT SELECT (id) ON people TO pg_monitor;
    ALTER DEFAULT PRIVILEGES IN SCHEMA s GRANT SELECT ON TABLES TO pg_monitor;
"""

SEEN = (
    "SELECT * FROM people ORDER BY id",
    "SELECT * FROM letters ORDER BY id",
    "SELECT * FROM happy ORDER BY id",
    "SELECT * FROM counted ORDER BY m",
    "SELECT a::text, b::text, c::text, d::text, e::text, pg_get_viewdef('called'::regclass) FROM called",
    "SELECT count(*), sum(k), min(t) FROM many",
    "SELECT relname, relkind, relnatts, relacl::text, obj_description(oid, 'pg_class') FROM pg_class WHERE oid >= 16384 ORDER BY 1",
    "SELECT conname, pg_get_constraintdef(oid), obj_description(oid, 'pg_constraint') FROM pg_constraint WHERE oid >= 16384 ORDER BY 1",
    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
    "SELECT table_name, column_name, column_default, data_type, udt_name FROM information_schema.columns"
    " WHERE table_schema = 'public' ORDER BY 1, 2",
    "SELECT *, (v).b, ((w).more)[1].b AS deep, (p).person AS whose, s.first(rows) FROM rows ORDER BY id",
    "SELECT * FROM booked",
    "SELECT attrelid::regclass::text, attname, atttypid::regtype::text FROM pg_attribute"
    " WHERE attrelid >= 16384 AND atttypid >= 16384 ORDER BY 1, attnum",
    "SELECT viewname, definition FROM pg_views WHERE schemaname = 'public'",
    "SELECT typname, typtype, typcategory, array(SELECT enumlabel::text FROM pg_enum WHERE enumtypid = t.oid ORDER BY enumsortorder)"
    " FROM pg_type t WHERE oid >= 16384 ORDER BY 1",
    "SELECT attrelid::regclass::text, attname, attacl::text FROM pg_attribute WHERE attacl IS NOT NULL AND attrelid >= 16384",
    "SELECT defaclnamespace::regnamespace::text, defaclobjtype, defaclacl::text FROM pg_default_acl",
    "SELECT oid, lomowner, lomacl::text, obj_description(oid, 'pg_largeobject') FROM pg_largeobject_metadata ORDER BY 1",
    "SELECT loid, pageno, data FROM pg_largeobject ORDER BY 1, 2",
    "SELECT sequencename, start_value, increment_by, last_value FROM pg_sequences ORDER BY 1",
    "SELECT objid::regclass::text, refobjid::regclass::text, refobjsubid FROM pg_depend"
    " WHERE deptype IN ('a', 'i') AND classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass AND objid >= 16384 ORDER BY 1",
    "SELECT proname, pg_get_function_arguments(oid), prorettype::regtype::text FROM pg_proc WHERE oid >= 16384",
    "SELECT aggtransfn::regprocedure::text, aggtranstype::regtype::text FROM pg_aggregate WHERE aggfnoid::oid >= 16384",
    "SELECT * FROM latest",
)


def opened(server: ServerProcess, database: str = "postgres") -> psycopg.Connection:
    return psycopg.connect(
        f"host=127.0.0.1 port={server.port} user=postgres dbname={database}", autocommit=True
    )


@pytest.fixture(scope="module")
def copied(server: ServerProcess) -> Iterator[list[list[tuple[object, ...]]]]:
    """A database ``copy_of`` and its template ``copied``; what was seen in the template when it was copied."""
    with opened(server) as root:
        root.execute("CREATE DATABASE copied")
        with opened(server, "copied") as template:
            template.execute(MOOD)
            template.execute(SCHEMA)
            seen = [template.execute(query).fetchall() for query in SEEN]
        root.execute("CREATE DATABASE copy_of TEMPLATE copied")
        yield seen
        root.execute("DROP DATABASE copy_of")
        root.execute("DROP DATABASE copied")


def test_all_that_is_in_the_template_is_in_the_copy(
    server: ServerProcess, copied: list[list[tuple[object, ...]]]
) -> None:
    with opened(server, "copy_of") as copy:
        for query, expected in zip(SEEN, copied, strict=True):
            assert copy.execute(query).fetchall() == expected, query


def test_oids_of_a_copy_are_its_own(server: ServerProcess, copied: object) -> None:
    every = (
        "SELECT oid::int FROM pg_class WHERE oid >= 16384 UNION ALL SELECT oid::int FROM pg_type WHERE oid >= 16384"
        " UNION ALL SELECT oid::int FROM pg_constraint WHERE oid >= 16384 UNION ALL SELECT oid::int FROM pg_proc WHERE oid >= 16384"
        " UNION ALL SELECT oid::int FROM pg_enum WHERE oid >= 16384"
    )
    with opened(server, "copied") as template, opened(server, "copy_of") as copy:
        old, new = template.execute(every).fetchall(), copy.execute(every).fetchall()
        assert len(old) == len(new) > 30
        assert not set(old) & set(new)


def test_a_copy_goes_its_own_way(server: ServerProcess, copied: list[list[tuple[object, ...]]]) -> None:
    with opened(server) as root:
        root.execute("CREATE DATABASE copy_two TEMPLATE copied")
        try:
            with opened(server, "copy_two") as copy:
                assert copy.execute("SELECT nextval('fives'), nextval('people_id_seq')").fetchone() == (15, 5)
                copy.execute("DELETE FROM people WHERE id = 1")  # letters follow
                assert copy.execute("SELECT count(*) FROM letters").fetchone() == (3,)
                copy.execute("REFRESH MATERIALIZED VIEW counted")
                assert copy.execute("SELECT n FROM counted WHERE m = 'happy'").fetchone() == (2,)
                copy.execute("INSERT INTO people DEFAULT VALUES")
                told = copy.execute(
                    "SELECT m::text, p, about::text, late::text FROM people ORDER BY id DESC LIMIT 1"
                )
                assert told.fetchone() == ("so-so", 7, "people", "sad")
                assert copy.execute("SELECT t FROM many WHERE k = 20999").fetchone() == ("row 20999",)
                for sql, error in (
                    ("INSERT INTO many VALUES (20999, 'again')", psycopg.errors.UniqueViolation),
                    ("INSERT INTO letters (person) VALUES (1)", psycopg.errors.ForeignKeyViolation),
                    ("INSERT INTO letters (person) VALUES (2000)", psycopg.errors.CheckViolation),
                    ("INSERT INTO people (p) VALUES (100)", psycopg.errors.CheckViolation),
                    ("DROP TYPE s.mood", psycopg.errors.DependentObjectsStillExist),
                ):
                    with pytest.raises(error):
                        copy.execute(sql)
                copy.execute("ALTER TYPE s.mood RENAME VALUE 'happy' TO 'glad'")
                copy.execute("DROP TABLE many")
                copy.execute("SELECT lo_put(4001, 0, 'OF'), lo_unlink(4002)")
            with opened(server, "copied") as template:
                for query, expected in zip(SEEN, copied, strict=True):
                    assert template.execute(query).fetchall() == expected, query
        finally:
            root.execute("DROP DATABASE copy_two")


def test_composite_types_and_exclusion_constraints_of_a_copy_are_its_own(
    server: ServerProcess, copied: object
) -> None:
    with opened(server, "copy_of") as there:
        there.execute("CALL s.add(2)")
        there.execute("ALTER TYPE pair RENAME ATTRIBUTE b TO second")
        assert there.execute("SELECT (v).second, (d).second FROM rows WHERE id = 1").fetchall() == [
            ("sad", "sad")
        ]
        with pytest.raises(psycopg.errors.CheckViolation):
            there.execute("UPDATE rows SET d = (0, 'sad')")
        with pytest.raises(psycopg.errors.ExclusionViolation):
            there.execute("INSERT INTO booked VALUES (1, '[4,6)')")
        there.execute("DROP TABLE rows CASCADE")
    with opened(server, "copied") as here:
        assert here.execute("SELECT (v).a, s.first(rows) FROM rows").fetchall() == [(1, 1)]


def test_rows_that_name_objects_within_are_refused(server: ServerProcess) -> None:
    with opened(server) as own:
        own.execute("CREATE DATABASE within")
        try:
            with opened(server, "within") as there:
                there.execute("CREATE TYPE named AS (id int, what regclass)")
                there.execute("CREATE TYPE outer_named AS (n named)")
                there.execute("CREATE TABLE t (v outer_named[])")
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="holds rows"):
                own.execute("CREATE DATABASE copy_of_within TEMPLATE within")
        finally:
            own.execute("DROP DATABASE within")


def test_texts_name_the_copys_objects_and_literals_stay() -> None:
    oids = Oids()
    oids.add(16500, 17000, 20)
    assert oids.in_text("nextval('16504'::regclass)") == "nextval('17004'::regclass)"
    assert oids.in_text("""'sad'::pg_catalog."#16510"[]""") == """'sad'::pg_catalog."#17010"[]"""
    assert oids.in_text('"#16511"(1) + "#16600"(2)') == '"#17011"(1) + "#16600"(2)'
    for same in (
        "'16504'::text",
        "'it''16504'::regclass",
        "'pg_catalog.\"#16510\"'::text",
        '"#16504" > \'"#16511"(\'::text',
    ):
        assert oids.in_text(same) == same

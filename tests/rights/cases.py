"""The statements of the walk: for each class of bound statements what there is of it, over the objects of ``tests.rights.world``.

``undo``: what makes a success outside a block undone ("" in place of nothing: it changes nothing). Without it such a success is not tried.
What PostgreSQL has no statement for is in ``OWN``, with the roles that may, as reviewed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from planner import query as q
from planner import statements as st

_Text: TypeAlias = str | tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Case:
    """A statement of a class."""

    of: type
    sql: str
    undo: str | None = None


_READ: Final = ""  # what a success leaves behind

CASES_BY_CLASS: Final[Mapping[type, Sequence[_Text]]] = {
    st.QueryStatement: (
        ("SELECT * FROM w.t", _READ), ("SELECT a FROM w.t", _READ), ("SELECT a FROM w.t WHERE id = 1", _READ),
        ("SELECT b FROM w.t WHERE a = 10", _READ), ("SELECT count(*) FROM w.t", _READ), ("SELECT 1 FROM w.t", _READ),
        ("SELECT t FROM w.t", _READ), ("SELECT ctid FROM w.t", _READ), ("SELECT a FROM w.v", _READ),
        ("SELECT c FROM w.v", _READ), ("SELECT * FROM w.nested", _READ), ("SELECT a FROM w.iv", _READ),
        ("SELECT a FROM w.m", _READ), ("SELECT a FROM w.p", _READ), ("SELECT a FROM w.p1", _READ),
        ("SELECT a FROM w.rls", _READ), ("SELECT last_value FROM w.s", _READ), ("SELECT x FROM w.elses_v", _READ),
        ("SELECT a FROM w.t FOR UPDATE", _READ), ("SELECT a FROM w.t FOR SHARE", _READ),
        ("SELECT a FROM w.t FOR KEY SHARE", _READ), ("SELECT a FROM w.v FOR UPDATE", _READ),
        ("SELECT a FROM w.nested FOR NO KEY UPDATE", _READ), ("SELECT a FROM w.iv FOR SHARE", _READ),
        ("SELECT a FROM w.p FOR UPDATE", _READ), ("SELECT w.f()", _READ), ("SELECT w.g()", _READ),
        ("SELECT w.agg(1)", _READ), ("SELECT w.definer()", _READ), ("SELECT nextval('w.s')", _READ),
        ("SELECT setval('w.s', 7)", _READ), ("SELECT 'x'::w.e", _READ), ("SELECT 1::w.d", _READ),
        ("SELECT * FROM pg_authid", _READ), ("SELECT * FROM pg_shadow", _READ), ("SELECT * FROM pg_hba_file_rules", _READ),
        ("SELECT * FROM pg_hba_file_rules()", _READ), ("SELECT * FROM pg_ident_file_mappings()", _READ),
        ("SELECT * FROM pg_show_all_file_settings()", _READ),
        ("SELECT lo_get(90001)", _READ), "SELECT lo_put(90001, 0, 'x')", "SELECT lo_unlink(90001)",
        "SELECT lo_open(90001, 131072)", "SELECT lo_create(90002)",
        ("SELECT current_setting('data_directory')", _READ), ("SELECT set_config('log_statement', 'none', true)", _READ),
        ("SELECT set_config('role', 'w_owner', true)", _READ),
        ("SELECT a FROM w.t WHERE EXISTS (SELECT FROM w.k)", _READ), ("SELECT (SELECT max(a) FROM w.t)", _READ),
        ("WITH x AS (SELECT a FROM w.t) SELECT * FROM x", _READ), ("SELECT a FROM w.t UNION SELECT x FROM w.ser", _READ),
        ("TABLE w.t", _READ), ("SELECT x FROM w.t, LATERAL (SELECT t.a AS x) s", _READ),
    ),
    st.WithChanges: (
        "WITH x AS (DELETE FROM w.t RETURNING a) SELECT * FROM x", "WITH x AS (UPDATE w.t SET a = 5) SELECT 1",
        "WITH x AS (INSERT INTO w.t VALUES (9, 9) RETURNING b) SELECT * FROM x",
        "WITH x AS (SELECT a FROM w.t) INSERT INTO w.k SELECT a FROM x WHERE false",
        "WITH x AS (DELETE FROM w.free) UPDATE w.t SET a = 3",
    ),
    q.Insert: (
        "INSERT INTO w.t VALUES (5, 5, 'z')", "INSERT INTO w.t (a) VALUES (1) ON CONFLICT DO NOTHING",
        "INSERT INTO w.t (id, a) VALUES (5, 5)", "INSERT INTO w.t (id) VALUES (6) RETURNING id",
        "INSERT INTO w.t (id, a) VALUES (1, 5) ON CONFLICT (id) DO NOTHING",
        "INSERT INTO w.t (id, a) VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET a = 5",
        "INSERT INTO w.t (id, a) VALUES (1, 5) ON CONFLICT ON CONSTRAINT t_pkey DO UPDATE SET a = excluded.a",
        "INSERT INTO w.t (id, a) VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET a = 5 WHERE t.b = 'x'",
        "INSERT INTO w.v (id, a, b) VALUES (7, 7, 'z')", "INSERT INTO w.v (id, a) VALUES (7, 7) RETURNING c",
        "INSERT INTO w.v (id, a) VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET a = 5",
        "INSERT INTO w.v (id, a) VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET a = excluded.c",
        "INSERT INTO w.nested (id, a) VALUES (8, 8)", "INSERT INTO w.iv (id, a) VALUES (8, 8)",
        "INSERT INTO w.p VALUES (1, 1)", "INSERT INTO w.p1 VALUES (1, 1)", "INSERT INTO w.ser (x) VALUES (1)",
        "INSERT INTO w.rls VALUES (1, 'x')", "INSERT INTO w.k SELECT a FROM w.t WHERE false", "INSERT INTO w.ser DEFAULT VALUES",
        "INSERT INTO w.t SELECT * FROM w.t WHERE false", "INSERT INTO w.t (id, a) VALUES (11, nextval('w.s'))",
        "INSERT INTO w.t (id, a) VALUES (12, w.f())",
    ),
    q.Update: (
        "UPDATE w.t SET a = 5", "UPDATE w.t SET a = 5 WHERE id = 1", "UPDATE w.t SET a = a + 1", "UPDATE w.t SET b = 'x'",
        "UPDATE w.t SET a = 5 RETURNING b", "UPDATE w.t SET a = DEFAULT", "UPDATE w.t SET a = (SELECT max(x) FROM w.ser)",
        "UPDATE w.t SET a = k.a FROM w.k", "UPDATE w.v SET a = 5", "UPDATE w.v SET a = 5 WHERE c = 3",
        "UPDATE w.v SET a = c", "UPDATE w.v SET a = 5 RETURNING c", "UPDATE w.nested SET a = 5 WHERE d = 5",
        "UPDATE w.iv SET a = 5", "UPDATE w.iv SET a = 5 WHERE b = 'x'", "UPDATE w.p SET id = 3", "UPDATE w.p SET a = 1 WHERE id = 1",
        "UPDATE w.rls SET a = 5", "UPDATE w.t SET a = 5 WHERE ctid IS NULL", "UPDATE w.t SET a = 5 WHERE w.f() = 1",
    ),
    q.Delete: (
        "DELETE FROM w.k", "DELETE FROM w.t WHERE id = 1", "DELETE FROM w.t RETURNING b", "DELETE FROM w.v", "DELETE FROM w.v WHERE c = 3",
        "DELETE FROM w.v RETURNING c", "DELETE FROM w.nested", "DELETE FROM w.iv", "DELETE FROM w.p", "DELETE FROM w.rls",
        "DELETE FROM w.k USING w.t WHERE k.a = t.a", "DELETE FROM w.t WHERE EXISTS (SELECT FROM w.k)", "DELETE FROM w.ref",
    ),
    q.Merge: (
        "MERGE INTO w.t USING w.k ON t.a = k.a WHEN MATCHED THEN DELETE",
        "MERGE INTO w.t USING (SELECT 1 AS x) s ON t.a = s.x WHEN MATCHED THEN UPDATE SET a = 5",
        "MERGE INTO w.t USING (SELECT 1 AS x) s ON t.a = s.x WHEN NOT MATCHED THEN INSERT (a) VALUES (1)",
        "MERGE INTO w.t USING (SELECT 1 AS x) s ON t.a = s.x WHEN MATCHED THEN DO NOTHING",
        "MERGE INTO w.t USING (SELECT 1 AS x) s ON true WHEN MATCHED AND b = 'x' THEN UPDATE SET a = 5",
        "MERGE INTO w.p USING (SELECT 1 AS x) s ON p.a = s.x WHEN MATCHED THEN DELETE",
    ),
    st.Copy: (
        ("COPY w.t TO STDOUT", _READ), ("COPY w.t (a) TO STDOUT", _READ), ("COPY (SELECT a FROM w.t) TO STDOUT", _READ),
        ("COPY (SELECT c FROM w.v) TO STDOUT", _READ), "COPY w.t FROM STDIN", "COPY w.t (a) FROM STDIN",
        "COPY (DELETE FROM w.t RETURNING a) TO STDOUT", ("COPY w.t TO '/nowhere/x'", _READ), ("COPY w.t FROM '/nowhere/x'", _READ),
        ("COPY w.p TO STDOUT", _READ), "COPY w.v FROM STDIN",
    ),
    st.Explain: (
        ("EXPLAIN (COSTS OFF) SELECT a FROM w.t", _READ), ("EXPLAIN (COSTS OFF) UPDATE w.t SET a = 5", _READ),
        ("EXPLAIN (ANALYZE, TIMING OFF) SELECT b FROM w.t", _READ), "EXPLAIN ANALYZE DELETE FROM w.t",
        "EXPLAIN CREATE TABLE w.n AS SELECT a FROM w.t", ("EXPLAIN SELECT w.f()", _READ),
    ),
    st.Truncate: (
        "TRUNCATE w.free", "TRUNCATE w.t", "TRUNCATE w.ser", "TRUNCATE w.ser RESTART IDENTITY", "TRUNCATE w.ref CASCADE", "TRUNCATE w.ref",
        "TRUNCATE w.p", "TRUNCATE w.p1", "TRUNCATE ONLY w.t, w.k", "TRUNCATE w.free, w.elses",
    ),
    st.LockTable: (
        "LOCK w.t IN ACCESS SHARE MODE", "LOCK w.t IN ROW SHARE MODE", "LOCK w.t IN ROW EXCLUSIVE MODE",
        "LOCK w.t IN SHARE UPDATE EXCLUSIVE MODE", "LOCK w.t IN SHARE MODE", "LOCK w.t", "LOCK w.p IN ACCESS SHARE MODE",
 "LOCK w.t, w.elses IN SHARE MODE",
    ),
    st.MarkConstraints: ("UPDATE pg_catalog.pg_constraint SET convalidated = true WHERE false",),
    st.CreateTable: (
        "CREATE TABLE w.n (x int)", "CREATE TABLE IF NOT EXISTS w.t (x int)", "CREATE TABLE w.t (x int)", "CREATE TABLE n (x int)",
        "CREATE TEMP TABLE n (x int)", "CREATE TABLE w.n (x w.e)", "CREATE TABLE w.n (x w.elses_e[])", "CREATE TABLE w.n (x w.d DEFAULT 1)",
        "CREATE TABLE w.n (x int REFERENCES w.ref)", "CREATE TABLE w.n (x int REFERENCES w.t (id))", "CREATE TABLE w.n (x w.t)",
        "CREATE TABLE w.n (LIKE w.t)", "CREATE TABLE w.n (LIKE w.v)", "CREATE TABLE w.n (LIKE w.c)",
        "CREATE FOREIGN TABLE w.n (a int) SERVER w_server", "CREATE FOREIGN TABLE w.n (a int) SERVER w_elses_server",
        "CREATE TABLE w.n PARTITION OF w.p FOR VALUES IN (7)", "CREATE TABLE w.n AS SELECT a FROM w.t", "CREATE TABLE w.n AS SELECT w.f()",
        "SELECT a INTO w.n FROM w.v", "CREATE TEMP TABLE n AS SELECT c FROM w.v", "CREATE TABLE w.n (x int DEFAULT w.f(), CHECK (w.f() > x))",
        "CREATE TABLE w.n (x int) PARTITION BY LIST (x)", "CREATE TABLE elses.n (x int)", "CREATE TABLE pg_catalog.n (x int)",
    ),
    st.AlterTable: (
        "ALTER FOREIGN TABLE w.ft OPTIONS (x 'y')", "ALTER FOREIGN TABLE w.ft ALTER a OPTIONS (x 'y')", "ALTER FOREIGN TABLE w.ft OWNER TO w_target",
        "ALTER TABLE w.t ADD COLUMN n int", "ALTER TABLE w.t ADD COLUMN n w.e", "ALTER TABLE w.t ADD COLUMN n int REFERENCES w.ref",
        "ALTER TABLE w.t DROP COLUMN b", "ALTER TABLE w.free ALTER a TYPE bigint", "ALTER TABLE w.free ALTER a TYPE w.d",
        "ALTER TABLE w.t ALTER a SET DEFAULT 3", "ALTER TABLE w.t ALTER a SET NOT NULL", "ALTER TABLE w.t ADD CHECK (a > 0)",
        "ALTER TABLE w.t ADD UNIQUE (a)", "ALTER TABLE w.free ADD FOREIGN KEY (a) REFERENCES w.ref", "ALTER TABLE w.t DROP CONSTRAINT positive",
        "ALTER TABLE w.t VALIDATE CONSTRAINT positive", "ALTER TABLE w.k ALTER CONSTRAINT k_a_fkey DEFERRABLE",
        "ALTER TABLE w.t OWNER TO w_target", "ALTER TABLE w.t OWNER TO w_owner", "ALTER TABLE w.t OWNER TO w_else",
        "ALTER TABLE w.t OWNER TO CURRENT_USER", "ALTER VIEW w.v OWNER TO w_target", "ALTER SEQUENCE w.s OWNER TO w_target",
        "ALTER MATERIALIZED VIEW w.m OWNER TO w_owner", "ALTER TABLE w.t SET SCHEMA w2", "ALTER TABLE w.t SET SCHEMA elses",
        "ALTER TABLE w.p ATTACH PARTITION w.free FOR VALUES IN (2)", "ALTER TABLE w.p ATTACH PARTITION w.elses FOR VALUES IN (3)",
        "ALTER TABLE w.p DETACH PARTITION w.p1", "ALTER INDEX w.pi ATTACH PARTITION w.fi", "ALTER TABLE w.t ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE w.rls FORCE ROW LEVEL SECURITY", "ALTER TABLE w.ser DISABLE TRIGGER tr", "ALTER TABLE w.ser DISABLE TRIGGER ALL",
        "ALTER TABLE w.t SET (fillfactor = 50)", "ALTER TABLE w.t SET UNLOGGED", "ALTER VIEW w.v SET (security_barrier = true)",
        "ALTER TABLE w.t ALTER id ADD GENERATED ALWAYS AS IDENTITY", "ALTER VIEW w.v ALTER a SET DEFAULT 3",
    ),
    st.CreateIndex: ("CREATE INDEX ON w.t (b)", "CREATE UNIQUE INDEX n ON w.t (a)", "CREATE INDEX ON w.p (a)", "CREATE INDEX IF NOT EXISTS ti ON w.t (a)",
                     "CREATE INDEX ON w.t (w.step(a, 1))"),
    st.CreateView: (
        "CREATE VIEW w.n AS SELECT a FROM w.t", "CREATE VIEW w.n AS SELECT w.f() AS x", "CREATE OR REPLACE VIEW w.v AS SELECT id, a, b, a + 2 AS c FROM w.t",
        "CREATE OR REPLACE VIEW w.n AS SELECT 1 AS x", "CREATE OR REPLACE VIEW w.elses_v AS SELECT 2 AS x", "CREATE OR REPLACE VIEW w.t AS SELECT 1 AS x",
        "CREATE TEMP VIEW n AS SELECT a FROM w.t", "CREATE VIEW w.v AS SELECT 1 AS x",
    ),
    st.CreateMaterializedView: ("CREATE MATERIALIZED VIEW w.n AS SELECT a FROM w.t", "CREATE MATERIALIZED VIEW w.n AS SELECT a FROM w.t WITH NO DATA"),
    st.RefreshMaterializedView: ("REFRESH MATERIALIZED VIEW w.m", "REFRESH MATERIALIZED VIEW w.m WITH NO DATA"),
    st.CreateSequence: ("CREATE SEQUENCE w.n", "CREATE SEQUENCE w.n OWNED BY w.t.a", "CREATE SEQUENCE w.n OWNED BY w.elses.a", "CREATE TEMP SEQUENCE n"),
    st.AlterSequence: ("ALTER SEQUENCE w.s RESTART", "ALTER SEQUENCE w.s OWNED BY w.t.a", "ALTER SEQUENCE w.s OWNED BY w.elses.a", "ALTER SEQUENCE w.s INCREMENT 2"),
    st.CreateTrigger: (
        "CREATE TRIGGER n AFTER INSERT ON w.t FOR EACH ROW EXECUTE FUNCTION w.trf()", "CREATE OR REPLACE TRIGGER tr BEFORE INSERT ON w.ser EXECUTE FUNCTION w.trf()",
        "CREATE CONSTRAINT TRIGGER n AFTER INSERT ON w.t FROM w.ref FOR EACH ROW EXECUTE FUNCTION w.trf()",
        "CREATE TRIGGER n AFTER UPDATE ON w.t FOR EACH ROW EXECUTE FUNCTION pg_catalog.suppress_redundant_updates_trigger()",
        "CREATE TRIGGER n INSTEAD OF INSERT ON w.v FOR EACH ROW EXECUTE FUNCTION w.trf()",
    ),
    st.RenameTrigger: ("ALTER TRIGGER tr ON w.ser RENAME TO n",),
    st.DropTrigger: ("DROP TRIGGER tr ON w.ser",),
    st.CreatePolicy: ("CREATE POLICY n ON w.t USING (true)",),
    st.AlterPolicy: ("ALTER POLICY pol ON w.rls USING (true)",),
    st.RenamePolicy: ("ALTER POLICY pol ON w.rls RENAME TO n",),
    st.DropPolicy: ("DROP POLICY pol ON w.rls",),
    st.Rename: (
        "ALTER TABLE w.t RENAME TO n", "ALTER TABLE w.t RENAME b TO n", "ALTER TABLE w.t RENAME CONSTRAINT positive TO n", "ALTER INDEX w.ti RENAME TO n",
        "ALTER VIEW w.v RENAME TO n", "ALTER VIEW w.v RENAME c TO n", "ALTER SEQUENCE w.s RENAME TO n", "ALTER MATERIALIZED VIEW w.m RENAME TO n",
        "ALTER SCHEMA w2 RENAME TO n", "ALTER ROLE w_target RENAME TO n", "ALTER ROLE w_super RENAME TO n", "ALTER DATABASE w_db RENAME TO n",
    ),
    st.Drop: (
        "DROP FOREIGN TABLE w.ft", "DROP TABLE w.free", "DROP TABLE IF EXISTS w.free", "DROP TABLE w.t", "DROP TABLE w.t CASCADE", "DROP VIEW w.iv", "DROP MATERIALIZED VIEW w.m", "DROP INDEX w.ti",
        "DROP SEQUENCE w.s", "DROP SCHEMA w2", "DROP SCHEMA elses", "DROP SCHEMA w CASCADE", "DROP TABLE w.elses", "DROP TABLE w.absent", "DROP TABLE IF EXISTS w.absent",
    ),
    st.Comment: (
        "COMMENT ON TABLE w.t IS 'x'", "COMMENT ON COLUMN w.t.a IS 'x'", "COMMENT ON VIEW w.v IS 'x'", "COMMENT ON INDEX w.ti IS 'x'", "COMMENT ON SEQUENCE w.s IS 'x'",
        "COMMENT ON MATERIALIZED VIEW w.m IS 'x'", "COMMENT ON CONSTRAINT positive ON w.t IS 'x'", "COMMENT ON CONSTRAINT dc ON DOMAIN w.d IS 'x'",
        "COMMENT ON SCHEMA w IS 'x'", "COMMENT ON FUNCTION w.f() IS 'x'", "COMMENT ON PROCEDURE w.pr() IS 'x'", "COMMENT ON AGGREGATE w.agg(int) IS 'x'",
        "COMMENT ON TYPE w.e IS 'x'", "COMMENT ON DOMAIN w.d IS 'x'", "COMMENT ON TRIGGER tr ON w.ser IS 'x'", "COMMENT ON POLICY pol ON w.rls IS 'x'",
        "COMMENT ON ROLE w_target IS 'x'", "COMMENT ON ROLE w_super IS 'x'", "COMMENT ON DATABASE postgres IS 'x'", "COMMENT ON DATABASE w_db IS 'x'",
        "COMMENT ON EXTENSION citext IS 'x'", "COMMENT ON LARGE OBJECT 90001 IS 'x'", "COMMENT ON TEXT SEARCH CONFIGURATION w.conf IS 'x'",
        "COMMENT ON TEXT SEARCH DICTIONARY w.dict IS 'x'", "COMMENT ON STATISTICS w.st IS 'x'",
        "COMMENT ON FOREIGN TABLE w.ft IS 'x'", "COMMENT ON CONVERSION w.cv IS 'x'", "COMMENT ON COLLATION w.co IS 'x'",
        "COMMENT ON FOREIGN DATA WRAPPER w_wrapper IS 'x'", "COMMENT ON SERVER w_server IS 'x'", "COMMENT ON OPERATOR CLASS w.opc USING btree IS 'x'", "COMMENT ON OPERATOR FAMILY w.opf USING btree IS 'x'",
    ),
    st.Maintenance: (
        ("VACUUM w.t", _READ), ("ANALYZE w.t", _READ), ("REINDEX TABLE w.t", _READ), ("REINDEX INDEX w.ti", _READ), ("REINDEX SCHEMA w2", _READ),
        ("REINDEX DATABASE postgres", None), ("REINDEX SYSTEM postgres", None), ("REINDEX TABLE pg_class", None), ("CLUSTER w.t USING ti", None), ("CHECKPOINT", _READ),
        ("REINDEX TABLE w.elses", _READ), ("REINDEX SCHEMA pg_catalog", None), ("REINDEX DATABASE w_db", _READ),
    ),
    st.CreateSchema: (
        "CREATE SCHEMA n", "CREATE SCHEMA n AUTHORIZATION w_owner", "CREATE SCHEMA AUTHORIZATION postgres", "CREATE SCHEMA AUTHORIZATION postgres CREATE VIEW n AS SELECT 1 AS x",
        "CREATE SCHEMA IF NOT EXISTS w", "CREATE SCHEMA IF NOT EXISTS w AUTHORIZATION w_owner", "CREATE SCHEMA n CREATE TABLE n (x int)", "CREATE SCHEMA n AUTHORIZATION w_target",
        "CREATE SCHEMA n CREATE VIEW n AS SELECT a FROM w.t",
    ),
    st.AlterSchemaOwner: ("ALTER SCHEMA w2 OWNER TO w_owner", "ALTER SCHEMA w2 OWNER TO w_target", "ALTER SCHEMA w2 OWNER TO w_else", "ALTER SCHEMA w2 OWNER TO postgres"),
    st.CreateEnum: ("CREATE TYPE w.n AS ENUM ('x')",),
    st.CreateRange: ("CREATE TYPE w.n AS RANGE (SUBTYPE = int)",),
    st.CreateComposite: ("CREATE TYPE w.n AS (x int)", "CREATE TYPE w.n AS (x w.e)", "CREATE TYPE w.n AS (x w.d)"),
    st.AlterComposite: ("ALTER TYPE w.c ADD ATTRIBUTE y int", "ALTER TYPE w.c ADD ATTRIBUTE y w.elses_e", "ALTER TYPE w.c DROP ATTRIBUTE x", "ALTER TYPE w.c RENAME ATTRIBUTE x TO y"),
    st.AddEnumValue: ("ALTER TYPE w.e ADD VALUE 'y'",),
    st.RenameEnumValue: ("ALTER TYPE w.e RENAME VALUE 'x' TO 'y'",),
    st.CreateDomain: ("CREATE DOMAIN w.n AS int", "CREATE DOMAIN w.n AS w.d", "CREATE DOMAIN w.n AS w.e"),
    st.SetDomainDefault: ("ALTER DOMAIN w.d SET DEFAULT 1",),
    st.SetDomainNotNull: ("ALTER DOMAIN w.d SET NOT NULL",),
    st.AddDomainCheck: ("ALTER DOMAIN w.d ADD CHECK (VALUE < 100)",),
    st.DropDomainConstraint: ("ALTER DOMAIN w.d DROP CONSTRAINT dc",),
    st.ValidateDomainConstraint: ("ALTER DOMAIN w.d VALIDATE CONSTRAINT dc",),
    st.RenameDomainConstraint: ("ALTER DOMAIN w.d RENAME CONSTRAINT dc TO n",),
    st.AlterType: (
        "ALTER TYPE w.e RENAME TO n", "ALTER TYPE w.e SET SCHEMA w2", "ALTER TYPE w.e OWNER TO w_target", "ALTER TYPE w.e OWNER TO w_owner", "ALTER DOMAIN w.d RENAME TO n",
        "ALTER DOMAIN w.d OWNER TO w_else", "ALTER TYPE w.e SET SCHEMA elses",
    ),
    st.DropType: ("DROP TYPE w.e", "DROP TYPE w.elses_e", "DROP DOMAIN w.d", "DROP TYPE w.c", "DROP TYPE w.r"),
    st.CreateFunction: (
        "CREATE FUNCTION w.n() RETURNS int LANGUAGE sql AS 'SELECT 1'", "CREATE OR REPLACE FUNCTION w.f() RETURNS int LANGUAGE sql AS 'SELECT 2'",
        "CREATE OR REPLACE FUNCTION w.elses_f() RETURNS int LANGUAGE sql AS 'SELECT 2'", "CREATE FUNCTION w.n(w.e) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION w.n() RETURNS w.d LANGUAGE sql AS 'SELECT 1'", "CREATE OR REPLACE PROCEDURE w.elses_p() LANGUAGE plpgsql AS 'BEGIN NULL; END'",
        "CREATE FUNCTION w.n() RETURNS int LANGUAGE sql LEAKPROOF AS 'SELECT 1'", "CREATE FUNCTION w.n() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
        "CREATE PROCEDURE w.n() LANGUAGE sql AS 'SELECT 1'", "CREATE FUNCTION w.n() RETURNS int LANGUAGE sql SET log_statement = 'none' AS 'SELECT 1'",
        "CREATE FUNCTION pg_temp.n() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    ),
    st.CreateAggregate: (
        "CREATE AGGREGATE w.n (int) (SFUNC = w.step, STYPE = int)", "CREATE AGGREGATE w.n (int) (SFUNC = pg_catalog.int4pl, STYPE = int)",
        "CREATE OR REPLACE AGGREGATE w.agg (int) (SFUNC = pg_catalog.int4pl, STYPE = int)",
    ),
    st.AlterFunction: (
        "ALTER FUNCTION w.f() RENAME TO n", "ALTER FUNCTION w.f() SET SCHEMA w2", "ALTER FUNCTION w.f() OWNER TO w_target", "ALTER FUNCTION w.f() OWNER TO w_owner",
        "ALTER FUNCTION w.f() SECURITY DEFINER", "ALTER FUNCTION w.f() LEAKPROOF", "ALTER FUNCTION w.f() SET work_mem = '1MB'", "ALTER FUNCTION w.f() SET log_statement = 'none'",
        "ALTER PROCEDURE w.pr() RENAME TO n", "ALTER AGGREGATE w.agg(int) OWNER TO w_target", "ALTER FUNCTION w.f() SET SCHEMA elses",
    ),
    st.DropFunction: ("DROP FUNCTION w.f()", "DROP PROCEDURE w.pr()", "DROP AGGREGATE w.agg(int)", "DROP FUNCTION w.elses_f()", "DROP ROUTINE w.g()"),
    st.Call: (("CALL w.pr()", _READ),),
    st.Do: (("DO $$ BEGIN PERFORM a FROM w.t; END $$", _READ), "DO $$ BEGIN UPDATE w.t SET a = 5; END $$", ("DO $$ DECLARE x int := w.f(); BEGIN NULL; END $$", _READ),
            "DO $$ BEGIN EXECUTE 'TRUNCATE w.k'; END $$", "DO $$ BEGIN CREATE TABLE w.n (x int); END $$"),
    st.CreateConfiguration: ("CREATE TEXT SEARCH CONFIGURATION w.n (COPY = pg_catalog.simple)", "CREATE TEXT SEARCH CONFIGURATION w.n (COPY = w.conf)"),
    st.CreateDictionary: ("CREATE TEXT SEARCH DICTIONARY w.n (TEMPLATE = simple)",),
    st.AlterMapping: ("ALTER TEXT SEARCH CONFIGURATION w.conf ALTER MAPPING FOR word WITH simple", "ALTER TEXT SEARCH CONFIGURATION w.conf DROP MAPPING FOR word"),
    st.AlterDictionary: ("ALTER TEXT SEARCH DICTIONARY w.dict (accept = false)",),
    st.AlterTextSearch: (
        "ALTER TEXT SEARCH CONFIGURATION w.conf RENAME TO n", "ALTER TEXT SEARCH CONFIGURATION w.conf SET SCHEMA w2", "ALTER TEXT SEARCH CONFIGURATION w.conf OWNER TO w_target",
        "ALTER TEXT SEARCH DICTIONARY w.dict OWNER TO w_owner",
    ),
    st.DropTextSearch: ("DROP TEXT SEARCH CONFIGURATION w.conf", "DROP TEXT SEARCH DICTIONARY w.dict"),
    st.CreateStatistics: (
        "CREATE STATISTICS w.n ON id, a FROM w.t", "CREATE STATISTICS w2.n ON id, (a + 1) FROM w.t", "CREATE STATISTICS w.n ON id, a FROM w.elses",
        "CREATE STATISTICS w.st ON id, a FROM w.elses",
    ),
    st.AlterStatistics: (
        "ALTER STATISTICS w.st RENAME TO n", "ALTER STATISTICS w.st SET SCHEMA w2", "ALTER STATISTICS w.st OWNER TO w_target", "ALTER STATISTICS w.st OWNER TO w_owner",
        "ALTER STATISTICS w.st SET STATISTICS 5",
    ),
    st.DropStatistics: ("DROP STATISTICS w.st",),
    st.CreateWrapper: ("CREATE FOREIGN DATA WRAPPER n", "CREATE FOREIGN DATA WRAPPER w_wrapper"),
    st.AlterWrapper: ("ALTER FOREIGN DATA WRAPPER w_wrapper NO VALIDATOR", "ALTER FOREIGN DATA WRAPPER w_wrapper OPTIONS (a 'b')"),
    st.CreateServer: ("CREATE SERVER n FOREIGN DATA WRAPPER w_wrapper", "CREATE SERVER w_server FOREIGN DATA WRAPPER w_wrapper"),
    st.AlterServer: ("ALTER SERVER w_server VERSION '2'", "ALTER SERVER w_elses_server OPTIONS (a 'b')"),
    st.CreateUserMapping: ("CREATE USER MAPPING FOR CURRENT_USER SERVER w_elses_server", "CREATE USER MAPPING FOR w_target SERVER w_server", "CREATE USER MAPPING FOR PUBLIC SERVER w_elses_server"),
    st.AlterUserMapping: ("ALTER USER MAPPING FOR PUBLIC SERVER w_server OPTIONS (a 'b')", "ALTER USER MAPPING FOR h_foreign SERVER w_server OPTIONS (a 'b')"),
    st.DropUserMapping: (
        "DROP USER MAPPING FOR PUBLIC SERVER w_server", "DROP USER MAPPING FOR h_foreign SERVER w_server", "DROP USER MAPPING FOR w_target SERVER w_server",
        "DROP USER MAPPING IF EXISTS FOR w_target SERVER w_server",
    ),
    st.AlterForeign: (
        "ALTER FOREIGN DATA WRAPPER w_wrapper RENAME TO n", "ALTER FOREIGN DATA WRAPPER w_wrapper OWNER TO w_super", "ALTER FOREIGN DATA WRAPPER w_wrapper OWNER TO w_target",
        "ALTER SERVER w_server RENAME TO n", "ALTER SERVER w_server OWNER TO w_target", "ALTER SERVER w_server OWNER TO w_owner", "ALTER SERVER w_server OWNER TO w_else",
        "ALTER SERVER w_server OWNER TO h_foreign",
    ),
    st.DropForeign: ("DROP FOREIGN DATA WRAPPER w_wrapper CASCADE", "DROP SERVER w_server CASCADE", "DROP SERVER w_elses_server"),
    st.CreateConversion: (
        "CREATE CONVERSION w.n FOR 'LATIN1' TO 'UTF8' FROM iso8859_1_to_utf8", "CREATE CONVERSION elses.n FOR 'LATIN1' TO 'UTF8' FROM iso8859_1_to_utf8",
    ),
    st.AlterConversion: (
        "ALTER CONVERSION w.cv RENAME TO n", "ALTER CONVERSION w.cv SET SCHEMA w2", "ALTER CONVERSION w.cv SET SCHEMA w",
        "ALTER CONVERSION w.cv OWNER TO w_target", "ALTER CONVERSION w.cv OWNER TO w_owner",
    ),
    st.DropConversion: ("DROP CONVERSION w.cv", "DROP CONVERSION IF EXISTS w.absent"),
    st.CreateOpfamily: ("CREATE OPERATOR FAMILY w.n USING btree", "CREATE OPERATOR FAMILY w.opf USING btree"),
    st.CreateOpclass: ("CREATE OPERATOR CLASS w.n FOR TYPE int4 USING btree AS OPERATOR 1 <", "CREATE OPERATOR CLASS w.opc FOR TYPE int4 USING btree AS OPERATOR 1 <"),
    st.ChangeOpfamily: ("ALTER OPERATOR FAMILY w.opf USING btree ADD OPERATOR 2 <= (int4, int2)", "ALTER OPERATOR FAMILY w.opf USING btree DROP OPERATOR 1 (int4, int2)"),
    st.AlterOpclass: (
        "ALTER OPERATOR CLASS w.opc USING btree RENAME TO n", "ALTER OPERATOR FAMILY w.opf USING btree SET SCHEMA w2", "ALTER OPERATOR CLASS w.opc USING btree OWNER TO w_target",
        "ALTER OPERATOR FAMILY w.opf USING btree OWNER TO w_owner", "ALTER OPERATOR FAMILY w.opf USING btree OWNER TO w_else",
    ),
    st.DropOpclass: ("DROP OPERATOR CLASS w.opc USING btree", "DROP OPERATOR FAMILY w.opf USING btree", "DROP OPERATOR FAMILY IF EXISTS w.absent USING btree"),
    st.CreateCollation: ('CREATE COLLATION w.n FROM "C"', "CREATE COLLATION elses.n (locale = 'C')", "CREATE COLLATION IF NOT EXISTS w.co FROM w.co"),
    st.AlterCollation: (
        "ALTER COLLATION w.co RENAME TO n", "ALTER COLLATION w.co SET SCHEMA w2", "ALTER COLLATION w.co SET SCHEMA w",
        "ALTER COLLATION w.co OWNER TO w_target", "ALTER COLLATION w.co OWNER TO w_owner",
    ),
    st.DropCollation: ("DROP COLLATION w.co", "DROP COLLATION IF EXISTS w.absent"),
    st.RefreshCollation: (('ALTER COLLATION "C" REFRESH VERSION', _READ), ("ALTER COLLATION w.co REFRESH VERSION", _READ)),
    st.Load: ("LOAD 'plpgsql'", "LOAD '/nowhere/x'", "LOAD '$libdir/plugins/x'"),
    st.ImportForeignSchema: ("IMPORT FOREIGN SCHEMA x FROM SERVER w_elses_server INTO w", "IMPORT FOREIGN SCHEMA x FROM SERVER w_server INTO w2"),
    st.RoleStatement: (
        "CREATE ROLE n", "CREATE ROLE n SUPERUSER", "CREATE ROLE n CREATEDB CREATEROLE", "CREATE ROLE n REPLICATION", "CREATE ROLE n BYPASSRLS", "CREATE ROLE n IN ROLE w_target",
        "CREATE ROLE n IN ROLE w_super", "CREATE ROLE n ROLE w_target", "ALTER ROLE w_target CREATEDB", "ALTER ROLE w_target SUPERUSER", "ALTER ROLE w_super NOLOGIN",
        "ALTER ROLE w_target PASSWORD 'x'", "ALTER ROLE w_target BYPASSRLS", "ALTER ROLE w_target REPLICATION", "ALTER ROLE postgres PASSWORD 'x'",
 "DROP ROLE w_gone", "DROP ROLE w_super", "DROP ROLE w_owner", "DROP ROLE IF EXISTS absent", "DROP ROLE absent",
        "ALTER ROLE absent LOGIN", "ALTER ROLE w_target VALID UNTIL 'infinity'", "ALTER ROLE pg_monitor LOGIN",
    ),
    st.GrantRole: (
        "GRANT w_target TO w_gone", "GRANT w_super TO w_gone", "GRANT w_owner TO w_gone", "REVOKE w_owner FROM w_member", "GRANT w_target TO CURRENT_USER", "GRANT pg_monitor TO w_gone",
        "GRANT w_target TO w_gone WITH ADMIN OPTION", "ALTER GROUP w_target ADD USER w_gone", "GRANT postgres TO w_gone", "REVOKE w_target FROM h_admin",
    ),
    st.Grant: (
        "GRANT SELECT ON w.t TO w_gone", "GRANT ALL ON w.t TO w_gone", "GRANT SELECT (a) ON w.t TO w_gone", "GRANT INSERT (a) ON w.t TO w_gone", "GRANT ALL (a) ON w.t TO w_gone",
        "GRANT SELECT (a), UPDATE (b) ON w.t TO w_gone", "REVOKE SELECT ON w.t FROM PUBLIC", "REVOKE SELECT (a) ON w.t FROM w_gone", "REVOKE ALL ON w.t FROM w_owner", "GRANT SELECT ON w.t TO PUBLIC WITH GRANT OPTION",
        "GRANT SELECT ON w.v TO w_gone", "GRANT USAGE ON SEQUENCE w.s TO w_gone", "GRANT USAGE ON SCHEMA w TO w_gone", "GRANT CREATE ON SCHEMA w TO PUBLIC", "GRANT EXECUTE ON FUNCTION w.f() TO w_gone",
        "GRANT EXECUTE ON PROCEDURE w.pr() TO w_gone", "GRANT USAGE ON TYPE w.e TO w_gone", "GRANT USAGE ON DOMAIN w.d TO w_gone", "GRANT CREATE ON DATABASE postgres TO w_gone", "GRANT CONNECT ON DATABASE w_db TO w_gone",
        "GRANT USAGE ON FOREIGN SERVER w_server TO w_gone", "GRANT USAGE ON FOREIGN DATA WRAPPER w_wrapper TO w_gone", "REVOKE ALL ON FOREIGN SERVER w_server FROM h_foreign",
        "GRANT SELECT ON LARGE OBJECT 90001 TO w_gone", "GRANT SELECT ON ALL TABLES IN SCHEMA elses TO w_gone", "REVOKE SELECT ON w.t FROM h_option CASCADE", "REVOKE GRANT OPTION FOR SELECT ON w.t FROM h_option",
        "GRANT SELECT ON w.t TO w_gone GRANTED BY CURRENT_USER", "REVOKE EXECUTE ON FUNCTION w.f() FROM PUBLIC", "GRANT TRIGGER, REFERENCES ON w.t TO w_gone",
    ),
    st.AlterDefaultPrivileges: (
        "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO w_gone", "ALTER DEFAULT PRIVILEGES FOR ROLE w_owner GRANT SELECT ON TABLES TO w_gone", "ALTER DEFAULT PRIVILEGES FOR ROLE postgres REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA w GRANT SELECT ON TABLES TO w_gone",
    ),
    st.ReassignOwned: ("REASSIGN OWNED BY w_gone TO w_owner", "REASSIGN OWNED BY w_owner TO w_else", "REASSIGN OWNED BY postgres TO w_owner", "REASSIGN OWNED BY CURRENT_USER TO w_owner"),
    st.DropOwned: ("DROP OWNED BY w_gone", "DROP OWNED BY w_else CASCADE", "DROP OWNED BY postgres"),
    st.AlterDefaults: (
        "ALTER ROLE w_target SET work_mem = '1MB'", "ALTER ROLE CURRENT_USER SET work_mem = '1MB'", "ALTER ROLE ALL SET work_mem = '1MB'", "ALTER DATABASE postgres SET work_mem = '1MB'", "ALTER DATABASE w_db SET work_mem = '1MB'",
        "ALTER ROLE CURRENT_USER SET log_statement = 'none'", "ALTER ROLE w_target RESET ALL", "ALTER ROLE w_super SET work_mem = '1MB'", "ALTER ROLE w_target IN DATABASE w_db SET work_mem = '1MB'", "ALTER DATABASE w_db RESET work_mem",
        "ALTER ROLE CURRENT_USER SET app.thing = '1'", "ALTER ROLE ALL IN DATABASE w_db SET work_mem = '1MB'",
    ),
    st.CreateDatabase: (("CREATE DATABASE n", "DROP DATABASE n"), ("CREATE DATABASE n OWNER w_owner", "DROP DATABASE n"), ("CREATE DATABASE n TEMPLATE w_db", "DROP DATABASE n"), ("CREATE DATABASE postgres", _READ)),
    st.AlterDatabase: (
        ("ALTER DATABASE w_db REFRESH COLLATION VERSION", _READ),"ALTER DATABASE w_db WITH CONNECTION LIMIT 5", "ALTER DATABASE w_db OWNER TO w_owner", "ALTER DATABASE w_db OWNER TO w_target", "ALTER DATABASE postgres OWNER TO w_owner"),
    st.DropDatabase: (("DROP DATABASE w_db", "CREATE DATABASE w_db OWNER w_owner"), ("DROP DATABASE IF EXISTS absent", _READ), ("DROP DATABASE postgres", _READ)),
    st.CreateExtension: ("CREATE EXTENSION hstore", "CREATE EXTENSION bloom", "CREATE EXTENSION citext", "CREATE EXTENSION IF NOT EXISTS citext"),
    st.AlterExtension: ("ALTER EXTENSION citext SET SCHEMA w", "ALTER EXTENSION citext UPDATE"),
    st.DropExtension: ("DROP EXTENSION citext", "DROP EXTENSION IF EXISTS absent"),
    st.AlterLargeObject: ("ALTER LARGE OBJECT 90001 OWNER TO w_owner", "ALTER LARGE OBJECT 90001 OWNER TO w_target"),
    st.SetVariable: (
        ("SET work_mem = '4MB'", None), ("SET LOCAL log_statement = 'none'", _READ), ("SET session_replication_role = replica", None), ("SET ROLE w_target", None), ("SET ROLE w_owner", None),
        ("SET SESSION AUTHORIZATION w_owner", None), ("RESET log_statement", None), ("SET app.thing = 1", None), ("SET LOCAL lc_messages = 'C'", _READ), ("SET max_connections = 3", None),
    ),
    st.ShowVariable: (("SHOW data_directory", _READ), ("SHOW work_mem", _READ), ("SHOW hba_file", _READ)),
    st.Prepare: ("PREPARE n AS SELECT a FROM w.t",),
    st.DeclareCursor: (("DECLARE n CURSOR FOR SELECT a FROM w.t", None), ("DECLARE n CURSOR FOR SELECT a FROM w.v FOR UPDATE", None)),
    st.ExecutePrepared: (("EXECUTE w_read", _READ), ("EXECUTE w_write", None)),
    st.Fetch: (("FETCH w_cursor", None),),
    st.CloseCursor: (("CLOSE ALL", None),),
    st.Deallocate: (("DEALLOCATE ALL", None),),
    st.Discard: (("DISCARD PLANS", _READ), ("DISCARD TEMP", _READ)),
    st.SetConstraints: (("SET CONSTRAINTS ALL DEFERRED", _READ),),
    st.Transaction: (("SAVEPOINT n", None),),
    st.SetTransaction: (("SET TRANSACTION READ WRITE", _READ),),
    st.Notify: (("NOTIFY n", _READ), ("LISTEN n", None)),
    st.Skip: (("DROP FUNCTION IF EXISTS w.absent()", _READ), ("ALTER TABLE IF EXISTS w.absent ADD x int", _READ)),
}  # fmt: skip


def _case(of: type, text: _Text) -> Case:
    sql, undo = (text, None) if isinstance(text, str) else text
    return Case(of, sql, undo)


_READERS: Final = (
    "postgres", "w_owner", "w_member", "w_both", "h_select", "h_select_a", "h_read_write", "h_read_delete", "h_option", "h_option_a",
    "h_create_select", "h_createdb_owner", "h_owner_target", "h_bypassrls", "h_read_all",
)  # fmt: skip
_SUBSCRIBER: Final = ("postgres", "h_read_write")


@dataclass(frozen=True, slots=True)
class OwnCase:
    """A statement that PostgreSQL lacks: who may, by review; all others are answered 42501. ``block``: what everybody is answered in a block."""

    of: type
    sql: str
    may: Sequence[str]
    block: str = ""


OWN: Final = (
    OwnCase(st.Subscribe, "SUBSCRIBE (SELECT a FROM w.t) UP TO now()", _READERS),
    OwnCase(st.DeclareSubscribe, "DECLARE n CURSOR FOR SUBSCRIBE (SELECT a FROM w.t)", _READERS),
    OwnCase(st.CreateSubscription, "CREATE SUBSCRIPTION n FOR (SELECT a FROM w.t)", _READERS, "25001"),
    OwnCase(st.AcknowledgeSubscription, "ALTER SUBSCRIPTION w_feed ACKNOWLEDGE 1", _SUBSCRIBER),
    OwnCase(st.Subscribe, "SUBSCRIBE TO SUBSCRIPTION w_feed UP TO now()", _SUBSCRIBER),
    OwnCase(st.DropSubscription, "DROP SUBSCRIPTION w_feed", _SUBSCRIBER, "25001"),
    OwnCase(st.CreateSource, "CREATE SOURCE n FROM RATE (rows_per_second = 1)", ("postgres",)),
    OwnCase(st.AlterSource, "ALTER SOURCE w_ticks PAUSE", ("postgres",)),
    OwnCase(st.DropSource, "DROP SOURCE w_ticks", ("postgres",)),
    OwnCase(st.CreateTimeline, "CREATE TIMELINE n", ("postgres",)),
    OwnCase(st.DropTimeline, "DROP TIMELINE w_line", ("postgres",)),
    OwnCase(st.QueryStatement, "SELECT a FROM w.t AS OF SYSTEM TIME now()", _READERS),
)

OWN_SETUP: Final = (
    "SET SESSION AUTHORIZATION h_read_write", "CREATE SUBSCRIPTION w_feed FOR (SELECT a FROM w.t)", "RESET SESSION AUTHORIZATION",
    "CREATE SOURCE w_ticks FROM RATE (rows_per_second = 1)", "CREATE TIMELINE w_line",
)  # fmt: skip

CASES: Final = tuple(_case(of, text) for of, texts in CASES_BY_CLASS.items() for text in texts)

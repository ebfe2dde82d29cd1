"""What the walk of rights walks over: roles that have one right each, and an object of each kind that is somebody else's.

w_owner     owns schema w and all in it but what begins with "elses", which w_else owns
w_member    is a member of w_owner, w_distant one that inherits nothing, w_both of w_owner and of w_else
h_...       has one right, on everything of its kind in w: USAGE on the schema is everybody's but h_closed's, which has all the others
w_stranger  has nothing else
"""

from __future__ import annotations

from typing import Final

OWNERS: Final = ("w_owner", "w_member", "w_distant", "w_both", "w_else")
STRANGER: Final = "w_stranger"

_TABLES: Final = "w.t, w.v, w.nested, w.iv, w.m, w.p, w.p1, w.free, w.elses, w.ref, w.k, w.ser, w.rls"
HOLDERS: Final[dict[str, tuple[str, ...]]] = {
    "h_closed": (
        f"GRANT ALL ON {_TABLES} TO h_closed", "GRANT ALL ON SEQUENCE w.s, w.elses_s TO h_closed",
        "GRANT EXECUTE ON ALL ROUTINES IN SCHEMA w TO h_closed",
    ),
    "h_select": (f"GRANT SELECT ON {_TABLES} TO h_select",),
    "h_select_a": ("GRANT SELECT (a) ON w.t, w.v, w.nested, w.p, w.rls, w.k TO h_select_a",),
    "h_select_c": ("GRANT SELECT (c) ON w.v, w.nested TO h_select_c",),
    "h_insert": (f"GRANT INSERT ON {_TABLES} TO h_insert",),
    "h_insert_a": ("GRANT INSERT (a) ON w.t, w.v, w.nested, w.p, w.rls, w.k TO h_insert_a",),
    "h_update": (f"GRANT UPDATE ON {_TABLES} TO h_update",),
    "h_update_a": ("GRANT UPDATE (a) ON w.t, w.v, w.nested, w.p, w.rls, w.k TO h_update_a",),
    "h_delete": (f"GRANT DELETE ON {_TABLES} TO h_delete",),
    "h_read_write": (f"GRANT SELECT, INSERT, UPDATE ON {_TABLES} TO h_read_write",),
    "h_read_delete": (f"GRANT SELECT, DELETE ON {_TABLES} TO h_read_delete",),
    "h_truncate": (f"GRANT TRUNCATE ON {_TABLES} TO h_truncate",),
    "h_references": (f"GRANT REFERENCES ON {_TABLES} TO h_references",),
    "h_references_id": ("GRANT REFERENCES (id) ON w.t, w.ref TO h_references_id",),
    "h_trigger": (f"GRANT TRIGGER ON {_TABLES} TO h_trigger",),
    "h_trigger_execute": (
        f"GRANT TRIGGER ON {_TABLES} TO h_trigger_execute",
        "GRANT EXECUTE ON FUNCTION w.trf() TO h_trigger_execute",
    ),
    "h_option": (f"GRANT SELECT ON {_TABLES} TO h_option WITH GRANT OPTION",),
    "h_option_a": ("GRANT SELECT (a) ON w.t TO h_option_a WITH GRANT OPTION",),
    "h_sequence_usage": ("GRANT USAGE ON SEQUENCE w.s, w.elses_s TO h_sequence_usage",),
    "h_sequence_select": ("GRANT SELECT ON SEQUENCE w.s, w.elses_s TO h_sequence_select",),
    "h_sequence_update": ("GRANT UPDATE ON SEQUENCE w.s, w.elses_s TO h_sequence_update",),
    "h_execute": ("GRANT EXECUTE ON ALL ROUTINES IN SCHEMA w TO h_execute",),
    "h_type": ("GRANT USAGE ON TYPE w.e, w.c, w.d, w.r, w.elses_e TO h_type",),
    "h_create": ("GRANT CREATE ON SCHEMA w TO h_create",),
    "h_create_type": (
        "GRANT CREATE ON SCHEMA w TO h_create_type",
        "GRANT USAGE ON TYPE w.e, w.c, w.d, w.r, w.elses_e TO h_create_type",
    ),
    "h_create_references": (
        "GRANT CREATE ON SCHEMA w TO h_create_references",
        f"GRANT REFERENCES ON {_TABLES} TO h_create_references",
    ),
    "h_create_select": (
        "GRANT CREATE ON SCHEMA w TO h_create_select", f"GRANT SELECT ON {_TABLES} TO h_create_select",
    ),
    "h_create_execute": (
        "GRANT CREATE ON SCHEMA w TO h_create_execute",
        "GRANT EXECUTE ON ALL ROUTINES IN SCHEMA w TO h_create_execute",
    ),
    "h_database": ("GRANT CREATE ON DATABASE postgres TO h_database",),
    "h_temporary": ("GRANT TEMPORARY ON DATABASE postgres TO h_temporary",),
    "h_createrole": ("ALTER ROLE h_createrole CREATEROLE",),
    "h_createdb": ("ALTER ROLE h_createdb CREATEDB",),
    "h_createdb_owner": ("ALTER ROLE h_createdb_owner CREATEDB", "GRANT w_owner TO h_createdb_owner"),
    "h_replication": ("ALTER ROLE h_replication REPLICATION",),
    "h_bypassrls": ("ALTER ROLE h_bypassrls BYPASSRLS", f"GRANT ALL ON {_TABLES} TO h_bypassrls"),
    "h_admin": ("GRANT w_target TO h_admin WITH ADMIN OPTION",),
    "h_target": ("GRANT w_target TO h_target",),
    "h_owner_target": ("GRANT w_owner, w_target TO h_owner_target",),
    "h_large_read": ("GRANT SELECT ON LARGE OBJECT 90001 TO h_large_read",),
    "h_large_write": ("GRANT UPDATE ON LARGE OBJECT 90001 TO h_large_write",),
    "h_foreign": (
        "GRANT USAGE ON FOREIGN DATA WRAPPER w_wrapper TO h_foreign",
        "GRANT USAGE ON FOREIGN SERVER w_server, w_elses_server TO h_foreign",
    ),
    "h_read_all": ("GRANT pg_read_all_data TO h_read_all",),
    "h_write_all": ("GRANT pg_write_all_data TO h_write_all",),
    "h_read_files": ("GRANT pg_read_server_files TO h_read_files",),
    "h_write_files": ("GRANT pg_write_server_files TO h_write_files",),
    "h_checkpoint": ("GRANT pg_checkpoint TO h_checkpoint",),
    "h_monitor": ("GRANT pg_monitor TO h_monitor",),
    "h_read_settings": ("GRANT pg_read_all_settings TO h_read_settings",),
    "h_read_stats": ("GRANT pg_read_all_stats TO h_read_stats",),
    "h_signal": ("GRANT pg_signal_backend TO h_signal",),
}  # fmt: skip
"""Roles that have one right, or two that are worth nothing apart: how they came to it."""

ACTORS: Final = ("postgres", *OWNERS, *HOLDERS, STRANGER)

ROLES: Final = (
    *(f"CREATE ROLE {name} LOGIN" for name in ("w_owner", "w_else", "w_member", "w_both", STRANGER, *HOLDERS)),
    "CREATE ROLE w_distant LOGIN NOINHERIT", "CREATE ROLE w_target", "CREATE ROLE w_gone", "CREATE ROLE w_super SUPERUSER",
    "GRANT w_owner TO w_member, w_distant, w_both", "GRANT w_else TO w_both",
)  # fmt: skip

OBJECTS: Final = (
    "REVOKE CREATE, TEMPORARY ON DATABASE postgres FROM PUBLIC",
    "CREATE SCHEMA w AUTHORIZATION w_owner", "CREATE SCHEMA w2 AUTHORIZATION w_owner",
    "CREATE SCHEMA elses AUTHORIZATION w_else",
    "GRANT USAGE ON SCHEMA w, w2, elses TO PUBLIC", "GRANT CREATE ON SCHEMA w TO w_else",
    "SET ROLE w_owner",
    "CREATE TABLE w.t (id int PRIMARY KEY, a int DEFAULT 1, b text)",
    "INSERT INTO w.t VALUES (1, 10, 'x'), (2, 20, 'y')",
    "CREATE INDEX ti ON w.t (a)", "ALTER TABLE w.t ADD CONSTRAINT positive CHECK (a > 0)",
    "CREATE VIEW w.v AS SELECT id, a, b, a + 1 AS c FROM w.t WHERE b <> 'q'",
    "CREATE VIEW w.nested AS SELECT id, a, c, c + 1 AS d FROM w.v",
    "CREATE VIEW w.iv WITH (security_invoker = true) AS SELECT id, a, b FROM w.t",
    "CREATE MATERIALIZED VIEW w.m AS SELECT id, a FROM w.t",
    "CREATE TABLE w.p (id int, a int) PARTITION BY LIST (a)",
    "CREATE TABLE w.p1 PARTITION OF w.p FOR VALUES IN (1)", "CREATE INDEX pi ON w.p (id)",
    "CREATE TABLE w.free (id int, a int)", "CREATE INDEX fi ON w.p1 (a)",
    "CREATE TABLE w.ref (id int PRIMARY KEY)", "CREATE TABLE w.k (a int REFERENCES w.ref)",
    "CREATE TABLE w.ser (id serial, x int)", "CREATE SEQUENCE w.s",
    "CREATE TABLE w.rls (a int, b text)", "ALTER TABLE w.rls ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY pol ON w.rls USING (a > 0)",
    "CREATE FUNCTION w.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION w.g() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'",
    "CREATE FUNCTION w.definer() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*) FROM w.t'",
    "CREATE FUNCTION w.step(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + $2'",
    "CREATE PROCEDURE w.pr() LANGUAGE plpgsql AS 'BEGIN NULL; END'",
    "CREATE AGGREGATE w.agg (int) (SFUNC = w.step, STYPE = int, INITCOND = '0')",
    "CREATE FUNCTION w.trf() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "REVOKE EXECUTE ON ALL ROUTINES IN SCHEMA w FROM PUBLIC",
    "CREATE TRIGGER tr BEFORE INSERT ON w.ser FOR EACH ROW EXECUTE FUNCTION w.trf()",
    "CREATE TYPE w.e AS ENUM ('x')", "CREATE TYPE w.c AS (x int)",
    "CREATE DOMAIN w.d AS int CONSTRAINT dc CHECK (VALUE > 0)",
    "CREATE TYPE w.r AS RANGE (SUBTYPE = int)",
    "REVOKE USAGE ON TYPE w.e, w.c, w.d, w.r FROM PUBLIC",
    "CREATE TEXT SEARCH CONFIGURATION w.conf (COPY = pg_catalog.simple)",
    "CREATE TEXT SEARCH DICTIONARY w.dict (TEMPLATE = simple)",
    "CREATE STATISTICS w.st ON id, a FROM w.t",
    "RESET ROLE", "CREATE OPERATOR FAMILY w.opf USING btree", "ALTER OPERATOR FAMILY w.opf USING btree ADD OPERATOR 1 < (int4, int2)",
    "CREATE OPERATOR CLASS w.opc FOR TYPE int4 USING btree AS OPERATOR 1 <", "ALTER OPERATOR CLASS w.opc USING btree OWNER TO w_owner",
    "ALTER OPERATOR FAMILY w.opf USING btree OWNER TO w_owner", "CREATE FOREIGN DATA WRAPPER w_wrapper", "CREATE SERVER w_server FOREIGN DATA WRAPPER w_wrapper",
    "CREATE SERVER w_elses_server FOREIGN DATA WRAPPER w_wrapper", "GRANT USAGE ON FOREIGN DATA WRAPPER w_wrapper TO w_owner",
    "ALTER SERVER w_server OWNER TO w_owner", "ALTER SERVER w_elses_server OWNER TO w_else",
    "CREATE USER MAPPING FOR PUBLIC SERVER w_server", "CREATE USER MAPPING FOR h_foreign SERVER w_server", "SET ROLE w_owner",
    "CREATE FOREIGN TABLE w.ft (a int, b text) SERVER w_server", "CREATE CONVERSION w.cv FOR 'LATIN1' TO 'UTF8' FROM iso8859_1_to_utf8", 'CREATE COLLATION w.co FROM "C"',
    "SELECT lo_create(90001)",
    "RESET ROLE", "SET ROLE w_else",
    "CREATE TABLE w.elses (id int, a int)", "CREATE SEQUENCE w.elses_s", "CREATE TYPE w.elses_e AS ENUM ('x')",
    "CREATE VIEW w.elses_v AS SELECT 1 AS x", "REVOKE USAGE ON TYPE w.elses_e FROM PUBLIC",
    "CREATE FUNCTION w.elses_f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE PROCEDURE w.elses_p() LANGUAGE plpgsql AS 'BEGIN NULL; END'",
    "RESET ROLE", "REVOKE CREATE ON SCHEMA w FROM w_else",
    "CREATE DATABASE w_db OWNER w_owner", "CREATE EXTENSION citext",
)  # fmt: skip

SETUP: Final = (*ROLES, *OBJECTS, *(statement for grants in HOLDERS.values() for statement in grants))

"""What a catalog holds of users' objects, in words that PostgreSQL and Holdfast share: names instead of oids, temporary schemas without their number.

DEFINITIONS   "class" -> SELECT … FROM pg_class …     ->  [("s", "t0", "r", …), …] in any order
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DEFINITIONS: Final[Mapping[str, str]] = {
    "schemas": "SELECT nspname, pg_get_userbyid(nspowner), nspacl::text FROM pg_namespace WHERE oid >= 16384 AND nspname !~ '^pg_(toast_)?temp'",
    "relations": "SELECT nspname, relname, relkind, relpersistence, relnatts, relchecks, relrowsecurity, relforcerowsecurity, relispartition, relreplident, "
    "reloftype::regtype, pg_get_expr(relpartbound, c.oid), reloptions, pg_get_userbyid(relowner), relacl::text, relispopulated, reltype::regtype, amname "
    "FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace LEFT JOIN pg_am a ON a.oid = relam WHERE c.oid >= 16384 AND nspname !~ '^pg_toast'",
    "columns": "SELECT attrelid::regclass, attnum, CASE WHEN relkind NOT IN ('i', 'I') THEN attname END, format_type(atttypid, atttypmod), attnotnull, atthasdef, attisdropped, "
    "CASE WHEN NOT attisdropped THEN attidentity END, "
    "attgenerated, attislocal, attinhcount, attlen, attbyval, attalign, attcollation::regcollation, attacl::text "
    "FROM pg_attribute JOIN pg_class c ON c.oid = attrelid JOIN pg_namespace n ON n.oid = relnamespace WHERE attrelid >= 16384 AND nspname !~ '^pg_toast'",
    "defaults": "SELECT adrelid::regclass, adnum, pg_get_expr(adbin, adrelid) FROM pg_attrdef",
    "types": "SELECT oid::regtype, typtype, typcategory, typlen, typbyval, typalign, typstorage, typarray::regtype, typelem::regtype, typrelid::regclass, "
    "typbasetype::regtype, typtypmod, typndims, typnotnull, typdefault, typcollation::regcollation, "
    "CASE WHEN oid::regtype::text !~ 'multirange' THEN pg_get_userbyid(typowner) END, typacl::text, typinput "
    "FROM pg_type WHERE oid >= 16384 AND typnamespace::regnamespace::text !~ '^pg_toast'",
    "labels": "SELECT enumtypid::regtype, enumsortorder, enumlabel FROM pg_enum",
    "ranges": "SELECT rngtypid::regtype, rngsubtype::regtype, rngmultitypid::regtype, rngcanonical, rngsubdiff FROM pg_range WHERE rngtypid >= 16384",
    "routines": "SELECT oid::regprocedure, prokind, pg_get_function_result(oid), pg_get_function_arguments(oid), provolatile, proisstrict, prosecdef, proretset, "
    "proparallel, proconfig, prosrc, pg_get_function_sqlbody(oid), "
    "CASE WHEN prosrc !~ '_constructor' THEN pg_get_userbyid(proowner) || ' ' || coalesce(proacl::text, '') END FROM pg_proc p WHERE oid >= 16384 "
    "AND NOT EXISTS (SELECT FROM pg_depend WHERE deptype = 'e' AND (classid, objid) = ('pg_proc'::regclass, p.oid))",
    "constraints": "SELECT conname, connamespace::regnamespace, conrelid::regclass, contypid::regtype, contype, condeferrable, condeferred, convalidated, conislocal, "
    "coninhcount, connoinherit, conkey, confkey, confrelid::regclass, conindid::regclass, confupdtype, confdeltype, pg_describe_object('pg_constraint'::regclass, conparentid, 0), "
    "pg_get_constraintdef(oid) FROM pg_constraint WHERE oid >= 16384",
    "indexes": "SELECT indexrelid::regclass, indrelid::regclass, indnatts, indnkeyatts, indisunique, indisprimary, indisexclusion, indimmediate, indisvalid, "
    "indnullsnotdistinct, indkey::text, indoption::text, pg_get_indexdef(indexrelid), pg_get_expr(indpred, indrelid) FROM pg_index WHERE indexrelid >= 16384 "
    "AND indrelid::regclass::text !~ '^pg_toast'",
    "index texts": "SELECT schemaname, tablename, indexname, indexdef FROM pg_indexes WHERE schemaname ~ '^(s|pg_temp)'",
    "triggers": "SELECT tgrelid::regclass, tgname, tgtype, tgenabled, tgattr::text, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
    "policies": "SELECT schemaname, tablename, policyname, permissive, roles, cmd, qual, with_check FROM pg_policies",
    "views": "SELECT schemaname, viewname, viewowner, definition FROM pg_views WHERE schemaname ~ '^(s|pg_temp)'",
    "materialized views": "SELECT schemaname, matviewname, matviewowner, ispopulated, definition FROM pg_matviews",
    "partitioned tables": "SELECT partrelid::regclass, partstrat, partnatts, partdefid::regclass, partattrs::text, pg_get_partkeydef(partrelid) FROM pg_partitioned_table",
    "partitions": "SELECT inhrelid::regclass, inhparent::regclass, inhseqno, inhdetachpending FROM pg_inherits WHERE inhrelid >= 16384",
    "sequences": "SELECT seqrelid::regclass, seqtypid::regtype, seqstart, seqincrement, seqmax, seqmin, seqcache, seqcycle FROM pg_sequence",
    "configurations": "SELECT cfgnamespace::regnamespace, cfgname, pg_get_userbyid(cfgowner) FROM pg_ts_config WHERE oid >= 16384",
    "extensions": "SELECT extname, extnamespace::regnamespace FROM pg_extension WHERE oid >= 16384",
    "comments": "SELECT pg_describe_object(classoid, objoid, objsubid), description FROM pg_description WHERE objoid >= 16384 "
    "AND classoid <> 'pg_extension'::regclass",
    "default rights": "SELECT defaclnamespace::regnamespace, defaclobjtype, defaclacl::text FROM pg_default_acl",
    "dependencies": "SELECT deptype, pg_describe_object(classid, objid, objsubid), pg_describe_object(refclassid, refobjid, refobjsubid) FROM pg_depend d "
    "WHERE objid >= 16384 AND classid NOT IN ('pg_cast'::regclass, 'pg_default_acl'::regclass, 'pg_amop'::regclass, 'pg_amproc'::regclass) AND pg_describe_object(classid, objid, objsubid) !~ 'pg_toast|RI_ConstraintTrigger' "
    "AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.deptype = 'e' AND (e.classid, e.objid) = (d.classid, d.objid))",
}  # fmt: skip
"""What is compared, by what it is about. Triggers of foreign keys, the members of extensions and what toast tables are is each server's own. Where a server keeps ``relhasindex`` and its like until VACUUM, these are left out."""

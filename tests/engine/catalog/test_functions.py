"""System functions answer as PostgreSQL's: the same queries on both, over the same objects."""

from __future__ import annotations

import re

import pytest

from sqllogictest.client import ServerError
from tests.engine.catalog.conftest import OBJECTS
from tests.engine.catalog.test_psql import needs_psql, psql
from tests.support.server import ServerProcess

OTHER = "catalog_of_functions"

# One query a line; none shows an oid that is not a built-in one.
COMPARED = r"""
SELECT pg_get_indexdef('emp_name'::regclass), pg_get_indexdef('emp_name'::regclass, 0, true)
SELECT pg_get_indexdef('emp_name'::regclass, 1, true), pg_get_indexdef('emp_name'::regclass, 9, true), pg_get_indexdef(1)
SELECT pg_get_indexdef('sales.orders_by_emp'::regclass, 0, true), pg_get_indexdef('"Odd Name_a_key"'::regclass)
SELECT pg_get_viewdef('rich'::regclass), pg_get_viewdef('rich'::regclass, true), pg_get_viewdef('sales.notes')
SELECT pg_get_viewdef('emp'::regclass), pg_get_viewdef(1::oid)
SELECT pg_get_ruledef(oid), pg_get_ruledef(oid, true) FROM pg_rewrite WHERE ev_class = 'rich'::regclass
SELECT conname, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) FROM pg_constraint WHERE conrelid = 'emp'::regclass ORDER BY 1
SELECT adnum, pg_get_expr(adbin, adrelid), pg_get_expr(adbin, adrelid, true) FROM pg_attrdef ORDER BY adrelid, adnum
SELECT pg_get_constraintdef(1), pg_get_expr(adbin, 99999) FROM pg_attrdef LIMIT 1
SELECT pg_get_userbyid(10), pg_get_userbyid(99)
SELECT pg_table_is_visible('emp'::regclass), pg_table_is_visible('sales.orders'::regclass), pg_table_is_visible(99999)
SELECT pg_type_is_visible('int4'::regtype), pg_function_is_visible(1397), pg_operator_is_visible(96), pg_opclass_is_visible(1978)
SELECT relname, pg_type_is_visible(reltype) FROM pg_class WHERE relname IN ('emp', 'orders', 'notes') ORDER BY 1
SELECT relname, format_type(reltype, NULL), reltype::regtype FROM pg_class WHERE relname IN ('emp', 'orders', 'Odd Name') ORDER BY 1
SELECT obj_description('emp'::regclass), obj_description('emp'::regclass, 'pg_class'), obj_description('emp'::regclass, 'pg_proc')
SELECT col_description('emp'::regclass, 2), col_description('emp'::regclass, 1), obj_description('sales'::regnamespace, 'pg_namespace')
SELECT shobj_description(10, 'pg_authid'), obj_description(1, 'no_such_catalog')
SELECT format_type(1043, 24), format_type(1700, 655366), format_type(13224, -1), format_type(NULL, NULL), format_type(0, 0), format_type(99999, 1)
SELECT pg_get_function_arguments(oid), pg_get_function_identity_arguments(oid), pg_get_function_result(oid) FROM pg_proc WHERE proname IN ('abs', 'concat', 'parse_ident', 'make_interval', 'rank', 'percentile_cont', 'json_each') ORDER BY oid
SELECT pg_get_functiondef('abs(int)'::regprocedure), pg_get_functiondef('pg_get_keywords'::regproc), pg_get_functiondef(1)
SELECT pg_get_function_arg_default('parse_ident'::regproc, 2), pg_get_function_arg_default('parse_ident'::regproc, 1)
SELECT pg_get_serial_sequence('emp', 'id'), pg_get_partkeydef('emp'::regclass), pg_get_triggerdef(1), pg_get_function_sqlbody(1)
SELECT pg_encoding_to_char(6), pg_encoding_to_char(8), pg_encoding_to_char(99), pg_char_to_encoding('utf-8'), pg_char_to_encoding('Latin1'), pg_char_to_encoding('nope')
SELECT pg_describe_object(1259, 'emp'::regclass, 0), pg_describe_object(1259, 'emp'::regclass, 2), pg_describe_object(1259, 'sales.orders'::regclass, 0)
SELECT pg_describe_object('pg_namespace'::regclass, 'sales'::regnamespace, 0), pg_describe_object(1260, 10, 0), pg_describe_object(1255, 1397, 0)
SELECT acldefault('r', 10), acldefault('d', 10), acldefault('n', 10), acldefault('f', 10), acldefault('c', 10)
SELECT (aclexplode(acldefault('d', 10))).*
SELECT has_table_privilege('bob', 'emp', 'select'), has_table_privilege('emp', 'SELECT WITH GRANT OPTION, insert'), has_table_privilege(99999, 'select')
SELECT has_table_privilege('bob', 'pg_class', 'select'), has_table_privilege('bob', 'pg_authid', 'select'), has_table_privilege('bob', 'pg_class', 'delete')
SELECT has_schema_privilege('bob', 'public', 'usage'), has_schema_privilege('bob', 'public', 'create'), has_schema_privilege('bob', 'sales', 'usage')
SELECT has_database_privilege('bob', current_database(), 'connect'), has_database_privilege('bob', current_database(), 'create')
SELECT has_function_privilege('bob', 'abs(int)', 'execute'), has_column_privilege('bob', 'emp', 'name', 'select'), has_column_privilege('emp', 9::int2, 'select')
SELECT has_any_column_privilege('emp', 'update'), has_type_privilege('bob', 'int4', 'usage'), has_language_privilege('bob', 'sql', 'usage')
SELECT pg_has_role('bob', 'postgres', 'member'), pg_has_role('bob', 'bob', 'usage'), pg_has_role('postgres', 'bob', 'member')
SELECT p, pg_index_column_has_property('emp_name'::regclass, 1, p), pg_index_column_has_property('emp_name'::regclass, 2, p) FROM unnest('{asc,desc,nulls_first,nulls_last,orderable,distance_orderable,returnable,search_array,search_nulls,nope}'::text[]) p
SELECT p, pg_index_has_property('emp_pkey', p) FROM unnest('{clusterable,index_scan,bitmap_scan,backward_scan,nope}'::text[]) p
SELECT p, pg_indexam_has_property(403, p), pg_indexam_has_property(405, p) FROM unnest('{can_order,can_unique,can_multi_col,can_exclude,can_include,nope}'::text[]) p
SELECT pg_relation_is_publishable('emp'), pg_relation_is_updatable('emp', true), pg_column_is_updatable('emp', 1::int2, true), pg_relation_filenode('rich')
SELECT count(*), sum(length(word)), max(catdesc), min(baredesc) FROM pg_get_keywords()
SELECT * FROM pg_options_to_table('{a=b,c}')
SELECT pg_size_pretty(pg_relation_size('rich')), pg_relation_size(99999), pg_database_size(99999::oid)
SELECT count(*) FROM pg_partition_ancestors('emp')
SELECT pg_tablespace_location(1663), pg_is_in_recovery(), pg_my_temp_schema(), inet_client_addr(), inet_client_port() > 0
SELECT i, (x).x, (x).n FROM (SELECT indexrelid::regclass i, information_schema._pg_expandarray(indkey) x FROM pg_index WHERE indrelid = 'emp'::regclass) s ORDER BY 1, 2, 3
SELECT information_schema._pg_char_max_length(1043, 24), information_schema._pg_char_octet_length(25, -1), information_schema._pg_numeric_scale(1700, 655366), information_schema._pg_datetime_precision(1186, -1)
SELECT to_regclass('emp'), to_regclass('sales.orders'), to_regclass('nope'), to_regtype('integer'), to_regproc('now'), to_regrole('bob'), to_regnamespace('sales')
SELECT attname, format_type(atttypid, atttypmod), attnotnull, atthasdef, attndims, attlen, attstorage FROM pg_attribute WHERE attrelid = 'emp'::regclass ORDER BY attnum
SELECT typname[0], typname[99] FROM pg_type WHERE typname = 'int4'
SELECT * FROM information_schema.columns WHERE table_name IN ('rich', 'orders') AND table_catalog IS NOT NULL AND ordinal_position > 0 AND data_type <> '' AND column_name <> '' AND is_updatable = 'YES' AND table_catalog = 'x'
SELECT column_name, data_type, character_maximum_length, numeric_precision, column_default, is_nullable FROM information_schema.columns WHERE table_name = 'emp' ORDER BY ordinal_position
SELECT domain_name, data_type, character_octet_length, numeric_precision, datetime_precision FROM information_schema.domains ORDER BY 1
SELECT viewname, definition FROM pg_views WHERE schemaname IN ('public', 'sales') ORDER BY 1
SELECT pg_typeof(a), a::oid FROM (SELECT 'emp'::regclass a) s WHERE a::oid = 1
""".strip().splitlines()

# What fails, fails with PostgreSQL's SQLSTATE.
FAILING = {
    "SELECT has_table_privilege('emp', 'fly')": "22023",
    "SELECT has_table_privilege('nobody', 'emp', 'select')": "42704",
    "SELECT has_table_privilege('nope', 'select')": "42P01",
    "SELECT has_schema_privilege('nope', 'usage')": "3F000",
    "SELECT has_database_privilege('nope', 'connect')": "3D000",
    "SELECT has_column_privilege('emp', 'nope', 'select')": "42703",
    "SELECT pg_has_role('bob', 'postgres', 'fly')": "22023",
    "SELECT pg_get_serial_sequence('nope', 'id')": "42P01",
    "SELECT pg_get_serial_sequence('emp', 'nope')": "42703",
    "SELECT pg_get_functiondef('sum(int)'::regprocedure)": "42809",
    "SELECT pg_database_size('nope')": "3D000",
    "SELECT pg_get_viewdef('nope')": "42P01",
    "SELECT acldefault('?', 10)": "22023",
}


def _blocks(lines: list[str]) -> list[str]:
    return "\n".join(lines).split("-- next\n")


@needs_psql
def test_functions_answer_as_postgresql(server: ServerProcess, postgres: str) -> None:
    found = re.search(r"port=(\d+)", postgres)
    if found is None:
        pytest.skip("the PostgreSQL to compare with is not reached by a port")
    port = int(found.group(1))
    script = ["\\pset format unaligned", "\\pset null NULL"]
    for query in COMPARED:
        script += ["\\echo '-- next'", query + ";"]
    ours = _blocks(psql(server.port, script))
    psql(port, [f"CREATE DATABASE {OTHER};"])
    try:
        psql(port, [OBJECTS], database=OTHER)
        theirs = _blocks(psql(port, script, database=OTHER))
    finally:
        psql(port, [f"DROP DATABASE {OTHER};", "DROP ROLE bob;"])
    differing = [
        f"{query}\nours:   {mine}\ntheirs: {other}"
        for query, mine, other in zip(COMPARED, ours[1:], theirs[1:], strict=True)
        if mine != other
    ]
    assert not differing, "\n".join(differing)


@pytest.mark.parametrize("query", list(FAILING))
def test_errors_have_the_sqlstate_of_postgresql(server: ServerProcess, query: str) -> None:
    with pytest.raises(ServerError) as caught:
        server.sql(query)
    assert caught.value.sqlstate == FAILING[query]


def test_sizes_and_estimates_follow_the_table(server: ServerProcess) -> None:
    client = server.connect()
    client.run("CREATE TABLE sized (a int PRIMARY KEY, b text)")
    client.run("INSERT INTO sized SELECT i, 'some text' FROM generate_series(1, 200) i")
    rows = client.run(
        "SELECT pg_relation_size('sized') > 0, pg_total_relation_size('sized') = pg_table_size('sized'),"
        " pg_database_size('postgres') >= pg_relation_size('sized')"
    ).rows
    assert rows == [("t", "t", "t")]
    live = client.run("SELECT n_live_tup FROM pg_stat_user_tables WHERE relname = 'sized'").rows
    assert live == [("200",)]
    client.run("DROP TABLE sized")
    client.close()


def test_a_session_can_be_cancelled_and_ended(server: ServerProcess) -> None:
    victim, other = server.connect(), server.connect()
    pid = victim.run("SELECT pg_backend_pid()").rows[0][0]
    assert other.run(f"SELECT pg_cancel_backend({pid})").rows == [("t",)]
    assert victim.run("SELECT 1").rows == [("1",)]
    assert other.run("SELECT pg_cancel_backend(99999), pg_terminate_backend(99999)").rows == [("f", "f")]
    assert other.run(f"SELECT pg_terminate_backend({pid})").rows == [("t",)]
    with pytest.raises((ServerError, ConnectionError)):
        victim.run("SELECT 1")
    victim.close()
    other.close()

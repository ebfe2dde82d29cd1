"""The shapes of catalog queries that drivers, ORMs and BI tools send are answered.

Each query here has the structure of what one client family asks: set-returning functions in the select list, row
values, laterals over arrays, recursive type walks, catalog names as regclass parameters.
"""

from __future__ import annotations

import pytest

from tests.support.server import ServerProcess

QUERIES: dict[str, tuple[str, list[tuple[str | None, ...]]]] = {
    # primary key columns, with the key's positions expanded in the select list (JDBC getPrimaryKeys)
    "jdbc keys": (
        """SELECT k.column_name, (k.keys).n FROM (
             SELECT a.attname AS column_name, a.attnum, information_schema._pg_expandarray(i.indkey) AS keys
             FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON c.oid = a.attrelid
             JOIN pg_catalog.pg_index i ON a.attrelid = i.indrelid
             WHERE c.relname = 'emp' AND i.indisprimary) k
           WHERE k.attnum = (k.keys).x""",
        [("id", "1")],
    ),
    # foreign keys, column by column (JDBC getImportedKeys)
    "jdbc foreign keys": (
        """SELECT pkc.relname, pka.attname, fkc.relname, fka.attname, pos.n, con.confupdtype, con.confdeltype,
             con.conname, pkic.relname, con.condeferrable AND con.condeferred
           FROM pg_namespace pkn, pg_class pkc, pg_attribute pka, pg_class fkc, pg_attribute fka, pg_constraint con,
             generate_series(1, 32) pos(n), pg_class pkic
           WHERE pkn.oid = pkc.relnamespace AND pkc.oid = pka.attrelid AND pka.attnum = con.confkey[pos.n]
             AND con.confrelid = pkc.oid AND fkc.oid = fka.attrelid AND fka.attnum = con.conkey[pos.n]
             AND con.conrelid = fkc.oid AND con.contype = 'f' AND pkic.relkind = 'i' AND pkic.oid = con.conindid
           ORDER BY con.conname, pos.n""",
        [
            ("emp", "id", "orders", "emp_id", "1", "a", "d", "seller", "emp_pkey", "f"),
            ("emp", "id", "shift", "emp", "1", "r", "c", "shift_emp_fkey", "emp_pkey", "f"),
            ("emp", "id", "shift", "swapped_with", "1", "a", "a", "swap", "emp_pkey", "t"),
        ],
    ),
    # foreign keys in the standard's words (Metabase, Sequelize)
    "standard foreign keys": (
        """SELECT r.constraint_name, k.column_name, u.table_name, u.column_name, r.match_option, r.update_rule,
             r.delete_rule, k.position_in_unique_constraint
           FROM information_schema.referential_constraints r
           JOIN information_schema.key_column_usage k USING (constraint_schema, constraint_name)
           JOIN information_schema.constraint_column_usage u USING (constraint_schema, constraint_name)
           ORDER BY 1""",
        [
            ("seller", "emp_id", "emp", "id", "NONE", "NO ACTION", "SET DEFAULT", "1"),
            ("shift_emp_fkey", "emp", "emp", "id", "NONE", "RESTRICT", "CASCADE", "1"),
            ("swap", "swapped_with", "emp", "id", "FULL", "NO ACTION", "NO ACTION", "1"),
        ],
    ),
    # index columns through pg_get_indexdef, with the option bit of each position (JDBC getIndexInfo)
    "jdbc indexes": (
        """SELECT x.name, pg_get_indexdef(x.oid, x.n, false), CASE x.indoption[x.n - 1] & 1 WHEN 1 THEN 'D' ELSE 'A' END
           FROM (SELECT ci.relname AS name, ci.oid, i.indoption, (information_schema._pg_expandarray(i.indkey)).n AS n
                 FROM pg_index i JOIN pg_class ci ON ci.oid = i.indexrelid WHERE i.indrelid = 'emp'::regclass) x
           ORDER BY 1, x.n""",
        [("emp_name", "name", "D"), ("emp_name", "salary", "A"), ("emp_pkey", "id", "A")],
    ),
    # which schema of the search path a type is in (JDBC type cache)
    "jdbc types": (
        """SELECT t.typinput = 'pg_catalog.array_in'::regproc, t.typname FROM pg_type t LEFT JOIN
             (SELECT n.oid AS nspoid, r.r FROM pg_namespace n JOIN
               (SELECT s.r, (current_schemas(false))[s.r] AS nspname
                FROM generate_series(1, array_upper(current_schemas(false), 1)) AS s(r)) r USING (nspname)) p
             ON p.nspoid = t.typnamespace WHERE t.oid = 1043 ORDER BY p.r, t.oid DESC""",
        [("f", "varchar")],
    ),
    # constraint columns in key order by a lateral over an array with ordinality (Django)
    "django constraints": (
        """SELECT c.conname, array(SELECT a.attname FROM unnest(c.conkey) WITH ORDINALITY k(attnum, position)
             JOIN pg_attribute a ON a.attnum = k.attnum WHERE a.attrelid = c.conrelid ORDER BY k.position), c.contype
           FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid
           WHERE t.relname = 'emp' AND pg_table_is_visible(t.oid) ORDER BY 1""",
        [("emp_pkey", "{id}", "p"), ("salary_positive", "{name,salary}", "c")],
    ),
    # two arrays of an index side by side (Django)
    "django indexes": (
        """SELECT x.relname, array_agg(x.attname ORDER BY x.position) FROM (
             SELECT c2.relname, a.attname, k.position
             FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey, i.indoption) WITH ORDINALITY k(attnum, option, position)
             JOIN pg_class c2 ON c2.oid = i.indexrelid
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
             WHERE i.indrelid = 'emp'::regclass) x GROUP BY 1 ORDER BY 1""",
        [("emp_name", "{name,salary}"), ("emp_pkey", "{id}")],
    ),
    # key columns by subscripts of the vector (Rails)
    "rails keys": (
        """SELECT a.attname FROM (SELECT indrelid, indkey, generate_subscripts(indkey, 1) idx FROM pg_index
             WHERE indrelid = '"emp"'::regclass AND indisprimary) i
           JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[i.idx] ORDER BY i.idx""",
        [("id",)],
    ),
    # arrays of types by three conversions of each element (pgcli)
    "pgcli functions": (
        "SELECT coalesce(proallargtypes::regtype[], proargtypes::regtype[])::text[] FROM pg_proc WHERE oid = 1397",
        [("[0:0]={integer}",)],
    ),
    # privileges by composed names (Metabase)
    "metabase privileges": (
        """SELECT t.tablename, has_any_column_privilege(current_user,
             '"' || replace(t.schemaname, '"', '""') || '"."' || replace(t.tablename, '"', '""') || '"', 'update')
           FROM pg_tables t WHERE t.schemaname IN ('public', 'sales')
             AND has_schema_privilege(current_user, t.schemaname, 'usage') ORDER BY 1""",
        [("Odd Name", "t"), ("emp", "t"), ("orders", "t"), ("shift", "t")],
    ),
    # a recursive walk from a type to what it is made of (asyncpg)
    "asyncpg types": (
        """WITH RECURSIVE walk(oid, name, elem, depth) AS (
             SELECT oid, typname, typelem, 0 FROM pg_type WHERE oid = any('{1009}'::oid[])
             UNION ALL SELECT t.oid, t.typname, t.typelem, w.depth + 1 FROM pg_type t, walk w WHERE t.oid = w.elem)
           SELECT name, elem::regtype::text FROM walk ORDER BY depth DESC""",
        [("text", "-"), ("_text", "text")],
    ),
    # row comparisons between catalogs (DataGrip)
    "datagrip columns": (
        """SELECT a.attname, pg_get_expr(d.adbin, a.attrelid) FROM pg_attribute a LEFT JOIN pg_attrdef d
             ON (a.attrelid, a.attnum) = (d.adrelid, d.adnum)
           WHERE a.attrelid = 'emp'::regclass AND a.attnum BETWEEN 1 AND 2 ORDER BY a.attnum""",
        [("id", None), ("name", "'x'::character varying")],
    ),
    # the standard's views joined with one another (Sequelize, Metabase)
    "standard keys": (
        """SELECT tc.constraint_name, kcu.column_name, format('%I.%I', tc.table_schema, tc.table_name)::regclass
           FROM information_schema.table_constraints tc JOIN information_schema.key_column_usage kcu
             ON tc.constraint_name = kcu.constraint_name AND tc.table_schema = kcu.table_schema
           WHERE tc.constraint_type = 'PRIMARY KEY' ORDER BY 1""",
        [("emp_pkey", "id", "emp"), ("orders_pkey", "id", "sales.orders")],
    ),
    # who is connected (Grafana, Npgsql)
    "activity": (
        "SELECT usename, state, client_addr, wait_event FROM pg_stat_activity WHERE pid = pg_backend_pid()",
        [("postgres", "active", "127.0.0.1", None)],
    ),
}


@pytest.mark.parametrize("name", list(QUERIES))
def test_client_queries_are_answered(server: ServerProcess, name: str) -> None:
    query, expected = QUERIES[name]
    assert server.sql(query) == expected


def test_regclass_parameters_read_names(server: ServerProcess) -> None:
    client = server.connect()
    client.run("PREPARE find (regclass) AS SELECT relname FROM pg_class WHERE oid = $1")
    assert client.run("EXECUTE find ('sales.orders')").rows == [("orders",)]
    client.close()


def test_plans_of_catalog_queries_see_later_ddl(server: ServerProcess) -> None:
    client = server.connect()
    query = "SELECT count(*) FROM pg_class WHERE relname LIKE 'later%'"
    assert client.run(query).rows == [("0",)]
    client.run("CREATE TABLE later1 (a int)")
    assert client.run(query).rows == [("1",)]
    client.run("CREATE TEMPORARY TABLE pg_class (relname text)")
    client.run("SET search_path = pg_temp, public, pg_catalog")
    assert client.run(query).rows == [("0",)]
    client.run("RESET search_path")
    client.run("DROP TABLE pg_temp.pg_class, later1")
    assert client.run(query).rows == [("0",)]
    client.close()


def test_lock_table_needs_a_block_and_shows_in_pg_locks(server: ServerProcess) -> None:
    client, other = server.connect(), server.connect()
    client.run("BEGIN")
    client.run("LOCK TABLE emp IN EXCLUSIVE MODE")
    held = other.run("SELECT mode, granted FROM pg_locks WHERE relation = 'emp'::regclass").rows
    assert held == [("AccessExclusiveLock", "t")]
    other.run("SET lock_timeout = '100ms'")
    with pytest.raises(Exception, match="55P03"):
        other.run("UPDATE emp SET name = 'y'")
    assert other.run("SELECT count(*) >= 0 FROM emp").rows == [("t",)]  # readers never wait
    client.run("ROLLBACK")
    with pytest.raises(Exception, match="25P01"):
        client.run("LOCK TABLE emp")
    client.close()
    other.close()

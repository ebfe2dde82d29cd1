"""Expressions of extended statistics run with the rights of the table's owner, whoever runs ANALYZE; all rows are counted.

Recorded from PostgreSQL 15, but for functions that read tables: their statistics have no figures here, which a WARNING says.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.server import ServerProcess

ROLE = "statistics_owner"


@pytest.fixture
def table(server: ServerProcess) -> Iterator[ServerProcess]:
    server.sql(f"CREATE ROLE {ROLE}; CREATE SCHEMA stat_s AUTHORIZATION {ROLE}")
    server.sql(
        f"SET ROLE {ROLE}; CREATE TABLE stat_s.t (a int, b int); INSERT INTO stat_s.t SELECT i % 4, i % 2 FROM generate_series(1, 100) i"
    )
    yield server
    server.sql(f"DROP OWNED BY {ROLE} CASCADE; DROP ROLE {ROLE}")


def _function(body: str) -> str:
    return (
        f"SET ROLE {ROLE}; CREATE FUNCTION stat_s.f(x int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN {body} RETURN x; END $$;"
        "CREATE STATISTICS stat_s.s ON (stat_s.f(a)), b FROM stat_s.t"
    )


@pytest.mark.parametrize("statement", ["ANALYZE stat_s.t", "VACUUM ANALYZE stat_s.t", "ANALYZE"])
def test_who_analyzes_lends_the_owner_no_rights(table: ServerProcess, statement: str) -> None:
    table.sql(_function("RAISE EXCEPTION 'as %', current_user;"))
    with psycopg.connect(table.url, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.RaiseException, match=f"as {ROLE}"):
            connection.execute(statement)
        assert connection.execute("SELECT current_user").fetchone() == ("postgres",)


def test_what_an_expression_sets_does_not_stay(table: ServerProcess) -> None:
    table.sql(_function("PERFORM set_config('search_path', 'stat_s', false);"))
    with psycopg.connect(table.url, autocommit=True) as connection:
        before = connection.execute("SHOW search_path").fetchone()
        connection.execute("ANALYZE stat_s.t")
        assert connection.execute("SHOW search_path").fetchone() == before
        [found] = connection.execute("SELECT n_distinct FROM pg_stats_ext WHERE statistics_name = 's'")
        assert found == ('{"2, -1": 4}',)


def test_an_expression_does_not_become_somebody_else(table: ServerProcess) -> None:
    table.sql(_function("PERFORM set_config('role', 'postgres', false);"))
    with (
        psycopg.connect(table.url, autocommit=True) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="within security-restricted operation"),
    ):
        connection.execute("ANALYZE stat_s.t")


def test_functions_that_the_owner_may_not_call(table: ServerProcess) -> None:
    table.sql("CREATE FUNCTION stat_s.closed(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1'")
    table.sql("CREATE STATISTICS stat_s.s ON (stat_s.closed(a)), b FROM stat_s.t")
    table.sql("REVOKE EXECUTE ON FUNCTION stat_s.closed FROM PUBLIC")
    with (
        psycopg.connect(table.url, autocommit=True) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for function closed"),
    ):
        connection.execute("ANALYZE stat_s.t")


def test_functions_that_read_tables_leave_no_figures_and_a_warning(table: ServerProcess) -> None:
    table.sql(_function("PERFORM rolpassword FROM pg_authid;"))
    heard: list[str] = []
    with psycopg.connect(table.url, autocommit=True) as connection:
        connection.add_notice_handler(lambda notice: heard.append(str(notice.message_primary)))
        connection.execute("ANALYZE stat_s.t")
        assert heard == ['statistics object "s" could not be computed for relation "stat_s.t"']
        assert connection.execute(
            "SELECT count(*) FROM pg_stats_ext WHERE n_distinct IS NOT NULL"
        ).fetchone() == (0,)


def test_all_rows_are_counted_whatever_policies_and_rights_say(table: ServerProcess) -> None:
    table.sql(
        f"SET ROLE {ROLE}; CREATE STATISTICS stat_s.s ON (a + b), a, b FROM stat_s.t;"
        "CREATE POLICY p ON stat_s.t USING (a = 1 / (b - b)); ALTER TABLE stat_s.t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;"
        f"REVOKE ALL ON stat_s.t FROM {ROLE}"
    )
    table.sql(f"SET ROLE {ROLE}; ANALYZE stat_s.t")
    [(found,)] = table.sql(
        "SELECT sum(frequency) FROM pg_statistic_ext_data, pg_mcv_list_items(stxdmcv) WHERE stxdmcv IS NOT NULL"
    )
    assert float(found) == pytest.approx(1)


def test_columns_and_expressions_of_every_kind_have_figures(table: ServerProcess) -> None:
    table.sql(
        f"SET ROLE {ROLE}; CREATE DOMAIN stat_s.d AS int CHECK (VALUE >= 0);"
        "CREATE TABLE stat_s.k (gone int, a stat_s.d, b text[], c jsonb, g int GENERATED ALWAYS AS (5) STORED); ALTER TABLE stat_s.k DROP gone;"
        "INSERT INTO stat_s.k SELECT i % 3, ARRAY[(i % 2)::text], jsonb_build_object('k', i % 4) FROM generate_series(1, 40) i;"
        "CREATE STATISTICS stat_s.k ON a, b, (c ->> 'k'), (g + a) FROM stat_s.k; ANALYZE stat_s.k"
    )
    [(found,)] = table.sql("SELECT n_distinct FROM pg_stats_ext WHERE statistics_name = 'k'")
    assert found == (
        '{"2, 3": 6, "2, -1": 12, "2, -2": 3, "3, -1": 4, "3, -2": 6, "-1, -2": 12, "2, 3, -1": 12, "2, 3, -2": 6, "2, -1, -2": 12, '
        '"3, -1, -2": 12, "2, 3, -1, -2": 12}'
    )
    table.sql(
        f"SET ROLE {ROLE}; CREATE TABLE stat_s.p (a int, b int) PARTITION BY LIST (b); CREATE TABLE stat_s.q (b int, z int, a int);"
        "ALTER TABLE stat_s.q DROP z; ALTER TABLE stat_s.p ATTACH PARTITION stat_s.q FOR VALUES IN (1);"
        "CREATE TABLE stat_s.o PARTITION OF stat_s.p DEFAULT; INSERT INTO stat_s.p SELECT i % 5, i % 2 FROM generate_series(1, 200) i;"
        "CREATE STATISTICS stat_s.p ON (a % 3), b FROM stat_s.p; ANALYZE stat_s.p"
    )
    assert table.sql("SELECT n_distinct, inherited FROM pg_stats_ext WHERE statistics_name = 'p'") == [
        ('{"2, -1": 6}', "t")
    ]

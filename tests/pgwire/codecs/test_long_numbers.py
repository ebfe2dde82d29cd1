"""Numbers of thousands of digits wherever a value's text holds one: an answer or an error of PostgreSQL's, never Python's."""

from __future__ import annotations

import asyncio

import pytest

from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import text_input
from pgwire.codecs.text import BEYOND, int_of
from planner.base.errors import SqlError
from planner.facts import facts
from planner.types.facts import FIRST_USER_OID
from tests.support.engine import Failed, Session, open_database
from txn.persist.memory import MemoryDisk

N = "9" * 5000
FORMS = (
    "N", "-N", "+N", "1.N", "1eN", "(N,N)", "[N:N]={1}", "{N}", "N/N", "[N,N)", "N:N:N", "N-N-N", "2020-01-01 00:00:00.N",
    "2020-01-01 00:00+N", "N days", "PNY", "N:1", "a:N", "'a':NA", "a <N> b", "$.a[N]", "$.**{N}", "10.0.0.1/N", "N.1.1.1",
    "postgres=N/x", "N,N,N", "<(N,N),N>", "$N.N", "JN", "N BC", "now N", "BN", "12:N", "12:00:N", "N:00", "2020-N", "2020-01-N",
    "Jan N", "P1YNM", "PTNS", "1 day N:N", "N.5 days", "@ N ago",
)  # fmt: skip


@pytest.mark.parametrize(
    "form",  # every second one in make test, all in make proofs
    [pytest.param(form, marks=[pytest.mark.long] if number % 2 else []) for number, form in enumerate(FORMS)],
)
def test_every_type_reads_or_refuses(form: str) -> None:
    text = form.replace("N", N)
    for oid in [
        oid for oid in facts().types if oid < FIRST_USER_OID
    ]:  # others are those of databases of other tests
        try:
            text_input(oid, text)
        except (DataError, SqlError):
            pass


def test_numbers_are_read_as_they_are_or_as_beyond_every_bound() -> None:
    assert int_of("-7") == -7
    assert int_of("+" + "0" * 5000 + "7") == 7
    assert int_of("-" + "0" * 5000) == 0
    assert int_of(N) == BEYOND
    assert int_of("-" + N) == -BEYOND


EXPRESSIONS = (
    "SELECT to_date('N', 'YYYY')", "SELECT to_date('N', 'FMYYYY')", "SELECT to_date('N,123', 'Y,YYY')", "SELECT to_timestamp('N', 'FMSS')",
    "SELECT to_timestamp('1:N', 'FMHH:FMMI')", "SELECT to_date('-N', 'FMYYYY')", "SELECT to_number('N', 'S9')", "SELECT to_char(N, '9')",
    "SELECT format('%N$s', 1)", "SELECT format('%Ns', 1)", "SELECT '{\"a\": 1}'::jsonb #> '{N}'", "SELECT '[1]'::jsonb #> '{-N}'",
    "SELECT jsonb_set('[1]', '{N}', '2')", "SELECT '[1]'::json #>> '{N}'", "SELECT 'a' ~ 'a{N}'", "SELECT regexp_replace('a', 'a', '\\N')",
    "SELECT '[1]'::jsonb @? '$[N]'", "SELECT parse_ident('N')", "SELECT set_config('work_mem', 'N', true)", "SET LOCAL work_mem = N",
    "SET statement_timeout = 'N ms'", "SET TIME ZONE 'ABCN'", "SELECT 1 LIMIT N", "SELECT 1 OFFSET N", "SELECT now() - 'N'::interval",
    "CREATE SEQUENCE s INCREMENT N", "CREATE SEQUENCE s START N", "ALTER ROLE postgres CONNECTION LIMIT N", "SELECT 'a'::varchar(N)",
    "SELECT 1::numeric(N)", "CREATE TABLE n (a int) WITH (fillfactor = N)", "SELECT pg_size_bytes('N kB')", "SELECT has_table_privilege('N', 'r')",
    "SELECT 'N'::regclass", "SELECT 'N'::regtype", "SELECT to_regclass('N')", "SELECT '(N,1)'::tid", "SELECT width_bucket(N, 1, 2, 3)",
    "SELECT ('{1}'::int[])['N']", "SELECT E'\\\\x1'::bytea, 'N'::bytea", "SELECT chr(N)", "SELECT repeat('a', N)", "SELECT setseed(N)",
    "SELECT 'a':N::tsvector", "SELECT 'a:N'::tsvector", "SELECT setweight('a:N', 'A')", "SELECT make_date(N, 1, 1)", "DECLARE c CURSOR FOR SELECT 1",
    "SELECT 'N:N'::time", "SELECT extract(year FROM 'N-01-01'::date)", "SELECT date_bin('N', now(), now())", "SELECT age('N')", "SELECT N::int",
    "SELECT N % 7", "SELECT factorial(N)", "SELECT gcd(N, N)", "SELECT inet 'N' + 1", "SELECT '\\N'::bytea", "SELECT 'p N'::acldefault",
    "SELECT current_setting('N')", "SELECT lo_get(N)", "SELECT pg_sleep('-N')", "SELECT trim_scale(N)", "SELECT random() < N",
    "SELECT * FROM generate_series(1, 2) LIMIT 'N'", "COPY (SELECT 1) TO STDOUT (FORMAT csv, DELIMITER 'N')", "SELECT substr('a', N)",
)  # fmt: skip


def test_every_clause_and_function_reads_or_refuses() -> None:
    async def main() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        wrong: list[str] = []
        for sql in EXPRESSIONS:
            try:
                await session.run(sql.replace("N", N))
            except Failed as error:
                wrong += [sql] if error.report.sqlstate == "XX000" else []
            except ValueError:  # of a statement that no server reports for
                wrong.append(sql)
        await database.close()
        assert not wrong

    asyncio.run(main())

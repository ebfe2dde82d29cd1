"""Random PL/pgSQL functions beside PostgreSQL 15: result, error and notices with all their fields, and what the tables hold afterwards.

``HOLDFAST_DIFF=20000`` asks that many, ``HOLDFAST_SEEDS=1-4`` so many of each seed; ``make plpgsql`` keeps figures
(``HOLDFAST_EVIDENCE``), and adds those of seeds that it has none of to those that it has.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.differential.generated_plpgsql import ROWS, SCHEMA, TABLES, Program, Programs
from tests.differential.test_generated import seeds_of
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]

COUNT = int(os.environ.get("HOLDFAST_DIFF", "40"))
SEEDS = seeds_of(os.environ.get("HOLDFAST_SEEDS", "1"))
EVERY = 250
EVIDENCE = os.environ.get("HOLDFAST_EVIDENCE", "")
Field = psycopg.pq.DiagnosticField
FIELDS = (
    Field.SEVERITY, Field.SQLSTATE, Field.MESSAGE_PRIMARY, Field.MESSAGE_DETAIL, Field.MESSAGE_HINT, Field.COLUMN_NAME, Field.TABLE_NAME,
    Field.SCHEMA_NAME, Field.CONSTRAINT_NAME, Field.DATATYPE_NAME, Field.CONTEXT,
)  # fmt: skip
UNNAMED = re.compile(r"(<unnamed portal|__Case__Variable_) ?\d+")
"""PostgreSQL counts them as long as a session lasts, and by its own bookkeeping."""
REFUSED = "is not supported"
NO_TEXT = "failed to find conversion function from unknown to text"
SORTED = "is not a simply updatable scan"
OPENED = re.compile(r" at OPEN(\n|$)")
FETCHED = re.compile(r" at (FETCH|MOVE)(\n|$)")
Fields = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a statement ended: the error, "" for none, its notices, names of columns and rows."""

    error: Fields = ()
    notices: tuple[Fields, ...] = ()
    names: tuple[str, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()

    @property
    def state(self) -> str:
        """SQLSTATE."""
        return self.error[1] if self.error else ""


class Side:
    """A connection that tells how statements end."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.notices: list[Fields] = []
        connection.pgconn.notice_handler = self._noticed

    def _noticed(self, result: psycopg.pq.abc.PGresult) -> None:
        self.notices.append(_fields(result))

    def ask(self, sql: str) -> Ended:
        """Run a statement."""
        self.notices = []
        done = self.connection.pgconn.exec_(sql.encode())
        notices = tuple(self.notices)
        if done.status == psycopg.pq.ExecStatus.FATAL_ERROR:
            return Ended(error=_fields(done), notices=notices)
        values = [[done.get_value(r, c) for c in range(done.nfields)] for r in range(done.ntuples)]
        return Ended(
            notices=notices,
            names=tuple((done.fname(c) or b"").decode() for c in range(done.nfields)),
            rows=tuple(tuple(None if v is None else v.decode() for v in row) for row in values),
        )

    def run(self, program: Program) -> list[Ended]:
        """Define and call a function, read the tables, and undo it all."""
        if program.commits:
            return self._run_alone(program)
        self.connection.pgconn.exec_(b"BEGIN")
        ends = [self.ask(program.definition)]
        if not ends[0].error:
            self.connection.pgconn.exec_(b"SAVEPOINT called")
            ends.append(self.ask(program.call))
            if ends[1].error:
                self.connection.pgconn.exec_(b"ROLLBACK TO called")
            ends += [self.ask(f"SELECT * FROM {table} ORDER BY 1, 2") for table in TABLES]
        self.connection.pgconn.exec_(b"ROLLBACK")
        return ends

    def _run_alone(self, program: Program) -> list[Ended]:
        """As ``run`` for what ends transactions."""
        ends = [self.ask(program.definition)]
        if not ends[0].error:
            ends.append(self.ask(program.call))
            ends += [self.ask(f"SELECT * FROM {table} ORDER BY 1, 2") for table in TABLES]
            for undo in ("DROP PROCEDURE gp", *(f"DELETE FROM {table}" for table in TABLES), ROWS):
                self.connection.execute(undo)
        return ends


def _fields(result: psycopg.pq.abc.PGresult) -> Fields:
    found = [result.error_field(code) or b"" for code in FIELDS]
    return tuple(UNNAMED.sub(r"\1", value.decode()) for value in found)


CASES = (
    # an assignment whose subscripts or value hold a sub-select is one query, and so are its errors
    "DECLARE a int[]; b int[] := '{1,2}'; BEGIN a[(SELECT 1)] := 4; a[(SELECT 2):(SELECT 3)] := (SELECT '{7,8}'::int[]); RAISE NOTICE '%', a; b[(SELECT id FROM gp_t)] := 1; END",
    "DECLARE p gp_pt[]; r gp_t; q record; BEGIN p[(SELECT 1)].x := (SELECT 5); r.a[(SELECT min(id) FROM gp_t)] := p[(SELECT 1)].x;"
    " SELECT p AS p INTO q; q.p[(SELECT 2)].y := 'k'; RAISE NOTICE '% % %', p, r, q; END",
    "DECLARE j jsonb := '{}'; BEGIN j['a'][(SELECT 0)] := '7'; RAISE NOTICE '%', j; END",
    "DECLARE a int[]; z int := 0; BEGIN a[(SELECT 1)] := 1/z; END",
    "DECLARE a int[]; z int := 0; BEGIN a[(SELECT 1/z)] := 1; END",
    "DECLARE a int[]; z text := 'x'; BEGIN a[1] := (SELECT z); END",
    "DECLARE s gp_seg; BEGIN s.ps[(SELECT 1)].x := (SELECT 3); s.m[(SELECT 2)] := 1/0; END",
    # what is constant fails while the expression is planned, whatever stands around it
    "DECLARE a int[]; z int := 0; BEGIN a[1/z] := 1; END",
    "DECLARE a int[]; z int := 0; BEGIN a[1/0] := z; END",
    "DECLARE z int := 0; BEGIN PERFORM z > 1 AND 1/0 = 1; END",
    "DECLARE z int := 0; r record := row(z, 1/0); BEGIN NULL; END",
    "DECLARE z int := 0; BEGIN IF z > 1 AND 1/0 = 1 THEN NULL; END IF; END",
    "DECLARE z int := 0; BEGIN IF false AND 1/0 = z THEN NULL; END IF; RAISE NOTICE '% %', coalesce(1, z, 1/0), CASE WHEN false THEN 1/0 ELSE z END; END",
    "DECLARE z int := 0; BEGIN RAISE NOTICE '%', coalesce(z, 1/0); END",
    "DECLARE z int := 0; BEGIN RAISE NOTICE '%', CASE WHEN z = 1 THEN 1/0 ELSE z END; END",
    "DECLARE z int := gp_half(1/0); BEGIN NULL; END",
    "DECLARE z int := 3; BEGIN CASE z WHEN 1, 1/0 THEN NULL; ELSE NULL; END CASE; END",
    "DECLARE p gp_dpt := (-2, 'q')::gp_dpt; BEGIN NULL; END",
    "DECLARE k int; BEGIN k := '{}'::int[]::text::int; END",
    "DECLARE p gp_pos; BEGIN p := -1; END",
    "DECLARE p gp_pos; BEGIN p := 3000000000; END",
    "DECLARE p gp_pos[]; BEGIN p[1] := -1; END",
    # where the conversion of a constant fails: while it is analysed (a literal), planned, or run
    *(f"DECLARE n {t}; BEGIN n := {v}; END" for t, v in (
        ("int[]", "'{a}'::text[]"), ("varchar(2)[]", "'{abc}'"), ("date", "'x'::text"), ("int", "date '2020-01-01'"), ("int[]", "'{x}'::text"),
        ("regclass", "'nope'"), ("int4range", "'[2,1)'"), ("jsonb", "'{'"), ("gp_pos[]", "'{-1}'"), ("time", "'x'::text"),
    )),
    *(f"DECLARE n int[]; r gp_t; p gp_pt[]; BEGIN {a}; END" for a in (
        "n[1] := 'x'", "n['x'] := 1", "r.n := 'x'", "r.a := 'x'", "r.a[1] := 'x'", "p[1].x := 'x'", "p[1] := 'x'", "n[nope] := 1",
    )),
    # all operands of what is strict are computed, and no subscript of a NULL
    *(f"DECLARE p int; q int := 0; a int[]; BEGIN RAISE NOTICE '%', {e}; END" for e in (
        "p + 1/q", "p = gp_half(1)", "NULLIF(p, 1/q)", "(p, 2) < (1/q, 3)", "1/q = ANY (a)", "p BETWEEN 1 AND 1/q", "a[1/q]", "a[p:1/q]",
    )),
    "DECLARE p int; BEGIN CASE p WHEN 3 THEN NULL; WHEN gp_half(1) THEN NULL; ELSE NULL; END CASE; END",
    # arrays of records are arrays of a composite type, one by one
    *(f"DECLARE p gp_pt[]; d gp_dpt[]; s gp_seg; BEGIN {a}; RAISE NOTICE '% % %', p, d, s; END" for a in (
        "p := ARRAY[row(1, 'a'), row(2, NULL)]", "p := ARRAY(SELECT row(id, s) FROM gp_t)", "p[1:2] := ARRAY[row(1, 'a'), row(3, 'c')]",
        "p := ARRAY[row(1, 'a', 3)]", "p := ARRAY[row('x', 'a')]", "d := ARRAY[row(-1, 'a')]", "s := (NULL, ARRAY[(2, 'b')], ARRAY[3])",
        "SELECT ARRAY[row(1, 'a')] INTO p",
    )),
    # a domain over an array is none to FOREACH, and no row has a %TYPE
    "DECLARE d gp_ints := '{1,2}'; n int; BEGIN FOREACH n IN ARRAY d || 3 LOOP RAISE NOTICE '%', n; END LOOP; FOREACH n IN ARRAY d LOOP NULL; END LOOP; END",
    "DECLARE r gp_t; q r%TYPE; BEGIN END", "DECLARE r gp_t; q r.n%TYPE; BEGIN END",
    "DECLARE r record; BEGIN SELECT (NULL).* INTO r; END",
    # a field of a record is looked for, even where a column is found
    *(f"DECLARE r record; p gp_pt; BEGIN SELECT 1 a INTO r; {a}; END" for a in (
        "PERFORM r.id FROM gp_t r", "PERFORM r.a FROM gp_t r", "UPDATE gp_t p SET n = 1 WHERE p.id = 1", "PERFORM count(*) FROM gp_t p",
    )),
    # a loop's cursor stays open, and goes on from where FETCH left it
    *(f"DECLARE c CURSOR FOR SELECT id FROM gp_t ORDER BY id; n int; BEGIN FOR r IN c LOOP {a}; RAISE NOTICE '% %', r, n; END LOOP; END" for a in (
        "CLOSE c", "EXECUTE 'CLOSE c'", "EXECUTE 'CLOSE ALL'", "FETCH c INTO n",
    )),
    *(f"DECLARE c {k} CURSOR FOR SELECT id FROM gp_t ORDER BY id; n int; BEGIN OPEN c; FETCH ABSOLUTE 5 FROM c INTO n; MOVE ABSOLUTE {at} FROM c; END" for k in (
        "SCROLL", "NO SCROLL") for at in (5, 6)),
    *(f"DECLARE n text := {v}; BEGIN END" for v in ("format('%s-%L', 1/0, 'bc')", "concat('a', 1/0)", "to_char(now(), 'x') || 1/0")),
    # an assignment of a query is one query, its conversion, too; its columns are counted as such
    *(f"DECLARE q varchar(3); n int NOT NULL := 1; a int[]; BEGIN {a}; END" for a in (
        "q := string_agg(s, '-') FROM gp_t", "n := max(s) FROM gp_t", "n := max(id) FROM gp_t WHERE false", "n := 1, 2", "a[1] := 1, 2", "IF 1, 2 THEN NULL; END IF",
    )),
    *["DECLARE n int; BEGIN n := '2024-02-30'::text::int; END"] * 2,
    # an argument that is converted is no variable that CALL could write
    "DECLARE a int := 1; b varchar(14); BEGIN CALL gp_deep(a, b); END",
    "DECLARE r record; BEGIN SELECT 1 a, 'x'::text b INTO r; CALL gp_deep(r.a, r.b); RAISE NOTICE '%', r; SELECT 1 a, 'x'::varchar b INTO r; CALL gp_deep(r.a, r.b); END",
    # rows that a loop or cursor fetches: CONTEXT names the query only where it cannot be planned
    "DECLARE z int := 0; BEGIN FOR r IN SELECT 1/z FROM gp_t LOOP NULL; END LOOP; END",
    "BEGIN FOR r IN SELECT 1/(id-1) FROM gp_t ORDER BY id LOOP NULL; END LOOP; END",
    "BEGIN FOR r IN SELECT gp_half(id) FROM gp_t ORDER BY id LOOP NULL; END LOOP; END",
    "DECLARE r record; BEGIN FOR r IN EXECUTE 'SELECT 1/(id-1) FROM gp_t ORDER BY id' LOOP NULL; END LOOP; END",
    "DECLARE r record; BEGIN FOR r IN EXECUTE 'SELECT 1/0 FROM gp_t' LOOP NULL; END LOOP; END",
    "BEGIN FOR r IN EXECUTE 'SELECT 1' LOOP NULL; END LOOP; END",
    # what is constant by its parameters fails while the query of a loop is planned, wherever it stands
    *(f"DECLARE v text := 'x'; r record; BEGIN FOR r IN {q} LOOP NULL; END LOOP; END" for q in (
        "SELECT v::int FROM gp_t", "SELECT * FROM generate_series(1, v::int)", "SELECT * FROM gp_rows(v::int)", "VALUES (v::int)", "SELECT FROM gp_t LIMIT v::int",
        "WITH w AS MATERIALIZED (SELECT * FROM gp_rows(v::int)) SELECT * FROM w", "SELECT (SELECT count(*) FROM gp_rows(v::int))", "SELECT id::text::date FROM gp_t WHERE v = 'y'",
    )),
    # what cannot be analysed and has no place in its text
    *(f"DECLARE c refcursor; r record; BEGIN {s}; END" for s in (
        "r := cardinality(NULL)", "PERFORM cardinality(NULL)", "SELECT cardinality(NULL) INTO r", "EXECUTE 'SELECT cardinality(NULL)'", "OPEN c FOR SELECT cardinality(NULL)",
        "OPEN c FOR EXECUTE 'SELECT cardinality(NULL)'", "FOR r IN SELECT cardinality(NULL) LOOP NULL; END LOOP",
    )),
    # a record's field is looked for before the value is computed, once
    "DECLARE r record; BEGIN r.x := 1/0; END",
    "DECLARE r record; z int := 0; BEGIN r := row(1, 2); FOR i IN 1..2 LOOP r.f1 := i; r := row(1); r.f2 := 1/z; END LOOP; END",
    "DECLARE r record; BEGIN SELECT 1 a, 2 b INTO r; FOR i IN 1..2 LOOP r.b := i; SELECT 1 a INTO r; END LOOP; END",
    "DECLARE r gp_t; z int := 0; BEGIN r.zz := 1/z; END",
    # NOT NULL of rows is asked of what is assigned
    "DECLARE r gp_t NOT NULL := (SELECT t FROM gp_t t WHERE id = 1); BEGIN SELECT * INTO r FROM gp_t WHERE id = 9; RAISE NOTICE '%', r; r := NULL; END",
    "DECLARE r gp_t NOT NULL := (SELECT t FROM gp_t t WHERE id = 1); BEGIN FOR r IN SELECT * FROM gp_t WHERE id = 9 LOOP NULL; END LOOP; RAISE NOTICE '%', r; END",
    # ROW_COUNT is that of any query that runs, of expressions, too; CALL leaves it
    "DECLARE n int; k int := 1; BEGIN PERFORM FROM gp_t; CALL gp_twice(k); GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '%', n; k := count(*) FROM gp_t; GET DIAGNOSTICS n = ROW_COUNT;"
    " RAISE NOTICE '%', n; PERFORM FROM gp_t; k := t.id FROM gp_t t WHERE id > 9; GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '%', n; PERFORM FROM gp_t; ASSERT (SELECT true);"
    " GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '%', n; PERFORM FROM gp_t; k := abs(3); GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '%', n; END",
    # cursors over EXECUTE stand on rows
    "DECLARE c refcursor; r record; BEGIN OPEN c FOR EXECUTE 'SELECT n, s FROM gp_t'; MOVE c; UPDATE gp_t SET s = 'cur' WHERE CURRENT OF c RETURNING * INTO r; RAISE NOTICE '%', r;"
    " CLOSE c; OPEN c FOR EXECUTE 'SELECT n, s FROM gp_t WHERE id > $1 FOR UPDATE' USING 1; MOVE 2 FROM c; DELETE FROM gp_t WHERE CURRENT OF c RETURNING * INTO r; RAISE NOTICE '%', r; END",
    # a part of a constant is one, and a strict operator of NULL computes no other operand
    *(f"DECLARE p int := 1; BEGIN IF gp_half(p) > {v} THEN NULL; END IF; END" for v in (
        "(NULL::gp_pt).x", "('(,)'::gp_pt).x", "((NULL::gp_seg).m)[1]", "(('(,,)'::gp_seg).m)[1]", "(NULL::int[])[1]", "(NULL::int[])[p]", "(row(NULL::int, p)).f1",
    )),
    # the head of a loop does not know its variable
    "DECLARE v int := 2; BEGIN FOR v IN v..6 BY v LOOP RAISE NOTICE '%', v; END LOOP; FOR v IN REVERSE v..v - 2 BY v LOOP RAISE NOTICE '%', v; END LOOP; END",
    "DECLARE r gp_t; c CURSOR (k int) FOR SELECT id FROM gp_t WHERE id > k ORDER BY id; BEGIN r.id := 2; FOR r IN c(r.id) LOOP RAISE NOTICE '%', r; END LOOP; END",
    # what an oid is as an integer, in loops, too
    "DECLARE i int; u oid := 4294967295; BEGIN i := u; RAISE NOTICE '%', i; FOR k IN u..1 LOOP RAISE NOTICE '%', k; END LOOP; i := greatest(u, -1); RAISE NOTICE '%', i; END",
    # subscripts are looked at before the value is computed
    *(f"DECLARE a int[]; j jsonb; n int; BEGIN {s}; END" for s in (
        "a[n] := gp_half(2 + n)", "a[1:n] := ARRAY[gp_half(3)]", "j['a'][n] := to_jsonb(gp_half(3))", "UPDATE gp_t SET a[n] = gp_half(3)", "a[n] := 1/0", "a[n] := quote_literal('y')::int", "a[n] := 1/(n - n)",
    )),
    "DECLARE a int[]; BEGIN a[gp_half(4)] := gp_half(8); a[gp_half(3)] := 1; END",
    # the value of a field is a query, its assignment is none
    *(f"DECLARE r gp_dpt := '(1,a)'::gp_pt; q gp_dpt[]; BEGIN {s}; END" for s in ("r.x := (SELECT -5)", "r.x := -5", "r.x := gp_half(-8)", "q[1].x := (SELECT -5)")),
    # a cursor that cannot scroll may go back to where it has not left
    *(f"DECLARE c NO SCROLL CURSOR FOR SELECT id FROM gp_t ORDER BY id; n int; BEGIN OPEN c; {s}; RAISE NOTICE '%', FOUND; END" for s in (
        "MOVE BACKWARD ALL FROM c", "FETCH ABSOLUTE 0 FROM c INTO n; MOVE BACKWARD ALL FROM c", "MOVE c; MOVE BACKWARD ALL FROM c", "MOVE FORWARD ALL FROM c; MOVE BACKWARD ALL FROM c",
        "MOVE BACKWARD 2 FROM c", "FETCH PRIOR FROM c INTO n",
    )),
    # INTO takes a row, and STRICT asks for another: nothing is computed for more, but what sorting needs
    *(f"DECLARE a int; BEGIN {s} RAISE NOTICE '%', a; END" for s in (
        "SELECT gp_noticed(id) INTO a FROM gp_t;", "SELECT gp_noticed(id) INTO STRICT a FROM gp_t;", "SELECT gp_noticed(id) INTO a FROM gp_t ORDER BY s DESC;",
        "SELECT 1/(2 - id) INTO a FROM gp_t;", "SELECT nextval('gp_drawn') INTO a FROM gp_t, generate_series(1, 3000) g; a := currval('gp_drawn');",
        "SELECT max(gp_noticed(id)) INTO a FROM gp_t;", "SELECT gp_noticed(id) INTO a FROM gp_t WHERE id > 9;", "a := gp_noticed(id) FROM gp_t WHERE id < 3;",
        "SELECT gp_noticed(t.id) INTO a FROM gp_t t JOIN gp_t u USING (id) LIMIT 2;",
    )),
    # a variable keeps its cursor's name behind CLOSE, and no other cursor takes it
    "DECLARE c refcursor; n int; BEGIN OPEN c FOR SELECT 1; CLOSE c; FOR r IN SELECT id FROM gp_t ORDER BY id LOOP OPEN c FOR SELECT r.id + 1; FETCH c INTO n; CLOSE c; RAISE NOTICE '%', n; END LOOP; END",
    "DECLARE c refcursor; d refcursor; BEGIN OPEN c FOR SELECT 1; CLOSE c; OPEN d FOR SELECT 2; RAISE NOTICE '%', c = d; OPEN c FOR SELECT 3; CLOSE d; CLOSE c; END",
    # the query of a cursor, or of a loop, begins when its first row is fetched, and computes what is fetched: ten rows, then fifty for a loop
    *(f"DECLARE c CURSOR FOR {q}; r record; BEGIN OPEN c; RAISE NOTICE 'open'; FETCH c INTO r; RAISE NOTICE '%', r; MOVE c; CLOSE c; END" for q in (
        "SELECT gp_noticed(id) FROM gp_t WHERE gp_noticed(id) <> 2", "SELECT 1/(2 - id) FROM gp_t", "SELECT gp_noticed(x) FROM (SELECT gp_noticed(id) x FROM gp_t) s",
        "SELECT gp_noticed(1) UNION ALL SELECT gp_noticed(2)", "WITH w AS MATERIALIZED (SELECT gp_noticed(id) x FROM gp_t) SELECT x FROM w", "SELECT gp_noticed(id) FROM gp_t ORDER BY s",
        "SELECT id FROM gp_t WHERE 1/(2 - id) > 0", "SELECT id FROM gp_t WHERE id = gp_noticed(1)",
    )),
    *(f"DECLARE c CURSOR FOR SELECT {q}; BEGIN OPEN c; RAISE NOTICE 'open'; END" for q in ("1/0", "1/(id - id) FROM gp_t", "id FROM gp_t WHERE 1/0 = id")),
    "DECLARE z int := 0; c refcursor; BEGIN OPEN c FOR SELECT 1/z FROM gp_t; RAISE NOTICE 'open'; END",
    "DECLARE z int := 0; c refcursor; BEGIN OPEN c FOR EXECUTE 'SELECT 1/$1 FROM gp_t' USING z; RAISE NOTICE 'open'; END",
    "DECLARE c refcursor; BEGIN OPEN c FOR EXECUTE 'SELECT 1/(id - 1) FROM gp_t'; RAISE NOTICE 'open'; MOVE c; END",
    "DECLARE c CURSOR FOR SELECT 1/(id - 2) FROM gp_t; n int; BEGIN OPEN c; FETCH c INTO n; BEGIN FETCH c INTO n; EXCEPTION WHEN division_by_zero THEN RAISE NOTICE 'caught'; END;"
    " BEGIN FETCH c INTO n; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '%', SQLERRM; END; CLOSE c; END",
    *(f"DECLARE r record; BEGIN FOR r IN {q} LOOP RAISE NOTICE 'turn %', r; END LOOP; END" for q in (
        "SELECT gp_noticed(g) FROM generate_series(1, 13) g WHERE gp_noticed(g) <> 2", "SELECT 1/(12 - g) FROM generate_series(1, 20) g", "SELECT 1/(3 - g) FROM generate_series(1, 20) g",
        "EXECUTE 'SELECT gp_noticed(g) FROM generate_series(1, 12) g'", "SELECT gp_noticed(id) FROM gp_t LIMIT 2",
    )),
    "DECLARE c CURSOR FOR SELECT gp_noticed(id) FROM gp_t; BEGIN FOR r IN c LOOP RAISE NOTICE 'turn %', r; END LOOP; END",
    # a volatile function in a condition is called for each row, though a key could find them
    *(f"BEGIN PERFORM FROM gp_t WHERE {w}; END" for w in ("id = gp_noticed(1)", "id IN (gp_noticed(1), 2)", "id > gp_noticed(1)", "id BETWEEN gp_noticed(0) AND 2")),
    # it reads what was there when it was opened
    *(f"DECLARE c CURSOR FOR SELECT {q}; n int; BEGIN OPEN c; DELETE FROM gp_t; INSERT INTO gp_t VALUES (7); FETCH c INTO n; RAISE NOTICE '%', n; MOVE FORWARD ALL FROM c; FETCH PRIOR FROM c INTO n;"
      " RAISE NOTICE '%', n; END" for q in ("count(*) FROM gp_t", "id FROM gp_t ORDER BY id", "id + 0 FROM gp_t WHERE id + 0 < 9", "max(t.id) FROM gp_t t JOIN gp_t u USING (id)")),
    # of rows to be locked those that have been changed since are left out
    *(f"DECLARE c CURSOR FOR SELECT id FROM gp_t ORDER BY id FOR UPDATE; n int; BEGIN OPEN c; {change}; FETCH c INTO n; RAISE NOTICE '%', n; UPDATE gp_t SET s = 'here' WHERE CURRENT OF c;"
      " RAISE NOTICE '%', (SELECT array_agg(id ORDER BY id) FROM gp_t WHERE s = 'here'); END" for change in ("UPDATE gp_t SET n = 5 WHERE id = 1", "DELETE FROM gp_t WHERE id < 3", "NULL")),
    # a record's field of a domain is one, wherever the row comes from
    *(f"DECLARE r record; q record; v gp_pos := 2; c refcursor; BEGIN {s} r.p := -1; END" for s in (
        "SELECT id::gp_pos AS p INTO r FROM gp_t;", "EXECUTE 'SELECT id::gp_pos AS p FROM gp_t' INTO r;", "SELECT id::gp_pos AS p INTO q FROM gp_t; r := q; RAISE NOTICE '%', pg_typeof(r.p);",
        "OPEN c FOR SELECT id::gp_pos AS p FROM gp_t; FETCH c INTO r; RAISE NOTICE '%', pg_typeof(r.p);", "OPEN c FOR EXECUTE 'SELECT $1 AS p' USING v; FETCH c INTO r; RAISE NOTICE '%', pg_typeof(r.p);",
        "FOR r IN SELECT id::gp_pos AS p FROM gp_t LOOP RAISE NOTICE '%', pg_typeof(r.p); r.p := -2; END LOOP;", "FOR r IN EXECUTE 'SELECT id::gp_pos AS p FROM gp_t' LOOP r.p := -2; END LOOP;",
        "UPDATE gp_t SET n = 1 WHERE id = 1 RETURNING id::gp_pos AS p INTO r;", "SELECT id::gp_pos AS p INTO r FROM gp_t WHERE false;",
    )),
    *(f"DECLARE r record; v gp_pos := 2; BEGIN r := {row}; RAISE NOTICE '% %', pg_typeof(r.f1), pg_typeof(r.f2); r.f1 := -1; END" for row in ("row(v, v + 1)", "row(1::gp_pos, 2)", "(SELECT row(v, 2))")),
    # a cursor's arguments are the row of a SELECT INTO
    *(f"DECLARE c CURSOR (k int) FOR SELECT id FROM gp_t WHERE id > k; n int; BEGIN PERFORM FROM gp_t WHERE false; {s} GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '% %', n, FOUND; END" for s in (
        "OPEN c(1);", "OPEN c(9); FETCH c INTO n;", "FOR r IN c(3) LOOP GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '% %', n, FOUND; END LOOP;", "FOR r IN c(99) LOOP NULL; END LOOP;",
    )),
    # RETURNING INTO ends behind the second row
    *(f"DECLARE n int; BEGIN {s} RETURNING gp_noticed(id) INTO n; EXCEPTION WHEN too_many_rows THEN GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '% % %', n, FOUND, SQLERRM; END" for s in (
        "UPDATE gp_t SET n = gp_noticed(id)", "DELETE FROM gp_t WHERE id > 0", "INSERT INTO gp_t SELECT gp_noticed(g) FROM generate_series(11, 15) g", "INSERT INTO gp_t (id) VALUES (gp_noticed(11)), (12), (gp_noticed(13))",
        "UPDATE gp_t SET n = 1 WHERE id = 1", "DELETE FROM gp_t WHERE id > 90",
    )),
    # what is constant by its parameters fails while a statement is planned
    *(f"DECLARE u text := 'said7'; n int; BEGIN {s}; END" for s in ("UPDATE gp_t SET n = u::int WHERE id = length('')", "PERFORM FROM gp_t WHERE id = 0 AND n = u::int", "EXECUTE 'DELETE FROM gp_t WHERE id < 0 AND n = $1::int' USING u")),
    # messages of statements tell where they are met, too
    "BEGIN DROP TABLE IF EXISTS gp_none; EXECUTE 'DROP VIEW IF EXISTS gp_none'; CREATE TABLE IF NOT EXISTS gp_t (a int); CREATE VIEW gp_v AS SELECT * FROM gp_pt_of(1); END",
    "BEGIN CREATE TEMP TABLE gp_x (a int); CREATE TEMP VIEW gp_y AS SELECT * FROM gp_x; DROP TABLE gp_x CASCADE; PERFORM gp_noted(); END",
    # after an error in DECLARE its handler tells that variable's line, until the next block has its variables
    "BEGIN\n BEGIN\n  DECLARE\n   z varchar(2) := 'abc';\n  BEGIN\n   NULL;\n  END;\n EXCEPTION WHEN OTHERS THEN\n  RAISE NOTICE 'a';\n  BEGIN\n   RAISE NOTICE 'b';\n  END;\n"
    "  RAISE NOTICE 'c';\n END;\nEND",
)  # fmt: skip
"""DO blocks, by kinds of differences that random functions have found."""

ROUTINES = """
CREATE FUNCTION gp_next() RETURNS SETOF record LANGUAGE plpgsql AS $$ DECLARE n record; BEGIN RETURN NEXT n; END $$;
CREATE FUNCTION gp_nulls() RETURNS SETOF gp_pt LANGUAGE plpgsql AS $$ DECLARE n record; p gp_pt; BEGIN RETURN NEXT p; SELECT 1, 'a'::text INTO n; RETURN NEXT n; n := NULL; RETURN NEXT n; END $$;
CREATE FUNCTION gp_typed() RETURNS SETOF gp_pt LANGUAGE plpgsql AS $$ DECLARE v varchar(7) := 'a'; BEGIN RETURN QUERY SELECT 1, v::char(3); END $$;
CREATE FUNCTION gp_left() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    DECLARE
      z varchar(2) := 'abc';
    BEGIN
      NULL;
    END;
  EXCEPTION WHEN OTHERS THEN
    NULL;
  END;
  RETURN 'x';
END $$;
CREATE FUNCTION gp_same(a anyelement, b int) RETURNS anyelement LANGUAGE plpgsql AS $$ BEGIN RETURN b; END $$;
CREATE FUNCTION gp_given(a anyelement, b int, OUT c anyelement) LANGUAGE plpgsql AS $$ BEGIN c := b; END $$;
CREATE SEQUENCE gp_drawn;
CREATE FUNCTION gp_noticed(v int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'given %', v; RETURN v; END $$;
CREATE FUNCTION gp_noted() RETURNS void LANGUAGE sql AS $$ DROP TABLE IF EXISTS gp_none; DO 'BEGIN DROP TABLE IF EXISTS gp_none; END' $$;
CREATE FUNCTION gp_over() RETURNS SETOF int LANGUAGE plpgsql AS $$ DECLARE r gp_pos := 3; BEGIN RETURN QUERY SELECT r; END $$;
CREATE FUNCTION gp_under() RETURNS SETOF gp_pos LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT id FROM gp_t; END $$;
CREATE FUNCTION gp_both_of() RETURNS TABLE (a gp_pos, b int) LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT 1::gp_pos, 2; RETURN QUERY SELECT 1, 2; END $$;
CREATE FUNCTION gp_asked(v int) RETURNS TABLE (a int, b text) LANGUAGE plpgsql AS $$ BEGIN IF v = 1 THEN RETURN QUERY SELECT gp_noticed(1)::numeric, 'x'; ELSIF v = 2 THEN
 RETURN QUERY EXECUTE 'SELECT gp_noticed($1), 1.5' USING v; ELSIF v = 3 THEN RETURN QUERY SELECT gp_noticed(1); ELSIF v = 4 THEN RETURN QUERY SELECT gp_noticed(1), 'x'; ELSE RETURN QUERY EXECUTE 'SELECT gp_noticed($1)' USING v; END IF; END $$;
CREATE FUNCTION gp_made() RETURNS record LANGUAGE plpgsql AS $$ DECLARE c char(13) := 'a'; v varchar(3) := 'b'; n numeric(5,2) := 1; BEGIN RETURN row(c, v, n); END $$;
CREATE FUNCTION gp_held() RETURNS record LANGUAGE plpgsql AS $$ DECLARE c char(13) := 'a'; q record; r record; BEGIN SELECT c AS c, '{a}'::varchar(4)[] INTO q; r := q; RETURN r; END $$;
CREATE FUNCTION gp_each() RETURNS SETOF record LANGUAGE plpgsql AS $$ DECLARE v char(4) := 'x'; BEGIN RETURN NEXT row(v, 1); RETURN NEXT row('a'::char(2), 1); END $$;
CREATE FUNCTION gp_part() RETURNS text LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN SELECT 'abc'::varchar(3) AS v INTO r; r.v := 'abcd'; RETURN r.v; END $$;
CREATE FUNCTION gp_unset() RETURNS SETOF record LANGUAGE plpgsql AS $$ <<b>> DECLARE "R" record; BEGIN RETURN NEXT b."R"; END $$;
CREATE FUNCTION gp_null() RETURNS SETOF record LANGUAGE plpgsql AS $$ DECLARE r gp_t; BEGIN RETURN NEXT r; END $$;
CREATE FUNCTION gp_other() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN row(1, 2); END $$;
CREATE TRIGGER gp_before BEFORE DELETE ON gp_log FOR EACH STATEMENT EXECUTE FUNCTION gp_other();
CREATE TRIGGER gp_after AFTER DELETE ON gp_log FOR EACH STATEMENT EXECUTE FUNCTION gp_other();
CREATE TRIGGER gp_row AFTER UPDATE ON gp_log FOR EACH ROW EXECUTE FUNCTION gp_other();
INSERT INTO gp_log VALUES (1, 'a');
"""
CALLS = (
    "SELECT * FROM gp_next() AS f(a int)",
    "SELECT * FROM gp_nulls()",
    "SELECT * FROM gp_typed()",
    "SELECT gp_left()",
    *(f"SELECT {f}(5::gp_pos, {v})" for f in ("gp_same", "gp_given") for v in (7, -7)),
    "SELECT *, pg_typeof(one), pg_typeof(two) FROM gp_pair(5::gp_pos)",
    *(f"SELECT * FROM gp_asked({v})" for v in (1, 2, 3, 4, 5)),
    "SELECT n + 1/(id - 2) FROM gp_t WHERE id = 2",
    "SELECT NULL::int + nextval('gp_drawn'), n + nextval('gp_drawn'), currval('gp_drawn') FROM gp_t ORDER BY id",
    "SELECT id, a[1/(id - 2)] FROM gp_t WHERE a IS NULL",
    *(f"SELECT * FROM {f}()" for f in ("gp_over", "gp_under", "gp_both_of")),
    *(
        f"SELECT * FROM gp_made() AS f({c})"
        for c in (
            "a text, b varchar(3), n numeric(5,2)",
            "a char(13), b text, n numeric",
            "a char(13), b varchar, n int",
            "a char(5), b varchar, n numeric",
            "a char(13), b varchar, n numeric",
        )
    ),
    *(
        f"SELECT * FROM gp_held() AS f({c})"
        for c in ("a text, b text", "a char(13), b text", "a char(13), b varchar(4)[]")
    ),
    *(f"SELECT * FROM gp_each() AS f({c})" for c in ("a text, b int", "a char(4), b int", "a bpchar, b int")),
    "SELECT gp_part()",
    "SELECT * FROM gp_unset() AS f(a int)",
    "SELECT * FROM gp_null() AS f(a int)",
    "SELECT * FROM gp_null() AS f(a int, b int, c text, d int[])",
    "DELETE FROM gp_log",
    "UPDATE gp_log SET at = 2",
    "INSERT INTO gp_log SELECT 1, x::gp_pt[] FROM (SELECT ARRAY[row(1, 'a')]) s(x)",
)


REASONS = (
    "refused", "no text of an unknown", "a plan that sorts", "a query that runs when it is opened", "both ran out of time",
)  # fmt: skip


def explained(ours: list[Ended], theirs: list[Ended]) -> str:
    """Return why a function may do something else, "" where nothing explains it.

    PostgreSQL has no conversion from unknown, the type of fields that were made of literals, and says so as an internal error. WHERE CURRENT OF
    fails there where the cursor's plan sorts, which its figures decide. A cursor's rows are computed by OPEN here, by FETCH there: so is its error. Where a loop that has no end is stopped is chance.
    """
    if any(REFUSED in repr(end) for end in ours):
        return REASONS[0]
    if any(NO_TEXT in repr(end) for end in theirs):
        return REASONS[1]
    if any(SORTED in repr(end) for end in theirs):
        return REASONS[2]
    if any(end.state == "57014" for end in ours) and any(end.state == "57014" for end in theirs):
        return REASONS[4]
    opened = {end.error[:3] for end in ours if end.error and OPENED.search(end.error[-1])}
    return (
        REASONS[3] if any(end.error[:3] in opened and FETCHED.search(end.error[-1]) for end in theirs) else ""
    )


@contextmanager
def sides(server: ServerProcess, postgres: str) -> Iterator[tuple[Side, Side]]:
    """Connect to both servers, with tables and types in a schema of their own."""
    ours_at = f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"
    with (
        psycopg.connect(ours_at, autocommit=True) as ours,
        psycopg.connect(postgres, autocommit=True) as theirs,
    ):
        for connection in (ours, theirs):
            connection.execute("DROP SCHEMA IF EXISTS gp CASCADE")
            connection.execute("CREATE SCHEMA gp")
            connection.execute("SET search_path = gp")
            connection.execute(SCHEMA)
            connection.execute(ROWS)
            connection.execute("SET statement_timeout = '20s'")
        try:
            yield Side(ours), Side(theirs)
        finally:
            for connection in (ours, theirs):
                connection.execute("DROP SCHEMA gp CASCADE")


@pytest.mark.timeout(0 if COUNT > 500 else 300)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_functions_do_the_same(seed: int, postgres: str, server: ServerProcess) -> None:
    programs = Programs(seed)
    ends: Counter[str] = Counter()
    differences: list[str] = []
    with sides(server, postgres) as (ours, theirs):
        for number in range(COUNT):
            program = programs.program()
            mine, other = ours.run(program), theirs.run(program)
            end = next((e.state for e in other if e.error), "equal")
            if mine == other:
                ends[end] += 1
            elif reason := explained(mine, other):
                ends[reason] += 1
            else:
                parts = [f"  ours   {m}\n  theirs {o}" for m, o in zip(mine, other, strict=False) if m != o]
                differences.append(
                    "\n".join([f"{number}: {program.definition}", program.call, *parts])[:9000]
                )
            if COUNT >= EVERY and (number + 1) % EVERY == 0:
                print(f"{number + 1} of {COUNT}: {dict(ends)}, {len(differences)} different", flush=True)
    print(f"seed {seed}: {dict(ends)}")
    if EVIDENCE:
        keep_figures(seed, ends, differences)
    assert not differences, f"{len(differences)} of {COUNT}\n" + "\n\n".join(differences[:10])
    assert ends["equal"] > COUNT // 6, (
        ends
    )  # errors, which most end in, come behind notices of what went well
    assert sum(ends[reason] for reason in REASONS) <= COUNT // 10, ends


def test_kinds_that_have_differed(postgres: str, server: ServerProcess) -> None:
    with sides(server, postgres) as (ours, theirs):
        for side in (ours, theirs):
            side.connection.execute(ROUTINES)
        for sql in (*(f"DO $do$ {case} $do$" for case in CASES), *CALLS):
            ends = []
            for side in (ours, theirs):
                side.connection.pgconn.exec_(b"BEGIN")
                ends.append(side.ask(sql))
                side.connection.pgconn.exec_(b"ROLLBACK")
            assert ends[0] == ends[1], sql


def keep_figures(seed: int, ends: Counter[str], differences: list[str]) -> None:
    """Write how the functions of a seed ended beside those of other seeds."""
    path = Path(EVIDENCE)
    document = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known = document.get("seeds", {})
    errors = sum(count for end, count in ends.items() if end not in ("equal", *REASONS))
    known[str(seed)] = {
        "functions": COUNT, "ran to their end": ends["equal"], "errors": errors, "different": len(differences),
        **{reason: ends[reason] for reason in REASONS},
    }  # fmt: skip
    names = known[str(seed)]
    made = {
        **document,
        "what": "random PL/pgSQL functions beside PostgreSQL 15 (tests/differential/generated_plpgsql.py)",
        "all": {name: sum(figures.get(name, 0) for figures in known.values()) for name in names},
        "seeds": {key: known[key] for key in sorted(known, key=int)},
    }
    path.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


def test_a_seed_gives_the_same_functions() -> None:
    one, two = Programs(7), Programs(7)
    assert [one.program() for _ in range(50)] == [two.program() for _ in range(50)]

"""Random statements with parameters of varied types: a function of a seed, sent by PREPARE and by the extended protocol.

    Prepared(seed).asked() ──> Asked(sql, oids, values, formats, names)

Types of parameters are said (PREPARE's list, Parse's oids), left to be found, or both; values are text or binary; a statement is
executed with several rows of values, so often that PostgreSQL turns to a generic plan.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import pq

__all__ = ["Asked", "Prepared", "answers"]

SCHEMA = """
DROP TABLE IF EXISTS prep;
CREATE TABLE prep (id int PRIMARY KEY, s smallint, b bigint, n numeric, f float8, r real, t text, v varchar(4), c char(3), o boolean, d date,
 ts timestamp, tz timestamptz, tm time, iv interval, u uuid, j jsonb, a int[], ta text[], y bytea, rg int4range);
INSERT INTO prep SELECT g, nullif(g % 4, 2), g * 3000000000::bigint, nullif(g % 5, 1) * 1.25, g / 4.0, g * 0.5, (array['a', '', null, 'Bc'])[g % 4 + 1],
 'v' || g, 'c' || g % 3, nullif(g % 3, 2) = 1, date '2024-02-27' + g, timestamp '2024-01-31 12:00' + g * interval '7 hours',
 timestamptz '2024-03-30 12:00+00' + g * interval '9 hours', time '01:00' * 1 + g * interval '61 minutes', g * interval '1 day 1 hour',
 ('00000000-0000-0000-0000-00000000000' || g % 9)::uuid, jsonb_build_object('a', g), array[g, null, 1], array['a', g::text], decode('0' || g % 9, 'hex'),
 int4range(g, g + 3) FROM generate_series(1, 12) g;
""".replace("time '01:00' * 1", "time '01:00'")

TYPES: dict[str, tuple[int, tuple[str | None, ...]]] = {
    "smallint": (21, ("1", "-3", "40000", None)), "integer": (23, ("1", "5", "2147483648", None, "x")),
    "bigint": (20, ("6000000000", "0", None)), "numeric": (1700, ("1.25", "NaN", "2.500", None)), "float8": (701, ("0.5", "Infinity", None)),
    "real": (700, ("1.5", "NaN", None)), "text": (25, ("a", "", "Bc", None)), "varchar": (1043, ("v1", "abcdef", None)),
    "char(3)": (1042, ("c1", "c1  ", None)), "boolean": (16, ("t", "off", "2", None)), "date": (1082, ("2024-02-29", "infinity", "2024-02-30", None)),
    "timestamp": (1114, ("2024-01-31 19:00", "-infinity", None)), "timestamptz": (1184, ("2024-03-30 21:00+00", "2024-04-01", None)),
    "time": (1083, ("02:01", "24:00", None)), "interval": (1186, ("1 day", "25:00", None)),
    "uuid": (2950, ("00000000-0000-0000-0000-000000000004", "x", None)), "jsonb": (3802, ('{"a": 3}', "[", None)),
    "json": (114, ('{"a": 3}', None)), "integer[]": (1007, ("{1,NULL,1}", "{}", "{{1},{2}}", None)), "text[]": (1009, ("{a,1}", '{"x y"}', None)),
    "bytea": (17, ("\\x01", "abc", None)), "int4range": (3904, ("[1,4)", "empty", "[4,1]", None)), "name": (19, ("a", None)),
    "unknown": (705, ("1", "a", None)), "oid": (26, ("1", "4294967295", None)),
}  # fmt: skip
"""Types with their oid and texts, not all of which they take."""

FORMS = (
    "SELECT id, {} FROM prep WHERE {} = {} ORDER BY id", "SELECT id FROM prep WHERE {c} = {} ORDER BY id", "SELECT id FROM prep WHERE {c} > {} ORDER BY id",
    "SELECT id FROM prep WHERE {c} IN ({}, {}) ORDER BY id", "SELECT id FROM prep WHERE {c} = ANY ({}) ORDER BY id", "SELECT {} + {}", "SELECT {} || {}",
    "SELECT id, {c} + {} FROM prep ORDER BY id LIMIT 3", "SELECT coalesce({c}, {}) FROM prep ORDER BY id LIMIT 4", "SELECT {}, {}", "SELECT {}::{t}",
    "SELECT {}::{t} = {}", "SELECT id FROM prep WHERE {} IS NULL OR {c} = {} ORDER BY id", "SELECT id FROM prep ORDER BY id LIMIT {} OFFSET {}",
    "SELECT CASE WHEN {c} = {} THEN {} ELSE {} END FROM prep ORDER BY id LIMIT 3", "INSERT INTO prep (id, {c}) VALUES (99, {}) RETURNING {c}",
    "UPDATE prep SET {c} = {} WHERE id = {} RETURNING id, {c}", "SELECT count(*) FROM prep WHERE {c} BETWEEN {} AND {}", "SELECT {} UNION SELECT {}",
    "SELECT id FROM prep WHERE {c} IS DISTINCT FROM {} ORDER BY id", "VALUES ({}, {c0}), ({}, {c0})", "SELECT generate_series({}, {})", "SELECT ARRAY[{}, {}]",
    "SELECT sum(id) FILTER (WHERE {c} = {}) FROM prep", "SELECT * FROM (VALUES ({}), ({})) q(x) ORDER BY x", "SELECT max({c}) FROM prep WHERE id < {}",
    "SELECT greatest({}, {c}) FROM prep ORDER BY id LIMIT 2", "SELECT substr({}, {})", "SELECT concat({}, {c}) FROM prep ORDER BY id LIMIT 2",
    "DELETE FROM prep WHERE {c} = {} AND id > 50", "SELECT id FROM prep p JOIN (SELECT {}::{t} AS x) q ON p.{c} = q.x ORDER BY id", "SELECT f({})",
    "SELECT id FROM prep WHERE t LIKE {} ORDER BY id", "SELECT id FROM prep WHERE (id, {c}) = ({}, {})", "SELECT jsonb_build_object({}, {})",
    "SELECT lag({c}, {}) OVER (ORDER BY id) FROM prep ORDER BY id LIMIT 3", "SELECT {c}, count(*) FROM prep GROUP BY {c}, {} ORDER BY 1", "SELECT a[{}] FROM prep ORDER BY id LIMIT 2",
)  # fmt: skip
COLUMNS = (
    "id",
    "s",
    "b",
    "n",
    "f",
    "r",
    "t",
    "v",
    "c",
    "o",
    "d",
    "ts",
    "tz",
    "tm",
    "iv",
    "u",
    "j",
    "a",
    "ta",
    "y",
    "rg",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A statement with the types that are said of its parameters (0: none), rows of values, and whether results come in binary."""

    sql: str
    names: tuple[str, ...]
    oids: tuple[int, ...]
    rows: tuple[tuple[str | None, ...], ...]
    binary: bool


class Prepared:
    """Makes statements."""

    schema = SCHEMA
    remove = "DROP TABLE prep"

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def asked(self) -> Asked:
        """Return a statement."""
        pick = self.random.choice
        sql, count = pick(FORMS), 0
        column = pick(COLUMNS)
        sql = sql.replace("{c0}", "1").replace("{c}", column).replace("{t}", pick(list(TYPES)))
        while "{}" in sql:
            again = count and self.random.random() < 0.12  # one parameter in two places
            count += not again
            sql = sql.replace("{}", f"${self.random.randint(1, count) if again else count}", 1)
        kinds = [pick(list(TYPES)) for _ in range(count)]
        said = self.random.random()
        oids = [
            TYPES[k][0]
            if k != "unknown" and (said < 0.3 or self.random.random() < said) and said < 0.75
            else 0
            for k in kinds
        ]
        rows = tuple(tuple(pick(TYPES[k][1]) for k in kinds) for _ in range(self.random.choice((1, 1, 2, 7))))
        names = tuple(k if oid else "unknown" for k, oid in zip(kinds, oids, strict=True))
        return Asked(sql, names, tuple(oids), rows, self.random.random() < 0.3)


def answers(connection: psycopg.Connection[Any], asked: Asked) -> list[object]:
    """Return what Parse, Describe and each Bind and Execute give by the extended protocol, and then PREPARE and EXECUTE in SQL.

    Errors as SQLSTATE; statements that change rows are rolled back.
    """
    pgconn = connection.pgconn
    found: list[object] = []
    formats, ordered = 1 if asked.binary else 0, "UNION" not in asked.sql
    pgconn.exec_(b"BEGIN; SAVEPOINT s")
    made = pgconn.prepare(b"asked", asked.sql.encode(), asked.oids)
    found.append(_shown(made))
    if made.status == pq.ExecStatus.COMMAND_OK:
        described = pgconn.describe_prepared(b"asked")
        found.append([described.param_type(n) for n in range(described.nparams)])
        found.append(
            [(described.fname(n), described.ftype(n), described.fmod(n)) for n in range(described.nfields)]
        )
        for row in asked.rows:
            values = [None if value is None else value.encode() for value in row]
            found.append(_shown(pgconn.exec_prepared(b"asked", values, None, formats), ordered))
            pgconn.exec_(b"ROLLBACK TO s")
        pgconn.exec_(b"DEALLOCATE asked")
    pgconn.exec_(b"ROLLBACK TO s")
    listed = f"({', '.join(asked.names)})" if asked.names else ""
    found.append(_shown(pgconn.exec_(f"PREPARE told{listed} AS {asked.sql}".encode())))
    if found[-1] == "PREPARE":
        for row in asked.rows:
            constants = ["NULL" if v is None else "'" + v.replace("'", "''") + "'" for v in row]
            given = f"({', '.join(constants)})" if constants else ""
            found.append(_shown(pgconn.exec_(f"EXECUTE told{given}".encode()), ordered))
            pgconn.exec_(b"ROLLBACK TO s")
        pgconn.exec_(b"DEALLOCATE told")
    pgconn.exec_(b"ROLLBACK")
    return found


def _shown(done: pq.abc.PGresult, ordered: bool = True) -> object:
    """Return the SQLSTATE of an error, the tag of a command, or rows, those of a UNION in any order."""
    if done.status == pq.ExecStatus.FATAL_ERROR:
        return (done.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
    if done.status == pq.ExecStatus.COMMAND_OK:
        return (done.command_status or b"").decode()
    rows = [tuple(done.get_value(r, c) for c in range(done.nfields)) for r in range(done.ntuples)]
    return [tuple(done.ftype(c) for c in range(done.nfields)), rows if ordered else sorted(rows, key=repr)]


def explained(mine: list[object], other: list[object]) -> bool:
    """Tell whether answers differ in no more than errors of values that one side does not compute, as what a plan knows to be NULL or to find no rows."""
    pairs = [pair for pair in zip(mine, other, strict=False) if pair[0] != pair[1]]
    of_values = [sum(isinstance(end, str) and end.startswith("22") for end in pair) for pair in pairs]
    return len(mine) == len(other) and set(of_values) == {1}

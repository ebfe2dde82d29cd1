"""Random transactions over random tables, beside PostgreSQL 15 and beside themselves.

Every statement ends alike on both servers: tag, rows, or the error in all its fields where SQL fixes which one it is. Definitions
read alike. And whatever has been done, our server gives one answer however it is asked: by each executor, with a condition that an
index serves and with one that none does, prepared, through a cursor, as of now, after a checkpoint.

``HOLDFAST_SEEDS=1,4-9`` and ``HOLDFAST_QUERIES=500`` ask more.
"""

from __future__ import annotations

import os

import psycopg
import pytest

from tests.differential.generated_changes import Asked, Changes
from tests.differential.test_generated import seeds_of
from tests.differential.test_scripts import run_ours, run_theirs
from tests.support.fields import FieldsClient, connect
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]

SEEDS = seeds_of(os.environ.get("HOLDFAST_SEEDS", "1-4"))
STATEMENTS = int(os.environ.get("HOLDFAST_QUERIES", "100"))
EVERY = 8
DEFINITIONS = (
    "SELECT pg_get_constraintdef(oid), conname FROM pg_constraint WHERE conrelid = 'chg'::regclass order by 2",
    "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'chg'::regclass order by 1",
    "SELECT pg_get_viewdef('seen'::regclass), pg_get_viewdef('seen'::regclass, true) order by 1",
    "SELECT column_name, data_type, column_default, is_nullable, generation_expression, character_maximum_length, numeric_precision,"
    " numeric_scale, udt_name FROM information_schema.columns WHERE table_name IN ('chg', 'seen') order by table_name, ordinal_position",
    "SELECT attname, format_type(atttypid, atttypmod), attnotnull, atthasdef FROM pg_attribute"
    " WHERE attrelid = 'chg'::regclass AND attnum > 0 AND NOT attisdropped order by attnum",
    "SELECT table_name, constraint_type, is_deferrable FROM information_schema.table_constraints"
    " WHERE table_name = 'chg' AND constraint_name !~ 'not_null' order by 1, 2",
)


def alike(mine: object, other: object, asked: Asked) -> bool:
    """Tell whether two outcomes are the same.

    Of errors over rows in no order it is enough that they are errors in a value or a constraint; of several in one row, that both are
    in values, or that one is a view's check, at which we look before unique keys.
    """
    if mine == other:
        return True
    if not (isinstance(mine, dict) and isinstance(other, dict)):
        return False
    classes = {str(outcome["sqlstate"])[:2] for outcome in (mine, other)}
    if mine["sqlstate"] != other["sqlstate"] and classes in ({"22"}, {"23", "44"}):
        return True
    return not asked.alone and (mine["sqlstate"] == other["sqlstate"] or classes <= {"22", "23"})


def ways(client: FieldsClient, query: str) -> dict[str, object]:
    """Return the answers to a query asked in all ways, by name."""
    condition = query.split(" WHERE ")[1].removesuffix(" order by id")
    answers: dict[str, object] = {}
    for executor in ("auto", "index", "local"):
        client.run(f"SET LOCAL executor = {executor}")
        answers[executor] = run_ours(client, query)
    client.run("SET LOCAL executor = auto")
    answers["without an index"] = run_ours(client, query.replace(condition, f"coalesce({condition}, NULL)"))
    client.run(f"PREPARE asked AS {query}")
    answers["prepared"] = run_ours(client, "EXECUTE asked -- order by")
    client.run("DEALLOCATE asked")
    client.run(f"DECLARE asked CURSOR FOR {query}")
    answers["cursor"] = run_ours(client, "FETCH ALL FROM asked -- order by")
    client.run("CLOSE asked")
    return {name: answer[1] if isinstance(answer, tuple) else answer for name, answer in answers.items()}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.timeout(0 if STATEMENTS > 200 else 300)
def test_random_transactions(postgres: str, server: ServerProcess, seed: int) -> None:
    changes = Changes(seed)
    client = connect(server.port)
    with psycopg.connect(postgres, autocommit=True) as theirs:
        setup = ["DROP SCHEMA IF EXISTS public CASCADE", "CREATE SCHEMA public", "SET timezone = 'UTC'"]
        defined = changes.definitions()
        said: list[str] = []

        def both(asked: Asked) -> object:
            said.append(asked.sql)
            mine, other = run_ours(client, asked.sql), run_theirs(theirs, asked.sql)
            story = ";\n".join([*defined, *said[len(setup) + len(defined) :], ""])
            assert alike(mine, other, asked), f"seed {seed}\nours   {mine}\ntheirs {other}\n{story}"
            return mine

        for sql in (*setup, *defined):
            both(Asked(sql))
        for sql in DEFINITIONS:
            both(Asked(sql))
        for number in range(STATEMENTS):
            both(changes.statement())
            if number % EVERY == EVERY - 1:
                both(Asked("SELECT * FROM chg order by id", False))
                _ask_in_all_ways(client, changes, theirs)
        both(Asked("ROLLBACK"))
        for sql in DEFINITIONS:
            both(Asked(sql))
        before = both(Asked("SELECT * FROM chg order by id"))
        client.run("CHECKPOINT")
        _ask_in_all_ways(client, changes, theirs)
        assert before == run_ours(client, "SELECT * FROM chg order by id")
        assert before == run_ours(client, "SELECT * FROM chg AS OF SYSTEM TIME '-0s' order by id")
    client.close()


def _ask_in_all_ways(
    client: FieldsClient, changes: Changes, theirs: psycopg.Connection[tuple[object, ...]]
) -> None:
    """Ask one query in every way, in the block that is open or in one of its own; a block that has failed is left as it is."""
    status = theirs.info.transaction_status
    if status == psycopg.pq.TransactionStatus.INERROR:
        return
    query = changes.query()
    rows = run_theirs(theirs, query)
    if not isinstance(rows, tuple):
        mine = run_ours(client, query)
        assert isinstance(mine, dict), query
        assert isinstance(rows, dict), query
        assert mine["sqlstate"] == rows["sqlstate"], query
        return
    alone = status == psycopg.pq.TransactionStatus.IDLE
    if alone:
        client.run("BEGIN")
    answers = ways(client, query)
    if alone:
        client.run("COMMIT")
    for way, found in answers.items():
        assert found == rows[1], f"{way}: {query}"


def test_a_seed_gives_the_same_statements() -> None:
    one, two = Changes(5), Changes(5)
    assert one.definitions() == two.definitions()
    assert [one.statement() for _ in range(50)] == [two.statement() for _ in range(50)]


def test_what_counts_as_alike() -> None:
    null, key = ({"sqlstate": state} for state in ("23502", "23505"))
    assert alike(null, dict(null), Asked("x"))
    assert not alike(null, key, Asked("x"))
    assert alike(null, key, Asked("x", alone=False))
    assert not alike(null, {"sqlstate": "42601"}, Asked("x", alone=False))
    assert not alike(null, ("INSERT 0 1", []), Asked("x", alone=False))
    assert alike({"sqlstate": "44000"}, key, Asked("x"))
    assert not alike({"sqlstate": "22003", "message": "a"}, {"sqlstate": "22003", "message": "b"}, Asked("x"))

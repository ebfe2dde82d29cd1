"""Arrays beside PostgreSQL 15: parts of them assigned by UPDATE, and elements that are no scalars in Python."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.engine.test_like_postgres import Peer
from tests.support.fields import connect
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]


@pytest.fixture
def peer(server: ServerProcess, postgres: str) -> Iterator[Peer]:
    made = Peer(server.port, postgres)
    yield made
    made.close()


PARTS = [
    "UPDATE ar SET arr[1]=10, arr[5]=4 RETURNING id, arr",
    "UPDATE ar SET arr[2:3]='{7,8}' WHERE id=1 RETURNING arr",
    "UPDATE ar SET arr[:2]='{7,8}' WHERE id=1 RETURNING arr",
    "UPDATE ar SET arr[4:]='{17,18,19}' WHERE id=1 RETURNING arr",
    "UPDATE ar SET arr[6:9]='{17,18,19,20}' WHERE id=1 RETURNING arr",
    "UPDATE ar SET arr[1:2]='{17}' WHERE id=1 RETURNING arr",
    "UPDATE ar SET arr[3:2]='{17}' WHERE id=1 RETURNING arr",
    "UPDATE ar SET arr[NULL]=1 WHERE id=1",
    "UPDATE ar SET arr[1:NULL]='{1}' WHERE id=1",
    "UPDATE ar SET arr[1]=NULL WHERE id=1 RETURNING arr",
    "UPDATE ar SET arr[1:2]=NULL WHERE id=1 RETURNING arr",
    "UPDATE ar SET arr[1:2]=NULL WHERE id=2 RETURNING arr",
    "UPDATE ar SET m[2][1]=9, t[2]='zz', t[1]=t[2] WHERE id=1 RETURNING m,t",
    "UPDATE ar SET m[3][1]=9 WHERE id=1 RETURNING m,t",
    "UPDATE ar SET m[3]=9 WHERE id=1 RETURNING m,t",
    "UPDATE ar SET m[1:2][2:2]='{5,6}' WHERE id=1 RETURNING m,t",
    "UPDATE ar SET m[2:2]='{{5,6}}' WHERE id=1 RETURNING m,t",
    "UPDATE ar SET m[1][1]=1 WHERE id=2 RETURNING m",
    "UPDATE ar SET m[1:2][1:2]='{{5,6},{7,8}}' WHERE id=3 RETURNING m,t",
    "UPDATE ar SET m[:2]='{5,6}' WHERE id=2 RETURNING m,t",
    "UPDATE ar SET iv[2]='3 days', iv[1]=iv[1]+'1 hour' WHERE id=1 RETURNING iv",
    "UPDATE ar SET arr[1]='x' WHERE id=1",
    "UPDATE ar SET arr[1]='x'::text WHERE id=1",
    "UPDATE ar SET arr[1:2]=5 WHERE id=1",
    "UPDATE ar SET arr[1]=DEFAULT WHERE id=1",
    "UPDATE ar SET arr.x=1 WHERE id=1",
    "UPDATE ar SET id[1]=1 WHERE id=1",
    "UPDATE ar SET arr['a']=1 WHERE id=1",
    "UPDATE ar SET arr[1]=1, arr='{}' WHERE id=1",
    "UPDATE ar SET arr='{}', arr[1]=1  WHERE id=1",
    "UPDATE ar SET (arr[1], arr[2]) = (3,4) WHERE id=1 RETURNING arr",
    "UPDATE ar SET (arr[1], arr[2]) = (SELECT 5, 6) WHERE id=1 RETURNING arr",
    "UPDATE ar SET arr[id]=arr[2]+1 WHERE id=1 RETURNING arr",
    "INSERT INTO ar VALUES (1) ON CONFLICT (id) DO UPDATE SET arr[2]=ar.arr[1]+excluded.id RETURNING arr",
]


def test_parts_of_arrays_are_assigned_as_postgresql_does(peer: Peer) -> None:
    """One after the other, so that each meets what the ones before have made."""
    peer.both("CREATE TEMP TABLE ar (id int PRIMARY KEY, arr int[], m int[], t text[], iv interval[])")
    peer.both(
        "INSERT INTO ar VALUES (1, '{1,2,3}', '{{1,2},{3,4}}', '{a,b}', '{1 day}'), (2, NULL, NULL, NULL, NULL),"
        " (3, '{}', '{}', '{}', '{}')"
    )
    for sql in PARTS:
        ours, theirs = peer.both(sql)
        assert ours == theirs, sql
    ours, theirs = peer.both("SELECT * FROM ar ORDER BY id")
    assert ours == theirs


@pytest.mark.parametrize(
    "assignment",
    [
        "arr[1] = 'x'::text", "arr[1:2] = 5", "arr[1] = DEFAULT", "arr.x = 1", "id[1] = 1", "arr['a'] = 1", "arr['1'] = 'a'",
        "arr[1] = 1, arr = '{}'", "arr = '{}', arr[1] = 1", "arr[1:] = '{1}'", "arr[1:2] = '{1}'",
    ],
)  # fmt: skip
def test_errors_of_parts_have_postgresqls_words_and_places(peer: Peer, assignment: str) -> None:
    peer.both("CREATE TEMP TABLE ar (id int PRIMARY KEY, arr int[])")
    peer.both("INSERT INTO ar VALUES (1, '{}')")
    ours = peer.ours.fails(f"UPDATE ar SET {assignment}")
    with pytest.raises(psycopg.Error) as theirs:
        peer.theirs.execute(f"UPDATE ar SET {assignment}".encode())
    diag = theirs.value.diag
    assert (ours["sqlstate"], ours["message"], ours.get("detail"), ours.get("hint"), ours.get("position")) == (
        diag.sqlstate, diag.message_primary, diag.message_detail, diag.message_hint, diag.statement_position,
    )  # fmt: skip


def test_what_an_array_cannot_hold_here_is_refused(server: ServerProcess) -> None:
    client = connect(server.port)
    client.run("CREATE TEMP TABLE ar (id int PRIMARY KEY, arr int[], j jsonb)")
    client.run("INSERT INTO ar VALUES (1, NULL, '{}')")
    client.run("UPDATE ar SET arr[2:1] = '{1}'")
    client.run("UPDATE ar SET arr[1] = 1")
    assert client.fails("UPDATE ar SET arr[100000000] = 1")["sqlstate"] == "54000"
    assert client.run("SELECT * FROM ar").rows == [("1", "{1}", "{}")]
    client.close()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT (ARRAY['1 day'::interval, '2 days'])[2], (ARRAY['10:00+01'::timetz])[1], (ARRAY['(0,1)'::tid])[1]",
        "SELECT (ARRAY['1 day'::interval, NULL])[1:1], (ARRAY['1 day'::interval])[1:1][1:1], (ARRAY[NULL, '1 day'::interval])[2]",
        "SELECT ('{{1 day,2 days},{3 days,NULL}}'::interval[])[2][1], ('{{1 day}}'::interval[])[1], ('{1 day}'::interval[])[1][1]",
        "SELECT ('{{1 day,2 days},{3 days,NULL}}'::interval[])[:2][2:]",
        "SELECT '1 day'::interval = ANY (ARRAY['1 day'::interval]), '24:00'::interval = ALL ('{1 day,24:00}'::interval[])",
        "SELECT '(0,1)'::tid = ANY ('{\"(0,2)\",\"(0,1)\"}'::tid[]), '1 day'::interval = ANY ('{{2 days},{1 day}}'::interval[])",
        "SELECT ARRAY['1 day'::interval, NULL]::text[], '{{1 day},{2 days}}'::interval[]::text[]",
        "SELECT a[1], a[2] FROM (SELECT array_agg(i) FROM (VALUES ('1 day'::interval), ('2 days')) v(i)) s(a)",
        "SELECT 1 WHERE '1 day'::interval IN ('2 days', '24:00:00')",
    ],
)
def test_arrays_of_values_that_have_parts_themselves(peer: Peer, sql: str) -> None:
    ours, theirs = peer.both(sql)
    assert ours == theirs


WITHOUT_COMPARISON = [
    """SELECT '{}'::point[] < '{}'::point[]""",
    """SELECT '{}'::point[] = '{}'::point[]""",
    """SELECT '{}'::point[] <> '{"(1,1)"}'::point[]""",
    """SELECT '[0:0]={"(1,1)"}'::point[] = '{"(1,1)"}'::point[]""",
    """SELECT '{{"(1,1)"}}'::point[] <> '{"(1,1)"}'::point[]""",
    """SELECT '{"(1,1)"}'::point[] < NULL::point[]""",
    """SELECT '{}'::json[] = '{}'::json[]""",
    """SELECT array_position('{}'::json[], '1'::json)""",
    """SELECT array_position('{1}'::json[], '1'::json)""",
    """SELECT array_position('{1}'::json[], NULL)""",
    """SELECT array_positions('{}'::json[], '1'::json)""",
    """SELECT array_positions('{1}'::json[], '1'::json)""",
    """SELECT array_remove('{1}'::json[], NULL)""",
    """SELECT array_remove('{}'::json[], NULL)""",
    """SELECT array_replace('{1}'::json[], '1', '2')""",
    """SELECT array_replace('{}'::json[], '1', '2')""",
    """SELECT '{1}'::json[] && '{1}'""",
    """SELECT '{}'::json[] @> '{}'""",
    """SELECT '{}'::json[] <@ '{1}'""",
    """SELECT array['1'::json] IN (array['1'::json])""",
    """SELECT width_bucket('1'::json, '{}'::json[])""",
    """SELECT btarraycmp('{1}'::json[], '{1}')""",
    """SELECT array_larger('{1}'::json[], '{1}')""",
    """SELECT array[xid '1'] = array[xid '1']""",
    """SELECT array[xid '1'] < array[xid '1']""",
]


def test_arrays_of_what_has_no_comparison_are_compared_as_far_as_postgresql_does(peer: Peer) -> None:
    for query in WITHOUT_COMPARISON:
        ours, theirs = peer.both(query)
        assert ours == theirs, query

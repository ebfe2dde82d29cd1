"""Records whose columns are of unlike types: compared column by column, wherever values are compared. PostgreSQL 15's answers."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.server import ServerProcess

UNLIKE = "(values (row(1,2)),(row(1,2.0))) v(x)"
REFUSED = (
    "select row(1,2) union select row(1,2.0) order by 1",
    "select row(1,2) union all select row(1,2.0) order by 1",
    "select row(1,2) union select row(1,2.0)",
    "select row(1,2) intersect select row(1,2.0)",
    "select row(1,2) except select row(1,2.0)",
    "select row(1,2) union select row(1,2,3)",
    "values (row(1,2)),(row(1,'a'::text)) order by 1 desc",
    f"select distinct x from {UNLIKE}",
    f"select distinct on (x) x from {UNLIKE} order by x",
    f"select x, count(*) from {UNLIKE} group by x",
    f"select array_agg(x order by x) from {UNLIKE}",
    f"select count(distinct x) from {UNLIKE}",
    f"select rank() over (partition by x) from {UNLIKE}",
    f"select lag(x) over (order by x) from {UNLIKE}",
    f"select mode() within group (order by x) from {UNLIKE}",
    f"select x from {UNLIKE} order by x limit 1",
    "select 1 from (values (row(1,2))) v(x) join (values (row(1,2.0))) w(x) using (x)",
    "select 1 from (values (row(1,2)),(row(2,3))) v(x) full join (values (row(1,2.0))) w(x) on v.x = w.x",
    "select v.x in (select w.x from (values (row(1,2.0))) w(x)) from (values (row(1,2))) v(x)",
    "select x = any (array[row(1,2.0)]) from (values (row(1,2))) v(x)",
    "select array[row(1,2)] = array[row(1,2.0)]",
    "select array[row(1,2)] @> array[row(1,2.0)]",
    "select array[row(1,2)] && array[row(1,2.0)]",
    "select array_position(array[row(1,2)], row(1,2.0))",
    "select distinct x from (values (array[row(1,2)]),(array[row(1,2.0)])) v(x)",
    "select x from (values (row(1,row(1,2))),(row(1,row(1,2.0)))) v(x) order by x",
    "select x from (values (row(1,array[1])),(row(1,array[2.0]))) v(x) order by x",
    "select x from (values (row(1,null::int)),(row(1,null::numeric))) v(x) order by x",
    "select x from (values (row(1,'a'::varchar)),(row(1,'a'::text))) v(x) group by x",
)
ANSWERED = {
    "select x < row(2,2.0), x = row(2,2.0), x <> row(2,2.0) from (values (row(1,2))) v(x)": [
        (True, False, True)
    ],
    "select x < row(2), x between row(0,0) and row(5,5.0) from (values (row(1,2))) v(x)": [(True, True)],
    "select count(*) from (select row(1,2) union select row(2,2.0)) q": [(2,)],
    "select (greatest(row(1,2), row(2,2.0)))::text": [("(2,2.0)",)],
    "select x::text from (values (row(2,2)),(row(1,2.0)),(null)) v(x) order by x": [
        ("(1,2.0)",),
        ("(2,2)",),
        (None,),
    ],
    "select count(*) from (values (row(1,interval '30 days')),(row(1,interval '1 month'))) v(x) group by x": [
        (2,)
    ],
    """select count(*) from (values (row(1,'{"a":[1]}'::jsonb)),(row(1,'{"a": [1]}'::jsonb))) v(x) group by x""": [
        (2,)
    ],
    "select count(distinct x) from (values (row(1,1.0)),(row(1,1.00)),(row(1,'NaN'::numeric))) v(x)": [(2,)],
    "select x *= x from (values (row(1,'{}'::json))) v(x)": [(True,)],
}
WITHOUT_ORDER = {
    "select x = x from (values (row(1,'{}'::json))) v(x)": "an equality operator for type json",
    "select distinct x from (values (row(1,'{}'::json)),(row(1,'{}'::json))) v(x)": "a comparison function for type json",
    "select x from (values (row(1,point '(1,1)')),(row(1,point '(1,1)'))) v(x) order by x": "a comparison function for type point",
}


@pytest.mark.parametrize("executor", ["index", "auto"])
def test_unlike_records_are_compared_column_by_column(server: ServerProcess, executor: str) -> None:
    with psycopg.connect(
        f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres", autocommit=True
    ) as client:
        client.execute(f"SET executor = {executor}")
        for query in REFUSED:
            with pytest.raises(psycopg.Error) as error:
                client.execute(query)
            assert error.value.sqlstate == "42804", query
        for query, rows in ANSWERED.items():
            assert client.execute(query).fetchall() == rows, query
        for query, what in WITHOUT_ORDER.items():
            with pytest.raises(psycopg.Error, match=f"could not identify {what}") as error:
                client.execute(query)
            assert error.value.sqlstate == "42883", query

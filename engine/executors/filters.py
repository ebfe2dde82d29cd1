"""What a query asks of each single table: the rows that can matter to it, whatever the others hold.

    SELECT … FROM a JOIN b ON a.id = b.a AND b.kind = 'x' LEFT JOIN c ON c.a = a.id AND c.n > 0 WHERE a.v > 3

    a    v > 3        from WHERE
    b    kind = 'x'   from an inner join's ON
    c    n > 0        from the ON of an outer join that c may be missing from; WHERE says nothing of c alone, because
                      the row that c fails to give may have a NULL in its place that WHERE lets through

A transaction that writes watches with it what others change after its scans (``txn.transaction.scan_watch``),
so DuckDB and Spark hand it to ``Transaction.snapshot``; the row executor has its own filters at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.base.executor import ExecContext
from engine.executors.expressions import has_sublink, is_volatile
from engine.executors.watched import watching
from planner.catalog import Catalog
from planner.evaluate import Env, Layout, RowFunction, Shared, compile_predicate
from planner.indexing.deciding import deciding
from planner.query import Expr, QueryExpr, RelationRange, Select, Var
from planner.query.walk import queries_of, ranges_of, walk
from txn.api import Predicate
from txn.base.types import Row, ShardId


class TableFilters:
    """The filters of one query on the tables it reads, compiled when they are first asked for."""

    __slots__ = ("_asked", "_compiled", "_query", "_relations")

    def __init__(self, query: QueryExpr, catalog: Catalog) -> None:
        """``catalog``: the one that ``query`` was bound against."""
        self._query = query
        # of the catalog no more is kept: plans are kept for long, and have these
        oids = [oid for r in ranges_of(query) if isinstance(r, RelationRange) for oid in r.tables]
        self._relations = {oid: catalog.relation_by_oid(oid) for oid in oids}
        self._compiled: dict[int, tuple[RowFunction, ...]] | None = None
        self._asked: dict[int, list[Expr]] = {}  # what the tests of a table are made of

    def predicate(self, shard: ShardId, ctx: ExecContext) -> Predicate | None:
        """Return whether a stored row of a table can matter to the query; None: every row can."""
        if not ctx.txn.keeps_reads:
            return None  # nobody will ask
        tests = self._tests(shard)
        if not tests:
            return None
        env = Env(ctx.params, ctx.session, shared=Shared())
        if len(tests) == 1:
            only = tests[0]
            return watching(lambda row: bool(only(row, env)), self._asked[shard])

        def any_of(row: Row) -> bool:
            return any(test(row, env) for test in tests)

        return watching(any_of, self._asked[shard])

    def narrows(self, shard: ShardId) -> bool:
        """Tell whether the query looks for some of a table's rows only."""
        return bool(self._tests(shard))

    def _tests(self, shard: ShardId) -> tuple[RowFunction, ...]:
        if self._compiled is None:
            self._compiled = self._compile()
        return self._compiled.get(shard, ())

    def _compile(self) -> dict[int, tuple[RowFunction, ...]]:
        """Return one test for each time a table is read; none for a table that is read unfiltered somewhere."""
        tests: dict[int, list[RowFunction]] = {}
        open_: set[int] = set()
        known: list[Expr] | None = (
            None  # of the table before: partitions that are alike share their conditions
        )
        test: RowFunction | None = None
        for oid, index, conjuncts in table_reads(self._query):
            if conjuncts is not known:
                test, known = self._test(oid, index, conjuncts) if conjuncts else None, conjuncts
            if test is None:
                open_.add(oid)
            else:
                tests.setdefault(oid, []).append(test)
                self._asked.setdefault(oid, []).extend(conjuncts)
        return {oid: tuple(made) for oid, made in tests.items() if oid not in open_}

    def _test(self, oid: int, index: int, conjuncts: Sequence[Expr]) -> RowFunction | None:
        relation = self._relations.get(oid)
        if relation is None:
            return None
        layout = Layout(columns={(index, c.attnum): c.attnum - 1 for c in relation.live})
        test = compile_predicate(conjuncts, layout)
        return None if test.may_suspend else test


def table_reads(query: QueryExpr) -> Iterator[tuple[int, int, list[Expr]]]:
    """Yield (table, its range number, conditions on it alone) for each time a stored table is read."""
    seen = 0
    for block in queries_of(query):
        if not isinstance(block, Select):
            continue
        found = _sort(block)
        for index, range_ in enumerate(block.ranges):
            if isinstance(range_, RelationRange):
                seen += 1
                if not range_.virtual:
                    # what others may not look at the rest of the query must not look at here either
                    conjuncts = found.get(index, []) if range_.guard is None else []
                    for oid in range_.tables:
                        yield oid, index, conjuncts
    relations = [r for r in ranges_of(query) if isinstance(r, RelationRange)]
    if len(relations) != seen:  # read elsewhere than in a SELECT block: nothing is known of it
        for range_ in relations:
            for oid in range_.tables:
                yield oid, 0, []


def _sort(block: Select) -> dict[int, list[Expr]]:
    """Return the conditions of a query that look at plain columns of one range alone, and decide about it, by range."""
    found: dict[int, list[Expr]] = {}
    for conjunct, ranges in deciding(block):
        if is_volatile(conjunct) or has_sublink(conjunct):
            continue
        columns = [node for node in walk(conjunct) if isinstance(node, Var) and node.range >= 0]
        of = {column.range for column in columns}
        if len(of) == 1 and of <= ranges and all(c.level == 0 and c.attnum > 0 for c in columns):
            found.setdefault(of.pop(), []).append(conjunct)
    return found

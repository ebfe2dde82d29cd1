"""Constructors of engine SQL: the only place that knows sqlglot's node classes.

Lowering builds trees and prints them once; it never parses text. sqlglot adds no parentheses to a tree
that was built, so every operator is wrapped here; AND and OR chains are kept flat, since a nested chain of
some hundred terms would exceed the recursion limit of the printer. Nodes may be shared between places of one
tree (nothing here changes a node once it is made).

    add(col("r1", "c2"), integer(1))   prints   (r1.c2 + 1)

Words: an *engine type* is its text in the dialect, e.g. ``DECIMAL(38, 2)``.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from sqlglot import Dialect, exp

from pgwire.give_way import give_way

# An engine expression or query. sqlglot's classes stay behind this door.
Node: TypeAlias = Any

ONCE = ("hf_py_", "random")
"""How functions are called whose calls are not to be repeated: those of Python (``callouts.PREFIX``), and
that of chance."""

_OPERATORS: dict[str, Callable[..., Node]] = {
    "+": exp.Add,
    "-": exp.Sub,
    "*": exp.Mul,
    "/": exp.Div,
    "//": exp.IntDiv,
    "%": exp.Mod,
    "=": exp.EQ,
    "<>": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
    "&": exp.BitwiseAnd,
    "|": exp.BitwiseOr,
    "^": exp.BitwiseXor,
    "||": exp.DPipe,
    "is not distinct from": exp.NullSafeEQ,
    "is distinct from": exp.NullSafeNEQ,
}

_ATOMS = (exp.Column, exp.Literal, exp.Anonymous, exp.Cast, exp.Paren, exp.Null, exp.Boolean, exp.Placeholder,
          exp.Case, exp.Subquery, exp.Window, exp.Filter)  # fmt: skip


def name(text: str) -> Node:
    """Return an unquoted identifier (generated names only)."""
    return exp.Identifier(this=text, quoted=False)


def col(table: str, column: str) -> Node:
    """Return ``table.column``."""
    return exp.Column(this=name(column), table=name(table))


def bare(column: str) -> Node:
    """Return a column without a qualifier: an output alias, or a lambda's variable."""
    return exp.Column(this=name(column))


def integer(value: int) -> Node:
    """Return an integer literal; negative ones in parentheses."""
    node = exp.Literal.number(abs(value))
    return exp.Paren(this=exp.Neg(this=node)) if value < 0 else node


def string(value: str) -> Node:
    """Return a text literal."""
    return exp.Literal.string(value)


def null() -> Node:
    """Return NULL."""
    return exp.Null()


def boolean(value: bool) -> Node:
    """Return TRUE or FALSE."""
    return exp.Boolean(this=value)


def placeholder(text: str) -> Node:
    """Return the named parameter ``text``."""
    return exp.Placeholder(this=text)


def paren(node: Node) -> Node:
    """Return ``node`` in parentheses unless it cannot be torn apart."""
    return node if isinstance(node, _ATOMS) else exp.Paren(this=node)


def bared(node: Node) -> Node:
    """Return ``node`` without the parentheses around it."""
    return node.this if isinstance(node, exp.Paren) else node


def op(symbol: str, left: Node, right: Node) -> Node:
    """Return ``(left symbol right)`` for an operator of both dialects."""
    return exp.Paren(this=_OPERATORS[symbol](this=left, expression=right))


def neg(node: Node) -> Node:
    """Return ``(-node)``."""
    return exp.Paren(this=exp.Neg(this=paren(node)))


def fn(function: str, *args: Node) -> Node:
    """Return a call of ``function``."""
    return exp.Anonymous(this=function, expressions=list(args))


def count_rows() -> Node:
    """Return ``count(*)``."""
    return exp.Anonymous(this="count", expressions=[exp.Star()])


def keyword(text: str) -> Node:
    """Return a bare word (a field name of a function's argument, never user text)."""
    return exp.Var(this=text)


def cast(node: Node, engine_type: str) -> Node:
    """Return ``CAST(node AS engine_type)``."""
    return exp.Cast(this=node, to=exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=engine_type))


def is_cast_to(node: Node, engine_type: str) -> bool:
    """Return whether a tree is a ``cast`` to a type already."""
    return isinstance(node, exp.Cast) and node.to.args.get("kind") == engine_type


def try_cast(node: Node, engine_type: str) -> Node:
    """Return ``TRY_CAST(node AS engine_type)``."""
    to = exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=engine_type)
    return exp.TryCast(this=node, to=to, safe=True)  # without, Spark's dialect prints a CAST


def _chain(cls: Any, terms: Sequence[Node], empty: bool) -> Node:
    flat: list[Node] = []
    for term in terms:
        inner = term.this if isinstance(term, exp.Paren) else term
        if isinstance(inner, cls):
            flat.extend(_operands(inner, cls))
        else:
            flat.append(term)
    if not flat:
        return boolean(empty)
    node = flat[0]
    for term in flat[1:]:
        node = cls(this=node, expression=term)
    return exp.Paren(this=node) if len(flat) > 1 else node


def _operands(node: Node, cls: Any) -> list[Node]:
    found: list[Node] = []
    while isinstance(node, cls):
        found.append(node.args["expression"])
        node = node.this
    found.append(node)
    return found[::-1]


def and_(*terms: Node) -> Node:
    """Return the conjunction of ``terms``; TRUE of none."""
    return _chain(exp.And, terms, True)


def or_(*terms: Node) -> Node:
    """Return the disjunction of ``terms``; FALSE of none."""
    return _chain(exp.Or, terms, False)


def not_(node: Node) -> Node:
    """Return ``(NOT node)``."""
    return exp.Paren(this=exp.Not(this=paren(node)))


def is_null(node: Node, negated: bool = False) -> Node:
    """Return ``(node IS [NOT] NULL)``."""
    test = exp.Is(this=paren(node), expression=exp.Null())
    return exp.Paren(this=exp.Not(this=exp.Paren(this=test)) if negated else test)


def case(arms: Iterable[tuple[Node, Node]], default: Node | None = None) -> Node:
    """Return a searched CASE; both engines evaluate a result only where its condition is true."""
    return exp.Case(ifs=[exp.If(this=when, true=then) for when, then in arms], default=default)


def in_(node: Node, items: Sequence[Node]) -> Node:
    """Return ``(node IN (items))``."""
    return exp.Paren(this=exp.In(this=paren(node), expressions=list(items)))


def in_query(node: Node, query: Node) -> Node:
    """Return ``(node IN (query))``."""
    return exp.Paren(this=exp.In(this=paren(node), query=exp.Subquery(this=query)))


def exists(query: Node) -> Node:
    """Return ``(EXISTS (query))``: to Spark's grammar EXISTS is no operand of an operator."""
    return exp.Paren(this=exp.Exists(this=query))


def scalar(query: Node, *, one_row: bool = False, correlated: bool = True) -> Node:
    """Return ``(query)`` as a scalar; what is known of it stays with the node (Spark's rules ask for it)."""
    node = exp.Subquery(this=query)
    node.meta.update(one_row=one_row, correlated=correlated)
    return node


def one_row_query(node: Node) -> Node | None:
    """Return the query of a scalar sub-select that always yields exactly one row, else None."""
    return node.this if isinstance(node, exp.Subquery) and node.meta.get("one_row") else None


def has_query(node: Node) -> bool:
    """Return whether a tree holds a sub-select."""
    return any(isinstance(n, exp.Select) for n in node.walk())


def of_query(call: Node) -> Node:
    """Return the call of an aggregate or window function, which has a sub-select in it and says so."""
    call.meta["of_query"] = True
    return call


def has_call_of_query(node: Node) -> bool:
    """Return whether a tree holds such a call."""
    return any("of_query" in part.meta for part in node.walk())


def has_correlated_query(node: Node) -> bool:
    """Return whether a tree holds a sub-select that depends, or may depend, on columns outside it."""
    scalars = [n for n in node.walk() if isinstance(n, exp.Subquery) and "correlated" in n.meta]
    if any(n.meta["correlated"] for n in scalars):
        return True
    return any(isinstance(n, exp.Exists | exp.In) and has_query(n) for n in node.walk())


def like(node: Node, pattern: Node, escape: Node | None = None) -> Node:
    """Return ``(node LIKE pattern [ESCAPE escape])``."""
    test = exp.Like(this=paren(node), expression=paren(pattern))
    return exp.Paren(this=test if escape is None else exp.Escape(this=test, expression=escape))


def field(node: Node, part: str) -> Node:
    """Return field ``part`` of a struct."""
    return exp.Dot(this=paren(node), expression=name(part))


def record(parts: Sequence[tuple[str, Node]]) -> Node:
    """Return DuckDB's struct of named values, each of the type it has."""
    return exp.Struct(expressions=[exp.PropertyEQ(this=name(part), expression=node) for part, node in parts])


def array(*items: Node) -> Node:
    """Return a literal array in the dialect's spelling."""
    return exp.Array(expressions=list(items))


def distinct(node: Node) -> Node:
    """Return ``DISTINCT node``, an aggregate's argument."""
    return exp.Distinct(expressions=[node])


def ordered(node: Node, descending: bool, nulls_first: bool) -> Node:
    """Return an ORDER BY item with its NULLs placed."""
    return exp.Ordered(this=node, desc=descending, nulls_first=nulls_first)


def ordered_argument(node: Node, keys: Sequence[Node]) -> Node:
    """Return ``node ORDER BY keys``, an aggregate's argument (DuckDB)."""
    return exp.Order(this=node, expressions=list(keys)) if keys else node


def filtered(call: Node, condition: Node) -> Node:
    """Return ``call FILTER (WHERE condition)``."""
    return exp.Filter(this=call, expression=exp.Where(this=condition))


def frame(mode: str, start: tuple[Node | str, str], end: tuple[Node | str, str], exclude: str | None) -> Node:
    """Return a window frame; a bound is (offset or UNBOUNDED or CURRENT ROW, side)."""
    return exp.WindowSpec(
        kind=mode.upper(),
        start=start[0],
        start_side=start[1] or None,
        end=end[0],
        end_side=end[1] or None,
        exclude=exclude,
    )


def window(call: Node, partition: Sequence[Node], order: Sequence[Node], spec: Node | None) -> Node:
    """Return ``call OVER (...)``."""
    return exp.Window(
        this=call,
        partition_by=list(partition) or None,
        order=exp.Order(expressions=list(order)) if order else None,
        spec=spec,
    )


def lambda_(variable: str, body: Node, *others: str) -> Node:
    """Return a lambda (Spark's arrow; DuckDB's word)."""
    return exp.Lambda(this=body, expressions=[name(variable), *(name(other) for other in others)])


# --- queries ------------------------------------------------------------------------------------


def alias(node: Node, label: str) -> Node:
    """Return ``node AS label``."""
    return exp.Alias(this=node, alias=name(label))


def label_of(node: Node) -> str:
    """Return the name that ``alias`` gave."""
    return str(node.alias)


def copied(node: Node) -> Node:
    """Return a FROM item or expression that can stand in a second place."""
    if isinstance(node, _Joined):
        return _Joined(node.base.copy(), [step.copy() for step in node.steps])
    return node.copy()


def table(relation: str, label: str) -> Node:
    """Return ``relation AS label`` as a FROM item."""
    return exp.Table(this=name(relation), alias=exp.TableAlias(this=name(label)))


def rows_of(function: str, args: Sequence[Node], label: str) -> Node:
    """Return ``function(args) AS label`` as a FROM item."""
    return exp.Table(this=fn(function, *args), alias=exp.TableAlias(this=name(label)))


def derived(query: Node, label: str, *, columns: Sequence[str] = (), lateral: bool = False) -> Node:
    """Return ``[LATERAL] (query) AS label(columns)`` as a FROM item."""
    names = exp.TableAlias(this=name(label), columns=[name(c) for c in columns])
    if lateral:
        return exp.Lateral(this=exp.Subquery(this=query), alias=names)
    return exp.Subquery(this=query, alias=names)


def values(rows: Sequence[Sequence[Node]], label: str, columns: Sequence[str]) -> Node:
    """Return ``(VALUES ...) AS label(columns)`` as a FROM item."""
    return exp.Values(
        expressions=[exp.Tuple(expressions=list(row)) for row in rows],
        alias=exp.TableAlias(this=name(label), columns=[name(c) for c in columns]),
    )


def join(left: Node, right: Node, kind: str, on: Node | None) -> Node:
    """Return a join as a FROM item; ``kind`` is INNER, LEFT, RIGHT, FULL or CROSS."""
    if kind in ("INNER", "CROSS"):
        step = exp.Join(this=right, kind=kind)
    else:
        step = exp.Join(this=right, side=kind)
    if on is not None:
        step.set("on", on)
    return _Joined(left, [step]) if not isinstance(left, _Joined) else _Joined(left.base, [*left.steps, step])


class _Joined:
    """A left-deep chain of joins, not yet part of a SELECT."""

    def __init__(self, base: Node, steps: list[Node]) -> None:
        self.base = base
        self.steps = steps


def cross_join(left: Node, right: Node) -> Node:
    """Return two FROM items cross-joined; a chain of inner and left joins goes on the other: ``a, b LEFT JOIN c ON …``.

    So the chain may refer to ``left`` where it is LATERAL, and engines see one chain to order.
    """
    if not isinstance(right, _Joined) or any(step.side in ("RIGHT", "FULL") for step in right.steps):
        return join(left, grouped_join(right), "CROSS", None)
    made = join(left, right.base, "CROSS", None)
    return _Joined(made.base, [*made.steps, *right.steps])


def grouped_join(item: Node) -> Node:
    """Return a join chain in parentheses, as the right side of another join needs it."""
    if not isinstance(item, _Joined):
        return item
    base = item.base.copy()
    base.set("joins", list(item.steps))
    return exp.Paren(this=base)


def select(
    targets: Sequence[Node],
    *,
    source: Node | None = None,
    where: Node | None = None,
    group: Sequence[Node] | None = None,
    grouping_sets: Sequence[Sequence[Node]] | None = None,
    order: Sequence[Node] = (),
    limit: Node | None = None,
    offset: Node | None = None,
    distinct_rows: bool = False,
) -> Node:
    """Return a SELECT. ``group`` () aggregates to one row (nothing is printed)."""
    node = exp.Select(expressions=list(targets))
    if distinct_rows:
        node.set("distinct", exp.Distinct())
    if source is not None:
        if isinstance(source, _Joined):
            node.set("from_", exp.From(this=source.base))
            node.set("joins", list(source.steps))
        else:
            node.set("from_", exp.From(this=source))
    if where is not None:
        node.set("where", exp.Where(this=where))
    if grouping_sets is not None:
        sets = [exp.Tuple(expressions=list(items)) for items in grouping_sets]
        node.set("group", exp.Group(grouping_sets=[exp.GroupingSets(expressions=sets)]))
    elif group:
        node.set("group", exp.Group(expressions=list(group)))
    return bounded(node, order, limit, offset)


def bounded(node: Node, order: Sequence[Node], limit: Node | None, offset: Node | None) -> Node:
    """Add ORDER BY, LIMIT and OFFSET to a query just made."""
    if order:
        node.set("order", exp.Order(expressions=list(order)))
    if limit is not None:
        node.set("limit", exp.Limit(expression=limit))
    if offset is not None:
        node.set("offset", exp.Offset(expression=offset))
    return node


def set_operation(kind: str, left: Node, right: Node, *, keep_all: bool) -> Node:
    """Return ``left UNION|INTERSECT|EXCEPT [ALL] right``; operands are put in parentheses."""
    cls = {"union": exp.Union, "intersect": exp.Intersect, "except": exp.Except}[kind]
    return cls(this=exp.Subquery(this=left), expression=exp.Subquery(this=right), distinct=not keep_all)


def with_(node: Node, items: Sequence[tuple[str, Sequence[str], Node, bool | None]], recursive: bool) -> Node:
    """Add WITH items (name, columns, query, materialized) to a query just made."""
    node.set(
        "with_",
        exp.With(
            expressions=[
                exp.CTE(
                    this=query,
                    alias=exp.TableAlias(this=name(label), columns=[name(c) for c in columns]),
                    materialized=materialized,
                )
                for label, columns, query, materialized in items
            ],
            recursive=recursive,
        ),
    )
    return node


def has_column(node: Node) -> bool:
    """Return whether a tree depends on a column or lambda variable."""
    return any(isinstance(n, exp.Column) for n in node.walk())


def columns_of(nodes: Iterable[Node]) -> list[tuple[str, str]]:
    """Return (table, column) of the qualified columns in some trees, in order of appearance."""
    columns = (n for node in nodes for n in node.find_all(exp.Column))
    return [(str(n.table), str(n.name)) for n in columns if n.table]


def renamed(node: Node, columns: Mapping[tuple[str, str], Node]) -> Node:
    """Return a copy of a tree with other nodes in place of columns (table, column)."""
    if not columns:
        return node

    def change(n: Node) -> Node:
        found = columns.get((str(n.table), str(n.name))) if isinstance(n, exp.Column) and n.table else None
        return n if found is None else found.copy()

    return node.transform(change)


def may_fail(node: Node) -> bool:
    """Return whether a tree holds an explicit error."""
    return any(isinstance(n, exp.Anonymous) and n.this in ("error", "raise_error") for n in node.walk())


def is_costly(node: Node) -> bool:
    """Return whether a tree calls Python (``callouts``) or draws a random number: it is to be evaluated once."""
    return any(isinstance(n, exp.Anonymous) and str(n.this).startswith(ONCE) for n in node.walk())


def size(node: Node, limit: int) -> int:
    """Return the number of nodes of a tree, counting no further than ``limit``."""
    count = 0
    for _ in node.walk():
        count += 1
        if count >= limit:
            break
    return count


def is_simple(node: Node) -> bool:
    """Return whether repeating ``node`` costs nothing: a column, literal or parameter, casts included."""
    while isinstance(node, (exp.Cast, exp.Paren, exp.Neg, exp.Dot)):
        node = node.this
    return isinstance(node, (exp.Column, exp.Literal, exp.Placeholder, exp.Null, exp.Boolean))


def is_zero(node: Node) -> bool:
    """Return whether ``node`` is the literal 0."""
    return isinstance(node, exp.Literal) and not node.is_string and node.this == "0"


def is_column(node: Node) -> bool:
    """Return whether ``node`` is a bare column reference."""
    return isinstance(node, exp.Column)


def preload() -> None:
    """Import the dialects and make their tables: a tenth of a second of the statement that needs them first."""
    for dialect in ("duckdb", "spark"):
        text_of(exp.null(), dialect)


def text_of(node: Node, dialect: str) -> str:
    """Print a tree in ``duckdb`` or ``spark``."""
    known, handlers = _printing(dialect)
    printer: Any = known.generator(normalize_functions=False, comments=False)
    printer._dispatch = handlers  # its class is compiled, and cannot be inherited from
    return str(printer.generate(node, copy=False))


_Handler: TypeAlias = Callable[[Any, Node], str]


@functools.cache
def _printing(dialect: str) -> tuple[Dialect, dict[type, _Handler]]:
    """Return a dialect, and its functions for classes of nodes, each letting others run before.

    sqlglot registers a dialect's class before it has given it its printer, so that one thread would print,
    and keep, another dialect's forms while a second imports it: an import waits until the module is whole.
    """
    importlib.import_module(f"sqlglot.dialects.{dialect}")
    known = Dialect.get_or_raise(dialect)
    printer: Any = known.generator()
    return known, {kind: _paced(handler) for kind, handler in printer._dispatch.items()}


def _paced(handler: _Handler) -> _Handler:
    def paced(printer: Any, node: Node) -> str:
        give_way()
        return handler(printer, node)

    return paced

"""WITH: items become ``Cte`` values of the query that has the clause; references become CteRanges.

    WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 9) ...
        left side bound first: it gives t's columns; then the right side, where t is the working table

Without RECURSIVE an item sees those before it. With it, items are bound in order of their references. What
makes a recursive item well-formed is checked over the AST, as PostgreSQL does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from planner import ast
from planner.base.errors import Span, SqlError
from planner.bind.query.search_cycle import added_columns, with_search_and_cycle
from planner.bind.query.search_cycle import check_form as check_search_form
from planner.bind.query.search_cycle import check_names as check_search_names
from planner.bind.query.set_operations import combine
from planner.bind.recursion import ITEM_CHANGE, QUERY
from planner.bind.scope import CteEntry, Scope
from planner.conversion.order import can_hash
from planner.query import Cte, CycleColumns, OutputColumn, QueryExpr, SearchColumns, SetOp, Values
from planner.query.location import location
from planner.query.walk import children
from planner.types.facts import format_type

QUERIES = (ast.Select, ast.SetOp, ast.Values)


def bind_with(scope: Scope, clause: ast.With | None) -> None:
    """Bind a WITH clause into ``scope`` (``ctes`` and ``bound_ctes``).

    Raises SqlError 42712, 42P10, 42P19, 42804, 0A000 (mutual recursion; items that change data, which the
    statement as a whole alone may have: ``planner.bind.change.with_items``).
    """
    if clause is None:
        return
    names: set[str] = set()
    for item in clause.ctes:
        if item.name in names:
            raise SqlError("42712", f'WITH query name "{item.name}" specified more than once', span=item.span)
        names.add(item.name)
        if isinstance(item.query, ast.Merge):
            raise SqlError("0A000", "MERGE not supported in WITH query", span=item.span)
        if not isinstance(item.query, QUERIES) and id(item) not in scope.context.changing:
            raise SqlError(
                "0A000",
                "WITH clause containing a data-modifying statement must be at the top level",
                span=item.span,
            )
    items = ordered_items(clause.ctes) if clause.recursive else list(clause.ctes)
    scope.future_ctes = names
    scope.in_recursive = clause.recursive
    for item in items:
        if isinstance(item.query, ast.Insert | ast.Update | ast.Delete):
            _changing(scope, item)
        elif clause.recursive and _refers(item.query, item.name):
            _recursive(scope, item)
        elif item.search is not None or item.cycle is not None:
            raise SqlError("42601", "WITH query is not recursive", span=item.span)
        else:
            _plain(scope, item)
        scope.future_ctes = scope.future_ctes - {item.name}
    # keep the written order where dependencies allow it: executors need definitions before uses
    scope.future_ctes = set()


def _enter(scope: Scope, item: ast.Cte, query: QueryExpr, *, recursive: bool) -> None:
    columns = named_columns(item, query.columns)
    scope.ctes[item.name] = CteEntry(
        name=item.name,
        columns=columns,
        origins=() if recursive else tuple([(c.table_oid, c.attnum) for c in query.columns]),
    )
    scope.bound_ctes.append(
        Cte(
            name=item.name,
            query=query,
            columns=columns,
            recursive=recursive,
            in_recursive=scope.in_recursive,
            materialized=item.materialized,
            named=len(item.columns),
            search=_search_columns(item.search),
            cycle=_cycle_columns(item.cycle),
        )
    )


def _search_columns(clause: ast.SearchClause | None) -> SearchColumns | None:
    if clause is None:
        return None
    return SearchColumns(columns=clause.columns, breadth=clause.breadth, sequence=clause.sequence)


def _cycle_columns(clause: ast.CycleClause | None) -> CycleColumns | None:
    if clause is None:
        return None
    return CycleColumns(columns=clause.columns, mark=clause.mark, path=clause.path)


def named_columns(item: ast.Cte, columns: Sequence[OutputColumn]) -> tuple[OutputColumn, ...]:
    """Return the columns as the item names them. Raises SqlError 42P10 for too many names."""
    if len(item.columns) > len(columns):
        raise SqlError(
            "42P10",
            f'WITH query "{item.name}" has {len(columns)} columns available but '
            f"{len(item.columns)} columns specified",
            span=item.span,
        )
    return tuple(
        [
            replace(column, name=item.columns[index]) if index < len(item.columns) else column
            for index, column in enumerate(columns)
        ]
    )


def _plain(scope: Scope, item: ast.Cte) -> None:
    if not isinstance(item.query, QUERIES):
        raise AssertionError(f"WITH item {item.name} is {type(item.query).__name__}, not a query")
    _enter(scope, item, QUERY.call(scope.context, item.query, scope), recursive=False)


def _changing(scope: Scope, item: ast.Cte) -> None:
    """Bind an item that changes data to be printed; that it can be run is looked at elsewhere."""
    change, columns = ITEM_CHANGE.call(scope, item)
    shown = Values(columns=columns, rows=())
    _enter(scope, item, shown, recursive=False)
    scope.ctes[item.name].returns = bool(columns)
    scope.bound_ctes[-1] = replace(scope.bound_ctes[-1], change=change)


def _recursive(scope: Scope, item: ast.Cte) -> None:
    node = item.query
    if not isinstance(node, ast.SetOp) or node.op != "union":
        raise SqlError(
            "42P19",
            f'recursive query "{item.name}" does not have the form non-recursive-term '
            "UNION [ALL] recursive-term",
            span=item.span,
        )
    _check_form(item, node)
    inner = Scope(context=scope.context, parent=scope)
    bind_with(inner, node.with_)
    left = QUERY.call(scope.context, node.left, inner)
    columns = named_columns(item, left.columns)
    if item.search is not None or item.cycle is not None:
        check_search_form(node)
        check_search_names(item, columns)
        unlisted = added_columns(inner, item, left, columns)
    else:
        unlisted = ()
    scope.ctes[item.name] = CteEntry(name=item.name, columns=columns, recursive=True, unlisted=unlisted)
    right = QUERY.call(scope.context, node.right, inner, resolve_unknowns=False)
    made = combine(inner, node, left, right)
    hashable = node.all or all(can_hash(c.type.oid, scope.context.env.row_type) for c in made.columns)
    for position, (before, after) in enumerate(zip(columns, made.columns, strict=True), 1):
        if before.type == after.type:
            continue
        if before.type.oid == after.type.oid:
            shown = (
                format_type(before.type.oid, before.type.typmod),
                format_type(after.type.oid, after.type.typmod),
            )
        else:
            shown = format_type(before.type.oid), format_type(after.type.oid)
        raise SqlError(
            "42804",
            f'recursive query "{item.name}" column {position} has type {shown[0]} in '
            f"non-recursive term but type {shown[1]} overall",
            hint="Cast the output of the non-recursive term to the correct type.",
            span=_column_span(left, position - 1),
        )
    if item.search is not None or item.cycle is not None:
        made = with_search_and_cycle(inner, item, made, columns)
    query: SetOp = replace(made, ctes=tuple(inner.bound_ctes))
    _enter(scope, item, query, recursive=True)
    scope.ctes[item.name].hashable = hashable


def _column_span(query: QueryExpr, position: int) -> Span | None:
    targets = getattr(query, "targets", ())
    return location(targets[position].expr) if position < len(targets) else None


# --- references in the AST ----------------------------------------------------------------------


def references(node: ast.Node, names: frozenset[str]) -> Iterator[ast.TableRef]:
    """Yield the table references that mean one of ``names``, inner WITH clauses honoured."""
    if isinstance(node, ast.TableRef):
        if not node.schema and node.name in names:
            yield node
        if node.sample is None:
            return
    clause = getattr(node, "with_", None)
    if clause is not None:
        hidden = frozenset(item.name for item in clause.ctes)
        visible = names
        for item in clause.ctes:
            yield from references(item.query, names - hidden if clause.recursive else visible)
            visible = visible - {item.name}
        names = names - hidden
    if not names:
        return
    for child in children(node):
        if not isinstance(child, ast.With):
            yield from references(child, names)


def _refers(node: ast.Node, name: str) -> bool:
    return next(references(node, frozenset((name,))), None) is not None


def ordered_items(items: Sequence[ast.Cte]) -> list[ast.Cte]:
    """Return the items so that each comes after those it refers to. Raises 0A000 for mutual recursion."""
    names = frozenset(item.name for item in items)
    needs = {item.name: {ref.name for ref in references(item.query, names)} - {item.name} for item in items}
    done: set[str] = set()
    result: list[ast.Cte] = []
    pending = list(items)
    while pending:
        ready = next((item for item in pending if needs[item.name] <= done), None)
        if ready is None:
            raise SqlError(
                "0A000",
                "mutual recursion between WITH items is not implemented",
                span=pending[0].span,
            )
        pending.remove(ready)
        done.add(ready.name)
        result.append(ready)
    return result


# --- the form of a recursive item ---------------------------------------------------------------

_WHERE = {
    "left": "its non-recursive term",
    "sublink": "a subquery",
    "outer": "an outer join",
    "intersect": "INTERSECT",
    "except": "EXCEPT",
}


def _check_form(item: ast.Cte, node: ast.SetOp) -> None:
    """Check where the self-reference stands. Raises SqlError 42P19, 0A000 as PostgreSQL."""
    for clause, word in (
        (node.order, "ORDER BY"),
        (node.offset, "OFFSET"),
        (node.limit, "LIMIT"),
        (node.locking, "FOR UPDATE/SHARE"),
    ):
        if clause:
            first = clause[0] if isinstance(clause, tuple) else clause
            raise SqlError("0A000", f"{word} in a recursive query is not implemented", span=first.span)
    if node.with_ is not None:
        for ref, place in _placed(node.with_, item.name, "sublink"):
            raise _misplaced(item.name, place, ref.span)
    for ref, place in _placed(node.left, item.name, "left"):
        raise _misplaced(item.name, place, ref.span)
    seen = 0
    for ref, place in _placed(node.right, item.name, ""):
        if place:
            raise _misplaced(item.name, place, ref.span)
        seen += 1
        if seen > 1:
            raise SqlError(
                "42P19",
                f'recursive reference to query "{item.name}" must not appear more than once',
                span=ref.span,
            )
    if seen == 0:
        for ref in references(node, frozenset((item.name,))):
            raise _misplaced(item.name, "sublink", ref.span)


def _misplaced(name: str, place: str, span: Span | None) -> SqlError:
    return SqlError(
        "42P19",
        f'recursive reference to query "{name}" must not appear within {_WHERE[place]}',
        span=span,
    )


def _placed(node: ast.Node, name: str, place: str) -> Iterator[tuple[ast.TableRef, str]]:
    """Yield references to ``name`` with the first thing around them that forbids recursion ("" = none)."""
    if isinstance(node, ast.TableRef):
        if not node.schema and node.name == name:
            yield node, place
        if node.sample is None:
            return
    clause = getattr(node, "with_", None)
    if clause is not None and any(item.name == name for item in clause.ctes):
        for item in (
            () if clause.recursive else clause.ctes
        ):  # up to the one that takes the name they see the outer one
            yield from _placed(item.query, name, place)
            if item.name == name:
                break
        return
    if isinstance(node, ast.SubLink):
        if node.test is not None:
            yield from _placed(node.test, name, place)
        yield from _placed(node.query, name, place or "sublink")
        return
    if isinstance(node, ast.JoinRef):
        nullable = {
            "inner": (False, False),
            "left": (False, True),
            "right": (True, False),
            "full": (True, True),
        }[node.kind]
        for side, may_be_null in zip((node.left, node.right), nullable, strict=True):
            yield from _placed(side, name, place or ("outer" if may_be_null else ""))
        if node.on is not None:
            yield from _placed(node.on, name, place)
        return
    if isinstance(node, ast.SetOp) and node.op != "union":
        both = node.op == "intersect"
        yield from _placed(node.left, name, place or ("intersect" if both and node.all else ""))
        yield from _placed(
            node.right,
            name,
            place or ("except" if not both else "intersect" if node.all else ""),
        )
        return
    for child in children(node):
        yield from _placed(child, name, place)

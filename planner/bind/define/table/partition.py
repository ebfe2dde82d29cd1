"""PARTITION BY and FOR VALUES: what is written to keys and bounds, and both to texts.

PARTITION BY RANGE (a, lower(b))              PartitionKey(r, (2, 0), ("", "lower(b)"), ...)
FOR VALUES FROM (1, MINVALUE) TO (10, 'x')    PartitionBound(r, ("1", ""), (0, -1), ("10", "x"), (0, 0))
its rows                                      ((a IS NOT NULL) AND ... AND (a >= 1) AND ((a < 10) OR ...))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from planner import ast
from planner.base.errors import Span, SqlError, not_supported
from planner.base.quoting import quote_identifier
from planner.bind.context import BindContext
from planner.bind.define.extension_operators import check_class_made, made_by_users
from planner.bind.define.table.table_parts import column_collation
from planner.bind.expression.expr import bind_clause, bind_kept
from planner.bind.scope import SYSTEM_COLUMNS, Scope
from planner.bind.stored import stored_context, table_scope, with_oids, without_spans
from planner.bind.stored.evaluated import bind_check
from planner.bind.stored.runnable import restricted_calls, runnable_now
from planner.bind.stored.shown import over_table
from planner.catalog import Catalog, PartitionBound, PartitionKey, RelationDef
from planner.conversion.casts import resolve_unknown, try_coerce
from planner.conversion.collations import COLLATE_HINT, collation_of, expr_collation, without_collate
from planner.conversion.domain_checks import demands
from planner.conversion.pathways import CastContext
from planner.deparse import Reader, deparse_expr
from planner.deparse.expr import collation_name, quote_literal
from planner.functions.values.compare import sort_key
from planner.indexing.opclass import check_accepts, has_default_class, named_class
from planner.parse import parse_expression
from planner.partitions.bounds import ancestors, hasher_of, hashes, key_text, key_value, sorted_partitions
from planner.query import WHOLE_ROW, CoerceToDomain, Const, Expr, FuncExpr, Var
from planner.query.walk import walk
from planner.rules.fold import fold
from planner.rules.plain import without_domains
from planner.rules.stable import is_immutable
from planner.statements.table import BoundSpans, ComputedBound
from planner.types import SqlType
from planner.types.domains import base_oid, plain_type
from planner.types.facts import format_type, plain_collation, stored_type

MAX_KEYS = 32
NULL_IN_RANGE = "cannot specify NULL in range bound"


# --- keys -------------------------------------------------------------------------------------------


def bind_key(context: BindContext, node: ast.PartitionBy, table: RelationDef) -> PartitionKey:
    """Bind PARTITION BY over a table as it will be. Raises SqlError 42703, 42704, 42P16, 42P17, 54011; 0A000
    by name.
    """
    if node.strategy == "l" and len(node.elements) > 1:
        raise SqlError("42P17", 'cannot use "list" partition strategy with more than one column')
    if len(node.elements) > MAX_KEYS:
        raise SqlError("54011", f"cannot partition using more than {MAX_KEYS} columns")
    attnums: list[int] = []
    texts: list[str] = []
    types: list[SqlType] = []
    collations: list[int] = []
    classes: list[str] = []
    own_classes: list[int] = []
    for element in node.elements:
        expr = _key_element(context, element, table)
        collation, expr = expr_collation(expr, [table], context.catalog), without_collate(expr)
        attnum = expr.attnum if isinstance(expr, Var) else 0
        type_ = plain_type(expr.type)
        method = "hash" if node.strategy == "h" else "btree"
        opclass, own = "", 0
        made = made_by_users(context, method, element.opclass) if element.opclass else None
        if made is not None and node.strategy == "h":
            check_accepts(made.name, type_.oid, made.input_type)
            _check_hasher(context, made.oid, type_)
            opclass, own = made.name, made.oid
        elif element.opclass:
            check_class_made(context, method, element.opclass, type_.oid, None)
            opclass = named_class(type_.oid, method, element.opclass, None)
        elif not has_default_class(type_.oid, method):
            raise SqlError(
                "42704",
                f'data type {format_type(type_.oid)} has no default operator class for access method "{method}"',
                hint=f"You must specify a {method} operator class or define a default {method} operator class for "
                "the data type.",
            )
        if node.strategy == "h" and not own and not hashes(type_):
            raise not_supported(f"PARTITION BY HASH of type {format_type(type_.oid)}", span=element.span)
        classes.append(opclass)
        own_classes.append(own)
        attnums.append(attnum)
        texts.append("" if attnum else deparse_expr(expr, table))
        types.append(type_)
        if element.collation:
            collation = column_collation(context, element.collation, type_, None)
        elif not collation and plain_collation(type_.oid):
            raise SqlError(
                "42P16",
                f"no collation was derived for partition key column {len(attnums)} with collatable type "
                f"{format_type(type_.oid)}",
                hint=COLLATE_HINT,
            )
        collations.append(collation)
    return PartitionKey(
        strategy=node.strategy,
        attnums=tuple(attnums),
        expressions=tuple(texts),
        types=tuple(types),
        collations=tuple(collations),
        opclasses=tuple(classes) if any(classes) else (),
        own_classes=tuple(own_classes) if any(own_classes) else (),
    )


def _check_hasher(context: BindContext, class_oid: int, type_: SqlType) -> None:
    """Raise SqlError 0A000 for a function that cannot be called here; that there is none is told to who makes
    a partition, as in PostgreSQL.
    """
    try:
        hasher_of(context.catalog, class_oid, type_)
    except SqlError as error:
        if error.sqlstate != "42P17":
            raise


def _own_collation(table: RelationDef, attnum: int, text: str, catalog: Catalog) -> int:
    """Return the collation that a key has by itself: its column's, or that of its expression."""
    if attnum:
        return collation_of(table.column(attnum))
    scope = table_scope(stored_context(catalog, text), table)
    return expr_collation(bind_clause(scope, parse_expression(text), "PARTITION BY"), [table], catalog)


def _key_element(context: BindContext, element: ast.PartitionElement, table: RelationDef) -> Expr:
    if element.expr is None:
        column = next((c for c in table.live if c.name == element.name), None)
        if column is None and element.name in SYSTEM_COLUMNS:
            raise SqlError(
                "42P17", f'cannot use system column "{element.name}" in partition key', span=element.span
            )
        if column is None:
            raise SqlError(
                "42703", f'column "{element.name}" named in partition key does not exist', span=element.span
            )
        if column.generated:
            raise SqlError(
                "42P17",
                "cannot use generated column in partition key",
                detail=f'Column "{column.name}" is a generated column.',
                span=element.span,
            )
        return Var(type=column.type, range=0, attnum=column.attnum, name=column.name)
    bound = bind_kept(table_scope(context, table), element.expr, "PARTITION BY")
    made: Expr = without_spans(with_oids(context, resolve_unknown(bound, context.env)))
    used = [node for node in walk(made) if isinstance(node, Var)]
    if any(node.attnum == WHOLE_ROW for node in used):
        raise not_supported("a whole row in PARTITION BY", span=element.span)
    for node in used:
        if node.attnum < 0:
            raise SqlError("42P17", "partition key expressions cannot contain system column references")
        column = table.column(node.attnum)
        if column.generated:
            raise SqlError(
                "42P17",
                "cannot use generated column in partition key",
                detail=f'Column "{column.name}" is a generated column.',
                span=element.span,
            )
    if isinstance(made, Var):
        return made
    if not is_immutable(made):
        raise SqlError("42P17", "functions in partition key expression must be marked IMMUTABLE")
    demanding = any(
        isinstance(node, CoerceToDomain) and demands(context.catalog, node.domain) for node in walk(made)
    )
    if not used and not demanding:
        raise SqlError("42P17", "cannot use constant expression as partition key")
    return made


def with_key_named(before: RelationDef, after: RelationDef, catalog: Catalog) -> RelationDef:
    """Return a partitioned table whose key's expressions name its columns as they are called now."""
    key = after.partition_key
    if key is None or not any(key.expressions):
        return after
    texts = []
    for text in key.expressions:
        if text:
            context = stored_context(catalog, text)
            expr = bind_kept(table_scope(context, before), parse_expression(text), "PARTITION BY")
            text = deparse_expr(resolve_unknown(without_spans(expr), context.env), after)
        texts.append(text)
    return replace(after, partition_key=replace(key, expressions=tuple(texts)))


def key_definition(parent: RelationDef, catalog: Catalog, reader: Reader) -> str:
    """Return what ``pg_get_partkeydef`` shows to a reader: ``RANGE (a, lower(b))``."""
    key = parent.divided_by
    words = {"r": "RANGE", "l": "LIST", "h": "HASH"}
    return f"{words[key.strategy]} ({', '.join(_operands(parent, catalog, reader))})"


def shown_key(parent: RelationDef, reader: Reader) -> list[str]:
    """Return each key as a message names it: a column, or an expression."""
    key = parent.divided_by
    return [
        quote_identifier(parent.column(attnum).name)
        if attnum
        else _shown_key(text, parent, reader, pretty=True)
        for attnum, text in zip(key.attnums, key.expressions, strict=True)
    ]


def _shown_key(text: str, parent: RelationDef, reader: Reader, *, pretty: bool = False) -> str:
    """Return an expression of a key for a reader, in parentheses unless it is a call."""
    shown = over_table(text, parent, pretty=pretty, reader=reader)[0]
    return shown if shown.endswith(")") and not shown.startswith("(") else f"({shown})"


def _operands(parent: RelationDef, catalog: Catalog, reader: Reader | None = None) -> list[str]:
    """Return the SQL text of each key over the parent's columns; for a reader, as in a definition:
    expressions that are no calls are in parentheses.
    """
    key = parent.divided_by
    found: list[str] = []
    for number, (attnum, text) in enumerate(zip(key.attnums, key.expressions, strict=True)):
        if attnum:
            shown = quote_identifier(parent.column(attnum).name)
        else:
            shown = f"({text})" if reader is None else _shown_key(text, parent, reader)
        collation = key.collations[number]
        if reader is not None and collation and collation != _own_collation(parent, attnum, text, catalog):
            shown += f" COLLATE {collation_name(collation, reader.function_name)}"
        if reader is not None and key.opclasses and key.opclasses[number]:
            shown += f" {_shown_class(key, number, reader)}"
        found.append(shown)
    return found


def _shown_class(key: PartitionKey, number: int, reader: Reader) -> str:
    own = key.own_classes[number] if key.own_classes else 0
    if own and reader.class_name is not None:
        return reader.class_name(own)
    return quote_identifier(key.opclasses[number])


# --- bounds -----------------------------------------------------------------------------------------


def bind_bound(
    context: BindContext, node: ast.PartitionBound, parent: RelationDef
) -> tuple[PartitionBound, BoundSpans, tuple[ComputedBound, ...]]:
    """Bind FOR VALUES or DEFAULT for a partition of ``parent``: the bound, where its values stand, and those
    that are computed when the statement runs. Raises SqlError 42P16, 42P17, 42804, 0A000.
    """
    key = parent.divided_by
    spans = BoundSpans(
        whole=node.span,
        lower=tuple(_span(v) for v in (node.lower or node.values)),
        upper=tuple(_span(v) for v in node.upper),
    )
    for oid, type_ in zip(key.own_classes, key.types, strict=False):
        if oid:
            hasher_of(context.catalog, oid, type_)
    if node.strategy == "":
        if key.strategy == "h":
            raise SqlError("42P16", "a hash-partitioned table may not have a default partition")
        return PartitionBound(strategy="d"), spans, ()
    if node.strategy != key.strategy:
        word = {"r": "range", "l": "list", "h": "hash"}[key.strategy]
        raise SqlError("42P16", f"invalid bound specification for a {word} partition", span=node.span)
    names = _key_names(parent)
    if node.strategy == "h":
        if node.modulus <= 0:
            raise SqlError("42P16", "modulus for hash partition must be an integer value greater than zero")
        if node.remainder < 0:
            raise SqlError(
                "42P16", "remainder for hash partition must be an integer value greater than or equal to zero"
            )
        if node.remainder >= node.modulus:
            raise SqlError("42P16", "remainder for hash partition must be less than modulus")
        return PartitionBound(strategy="h", modulus=node.modulus, remainder=node.remainder), spans, ()
    computed: list[ComputedBound] = []
    if node.strategy == "l":
        column, declared = _column_type(parent, 0), _declared(parent, 0)
        texts: list[str | None] = []
        for place, value in enumerate(node.values):
            made = _value(context, value, column, names[0], declared)
            if isinstance(made, ComputedBound):
                computed.append(replace(made, place=place))
                made = ""
            texts.append(made)
        bound = PartitionBound(strategy="l", values=tuple(texts))
        return *(distinct_values(bound, spans) if not computed else (bound, spans)), tuple(computed)
    if len(node.lower) != len(key.types):
        raise SqlError("42P16", "FROM must specify exactly one value per partitioning column")
    if len(node.upper) != len(key.types):
        raise SqlError("42P16", "TO must specify exactly one value per partitioning column")
    lower, infinite, of_lower = _range_side(context, node.lower, parent, names)
    upper, upper_infinite, of_upper = _range_side(context, node.upper, parent, names)
    bound = PartitionBound(
        strategy="r", values=lower, infinite=infinite, upper=upper, upper_infinite=upper_infinite
    )
    return bound, spans, (*of_lower, *(replace(one, upper=True) for one in of_upper))


def distinct_values(bound: PartitionBound, spans: BoundSpans) -> tuple[PartitionBound, BoundSpans]:
    """Return a list's bound with each value once, where it stands first."""
    kept = list(dict.fromkeys(bound.values))
    first = [bound.values.index(text) for text in kept]
    spans = replace(spans, lower=tuple(spans.lower[i] for i in first))
    return replace(bound, values=tuple(kept)), spans


def _span(node: ast.Expression) -> Span | None:
    return node.span


def _key_names(parent: RelationDef) -> list[str]:
    key = parent.divided_by
    return [
        parent.column(attnum).name if attnum else text
        for attnum, text in zip(key.attnums, key.expressions, strict=True)
    ]


def _column_type(parent: RelationDef, place: int) -> SqlType:
    key = parent.divided_by
    return parent.column(key.attnums[place]).type if key.attnums[place] else key.types[place]


def _declared(parent: RelationDef, place: int) -> SqlType:
    key = parent.divided_by
    return parent.column(key.attnums[place]).declared if key.attnums[place] else key.types[place]


_INFINITE = {"minvalue": -1, "maxvalue": 1}


def _range_side(
    context: BindContext, nodes: Sequence[ast.Expression], parent: RelationDef, names: Sequence[str]
) -> tuple[tuple[str, ...], tuple[int, ...], list[ComputedBound]]:
    texts: list[str] = []
    ways: list[int] = []
    computed: list[ComputedBound] = []
    for place, node in enumerate(nodes):
        plain = isinstance(node, ast.ColumnRef) and len(node.names) == 1
        way = _INFINITE.get(node.names[0], 0) if plain and isinstance(node, ast.ColumnRef) else 0
        if ways and ways[-1] and way != ways[-1]:
            word = "MINVALUE" if ways[-1] < 0 else "MAXVALUE"
            raise SqlError("42804", f"every bound following {word} must also be {word}", span=node.span)
        text = ""
        if not way:
            made = _value(context, node, _column_type(parent, place), names[place], _declared(parent, place))
            if made is None:
                raise SqlError("42P17", NULL_IN_RANGE)
            if isinstance(made, ComputedBound):
                computed.append(replace(made, place=place))
            else:
                text = made
        texts.append(text)
        ways.append(way)
    return tuple(texts), tuple(ways), computed


def _value(
    context: BindContext, node: ast.Expression, type_: SqlType, name: str, declared: SqlType
) -> str | ComputedBound | None:
    """Return a value of a bound as it is kept, NULL as None; what is no constant is to be computed.
    ``declared``: what the column was declared as.
    """
    try:
        bound = bind_kept(Scope(context=context), node, "PARTITION BOUND")
    except SqlError as error:
        if error.sqlstate not in ("42703", "42P01"):
            raise
        message = "cannot use column reference in partition bound expression"
        raise SqlError("0A000", message, span=error.span) from error
    coerced = try_coerce(bound, type_, CastContext.ASSIGNMENT, context.env)
    if coerced is None:
        raise SqlError(
            "42804",
            f'specified value cannot be cast to type {format_type(declared.oid)} for column "{name}"',
            span=bound.span or node.span,
        )
    made = fold(without_domains(coerced))
    if isinstance(made, Const):
        return None if made.value is None else key_text(made.value, type_)
    called = replace(context, functions=set())
    made = without_domains(runnable_now(coerced, called))
    functions = called.functions | restricted_calls(made, context.catalog.guarded_functions)
    context.functions |= called.functions
    return ComputedBound(
        upper=False, place=0, expr=made, type=type_, span=node.span, functions=frozenset(functions)
    )


# --- what a bound says, as a condition --------------------------------------------------------------


def own_condition(partition: RelationDef, parent: RelationDef, catalog: Catalog) -> list[str]:
    """Return the conditions that a partition's bound puts on its rows, over the parent's column names; all of
    them have to hold.
    """
    bound = partition.bound
    key = parent.divided_by
    if bound is None:
        raise AssertionError("a partition has no bound")
    operands = _operands(parent, catalog)
    if bound.strategy == "h":
        listed = ", ".join(operands)
        of = quote_literal(str(parent.oid))
        return [f"satisfies_hash_partition({of}::oid, {bound.modulus}, {bound.remainder}, {listed})"]
    if bound.strategy == "l":
        return _list_condition(bound.values, operands[0], key)
    if bound.strategy == "r":
        return [*_not_null(operands), *_range_condition(bound, operands, key)]
    beside = sorted_partitions(parent, catalog.partitions_of(parent.oid))
    others = [p.bound for p in beside if p.bound is not None and p.bound.strategy != "d"]
    if not others:
        return []
    if key.strategy == "l":
        values = dict.fromkeys(value for other in others for value in other.values)
        return [f"(NOT ({' AND '.join(_list_condition(tuple(values), operands[0], key))}))"]
    arms = [" AND ".join(_range_condition(other, operands, key)) for other in others]
    arms = [f"({arm})" if arm else "true" for arm in arms]
    return [f"(NOT ({' AND '.join(_not_null(operands))} AND ({' OR '.join(arms)})))"]


def _not_null(operands: Iterable[str]) -> list[str]:
    return [f"({operand} IS NOT NULL)" for operand in operands]


def _constant(text: str, type_: SqlType) -> str:
    return f"CAST({quote_literal(text)} AS {stored_type(type_.oid, -1)})"


def _list_condition(values: Sequence[str | None], operand: str, key: PartitionKey) -> list[str]:
    constants = [_constant(text, key.types[0]) for text in values if text is not None]
    null = None in values
    if not constants:
        return [f"({operand} IS NULL)"]
    one = f"{operand} = {constants[0]}"
    test = one if len(constants) == 1 else f"{operand} = ANY (ARRAY[{', '.join(constants)}])"
    return [f"(({operand} IS NULL) OR ({test}))"] if null else [f"({operand} IS NOT NULL)", f"({test})"]


def _range_condition(bound: PartitionBound, operands: Sequence[str], key: PartitionKey) -> list[str]:
    """Return the conjuncts of a range: places in which both bounds are equal, then from where, then up to
    where (get_qual_for_range).
    """
    found: list[str] = []
    start = 0
    for start in range(len(operands)):
        if bound.infinite[start] or bound.upper_infinite[start]:
            break
        sort = sort_key(base_oid(key.types[start].oid)) or (lambda value: value)
        low = sort(key_value(bound.values[start] or "", key.types[start]))
        high = sort(key_value(bound.upper[start], key.types[start]))
        if low != high or start == len(operands) - 1:
            break
        found.append(f"({operands[start]} = {_constant(bound.upper[start], key.types[start])})")
    lower = _side(bound.values, bound.infinite, operands, key, start, ">")
    upper = _side(bound.upper, bound.upper_infinite, operands, key, start, "<")
    return found + [side for side in (lower, upper) if side]


def _side(
    texts: Sequence[str | None],
    infinite: Sequence[int],
    operands: Sequence[str],
    key: PartitionKey,
    start: int,
    sign: str,
) -> str:
    arms: list[str] = []
    equal: list[str] = []
    last = len(operands) - 1
    inside = -1 if sign == ">" else 1  # what has to follow for equality to be enough
    for place in range(start, len(operands)):
        if infinite[place]:
            break
        constant = _constant(texts[place] or "", key.types[place])
        following = infinite[place + 1] if place < last else 0
        operator = sign
        if (place == last and sign == ">") or following == inside:
            operator += "="
        arms.append(" AND ".join([*equal, f"({operands[place]} {operator} {constant})"]))
        equal.append(f"({operands[place]} = {constant})")
        if following:
            break
    if not arms:
        return ""
    return arms[0] if len(arms) == 1 else "(" + " OR ".join(f"({arm})" for arm in arms) + ")"


def partition_condition(partition: RelationDef, catalog: Catalog) -> str:
    """Return the condition that a partition's rows meet, over its own columns, those of the tables above it
    included; "" for none.
    """
    found: list[str] = []
    below = partition
    for parent in ancestors(partition, catalog):
        found = [*own_condition(below, parent, catalog), *found]
        below = parent
    return " AND ".join(found)


def partition_check(partition: RelationDef, catalog: Catalog) -> Expr | None:
    """Return ``partition_condition`` as an expression over the partition's columns, None for none."""
    text = partition_condition(partition, catalog)
    return bind_check(text, partition, catalog) if text else None


def shown_condition(partition: RelationDef, catalog: Catalog, reader: Reader) -> str | None:
    """Return what ``pg_get_partition_constraintdef`` shows to a reader."""
    expr = partition_check(partition, catalog)
    if expr is None:
        return None
    text = deparse_expr(
        expr,
        partition,
        settings=reader.settings,
        type_name=reader.type_name,
        function_name=reader.function_name,
    )
    return text if text.startswith("(") or isinstance(expr, FuncExpr) else f"({text})"

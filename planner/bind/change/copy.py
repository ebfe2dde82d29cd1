r"""COPY: options checked, columns resolved.

    COPY t (b, a) FROM STDIN (FORMAT csv, HEADER)     table t, attnums of b and a, options
    COPY (SELECT ...) TO STDOUT                       the bound query; attnums ()
    COPY (DELETE ... RETURNING ...) TO STDOUT         the bound change

``options`` of the bound statement holds what was given (format, delimiter, null, header, quote, escape,
encoding, freeze; the force_* lists as frozensets of positions in the copied columns; PostgreSQL 17's and 18's
on_error, reject_limit and log_verbosity) and, under ``codec``, the same as the ``CopyOptions`` value that
``pgwire.codecs.copy`` takes. ``freeze`` has no effect, but its rules are kept (promise P4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Literal

from pgwire.codecs.copy import CopyOptions, Format
from pgwire.codecs.errors import DataError
from pgwire.codecs.text.encodings import canonical, convertible
from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind import bind_node
from planner.bind.change.changing_items import modifies
from planner.bind.context import BindContext
from planner.bind.define.table.options import boolean_option, option_text, redundant
from planner.bind.expression.expr import bind_clause
from planner.bind.query.select import bind_query
from planner.bind.session.subscribe import bind_subscribe
from planner.bind.stored import table_scope
from planner.bind.stored.evaluated import column_default
from planner.bind.stored.runnable import runnable_now
from planner.catalog import ColumnDef, RelationDef
from planner.catalog.relation_kinds import CHECKED, PARTITIONS, RELATION_KINDS
from planner.conversion.casts import coerce_to_boolean
from planner.query import Delete, Insert, QueryExpr, Update, Var
from planner.query.walk import walk
from planner.statements.classify import returned_rows

_FORMATS: Final[tuple[Format, ...]] = ("text", "csv", "binary", "json", "parquet")


def bind_copy(context: BindContext, node: ast.Copy) -> st.Copy:
    """Bind COPY.

    Raises SqlError 42601, 22023, 0A000 (options, server-side programs, other encodings), 42P01, 42703, 42701,
    42809 (views and indexes), 42501 (system catalogs as targets).
    """
    if node.program:
        raise not_supported("COPY PROGRAM", span=node.span)
    if node.query is not None:
        return _query(context, node)
    reference = node.relation
    if reference is None:
        raise AssertionError("COPY has neither a relation nor a query")
    relation = context.relation(reference.schema, reference.name, catalog=reference.catalog)
    wrong = _wrong_kind(relation, node.is_from)
    columns = _columns(relation, node.columns)
    # of what rows are not copied from nobody looks at options
    written = node if wrong is None or node.is_from else replace(node, options=())
    options = _options(written, [column.name for column in columns], relation)
    if node.is_from and relation.kind == "p" and options.get("freeze"):
        raise SqlError("0A000", "cannot perform COPY FREEZE on a partitioned table")
    where = None
    if node.where is not None:
        if not node.is_from:
            raise SqlError("42601", "WHERE clause not allowed with COPY TO", span=node.span)
        condition = bind_clause(table_scope(context, relation), node.where, "COPY WHERE")
        for item in walk(condition):
            if not isinstance(item, Var) or item.range < 0:
                continue
            named = [c for c in relation.live if item.attnum in (0, c.attnum)]
            generated = next((c for c in named if c.generated), None)
            if generated is not None:
                raise SqlError(
                    "42P10",
                    "generated columns are not supported in COPY FROM WHERE conditions",
                    detail=f'Column "{generated.name}" is a generated column.',
                )
            if item.attnum == 0:
                raise not_supported("a whole row in COPY FROM WHERE", span=item.span)
            if item.attnum < 0 and item.name != "tableoid":
                raise not_supported(f"column {item.name} in COPY FROM WHERE", span=item.span)
        where = runnable_now(coerce_to_boolean(condition, "WHERE", context.env), context)
    defaults = []
    if node.is_from:
        listed = {column.attnum for column in columns}
        for column in relation.live:
            default = (
                column_default(column, context.catalog, context.functions)
                if column.attnum not in listed
                else None
            )
            if default is not None:
                defaults.append((column.attnum, default))
    else:
        context.reads.add(relation.oid)
        if relation.virtual:
            context.flags.add("virtual")
    return st.Copy(
        table=relation.oid,
        attnums=tuple(column.attnum for column in columns),
        query=None,
        is_from=node.is_from,
        filename=node.filename,
        program=False,
        options=options,
        defaults=tuple(defaults),
        where=where,
        wrong=wrong,
    )


def _query(context: BindContext, node: ast.Copy) -> st.Copy:
    if isinstance(node.query, ast.Subscribe):
        return _subscribe(context, node, node.query)
    query: QueryExpr
    if isinstance(node.query, ast.Insert | ast.Update | ast.Delete) or modifies(node.query):
        return _change(context, node)
    if isinstance(node.query, ast.Select | ast.SetOp | ast.Values):
        query = bind_query(context, node.query)
    elif isinstance(node.query, ast.CreateTableAs):
        raise SqlError("0A000", "COPY (SELECT INTO) is not supported")
    else:
        if isinstance(node.query, ast.Merge):
            raise SqlError("0A000", "MERGE not supported in COPY")
        raise not_supported("COPY of this statement", span=node.span)
    return st.Copy(
        table=0,
        attnums=(),
        query=query,
        is_from=False,
        filename=node.filename,
        program=False,
        options=_options(node, [column.name for column in query.columns]),
    )


def _change(context: BindContext, node: ast.Copy) -> st.Copy:
    """Bind COPY of what RETURNING gives, or of a query whose WITH changes data."""
    if isinstance(node.query, ast.Merge):
        raise SqlError("0A000", "MERGE not supported in COPY")
    if node.query is None:
        raise AssertionError("COPY has neither a relation nor a query")
    change = bind_node(context, node.query)
    if not isinstance(change, Insert | Update | Delete | st.WithChanges):
        raise AssertionError(f"a change in COPY is bound as {type(change).__name__}")
    columns = returned_rows(change)
    if columns is None:
        raise SqlError("0A000", "COPY query must have a RETURNING clause")
    return st.Copy(
        table=0,
        attnums=(),
        query=None,
        is_from=False,
        filename=node.filename,
        program=False,
        options=_options(node, [column.name for column in columns]),
        change=change,
    )


def _subscribe(context: BindContext, node: ast.Copy, inner: ast.Subscribe) -> st.Copy:
    if node.filename is not None:
        raise not_supported("COPY of a subscription to a file", span=node.span)
    bound = bind_subscribe(context, inner)
    return st.Copy(
        table=0,
        attnums=(),
        query=None,
        is_from=False,
        filename=None,
        program=False,
        options=_options(node, [column.name for column in bound.columns]),
        subscribe=bound,
    )


def _wrong_kind(relation: RelationDef, is_from: bool) -> SqlError | None:
    """Return why rows are not copied from or to a relation of its kind, which is told to who has the right
    to. Raises SqlError 42809, 42501.
    """
    if relation.kind in ("i", "c"):
        raise SqlError(
            "42809", f'"{relation.name}" is {"an index" if relation.kind == "i" else "a composite type"}'
        )
    if relation.virtual and relation.kind == "r" and is_from:
        raise SqlError("42501", f'permission denied: "{relation.name}" is a system catalog')
    view = RELATION_KINDS[relation.kind].query
    if is_from:
        if relation.kind in CHECKED or relation.has_instead("i"):
            return None
        hint = "To enable copying to a view, provide an INSTEAD OF INSERT trigger."
        return SqlError(
            "42809",
            f'cannot copy to {RELATION_KINDS[relation.kind].word} "{relation.name}"',
            hint=hint if relation.kind == "v" else None,
        )
    if relation.kind == "r":
        return None
    word = "partitioned table" if relation.kind == "p" else RELATION_KINDS[relation.kind].word
    return SqlError(
        "42809",
        f'cannot copy from {word} "{relation.name}"',
        hint="Try the COPY (SELECT ...) TO variant." if view or relation.kind in PARTITIONS else None,
    )


def _columns(relation: RelationDef, names: Sequence[str]) -> list[ColumnDef]:
    if not names:
        return [column for column in relation.live if not column.generated]
    by_name = {column.name: column for column in relation.live}
    found: list[ColumnDef] = []
    for name in names:
        column = by_name.get(name)
        if column is None:
            raise SqlError("42703", f'column "{name}" of relation "{relation.name}" does not exist')
        if column.generated:
            raise SqlError(
                "42P10",
                f'column "{name}" is a generated column',
                detail="Generated columns cannot be used in COPY.",
            )
        if column in found:
            raise SqlError("42701", f'column "{name}" specified more than once')
        found.append(column)
    return found


# --- options --------------------------------------------------------------------------------------


def _options(
    node: ast.Copy, columns: Sequence[str], relation: RelationDef | None = None
) -> dict[str, object]:
    found: dict[str, object] = {}
    for option in node.options:
        name = option.name
        if name not in _READERS:
            raise SqlError("42601", f'option "{name}" not recognized', span=option.span)
        if name in found:
            raise redundant(option.span)
        found[name] = _READERS[name](option)
    force: dict[str, frozenset[int]] = {}
    for name in ("force_quote", "force_not_null", "force_null"):
        if name in found:
            force[name] = _positions(name, found[name], columns, relation)
            found[name] = force[name]
    codec = CopyOptions(
        format=_format(found.get("format", "text")),
        delimiter=_text(found, "delimiter"),
        null=_text(found, "null"),
        header=_header(found.get("header", False)),
        quote=_text(found, "quote"),
        escape=_text(found, "escape"),
        encoding=_text(found, "encoding"),
        on_error=found.get("on_error", "stop"),  # type: ignore[arg-type]
        reject_limit=found.get("reject_limit", 0),  # type: ignore[arg-type]
        log_verbosity=found.get("log_verbosity", "default"),  # type: ignore[arg-type]
        **force,
    )
    if codec.encoding is not None and not convertible(codec.encoding):
        source, target = (codec.encoding, "UTF8") if node.is_from else ("UTF8", codec.encoding)
        what = f'default conversion function for encoding "{source}" to "{target}"'
        raise SqlError("42883", f"{what} does not exist")
    for name in ("on_error", "reject_limit"):
        if name in found and not node.is_from:
            raise SqlError("22023", f"COPY {name.upper()} cannot be used with COPY TO")
    if codec.format == "parquet" and node.filename is None:
        raise not_supported("COPY of the format parquet from or to the client", span=node.span)
    try:
        codec.check("from" if node.is_from else "to")
    except SqlError:
        raise
    except DataError as error:
        raise SqlError(error.sqlstate, error.message, detail=error.detail, hint=error.hint) from None
    found["format"] = codec.format
    found["codec"] = codec
    return found


def _text(found: dict[str, object], name: str) -> str | None:
    value = found.get(name)
    return None if value is None else str(value)


def _format(value: object) -> Format:
    return next((known for known in _FORMATS if known == value), "text")


def _header(value: object) -> bool | Literal["match"]:
    return "match" if value == "match" else bool(value)


def _positions(
    option: str, names: object, columns: Sequence[str], relation: RelationDef | None
) -> frozenset[int]:
    if names == "*":
        return frozenset(range(len(columns)))
    positions: set[int] = set()
    for name in names if isinstance(names, tuple) else ():
        if name not in columns:
            if relation is None or all(column.name != name for column in relation.live):
                of = f' of relation "{relation.name}"' if relation is not None else ""
                raise SqlError("42703", f'column "{name}"{of} does not exist')
            raise SqlError("42P10", f'{option.upper()} column "{name}" not referenced by COPY')
        if columns.index(name) in positions:
            raise SqlError("42701", f'column "{name}" specified more than once')
        positions.add(columns.index(name))
    return frozenset(positions)


def _read_format(option: ast.Option) -> str:
    text = option_text(option) or ""
    if text not in _FORMATS:
        raise SqlError("22023", f'COPY format "{text}" not recognized', span=option.span)
    return text


def _read_text(option: ast.Option) -> str:
    text = option_text(option)
    if text is None:
        raise SqlError("42601", f"{option.name} requires a parameter")
    return text


def _read_header(option: ast.Option) -> bool | str:
    text = option_text(option)
    if text is not None and text.lower() == "match":
        return "match"
    try:
        return boolean_option(option)
    except SqlError:
        raise SqlError("42601", f'{option.name} requires a Boolean value or "match"') from None


def _read_names(option: ast.Option) -> object:
    value = option.value
    if isinstance(value, tuple):
        return value
    if value == "*" and option.name == "force_quote":
        return "*"
    raise SqlError(
        "22023", f'argument to option "{option.name}" must be a list of column names', span=option.span
    )


def _read_encoding(option: ast.Option) -> str:
    text = _read_text(option)
    found = canonical(text)
    if found is None:
        raise SqlError(
            "22023", f'argument to option "{option.name}" must be a valid encoding name', span=option.span
        )
    return found


def _read_on_error(option: ast.Option) -> str:
    return _choice(option, ("stop", "ignore"))


def _read_verbosity(option: ast.Option) -> str:
    return _choice(option, ("silent", "default", "verbose"))


def _choice(option: ast.Option, known: tuple[str, ...]) -> str:
    text = option_text(option)
    if text is None:
        raise SqlError("42601", f"{option.name} requires a parameter")
    if text.lower() not in known:
        raise SqlError("22023", f'COPY {option.name.upper()} "{text}" not recognized', span=option.span)
    return text.lower()


def _read_limit(option: ast.Option) -> int:
    text = option_text(option)
    if text is None:
        raise SqlError("22023", f"{option.name} requires a numeric value")
    try:
        limit = int(text)
    except ValueError:
        raise SqlError("22P02", f'invalid input syntax for type bigint: "{text}"') from None
    if limit >= 1 << 63:
        raise SqlError("22003", f'value "{text}" is out of range for type bigint')
    if limit <= 0:
        raise SqlError("22023", f"REJECT_LIMIT ({limit}) must be greater than zero")
    return limit


_READERS: dict[str, Callable[[ast.Option], object]] = {
    "format": _read_format,
    "freeze": boolean_option,
    "delimiter": _read_text,
    "null": _read_text,
    "header": _read_header,
    "quote": _read_text,
    "escape": _read_text,
    "force_quote": _read_names,
    "force_not_null": _read_names,
    "force_null": _read_names,
    "encoding": _read_encoding,
    "on_error": _read_on_error,
    "reject_limit": _read_limit,
    "log_verbosity": _read_verbosity,
}

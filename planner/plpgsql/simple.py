"""Statements of PL/pgSQL that hold no others (see ``planner.plpgsql.parser``), and statements of SQL in between.

n := n + 1;      SELECT a INTO STRICT n FROM t;      RAISE NOTICE 'n is %', n USING HINT = 'fewer';
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from planner import ast
from planner.base.errors import Span, SqlError
from planner.parse import parse_expression
from planner.plpgsql import tree
from planner.plpgsql.conditions import condition_states
from planner.plpgsql.declarations import REFCURSOR
from planner.plpgsql.stream import PREFIX
from planner.plpgsql.tree import Piece

if TYPE_CHECKING:
    from planner.plpgsql.parser import Compound

LEVELS: Final = ("exception", "warning", "notice", "info", "log", "debug")
OPTIONS: Final = (
    "errcode", "message", "detail", "hint", "column", "constraint", "datatype", "table", "schema",
)  # fmt: skip
_CURRENT: Final = ("row_count", "pg_context")
_STACKED: Final = (
    "returned_sqlstate", "message_text", "pg_exception_detail", "pg_exception_hint", "pg_exception_context", "column_name",
    "constraint_name", "pg_datatype_name", "table_name", "schema_name",
)  # fmt: skip


def read(parser: Compound) -> list[tree.Statement]:
    """Read one statement; none for NULL. Raises SqlError 42601, 22005, 42704, 42804, 0A000."""
    stream = parser.stream
    line = stream.line(stream.place)
    names, count = parser.dotted()
    found = parser.meant(names)
    follows = stream.word(count)
    if found is not None and (follows in (":=", "=", "[") or count > 1):
        return [_assign(parser, line, found, names, count)]
    reader = _READERS.get(stream.word())
    if reader is not None and not (names and follows in (":=", "=", "[")):
        return reader(parser, line)
    if names and follows in (":=", "=", "[", "."):
        raise parser.not_a_variable(names)
    return [_sql(parser, line)]


# --- assignment -----------------------------------------------------------------------------------


def _assign(
    parser: Compound, line: int, found: tuple[int, int], names: tuple[str, ...], count: int
) -> tree.Assign:
    stream = parser.stream
    first = stream.peek()
    if first is None:
        raise AssertionError("an assignment has no token")
    parser.check_assignable(found[0], first)
    start, end = stream.skip_until((":=", "="), ":=")
    stream.at += 1
    text = stream.text[start:end]
    steps: tuple[str | ast.SubscriptStep, ...] = names[found[1] :]
    if count < len(stream.tokens) and "[" in text:
        try:
            node = parse_expression(text)
        except SqlError as error:
            error.span = Span(start, end)
            raise
        if isinstance(node, ast.Indirection):
            steps = (*steps, *[s for s in node.steps if not isinstance(s, ast.Star)])
    value = stream.expression(parser.names, ";")
    value.target = stream.text[start : value.at]
    stream.expect(";")
    return tree.Assign(line, tree.Target(found[0], steps, parser.names, text), value)


# --- control --------------------------------------------------------------------------------------


def _null(parser: Compound, line: int) -> list[tree.Statement]:
    parser.stream.expect("null", ";")
    return []


def _exit(parser: Compound, line: int) -> list[tree.Statement]:
    stream = parser.stream
    is_exit = stream.word() == "exit"
    start = stream.place
    stream.at += 1
    label = ""
    token = stream.peek()
    if token is not None and token.name and stream.word() != "when":
        label = token.name
        _check_label(parser, label, is_exit=is_exit)
        stream.at += 1
    elif not _in_loop(parser):
        what = (
            "EXIT cannot be used outside a loop, unless it has a label"
            if is_exit
            else "CONTINUE cannot be used outside a loop"
        )
        raise SqlError("42601", what, span=Span(start, stream.tokens[stream.at - 1].end))
    condition = None
    if stream.take("when"):
        condition = stream.expression(parser.names, ";")
    stream.expect(";")
    return [tree.Exit(line, is_exit, label, condition)]


def _in_loop(parser: Compound) -> bool:
    level: tree.Names | None = parser.names
    while level is not None:
        if level.is_loop:
            return True
        level = level.parent
    return False


def _check_label(parser: Compound, label: str, *, is_exit: bool) -> None:
    level: tree.Names | None = parser.names
    token = parser.stream.peek()
    if token is None:
        raise AssertionError("the statement has ended where a token was seen")
    span = Span(token.start, token.end)
    while level is not None:
        if level.label == label:
            if not is_exit and not level.is_loop:
                raise SqlError("42601", f'block label "{label}" cannot be used in CONTINUE', span=span)
            return
        level = level.parent
    raise SqlError(
        "42601",
        f'there is no label "{label}" attached to any block or loop enclosing this statement',
        span=span,
    )


def _return(parser: Compound, line: int) -> list[tree.Statement]:
    stream = parser.stream
    stream.expect("return")
    if stream.take("next"):
        return [_return_next(parser, line)]
    if stream.take("query"):
        return [_return_query(parser, line)]
    header = parser.header
    outputs = any(p.mode in "obt" for p in header.parameters)
    value = None
    if header.gives == "set":
        _no_value(parser, "function returning set", hint="Use RETURN NEXT or RETURN QUERY.")
    elif header.kind in ("procedure", "block") and not outputs:
        _no_value(
            parser,
            "procedure" if header.kind == "procedure" else "function returning void",
            article=header.kind == "procedure",
        )
    elif outputs:
        _no_value(parser, "function with OUT parameters")
    elif header.gives == "nothing":
        _no_value(parser, "function returning void")
    else:
        value = stream.expression(parser.names, ";")
    stream.expect(";")
    return [tree.Return(line, value)]


def _no_value(parser: Compound, what: str, *, hint: str | None = None, article: bool = False) -> None:
    token = parser.stream.peek()
    if token is not None and token.text == ";":
        return
    span = None if token is None else Span(token.start, token.end)
    shown = f"a {what}" if article else what
    raise SqlError("42804", f"RETURN cannot have a parameter in {shown}", hint=hint, span=span)


def _return_next(parser: Compound, line: int) -> tree.ReturnNext:
    stream, header = parser.stream, parser.header
    if header.gives != "set":
        place = stream.tokens[stream.at - 2]
        raise SqlError(
            "42804", "cannot use RETURN NEXT in a non-SETOF function", span=Span(place.start, place.end)
        )
    value = None
    if any(p.mode in "obt" for p in header.parameters):
        token = stream.peek()
        if token is not None and token.text != ";":
            raise SqlError(
                "42804", "RETURN NEXT cannot have a parameter in function with OUT parameters",
                span=Span(token.start, token.end),
            )  # fmt: skip
    else:
        value = stream.expression(parser.names, ";")
    stream.expect(";")
    return tree.ReturnNext(line, value)


def _return_query(parser: Compound, line: int) -> tree.ReturnQuery:
    stream = parser.stream
    if parser.header.gives != "set":
        place = stream.tokens[stream.at - 2]
        raise SqlError(
            "42804", "cannot use RETURN QUERY in a non-SETOF function", span=Span(place.start, place.end)
        )
    if stream.take("execute"):
        text = stream.expression(parser.names, ";", "using", expected="; or USING")
        params = parser.using(";")
        stream.expect(";")
        return tree.ReturnQuery(line, text, True, params)
    query = stream.statement(parser.names, ";")
    stream.expect(";")
    return tree.ReturnQuery(line, query, False, [])


# --- SQL ------------------------------------------------------------------------------------------


def _perform(parser: Compound, line: int) -> list[tree.Statement]:
    stream = parser.stream
    stream.expect("perform")
    start, end = stream.skip_until((";",), ";")
    text = PREFIX + stream.text[start:end]
    query = stream.piece(start - len(PREFIX), end, parser.names, expression=False, text=text)
    stream.expect(";")
    return [tree.Perform(line, query)]


def _sql(parser: Compound, line: int) -> tree.Statement:
    """Read a statement of SQL; INTO and its targets are cut out of it."""
    stream = parser.stream
    first = stream.at
    into: tree.Into | None = None
    cut: tuple[int, int] | None = None
    depth = 0
    while True:
        token, word = stream.peek(), stream.word()
        if token is None:
            raise stream.error("syntax error")
        if word == ";" and depth <= 0:
            break
        depth += (word in ("(", "[")) - (word in (")", "]"))
        before = stream.word(-1) if stream.at > first else ""
        if word == "into" and before not in ("insert", "merge") and stream.tokens[first].word != "import":
            if into is not None:
                raise stream.error("INTO specified more than once")
            start = token.start
            stream.at += 1
            strict = stream.take("strict")
            into = parser.into()
            into.strict = strict
            cut = start, stream.tokens[stream.at - 1].end
            continue
        stream.at += 1
    begin, end = stream.tokens[first].start, stream.tokens[stream.at - 1].end
    text = stream.text[begin:end]
    if cut is not None:
        text = text[: cut[0] - begin] + " " * (cut[1] - cut[0]) + text[cut[1] - begin :]
    piece = stream.piece(begin, end, parser.names, expression=False, text=text.rstrip())
    piece.few = into is not None
    stream.expect(";")
    return tree.Sql(line, piece, into)


def _execute(parser: Compound, line: int) -> list[tree.Statement]:
    stream = parser.stream
    stream.expect("execute")
    text = stream.expression(parser.names, "into", "using", ";", expected="INTO or USING or ;")
    into: tree.Into | None = None
    params: list[Piece] = []
    while not stream.take(";"):
        if stream.word() == "into" and into is None:
            stream.at += 1
            strict = stream.take("strict")
            into = parser.into()
            into.strict = strict
        elif stream.word() == "using" and not params:
            params = parser.using("into", ";")
        else:
            raise stream.error()
    return [tree.Execute(line, text, into, params)]


def _call(parser: Compound, line: int) -> list[tree.Statement]:
    stream = parser.stream
    is_do = stream.word() == "do"
    piece = stream.statement(parser.names, ";")
    stream.expect(";")
    return [tree.CallRoutine(line, piece, is_do)]


def _end_transaction(parser: Compound, line: int) -> list[tree.Statement]:
    stream = parser.stream
    committing = stream.word() == "commit"
    stream.at += 1
    chain = False
    if stream.take("and"):
        chain = not stream.take("no")
        stream.expect("chain")
    stream.expect(";")
    return [tree.EndTransaction(line, committing, chain)]


# --- diagnostics and errors -----------------------------------------------------------------------


def _get(parser: Compound, line: int) -> list[tree.Statement]:
    stream = parser.stream
    stream.expect("get")
    stacked = stream.take("stacked")
    if not stacked:
        stream.take("current")
    stream.expect("diagnostics")
    items: list[tuple[tree.Target, str]] = []
    while True:
        place = _place(parser)
        target = parser.target()
        variable = parser.variables[target.variable]
        if not target.steps and variable.kind != "scalar":
            raise SqlError("42601", f'"{variable.name}" is not a scalar variable', span=place)
        if not stream.take("="):
            stream.expect(":=")
        word = stream.word()
        if word not in (*_CURRENT, *_STACKED):
            raise stream.error("unrecognized GET DIAGNOSTICS item")
        if word not in (_STACKED if stacked else _CURRENT):
            which = "STACKED" if stacked else "CURRENT"
            raise SqlError(
                "42601",
                f"diagnostics item {word.upper()} is not allowed in GET {which} DIAGNOSTICS",
                span=_place(parser),
            )
        stream.at += 1
        items.append((target, word))
        if not stream.take(","):
            break
    stream.expect(";")
    return [tree.Diagnostics(line, stacked, items)]


def _place(parser: Compound) -> Span:
    token = parser.stream.peek()
    if token is None:
        raise AssertionError("the statement has ended where a token was seen")
    return Span(token.start, token.end)


def _raise(parser: Compound, line: int) -> list[tree.Statement]:
    stream = parser.stream
    stream.expect("raise")
    made = tree.Raise(line, "exception", None, None, None, [], [])
    if stream.take(";"):
        return [made]
    if stream.word() in LEVELS:
        made.level = stream.word()
        stream.at += 1
        if stream.word() == ";":
            raise stream.error()
    token = stream.peek()
    if token is None:
        raise stream.error()
    if token.is_string:
        made.message = parser.literal(token)
        stream.at += 1
        while stream.take(","):
            made.params.append(stream.expression(parser.names, ",", ";", "using", expected=", or ; or USING"))
        _check_placeholders(made)
    elif stream.word() != "using":
        _raise_condition(parser, made)
    if stream.word() not in (";", "using"):
        raise stream.error()
    if stream.take("using"):
        _raise_options(parser, made)
    stream.expect(";")
    return [made]


def _raise_condition(parser: Compound, made: tree.Raise) -> None:
    stream = parser.stream
    if stream.take("sqlstate"):
        made.condition = made.state = parser.sqlstate()
        return
    token = stream.peek()
    made.condition = stream.next_name()
    if token is None:
        raise AssertionError("the statement has ended where a token was seen")
    states = condition_states().get(made.condition)
    if states is None:
        raise SqlError("42704", f'unrecognized exception condition "{made.condition}"')
    made.state = states[0]


def _check_placeholders(made: tree.Raise) -> None:
    """Raise SqlError 42601 where a format has not as many ``%`` as it has parameters."""
    if made.message is None:
        raise AssertionError("RAISE has no format")
    wanted = made.message.replace("%%", "").count("%")
    if wanted < len(made.params):
        raise SqlError("42601", "too many parameters specified for RAISE")
    if wanted > len(made.params):
        raise SqlError("42601", "too few parameters specified for RAISE")


def _raise_options(parser: Compound, made: tree.Raise) -> None:
    stream = parser.stream
    while True:
        word = stream.word()
        if word not in OPTIONS:
            raise stream.error("unrecognized RAISE statement option")
        stream.at += 1
        if not (stream.take("=") or stream.take(":=")):
            raise stream.error('syntax error, expected "="')
        made.options.append((word, stream.expression(parser.names, ",", ";", expected=", or ;")))
        if not stream.take(","):
            return


def _assert(parser: Compound, line: int) -> list[tree.Statement]:
    stream = parser.stream
    stream.expect("assert")
    condition = stream.expression(parser.names, ",", ";", expected=", or ;")
    message = stream.expression(parser.names, ";") if stream.take(",") else None
    stream.expect(";")
    return [tree.Assert(line, condition, message)]


# --- cursors --------------------------------------------------------------------------------------


def _cursor(parser: Compound) -> int:
    stream = parser.stream
    names, count = parser.dotted()
    found = parser.meant(names)
    if found is None or found[1] != len(names):
        token = stream.peek()
        if token is None or not names:
            raise stream.error()
        raise SqlError("42601", f'"{".".join(names)}" is not a known variable', span=_place(parser))
    variable = parser.variables[found[0]]
    if variable.kind != "scalar":
        raise SqlError("42804", "cursor variable must be a simple variable", span=_place(parser))
    if variable.type.oid != REFCURSOR:
        raise SqlError(
            "42804", f'variable "{variable.name}" must be of type cursor or refcursor', span=_place(parser)
        )
    stream.at += count
    return variable.number


def _open(parser: Compound, line: int) -> list[tree.Statement]:
    stream = parser.stream
    stream.expect("open")
    cursor = _cursor(parser)
    if parser.variables[cursor].cursor is not None:
        made = tree.Open(line, cursor, parser.cursor_arguments(cursor))
        stream.expect(";")
        return [made]
    made = tree.Open(line, cursor, [])
    if stream.take("no", "scroll"):
        made.scroll = False
    elif stream.take("scroll"):
        made.scroll = True
    if stream.word() != "for":
        raise stream.error('syntax error, expected "FOR"')
    stream.at += 1
    if stream.take("execute"):
        made.dynamic = True
        made.query = stream.expression(parser.names, "using", ";", expected="USING or ;")
        made.params = parser.using(";")
    else:
        made.query = stream.statement(parser.names, ";")
        made.query.keeps = True
    stream.expect(";")
    return [made]


_DIRECTIONS: Final = ("next", "prior", "first", "last", "absolute", "relative", "all", "forward", "backward")


def _fetch(parser: Compound, line: int) -> list[tree.Statement]:
    stream = parser.stream
    moves = stream.word() == "move"
    place = _place(parser)
    stream.at += 1
    made = tree.Fetch(line, -1, "forward", None, None)
    word = stream.word()
    if word in _DIRECTIONS and stream.word(1) not in (";", "into"):
        stream.at += 1
        _direction(parser, made, word)
        if not stream.take("from"):
            stream.expect("in")
    elif not (stream.take("from") or stream.take("in")):
        names, _ = parser.dotted()
        if parser.meant(names) is None:  # FETCH n FROM c
            made.count = stream.expression(parser.names, "from", "in", expected="FROM or IN")
            stream.at += 1
    made.cursor = _cursor(parser)
    if not moves:
        if made.every or not (
            made.count is None or made.count == 1 or made.direction in ("absolute", "relative")
        ):
            raise SqlError("0A000", "FETCH statement cannot return multiple rows", span=place)
        stream.expect("into")
        made.into = parser.into()
    stream.expect(";")
    return [made]


def _direction(parser: Compound, made: tree.Fetch, word: str) -> None:
    stream = parser.stream
    if word in ("absolute", "relative"):
        made.direction = word
        made.count = stream.expression(parser.names, "from", "in", expected="FROM or IN")
    elif word in ("first", "last"):
        made.direction, made.count = "absolute", 1 if word == "first" else -1
    elif word == "prior":
        made.direction, made.count = "backward", 1
    elif word == "all":
        made.every = True
    elif word in ("forward", "backward"):
        made.direction = word
        if stream.take("all"):
            made.every = True
        elif stream.word() not in ("from", "in"):
            made.count = stream.expression(parser.names, "from", "in", expected="FROM or IN")


def _close(parser: Compound, line: int) -> list[tree.Statement]:
    parser.stream.expect("close")
    cursor = _cursor(parser)
    parser.stream.expect(";")
    return [tree.Close(line, cursor)]


_READERS: Final[dict[str, Callable[[Compound, int], list[tree.Statement]]]] = {
    "null": _null,
    "exit": _exit,
    "continue": _exit,
    "return": _return,
    "perform": _perform,
    "execute": _execute,
    "call": _call,
    "do": _call,
    "get": _get,
    "raise": _raise,
    "assert": _assert,
    "open": _open,
    "fetch": _fetch,
    "move": _fetch,
    "close": _close,
    "commit": _end_transaction,
    "rollback": _end_transaction,
}

"""SQL text -> AST: the only module that knows the parser library.

    parse("select 1; select 2")  ->  [Parsed(Select, "select 1", 0..8), Parsed(Select, "select 2", 10..18)]

PostgreSQL's own grammar does the work (as a C library, of version 18; newer constructs than 15 are refused by
the readers); ``planner.parse.beyond`` reads the few statements of our own. Its tree comes as JSON with byte
offsets, ``planner.parse.reader.query`` and ``planner.parse.reader.statement`` turn it into ``planner.ast``.
All spans count characters of the whole text given, so the error position of the second statement of a string
is right as it stands.

Promises: pure, no state, usable in any thread; every failure is a SqlError: 42601 with PostgreSQL's wording
and position, 0A000 for refused constructs, 54001 for nesting that is too deep, 54000 for texts over
``MAX_TEXT_CHARS``, 22021 for text that is not UTF-8.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

import msgspec.json
from pglast import parser as _pg

from pgwire.give_way import PACE, give_way, in_loop, outside, paced
from pgwire.long.values import bare, cut
from planner import ast
from planner.base.errors import Span, SqlError
from planner.base.large import METER
from planner.base.long_search import next_match, occurs
from planner.parse import as_of, scanner
from planner.parse import long_texts as long_parse
from planner.parse.as_of import AsOf
from planner.parse.beyond import MAY_GO_BEYOND, WORDS_BEYOND, goes_beyond, read_statement
from planner.parse.beyond import copy as beyond_copy
from planner.parse.beyond.tokens import SEMICOLON, Token
from planner.parse.foresee_tree import OBJECT_BYTES, foresee_tree, too_large
from planner.parse.reader.reader import Places, Raw
from planner.parse.reader.statement import StatementReader

MAX_TEXT_CHARS = 256 * 1024 * 1024

LARGE_JSON = 1 << 18
"""Characters of a tree from which on it is read in steps, which takes longer but lets other threads run."""

_decode = msgspec.json.Decoder().decode

PARSED_HERE = 32 * 1024
"""Characters of a text that the grammar reads in the loop's thread; longer ones come in by other threads, or
are read outside."""

GRAMMAR_BYTES = 240
"""What the grammar takes for a character of a text at most: the tree, and its JSON. Of statements TABLE a it
is 195, of a list of literals 173, of column definitions 63."""

_OPERATORS = re.compile(r"[-+*/<>=~!@#%^&|`?]{256,512}")

_TOO_DEEP_HINT = "Split the statement, or write it with less nesting."


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """One statement: its tree, its text without the semicolon, and where that stands in the whole text.

    ``as_of``: its AS OF SYSTEM TIME clause, which is not in the tree.
    """

    statement: ast.StatementNode
    text: str
    span: Span
    as_of: AsOf | None = None


def too_deep() -> SqlError:
    """Return the error for a statement nested deeper than the server follows."""
    return SqlError("54001", "stack depth limit exceeded", hint=_TOO_DEEP_HINT)


def parse(text: str) -> list[Parsed]:
    """Parse all statements of ``text``, in order; empty ones vanish.

    Raises:
        SqlError: 42601, 0A000, 54000, 54001, 22021 (see the module).
    """
    if len(text) > MAX_TEXT_CHARS:
        raise SqlError("54000", f"statement text is longer than {MAX_TEXT_CHARS} characters")
    if occurs(MAY_GO_BEYOND, text, WORDS_BEYOND):
        pieces = _pieces(text)
        if any(goes_beyond(text, tokens) for tokens in pieces):
            return _parse_pieces(text, pieces)
    return _parse_plain(text)


def is_sql(text: str) -> bool:
    """Tell whether a stored text is statements or an expression, as its grammar goes."""
    for form in (f"SELECT {text}", text):
        try:
            _pg.parse_sql_json(form)
        except (_pg.ParseError, ValueError, UnicodeError):
            continue
        return True
    try:
        parse(text)
    except SqlError:
        return False
    return True


def _pieces(text: str) -> list[list[Token]]:
    """Return the tokens of each statement of a text, without semicolons; nothing where the scanner refuses it."""
    try:
        tokens = scanner.scan(text)
    except scanner.ScanError:
        return []  # the grammar says what is wrong
    pieces: list[list[Token]] = [[]]
    for token in paced(tokens):
        if token.name in scanner.COMMENTS:
            continue
        if token.name == SEMICOLON:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return [piece for piece in pieces if piece]


def _parse_pieces(text: str, pieces: list[list[Token]]) -> list[Parsed]:
    """Parse a text some of whose statements are not PostgreSQL's, one by one."""
    found: list[Parsed] = []
    for tokens in pieces:
        start, stop = tokens[0].start, tokens[-1].end + 1
        if goes_beyond(text, tokens):
            node = read_statement(" " * start + text[start:stop], tokens, _parse_inner)
            found.append(Parsed(statement=node, text=text[start:stop], span=Span(start, stop)))
        else:
            found += _parse_plain(" " * start + text[start:stop])
    return found


def _parse_inner(text: str) -> ast.StatementNode:
    """Parse the statement within one of our own. Raises as ``parse``; 42601 where there is none."""
    found = _parse_plain(text)
    if not found:
        raise SqlError("42601", "syntax error at end of input", span=Span(len(text), len(text)))
    return found[0].statement


def _parse_plain(text: str) -> list[Parsed]:
    try:
        whole = text
        clauses: list[AsOf] = []
        if as_of.possible(text):
            text, clauses = as_of.cut(text, _tokens(text))
        before = text
        if occurs(beyond_copy.POSSIBLE, text, ("format",)):
            text = beyond_copy.masked(text, _tokens(text))
        if len(text) > PARSED_HERE:
            foresee_tree(text)
        found_json = _raw_json(text)
        large = len(found_json) > LARGE_JSON
        kept: list[Raw] = []
        if large:
            tree, kept = _decode_large(found_json)
        else:
            tree = _decode(found_json)
        del found_json
        raw_statements: list[Raw] = tree.get("stmts", [])
        places = Places(text)
        found = []
        for raw in raw_statements:
            location = raw.get("stmt_location", 0)
            length = raw.get("stmt_len", 0)
            start = places.offset(location)
            end = places.offset(location + length) if length else len(text)
            # the parser's statement begins after the last semicolon, blanks and comments included
            start, last = bare(text, start, end)
            body = cut(text, start, last)
            clause: AsOf | None = None
            if clauses or text is not before:
                # the statement's last word may have been a clause
                body = cut(whole, *bare(whole, start, end))
                clause = next((c for c in clauses if start <= c.span.start < end), None)
            reader = StatementReader(places, lambda word, body=body: _after(body, word))  # type: ignore[misc]
            statement = reader.statement(raw["stmt"])
            if text is not before:
                statement = beyond_copy.unmasked(statement)
            if isinstance(statement, ast.Copy) and statement.filename is None and _names_no_file(body):
                statement = replace(statement, filename="")
            if isinstance(statement, ast.Prepare):
                statement = replace(statement, at=start + len(body) - len(statement.text))
            found.append(
                Parsed(
                    statement=statement,
                    text=body,
                    span=Span(start, start + len(body)),
                    as_of=clause,
                )
            )
        _take_apart(kept)
        return found
    except RecursionError:
        raise too_deep() from None


def _decode_large(text: str) -> tuple[Raw, list[Raw]]:
    """Decode JSON without holding up others: for each object the hook gives way, and the interpreter looks
    for threads that wait.

    Long strings are decoded before, in steps. Raises SqlError 53200 where it takes more than a statement may
    have (``METER.each``). Returns the tree and all its objects. The decoder's own lists go when the hook
    raises; as the objects are kept here, what they hold does not go with them in one step but by
    ``pgwire.release.release_error``.
    """
    kept: list[Raw] = []
    most = METER.each // OBJECT_BYTES if METER.each else len(text)
    text, strings = long_parse.without_long_strings(text)

    def hook(found: Raw) -> Raw:
        if strings:
            for key, value in found.items():
                if type(value) is str and value.startswith(long_parse.STAND_IN):
                    found[key] = strings[int(value[1:])]
        kept.append(found)
        if len(kept) > most:
            raise too_large()
        give_way()
        return found

    tree: Raw = json.loads(text, object_hook=hook)
    return tree, kept


def _take_apart(kept: list[Raw]) -> None:
    """Free the objects of a tree some at a time, for the same reason; the outermost, which are last, go first."""
    while kept:
        for found in kept[-PACE:]:
            found.clear()
        del kept[-PACE:]
        give_way()


def parse_one(text: str) -> Parsed | None:
    """Parse a text that may hold one statement (extended protocol, view bodies); None when it is empty.

    Raises:
        SqlError: as ``parse``; 42601 when there are several.
    """
    found = parse(text)
    if len(found) > 1:
        raise SqlError("42601", "cannot insert multiple commands into a prepared statement")
    return found[0] if found else None


ALONE = "SELECT coalesce("
"""What an expression is parsed behind where nothing is around it."""


def parse_expression(text: str) -> ast.Expression:
    """Parse a scalar expression: a stored default or check. Its spans count from where ``ALONE`` begins before it.

    Raises:
        SqlError: as ``parse``; 42601 when the text is more than one expression.
    """
    parsed = parse_one(f"{ALONE}{text}\n)")
    statement = parsed.statement if parsed is not None else None
    if isinstance(statement, ast.Select) and len(statement.targets) == 1 and not statement.from_:
        wrapper = statement.targets[0].expr
        if isinstance(wrapper, ast.Coalesce) and len(wrapper.args) == 1:
            return wrapper.args[0]
    raise SqlError("42601", "syntax error in a stored expression")


def scan(text: str) -> list[scanner.Token]:
    """Return the tokens of a text, comments left out. Raises SqlError 42601 and its kin where there is none."""
    try:
        return [t for t in paced(scanner.scan(text)) if t.name not in scanner.COMMENTS]
    except scanner.ScanError as error:
        raise _syntax_error(text, error) from None


def _tokens(text: str) -> list[as_of.Token]:
    """Return the tokens of a text; none where the scanner fails, which the grammar then reports."""
    try:
        return [
            (text[t.start : t.end + 1].upper(), t.start, t.end + 1)
            for t in paced(scanner.scan(text))
            if t.name not in scanner.COMMENTS
        ]
    except scanner.ScanError:
        return []


def _scanning(text: str) -> int:
    """Weigh a text: its length where others would wait, or where the grammar may take more memory than there
    is, and what the scanner takes beyond that.

    Of operators in a row, and of comments that begin in a row, it takes the square: of each 512 of a run as
    much as of all before.
    """
    found, run, at = len(text) if in_loop() or GRAMMAR_BYTES * len(text) > METER.room() else 0, 0, 0
    while (match := next_match(_OPERATORS, text, at)) is not None:
        run = run + 1 if at and match.start() == at else 1
        found += run * 512 * 512 // 30
        at = match.end()
    return found


@outside(PARSED_HERE, _scanning)
def _raw_json(text: str) -> str:
    if "\0" in text:
        raise SqlError("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
    try:
        return str(_pg.parse_sql_json(text)) if len(text) <= PARSED_HERE else long_parse.tree_of(text)
    except UnicodeEncodeError as error:
        raise SqlError("22021", "the statement text is not valid UTF-8") from error
    except (_pg.ParseError, long_parse.ParseError) as error:
        scanner.raise_out_of_memory(error)
        raise _syntax_error(text, error) from None


def _syntax_error(text: str, error: Exception) -> SqlError:
    message = str(error.args[0])
    reported = error.args[1] if len(error.args) > 1 else None
    if message.startswith(("stack depth limit exceeded", "memory exhausted")):
        return too_deep()
    state = next((s for words, s in _SYNTAX_STATES.items() if message.startswith(words)), "42601")
    if message.endswith("at end of input"):
        return SqlError(state, message, span=Span(len(text), len(text)))
    if reported is None:
        return SqlError(state, message)
    if message == "constraints cannot be altered to be NOT VALID":
        message = "FOREIGN KEY constraints cannot be marked NOT VALID"
    if " constraints cannot be marked " in message:  # in version 15 this comes from behind the grammar
        return SqlError("0A000", message)
    if message in _NOWHERE:
        return SqlError(state, message)
    near = ""
    marker = ' at or near "'
    if marker in message:
        near = message[message.index(marker) + len(marker) : -1]
    start = reported if isinstance(error, long_parse.ParseError) else _true_offset(text, reported, near)
    hint = None
    if message == "invalid Unicode escape":
        unicode = _in_unicode_literal(text, start)
        forms = "\\XXXX or \\+XXXXXX" if unicode else "\\uXXXX or \\UXXXXXXXX"
        hint, state = f"Unicode escapes must be {forms}.", "42601" if unicode else state
    if message.startswith("unrecognized row security option"):
        hint = "Only PERMISSIVE or RESTRICTIVE policies are supported currently."
    if message == "missing argument":
        hint = "Use NONE to denote the missing argument of a unary operator."
    return SqlError(state, message, hint=hint, span=Span(start, start + len(near)))


def _in_unicode_literal(text: str, at: int) -> bool:
    """Tell whether the string literal or identifier that ``at`` is in begins with U&, not with E."""
    openings: list[str] = re.findall(r"""\b(?:(u&)['"]|e')""", text[:at], re.IGNORECASE)
    return bool(openings and openings[-1])


# Errors of the grammar for which version 15 gives no position.
_NOWHERE = frozenset(
    {
        "WITH TIES cannot be specified without ORDER BY clause",
        "SKIP LOCKED and WITH TIES options cannot be used together",
    }
)


# The scanner and the grammar's own checks raise a few errors that are not syntax errors.
_SYNTAX_STATES = {
    "frame s": "42P20",
    "frame e": "42P20",
    "MATCH PARTIAL not yet implemented": "0A000",
    "a column list with SET": "0A000",
    "CREATE ASSERTION is not yet implemented": "0A000",
    "UNIQUE predicate is not yet implemented": "0A000",
    "current database cannot be changed": "0A000",
    "WITH CHECK OPTION not supported on recursive views": "0A000",
    "unsafe use of string constant with Unicode escapes": "0A000",
    "invalid byte sequence for encoding": "22021",
    "invalid Unicode escape": "22025",
    "invalid escape sequence": "22025",
    "nonstandard use of escape character": "22P06",
    'role name "': "42939",
    "CURRENT_ROLE cannot be used": "42939",
    "CURRENT_USER cannot be used": "42939",
    "SESSION_USER cannot be used": "42939",
}


def _true_offset(text: str, reported: int, near: str) -> int:
    """Undo the library's drift: it takes the error's character offset for a byte offset.

    So ``reported`` is the number of the character that contains byte ``offset``; every byte of that character is
    a candidate, and the token named in the message decides.
    """
    if text.isascii() or not 0 <= reported < len(text):
        return reported
    first = len(text[:reported].encode("utf-8"))
    candidates = [c for c in range(first, first + len(text[reported].encode("utf-8"))) if c <= len(text)]
    fitting = [c for c in candidates if near and text.startswith(near, c)]
    for candidate in fitting[:-1]:
        if _fails_at(text[: candidate + len(near)]):
            return candidate
    return (fitting or candidates or [len(text)])[-1]


def _fails_at(prefix: str) -> bool:
    """Tell whether a text fails before its end."""
    try:
        _pg.parse_sql_json(prefix)
    except _pg.ParseError as error:
        return " at or near " in str(error.args[0])
    return False


def _names_no_file(text: str) -> bool:
    """Tell whether COPY names the file '', which the parser's tree does not tell from STDIN and STDOUT."""
    if "''" not in text:
        return False
    depth, side = 0, False
    for token in scanner.each(text):
        if side and token.name != "PROGRAM":
            return token.name in ("SCONST", "USCONST")
        depth += {"ASCII_40": 1, "ASCII_41": -1}.get(token.name, 0)
        side = side or (not depth and token.name in ("FROM", "TO"))
    return False


def _after(text: str, word: str) -> str:
    """Return the text after the first token ``word`` (the inner statement of PREPARE)."""
    for token in scanner.each(text):
        if token.name == word or (
            token.name == "IDENT" and text[token.start : token.end + 1].upper() == word
        ):
            return cut(text, *bare(text, token.end + 1, len(text)))
    return text

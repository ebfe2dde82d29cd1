"""The text of a PL/pgSQL body -> ``planner.plpgsql.tree``, as pl_gram.y reads it: declarations, statements, labels.

    parse_routine(text, header, types)  ->  Routine

What is wrong with a body whatever it is called with is told here: syntax, SQL's within it too, names of
types, variables, labels and conditions, RETURN that does not fit. Spans count in the text.
``planner.plpgsql.simple`` has the statements that hold no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pgwire.give_way import give_way
from planner import ast
from planner.base.errors import Span, SqlError, not_supported
from planner.facts import BOOL, INT4, RECORD, TEXT
from planner.parse import parse_expression
from planner.plpgsql import tree
from planner.plpgsql.conditions import OTHERS, condition_states, is_sqlstate
from planner.plpgsql.declarations import REFCURSOR, Declarations, Header, Types
from planner.plpgsql.simple import read
from planner.plpgsql.stream import Token
from planner.plpgsql.tree import Piece
from planner.types import SqlType


def parse_routine(text: str, header: Header, types: Types) -> tree.Routine:
    """Parse a body. Raises SqlError 42601, 42704, 42804, 22005, 0A000 and what ``types`` raises."""
    return Parser(text, header, types).routine()


_SPECIAL: Final = (
    ("tg_name", 19), ("tg_when", TEXT), ("tg_level", TEXT), ("tg_op", TEXT), ("tg_relid", 26), ("tg_relname", 19),
    ("tg_table_name", 19), ("tg_table_schema", 19), ("tg_nargs", INT4), ("tg_argv", 1009),
)  # fmt: skip
"""Variables of a trigger function: name and type (manual 43.10.1)."""


_CONFLICTS: Final[dict[str, tree.Conflict]] = {
    "error": "error", "use_variable": "use_variable", "use_column": "use_column",
}  # fmt: skip
_ENDS: Final = ("end", "elsif", "elseif", "else", "when", "exception")


class Compound(Declarations):
    """Blocks, conditions and loops."""

    def simple(self) -> list[tree.Statement]:
        """Read a statement that holds no others; none for NULL."""
        raise NotImplementedError

    def statements(self) -> list[tree.Statement]:
        """Read statements up to a word that ends them. Raises SqlError 42601 and what they raise."""
        found: list[tree.Statement] = []
        while self.stream.peek() is not None and self.stream.word() not in _ENDS:
            give_way()
            found += self.one()
        return found

    def one(self) -> list[tree.Statement]:
        """Read one statement."""
        give_way()
        stream = self.stream
        label = self.label()
        line = stream.line(stream.place)
        word = stream.word()
        if word in ("declare", "begin"):
            made = self.block(label)
            stream.expect(";")
            return [made]
        if word in ("loop", "while", "for", "foreach"):
            return [self._loop(word, label, line)]
        if label:
            raise stream.error()
        if word == "if":
            return [self._if(line)]
        if word == "case":
            return [self._case(line)]
        return self.simple()

    # -- blocks ------------------------------------------------------------------------------------

    def block(self, label: str) -> tree.Block:
        """Read DECLARE ... BEGIN ... END."""
        stream = self.stream
        outer = self.enter(label)
        line = stream.line(stream.place)
        declares: list[int] = []
        if stream.take("declare"):
            declares = self.declarations()
            line = stream.line(stream.place)
        stream.expect("begin")
        body = self.statements()
        made = tree.Block(line, label, declares, body, [])
        if stream.take("exception"):
            inner = self.enter("")
            made.state = self.declare("sqlstate", SqlType(TEXT), "scalar", constant=True).number
            made.message = self.declare("sqlerrm", SqlType(TEXT), "scalar", constant=True).number
            while stream.take("when"):
                states = self._conditions()
                stream.expect("then")
                made.handlers.append(tree.Handler(states, self.statements()))
            if not made.handlers:
                raise stream.error()
            self.names = inner
        stream.expect("end")
        self.end_label(label)
        self.names = outer
        return made

    def _conditions(self) -> list[str]:
        states: list[str] = []
        while True:
            token = self.stream.peek()
            if self.stream.take("sqlstate"):
                states.append(self.sqlstate())
            elif token is None or not token.name:
                raise self.stream.error()
            else:
                self.stream.at += 1
                states += self.condition(token)
            if not self.stream.take("or"):
                return states

    def sqlstate(self) -> str:
        """Read the literal behind SQLSTATE. Raises SqlError 42601."""
        token = self.stream.peek()
        if token is None or not token.is_string:
            raise self.stream.error()
        state = self.literal(token)
        if not is_sqlstate(state):
            raise self.stream.error("invalid SQLSTATE code")
        self.stream.at += 1
        return state

    def condition(self, token: Token) -> Sequence[str]:
        """Return the SQLSTATEs that a condition's name means. Raises SqlError 42704."""
        if token.name == "others":
            return (OTHERS,)
        states = condition_states().get(token.name)
        if states is None:
            raise SqlError("42704", f'unrecognized exception condition "{token.name}"')
        return states

    def literal(self, token: Token) -> str:
        """Return the text that a string literal stands for."""
        found = parse_expression(token.text)
        return str(found.value) if isinstance(found, ast.Constant) else token.text

    # -- conditions --------------------------------------------------------------------------------

    def _if(self, line: int) -> tree.If:
        stream = self.stream
        stream.expect("if")
        branches: list[tuple[Piece, list[tree.Statement]]] = []
        otherwise: list[tree.Statement] = []
        while True:
            condition = stream.expression(self.names, "then", expected="THEN")
            stream.expect("then")
            branches.append((condition, self.statements()))
            if not (stream.take("elsif") or stream.take("elseif")):
                break
        if stream.take("else"):
            otherwise = self.statements()
        stream.expect("end", "if", ";")
        return tree.If(line, branches, otherwise)

    def _case(self, line: int) -> tree.Case:
        stream = self.stream
        stream.expect("case")
        subject = None
        variable = -1
        if stream.word() != "when":
            subject = stream.expression(self.names, "when", expected="WHEN")
            variable = self.declare("", SqlType(RECORD), "any", line=line).number
        name = f"__Case__Variable_{variable}__"
        if subject is not None:
            self.names.numbers[name] = variable
        whens: list[tuple[Piece, list[tree.Statement]]] = []
        while stream.take("when"):
            condition = stream.expression(self.names, "then", expected="THEN")
            if subject is not None:
                condition.text = f'"{name}" IN ({condition.text})'
            stream.expect("then")
            whens.append((condition, self.statements()))
        if not whens:
            raise stream.error()
        otherwise = self.statements() if stream.take("else") else None
        stream.expect("end", "case", ";")
        return tree.Case(line, subject, variable, whens, otherwise)

    # -- loops -------------------------------------------------------------------------------------

    def _body(self, label: str) -> list[tree.Statement]:
        self.stream.expect("loop")
        body = self.statements()
        self.stream.expect("end", "loop")
        self.end_label(label)
        self.stream.expect(";")
        return body

    def _loop(self, word: str, label: str, line: int) -> tree.Statement:
        stream = self.stream
        outer = self.enter(label, loop=True)
        try:
            if word == "loop":
                return tree.Loop(line, label, self._body(label))
            stream.expect(word)
            if word == "while":
                condition = stream.expression(self.names, "loop", expected="LOOP")
                return tree.While(line, label, condition, self._body(label))
            if word == "foreach":
                return self._foreach(label, line)
            return self._for(label, line)
        finally:
            self.names = outer

    def _foreach(self, label: str, line: int) -> tree.ForEach:
        stream = self.stream
        into = self.into()
        depth = 0
        if stream.take("slice"):
            token = stream.peek()
            if token is None or not token.text.isdigit():
                raise stream.error()
            stream.at += 1
            depth = int(token.text)
        stream.expect("in", "array")
        array = stream.expression(self.names, "loop", expected="LOOP")
        return tree.ForEach(line, label, into, depth, array, self._body(label))

    def _for(self, label: str, line: int) -> tree.Statement:
        stream = self.stream
        names, count = self.dotted()
        known = self.meant(names)
        first = stream.at
        if not names:
            raise stream.error()
        stream.at += count
        while stream.take(","):
            _, count = self.dotted()
            stream.at += count
        stream.expect("in")
        after = stream.at
        if stream.take("execute"):
            self._check_row_variable(names, known, first, "42804")
            text = stream.expression(self.names, "loop", "using", expected="LOOP or USING")
            params = self.using("loop")
            return self._rows(label, line, first, text, params, dynamic=True)
        cursor = self._bound_cursor()
        if cursor >= 0:
            return self._over_cursor(label, line, names, first, cursor)
        reverse = stream.take("reverse")
        begin, end = stream.skip_until(
            ("..", "loop"), "LOOP", expression=stream.word() not in ("select", "with")
        )
        if stream.word() == "..":
            return self._integers(label, line, names, first, (begin, end), reverse=reverse)
        if reverse:
            stream.at = after
            raise stream.error("cannot specify REVERSE in query FOR loop")
        self._check_row_variable(names, known, first, "42601")
        query = stream.piece(begin, end, self.names, expression=False)
        query.loops = True
        return self._rows(label, line, first, query, [], dynamic=False)

    def _check_row_variable(self, names: Sequence[str], known: object, first: int, sqlstate: str) -> None:
        """Raise SqlError where a loop over rows has one name for them that nobody declared."""
        if known is None and len(names) == 1:
            token = self.stream.tokens[first]
            message = "loop variable of loop over rows must be a record variable or list of scalar variables"
            raise SqlError(sqlstate, message, span=Span(token.start, token.end))

    def _row_like(self, at: int) -> bool:
        """Tell whether several names stand where a loop's variable does."""
        return self.stream.tokens[at + 1].text == ","

    def _rows(
        self, label: str, line: int, first: int, query: Piece, params: list[Piece], *, dynamic: bool
    ) -> tree.ForRows:
        stream = self.stream
        at = stream.at
        stream.at = first
        into = self.into()
        stream.at = at
        return tree.ForRows(line, label, into, query, dynamic, params, self._body(label))

    def _integers(
        self,
        label: str,
        line: int,
        names: Sequence[str],
        first: int,
        lower: tuple[int, int],
        *,
        reverse: bool,
    ) -> tree.ForInteger:
        stream = self.stream
        with self.undeclared():
            low = stream.piece(*lower, self.names)
            stream.expect("..")
            high = stream.expression(self.names, "loop", "by", expected="LOOP")
            step = stream.expression(self.names, "loop", expected="LOOP") if stream.take("by") else None
        if len(names) != 1 or stream.tokens[first + 1].text == ",":
            token = stream.tokens[first]
            raise SqlError(
                "42601",
                "integer FOR loop must have only one target variable",
                span=Span(token.start, token.end),
            )
        variable = self.declare(names[0], SqlType(INT4), "scalar", line=line)
        return tree.ForInteger(line, label, variable.number, low, high, step, reverse, self._body(label))

    def _bound_cursor(self) -> int:
        """Return the cursor variable that comes next, -1 where it is none."""
        names, count = self.dotted()
        found = self.meant(names)
        if found is None or found[1] != len(names):
            return -1
        variable = self.variables[found[0]]
        if variable.type.oid != REFCURSOR or self.stream.word(count) not in ("loop", "("):
            return -1
        if variable.cursor is None:
            raise SqlError("42601", "cursor FOR loop must use a bound cursor variable", span=self._here())
        self.stream.at += count
        return variable.number

    def _here(self) -> Span:
        token = self.stream.peek()
        place = self.stream.place
        return Span(place, place if token is None else token.end)

    def _over_cursor(
        self, label: str, line: int, names: Sequence[str], first: int, cursor: int
    ) -> tree.ForCursor:
        if len(names) != 1 or self._row_like(first):
            token = self.stream.tokens[first]
            raise SqlError(
                "42601",
                "cursor FOR loop must have only one target variable",
                span=Span(token.start, token.end),
            )
        with self.undeclared():
            arguments = self.cursor_arguments(cursor)
        record = self.declare(names[0], SqlType(RECORD), "record", line=line)
        return tree.ForCursor(line, label, record.number, cursor, arguments, self._body(label))

    def cursor_arguments(self, cursor: int) -> list[Piece]:
        """Read what a bound cursor is opened with, in the order of its parameters. Raises SqlError 42601."""
        stream = self.stream
        variable = self.variables[cursor]
        if variable.cursor is None:
            raise AssertionError("arguments are given to a variable that is no cursor")
        wanted = [self.variables[number].name for number in variable.cursor.arguments]
        if stream.word() != "(":
            if wanted:
                raise SqlError("42601", f'cursor "{variable.name}" has arguments', span=self._here())
            return []
        if not wanted:
            raise SqlError("42601", f'cursor "{variable.name}" has no arguments', span=self._here())
        stream.expect("(")
        given: dict[int, Piece] = {}
        while True:
            position = len(given)
            token = stream.peek()
            if token is not None and token.name and stream.word(1) == ":=":
                if token.name not in wanted:
                    raise SqlError(
                        "42601",
                        f'cursor "{variable.name}" has no argument named "{token.name}"',
                        span=self._here(),
                    )
                position = wanted.index(token.name)
                stream.at += 2
            if position in given:
                raise SqlError(
                    "42601", f'value for parameter "{wanted[position]}" of cursor "{variable.name}" specified more than once',
                    span=self._here(),
                )  # fmt: skip
            if position >= len(wanted):
                raise SqlError("42601", f'too many arguments for cursor "{variable.name}"', span=self._here())
            given[position] = stream.expression(self.names, ",", ")", expected='," or ")')
            if not stream.take(","):
                break
        if len(given) < len(wanted):
            raise SqlError("42601", f'not enough arguments for cursor "{variable.name}"', span=self._here())
        stream.expect(")")
        return [given[i] for i in range(len(wanted))]

    def using(self, *untils: str) -> list[Piece]:
        """Read USING and its expressions if it comes next, up to one of ``untils``."""
        found: list[Piece] = []
        if self.stream.take("using"):
            while True:
                found.append(self.stream.expression(self.names, ",", *untils, expected=untils[0].upper()))
                if not self.stream.take(","):
                    break
        return found


class Parser(Compound):
    """A whole body."""

    def routine(self) -> tree.Routine:
        """Parse the text. An error without a place tells the line."""
        try:
            return self._routine()
        except SqlError as error:
            if error.span is None and error.where is None:
                token = self.stream.tokens[max(min(self.stream.at, len(self.stream.tokens)) - 1, 0)]
                line = self.stream.line(token.start)
                error.where = f'compilation of PL/pgSQL function "{self.header.name}" near line {line}'
            raise

    def _routine(self) -> tree.Routine:
        inputs, outputs = self._parameters()
        found = self.declare("found", SqlType(BOOL), "scalar").number
        special: dict[str, int] = {}
        if self.header.kind == "trigger":
            row = self.header.new_type or (SqlType(RECORD), "record")
            for name in ("new", "old"):
                special[name] = self.declare(name, *row).number
            for name, oid in _SPECIAL:
                special[name] = self.declare(name, SqlType(oid), "scalar").number
        self._options()
        label = self.label()
        if self.stream.word() not in ("declare", "begin"):
            raise self.stream.error()
        body = self.block(label)
        self.stream.take(";")
        if self.stream.peek() is not None:
            raise self.stream.error()
        return tree.Routine(
            self.variables, inputs, outputs, found, body, self.conflict, special, self.shadows
        )

    def simple(self) -> list[tree.Statement]:
        """See ``planner.plpgsql.simple``."""
        return read(self)

    def _parameters(self) -> tuple[list[int], list[int]]:
        inputs: list[int] = []
        outputs: list[int] = []
        for position, parameter in enumerate(self.header.parameters, 1):
            variable = self.declare(f"${position}", parameter.type, parameter.kind)
            if parameter.name:
                variable.name = parameter.name
                self.names.numbers[parameter.name] = variable.number
            if parameter.mode in "ibv":
                inputs.append(variable.number)
            if parameter.mode in "obt":
                outputs.append(variable.number)
        return inputs, outputs

    def _options(self) -> None:
        stream = self.stream
        while stream.take("#"):
            if stream.take("option", "dump"):
                continue
            if stream.take("print_strict_params"):
                if stream.word() == "on":
                    raise not_supported("#print_strict_params on", span=self._here())
                if not stream.take("off"):
                    raise stream.error("unrecognized print_strict_params option")
                continue
            stream.expect("variable_conflict")
            meant = _CONFLICTS.get(stream.word())
            if meant is None:
                raise stream.error()
            self.conflict = meant
            stream.at += 1

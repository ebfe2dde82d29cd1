"""Declarations of a PL/pgSQL body, and what all parts of its parser share: the stream, variables, names, labels.

    DECLARE n CONSTANT int := 3;   r t%ROWTYPE;   c CURSOR (k int) FOR SELECT ...;   m ALIAS FOR n;

``planner.plpgsql.parser`` has what holds statements, ``planner.plpgsql.simple`` the statements that hold no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

from pgwire.give_way import give_way
from planner.base.errors import Span, SqlError
from planner.plpgsql import tree
from planner.plpgsql.stream import Stream, Token
from planner.plpgsql.tree import Conflict, Kind, Names, Variable
from planner.types import SqlType

REFCURSOR: Final = 1790

Gives: TypeAlias = Literal["nothing", "value", "set"]
RoutineKind: TypeAlias = Literal["function", "procedure", "block", "trigger"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter as a call has it: of a type that is not polymorphic any more. ``mode`` (i, o, b, v, t) as
    in pg_proc.
    """

    name: str
    mode: str
    type: SqlType
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What is known of a function besides its body. ``gives``: what it returns is nothing, one value or row,
    or a set of these.
    """

    name: str
    parameters: tuple[Parameter, ...] = ()
    gives: Gives = "nothing"
    kind: RoutineKind = "function"
    new_type: tuple[SqlType, Kind] | None = None
    """Of a trigger function: the type of NEW and OLD, once a table is known."""


class Types(Protocol):
    """Finds what a written type means."""

    def resolve(
        self, text: str, at: int, names: Names, variables: Sequence[Variable]
    ) -> tuple[SqlType, Kind]:
        """Return a type. Raises SqlError 42704, 42P01, 42703, 42601, 0A000, its span counted from ``at``."""

    def check_collation(self, name: tuple[str, ...]) -> None:
        """Raise SqlError 42704, 3F000, 0A000 unless there is a collation of a name."""


class Base:
    """What all parts of the parser share: the stream, the variables, the names that can be seen."""

    def __init__(self, text: str, header: Header, types: Types) -> None:
        """Read ``text``."""
        self.stream = Stream(text)
        self.header = header
        self.types = types
        self.variables: list[Variable] = []
        self.names = Names(header.name, None)
        self.conflict: Conflict = "error"
        self.open_loops: list[Names] = []
        self.shadows: list[tuple[str, Span]] = []  # variables that hide others, and where they are declared

    # -- variables ---------------------------------------------------------------------------------

    def declare(
        self, name: str, type_: SqlType, kind: Kind, *, line: int = 0, constant: bool = False
    ) -> Variable:
        """Make a variable and let its name be seen."""
        made = Variable(len(self.variables), name, type_, kind, line, constant)
        self.variables.append(made)
        if name:
            self.names.numbers[name] = made.number
        return made

    @contextmanager
    def undeclared(self) -> Iterator[None]:
        """Read expressions of a loop's head, which do not know the loop's variable: its name means one outside."""
        names = self.names
        self.names = names.so_far(len(self.variables))
        try:
            yield
        finally:
            self.names = names

    def dotted(self, ahead: int = 0) -> tuple[tuple[str, ...], int]:
        """Return the names joined by dots that come next, and how many tokens they are; none where no name is next."""
        names: list[str] = []
        count = 0
        while (token := self.stream.peek(ahead + count)) is not None and token.name:
            names.append(token.name)
            count += 1
            if self.stream.word(ahead + count) != ".":
                break
            follows = self.stream.peek(ahead + count + 1)
            if follows is None or not follows.name:
                break
            count += 1
        return tuple(names), count

    def meant(self, names: tuple[str, ...]) -> tuple[int, int] | None:
        """Return (variable, how many of the names name it), None where none is meant."""
        return self.names.find(names, self.variables) if names else None

    def target(self) -> tree.Target:
        """Read a variable, or a field of a row, that takes a value. Raises SqlError 42601, 22005."""
        names, count = self.dotted()
        found = self.meant(names)
        if found is None:
            raise self.not_a_variable(names)
        number, used = found
        first = self.stream.peek()
        self.check_assignable(number, first)
        self.stream.at += count
        return tree.Target(number, names[used:], self.names, ".".join(names))

    def not_a_variable(self, names: Sequence[str]) -> SqlError:
        """Return 42601 for names that come next."""
        token = self.stream.peek()
        if not names or token is None:
            return self.stream.error()
        shown = ".".join(names)
        return SqlError("42601", f'"{shown}" is not a known variable', span=Span(token.start, token.end))

    def check_assignable(self, number: int, token: Token | None) -> None:
        """Raise SqlError 22005 for a constant."""
        variable = self.variables[number]
        if variable.constant:
            span = None if token is None else Span(token.start, token.end)
            raise SqlError("22005", f'variable "{variable.name}" is declared CONSTANT', span=span)

    def into(self) -> tree.Into:
        """Read what comes behind INTO, or between FOR and IN. Raises SqlError 42601, 22005."""
        first = self.target()
        variable = self.variables[first.variable]
        if variable.kind != "scalar" and not first.steps:
            if self.stream.word() == ",":
                raise self.stream.error("record variable cannot be part of multiple-item INTO list")
            return tree.Into([first], whole=True)
        targets = [first]
        while self.stream.take(","):
            target = self.target()
            if self.variables[target.variable].kind != "scalar" and not target.steps:
                raise self.stream.error(f'"{target.text}" is not a scalar variable')
            targets.append(target)
        return tree.Into(targets)

    # -- labels ------------------------------------------------------------------------------------

    def label(self) -> str:
        """Read ``<<label>>`` if it comes next."""
        if not self.stream.take("<<"):
            return ""
        name = self.stream.next_name()
        self.stream.expect(">>")
        return name

    def end_label(self, label: str) -> None:
        """Read the label behind END. Raises SqlError 42601."""
        token = self.stream.peek()
        if token is None or not token.name:
            return
        span = Span(token.start, token.end)
        if not label:
            raise SqlError("42601", f'end label "{token.name}" specified for unlabeled block', span=span)
        if token.name != label:
            raise SqlError(
                "42601", f'end label "{token.name}" differs from block\'s label "{label}"', span=span
            )
        self.stream.at += 1

    def enter(self, label: str, *, loop: bool = False) -> Names:
        """Begin names of their own; returns those around."""
        outer = self.names
        self.names = Names(label, outer, is_loop=loop)
        return outer


class Declarations(Base):
    """DECLARE."""

    def declarations(self) -> list[int]:
        """Read what DECLARE declares, up to BEGIN; returns the variables that are to be made, in order."""
        found: list[int] = []
        while self.stream.word() != "begin":
            if self.stream.take("declare"):
                continue
            if self.stream.word() == "<<":
                place = self.stream.place
                raise SqlError(
                    "42601",
                    "block label must be placed before DECLARE, not after",
                    span=Span(place, place + 2),
                )
            made = self._declaration()
            if made is not None:
                found.append(made)
        return found

    def _declaration(self) -> int | None:
        give_way()
        stream = self.stream
        token = stream.peek()
        name = stream.next_name()
        if name in self.names.numbers:
            stream.at -= 1
            raise stream.error("duplicate declaration")
        if token is None:
            raise AssertionError("the statement has ended where a token was seen")
        self._note_shadow(name, token)
        line = stream.line(token.start)
        if stream.take("alias", "for"):
            names, count = self.dotted()
            found = self.meant(names)
            if found is None or found[1] != len(names):
                shown = ".".join(names)
                if not names:
                    raise stream.error()
                place = stream.place
                raise SqlError(
                    "42704", f'variable "{shown}" does not exist', span=Span(place, place + len(shown))
                )
            stream.at += count
            stream.expect(";")
            self.names.numbers[name] = found[0]
            return None
        scroll = None
        if stream.word() == "no" and stream.word(1) == "scroll":
            stream.at += 2
            scroll = False
        elif stream.word() == "scroll" and stream.word(1) == "cursor":
            stream.at += 1
            scroll = True
        if stream.take("cursor"):
            return self._cursor(name, line, scroll)
        constant = stream.take("constant")
        type_, kind = self.written_type("not", ":=", "=", "default", "collate", ";")
        if stream.take("collate"):
            names, count = self.dotted()
            self._collation(names)
            stream.at += count
        not_null = stream.take("not", "null")
        default = None
        if stream.word() in (":=", "=", "default"):
            stream.at += 1
            default = stream.expression(self.names.so_far(len(self.variables)), ";")
        if not_null and default is None:
            place = stream.place
            raise SqlError(
                "22004", f"variable \"{name}\" must have a default value, since it's declared NOT NULL",
                span=Span(token.start, token.end) if place else None,
            )  # fmt: skip
        stream.expect(";")
        variable = self.declare(name, type_, kind, line=line, constant=constant)
        variable.not_null, variable.default = not_null, default
        return variable.number

    def _note_shadow(self, name: str, token: Token) -> None:
        if self.names.find((name,), self.variables) is not None:
            self.shadows.append((name, Span(token.start, token.end)))

    def _collation(self, names: Sequence[str]) -> None:
        self.types.check_collation(tuple(names))

    def written_type(self, *untils: str) -> tuple[SqlType, Kind]:
        """Read a type up to one of ``untils``. Raises SqlError 42601 and what the type raises."""
        stream = self.stream
        first, depth = stream.at, 0
        while (token := stream.peek()) is not None:
            word = stream.word()
            if depth == 0 and word in untils:
                break
            if word in ("(", "["):
                depth += 1
            elif word in (")", "]"):
                depth -= 1
                if depth < 0:
                    raise stream.error("mismatched parentheses")
            elif word == ";":
                break
            stream.at += 1
        if stream.at == first or token is None:
            raise stream.error("missing data type declaration" if token is not None else "syntax error")
        start, end = stream.tokens[first].start, stream.tokens[stream.at - 1].end
        return self.types.resolve(stream.text[start:end], start, self.names, self.variables)

    def _cursor(self, name: str, line: int, scroll: bool | None) -> int:
        stream = self.stream
        outer = self.enter("")
        self.names.parent = outer.so_far(len(self.variables))
        arguments: list[int] = []
        if stream.take("("):
            while True:
                token = stream.peek()
                argument = stream.next_name()
                if token is not None:
                    self._note_shadow(argument, token)
                type_, kind = self.written_type(",", ")")
                arguments.append(self.declare(argument, type_, kind, line=line).number)
                if not stream.take(","):
                    break
            stream.expect(")")
        if not stream.take("for"):
            stream.expect("is")
        query = stream.statement(self.names, ";")
        query.keeps = True
        stream.expect(";")
        self.names = outer
        variable = self.declare(name, SqlType(REFCURSOR), "scalar", line=line)
        variable.cursor = tree.CursorQuery(query, arguments, scroll)
        return variable.number

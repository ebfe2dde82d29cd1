"""What the body of a PL/pgSQL function is: its variables and its statements.

    <<outer>>                                Block "outer"   declares [2]
    DECLARE n int := 0;                        Variable 2 n int4 = Piece "0"
    BEGIN                                      ForInt i = Piece "1" .. Piece "10"
      FOR i IN 1..10 LOOP                        Assign n := Piece "n + i"
        n := n + i;                            Return Piece "n"
      END LOOP;
      RETURN n;
    END

A ``Piece`` is SQL as it stands in the text, with the ``Names`` that can be seen there; it is bound when it is
first run. Variables are numbered through the whole function, inner blocks included, so that a call's
variables are one list of values. Nodes are compared by identity: what is compiled of them is kept under them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, TypeAlias

from planner import ast
from planner.base.errors import Span
from planner.types import SqlType

Kind: TypeAlias = Literal["scalar", "row", "record", "any"]
"""Of a variable: ``row`` is of a composite type, ``record`` of whatever row it was given, ``any`` of whatever
value (CASE)."""
Conflict: TypeAlias = Literal["error", "use_variable", "use_column"]
"""What a name means that is a variable and a column (#variable_conflict)."""


@dataclass(slots=True, eq=False)
class Names:
    """The variables that one block declares, by name; ``parent``: those around it. ``label`` "" where it has none.

    ``limit``: those from this number on are not declared yet.
    """

    label: str
    parent: Names | None
    numbers: dict[str, int] = field(default_factory=dict)
    is_loop: bool = False
    limit: int = 1 << 62

    def so_far(self, count: int) -> Names:
        """Return them as they are known before the variable of number ``count`` is declared."""
        return replace(self, limit=count)

    def _number(self, name: str) -> int | None:
        number = self.numbers.get(name)
        return None if number is None or number >= self.limit else number

    def find(self, names: tuple[str, ...], variables: list[Variable]) -> tuple[int, int] | None:
        """Return (variable, how many of ``names`` name it), the innermost first; None where none is meant."""
        level: Names | None = self
        while level is not None:
            number = level._number(names[0])
            if number is not None and (len(names) == 1 or variables[number].kind != "scalar"):
                return number, 1
            if len(names) > 1 and level.label and level.label == names[0]:
                number = level._number(names[1])
                if number is not None and (len(names) == 2 or variables[number].kind != "scalar"):
                    return number, 2
            level = level.parent
        return None


@dataclass(slots=True, eq=False)
class Piece:
    """SQL within a body. ``text`` stands at ``at`` in it, character by character; ``kind``: an expression, or
    a statement.

    ``target``: what is written before the value of an assignment, which errors show with it.
    """

    text: str
    at: int
    names: Names
    kind: Literal["expression", "statement"] = "expression"
    target: str = ""
    keeps: bool = False
    """Its rows are a cursor's: with the keys of what they are made of (``planner.bind.change.current_of``)."""
    few: bool = False
    """Who runs it takes a row or two: others are not computed."""
    loops: bool = False
    """A loop runs for each of its rows, which are computed as it comes to them."""

    @property
    def words(self) -> str:
        """What CONTEXT calls it."""
        if self.target:
            return f'PL/pgSQL assignment "{self.target}{self.text}"'
        return f'SQL {self.kind} "{self.text}"'


@dataclass(slots=True, eq=False)
class CursorQuery:
    """What a bound cursor reads. ``arguments``: the variables that are its parameters; ``scroll`` as declared."""

    query: Piece
    arguments: list[int]
    scroll: bool | None = None


@dataclass(slots=True, eq=False)
class Variable:
    """One variable. ``type`` of kind ``record`` is record; ``line`` is where it was declared, 0 for parameters."""

    number: int
    name: str
    type: SqlType
    kind: Kind
    line: int = 0
    constant: bool = False
    not_null: bool = False
    default: Piece | None = None
    cursor: CursorQuery | None = None


@dataclass(slots=True, eq=False)
class Target:
    """What is assigned to: a variable, or a part of it. ``steps`` as in ``ast.Indirection``; ``names`` see
    its subscripts.
    """

    variable: int
    steps: tuple[str | ast.SubscriptStep, ...] = ()
    names: Names | None = None
    text: str = ""


@dataclass(slots=True, eq=False)
class Into:
    """Where the columns of a row go: to one variable of a row, or one by one. ``strict``: of exactly one row."""

    targets: list[Target]
    whole: bool = False
    strict: bool = False


@dataclass(slots=True, eq=False)
class Statement:
    """Base of statements; ``line`` counts from 1, from the beginning of the body."""

    called: ClassVar[str] = "statement"

    line: int

    @property
    def what(self) -> str:
        """What CONTEXT calls it: ``called``, but for those whose name depends on how they are written."""
        return self.called


@dataclass(slots=True, eq=False)
class Handler:
    """WHEN conditions THEN. ``states``: SQLSTATEs; a class is one that ends in 000, "" stands for OTHERS."""

    states: list[str]
    body: list[Statement]


@dataclass(slots=True, eq=False)
class Block(Statement):
    """DECLARE ... BEGIN ... EXCEPTION ... END. ``state`` and ``message`` are the variables SQLSTATE and
    SQLERRM of its handlers.
    """

    label: str
    declares: list[int]
    body: list[Statement]
    handlers: list[Handler]
    state: int = -1
    message: int = -1

    called = "statement block"


@dataclass(slots=True, eq=False)
class Assign(Statement):
    """``target := value``."""

    target: Target
    value: Piece

    called = "assignment"


@dataclass(slots=True, eq=False)
class If(Statement):
    """IF, ELSIF ... ELSE."""

    branches: list[tuple[Piece, list[Statement]]]
    otherwise: list[Statement]

    called = "IF"


@dataclass(slots=True, eq=False)
class Case(Statement):
    """CASE. ``subject`` is kept in ``variable``, which the conditions look at. ``otherwise`` None: there is
    no ELSE (20000).
    """

    subject: Piece | None
    variable: int
    whens: list[tuple[Piece, list[Statement]]]
    otherwise: list[Statement] | None

    called = "CASE"


@dataclass(slots=True, eq=False)
class Loop(Statement):
    """LOOP without end."""

    label: str
    body: list[Statement]

    called = "LOOP"


@dataclass(slots=True, eq=False)
class While(Statement):
    """WHILE condition LOOP."""

    label: str
    condition: Piece
    body: list[Statement]

    called = "WHILE"


@dataclass(slots=True, eq=False)
class ForInteger(Statement):
    """FOR variable IN [REVERSE] lower .. upper BY step LOOP."""

    label: str
    variable: int
    lower: Piece
    upper: Piece
    step: Piece | None
    reverse: bool
    body: list[Statement]

    called = "FOR with integer loop variable"


@dataclass(slots=True, eq=False)
class ForRows(Statement):
    """FOR target IN query LOOP; ``dynamic``: the query is the value of an expression, with ``params``."""

    label: str
    into: Into
    query: Piece
    dynamic: bool
    params: list[Piece]
    body: list[Statement]

    @property
    def what(self) -> str:
        """What CONTEXT calls it."""
        return "FOR over EXECUTE statement" if self.dynamic else "FOR over SELECT rows"


@dataclass(slots=True, eq=False)
class ForCursor(Statement):
    """FOR record IN cursor(arguments) LOOP."""

    label: str
    variable: int
    cursor: int
    arguments: list[Piece]
    body: list[Statement]

    called = "FOR over cursor"


@dataclass(slots=True, eq=False)
class ForEach(Statement):
    """FOREACH target SLICE n IN ARRAY array LOOP."""

    label: str
    into: Into
    slice: int
    array: Piece
    body: list[Statement]

    called = "FOREACH over array"


@dataclass(slots=True, eq=False)
class Exit(Statement):
    """EXIT or CONTINUE [label] [WHEN condition]."""

    is_exit: bool
    label: str
    condition: Piece | None

    @property
    def what(self) -> str:
        """What CONTEXT calls it."""
        return "EXIT" if self.is_exit else "CONTINUE"


@dataclass(slots=True, eq=False)
class Return(Statement):
    """RETURN. Without a value the variables of OUT parameters are it, or there is none."""

    value: Piece | None

    called = "RETURN"


@dataclass(slots=True, eq=False)
class ReturnNext(Statement):
    """RETURN NEXT."""

    value: Piece | None

    called = "RETURN NEXT"


@dataclass(slots=True, eq=False)
class ReturnQuery(Statement):
    """RETURN QUERY [EXECUTE]."""

    query: Piece
    dynamic: bool
    params: list[Piece]

    called = "RETURN QUERY"


@dataclass(slots=True, eq=False)
class Perform(Statement):
    """PERFORM query."""

    query: Piece

    called = "PERFORM"


@dataclass(slots=True, eq=False)
class Sql(Statement):
    """A statement of SQL, INTO cut out of it."""

    statement: Piece
    into: Into | None

    called = "SQL statement"


@dataclass(slots=True, eq=False)
class CallRoutine(Statement):
    """CALL or DO."""

    statement: Piece
    is_do: bool

    @property
    def what(self) -> str:
        """What CONTEXT calls it."""
        return "DO" if self.is_do else "CALL"


@dataclass(slots=True, eq=False)
class EndTransaction(Statement):
    """COMMIT or ROLLBACK [AND CHAIN]."""

    committing: bool
    chain: bool

    @property
    def what(self) -> str:
        """What CONTEXT calls it."""
        return "COMMIT" if self.committing else "ROLLBACK"


@dataclass(slots=True, eq=False)
class Execute(Statement):
    """EXECUTE text INTO ... USING ..."""

    text: Piece
    into: Into | None
    params: list[Piece]

    called = "EXECUTE"


@dataclass(slots=True, eq=False)
class Diagnostics(Statement):
    """GET [STACKED] DIAGNOSTICS; ``items``: target and the item's name in lower case."""

    stacked: bool
    items: list[tuple[Target, str]]

    @property
    def what(self) -> str:
        """What CONTEXT calls it."""
        return "GET STACKED DIAGNOSTICS" if self.stacked else "GET DIAGNOSTICS"


@dataclass(slots=True, eq=False)
class Raise(Statement):
    """RAISE. ``level`` in lower case; ``condition``: its name or SQLSTATE, ``message``: the format,
    ``options`` by name.

    Without condition, message and options it raises again what is being handled.
    """

    level: str
    condition: str | None
    state: str | None
    message: str | None
    params: list[Piece]
    options: list[tuple[str, Piece]]

    called = "RAISE"


@dataclass(slots=True, eq=False)
class Assert(Statement):
    """ASSERT condition, message."""

    condition: Piece
    message: Piece | None

    called = "ASSERT"


@dataclass(slots=True, eq=False)
class Open(Statement):
    """OPEN cursor. Of an unbound one with ``query``, or ``dynamic`` with ``params``; of a bound one with
    ``arguments``.
    """

    cursor: int
    arguments: list[Piece]
    query: Piece | None = None
    dynamic: bool = False
    params: list[Piece] = field(default_factory=list)
    scroll: bool | None = None

    called = "OPEN"


@dataclass(slots=True, eq=False)
class Fetch(Statement):
    """FETCH or MOVE; ``direction`` as in ``ast.Fetch``; ``count`` an expression, None for 1; ``every``: ALL."""

    cursor: int
    direction: str
    count: Piece | int | None
    into: Into | None
    every: bool = False

    @property
    def what(self) -> str:
        """What CONTEXT calls it."""
        return "MOVE" if self.into is None else "FETCH"


@dataclass(slots=True, eq=False)
class Close(Statement):
    """CLOSE cursor."""

    cursor: int

    called = "CLOSE"


@dataclass(slots=True, eq=False)
class Routine:
    """A whole body. ``inputs``, ``outputs``: variables of its parameters, in order; ``result``: of what it returns."""

    variables: list[Variable]
    inputs: list[int]
    outputs: list[int]
    found: int
    body: Block
    conflict: Conflict = "error"
    special: dict[str, int] = field(default_factory=dict)
    """Of a trigger function: OLD, NEW and TG_..., by name in lower case."""
    shadows: list[tuple[str, Span]] = field(default_factory=list)
    """Variables that hide others, and where in the body they are declared."""

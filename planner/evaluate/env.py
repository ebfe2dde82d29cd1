"""What generated expressions run in: the env, the layout of rows, and the signal that they must wait.

Layout    where values stand in a row; ``outer`` is the layout of the row one query level out
Env       parameters, session, that outer row, and the env it was evaluated in
Suspend   raised by an expression that has to wait (pg_sleep, a lock, a function that is called, a sub-select that reads cold rows)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from planner.functions.session import EvalSession
from planner.query import Expr, SubLink

Row: TypeAlias = tuple[Any, ...]


class Shared:
    """What all envs of one execution share: the replay log of volatile functions."""

    __slots__ = ("cursor", "log")

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.cursor = 0

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a volatile function once per position: evaluating again after Suspend gives the same value."""
        if self.cursor < len(self.log):
            value = self.log[self.cursor]
        else:
            value = function(*args)
            self.log.append(value)
        self.cursor += 1
        return value

    def restart(self) -> None:
        """Begin the batch again."""
        self.cursor = 0

    def finish(self) -> None:
        """The batch is done: forget its values."""
        if self.log:
            self.log.clear()
        self.cursor = 0


class Env:
    """What stays the same while rows of one query level are looked at.

    Attributes:
        params: values of ``$1`` ...; the session-stable values follow the client's.
        session: the session, for functions that ask for it.
        row: the row of the query one level out (its layout is ``Layout.outer``).
        parent: the env of that query.
        shared: state of the whole execution; the executor may subclass it.
    """

    __slots__ = ("cache", "ctes", "params", "parent", "row", "session", "shared")

    def __init__(
        self,
        params: Sequence[Any] = (),
        session: EvalSession | None = None,
        row: Row = (),
        parent: Env | None = None,
        shared: Shared | None = None,
    ) -> None:
        self.params = params
        self.session = session
        self.row = row
        self.parent = parent
        self.shared: Any = shared
        self.ctes: dict[str, Any] | None = None  # the executor's: rows of this level's WITH items
        self.cache: dict[int, Any] | None = None  # the executor's: sub-selects that do not depend on the row

    def child(self, row: Row) -> Env:
        """Return the env of a query one level further in, evaluated for ``row`` of this one."""
        return Env(self.params, self.session, row, self, self.shared)


Subplanner: TypeAlias = "Callable[[SubLink, Layout], Callable[[Row, Env], Any]]"


@dataclass(slots=True, eq=False)
class Layout:
    """Where values stand in a row: ``columns`` by (range, attnum), ``exprs`` by expression.

    ``outer`` is the layout of ``Env.row``. ``subplan`` compiles a sub-select; without it they are 0A000.
    ``pieces``: a row is a tuple of rows, two at least, each with columns of its own; such a layout has no
    ``columns`` and ``exprs``. ``records``: by range, what makes the function from such a row to the whole row
    of the range, where no place of the row has it.
    """

    columns: dict[tuple[int, int], int] = field(default_factory=dict)
    exprs: dict[Expr, int] = field(default_factory=dict)
    outer: Layout | None = None
    subplan: Subplanner | None = None
    pieces: tuple[dict[tuple[int, int], int], ...] = ()
    records: dict[int, Callable[[], Callable[[Any], Any]]] = field(default_factory=dict)


EMPTY_LAYOUT = Layout()


class RowFunction(Protocol):
    """A compiled expression; ``may_suspend`` tells that it can raise Suspend, ``grows`` that it may make
    values of any size.
    """

    may_suspend: bool
    grows: bool

    def __call__(self, r: Any, e: Env) -> Any:
        """Evaluate for a row (or, for batch functions, for a list of rows)."""

"""What the two engines do not share, behind one set of methods.

Lowering and the builtin forms are written once against ``Dialect``; ``duckdb.py`` and ``spark.py`` fill it in.
A dialect object serves one lowering: it numbers the generated names and notes what the SQL needs at run time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, cast

from pgwire.codecs.errors import DataError
from pgwire.codecs.users.types import UserTypes
from planner.base.errors import SqlError, not_supported
from planner.catalog import Catalog, EnumLabel
from planner.lower.kit import build as b
from planner.lower.kit.build import Node
from planner.lower.kit.correlations import Correlations
from planner.lower.kit.value import Fixed, Num, Val, element_of, kind_of
from planner.types import SqlType

# Named values of one step of a chain: (name, node, engine type).
Parts: TypeAlias = Sequence[tuple[str, Node, str]]
Named: TypeAlias = Callable[[str], Node]


@dataclass(frozen=True, slots=True)
class Loop:
    """Steps of a chain that are gone through ``times`` times; the last one yields the parts that the first
    one takes.
    """

    times: int
    steps: tuple[Callable[[Named], Parts], ...]


Step: TypeAlias = Callable[[Named], Parts] | Loop

# Raised errors travel through the engine as this prefix, SQLSTATE, colon, message.
ERROR_MARK = "HF!"
ERROR_END = "\x1f"
ERROR_FIELD = "\x1e"  # between the message and its DETAIL, HINT and CONTEXT, where there are such

# In the text of a jsonb value: a string, or a number's zeros after the point that tell nothing; both groups are kept.
JSON_ZEROS = r'("[^"\\]*(?:\\.[^"\\]*)*")|(\.[0-9]*[1-9])0+\b|\.0+\b'


def error_text(error: DataError) -> str:
    """Return the message of an error with its DETAIL, HINT and CONTEXT, as ``error_of`` reads it."""
    if error.detail is None and error.hint is None and error.where is None:
        return error.message
    return ERROR_FIELD.join((error.message, error.detail or "", error.hint or "", error.where or ""))


def error_of(sqlstate: str, text: str) -> SqlError:
    """Return the error whose ``error_text`` an engine has given back."""
    message, *fields = [field.strip() for field in text.split(ERROR_FIELD)]
    detail, hint, where = (*[field or None for field in fields], None, None, None)[:3]
    return SqlError(sqlstate, message, detail=detail, hint=hint, where=where)


Labels = Callable[[int], Sequence[EnumLabel]]
"""From the oid of an enum to its labels in order."""


def labels_of(catalog: Catalog) -> Labels:
    """Return the labels of enums as ``catalog`` has them. Plans are kept for long: where it is a server's,
    what is returned keeps the enums, and not the catalog.
    """
    types: UserTypes | None = getattr(catalog, "codec_types", None)
    if types is not None:
        enums = types.enums
        return lambda oid: cast("Sequence[EnumLabel]", enums[oid].labels) if oid in enums else ()

    def labels(oid: int) -> Sequence[EnumLabel]:
        made = catalog.type_by_oid(oid)
        return () if made is None else made.labels

    return labels


def _no_labels(oid: int) -> Sequence[EnumLabel]:
    raise not_supported("the text of an enum in this executor")


class Dialect(ABC):
    """One engine's SQL. ``labels``: set it where enums may be printed or read. ``draws``: the statement calls
    random().
    """

    name: Literal["duckdb", "spark"]
    types: dict[str, str]
    calls_python: ClassVar[bool] = False
    correlations: ClassVar[Correlations]
    """Whether the engine can ask Python for a value in the middle of a query (``callouts``)."""
    series_in_order: ClassVar[bool] = False
    """Whether rows of ``series_rows`` are numbered as they come."""

    def __init__(self) -> None:
        """Start numbering."""
        self._names = 0
        self.labels: Labels = _no_labels
        self.draws = False

    def fresh(self, prefix: str) -> str:
        """Return a name not used before in this statement."""
        self._names += 1
        return f"{prefix}{self._names}"

    # -- types -----------------------------------------------------------------------------------

    def engine_type(self, type_: SqlType, num: Num | None = None) -> str:
        """Return the engine type that holds ``type_``."""
        kind = kind_of(type_.oid)
        if isinstance(num, Fixed):
            return self.decimal(num.precision, num.scale)
        if kind == "list":
            return self.list_of(self.engine_type(SqlType(element_of(type_.oid))))
        return self.types[kind]

    def decimal(self, precision: int, scale: int) -> str:
        """Return the engine's DECIMAL type."""
        return f"DECIMAL({precision}, {scale})"

    @abstractmethod
    def list_of(self, element: str) -> str:
        """Return the engine's array type."""

    def as_kind(self, node: Node, kind: str) -> Node:
        """Cast to a kind's engine type (the engine's own cast: only where it cannot differ or fail)."""
        return b.cast(node, self.types[kind])

    def typed_null(self, type_: SqlType, num: Num | None = None) -> Node:
        """Return NULL of a type."""
        return b.cast(b.null(), self.engine_type(type_, num))

    # -- expressions -----------------------------------------------------------------------------

    def may_overflow(self, node: Node, kind: str) -> Node:
        """Return ``node``, an operation whose result of an integer kind may be out of range."""
        return node

    @abstractmethod
    def error(self, sqlstate: str, message: str, witness: Node | None = None) -> Node:
        """Return an expression that fails when evaluated.

        ``witness`` is anything that depends on the row: with it DuckDB need not treat the expression as volatile,
        which would keep it out of joins' conditions, window orders and decorrelated sub-selects.
        """

    @abstractmethod
    def one(self, node: Node) -> Node:
        """Return an array of one item."""

    @abstractmethod
    def mapped(self, items: Node, variable: str, body: Node) -> Node:
        """Return an array's items through a lambda."""

    def bind_name(self, node: Node, body: Callable[[Node], Node]) -> Node:
        """Return ``body`` over a variable that holds ``node``, which is then evaluated once.

        Nested inside each other more than a few deep, these take DuckDB's binder exponential time: use ``chain``.
        """
        variable = self.fresh("x")
        return self.list_item(self.mapped(self.one(node), variable, body(b.bare(variable))), b.integer(1))

    def chain(self, first: Parts, steps: Sequence[Step], last: Callable[[Named], Node]) -> Node:
        """Return ``last`` after steps that each compute named values from those of the step before.

            chain([("u", x, T)], [lambda v: [("a", abs(v("u")), T)]], lambda v: ...)

        A part is (name, node, engine type). Each value is computed once; depth does not grow with the steps.
        """
        items = self.one(self.record(first))
        for step in steps:
            items = self._through(items, step)
        variable = self.fresh("x")
        return self.list_item(self.mapped(items, variable, last(_named(variable))), b.integer(1))

    def _through(self, items: Node, step: Step) -> Node:
        """Return an array's records after a step."""
        if isinstance(step, Loop):
            return self.looped(items, step)
        variable = self.fresh("x")
        return self.mapped(items, variable, self.record(step(_named(variable))))

    def looped(self, items: Node, loop: Loop) -> Node:
        """Return an array's records after a loop: its steps one after the other."""
        for _ in range(loop.times):
            for step in loop.steps:
                items = self._through(items, step)
        return items

    def record(self, parts: Parts) -> Node:
        """Return a struct of named parts."""
        return self.struct(
            self.struct_type([(n, t) for n, _, t in parts]), *((n, node) for n, node, _ in parts)
        )

    @abstractmethod
    def struct_type(self, fields: Sequence[tuple[str, str]]) -> str:
        """Return the struct type of (name, engine type) fields."""

    def let(self, nodes: Sequence[Node], body: Callable[..., Node]) -> Node:
        """Return ``body`` over the nodes, each evaluated once; simple ones are just repeated."""
        return self._let(nodes, body, [])

    def _let(self, nodes: Sequence[Node], body: Callable[..., Node], bound: list[Node]) -> Node:
        """``bound``: what stands for the first of the nodes."""
        while len(bound) < len(nodes):
            node = nodes[len(bound)]
            if not b.is_simple(node):
                return self.bind_name(node, lambda variable: self._let(nodes, body, [*bound, variable]))
            bound.append(node)
        return body(*bound)

    def repeat(self, nodes: Sequence[Node], body: Callable[..., Node], limit: int = 10) -> Node:
        """Like ``let``, but small expressions are repeated too: a variable costs more than computing them again.

        Calls of Python cost more, and ``random()`` would give another number.
        """
        if all(b.size(node, limit) < limit and not b.is_costly(node) for node in nodes):
            return body(*nodes)
        return self.let(nodes, body)

    @abstractmethod
    def struct(self, engine_type: str, *parts: tuple[str, Node]) -> Node:
        """Return a struct value of the given type."""

    @abstractmethod
    def integer_divide(self, left: Node, right: Node) -> Node:
        """Return the truncated quotient of two non-negative DECIMAL(38, 0), right > 0, as DECIMAL(38, 0)."""

    @abstractmethod
    def decimal_op(self, symbol: str, left: Val, right: Val, num: Fixed) -> Node:
        """Return ``left symbol right`` (+ - *) of Fixed values, exact, of at least ``num``'s precision."""

    @abstractmethod
    def decimal_to_double(self, node: Node, num: Fixed) -> Node:
        """Return a DECIMAL as the nearest float8."""

    @abstractmethod
    def list_item(self, items: Node, index: Node) -> Node:
        """Return item ``index`` (from 1) of an array; NULL outside."""

    @abstractmethod
    def to_text(self, node: Node) -> Node:
        """Return an integer or DECIMAL as plain text."""

    @abstractmethod
    def length(self, node: Node) -> Node:
        """Return the number of characters as an integer."""

    @abstractmethod
    def literal(self, value: object, kind: str) -> Node:
        """Return a typed literal of a kind other than numeric and list, from the value domain; never NULL."""

    @abstractmethod
    def parameter(self, number: int, type_: SqlType, values: Sequence[object] | None) -> Val:
        """Return ``$number``: a placeholder or, given the values, a literal."""

    @abstractmethod
    def is_infinite(self, node: Node) -> Node:
        """Return whether a float is infinite."""

    @abstractmethod
    def is_nan(self, node: Node) -> Node:
        """Return whether a float is NaN."""

    # -- aggregates and queries --------------------------------------------------------------------

    @abstractmethod
    def by_key(self, value: Node, key: Node, greatest: bool) -> tuple[str, tuple[Node, ...]]:
        """Return the aggregate call (name, arguments) for the value with the least or greatest key."""

    def any_value(self, node: Node) -> Node:
        """Return the aggregate that picks some row's value."""
        return b.fn("any_value", node)

    def unless_infinite(
        self, node: Node, kind: str, body: Callable[[Node], Node], infinite: Callable[[Node, int], Node]
    ) -> Node:
        """Return ``body`` over a date or timestamp; for an engine that takes infinities for far values: over others.

        Args:
            node: the value.
            kind: date, timestamp or timestamptz.
            body: what is made of a finite value.
            infinite: what is made of an infinite one, given the value and its sign (1, -1).
        """
        return body(node)

    def groups_as_is(self, kind: str) -> bool:
        """Whether a group's key is one of its values, and not another one equal to it."""
        return True

    def orders_lists(self) -> bool:
        """Whether arrays compare as PostgreSQL's do, NULL elements last."""
        return True

    def list_key(self, node: Node) -> Node:
        """Return what orders an array where the engine's own order is another."""
        raise not_supported("comparison of arrays in this executor")

    def grouping(self, node: Node) -> Node:
        """Return 0 where the grouping set holds the expression, 1 where not."""
        return b.fn("grouping", node)

    @property
    @abstractmethod
    def explode(self) -> str:
        """The function that turns an array into rows in a select list."""

    @abstractmethod
    def series(self, args: Sequence[Val], result: SqlType) -> Node:
        """Return the array of generate_series(start, stop[, step]) of integers; 22023 for step 0."""

    def series_rows(self, args: Sequence[Val], label: str, column: str, result: SqlType) -> Node | None:
        """Return generate_series of integers that need no column as a SELECT of one column, where that beats
        an array.
        """
        return None

    def any_order(self) -> list[Node]:
        """Return an ORDER BY for windows that need one but do not care."""
        return []

    @abstractmethod
    def interval_value(self, value: Val) -> Node:
        """Return an interval in the engine's own interval type."""

    def frame_interval(self, value: Val, ordered: Val) -> Node:
        """Return an interval as the offset of a RANGE frame over ``ordered``."""
        raise not_supported("RANGE with an interval offset in this executor")

    def bytes_of(self, node: Node, start: Node, count: Node) -> Node:
        """Return ``count`` bytes from ``start``, which counts from 1; fewer where there are not so many."""
        return b.fn("substring", node, start, count)

    def number_of_hex(self, digits: Node) -> Node:
        """Return up to eight hexadecimal digits as a bigint; NULL for none."""
        return b.cast(b.fn("conv", digits, b.integer(16), b.integer(10)), "BIGINT")

    @abstractmethod
    def try_cast(self, node: Node, engine_type: str) -> Node:
        """Return the cast, or NULL where it fails."""

    @abstractmethod
    def matches(self, node: Node, pattern: str) -> Node:
        """Return whether all of the text matches ``pattern``, a regular expression plain in both engines."""

    @abstractmethod
    def contains_match(self, node: Node, pattern: str) -> Node:
        """Return whether ``pattern`` matches somewhere in the text; ``.`` matches line ends too."""

    @abstractmethod
    def same_document(self, node: Node) -> Node:
        """Return a text that is the same for the texts of equal jsonb values: their numbers without zeros at
        the end.
        """

    @abstractmethod
    def failing(self, sqlstate: str, message: Node) -> Node:
        """Return an expression that fails with a computed message."""

    @abstractmethod
    def add_days(self, node: Node, days: Node) -> Node:
        """Return a date so many days later."""

    @abstractmethod
    def days_between(self, start: Node, stop: Node) -> Node:
        """Return ``stop - start`` of two dates, in days."""

    @abstractmethod
    def epoch_us(self, node: Node) -> Node:
        """Return a timestamp as microseconds since 1970, a bigint."""

    @abstractmethod
    def time_us(self, node: Node, kind: str) -> Node:
        """Return the microseconds since midnight of a timestamp or time, a bigint."""

    @abstractmethod
    def date_part(self, name: str, node: Node, kind: str, infinite: tuple[str, str]) -> Node:
        """Return a calendar field of a ``kind`` (date, timestamp) as PostgreSQL counts it; ``infinite``: the error."""

    @abstractmethod
    def like(self, node: Node, pattern: Val) -> Node:
        """Return LIKE with a backslash as the escape character."""

    @abstractmethod
    def limit(self, node: Node) -> Node:
        """Return a checked LIMIT or OFFSET count from a lowered bigint."""

    def text(self, node: Node) -> str:
        """Print a query."""
        return b.text_of(node, self.name)


def _named(variable: str) -> Named:
    return lambda part: b.field(b.bare(variable), part)

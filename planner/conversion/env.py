"""What the conversions of one statement share: the types of its parameters, and what was asked to read its literals.

    WHERE id = $1        reference(1) -> Param unknown, then deduce(param, int4)
    '2024-01-01'::date   folded: datestyle

``planner.conversion.casts`` converts; parts below it, as those for composite values, hand this on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pgwire.codecs.settings import CodecSettings
from planner.base.errors import Span, SqlError
from planner.catalog import RowType
from planner.facts import UNKNOWN
from planner.query import Expr, Param, RowExpr
from planner.textsearch.names import read_stored
from planner.types import SqlType
from planner.types.facts import format_type

# numbered parameters a statement may have: the wire's Bind message counts them in 16 bits
MAX_PARAMS = 65535


class ParamTypes:
    """The types of ``$1`` .. ``$n`` while one statement is bound.

    Oid 0 (or unknown) is open until a coercion or ``finish`` settles it. With ``variable`` False only the
    declared ones exist, and any other number is 42P02.
    """

    __slots__ = ("types", "unsettled", "variable")

    def __init__(self, declared: Sequence[int] = (), *, variable: bool = True) -> None:
        """Start with the client's declared types (0 = not declared)."""
        self.types: list[int] = [UNKNOWN if oid == 0 else oid for oid in declared]
        self.variable = variable
        self.unsettled: dict[int, Span | None] = {}

    def left_open(self, expr: Expr) -> None:
        """Note that a place takes a parameter of any type: one that gets its type later in the statement is
        refused (``finish``).
        """
        parts = expr.fields if isinstance(expr, RowExpr) else (expr,)
        for part in parts:
            if isinstance(part, Param) and part.type.oid == UNKNOWN:
                self.unsettled.setdefault(part.number, part.span)

    def reference(self, number: int, span: Span | None = None) -> Param:
        """Return the Param for ``$number``, of unknown type while it is open. Raises 42P02."""
        if number < 1 or number > MAX_PARAMS or (not self.variable and number > len(self.types)):
            raise SqlError("42P02", f"there is no parameter ${number}", span=span)
        while len(self.types) < number:
            self.types.append(UNKNOWN)
        return Param(type=SqlType(self.types[number - 1]), number=number, span=span)

    def deduce(self, param: Param, target: int, span: Span | None = None) -> Param:
        """Settle an open parameter as ``target``; 42P08 if it was settled differently before."""
        known = self.types[param.number - 1]
        if known == UNKNOWN:
            self.types[param.number - 1] = target
        elif known != target:
            raise SqlError(
                "42P08",
                f"inconsistent types deduced for parameter ${param.number}",
                detail=f"{format_type(known)} versus {format_type(target)}",
                span=param.span or span,
            )
        return replace(param, type=SqlType(target))

    def finish(self) -> tuple[int, ...]:
        """Return all types; 42P18 when one is still open, 42P08 when one was where it was met first (``$1 IS
        NULL OR a = $1``).
        """
        for number, span in self.unsettled.items():
            if self.types[number - 1] != UNKNOWN:
                raise SqlError("42P08", f"could not determine data type of parameter ${number}", span=span)
        for index, oid in enumerate(self.types):
            if oid == UNKNOWN:
                raise SqlError("42P18", f"could not determine data type of parameter ${index + 1}")
        return tuple(self.types)


@dataclass(slots=True)
class CoerceEnv:
    """What coercions of one statement share.

    ``folded`` collects the lower-case names of settings that a literal was read under (datestyle, timezone,
    intervalstyle), plus ``now`` when it named the current time: such a plan is good for that value only.
    ``row_type``: what attributes composite types have. ``check_name``: raises what is wrong with the name of
    an object in a literal of the statement's own text, by the oid of the type (reg* and arrays of them).
    ``whole_rows``: what the anonymous rows of entries of FROM are made of, for the one place that asks: a
    cast to a composite type. By identity, as equal Vars of two sub-queries differ in what they stand for; the
    Var is kept so that its identity is. ``extensions``: those whose operators are found. ``search_name``:
    reads a regconfig or regdictionary by the oid of the type.
    """

    settings: CodecSettings
    params: ParamTypes
    folded: set[str] = field(default_factory=set)
    row_type: Callable[[int], RowType | None] = field(default=lambda oid: None)
    check_name: Callable[[int, str], object] = field(default=lambda oid, text: None)
    search_name: Callable[[int, str], int] = field(default=read_stored)
    whole_rows: dict[int, tuple[Expr, Callable[[], RowExpr]]] = field(default_factory=dict)
    extensions: tuple[str, ...] = ()

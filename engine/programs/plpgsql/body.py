"""A function's body made ready: its tree, its statements as plans, the conversions between its types.

    Body                    one function, one set of argument types, one session
      prepared(piece)         Prepared      by the shapes of the records that the piece names
                                Ready         a plan, where its parameters are, and the compiled form of a plain expression
      cast(from, to)          a compiled conversion

A body is kept as long as nothing that it was read against has changed; each plan as long as it is fresh.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from engine.programs.plpgsql.open_row import OpenRow, RowForm
from engine.programs.plpgsql.program import Program, compiled, has_loop
from engine.session.plans.plan import Plan
from pgwire.codecs.system import RecordValue
from pgwire.give_way import openly
from planner import ast
from planner.bind.context import BindContext, WithStep, make_context
from planner.bind.stored.bodies import is_simple
from planner.catalog import FunctionDef
from planner.evaluate import RowFunction
from planner.facts import VOID
from planner.plpgsql.bind import (
    Part,
    assigned,
    assignment_cast,
    bind_part,
    bind_piece,
    expressions_of,
    only_target,
)
from planner.plpgsql.declarations import RoutineKind
from planner.plpgsql.header import header_for_call
from planner.plpgsql.parser import parse_routine
from planner.plpgsql.planned import Planned
from planner.plpgsql.tree import Piece, Routine, Target
from planner.plpgsql.types import CatalogTypes
from planner.plpgsql.variables import Shape, Source, VariableNames
from planner.query import Const, OutputColumn, Param, Select
from planner.statements import QueryStatement
from planner.types import SqlType
from planner.types.domains import is_domain

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot
    from engine.session.session import Session

MAX_CASTS: Final = 500


class Ready:
    """One piece for one set of shapes. ``values`` finds its parameters among a call's variables."""

    __slots__ = (
        "checked", "constant", "declared", "domain", "failing", "fields", "function", "node", "one", "places", "plain", "plan", "sources", "type", "variable",
    )  # fmt: skip

    def __init__(
        self,
        node: ast.StatementNode,
        plan: Plan,
        sources: Sequence[Source],
        routine: Routine,
        session: Session,
    ) -> None:
        """Compile what can be evaluated without running a query."""
        self.node = node
        self.plan = plan
        self.sources = tuple(sources)
        self.function: RowFunction | None = expressions_of(plan.bound)
        plain = self.function is not None and not self.function.may_suspend
        # evaluated without more ado: needs neither rights nor a transaction
        self.plain = plain and not plan.bound.functions
        target = only_target(plan.bound) if self.function is not None else None
        planned = None if target is None else openly(Planned, target, session)
        # PostgreSQL computes it while it plans, or a part that fails, which CONTEXT tells
        self.constant = planned is not None and planned.whole
        parts = (
            [] if planned is None else [planned, *(openly(Planned, e, session) for e in plan.bound.stable)]
        )
        self.failing = next((part.failing for part in parts if part.failing is not None), None)
        columns = plan.columns or ()
        self.type = columns[0].type if columns else SqlType(VOID)
        self.one = len(columns) == 1
        self.declared: tuple[SqlType, ...] = ()  # the types of all columns, where some are domains
        self.domain: SqlType | None = None  # that ``type`` is under
        self.fields: tuple[int, ...] = ()  # of the row that it is, where some are domains
        self.checked = 0  # runs before which was looked for what fails while PostgreSQL plans it
        self.places = [
            (s.variable, 1 if routine.variables[s.variable].kind == "any" else s.field) for s in sources
        ]
        self.variable = _only_variable(plan, sources)

    def values(self, values: list[Any]) -> tuple[Any, ...]:
        """Return the parameters' values."""
        return tuple([value_at(values[number], field) for number, field in self.places])


def value_at(value: Any, field: int | None) -> Any:
    """Return what a variable holds as a parameter has it, or one field of that."""
    if field is not None:
        return None if value is None else value[field]
    return value.packed if type(value) is OpenRow else value


def _only_variable(plan: Plan, sources: Sequence[Source]) -> int | None:
    """Return the variable that a piece is, None where it is more than its name, or a field."""
    if (
        len(sources) != 1
        or sources[0].field is not None
        or not isinstance(plan.bound.statement, QueryStatement)
    ):
        return None
    query = plan.bound.statement.query
    if not isinstance(query, Select) or not is_simple(query) or len(query.targets) != 1:
        return None
    return sources[0].variable if isinstance(query.targets[0].expr, Param) else None


class ReadyPart:
    """How a part of a variable is replaced: by ``function`` of ``sources``, or by the query ``plan``;
    ``failing`` as of ``Ready``.
    """

    __slots__ = ("failing", "function", "plan", "sources", "subscripts", "type")

    def __init__(self, part: Part, session: Session) -> None:
        """Plan what is a query."""
        self.function = part.function
        self.sources = part.sources
        self.subscripts = part.subscripts
        self.type = part.type
        self.failing = openly(Planned, part.made, session).failing
        self.plan = None if part.bound is None else Plan(part.bound, session.catalog, session.search_path)


class Prepared:
    """What one piece was made into, by the shapes of the records that it names."""

    __slots__ = ("by_shape", "dynamic", "piece")

    def __init__(self, piece: Piece) -> None:
        self.piece = piece
        self.dynamic: tuple[int, ...] | None = None
        self.by_shape: dict[tuple[Shape, ...], Ready] = {}


def shape_of(value: Any) -> Shape:
    """Return the shape of what a variable of kind ``record`` or ``any`` holds."""
    if isinstance(value, RecordValue):
        names = value.names or tuple(f"f{i}" for i in range(1, len(value) + 1))
        return value.types, names, value.typmods
    return None if value is None else int(value[0])


class Body:
    """A function for certain types of arguments; see the module."""

    def __init__(
        self,
        session: Session,
        function: FunctionDef,
        types: Sequence[int],
        kind: RoutineKind,
        new_type: SqlType | None = None,
        steps: Mapping[str, WithStep] | None = None,
    ) -> None:
        """Read a function's body for arguments of ``types``; ``steps``: a trigger's transition tables. Raises
        SqlError 42601, 42704 and what reading it raises.
        """
        self.session = session
        self.function = function
        self.steps: Mapping[str, WithStep] = steps or {}
        context = self.context()
        header = header_for_call(function, types, kind, new_type)
        self.catalog_version = session.catalog.version
        self.namespace_version = session.catalog.namespace_version
        self.routine = openly(parse_routine, function.source, header, CatalogTypes(context))
        self.versions = dict(context.versions)
        self.row_form: RowForm | None = None  # of NEW and OLD, which are ``opened``
        self.opened: frozenset[int] = frozenset()
        if new_type is not None:
            self.row_form = RowForm(session.catalog, new_type.oid)
            self.opened = frozenset((self.routine.special["new"], self.routine.special["old"]))
        self._prepared: dict[Piece, Prepared] = {}
        self._casts: dict[tuple[SqlType, SqlType], RowFunction | None] = {}
        self._parts: dict[tuple[Target, SqlType, bool], ReadyPart] = {}
        self._derived_version = self.catalog_version
        self._programs: dict[SqlType | None, tuple[int, Program | None]] = {}
        self._columns: tuple[OutputColumn, ...] = ()
        self._calls = 0
        self._has_loop = has_loop(self.routine)

    def fresh(self, catalog: CatalogSnapshot, function: FunctionDef) -> bool:
        """Tell whether the body still means the same under ``catalog``."""
        if function is not self.function and function != self.function:
            return False
        if catalog.version == self.catalog_version:
            return True
        if catalog.namespace_version != self.namespace_version:
            return False
        for oid, version in self.versions.items():
            relation = catalog.relation_by_oid(oid)
            if relation is None or relation.version != version:
                return False
        self.catalog_version = catalog.version
        return True

    def context(self) -> BindContext:
        """Return what names are looked up in now."""
        session = self.session
        session.view.renew()
        made = make_context(
            session.catalog, session.bind_path, settings=session.bind_settings, database=session.database,
            variable_params=False, security=session.row_security,
        )  # fmt: skip
        made.steps.update(self.steps)
        return made

    # -- pieces ------------------------------------------------------------------------------------

    def prepared(self, piece: Piece) -> Prepared:
        """Return what is kept of a piece."""
        found = self._prepared.get(piece)
        if found is None:
            found = self._prepared[piece] = Prepared(piece)
        return found

    def ready(self, piece: Piece, values: list[Any]) -> Ready:
        """Return a piece as it can be run with the variables' present values. Raises SqlError as ``bind_piece``."""
        prepared = self._prepared.get(piece)
        if prepared is None:
            prepared = self.prepared(piece)
        dynamic = prepared.dynamic
        if dynamic is not None:
            key = tuple([shape_of(values[n]) for n in dynamic]) if dynamic else ()
            found = prepared.by_shape.get(key)
            if found is not None and found.plan.fresh(self.session.catalog):
                return found
        return self._bind(prepared, values)

    def _bind(self, prepared: Prepared, values: list[Any]) -> Ready:
        routine, session = self.routine, self.session
        shapes = self.shapes(values)
        names = VariableNames(routine.variables, prepared.piece.names, routine.conflict, shapes)
        names.opened = self.opened
        if "tg_argv" in routine.special:
            names.zero_based = frozenset((routine.special["tg_argv"],))
        catalog = session.catalog
        node, bound, fields = openly(bind_piece, self.context(), prepared.piece, names)
        made = Ready(node, Plan(bound, catalog, session.search_path), names.sources, routine, session)
        made.declared = declared = bound.declared
        made.domain = declared[0] if declared and is_domain(declared[0].oid) else None
        made.fields = fields
        dynamic = tuple(sorted(names.dynamic))
        if prepared.dynamic != dynamic:
            prepared.by_shape.clear()
            prepared.dynamic = dynamic
        prepared.by_shape[tuple([shape_of(values[n]) for n in dynamic])] = made
        return made

    def is_new(self, piece: Piece) -> bool:
        """Tell whether a piece has not been bound yet."""
        return piece not in self._prepared

    def forget(self, piece: Piece) -> None:
        """Have a piece bound anew: its plan no longer fits."""
        self._prepared.pop(piece, None)

    def shapes(self, values: list[Any]) -> dict[int, Shape]:
        """Return the shapes of all variables that have no type of their own."""
        return {
            v.number: shape_of(values[v.number])
            for v in self.routine.variables
            if v.kind in ("record", "any")
        }

    def columns(self, type_: SqlType) -> tuple[OutputColumn, ...]:
        """Return the one column of a call that returns a value."""
        if not self._columns or self._columns[0].type != type_:
            self._columns = (OutputColumn(name=self.function.name, type=type_),)
        return self._columns

    def program(self, scalar: SqlType | None) -> Program | None:
        """Return the body as Python for a call that returns ``scalar``; None where it is not worth it, yet or
        at all.
        """
        self._calls += 1
        if self._calls == 1 and not self._has_loop:
            return None
        version = self.session.catalog.version
        found = self._programs.get(scalar)
        if found is None or found[0] != version:
            found = self._programs[scalar] = version, openly(compiled, self, scalar)
        return found[1]

    # -- types -------------------------------------------------------------------------------------

    def cast(self, source: SqlType, target: SqlType) -> RowFunction | None:
        """Return the function that makes a value of ``source`` one of ``target``, None where it is one."""
        if self._derived_version != self.session.catalog.version or len(self._casts) > MAX_CASTS:
            self._casts.clear()
            self._parts.clear()
            self._derived_version = self.session.catalog.version
        key = source, target
        try:
            return self._casts[key]
        except KeyError:
            made = self._casts[key] = assignment_cast(self.context().env, source, target)
            return made

    def folds(self, source: SqlType, target: SqlType) -> bool:
        """Tell whether a constant of ``source`` is converted to ``target`` while PostgreSQL plans."""
        made = assigned(self.context().env, Const(type=source, value=None), target)
        return openly(Planned, made, self.session).whole

    def part(self, target: Target, whole: SqlType, source: Source, values: list[Any], skip: int) -> ReadyPart:
        """Return how a part of ``source`` is replaced."""
        variable = self.routine.variables[target.variable]
        if target.names is None:
            raise AssertionError("a part is assigned to that has no names")
        names = VariableNames(
            self.routine.variables, target.names, self.routine.conflict, self.shapes(values)
        )
        names.opened = self.opened
        key = target, whole, self._derived_version == self.session.catalog.version
        made = self._parts.get(key) if key[2] else None
        if made is None:
            part = bind_part(self.context(), target, whole, variable.name, names, source, skip)
            made = ReadyPart(part, self.session)
            if not names.dynamic and key[2]:
                self._parts[key] = made
        return made

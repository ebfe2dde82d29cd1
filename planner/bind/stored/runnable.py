"""Expressions that are kept with a table or domain, as what evaluates them needs them: no calls of users'
functions in them.

    CHECK (small(twice(a)))      kept      "#16400"("#16401"(a))      what is shown, renamed and depended on
                                 run       a * 2 < 100                what rows are checked by, wherever that happens

Such expressions are evaluated row by row in many places (by the server, in tasks of other processes), none of
which can wait for a call that runs statements. So a function that stands in one has to have a body that is an
expression of its inputs, or be one that never has to wait (``planner.plpgsql.pure``), which is called on the
spot; every other is refused by name. A body that is a text finds names in its function's own schema and in
public, whatever the search path is of whoever stores a row: what is stored does not depend on it.

A column's DEFAULT may be more: where an INSERT or UPDATE puts it into its source
(``planner.bind.change.dml``), any call can be made.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.stored import stored_context, without_spans
from planner.bind.stored.bodies import is_simple
from planner.bind.stored.inline import Inliner, substituted
from planner.catalog import Catalog, FunctionDef
from planner.facts import RECORD
from planner.plpgsql.pure import needs_no_wait
from planner.query import Const, Expr, FieldSelect, Param, Select, SqlCall, SubLink, Var
from planner.query.exprs import has_calls
from planner.query.walk import walk
from planner.statements.classify import is_volatile


def restricted_calls(node: object, guarded: Collection[int]) -> set[int]:
    """Return which of some built-in functions (``Catalog.guarded_functions``) a tree calls, by operators and
    as aggregates too.
    """
    found: set[int] = set()
    for item in walk(node):
        proc = getattr(item, "proc", 0)
        if proc in guarded:
            found.add(proc)
        if isinstance(item, SubLink):
            found.update(oid for oid in item.procs if oid in guarded)
    return found


def runnable(expr: Expr, catalog: Catalog, functions: set[int] | None = None) -> Expr:
    """Return a kept expression with the bodies of users' functions in the place of their calls.

    The oids of these functions are added to ``functions``. Raises SqlError 0A000 for a function whose body is
    more than an expression, or that runs under rights or settings of its own.
    """
    made = expr
    if has_calls(expr):
        context = replace(stored_context(catalog, ""), keeps=True)
        made = without_spans(_Expressions(context).visit(expr))
        if functions is not None:
            functions |= context.functions
    if functions is not None:
        functions |= restricted_calls(made, catalog.guarded_functions)
    return made


def check_runnable(expr: Expr, catalog: Catalog) -> None:
    """Raise SqlError 0A000 where ``runnable`` refuses an expression that is being defined.

    Whether a body finds what it names is not asked yet: a restore makes what functions call before what these read.
    """
    try:
        runnable(expr, catalog)
    except SqlError as error:
        if error.sqlstate == "0A000" or error.ends_statement:
            raise


def runnable_or_called(expr: Expr, catalog: Catalog, functions: set[int] | None = None) -> Expr:
    """As ``runnable``; the expression as it is kept where that refuses, or a body does not find what it names.

    Calls in it wait for the query that it becomes part of, which says what is wrong with them.
    """
    try:
        return runnable(expr, catalog, functions)
    except SqlError as error:
        if error.ends_statement:
            raise
        return expr


def must_be_called(expr: Expr) -> bool:
    """Tell whether an expression that went through ``runnable_or_called`` has calls that only a query can make."""
    return any(isinstance(item, SqlCall) and not item.now for item in walk(expr))


def runnable_now(expr: Expr, context: BindContext) -> Expr:
    """As ``runnable`` for an expression of a statement: bodies find names as the session does."""
    if not has_calls(expr):
        return expr
    made: Expr = _Expressions(context).visit(expr)
    return made


def _shown(function: FunctionDef) -> str:
    language = "PL/pgSQL" if function.language == "plpgsql" else "SQL"
    return f'{language} function "{function.name}"'


def _has_sub_select(body: Select) -> bool:
    return any(isinstance(item, SubLink) for item in walk(body))


class _Expressions(Inliner):
    """Puts bodies in the place of calls where the result is an expression again."""

    def visit(self, node: object) -> Any:
        if isinstance(node, SubLink):
            raise self._refused("a sub-select")
        return super().visit(node)

    def _scalar(self, call: SqlCall, field: int | None = None) -> Expr:
        built_in = self._built_in(call)
        if built_in is not None:
            return built_in
        function = self._function(call)
        if function.language == "plpgsql" and not call.returns_set and needs_no_wait(self.context, function):
            return self._on_the_spot(call, field)
        function, body = self._body(call)
        if not isinstance(body, Select) or not is_simple(body) or call.returns_set or _has_sub_select(body):
            if call.returns_set or not needs_no_wait(self.context, function):
                raise self._refused(_shown(function))
            return self._on_the_spot(call, field)
        if call.type.oid == RECORD and not call.outputs:
            raise self._refused(_shown(function))
        self._check_evaluated_once(function, body, call)
        exprs = [substituted(target.expr, call.args) for target in body.targets if not target.junk]
        return self._strict(function, call, self._value(call, exprs, field))

    def _on_the_spot(self, call: SqlCall, field: int | None) -> Expr:
        made = replace(call, stays=True, now=True)
        if field is None:
            return made
        return FieldSelect(type=call.outputs[field].type, arg=made, index=field)

    def _check_evaluated_once(self, function: FunctionDef, body: Select, call: SqlCall) -> None:
        """Raise SqlError 0A000 for a volatile argument that the body would evaluate several times, or not at all."""
        for number, arg in enumerate(call.args, 1):
            if isinstance(arg, Const | Param | Var) or not is_volatile(arg):
                continue
            uses = sum(isinstance(item, Param) and item.number == number for item in walk(body))
            if uses != 1 or function.strict:
                raise self._refused(f'a volatile argument of SQL function "{function.name}"')

    def _note_call(self, function: FunctionDef, call: SqlCall) -> None:
        """It stays a call only where it is made on the spot."""

    def _refused(self, what: str) -> Exception:
        return not_supported(
            f"{what} in an expression that is evaluated row by row",
            hint="Functions whose body is an expression of their inputs may stand in it, and those that read no table.",
        )

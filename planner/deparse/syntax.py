"""Calls that SQL has a syntax of its own for, as text: EXTRACT, TRIM, OVERLAY, AT TIME ZONE and others.

FuncExpr btrim(a, 'x'), written as TRIM     TRIM(BOTH 'x' FROM a)
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.conversion.resolve import default_arguments
from planner.deparse.expr import Printer
from planner.facts import TEXT, facts
from planner.query import Const, Expr, FuncExpr


def sql_syntax(p: Printer, e: FuncExpr) -> bool:
    """Append a call in SQL's own syntax; False where the function has none."""
    name = facts().procs[e.proc].name
    args: Sequence[Expr] = e.args
    if name == "timezone" and len(args) == 2:
        p.out += "("
        p.paren(args[1], False, e)
        p.out += " AT TIME ZONE "
        p.paren(args[0], False, e)
        p.out += ")"
    elif name == "overlaps":
        p.out += "(("
        p.list(args[:2], False)
        p.out += ") OVERLAPS ("
        p.list(args[2:], False)
        p.out += "))"
    elif name == "extract" and isinstance(args[0], Const):
        p.out += f"EXTRACT({args[0].value} FROM "
        p.expr(args[1], False)
        p.out += ")"
    elif name == "is_normalized":
        args = without_defaults(e)
        p.out += "("
        p.paren(args[0], False, e)
        p.out += " IS" + (f" {_word(args[1])}" if len(args) > 1 else "") + " NORMALIZED)"
    elif name == "normalize":
        args = without_defaults(e)
        p.out += "NORMALIZE("
        p.expr(args[0], False)
        p.out += (f", {_word(args[1])}" if len(args) > 1 else "") + ")"
    elif name == "pg_collation_for":
        p.out += "COLLATION FOR ("
        p.expr(args[0], False)
        p.out += ")"
    elif name == "overlay":
        _infix(p, "OVERLAY", args, ("PLACING", "FROM", "FOR"))
    elif name == "position":
        p.out += "POSITION(("
        p.expr(args[1], False)
        p.out += ") IN ("
        p.expr(args[0], False)
        p.out += "))"
    elif name == "substring" and len(args) == 3 and args[1].type.oid == TEXT:
        _infix(p, "SUBSTRING", args, ("SIMILAR", "ESCAPE"))
    elif name == "substring" and args[1].type.oid != TEXT:
        _infix(p, "SUBSTRING", args, ("FROM", "FOR"))
    elif name in ("btrim", "ltrim", "rtrim"):
        p.out += "TRIM(" + {"b": "BOTH", "l": "LEADING", "r": "TRAILING"}[name[0]]
        if len(args) > 1:
            p.out += " "
            p.expr(args[1], False)
        p.out += " FROM "
        p.expr(args[0], False)
        p.out += ")"
    else:
        return False
    return True


def _word(expr: Expr) -> str:
    return str(expr.value) if isinstance(expr, Const) else ""


def _infix(p: Printer, name: str, args: Sequence[Expr], words: Sequence[str]) -> None:
    p.out += f"{name}("
    p.expr(args[0], False)
    for word, arg in zip(words, args[1:], strict=False):
        p.out += f" {word} "
        p.expr(arg, False)
    p.out += ")"


def without_defaults(e: FuncExpr) -> Sequence[Expr]:
    """Return the arguments without trailing ones that have the parameter's default value."""
    proc, args = facts().procs[e.proc], e.args
    if e.named:
        return [args[place] for place, _ in e.named]
    if not proc.defaults or e.variadic:
        return args
    for default in reversed(default_arguments(proc)):
        if not args or args[-1] != default:
            break
        args = args[:-1]
    return args

"""AST of DROP for kinds of objects that nobody can create here. Read it as ``planner.ast``."""

from __future__ import annotations

from dataclasses import dataclass

from planner.ast.query import Name, Node, StatementNode, TypeName


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentObject(Node):
    """What such a statement names.

    ``name``: of a rule behind that of its table; of an operator class or family behind its access
    method; empty for a cast. ``types``: the operands of an operator (None: no left one), both types of a cast.
    """

    name: Name
    types: tuple[TypeName | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DropAbsent(StatementNode):
    """DROP; ``what`` as in ``Drop``."""

    what: str
    objects: tuple[AbsentObject, ...]
    if_exists: bool = False

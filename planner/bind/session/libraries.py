"""LOAD and SECURITY LABEL: of the libraries that they are about there is PL/pgSQL's alone, which is no file."""

from __future__ import annotations

from typing import NoReturn

from planner import ast
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind.context import BindContext


def bind_security_label(context: BindContext, node: ast.SecurityLabel) -> NoReturn:
    """SECURITY LABEL. Raises SqlError 22023: a label is a loaded provider's to take, and there is none."""
    if node.provider:
        raise SqlError("22023", f'security label provider "{node.provider}" is not loaded')
    raise SqlError("22023", "no security label providers have been loaded")


def bind_load(context: BindContext, node: ast.Load) -> st.Load:
    """LOAD; whether there is such a library is told when it runs."""
    return st.Load(library=node.library)

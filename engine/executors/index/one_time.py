"""Conditions that are the same for every row of a query: looked at once, before anything below is started.

WHERE $1 AND b / a > 0          OneTime  $1
                                  Filter  b / a > 0
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.executors.index.nodes import Filter, Node, OneRow
from engine.executors.index.state import Pipe
from planner.evaluate import Env
from planner.query import Expr


class OneTime(Filter):
    """All rows or, where conditions that are the same for each row are not TRUE, none, and then nothing below
    is started.
    """

    def __init__(self, child: Node, conjuncts: Sequence[Expr]) -> None:
        Node.__init__(self, child.layout, child.width, child)
        self.gate = gate = Filter(OneRow(child.layout.outer, child.layout.subplan), conjuncts)
        self.conjuncts, self.function = gate.conjuncts, gate.function  # which looks at no column of the rows

    def pipe(self, e: Env) -> Pipe:
        """Look at the conditions, then give the rows."""
        met = False
        for item in self.gate.pipe(e):
            if item.__class__ is list:
                met = True
            else:
                yield item
        if met:
            yield from self.inputs[0].pipe(e)

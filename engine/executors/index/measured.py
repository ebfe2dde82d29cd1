"""What the nodes of a plan of the row executor do while its statement runs, for EXPLAIN ANALYZE.

A clock is put around ``Node.pipe`` and around ``Source.fetch`` and ``Source.rows`` of one plan, which nobody
else runs; waiting for data counts. Joins with catalog relations that are one
(``engine.executors.index.access.catalog_join``) have what they join not measured apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from engine.base.explain.tree import Measured
from engine.executors.index.access.catalog_join import CatalogJoin
from engine.executors.index.computed import SubquerySource
from engine.executors.index.joins import DependentJoin
from engine.executors.index.nodes import Node
from engine.executors.index.partitions import PartitionsSource
from engine.executors.index.sources import Source, SourceNode
from engine.executors.index.state import Pipe, Wait


def measure(root: Node, subplans: Sequence[Node]) -> None:
    """Measure every node of a plan from now on."""
    todo: list[Node] = [root, *subplans]
    while todo:
        node = todo.pop()
        node.measured = _watch(node, "pipe")
        if isinstance(node, CatalogJoin):
            todo.append(node.base)
            continue
        todo += node.inputs
        for source in _sources(node):
            todo += _plans(source)
            source.measured, source.unfiltered = _watch(source, "fetch"), _watch(source, "rows")


def _sources(node: Node) -> list[Source]:
    if isinstance(node, SourceNode):
        return [node.source]
    return [node.right] if isinstance(node, DependentJoin) else []


def _plans(source: Source) -> list[Node]:
    """Return the plans of its own that a source runs."""
    if isinstance(source, SubquerySource):
        return [source.plan]
    return list(source.plans.values()) if isinstance(source, PartitionsSource) else []


def _watch(part: Node | Source, method: str) -> Measured:
    """Put a clock around a method that starts a pipe, and return what it will have measured."""
    start: Callable[..., Pipe] = getattr(part, method)
    measured = Measured()

    def watched(*args: Any) -> Pipe:
        measured.loops += 1
        return _timed(start(*args), measured)

    setattr(part, method, watched)
    return measured


def _timed(pipe: Pipe, measured: Measured) -> Pipe:
    clock = time.perf_counter
    spent = 0.0
    first = True
    try:
        while True:
            began = clock()
            try:
                item = next(pipe)
            except StopIteration:
                return
            finally:
                spent += clock() - began
            if item.__class__ is list:
                measured.rows += len(item)
                if first:
                    first = False
                    measured.first_s += spent
                yield item
            elif isinstance(item, Wait):
                began = clock()
                yield item
                spent += clock() - began
            else:
                yield item
    finally:
        pipe.close()
        measured.total_s += spent
        if first:
            measured.first_s += spent

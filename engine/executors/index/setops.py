"""UNION, INTERSECT, EXCEPT, and WITH RECURSIVE, as nodes of the row executor's plan (``engine.executors.index.nodes``).

SetOpNode        left, then right; rows count as equal by their types' keys, NULLs included
RecursiveUnion   the first part's rows, then the second's over what the last round has found, until it finds none
With             offers WITH items to the query: each runs when it is first read, and its rows are kept
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Literal

from engine.executors.index.keyed import KeySet, KeyTable
from engine.executors.index.nodes import Node, records_among, row_key
from engine.executors.index.state import CteState, Kept, Pipe, Rows
from pgwire.give_way import paced
from pgwire.release import LARGE, release
from planner.evaluate import Env, Layout
from planner.functions.values.record_keys import meet
from planner.types import SqlType


class SetOpNode(Node):
    """A set operation; without ALL each distinct row comes once, at its first appearance."""

    def __init__(
        self,
        left: Node,
        right: Node,
        op: Literal["union", "intersect", "except"],
        keep_all: bool,
        types: Sequence[SqlType],
        layout: Layout,
    ) -> None:
        super().__init__(layout, len(types), left, right)
        self.op = op
        self.keep_all = keep_all
        self.key = row_key(types, range(len(types)))
        self.records = records_among(types)

    def pipe(self, e: Env) -> Pipe:
        """Run both sides one query level further in."""
        inner = e.child(())
        if self.op == "union":
            return self._union(inner)
        return self._counted(inner)

    def _union(self, e: Env) -> Pipe:
        seen = KeySet()
        try:
            for side in self.inputs:
                for item in side.pipe(e):
                    if item.__class__ is not list or self.keep_all:
                        yield item
                    else:
                        yield seen.new(item, self.key) or None
            if self.records:
                meet(seen, self.records)
        finally:
            seen.release()

    def _counted(self, e: Env) -> Pipe:
        key = self.key
        right = KeyTable()  # how often there is each key
        given = KeySet()
        lefts = KeySet()  # the other side's keys, where there are records in them
        read = 0
        try:
            for item in self.inputs[1].pipe(e):
                if item.__class__ is not list:
                    yield item
                    continue
                read += len(item)
                for row in paced(item):
                    k = key(row)
                    part = right.part(k)
                    part[k] = part.get(k, 0) + 1
                right.grown()
                yield None
            intersect = self.op == "intersect"
            for item in self.inputs[0].pipe(e):
                if item.__class__ is not list:
                    yield item
                    continue
                out: Rows = []
                for row in paced(item):
                    k = key(row)
                    part = right.part(k)
                    present = part.get(k, 0) > 0
                    if self.records:
                        lefts.add_one(k)
                    if present and self.keep_all:
                        part[k] -= 1
                    if present == intersect:
                        out.append(row)
                yield (out if self.keep_all else given.new(out, key)) or None
            if self.records:
                meet(chain(lefts, right), self.records)
        finally:
            lefts.release()
            given.release()
            if read > LARGE:
                right.release()


class RecursiveUnion(Node):
    """A recursive WITH item: the first term, then the second over what the last round added, until nothing is."""

    def __init__(
        self, name: str, left: Node, right: Node, keep_all: bool, types: Sequence[SqlType], layout: Layout
    ) -> None:
        super().__init__(layout, len(types), left, right)
        self.name = name
        self.keep_all = keep_all
        self.key = row_key(types, range(len(types)))

    def pipe(self, e: Env) -> Pipe:
        """Iterate to the fixpoint. ``e.parent`` owns the WITH item."""
        owner = e.parent
        if owner is None or owner.ctes is None:
            raise LookupError(f"WITH item {self.name} has no owner")
        inner = e.child(())
        seen = KeySet()
        work: Rows = []
        try:
            yield from self._passed_on(self.inputs[0].pipe(inner), seen, work)
            while work:
                found, work = work, []
                owner.ctes[self.name + "\0work"] = CteState(None, found)
                try:
                    yield from self._passed_on(self.inputs[1].pipe(e.child(())), seen, work)
                finally:
                    release(found)
        finally:
            seen.release()
            release(work)

    def _passed_on(self, pipe: Pipe, seen: KeySet, work: Rows) -> Pipe:
        """Yield what is new at once, since a term may never end (a LIMIT above ends it), and keep it for the
        next round.
        """
        for item in pipe:
            if item.__class__ is list:
                new = self._new(item, seen)
                work.extend(new)
                yield new or None
            else:
                yield item

    def _new(self, rows: Rows, seen: KeySet) -> Rows:
        if self.keep_all:
            return rows
        return seen.new(rows, self.key)


class With(Node):
    """A query with WITH items: each is run when first read, and its rows are kept.

    ``alone``: those that read nothing of the queries around this one, so that a sub-select which is run for
    each row finds them as they were (volatile ones are run once, as in PostgreSQL).
    """

    def __init__(self, body: Node, items: Sequence[tuple[str, Node]], alone: AbstractSet[str]) -> None:
        super().__init__(body.layout, body.width, body, *(node for _, node in items))
        self.names = [name for name, _ in items]
        self.items = [(name, node) for name, node in items if name not in alone]
        self.alone = [(name, node) for name, node in items if name in alone]

    def pipe(self, e: Env) -> Pipe:
        """Offer the items to the body through the env."""
        kept = e.shared.private.get(self)
        if kept is None:
            kept = e.shared.private[self] = Kept((name, CteState(plan)) for name, plan in self.alone)
        own = {name: CteState(plan) for name, plan in self.items}
        e.ctes = {**kept, **own}
        try:
            yield from self.inputs[0].pipe(e)
        finally:
            for state in own.values():
                state.close()

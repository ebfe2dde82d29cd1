"""The tables of the simulated workloads, and how their rows are registers and lists to the checker.

    lists     (k, 0, "3 17 20")    list k
    cells     (k, tag % 3, tag)    register k = tag; groups by the second column
    bank      (k, balance, tag)    register k = (balance, tag); the balances' sum never changes
    events    (k, k % 4, tag)      register k = tag; rows are only ever added: what is missing is INITIAL
    names     (id, u, tag)         registers ("id", id) = (u, tag) and ("u", u) = (id, tag); u is unique;
                                   ("alive", id) = id while it is there
    refs      (id, tag % 11, tag)   register id = tag; refers to ``names`` by id
    tide      (k, 0, "3 17 20")    list k, in a timeline of its own
    ddl       (0, epoch, tag)      register marker = tag; TRUNCATE sets a new one
              (k, epoch, "5 9")    list (epoch, k); the schema's version is a register as well

Columns are int8, int8, text in all of them. Tags are unique in the run.
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from txn.base.types import IndexId, PhysicalType, Row, ShardColumn, ShardId, ShardIndex, ShardSpec
from txn.log.timeline import DEFAULT_TIMELINE

LISTS, CELLS, BANK, EVENTS, NAMES, DDL, REFS, TIDE = (ShardId(n) for n in range(1, 9))
NAME_OF = {
    LISTS: "lists", CELLS: "cells", BANK: "bank", EVENTS: "events", NAMES: "names", DDL: "ddl", REFS: "refs",
    TIDE: "tide",
}  # fmt: skip
TIDES = "tides"
"""The timeline of ``tide``. Not every run has it."""

PK, BY_V, EXTRA = IndexId(1), IndexId(2), IndexId(3)
"""Built online, indexes have numbers of their own (``building``)."""

_INT = PhysicalType(kind="int64")
_TEXT = PhysicalType(kind="text")
COLUMNS = tuple(ShardColumn(attnum=n, type=t) for n, t in ((1, _INT), (2, _INT), (3, _TEXT)))

OPENING = 100
"""Balance of each account at first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many keys each table has: few make conflicts."""

    lists: int
    cells: int
    bank: int
    events: int
    names: int
    ddl: int

    @classmethod
    def draw(cls, rng: random.Random) -> Sizes:
        """Choose sizes."""
        tight = rng.random() < 0.5
        return cls(
            lists=rng.randrange(2, 5) if tight else rng.randrange(4, 13),
            cells=2 * (rng.randrange(1, 4) if tight else rng.randrange(3, 8)),
            bank=rng.randrange(2, 5) if tight else rng.randrange(4, 10),
            events=rng.randrange(8, 60),
            names=rng.randrange(3, 9),
            ddl=rng.randrange(2, 5),
        )


def spec(shard: ShardId, pk_hash: bool, v_hash: bool, version: int = 0) -> ShardSpec:
    """Return a table's schema; ``names`` has a second unique index, ``lists`` and ``bank`` have none."""
    indexes = [
        ShardIndex(index=PK, attnums=(1,), unique=True, primary=True, kind="hash" if pk_hash else "sorted")
    ]
    if shard in (CELLS, EVENTS, NAMES):
        kind: Any = "hash" if v_hash else "sorted"
        indexes.append(ShardIndex(index=BY_V, attnums=(2,), unique=shard == NAMES, kind=kind))
    timeline = TIDES if shard == TIDE else DEFAULT_TIMELINE
    return ShardSpec(shard=shard, version=version, columns=COLUMNS, indexes=tuple(indexes), timeline=timeline)


def content(shard: ShardId, row: Row) -> Any:
    """Return a register row's value."""
    return (row[1], int(row[2])) if shard == BANK else int(row[2])


def extra(spec: ShardSpec) -> ShardIndex | None:
    """Return the index that comes and goes, if it is there."""
    return next((i for i in spec.indexes if i.index not in (PK, BY_V)), None)


def families(shard: ShardId) -> tuple[str, ...]:
    """Return the first components of a table's keys."""
    return {LISTS: ("list",), NAMES: ("u", "id")}.get(shard, (NAME_OF[shard],))


def facts(shard: ShardId, row: Row) -> list[tuple[tuple[Hashable, ...], Any]]:
    """Return what a row says: keys and values of registers and lists."""
    k, second, text = row[:3]
    if shard == LISTS:
        return [(("list", k), parse(text))]
    if shard == NAMES:
        return [(("u", second), (k, int(text))), (("id", k), (second, int(text)))]
    if shard == DDL:
        return [(("ddl", "marker"), (second, int(text))) if k == 0 else (("ddl", second, k), parse(text))]
    return [((NAME_OF[shard], k), content(shard, row))]


def parse(text: str) -> tuple[int, ...]:
    """Return the elements of a stored list."""
    return tuple(map(int, text.split()))

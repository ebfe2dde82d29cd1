"""The order of versions of each key, as far as reads reveal it, and the anomalies that show without a graph.

Lists reveal theirs: a list read names all versions before it. A register's follows from writers that read the
register before they wrote it: what such a transaction read comes directly before what it wrote.

"Nothing there" is a version too, but which? The one before the first write, or the one after some removal. It is
used where real time leaves one possibility.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from typing import Any, NamedTuple

from tests.sim.checker.graph import Edge, Graph
from tests.sim.checker.history import PREDICATE, Anomaly, Observed, Op

INITIAL = ("initial",)


class External(NamedTuple):
    """A read that shows what others wrote: the first of a key, before any own write to it."""

    txn: Observed
    op: Op
    value: Any


class Versions:
    """Inference over one history. ``anomalies`` fills while it works; ``fill`` adds the edges to a graph."""

    def __init__(self, history: list[Observed]) -> None:
        self.anomalies: list[Anomaly] = []
        self.by_id = {txn.id: txn for txn in history}
        if len(self.by_id) != len(history):
            raise ValueError("transaction ids are not unique")
        self._writer: dict[tuple[Hashable, Any], Observed] = {}
        self._last: dict[tuple[int, Hashable], Any] = {}
        self._removers: dict[Hashable, list[Observed]] = {}
        for txn in history:
            for op in txn.ops:
                if op.kind in ("append", "write"):
                    self._note_write(txn, op)
        ok = [txn for txn in history if txn.outcome == "ok"]
        self.reads: dict[Hashable, list[External]] = {}
        for txn in ok:
            self._read_through(txn)
        self.committed = ok
        unknown = [txn for txn in history if txn.outcome == "unknown"]
        while unknown:
            # Whoever's writes were seen has committed, whatever it was told; then its reads count as well.
            seen = self._writers_seen()
            happened = [txn for txn in unknown if txn.id in seen]
            if not happened:
                break
            for txn in happened:
                self._read_through(txn)
                unknown.remove(txn)
            self.committed = self.committed + happened
        self._check_values()

    def _note_write(self, txn: Observed, op: Op) -> None:
        self._last[txn.id, op.key] = op.value
        if op.value is None:
            if txn not in self._removers.setdefault(op.key, []):
                self._removers[op.key].append(txn)
        elif (op.key, op.value) in self._writer:
            raise ValueError(f"{op.value!r} is written to {op.key!r} twice: versions must be unique")
        else:
            self._writer[op.key, op.value] = txn

    def left_something(self, txn: Observed) -> bool:
        """Tell whether a value that a transaction wrote was there when it ended."""
        return any(
            op.kind in ("append", "write") and self._last[txn.id, op.key] is not None for op in txn.ops
        )

    def found(self, name: str, transactions: tuple[Observed, ...], *why: str) -> None:
        """Note an anomaly."""
        lines = (*why, *map(str, transactions))
        self.anomalies.append(Anomaly(name, tuple(t.id for t in transactions), lines))

    # -- single transactions -------------------------------------------------------------------------

    def _read_through(self, txn: Observed) -> None:
        """Check what a transaction saw against what it had seen and done itself; collect external reads."""
        known: dict[Hashable, Any] = {}
        own: dict[Hashable, tuple[Any, ...]] = {}
        wrote: set[Hashable] = set()
        for op in txn.ops:
            key = op.key
            match op.kind:
                case "append":
                    own[key] = (*own.get(key, ()), op.value)
                    if key in known:
                        known[key] = (*known[key], op.value)
                case "write":
                    wrote.add(key)
                    known[key] = op.value
                case "list":
                    mine = own.get(key, ())
                    if key in known:
                        if known[key] != op.value:
                            self._inconsistent(txn, op, known[key], bool(mine))
                    elif mine and op.value[-len(mine) :] != mine:
                        self._inconsistent(txn, op, f"... {mine}", True)
                    else:
                        value = op.value[: len(op.value) - len(mine)]
                        self.reads.setdefault(key, []).append(External(txn, op, value))
                    known[key] = op.value
                case "read":
                    if key not in known:
                        self.reads.setdefault(key, []).append(External(txn, op, op.value))
                    elif known[key] != op.value:
                        self._inconsistent(txn, op, known[key], key in wrote)
                    known[key] = op.value
                case "unique":
                    if len(set(op.value)) != len(op.value):
                        self.found("duplicate unique key", (txn,), f"{key} holds {op.value}")
                case "total":
                    expected, total = op.value
                    if expected != total:
                        self.found("broken invariant", (txn,), f"{key} is {total}, not {expected}")

    def _inconsistent(self, txn: Observed, op: Op, expected: Any, own: bool) -> None:
        name = "internal: own write not seen" if own else "non-repeatable read"
        self.found(name, (txn,), f"{op.key} was {expected}, then {op.value}")

    # -- values against their writers ----------------------------------------------------------------

    def _writers_seen(self) -> set[int]:
        """Return the ids of the transactions whose writes were seen."""
        seen: set[int] = set()
        for key, reads in self.reads.items():
            values = {v for read in reads for v in (read.value if read.op.kind == "list" else (read.value,))}
            for value in values:
                writer = self._writer.get((key, value))
                if writer is not None:
                    seen.add(writer.id)
        return seen

    def _check_values(self) -> None:
        """Check each value read against its writer."""
        reported: set[tuple[str, Hashable, Any]] = set()
        for key, reads in self.reads.items():
            for read in reads:
                values = read.value if read.op.kind == "list" else (read.value,)
                if read.op.kind == "list" and len(set(values)) != len(values):
                    self.found("write applied twice", (read.txn,), f"{key} = {list(values)}")
                for value in values:
                    if value is None:
                        continue
                    writer = self._writer.get((key, value))
                    if writer is None:
                        if ("garbage", key, value) not in reported:
                            reported.add(("garbage", key, value))
                            self.found("garbage read", (read.txn,), f"nobody wrote {value} to {key}")
                        continue
                    if writer.outcome == "fail" and ("G1a", key, value) not in reported:
                        reported.add(("G1a", key, value))
                        self.found(
                            "G1a aborted read", (writer, read.txn),
                            f"T{read.txn.id} read {value} of {key}, which T{writer.id} wrote and took back",
                        )  # fmt: skip
                newest = values[-1] if values else None
                writer = None if newest is None else self._writer.get((key, newest))
                if writer is not None and writer is not read.txn and self._last[writer.id, key] != newest:
                    self.found(
                        "G1b intermediate read", (writer, read.txn),
                        f"T{read.txn.id} read {newest} of {key}, but T{writer.id} went on to write "
                        f"{self._last[writer.id, key]}",
                    )  # fmt: skip

    # -- edges ---------------------------------------------------------------------------------------

    def fill(self, graph: Graph) -> None:
        """Add what is known of the order of versions as edges."""
        appends: dict[Hashable, list[tuple[Observed, Any]]] = {}
        writes: dict[Hashable, dict[int, Observed]] = {}
        for txn in self.committed:
            for op in txn.ops:
                if op.kind == "append":
                    appends.setdefault(op.key, []).append((txn, op.value))
                elif op.kind == "write":
                    writes.setdefault(op.key, {})[txn.id] = txn
        for key, reads in self.reads.items():
            if reads[0].op.kind == "list":
                self._list_edges(graph, key, reads, appends.get(key, []))
        for key, writers in writes.items():
            self._register_edges(graph, key, writers)

    def _list_edges(
        self, graph: Graph, key: Hashable, reads: list[External], appends: list[tuple[Observed, Any]]
    ) -> None:
        longest = max(reads, key=lambda read: len(read.value))
        order = longest.value
        for read in reads:
            if order[: len(read.value)] != read.value:
                self.found(
                    "incompatible order", (read.txn, longest.txn),
                    f"{key} was {list(read.value)} to one and {list(order)} to the other",
                )  # fmt: skip
                return
        writers = [self._writer.get((key, value)) for value in order]
        for before, after in itertools.pairwise(writers):
            if before is not None and after is not None:
                graph.add(Edge("ww", before.id, after.id, key))
        visible = set(order)
        unseen = [txn for txn, value in appends if value not in visible]
        for txn in {txn.id: txn for txn in unseen}.values():
            if writers and writers[-1] is not None:
                graph.add(Edge("ww", writers[-1].id, txn.id, key))
        for read in reads:
            count = len(read.value)
            predicate = read.op.via in PREDICATE
            if count and (writer := writers[count - 1]) is not None:
                graph.add(Edge("wr", writer.id, read.txn.id, key, predicate))
            following = next((w for w in writers[count:] if w is not None and w is not read.txn), None)
            if following is not None:
                graph.add(Edge("rw", read.txn.id, following.id, key, predicate))
            for txn in unseen:
                graph.add(Edge("rw", read.txn.id, txn.id, key, predicate, True))

    def _register_edges(self, graph: Graph, key: Hashable, writers: dict[int, Observed]) -> None:
        """Each writer that read before it wrote gives two versions that follow one another."""
        reads = self.reads.get(key, [])
        version_of = {id(read): self._version(key, read, writers) for read in reads}
        followers: dict[Any, list[Observed]] = {}
        for read in reads:
            version = version_of[id(read)]
            if version is not None and read.txn.id in writers:
                followers.setdefault(version, []).append(read.txn)
        seen = {version for version in version_of.values() if version is not None}
        for read in reads:
            version = version_of[id(read)]
            if version is None:
                continue
            predicate = read.op.via in PREDICATE
            writer = self._writer_of(key, version)
            if writer is not None:
                graph.add(Edge("wr", writer.id, read.txn.id, key, predicate))
            for txn in followers.get(version, ()):
                if writer is not None:
                    graph.add(Edge("ww", writer.id, txn.id, key))
                missed = not self._was_seen(key, txn, seen)
                graph.add(Edge("rw", read.txn.id, txn.id, key, predicate, missed))

    def _was_seen(self, key: Hashable, txn: Observed, seen: set[Any]) -> bool:
        last = self._last[txn.id, key]
        return (("gone", txn.id) if last is None else ("value", last)) in seen

    def _writer_of(self, key: Hashable, version: tuple[Any, ...]) -> Observed | None:
        match version:
            case ("value", value):
                return self._writer.get((key, value))
            case ("gone", txn_id):
                return self.by_id[txn_id]
        return None

    def _version(self, key: Hashable, read: External, writers: dict[int, Observed]) -> Any:
        """Return which version was read: ("value", v), ("gone", remover) or INITIAL; None: it cannot be told."""
        if read.value is not None:
            return ("value", read.value)
        removers = [
            t for t in self._removers.get(key, ()) if t.outcome != "fail" and self._last[t.id, key] is None
        ]
        if not removers:
            return INITIAL
        txn = read.txn
        # What nobody was told the end of may have gone on for long.
        open_end = txn.outcome != "ok"
        possible: list[Any] = [
            ("gone", t.id) for t in removers if t is not txn and (open_end or t.began < txn.ended)
        ]
        # Once somebody has been acknowledged who found it there or put it there, it never was untouched again.
        touched = any(w.outcome == "ok" and w.ended < txn.began for w in writers.values())
        if not possible or not (touched and txn.fresh):
            possible.append(INITIAL)  # also where it is impossible: the graph will say so
        return possible[0] if len(possible) == 1 else None

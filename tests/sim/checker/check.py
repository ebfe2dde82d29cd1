"""``check``: all anomalies of a history, the worst first.

    in a transaction   non-repeatable read · internal: own write not seen · duplicate unique key · broken invariant
    in values          garbage read · write applied twice · G1a aborted read · G1b intermediate read · incompatible order
    cycles without time
        ww             G0 dirty write
        ww, wr         G1c circular information flow
        one rw         lost update (both replaced the same version) · split transaction (half of one is seen) ·
                       G-single read skew
        more rw        write skew (G2-item) · phantom (G2) · G2 anti-dependency cycle
    cycles with time   lost acknowledged write (nobody ever sees it) · stale read (one rw) ·
                       out of real-time order (none, or several)
    timestamps         against timestamps: an order that the timestamps of commits and reads contradict
    subscriptions      see ``feeds``

``lost acknowledged write`` needs a read of the key that began after the acknowledgement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tests.sim.checker.feeds import NAMES as OF_FEEDS
from tests.sim.checker.feeds import Stream, check_feeds
from tests.sim.checker.graph import Edge, Graph, add_real_time
from tests.sim.checker.history import Anomaly, Observed
from tests.sim.checker.versions import Versions

ORDER = (
    "garbage read", "write applied twice", "G1a aborted read", "G1b intermediate read", "incompatible order",
    "duplicate unique key", "G0 dirty write", "G1c circular information flow", "lost update",
    "lost acknowledged write", "split transaction", "G-single read skew", "phantom (G2)",
    "write skew (G2-item)", "G2 anti-dependency cycle", "stale read", "out of real-time order",
    "internal: own write not seen", "non-repeatable read", "against timestamps", *OF_FEEDS, "broken invariant",
)  # fmt: skip
"""Names, the most telling first."""


def check(history: Iterable[Observed], streams: Sequence[Stream] = ()) -> list[Anomaly]:
    """Return the anomalies of a history; none: as far as its reads reveal, it is strictly serializable.

    ``streams``: what subscriptions delivered meanwhile. Raises ValueError when the history is not one (see ``history``).
    """
    history = list(history)
    versions = Versions(history)
    graph = Graph()
    versions.fill(graph)
    anomalies = list(versions.anomalies)
    anomalies += _cycles(graph, versions)
    timed = Graph()
    timed.out = {source: dict(edges) for source, edges in graph.out.items()}
    add_real_time(timed, versions.committed)
    if not anomalies or all(a.name in ("broken invariant", "non-repeatable read") for a in anomalies):
        anomalies += _timed_cycles(timed, versions)
    anomalies += _timestamps(timed, versions)
    anomalies += check_feeds(streams, history)
    return sorted(anomalies, key=lambda anomaly: ORDER.index(anomaly.name))


def _cycles(graph: Graph, versions: Versions) -> list[Anomaly]:
    """Name the worst cycle of each component."""
    out = []
    for component in graph.components():
        cycle = graph.cycle(component, _is("ww"), _is("ww"))
        if cycle is not None:
            out.append(_anomaly("G0 dirty write", cycle, versions))
            continue
        cycle = graph.cycle(component, _is("wr"), _is("ww", "wr"))
        if cycle is not None:
            out.append(_anomaly("G1c circular information flow", cycle, versions))
            continue
        pair = _same_version_replaced(graph, component)
        if pair is not None:
            out.append(_anomaly("lost update", pair, versions))
            continue
        cycle = graph.cycle(component, _is("rw"), _is("ww", "wr"))
        if cycle is not None:
            split = len(cycle) == 2 and cycle[1].kind == "wr"
            name = "split transaction" if split else "G-single read skew"
            out.append(_anomaly(name, cycle, versions))
            continue
        cycle = graph.cycle(component, _is("rw"), _is("ww", "wr", "rw"))
        assert cycle is not None
        out.append(_anomaly(_several(cycle), cycle, versions))
    return out


def _is(*kinds: str) -> Callable[[Edge], bool]:
    return lambda edge: edge.kind in kinds


def _same_version_replaced(graph: Graph, component: set[int]) -> list[Edge] | None:
    """Return two transactions that read the same version of a key and both replaced it."""
    for source in sorted(component):
        for edge in graph.out.get(source, {}).values():
            if edge.kind == "rw":
                for back in graph.between(edge.target, source):
                    if back.kind == "rw" and back.key == edge.key:
                        return [edge, back]
    return None


def _several(cycle: list[Edge]) -> str:
    """Name a cycle with two or more rw."""
    anti = [e for e in cycle if e.kind == "rw"]
    if any(e.predicate for e in anti):
        return "phantom (G2)"
    return "write skew (G2-item)" if len(cycle) == 2 else "G2 anti-dependency cycle"


def _timed_cycles(graph: Graph, versions: Versions) -> list[Anomaly]:
    out = []
    for component in graph.components():
        cycle = graph.cycle(component, lambda e: e.kind == "rw" and e.missed, _is("ww", "wr", "rt"))
        if cycle is not None:
            out.append(_anomaly("lost acknowledged write", cycle, versions))
            continue
        cycle = graph.cycle(component, _is("rw"), _is("ww", "wr", "rt"))
        if cycle is not None:
            out.append(_anomaly("stale read", cycle, versions))
            continue
        cycle = graph.cycle(component, _is("ww", "wr", "rw"), lambda _edge: True)
        assert cycle is not None
        out.append(_anomaly("out of real-time order", cycle, versions))
    return out


def _timestamps(graph: Graph, versions: Versions) -> list[Anomaly]:
    """Compare the order of transactions with their timestamps; the first contradiction is told.

    Who wrote has a timestamp of its own (U11); who read at one has seen all writes at or below it, and no other. Who
    only removed may have removed what he had put there himself, so that there was nothing to write.
    """
    at = {txn.id: (txn.timeline, txn.ts) for txn in versions.committed if txn.ts is not None}
    sure = {txn.id for txn in versions.committed if versions.left_something(txn)}
    writers: dict[tuple[str, int], Observed] = {}
    for txn in versions.committed:
        if txn.ts is not None and txn.id in sure:
            other = writers.setdefault(at[txn.id], txn)
            if other is not txn:
                why = f"T{other.id} and T{txn.id} have the same timestamp"
                return [Anomaly("against timestamps", (other.id, txn.id), (why, str(other), str(txn)))]
    for source, edges in graph.out.items():
        for edge in edges.values():
            before, after = at.get(source), at.get(edge.target)
            if before is None or after is None or before[0] != after[0] or before < after:
                continue
            if before > after or (edge.kind in ("ww", "rw") and edge.target in sure):
                return [_anomaly("against timestamps", [edge], versions, edge.target)]
    return []


_MEANING = {
    "ww": "T{0} wrote {2}, then T{1} wrote it",
    "wr": "T{0} wrote {2}, T{1} read that",
    "rw": "T{0} read {2} as it was before T{1} wrote it",
    "rt": "T{0} was acknowledged before T{1} began",
}


def _anomaly(name: str, cycle: list[Edge], versions: Versions, *more: int) -> Anomaly:
    ids = (*(edge.source for edge in cycle), *more)
    steps = [
        f"{edge.kind}: " + _MEANING[edge.kind].format(edge.source, edge.target, _key(edge.key))
        for edge in cycle
    ]
    return Anomaly(name, ids, (*steps, *(str(versions.by_id[i]) for i in ids)))


def _key(key: object) -> str:
    return "/".join(map(str, key)) if isinstance(key, tuple) else str(key)

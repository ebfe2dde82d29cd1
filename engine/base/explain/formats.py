"""EXPLAIN's answer in PostgreSQL's four formats.

text   Sort  (cost=0.00..0.20 rows=10 width=8)          the estimate first (but for what TIMESTAMP adds): postgres_fdw reads it there
         Sort Key: a
         ->  Seq Scan on t  (cost=0.00..0.10 rows=10 width=8)
       Route: index
json   [{"Plan": {"Node Type": "Sort", "Total Cost": 0.2, ..., "Plans": [...]}, "Route": "index", ...}]
xml    <explain xmlns="http://www.postgresql.org/2009/explain"><Query><Plan><Node-Type>...
yaml   - Plan:
           Node Type: "Sort"
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from xml.sax.saxutils import escape

from engine.base.explain.tree import Measured, PlanNode

_INDENT: Final = "  "
_NAMESPACE: Final = "http://www.postgresql.org/2009/explain"
_MS: Final = 1000
_BUFFERS: Final = tuple(
    f"{kind} {what} Blocks"
    for kind, done in (
        ("Shared", ("Hit", "Read", "Dirtied", "Written")), ("Local", ("Hit", "Read", "Dirtied", "Written")),
        ("Temp", ("Read", "Written")),
    )
    for what in done
)  # fmt: skip
_WAL: Final = ("WAL Records", "WAL FPI", "WAL Bytes")


@dataclass(frozen=True, slots=True)
class Shown:
    """Which parts of a tree are shown; ``buffers`` and ``wal``, which there are none of, as PostgreSQL shows
    zeros: in structured formats alone.
    """

    costs: bool = True
    timing: bool = True
    buffers: bool = False
    wal: bool = False


# --- text ---------------------------------------------------------------------------------------


def text_lines(node: PlanNode, shown: Shown) -> list[str]:
    """Return the tree as lines."""
    return list(_lines(node, 0, shown))


def _lines(node: PlanNode, indent: int, shown: Shown) -> Iterator[str]:
    if node.name:
        yield _INDENT * indent + node.name
        indent += 1
    arrow = "->  " if indent else ""
    yield _INDENT * indent + arrow + node.heading + _guess(node, shown) + _actual(node, shown)
    indent += 3 if indent else 1
    for name, value in node.details.items():
        shown_value = ", ".join(value) if isinstance(value, list) else value
        yield f"{_INDENT * indent}{name}: {shown_value}"
        if name == "Filter" and node.removed and node.actual is not None:
            yield f"{_INDENT * indent}Rows Removed by Filter: {_removed(node)}"
    for below in node.inputs:
        yield from _lines(below, indent, shown)


def _guess(node: PlanNode, shown: Shown) -> str:
    if not shown.costs or node.rows is None:
        return ""
    return f"  (cost=0.00..{node.cost:.2f} rows={round(node.rows)} width={node.width})"


def _actual(node: PlanNode, shown: Shown) -> str:
    actual = node.actual
    if actual is None:
        return ""
    if not actual.loops:
        return " (never executed)"
    times = ""
    if shown.timing:
        first, total = _times(actual)
        times = f"time={first:.3f}..{total:.3f} "
    return f" (actual {times}rows={_rows(actual)} loops={actual.loops})"


def _times(actual: Measured) -> tuple[float, float]:
    """Return milliseconds to the first rows and to the end, of one loop."""
    return actual.first_s * _MS / actual.loops, actual.total_s * _MS / actual.loops


def _rows(actual: Measured) -> int:
    """Return the rows of one loop."""
    return round(actual.rows / actual.loops)


def _removed(node: PlanNode) -> int:
    loops = 1 if node.actual is None else node.actual.loops or 1
    return round(node.removed / loops)


# --- structured formats -------------------------------------------------------------------------


def as_object(node: PlanNode, shown: Shown) -> dict[str, Any]:
    """Return the tree as the object that JSON, XML and YAML show."""
    made: dict[str, Any] = {"Node Type": node.kind}
    if node.role:
        made["Parent Relationship"] = node.role
    if node.name:
        made["Subplan Name"] = node.name
    made |= {**node.facts, "Parallel Aware": False, "Async Capable": False}
    if shown.costs and node.rows is not None:
        made |= {
            "Startup Cost": 0.0, "Total Cost": round(node.cost, 2), "Plan Rows": round(node.rows), "Plan Width": node.width,
        }  # fmt: skip
    if node.actual is not None:
        loops = node.actual.loops
        if shown.timing:
            first, total = _times(node.actual) if loops else (0.0, 0.0)
            made |= {"Actual Startup Time": round(first, 3), "Actual Total Time": round(total, 3)}
        made |= {"Actual Rows": _rows(node.actual) if loops else 0, "Actual Loops": loops}
    for name, value in node.details.items():
        made[name] = value
        if name == "Filter" and node.actual is not None:
            made["Rows Removed by Filter"] = _removed(node)
    made |= dict.fromkeys(_BUFFERS if shown.buffers else (), 0) | dict.fromkeys(_WAL if shown.wal else (), 0)
    if node.inputs:
        made["Plans"] = [as_object(below, shown) for below in node.inputs]
    return made


def document(format_: str, tree: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """Return the whole answer in ``format_`` json, xml or yaml."""
    query = {"Plan": tree, **facts}
    if format_ == "json":
        return json.dumps([query], indent=2)
    if format_ == "xml":
        lines = [f'<explain xmlns="{_NAMESPACE}">', "  <Query>", *_xml(query, 2), "  </Query>", "</explain>"]
        return "\n".join(lines)
    return "\n".join(["- " + line if n == 0 else "  " + line for n, line in enumerate(_yaml(query))])


def _xml(value: Mapping[str, Any], depth: int) -> list[str]:
    lines: list[str] = []
    pad = _INDENT * depth
    for name, item in value.items():
        tag = name.replace(" ", "-")
        if isinstance(item, Mapping):
            lines += [f"{pad}<{tag}>", *_xml(item, depth + 1), f"{pad}</{tag}>"]
        elif isinstance(item, list):
            lines.append(f"{pad}<{tag}>")
            inner = {"Plans": "Plan"}.get(name, "Item")
            for part in item:
                shown = part if isinstance(part, Mapping) else None
                if shown is not None:
                    lines += [f"{pad}  <{inner}>", *_xml(shown, depth + 2), f"{pad}  </{inner}>"]
                else:
                    lines.append(f"{pad}  <{inner}>{escape(str(part))}</{inner}>")
            lines.append(f"{pad}</{tag}>")
        else:
            shown_item = str(item).lower() if isinstance(item, bool) else str(item)
            lines.append(f"{pad}<{tag}>{escape(shown_item)}</{tag}>")
    return lines


def _yaml(value: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for name, item in value.items():
        if isinstance(item, Mapping):
            lines += [f"{name}:", *(_INDENT + line for line in _yaml(item))]
        elif isinstance(item, list):
            lines.append(f"{name}:")
            for part in item:
                if isinstance(part, Mapping):
                    inner = _yaml(part)
                    lines += [f"  - {inner[0]}", *(f"    {line}" for line in inner[1:])]
                else:
                    lines.append(f"  - {json.dumps(part)}")
        else:
            lines.append(f"{name}: {json.dumps(item)}")
    return lines

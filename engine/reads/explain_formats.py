"""EXPLAIN's answer in PostgreSQL's four formats.

text   Query  (cost=0.00..0.20 rows=10 width=8)     the estimate first (but for what TIMESTAMP adds): postgres_fdw reads it there
Route: index
json   [{"Plan": {"Node Type": "Project a", "Total Cost": 0.2, ..., "Plans": [...]}, "Route": "index", ...}]
xml    <explain xmlns="http://www.postgresql.org/2009/explain"><Query><Plan><Node-Type>...
yaml   - Plan:
Node Type: "Project a"
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from xml.sax.saxutils import escape

from engine.reads.estimate import Estimate

_INDENT: Final = "  "
_NAMESPACE: Final = "http://www.postgresql.org/2009/explain"


def cost_text(what: str, estimate: Estimate) -> str:
    """Return the first line of the text format."""
    return f"{what}  (cost=0.00..{estimate.cost:.2f} rows={estimate.rows} width={estimate.width})"


def plan_tree(lines: Sequence[str], what: str, estimate: Estimate | None, *, nested: bool) -> dict[str, Any]:
    """Return the plan as an object: the estimate, and the lines by their indentation (``nested``) or as text."""
    root: dict[str, Any] = {"Node Type": what}
    if estimate is not None:
        root |= {
            "Startup Cost": 0.0, "Total Cost": round(estimate.cost, 2), "Plan Rows": estimate.rows,
            "Plan Width": estimate.width,
        }  # fmt: skip
    if not nested:
        return root | ({"Text": list(lines)} if lines else {})
    open_: list[tuple[int, dict[str, Any]]] = [(-1, root)]
    for line in lines:
        depth = (len(line) - len(line.lstrip())) // len(_INDENT)
        node: dict[str, Any] = {"Node Type": line.strip()}
        while open_[-1][0] >= depth:
            open_.pop()
        open_[-1][1].setdefault("Plans", []).append(node)
        open_.append((depth, node))
    return root


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
            lines.append(f"{pad}<{tag}>{escape(str(item))}</{tag}>")
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

"""Draw docs/pictures from docs/evidence/bench.json and the tables of docs/evidence/spark.md; ``--check`` only tells whether they are current.

    postgresql.svg    ratios to PostgreSQL: a bar each on a logarithmic axis
    tpch.svg          TPC-H's 22 queries on Spark, times of plain Spark's

A bar to the right of 1x is good in the first and bad in the second; the good side is the accented one in both.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
PICTURES = DOCS / "pictures"

BARS = 420  # pixels
ROW = 22
TOP = 44

STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 14px }
.axis { fill: #656d76; font-size: 11px }
.line { stroke: #8c959f; stroke-dasharray: 2 3 }
.one { stroke: #57606a }
.good { fill: #1a7f64 }
.bad { fill: #b35900 }
.budget { stroke: #1f2328; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .axis { fill: #8d96a0 } .one { stroke: #8d96a0 } .line { stroke: #484f58 }
  .good { fill: #3fb08f } .bad { fill: #e08a3c } .budget { stroke: #e6edf3 }
}
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """One measured ratio. ``budget``: what it is held against, None without one."""

    label: str
    ratio: float
    budget: float | None = None


def chart(
    title: str, bars: Sequence[Bar], ticks: Sequence[float], labels: int, *, more_is_better: bool
) -> str:
    """Return an SVG of bars from 1x to each ratio, on a logarithmic axis from the first tick to the last.

    ``labels``: pixels left of the bars.
    """
    low, high = math.log(ticks[0]), math.log(ticks[-1])

    def x(ratio: float) -> float:
        share = (math.log(min(max(ratio, ticks[0]), ticks[-1])) - low) / (high - low)
        return round(labels + share * BARS, 1)

    bottom = TOP + ROW * len(bars)
    parts = [f'<text class="title" x="8" y="18">{escape(title)}</text>']
    for tick in ticks:
        kind = "one" if tick == 1 else "line"
        parts.append(f'<line class="{kind}" x1="{x(tick)}" y1="{TOP - 6}" x2="{x(tick)}" y2="{bottom}"/>')
        parts.append(f'<text class="axis" x="{x(tick)}" y="{TOP - 10}" text-anchor="middle">{tick:g}x</text>')
    for number, bar in enumerate(bars):
        y = TOP + ROW * number
        left, right = sorted((x(1), x(bar.ratio)))
        kind = "good" if (bar.ratio >= 1) is more_is_better else "bad"
        parts.append(f'<text x="{labels - 10}" y="{y + 15}" text-anchor="end">{escape(bar.label)}</text>')
        parts.append(
            f'<rect class="{kind}" x="{left}" y="{y + 4}" width="{max(1.0, right - left):.1f}" height="{ROW - 8}" rx="2"/>'
        )
        if bar.budget is not None:
            at = x(bar.budget)
            parts.append(f'<line class="budget" x1="{at}" y1="{y + 2}" x2="{at}" y2="{y + ROW - 2}"/>')
        parts.append(f'<text x="{labels + BARS + 12}" y="{y + 15}">{bar.ratio:.2f}x</text>')
    width, height = labels + BARS + 70, bottom + 10
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n{body}\n</svg>\n"
    )


def cells(line: str) -> list[str]:
    """Return the cells of a row of a Markdown table, without marks."""
    return [re.sub(r"[*`]", "", cell).strip() for cell in line.strip().strip("|").split("|")]


def beside_postgresql(rows: Iterable[Mapping[str, str]]) -> list[Bar]:
    """Return the rows of docs/evidence/bench.json whose ratio is one figure."""
    found = []
    for row in rows:
        if re.fullmatch(r"\d+\.\d+x", row["ratio"]):
            budget = re.match(r"(\d+(?:\.\d+)?)x", row["budget"])
            label = re.sub(r"[*`]", "", row["what"])
            found.append(Bar(label, float(row["ratio"][:-1]), float(budget[1]) if budget else None))
    return found


def beside_spark(page: str) -> list[Bar]:
    """Return TPC-H's ratios: each table under "beside plain Spark" has queries, seconds, ratios."""
    tables = re.findall(
        r"^(\|(?: \d+ \|)+)\n\|(?: --- \|)+\n\|[^\n]+\|\n(\|(?: \d+\.\d+x \|)+)$", page, re.MULTILINE
    )
    return [
        Bar(f"Query {query}", float(ratio[:-1]))
        for queries, ratios in tables
        for query, ratio in zip(cells(queries), cells(ratios), strict=True)
    ]


def pictures() -> dict[str, str]:
    """Return each file's name and content."""
    ours = beside_postgresql(json.loads((DOCS / "evidence" / "bench.json").read_text("utf-8"))["rows"])
    spark = beside_spark((DOCS / "evidence" / "spark.md").read_text("utf-8"))
    return {
        "postgresql.svg": chart(
            "Speed, times PostgreSQL 15 (right of 1x is faster; the mark is the budget)",
            ours, (0.25, 0.5, 1, 2, 5), 320, more_is_better=True,
        ),
        "tpch.svg": chart(
            "TPC-H SF 1 on Spark: time, times plain Spark's (left of 1x is faster)",
            spark, (0.5, 0.7, 1, 1.3, 2), 100, more_is_better=False,
        ),
    }  # fmt: skip


def main() -> int:
    """Write the pictures, or with ``--check`` tell by the status whether they are current."""
    stale = 0
    PICTURES.mkdir(exist_ok=True)
    for name, content in pictures().items():
        path = PICTURES / name
        if path.exists() and path.read_text("utf-8") == content:
            continue
        if "--check" in sys.argv[1:]:
            print(f"{path} is not current: python tools/gen_pictures.py")
            stale = 1
        else:
            path.write_text(content, "utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main())

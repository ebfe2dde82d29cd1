"""``python -m tests.hostile`` (``make hostile``): the table in its long form, for an idle machine.

    --memory 512MB --memory 2GB     servers it is run against, one after the other
    --kind regex, --row NAME        some rows alone
    --out docs/evidence/hostile.json
    --more                          rows alone that the file lacks, or that were not within the bounds

Figures go to the file row by row; docs/evidence/hostile.md is made of those in docs/evidence once all rows have run. The process ends with 1
if a row is not as it should be.

``python -m tests.hostile --short`` runs rows in the form of `make test` and says what each took; ``--known`` writes down in ``known.py`` which
of them fail, and leaves the others there as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from tests.hostile.known import KNOWN
from tests.hostile.long import TRIES as TIMES
from tests.hostile.long import Figures, Stand
from tests.hostile.row import Row
from tests.hostile.rows import KINDS
from tests.hostile.short import TRIES, Found, TimedServer, judge, try_row

Measured = dict[str, dict[tuple[str, str], Figures]]
"""By the server's memory, then by kind and name."""
KNOWN_FILE = Path(__file__).parent / "known.py"
FIGURES = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "hostile.json"


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.hostile", description=__doc__)
    parser.add_argument("--memory", action="append", help="of the server; may be repeated")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="rows of this kind alone")
    parser.add_argument("--row", action="append", help="this row alone")
    parser.add_argument("--out", type=Path, help="where figures go")
    parser.add_argument("--more", action="store_true", help="rows that --out lacks, or that failed")
    parser.add_argument("--short", action="store_true", help="the short form")
    parser.add_argument("--known", action="store_true", help="with --short: write known.py")
    parser.add_argument("--failing", action="store_true", help="with --short: rows in known.py alone")
    arguments = parser.parse_args()
    if arguments.short:
        return _short(arguments)
    return _long(arguments)


def _long(arguments: argparse.Namespace) -> int:
    found = _kept(arguments.out) if arguments.more else {}
    commit = _commit()
    for memory in arguments.memory or ["512MB", "2GB"]:
        rows = found.setdefault(memory, {})
        for _ in range(TIMES):
            stand = Stand(memory)
            for kind, row in _chosen(arguments):
                before = rows.get((kind, row.name))
                if before is not None and before.commit != commit and before.problem:
                    before = None  # what has changed since may have mended it
                if before is not None and (not before.problem or before.tries >= TIMES):
                    continue
                figures = replace(stand.run(kind, row), commit=commit)
                rows[kind, row.name] = figures if before is None else before.better(figures)
                if (
                    arguments.out is not None
                ):  # what was measured is kept where a run does not come to its end
                    arguments.out.parent.mkdir(parents=True, exist_ok=True)
                    arguments.out.write_text(
                        json.dumps(_document(found), indent=1, ensure_ascii=False) + "\n"
                    )
                print(
                    f"{memory:>6} {kind}: {row.name}: {figures.said}, others {figures.longest_ms} ms, cancel "
                    f"{figures.cancel_ms} ms, time-out {figures.timeout_ms} ms, {figures.peak_mb} MB"
                    f" (machine: loop {figures.loop_ms} ms, page {figures.page_us} us)"
                    + (f" -- {figures.problem}" if figures.problem else ""),
                    flush=True,
                )
            stand.close()
    if arguments.out is not None and arguments.out.resolve() == FIGURES:
        subprocess.run([sys.executable, "tools/gen_hostile_doc.py"], check=True, cwd=FIGURES.parents[2])
    wrong = [figures for rows in found.values() for figures in rows.values() if figures.problem]
    print(f"{sum(map(len, found.values()))} rows, {len(wrong)} not as they should be")
    return 1 if wrong else 0


def _chosen(arguments: argparse.Namespace) -> Iterator[tuple[str, Row]]:
    for kind, rows in KINDS.items():
        if not arguments.kind or kind in arguments.kind:
            for row in rows:
                if not arguments.row or row.name in arguments.row:
                    yield kind, row


def _kept(out: Path | None) -> Measured:
    """Return what a file has."""
    if out is None or not out.exists():
        return {}
    document = json.loads(out.read_text())
    return {
        memory: {(row["kind"], row["name"]): Figures(**row) for row in rows}
        for memory, rows in document["rows"].items()
    }


def _short(arguments: argparse.Namespace) -> int:
    known = dict(KNOWN)
    server = TimedServer()
    for kind, row in _chosen(arguments):
        if arguments.failing and row.name not in KNOWN:
            continue
        tries: list[Found] = []
        problem = "not tried"
        while problem and len(tries) < TRIES and not (tries and tries[-1].held):
            tries.append(try_row(server, row))
            problem = judge(row, tries)
        known.pop(row.name, None)
        if problem:
            known[row.name] = problem.splitlines()[0][:120]
        best = min(tries, key=lambda one: one.longest_ms)
        print(
            f"{kind}: {row.name}: {best.said}, {best.longest_ms:.1f} ms, {best.bytes >> 20} MB -- {problem[:2000]}",
            flush=True,
        )
    server.close()
    if arguments.known:
        head = KNOWN_FILE.read_text().split("KNOWN: Final", 1)[0]
        lines = [
            f"    {json.dumps(name, ensure_ascii=False)}: {json.dumps(why, ensure_ascii=False)},\n"
            for name, why in known.items()
        ]
        tail = '"""Reasons by the names of rows."""\n'
        body = "{\n" + "".join(lines) + "}" if lines else "{}"
        KNOWN_FILE.write_text(f"{head}KNOWN: Final[dict[str, str]] = {body}\n{tail}")
    return 0


def _commit() -> str:
    return subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()


def _document(found: Measured) -> dict[str, object]:
    return {
        "processors": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "rows": {memory: [asdict(figures) for figures in rows.values()] for memory, rows in found.items()},
    }


if __name__ == "__main__":
    sys.exit(main())

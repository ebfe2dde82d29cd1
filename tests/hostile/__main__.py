"""``python -m tests.hostile`` (``make hostile``): the table in its long form, for an idle machine.

    --memory 512MB --memory 2GB     servers it is run against, one after the other
    --kind regex, --row NAME        some rows alone
    --out docs/evidence/hostile.json

Figures go to the file row by row; docs/hostile.md is made of those in docs/evidence once all rows have run. The process ends with 1
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
from dataclasses import asdict
from pathlib import Path

from tests.hostile.known import KNOWN
from tests.hostile.long import Figures, Stand
from tests.hostile.rows import KINDS
from tests.hostile.short import TRIES, Found, TimedServer, judge, try_row

KNOWN_FILE = Path(__file__).parent / "known.py"
FIGURES = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "hostile.json"


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.hostile", description=__doc__)
    parser.add_argument("--memory", action="append", help="of the server; may be repeated")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="rows of this kind alone")
    parser.add_argument("--row", action="append", help="this row alone")
    parser.add_argument("--out", type=Path, help="where figures go")
    parser.add_argument("--short", action="store_true", help="the short form")
    parser.add_argument("--known", action="store_true", help="with --short: write known.py")
    parser.add_argument("--failing", action="store_true", help="with --short: rows in known.py alone")
    arguments = parser.parse_args()
    if arguments.short:
        return _short(arguments)
    found: dict[str, list[Figures]] = {}
    for memory in arguments.memory or ["512MB", "2GB"]:
        stand = Stand(memory)
        found[memory] = []
        for kind, rows in KINDS.items():
            for row in rows:
                if (arguments.kind and kind not in arguments.kind) or (
                    arguments.row and row.name not in arguments.row
                ):
                    continue
                figures = stand.run(kind, row)
                found[memory].append(figures)
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
                    + (f" -- {figures.problem}" if figures.problem else ""),
                    flush=True,
                )
        stand.close()
    if arguments.out is not None and arguments.out.resolve() == FIGURES:
        subprocess.run([sys.executable, "tools/gen_hostile_doc.py"], check=True, cwd=FIGURES.parents[2])
    wrong = [figures for rows in found.values() for figures in rows if figures.problem]
    print(f"{sum(map(len, found.values()))} rows, {len(wrong)} not as they should be")
    return 1 if wrong else 0


def _short(arguments: argparse.Namespace) -> int:
    known = dict(KNOWN)
    server = TimedServer()
    for kind, rows in KINDS.items():
        for row in rows:
            unwanted = arguments.kind and kind not in arguments.kind
            unwanted = unwanted or (arguments.row and row.name not in arguments.row)
            if unwanted or (arguments.failing and row.name not in KNOWN):
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


def _document(found: dict[str, list[Figures]]) -> dict[str, object]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    return {
        "commit": commit,
        "processors": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "rows": {memory: [asdict(figures) for figures in rows] for memory, rows in found.items()},
    }


if __name__ == "__main__":
    sys.exit(main())

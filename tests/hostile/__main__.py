"""``python -m tests.hostile`` (``make hostile``): the table in its long form, for an idle machine.

    --memory 512MB --memory 2GB     servers it is run against, one after the other
    --kind regex, --row NAME        some rows alone
    --out docs/evidence/hostile.json

Figures go to the file once all rows have run; the process ends with 1 if a row is not as it should be.
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

from tests.hostile.long import Figures, Stand
from tests.hostile.rows import KINDS


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.hostile", description=__doc__)
    parser.add_argument("--memory", action="append", help="of the server; may be repeated")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="rows of this kind alone")
    parser.add_argument("--row", action="append", help="this row alone")
    parser.add_argument("--out", type=Path, help="where figures go")
    arguments = parser.parse_args()
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
                print(
                    f"{memory:>6} {kind}: {row.name}: {figures.said}, others {figures.longest_ms} ms, cancel "
                    f"{figures.cancel_ms} ms, time-out {figures.timeout_ms} ms, {figures.peak_mb} MB"
                    + (f" -- {figures.problem}" if figures.problem else ""),
                    flush=True,
                )
        stand.close()
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(_document(found), indent=1, ensure_ascii=False) + "\n")
    wrong = [figures for rows in found.values() for figures in rows if figures.problem]
    print(f"{sum(map(len, found.values()))} rows, {len(wrong)} not as they should be")
    return 1 if wrong else 0


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

"""``make slt``: SQLite's select1 to select5 from the suites folder, on a server of its own."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.peers import holdfast
from sqllogictest.__main__ import main as run_slt

FILES = ("select1", "select2", "select3", "select4", "select5")
SUITES = Path(__file__).resolve().parents[1].parent / "shared" / "suites" / "sqllogictest"


def main() -> int:
    """Run; returns the runner's status, 0 with a message where the suites are absent."""
    parser = argparse.ArgumentParser(prog="bench.slt", description=__doc__)
    parser.add_argument("--suites", type=Path, default=SUITES)
    parser.add_argument("--executor", action="append", choices=["auto", "index", "local", "spark"])
    parser.add_argument("--only", action="append", choices=FILES)
    arguments = parser.parse_args()
    if not arguments.suites.exists():
        print(f"no suites at {arguments.suites}: give --suites FOLDER")
        return 0
    files = [str(arguments.suites / f"{name}.test") for name in arguments.only or FILES]
    status = 0
    executors = arguments.executor or ["auto", "local"]
    with holdfast("--spark-start", "lazy" if "spark" in executors else "off") as server:
        for executor in executors:
            print(f"executor = {executor}", flush=True)
            status |= run_slt(["run", *files, "--url", server.url, "--executor", executor])
    return status


if __name__ == "__main__":
    sys.exit(main())

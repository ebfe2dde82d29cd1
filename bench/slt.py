"""``make slt``: SQLite's select1 to select5 from the suites folder, on a server of its own.

``--sample 5000 --seed 1``: a random sample of the queries of these and of the folders beside them (evidence, index, random), which
``--part K/N`` divides into several runs; ``--url``: on a server that runs already.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path

from bench.peers import holdfast
from sqllogictest.__main__ import main as run_slt

FILES = ("select1", "select2", "select3", "select4", "select5")
FOLDERS = ("evidence", "index", "random")
SUITES = Path(__file__).resolve().parents[1].parent / "shared" / "suites" / "sqllogictest"


def main() -> int:
    """Run; returns the runner's status, 0 with a message where the suites are absent."""
    parser = argparse.ArgumentParser(prog="bench.slt", description=__doc__)
    parser.add_argument("--suites", type=Path, default=SUITES)
    parser.add_argument("--executor", action="append", choices=["auto", "index", "local", "spark"])
    parser.add_argument("--only", action="append", choices=FILES)
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--url")
    arguments = parser.parse_args()
    if not arguments.suites.exists():
        print(f"no suites at {arguments.suites}: give --suites FOLDER")
        return 0
    files = [str(arguments.suites / f"{name}.test") for name in arguments.only or FILES]
    options = ["--part", arguments.part]
    if arguments.sample:
        files += [] if arguments.only else [str(arguments.suites / name) for name in FOLDERS]
        options += ["--sample", str(arguments.sample), "--seed", str(arguments.seed)]
    status = 0
    executors = arguments.executor or ["auto", "local"]
    with contextlib.ExitStack() as stack:
        url = arguments.url
        if url is None:
            url = stack.enter_context(
                holdfast("--spark-start", "lazy" if "spark" in executors else "off")
            ).url
        for executor in executors:
            print(f"executor = {executor}", flush=True)
            status |= run_slt(["run", *files, *options, "--url", url, "--executor", executor])
    return status


if __name__ == "__main__":
    sys.exit(main())

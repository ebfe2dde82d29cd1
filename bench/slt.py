"""``make slt``: SQLite's select1 to select5 from the suites folder, on a server of its own.

``--sample 5000 --seed 1``: a random sample of the queries of these and of the folders beside them (evidence, index, random), which
``--part K/N`` divides into several runs; ``--url``: on a server that runs already; ``--journal FILE``: a run that was cut off goes on
with the first file that is not in it.

``--executor spark`` is about queries: statements, which fill the tables row by row, take the route they would. What Spark refuses by name
(0A000) is counted, printed by message, and put to the executor the router would take: its answer is judged like any other. So the status
is 0 only if there is a right answer for every record, and the sum says how many came from elsewhere.
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
# Tables of some rows: one thread, and nobody beside from whom the JVM has to stand back.
SPARK = ("--spark-start", "lazy", "--spark-master", "local[1]", "--spark-nice", "0")
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
    parser.add_argument("--journal")
    parser.add_argument("--every", type=int, default=100, help="queries to a line of progress")
    arguments = parser.parse_args()
    if not arguments.suites.exists():
        print(f"no suites at {arguments.suites}: give --suites FOLDER")
        return 0
    files = [str(arguments.suites / f"{name}.test") for name in arguments.only or FILES]
    options = ["--part", arguments.part, "--every", str(arguments.every)]
    if arguments.journal:
        options += ["--journal", arguments.journal]
    if arguments.sample:
        files += [] if arguments.only else [str(arguments.suites / name) for name in FOLDERS]
        options += ["--sample", str(arguments.sample), "--seed", str(arguments.seed)]
    status = 0
    executors = arguments.executor or ["auto", "local"]
    if arguments.journal and len(executors) > 1:
        parser.error("--journal is of one --executor")
    with contextlib.ExitStack() as stack:
        url = arguments.url
        if url is None:
            url = stack.enter_context(holdfast(*(SPARK if "spark" in executors else ()))).url
        for executor in executors:
            print(f"executor = {executor}", flush=True)
            pinned = ["--executor", executor, *(["--otherwise", "auto"] if executor == "spark" else [])]
            status |= run_slt(["run", *files, *options, "--url", url, *pinned])
    return status


if __name__ == "__main__":
    sys.exit(main())

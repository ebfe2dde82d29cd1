"""``python -m sqllogictest run PATH... --url postgresql://...``: run suites, show progress, differences, a summary."""

from __future__ import annotations

import argparse
import contextlib
import sys
import threading
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sqllogictest.client import ServerError, Target
from sqllogictest.draw import draw, part
from sqllogictest.journal import Journal
from sqllogictest.progress import Progress
from sqllogictest.records import Dialect, ParseError
from sqllogictest.report import FileReport
from sqllogictest.runner import FileRun, Options

SUFFIXES = (".slt", ".test")


def collect(paths: Sequence[str]) -> list[Path]:
    """Return the files named, folders searched for .slt and .test, in order."""
    found: list[Path] = []
    for name in paths:
        path = Path(name)
        if path.is_dir():
            found += sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES)
        elif path.exists():
            found.append(path)
        else:
            raise FileNotFoundError(f"{name} does not exist")
    return found


def write_junit(path: Path, reports: Sequence[FileReport]) -> None:
    """Write the reports as JUnit XML, one test case per file."""
    root = ET.Element("testsuite", name="sqllogictest", tests=str(len(reports)))
    root.set("failures", str(sum(r.failed for r in reports)))
    for report in reports:
        case = ET.SubElement(
            root, "testcase", name=str(report.path), classname="sqllogictest", time=f"{report.seconds:.3f}"
        )
        if report.unreadable:
            ET.SubElement(case, "failure", message="unreadable").text = report.unreadable
        elif report.failures:
            failure = ET.SubElement(case, "failure", message=f"{len(report.failures)} records failed")
            failure.text = "\n\n".join(f.show() for f in report.failures)
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def run_files(
    paths: Sequence[Path], options: Options, jobs: int, *, journal: Journal | None = None, every: int = 0
) -> list[FileReport]:
    """Run files on ``jobs`` threads; reports are in the order of ``paths``.

    ``journal``: what it has is not run again, and what is done goes into it. ``every``: queries to a line of progress.
    """
    done = journal.done if journal else {}
    drawn = options.drawn or {}
    open_ = [path for path in paths if path not in done]
    progress = Progress(len(open_), queries=sum(len(drawn.get(path, ())) for path in open_), every=every)
    stamp = time.time_ns() // 1000 % 10**10
    writing = threading.Lock()

    def one(numbered: tuple[int, Path]) -> FileReport:
        number, path = numbered
        if path in done:
            return done[path]
        try:
            run = FileRun(path, options, f"slt_{stamp}_{number}")
        except ParseError as error:  # of this file; the others go on
            report = FileReport(path, unreadable=str(error))
        else:
            report = run.run(progress.record)
        if journal:
            with writing:
                journal.add(report)
        progress.file(len(report.failures), sum(report.refused.values()))
        return report

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        return list(pool.map(one, enumerate(paths)))


def _identity(arguments: argparse.Namespace) -> str:
    """Return what the reports of a run depend on; its parts share a journal."""
    names = (
        "paths",
        "sample",
        "seed",
        "executor",
        "otherwise",
        "protocol",
        "engine",
        "connections",
        "dialect",
    )
    return " ".join(f"{name}={getattr(arguments, name)}" for name in names)


def main(argv: Sequence[str] | None = None) -> int:
    """Run; returns 0 when every record held, 1 when some did not, 2 for a usage error or if no file could be read."""
    parser = argparse.ArgumentParser(prog="sqllogictest", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run files or folders")
    run.add_argument("paths", nargs="+", metavar="PATH")
    run.add_argument("--url", default="postgresql://postgres@127.0.0.1:7432/postgres")
    run.add_argument("--executor", default="", choices=("", "auto", "index", "local", "spark"))
    run.add_argument(
        "--otherwise", default="", choices=("", "auto", "index", "local", "spark"),
        help="the executor of statements, and of queries that --executor refuses (0A000): these are counted, and judged",
    )  # fmt: skip
    run.add_argument("--protocol", default="simple", choices=("simple", "extended"))
    run.add_argument("--engine", default="postgresql", help="name that skipif and onlyif are matched with")
    run.add_argument(
        "--connections", default="auto", choices=("auto", "one", "named"),
        help="one for a whole file, or one per name (auto: one for the duckdb dialect)",
    )  # fmt: skip
    run.add_argument(
        "--dialect",
        choices=[d.value for d in Dialect],
        help="of files that do not name theirs (default: guess)",
    )
    run.add_argument("--jobs", type=int, default=1, metavar="N", help="files run at once")
    run.add_argument("--junit", metavar="FILE", help="write a JUnit report")
    run.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS", help="per record")
    run.add_argument("--max-queries", type=int, default=0, metavar="N", help="queries per file, 0 = all")
    run.add_argument(
        "--sample", type=int, default=0, metavar="N", help="N queries per file, evenly spread, 0 = all"
    )
    run.add_argument(
        "--seed", type=int, metavar="N", help="the sample is of all files together, drawn with this seed"
    )
    run.add_argument("--part", default="1/1", metavar="K/N", help="every Nth file, from the Kth on")
    run.add_argument("--max-failures", type=int, default=0, metavar="N", help="stop a file after N failures")
    run.add_argument(
        "--journal", metavar="FILE", help="note what is done there; what it has already is not run again"
    )
    run.add_argument(
        "--every", type=int, default=0, metavar="N", help="a line of progress after N queries (no terminal)"
    )
    run.add_argument("--quiet", action="store_true", help="no differences, summary only")
    arguments = parser.parse_args(argv)
    try:
        given = Dialect(arguments.dialect) if arguments.dialect else None
        paths = collect(arguments.paths)
        drawn = None
        if arguments.seed is not None:
            drawn = draw(paths, arguments.sample, arguments.seed, arguments.engine, given)
            paths = list(drawn)
        paths = part(paths, arguments.part)
        options = Options(
            target=Target.from_url(arguments.url),
            protocol=arguments.protocol,
            executor=arguments.executor,
            otherwise=arguments.otherwise,
            engine=arguments.engine,
            connections=arguments.connections,
            timeout_s=arguments.timeout,
            max_queries=arguments.max_queries,
            sample=arguments.sample,
            max_failures=arguments.max_failures,
            drawn=drawn,
            dialect=given,
        )
        with contextlib.ExitStack() as stack:
            journal = None
            if arguments.journal:
                journal = Journal(Path(arguments.journal), _identity(arguments))
                stack.callback(journal.close)
            reports = run_files(paths, options, arguments.jobs, journal=journal, every=arguments.every)
    except (FileNotFoundError, ValueError, OSError, ServerError) as error:
        print(f"sqllogictest: {error}", file=sys.stderr)
        return 2
    for report in reports:
        if report.unreadable:
            print(f"FAIL {report.path}: cannot be read: {report.unreadable}")
            continue
        if not arguments.quiet:
            for failure in report.failures:
                print(failure.show(), end="\n\n")
        verdict = "FAIL" if report.failed else "ok"
        dialect = "" if report.dialect in (None, Dialect.SQLITE) else f", read as {report.dialect.value}"
        print(
            f"{verdict:4} {report.path}: {report.passed} passed, {len(report.failures)} failed, "
            f"{report.skipped} skipped in {report.seconds:.1f} s{dialect}"
        )
    refused: Counter[str] = Counter()
    for report in reports:
        refused.update(report.refused)
    for reason, count in refused.most_common():
        print(f"refused {count:5} times, and judged on {arguments.otherwise}: {reason}")
    if arguments.junit:
        write_junit(Path(arguments.junit), reports)
    failed = sum(len(r.failures) for r in reports)
    unreadable = sum(bool(r.unreadable) for r in reports)
    print(
        f"{len(reports)} files: {sum(r.passed for r in reports)} passed, {failed} failed, "
        f"{sum(r.skipped for r in reports)} skipped"
        + (f", {sum(refused.values())} refused" if arguments.otherwise else "")
        + (f", {unreadable} files unreadable" if unreadable else "")
        + f"; {sum(r.queries for r in reports)} queries asked"
    )
    if unreadable == len(reports) > 0:
        return 2
    return 1 if failed or unreadable else 0


if __name__ == "__main__":
    sys.exit(main())

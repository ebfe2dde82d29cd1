"""What a run has found so far, file by file, so that a run that was cut off goes on where it was.

    {"run": "sample=5000 seed=1 executor=spark ..."}       the first line: whose journal it is
    {"path": "select1.test", "passed": 64, ...}            one for each file that is done, in the order they ended

A line is written whole and forced to disk before the next file counts as begun; one that was cut short is no line.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

from sqllogictest.records import Dialect
from sqllogictest.report import Failure, FileReport


class Journal:
    """The journal of one run; ``done`` has the reports that were in it when it was opened, by path."""

    def __init__(self, path: Path, run: str) -> None:
        """Open or begin it. ``run``: all that the answers depend on.

        Raises ValueError if the file is another run's, OSError.
        """
        self.done: dict[Path, FileReport] = {}
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines()
        if lines and json.loads(lines[0]) != {"run": run}:
            raise ValueError(f"{path} is the journal of another run: {lines[0]}")
        for line in lines[1:]:
            report = _report(json.loads(line))
            self.done[report.path] = report
        self._file = path.open("w", encoding="utf-8")
        for line in lines or [json.dumps({"run": run})]:
            self._write(line)

    def add(self, report: FileReport) -> None:
        """Note a file that is done; one whose connection broke is to run again, and is not noted."""
        if report.lost:
            return
        fields = asdict(report)
        fields["path"] = str(report.path)
        fields["dialect"] = report.dialect.value if report.dialect else None
        self._write(json.dumps(fields))

    def close(self) -> None:
        """Write no more."""
        self._file.close()

    def _write(self, line: str) -> None:
        self._file.write(line + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def _report(fields: dict[str, object]) -> FileReport:
    """Return a report from what ``add`` wrote."""
    dialect, failures = fields["dialect"], fields["failures"]
    if not isinstance(failures, list):
        raise AssertionError(f"failures are kept as {type(failures).__name__}")
    return FileReport(
        **fields  # type: ignore[arg-type]  # its own fields, as JSON has them
        | {
            "path": Path(str(fields["path"])),
            "dialect": Dialect(dialect) if dialect else None,
            "failures": [Failure(**failure) for failure in failures],
        }
    )

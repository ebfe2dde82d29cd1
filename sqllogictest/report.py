"""What came of a file: how many records held, which did not, what the executor under test refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sqllogictest.records import AnyRecord, Dialect, Query, Statement

MAX_DIFF_LINES = 20


@dataclass(slots=True)
class Failure:
    """One record that did not hold; ``place``: file and line."""

    place: str
    sql: str
    reason: str
    expected: list[str] = field(default_factory=list)
    actual: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        record: AnyRecord,
        reason: str,
        expected: list[str] | None = None,
        actual: list[str] | None = None,
    ) -> Failure:
        """Return the failure of a record."""
        sql = record.sql if isinstance(record, Statement | Query) else ""
        return cls(f"{record.path}:{record.line}", sql, reason, expected or [], actual or [])

    def show(self) -> str:
        """Return what to print: place, statement, difference."""
        lines = [f"{self.place}: {self.reason}"]
        lines += [f"    {line}" for line in self.sql.splitlines()[:MAX_DIFF_LINES]]
        if self.expected or self.actual:
            lines.append("  expected | actual")
            for i in range(min(max(len(self.expected), len(self.actual)), MAX_DIFF_LINES)):
                left = self.expected[i] if i < len(self.expected) else "(nothing)"
                right = self.actual[i] if i < len(self.actual) else "(nothing)"
                mark = " " if left == right else "!"
                lines.append(f"  {mark} {left} | {right}")
        return "\n".join(lines)


@dataclass(slots=True)
class FileReport:
    """What happened to one file."""

    path: Path
    passed: int = 0
    skipped: int = 0
    queries: int = 0  # asked, passed or not
    failures: list[Failure] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)  # how often, by message; judged on another executor
    lost: bool = False  # the connection broke: what came after is not known
    unreadable: str = ""  # why it could not be read, or ""
    dialect: Dialect | None = None
    seconds: float = 0.0
    total: int = 0

    @property
    def failed(self) -> bool:
        """Whether some record did not hold, or none could be run."""
        return bool(self.failures or self.unreadable)

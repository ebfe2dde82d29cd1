"""From measured times to the number of bytes from which on Spark is the better route, and of rows for index builds.

    seconds                    local: little to start, steep
       |          /
       |        / _____ spark: much to start, flat where it has more cores or disks
       |     _/----
       |----/
       +----|------------- bytes read
            crossover

Each executor's time is taken to be a line in the bytes read: what a query costs at all, and what a byte
costs. Where Spark's line is the steeper one, as on one machine, they never cross; then the limit is what
DuckDB can read within its memory without writing most of it to disk again (``CEILING`` times its memory
limit), which also bounds a crossover that lies beyond. Index builds are lines in the rows, and nothing bounds
them: a build holds no more than one part at a time, so where Spark is never quicker the server keeps them all
(``NEVER``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

FILE: Final = "calibration.json"
CEILING: Final = 16
FLOOR_BYTES: Final = 2**20
"""Spark never takes less: what is that small is in the page cache, and its times are noise."""

FLOOR_ROWS: Final = 100_000
"""Index builds of fewer rows stay with the server: they take it a fraction of a second."""
NEVER: Final = 2**60
"""More rows than there are."""


@dataclass(frozen=True, slots=True)
class Point:
    """Seconds that the same queries took over ``bytes`` of stored table data."""

    bytes: int
    local_s: float
    spark_s: float


@dataclass(frozen=True, slots=True)
class IndexPoint:
    """Seconds that the same index builds took over ``rows`` of stored table data."""

    rows: int
    local_s: float
    spark_s: float


@dataclass(frozen=True, slots=True)
class Line:
    """``seconds = start_s + bytes * per_byte_s``; for index builds rows instead of bytes."""

    start_s: float
    per_byte_s: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """A recommendation and what it rests on.

    Attributes:
        local_executor_max_bytes: the setting's value.
        because: why, in a sentence.
        measured_on: a date, ``YYYY-MM-DD``.
        spark_master: where Spark ran.
        cores: of the machine that measured.
        points: the measurements.
        index_spark_min_rows: the setting's value; None where index builds were not measured.
        index_points: the measurements of index builds.
    """

    local_executor_max_bytes: int
    because: str
    measured_on: str
    spark_master: str
    cores: int
    points: tuple[Point, ...]
    index_spark_min_rows: int | None = None
    index_points: tuple[IndexPoint, ...] = ()

    @property
    def origin(self) -> str:
        """Return what EXPLAIN says of the threshold's origin."""
        return f"measured by holdfast calibrate on {self.measured_on}"


def fit(bytes_: Sequence[int], seconds: Sequence[float]) -> Line:
    """Return the least-squares line; neither part is below zero. ``bytes_`` has two different values at least."""
    n = len(bytes_)
    mean_x, mean_y = sum(bytes_) / n, sum(seconds) / n
    spread = sum((x - mean_x) ** 2 for x in bytes_)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(bytes_, seconds, strict=True)) / spread
    slope = max(slope, 0.0)
    return Line(max(mean_y - slope * mean_x, 0.0), slope)


def recommend(points: Sequence[Point], duckdb_memory: int) -> tuple[int, str]:
    """Return ``local_executor_max_bytes`` and why. ``duckdb_memory``: DuckDB's memory limit in bytes."""
    sizes = [point.bytes for point in points]
    local = fit(sizes, [point.local_s for point in points])
    spark = fit(sizes, [point.spark_s for point in points])
    ceiling = CEILING * duckdb_memory
    gain = local.per_byte_s - spark.per_byte_s
    head_start = spark.start_s - local.start_s
    if gain <= 0:
        if head_start < 0:
            # Spark is ahead at small sizes and falls behind: noise, or a machine without DuckDB's cores.
            return ceiling, "the times do not favour Spark as tables grow; DuckDB's memory sets the limit"
        return ceiling, "DuckDB is quicker at every size; its memory sets the limit"
    crossover = max(int(head_start / gain), FLOOR_BYTES)
    if crossover >= ceiling:
        return (
            ceiling,
            f"Spark is quicker above {crossover} bytes; before that, DuckDB's memory sets the limit",
        )
    within = "" if crossover <= max(sizes) else " (beyond what was measured)"
    return crossover, f"Spark is quicker above this size{within}"


def recommend_index(points: Sequence[IndexPoint]) -> tuple[int, str]:
    """Return ``index_spark_min_rows`` and why."""
    rows = [point.rows for point in points]
    local = fit(rows, [point.local_s for point in points])
    spark = fit(rows, [point.spark_s for point in points])
    gain = local.per_byte_s - spark.per_byte_s
    if gain <= 0:
        return NEVER, "the server builds indexes quicker at every size"
    crossover = max(int((spark.start_s - local.start_s) / gain), FLOOR_ROWS)
    within = "" if crossover <= max(rows) else " (beyond what was measured)"
    return crossover, f"Spark builds indexes quicker above so many rows{within}"


def store(data_dir: Path, calibration: Calibration) -> Path:
    """Write a calibration where the server finds it at its next start; return the file. Raises OSError."""
    path = data_dir / FILE
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(asdict(calibration), indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)
    return path


def load(data_dir: Path) -> Calibration | None:
    """Return the stored calibration, None if there is none.

    Raises:
        ValueError: the file is not one.
    """
    path = data_dir / FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    try:
        points = tuple(Point(**point) for point in found.pop("points"))
        index_points = tuple(IndexPoint(**point) for point in found.pop("index_points", ()))
        made = Calibration(**found, points=points, index_points=index_points)
        values = (made.local_executor_max_bytes, made.index_spark_min_rows or 0)
        usable = all(isinstance(value, int) and 0 <= value <= NEVER for value in values)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path} is no calibration: {error}") from None
    if not usable:
        raise ValueError(f"{path} is no calibration: its thresholds are no numbers of bytes and rows")
    return made

r"""TPC-H data and queries: generation by tpchgen-cli, loading through psql's \copy."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
TABLES = ("region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem")
QUERIES = tuple(range(1, 23))


def generate(scale: float, folder: Path) -> Path:
    """Write the eight tables as CSV below ``folder`` (once per scale) and return their folder."""
    target = folder / f"sf{scale:g}"
    if all((target / f"{table}.csv").exists() for table in TABLES):
        return target
    target.mkdir(parents=True, exist_ok=True)
    tool = Path(sys.executable).parent / "tpchgen-cli"
    command = str(tool) if tool.exists() else shutil.which("tpchgen-cli")
    if command is None:
        raise FileNotFoundError("tpchgen-cli is not installed: pip install -r requirements-bench.lock")
    subprocess.run([command, "csv", "-s", f"{scale:g}", f"--output-dir={target}"], check=True, timeout=3600)
    return target


def query(number: int, scale: float) -> str:
    """Return query ``number`` with its validation parameters (Q11's fraction depends on the scale)."""
    text = (HERE / "queries" / f"q{number:02d}.sql").read_text(encoding="utf-8")
    return text.replace("{fraction}", f"{0.0001 / scale:.10f}")


def padded(sql: str) -> str:
    """Return a query for a server to which ``char(n)`` is text: constants compared with such columns are padded.

    Without that plain Spark finds no row where a char(10) is 'BUILDING', and is quick about it.
    """
    lengths = {name: int(n) for name, n in re.findall(r"(\w+) char\((\d+)\)", _schema())}
    lengths["nation"] = lengths["n_name"]  # what query 8 calls it
    names = "|".join(lengths)

    def pad(match: re.Match[str]) -> str:
        wide = lengths[match[1]]
        return match[1] + match[2] + re.sub(r"'([^']*)'", lambda m: f"'{m[1].ljust(wide)}'", match[3])

    compared = rf"\b({names})(\s*(?:=|<>|IN)\s*)('[^']*'|\([^()]*'\))"
    return re.sub(compared, pad, sql)


def _schema() -> str:
    return (HERE / "schema.sql").read_text(encoding="utf-8")


def columns() -> dict[str, tuple[str, ...]]:
    """Return each table's column names in order."""
    found: dict[str, tuple[str, ...]] = {}
    for line in _schema().splitlines():
        made = re.match(r"CREATE TABLE (\w+) \((.*)\);", line)
        assert made is not None
        found[made[1]] = tuple(re.findall(r"(?:^|, )([a-z]+_[a-z]+) (?=[a-z])", made[2]))
    return found


def load(url: str, data: Path, *, timeout_s: float = 3600) -> None:
    """Create the tables at ``url`` (dropping old ones) and load ``data`` with psql."""
    drops = "".join(f"DROP TABLE IF EXISTS {table};\n" for table in TABLES)
    script = drops + _schema()
    script += "".join(
        f"\\copy {table} FROM '{data / table}.csv' WITH (FORMAT csv, HEADER)\n" for table in TABLES
    )
    script += "VACUUM;\nANALYZE;\n"
    done = subprocess.run(
        ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", url], input=script, text=True, capture_output=True,
        timeout=timeout_s, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"loading failed: {done.stderr.strip()}")

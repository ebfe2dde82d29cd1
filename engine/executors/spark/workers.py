"""What Python workers of Spark's executors need to run our functions: this interpreter, and our packages.

On the server's machine they import the packages from where the server has them; on a cluster from an archive that the
application ships to them. The libraries (pyarrow, msgspec, pglast, sqlglot) have to be installed there.
"""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path
from typing import Any, Final

from txn.persist.scratch import Scratch

ROOT: Final = Path(__file__).resolve().parents[3]
PACKAGES: Final = ("engine", "pgwire", "planner", "txn")
_MARK: Final = "HOLDFAST_WORKERS"


def prepare_workers(context: Any) -> None:
    """Let the Python workers of an application (a SparkContext) import our packages. Idempotent; blocks."""
    if context.environment.get(_MARK):
        return
    if context.master.startswith("local"):
        context.pythonExec = sys.executable
        others = os.environ.get("PYTHONPATH", "")
        context.environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), others)))
    else:
        context.pythonExec = context.getConf().get("spark.pyspark.python", None) or sys.executable
        folder = Scratch("workers")  # workers fetch it from there, as long as the application runs
        context.addPyFile(str(archive(Path(folder.path) / "holdfast.zip")))
        context.holdfast_packages = folder
    context.environment[_MARK] = "1"


def archive(path: Path) -> Path:
    """Write the packages to a zip file and return its path."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for package in PACKAGES:
            for entry in sorted((ROOT / package).rglob("*")):
                if entry.suffix in (".py", ".csv", ".sql"):
                    file.write(entry, str(entry.relative_to(ROOT)))
    return path

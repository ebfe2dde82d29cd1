"""Where Spark finds part files, and where a query's own files go.

    master      data files        Spark reads parts        a query's own files (more than a few rows)
    local       data_dir          as the server            <data_dir>/spark/spool
    local       object store      the local copies         <data_dir>/spark/spool
    cluster     data_dir          under the same path      <data_dir>/spark/spool
    cluster     shared folder     under the same path      <blob>/tmp/spool-<pid>
    cluster     object store      s3a://, gs://            <data_dir>/spark/spool

A cluster's machines see the folders of the last two columns under the path that the server knows
(docs/guide/cluster.md).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.base.spark_properties import is_local
from txn.persist.blobs.object_url import ObjectUrl

_CLASSES = {"s3": ("s3a", "hadoop-aws"), "gs": ("gs", "the Cloud Storage connector")}


@dataclass(frozen=True, slots=True)
class SparkFiles:
    """``spool``: for files of one query. ``url``: of the store that Spark reads, whose copies are in ``root``."""

    spool: Path
    url: ObjectUrl | None = None
    root: str = ""

    def located(self, path: str) -> str:
        """Return what Spark calls a part that the server reads at ``path``."""
        if self.url is None:
            return path
        return self.url.spark + os.path.relpath(path, self.root).replace(os.sep, "/")

    def properties(self) -> dict[str, str]:
        """Return what Spark has to know to reach the store; ``spark_conf`` wins."""
        if self.url is None or self.url.scheme != "s3":
            return {}
        options = dict(self.url.options)
        bucket = f"spark.hadoop.fs.s3a.bucket.{self.url.bucket}"
        found: dict[str, str] = {}
        if "endpoint_override" in options:
            found[f"{bucket}.endpoint"] = f"{options.get('scheme', 'https')}://{options['endpoint_override']}"
            found[f"{bucket}.path.style.access"] = "true"
            found[f"{bucket}.connection.ssl.enabled"] = str(options.get("scheme") != "http").lower()
        if "region" in options:
            found[f"{bucket}.endpoint.region"] = options["region"]
        return found

    def refusal(self, context: Any) -> tuple[str, str] | None:
        """Return (message, hint) if the Spark of ``context`` cannot read the store; blocks."""
        if self.url is None:
            return None
        scheme, jars = _CLASSES[self.url.scheme]
        from py4j.protocol import Py4JJavaError

        try:
            context._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(
                scheme, context._jsc.hadoopConfiguration()
            )
        except Py4JJavaError:
            return (
                f"Spark cannot read {self.url.name}: it has no file system for {scheme}://",
                f"Add the jars of {jars} to spark_conf (spark.jars or spark.jars.packages), or use a local master.",
            )
        return None


def spark_files(
    master: str, data_dir: Path, shared: Path | None, url: ObjectUrl | None, copies: Path
) -> SparkFiles:
    """Return where a server's files are for Spark.

    ``shared``: the folder that servers share, None: none. ``url``: the object store, whose copies are in ``copies``.
    """
    own = data_dir.absolute() / "spark" / "spool"
    if is_local(master):
        return SparkFiles(own)
    if url is not None:
        return SparkFiles(own, url, str(copies.absolute()))
    if shared is not None:
        return SparkFiles(shared.absolute() / "tmp" / f"spool-{os.getpid()}")
    return SparkFiles(own)

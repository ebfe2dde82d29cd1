"""Where Spark finds parts, and what it is told about a store."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from engine.executors.spark.files import SparkFiles, spark_files
from txn.persist.blobs.object_url import parse_object_url

DATA, COPIES = Path("/d"), Path("/d/cache")
URL = parse_object_url("s3://bucket/db?endpoint_override=http://127.0.0.1:9000&region=eu-north-1")
PART = "/d/cache/7/1-a.parquet"


def test_in_the_servers_own_jvm_parts_are_files_of_this_machine() -> None:
    for url in (None, URL):
        files = spark_files("local[2]", DATA, None, url, COPIES)
        assert files == SparkFiles(Path("/d/spark/spool"))
        assert files.located(PART) == PART
        assert files.properties() == {}


def test_a_cluster_reads_a_shared_folder_under_its_own_path() -> None:
    files = spark_files("spark://h:1", DATA, Path("/shared"), None, Path("/shared"))
    assert files.located("/shared/7/1-a.parquet") == "/shared/7/1-a.parquet"
    assert files.spool.parent == Path("/shared/tmp")  # which the next owner empties
    assert spark_files("yarn", DATA, None, None, DATA).spool == Path("/d/spark/spool")


def test_a_cluster_reads_a_store_by_its_own_name() -> None:
    files = spark_files("yarn", DATA, None, URL, COPIES)
    assert files.spool == Path("/d/spark/spool")
    assert files.located(PART) == "s3a://bucket/db/7/1-a.parquet"
    assert files.properties() == {
        "spark.hadoop.fs.s3a.bucket.bucket.endpoint": "http://127.0.0.1:9000",
        "spark.hadoop.fs.s3a.bucket.bucket.path.style.access": "true",
        "spark.hadoop.fs.s3a.bucket.bucket.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.bucket.bucket.endpoint.region": "eu-north-1",
    }
    other = spark_files("yarn", DATA, None, parse_object_url("gs://bucket/db"), COPIES)
    assert other.located(PART) == "gs://bucket/db/7/1-a.parquet"
    assert other.properties() == {}


def test_a_spark_without_a_file_system_for_the_store_is_refused() -> None:
    from py4j.protocol import Py4JJavaError

    asked: list[str] = []

    def of(known: bool) -> Any:
        def look(scheme: str, _configuration: object) -> None:
            asked.append(scheme)
            if not known:
                raise Py4JJavaError("no file system", SimpleNamespace(_target_id="o1", _gateway_client=None))

        system = SimpleNamespace(FileSystem=SimpleNamespace(getFileSystemClass=look))
        jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(hadoop=SimpleNamespace(fs=system))))
        return SimpleNamespace(_jvm=jvm, _jsc=SimpleNamespace(hadoopConfiguration=lambda: None))

    files = spark_files("yarn", DATA, None, URL, COPIES)
    assert files.refusal(of(known=True)) is None
    message, hint = files.refusal(of(known=False)) or ("", "")
    assert message == "Spark cannot read s3://bucket/db: it has no file system for s3a://"
    assert "hadoop-aws" in hint
    assert asked == ["s3a", "s3a"]
    assert spark_files("yarn", DATA, None, None, DATA).refusal(of(known=False)) is None

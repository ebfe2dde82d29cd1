"""Spark properties and masters: what ``spark_conf`` and ``spark_master`` may be, and what Spark gets of it."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from engine.base.config import Config, ConfigError, add_arguments, load
from engine.base.spark_properties import (
    application,
    check_master,
    check_property,
    driver_options,
    properties_text,
    shown,
    shuffle_partitions,
)


def config(*words: str, environment: dict[str, str] | None = None) -> Config:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return load(parser.parse_args(words), environment or {})


@pytest.mark.parametrize(
    "name",
    [
        "spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.legacy.timeParserPolicy",
        "spark.sql.decimalOperations.allowPrecisionLoss", "spark.sql.files.ignoreMissingFiles", "spark.sql.caseSensitive",
        "spark.sql.parquet.datetimeRebaseModeInRead", "spark.task.reaper.enabled", "spark.master", "spark.driver.memory",
        "spark.sql.optimizer.excludedRules", "spark.submit.deployMode", "spark.sql.ansi.doubleQuotedIdentifiers",
    ],
)  # fmt: skip
def test_what_answers_rest_on_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^--spark-conf: spark_conf: {name}: it cannot be set: "):
        config("--spark-conf", f"{name}=1")


def test_every_property_the_server_fixes_is_refused() -> None:
    plain = application("yarn", {}, Path("/d"))
    changed = application(
        "yarn", {name: "other" for name in plain if check_property(name, "other") is None}, Path("/d")
    )
    fixed = {name for name in plain if changed[name] == plain[name]}
    assert {name for name in plain if check_property(name, "other") is not None} == fixed
    assert "spark.sql.ansi.enabled" in fixed
    assert "spark.ui.enabled" not in fixed


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("sql.shuffle.partitions", "4", "not the name of a Spark property"),
        ("spark.a b", "4", "not the name of a Spark property"),
        ("spark.x", "a\nb", "control character"),
        ("spark.driver.extraJavaOptions", "-Xmx9g", "memory setting"),
        ("spark.driver.extraJavaOptions", "Evil", "JVM options"),
        ("spark.driver.extraJavaOptions", "-Da='b", "cannot be read"),
    ],
)
def test_malformed_properties_are_refused(name: str, value: str, problem: str) -> None:
    assert problem in str(check_property(name, value))


def test_properties_come_from_file_environment_and_command_line_and_add_up(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(
        '[spark_conf]\n"spark.executor.memory" = "1g"\n"spark.executor.cores" = 2\n"spark.speculation" = true\n'
        '"spark.a" = "file"\n'
    )
    found = config(
        "--config", str(file), "--spark-conf", "spark.a=line=1", "--spark-conf", "spark.b = x ",
        environment={"HOLDFAST_SPARK_CONF": "spark.executor.memory=2g\nspark.a=environment\n"},
    )  # fmt: skip
    assert dict(found.spark_conf) == {
        "spark.executor.memory": "2g", "spark.executor.cores": "2", "spark.speculation": "true",
        "spark.a": "line=1", "spark.b": "x",
    }  # fmt: skip


@pytest.mark.parametrize("word", ["spark.a", "=", "=b"])
def test_what_is_no_pair_is_refused(word: str) -> None:
    with pytest.raises(ConfigError, match="spark_conf"):
        config("--spark-conf", word)


def test_a_value_in_the_file_that_is_no_scalar_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('spark_conf = {"spark.a" = [1]}\n')
    with pytest.raises(ConfigError, match=r"the value of spark\.a has to be a text or a number"):
        config("--config", str(file))


def test_secrets_are_not_shown() -> None:
    words = (
        "--spark-conf",
        "spark.authenticate.secret=hush",
        "--spark-conf",
        "spark.hadoop.fs.s3a.access.key=hush",
    )
    found = config(*words, "--spark-conf", "spark.executor.cores=2")
    assert "hush" not in repr(found)
    text = shown(found.spark_conf)
    assert "hush" not in text
    assert "spark.executor.cores=2" in text
    assert "spark.authenticate.secret=********" in text
    with pytest.raises(ConfigError) as caught:
        config("--spark-conf", "spark.driver.extraJavaOptions=-Dpassword='hush")
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    "master",
    [
        "local",
        "local[*]",
        "local[4]",
        "local[4,2]",
        "spark://127.0.0.1:7077",
        "spark://localhost:7077,localhost:7078",
    ],
)
def test_masters_of_this_machine(master: str) -> None:
    assert check_master(master, {"spark.authenticate": "true"}) is None
    if master.startswith("local"):
        assert check_master(master, {}) is None


def test_ports_of_a_driver_ask_for_a_secret() -> None:
    """Or somebody has said that they need not; where the driver computes itself nobody may."""
    for master in ("local[*]", "local[2]", "yarn", "k8s://https://10.0.0.1:6443"):
        assert application(master, {}, Path("/d"))["spark.authenticate"] == "true"
    for value in ("false", "False", "no", ""):
        assert "runs code in it" in str(check_master("local[*]", {"spark.authenticate": value}))
    assert application("local", {"spark.authenticate": "false"}, Path("/d"))["spark.authenticate"] == "true"
    standalone = "spark://127.0.0.1:7077"
    assert "spark.authenticate=true" in str(check_master(standalone, {}))
    for value in ("true", "false"):
        conf = {"spark.authenticate": value}
        assert check_master(standalone, conf) is None
        assert application(standalone, conf, Path("/d"))["spark.authenticate"] == value


@pytest.mark.parametrize(
    "master",
    [
        "mesos://h:5050",
        "spark://h",
        "spark:/h:1",
        "local[0]",
        "local-cluster[2,1,1024]",
        "http://h:1",
        "",
        "Yarn",
        "k8s://",
    ],
)
def test_other_masters_are_refused(master: str) -> None:
    with pytest.raises(ConfigError, match="spark_master cannot be"):
        config(f"--spark-master={master}")


@pytest.mark.parametrize("master", ["spark://10.0.0.1:7077", "yarn", "k8s://https://10.0.0.1:6443"])
def test_executors_elsewhere_need_an_address_and_a_decision_on_authentication(master: str) -> None:
    assert "spark.driver.host=" in str(check_master(master, {}))
    host = {"spark.driver.host": "10.0.0.7"}
    assert "spark.authenticate=true" in str(check_master(master, host))
    assert check_master(master, host | {"spark.authenticate": "true"}) is None


def test_listening_on_every_address_needs_that_decision_too() -> None:
    conf = {"spark.driver.bindAddress": "0.0.0.0"}
    assert "spark.authenticate=true" in str(check_master("spark://127.0.0.1:7077", conf))


def test_the_driver_listens_on_loopback_unless_told_otherwise() -> None:
    for master in ("local[*]", "spark://127.0.0.1:7077"):
        found = application(master, {}, Path("/d"))
        assert (found["spark.driver.host"], found["spark.driver.bindAddress"]) == ("127.0.0.1", "127.0.0.1")
    found = application("yarn", {"spark.driver.host": "10.0.0.7"}, Path("/d"))
    assert (found["spark.driver.host"], found["spark.driver.bindAddress"]) == ("10.0.0.7", "10.0.0.7")
    found = application("yarn", {"spark.driver.host": "n", "spark.driver.bindAddress": "0.0.0.0"}, Path("/d"))
    assert (found["spark.driver.host"], found["spark.driver.bindAddress"]) == ("n", "0.0.0.0")


@pytest.mark.parametrize("master", ["local[*]", "spark://127.0.0.1:7077"])
def test_pages_are_small_unless_told_otherwise(master: str) -> None:
    """Every table that is broadcast takes one, and Spark's own choice is 64 MB."""
    assert application(master, {}, Path("/d"))["spark.buffer.pageSize"] == "4m"
    conf = {"spark.buffer.pageSize": "16m"}
    assert application(master, conf, Path("/d"))["spark.buffer.pageSize"] == "16m"


def test_executors_of_a_cluster_are_reaped_and_in_utc() -> None:
    local, cluster = (
        application(master, {"spark.executor.extraJavaOptions": "-Da=1"}, Path("/d"))
        for master in ("local[2]", "yarn")
    )
    assert (
        "spark.task.reaper.enabled" not in local
    )  # a task that does not stop is in the server's own JVM there
    assert cluster["spark.task.reaper.enabled"] == "true"
    assert cluster["spark.executor.extraJavaOptions"] == "-Da=1 -Duser.timezone=UTC"


def test_options_of_the_drivers_own_command_line() -> None:
    found = driver_options(
        {"spark.driver.extraClassPath": "/a:/b", "spark.driver.extraJavaOptions": "-Da='b c' -ea"}
    )
    assert found == (["/a:/b"], ["-XX:+UseParallelGC", "-Da=b c", "-ea"])
    assert driver_options({}) == ([], ["-XX:+UseParallelGC"])
    own = {"spark.driver.extraJavaOptions": "-XX:+UseG1GC"}  # two of them end a JVM at once
    assert driver_options(own) == ([], ["-XX:+UseG1GC"])


def test_properties_file_escapes_what_java_would_read_otherwise() -> None:
    text = properties_text({"spark.a": " \\x:=#!ü\U0001f600\t"})
    assert text == "spark.a=\\u0020\\u005cx\\u003a\\u003d\\u0023\\u0021\\u00fc\\ud83d\\ude00\\u0009\n"


@pytest.mark.parametrize(
    ("heap_mb", "cores", "merged_mb"), [(512, 2, 8), (1232, 2, 19), (1024, 64, 4), (64_000, 8, 64)]
)
def test_merged_partitions_fit_a_task_s_share_of_the_heap(heap_mb: int, cores: int, merged_mb: int) -> None:
    found = application("local[*]", {}, Path("/d"), heap_mb << 20, cores)
    assert int(found["spark.sql.adaptive.advisoryPartitionSizeInBytes"]) >> 20 == merged_mb
    assert "spark.sql.adaptive.advisoryPartitionSizeInBytes" not in application("yarn", {}, Path("/d"))


@pytest.mark.parametrize(
    ("rows", "partitions"),
    [(0, 4), (16_000_000, 4), (16_000_001, 16), (64_000_000, 16), (64_000_001, 64), (10**12, 4096)],
)
def test_shuffles_of_more_rows_have_more_partitions(rows: int, partitions: int) -> None:
    assert shuffle_partitions(rows, 4) == partitions

"""What the Spark executor does before, and without, a JVM: the command line, errors, relations, refusals."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from engine.base.executor import EngineLimit
from engine.executors.spark.errors import from_text
from engine.executors.spark.executor import SparkExecutor, compile_text
from engine.executors.spark.gateway import GatewayError, command, start_gateway
from engine.executors.spark.java import java_command
from engine.executors.spark.relations import Inputs, plan_relations
from planner.base.errors import SqlError
from tests.support.lowered import World, sample_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return sample_world(tmp_path_factory.mktemp("spark"))


def executor(world: World, mode: str) -> SparkExecutor:
    return SparkExecutor(master="local[1]", mode=mode, data_dir=world.folder)


def test_switched_off_is_refused_when_a_query_is_prepared(world: World) -> None:
    with pytest.raises(SqlError) as caught:
        executor(world, "off").prepare(world.bind("SELECT a FROM t"), world.catalog)
    assert caught.value.sqlstate == "0A000"
    assert "spark_start = off" in caught.value.message


def test_without_java_only_this_route_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.executors.spark.runtime.java_command", lambda: None)
    spark = executor(world, "lazy")

    async def run() -> None:
        plan = spark.prepare(world.bind("SELECT a FROM t"), world.catalog)
        with pytest.raises(SqlError) as caught:
            await spark.run(plan, world.context())
        assert (caught.value.sqlstate, spark.ready) == ("58000", False)
        assert "no Java 17" in caught.value.message
        await spark.close()

    asyncio.run(run())


class _Ended:
    """A session whose JVM ends while it is asked for something."""

    gateway = SimpleNamespace(alive=True)

    @property
    def context(self) -> Any:
        raise Py4JError("An error occurred while calling o45.sc")


def test_a_jvm_that_ends_before_its_tasks_are_known_is_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = executor(world, "lazy")
    lost: list[object] = []
    ended = _Ended()

    async def live() -> _Ended:
        return ended

    async def run() -> None:
        with pytest.raises(SqlError, match="the Spark JVM ended") as caught:
            await spark.own_tasks(1)
        assert caught.value.sqlstate == "58000"
        await spark.close()

    monkeypatch.setattr(spark.runtime, "live", live)
    monkeypatch.setattr(spark.runtime, "lost", lost.append)
    asyncio.run(run())
    assert lost == [ended]


def test_a_jvm_that_ends_at_once_says_why(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text(
        f"#!{sys.executable}\nimport sys\nprint('no such option', file=sys.stderr)\nsys.exit(3)\n"
    )
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(GatewayError, match="status 3: no such option"):
        start_gateway(str(java), {}, heap_bytes=2**29, work_dir=tmp_path / "spark")
    with pytest.raises(GatewayError, match="No such file"):
        start_gateway(str(tmp_path / "none"), {}, heap_bytes=2**29, work_dir=tmp_path / "spark")


def test_java_is_found_without_one_on_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    found = java_command()
    assert found is not None
    assert os.access(found, os.X_OK)


def test_the_command_line_needs_no_launcher_script_and_shows_no_property(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    file = tmp_path / "properties"
    settings = {
        "spark.authenticate.secret": "hush", "spark.driver.extraClassPath": "/jars/a.jar",
        "spark.driver.extraJavaOptions": "-Da='b c' -XX:+UseZGC",
    }  # fmt: skip
    words = command(
        "/j/java", settings, heap_bytes=2**30, logging_file=tmp_path / "log", properties_file=file
    )
    assert words[0] == "/j/java"
    assert "-Xmx1024m" in words
    assert words[2].split(os.pathsep)[1:] == ["/jars/a.jar", "/etc/hadoop"]
    assert words[-6:] == [
        "-Da=b c", "-XX:+UseZGC", "org.apache.spark.deploy.SparkSubmit", "--properties-file", str(file), "pyspark-shell",
    ]  # fmt: skip
    assert not any("hush" in word for word in words)


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("[DATATYPE_MISMATCH.X] No. SQLSTATE: 42K09\n raise_error(HF!22003:x)", "0A000", "Spark cannot run this query: DATATYPE_MISMATCH.X"),
        ("[USER_RAISED_EXCEPTION] HF!22011:negative length SQLSTATE: P0001", "22011", "negative length"),
        ("Job aborted: x\n[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012", "22012", "division by zero"),
        ("[CAST_INVALID_INPUT] The value 'a' of SQLSTATE: 22018", "22P02", "invalid input syntax"),
        ("Job 3 cancelled part of cancelled job tags hf_7", "57014", "canceling statement due to user request"),
        ("java.lang.OutOfMemoryError: Java heap space", "53200", "out of memory"),
        ("[PARSE_SYNTAX_ERROR] Syntax error at or near 'x'. SQLSTATE: 42601", "0A000", "Spark cannot parse this query: PARSE_SYNTAX_ERROR"),
        ("java.io.FileNotFoundException: /data/part", "58030", "Spark cannot read its files"),
        ("[UNSUPPORTED_SUBQUERY.X] No. SQLSTATE: 0A000", "0A000", "Spark cannot run this query: UNSUPPORTED_SUBQUERY.X"),
    ],
)  # fmt: skip
def test_errors_are_told_by_condition(text: str, sqlstate: str, message: str) -> None:
    found = from_text(text)
    assert (found.sqlstate, found.message) == (sqlstate, message)


def test_an_error_is_never_told_by_a_value_in_its_text() -> None:
    found = from_text("[CAST_INVALID_INPUT] The value 'was cancelled' of the type SQLSTATE: 22018")
    assert found.sqlstate == "22P02"


def relations(world: World, sql: str) -> tuple[dict[str, str], Inputs]:
    lowered = compile_text(world.bind(sql), None).lowered
    inputs = Inputs("hf_1", world.folder)
    return plan_relations(lowered.relations, world.snapshots, inputs), inputs


def test_parts_and_hot_rows_are_one_scan(world: World) -> None:
    tables, inputs = relations(world, "SELECT a, c FROM t")
    (item,) = inputs.files
    assert inputs.tables == []
    assert item.holed
    assert item.hot.column_names == ["c1", "c3"]
    # All columns of the parts, so that Spark knows how much of a file those that are read are.
    assert {"c1 INT", "c3 DECIMAL(10, 2)", "s_row_id BIGINT"} < set(item.ddl.replace(", c", ";c").replace(", s", ";s").split(";"))  # fmt: skip
    assert list(tables.values()) == [
        f"(SELECT CAST(c1 AS INT) AS c1, CAST(c3 AS DECIMAL(10, 2)) AS c3 FROM {item.view} WHERE NOT s_gone)"
    ]


def test_a_table_that_is_read_twice_is_handed_over_once(world: World) -> None:
    tables, inputs = relations(world, "SELECT x.a, y.c FROM t x, t y WHERE x.b = y.b")
    assert len(inputs.files) == 1
    assert len(tables) == 2
    assert all(f"FROM {inputs.files[0].view} " in sql for sql in tables.values())
    assert inputs.files[0].hot.column_names == ["c1", "c2", "c3"]


def test_columns_in_their_exact_form_are_refused_where_they_are_read(world: World) -> None:
    rows = [["1", "NaN", "1"], ["2", "NaN", "1e50"], ["3", "2", "3"], ["4", "7", "6"]]
    world.table("odd", "a int", "p numeric(4,1)", "n numeric", rows=rows)
    for query in ("SELECT sum(p) FROM odd", "SELECT a FROM odd WHERE n > 1"):
        with pytest.raises(EngineLimit, match="more than 38 digits, or NaN") as refused:
            relations(world, query)
        assert refused.value.sqlstate == "0A000"
    _, inputs = relations(world, "SELECT sum(a) FROM odd")
    (item,) = inputs.files
    assert "c1 INT" in item.ddl
    assert "c2" not in item.ddl
    assert "c3" not in item.ddl


def test_past_a_number_of_rows_hidden_ones_are_joined(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.executors.spark.relations.MAX_BITS", 1)
    tables, inputs = relations(world, "SELECT a FROM t")
    (sql,) = tables.values()
    assert "BROADCAST(h)" in sql
    assert "LEFT ANTI JOIN" in sql
    (hidden,) = inputs.tables
    assert hidden.table.column_names == ["file", "pos"]


def test_parameters_become_literals_of_their_own_text(world: World) -> None:
    spark = executor(world, "lazy")
    plan = spark.prepare(world.bind("SELECT a FROM t WHERE e = $1", (25,)), world.catalog)
    texts: list[Any] = [plan.text((value,)).lowered.text for value in ("it's", "\\", "it's")]
    assert texts[0] == texts[2] != texts[1]
    assert "'it\\'s'" in texts[0]
    assert "'\\\\'" in texts[1]


def test_a_pattern_that_is_a_parameter_is_known_when_the_query_runs(world: World) -> None:
    plan = executor(world, "lazy").prepare(
        world.bind("SELECT a FROM t WHERE e LIKE $1", (25,)), world.catalog
    )
    assert "LIKE 'a%'" in plan.text(("a%",)).lowered.text


@pytest.mark.parametrize(
    ("args", "made"),
    [
        ("1, 20000", "range("),
        ("20000, 1, -1", "range("),
        ("1, 10", "sequence("),
        (
            "1, 9223372036854775807",
            "sequence(",
        ),  # the end of range() is left out, and there is none after this
        ("1, 20000, 0", "raise_error("),
    ],
)
def test_long_series_of_known_numbers_hold_no_array(world: World, args: str, made: str) -> None:
    text = compile_text(world.bind(f"SELECT g FROM generate_series({args}) g"), None).lowered.text
    assert made in text
    assert ("range(" in text) == (made == "range(")


@pytest.mark.parametrize(
    ("quotient", "ways"),
    [
        ("c / a", ""), ("avg(c)", ""), ("c / c", ""), ("a::numeric / 7.5", ""),  # so few digits that one way does for all
        ("c / b", "short long"), ("d / a", "long"), ("avg(d)", "long"), ("c / d", "long"),
    ],
)  # fmt: skip
def test_quotients_have_the_shortest_ways_that_their_types_allow(
    world: World, quotient: str, ways: str
) -> None:
    text = compile_text(world.bind(f"SELECT q FROM (SELECT {quotient} AS q FROM t) s"), None).lowered.text
    assert ("< CAST('10000000000000' AS DECIMAL(16, 0))" in text) == ("short" in ways)
    assert ("aggregate(sequence(1, 4)" in text) == ("long" in ways)


def test_placeholders_inside_texts_stay(world: World) -> None:
    text = compile_text(world.bind("SELECT a FROM t WHERE e = 'hf_rel_1 \\ '' hf_rel_1'"), None)
    made = text.with_tables({"hf_rel_1": "(TABLE)"})
    assert made.count("hf_rel_1") == 2
    assert made.count("(TABLE)") == 1

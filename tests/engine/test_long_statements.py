"""Very long statements: an answer or a clean refusal, planned beside the event loop, in steps that grow with their length."""

from __future__ import annotations

import asyncio
import gc
import threading
import traceback
import weakref
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.base.loop import collector
from engine.base.loop.collector import FREED_PARTS, LOOKS, RARE_S, Collector
from engine.base.slices import SLICE_CELLS, SLICE_ROWS, in_slices
from engine.changes.constraints.foreign_key import CHUNK_KEYS, ForeignKey
from engine.connection import backend, prepared, simple
from engine.connection.simple import STATEMENTS_IN_A_ROW
from engine.executors.index.executor import IndexExecutor
from engine.executors.index.from_plan import FromPlanner
from engine.plans import planning
from engine.plans.planning import LONG_TEXT
from engine.session import interrupts
from pgwire import give_way
from pgwire.backend import settled
from pgwire.release import release_error
from planner import parse as parse_module
from planner.evaluate import unit as evaluate_unit
from sqllogictest.client import ServerError
from tests.support.engine import Failed, Session, open_database
from tests.support.fields import connect
from tests.support.server import ServerProcess
from txn.persist.memory import MemoryDisk


def joined(tables: int, how: str = " JOIN hub h{} USING (id)") -> str:
    return "SELECT count(*) FROM hub h0" + "".join(how.format(n) for n in range(1, tables))


MANY: dict[str, tuple[str, object]] = {
    "1,000 joins": (joined(1000), "1"),
    "1,000 lateral items": (joined(1000, ", LATERAL (SELECT h0.id) l{}"), "1"),
    "10,000 joins": (joined(10_000), "54001"),
    "5,000 expressions in IN": (f"SELECT count(*) FROM hub WHERE id IN ({','.join(f'{n}+0' for n in range(5000))})", "1"),
    "100,000 numbers in IN": (f"SELECT count(*) FROM hub WHERE id IN ({','.join(map(str, range(100_000)))})", "1"),
    "1,600 columns": (f"CREATE TEMP TABLE wide ({','.join(f'c{n} int' for n in range(1600))})", None),
    "1,601 columns": (f"CREATE TEMP TABLE wider ({','.join(f'c{n} int' for n in range(1601))})", "54011"),
    "1,665 columns of a result": (f"SELECT {','.join('1' for _ in range(1665))}", "54011"),
    "10,000 parentheses": (f"SELECT {'(' * 10_000}1{')' * 10_000}", "1"),
    "10,000 sub-selects": (f"SELECT {'(SELECT ' * 10_000}1{')' * 10_000}", "54001"),
    "10,000 CASEs in each other": (f"SELECT {'CASE WHEN true THEN ' * 10_000}1{' END' * 10_000}", "54001"),
    "100,000 NOTs": (f"SELECT {'NOT ' * 100_000}true", "54001"),
    "100,000 arrays in each other": (f"SELECT {'ARRAY[' * 100_000}1{']' * 100_000}", "54001"),
    "10,000 brackets of a jsonb": (f"SELECT '{'[' * 10_000}{']' * 10_000}'::jsonb", "54001"),
}  # fmt: skip


@pytest.mark.parametrize("name", MANY)
def test_it_is_answered_or_refused_and_the_next_one_runs(server: ServerProcess, name: str) -> None:
    sql, expected = MANY[name]
    client = connect(server.port, timeout_s=280)
    client.run("CREATE TEMP TABLE hub (id int PRIMARY KEY)")
    client.run("INSERT INTO hub VALUES (1)")
    got: object
    try:
        rows = client.run(sql).rows
        got = rows[0][0] if rows else None
    except ServerError as error:
        got = error.sqlstate
    assert got in (expected, "54001")  # how deep is too deep depends on the platform
    assert client.run("SELECT count(*) FROM hub").rows == [("1",)]
    client.close()


def test_a_long_statement_is_compiled_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    prepare = IndexExecutor.prepare

    def watched(self: IndexExecutor, *args: Any) -> Any:
        threads.append(threading.get_ident())
        return prepare(self, *args)

    monkeypatch.setattr(IndexExecutor, "prepare", watched)

    async def main() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        await session.run("CREATE TABLE hub (id int PRIMARY KEY, n int)")
        numbers = ",".join(map(str, range(LONG_TEXT)))
        for sql in (
            f"SELECT count(*) FROM hub WHERE id IN ({numbers})",
            f"INSERT INTO hub SELECT n, n FROM unnest(ARRAY[{numbers}]) n WHERE n < 3",
            f"UPDATE hub SET n = 0 WHERE id IN ({numbers})",
        ):
            threads.clear()
            await session.run(sql)
            assert threads, sql
            assert threading.get_ident() not in threads, sql
        assert await session.run("SELECT count(*), sum(n) FROM hub") == [("3", "0")]
        await database.close()

    asyncio.run(main())


@pytest.mark.parametrize("how", [" JOIN hub h{} USING (id)", ", hub h{}", ", LATERAL (SELECT h0.id) l{}"])
def test_ordering_joins_looks_at_each_table_a_few_times(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    rank: Callable[..., Any] = FromPlanner._rank

    def counted(*args: Any) -> Any:
        nonlocal looks
        looks += 1
        return rank(*args)

    monkeypatch.setattr(FromPlanner, "_rank", counted)

    async def main() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        await session.run("CREATE TABLE hub (id int PRIMARY KEY)")
        await session.run("SET executor = index")
        await session.run("INSERT INTO hub VALUES (1)")
        assert await session.run(joined(80, how)) == [("1",)]
        await database.close()

    asyncio.run(main())
    assert looks < 80 * 5


@pytest.mark.parametrize("cancelled", [False, True])
def test_what_a_long_statement_was_at_when_it_failed_goes_in_slices(
    cancelled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: list[set[str]] = []

    def watched(error: BaseException) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        released.append({frame.name for frame in frames})
        release_error(error)
        assert error.__traceback__ is None

    monkeypatch.setattr(backend, "release_error", watched)
    monkeypatch.setattr(interrupts, "release_error", watched)

    async def main() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        running = asyncio.create_task(session.run("SELECT ('{' || repeat('1000,', 30000) || 'x}')::int[]"))
        if cancelled:
            for _ in range(5):
                await asyncio.sleep(0)
            session.connection.cancel()
        with pytest.raises(Failed) as caught:
            await running
        assert caught.value.report.sqlstate == ("57014" if cancelled else "22P02")
        await database.close()

    asyncio.run(main())
    assert any("run_text" in frames for frames in released), "its frames are freed in one step"


def test_keys_of_a_cascade_are_made_some_at_a_time() -> None:
    constraint = cast("ForeignKey", SimpleNamespace(_to_child=[int]))
    keys: Any = {(str(n),): (str(n),) for n in range(3 * CHUNK_KEYS + 1)}
    making = ForeignKey._child_keys(constraint, keys, True)
    for _ in range(3):
        making.send(None)
    with pytest.raises(StopIteration) as ended:
        making.send(None)
    assert ended.value.value == [(n,) for n in range(3 * CHUNK_KEYS + 1)]


def test_trees_of_long_texts_are_freed_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[int] = []

    def watched(trees: list[object]) -> None:
        released.append(len(trees))

    monkeypatch.setattr(simple, "release_all", watched)
    monkeypatch.setattr(planning, "release_all", watched)

    async def main() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        long = f"SELECT 1 /* {'x' * LONG_TEXT} */"
        assert await session.run(f"{long}; SELECT 2") == [("1",), ("2",)]
        await settled(session.connection.parse("", long, ()))
        await database.close()

    asyncio.run(main())
    assert released == [2, 2, 1]  # plan and outcome of the long one, both trees, the parsed one's tree


def test_others_run_while_many_parameters_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = 0

    def paused() -> None:
        nonlocal pauses
        pauses += 1

    monkeypatch.setattr(prepared, "give_way", paused)
    many = range(3 * prepared.PARAMETERS_AT_ONCE + 1)
    assert list(prepared._in_turns(many)) == list(many)
    assert pauses == 3


def test_what_is_new_is_collected_once_the_process_has_grown_and_no_statement_is_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Ring:
        ring: object = None

    def garbage() -> weakref.ref[Ring]:
        made = Ring()
        made.ring = made
        return weakref.ref(made)

    mib = 1 << 20
    size = 100 * mib
    clock = 0.0
    monkeypatch.setattr(collector, "monotonic", lambda: clock)
    running: list[object] = []
    freed = 0
    made = Collector(lambda: size, lambda: running, 1000 * mib, lambda: freed)
    one = object()

    def is_collected(mibs: float, *statements: object, short: bool = False) -> bool:
        nonlocal size
        old = garbage()
        size, running[:] = int(mibs * mib), statements
        for look in range(LOOKS):
            running[:] = [(look, number) for number in statements] if short else statements
            assert old() is not None
            made.look()
        return old() is None

    try:
        assert not gc.isenabled()
        assert gc.get_freeze_count() > 100_000
        assert not is_collected(107)
        assert not is_collected(108, one)  # what a long statement has made goes with it
        assert is_collected(108)
        assert not is_collected(115)
        assert is_collected(116, one, short=True)
        assert not is_collected(150)  # so much is alive, and is not walked
        assert is_collected(158)
        many = [[] for _ in range(collector.WALKED + 1)]
        assert not is_collected(166)  # nor so many objects, however small
        assert is_collected(174)
        for number in range(
            len(many)
        ):  # each takes the place of one that goes: Python's count stays as it was
            many[number] = []
        assert not is_collected(182)
        assert is_collected(190)
        wide = [None] * (collector.REFERRED_BYTES // 8)
        assert not is_collected(198)  # nor one that refers to so many
        del wide
        assert is_collected(206)
        size = 120 * mib
        made.look()
        assert is_collected(128)  # growth counts from where it was least
        assert not is_collected(1200)
        clock = RARE_S + 1
        assert not is_collected(1300, one, short=True)
        assert is_collected(1400)  # past the limit everything is walked now and then
        assert not is_collected(1500)
        for freed, goes in ((FREED_PARTS - 1, False), (FREED_PARTS, True), (FREED_PARTS + 1, False)):
            old = garbage()
            made.look()  # what went lies between: be the process no larger, and a statement at work
            assert (old() is None) == goes
    finally:
        gc.unfreeze()
        gc.enable()


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_long_conditions_are_compiled_in_pieces(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def watched(source: str, *args: Any) -> Any:
        sizes.append(len(source))
        return compile(source, *args)

    monkeypatch.setattr(evaluate_unit, "compile", watched, raising=False)

    async def main() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        await session.run("CREATE TABLE hub (id int PRIMARY KEY, n int)")
        await session.run("SET executor = index")
        await session.run("INSERT INTO hub VALUES (1, 7), (2, 4000), (3, 30000), (4, NULL)")
        sign = "<>" if word == "AND" else "="
        conditions = f" {word} ".join(f"n {sign} {n}" for n in range(4001))
        found = await session.run(f"SELECT id FROM hub WHERE {conditions} ORDER BY id")
        assert found == ([("3",)] if word == "AND" else [("1",), ("2",)])
        found = await session.run(f"SELECT id, ({conditions}) FROM hub ORDER BY id")
        hits = ("f", "f", "t", None) if word == "AND" else ("t", "t", "f", None)
        assert [row[1] for row in found] == list(hits)
        await database.close()

    asyncio.run(main())
    assert max(sizes) < 4 * evaluate_unit.AT_ONCE  # one function is never cut


def test_many_elements_are_compiled_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        await session.run("CREATE TABLE hub (id int)")
        await session.run("INSERT INTO hub VALUES (999), (-1)")
        listed = ",".join(f"abs(id - id + {n})" for n in range(1000))
        assert await session.run(f"SELECT id FROM hub WHERE id = ANY (ARRAY[{listed}])") == [("999",)]
        assert await session.run(f"SELECT id FROM hub WHERE id IN ({listed})") == [("999",)]
        await database.close()

    asyncio.run(main())


def test_large_trees_are_read_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "SELECT " + ",".join(f"'{n}' || \"é\"" for n in range(3000)) + "; SELECT 1"
    plain = parse_module.parse(text)

    def refused(text: str) -> Any:
        raise AssertionError("decoded in one go")

    monkeypatch.setattr(parse_module, "LARGE_JSON", 1000)
    monkeypatch.setattr(parse_module, "_decode", refused)
    assert parse_module.parse(text) == plain


def test_many_statements_of_one_message_let_others_run() -> None:
    async def main() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        turns = 0
        ended = False

        async def other() -> None:
            nonlocal turns
            while not ended:
                turns += 1
                await asyncio.sleep(0)

        witness = asyncio.ensure_future(other())
        assert len(await session.run(";".join(["SELECT 1"] * 400))) == 400
        ended = True
        await witness
        assert turns > 400 // STATEMENTS_IN_A_ROW - 2
        await database.close()

    asyncio.run(main())


def test_statements_that_define_much_let_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (interrupts, give_way):  # so that it does not depend on how fast the machine is
        monkeypatch.setattr(module, "SLICE_S", 0.0)
    statements = (
        "DO $$ BEGIN FOR i IN 1..20 LOOP EXECUTE format('CREATE TABLE u%s (a int)', i); END LOOP; END $$",
        "ALTER TABLE p ALTER b TYPE text",
        ";".join(f"CREATE TABLE v{n} (a int)" for n in range(12)),
    )

    async def main() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        await session.run("CREATE TABLE p (a int, b varchar(9)) PARTITION BY LIST (a)")
        for n in range(12):
            await session.run(f"CREATE TABLE p{n} PARTITION OF p FOR VALUES IN ({n})")
        for statement in statements:
            turns = 0
            ended = False

            async def other() -> None:
                nonlocal turns
                while not ended:  # the witness ends with its statement
                    turns += 1
                    await asyncio.sleep(0)

            witness = asyncio.ensure_future(other())
            await session.run(statement)
            ended = True
            await witness
            assert turns > 10, statement
        await database.close()

    asyncio.run(main())


def test_wide_rows_are_worked_on_fewer_at_a_time() -> None:
    def worked(items: list[Any]) -> list[int]:
        sizes: list[int] = []

        def work(some: Sequence[Any]) -> Sequence[Any]:
            sizes.append(len(some))
            return some

        assert asyncio.run(in_slices(items, work)) == items
        return sizes

    wide = (0,) * 1000
    assert worked([]) == [0]
    assert worked([(0, 1)] * SLICE_ROWS) == [SLICE_ROWS]
    assert worked([wide] * (SLICE_CELLS // 1000)) == [SLICE_CELLS // 1000]
    for items in ([wide] * 900, [(n, wide) for n in range(900)]):
        assert max(worked(items)) <= SLICE_CELLS // 1000

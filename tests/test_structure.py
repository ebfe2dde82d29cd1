"""``tools/imports.py`` counts what it says it counts."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from engine.server.ports import PORTS
from engine.session.ports import Ports
from planner.base.port import Port
from tools.floors import FLOORS, floor_of, layers, points_up
from tools.imports import (
    LOAD,
    PACKAGES,
    POSTPONED,
    ROOT,
    TYPE,
    Module,
    _import_nodes,
    _wants_session_alone,
    circles,
    edges_of,
    modules,
    upward,
)

SOURCE = """
import a
if TYPE_CHECKING:
    from b import c
else:
    import d
try:
    import e
except ImportError:
    pass
def f(conn):
    import g
    return conn.session, conn.session.h
class H:
    import i
    def j(self, conn):
        from k import l
        return conn
"""


def test_imports_are_told_apart_by_when_they_run() -> None:
    found = [(when, ast.unparse(node)) for when, node in _import_nodes(ast.parse(SOURCE).body, LOAD)]
    assert found == [
        (LOAD, "import a"), (TYPE, "from b import c"), (LOAD, "import d"), (LOAD, "import e"), (POSTPONED, "import g"),
        (LOAD, "import i"), (POSTPONED, "from k import l"),
    ]  # fmt: skip


def test_who_wants_a_session_alone() -> None:
    functions = [node for node in ast.walk(ast.parse(SOURCE)) if isinstance(node, ast.FunctionDef)]
    assert {node.name: _wants_session_alone(node) for node in functions} == {"f": True, "j": False}


def test_circles_are_found_however_long() -> None:
    around = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"f", "a"}, "g": set()}
    assert circles(around) == [["a", "b", "c"], ["d", "e"]]
    assert circles({str(n): {str((n + 1) % 5000)} for n in range(5000)}) == [sorted(map(str, range(5000)))]


def test_edges_are_of_one_package_and_of_the_kinds_asked_for() -> None:
    found = {
        name: Module(name, Path(), "", ast.Module([], []), imports)
        for name, imports in {
            "p.a": [(LOAD, "p.b.c"), (TYPE, "p.d"), (LOAD, "q.x")], "p.b.c": [(POSTPONED, "p.a")], "p.d": [], "q.x": [],
        }.items()
    }  # fmt: skip
    assert edges_of(found, "p", (LOAD,), lambda m: m.name) == {"p.a": {"p.b.c"}, "p.b.c": set(), "p.d": set()}
    assert edges_of(found, "p", (LOAD, POSTPONED), lambda m: m.folder) == {
        "p.a": {"p.b"}, "p.b": {"p.a"}, "p.d": set()
    }  # fmt: skip


def test_each_module_has_a_floor() -> None:
    names = set(modules())
    for name in names - set(FLOORS):
        floor_of(name)
    for package, floors in FLOORS.items():
        for floor in (name for together in floors for name in together.split(" : ")):
            pattern = f"{package}.{floor}"
            assert any(n == pattern or n.startswith(pattern + ".") for n in names), f"nothing is {pattern}"


def test_no_import_of_the_engine_points_up_not_even_for_types() -> None:
    assert [edge for edge in upward(modules()) if edge[1].startswith("engine.")] == []


def test_a_port_that_nobody_fills_lets_no_server_start() -> None:
    for port in fields(Ports):
        assert port.default is MISSING, port.name
        assert port.default_factory is MISSING, port.name
        answer = getattr(PORTS, port.name)
        assert callable(answer) or (isinstance(answer, dict) and answer), port.name
    with pytest.raises(TypeError, match="waiting_checks"):
        Ports(
            **{
                port.name: getattr(PORTS, port.name)
                for port in fields(Ports)
                if port.name != "waiting_checks"
            }
        )


def test_what_is_asked_of_the_binder_is_answered_once_it_is_imported() -> None:
    assert subprocess.run(
        [
            sys.executable,
            "-c",
            "from planner.conversion import ports\n"
            "assert not any(port.supplied for port in ports.PORTS)\n"
            "import planner.bind\n"
            "from planner.bind import recursion\n"
            "assert all(port.supplied for port in (*ports.PORTS, *recursion.PORTS))",
        ],
        cwd=ROOT,
        check=False,
    ).returncode == 0  # fmt: skip


def test_a_port_that_nobody_answers_for_is_an_error_and_so_is_a_second_answer() -> None:
    port: Port[Callable[[int], int]] = Port("a number")
    with pytest.raises(RuntimeError, match="nobody supplies a number"):
        port.call(1)
    port.supply(abs)
    assert port.call(-1) == 1
    with pytest.raises(RuntimeError, match="twice"):
        port.supply(round)


@pytest.mark.parametrize("package", ["pgwire", "planner", "txn", "engine"])
def test_the_contract_of_import_linter_has_the_same_floors(package: str) -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [contract] = [c for c in contracts if c["type"] == "layers" and c["containers"] == [package]]
    assert tuple(contract["layers"]) == layers(package)
    parts = any(
        "." in floor for floor in FLOORS[package]
    )  # what folders there are, import-linter asks for one depth alone
    assert parts or contract["exhaustive"], "a new folder is given a place"


def test_what_points_up() -> None:
    assert points_up("engine.catalog.state", "engine.definitions.table.alter")
    assert not points_up("engine.definitions.table.alter", "engine.catalog.state")
    assert not points_up("engine.definitions.table.alter", "engine.definitions.functions"), "one floor"
    assert not points_up("engine.definitions.functions", "engine"), "the package itself is for all"
    assert floor_of("planner.lower.kit.build") == "lower.kit", "the longest name decides"
    with pytest.raises(KeyError):
        floor_of("engine.nobody_knows_it")


def test_product_code_has_no_assert_since_python_can_leave_them_out() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for package in (*PACKAGES, "sqllogictest")
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assert)
    ]
    assert found == [], (
        "an impossible state is raised as AssertionError, with a sentence that says what is impossible"
    )

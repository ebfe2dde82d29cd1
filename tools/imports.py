"""How the packages hang together, counted: circles of imports, postponed imports, what is untyped, what is said in more than one place.

python tools/imports.py            a table: what is counted, now, and what docs/evidence/structure.json allows
python tools/imports.py --check    fails where a figure is higher than allowed, or nothing is
python tools/imports.py --keep     writes the figures that have fallen; a higher one it refuses
python tools/imports.py --circles  the modules of each circle of more than two, package by package
python tools/imports.py --floors   the imports that point up, floor by floor (tools/floors.py)

An import is of load time (module level), type-only (under ``if TYPE_CHECKING``) or postponed (in a function). Only imports among the project's own
packages count. A circle is a strongly connected component of modules.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

if __package__:
    from tools.floors import floor_of, points_up
    from tools.wrap_docs import GENERATED
else:  # run as a script
    from floors import floor_of, points_up
    from wrap_docs import GENERATED

ROOT: Final = Path(__file__).resolve().parent.parent
KEPT: Final = ROOT / "docs" / "evidence" / "structure.json"
PACKAGES: Final = ("pgwire", "planner", "txn", "engine")
LOAD, TYPE, POSTPONED = "load", "type", "postponed"
MOST_MODULES: Final = 30
WIDTH: Final = 120
HUBS: Final = ("Session", "Connection", "Database")
UNTYPED: Final = ("session", "reader", "node", "store")
_KINDS: Final = re.compile(r"""\bkind (?:==|!=|in|not in) ["'][a-zA-Z]+["']""")
_OIDS: Final = re.compile(r"^_?PG_[A-Z_]+\b[^=\n]*= *\d+", re.MULTILINE)


@dataclass(slots=True)
class Module:
    """A module: its tree, its text, and whom it imports, by when."""

    name: str
    path: Path
    text: str
    tree: ast.Module
    imports: list[tuple[str, str]] = field(default_factory=list)

    @property
    def package(self) -> str:
        """The top-level package that it is in."""
        return self.name.partition(".")[0]

    @property
    def folder(self) -> str:
        """The folder within a package; a module at its root is a folder of its own."""
        return ".".join(self.name.split(".")[:2])


def modules() -> dict[str, Module]:
    """Return the modules of the packages with their imports among themselves."""
    found: dict[str, Module] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text = path.read_text(encoding="utf-8")
            found[name] = Module(name, path, text, ast.parse(text))
    for module in found.values():
        module.imports = [(when, target) for when, target in _imports(module, found) if target != module.name]
    return found


def _imports(module: Module, known: Mapping[str, Module]) -> Iterator[tuple[str, str]]:
    for when, node in _import_nodes(module.tree.body, LOAD):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        else:
            source = node.module or ""
            named = [
                inner if (inner := f"{source}.{alias.name}") in known else source for alias in node.names
            ]
        for name in dict.fromkeys(named):
            if name in known:
                yield when, name


def _import_nodes(body: Iterable[ast.AST], when: str) -> Iterator[tuple[str, ast.Import | ast.ImportFrom]]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield when, node
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _import_nodes(ast.iter_child_nodes(node), POSTPONED)
        elif isinstance(node, ast.If) and when == LOAD and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _import_nodes(node.body, TYPE)
            yield from _import_nodes(node.orelse, when)
        else:
            yield from _import_nodes(ast.iter_child_nodes(node), when)


def circles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one node, the largest first (Tarjan's algorithm, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[list[str]] = []
    for root in edges:
        if root in index:
            continue
        work: list[tuple[str, Iterator[str]]] = [(root, iter(sorted(edges[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in edges:
                    continue
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(sorted(edges[target]))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    component = stack[at:]
                    del stack[at:]
                    on_stack.difference_update(component)
                    if len(component) > 1:
                        found.append(sorted(component))
    return sorted(found, key=len, reverse=True)


def edges_of(
    found: Mapping[str, Module], package: str, kinds: Iterable[str], name: Callable[[Module], str]
) -> dict[str, set[str]]:
    """Return who imports whom within a package, modules called by ``name``."""
    wanted = set(kinds)
    edges: dict[str, set[str]] = {name(m): set() for m in found.values() if m.package == package}
    for module in found.values():
        if module.package != package:
            continue
        for when, target in module.imports:
            other = found[target]
            if when in wanted and other.package == package and name(other) != name(module):
                edges[name(module)].add(name(other))
    return edges


def upward(found: Mapping[str, Module]) -> Iterator[tuple[str, str, str]]:
    """Yield the imports within a package that point up: of when, who, whom. Raises KeyError for a module without a floor."""
    for module in found.values():
        for when, target in module.imports:
            if found[target].package == module.package and points_up(module.name, target):
                yield when, module.name, target


def figures(found: Mapping[str, Module]) -> dict[str, int]:
    """Return every figure by what it counts."""
    counted: dict[str, int] = {}
    for package in PACKAGES:
        every = circles(edges_of(found, package, (LOAD, TYPE, POSTPONED), lambda m: m.name))
        counted[f"largest circle of modules: {package}"] = len(every[0]) if every else 0
    for package in PACKAGES:
        edges = edges_of(found, package, (LOAD,), lambda m: m.folder)
        around = circles(edges)
        counted[f"folders in circles at load time: {package}"] = sum(map(len, around))
        pairs = sum(a < b and a in edges[b] for a in edges for b in edges[a])
        counted[f"pairs of folders that import each other at load time: {package}"] = pairs
    for package in PACKAGES:
        mine = [m for m in found.values() if m.package == package]
        counted[f"postponed imports: {package}"] = sum(w == POSTPONED for m in mine for w, _ in m.imports)
    up = Counter((found[who].package, when) for when, who, _ in upward(found))
    for package in PACKAGES:
        counted |= {
            f"imports of {package} that point up: {when}": up[package, when]
            for when in (LOAD, TYPE, POSTPONED)
        }
    for hub, count in _type_only_hubs(found).items():
        counted[f"type-only imports of {hub}"] = count
    counted["files that name CreateTable"] = sum(
        bool(re.search(r"\bCreateTable\b", m.text)) for m in found.values()
    )
    counted["files that type an oid of a catalog"] = sum(bool(_OIDS.search(m.text)) for m in found.values())
    counted["kinds of relations and the like as bare characters"] = sum(
        len(_KINDS.findall(m.text)) for m in found.values()
    )
    counted |= _of_trees(found)
    counted["folders of more than 30 modules"] = len(_flat())
    counted["lines of code over 120 characters"] = _wide((ROOT / p).rglob("*.py") for p in PACKAGES)
    counted["lines of docs over 120 characters"] = _wide(
        [
            (
                path
                for path in (ROOT / "docs").rglob("*.md")
                if "decisions" not in path.parts and str(path.relative_to(ROOT)) not in GENERATED
            )
        ]
    )
    return counted


def _type_only_hubs(found: Mapping[str, Module]) -> dict[str, int]:
    counted = dict.fromkeys(HUBS, 0)
    for module in found.values():
        for when, node in _import_nodes(module.tree.body, LOAD):
            if when == TYPE and isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if alias.name in counted:
                        counted[alias.name] += 1
    return counted


def _of_trees(found: Mapping[str, Module]) -> dict[str, int]:
    """Return what is counted by nodes: Any, arguments that are Any, asserts, functions that want a session of a connection."""
    counted: Counter[str] = Counter()
    for module in found.values():
        inside = module.name.startswith("engine.connection")
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Name) and node.id == "Any":
                counted["names of Any"] += 1
            elif isinstance(node, ast.Assert):
                counted["bare asserts"] += 1
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                    any_ = isinstance(arg.annotation, ast.Name) and arg.annotation.id == "Any"
                    if any_ and arg.arg in UNTYPED:
                        counted[f"arguments {arg.arg}: Any"] += 1
                if not inside and _wants_session_alone(node):
                    counted["functions that take a connection and use its session alone"] += 1
    return {
        name: counted[name]
        for name in (
            "names of Any", *(f"arguments {name}: Any" for name in UNTYPED), "bare asserts",
            "functions that take a connection and use its session alone",
        )
    }  # fmt: skip


def _wants_session_alone(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    if not any(arg.arg == "conn" for arg in function.args.args):
        return False
    uses = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == "conn"]
    of_session = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and node.attr == "session"
        and isinstance(node.value, ast.Name) and node.value.id == "conn"
    ]  # fmt: skip
    return len(uses) == len(of_session) > 0


def _flat() -> dict[str, int]:
    counted: dict[str, int] = defaultdict(int)
    for package in (*PACKAGES, "tests"):
        for path in (ROOT / package).rglob("*.py"):
            counted[str(path.parent.relative_to(ROOT))] += 1
    return {folder: count for folder, count in counted.items() if count > MOST_MODULES}


def _wide(folders: Iterable[Iterable[Path]]) -> int:
    return sum(
        len(line) > WIDTH
        for folder in folders
        for path in folder
        for line in path.read_text(encoding="utf-8").splitlines()
    )


def main(words: list[str]) -> int:
    """Run it; returns the exit status."""
    found = modules()
    if "--circles" in words:
        for package in PACKAGES:
            for circle in circles(edges_of(found, package, (LOAD, TYPE, POSTPONED), lambda m: m.name)):
                if len(circle) > 2:
                    print(f"{package}: {len(circle)}\n  " + "\n  ".join(circle))
        return 0
    if "--floors" in words:
        for when, who, whom in sorted(upward(found)):
            print(f"{when:9} {floor_of(who)}: {who} -> {whom} ({floor_of(whom)})")
        return 0
    if "--check" in words and not KEPT.exists():
        print(f"nothing says what is allowed: {KEPT.relative_to(ROOT)} is made by --keep", file=sys.stderr)
        return 1
    now = figures(found)
    allowed: dict[str, int] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    higher = {name: count for name, count in now.items() if count > allowed.get(name, count)}
    if "--keep" in words:
        kept = {name: min(count, allowed.get(name, count)) for name, count in now.items()}
        KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    if "--check" not in words:
        for name, count in now.items():
            print(f"{count:6} {allowed.get(name, count):6}  {name}")
    for name, count in higher.items():
        print(f"higher than it was: {name}: {count}, {allowed[name]} are allowed", file=sys.stderr)
    missing = allowed.keys() ^ now.keys() if allowed else set()
    for name in sorted(missing):
        print(f"not in both: {name}", file=sys.stderr)
    return 1 if higher or (missing and "--check" in words) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

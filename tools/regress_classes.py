"""PostgreSQL's regression scripts, statement by statement: equal, refused, a consequence of that, listed, or open.

pgregress_run.py … --json run.json --keep 100000        the run (docs/testing.md, Suites of others)
python tools/regress_classes.py run.json                a table by script
python tools/regress_classes.py run.json --open [NAME]  what is open, with both answers

equal     the same output, white space aside
refused   an error that names what is not supported (0A000)
follows   names an object whose definition was refused or is not as the script wanted it, or in a block that failed so
plan      EXPLAIN: the plans are PostgreSQL's own
order     the same rows where no ORDER BY fixes their order, or beside equal ones
listed    a difference that is meant, with its reason in regress_listed.txt (script, line, reason; * for all lines)
open      none of these
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

CLASSES = ("equal", "refused", "follows", "plan", "order", "listed", "open")
LISTED = Path(__file__).with_name("regress_listed.txt")
_NAME = r'("[^"]+"|[\w.$]+)'
_OBJECTS = (
    "table|view|function|procedure|type|trigger|index|aggregate|operator|rule|domain|statistics|policy|server|cast|role|user|group|"
    "schema|collation|publication|extension|sequence|conversion|text search \\w+"
)
_DEFINES = re.compile(
    rf"\b(?:create|alter|drop)\s+(?:or\s+replace\s+)?(?:(?:global|local|temp|temporary|unlogged|unique|materialized|foreign|constraint|"
    rf"recursive|event)\s+)*(?:{_OBJECTS})\s+(?:concurrently\s+)?(?:if\s+(?:not\s+)?exists\s+)?(?:only\s+)?{_NAME}",
    re.IGNORECASE,
)
_CHANGES = re.compile(
    rf"\b(?:insert\s+into|update|delete\s+from|truncate|copy|merge\s+into|attach\s+partition|declare|prepare|into)\s+(?:only\s+)?{_NAME}",
    re.IGNORECASE,
)
_ON = re.compile(
    rf"\bcreate\s+(?:or\s+replace\s+)?(?:constraint\s+)?(?:trigger|rule)\b.*?\b(?:on|to)\s+{_NAME}",
    re.I | re.S,
)
_WORDS = frozenset(
    [
        "if",
        "not",
        "exists",
        "select",
        "set",
        "with",
        "of",
        "on",
        "for",
        "from",
        "to",
        "as",
        "only",
        "values",
        "function",
        "table",
    ]
)
_MISSING = re.compile(r"ERROR:.*\bdoes not exist")
_REFUSED = re.compile(r"ERROR:.*\b(?:is|are) not supported")


def changed_names(sql: str) -> set[str]:
    """Return the objects that a statement defines or changes, in lower case, without schemas."""
    found = [m[1] for pattern in (_DEFINES, _CHANGES, _ON) for m in pattern.finditer(sql)]
    return {name.strip('"').lower().split(".")[-1] for name in found} - _WORDS


def words(text: str) -> set[str]:
    """Return the words of a text in lower case."""
    return {word.lower() for word in re.findall(r"[A-Za-z_][\w$]*", text)}


def listed() -> dict[tuple[str, str], str]:
    """Return the reasons of regress_listed.txt by script and line."""
    found = {}
    for row in LISTED.read_text().splitlines():
        if row and not row.startswith("#"):
            name, line, reason = row.split(maxsplit=2)
            found[name, line] = reason
    return found


def _is_missing(item: dict[str, Any]) -> bool:
    """Tell whether something is not there that is in PostgreSQL: what the set-up could not make, or an earlier script."""
    return bool(_MISSING.search(item["actual"] or "")) and not _MISSING.search(item["expected"])


def classified(
    script: dict[str, Any], reasons: dict[tuple[str, str], str]
) -> list[tuple[str, dict[str, Any]]]:
    """Return a script's statements that are not equal, each with its class; in the script's order."""
    tainted: set[str] = set()
    found = []
    for item in script["failures"]:
        sql, actual = item["sql"], item["actual"] or ""
        touched = words(sql) | words(actual)
        if _REFUSED.search(actual):
            kind = "refused"
        elif (script["name"], str(item["line"])) in reasons or (script["name"], "*") in reasons:
            kind = "listed"
        elif item["kind"] == "explain":
            kind = "plan"
        elif "current transaction is aborted" in actual or touched & tainted or _is_missing(item):
            kind = "follows"
        elif item["verdict"] == "rows":
            kind = "order"
        else:
            kind = "open"
        if kind in ("refused", "follows"):
            tainted |= changed_names(sql)
        found.append((kind, item))
    return found


def main() -> None:
    """Print the table, or what is open."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="the JSON file of a run")
    parser.add_argument("names", nargs="*", help="scripts")
    parser.add_argument("--open", action="store_true", help="print what is open")
    options = parser.parse_args()
    reasons = listed()
    total: Counter[str] = Counter()
    if not options.open:
        print(f"| script | {' | '.join(CLASSES)} |\n| --- |{' --- |' * len(CLASSES)}")
    for script in json.loads(options.run.read_text())["scripts"]:
        if options.names and script["name"] not in options.names:
            continue
        found = classified(script, reasons)
        counts = Counter(kind for kind, _ in found)
        counts["equal"] = sum(kind["exact"] for kind in script["kinds"].values())
        total.update(counts)
        if options.open:
            for kind, item in found:
                if kind == "open":
                    print(
                        f"== {script['name']}:{item['line']}\n{item['sql']}\n-- PostgreSQL\n{item['expected']}\n-- here\n{item['actual']}\n"
                    )
        else:
            print(f"| `{script['name']}` | {' | '.join(str(counts[kind]) for kind in CLASSES)} |")
    if not options.open:
        print(f"| together | {' | '.join(str(total[kind]) for kind in CLASSES)} |")


if __name__ == "__main__":
    main()

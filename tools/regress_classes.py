"""PostgreSQL's regression scripts, statement by statement: equal, refused, a consequence of that, listed, or open.

pgregress_run.py … --json run.json --keep 100000              the run of SUITE (docs/internals/testing.md, Suites of others)
python tools/regress_classes.py run.json SUITE                a table by script
python tools/regress_classes.py run.json SUITE --open [NAME]  what is open, with both answers

equal     the same output, white space aside
refused   an error that names what is not supported (0A000)
follows   names an object whose definition was refused or is not as the script wanted it, or in a block that failed so;
          or PostgreSQL's answer names such an object, which is missing from the one here
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
    rf"\bcreate\s+(?:or\s+replace\s+)?(?:(?:constraint\s+)?trigger\b.*?\bon|rule\b.*?\bto|statistics\b.*?\bfrom)\s+{_NAME}",
    re.I | re.S,
)
_GRANTS = re.compile(
    r"^\s*(?:grant|revoke)\b.*?\bon\s+(?!language\b)(?:(?:all\s+)?\w+\s+)??([\w.]+(?:\s*\([^)]*\))?(?:\s*,\s*[\w.]+(?:\s*\([^)]*\))?)*)"
    r"\s+(?:to|from)\b",
    re.IGNORECASE | re.DOTALL,
)
_BLOCK = re.compile(r"^\s*(begin|start|commit|end|rollback|abort)\b(?!\s+to\b)", re.IGNORECASE)
_PARENTS = re.compile(r"\binherits\s*\(([^)]*)\)|\binherit\s+([\w.]+)", re.IGNORECASE)
_ENDS = re.compile(
    r"""(?:'(?:[^']|'')*'|"[^"]*"|--[^\n]*|/\*.*?\*/|(\$\w*\$).*?\1|[^;'"$/-]|[$/-])*;?""", re.S
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
_COMMENT = re.compile(r"('(?:[^']|'')*')|--[^\n]*|/\*.*?\*/", re.S)
_CREATES = re.compile(
    r"\s*create\s+(?:(?:temp|temporary|unlogged)\s+)?(?:table|view|function|procedure|type|domain|sequence)\s",
    re.IGNORECASE,
)
_SHORT = re.compile(
    r"\b(?:from|join|into|update|table|view|on|only|to|in|of|fetch|move|close|execute)\s+([A-Za-z_]\w?)\b(?!\.)",
    re.IGNORECASE,
)
_REFUSED_DEFINITIONS = re.compile(
    r"^\s*create\s+(?:(?:or\s+replace\s+)?(?:aggregate|rule)|operator)\b|\binherits\s*\(", re.IGNORECASE
)
_MISSING = re.compile(r"ERROR:.*\bdoes not exist")
_REFUSED = re.compile(r"ERROR:.*\b(?:is|are) not supported")


def without_comments(sql: str) -> str:
    """Return a statement without its comments."""
    return _COMMENT.sub(lambda match: match[1] or " ", sql)


def changed_names(sql: str) -> set[str]:
    """Return the objects that a statement defines or changes, in lower case, without schemas.

    Parents are among them: what is in a child is in PostgreSQL's answers about its parent.
    """
    sql = without_comments(sql)
    found = [m[1] for pattern in (_DEFINES, _CHANGES, _ON) for m in pattern.finditer(sql)]
    for granted in _GRANTS.finditer(sql):
        found += (name.strip() for name in re.sub(r"\([^)]*\)", "", granted[1]).split(","))
    for parents in _PARENTS.finditer(sql):
        found += (name.strip() for name in (parents[1] or parents[2]).split(","))
    return {name.strip('"').lower().split(".")[-1] for name in found} - _WORDS


def words(sql: str) -> set[str]:
    """Return the words of a statement in lower case, without its comments; short ones only where a relation may stand."""
    text = without_comments(sql)
    long = re.findall(r"[A-Za-z_][\w$]{2,}", text)
    return {word.lower() for word in (*long, *_SHORT.findall(text))}


def statements(text: str) -> list[tuple[int, str]]:
    """Return a script's statements with their lines; psql's own commands and COPY's data are part of the next one's text."""
    found, line = [], 1
    for match in _ENDS.finditer(text):
        start = line + len(match[0][: len(match[0]) - len(match[0].lstrip())].splitlines())
        found.append((start, match[0].strip()))
        line += match[0].count("\n")
    return found


def spread(sql: str, tainted: set[str]) -> None:
    """Add what a statement makes or changes to ``tainted``, if it names something that is."""
    if words(sql) & tainted:
        tainted |= changed_names(sql)


def made_anew(sql: str, tainted: set[str]) -> None:
    """Take what a statement creates, and that succeeded, from ``tainted``, if it names nothing else that is."""
    if _CREATES.match(without_comments(sql)):
        names = changed_names(sql)
        if words(sql) & tainted <= names and not _PARENTS.search(sql) and not _ON.search(sql):
            tainted -= names


def of_the_setup(suite: Path, name: str) -> set[str]:
    """Return the objects that the scripts run before a script cannot make, or not as they want them."""
    depends = json.loads((suite / "suite.json").read_text())["deps"].get(name, [])
    tainted: set[str] = set()
    for script in ("test_setup", *depends):
        folder = next(f for f in ("support", "sql") if (suite / f / f"{script}.sql").exists())
        for _, sql in statements((suite / folder / f"{script}.sql").read_text("latin1")):
            if _REFUSED_DEFINITIONS.search(sql):
                tainted |= changed_names(sql)
            spread(sql, tainted)
    return tainted


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
    script: dict[str, Any], suite: Path, reasons: dict[tuple[str, str], str]
) -> list[tuple[str, dict[str, Any]]]:
    """Return a script's statements that are not equal, each with its class; in the script's order.

    What a statement makes or changes from something that is not as the script wanted it is not so either, whatever
    the statement itself answers.
    """
    tainted = of_the_setup(suite, script["name"])
    text = (suite / "sql" / f"{script['name']}.sql").read_text("latin1")
    passing = statements(text)
    found = []
    failed = False  # the statement before this one was not equal
    broken = False  # a statement of this block, if it is one, was refused or followed
    for item in script["failures"]:
        while passing and passing[0][0] < item["line"]:
            sql = passing.pop(0)[1]
            if not failed:
                made_anew(sql, tainted)
            spread(sql, tainted)
            failed = False
            if _BLOCK.match(without_comments(sql)):
                broken = False
        failed = True
        sql, actual = item["sql"], item["actual"] or ""
        touched = words(sql) | words(actual) | words(item["expected"])
        if _REFUSED.search(actual):
            kind = "refused"
        elif (script["name"], str(item["line"])) in reasons or (script["name"], "*") in reasons:
            kind = "listed"
        elif item["kind"] == "explain":
            kind = "plan"
        elif (
            "current transaction is aborted" in actual
            or touched & tainted
            or _is_missing(item)
            or (broken and _BLOCK.match(without_comments(sql)))
        ):
            kind = "follows"
        elif item["verdict"] == "rows":
            kind = "order"
        else:
            kind = "open"
        if kind in ("refused", "follows"):
            tainted |= changed_names(sql)
            broken = True
        found.append((kind, item))
    return found


def main() -> None:
    """Print the table, or what is open."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="the JSON file of a run")
    parser.add_argument("suite", type=Path, help="the folder that was run: sql, support, suite.json")
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
        found = classified(script, options.suite, reasons)
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

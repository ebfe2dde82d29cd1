"""What a run of isolationtester shows beside what PostgreSQL prints for the same spec.

    compare(expected, actual)  ->  Verdict("stricter", permutations = {equal: 3, stricter: 5})

Each permutation is one of

    equal      the same steps wait, the same rows come back, the same steps fail; blanks and the words of a
               serialization failure aside (Holdfast's name the row)
    stricter   a step waits or is refused (40001, 40P01, 55P03) that PostgreSQL lets through, so that what follows
               differs; or a snapshot is kept for which PostgreSQL shows a newer one (it is asked for READ COMMITTED,
               and every level here is serializable)
    kinder     a step goes through that PostgreSQL refuses, without having to wait for more; or one that waits there goes
               through at once, and all else is the same
    refused    a step needs what is not supported, and says so (0A000 and its name)
    lost       the spec ended before this permutation
    other      none of these: to be looked at

and a spec is refused if any of its permutations is, else stricter if any is, else kinder if any is, else equal.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["equal", "stricter", "kinder", "refused", "lost", "other"]

_UNSUPPORTED: Final = re.compile(r"ERROR:\s+(.*) is not supported")
_SERIALIZATION: Final = re.compile(r"ERROR:\s+could not serialize access.*")
_STRICT: Final = re.compile(
    r"<waiting \.\.\.>|ERROR:\s+(could not serialize access|deadlock detected|could not obtain lock"
    r"|canceling statement due to (user request|lock timeout)|current transaction is aborted)"
)


@dataclass(frozen=True, slots=True)
class Permutation:
    """One permutation of a spec: its steps as the tester names them, and what was printed."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a spec: the kind, how many permutations are of each kind, and what was refused."""

    kind: Kind
    permutations: tuple[tuple[str, Kind], ...]
    refused: tuple[str, ...]

    def count(self, kind: Kind) -> int:
        """Return how many permutations are of a kind."""
        return Counter(kind for _, kind in self.permutations)[kind]


def split(text: str) -> tuple[list[str], list[Permutation]]:
    """Return the lines before the first permutation, and the permutations."""
    head: list[str] = []
    found: list[tuple[str, list[str]]] = []
    for line in text.split("\n"):
        if not line.strip():
            continue
        start = re.match(r"starting permutation:(.*)", line)
        if start is not None:
            found.append((start.group(1).strip(), []))
        (found[-1][1] if found else head).append(line)
    return head, [Permutation(name, tuple(lines)) for name, lines in found]


def plain(lines: Iterable[str]) -> list[str]:
    """Return lines without blanks (column widths), and with one wording for serialization failures."""
    joined = (_SERIALIZATION.sub("ERROR: could not serialize access", line) for line in lines)
    return [re.sub(r"\s+", "", line) for line in joined]


def unsupported(lines: Iterable[str]) -> list[str]:
    """Return what was refused by name in these lines."""
    return [match.group(1) for line in lines if (match := _UNSUPPORTED.search(line))]


def judge(expected: Permutation, actual: Permutation | None, level_kept: bool) -> Kind:
    """Return what kind a permutation is; ``level_kept``: the spec asks for a weaker level than is kept here."""
    if actual is None:
        return "lost"
    if unsupported(actual.lines):
        return "refused"
    mine, theirs = plain(actual.lines), plain(expected.lines)
    if mine == theirs:
        return "equal"
    extra = Counter(line for line in actual.lines if _STRICT.search(line))
    extra.subtract(Counter(line for line in expected.lines if _STRICT.search(line)))
    known = Counter(plain(line for line in expected.lines if _STRICT.search(line)))
    if any(count > 0 and plain([line])[0] not in known for line, count in extra.items()):
        return "stricter"
    if level_kept or _waits_longer(theirs, mine):
        return "stricter"
    failed = Counter(plain(line for line in expected.lines if line.startswith("ERROR:")))
    failed.subtract(Counter(plain(line for line in actual.lines if line.startswith("ERROR:"))))
    if _at_once(theirs) == Counter(mine):
        return "kinder"
    return "kinder" if any(failed.values()) and min(failed.values()) >= 0 else "other"


def _at_once(lines: Sequence[str]) -> Counter[str]:
    """Return what these lines would be if no step had to wait."""
    return Counter(line.removesuffix("<waiting...>") for line in lines if not line.endswith("<...completed>"))


def _waits_longer(expected: Sequence[str], actual: Sequence[str]) -> bool:
    """Tell whether the same lines came, but some step that waited was done later."""
    if Counter(expected) != Counter(actual):
        return False
    done = [line for line in expected if line.endswith("<...completed>")]
    return any(actual.index(line) > expected.index(line) for line in done)


def compare(expected: Sequence[str], actual: str, *, level_kept: bool = False) -> Verdict:
    """Judge a spec's output against the alternatives PostgreSQL's suite accepts: the one that fits best counts."""
    best: Verdict | None = None
    head, mine = split(actual)
    for text in expected:
        verdict = _against(text, head, mine, level_kept)
        if best is None or verdict.count("equal") > best.count("equal"):
            best = verdict
    if best is None:
        raise ValueError("there is no expected output")
    return best


def _against(text: str, head: Sequence[str], mine: Sequence[Permutation], level_kept: bool) -> Verdict:
    kinds: list[tuple[str, Kind]] = []
    used = 0
    for wanted in split(text)[1]:
        found = None
        for position in range(used, len(mine)):
            if mine[position].name == wanted.name:
                found, used = mine[position], position + 1
                break
        kinds.append((wanted.name, judge(wanted, found, level_kept)))
    refused = dict.fromkeys(unsupported([*head, *(line for one in mine for line in one.lines)]))
    seen = {kind for _, kind in kinds}
    order: tuple[Kind, ...] = ("other", "refused", "lost", "stricter", "kinder")
    kind: Kind = next((k for k in order if k in seen), "equal")
    if refused and kind != "other":
        kind = "refused"
    return Verdict(kind, tuple(kinds), tuple(refused))

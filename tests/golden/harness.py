"""The framing all golden scripts share.

    # why this matters: comment lines open a block
    command
    command
    ----
    what it printed

Blocks are separated by blank lines and run in order, on one runner. ``pytest --rewrite`` replaces what was
printed; the diff is then reviewed. A blank line inside printed output is written as ``¶``.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

BLANK = "¶"
SEPARATOR = "----"

# Runs the commands of one block, returns the lines they print.
Runner = Callable[[list[str]], list[str]]


@dataclass
class Block:
    comments: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    output: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = list(self.comments)
        if self.commands:
            lines += [*self.commands, SEPARATOR, *(line or BLANK for line in self.output)]
        return "\n".join(lines) + "\n"


def parse(text: str) -> list[Block]:
    blocks: list[Block] = []
    for piece in text.strip("\n").split("\n\n"):
        block = Block()
        lines = piece.strip("\n").split("\n")
        while lines and lines[0].startswith("#"):
            block.comments.append(lines.pop(0))
        if SEPARATOR in lines:
            at = lines.index(SEPARATOR)
            block.output = ["" if line == BLANK else line for line in lines[at + 1 :]]
            lines = lines[:at]
        block.commands = [line for line in lines if line]
        blocks.append(block)
    return blocks


def check(path: Path, run: Runner, *, rewrite: bool) -> None:
    """Run every block of ``path``; fail with a diff, or rewrite the file."""
    text = path.read_text(encoding="utf-8")
    blocks = parse(text)
    for block in blocks:
        if block.commands:
            block.output = [part for line in run(block.commands) for part in line.split("\n")]
    now = "\n".join(map(str, blocks))
    if now == text:
        return
    if rewrite:
        path.write_text(now, encoding="utf-8")
        return
    diff = difflib.unified_diff(text.splitlines(), now.splitlines(), "expected", "printed", lineterm="")
    raise AssertionError(f"{path.name} prints something else (pytest --rewrite):\n" + "\n".join(diff))

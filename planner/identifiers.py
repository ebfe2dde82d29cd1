"""Names as they are written in texts: ``a."B c".d`` is three."""

from __future__ import annotations

from planner.errors import SqlError


def split_identifier(text: str) -> list[str]:
    """Split ``a."B c".d`` into its names, folding unquoted ones to lower case; 42602 when malformed."""
    names: list[str] = []
    i = 0
    text = text.strip()

    def bad() -> SqlError:
        return SqlError("42602", "invalid name syntax")

    while True:
        while i < len(text) and text[i].isspace():
            i += 1
        if i < len(text) and text[i] == '"':
            i += 1
            out = []
            while True:
                end = text.find('"', i)
                if end < 0:
                    raise bad()
                out.append(text[i:end])
                i = end + 1
                if i < len(text) and text[i] == '"':
                    out.append('"')
                    i += 1
                    continue
                break
            name = "".join(out)
        else:
            start = i
            while i < len(text) and text[i] != "." and not text[i].isspace():
                i += 1
            name = text[start:i].lower()
        if not name:
            raise bad()
        names.append(name)
        while i < len(text) and text[i].isspace():
            i += 1
        if i >= len(text):
            return names
        if text[i] != ".":
            raise bad()
        i += 1

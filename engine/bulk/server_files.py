"""Which files on the server a COPY may touch, and what a path names.

    '/in/a.csv'                a file
    'file:///in/a.csv'         the same
    '/in/day=*/part-?.csv'     all that match, in order of their names
    '/in'                      all files of the directory but hidden ones (.x) and markers (_SUCCESS)

A path is touched only below a directory of the setting ``server_files``: symbolic links and ``..`` are resolved first, and
what was resolved is what is opened. Everything here blocks: call it in a thread.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from planner.errors import SqlError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PATTERN = re.compile(r"[*?\[]")
_CODES = {"FileNotFoundError": "58P01", "NotADirectoryError": "58P01", "PermissionError": "42501",
          "FileExistsError": "58P02", "IsADirectoryError": "42809"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ServerFile:
    """A file to read: ``name`` as errors tell it, ``path`` resolved, ``size`` in bytes."""

    name: str
    path: str
    size: int


def roots_of(setting: str) -> tuple[str, ...]:
    """Return the directories that a ``server_files`` setting lists, resolved. ValueError names one that is not absolute."""
    roots = []
    for entry in setting.split(","):
        path = entry.strip()
        if not path:
            continue
        if not os.path.isabs(path):
            raise ValueError(f"{path!r} is not an absolute path")
        roots.append(os.path.realpath(path))
    return tuple(roots)


def file_error(error: OSError, name: str, what: str) -> SqlError:
    """Return PostgreSQL's error for a file that could not be opened; ``what``: reading or writing."""
    known = type(error).__name__
    side = ("FROM", "read") if what == "reading" else ("TO", "write")
    return SqlError(
        _CODES.get(known, "58030"),
        f'could not open file "{name}" for {what}: {error.strerror}',
        hint=f"COPY {side[0]} instructs the PostgreSQL server process to {side[1]} a file. "
        "You may want a client-side facility such as psql's \\copy."
        if known in ("FileNotFoundError", "PermissionError")
        else None,
    )


def local_path(name: str, direction: str) -> str:
    """Return the absolute path that a COPY names; ``direction``: from or to.

    Raises:
        SqlError: 42602 for a relative path, 0A000 for a scheme that is not served, 22023 for a file URL with a host.
    """
    if _SCHEME.match(name):
        parts = urlsplit(name)
        if parts.scheme.lower() != "file":
            raise SqlError("0A000", f'COPY with the URL scheme "{parts.scheme}" is not supported')
        if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
            raise SqlError("22023", f'invalid file URL: "{name}"', hint="Write file:///path.")
        name = unquote(parts.path)
    if not os.path.isabs(name) or "\0" in name:
        raise SqlError("42602", f"relative path not allowed for COPY {direction} file")
    return name


def permitted(path: str, roots: Sequence[str], direction: str) -> str:
    """Return ``path`` without links and ``..``. Raises SqlError 42501 unless it lies below one of ``roots``."""
    resolved = os.path.realpath(path)
    for root in roots:
        if resolved == root or resolved.startswith(root.rstrip("/") + "/"):
            return resolved
    raise SqlError(
        "42501",
        f'permission denied to COPY {direction} file "{path}"',
        detail="It is not below any directory of the server_files setting."
        if roots
        else "The server_files setting lists no directory.",
        hint="The setting server_files of the server lists the directories that COPY may read and write.",
    )


def found(name: str, roots: Sequence[str]) -> list[ServerFile]:
    """Return the files that COPY FROM ``name`` reads, in the order of their names.

    Raises:
        SqlError: 42602, 0A000, 22023 (see ``local_path``), 42501, 58P01 (no such file, or no match), 42809 (no regular file),
            58030.
    """
    path = local_path(name, "from")
    resolved = permitted(_fixed(path), roots, "from")
    if _PATTERN.search(path) and not os.path.lexists(path):
        names = sorted(glob.glob(path))
    else:
        resolved = permitted(path, roots, "from")
        names = [path]
        if os.path.isdir(resolved):
            names = [os.path.join(path, entry) for entry in sorted(_listed(resolved, name))]
            names = [entry for entry in names if not os.path.isdir(entry)]
    if not names:
        raise SqlError("58P01", f'no file matches "{name}"')
    files = []
    for entry in names:
        resolved = permitted(entry, roots, "from")
        try:
            status = os.stat(resolved)
        except OSError as error:
            raise file_error(error, entry, "reading") from None
        if not os.path.isfile(resolved):
            what = "is a directory" if os.path.isdir(resolved) else "is not a regular file"
            raise SqlError("42809", f'"{entry}" {what}')
        files.append(ServerFile(entry, resolved, status.st_size))
    return files


def _fixed(path: str) -> str:
    """Return the part of a path before its first pattern, up to a directory."""
    match = _PATTERN.search(path)
    return path if match is None else path[: path.rindex("/", 0, match.start()) + 1]


def _listed(directory: str, name: str) -> list[str]:
    try:
        return [entry for entry in os.listdir(directory) if not entry.startswith((".", "_"))]
    except OSError as error:
        raise file_error(error, name, "reading") from None


def target(name: str, roots: Sequence[str]) -> str:
    """Return the resolved path that COPY TO ``name`` writes. Raises SqlError 42602, 0A000, 22023, 42501."""
    path = local_path(name, "to")
    return permitted(path, roots, "to")

"""Which files a COPY may touch, and what a path names.

    '/in/a.csv'                a file
    'file:///in/a.csv'         the same
    '/in/day=*/part-?.csv'     all that match, in order of their names
    '/in'                      all files of the directory but hidden ones (.x) and markers (_SUCCESS)
    's3://bucket/in/a.csv'     an object, or several (``engine.base.stored_objects``)

A path is touched only below a directory of the setting ``server_files``: symbolic links and ``..`` are
resolved first, and what was resolved is what is opened. An object is touched only below a bucket or prefix
that the setting lists. Everything here blocks: call it in a thread.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from engine.base.regular_files import NotRegularFile
from engine.base.stored_objects import (
    PATTERN,
    FilePath,
    StoredObject,
    all_below,
    found_objects,
    split_name,
    words_of,
)
from engine.base.troubles import file_state
from planner.base.errors import SqlError
from txn.persist.blobs.object_url import ObjectUrl, is_object_url, parse_object_url

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True, slots=True)
class ServerFile:
    """A file to read: ``name`` as errors tell it, ``path`` resolved, ``size`` in bytes."""

    name: str
    path: FilePath
    size: int


@dataclass(frozen=True, slots=True)
class Roots:
    """What ``server_files`` lists: directories, resolved, and object stores."""

    directories: tuple[str, ...] = ()
    stores: tuple[ObjectUrl, ...] = ()


def roots_of(setting: str) -> Roots:
    """Return what a ``server_files`` setting lists. ValueError names a path that is not absolute, or says
    what a URL lacks.
    """
    directories: list[str] = []
    stores: list[ObjectUrl] = []
    for entry in setting.split(","):
        path = entry.strip()
        if is_object_url(path):
            stores.append(parse_object_url(path))
        elif path:
            if not os.path.isabs(path):
                raise ValueError(f"{path!r} is not an absolute path")
            directories.append(os.path.realpath(path))
    return Roots(tuple(directories), tuple(stores))


def file_error(error: OSError, name: str, what: str) -> SqlError:
    """Return PostgreSQL's error for a file that could not be opened; ``what``: reading or writing.

    Where a store of objects says why, its words take the place of the system's.
    """
    if isinstance(error, NotRegularFile):
        return SqlError("42809", f'"{name}" is not a regular file')
    if error.errno is None:
        state, words = words_of(error)
        return SqlError(state, f'could not open file "{name}" for {what}: {words}')
    known = type(error).__name__
    side = ("FROM", "read") if what == "reading" else ("TO", "write")
    return SqlError(
        file_state(error),
        f'could not open file "{name}" for {what}: {error.strerror}',
        hint=f"COPY {side[0]} instructs the PostgreSQL server process to {side[1]} a file. "
        "You may want a client-side facility such as psql's \\copy."
        if known in ("FileNotFoundError", "PermissionError")
        else None,
    )


def shrunk(name: str, size: int, found: int) -> SqlError:
    """Return 58030 for a file that had ``size`` bytes when it was found, and ends after fewer: its rows are
    not all there.
    """
    return SqlError(
        "58030",
        f'could not read file "{name}": it has become shorter',
        detail=f"It had {size} bytes when COPY began, and ends after {found}.",
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
    """Return what a path resolves to. Raises SqlError 42501 if that is not below one of ``roots``."""
    resolved = os.path.realpath(path)
    for root in roots:
        if resolved == root or resolved.startswith(root.rstrip("/") + "/"):
            return resolved
    raise _refusal(path, direction, bool(roots))


def _refusal(name: str, direction: str, any_roots: bool, what: str = "directory") -> SqlError:
    return SqlError(
        "42501",
        f'permission denied to COPY {direction} {"file" if what == "directory" else "object"} "{name}"',
        detail=f"It is not below any {what} of the server_files setting."
        if any_roots
        else f"The server_files setting lists no {what}.",
        hint="The setting server_files of the server lists the directories and buckets that COPY may read and write.",
    )


def stored(name: str, roots: Roots, direction: str) -> StoredObject:
    """Return what the URL of an object names. Raises SqlError 22023, 42501."""
    at = split_name(name, roots.stores)
    if at is None:
        raise _refusal(name, direction, bool(roots.stores), "bucket")
    return at


def found(name: str, roots: Roots) -> list[ServerFile]:
    """Return the files that COPY FROM ``name`` reads, in the order of their names.

    Raises:
        SqlError: 42602, 0A000, 22023 (see ``local_path``), 42501, 58P01 (no such file, or no match), 42809
        (no regular file),
            58030.
    """
    if is_object_url(name):
        return _found_objects(name, roots)
    directories = roots.directories
    path = local_path(name, "from")
    resolved = permitted(_fixed(path), directories, "from")
    if PATTERN.search(path) and not os.path.lexists(path):
        names = sorted(glob.glob(path))
    else:
        resolved = permitted(path, directories, "from")
        names = [path]
        if os.path.isdir(resolved):
            names = [os.path.join(path, entry) for entry in sorted(_listed(resolved, name))]
            names = [entry for entry in names if not os.path.isdir(entry)]
    if not names:
        raise _no_match(name)
    files = []
    for entry in names:
        resolved = permitted(entry, directories, "from")
        try:
            status = os.stat(resolved)
        except OSError as error:
            raise file_error(error, entry, "reading") from None
        if stat.S_ISDIR(status.st_mode):
            raise SqlError("42809", f'"{entry}" is a directory')
        if not stat.S_ISREG(status.st_mode):
            raise file_error(NotRegularFile(), entry, "reading")
        files.append(ServerFile(entry, resolved, status.st_size))
    return files


def _found_objects(name: str, roots: Roots) -> list[ServerFile]:
    at = stored(name, roots, "from")
    try:
        files = [ServerFile(one.name, one, size) for one, size in found_objects(at)]
    except OSError as error:
        raise file_error(error, name, "reading") from None
    if not files:
        raise _no_match(name)
    return files


def _no_match(name: str) -> SqlError:
    return SqlError("58P01", f'no file matches "{name}"')


def _fixed(path: str) -> str:
    """Return the part of a path before its first pattern, up to a directory."""
    match = PATTERN.search(path)
    return path if match is None else path[: path.rindex("/", 0, match.start()) + 1]


def _listed(directory: str, name: str) -> list[str]:
    try:
        return [entry for entry in os.listdir(directory) if not entry.startswith((".", "_"))]
    except OSError as error:
        raise file_error(error, name, "reading") from None


def target(name: str, roots: Roots) -> str:
    """Return the resolved path that COPY TO ``name`` writes. Raises SqlError 42602, 0A000, 22023, 42501."""
    path = local_path(name, "to")
    return permitted(path, roots.directories, "to")


def target_object(name: str, roots: Roots) -> StoredObject:
    """Return the object, or (``name`` ends in /) the folder that COPY TO writes.

    Raises SqlError 22023, 42501, 42809 (a folder, or only a bucket, where an object is named), 58P02 (a
    folder in which there are objects), and others of ``file_error``.
    """
    at = stored(name, roots, "to")
    if "/" not in at.key:
        raise SqlError("42809", f'"{name}" is a bucket')
    if PATTERN.search(at.key):
        raise SqlError("22023", f'COPY TO "{name}": an object is written under a name without *, ? and [')
    try:
        if name.endswith("/") and next(all_below(at), None) is not None:
            raise exists_error(name)
    except OSError as error:
        raise file_error(error, name, "writing") from None
    return at


def exists_error(name: str) -> SqlError:
    """Return 58P02 for a directory that is to be new."""
    return SqlError(
        "58P02", f'"{name}" already exists', hint="COPY TO a directory writes a new one; it replaces nothing."
    )

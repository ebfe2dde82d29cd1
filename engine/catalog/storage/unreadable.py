"""What the server could not read of its catalog when it started, noted in its data directory: for ``holdfast doctor``.

    <data>/unreadable.json    [{"database": "postgres", "object": "table public.t", "reason": "..."}]

The file is written at every start, and is not there where everything could be read.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from txn.persist.blobs.files import write_durably
from txn.persist.trouble import opened, whole

if TYPE_CHECKING:
    from engine.catalog.storage.spaces import Spaces

log = logging.getLogger("holdfast")
FILE: Final = "unreadable.json"


def note(data: Path, spaces: Spaces) -> None:
    """Write down what is fenced off in a server's databases."""
    found = []
    if spaces.lost:
        found.append({"database": "", "object": "the catalog as a whole", "reason": spaces.lost})
    for space in spaces:
        database = space.catalog.database_by_oid(space.oid)
        name = str(space.oid) if database is None else database.name
        found += [
            {"database": name, "object": fence.what, "reason": fence.reason}
            for fence in space.catalog.fences.values()
        ]
    file = data / FILE
    try:
        if found:
            write_durably(str(file), json.dumps(found, indent=1))
        else:
            file.unlink(missing_ok=True)
    except OSError as error:
        log.warning("%s: %s", file, error)


def noted(data: Path) -> list[str]:
    """Return a line for each object that could not be read at the last start. Raises ValueError for a file
    that is none of ``note``.
    """
    try:
        with opened(str(data / FILE)) as file:
            text = whole(file).decode()
    except FileNotFoundError:
        return []
    return [
        f"{one['object']}{' of database ' if one['database'] else ''}{one['database']}: {one['reason']}"
        for one in json.loads(text)
    ]

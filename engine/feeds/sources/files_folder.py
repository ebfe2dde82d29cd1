"""Where the files of a FILES source are: a directory of the server, or a folder of an object store.

'/in/orders'               ``files_directory.Directory``
's3://bucket/in/orders'    ``files_objects.ObjectFolder``
"""

from __future__ import annotations

from typing import Protocol

from engine.base.server_files import Roots, ServerFile
from engine.feeds.sources.files_directory import Directory, Found
from engine.feeds.sources.files_objects import ObjectFolder, check_same_store
from engine.feeds.sources.reader import Temporary
from planner.base.errors import SqlError
from txn.persist.blobs.object_url import is_object_url


class Folder(Protocol):
    """What a source does with files. All methods but ``shown`` block.

    They raise SqlError for what stays wrong (58P01: it is not there any more, 42501), Temporary for what may
    pass. ``stored``: it is in an object store, so the blocking happens in threads for these
    (``engine.base.stored_objects.beside``).
    """

    stored: bool
    name: str

    def listed(self, pattern: str) -> list[Found]:
        """Return what a source looks at: files directly below, no hidden ones and no markers, by time, then name."""

    def shown(self, name: str) -> str:
        """Return the path of a file as people are told."""

    def file(self, found: Found) -> ServerFile:
        """Return what is to be opened."""

    def is_other(self, found: Found) -> bool:
        """Whether a file has changed since it was found; one that is gone was read to its end while it was open."""

    def put_away(self, found: Found, move_to: str | None) -> None:
        """Move or delete (None) a file, if it is there and as it was found. Idempotent."""


def open_folder(path: str, roots: Roots) -> Folder:
    """Return where a source reads. Blocks. Raises SqlError 42602, 0A000, 22023, 42501, 58P01, 42809; Temporary."""
    return ObjectFolder(path, roots) if is_object_url(path) else Directory(path, roots)


def check_folders(path: str, move_to: str | None, roots: Roots) -> None:
    """Check where a new source reads, and where files are to be moved. Blocks.

    Raises SqlError as ``open_folder``, 22023 too where files cannot be moved from one to the other, 58030 for a store
    that does not answer.
    """
    try:
        open_folder(path, roots)
        if move_to is not None:
            if is_object_url(path) != is_object_url(move_to):
                raise SqlError("22023", 'the options "path" and "move_to" name different kinds of stores')
            open_folder(move_to, roots)
            if is_object_url(path):
                check_same_store(path, move_to, roots)
    except Temporary as error:
        raise SqlError("58030", str(error)) from None

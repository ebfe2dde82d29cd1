"""Files that are written whole or not at all, by which it is told how much room they would have taken.

write, write, write     what there is no room for is counted: a reader of the error learns how much has to be free, not that some more has
check                   raises what the first one met
"""

from __future__ import annotations

import errno
from typing import Any, BinaryIO

from txn.base.errors import OutOfSpace, StorageError
from txn.persist.logs.space import NO_SPACE, free_bytes, no_more_files
from txn.persist.trouble import refused


class Sized:
    """A file to write to."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._met: OSError | None = None
        self.size = 0
        """What has been written, or would have been."""

    def write(self, data: Any) -> int:
        """Write, or count. Raises OSError for what is no lack of space."""
        size = memoryview(data).nbytes
        self.size += size
        if self._met is None:
            try:
                self._file.write(data)
            except OSError as error:
                if error.errno not in NO_SPACE:
                    raise
                self._met = error
        return size

    def tell(self) -> int:
        """See io."""
        return self.size

    def check(self) -> None:
        """Raise what there was no room for."""
        if self._met is not None:
            raise self._met


def not_written(error: OSError, sized: Sized | None, folder: str) -> StorageError | OutOfSpace:
    """Return what to raise for a data file in ``folder`` that was not written, with how much is missing where
    it is bytes that are.
    """
    made = refused("a data file", error)
    if isinstance(made, OutOfSpace) and error.errno == errno.ENOSPC:
        if no_more_files(folder):
            made.lacking, made.helped = "no space left on device for another file (inodes)", False
            made.files = True
        elif sized is not None:
            made.needed, made.free = sized.size, free_bytes(folder)
    return made

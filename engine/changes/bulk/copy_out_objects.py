"""COPY TO objects of a store: one by the server, or a folder of them by Spark's executors.

    server      rows ──> temporary file ──whole──> s3://bucket/a.csv, or s3://bucket/folder/part-00000.csv
    executors   rows ──> temporary file ──whole──> s3://bucket/folder/part-00000-<attempt>.csv ...

An object appears when its upload is complete, and replaces an older one of that name. A folder has to be
empty (58P02). No store renames several objects at once, so those of a folder appear one by one, and
``_SUCCESS`` after them, as other tools on Spark have it. While executors write, a marker lies in the folder:
an attempt that does not find it after its upload, because the statement has ended, takes back what it has
written.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import secrets
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Protocol

from engine.base.server_files import Roots, file_error, target_object
from engine.base.stored_objects import StoredObject, all_below, beside, exists, remove, upload
from engine.changes.bulk.copy_out_files import Written, fill, with_rows
from engine.changes.bulk.write_rows import Sheet, write_file
from engine.session.portal import RowReader
from engine.session.progress import CopyProgress
from engine.session.store_server import Server
from planner.functions.session import EvalSession
from txn.persist.scratch import Scratch
from txn.persist.trouble import opened

SUCCESS: Final = "_SUCCESS"


class WritingSession(EvalSession, Protocol):
    """The session whose COPY it is: rows are gathered on its server's disk."""

    @property
    def db(self) -> Server:
        """Its server."""


async def write_object(
    name: str, roots: Roots, sheet: Sheet, reader: RowReader, progress: CopyProgress, session: WritingSession
) -> int:
    """Write a result as one object; return the number of rows.

    The rows are gathered in a temporary file of the data directory first, so that a query that fails touches nothing in
    the store. A cancel that comes while that file is uploaded does not hold the upload up.

    Raises SqlError as ``target_object``, 42501, 53100 and 58030 with the name of the object and the store's words.
    """
    at = await beside(True, target_object, name, roots)
    folder = at if name.endswith("/") else None
    if folder is not None:
        at = folder.below(f"part-00000{sheet.suffix}")
    scratch = session.db.config.data_dir
    # Closed by whoever is done with it last: the upload goes on where this task is cancelled.
    file: BinaryIO = await asyncio.to_thread(tempfile.TemporaryFile, dir=scratch)
    try:
        count = await fill(file, sheet, reader, progress, session)
    except BaseException:
        file.close()
        raise
    try:
        await asyncio.shield(beside(True, _upload, at, file, folder))
    except OSError as error:
        raise file_error(error, name, "writing") from None
    return count


def _upload(at: StoredObject, file: BinaryIO, folder: StoredObject | None) -> None:
    with file:
        file.seek(0)
        upload(at, file)
    if folder is not None:
        upload(folder.below(SUCCESS), io.BytesIO())


@dataclass(frozen=True, slots=True)
class ObjectFolder:
    """A folder that executors write to while its marker is there. Can be pickled."""

    at: StoredObject
    marker: str

    def write(self, name: str, sheet: Sheet, batches: Iterable[Any]) -> tuple[int, int]:
        """Write batches as an object; return how many rows and bytes it has. Raises OSError, DataError."""
        with Scratch("copy") as scratch:
            path = os.path.join(scratch, name)
            written = write_file(path, sheet, batches)
            to = self.at.below(name)
            with opened(path) as file:
                upload(to, file)
            if not exists(self.at.below(self.marker)):
                remove(to)
                raise InterruptedError(4, "the statement has ended")
        return written

    def adopt(self, written: Sequence[Written], suffix: str) -> tuple[int, int]:
        """End the writing and keep the objects that have rows, at least one of all; return their rows and bytes."""
        kept = with_rows(written)
        names = {self.at.below(name).key for name, _rows, _size in kept}
        remove(self.at.below(self.marker))
        for one in all_below(self.at):
            if one.key not in names:
                remove(one)
        upload(self.at.below(SUCCESS), io.BytesIO())
        return sum(rows for _, rows, _ in kept), sum(size for _, _, size in kept)

    def abandon(self) -> None:
        """End the writing; remove what there is."""
        remove(self.at.below(self.marker))
        for one in all_below(self.at):
            remove(one)


@asynccontextmanager
async def new_folder(name: str, roots: Roots) -> AsyncIterator[ObjectFolder]:
    """Give out a folder for executors to write to; where the block fails, nothing stays in it.

    Raises SqlError as ``target_object``, and 42501, 53100, 58030 for what the store says.
    """
    at = await beside(True, target_object, name.rstrip("/") + "/", roots)
    folder = ObjectFolder(at, f"_writing-{secrets.token_hex(8)}")
    try:
        await beside(True, upload, at.below(folder.marker), io.BytesIO())
        yield folder
    except OSError as error:
        await _abandon(folder)
        raise file_error(error, name, "writing") from None
    except BaseException:
        await _abandon(folder)
        raise


async def _abandon(folder: ObjectFolder) -> None:
    with contextlib.suppress(OSError):  # the statement fails with what came first
        await asyncio.shield(beside(True, folder.abandon))

"""What the functions do, and the descriptors of one session (``planner.functions.session.LargeObjectSystem``).

    lo_open   ──> 0, 1, ...  the lowest free number; gone at the end of the transaction, or of the part of it that is rolled back
    loread, lowrite, lo_lseek, lo_tell, lo_truncate, lo_close by that number

A descriptor for reading sees what the statement saw that opened it; one for writing sees everything. What a
function changes is seen by the statements that come after it, as with users' functions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from engine.base.eager import Started, eager
from engine.session.large_objects import access, files
from engine.session.large_objects.pages import MAX_BYTES
from planner.base.errors import SqlError

if TYPE_CHECKING:
    from engine.session.session import Session

INV_WRITE: Final = 0x20000
INV_READ: Final = 0x40000
MAX_OPEN: Final = 10_000
"""Descriptors of one session."""
_INT_MAX: Final = 2**31 - 1
_SET, _CURRENT, _END = 0, 1, 2


@dataclass(slots=True)
class Descriptor:
    """An open large object; ``at``: where it stands. ``seen``: the statement that saw what is read, 0: all is seen."""

    number: int
    writable: bool
    seen: int
    at: int = 0


class SessionLargeObjects:
    """One session's descriptors, and the functions over them and over large objects."""

    __slots__ = ("_open", "_session", "_told")

    def __init__(self, session: Session) -> None:
        """None is open."""
        self._session = session
        self._open: dict[int, Descriptor] = {}
        self._told = False  # of the ends of transactions

    def start(self, name: str, args: Sequence[Any]) -> tuple[bool, Any]:
        """Begin what a function does; see ``planner.functions.session.LargeObjectSystem``."""
        result: Any = eager(self._run(_FUNCTIONS[name], args))
        return (False, result) if isinstance(result, Started) else (True, result)

    async def _run(self, function: Callable[..., Awaitable[Any]], args: Sequence[Any]) -> Any:
        """Run it as a statement within the one that calls it, which goes on behind it as before."""
        txn = self._session.block.ensure_txn()
        seen = txn.statement
        txn.next_statement()
        try:
            return await function(self, seen, *args)
        finally:
            if self._session.block.txn is txn:
                txn.resume_statement(seen)

    # -- descriptors -------------------------------------------------------------------------------

    def _ended(self, committed: bool) -> None:
        self._open.clear()

    def _opened(self, number: int, *, writable: bool, seen: int) -> int:
        """Give an object a descriptor, which goes with the transaction, or the part of it that is undone."""
        block = self._session.block
        if not self._told:
            self._told = True
            block.on_end.append(self._ended)
        if len(self._open) >= MAX_OPEN:
            raise SqlError("53400", f"more than {MAX_OPEN} open large object descriptors")
        fd = next(n for n in range(len(self._open) + 1) if n not in self._open)
        made = self._open[fd] = Descriptor(number, writable, seen)
        block.ensure_txn().on_undo(partial(self._close, fd, made))
        return fd

    def _close(self, fd: int, opened: Descriptor) -> None:
        if self._open.get(fd) is opened:
            del self._open[fd]

    def _descriptor(self, fd: int) -> Descriptor:
        found = self._open.get(fd)
        if found is None:
            raise SqlError("42704", f"invalid large-object descriptor: {fd}")
        return found

    def _writable(self, fd: int) -> Descriptor:
        found = self._descriptor(fd)
        if not found.writable:
            raise SqlError("55000", f"large object descriptor {fd} was not opened for writing")
        return found

    def _as_seen_by(self, statement: int) -> None:
        """Have what the function reads next be as a statement saw it; 0: with all own changes."""
        if statement:
            self._session.block.ensure_txn().resume_statement(statement)

    async def _size(self, opened: Descriptor) -> int:
        self._as_seen_by(opened.seen)
        return await access.size(self._session, opened.number)

    # -- functions: ``seen`` is the number of the statement that calls --------------------------------

    async def creat(self, seen: int, mode: int) -> int:
        """lo_creat(): the mode says nothing."""
        return await self._create("lo_creat()", 0)

    async def create(self, seen: int, number: int) -> int:
        """lo_create()."""
        return await self._create("lo_create()", number)

    async def from_bytea(self, seen: int, number: int, data: bytes) -> int:
        """lo_from_bytea()."""
        made = await self._create("lo_from_bytea()", number)
        await access.write(self._session, made, 0, data)
        return made

    async def _create(self, what: str, number: int) -> int:
        await access.begin_change(self._session, what)
        return await access.create(self._session, number)

    async def unlink(self, seen: int, number: int) -> int:
        """lo_unlink()."""
        session = self._session
        await access.begin_change(session, "lo_unlink()")
        row = await access.existing(session, number, lock=True)
        if session.settings.get("lo_compat_privileges") != "on":
            access.check_owner(session, row)
        await access.unlink(session, row)
        for fd in [fd for fd, opened in self._open.items() if opened.number == number]:
            del self._open[fd]
        return 1

    async def open(self, seen: int, number: int, mode: int) -> int:
        """lo_open()."""
        if not mode & (INV_READ | INV_WRITE):
            raise SqlError("22023", f"invalid flags for opening a large object: {mode}")
        writable = mode & INV_WRITE != 0
        seen = 0 if writable else seen
        self._as_seen_by(seen)
        row = await access.existing(self._session, number)
        await access.check_right(self._session, row, "rw" if writable else "r")
        return self._opened(number, writable=writable, seen=seen)

    async def close(self, seen: int, fd: int) -> int:
        """lo_close()."""
        self._close(fd, self._descriptor(fd))
        return 0

    async def read(self, seen: int, fd: int, count: int) -> bytes:
        """loread()."""
        opened = self._descriptor(fd)
        self._as_seen_by(opened.seen)
        data = await access.read(self._session, opened.number, opened.at, count)
        opened.at += len(data)
        return data

    async def write(self, seen: int, fd: int, data: bytes) -> int:
        """lowrite()."""
        opened = self._writable(fd)
        await access.begin_change(self._session, "lowrite()")
        await access.existing(self._session, opened.number, lock=True)
        await access.write(self._session, opened.number, opened.at, data)
        opened.at += len(data)
        return len(data)

    async def seek64(self, seen: int, fd: int, offset: int, whence: int) -> int:
        """lo_lseek64()."""
        opened = self._descriptor(fd)
        if whence not in (_SET, _CURRENT, _END):
            raise SqlError("22023", f"invalid whence setting: {whence}")
        base = 0 if whence == _SET else opened.at if whence == _CURRENT else await self._size(opened)
        opened.at = _seekable(base + offset)
        return opened.at

    async def seek(self, seen: int, fd: int, offset: int, whence: int) -> int:
        """lo_lseek()."""
        return _as_int4(await self.seek64(seen, fd, offset, whence), "lo_lseek", fd)

    async def tell64(self, seen: int, fd: int) -> int:
        """lo_tell64()."""
        return self._descriptor(fd).at

    async def tell(self, seen: int, fd: int) -> int:
        """lo_tell()."""
        return _as_int4(self._descriptor(fd).at, "lo_tell", fd)

    async def truncate(self, seen: int, fd: int, length: int) -> int:
        """lo_truncate(), lo_truncate64()."""
        opened = self._writable(fd)
        await access.begin_change(self._session, "lo_truncate()")
        await access.existing(self._session, opened.number, lock=True)
        await access.truncate(self._session, opened.number, length)
        return 0

    async def get(self, seen: int, number: int, offset: int = 0, count: int | None = None) -> bytes:
        """lo_get()."""
        if count is not None and count < 0:
            raise SqlError("22023", "requested length cannot be negative")
        self._as_seen_by(seen)
        row = await access.existing(self._session, number)
        await access.check_right(self._session, row, "r")
        return await access.read(
            self._session, number, _seekable(offset), MAX_BYTES if count is None else count
        )

    async def put(self, seen: int, number: int, offset: int, data: bytes) -> str:
        """lo_put()."""
        await access.begin_change(self._session, "lo_put()")
        row = await access.existing(self._session, number, lock=True)
        await access.check_right(self._session, row, "rw")
        await access.write(self._session, number, _seekable(offset), data)
        return ""

    async def import_(self, seen: int, name: str, number: int = 0) -> int:
        """lo_import()."""
        files.check_allowed(self._session, "lo_import")
        await access.begin_change(self._session, "lo_import()")
        return await files.import_file(self._session, name, number)

    async def export(self, seen: int, number: int, name: str) -> int:
        """lo_export()."""
        files.check_allowed(self._session, "lo_export")
        self._as_seen_by(seen)
        row = await access.existing(self._session, number)
        await access.check_right(self._session, row, "r")
        await files.export_file(self._session, number, name)
        return 1


def _seekable(target: int) -> int:
    """Return a position, if there can be one. SqlError 22023."""
    if not 0 <= target <= MAX_BYTES:
        raise SqlError("22023", f"invalid large object seek target: {target}")
    return target


def _as_int4(position: int, function: str, fd: int) -> int:
    if position > _INT_MAX:
        raise SqlError("22003", f"{function} result out of range for large-object descriptor {fd}")
    return position


_FUNCTIONS: Final[Mapping[str, Callable[..., Awaitable[Any]]]] = {
    "lo_creat": SessionLargeObjects.creat,
    "lo_create": SessionLargeObjects.create,
    "lo_from_bytea": SessionLargeObjects.from_bytea,
    "lo_unlink": SessionLargeObjects.unlink,
    "lo_open": SessionLargeObjects.open,
    "lo_close": SessionLargeObjects.close,
    "loread": SessionLargeObjects.read,
    "lowrite": SessionLargeObjects.write,
    "lo_lseek": SessionLargeObjects.seek,
    "lo_lseek64": SessionLargeObjects.seek64,
    "lo_tell": SessionLargeObjects.tell,
    "lo_tell64": SessionLargeObjects.tell64,
    "lo_truncate": SessionLargeObjects.truncate,
    "lo_truncate64": SessionLargeObjects.truncate,
    "lo_get": SessionLargeObjects.get,
    "lo_put": SessionLargeObjects.put,
    "lo_import": SessionLargeObjects.import_,
    "lo_export": SessionLargeObjects.export,
}

"""Files in memory without a descriptor kept: ``mmap.mmap`` duplicates the descriptor it is given (Python
3.11), and keeps it.

    open, mmap(2), close     what is mapped stays until the last view of it is gone, then munmap(2)

A server has a sidecar for each part and each of its indexes, so that a descriptor for each would set the
limit of its schema.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import weakref
from typing import Any, Final

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_mmap: Final = _LIBC.mmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_munmap: Final = _LIBC.munmap
_munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_madvise: Final = _LIBC.madvise
_madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
SMALL_BYTES: Final = mmap.PAGESIZE
"""What is no larger is read instead: the kernel maps no less than a page, and keeps a record of each mapping."""
_FAILED: Final = ctypes.c_void_p(-1).value


class Mapping:
    """A file, mapped for reading. ``view``: its bytes; memory goes with the last view, slices of it included."""

    __slots__ = ("_address", "view")
    _address: int | None

    def __init__(self, fd: int, size: int) -> None:
        """Map ``size`` bytes (> 0) of an open file, which may be closed then. Raises OSError."""
        if size <= SMALL_BYTES:
            self._address = None
            data = os.pread(fd, size, 0)
            if len(data) < size:
                raise OSError(errno.EIO, "Short read")  # it passes, and tells nothing of the file
            self.view = memoryview(data)
            return
        self._address = address = map_file(fd, size)
        owner: Any = (ctypes.c_ubyte * size).from_address(address)
        weakref.finalize(owner, _munmap, address, size).atexit = False
        self.view = memoryview(owner).cast("B").toreadonly()

    def __len__(self) -> int:
        """Return the size in bytes."""
        return len(self.view)

    def forget(self, start: int, size: int) -> None:
        """Let go of pages of ``size`` bytes from ``start`` on, a multiple of the page size: they come back
        when they are needed.
        """
        if self._address is not None:
            _madvise(self._address + start, size, mmap.MADV_DONTNEED)


def map_file(fd: int, size: int) -> int:
    """Map the beginning of a file for reading and return its address. Raises OSError."""
    address = _mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
    if address is None or address == _FAILED:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(address)

"""What the process has in memory, as the system counts it: pages of its own, and pages of mapped files
(sidecars, libraries).

Mapped pages come back from the page cache when they are touched, so they can be let go of; the process's own
cannot. The file that tells is held open, so that no statement fails of it where the process has as many files
as it may; a forked process opens its own.
"""

from __future__ import annotations

import os
from typing import Final

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_STATM: Final = "/proc/self/statm"


class _Statm:
    """The file, or None where the system has none."""

    def __init__(self) -> None:
        self.descriptor: int | None = None
        self.open()

    def open(self) -> None:
        before = self.descriptor
        try:
            self.descriptor = os.open(_STATM, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            self.descriptor = None
        if before is not None:
            os.close(before)


_statm: Final = _Statm()
os.register_at_fork(after_in_child=_statm.open)


def resident_bytes() -> tuple[int, int]:
    """Return the bytes in memory that are no file's and those that are; zeros where the system does not tell."""
    if _statm.descriptor is None:
        return 0, 0
    _, resident, shared, *_ = os.pread(_statm.descriptor, 128, 0).split()
    return (int(resident) - int(shared)) * _PAGE, int(shared) * _PAGE


def private_bytes_of(pid: int) -> int:
    """Return the bytes in memory of a process that are no file's; 0 where it has ended, or the system does not tell."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            _, resident, shared, *_ = file.read().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return (int(resident) - int(shared)) * _PAGE

"""What the process has in memory, as the system counts it: pages of its own, and pages of mapped files (sidecars, libraries).

Mapped pages come back from the page cache when they are touched, so they can be let go of; the process's own cannot.
"""

from __future__ import annotations

import os
from typing import Final

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> tuple[int, int]:
    """Return the bytes in memory that are no file's and those that are; zeros where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as statm:
            _, resident, shared, *_ = statm.read(128).split()
    except FileNotFoundError:
        return 0, 0
    return (int(resident) - int(shared)) * _PAGE, int(shared) * _PAGE

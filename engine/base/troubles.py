"""What the system may be short of, and what it says to files: the SQLSTATEs of both.

Whoever reads or writes a file that a statement names asks ``file_state``; what runs queries outside asks ``TROUBLES``.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Final

from txn.base import errors as txn_errors
from txn.persist.regular import NotRegularFile
from txn.persist.trouble import number_of, said

TROUBLES: Final[Mapping[txn_errors.TroubleKind, str]] = {
    "io": "58030",
    "files": "53000",
    "requests": "53000",
    "memory": "53200",
    "space": "53100",
}
"""SQLSTATEs of what the system may be short of."""
_OF_FILES: Final[Mapping[int, str]] = {
    **dict.fromkeys((errno.EPERM, errno.EACCES, errno.EROFS), "42501"),
    errno.ENOENT: "58P01",
    errno.EEXIST: "58P02",
    **dict.fromkeys((errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY), "42809"),
}


def file_state(error: OSError) -> str:
    """Return the SQLSTATE of what the system says to a file or directory that a statement names:
    PostgreSQL's, and 58030 for its XX000.
    """
    if isinstance(error, NotRegularFile):
        return "42809"
    number = number_of(error)
    return _OF_FILES.get(number or 0) or TROUBLES[said(number).kind]

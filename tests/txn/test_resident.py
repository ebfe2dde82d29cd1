"""The process's own memory is told without a further file, and by each forked process of itself."""

from __future__ import annotations

import os
from unittest import mock

import pytest

from txn.base import resident
from txn.base.resident import resident_bytes

MIB = 1 << 20


def test_it_is_told_where_no_further_file_can_be_opened() -> None:
    with mock.patch.object(os, "open", side_effect=OSError(24, "Too many open files")):
        own, mapped = resident_bytes()
    assert own > MIB
    assert mapped > MIB


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_tells_of_itself() -> None:
    before = resident._statm.descriptor
    ends, tells = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(tells, b"own" if resident._statm.descriptor is not None and _is_mine() else b"else")
        os._exit(0)
    os.close(tells)
    os.waitpid(pid, 0)
    assert os.read(ends, 16) == b"own"
    os.close(ends)
    assert resident._statm.descriptor == before


def _is_mine() -> bool:
    """Whether what is told follows what this process takes."""
    own = resident_bytes()[0]
    taken = bytearray(os.urandom(64)) * MIB
    return resident_bytes()[0] - own > len(taken) // 2

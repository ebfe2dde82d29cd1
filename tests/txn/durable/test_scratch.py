"""Temporary folders of servers that were killed go with the next start; those of living ones, and what links lead to, stay."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from txn.persist import scratch
from txn.persist.memory import MemoryBlob, MemoryDisk
from txn.persist.scratch import PREFIX, Scratch, sweep

OWNER = """
import sys
from txn.persist.scratch import Scratch
made = Scratch("blob")
print(made.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_what_a_killed_owner_leaves_is_removed_and_nothing_else(folder: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    made = Path(owner.stdout.readline().strip()).parent
    precious = folder / "precious"
    precious.mkdir()
    (precious / "file").touch()
    (made / "link").symlink_to(precious)
    (folder / f"{PREFIX}blob-link").symlink_to(precious)
    (folder / f"{PREFIX}blob-file").touch()
    (folder / "holdfast-other").mkdir()
    own = Scratch("blob")
    before = set(folder.iterdir())
    assert made in before
    assert sweep() == []
    assert set(folder.iterdir()) == before
    owner.kill()
    owner.communicate()
    assert sweep() == [str(made)]
    assert set(folder.iterdir()) == before - {made}
    assert (precious / "file").exists()
    own.remove()
    assert not os.path.exists(own.path)


def test_a_folder_that_is_swept_before_it_is_locked_is_made_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, made = tempfile.mkdtemp, []

    def early(prefix: str, dir: str | None = None) -> str:
        if dir is not None:
            return real(prefix=prefix, dir=dir)
        made.append(real(prefix=prefix))
        if len(made) == 1:
            assert sweep() == made
        return made[-1]

    monkeypatch.setattr(scratch.tempfile, "mkdtemp", early)
    own = Scratch("copy")
    assert len(made) == 2
    assert os.path.isdir(own.path)
    assert sweep() == []


def test_a_store_in_memory_leaves_nothing(folder: Path) -> None:
    blob = MemoryBlob(MemoryDisk())
    assert len(list(folder.iterdir())) == 1
    del blob
    assert not list(folder.iterdir())


def test_all_of_a_process_take_one_descriptor(folder: Path) -> None:
    first = Scratch("blob")
    before = len(os.listdir("/proc/self/fd"))
    others = [Scratch("copy") for _ in range(20)]
    assert len(os.listdir("/proc/self/fd")) == before
    shutil.rmtree(Path(first.path).parent)
    again = Scratch("blob")
    assert os.path.isdir(again.path)
    for one in (first, *others, again):
        one.remove()
    assert not list(folder.iterdir())

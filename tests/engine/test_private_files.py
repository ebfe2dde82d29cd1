"""The data directory and the key are the server's alone, or it does not start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.base.config import ConfigError
from engine.base.private_files import (
    SECRET,
    check_private_key,
    data_directory_problem,
    prepare_data_directory,
    stored_secret,
)
from tests.support.server import ServerProcess


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.mark.parametrize("mode", range(0o700, 0o1000))
def test_nobody_else_writes_or_lists_a_data_directory(tmp_path: Path, mode: int) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "log.sqlite").touch()
    data.chmod(mode)
    if mode in (0o700, 0o710, 0o740, 0o750):  # PostgreSQL's mask
        prepare_data_directory(data)
    else:
        with pytest.raises(
            ConfigError, match=f"has invalid permissions\nDETAIL: .*\nHINT:  chmod 0700 {data}$"
        ):
            prepare_data_directory(data)
    assert mode_of(data) == mode


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_what_is_made_is_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        prepare_data_directory(tmp_path / "a" / "b")
        (tmp_path / "empty").mkdir(mode=0o777)
        prepare_data_directory(tmp_path / "empty")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "a/b") == mode_of(tmp_path / "empty") == 0o700


def test_what_is_no_directory_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="is not a directory"):
        prepare_data_directory(tmp_path / "file")
    assert data_directory_problem(tmp_path / "none") is None


def test_a_key_is_for_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = tmp_path / "a key.pem"
    key.touch()
    me, other = os.stat(key).st_uid, os.stat(key).st_uid + 1
    for mode, as_mine, as_roots in ((0o600, True, True), (0o400, True, True), (0o640, False, True), (0o440, False, True),
                                    (0o660, False, False), (0o644, False, False), (0o650, False, False)):  # fmt: skip
        key.chmod(mode)
        for user, allowed in ((me, as_mine), (other, as_roots if me == 0 else False)):
            monkeypatch.setattr(os, "geteuid", lambda user=user: user)
            if allowed:
                check_private_key(str(key))
            else:
                with pytest.raises(ConfigError, match=r"^private key file"):
                    check_private_key(str(key))
    with pytest.raises(ConfigError, match="not a regular file"):
        check_private_key(str(tmp_path))


def test_a_server_makes_its_directory_private_and_refuses_an_open_one(
    tmp_path: Path, certificate: Path
) -> None:
    data = tmp_path / "my data"
    assert ServerProcess(data).stop() == 0
    assert mode_of(data) == 0o700
    data.chmod(0o755)
    key = tmp_path / "key.pem"
    key.write_bytes((certificate / "key.pem").read_bytes())
    key.chmod(0o644)
    serve = [
        sys.executable,
        "-m",
        "engine",
        "serve",
        "--port",
        "0",
        "--data-dir",
        str(data),
        "--spark-start",
        "off",
    ]
    for more, first, hint in (
        ([], f'holdfast: data directory "{data}" has invalid permissions', f"HINT:  chmod 0700 '{data}'"),
        (["--tls-cert", str(certificate / "cert.pem"), "--tls-key", str(key)],
         f'holdfast: private key file "{key}" has group or world access', f"HINT:  chmod 0600 {key}"),
    ):  # fmt: skip
        done = subprocess.run([*serve, *more], capture_output=True, text=True, timeout=60, check=False)
        lines = done.stderr.splitlines()
        assert (done.returncode, lines[0], lines[-1]) == (1, first, hint)
    checked = subprocess.run(
        [sys.executable, "-m", "engine", "doctor", "--data-dir", str(data)], capture_output=True, text=True, timeout=60, check=False
    )  # fmt: skip
    assert f'FAIL data directory "{data}" has invalid permissions' in checked.stdout
    data.chmod(0o750)
    assert ServerProcess(data).stop() == 0


def test_the_secret_of_a_data_directory_stays(tmp_path: Path) -> None:
    secret = stored_secret(tmp_path)
    assert len(secret) == 32
    assert stored_secret(tmp_path) == secret
    assert mode_of(tmp_path / SECRET) == 0o600
    (tmp_path / SECRET).write_bytes(b"cut")
    (tmp_path / f"{SECRET}.new").write_bytes(b"left by a crash")
    again = stored_secret(tmp_path)
    assert again not in (secret, b"cut")
    assert stored_secret(tmp_path) == again

"""Files that only the server's user may reach: the data directory, and the key of its certificate.

    data directory     absent, or empty ──> made 0700      else 0700 or 0750, the user's own
    private key        0600 or less, the user's own; or root's, then 0640 or less
    secret             0600, made at the first start

PostgreSQL's rules and words (manual 19.2, 19.9). What is readable for others is rows, password verifiers, and
a key that anybody could speak with as this server. Not asked of a ``blob`` directory that servers share: its
permissions are its owner's to choose.
"""

from __future__ import annotations

import logging
import os
import secrets
import shlex
import stat
from pathlib import Path
from typing import Final

from engine.base.config import ConfigError
from txn.persist.trouble import again, opened

log = logging.getLogger("holdfast")

OWN: Final = 0o700
SECRET: Final = "secret"
_SECRET_BYTES: Final = 32
_OTHERS: Final = stat.S_IWGRP | stat.S_IRWXO
_KEY_OF_USER: Final = stat.S_IRWXG | stat.S_IRWXO
_KEY_OF_ROOT: Final = stat.S_IWGRP | stat.S_IXGRP | stat.S_IRWXO


def data_directory_problem(path: Path) -> str | None:
    """Return why a server may not use a data directory as it is, with DETAIL and HINT; None if it may, or it
    is not there.
    """
    try:
        status = path.stat()
    except OSError:
        return None  # whoever makes or opens it says what is wrong
    if not stat.S_ISDIR(status.st_mode):
        return f'specified data directory "{path}" is not a directory'
    if os.geteuid() not in (0, status.st_uid):
        return _told(
            f'data directory "{path}" has wrong ownership',
            hint="The server must be started by the user that owns the data directory.",
        )
    if status.st_mode & _OTHERS:
        return _told(
            f'data directory "{path}" has invalid permissions',
            detail="Permissions should be u=rwx (0700) or u=rwx,g=rx (0750).",
            hint=f"chmod 0700 {shlex.quote(str(path))}",
        )
    return None


def prepare_data_directory(path: Path) -> None:
    """Make the data directory, or take an empty one, for the server's user alone. ConfigError where it is
    open to others; OSError.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=OWN)
    except FileExistsError:
        if path.is_dir() and data_directory_problem(path) is not None and not any(path.iterdir()):
            path.chmod(OWN)  # as initdb does: nothing of it has been readable
    problem = data_directory_problem(path)
    if problem is not None:
        raise ConfigError(problem)


def stored_secret(path: Path) -> bytes:
    """Return the secret that the salts of unknown users derive from, made at the first start.

    With another one at each start these salts would change where those of roles stay. One that cannot be
    kept, or read, is good for this start: what the system will not read now is not written over.
    """
    file = path / SECRET

    def read() -> bytes:
        with opened(str(file)) as found:
            return found.read(_SECRET_BYTES + 1)

    try:
        secret = again(read)
    except FileNotFoundError:
        secret = b""
    except OSError as error:
        log.warning("could not read %s: %s", file, error.strerror)
        return secrets.token_bytes(_SECRET_BYTES)
    if len(secret) == _SECRET_BYTES:
        return secret
    secret = secrets.token_bytes(_SECRET_BYTES)
    new = path / f"{SECRET}.new"
    try:
        new.unlink(missing_ok=True)
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as out:
            out.write(secret)
            out.flush()
            os.fsync(out.fileno())
        new.replace(file)
    except OSError as error:
        log.warning("could not write %s: %s", file, error.strerror)
    return secret


def check_private_key(path: str) -> None:
    """Raise ConfigError unless a private key is the server's alone. A file that is not there is somebody
    else's to tell.
    """
    try:
        status = os.stat(path)
    except OSError:
        return
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError(f'private key file "{path}" is not a regular file')
    if status.st_uid not in (0, os.geteuid()):
        raise ConfigError(f'private key file "{path}" must be owned by the database user or root')
    barred = _KEY_OF_USER if status.st_uid == os.geteuid() else _KEY_OF_ROOT
    if status.st_mode & barred:
        raise ConfigError(
            _told(
                f'private key file "{path}" has group or world access',
                detail="File must have permissions u=rw (0600) or less if owned by the database user, or permissions u=rw,g=r "
                "(0640) or less if owned by root.",
                hint=f"chmod 0600 {shlex.quote(path)}",
            )
        )


def _told(message: str, *, detail: str | None = None, hint: str) -> str:
    lines = [message, *([] if detail is None else [f"DETAIL:  {detail}"]), f"HINT:  {hint}"]
    return "\n".join(lines)

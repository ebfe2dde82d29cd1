"""Functions of the extension pgcrypto (manual F.28): hashes, keyed hashes, random bytes, crypt() with MD5.

Passwords by Blowfish and DES, raw encryption and OpenPGP are refused by name (0A000): a hash that is slow on
purpose would hold up all other connections, since functions run where the statements of all are taken up.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from pgwire.codecs.invalid import quoting
from pgwire.give_way import give_way, outside
from pgwire.long.values import encoded
from planner.base.errors import SqlError, not_supported
from planner.functions.registry import REGISTRY, PythonForm
from planner.functions.session import EvalSession
from planner.functions.text.bytea import HASHED_BYTES
from planner.functions.values.uuid import gen_random_uuid

MAX_RANDOM_BYTES: Final = 1024
_ALPHABET: Final = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_MD5: Final = "$1$"
_MD5_ROUNDS: Final = 1000
_MD5_SALT: Final = 8  # characters
# the order in which the digest's bytes are printed, three at a time, high byte first
_MD5_ORDER: Final = ((0, 6, 12), (1, 7, 13), (2, 8, 14), (3, 9, 15), (4, 10, 5), (11,))
_LONGEST: Final = 64
"""Characters of a name; none that is known has as many."""
_OTHERS: Final = {"bf": "Blowfish", "des": "DES", "xdes": "DES"}


def _algorithm(name: str) -> str:
    """Return a hash's name here. Raises SqlError 22023."""
    try:
        known = name[:_LONGEST].lower()
        if hashlib.new(known, usedforsecurity=False).digest_size:
            return known
    except ValueError:
        pass
    raise SqlError("22023", quoting("Cannot use ", name, ": No such hash algorithm"))


@outside(HASHED_BYTES)
def digest(data: bytes, name: str) -> bytes:
    """Return the hash of ``data``. Raises SqlError 22023 for an unknown algorithm."""
    return hashlib.new(_algorithm(name), data, usedforsecurity=False).digest()


@outside(HASHED_BYTES)
def keyed(data: bytes, key: bytes, name: str) -> bytes:
    """Return the HMAC of ``data`` (RFC 2104). Raises SqlError 22023 for an unknown algorithm."""
    return hmac.new(key, data, _algorithm(name)).digest()


def random_bytes(session: EvalSession, count: int) -> bytes:
    """Return random bytes. Raises SqlError 39000 for none, and for more than 1024."""
    if not 1 <= count <= MAX_RANDOM_BYTES:
        raise SqlError("39000", "Length not in range")
    return session.random_bytes(count)


def _spelled(number: int, characters: int) -> str:
    """Return the base-64 digits of a number, lowest first."""
    return "".join(_ALPHABET[number >> 6 * i & 63] for i in range(characters))


def gen_salt(session: EvalSession, kind: str, rounds: int = 0) -> str:
    """Return a new salt for ``crypt``; ``rounds`` 0: the default.

    Raises SqlError 22023 for an unknown kind and a wrong number of rounds, 0A000 for others than MD5.
    """
    known = kind[:_LONGEST].lower()
    if known in _OTHERS:
        raise not_supported(f"gen_salt('{known}')", hint="gen_salt('md5') is.")
    if known != "md5":
        raise SqlError("22023", "gen_salt: Unknown salt algorithm")
    if rounds not in (0, _MD5_ROUNDS):
        raise SqlError("22023", "gen_salt: Incorrect number of rounds")
    number = int.from_bytes(session.random_bytes(6), "big")
    return _MD5 + _spelled(number, _MD5_SALT)


def crypt(password: str, salt: str) -> str:
    """Return the hash of a password under the salt, or hash, that ``salt`` begins with.

    Raises SqlError 22023 for what is no salt, 0A000 for others than those of MD5.
    """
    if not salt.startswith(_MD5):
        if salt[:4] in ("$2a$", "$2x$"):
            raise not_supported("crypt() with Blowfish")
        if len(salt) > 1:
            raise not_supported("crypt() with DES")
        raise SqlError("22023", "invalid salt")
    return _md5_crypt(password.encode(), salt[len(_MD5) :].split("$")[0][:_MD5_SALT])


def _md5(*parts: bytes) -> bytes:
    return hashlib.md5(b"".join(parts), usedforsecurity=False).digest()


def _md5_crypt(password: bytes, salt_text: str) -> str:
    """FreeBSD's password hash of MD5, as crypt(3) has it."""
    salt = salt_text.encode()
    mixed = _md5(password, salt, password)
    size = len(password)
    stretched = (mixed * (size // 16 + 1))[:size]
    # for each bit of the length: a zero byte for 1, the password's first byte for 0
    bits = b"".join(b"\0" if size >> bit & 1 else password[:1] for bit in range(size.bit_length()))
    found = _md5(password, _MD5.encode(), salt, stretched, bits)
    for round_ in range(_MD5_ROUNDS):
        give_way()
        odd = round_ & 1
        found = _md5(
            password if odd else found,
            salt if round_ % 3 else b"",
            password if round_ % 7 else b"",
            found if odd else password,
        )
    out = [
        _spelled(int.from_bytes(bytes(found[i] for i in group), "big"), 4 if len(group) == 3 else 2)
        for group in _MD5_ORDER
    ]
    return f"{_MD5}{salt_text}${''.join(out)}"


def _register() -> None:
    def python(signature: str, form: PythonForm, *, needs_session: bool = False) -> None:
        REGISTRY.python(f"pgcrypto.{signature}", form, needs_session=needs_session)

    python("digest(text,text)", lambda data, name: digest(encoded(data), name))
    python("digest(bytea,text)", digest)
    python("hmac(text,text,text)", lambda data, key, name: keyed(encoded(data), encoded(key), name))
    python("hmac(bytea,bytea,text)", keyed)
    python("gen_random_bytes(int4)", random_bytes, needs_session=True)
    python("gen_random_uuid()", gen_random_uuid, needs_session=True)
    python("gen_salt(text)", gen_salt, needs_session=True)
    python("gen_salt(text,int4)", gen_salt, needs_session=True)
    python("crypt(text,text)", crypt)


_register()
